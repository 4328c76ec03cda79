"""Migrations, applied in order; only additive ones."""
