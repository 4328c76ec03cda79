"""How values become keys and columns: ids of any length, segments as text, lists in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
import json
from typing import TypeVar

from ..types import Segment

IN_LIMIT = 500
"""Values in one `IN (…)`: well below what any SQLite allows."""
ID_LENGTH = 128
"""Width of the columns that hold an id."""
LONGEST_WRITER = 32
"""Width of the columns that say who wrote a text; a QQ number is shorter."""
MOMENT = timedelta(microseconds=1)
"""The smallest step of a time as it is stored."""
NAMELESS = "name:"
"""Begins the user id of somebody of whom no file has told more than the name."""

T = TypeVar("T")


def short_id(text: str, limit: int = ID_LENGTH) -> str:
    """Ids are text of any length; one that is too long for its column is kept as its hash."""
    return text if len(text) <= limit else sha256(text.encode()).hexdigest()


def body(segments: Sequence[Segment]) -> str:
    """Segments as they are stored: JSON with its characters unescaped, so that SQL can search."""
    return json.dumps(segments, ensure_ascii=False, separators=(",", ":"))


def wordless_key(time: datetime, seq: int) -> str:
    """The key of a masked message without an id, which would else hold a hash of its words."""
    return f"{int(time.timestamp())}||masked|{seq}"


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in parts of at most `IN_LIMIT`."""
    for start in range(0, len(values), IN_LIMIT):
        yield values[start : start + IN_LIMIT]
