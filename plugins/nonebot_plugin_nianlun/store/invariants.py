"""One chat read in one view for a check, beside whatever is written meanwhile.

With a connection of its own: a check of a long chat must hold up neither the recording of
messages, which waits for the product's one connection, nor the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
import json
from pathlib import Path
import sqlite3
from typing import Any

from ..memory.calendar import Calendar
from ..memory.chat_view import ActivityView, ChatView, LineView, MemoryView, VersionView
from ..memory.invariants import Inspection, inspect
from . import search_check
from .database import BUSY_TIMEOUT_MS, translated
from .reindexing import is_complete

_LINES = (
    "SELECT seq, time, activity_id, skipped, withdrawn_at IS NOT NULL,"
    " text <> '' OR segments <> '[]' FROM nianlun_message WHERE chat_id = ? ORDER BY seq"
)
_ACTIVITIES = (
    "SELECT id, number, date, origin, from_seq, to_seq, text <> '', key_messages, merged, stale,"
    " writer = 'offline' AND origin = 'window'"
    " FROM nianlun_activity WHERE chat_id = ? ORDER BY number"
)
_MEMORIES = (
    "SELECT kind, period, text <> '', key_messages, sources, version,"
    " writer NOT IN ('model', 'offline'), closed, merged, stale"
    " FROM nianlun_memory WHERE chat_id = ? ORDER BY kind, period"
)
_VERSIONS = (
    "SELECT kind, ref, version, text <> '', key_messages, blanked"
    " FROM nianlun_note_version WHERE chat_id = ? ORDER BY kind, ref, version"
)
_FACTS = (
    "SELECT category || ':' || coalesce(name, ''), source FROM nianlun_fact"
    " WHERE chat_id = ?1 AND source IS NOT NULL"
    " UNION ALL SELECT f.category || ':' || coalesce(f.name, ''), v.source"
    " FROM nianlun_fact_version v JOIN nianlun_fact f ON f.id = v.fact_id"
    " WHERE v.chat_id = ?1 AND v.source IS NOT NULL"
)
_LEASES = "SELECT work, holder, expires_at FROM nianlun_lease WHERE chat_id = ?"
_COUNTERS = "SELECT last_seq, last_activity FROM nianlun_chat WHERE id = ?"


async def check(path: Path, chat_id: int, calendar: Calendar, now: datetime) -> Inspection:
    """Check what is stored of a chat; changes nothing. Raises StoreError."""
    return await asyncio.to_thread(read_and_check, path, chat_id, calendar, now)


def read_and_check(path: Path, chat_id: int, calendar: Calendar, now: datetime) -> Inspection:
    """The same, in the thread of the caller."""
    with translated():
        timeout = BUSY_TIMEOUT_MS / 1000
        with closing(sqlite3.connect(path, timeout=timeout, isolation_level=None)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            return inspect(_view(connection, chat_id), calendar, now)


def _view(connection: sqlite3.Connection, chat_id: int) -> ChatView:
    def rows(query: str) -> Iterator[Any]:
        return connection.execute(query, (chat_id,))

    # Of no chat there is nothing; StopIteration would never leave the thread.
    last_seq, last_activity = next(rows(_COUNTERS), (0, 0))
    return ChatView(
        last_seq=last_seq,
        last_activity=last_activity,
        lines=map(_line, rows(_LINES)),
        activities=[_activity(row) for row in rows(_ACTIVITIES)],
        memories=[_memory(row) for row in rows(_MEMORIES)],
        versions=[_version(row) for row in rows(_VERSIONS)],
        facts=list(rows(_FACTS)),
        search=_search(connection, chat_id),
        leases=[(work, holder, _moment(until)) for work, holder, until in rows(_LEASES)],
    )


def _search(connection: sqlite3.Connection, chat_id: int) -> list[str]:
    faults = list(search_check.left_over(connection, chat_id))
    if is_complete(connection):
        faults += search_check.missing(connection, chat_id)
    return faults


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _line(row: tuple[Any, ...]) -> LineView:
    seq, time, activity, skipped, withdrawn, has_text = row
    return LineView(seq, _moment(time), activity, skipped, bool(withdrawn), bool(has_text))


def _activity(row: tuple[Any, ...]) -> ActivityView:
    id_, number, day, origin, first, last, has_text, keys, merged, stale, offline = row
    return ActivityView(
        row=id_,
        number=number,
        date=day,
        origin=origin,
        outer=None if first is None else (first, last),
        has_text=bool(has_text),
        key_messages=tuple(json.loads(keys)),
        merged=bool(merged),
        stale=bool(stale),
        offline=bool(offline),
    )


def _memory(row: tuple[Any, ...]) -> MemoryView:
    kind, period, has_text, keys, sources, version, edited, closed, merged, stale = row
    return MemoryView(
        kind=kind,
        period=period,
        has_text=bool(has_text),
        key_messages=tuple(json.loads(keys)),
        sources=tuple(json.loads(sources)),
        version=version,
        edited=bool(edited),
        closed=bool(closed),
        merged=bool(merged),
        stale=bool(stale),
    )


def _version(row: tuple[Any, ...]) -> VersionView:
    kind, ref, version, has_text, keys, blanked = row
    return VersionView(kind, ref, version, bool(has_text), tuple(json.loads(keys)), bool(blanked))
