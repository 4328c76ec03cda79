"""How the database is doing, for a person who wants to know what to do."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import datetime
from pathlib import Path
import sqlite3
import time
from typing import NamedTuple

from .connections import CONNECTED, Connection, read
from .database import BUSY_TIMEOUT_MS, connect, translated
from .gaps import ALIVE
from .reindexing import is_complete
from .search_schema import is_sound

_PATIENCE = 20.0
"""Seconds in which the pages are looked through; a large database takes longer."""
_STEPS = 100_000
"""Steps of SQLite's machine between two looks at the clock."""


class Diagnosis(NamedTuple):
    version: str
    """The newest migration."""
    damage: str | None
    """What SQLite finds wrong; None for nothing."""
    looked_through: bool
    """The whole file could be looked through in time."""
    size: int
    """In bytes, with what waits in the write-ahead log."""
    index_sound: bool
    index_complete: bool
    peers: dict[str, datetime]
    """Bot accounts, and until when all that each of them was told is on record."""
    connections: dict[str, Connection]
    """Bot accounts that a process says it has connected."""


def is_missing(path: Path) -> bool:
    """Whether nothing is there. What cannot be seen is left to whoever opens it to explain."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


async def examine(path: Path) -> Diagnosis:
    """Raises StoreError when the file cannot be read or written at all."""
    with translated():
        return await asyncio.to_thread(_examine, path)


def _examine(path: Path) -> Diagnosis:
    with closing(connect(path, BUSY_TIMEOUT_MS / 1000)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        version = connection.execute("SELECT MAX(name) FROM tortoise_migrations").fetchone()[0]
        damage, looked_through = _damage(connection)
        log = path.with_name(f"{path.name}-wal")
        return Diagnosis(
            version=version,
            damage=damage,
            looked_through=looked_through,
            peers={
                self_id: datetime.fromisoformat(value)
                for self_id, value in _properties(connection, ALIVE)
            },
            connections={
                self_id: read(value) for self_id, value in _properties(connection, CONNECTED)
            },
            index_sound=is_sound(connection),
            index_complete=is_complete(connection),
            size=path.stat().st_size + (log.stat().st_size if log.exists() else 0),
        )


def _properties(connection: sqlite3.Connection, kind: str) -> list[tuple[str, str]]:
    """Those of a kind: what stands behind it in their keys, and their values."""
    query = "SELECT substr(key, ?), value FROM nianlun_property WHERE key LIKE ? ORDER BY key"
    return connection.execute(query, (len(kind) + 1, f"{kind}%")).fetchall()


def _damage(connection: sqlite3.Connection) -> tuple[str | None, bool]:
    until = time.monotonic() + _PATIENCE
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        (told,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return None, False
    finally:
        connection.set_progress_handler(None, 0)
    return (None if told == "ok" else str(told)), True
