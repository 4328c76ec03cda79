"""When something happened, as a note keeps it: a day, or a moment in UTC."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime


def event_date(given: object) -> str:
    """`YYYY-MM-DD` for a plain date, else RFC 3339 in UTC.

    Raises ValueError for what is neither a date nor a time with its zone.
    """
    if not isinstance(given, str):
        raise ValueError("a date is text")
    with suppress(ValueError):
        return date.fromisoformat(given.strip()).isoformat()
    return aware(given).isoformat()


def aware(given: str) -> datetime:
    """A time with its zone, in UTC. Raises ValueError."""
    time = datetime.fromisoformat(given.strip())
    if time.tzinfo is None:
        raise ValueError("a time without its zone")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("no calendar has this time") from None
