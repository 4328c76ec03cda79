"""Files that were sent in a chat: who sent them is asked for one."""

from __future__ import annotations

from datetime import datetime
import json
from typing import Any

from .keys import short_id
from .messages import newest
from .models import Message


async def quoted(chat_id: int, message_id: str) -> dict[str, Any] | None:
    """What the platform told of the file in this message; None when there is none."""
    row = await newest(chat_id, message_id)
    return None if row is None else _file(row)


async def last(chat_id: int, user_id: str, since: datetime) -> dict[str, Any] | None:
    """The same of the last file that somebody sent since then."""
    said = Message.filter(chat_id=chat_id, user_id=short_id(user_id), time__gte=since)
    for row in await said.order_by("-time", "-seq"):
        if (found := _file(row)) is not None:
            return found
    return None


def _file(row: Message) -> dict[str, Any] | None:
    """Its data, as the platform has it."""
    if row.withdrawn_at is not None:
        return None
    segments = json.loads(row.segments)
    return next((part["data"] for part in segments if part["type"] == "file"), None)
