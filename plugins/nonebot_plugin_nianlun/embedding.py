"""Search by meaning: texts get their vectors in the background, and questions when they are asked.

It only ever adds to the search by words. Where it is off, slow, down or not ready, that one
answers alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
import time
from typing import TYPE_CHECKING

from nonebot import logger

from .clock import Clock
from .config import Config
from .embedding_calls import LONGEST, EmbeddingCalls
from .embedding_upkeep import VectorUpkeep
from .errors import ConfigError, NianlunError
from .llm.embeddings import new_embedder
from .memory.calendar import Calendar
from .memory.embedding import Near
from .types import ChatKey

if TYPE_CHECKING:
    from .store.vector_index import VectorIndex

_DEADLINE = 0.3
"""Seconds that a reply waits for."""
_WANTED = 300
"""The nearest that are looked at; a question about one person or time leaves few of them."""
_QUERY_REST = 30.0
"""Seconds without a question after one that failed."""
_REST = 10.0
"""Seconds between two looks for new texts."""
_FIRST_RETRY, _LAST_RETRY = 5.0, 600.0


class Embedding:
    """Keeps the vectors of all chats, and finds what is nearest to a text (see `Nearest`)."""

    def __init__(
        self,
        config: Config,
        path: Path,
        clock: Clock,
        calendar: Calendar,
        hears: Callable[[ChatKey], bool],
    ) -> None:
        """Where the settings ask for none it does nothing. Raises ConfigError when they cannot
        work, or something that they need is not installed; opens nothing."""
        self._calls: EmbeddingCalls | None = None
        embedder = new_embedder(config)
        if embedder is not None:
            limit = config.nianlun.daily_token_limit
            self._calls = EmbeddingCalls(embedder, clock, calendar, limit)
            self._index = _new_index(path)
            self._upkeep = VectorUpkeep(self._calls, self._index, hears)
        self._rest_until = 0.0
        self._query_trouble: str | None = None
        self._own_trouble: str | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def on(self) -> bool:
        """Whether the settings ask for it."""
        return self._calls is not None

    @property
    def trouble(self) -> str | None:
        """Why search goes without vectors; None when it works or is off."""
        return self._query_trouble or self._own_trouble

    def soon(self) -> None:
        """Look soon for what is new, and for what was taken back, in the background."""
        if self._calls is not None and self._task is None:
            self._task = asyncio.create_task(self._run(), name="nianlun-embedding")
        self._wake.set()

    def changed(self, chat_id: int, seq: int) -> None:
        """A message shows more than when it was recorded: its text wants another vector."""
        if self._calls is not None:
            self._upkeep.look_again(chat_id, seq)
            self.soon()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        if self._calls is not None:
            with suppress(NianlunError):
                await self._calls.count()
            await self._calls.close()
            await self._index.close()

    async def nearest(self, chat_id: int, text: str) -> Sequence[Near] | None:
        """See `Nearest`."""
        text = text[:LONGEST].strip()
        if self._calls is None or not text or time.monotonic() < self._rest_until:
            return None
        try:
            async with asyncio.timeout(_DEADLINE):
                answer = await self._calls.ask(chat_id, [text], query=True)
                vector = answer.vectors[0]
                space = self._calls.space(len(vector))
                found = await self._index.nearest(chat_id, space, vector, _WANTED)
        except TimeoutError:
            self._query_failed(f"{_DEADLINE:g} 秒内没有等到")
            return None
        except NianlunError as error:
            self._rest_until = time.monotonic() + _QUERY_REST
            self._query_failed(str(error))
            return None
        self._query_trouble = None
        return found or None

    def _query_failed(self, reason: str) -> None:
        before, self._query_trouble = self.trouble, f"向量检索没用上，只按词搜索：{reason}"
        if before is None:
            logger.warning(self._query_trouble)

    async def _run(self) -> None:
        failures = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._upkeep.catch_up()
                failures, self._own_trouble = 0, None
                await asyncio.sleep(_REST)
            except NianlunError as error:
                failures += 1
                self._say(str(error))
                await asyncio.sleep(min(_FIRST_RETRY * 2 ** (failures - 1), _LAST_RETRY))
                self._wake.set()
            except Exception as error:
                # Nobody waits for this task, so it would end without a word.
                logger.opt(exception=error).error("给记忆算向量时出了意外，稍后再试")
                self._own_trouble = f"给记忆算向量时出了意外，稍后再试：{error!r}"
                await asyncio.sleep(_LAST_RETRY)

    def _say(self, reason: str) -> None:
        before, self._own_trouble = self.trouble, f"给记忆算向量失败，稍后再试：{reason}"
        if before is None:
            logger.warning(self._own_trouble)


def _new_index(path: Path) -> VectorIndex:
    try:
        from .store.vector_index import VectorIndex
    except ImportError as error:
        raise ConfigError(
            "NIANLUN__EMBEDDING_MODEL 要先装上 numpy（uv sync --extra embed，"
            f"或 pip install numpy）：{error}"
        ) from error
    return VectorIndex(path)
