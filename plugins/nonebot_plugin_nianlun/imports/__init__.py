"""Old chats brought in: one file a chat-export format, all speaking in the words of `found`."""
