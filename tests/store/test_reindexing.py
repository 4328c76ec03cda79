"""The index is brought up to date in the background, in parts, by whichever process."""

from __future__ import annotations

import asyncio
from contextlib import closing
import json
from pathlib import Path
import signal
import sqlite3
import time

import pytest

from plugins.nonebot_plugin_nianlun.store import facts, reindexing
from plugins.nonebot_plugin_nianlun.store.models import Fact
from plugins.nonebot_plugin_nianlun.store.reindexing import Reindexing
from plugins.nonebot_plugin_nianlun.store.search_schema import SEARCH_OBJECTS
from plugins.nonebot_plugin_nianlun.types import ME
from plugins.nonebot_plugin_nianlun.types import Fact as NewFact
from tests.store.test_search import OTHER, entries, faults, index_terms_of, record, said
from tests.store.test_upkeep import DAY, World, close_days, local
from tests.support.standalone import finish, put_package, start

REINDEX = """
import sqlite3, sys
from contextlib import closing
from nianlun.store import reindexing
from nianlun.store.database import connect
reindexing._PART = 7
with closing(connect(sys.argv[1], 5)) as connection:
    while reindexing.step(connection):
        print("part", flush=True)
"""


@pytest.fixture
async def world(database_file: Path) -> World:
    """Two chats with notes of every kind, facts, and lines that are not to be found."""
    found = World(database_file)
    ids = await close_days(found, 33)
    await found.run()
    await record(said(1, "/记忆", skipped="command"), said(2, "🎉"), said(3, "好", user_id=ME))
    await record(*(said(n, f"海棠{n}", chat=OTHER) for n in range(20)))
    await facts.store(1, [NewFact("preferences", "茶", "只喝绿茶", 200)], local(DAY, 10))
    await found.withdraw(ids[0][0])
    return found


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def without_index(path: Path) -> None:
    """As a version before the index left it."""
    execute(
        path,
        "DROP TABLE nianlun_search_terms",
        "DROP TABLE nianlun_search",
        "DELETE FROM nianlun_property WHERE key = 'search_index'",
    )


