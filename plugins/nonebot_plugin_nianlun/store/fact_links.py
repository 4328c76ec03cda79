"""The facts that others link to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from ..memory.links import Link
from ..memory.search import Candidate

# The join keeps SQLite to one step into the index for each name; of a list of pairs it would
# read through all facts of the chat.
_NAMED = (
    "WITH wanted (category, name) AS (VALUES {pairs})"
    " SELECT f.id, f.owner, f.category, f.name, f.text, f.written_at"
    " FROM wanted CROSS JOIN nianlun_fact f WHERE f.chat_id = ?"
    " AND f.category = wanted.category AND f.name = wanted.name AND f.text <> ''"
)


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
