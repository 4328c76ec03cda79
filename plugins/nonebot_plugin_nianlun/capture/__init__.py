"""Reading OneBot: events, withdrawals and own send calls become values that the store keeps."""