def state(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT value FROM nianlun_property WHERE key = 'search_index'"
        return json.loads(connection.execute(query).fetchone()[0])


def all_steps(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        while reindexing.step(connection):
            pass


async def rebuilt(path: Path) -> None:
    from plugins.nonebot_plugin_nianlun.store import database

    without_index(path)
    await database.prepare(path)
    assert entries(path) == []
    all_steps(path)


async def test_a_rebuilt_index_is_the_one_that_grew(world: World) -> None:
    grown, terms = entries(world.file), index_terms_of(world.file)
    assert len(grown) > 100
    assert faults(world.file) == faults(world.file, 2) == []
    await rebuilt(world.file)
    assert entries(world.file) == grown
    assert index_terms_of(world.file) == terms
    assert state(world.file) == [reindexing.TERMS_VERSION]


async def test_what_differs_is_set_right_and_nothing_else(world: World) -> None:
    before = entries(world.file)
    execute(
        world.file,
        "UPDATE nianlun_property SET value = '[0]' WHERE key = 'search_index'",
        "DELETE FROM nianlun_search_terms WHERE id % 3 = 0",
        "INSERT INTO nianlun_search (rowid, terms)"
        " SELECT id + 7000, terms FROM nianlun_search_terms",
        "INSERT INTO nianlun_search_terms SELECT id + 7000, terms FROM nianlun_search_terms",
    )
    assert faults(world.file) != []
    told: list[int] = []
    await reindexing.rebuild(world.file, [1], told.append)
    assert faults(world.file) == []
    assert told[-1] >= sum(1 for id_, _ in before if id_ < 2 << 39)
    assert faults(world.file, 2) != []
    await reindexing.rebuild(world.file, [2], told.append)
    assert entries(world.file) == before


async def test_a_new_version_of_terms_begins_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_steps(world.file)
    monkeypatch.setattr(reindexing, "TERMS_VERSION", 999)
    with closing(sqlite3.connect(world.file)) as connection:
        assert not reindexing.is_complete(connection)
    all_steps(world.file)
    assert state(world.file) == [999]
    assert faults(world.file) == []


async def test_it_goes_on_where_it_was_and_beside_what_is_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindexing, "_PART", 5)
    monkeypatch.setattr(reindexing, "_PAUSE", 0.001)
    all_steps(world.file)
    grown = entries(world.file)
    execute(
        world.file,
        "DELETE FROM nianlun_search_terms",
        "DELETE FROM nianlun_property WHERE key = 'search_index'",
    )
    work = Reindexing(world.file)
    work.start()
    await asyncio.sleep(0.05)
    await work.stop()
    begun = state(world.file)
    assert len(begun) > 1
    await record(said(77, "夜里下雨了"))
    await Fact.all().delete()
    work.start()
    end = time.monotonic() + 10
    while state(world.file) != [reindexing.TERMS_VERSION]:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
    await work.stop()
    assert faults(world.file) == faults(world.file, 2) == []
    assert len(entries(world.file)) == len(grown)


async def test_two_processes_and_a_kill(world: World, tmp_path: Path) -> None:
    put_package(tmp_path)
    all_steps(world.file)
    grown = entries(world.file)
    execute(
        world.file,
        "DELETE FROM nianlun_search_terms",
        "DELETE FROM nianlun_property WHERE key = 'search_index'",
    )
    killed = start(tmp_path, REINDEX, world.file)
    assert killed.stdout is not None
    killed.stdout.readline()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    processes = [start(tmp_path, REINDEX, world.file) for _ in range(2)]
    results = [finish(process) for process in processes]
    assert [status for status, _, _ in results] == [0, 0], results
    assert entries(world.file) == grown
    assert state(world.file) == [reindexing.TERMS_VERSION]


async def test_a_database_that_is_locked_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindexing, "_LOCK_MS", 10)
    monkeypatch.setattr(reindexing, "_RETRY", 0.01)
    work = Reindexing(world.file)
    with closing(sqlite3.connect(world.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        work.start()
        await asyncio.sleep(0.2)
        other.execute("ROLLBACK")
    end = time.monotonic() + 10
    while not _has_state(world.file) or len(state(world.file)) > 1:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
    await work.stop()


def _has_state(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT 1 FROM nianlun_property WHERE key = 'search_index'"
        return connection.execute(query).fetchone() is not None


@pytest.mark.parametrize(
    "damage",
    [
        ("DROP TABLE nianlun_search", *SEARCH_OBJECTS),
        ("DELETE FROM nianlun_search_data WHERE id > 10",),
        ("UPDATE nianlun_search_data SET block = zeroblob(20) WHERE id > 10",),
        ("DELETE FROM nianlun_search_terms",),
    ],
)
async def test_a_damaged_index_is_made_anew_for_every_chat(
    world: World, damage: tuple[str, ...]
) -> None:
    all_steps(world.file)
    grown, terms = entries(world.file), index_terms_of(world.file)
    execute(world.file, *damage)
    await reindexing.rebuild(world.file, [1, 2], lambda _: None)
    assert (entries(world.file), index_terms_of(world.file)) == (grown, terms)


async def test_making_it_anew_for_one_chat_keeps_the_others(world: World) -> None:
    grown = entries(world.file)
    execute(world.file, "DELETE FROM nianlun_search_data WHERE id > 10")
    await reindexing.rebuild(world.file, [1], lambda _: None)
    assert entries(world.file) == grown
    assert state(world.file) == [reindexing.TERMS_VERSION]


@pytest.mark.parametrize("table", ["nianlun_search", "nianlun_search_terms"])
async def test_half_an_index_is_filled_again_after_a_start(world: World, table: str) -> None:
    from plugins.nonebot_plugin_nianlun.store import database

    all_steps(world.file)
    grown, terms = entries(world.file), index_terms_of(world.file)
    execute(world.file, f"DROP TABLE {table}")
    await database.prepare(world.file)
    all_steps(world.file)
    assert (entries(world.file), index_terms_of(world.file)) == (grown, terms)
