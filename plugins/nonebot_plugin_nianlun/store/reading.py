"""Reading in a thread and on a connection of its own, which never waits for whoever writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
import sqlite3
import threading
from typing import TypeVar

from .database import BUSY_TIMEOUT_MS, translated

T = TypeVar("T")


class ReadThread:
    """Does one piece of reading after the other, each within one view of the database."""

    def __init__(self, path: Path, name: str) -> None:
        """Opens nothing yet. May be closed and used again."""
        self._path = path
        self._name = name
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._running: object | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T], *, to_its_end: bool = False) -> T:
        """The result of `work`. Whoever is cancelled while waiting ends it, unless it is to be
        done `to_its_end`. Raises StoreError."""
        token = object()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, self._work, work, token)
        try:
            return await future
        except asyncio.CancelledError:
            if not to_its_end:
                self._interrupt(token)
            raise

    async def close(self) -> None:
        """End whatever is running, and close the connection."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.interrupt()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._thread = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _interrupt(self, token: object) -> None:
        with self._lock:
            # Not the work of somebody else that has begun since.
            if self._running is token and self._connection is not None:
                self._connection.interrupt()

    def _work(self, work: Callable[[sqlite3.Connection], T], token: object) -> T:
        with translated():
            connection = self._connected()
            with self._lock:
                self._running = token
            try:
                # One view for all of it: what is taken back meanwhile is found whole or not at all.
                connection.execute("BEGIN")
                return work(connection)
            finally:
                with self._lock:
                    self._running = None
                with suppress(sqlite3.Error):
                    connection.execute("COMMIT")

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = sqlite3.connect(
                self._path,
                timeout=BUSY_TIMEOUT_MS / 1000,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.execute("PRAGMA query_only = ON")
            self._connection = connection
        return self._connection
