"""Activities, days, months and years: reading, and storing with every earlier version kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
import json
from typing import cast

from tortoise.expressions import F

from ..errors import Overtaken
from ..memory.rollups import ActivityState, MemoryState
from ..types import Activity, Memory, MemoryKind, Note, Origin, RollupTask, Window
from . import facts, sql
from .database import transactional
from .keys import chunks
from .models import Activity as ActivityRow
from .models import Chat, NoteVersion
from .models import Memory as MemoryRow
from .models import Message as MessageRow


def _texts(raw: str) -> tuple[str, ...]:
    return tuple(json.loads(raw))


def _ids(raw: str) -> tuple[int, ...]:
    return tuple(json.loads(raw))


async def _ranges(chat_id: int, activity_ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """The runs of `seq` that each activity covers."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for part in chunks(activity_ids):
        query = MessageRow.filter(chat_id=chat_id, activity_id__in=part).order_by(
            "activity_id", "seq"
        )
        pairs = cast("list[tuple[int, int]]", await query.values_list("activity_id", "seq"))
        for activity_id, seq in pairs:
            runs = ranges.setdefault(activity_id, [])
            if runs and runs[-1][1] == seq - 1:
                runs[-1] = (runs[-1][0], seq)
            else:
                runs.append((seq, seq))
    return ranges


async def _to_activities(chat_id: int, rows: Sequence[ActivityRow]) -> list[Activity]:
    ranges = await _ranges(chat_id, [row.id for row in rows])
    return [
        Activity(
            number=row.number,
            date=row.date,
            text=row.text,
            key_messages=_ids(row.key_messages),
            origin=cast("Origin", row.origin),
            time=row.time,
            writer=row.writer,
            written_at=row.written_at,
            ranges=tuple(ranges.get(row.id, ())),
            owner=row.owner,
            version=row.version,
            merged=row.merged,
        )
        for row in rows
    ]


def _to_memory(row: MemoryRow) -> Memory:
    return Memory(
        kind=cast("MemoryKind", row.kind),
        period=row.period,
        text=row.text,
        key_messages=_ids(row.key_messages),
        sources=_texts(row.sources),
        version=row.version,
        writer=row.writer,
        written_at=row.written_at,
        closed=row.closed,
        merged=row.merged,
    )


async def activities(chat_id: int, date: str) -> list[Activity]:
    """A logical day's activities in time order; those being rewritten are left out."""
    rows = await ActivityRow.filter(chat_id=chat_id, date=date, stale=False).order_by(
        "time", "number"
    )
    return await _to_activities(chat_id, rows)


async def loose_activities(chat_id: int) -> list[Activity]:
    """Activities that no day memory holds yet, oldest first."""
    ids = await sql.loose_activities(chat_id)
    rows = await ActivityRow.filter(id__in=ids).order_by("date", "time", "number")
    return await _to_activities(chat_id, rows)


async def all_activities(chat_id: int) -> list[Activity]:
    """Every activity; one that is being rewritten says nothing meanwhile."""
    rows = await ActivityRow.filter(chat_id=chat_id).order_by("number")
    found = await _to_activities(chat_id, rows)
    return [
        replace(activity, text="", key_messages=()) if row.stale else activity
        for row, activity in zip(rows, found, strict=True)
    ]


async def stale_activities(chat_id: int) -> list[Activity]:
    """Activities that were built on something that has been taken back."""
    rows = await ActivityRow.filter(id__in=await sql.stale_activities(chat_id)).order_by("number")
    return await _to_activities(chat_id, rows)


async def memory(chat_id: int, kind: MemoryKind, period: str) -> Memory | None:
    """The current text of a day, month or year; None while it is being rewritten."""
    row = await MemoryRow.get_or_none(chat_id=chat_id, kind=kind, period=period, stale=False)
    return None if row is None else _to_memory(row)


async def target(chat_id: int, kind: MemoryKind, period: str) -> Memory | None:
    """The memory that a roll-up replaces or continues, also when it may not be shown."""
    row = await MemoryRow.get_or_none(chat_id=chat_id, kind=kind, period=period)
    return None if row is None else _to_memory(row)


