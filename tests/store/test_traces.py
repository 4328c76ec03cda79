"""What was taken back leaves the files: pages, write-ahead log, backups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
import os
from pathlib import Path
import random
import sqlite3
import time

from loguru import logger
import pytest
from tortoise.connection import get_connection

from plugins.nonebot_plugin_nianlun.store import chats, database, exclusions, traces
from plugins.nonebot_plugin_nianlun.store.models import Chat, Property
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from tests.store.test_upkeep import DAY, GROUP, SECRET, World, local


@pytest.fixture
async def world(database_file: Path) -> World:
    found = World(database_file)
    await chats.ensure([GROUP], found.clock.now())
    return found


def files_with(world: World, text: str) -> set[str]:
    files = (path for path in world.file.parent.rglob("*") if path.is_file())
    return {path.name for path in files if text.encode() in path.read_bytes()}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Another process in the middle of an export."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM nianlun_message").fetchone()
        yield
        connection.execute("COMMIT")


@contextmanager
def warnings() -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logger.add(lambda line: lines.append(str(line)), level="WARNING")
    try:
        yield lines
    finally:
        logger.remove(handler)


async def noted_and_withdrawn(world: World) -> None:
    """A line that has gone into a note and a day, taken back."""
    message_id = await world.say(f"口令是{SECRET}", local(DAY, 9))
    await world.talk(8, local(DAY, 9, 1))
    world.clock.time = local(DAY.replace(day=28), 5)
    await world.run()
    assert SECRET in str(await world.memory("day", DAY.isoformat()))
    await world.withdraw(message_id)


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        await asyncio.sleep(0.02)


async def test_a_withdrawn_text_leaves_every_file(world: World) -> None:
    await noted_and_withdrawn(world)
    assert SECRET not in world.dump()
    assert files_with(world, SECRET) != set()
    assert await Traces(world.file).remove()
    assert files_with(world, SECRET) == set()
    await world.run()
    assert files_with(world, SECRET) == set()


async def test_a_withdrawn_text_leaves_the_search_index_too(world: World) -> None:
    """The index takes a term out by a mark beside it, and drops both only where it merges."""
    words = [f"zqx{letter}kvbw" for letter in "ad"]
    for number, word in enumerate(words):
        await world.say(f"the password is {word}", local(DAY, 9, number))
    assert await Traces(world.file).remove()
    await world.withdraw("2")
    with closing(sqlite3.connect(world.file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        parts = connection.execute("SELECT block FROM nianlun_search_data").fetchall()
        # Only its end is written out where the term before begins alike.
        assert any(b"dkvbw" in part for (part,) in parts)
    assert await Traces(world.file).remove()
    whole = world.file.read_bytes()
    for word in words:
        assert (word[3:].encode() in whole) is (word != words[1])
    assert files_with(world, words[1]) == set()


async def test_nothing_is_rewritten_where_nothing_was_erased(world: World) -> None:
    await world.talk(3, local(DAY, 9))
    log = world.file.with_name(f"{world.file.name}-wal")
    before = log.stat().st_size
    assert before > 0
    assert await Traces(world.file).remove()
    assert log.stat().st_size == before


async def test_a_reader_holds_it_up_and_does_not_prevent_it(world: World) -> None:
    cleaner = Traces(world.file)
    with reading(world.file):
        await noted_and_withdrawn(world)
        began = time.monotonic()
        assert not await cleaner.remove()
        assert time.monotonic() - began < 2
        # Recording goes on.
        await world.say("还在说", local(DAY, 12))
        assert files_with(world, SECRET) != set()
    assert await cleaner.remove()
    assert files_with(world, SECRET) == set()


async def test_it_happens_by_itself_while_the_bot_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "_COMPANY", 0.01)
    monkeypatch.setattr(traces, "_RETRY", 0.01)
    cleaner = Traces(world.file)
    cleaner.start()
    try:
        with reading(world.file):
            await noted_and_withdrawn(world)
            cleaner.soon()
            await asyncio.sleep(0.5)
            assert files_with(world, SECRET) != set()
            held_up = 0
            for _ in range(20):
                began = time.monotonic()
                await asyncio.sleep(0.01)
                held_up += time.monotonic() - began > 0.15
            # Waiting for the reader in the event loop would hold up every second turn.
            assert held_up < 5
        await until(lambda: files_with(world, SECRET) == set())
    finally:
        await cleaner.stop()


async def test_stopping_does_what_is_owed(world: World) -> None:
    cleaner = Traces(world.file)
    cleaner.start()
    await noted_and_withdrawn(world)
    await cleaner.stop()
    assert files_with(world, SECRET) == set()
    assert not await Property.filter(key="erasing").exists()


async def test_backups_are_made_anew_and_an_owners_own_are_named(world: World) -> None:
    await world.say(f"口令是{SECRET}", local(DAY, 9))
    with closing(database.connect(world.file, 5)) as connection:
        database.back_up(connection, world.file, "0002_more")
    (old,) = database.backups(world.file)
    own = [world.file.with_name("nianlun.db.bak"), old.with_name("my own.db")]
    for copy in own:
        copy.write_bytes(old.read_bytes())
    await world.withdraw("1")
    with warnings() as lines:
        assert await Traces(world.file).remove()
    assert files_with(world, SECRET) == {copy.name for copy in own}
    assert all(any(str(copy) in line for line in lines) for copy in own)
    (new,) = database.backups(world.file)
    assert new != old
    with closing(sqlite3.connect(new)) as connection:
        assert connection.execute("SELECT count(*) FROM nianlun_message").fetchone() == (1,)


async def test_a_backup_that_a_killed_process_left_half_made_goes(world: World) -> None:
    folder = world.file.parent / "backups"
    folder.mkdir()
    half = folder / "20261127T100000-99-before-0007_fact_journal.part"
    half.write_text(SECRET)
    await noted_and_withdrawn(world)
    erasing = Traces(world.file)
    with warnings() as told:
        assert not await erasing.remove()  # somebody may be making it
        long_ago = time.time() - 120
        os.utime(half, (long_ago, long_ago))
        assert await erasing.remove()
    assert files_with(world, SECRET) == set()
    assert not half.exists()
    assert not any(half.name in line for line in told)


async def test_a_large_file_is_not_rewritten_for_every_withdrawal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "_SHARE", 100_000)
    cleaner = Traces(world.file)
    await world.talk(3, local(DAY, 9), SECRET)
    await world.withdraw("1")
    assert await cleaner.remove()
    with closing(database.connect(world.file, 5)) as connection:
        database.back_up(connection, world.file, "0002_more")
    await world.withdraw("2")
    assert not await cleaner.remove()
    assert database.backups(world.file) == []
    assert files_with(world, f"{SECRET}1") == set()
    assert await cleaner.remove(hurry=True)
    assert len(database.backups(world.file)) == 1


async def test_what_is_erased_meanwhile_stays_owed(world: World) -> None:
    await world.talk(3, local(DAY, 9), SECRET)
    await world.withdraw("1")
    cleaner = Traces(world.file)
    wipe = cleaner._remove

    def slow(erasure: str, hurry: bool) -> bool:
        done = wipe(erasure, hurry)
        asyncio.run_coroutine_threadsafe(world.withdraw("2"), loop).result(10)
        return done

    loop = asyncio.get_running_loop()
    cleaner._remove = slow  # pyright: ignore[reportAttributeAccessIssue]
    assert await cleaner.remove()
    assert await Property.filter(key="erasing").exists()
    cleaner._remove = wipe  # pyright: ignore[reportAttributeAccessIssue]
    assert await cleaner.remove(hurry=True)
    assert files_with(world, f"{SECRET}1") == set()


async def test_an_error_that_may_tell_what_was_said_goes_too(world: World) -> None:
    await world.say(f"口令是{SECRET}", local(DAY, 9))
    await chats.note_failure(1, f"模型写的不合格：{SECRET}", world.clock.now())
    await world.withdraw("1")
    chat = await Chat.get(id=1)
    assert chat.failures == 1
    assert chat.last_error
    assert SECRET not in world.dump()


@pytest.mark.parametrize("seed", range(3))
async def test_pages_that_were_rearranged_keep_no_copy(world: World, seed: int) -> None:
    """SQLite moves rows between pages and leaves what it moved in the gaps of the old ones."""
    random.seed(seed)
    words = "天地玄黄宇宙洪荒日月盈昃"
    ids = []
    for number in range(60):
        text = f"标记{number:03}完" + "".join(random.choices(words, k=random.randint(3, 400)))
        ids.append(await world.say(text, local(DAY, 9, number)))
        if number % 20 == 19:
            await world.run(everything=True)
    gone = random.sample(range(60), 20)
    for number in gone:
        await world.withdraw(ids[number])
    await world.run()
    assert await Traces(world.file).remove()
    whole = world.file.read_bytes()
    for number in range(60):
        assert (f"标记{number:03}完".encode() in whole) is (number not in gone)


async def test_an_opt_out_erases_what_was_pending(world: World) -> None:
    await world.say(f"口令是{SECRET}", local(DAY, 9))
    assert await exclusions.opt_out(1, "20001", local(DAY, 10), world.clock.now())
    assert await Traces(world.file).remove()
    assert files_with(world, SECRET) == set()


async def test_what_is_removed_is_overwritten(world: World) -> None:
    found = await get_connection("default").execute_query_dict("PRAGMA secure_delete")
    assert found == [{"secure_delete": 1}]
    with closing(database.connect(world.file, 5)) as connection:
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)
