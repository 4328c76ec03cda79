"""A database that is full, or held by another process: told in a line, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
import sqlite3
import time
from typing import Any

import nonebot
import pytest
from tortoise import Tortoise

from plugins.nonebot_plugin_nianlun.config import Config
from plugins.nonebot_plugin_nianlun.errors import StoreError, StoreLocked
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming
from tests.support.scripted_writer import SetClock

GROUP = ChatKey("10001", "group", "123")
AT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


def line(number: int, text: str = "早安") -> Incoming:
    segments = [{"type": "text", "data": {"text": f"{text}{number}"}}]
    at = AT + timedelta(seconds=number)
    return Incoming(GROUP, at, "20001", "小鹿", segments, "event", message_id=str(number))


class World:
    """The running product on a real file, with the offline writer."""

    def __init__(self, file: Path) -> None:
        self.file = file
        clock = SetClock(AT + timedelta(hours=1))
        driver = nonebot.get_driver().config
        self.nianlun = Nianlun(Config.model_validate({"nianlun": {}}), file.parent, driver, clock)

    def rows(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.file)) as connection:
            return connection.execute(query).fetchall()

    async def pragma(self, text: str) -> None:
        await Tortoise.get_connection("default").execute_query(f"PRAGMA {text}")

    async def hear(self, *lines: Incoming) -> None:
        """Accept these and wait until they are on disk. Raises StoreError."""
        for one in lines:
            self.nianlun.recorder.accept(one)
        await self.nianlun.recorder.flush()

    async def stored(self, within: float = 20) -> None:
        """Wait until the recorder has got rid of everything by itself."""
        end = time.monotonic() + within
        while self.nianlun.recorder.waiting:
            assert time.monotonic() < end
            await asyncio.sleep(0.05)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Another process writes and does not come to an end."""
        with closing(sqlite3.connect(self.file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")


@pytest.fixture
async def world(database_file: Path) -> AsyncIterator[World]:
    found = World(database_file)
    found.nianlun.recorder.start()
    await found.pragma("busy_timeout = 50")
    yield found
    await found.pragma("max_page_count = 1000000")
    await found.nianlun.jobs.stop()
    await found.nianlun.recorder.stop()


async def test_a_full_disk_is_told_and_what_was_heard_is_kept_for_later(world: World) -> None:
    recorder = world.nianlun.recorder
    await world.hear(line(1))
    await world.pragma(f"max_page_count = {world.rows('PRAGMA page_count')[0][0] + 4}")
    with pytest.raises(StoreError, match="full"):
        await world.hear(*(line(number, "很长的话" * 20) for number in range(2, 300)))
    assert (await world.nianlun.status(GROUP)).last_error is not None
    assert recorder.waiting == 298
    assert world.rows("SELECT count(*) FROM nianlun_message") == [(1,)]
    await world.pragma("max_page_count = 1000000")
    await world.stored()
    assert (await world.nianlun.status(GROUP)).last_error is None
    assert world.rows("SELECT message_id FROM nianlun_message ORDER BY seq") == [
        (str(number),) for number in range(1, 300)
    ]


async def test_a_full_disk_leaves_notes_owed(world: World) -> None:
    await world.hear(*map(line, range(60)))
    pages = world.rows("PRAGMA page_count")[0][0]
    with closing(sqlite3.connect(world.file)) as connection, connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON nianlun_activity BEGIN"
            " INSERT INTO padding VALUES (randomblob(1000000)); END"
        )
        connection.execute("CREATE TABLE padding (x)")
    await world.pragma(f"max_page_count = {pages + 20}")
    with pytest.raises(StoreError, match="full"):
        await world.nianlun.jobs.tidy()
    status = await world.nianlun.status(GROUP)
    assert (status.pending, status.activities) == (60, 0)
    assert "full" in str(status.last_error)
    with closing(sqlite3.connect(world.file)) as connection, connection:
        connection.execute("DROP TRIGGER full")
    await world.pragma("max_page_count = 1000000")
    await world.nianlun.jobs.tidy()
    status = await world.nianlun.status(GROUP)
    assert (status.pending, status.last_error) == (0, None)
    assert (await world.nianlun.inspect(GROUP)).findings == ()


async def test_a_database_locked_for_long_is_told_and_the_work_done_later(world: World) -> None:
    await world.hear(*map(line, range(60)))
    with world.locked():
        with pytest.raises(StoreLocked):
            await world.nianlun.jobs.tidy()
        with pytest.raises(StoreError):
            await world.hear(line(100))
        assert world.rows("SELECT count(*) FROM nianlun_activity") == [(0,)]
    await world.stored()
    await world.nianlun.jobs.tidy()
    assert world.rows("SELECT count(*) FROM nianlun_message WHERE activity_id IS NULL") == [(0,)]
    assert world.rows("SELECT count(*) FROM nianlun_lease") == [(0,)]
