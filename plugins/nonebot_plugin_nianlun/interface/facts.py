"""The facts of one chat for other programs: what is true now, as `category:name` -> text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ..clock import Clock
from ..errors import NoteRejected
from ..memory.fact_items import MAX_FACTS, FactItem, fact_category, fact_item, fact_name
from ..memory.owners import owner_id
from ..store import chats
from ..store import facts as store
from ..store.models import Fact as FactRow
from ..types import ChatKey

LAST_SEQ = (1 << 63) - 1
"""Of no message, but no database takes a larger number."""


class Host(Protocol):
    """What is needed of the running `nianlun`."""

    @property
    def clock(self) -> Clock: ...


@dataclass(frozen=True, slots=True)
class FactEntry:
    """A fact as it stands."""

    category: str
    name: str
    content: str
    owner: str
    """A user id, `me`, or empty for the chat itself."""
    source: int | None
    """The short id of the message that it is from."""
    written_at: datetime

    @property
    def address(self) -> str:
        return f"{self.category}:{self.name}"


class Facts:
    """The facts of one chat. An owner is a user id, `me`, or empty for the chat itself."""

    def __init__(self, nianlun: Host, chat: ChatKey) -> None:
        """Opens nothing; a chat that is not there yet begins with its first fact."""
        self.chat = chat
        self._clock = nianlun.clock

    async def add(
        self, category: str, name: str, content: str, *, owner: str = "", source: int | None = None
    ) -> FactEntry:
        """Add a fact, or give the owner's fact of that name a new text; the old one is kept.

        `source` is the short id of the message that it is from. Raises NoteRejected for a
        category, name or content that cannot be, ValueError for an owner that is no user id or a
        source that is no short id, NotRecorded when it may not be kept, StoreError.
        """
        if source is not None and (type(source) is not int or not 0 < source <= LAST_SEQ):
            raise ValueError(f"no short id of a message: {source!r:.80}")
        item = fact_item(category, name, content)
        (entry,) = await self._remember(owner, [item], source)
        return entry

    async def learn(
        self, items: Sequence[object], *, owner: str = ""
    ) -> tuple[list[FactEntry], list[str]]:
        """Add what a model listed, objects with category, name and content, each judged alone.

        Returns what was kept, and why the others were not; at most eight are taken, and nothing
        of what is no list.
        """
        if not isinstance(items, list | tuple):
            return [], ["facts 应为一个列表"]
        kept: list[FactItem] = []
        refused: list[str] = []
        for number, item in enumerate(items[:MAX_FACTS], 1):
            given = item if isinstance(item, dict) else {}
            try:
                kept.append(
                    fact_item(given.get("category"), given.get("name"), given.get("content"))
                )
            except NoteRejected as error:
                refused.append(f"第 {number} 条：{error}")
        if len(items) > MAX_FACTS:
            refused.append(f"最多 {MAX_FACTS} 条，后面的 {len(items) - MAX_FACTS} 条没有收")
        return await self._remember(owner, kept, None), refused

    async def remove(self, category: str, name: str, *, owner: str = "") -> bool:
        """Take a fact away; its text stays in the journal. False when there was none."""
        chat_id = await chats.find(self.chat)
        if chat_id is None:
            return False
        where = _owner(owner), fact_category(category), fact_name(name)
        return await store.remove(chat_id, *where, self._clock.now())

    async def get(self, category: str, name: str, *, owner: str = "") -> FactEntry | None:
        chat_id = await chats.find(self.chat)
        if chat_id is None:
            return None
        row = await store.find(chat_id, _owner(owner), fact_category(category), fact_name(name))
        return None if row is None else _entry(row)

    async def items(
        self, *, owner: str | None = None, category: str | None = None
    ) -> list[FactEntry]:
        """The facts that hold now, in order of category and name; of everybody by default."""
        chat_id = await chats.find(self.chat)
        if chat_id is None:
            return []
        whose = None if owner is None else _owner(owner)
        return [_entry(row) for row in await store.listed(chat_id, owner=whose, category=category)]

    async def categories(self) -> list[str]:
        """The categories in use."""
        chat_id = await chats.find(self.chat)
        return [] if chat_id is None else await store.categories(chat_id)

    async def _remember(
        self, owner: str, items: Sequence[FactItem], source: int | None
    ) -> list[FactEntry]:
        owner = _owner(owner)
        now = self._clock.now()
        chat_id = (await chats.ensure([self.chat], now))[self.chat]
        await store.remember(chat_id, owner, items, source, now)
        rows = [await store.find(chat_id, owner, item.category, item.name) for item in items]
        return [_entry(row) for row in rows if row is not None]


def _owner(given: object) -> str:
    return "" if given == "" else owner_id(given)


def _entry(row: FactRow) -> FactEntry:
    return FactEntry(
        category=row.category,
        name=row.name or "",
        content=row.text,
        owner=row.owner,
        source=row.source,
        written_at=row.written_at,
    )
