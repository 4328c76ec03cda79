"""Message events as the adapter hands them on."""

from __future__ import annotations

from itertools import count
from typing import Any

from nonebot.adapters.onebot.v11 import (
    GroupMessageEvent,
    MessageEvent,
    PrivateMessageEvent,
)

SELF = 10001
_numbers = count(7)


def message_event(
    message: str | list[dict[str, Any]],
    user_id: int = 20002,
    *,
    group_id: int | None = 123,
    at: int = 1795973112,
    to_me: bool = False,
) -> MessageEvent:
    """Somebody says something in a group, or without `group_id` in private."""
    if isinstance(message, str):
        message = [{"type": "text", "data": {"text": message}}]
    payload: dict[str, Any] = {
        "time": at,
        "self_id": SELF,
        "post_type": "message",
        "message_type": "private" if group_id is None else "group",
        "sub_type": "friend" if group_id is None else "normal",
        "message_id": next(_numbers),
        "user_id": user_id,
        "message": message,
        "raw_message": "",
        "font": 14,
        "sender": {"user_id": user_id, "nickname": "小鹿", "role": "member"},
        "to_me": to_me or group_id is None,
    }
    if group_id is None:
        return PrivateMessageEvent.model_validate(payload)
    return GroupMessageEvent.model_validate(payload | {"group_id": group_id})
