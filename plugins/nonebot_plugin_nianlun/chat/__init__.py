"""When and how the character speaks: triggers, replies, and the sending of text."""
