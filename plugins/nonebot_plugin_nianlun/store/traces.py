"""What was taken back leaves the database's files too: pages, write-ahead log and backups.

A row that is emptied is overwritten in its page (`secure_delete`), but older copies of the page
stay in the write-ahead log, in backups, and here and there in a page that SQLite has rearranged.
So whoever erases says so in the same transaction, and this is done until it has succeeded.
"""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
import sqlite3
import time
from uuid import uuid4

from nonebot import logger
from tortoise.connection import get_connection
from tortoise.exceptions import OperationalError

from ..errors import Overtaken
from . import leftovers, sql
from .database import BUSY_TIMEOUT_MS, back_up, backups, connect, half_made
from .models import Chat, Property

_OWED = "erasing"
_BACKUP_OWED = "backup"
_COMPANY = 1.0
"""Seconds that an erasure may wait for others: they come in bursts."""
_RETRY = 2.0
_LOCK_MS = 200
"""A checkpoint holds up writers while it waits for readers."""
_SHARE = 200
"""A file is rewritten for at most one part in so many of the time."""
_HALF_MADE = 60.0
"""Seconds after which a backup that nobody has gone on with is not being made any more."""
_ERASED = "erased:"
"""With the chat's row id: the key of what names the last erasure in it."""
_ERASURES = (
    "SELECT value FROM nianlun_property WHERE key = ? OR key IN"
    f" (SELECT '{_ERASED}' || other_id FROM nianlun_chat_link WHERE chat_id = ?)"
    # Of a chat that is not linked any more nobody would hear what is erased there.
    " UNION ALL SELECT 'with ' || other_id FROM nianlun_chat_link WHERE chat_id = ? ORDER BY 1"
)
REPLACED = "原因里可能有被收回的话，已经一起清掉了"


async def owe(chat_id: int) -> None:
    """Note that words were erased in this chat; runs inside the transaction that erased them."""
    erasure = uuid4().hex
    await sql.set_property(_OWED, erasure)
    await sql.set_property(f"{_ERASED}{chat_id}", erasure)
    # A failed job is told with what the model wrote.
    await Chat.filter(id=chat_id, last_error__isnull=False).update(last_error=REPLACED)


async def last_erasure(chat_id: int) -> str | None:
    """What names the last erasure in this chat.

    When it is not any more what it was, what was read before may hold what is erased since.
    """
    row = await Property.get_or_none(key=f"{_ERASED}{chat_id}")
    return None if row is None else row.value


@dataclass(frozen=True, slots=True)
class Reading:
    """That something of a chat, or of one linked to it, was read: what names the last erasure in
    each, and the links."""

    erasures: tuple[str, ...]


async def reading(chat_id: int) -> Reading:
    """To be kept beside what is read of a chat from now on, and of those that are linked to it."""
    _, rows = await get_connection("default").execute_query(_ERASURES, _erasures_of(chat_id))
    return Reading(tuple(value for (value,) in map(tuple, rows)))


def read(connection: sqlite3.Connection, chat_id: int) -> Reading:
    """The same within a view that more is read in."""
    rows = connection.execute(_ERASURES, _erasures_of(chat_id))
    return Reading(tuple(value for (value,) in rows))


def _erasures_of(chat_id: int) -> list[object]:
    return [f"{_ERASED}{chat_id}", chat_id, chat_id]


async def check(chat_id: int, read: Reading | None) -> None:
    """Raise Overtaken when what was read may hold words that are erased since.

    Runs inside the transaction that stores what was made of it.
    """
    if read is not None and await reading(chat_id) != read:
        raise Overtaken


