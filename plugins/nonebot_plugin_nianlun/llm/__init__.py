"""Talking to language models: the client, the writers of notes and their prompts."""