async def memories(chat_id: int, kind: MemoryKind, periods: Iterable[str]) -> list[Memory]:
    """The named memories that exist and may be shown, in order of time."""
    found: list[Memory] = []
    wanted = sorted(periods)
    for part in chunks(wanted):
        rows = await MemoryRow.filter(
            chat_id=chat_id, kind=kind, period__in=part, stale=False
        ).order_by("period")
        found += map(_to_memory, rows)
    return found


async def all_memories(chat_id: int, kind: MemoryKind) -> list[Memory]:
    """Every memory of a layer; one that is being rewritten says nothing meanwhile."""
    rows = await MemoryRow.filter(chat_id=chat_id, kind=kind).order_by("period")
    return [
        replace(_to_memory(row), text="", key_messages=()) if row.stale else _to_memory(row)
        for row in rows
    ]


async def versions(chat_id: int, kind: MemoryKind, period: str) -> list[NoteVersion]:
    """Earlier texts, oldest first; those that held something taken back are blank."""
    rows = await NoteVersion.filter(chat_id=chat_id, kind=kind, ref=period).order_by("version")
    if await MemoryRow.filter(chat_id=chat_id, kind=kind, period=period, stale=True).exists():
        for row in rows:
            row.text = ""
    return rows


async def memory_states(chat_id: int) -> list[MemoryState]:
    fields = ("kind", "period", "closed", "merged", "stale", "writer", "sources")
    rows = await MemoryRow.filter(chat_id=chat_id).order_by("period").values(*fields)
    return [
        MemoryState(
            kind=row["kind"],
            period=row["period"],
            closed=row["closed"],
            merged=row["merged"],
            stale=row["stale"],
            edited=row["writer"] not in ("model", "offline"),
            sources=frozenset(json.loads(row["sources"])),
        )
        for row in rows
    ]


async def activity_states(chat_id: int, dates: Iterable[str]) -> list[ActivityState]:
    """States of all activities of these days, and of the days that have a loose or stale one."""
    wanted = sorted({*dates, *await sql.open_dates(chat_id)})
    found: list[ActivityState] = []
    for part in chunks(wanted):
        rows = ActivityRow.filter(chat_id=chat_id, date__in=part)
        fields = ("number", "date", "merged", "stale")
        found += [
            ActivityState(**row) for row in await rows.order_by("date", "number").values(*fields)
        ]
    return found


@transactional
async def store_activity(chat_id: int, window: Window, note: Note, now: datetime) -> int:
    """Store the note of a window and put its messages into it, both or neither.

    Returns the activity's number. Raises Overtaken when one of the messages has meanwhile
    been withdrawn or taken into another window.
    """
    await Chat.filter(id=chat_id).update(last_activity=F("last_activity") + 1)
    number = (await Chat.get(id=chat_id).only("last_activity")).last_activity
    seqs = sorted(message.seq for message in window.messages)
    row = await ActivityRow.create(
        chat_id=chat_id,
        number=number,
        date=window.date,
        from_seq=seqs[0],
        to_seq=seqs[-1],
        text=note.text,
        key_messages=json.dumps(note.key_messages),
        origin="window",
        time=window.messages[-1].time,
        version=1,
        writer=note.writer,
        written_at=now,
        merged=False,
        stale=False,
    )
    taken = 0
    for part in chunks(seqs):
        taken += await MessageRow.filter(
            chat_id=chat_id, seq__in=part, activity_id=None, skipped=None
        ).update(activity_id=row.id)
    if taken != len(seqs):
        raise Overtaken
    await facts.store(chat_id, note.facts, now)
    return number


