"""Who is called what in a chat, and where what was found there leads."""

from __future__ import annotations

from collections.abc import Sequence
import sqlite3

from ..memory.links import Linked, resolve, wanted
from ..memory.search import Candidate
from . import fact_links
from .keys import chunks

_STAND_OF_NAMES = (
    "SELECT count(*), coalesce(max(id), 0) FROM nianlun_speaker_name WHERE chat_id = ?"
)
_SHOWN_NAMES = "SELECT user_id, name FROM nianlun_speaker WHERE chat_id = ?"
_NAMES = "SELECT name, user_id FROM nianlun_speaker_name WHERE chat_id = ? ORDER BY id"


def stand_of_names(connection: sqlite3.Connection, chat_id: int) -> tuple[int, int]:
    """What changes whenever the names of a chat change."""
    return connection.execute(_STAND_OF_NAMES, (chat_id,)).fetchone()


def names(connection: sqlite3.Connection, chat_id: int) -> dict[str, set[str]]:
    """See `SearchView.names`."""
    found: dict[str, set[str]] = {}
    for name, user_id in connection.execute(_NAMES, (chat_id,)):
        found.setdefault(name, set()).add(user_id)
    return found


def company(
    connection: sqlite3.Connection, chat_id: int, hits: Sequence[Candidate]
) -> tuple[Linked, dict[str, str]]:
    """See `SearchView.company`."""
    named: list[Candidate] = []
    for links in chunks(wanted(hits)):
        query, values = fact_links.named_query(chat_id, links)
        named += map(fact_links.to_candidate, connection.execute(query, values))
    linked = resolve(hits, named)
    user_ids = {one.user_id for one in [*hits, *named]} - {None}
    names: dict[str, str] = {}
    for part in chunks(sorted(map(str, user_ids))):
        query = f"{_SHOWN_NAMES} AND user_id IN ({','.join('?' * len(part))})"
        names |= dict(connection.execute(query, (chat_id, *part)))
    return linked, names
