"""Clearing a chat: all that is remembered of it goes, and what is said from then on begins anew.

A long chat has millions of rows, so they go in parts, each in a transaction of its own, on a
connection beside the store's. That it was asked for, and up to when, is on record first: nothing
of before comes in any more, and what was left undone by a process that ended is done by the next.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
import json
from pathlib import Path
import sys
from typing import Any, cast

from tortoise.expressions import Q

from ..types import ME
from . import exclusions, speakers, sql, traces
from .database import BUSY_TIMEOUT_MS, connect, transactional, translated
from .keys import MOMENT, chunks
from .models import (
    Activity,
    Chat,
    Exclusion,
    Fact,
    FactVersion,
    Gap,
    Memory,
    NoteVersion,
    Property,
    Speaker,
    SpeakerName,
)
from .models import Message as MessageRow

_OWED = "clearing:"
"""With the chat's row id: the key of what is still to be cleared."""
_PART = 400
"""Rows that go in one transaction: some hundredths of a second with all that hangs on them."""
_BREATH = 0.01
"""Seconds between two of them, in which others may write."""

# What people see first goes first; of the messages those that might still be noted.
_PARTS = (
    "nianlun_fact WHERE chat_id = :chat AND id <= :fact",
    "nianlun_fact_version WHERE chat_id = :chat AND id <= :fact_version",
    "nianlun_memory WHERE chat_id = :chat AND id <= :memory",
    "nianlun_note_version WHERE chat_id = :chat AND id <= :note_version",
    "nianlun_activity WHERE chat_id = :chat AND id <= :activity",
    "nianlun_message WHERE chat_id = :chat AND time < :ends"
    " AND activity_id IS NULL AND skipped IS NULL",
    "nianlun_message WHERE chat_id = :chat AND time < :ends",
)
_DELETE = "DELETE FROM {table} WHERE id IN (SELECT id FROM {part} LIMIT :limit)"
_NUMBERED = ("fact", "fact_version", "memory", "note_version", "activity")


@dataclass(frozen=True, slots=True)
class Contents:
    """What there is of a chat, in rows."""

    messages: int
    activities: int
    days: int
    months: int
    years: int
    facts: int
    people: int


async def contents(chat_id: int) -> Contents:
    """What clearing would take, as far as it still holds something."""
    memories = Memory.filter(chat_id=chat_id).exclude(text="")
    messages = MessageRow.filter(chat_id=chat_id).exclude(Q(text="", segments="[]"))
    return Contents(
        messages=await messages.count(),
        activities=await Activity.filter(chat_id=chat_id).exclude(text="").count(),
        days=await memories.filter(kind="day").count(),
        months=await memories.filter(kind="month").count(),
        years=await memories.filter(kind="year").count(),
        facts=await Fact.filter(chat_id=chat_id).exclude(text="").count(),
        people=await Speaker.filter(chat_id=chat_id).exclude(user_id=ME).count(),
    )


async def owed() -> list[int]:
    """Row ids of the chats whose clearing was begun and has not ended."""
    rows = await Property.filter(key__startswith=_OWED).order_by("id")
    return [int(row.key.removeprefix(_OWED)) for row in rows]


async def clear(path: Path, chat_id: int, at: datetime) -> None:
    """Remove all that is remembered of what was said until `at`, and keep it away.

    Settings, links, opt-outs and the numbers of what it cost stay. Raises StoreError; what was
    begun then is to be gone on with.
    """
    await begin(chat_id, at)
    while await go_on(path, chat_id):
        pass


@transactional
async def begin(chat_id: int, at: datetime) -> None:
    """Put the wish on record: from now on nothing of before comes in, nor is anybody known."""
    await sql.move_last_seqs({chat_id: 0})
    ends = await _keep_away(chat_id, at)
    await SpeakerName.filter(chat_id=chat_id).delete()
    known = Speaker.filter(chat_id=chat_id)
    await known.filter(opted_out_at=None).delete()
    for speaker in await known:
        await Speaker.filter(id=speaker.id).update(name=speaker.user_id)
    await Gap.filter(chat_id=chat_id, begins__lt=ends).delete()
    chat = await Chat.get(id=chat_id)
    if chat.kind == "private":
        await Chat.filter(id=chat_id).update(name=None)
    bounds = {table: await sql.highest_id(f"nianlun_{table}") for table in _NUMBERED}
    values = {**bounds, "seq": chat.last_seq, "ends": ends.isoformat(" ")}
    await sql.set_property(f"{_OWED}{chat_id}", json.dumps(values))
    await traces.owe(chat_id)


