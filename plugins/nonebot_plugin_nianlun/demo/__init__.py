"""The tour for newcomers: a sample chat, and what the character remembers of it."""
