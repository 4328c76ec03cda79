"""What a named store answers with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from ..store.models import Fact
from ..store.named_stores import Registered
from ..store.store_notes import Added

# UUIDs of our own making (version 8): programs tell an id from a name by its form.
_ID = UUID("00000000-0000-8000-8000-000000000000").int
_ID_BITS = 62


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory of a store."""

    id: str
    """In the form of a UUID; of this store and database only: an import gives new ones."""
    content: str
    speaker: str | None
    """Who it was stored of: a registered name, or `me`; None when nobody was given."""
    category: str | None
    event_date: str | None
    """When it happened, where that was given: `YYYY-MM-DD`, or a moment in UTC."""
    created_at: datetime
    score: float | None = None
    """Of a search: higher is better."""


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What became of a memory that was to be stored."""

    id: str
    """Empty when nothing was stored."""
    status: Literal["stored", "duplicate"]
    note: str | None = None
    """Why nothing was stored."""
    duplicate_of: str | None = None
    """The memory that says the same already."""


@dataclass(frozen=True, slots=True)
class SpeakerInfo:
    """A registered person."""

    speaker: str
    memories: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SpeakerList:
    """Who is registered in a store, in the order in which they were."""

    speakers: tuple[SpeakerInfo, ...]
    count: int
    limit: int


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """Memories, newest first; those of one moment by their ids, newest first."""

    memories: tuple[StoredMemory, ...]
    has_more: bool
    next_before: str | None
    """With `next_skip_ids` what the next page begins after: give both back; None at the end."""
    next_skip_ids: tuple[str, ...]
    chunks: int
    """Texts that would go were all memories of this speaker deleted, earlier ones included."""

    @property
    def records_to_delete(self) -> int:
        return self.chunks

    @property
    def points_to_delete(self) -> int:
        return self.chunks


def memory_id_of(row_id: int) -> str:
    return str(UUID(int=_ID | row_id))


def row_id_of(memory_id: object) -> int | None:
    """None when it can be no memory's id."""
    try:
        number = UUID(memory_id).int ^ _ID if isinstance(memory_id, str) else 0
    except ValueError:
        return None
    return number if 0 < number < 1 << _ID_BITS else None


def stored_memory(row: Fact, score: float | None = None) -> StoredMemory:
    return StoredMemory(
        id=memory_id_of(row.id),
        content=row.text,
        speaker=row.owner or None,
        category=row.category or None,
        event_date=row.event_date,
        created_at=row.created_at.astimezone(UTC),
        score=score,
    )


def speaker_info(person: Registered) -> SpeakerInfo:
    return SpeakerInfo(person.name, person.memories, person.created_at.astimezone(UTC))


def store_result(added: Added) -> StoreResult:
    memory_id = memory_id_of(added.id)
    if added.is_new:
        return StoreResult(memory_id, "stored")
    note = "Nothing was saved: a memory of the same speaker in this store says the same already."
    return StoreResult("", "duplicate", note, memory_id)
