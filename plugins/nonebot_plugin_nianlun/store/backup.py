"""The whole database, copied to a file and brought back, also while a bot uses it.

A restored database comes into the file that is there by SQLite's own copying, as one transaction:
who reads meanwhile goes on with what was, who is killed leaves what was, and every open connection
sees what is new with its next query. What was taken back since the copy was made stays so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
import os
from pathlib import Path
import shutil
import sqlite3
import tempfile
import time
from typing import cast
from uuid import uuid4

from tortoise.exceptions import OperationalError

from ..errors import StoreError, StoreUnavailable
from . import carrying_over, chats, leftovers, speakers
from .database import BUSY_TIMEOUT_MS, back_up, connect, explain, prepare, translate
from .models import Property

RESTORED = "restored"
"""The property that names the last restoring; whoever has it open forgets what it remembered."""
PAGES = 2000
"""Copied in one go."""
_STAGE = ".restoring-"
"""Where a copy is made ready, beside the database."""
_WAIT = 60.0
"""Seconds that the copying may wait for others to stop writing."""

Told = Callable[[int, int], None]
"""Of how many pages how many are left."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restoring did."""

    kept: Path | None
    """The copy of what was there before; None when there was nothing."""
    taken_back: int
    """Withdrawals and wishes to be forgotten that the copy did not know of yet."""
    chats: int
    messages: int


async def back_up_to(path: Path, target: Path) -> int:
    """Copy the database as it is now; returns the bytes. Raises StoreError.

    The copy is whole or not there, and a file of that name is replaced only by a whole one.
    """
    return await asyncio.to_thread(_back_up_to, path, target)


def _back_up_to(path: Path, target: Path) -> int:
    partial = target.with_name(f"{target.name}.part")
    try:
        may_replace(target, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        with closing(connect(path, BUSY_TIMEOUT_MS / 1000)) as connection:
            connection.execute("VACUUM INTO ?", (str(partial),))
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(target)
        return target.stat().st_size
    except OSError as error:
        raise StoreUnavailable(f"写不了 {target}：{error.strerror or error}") from error
    except sqlite3.Error as error:
        raise translate(error) from error
    finally:
        with suppress(OSError):  # a name that is too long cannot even be removed
            partial.unlink(missing_ok=True)


def may_replace(target: Path, path: Path) -> None:
    """Raise StoreUnavailable where a file must not take the place of what is there: of the
    database in use or what SQLite keeps beside it, or of a device, which is more than a file.
    Raises OSError where that cannot be seen."""
    name = path.resolve().name
    if target.resolve().parent == path.resolve().parent and target.resolve().name in {
        name + end for end in ("", "-wal", "-shm", "-journal")
    }:
        raise StoreUnavailable(f"{target} 就是正在用的数据库，请换一个名字")
    if target.exists() and not target.is_file() and not target.is_dir():
        raise StoreUnavailable(f"{target} 不是普通的文件，没有动它：请换一个名字")


async def restore(copy: Path, path: Path, told: Told = lambda left, total: None) -> Restored:
    """Put a copy in place of what the database holds. No store may be open in this process.

    What is there is copied into `backups/` first. Raises StoreError: then nothing has changed.
    """
    there = await asyncio.to_thread(_look_at, copy, path)
    if there:
        await prepare(path)
    await asyncio.to_thread(tidy_up, path)
    try:
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=_STAGE, dir=path.parent))
    except OSError as error:
        raise StoreUnavailable(f"恢复不了：{error.strerror or error}") from error
    fresh = folder / path.name
    try:
        return await _restore(copy, fresh, path, told, there=there)
    except StoreError as error:
        raise type(error)(str(error).replace(str(fresh), str(copy))) from error
    except OSError as error:
        raise StoreUnavailable(f"恢复不了：{error.strerror or error}") from error
    except (OperationalError, sqlite3.Error, ValueError) as error:
        # It is not what any version once wrote, or there is no room for it.
        raise StoreUnavailable(f"恢复不了 {copy}：{error}") from error
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _restore(copy: Path, fresh: Path, path: Path, told: Told, *, there: bool) -> Restored:
    await asyncio.to_thread(_read, copy, fresh)
    await _make_ready(fresh)
    known = await asyncio.to_thread(_taken_back, path) if there else []
    taken_back = await carrying_over.carry_over(fresh, known)
    kept, (chat_count, messages) = await asyncio.to_thread(_exchange, fresh, path, told)
    if kept is not None:
        # Somebody may have taken something back while the copy was made ready.
        now = await asyncio.to_thread(carrying_over.known, kept)
        if now != known:
            taken_back += await carrying_over.carry_over(path, now)
    return Restored(kept, taken_back, chat_count, messages)


async def _make_ready(fresh: Path) -> None:
    """Bring the copy to this version. Raises StoreError."""
    try:
        await prepare(fresh)
    except StoreUnavailable as error:
        told = str(error)
        if str(fresh) not in told:
            raise  # of the disk, or of this machine
        # What to do is said of a database in use, and this is a copy of one.
        raise StoreUnavailable(f"{told.partition('：请')[0]}，不能用来恢复") from error


def _taken_back(path: Path) -> list[carrying_over.Known]:
    try:
        return carrying_over.known(path)
    except sqlite3.Error as error:
        # Not of the copy, which was found whole: of what it is to replace.
        raise explain(error, path) from error


