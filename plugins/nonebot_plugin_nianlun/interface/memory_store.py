"""Named stores: memories of other programs, each labelled with who said it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..errors import MemoryNotFound
from ..store import chats, named_stores, store_notes
from ..store.store_notes import NewNote
from ..types import ME, ChatKey
from .requests import (
    MOST_AT_ONCE,
    MOST_SPEAKERS,
    STORE_NAME_LIMIT,
    content_of,
    event_date_of,
    ids_of,
    moment_of,
    normal_name,
    registrable,
    speaker_name,
    told_at_of,
    whole,
)
from .stored import (
    MemoryPage,
    SpeakerInfo,
    SpeakerList,
    StoredMemory,
    StoreResult,
    memory_id_of,
    row_id_of,
    speaker_info,
    store_result,
    stored_memory,
)

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_SEARCH_TOKENS = 1 << 30
"""What a program does with the results is its own matter: they are bounded by number alone."""
_NOTHING = MemoryPage((), False, None, (), 0)


class MemoryStore:
    """The store of one name. The first write makes it; until then it is empty.

    Speakers are explicit: register a name, then store with it. `me`, the assistant itself, needs
    no registration and does not count; a memory without a speaker is nobody's, not even `me`'s.
    Names are compared after trimming and NFC, case matters. Registering does not look at what
    was stored before: whoever is removed and registered again starts without memories.

    Methods raise MemoryRequestError (400) or MemoryNotFound (404), and then change nothing; and
    StoreError when the database cannot serve.
    """

    def __init__(self, nianlun: Nianlun, name: str) -> None:
        """`name`: 1 to 128 visible characters. Raises MemoryRequestError."""
        self.name = normal_name(name, "user_id", STORE_NAME_LIMIT)
        self._nianlun = nianlun

    @property
    def chat(self) -> ChatKey:
        """The store as a chat, for `recall`, exports and imports."""
        return named_stores.chat_of(self.name)

    async def create(self) -> bool:
        """Make the store without a memory in it; False when it is there."""
        if await chats.find(self.chat) is not None:
            return False
        await self._created()
        return True

    async def exists(self) -> bool:
        return await chats.find(self.chat) is not None

    async def add_speaker(self, name: str) -> SpeakerInfo:
        """Register a person; nothing changes when they are registered already.

        At the limit MemoryRequestError bears `speaker_limit`. `me` cannot be registered.
        """
        speaker = registrable(name)
        chat_id = await self._created()
        return speaker_info(await named_stores.register(chat_id, speaker, self._now()))

    async def list_speakers(self) -> SpeakerList:
        chat_id = await self._chat_id()
        if chat_id is None:
            return SpeakerList((), 0, named_stores.SPEAKER_LIMIT)
        people = tuple(map(speaker_info, await named_stores.registered(chat_id)))
        return SpeakerList(people, len(people), await named_stores.speaker_limit(chat_id))

    async def remove_speaker(self, name: str) -> int:
        """Strike a person off: their memories stay, without a speaker; returns how many."""
        speaker = registrable(name)
        chat_id = await self._chat_id()
        if chat_id is None:
            raise named_stores.unknown(speaker)
        return await named_stores.unregister(chat_id, speaker)

    async def set_speaker_limit(self, limit: int) -> None:
        """How many people may be registered, 0 to 1,000,000; those who are stay in any case."""
        whole(limit, "speaker_limit", 0, MOST_SPEAKERS)
        await named_stores.set_speaker_limit(await self._created(), limit)

    async def store(
        self,
        content: str,
        speaker: str | None = None,
        category: str | None = None,
        event_date: str | None = None,
        *,
        told_at: datetime | None = None,
    ) -> StoreResult:
        """Store a memory, unless one of the same speaker and event date says the same.

        `told_at` is when it was said, by default now. What says the same is told in
        `memory/duplicates.py`: wording may differ, no detail may. An unregistered speaker is a
        MemoryRequestError with `speaker`.
        """
        note = NewNote(
            content=content_of(content),
            owner="" if speaker is None else speaker_name(speaker),
            category="" if category is None else normal_name(category, "category"),
            event_date=None if event_date is None else event_date_of(event_date),
            told_at=self._now() if told_at is None else told_at_of(told_at),
        )
        chat_id = await self._chat_id()
        if chat_id is None:
            # Where nobody is registered a refused memory must not leave a store behind.
            if note.owner not in ("", ME):
                raise named_stores.unregistered(note.owner)
            chat_id = await self._created()
        return store_result(await store_notes.add(chat_id, note))

    async def search(
        self, query: str, speaker: str | None = None, limit: int = 10
    ) -> list[StoredMemory]:
        """The memories that fit a text best, best first; of one speaker alone, if given.

        An unregistered speaker is MemoryNotFound with `speaker`.
        """
        text = content_of(query, "query")
        whole(limit, "limit", 1, MOST_AT_ONCE)
        owner = None if speaker is None else speaker_name(speaker)
        chat_id = await self._chat_id_for(owner)
        if chat_id is None:
            return []
        result = await self._nianlun.recall(
            self.chat, text, limit=limit, budget_tokens=_SEARCH_TOKENS, speaker=owner
        )
        scores = {item.ref: item.score for item in result.items if item.kind == "fact"}
        if any(scores.values()):
            # What has none of the words came along with what does.
            scores = {ref: score for ref, score in scores.items() if score}
        rows = await store_notes.several(chat_id, scores)
        found = [
            stored_memory(rows[ref], score)
            for ref, score in scores.items()
            if ref in rows and owner in (None, rows[ref].owner)
        ]
        return found[:limit]

    async def by_speaker(
        self,
        name: str,
        limit: int = 50,
        before: str | None = None,
        skip_ids: Iterable[str] | None = None,
    ) -> MemoryPage:
        """What a speaker said, newest first. An unregistered one is MemoryNotFound.

        For the next page give back both `next_before` and `next_skip_ids`: several memories may
        be of one moment. `limit` is 1 to 100.
        """
        speaker = speaker_name(name)
        whole(limit, "limit", 1, MOST_AT_ONCE)
        moment = None if before is None else moment_of(before, "before")
        return await self._page(await self._chat_id_for(speaker), speaker, limit, moment, skip_ids)

    async def list_memories(
        self, limit: int = 100, before: str | None = None, skip_ids: Iterable[str] | None = None
    ) -> MemoryPage:
        """All memories of the store, paged like those of a speaker."""
        whole(limit, "limit", 1, MOST_AT_ONCE)
        moment = None if before is None else moment_of(before, "before")
        return await self._page(await self._chat_id(), None, limit, moment, skip_ids)

    async def everything(self) -> list[StoredMemory]:
        """All memories of the store, oldest first."""
        chat_id = await self._chat_id()
        rows = [] if chat_id is None else await store_notes.everything(chat_id)
        return list(map(stored_memory, rows))

    async def get(self, memory_id: str) -> StoredMemory:
        """Raises MemoryNotFound with `memory_id`."""
        chat_id, note_id = await self._place_of(memory_id)
        row = await store_notes.get(chat_id, note_id)
        if row is None:
            raise _no_memory(memory_id)
        return stored_memory(row)

    async def supersede(self, memory_id: str, content: str) -> StoreResult:
        """Give a memory another text under the same id; speaker, category and dates stay.

        The old text is kept as an earlier one. Status `duplicate`, and nothing changed, when
        this or another memory of the same speaker says that already.
        """
        text = content_of(content)
        chat_id, note_id = await self._place_of(memory_id)
        added = await store_notes.supersede(chat_id, note_id, text, self._now())
        if added is None:
            raise _no_memory(memory_id)
        return store_result(added)

    async def forget(self, memory_id: str) -> int:
        """Erase a memory and its earlier texts, from the files too; returns how many texts."""
        chat_id, note_id = await self._place_of(memory_id)
        removed = await store_notes.forget(chat_id, note_id)
        if not removed:
            raise _no_memory(memory_id)
        self._nianlun.traces.soon()
        return removed

    async def clear(self) -> int:
        """Erase all memories; returns how many texts. Speakers stay registered."""
        chat_id = await self._chat_id()
        if chat_id is None:
            return 0
        removed = await store_notes.clear(chat_id)
        self._nianlun.traces.soon()
        return removed

    def _now(self) -> datetime:
        return self._nianlun.clock.now()

    async def _chat_id(self) -> int | None:
        return await chats.find(self.chat)

    async def _created(self) -> int:
        return (await chats.ensure([self.chat], self._now()))[self.chat]

    async def _chat_id_for(self, speaker: str | None) -> int | None:
        """The row id of the store, as long as it knows this speaker."""
        chat_id = await self._chat_id()
        if speaker not in (None, ME):
            if chat_id is None:
                raise named_stores.unknown(speaker)
            await named_stores.must_know(chat_id, speaker)
        return chat_id

    async def _place_of(self, memory_id: str) -> tuple[int, int]:
        chat_id, note_id = await self._chat_id(), row_id_of(memory_id)
        if chat_id is None or note_id is None:
            raise _no_memory(memory_id)
        return chat_id, note_id

    async def _page(
        self,
        chat_id: int | None,
        owner: str | None,
        limit: int,
        before: datetime | None,
        skip_ids: Iterable[str] | None,
    ) -> MemoryPage:
        given = map(row_id_of, ids_of(skip_ids, "skip_ids"))
        skip = {note_id for note_id in given if note_id is not None}
        if chat_id is None:
            return _NOTHING
        rows = await store_notes.page(chat_id, owner, before, skip, limit + 1)
        shown, has_more = rows[:limit], len(rows) > limit
        last = shown[-1].created_at if shown and has_more else None
        seen = {row.id for row in shown if row.created_at == last}
        if last is not None and last == before:
            seen |= skip
        return MemoryPage(
            memories=tuple(map(stored_memory, shown)),
            has_more=has_more,
            next_before=None if last is None else last.astimezone(UTC).isoformat(),
            next_skip_ids=tuple(map(memory_id_of, sorted(seen))),
            chunks=await store_notes.records(chat_id, owner),
        )


def _no_memory(memory_id: str) -> MemoryNotFound:
    shown = memory_id[:80] if isinstance(memory_id, str) else None
    return MemoryNotFound("This store has no memory with that id.", memory_id=shown)
