"""Search: what is written goes into the index with it, and is found again beside all writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
import sqlite3
from typing import Any, TypeVar

from tortoise.connection import get_connection

from ..memory.calendar import Calendar
from ..memory.embedding import Near
from ..memory.links import Linked
from ..memory.people import People
from ..memory.search import Candidate, Search, SearchKind
from ..types import ChatKey
from . import links, reply_view, searched_names, searching
from .keys import chunks
from .reading import ReadThread
from .search_schema import REFS, TEXTS, document
from .search_terms import terms_of

T = TypeVar("T")

DROP = "DELETE FROM nianlun_search_terms WHERE id = ?"
# Both here and not one by a trigger on the other: around every row that a trigger writes FTS5
# keeps a savepoint, and writes out what it has gathered, which takes three times as long.
WRITE = (
    # Should ever an entry be left over, it must not keep anybody from writing.
    "INSERT OR REPLACE INTO nianlun_search_terms (id, terms) VALUES (?, ?)",
    "INSERT INTO nianlun_search (rowid, terms) VALUES (?, ?)",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A text that is to be found."""

    chat_id: int
    kind: SearchKind
    ref: int
    """A message's seq, an activity's number, else the row's id."""
    text: str
    speaker: str | None = None
    """Who said it, or whose it is, by user id."""

    def row(self) -> list[Any]:
        """Its id and terms, as the index has them."""
        terms = terms_of(self.chat_id, self.kind, self.text, self.speaker)
        return [document(self.chat_id, self.kind, self.ref), terms]


async def add(chat_id: int, kind: SearchKind, refs: Sequence[int]) -> None:
    """Make the texts of these rows findable as they stand now, those that may be found.

    Runs inside the transaction that wrote them.
    """
    connection = get_connection("default")
    for part in chunks(refs):
        query = f"{TEXTS[kind]} AND {REFS[kind]} IN ({','.join('?' * len(part))})"
        _, rows = await connection.execute_query(query, [chat_id, *part])
        await put(
            Entry(chat_id, kind, ref, text, speaker) for ref, text, speaker in map(tuple, rows)
        )


async def put(entries: Iterable[Entry]) -> None:
    """Make these texts findable; one that is there already is replaced.

    Runs inside the transaction that writes the texts themselves, and after it wrote them.
    """
    rows = rows_of(entries)
    if rows:
        await get_connection("default").execute_many(DROP, [row[:1] for row in rows])
        await write(rows)


def rows_of(entries: Iterable[Entry]) -> list[list[Any]]:
    """The entries' ids and terms, in the order in which they are to be written."""
    # FTS5 writes out what it has gathered whenever an id is lower than the one before.
    return sorted(entry.row() for entry in entries)


async def write(rows: Sequence[list[Any]]) -> None:
    """Make findable what was not there before; those without a term are left out."""
    if found := [row for row in rows if row[1]]:
        for statement in WRITE:
            await get_connection("default").execute_many(statement, found)


@dataclass(frozen=True, slots=True)
class SearchView:
    """What a search asks for, all of it within one view of the database."""

    connection: sqlite3.Connection
    calendar: Calendar
    known_names: dict[int, searched_names.Names]
    """By chat."""

    def find(self, chat_id: int, search: Search, *, around: int = 0) -> list[Candidate]:
        """The best of what matches, of messages, of notes and of facts, each best first.

        Behind them come the `around` lines before and after each message that was found, with
        a score of 0, as far as the search allows for them too.
        """
        return searching.find(self.connection, self.calendar, chat_id, search, around)

    def find_facts(self, chat_id: int, search: Search) -> list[Candidate]:
        """The best facts of what matches, best first."""
        return searching.find_facts(self.connection, self.calendar, chat_id, search)

    def look_up(
        self, chat_id: int, search: Search, wanted: Sequence[Near], *, around: int = 0
    ) -> list[Candidate]:
        """Of these, in this order, what the search allows for, whatever its terms: each text
        once, at most as many as it wants of a kind; then the lines around them, as in `find`."""
        return searching.look_up(self.connection, self.calendar, chat_id, search, wanted, around)

    def company(self, chat_id: int, hits: Sequence[Candidate]) -> tuple[Linked, dict[str, str]]:
        """Where the facts among these lead, one step far, and today's names, by user id, of all
        whose words and facts that makes."""
        return searched_names.company(self.connection, chat_id, hits)

    def names(self, chat_id: int) -> People:
        """All names that people of this chat have or had. To be read, not to be changed."""
        return searched_names.names(self.connection, chat_id, self.known_names)

    def reply_view(self, chat: ChatKey, wanted: reply_view.Wanted) -> reply_view.ReplyView:
        """What stands before a reply in a chat, searched for or not."""
        return reply_view.read(self.connection, chat, wanted)

    def linked(self, chat_id: int) -> list[links.Linked]:
        """The chats that searches in this one may look into."""
        return links.linked(self.connection, chat_id)


class SearchReader:
    """Searches in a thread and on a connection of its own: it never waits for whoever writes.

    A search that is cancelled, by a deadline say, ends at once. Methods raise StoreError.
    """

    def __init__(self, path: Path, calendar: Calendar) -> None:
        """`calendar` tells which moments a day, month or year is about. Opens nothing yet."""
        self._calendar = calendar
        self._reading = ReadThread(path, "nianlun-search")
        # A reply that has waited long enough for a search reads here what it needs anyway.
        self._beside = ReadThread(path, "nianlun-reply")
        self._names: dict[int, searched_names.Names] = {}

    async def run(self, work: Callable[[SearchView], T]) -> T:
        """The result of `work`, which is done in the thread: whoever looks for one thing after
        the other crosses over to it once."""
        return await self._reading.run(
            lambda connection: work(SearchView(connection, self._calendar, self._names))
        )

    async def linked(self, chat_id: int) -> list[links.Linked]:
        """See `SearchView`."""
        return await self.run(lambda view: view.linked(chat_id))

    async def reply_view(
        self,
        chat: ChatKey,
        wanted: reply_view.Wanted,
        beside: Callable[[reply_view.ReplyView], object] | None = None,
    ) -> reply_view.ReplyView:
        """What stands before a reply in this chat. `beside`: what else is to be read for it
        from the disk, done in the same thread; it raises nothing."""

        def work(connection: sqlite3.Connection) -> reply_view.ReplyView:
            view = reply_view.read(connection, chat, wanted)
            if beside is not None:
                beside(view)
            return view

        return await self._beside.run(work)

    async def close(self) -> None:
        """End whatever is running."""
        await self._reading.close()
        await self._beside.close()
