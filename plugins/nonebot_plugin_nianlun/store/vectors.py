"""Vectors beside the texts that they were made from: which are missing, and putting them in.

A vector goes with its text: the triggers of the search index drop it once the text is changed or
taken back, and a vector that comes too late for that is not stored at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
import sqlite3

from tortoise.connection import get_connection

from ..memory.search import SearchKind
from .database import transactional
from .keys import chunks, short_id
from .search_schema import LAST_REF, TEXTS

KINDS: tuple[SearchKind, ...] = ("fact", "year", "month", "day", "activity", "message")
"""In this order they get their vectors."""
_SHORTEST = 4
"""Characters of a message that is worth a vector: 好的 means nothing by itself."""
_MISSING = """
WITH found (ref, text, speaker) AS ({texts})
SELECT ref, text FROM found WHERE ref > ? AND ref < ? AND length(text) >= ? AND NOT EXISTS (
    SELECT 1 FROM nianlun_vector v
    WHERE v.chat_id = ? AND v.kind = ? AND v.ref = found.ref AND v.model = ?
) ORDER BY ref DESC LIMIT ?
"""
_KNOWN = (
    "SELECT content_hash, vector FROM nianlun_vector"
    " WHERE chat_id = ? AND model = ? AND content_hash IN ({marks})"
)
_PUT = """
WITH found (ref, text, speaker) AS ({texts})
INSERT OR IGNORE INTO nianlun_vector (chat_id, kind, ref, model, content_hash, vector)
SELECT ?, ?, ref, ?, ?, ? FROM found WHERE ref = ? AND text = ?
"""
_DROP = (
    "DELETE FROM nianlun_vector WHERE id IN"
    " (SELECT id FROM nianlun_vector WHERE chat_id = ? AND model <> ? LIMIT ?)"
)
_PART = 5000


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored text that may have a vector."""

    kind: SearchKind
    ref: int
    """A message's seq, an activity's number, else the row's id."""
    text: str

    @property
    def content_hash(self) -> str:
        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def space(model: str, size: int) -> str:
    """What vectors must have in common to be compared: the model, and how many numbers it makes.

    Endpoints put other models behind an old name.
    """
    return short_id(f"{model}/{size}")


def missing(
    connection: sqlite3.Connection,
    chat_id: int,
    kind: SearchKind,
    model: str,
    *,
    above: int = -1,
    below: int = LAST_REF,
    limit: int,
) -> list[Passage]:
    """Texts with a ref between the two and no vector of this model, the newest first."""
    query = _MISSING.format(texts=TEXTS[kind])
    shortest = _SHORTEST if kind == "message" else 1
    values = (chat_id, above, below, shortest, chat_id, kind, model, limit)
    return [Passage(kind, ref, text) for ref, text in connection.execute(query, values)]


def known(
    connection: sqlite3.Connection, chat_id: int, model: str, hashes: Sequence[str]
) -> dict[str, bytes]:
    """Vectors that equal texts of the chat have already, by the hash of the text."""
    found: dict[str, bytes] = {}
    for part in chunks(hashes):
        query = _KNOWN.format(marks=",".join("?" * len(part)))
        found |= dict(connection.execute(query, (chat_id, model, *part)))
    return found


@transactional
async def put(chat_id: int, model: str, vectors: Sequence[tuple[Passage, bytes]]) -> None:
    """Store vectors of those texts that still stand as they were read."""
    connection = get_connection("default")
    for passage, vector in vectors:
        query = _PUT.format(texts=TEXTS[passage.kind])
        values = [chat_id, chat_id, passage.kind, model, passage.content_hash, vector]
        await connection.execute_query(query, [*values, passage.ref, passage.text])


async def drop_others(chat_id: int, model: str) -> None:
    """Remove the vectors of other models, in parts."""
    while await _drop_part(chat_id, model) == _PART:
        pass


@transactional
async def _drop_part(chat_id: int, model: str) -> int:
    dropped, _ = await get_connection("default").execute_query(_DROP, [chat_id, model, _PART])
    return dropped
