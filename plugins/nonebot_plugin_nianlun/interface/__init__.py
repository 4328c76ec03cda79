"""What other programs call from Python, one file a purpose."""
