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
    members_read: bool | None = None
    day_starts_at: str | None = None
    name: str | None = None
    """What the chat is called."""


@dataclass(frozen=True, slots=True)
class Person:
    user_id: str
    name: str
    names: tuple[str, ...]
    """All names, oldest first; the one that is shown may stand anywhere."""
    opted_out: bool
    registered_at: datetime | None = None
    """Of a person whom a named store has registered."""
    named_at: datetime | None = None
    """Since when the name is shown; None in a file that does not tell."""
    names_since: tuple[datetime, ...] = ()
    """When each of the names was first seen; empty in a file that does not tell."""
    opted_out_at: datetime | None = None
    """Told by files that also have the exclusions themselves."""


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
class ExcludedSpan:
    """What may not be recorded, as an exclusion of the exporting chat says it."""

    reason: str
    user_id: str | None
    message_id: str | None
    begins: datetime | None
    ends: datetime | None
    noted_at: datetime
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class UsageOfDay:
    """Model calls of a logical day, by purpose and model."""

    date: str
    purpose: str
    model: str
    calls: int
    failures: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier text of a note."""

    version: int
    text: str
    writer: str
    written_at: datetime
    key_messages: tuple[int, ...] | None = None
    """None in a file that does not tell; then they are those that the text names."""
    sources: tuple[str, ...] | None = None
    blanked: bool | None = None
    usage: str | None = None
    merged: bool = False
    """The memory above held it when it was replaced."""


@dataclass(frozen=True, slots=True)
class NoteState:
    """What is owed of a note, as the exporting chat had it."""

    merged: bool
    stale: bool
    closed: bool = False
    usage: str | None = None
    """What it cost, as it is stored: JSON."""


@dataclass(frozen=True, slots=True)
class Noted:
    """An activity with its earlier texts, oldest first."""

    activity: Activity
    versions: tuple[Version, ...] = ()
    state: NoteState | None = None
    """None in a file that does not tell."""
    exported: str | None = None
    """The digest of the text that was exported, where a person has changed it since."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A day, month or year with its earlier texts, oldest first."""

    memory: Memory
    versions: tuple[Version, ...]
    state: NoteState | None = None
    """None in a file that does not tell."""
    exported: str | None = None
    """See `Noted`."""


@dataclass(frozen=True, slots=True)
class FactText:
    """What a fact said at a time."""

    text: str
    written_at: datetime
    source: int | None = None
    writer: str | None = None
    """Who changed it by hand, if somebody did."""
    due: str | None = None
    """Until when what it promised was to be kept; None also in a journal that does not tell."""
    done_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KnownFact:
    owner: str
    """A speaker's user id, `me`, or empty for the chat."""
    category: str
    name: str | None
    text: FactText
    journal: tuple[FactText, ...]
    """Earlier texts, oldest first."""
    event_date: str | None = None
    """When what a note tells happened: a day, or a moment in UTC."""
    created_at: datetime | None = None
    """None in a file that does not tell; then it is when its oldest text was written."""
    exported: str | None = None
    """See `Noted`."""
    redated: bool = False
    """Whether a person has changed its text's `due` since it was exported."""
    misdated: str = ""
    """What they put in its place, where that is no day."""


Record: TypeAlias = (
    Person | Noted | SkippedRun | GapSpan | Remembered | KnownFact | ExcludedSpan | UsageOfDay
)


class Refused(Exception):
    """What a record refers to is not there; the text says what, for a person."""
