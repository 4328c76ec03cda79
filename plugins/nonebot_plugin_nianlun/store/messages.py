"""Messages read back: what is pending, what was said lately, what a note rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tortoise.expressions import Q

from ..types import ME, Message, SkipReason, Source, Via
from . import sql
from .database import transactional
from .keys import short_id
from .models import Activity
from .models import Message as MessageRow

PART_OF_THE_TALK = Q(skipped=None) | Q(skipped__in=["declined", "refused"])
"""What was said, whether it was worth noting or not."""


def to_message(row: MessageRow) -> Message:
    return Message(
        seq=row.seq,
        time=row.time,
        user_id=row.user_id,
        name=row.name,
        text=row.text,
        reply_to=row.reply_to,
        withdrawn=row.withdrawn_at is not None,
        via=cast("Via | None", row.via),
        source=cast("Source", row.source),
        skipped=cast("SkipReason | None", row.skipped),
    )


async def pending(chat_id: int, limit: int) -> list[Message]:
    """The oldest messages that are in no window and not skipped, in event order."""
    query = MessageRow.filter(chat_id=chat_id, activity_id=None, skipped=None)
    rows = await query.order_by("time", "seq").limit(limit)
    return [to_message(row) for row in rows]


async def of_activity(chat_id: int, number: int) -> list[Message]:
    """The messages of an activity's window, withdrawn ones left out, in event order."""
    activity = await Activity.get(chat_id=chat_id, number=number)
    # Put in order here: asked for it, SQLite reads the whole chat by time instead.
    rows = await MessageRow.filter(chat_id=chat_id, activity_id=activity.id, withdrawn_at=None)
    return [to_message(row) for row in sorted(rows, key=lambda row: (row.time, row.seq))]


async def recent(chat_id: int, limit: int) -> list[Message]:
    """The newest messages that are part of the talk, in event order."""
    query = MessageRow.filter(PART_OF_THE_TALK, chat_id=chat_id, withdrawn_at=None)
    rows = await query.order_by("-time", "-seq").limit(limit)
    return [to_message(row) for row in reversed(rows)]


async def newest(chat_id: int, message_id: str) -> MessageRow | None:
    """The newest message with this platform id, withdrawn or not; platforms use ids again."""
    found = MessageRow.filter(chat_id=chat_id, message_id=short_id(message_id))
    return await found.order_by("-time", "-seq").first()


async def seq_of(chat_id: int, message_id: str) -> int | None:
    """The short id of the newest message with this platform id, unless it was withdrawn."""
    row = await newest(chat_id, message_id)
    return None if row is None or row.withdrawn_at is not None else row.seq


async def is_mine(chat_id: int, message_id: str) -> bool:
    """Whether the newest message with this platform id is the bot's own."""
    row = await newest(chat_id, message_id)
    return row is not None and row.user_id == ME


async def is_buried(chat_id: int, message_id: str) -> bool:
    """Whether somebody else has spoken since the newest message with this platform id, which is
    not withdrawn."""
    row = await newest(chat_id, message_id)
    if row is None or row.withdrawn_at is not None:
        return False
    since = MessageRow.filter(chat_id=chat_id, seq__gt=row.seq)
    return await since.exclude(user_id__in=[ME, row.user_id]).exists()


@transactional
async def skip(chat_id: int, seqs: Sequence[int], reason: SkipReason) -> None:
    """Say of pending messages why no note covers them."""
    await sql.change_pending(chat_id, seqs, "skipped", reason)
