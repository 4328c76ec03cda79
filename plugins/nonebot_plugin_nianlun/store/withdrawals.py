"""Messages that were taken back: masked at once, and everything that was built on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
import json
from typing import Any, TypeAlias

from ..types import Incoming, Withdrawal
from . import facts, sql, traces
from .keys import chunks, short_id, wordless_key
from .models import Activity, Exclusion, Memory, NoteVersion
from .models import Message as MessageRow

Known: TypeAlias = dict[tuple[int, str], list[tuple[str | None, datetime]]]
"""By chat row id and platform id: whose message it was, if the notice said so, and when."""
_BLANK = {"text": "", "key_messages": "[]"}
_CLOCK_TOLERANCE = timedelta(minutes=10)
"""How much earlier than its message a withdrawal may seem to be, where the clocks differ."""
_AGAIN = timedelta(minutes=1)
"""A notice is reported twice within this time."""


async def known_for(fresh: Mapping[int, Mapping[str, Incoming]]) -> Known:
    """Withdrawals that came before their message did; takes messages by chat row id and key."""
    pairs = [
        (chat_id, short_id(message.message_id))
        for chat_id, messages in fresh.items()
        for message in messages.values()
        if message.message_id is not None
    ]
    found: Known = {}
    for chat_id, message_id, user_id, at in await sql.withdrawals(pairs):
        found.setdefault((chat_id, message_id), []).append((user_id, datetime.fromisoformat(at)))
    return found


def masked_at(known: Known, chat_id: int, message: Incoming) -> datetime | None:
    """When this message was taken back, if it was."""
    for user_id, at in known.get((chat_id, short_id(message.message_id or "")), ()):
        if message.time <= at + _CLOCK_TOLERANCE and user_id in (None, message.user_id):
            return at
    return None


async def withdraw(chat_id: int, notice: Withdrawal) -> None:
    """Mask the message if it is here, and remember the notice for when it comes later.

    Runs inside the caller's transaction.
    """
    message_id = short_id(notice.message_id)
    same = Exclusion.filter(
        chat_id=chat_id, reason="withdrawn", message_id=message_id, user_id=notice.user_id
    )
    if await same.filter(
        begins__gte=notice.time - _AGAIN, begins__lte=notice.time + _AGAIN
    ).exists():
        return
    await Exclusion.create(
        chat_id=chat_id,
        reason="withdrawn",
        message_id=message_id,
        user_id=notice.user_id,
        begins=notice.time,
        created_at=notice.time,
    )
    query = MessageRow.filter(chat_id=chat_id, message_id=message_id, withdrawn_at=None)
    if notice.user_id is not None:
        query = query.filter(user_id=notice.user_id)
    # The last to come in, not the last by its time: the two clocks need not agree.
    row = await query.order_by("-seq").first()
    if row is not None:
        await _mask(chat_id, row, notice.time)


async def mask(chat_id: int, seq: int, at: datetime) -> None:
    """Mask a message of which it is known otherwise that it was taken back.

    Runs inside the caller's transaction.
    """
    await _mask(chat_id, await MessageRow.get(chat_id=chat_id, seq=seq), at)


async def _mask(chat_id: int, row: MessageRow, at: datetime) -> None:
    changes: dict[str, Any] = {"text": "", "segments": "[]", "withdrawn_at": at}
    if row.activity_id is None:
        changes["skipped"] = "withdrawn"
    if row.message_id is None:
        changes["dedup_key"] = wordless_key(row.time, row.seq)
    await MessageRow.filter(id=row.id).update(**changes)
    await facts.take_back(chat_id, [row.seq])
    if row.activity_id is not None:
        await blank_notes(chat_id, [row.activity_id])
    await traces.owe(chat_id)


async def blank_notes(chat_id: int, activity_ids: Sequence[int]) -> int:
    """Empty these activities and, at every version, what was built on them.

    The next run writes them anew. Returns how many notes that are. Runs inside the caller's
    transaction.
    """
    sources: dict[str, set[str]] = {}
    for part in chunks(activity_ids):
        activities = Activity.filter(chat_id=chat_id, id__in=part)
        for row in await activities.only("number", "date"):
            sources.setdefault(row.date, set()).add(str(row.number))
        await activities.update(stale=True, merged=False, **_BLANK)
        # A fact may tell the words of the line beside its own; what still holds is noted anew.
        said = MessageRow.filter(chat_id=chat_id, activity_id__in=part)
        await facts.take_back(chat_id, [row.seq for row in await said.only("seq")])
    numbers = [number for found in sources.values() for number in found]
    for part in chunks(numbers):
        earlier = NoteVersion.filter(chat_id=chat_id, kind="activity", ref__in=part)
        await earlier.update(blanked=True, **_BLANK)
    blanked = len(numbers)
    for kind, width in (("day", 10), ("month", 7), ("year", 4)):
        by_period: dict[str, set[str]] = {}
        for below, found in sources.items():
            by_period.setdefault(below[:width], set()).update(found)
        current, touched = await _blank_built_on(chat_id, kind, by_period)
        blanked += current
        sources = {period: {period} for period in touched}
    return blanked


async def _blank_built_on(
    chat_id: int, kind: str, sources: Mapping[str, set[str]]
) -> tuple[int, set[str]]:
    """Empty the memories of these periods, and their earlier texts, that hold such a source.

    Returns how many memories that are, and the periods of which any version was emptied.
    """
    held: dict[int, str] = {}
    old: dict[int, str] = {}
    for part in chunks(list(sources)):
        for row in await Memory.filter(chat_id=chat_id, kind=kind, period__in=part):
            if sources[row.period] & set(json.loads(row.sources)):
                held[row.id] = row.period
        for row in await NoteVersion.filter(chat_id=chat_id, kind=kind, ref__in=part):
            if sources[row.ref] & set(json.loads(row.sources)):
                old[row.id] = row.ref
    for part in chunks(list(held)):
        await Memory.filter(id__in=part).update(stale=True, merged=False, **_BLANK)
    for part in chunks(list(old)):
        await NoteVersion.filter(id__in=part).update(blanked=True, **_BLANK)
    return len(held), {*held.values(), *old.values()}
