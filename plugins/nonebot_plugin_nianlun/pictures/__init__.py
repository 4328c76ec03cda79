"""What is drawn: growth rings, calendars and bars. Pure functions from numbers to PNG files."""
