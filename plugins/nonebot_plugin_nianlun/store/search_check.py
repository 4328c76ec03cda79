"""Whether the search index holds what it ought to hold, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
import sqlite3

from ..memory.search import SearchKind
from .search_schema import LAST_REF, REFS, TEXTS, span_of, sql_document
from .search_terms import terms_of

_SHOWN = 1000
_MISSING = "{texts} AND NOT EXISTS (SELECT 1 FROM nianlun_search_terms WHERE id = {id}) LIMIT ?"
_LEFT_OVER = (
    f"SELECT t.id & {LAST_REF} FROM nianlun_search_terms t WHERE t.id BETWEEN ? AND ?"
    f" AND NOT EXISTS ({{texts}} AND {{ref}} = t.id & {LAST_REF}) LIMIT ?"
)
_WORDS: dict[SearchKind, str] = {
    "message": "消息 #{ref}",
    "activity": "活动 &{ref}",
    "day": "第 {ref} 篇日记忆",
    "month": "第 {ref} 篇月记忆",
    "year": "第 {ref} 篇年记忆",
    "fact": "第 {ref} 条事实",
}


def missing(connection: sqlite3.Connection, chat_id: int) -> Iterator[str]:
    """What of a chat is not found though it ought to be, each in words for a person."""
    for kind, texts in TEXTS.items():
        query = _MISSING.format(texts=texts, id=sql_document(kind, REFS[kind]))
        for ref, text, speaker in connection.execute(query, (chat_id, _SHOWN)):
            if terms_of(chat_id, kind, text, speaker):
                yield f"{_WORDS[kind].format(ref=ref)} 检索不到"


def left_over(connection: sqlite3.Connection, chat_id: int) -> Iterator[str]:
    """What of a chat is still in the index though it may not be found any more."""
    for kind, texts in TEXTS.items():
        query = _LEFT_OVER.format(texts=texts, ref=REFS[kind])
        values = (*span_of(chat_id, kind, kind), chat_id, _SHOWN)
        for (ref,) in connection.execute(query, values):
            yield f"{_WORDS[kind].format(ref=ref)} 已经不在，检索里还有"
