"""Requests to the embedding model: whether they may be paid for, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from .clock import Clock
from .errors import BadAnswer, ModelError
from .memory.calendar import Calendar
from .memory.embedding import Embedded, Embedder
from .store import usage, vectors
from .types import Usage

LONGEST = 480
"""Characters of a text that are read: most models read 512 tokens."""
_PURPOSE = "embedding"
_ANY_TEXT = "年轮"


class EmbeddingCalls:
    """Asks the model on behalf of chats. What questions cost is part of the replies."""

    def __init__(
        self, embedder: Embedder, clock: Clock, calendar: Calendar, daily_token_limit: int | None
    ) -> None:
        self._embedder = embedder
        self._clock = clock
        self._calendar = calendar
        self._daily_token_limit = daily_token_limit
        self._uncounted: list[tuple[int, str, Usage, bool]] = []
        self.free = embedder.free
        self.size: int | None = None
        """How many numbers a vector has; not known before the model was asked."""

    def space(self, size: int) -> str:
        """See `vectors.space`."""
        return vectors.space(self._embedder.model, size)

    async def ask(self, chat_id: int, texts: Sequence[str], *, query: bool) -> Embedded:
        """See `Embedder.embed`; BadAnswer also where the vectors are not as long as before."""
        purpose = "reply" if query else _PURPOSE
        try:
            answer = await self._embedder.embed(texts, query=query)
        except ModelError as error:
            self._uncounted.append((chat_id, purpose, error.usage or Usage(), False))
            raise
        self._uncounted.append((chat_id, purpose, answer.usage, True))
        size = len(answer.vectors[0])
        if self.size not in (None, size):
            raise BadAnswer(f"嵌入模型给的向量是 {size} 维的，之前是 {self.size} 维")
        return answer

    async def probe(self, chat_id: int) -> int:
        """How many numbers a vector has now. Raises ModelError where the model does not work."""
        answer = await self.ask(chat_id, [_ANY_TEXT], query=False)
        return len(answer.vectors[0])

    async def room(self, chat_id: int, limit: int | None) -> float:
        """Tokens that may still be spent on a chat's vectors today; `limit` is its own."""
        await self.count()
        limit = self._daily_token_limit if limit is None else limit
        if limit is None or self.free:
            return inf
        return limit - await usage.tokens(chat_id, self._today(), replies=False)

    async def count(self) -> None:
        """Store what was spent; not when it is spent, for that may be before a reply."""
        costs, self._uncounted = self._uncounted, []
        for chat_id, purpose, cost, ok in () if self.free else costs:
            await usage.count(chat_id, self._today(), purpose, self._embedder.model, cost, ok)

    async def close(self) -> None:
        await self._embedder.close()

    def _today(self) -> str:
        return self._calendar.day_of(self._clock.now()).isoformat()
