"""Counterparts that the tests talk to over real connections."""
