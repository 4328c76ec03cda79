"""Vectors for all that is stored: which texts have none yet, and getting them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
import time
from typing import TYPE_CHECKING

from .embedding_calls import LONGEST, EmbeddingCalls
from .errors import BadAnswer, ModelError, ModelRefused
from .memory.search import SearchKind
from .memory.tokens import estimate_tokens
from .store import chats, vectors
from .store.search_schema import LAST_REF
from .store.vectors import Passage
from .types import ChatKey

if TYPE_CHECKING:
    from .store.vector_index import VectorIndex

_AT_ONCE = 10
"""Texts in a request; some providers take no more."""


class VectorUpkeep:
    """Does the owed work, from what is stored; what it has stored is never asked again."""

    def __init__(
        self, calls: EmbeddingCalls, index: VectorIndex, hears: Callable[[ChatKey], bool]
    ) -> None:
        self._calls = calls
        self._index = index
        self._hears = hears
        self._read_to: dict[int, int] = {}
        """By chat, up to which message all have their vectors."""
        self._refused: set[str] = set()
        """Hashes of texts that the model does not take."""

    async def catch_up(self) -> None:
        """Give a vector to every text that has none, chat by chat in turns, the newest first.

        Raises ModelError and StoreError.
        """
        await self._index.refresh()
        backlogs = [
            _Backlog(chat.id, chat.last_seq, chat.daily_token_limit)
            for chat in await chats.everyone()
            if self._hears(chats.key_of(chat))
        ]
        try:
            while backlogs:
                backlogs = [one for one in backlogs if await self._do_part(one)]
        except ModelError:
            self._calls.size = None
            raise

    def look_again(self, chat_id: int, seq: int) -> None:
        """A message that was read already has another text now."""
        self._read_to[chat_id] = min(self._read_to.get(chat_id, 0), seq - 1)

    async def _do_part(self, backlog: _Backlog) -> bool:
        """Whether there may be more to do for this chat now."""
        began = time.monotonic()
        room = await self._calls.room(backlog.chat_id, backlog.limit)
        if room <= 0:
            return False
        model = await self._space(backlog.chat_id)
        passages = await self._next(backlog, model)
        if not passages:
            await vectors.drop_others(backlog.chat_id, model)
            self._read_to[backlog.chat_id] = backlog.last_seq
            return False
        by_hash = {one.content_hash: one for one in passages}
        made = await self._index.known(backlog.chat_id, model, list(by_hash))
        wanted = [one for key, one in by_hash.items() if self._wants(key, one, made)]
        asked = _within(room, wanted)
        if asked:
            made |= await self._made(backlog.chat_id, asked)
        found = [(one, made[one.content_hash]) for one in passages if one.content_hash in made]
        await vectors.put(backlog.chat_id, model, found)
        if self._calls.free:
            await asyncio.sleep(time.monotonic() - began)  # leave half of the machine to others
        return len(asked) == len(wanted)

    def _wants(self, key: str, one: Passage, made: Mapping[str, bytes]) -> bool:
        return key not in made and key not in self._refused and bool(one.text[:LONGEST].strip())

    async def _next(self, backlog: _Backlog, model: str) -> list[Passage]:
        """The next texts without a vector, all of one kind."""
        while backlog.kinds:
            kind = backlog.kinds[0]
            above = -1
            if kind == "message":
                oldest = backlog.last_seq - self._index.most_lines(self._calls.size or 1)
                above = max(oldest, self._read_to.get(backlog.chat_id, 0))
            found = await self._index.missing(
                backlog.chat_id, kind, model, above=above, below=backlog.below, limit=_AT_ONCE
            )
            if found:
                backlog.below = found[-1].ref
                return found
            backlog.kinds.pop(0)
            backlog.below = LAST_REF
        return []

    async def _made(self, chat_id: int, passages: Sequence[Passage]) -> dict[str, bytes]:
        """Vectors by the hash of their text, without those that the model does not take."""
        texts = [one.text[:LONGEST].strip() for one in passages]
        try:
            answer = await self._calls.ask(chat_id, texts, query=False)
        except (ModelRefused, BadAnswer) as error:
            if len(passages) > 1:
                parts = [await self._made(chat_id, [one]) for one in passages]
                return {key: vector for part in parts for key, vector in part.items()}
            if isinstance(error, BadAnswer):
                # Raises where the fault is not the text's.
                await self._calls.probe(chat_id)
            self._refused.add(passages[0].content_hash)
            return {}
        pairs = zip(passages, answer.vectors, strict=True)
        return {one.content_hash: self._index.pack(vector) for one, vector in pairs}

    async def _space(self, chat_id: int) -> str:
        """What the vectors have in common that the model makes now.

        It is asked how many numbers these have at first and after each failure, so that another
        model behind the same name is noticed.
        """
        if self._calls.size is None:
            self._calls.size = await self._calls.probe(chat_id)
            self._read_to.clear()
        return self._calls.space(self._calls.size)


@dataclass(slots=True)
class _Backlog:
    """What is looked through of one chat, from the newest on."""

    chat_id: int
    last_seq: int
    limit: int | None
    kinds: list[SearchKind] = field(default_factory=lambda: list(vectors.KINDS))
    below: int = LAST_REF
    """Of the first of the kinds, what was reached."""


def _within(room: float, passages: Sequence[Passage]) -> list[Passage]:
    """The first of them, as many as may be paid for."""
    taken: list[Passage] = []
    for passage in passages:
        room -= estimate_tokens(passage.text[:LONGEST])
        if room < 0:
            break
        taken.append(passage)
    return taken
