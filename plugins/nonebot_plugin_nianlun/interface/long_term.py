"""Long-term memories of an agent's users: notes with a category, in a store for each user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..capture.cleaning import clean_text
from ..errors import MemoryRequestError
from ..memory.markdown_memory import Complaint, MarkdownEntry, parse, render
from .memory_store import MemoryStore
from .requests import CONTENT_LIMIT, MOST_AT_ONCE
from .stored import StoreResult

if TYPE_CHECKING:
    from ..lifecycle import Nianlun


@dataclass(frozen=True, slots=True)
class MarkdownImport:
    """What became of the entries of a file."""

    stored: int
    duplicates: int
    """Entries that say what is remembered already."""
    refused: tuple[str, ...]
    """Why each of the others cannot be stored."""
    complaints: tuple[Complaint, ...]
    """What could not be read as it was meant, by line."""


class LongTermMemory:
    """Memories by user; `user_id` is any name that a store can have (see `MemoryStore`).

    User `alice` has the store `alice`: what is stored here is found there, and the reverse.
    Methods raise MemoryRequestError for what cannot be, and StoreError when the database cannot
    serve.
    """

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun

    async def store(self, user_id: str, content: str, category: str | None = None) -> StoreResult:
        """Remember something of a user, unless it is known already."""
        return await self._of(user_id).store(content, category=category or None)

    async def recall(self, user_id: str, query: str, top_k: int = 5) -> list[str]:
        """What fits best, best first: `top_k` contents, 100 at most; none for a blank query.

        Of a very long query the first 20,000 characters count.
        """
        store = self._of(user_id)
        if not isinstance(top_k, int):
            raise MemoryRequestError("top_k must be an integer.", field="top_k")
        if isinstance(query, str):
            query = clean_text(query).strip()[:CONTENT_LIMIT]
        if top_k <= 0 or query == "":
            return []
        return [hit.content for hit in await store.search(query, limit=min(top_k, MOST_AT_ONCE))]

    async def clear(self, user_id: str) -> None:
        """Erase all memories of a user."""
        await self._of(user_id).clear()

    async def export_markdown(self, user_id: str) -> str:
        """All memories of a user, oldest first, as `memory/markdown_memory.py` describes.

        Times are those on the bot's clock. Speakers, event dates and earlier texts have no place
        in this form; the export of the store has them.
        """
        local = self._nianlun.calendar.local
        return render(
            MarkdownEntry(
                local(memory.created_at).replace(tzinfo=None, microsecond=0),
                memory.category or "",
                memory.content,
            )
            for memory in await self._of(user_id).everything()
        )

    async def import_markdown(self, user_id: str, text: str) -> MarkdownImport:
        """Add the entries of such a file; what cannot be stored is told and left out."""
        store = self._of(user_id)
        entries, complaints = parse(text)
        stored = 0
        refused: list[str] = []
        for entry in entries:
            told_at = entry.time.replace(tzinfo=self._nianlun.calendar.zone)
            try:
                result = await store.store(
                    entry.content, category=entry.category or None, told_at=told_at
                )
            except MemoryRequestError as error:
                refused.append(f"{entry.time}: {error}")
                continue
            stored += result.status == "stored"
        duplicates = len(entries) - stored - len(refused)
        return MarkdownImport(stored, duplicates, tuple(refused), tuple(complaints))

    def _of(self, user_id: str) -> MemoryStore:
        return MemoryStore(self._nianlun, user_id)
