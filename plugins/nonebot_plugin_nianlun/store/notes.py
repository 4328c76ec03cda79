"""Storing what was written: each note with what it covers, and every earlier version kept.

What a note was written from is checked in the transaction that stores it, so that any job may
run twice, or in two processes, with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
import json
from typing import Literal

from tortoise.expressions import F

from ..errors import Overtaken
from ..types import Activity, Memory, MemoryKind, Note, RollupTask, Usage, Window, is_edited
from . import facts, search, sql
from .database import transactional
from .models import Activity as ActivityRow
from .models import Chat, NoteVersion
from .models import Memory as MemoryRow
from .models import Message as MessageRow

_ABOVE: dict[MemoryKind, tuple[MemoryKind, int]] = {"day": ("month", 7), "month": ("year", 4)}
"""The layer above each, with how much of a period is the one above."""


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
        usage=_cost(note),
        merged=False,
        stale=False,
    )
    if await sql.change_pending(chat_id, seqs, "activity_id", row.id) != len(seqs):
        raise Overtaken
    await search.add(chat_id, "activity", [number])
    await facts.store(chat_id, note.facts, now)
    return number


@transactional
async def ask_again(chat_id: int) -> int:
    """Have what the offline writer noted written again; returns how many activities that are.

    Their texts stand until then.
    """
    written = ActivityRow.filter(chat_id=chat_id, writer="offline", origin="window", stale=False)
    return await written.exclude(text="").update(stale=True)


@transactional
async def replace_activity(
    chat_id: int,
    activity: Activity,
    kept: Sequence[int],
    note: Note | None,
    now: datetime,
    by: Literal["model", "offline"] = "offline",
) -> None:
    """Write a stale activity anew from what is left of its window (`kept` seqs).

    Without a note nothing is left worth keeping, as `by` found: its text is emptied. One that was
    emptied before, for it held what was taken back, is kept as a blank version; one that only was
    to be written again stands when there is no note. Raises Overtaken when more was taken back
    meanwhile.
    """
    query = ActivityRow.filter(chat_id=chat_id, number=activity.number)
    await query.update(stale=False)
    old = await query.first()
    if old is None or old.version != activity.version:
        raise Overtaken  # somebody edited or removed it meanwhile
    if old.text and note is None:
        return
    await keep_version(old)
    await query.update(
        text="" if note is None else note.text,
        key_messages="[]" if note is None else json.dumps(note.key_messages),
        version=F("version") + 1,
        writer=by if note is None else note.writer,
        written_at=now,
        usage=None if note is None else _cost(note),
        merged=note is None
        or (
            old.merged
            and old.text != ""
            and await _is_held(chat_id, "day", old.date, str(old.number))
        ),
    )
    row = await query.get()
    window = MessageRow.filter(chat_id=chat_id, activity_id=row.id)
    if await window.filter(withdrawn_at=None).count() != len(kept):
        raise Overtaken
    await search.add(chat_id, "activity", [activity.number])
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
        "usage": _cost(note),
        "merged": False,
        "stale": False,
    }
    if current is None:
        gone = NoteVersion.filter(chat_id=chat_id, kind=task.kind, ref=task.period)
        last = await gone.order_by("-version").first()
        row = await MemoryRow.create(
            chat_id=chat_id,
            kind=task.kind,
            period=task.period,
            version=1 if last is None else last.version + 1,
            sources=json.dumps(refs),
            closed=task.closes,
            **values,
        )
    else:
        await keep_version(current)
        old = [] if task.rebuild else json.loads(current.sources)
        if not task.rebuild and is_edited(current.writer):
            values["writer"] = current.writer  # it stays theirs, whatever is added to it
            # Also where it cost nothing, which tells it from what they typed themselves.
            values["usage"] = values["usage"] or json.dumps(asdict(Usage()))
        values["merged"] = current.merged and await _tells_nothing_new(current, task)
        await MemoryRow.filter(id=current.id).update(
            version=current.version + 1,
            sources=json.dumps(list(dict.fromkeys([*old, *refs]))),
            closed=task.closes or current.closed,
            **values,
        )
        row = current
    await search.add(chat_id, task.kind, [row.id])
    for source in (*task.sources, *task.told):
        if not await _mark_merged(chat_id, source):
            raise Overtaken


async def _tells_nothing_new(current: MemoryRow, task: RollupTask) -> bool:
    """Whether a memory is written anew from what it was written from, and a person's text above
    it holds it."""
    sources = set(json.loads(current.sources))
    if not current.text or any(
        _ref(source) not in sources or is_edited(source.writer) for source in task.sources
    ):
        return False
    kind, length = _ABOVE.get(task.kind, (None, 0))
    return kind is not None and await _is_held(
        current.chat_id, kind, task.period[:length], task.period
    )


async def _is_held(chat_id: int, kind: MemoryKind, period: str, ref: str) -> bool:
    """Whether a memory that a person wrote holds this note.

    Added to it once more, the note would bring back what they took out.
    """
    row = await MemoryRow.get_or_none(chat_id=chat_id, kind=kind, period=period)
    return (
        row is not None
        and row.text != ""
        and is_edited(row.writer)
        and ref in json.loads(row.sources)
    )


def _cost(note: Note) -> str | None:
    return None if note.usage is None else json.dumps(asdict(note.usage))


def _ref(source: Activity | Memory) -> str:
    return str(source.number) if isinstance(source, Activity) else source.period


async def keep_version(row: ActivityRow | MemoryRow) -> None:
    """Keep the text of a note as an earlier one, before another takes its place."""
    of_memory = isinstance(row, MemoryRow)
    await NoteVersion.create(
        chat_id=row.chat_id,
        kind=row.kind if of_memory else "activity",
        ref=row.period if of_memory else str(row.number),
        version=row.version,
        text=row.text,
        key_messages=row.key_messages,
        sources=row.sources if of_memory else "[]",
        writer=row.writer,
        written_at=row.written_at,
        usage=row.usage,
        blanked=not row.text,
        merged=row.merged,
    )


async def _mark_merged(chat_id: int, source: Activity | Memory) -> int:
    """Mark the very version that was read; 0 when it is not there any more."""
    if isinstance(source, Activity):
        query = ActivityRow.filter(chat_id=chat_id, number=source.number)
        return await query.filter(version=source.version, stale=False).update(merged=True)
    memory = MemoryRow.filter(chat_id=chat_id, kind=source.kind, period=source.period)
    return await memory.filter(version=source.version, stale=False).update(merged=True)


@transactional
async def hold(chat_id: int, task: RollupTask) -> None:
    """The target's text already holds every source as it is now, and is complete if the period is
    over."""
    target = MemoryRow.filter(chat_id=chat_id, kind=task.kind, period=task.period)
    if task.closes:
        await target.update(closed=True)
    for source in task.told:
        await _mark_merged(chat_id, source)


@transactional
async def discard(chat_id: int, kind: MemoryKind, period: str) -> None:
    """Nothing is left that the memory was built on; should it return, its versions, all of them
    blank by then, stand before it."""
    query = MemoryRow.filter(chat_id=chat_id, kind=kind, period=period)
    await query.update(text="", key_messages="[]")
    for row in await query:
        await keep_version(row)
    await query.delete()
    versions = NoteVersion.filter(chat_id=chat_id, kind=kind, ref=period)
    await versions.update(text="", key_messages="[]", blanked=True)
