"""What every command needs from the rest of the product, whatever it does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from nonebot import logger

from ..clock import Clock
from ..errors import ChatError
from ..store import chats
from ..types import ChatKey, ChatKind

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_PATIENCE = 3.0
"""Seconds that a command waits to know who may use it."""


class Desk:
    """Where commands come in."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun

    @property
    def clock(self) -> Clock:
        return self._nianlun.clock

    @property
    def superusers(self) -> frozenset[str]:
        """QQ numbers as text."""
        return self._nianlun.superusers

    def hears(self, chat: ChatKey) -> bool:
        """Whether this chat is served at all."""
        return self._nianlun.hears(chat)

    async def members_read(self, chat: ChatKey) -> bool:
        """Whether ordinary members of this group may read what is remembered of it; nobody reads
        it while that cannot be found out."""
        try:
            async with asyncio.timeout(_PATIENCE):
                row = await chats.row(chat)
        except Exception as error:
            logger.warning(f"{chat} 不知道成员能不能看记忆，这次不给看：{error!r}")
            return False
        if row is None or row.members_read is None:
            return self._nianlun.members_read
        return row.members_read

    async def meant(self, kind: ChatKind, typed: str, here: ChatKey) -> ChatKey:
        """The chat that somebody means by `123` or `10001/group:123`.

        A number is first one of the bot account that is asked; it may be an @ of somebody. Raises
        ChatError when no such chat was recorded, or several were.
        """
        typed = typed.lstrip("@＠")
        if not any(map(str.isalnum, typed)):
            raise ChatError("-g 后面写群号，-u 后面写QQ号")
        if ":" in typed:
            return await chats.resolve(typed)
        near = ChatKey(here.self_id, kind, typed)
        return (
            near if await chats.find(near) is not None else await chats.resolve(f"{kind}:{typed}")
        )
