"""The database: the only place that knows of an ORM or of SQL."""
