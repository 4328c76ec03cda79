"""What our own export holds beside messages, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from ..types import Activity, Memory, SkipReason


@dataclass(frozen=True, slots=True)
class ChatSettings:
    paused: bool = False
    muted: bool = False
    persona: str | None = None
    daily_token_limit: int | None = None
    speaker_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Person:
    user_id: str
    name: str
    names: tuple[str, ...]
    """All names, oldest first; the one that is shown may stand anywhere."""
    opted_out: bool
    registered_at: datetime | None = None
    """Of a person whom a named store has registered."""


@dataclass(frozen=True, slots=True)
class SkippedRun:
    first: int
    last: int
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class GapSpan:
    begins: datetime
    ends: datetime


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier text of a memory."""

    version: int
    text: str
    writer: str
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Remembered:
    """A day, month or year with its earlier texts, oldest first."""

    memory: Memory
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class FactText:
    """What a fact said at a time."""

    text: str
    written_at: datetime
    source: int | None = None


@dataclass(frozen=True, slots=True)
class KnownFact:
    owner: str
    """A speaker's user id, `me`, or empty for the chat."""
    category: str
    name: str | None
    due: str | None
    text: FactText
    journal: tuple[FactText, ...]
    """Earlier texts, oldest first."""
    event_date: str | None = None
    """When what a note tells happened: a day, or a moment in UTC."""


Record: TypeAlias = Person | Activity | SkippedRun | GapSpan | Remembered | KnownFact


class Refused(Exception):
    """What a record refers to is not there; the text says what, for a person."""
