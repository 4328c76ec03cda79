"""Who is called what in a chat, and where what was found there leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
import sqlite3

from ..memory.links import Linked, resolve, wanted
from ..memory.people import People
from ..memory.search import Candidate
from . import fact_links
from .keys import chunks

_STAND_OF_NAMES = (
    "SELECT count(*), coalesce(max(id), 0) FROM nianlun_speaker_name WHERE chat_id = ?"
)
_SHOWN_NAMES = "SELECT user_id, name FROM nianlun_speaker WHERE chat_id = ?"
_NAMES = "SELECT name, user_id FROM nianlun_speaker_name WHERE chat_id = ? AND id > ? ORDER BY id"


@dataclass(slots=True)
class Names:
    """The names of a chat as they were read last."""

    people: People = field(default_factory=People)
    count: int = 0
    last: int = 0
    """The highest row id."""


def names(connection: sqlite3.Connection, chat_id: int, known: dict[int, Names]) -> People:
    """See `SearchView.names`. `known`, by chat, is brought up to date: only what is new is read,
    and all of it where anything is gone."""
    now = connection.execute(_STAND_OF_NAMES, (chat_id,)).fetchone()
    one = known.setdefault(chat_id, Names())
    if now != (one.count, one.last):
        rows = connection.execute(_NAMES, (chat_id, one.last)).fetchall()
        if one.count + len(rows) != now[0]:
            one = known[chat_id] = Names()
            rows = connection.execute(_NAMES, (chat_id, 0)).fetchall()
        for name, user_id in rows:
            one.people.add(name, [user_id])
        one.count, one.last = now
    return one.people


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
