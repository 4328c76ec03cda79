"""The way into the store: an event only enqueues, one task commits in groups."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from nonebot import logger

from ..clock import Clock
from ..errors import StoreError
from ..store.recording import record
from ..types import Incoming, Withdrawal
from .readable import readable

COMMIT_INTERVAL = 0.1
"""Seconds that a message may wait for company; what is accepted is on disk within 0.2 s."""
_BATCH = 500
_RETRY_SECONDS = 2.0
_GIVE_UP_SECONDS = 15.0


class Recorder:
    """Takes messages in without waiting and stores them in order.

    While the database does not take them they stay in memory, in order, and are tried again.
    """

    def __init__(self, clock: Clock, character: str) -> None:
        self._clock = clock
        self._character = character
        self._queue: deque[Incoming | Withdrawal] = deque()
        self._arrived = asyncio.Event()
        self._hurry = asyncio.Event()
        self._accepted = 0
        self._stored = 0
        self._progress = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.trouble: str | None = None
        """Why nothing can be stored at present; None when all is well."""

    @property
    def waiting(self) -> int:
        """Messages that are accepted and not on disk yet."""
        return self._accepted - self._stored

    def accept(self, item: Incoming | Withdrawal) -> None:
        """Take a message; never waits and never fails."""
        self._queue.append(item)
        self._accepted += 1
        self._arrived.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="nianlun-recorder")

    async def flush(self) -> None:
        """Return when everything accepted so far is on disk, or raise StoreError."""
        target = self._accepted
        if self._stored >= target:
            return  # nothing to hurry: what comes next may wait for company
        if self._task is None or self._task.done():
            raise StoreError("现在没有在记录，收到的话还没有存好：请重启机器人")
        self._hurry.set()
        async with self._progress:
            await self._progress.wait_for(lambda: self._stored >= target or self.trouble)
        if self._stored < target:
            raise StoreError(self.trouble or "")

    async def stop(self) -> None:
        """Store what is waiting and end; what cannot be stored for long is named in the log."""
        if self._task is None:
            return
        try:
            async with asyncio.timeout(_GIVE_UP_SECONDS):
                while self.waiting:
                    with suppress(StoreError):
                        await self.flush()
                    await asyncio.sleep(0.01 if self.trouble is None else _RETRY_SECONDS / 4)
        except TimeoutError:
            logger.error(f"关闭时数据库一直写不进去，丢失了 {self.waiting} 条消息：{self.trouble}")
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            if not self._hurry.is_set():
                # Not wait_for: on 3.11 it loses a cancellation that comes with the event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(COMMIT_INTERVAL):
                        await self._hurry.wait()
            self._hurry.clear()
            self._arrived.clear()
            # What comes while these are stored waits for company anew: else each commit would
            # take the few that came during the last one, and fixed costs would be most of it.
            target = self._accepted
            while self._stored < target:
                if not await self._commit():
                    await asyncio.sleep(_RETRY_SECONDS)
            if not self.waiting:
                # Whoever has asked for these meanwhile has them.
                self._hurry.clear()

    async def _commit(self) -> bool:
        batch = [self._queue[index] for index in range(min(len(self._queue), _BATCH))]
        try:
            await record(batch, readable, self._character, self._clock.now())
        except StoreError as error:
            if self.trouble is None:
                logger.error(f"消息暂时存不进数据库，先留在内存里重试：{error}")
            await self._tell(str(error))
            return False
        except Exception as error:
            if len(batch) > 1:
                return await self._commit_one_by_one(batch)
            logger.opt(exception=error).error("有一条消息无法存储，已跳过")
        for _ in batch:
            self._queue.popleft()
        self._stored += len(batch)
        await self._tell(None)
        return True

    async def _commit_one_by_one(self, batch: list[Incoming | Withdrawal]) -> bool:
        """One line that cannot be stored must not take the others with it."""
        for item in batch:
            try:
                await record([item], readable, self._character, self._clock.now())
            except StoreError as error:
                await self._tell(str(error))
                return False
            except Exception as error:
                logger.opt(exception=error).error("有一条消息无法存储，已跳过")
            self._queue.popleft()
            self._stored += 1
        await self._tell(None)
        return True

    async def _tell(self, trouble: str | None) -> None:
        if self.trouble is not None and trouble is None:
            logger.success("数据库恢复正常，积压的消息已存好")
        async with self._progress:
            self.trouble = trouble
            self._progress.notify_all()