@transactional
async def replace_activity(
    chat_id: int, activity: Activity, kept: Sequence[int], note: Note | None, now: datetime
) -> None:
    """Write a stale activity anew from what is left of its window (`kept` seqs).

    Without a note nothing is left worth keeping: its text is emptied. The old text is not
    kept as a version, for it held what was taken back. Raises Overtaken when more was taken
    back meanwhile.
    """
    query = ActivityRow.filter(chat_id=chat_id, number=activity.number)
    await query.update(
        text="" if note is None else note.text,
        key_messages="[]" if note is None else json.dumps(note.key_messages),
        version=F("version") + 1,
        writer="offline" if note is None else note.writer,
        written_at=now,
        merged=note is None,
        stale=False,
    )
    row = await query.get()
    window = MessageRow.filter(chat_id=chat_id, activity_id=row.id)
    if await window.filter(withdrawn_at=None).count() != len(kept):
        raise Overtaken
    await facts.store(chat_id, () if note is None else note.facts, now)


@transactional
async def store_memories(
    chat_id: int, tasks: Sequence[RollupTask], notes: Sequence[Note], now: datetime
) -> None:
    """Store a batch of rolled-up texts, mark their sources as merged, and keep old versions.

    Raises Overtaken when a target or a source is not any more what was shown.
    """
    await Chat.filter(id=chat_id).update(last_seq=F("last_seq"))
    for task, note in zip(tasks, notes, strict=True):
        await _store_memory(chat_id, task, note, now)


async def _store_memory(chat_id: int, task: RollupTask, note: Note, now: datetime) -> None:
    current = await MemoryRow.get_or_none(chat_id=chat_id, kind=task.kind, period=task.period)
    if (0 if current is None else current.version) != (task.target.version if task.target else 0):
        raise Overtaken
    if current is not None and current.stale and not task.rebuild:
        raise Overtaken  # the text that was continued holds what has been taken back
    refs = [_ref(source) for source in task.sources]
    values = {
        "text": note.text,
        "key_messages": json.dumps(note.key_messages),
        "writer": note.writer,
        "written_at": now,
        "merged": False,
        "stale": False,
    }
    if current is None:
        await MemoryRow.create(
            chat_id=chat_id,
            kind=task.kind,
            period=task.period,
            version=1,
            sources=json.dumps(refs),
            closed=task.closes,
            **values,
        )
    else:
        await _keep_version(chat_id, current)
        old = [] if task.rebuild else json.loads(current.sources)
        await MemoryRow.filter(id=current.id).update(
            version=current.version + 1,
            sources=json.dumps(list(dict.fromkeys([*old, *refs]))),
            closed=task.closes or current.closed,
            **values,
        )
    for source in task.sources:
        if not await _mark_merged(chat_id, source):
            raise Overtaken


def _ref(source: Activity | Memory) -> str:
    return str(source.number) if isinstance(source, Activity) else source.period


async def _keep_version(chat_id: int, row: MemoryRow) -> None:
    await NoteVersion.create(
        chat_id=chat_id,
        kind=row.kind,
        ref=row.period,
        version=row.version,
        text=row.text,
        key_messages=row.key_messages,
        sources=row.sources,
        writer=row.writer,
        written_at=row.written_at,
        usage=row.usage,
        blanked=row.stale,
    )


async def _mark_merged(chat_id: int, source: Activity | Memory) -> int:
    """Mark the very version that was read; 0 when it is not there any more."""
    if isinstance(source, Activity):
        query = ActivityRow.filter(chat_id=chat_id, number=source.number)
        return await query.filter(version=source.version, stale=False).update(merged=True)
    memory = MemoryRow.filter(chat_id=chat_id, kind=source.kind, period=source.period)
    return await memory.filter(version=source.version, stale=False).update(merged=True)


@transactional
async def close(chat_id: int, kind: MemoryKind, period: str) -> None:
    """The period is over and its text already holds every source."""
    await MemoryRow.filter(chat_id=chat_id, kind=kind, period=period).update(closed=True)


@transactional
async def discard(chat_id: int, kind: MemoryKind, period: str) -> None:
    """Nothing is left that the memory was built on; should it return, it begins anew."""
    await MemoryRow.filter(chat_id=chat_id, kind=kind, period=period).delete()
    await NoteVersion.filter(chat_id=chat_id, kind=kind, ref=period).delete()
