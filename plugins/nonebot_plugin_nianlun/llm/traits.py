"""What each model of an endpoint turned out to need, kept for some days and across restarts."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Protocol

from nonebot.log import logger

from ..clock import Clock
from ..errors import StoreError

PATIENCE = 1.0
"""Seconds that a request waits for a memory which is in trouble."""
KEPT = timedelta(days=7)
"""After this an endpoint is asked plainly again: it may have mended."""


class EndpointMemory(Protocol):
    """Keeps what is known of endpoints for the next start and for other processes: the changes
    that a model's requests need, with when they were learnt, and what is wrong at the moment.

    All raise StoreError.
    """

    async def load(self, endpoint: str, model: str) -> tuple[frozenset[str], datetime] | None: ...

    async def save(
        self, endpoint: str, model: str, changes: frozenset[str], at: datetime
    ) -> None: ...

    async def set_trouble(self, endpoint: str, trouble: str | None, at: datetime) -> None: ...


class Traits:
    """The changes of one endpoint's models, by model. Without a memory they last a process."""

    def __init__(self, endpoint: str, clock: Clock, memory: EndpointMemory | None) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._memory = memory
        self._known: dict[str, tuple[frozenset[str], datetime]] = {}

    async def of(self, model: str) -> frozenset[str]:
        """Changes without which this model is known to refuse requests."""
        if model not in self._known:
            self._known[model] = await self._load(model) or (frozenset(), self._clock.now())
        return self.seen(model)

    def seen(self, model: str) -> frozenset[str]:
        """The same, as far as this process has asked for it."""
        changes, at = self._known.get(model, (frozenset(), self._clock.now()))
        # Learnt in the future only where the clock was put back meanwhile.
        return changes if timedelta() <= self._clock.now() - at < KEPT else frozenset()

    async def learn(self, model: str, changes: frozenset[str]) -> None:
        """Remember that requests with exactly these changes are taken."""
        at = self._clock.now()
        self._known[model] = changes, at
        logger.info(f"模型 {model}（{self._endpoint}）的请求以后这样调整：{'、'.join(changes)}")
        if self._memory is None:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await self._memory.save(self._endpoint, model, changes, at)
        except (StoreError, TimeoutError) as error:
            logger.warning(
                f"模型 {model} 要怎样请求没有记下，下次启动要再试一遍：{str(error) or '太慢了'}"
            )

    async def report(self, trouble: str | None) -> None:
        """Let other processes know what is wrong with the endpoint, or that nothing is."""
        if self._memory is None:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await self._memory.set_trouble(self._endpoint, trouble, self._clock.now())
        except (StoreError, TimeoutError) as error:
            logger.warning(f"{self._endpoint} 的状态没有记下：{str(error) or '太慢了'}")

    async def _load(self, model: str) -> tuple[frozenset[str], datetime] | None:
        if self._memory is None:
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._memory.load(self._endpoint, model)
        except (StoreError, TimeoutError) as error:
            logger.warning(f"读不到模型 {model} 要怎样请求，要再试一遍：{str(error) or '太慢了'}")
            return None
