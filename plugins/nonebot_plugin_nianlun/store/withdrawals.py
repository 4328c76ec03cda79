"""Messages that were taken back: masked at once, and everything that was built on them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
import json
from typing import Any, TypeAlias

from ..types import Incoming, Withdrawal
from . import facts, sql
from .keys import short_id
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
    await MessageRow.filter(id=row.id).update(**changes)
    await facts.take_back(chat_id, [row.seq])
    if row.activity_id is not None:
        await _blank_notes(chat_id, row.activity_id)


async def _blank_notes(chat_id: int, activity_id: int) -> None:
    """Empty what was built on a message of this activity's window; the next run writes it anew."""
    activity = await Activity.get(id=activity_id)
    await Activity.filter(id=activity_id).update(stale=True, merged=False, **_BLANK)
    source, date = str(activity.number), activity.date
    for kind, period in (("day", date), ("month", date[:7]), ("year", date[:4])):
        if not await _blank_if_built_on(chat_id, kind, period, source):
            return
        source = period


async def _blank_if_built_on(chat_id: int, kind: str, period: str, source: str) -> bool:
    """Empty every version of a memory that holds the source; False when none does."""
    memory = Memory.filter(chat_id=chat_id, kind=kind, period=period)
    held = [row for row in await memory if source in json.loads(row.sources)]
    if held:
        await memory.update(stale=True, merged=False, **_BLANK)
    earlier = NoteVersion.filter(chat_id=chat_id, kind=kind, ref=period)
    old = [row.id for row in await earlier if source in json.loads(row.sources)]
    await NoteVersion.filter(id__in=old).update(blanked=True, **_BLANK)
    return bool(held or old)
