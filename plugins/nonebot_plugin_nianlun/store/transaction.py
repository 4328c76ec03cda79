"""A transaction as one piece of work in the database's thread.

To hand a statement over to that thread, and to take its result up, takes longer than most
statements do. So all of a transaction is done there, with whatever is computed between its
statements: who waits for it waits once, and the event loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
import sqlite3
from typing import Any, TypeVar, cast

import aiosqlite
from tortoise.backends.base.client import TransactionalDBClient
from tortoise.backends.sqlite.client import (
    SqliteClient,
    SqliteTransactionContext,
    SqliteTransactionWrapper,
)
from tortoise.connection import get_connection

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]


def is_running() -> bool:
    """Whether this is called from within a transaction."""
    return isinstance(get_connection("default"), TransactionalDBClient)


async def in_one_go(work: Work[T]) -> T:
    """The result of `work` in a transaction, or as a part of the one that is running.

    It may wait for nothing but the database: else RuntimeError is raised. Whatever is raised, of
    `work` nothing is stored.
    """
    client = cast("SqliteClient", get_connection("default"))
    if is_running():
        async with client._in_transaction():
            return await work()
    async with client.acquire_connection() as connection:
        whole = _whole(client, connection, work)
        context, loop = copy_context(), asyncio.get_running_loop()
        # There is no public way to hand over more than a statement.
        return await connection._execute(context.run, _finish, whole, loop)


async def _whole(client: SqliteClient, connection: aiosqlite.Connection, work: Work[T]) -> T:
    transaction = SqliteTransactionWrapper(client)
    transaction._connection = cast("aiosqlite.Connection", _Direct(connection._conn))
    async with SqliteTransactionContext(transaction, asyncio.Lock()):
        return await work()


def _finish(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Go through it from its beginning to its end without a stop."""
    # The ORM gathers what there is none of, for which it wants to know of a loop.
    asyncio._set_running_loop(loop)
    try:
        coroutine.send(None)
        coroutine.throw(RuntimeError("a transaction waits for something beside the database"))
    except StopIteration as done:
        return done.value
    finally:
        asyncio._set_running_loop(None)
        coroutine.close()
    raise RuntimeError("a transaction waits again for something beside the database")


class _Direct:
    """A connection as the ORM uses it, which does at once whatever it is asked for."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes

    async def execute(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    async def executemany(self, query: str, rows: Sequence[Sequence[Any]]) -> sqlite3.Cursor:
        return self._connection.executemany(query, rows)

    async def execute_fetchall(
        self, query: str, values: Sequence[Any] | None = None
    ) -> list[sqlite3.Row]:
        return self._connection.execute(query, values or ()).fetchall()

    async def execute_insert(self, query: str, values: Sequence[Any]) -> tuple[int | None]:
        return (self._connection.execute(query, values).lastrowid,)

    async def commit(self) -> None:
        self._connection.commit()

    async def rollback(self) -> None:
        self._connection.rollback()
