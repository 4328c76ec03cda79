"""The commands under `/记忆`; `matcher.register` puts them to work."""
