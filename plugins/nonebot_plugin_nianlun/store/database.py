"""Opening, checking, migrating and closing the one SQLite file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import wraps
import importlib
import os
from pathlib import Path
import pkgutil
import re
import sqlite3
import time
from types import CoroutineType
from typing import Any, ParamSpec, TypeVar

from tortoise import Tortoise
from tortoise.context import TortoiseContext
from tortoise.exceptions import (
    ConfigurationError,
    DBConnectionError,
    IntegrityError,
    OperationalError,
)
from tortoise.migrations.api import migrate
from tortoise.migrations.operations import AddField, CreateModel
from tortoise.models import Model

from ..errors import (
    ConfigError,
    StoreDamaged,
    StoreError,
    StoreLocked,
    StoreTooNew,
    StoreUnavailable,
)
from . import leftovers, models
from .search_schema import SEARCH_OBJECTS, drop_half, keep_few_parts
from .sql import SCHEMA_OBJECTS
from .transaction import in_one_go, is_running

APP = "nianlun"
BUSY_TIMEOUT_MS = 5000
BACKUPS_KEPT = 3
_BROKEN = re.compile("malformed|no such (?:table|column)")

P = ParamSpec("P")
T = TypeVar("T")


def database_path(url: str, data_dir: Path) -> Path:
    """The file of a `sqlite://` address (`sqlite://relative`, `sqlite:///absolute`).

    An empty address means `nianlun.db` in the data folder. Raises ConfigError for others.
    """
    if not url:
        return data_dir / "nianlun.db"
    scheme, separator, rest = url.partition("://")
    if scheme != "sqlite" or not separator or not rest or ":memory:" in rest:
        raise ConfigError(
            f"NIANLUN__DATABASE_URL={url!r} 不对：请写成 sqlite:///绝对路径 或 sqlite://相对路径"
        )
    path = rest.partition("?")[0]
    # `sqlite:///C:/bot.db`: on Windows the third slash is no part of the path.
    return Path(path[1:] if re.match(r"/[A-Za-z]:[/\\]", path) else path)


def _migrations() -> str:
    return f"{__package__}.migrations"


def _known_migrations() -> list[str]:
    package = importlib.import_module(_migrations())
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.name[0].isdigit())


def _config(path: Path, **pragmas: str | int) -> dict[str, Any]:
    credentials = {
        "file_path": str(path),
        "busy_timeout": BUSY_TIMEOUT_MS,
        # What is removed is overwritten, or it would lie in free pages until they are used again.
        "secure_delete": "ON",
        **pragmas,
    }
    return {
        "connections": {
            "default": {"engine": "tortoise.backends.sqlite", "credentials": credentials}
        },
        "apps": {
            APP: {
                "models": [f"{__package__}.models"],
                "migrations": _migrations(),
                "default_connection": "default",
            }
        },
        "use_tz": True,
        "timezone": "UTC",
    }


def _landed(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a migration was applied but the process ended before that was written down."""
    module = importlib.import_module(f"{_migrations()}.{name}")
    for operation in module.Migration.operations or ():
        if isinstance(operation, CreateModel):
            table = (operation.options or {}).get("table")
            query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
            return connection.execute(query, (table,)).fetchone() is not None
        if isinstance(operation, AddField):
            table = f"{APP}_{operation.model_name.lower()}"
            columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
            return any(column[1] == operation.name for column in columns)
    return False


