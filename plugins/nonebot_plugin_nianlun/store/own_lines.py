"""The bot's own lines, which are reported twice: by the call that sent them, and as an echo.

Either report may come first, may lack the platform's id, and may come again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tortoise.expressions import Q
from tortoise.queryset import QuerySet

from ..types import ME, Incoming
from . import exclusions, traces
from .keys import body, short_id, wordless_key
from .models import Message as MessageRow

_TOLERANCE = timedelta(minutes=2)
"""How far the time of our own line may lie from the platform's echo of it."""
_CLOCKS_APART = timedelta(hours=12)
"""The same where id and content agree, since the two clocks need not."""
_OTHER_REPORT = {"sent": "echo", "echo": "sent"}


async def without_known(chat_id: int, messages: Sequence[Incoming]) -> list[Incoming]:
    """The messages, each own line once; what a stored row lacks is added to it instead."""
    kept: list[Incoming] = []
    for message in messages:
        if message.user_id != ME or message.source not in _OTHER_REPORT:
            kept.append(message)
            continue
        twin = next((i for i, other in enumerate(kept) if _same_line(other, message)), None)
        if twin is not None:
            kept[twin] = _merged(kept[twin], message)
        elif not await _complete_stored(chat_id, message):
            kept.append(message)
    return kept


def _same_line(one: Incoming, other: Incoming) -> bool:
    apart = abs(one.time - other.time)
    if one.user_id != ME or apart > _CLOCKS_APART:
        return False
    if one.message_id is not None and other.message_id is not None:
        same_id = one.message_id == other.message_id
        return same_id and (apart <= _TOLERANCE or one.segments == other.segments)
    if apart > _TOLERANCE:
        return False
    return _OTHER_REPORT.get(one.source) == other.source and one.segments == other.segments


def _merged(one: Incoming, other: Incoming) -> Incoming:
    """The line as our call knows it (who sent it, and why), with the id that either has."""
    sent, echo = (one, other) if one.source == "sent" else (other, one)
    return replace(
        sent,
        message_id=sent.message_id or echo.message_id,
        order=echo.order,
        chat_name=echo.chat_name,
        reply_to_id=sent.reply_to_id or echo.reply_to_id,
        delivery="ok",
    )


def _own_lines(chat_id: int, at: datetime, around: timedelta) -> QuerySet[MessageRow]:
    return MessageRow.filter(
        chat_id=chat_id, user_id=ME, time__gte=at - around, time__lte=at + around
    )


async def _complete_stored(chat_id: int, message: Incoming) -> bool:
    """Whether the line is stored already; if so, it gets what this report adds."""
    content = body(message.segments)
    near = _own_lines(chat_id, message.time, _TOLERANCE)
    # Of an answer that may not be recorded only the time is there.
    same = Q(segments=content) | Q(
        segments="[]", skipped__in=exclusions.UNRECORDED, message_id=None
    )
    other = near.filter(same, source=_OTHER_REPORT[message.source])
    found = None
    if message.message_id is not None:
        same_id = {"message_id": short_id(message.message_id)}
        found = await near.filter(**same_id).first()
        if found is None:
            far = _own_lines(chat_id, message.time, _CLOCKS_APART)
            found = await far.filter(**same_id, segments=content).first()
        other = other.filter(message_id=None)
    found = found or await other.order_by("time").first()
    if found is None:
        return False
    changes: dict[str, Any] = {"delivery": "ok"}
    if found.message_id is None and message.message_id is not None:
        changes["message_id"] = short_id(message.message_id)
    if message.source == "sent":
        changes |= {"via": message.via, "source": "sent"}
        if message.skipped and found.skipped is None and found.activity_id is None:
            changes["skipped"] = message.skipped
            if message.skipped in exclusions.UNRECORDED:
                changes |= {"text": "", "segments": "[]"}
                if found.message_id is None:
                    changes["dedup_key"] = wordless_key(found.time, found.seq)
                await traces.owe(chat_id)
    await MessageRow.filter(id=found.id).update(**changes)
    return True
