"""All that a reply needs of a chat but what its words bring up, within one view of the database.

A reply waits for this, so it is read at once and by plain queries: one hop to the reader's thread
instead of one for each, and no row is made into a model first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache, lru_cache
import json
import sqlite3
from typing import Any

from ..errors import StoreError
from ..memory.anniversaries import YEARLY_WORDS, YearlyFact, same_dates
from ..memory.layers import Layers
from ..memory.promises import PROMISE, Promise, shown_days
from ..memory.terms import index_terms
from ..types import ME, Activity, ChatKey, Memory, Message
from . import exclusions, traces
from .database import translate
from .keys import chunks
from .search_schema import LAST_REF, span_of
from .search_terms import quoted, term
from .speakers import name_key
from .traces import Reading

_MOST_PROMISES = 50
"""More than are ever shown, of a chat that gives too many."""
_MOST_YEARLY = 200
"""Facts that speak of a yearly day, the newest; a chat has some dozens."""
_CHAT = "SELECT id, name, persona FROM nianlun_chat WHERE self_id = ? AND kind = ? AND peer_id = ?"
_MEMORY = (
    "SELECT kind, period, text, key_messages, sources, version, writer, written_at, closed, merged"
    " FROM nianlun_memory WHERE"
)
_NEWEST_OF = (
    "SELECT id FROM (SELECT id FROM nianlun_memory WHERE chat_id = ? AND kind = ? AND stale = 0"
    " ORDER BY period DESC LIMIT ?)"
)
# What is being rewritten is never shown and takes no place.
_LAYERS = (
    f"{_MEMORY} stale = 0 AND id IN ("
    "SELECT id FROM nianlun_memory WHERE chat_id = ? AND merged = 0"
    " UNION ALL SELECT id FROM nianlun_memory WHERE chat_id = ? AND kind = 'year'"
    f" UNION ALL {_NEWEST_OF} UNION ALL {_NEWEST_OF}) ORDER BY period"
)
_SAME_DAYS = (
    f"{_MEMORY} chat_id = ? AND kind = 'day' AND stale = 0 AND period IN ({{marks}})"
    " ORDER BY period"
)
# The condition of the partial index, to the letter.
_ACTIVITIES = (
    "SELECT number, date, text, key_messages, origin, time, writer, written_at, from_seq, to_seq,"
    " owner, version FROM nianlun_activity WHERE chat_id = ? AND merged = 0 AND stale = 0"
    " ORDER BY date DESC, time DESC, number DESC LIMIT ?"
)
_HISTORY = (
    "SELECT seq, time, user_id, name, text, reply_to, via, source, skipped FROM nianlun_message"
    " WHERE chat_id = ? AND withdrawn_at IS NULL"
    " AND (skipped IS NULL OR skipped IN ('declined', 'refused'))"
    " ORDER BY time DESC, seq DESC LIMIT ?"
)
_BEARERS = (
    "SELECT user_id, name FROM nianlun_speaker_name WHERE chat_id = ? AND name_key IN ({marks})"
    " ORDER BY id"
)
_NAMES = "SELECT user_id, name FROM nianlun_speaker WHERE chat_id = ? AND user_id IN ({marks})"
_DUE = (
    "SELECT owner, text, due FROM nianlun_fact WHERE chat_id = ? AND category = ?"
    " AND done_at IS NULL AND due >= ? AND due <= ? AND text <> '' ORDER BY due, id LIMIT ?"
)
_YEARLY = (
    "SELECT owner, coalesce(category, ''), coalesce(name, ''), text FROM nianlun_fact"
    " WHERE chat_id = ? AND text <> '' AND id IN (SELECT rowid & ? FROM nianlun_search"
    " WHERE nianlun_search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?)"
    " ORDER BY id DESC"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much of a chat is to be read, and for whom."""

    keep_days: int
    keep_months: int
    activities: int
    """The newest of those that no day holds."""
    history: int
    asker: str | None = None
    today: date | None = None
    """The logical day whose `DayView` is wanted too."""


@dataclass(frozen=True, slots=True)
class DayView:
    """What a logical day may bring up in a chat."""

    promises: tuple[Promise, ...]
    """Those to be shown, by their due day."""
    yearly: tuple[YearlyFact, ...]
    """Facts that speak of a day that comes round, of whatever date, newest first."""
    same_days: tuple[Memory, ...]
    """Day memories of this date in earlier years."""
    names: dict[str, str]
    """Today's names of those whose promises and facts these are."""


@dataclass(frozen=True, slots=True)
class ReplyView:
    """A chat as it stands at one moment; empty where nothing was ever recorded."""

    chat_id: int | None = None
    read: Reading | None = None
    """Of this chat and of those linked to it."""
    unrecorded: bool = False
    """What the asker says now is not recorded, for whatever reason."""
    name: str | None = None
    persona: str | None = None
    layers: Layers = field(default_factory=Layers)
    history: tuple[Message, ...] = ()
    """In event order."""
    namesakes: dict[str, str] = field(default_factory=dict)
    """Everybody who is or was called like somebody in the history, by user id."""
    peer: str | None = None
    """Of a private chat: today's name of whom it is with, if that is known."""
    day: DayView | StoreError | None = None
    """If it was wanted; or why it could not be read: that needs the index, whose trouble costs no
    more than this."""