def _pending_migrations(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Check that the file serves, and tell which migrations it still needs."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        applied: set[str] = set()
        if "tortoise_migrations" in tables:
            query = "SELECT name FROM tortoise_migrations WHERE app = ?"
            applied = {row[0] for row in connection.execute(query, (APP,))}
        known = _known_migrations()
        if unknown := sorted(applied - set(known)):
            raise StoreTooNew(
                f"数据库 {path} 由更新版本的年轮写成（{unknown[-1]}），请升级年轮后再启动"
            )
        pending = [name for name in known if name not in applied]
        while pending and "tortoise_migrations" in tables and _landed(connection, pending[0]):
            connection.execute(
                "INSERT INTO tortoise_migrations (app, name, applied_at) VALUES (?, ?, ?)",
                (APP, pending.pop(0), datetime.now(UTC).isoformat(" ")),
            )
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return pending


def _keep_a_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the journal here, not at the ORM's first query.

    The switch is refused at once while anybody reads, whatever the busy timeout; the ORM would
    take that for an empty table of migrations and then wait for its own lock for ever.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """What is wrong with a database file, and what to do."""
    reason = str(error)
    if "locked" in reason or "busy" in reason:
        seconds = BUSY_TIMEOUT_MS // 1000
        return StoreLocked(
            f"数据库 {path} 被另一个进程占住，等了 {seconds} 秒也写不进去：请先关掉占用它的程序"
        )
    if "not a database" in reason:
        return StoreUnavailable(f"{path} 不是 SQLite 数据库：请移开这个文件，或换一个路径")
    if _BROKEN.search(reason):
        return _damaged(reason, path)
    if "no such module: fts5" in reason:
        return StoreUnavailable(
            f"这里的 SQLite（{sqlite3.sqlite_version}）没有 FTS5，年轮要用它来检索："
            "请换用 python.org 或系统自带的 Python，或装上带 FTS5 的 SQLite"
        )
    if "full" in reason or "I/O" in reason:
        return translate(error)  # the disk's: whoever moved the file away would lose a good one
    return StoreUnavailable(f"打不开数据库 {path}：{reason}")


def _damaged(what: str, path: Path | None = None) -> StoreDamaged:
    which = f" {path} " if path else ""
    return StoreDamaged(
        f"数据库{which}坏了（{what}）：请停掉机器人，移开它，再用 bot.py restore 恢复一份备份"
    )


def _missing(connection: sqlite3.Connection) -> str | None:
    """A table or column that the migrations made and somebody took away."""
    for model in vars(models).values():
        if not (isinstance(model, type) and issubclass(model, Model) and model._meta.db_table):
            continue
        table = model._meta.db_table
        there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if not there:
            return f"没有表 {table}"
        if missing := sorted(model._meta.fields_db_projection_reverse.keys() - there):
            return f"表 {table} 没有列 {missing[0]}"
    return None


def _inspect(path: Path, *, finish: bool) -> list[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise StoreUnavailable(f"打不开数据库 {path}：这是一个文件夹")
        with closing(connect(path, BUSY_TIMEOUT_MS / 1000)) as connection:
            pending = _pending_migrations(connection, path)
            _keep_a_write_ahead_log(connection)
            if pending and len(pending) < len(_known_migrations()):
                back_up(connection, path, pending[0])
            if finish:
                if missing := _missing(connection):
                    raise _damaged(missing, path)
                drop_half(connection)
                for statement in (*SCHEMA_OBJECTS, *SEARCH_OBJECTS):
                    connection.execute(statement)
                keep_few_parts(connection)
            return pending
    except OSError as error:
        raise StoreUnavailable(f"打不开数据库 {path}：{error.strerror or error}") from error
    except sqlite3.Error as error:
        raise explain(error, path) from error


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection beside the store's own; waits `timeout` seconds for a lock."""
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None)
    connection.execute("PRAGMA secure_delete=ON")
    return connection


def backups(path: Path) -> list[Path]:
    """The copies of the database that were made here, oldest first."""
    return sorted((path.parent / "backups").glob("*-before-*.db"))


def half_made(path: Path) -> list[Path]:
    """Copies that are being made, or were when a process was killed."""
    return list((path.parent / "backups").glob("*-before-*.part*"))


def back_up(connection: sqlite3.Connection, path: Path, what_follows: str) -> Path:
    """Put a copy beside the database, named after what it is made before."""
    folder = path.parent / "backups"
    folder.mkdir(exist_ok=True)
    leftovers.remove(half_made(path))
    # Another process may be doing the same in the same second.
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    copy = folder / f"{stamp}-before-{what_follows}.db"
    # A copy that is not whole must not take the place of one that is.
    partial = copy.with_suffix(".part")
    try:
        connection.execute("VACUUM INTO ?", (str(partial),))
        partial.replace(copy)
    finally:
        partial.unlink(missing_ok=True)
    # The clock may have been put back: the new one stays, wherever it stands among the others.
    others = [old for old in backups(path) if old != copy]
    for old in others[: max(0, len(others) + 1 - BACKUPS_KEPT)]:
        old.unlink(missing_ok=True)
    return copy


async def prepare(path: Path) -> None:
    """Check the file and bring it to this version; create it when there is none.

    Raises StoreUnavailable, StoreTooNew or StoreLocked, each with one line that says what
    to do. Leaves no connection open.
    """
    pending = await asyncio.to_thread(_inspect, path, finish=False)
    while pending:
        error = await _migrate(path)
        # Another process may have been faster; what counts is where the file stands.
        left = await asyncio.to_thread(_inspect, path, finish=False)
        if left == pending:
            raise StoreUnavailable(f"数据库 {path} 升级失败：{error}") from error
        pending = left
    await asyncio.to_thread(_inspect, path, finish=True)


async def _migrate(path: Path) -> Exception | None:
    # An altered table is rebuilt by dropping it, which must not reach its children.
    config = _config(path, foreign_keys="OFF")
    async with TortoiseContext():
        try:
            await migrate(config=config)
        except (OperationalError, DBConnectionError, sqlite3.Error) as error:
            return error
        finally:
            await Tortoise.close_connections()
    return None


async def open_store(path: Path) -> None:
    """Open the prepared file for the whole process."""
    try:
        await Tortoise.init(config=_config(path, synchronous="FULL"), _enable_global_fallback=True)
        await Tortoise.get_connection("default").execute_query("SELECT 1")
    except ConfigurationError as error:
        raise StoreUnavailable(
            f"另一个插件已经占用了 Tortoise ORM，年轮不能和它装在同一个机器人里：{error}"
        ) from error
    except (OperationalError, DBConnectionError, sqlite3.Error) as error:
        await close_store()
        raise translate(error) from error


def identity(path: Path) -> tuple[int, int] | None:
    """What tells this very file from another of its name; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


async def close_store() -> None:
    """Close every connection; without this the process would never end."""
    await Tortoise.close_connections()


def transactional(
    function: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, CoroutineType[Any, Any, T]]:
    """Run a coroutine function in one transaction, to its end even when the caller is cancelled;
    within another transaction it is a part of that.

    The first statement of the function must be a write: a transaction that reads first cannot wait
    for another process's lock. It runs in the database's thread: nothing in it may wait for
    anything but the database, or touch what belongs to the event loop.
    """

    async def work(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await in_one_go(lambda: function(*args, **kwargs))
        except (IntegrityError, UnicodeError):
            raise
        except (OperationalError, sqlite3.Error) as error:
            raise translate(error) from error

    @wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if is_running():
            return await work(*args, **kwargs)
        # A cancellation between taking the connection's lock and the BEGIN would leave the lock
        # held for ever.
        return await asyncio.shield(asyncio.ensure_future(work(*args, **kwargs)))

    return run


def trouble_of(error: Exception) -> StoreError | None:
    """What the database itself complains of; None for any other error."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OperationalError | DBConnectionError | sqlite3.Error):
        return translate(error)
    return None


def translate(error: Exception) -> StoreError:
    """Tell a lock that was not given from everything else."""
    reason = str(error)
    if "locked" in reason or "busy" in reason:
        return StoreLocked(f"数据库正被另一个进程占用：{reason}")
    if _BROKEN.search(reason):
        return _damaged(reason)
    return StoreUnavailable(f"数据库出错：{reason}")


@contextmanager
def translated() -> Iterator[None]:
    """Raises StoreError for what a plain connection complains of."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error) from error