async def _keep_away(chat_id: int, at: datetime) -> datetime:
    """Exclude everything up to then; returns the first moment of which something may be kept.

    Another one each time, so that names which others remember are looked up anew.
    """
    ends = at + exclusions.THAT_SECOND
    for span in exclusions.cleared(await exclusions.known_for([chat_id]), chat_id):
        if span.ends is not None:
            ends = max(ends, span.ends + MOMENT)
    # All that ended before is covered by this one, and so is what was taken back.
    covered = Q(ends__lte=ends) | Q(reason="withdrawn", begins__lte=at)
    await Exclusion.filter(covered, chat_id=chat_id).delete()
    await Exclusion.create(
        chat_id=chat_id, reason="forgotten", user_id=ME, ends=ends, created_at=at
    )
    return ends


async def go_on(path: Path, chat_id: int) -> bool:
    """Remove one more part; False when nothing is left of it. Raises StoreError."""
    row = await Property.get_or_none(key=f"{_OWED}{chat_id}")
    if row is None:
        return False
    bounds = json.loads(row.value)
    with translated():
        more = await asyncio.to_thread(_remove, path, chat_id, bounds)
    if more:
        await asyncio.sleep(_BREATH)
    else:
        await _finish(chat_id, bounds["seq"])
        speakers.forget_cached_names()
    return more


def _remove(path: Path, chat_id: int, bounds: dict[str, Any]) -> bool:
    """Whether there was a part left to remove."""
    # Without the check of foreign keys: for each activity it would read all messages.
    with closing(connect(path, BUSY_TIMEOUT_MS / 1000)) as connection:
        for part in _PARTS:
            delete = _DELETE.format(table=part.split()[0], part=part)
            # Without a BEGIN a statement is a transaction of its own.
            values = {**bounds, "chat": chat_id, "limit": _PART}
            if connection.execute(delete, values).rowcount:
                return True
    return False


@transactional
async def _finish(chat_id: int, last: int) -> None:
    """Take out what was written meanwhile from messages up to number `last`, by whoever had read
    them before they went, and let go of what is gone."""
    await sql.move_last_seqs({chat_id: 0})
    notes = await Activity.filter(chat_id=chat_id)
    late = [note.id for note in notes if _oldest(note) <= last]
    covered = MessageRow.filter(chat_id=chat_id, activity_id__isnull=False)
    covers = cast("list[int]", await covered.distinct().values_list("activity_id", flat=True))
    for part in chunks(sorted({*covers} - {note.id for note in notes} | {*late})):
        window = MessageRow.filter(chat_id=chat_id, activity_id__in=part)
        await window.filter(withdrawn_at__isnull=False).update(
            activity_id=None, skipped="withdrawn"
        )
        await window.update(activity_id=None)
    if late:
        await Memory.filter(chat_id=chat_id).delete()
        await NoteVersion.filter(chat_id=chat_id).delete()
        await Activity.filter(chat_id=chat_id).update(merged=False)
        for part in chunks(late):
            await Activity.filter(id__in=part).delete()
    there = MessageRow.filter(chat_id=chat_id)
    kept = {row.seq for row in await there.filter(seq__lte=last).only("seq")}
    await FactVersion.filter(chat_id=chat_id, source__lte=last).delete()
    await Fact.filter(chat_id=chat_id, source__lte=last).exclude(source__in=kept or [0]).delete()
    await there.filter(reply_to__lte=last).update(reply_to=None)
    await Property.filter(key=f"{_OWED}{chat_id}").delete()
    await traces.owe(chat_id)


def _oldest(note: Activity) -> int:
    """The first message that an activity was written from."""
    seen = [*json.loads(note.key_messages), *([note.from_seq] if note.from_seq else [])]
    return min(seen, default=sys.maxsize)