def _look_at(copy: Path, path: Path) -> bool:
    """Whether there is a database to be replaced.

    Raises StoreUnavailable when the copy is no whole database of ours.
    """
    try:
        if not copy.is_file():
            raise StoreUnavailable(f"没有 {copy} 这个文件")
        if path.exists() and path.samefile(copy):
            raise StoreUnavailable(f"{copy} 就是正在用的数据库")
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(_open(copy)) as connection:
            tables = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'nianlun_chat'"
            ours = connection.execute(tables).fetchone()[0]
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"{copy} 不是能用的备份：{error}") from error
    if not ours:
        raise StoreUnavailable(f"{copy} 不是年轮的数据库")
    if state != "ok":
        raise StoreUnavailable(f"{copy} 坏了，不能用来恢复：{' '.join(state.split())}")
    return path.exists()


def _open(copy: Path) -> sqlite3.Connection:
    """A copy as it lies there, with its log if somebody copied the files of a running bot.

    Without any it may lie where nothing can be written, not even a lock.
    """
    in_use = any(copy.with_name(f"{copy.name}{end}").exists() for end in ("-wal", "-journal"))
    how = "mode=ro" if in_use else "mode=ro&immutable=1"
    return sqlite3.connect(f"{copy.resolve().as_uri()}?{how}", uri=True)


def _read(copy: Path, fresh: Path) -> None:
    with closing(_open(copy)) as source, closing(sqlite3.connect(fresh)) as target:
        source.backup(target)


def _exchange(fresh: Path, path: Path, told: Told) -> tuple[Path | None, tuple[int, int]]:
    """Bring the copy into the place of the database; returns where that is kept, and counts."""
    try:
        with closing(connect(fresh, BUSY_TIMEOUT_MS / 1000)) as source:
            source.execute(
                "INSERT INTO nianlun_property (key, value) VALUES (?, ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (RESTORED, uuid4().hex),
            )
            # Leases are somebody's who knows nothing of this state.
            source.execute("DELETE FROM nianlun_lease")
            counts = tuple(
                source.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
                for table in ("nianlun_chat", "nianlun_message")
            )
            there = path.exists()
            with closing(connect(path, BUSY_TIMEOUT_MS / 1000)) as target:
                kept = _keep(source, target, path) if there else None
                copy_into(source, target, told)
        return kept, cast("tuple[int, int]", counts)
    except sqlite3.Error as error:
        raise explain(error, path) from error


def _keep(source: sqlite3.Connection, target: sqlite3.Connection, path: Path) -> Path:
    """See that those who have the database open can go on with the copy, and keep what is there."""
    query = "SELECT id, self_id, kind, peer_id FROM nianlun_chat"
    theirs = {row[0]: row[1:] for row in source.execute(query)}
    numbers = {row[1:]: row[0] for row in source.execute(query)}
    moved = any(
        theirs.get(id_, key) != tuple(key) or numbers.get(tuple(key), id_) != id_
        for id_, *key in target.execute(query)
    )
    if moved and not _is_alone(target):
        raise StoreUnavailable(
            "这份备份来自另一个数据库，机器人开着时换上去会把会话弄混：请先停掉机器人，再恢复"
        )
    return back_up(target, path, f"restore-{uuid4().hex[:6]}")


def _is_alone(connection: sqlite3.Connection) -> bool:
    """Whether nobody else has the database open: only then its journal can be switched."""
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.OperationalError:
        return False
    connection.execute("PRAGMA journal_mode=WAL")
    return True


def copy_into(source: sqlite3.Connection, target: sqlite3.Connection, told: Told) -> None:
    """Copy a database over another in one transaction. Raises StoreError and sqlite3.Error."""
    until = time.monotonic() + _WAIT
    before = -1

    def look(status: int, left: int, total: int) -> None:
        nonlocal until, before
        if left != before:
            before, until = left, time.monotonic() + _WAIT
        elif time.monotonic() > until:
            raise StoreError("数据库一直有人在写，没有恢复成：请稍后再试，或先停掉机器人")
        told(left, total)

    source.backup(target, pages=PAGES, progress=look, sleep=0.05)


def tidy_up(path: Path) -> None:
    """Remove what restorings have left that were killed: each holds a copy of the database."""
    leftovers.remove(path.parent.glob(f"{_STAGE}*"))


class Restorations:
    """Notices that the open database was restored by another process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: str | None = None

    async def start(self) -> None:
        await asyncio.to_thread(tidy_up, self._path)
        self._seen = await self._now()

    async def look(self) -> bool:
        """Forget what was remembered of the database if it is another now; True if it is."""
        await asyncio.to_thread(tidy_up, self._path)
        try:
            now = await self._now()
        except (OperationalError, sqlite3.Error):
            return False  # what cannot be read now is read at the next look
        if now == self._seen:
            return False
        self._seen = now
        chats.forget_cached_ids()
        speakers.forget_cached_names()
        return True

    async def _now(self) -> str | None:
        row = await Property.get_or_none(key=RESTORED)
        return None if row is None else row.value


def default_place(path: Path) -> Path:
    """Where a copy goes that nobody named a place for."""
    return path.parent / "backups" / f"{path.stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.db"