class Traces:
    """Removes from the files what is erased in the rows, in the background."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._rewritten: str | None = None
        """The erasure that the file was last rewritten for."""
        self._rest_until = 0.0
        self._named: set[Path] = set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="nianlun-traces")

    def soon(self) -> None:
        """Look soon whether something was erased."""
        self._wake.set()

    async def stop(self) -> None:
        """Do what is owed if it can be done now; else the next start does it."""
        if self._task is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        with suppress(OperationalError, sqlite3.Error, OSError):
            await self.remove(hurry=True)

    async def _run(self) -> None:
        pause: float | None = None
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(_COMPANY)
            pause = await self._try()

    async def _try(self) -> float | None:
        """Seconds until the next try; None when nothing is left to do."""
        try:
            if await self.remove():
                return None
        except (OperationalError, sqlite3.Error, OSError) as error:
            logger.warning(f"收回的话还没有从数据库文件里清干净，稍后再试：{error}")
        return max(_RETRY, self._rest_until - time.monotonic())

    async def remove(self, *, hurry: bool = False) -> bool:
        """Remove what is owed; False when some of it has to wait.

        `hurry`: also when the file was rewritten a short while ago. Raises what the database and
        the file system raise.
        """
        row = await Property.get_or_none(key=_OWED)
        if row is None:
            return True
        if not await asyncio.to_thread(self._remove, row.value, hurry):
            return False
        # Not when more was erased meanwhile.
        await Property.filter(key=_OWED, value=row.value).delete()
        return True

    def _remove(self, erasure: str, hurry: bool) -> bool:
        with closing(connect(self._path, _LOCK_MS / 1000)) as connection:
            if self._rewritten != erasure:
                # Before they are dropped too: one that becomes whole meanwhile is in neither list.
                if self._is_being_copied():
                    return False
                self._drop_backups(connection)
                if self._is_being_copied():
                    return False
            if not _empty_log(connection):
                return False
            if self._rewritten == erasure:
                return True
            began = time.monotonic()
            if began < self._rest_until and not hurry:
                return False
            try:
                self._rewrite(connection)
            finally:
                ended = time.monotonic()
                self._rest_until = ended + _SHARE * (ended - began)
            self._rewritten = erasure
            return _empty_log(connection)

    def _rewrite(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        # The index drops what was taken out of it only where it merges its parts.
        connection.execute("INSERT INTO nianlun_search (nianlun_search) VALUES ('optimize')")
        connection.execute("VACUUM")
        connection.execute(f"PRAGMA busy_timeout = {_LOCK_MS}")
        self._renew_backup(connection)

    def _drop_backups(self, connection: sqlite3.Connection) -> None:
        ours = backups(self._path)
        if ours:
            connection.execute(
                "INSERT OR IGNORE INTO nianlun_property (key, value) VALUES (?, '')",
                (_BACKUP_OWED,),
            )
        for copy in ours:
            copy.unlink(missing_ok=True)
        if others := self._other_copies() - self._named:
            self._named |= others
            names = "、".join(sorted(map(str, others)))
            logger.warning(
                f"这些文件不是年轮自己做的，里面可能还有已经收回的话，请自行处理：{names}"
            )

    def _is_being_copied(self) -> bool:
        """Whether somebody is making a backup, which may hold what is erased; what a killed
        process has left of one is removed."""
        leftovers.remove(half_made(self._path), _HALF_MADE)
        return bool(half_made(self._path))

    def _other_copies(self) -> set[Path]:
        """What looks like a copy of the database that an owner made."""
        path = self._path
        own = {path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))}
        beside = {copy for copy in path.parent.iterdir() if path.stem in copy.name}
        found = {*beside, *(path.parent / "backups").glob("*")} - own - {*half_made(path)}
        return {copy for copy in found if copy.is_file()}

    def _renew_backup(self, connection: sqlite3.Connection) -> None:
        query = "SELECT 1 FROM nianlun_property WHERE key = ?"
        if connection.execute(query, (_BACKUP_OWED,)).fetchone():
            back_up(connection, self._path, "next-upgrade")
            connection.execute("DELETE FROM nianlun_property WHERE key = ?", (_BACKUP_OWED,))


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Bring everything from the write-ahead log into the database; False when readers need it."""
    return connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