def read(connection: sqlite3.Connection, chat: ChatKey, wanted: Wanted) -> ReplyView:
    row = connection.execute(_CHAT, (chat.self_id, chat.kind, chat.peer_id)).fetchone()
    if row is None:
        return ReplyView()
    chat_id, name, persona = row
    history = _history(connection, chat_id, wanted.history)
    peer = [chat.peer_id] if chat.kind == "private" else []
    keys = set(map(name_key, {message.name for message in history if not message.is_mine}))
    return ReplyView(
        chat_id=chat_id,
        read=traces.read(connection, chat_id),
        unrecorded=wanted.asker is not None
        and exclusions.unrecorded(connection, chat_id, wanted.asker),
        name=name,
        persona=persona,
        layers=read_layers(connection, chat_id, wanted),
        history=history,
        namesakes=dict(_in(connection, _BEARERS, (chat_id,), sorted(keys))),
        peer=dict(_in(connection, _NAMES, (chat_id,), peer)).get(chat.peer_id),
        day=None if wanted.today is None else _day(connection, chat_id, wanted.today),
    )


def _day(connection: sqlite3.Connection, chat_id: int, today: date) -> DayView | StoreError:
    try:
        return _read_day(connection, chat_id, today)
    except sqlite3.Error as error:
        return translate(error)


def _read_day(connection: sqlite3.Connection, chat_id: int, today: date) -> DayView:
    promises = _promises(connection, chat_id, today)
    yearly = _yearly(connection, chat_id)
    people = {one.owner for one in (*promises, *yearly)} - {"", ME}
    return DayView(
        promises,
        yearly,
        tuple(map(_memory, _in(connection, _SAME_DAYS, (chat_id,), sorted(same_dates(today))))),
        dict(_in(connection, _NAMES, (chat_id,), sorted(people))),
    )


def _in(
    connection: sqlite3.Connection, query: str, before: Sequence[object], values: Sequence[str]
) -> Iterable[Any]:
    for part in chunks(values):
        marks = ",".join("?" * len(part))
        yield from connection.execute(query.format(marks=marks), (*before, *part))


def read_layers(connection: sqlite3.Connection, chat_id: int, wanted: Wanted) -> Layers:
    """All years; months and days that are the newest or not folded yet."""
    days, months = ("day", wanted.keep_days), ("month", wanted.keep_months)
    values = (chat_id, chat_id, chat_id, *days, chat_id, *months)
    found = [_memory(row) for row in connection.execute(_LAYERS, values)]
    return Layers(
        years=tuple(one for one in found if one.kind == "year"),
        months=tuple(one for one in found if one.kind == "month"),
        days=tuple(one for one in found if one.kind == "day"),
        activities=_activities(connection, chat_id, wanted.activities),
    )


def _memory(row: Sequence[Any]) -> Memory:
    return Memory(
        kind=row[0],
        period=row[1],
        text=row[2],
        key_messages=_list(row[3]),
        sources=_list(row[4]),
        version=row[5],
        writer=row[6],
        written_at=datetime.fromisoformat(row[7]),
        closed=bool(row[8]),
        merged=bool(row[9]),
    )


# What stands before one reply mostly stands before the next.
@lru_cache(1024)
def _list(written: str) -> tuple[Any, ...]:
    return tuple(json.loads(written))


def _activities(connection: sqlite3.Connection, chat_id: int, newest: int) -> tuple[Activity, ...]:
    """Oldest first, with the outer bounds of their windows for ranges."""
    rows = connection.execute(_ACTIVITIES, (chat_id, newest)).fetchall()
    return tuple(
        Activity(
            number=found[0],
            date=found[1],
            text=found[2],
            key_messages=_list(found[3]),
            origin=found[4],
            time=datetime.fromisoformat(found[5]),
            writer=found[6],
            written_at=datetime.fromisoformat(found[7]),
            ranges=() if found[8] is None else ((found[8], found[9]),),
            owner=found[10],
            version=found[11],
        )
        for found in reversed(rows)
    )


def _history(connection: sqlite3.Connection, chat_id: int, newest: int) -> tuple[Message, ...]:
    rows = connection.execute(_HISTORY, (chat_id, newest)).fetchall()
    return tuple(
        Message(
            seq=found[0],
            time=datetime.fromisoformat(found[1]),
            user_id=found[2],
            name=found[3],
            text=found[4],
            reply_to=found[5],
            via=found[6],
            source=found[7],
            skipped=found[8],
        )
        for found in reversed(rows)
    )


def _promises(connection: sqlite3.Connection, chat_id: int, today: date) -> tuple[Promise, ...]:
    first, last = (day.isoformat() for day in shown_days(today))
    rows = connection.execute(_DUE, (chat_id, PROMISE, first, last, _MOST_PROMISES))
    return tuple(Promise(owner, text, date.fromisoformat(due)) for owner, text, due in rows)


def _yearly(connection: sqlite3.Connection, chat_id: int) -> tuple[YearlyFact, ...]:
    """By the index: facts are many, and those that speak of a birthday are few."""
    matching = " OR ".join(quoted(term(chat_id, "f", plain)) for plain in _yearly_terms())
    values = (chat_id, LAST_REF, matching, *span_of(chat_id, "fact", "fact"), _MOST_YEARLY)
    return tuple(YearlyFact(*found) for found in connection.execute(_YEARLY, values))


@cache
def _yearly_terms() -> tuple[str, ...]:
    terms = (plain for word in YEARLY_WORDS for plain in index_terms(word))
    return tuple(dict.fromkeys(terms))
