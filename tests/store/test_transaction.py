"""A transaction is one piece of work, and of one that does not come to its end nothing is left."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import aiosqlite
import pytest
from tortoise.connection import get_connection

from plugins.nonebot_plugin_nianlun.errors import StoreUnavailable
from plugins.nonebot_plugin_nianlun.store import sql
from plugins.nonebot_plugin_nianlun.store.database import transactional
from plugins.nonebot_plugin_nianlun.store.models import Property

pytestmark = pytest.mark.usefixtures("database_file")


async def stored() -> dict[str, str]:
    rows = await Property.filter(key__startswith="test").order_by("key")
    return {row.key: row.value for row in rows}


@transactional
async def write(key: str, value: str = "1") -> str:
    await sql.set_property(key, value)
    return value


async def test_all_of_it_is_handed_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    execute, handed_over, threads = aiosqlite.Connection._execute, 0, set()

    async def counted(self: aiosqlite.Connection, *arguments: Any, **named: Any) -> Any:
        nonlocal handed_over
        handed_over += 1
        return await execute(self, *arguments, **named)

    @transactional
    async def several() -> int:
        for number in range(5):
            await sql.set_property(f"test{number}", "1")
            threads.add(threading.current_thread())
        return await Property.filter(key__startswith="test").count()

    monkeypatch.setattr(aiosqlite.Connection, "_execute", counted)
    assert await several() == 5
    assert handed_over == 1
    assert threading.main_thread() not in threads


async def test_what_raises_leaves_nothing() -> None:
    @transactional
    async def fail() -> None:
        await sql.set_property("test", "1")
        raise LookupError("on the way")

    with pytest.raises(LookupError, match="on the way"):
        await fail()
    assert await stored() == {}
    assert await write("test") == "1"


async def test_a_statement_that_fails_is_told_as_trouble_of_the_store() -> None:
    @transactional
    async def fail() -> None:
        await sql.set_property("test", "1")
        await sql._rows("SELECT one FROM nowhere")

    with pytest.raises(StoreUnavailable, match="nowhere"):
        await fail()
    assert await stored() == {}


@pytest.mark.parametrize("stubborn", [False, True])
async def test_waiting_for_anything_else_is_refused(*, stubborn: bool) -> None:
    @transactional
    async def wait() -> None:
        await sql.set_property("test", "1")
        try:
            await asyncio.sleep(0)
        except RuntimeError:
            if not stubborn:
                raise
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="beside the database"):
        await wait()
    assert await stored() == {}
    assert await write("test") == "1"


async def test_one_within_another_is_a_part_of_it() -> None:
    @transactional
    async def inner(*, fails: bool) -> None:
        await sql.set_property(f"test inner {fails}", "1")
        if fails:
            raise LookupError

    @transactional
    async def outer(*, fails: bool) -> None:
        await sql.set_property("test outer", "1")
        await inner(fails=False)
        with pytest.raises(LookupError):
            await inner(fails=True)
        if fails:
            raise ValueError("after it")

    with pytest.raises(ValueError, match="after it"):
        await outer(fails=True)
    assert await stored() == {}
    await outer(fails=False)
    assert set(await stored()) == {"test inner False", "test outer"}


async def test_it_comes_to_its_end_when_its_caller_is_cancelled() -> None:
    tasks = [asyncio.create_task(write(f"test{number}")) for number in range(20)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    # This one waits for the connection behind all of them.
    await write("test after")
    assert len(await stored()) == 21


async def test_nothing_comes_behind_a_statement_that_found_no_room() -> None:
    """SQLite undoes the whole transaction then, and what came behind it would stand alone."""
    query = get_connection("default").execute_query
    (pages,) = tuple((await query("PRAGMA page_count"))[1][0])

    @transactional
    async def fill() -> None:
        await sql.set_property("test before", "1")
        await sql.set_property("test large", "x" * 9_000_000)
        await sql.set_property("test behind", "1")

    await query(f"PRAGMA max_page_count = {pages + 20}")
    with pytest.raises(StoreUnavailable, match="full"):
        await fill()
    assert await stored() == {}
    assert await write("test after") == "1"
