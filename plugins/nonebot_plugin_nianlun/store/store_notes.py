"""What a named store remembers: notes, each with who said it, or nobody."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tortoise.queryset import QuerySet

from ..memory.duplicates import same_key
from . import facts, named_stores, search, sql, traces
from .database import transactional
from .keys import chunks
from .models import Fact, FactVersion


@dataclass(frozen=True, slots=True)
class NewNote:
    """What is to be stored."""

    content: str
    owner: str
    """A registered name, `me`, or empty for nobody."""
    category: str
    event_date: str | None
    told_at: datetime


class Added(NamedTuple):
    """What became of it."""

    id: int
    """The row that was stored, or the one that says the same."""
    is_new: bool


@transactional
async def add(chat_id: int, note: NewNote) -> Added:
    """Store a note unless one of the same speaker and event date says the same.

    Raises MemoryRequestError when its owner is not registered.
    """
    await sql.move_last_seqs({chat_id: 0})
    if note.owner and not await named_stores.knows(chat_id, note.owner):
        raise named_stores.unregistered(note.owner)
    key = same_key(note.content)
    known = await _saying(chat_id, note.owner, key, note.event_date).first().only("id")
    if known is not None:
        return Added(known.id, is_new=False)
    row = await Fact.create(
        chat_id=chat_id,
        owner=note.owner,
        category=note.category,
        text=note.content,
        note_key=key,
        event_date=note.event_date,
        created_at=note.told_at,
        written_at=note.told_at,
    )
    await search.add(chat_id, "fact", [row.id])
    return Added(row.id, is_new=True)


@transactional
async def supersede(chat_id: int, note_id: int, content: str, now: datetime) -> Added | None:
    """Give a note another text; its speaker stays, and the old text is kept as an earlier one.

    When another note of the same speaker says that already, nothing is changed. None when there
    is no such note.
    """
    await sql.move_last_seqs({chat_id: 0})
    row = await get(chat_id, note_id)
    if row is None:
        return None
    if row.text == content:
        return Added(row.id, is_new=False)
    key = same_key(content)
    known = await _saying(chat_id, row.owner, key, row.event_date).exclude(id=row.id).first()
    if known is not None:
        return Added(known.id, is_new=False)
    await facts.keep_version(row)
    at = max(now, row.written_at)
    await Fact.filter(id=row.id).update(
        text=content, note_key=key, source=None, writer=None, written_at=at
    )
    await search.add(chat_id, "fact", [row.id])
    return Added(row.id, is_new=True)


def _saying(chat_id: int, owner: str, key: str, event_date: str | None) -> QuerySet[Fact]:
    return Fact.filter(chat_id=chat_id, owner=owner, note_key=key, event_date=event_date)


async def get(chat_id: int, note_id: int) -> Fact | None:
    return await Fact.filter(chat_id=chat_id, id=note_id).exclude(text="").first()


@transactional
async def forget(chat_id: int, note_id: int) -> int:
    """Remove a note with its earlier texts; returns how many that is."""
    await sql.move_last_seqs({chat_id: 0})
    row = await get(chat_id, note_id)
    return 0 if row is None else await _remove(chat_id, [row.id])


@transactional
async def clear(chat_id: int) -> int:
    """Remove all that is remembered with its earlier texts; returns how many that is."""
    await sql.move_last_seqs({chat_id: 0})
    return await _remove(chat_id, [row.id for row in await Fact.filter(chat_id=chat_id).only("id")])


async def _remove(chat_id: int, ids: Collection[int]) -> int:
    earlier = 0
    for part in chunks(list(ids)):
        versions = FactVersion.filter(chat_id=chat_id, fact_id__in=part)
        # A deletion counts what triggers take out of the index, too.
        earlier += await versions.count()
        await versions.delete()
        await Fact.filter(chat_id=chat_id, id__in=part).delete()
    if ids:
        await traces.owe(chat_id)
    return len(ids) + earlier


async def page(
    chat_id: int,
    owner: str | None,
    before: datetime | None,
    skip: Collection[int],
    limit: int,
) -> list[Fact]:
    """Notes, newest first, of one owner or of all; those told at or before a time but not `skip`.

    Notes of one moment stand in the order of their ids, newest first.
    """
    query = Fact.filter(chat_id=chat_id).exclude(text="")
    if owner is not None:
        query = query.filter(owner=owner)
    if before is not None:
        query = query.filter(created_at__lte=before)
    rows = await query.order_by("-created_at", "-id").limit(limit + len(skip))
    return [row for row in rows if row.id not in skip][:limit]


async def everything(chat_id: int) -> list[Fact]:
    """All notes, oldest first."""
    notes = Fact.filter(chat_id=chat_id).exclude(text="")
    return await notes.order_by("created_at", "id")


async def several(chat_id: int, ids: Collection[int]) -> dict[int, Fact]:
    """Those of the notes that there are, by id."""
    rows: list[Fact] = []
    for part in chunks(list(ids)):
        rows += await Fact.filter(chat_id=chat_id, id__in=part)
    return {row.id: row for row in rows}


async def records(chat_id: int, owner: str | None) -> int:
    """How many texts of an owner, or of all, there are, earlier ones included."""
    if owner is None:
        notes = await Fact.filter(chat_id=chat_id).count()
        return notes + await FactVersion.filter(chat_id=chat_id).count()
    ids = [row.id for row in await Fact.filter(chat_id=chat_id, owner=owner).only("id")]
    earlier = 0
    for part in chunks(ids):
        earlier += await FactVersion.filter(chat_id=chat_id, fact_id__in=part).count()
    return len(ids) + earlier
