"""Files that were sent in a chat, as its messages tell of them."""

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


async def since(chat_id: int, at: datetime, user_id: str | None = None) -> list[dict[str, Any]]:
    """The same of the files that were sent since then, or that one person sent, newest first."""
    said = Message.filter(chat_id=chat_id, time__gte=at, segments__contains='"file"')
    if user_id is not None:
        said = said.filter(user_id=short_id(user_id))
    found = [_file(row) for row in await said.order_by("-time", "-seq")]
    return [data for data in found if data is not None]


def _file(row: Message) -> dict[str, Any] | None:
    """Its data, as the platform has it."""
    if row.withdrawn_at is not None:
        return None
    segments = json.loads(row.segments)
    return next((part["data"] for part in segments if part["type"] == "file"), None)
