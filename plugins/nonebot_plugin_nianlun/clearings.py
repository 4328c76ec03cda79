"""Clearing whole chats, beside everything else that goes on."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

from nonebot import logger

from .errors import ChatError, StoreError
from .store import clearing
from .types import ChatKey

if TYPE_CHECKING:
    from .lifecycle import Nianlun

_PATIENCE = 20.0
"""Seconds that whoever works on a chat is given to come to an end."""
_RETRY = 5.0


class Clearings:
    """Clears chats, and goes on with what an earlier process left undone."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun
        self._unfinished: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._unfinished = asyncio.create_task(self._finish_all(), name="nianlun-clearing")

    async def stop(self) -> None:
        """What is not done by now is done after the next start."""
        if self._unfinished is not None:
            self._unfinished.cancel()
            await asyncio.gather(self._unfinished, return_exceptions=True)
            self._unfinished = None

    async def clear(self, chat: ChatKey, at: datetime) -> clearing.Contents:
        """Remove all that was said in a chat until `at`, and all that was made of it; returns
        what that was. Raises ChatError while others work on it, and StoreError."""
        chat_id = await self._nianlun.settled(chat)
        try:
            async with self._nianlun.jobs.alone_with(chat_id, _PATIENCE):
                there = await clearing.contents(chat_id)
                await clearing.begin(chat_id, at)
                await self._finish(chat_id)
        except TimeoutError:
            raise ChatError("正在整理或导入这个会话的记忆，等它做完再清空") from None
        logger.info(f"{chat} 清空了：{there.messages} 条消息")
        return there

    async def _finish(self, chat_id: int) -> None:
        while await clearing.go_on(self._nianlun.path, chat_id):
            await self._nianlun.jobs.hold(chat_id)
        self._nianlun.traces.soon()

    async def _finish_all(self) -> None:
        while True:
            try:
                for chat_id in await clearing.owed():
                    async with self._nianlun.jobs.alone_with(chat_id, _PATIENCE):
                        await self._finish(chat_id)
                return
            except (StoreError, TimeoutError) as error:
                logger.warning(f"有会话还没有清空完，稍后接着做：{error or '正在整理它'}")
            await asyncio.sleep(_RETRY)
