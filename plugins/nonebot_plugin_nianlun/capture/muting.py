"""Notices that the bot itself may no longer speak in a group, or may again."""

from __future__ import annotations

from dataclasses import dataclass

from nonebot.adapters.onebot.v11 import Event

from ..types import ChatKey
from .events import chat_of, id_text

_FOR_EVER = 10**9


@dataclass(frozen=True, slots=True)
class Muting:
    chat: ChatKey
    reason: str | None
    """One line for a person; None when it may speak again."""
    seconds: int = 0


def muting(event: Event, self_id: str) -> Muting | None:
    """Read a notice about the account itself; None for any other event.

    That everybody is muted does not say that the bot is, which may be an admin. That this is
    over may mean it, too.
    """
    kind, detail = getattr(event, "notice_type", None), getattr(event, "sub_type", None)
    if kind not in ("group_ban", "group_decrease", "group_increase"):
        return None
    chat, user = chat_of(event, self_id), id_text(getattr(event, "user_id", None))
    if chat is None:
        return None
    if kind == "group_ban" and user is None and detail == "lift_ban":
        return Muting(chat, None)
    if user != self_id and detail != "kick_me":
        return None
    if kind == "group_decrease":
        return Muting(chat, "机器人不在群里了", _FOR_EVER)
    duration = getattr(event, "duration", None)
    seconds = duration if isinstance(duration, int) and duration >= 0 else _FOR_EVER
    if kind == "group_increase" or detail == "lift_ban" or not seconds:
        return Muting(chat, None)
    return Muting(chat, "机器人被禁言了", seconds)
