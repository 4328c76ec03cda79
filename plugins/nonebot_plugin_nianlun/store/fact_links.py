"""The facts that others link to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from tortoise.connection import get_connection

from ..memory.links import Link, Linked, resolve, wanted
from ..memory.search import Candidate

_AT_ONCE = 200
# The join keeps SQLite to one step into the index for each name; of a list of pairs it would
# read through all facts of the chat.
_NAMED = (
    "WITH wanted (category, name) AS (VALUES {pairs})"
    " SELECT f.id, f.owner, f.category, f.name, f.text, f.written_at"
    " FROM wanted CROSS JOIN nianlun_fact f WHERE f.chat_id = ?"
    " AND f.category = wanted.category AND f.name = wanted.name AND f.text <> ''"
)


async def linked(chat_id: int, hits: Sequence[Candidate]) -> Linked:
    """What the facts among the hits lead to in their chat, one step far."""
    links = wanted(hits)
    named: list[Candidate] = []
    for start in range(0, len(links), _AT_ONCE):
        named += await _named(chat_id, links[start : start + _AT_ONCE])
    return resolve(hits, named)


async def _named(chat_id: int, links: Sequence[Link]) -> list[Candidate]:
    """All facts of a chat that bear one of these names, whoever owns them."""
    _, rows = await get_connection("default").execute_query(*named_query(chat_id, links))
    return [to_candidate(row) for row in rows]


def named_query(chat_id: int, links: Sequence[Link]) -> tuple[str, list[Any]]:
    """SQL and values for all facts of a chat that bear one of these names."""
    pairs = ",".join(["(?,?)"] * len(links))
    return _NAMED.format(pairs=pairs), [*chain.from_iterable(links), chat_id]


def to_candidate(row: Any) -> Candidate:
    id_, owner, category, name, text, written_at = row
    return Candidate(
        kind="fact",
        ref=id_,
        score=0.0,
        time=datetime.fromisoformat(written_at),
        text=text,
        user_id=owner or None,
        name=name,
        category=category,
    )
