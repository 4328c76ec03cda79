"""What callers of a named store give, checked: each fault is a MemoryRequestError."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
import unicodedata

from ..capture.cleaning import clean_name, clean_text
from ..errors import MemoryRequestError
from ..memory.event_dates import aware, event_date
from ..memory.secrets import mask_secrets
from ..types import ME

NAME_LIMIT = 80
"""Longest name of a speaker or a category, in characters after normalising."""
STORE_NAME_LIMIT = 128
CONTENT_LIMIT = 20_000
"""Longest text of one memory, in characters."""
MOST_AT_ONCE = 100
"""So many memories at most come back from one call."""
MOST_SPEAKERS = 1_000_000
FIRST_YEAR, LAST_YEAR = 1970, 8999
_CONTROLS = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
"""Marks that turn the direction of whatever follows them."""


def normal_name(given: object, field: str, limit: int = NAME_LIMIT) -> str:
    """The name as it is kept and compared. Raises MemoryRequestError, which bears the field."""
    if not isinstance(given, str):
        raise MemoryRequestError(f"{field} must be a string.", **{field: None})
    name = unicodedata.normalize("NFC", given.strip())
    shown = name.encode("utf-8", "replace").decode()[:limit]
    if not clean_name(name):
        raise MemoryRequestError(f"{field} must not be blank.", **{field: shown})
    if len(name) > limit:
        raise MemoryRequestError(
            f"{field} must have at most {limit} characters, not {len(name)}.", **{field: shown}
        )
    if any(c in _TURNING or unicodedata.category(c) in _CONTROLS for c in name):
        raise MemoryRequestError(
            f"{field} must not hold line breaks or other control characters.", **{field: shown}
        )
    return name


def speaker_name(given: object) -> str:
    """A registered person's name, or `me`. Raises MemoryRequestError."""
    name = normal_name(given, "speaker")
    if name != ME and name.lower() == ME:
        raise MemoryRequestError(
            f"The assistant itself is {ME!r}, in lower case only; no speaker can be called"
            f" {name!r}.",
            speaker=name,
        )
    return name


def registrable(name: object) -> str:
    """Somebody who can be registered."""
    speaker = speaker_name(name)
    if speaker == ME:
        raise MemoryRequestError(
            f"{ME!r} is the assistant itself: it is neither registered nor removed.", speaker=ME
        )
    return speaker


def content_of(given: object, field: str = "content") -> str:
    """The text as it is kept or looked for: secrets are masked."""
    text = mask_secrets(clean_text(given).strip()) if isinstance(given, str) else ""
    if not text:
        raise MemoryRequestError(f"{field} must be a text that is not blank.", field=field)
    if len(text) > CONTENT_LIMIT:
        raise MemoryRequestError(
            f"{field} must have at most {CONTENT_LIMIT} characters, not {len(text)}.", field=field
        )
    return text


def whole(given: object, field: str, least: int, most: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise MemoryRequestError(f"{field} must be an integer from {least} to {most}.", field=field)


def ids_of(given: object, field: str) -> list[object]:
    """A list of ids; None is an empty one."""
    if given is None:
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise MemoryRequestError(f"{field} must be a list of ids.", field=field)
    return list(given)


def event_date_of(given: object) -> str:
    """A plain date as it is, a moment in UTC."""
    try:
        return event_date(given)
    except ValueError:
        raise _no_time("event_date") from None


def moment_of(given: object, field: str) -> datetime:
    """A time with its zone, in UTC."""
    try:
        if isinstance(given, str):
            return aware(given)
    except ValueError:
        pass
    raise _no_time(field)


def told_at_of(given: object) -> datetime:
    """A moment that an export can bring back, in UTC."""
    if (
        not isinstance(given, datetime)
        or given.tzinfo is None
        or not FIRST_YEAR < given.year < LAST_YEAR
    ):
        raise _no_time("told_at")
    return given.astimezone(UTC)


def _no_time(field: str) -> MemoryRequestError:
    return MemoryRequestError(f"{field} must be a date, or a time with its zone.", field=field)
