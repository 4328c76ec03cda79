"""All that is stored of one chat, as far as it is checked: plain values, read in one view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..types import MemoryKind, NoteKind, Origin


@dataclass(frozen=True, slots=True)
class LineView:
    """What must be known of a message; `activity` is the row id of the note that covers it."""

    seq: int
    time: datetime
    activity: int | None
    skipped: str | None
    withdrawn: bool
    has_text: bool


@dataclass(frozen=True, slots=True)
class ActivityView:
    row: int
    number: int
    date: str
    origin: Origin
    outer: tuple[int, int] | None
    """The first and last seq that it says it covers."""
    has_text: bool
    key_messages: tuple[int, ...]
    merged: bool
    stale: bool
    offline: bool = False
    """The offline writer noted it: it may be asked for again, and stands until then."""


@dataclass(frozen=True, slots=True)
class MemoryView:
    kind: MemoryKind
    period: str
    has_text: bool
    key_messages: tuple[int, ...]
    sources: tuple[str, ...]
    version: int
    edited: bool
    closed: bool
    merged: bool
    stale: bool


@dataclass(frozen=True, slots=True)
class VersionView:
    """An earlier text of a note."""

    kind: NoteKind
    ref: str
    version: int
    has_text: bool
    key_messages: tuple[int, ...]
    blanked: bool


@dataclass(frozen=True, slots=True)
class ChatView:
    """All that is checked of one chat, as it stood at one moment."""

    last_seq: int
    last_activity: int
    lines: Iterable[LineView]
    """In order of seq; read once, so that a long chat need not be held at once."""
    activities: Sequence[ActivityView]
    memories: Sequence[MemoryView]
    versions: Sequence[VersionView]
    facts: Sequence[tuple[str, int]]
    """`category:name` and source message of each fact that names one."""
    leases: Sequence[tuple[str, str, datetime]]
    """Work, holder, and until when."""
    search: Sequence[str] = ()
    """What is wrong with the search index, told already."""
