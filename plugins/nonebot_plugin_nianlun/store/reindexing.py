"""Bringing the search index up to date with what is stored: after an upgrade, or by command.

It is done in small parts, each its own transaction that also says how far it got, so that it
may end at any moment and go on later, in whichever process. What is written meanwhile puts
itself into the index.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
import json
from pathlib import Path
import sqlite3
from typing import NamedTuple

from nonebot import logger

from ..errors import StoreError
from ..memory.terms import TERMS_VERSION
from .database import BUSY_TIMEOUT_MS, connect, translated
from .search import DROP, WRITE, Entry
from .search_schema import LAST_REF, REFS, STATE, TEXTS, document, is_sound, start_over

_PART = 300
"""Texts in one transaction, for so long nobody else can write."""
_PAUSE = 0.05
_RETRY = 5.0
_LOCK_MS = 500
"""Whoever writes may wait for a part, and a part not for long for them."""
_KINDS = tuple(TEXTS)

_READ_STATE = "SELECT value FROM nianlun_property WHERE key = ?"
_WRITE_STATE = (
    "INSERT INTO nianlun_property (key, value) VALUES (?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_NEXT_CHAT = "SELECT min(id) FROM nianlun_chat WHERE id >= ?"
_INDEXED = "SELECT id, terms FROM nianlun_search_terms WHERE id BETWEEN ? AND ?"

Done = Callable[[int], None]


class Position(NamedTuple):
    """Everything before it is as it ought to be."""

    chat_id: int = 0
    kind: int = 0
    ref: int = 0
    """The last one that was seen to."""


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def is_complete(connection: sqlite3.Connection) -> bool:
    """Whether everything that may be found is in the index, in the terms of this version."""
    return _position(connection) is None


def _position(connection: sqlite3.Connection) -> Position | None:
    row = connection.execute(_READ_STATE, (STATE,)).fetchone()
    state: list[int] = json.loads(row[0]) if row else [0]
    version, *place = state
    if version != TERMS_VERSION:
        return Position()
    return Position(*place) if place else None


def _note(connection: sqlite3.Connection, position: Position | None) -> None:
    state = [TERMS_VERSION, *(position or ())]
    connection.execute(_WRITE_STATE, (STATE, json.dumps(state)))


def step(connection: sqlite3.Connection) -> bool:
    """Do the next part; False when nothing is left to do."""
    with _transaction(connection):
        position = _position(connection)
        if position is None:
            return False
        (chat_id,) = connection.execute(_NEXT_CHAT, (position.chat_id,)).fetchone()
        if chat_id is None:
            _note(connection, None)
            return False
        if chat_id != position.chat_id:
            position = Position(chat_id)
        after, _ = _part(connection, position)
        _note(connection, after or Position(chat_id + 1))
        return True


def _part(connection: sqlite3.Connection, position: Position) -> tuple[Position | None, int]:
    """Set right the texts behind a position.

    Returns where to go on, if not the whole chat is done, and how many texts there were.
    """
    chat_id, code, after = position
    kind = _KINDS[code]
    query = f"{TEXTS[kind]} AND {REFS[kind]} > ? ORDER BY {REFS[kind]} LIMIT ?"
    rows = connection.execute(query, (chat_id, after, _PART)).fetchall()
    entries = (Entry(chat_id, kind, ref, text, speaker).row() for ref, text, speaker in rows)
    wanted = {id_: terms for id_, terms in entries if terms}
    last = rows[-1][0] if len(rows) == _PART else LAST_REF
    ends = (document(chat_id, kind, after + 1), document(chat_id, kind, last))
    stored = dict(connection.execute(_INDEXED, ends).fetchall())
    connection.executemany(DROP, [(i,) for i, terms in stored.items() if wanted.get(i) != terms])
    changed = [(i, terms) for i, terms in wanted.items() if stored.get(i) != terms]
    for statement in WRITE:
        connection.executemany(statement, changed)
    if len(rows) == _PART:
        return Position(chat_id, code, last), len(rows)
    return (Position(chat_id, code + 1) if code + 1 < len(_KINDS) else None), len(rows)


async def rebuild(path: Path, chat_ids: list[int], told: Done) -> None:
    """Set the whole index of these chats right, now; tells how many texts are done.

    An index that is damaged as such is made anew, with all chats in it.

    Raises StoreError.
    """
    await asyncio.to_thread(_rebuild, path, chat_ids, told)


def _rebuild(path: Path, chat_ids: list[int], told: Done) -> None:
    done = 0
    with translated(), closing(connect(path, BUSY_TIMEOUT_MS / 1000)) as connection:
        damaged = not is_sound(connection)
        if damaged:
            with _transaction(connection):
                start_over(connection)
        for chat_id in chat_ids:
            position: Position | None = Position(chat_id)
            while position is not None:
                with _transaction(connection):
                    position, count = _part(connection, position)
                done += count
                told(done)
        while damaged and step(connection):
            pass  # the other chats have lost theirs too


class Reindexing:
    """Goes on with what is left to do, in the background."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._task: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()

    def start(self) -> None:
        self._ending.clear()
        self._task = asyncio.create_task(self._run(), name="nianlun-reindexing")

    async def stop(self) -> None:
        """End it at the next part; the next start goes on from there."""
        if self._task is not None:
            self._ending.set()
            await self._task
            self._task = None

    async def _run(self) -> None:
        while not self._ending.is_set():
            try:
                if not await asyncio.to_thread(self._one_part):
                    return
                pause = _PAUSE
            except StoreError as error:
                logger.warning(f"检索还没有建好，稍后再试：{error}")
                pause = _RETRY
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._ending.wait()

    def _one_part(self) -> bool:
        with translated(), closing(connect(self._path, _LOCK_MS / 1000)) as connection:
            return step(connection)
