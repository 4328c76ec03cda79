"""Opening the one file: fresh, twice, at once, broken, too new, locked, half migrated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
import os
from pathlib import Path
import re
import shutil
import sqlite3
import threading
import time
from typing import Any

import pytest
from tortoise import Tortoise
from tortoise.connection import get_connection
from tortoise.context import TortoiseContext

from plugins.nonebot_plugin_nianlun.errors import (
    ConfigError,
    StoreLocked,
    StoreTooNew,
    StoreUnavailable,
)
from plugins.nonebot_plugin_nianlun.store import database
from plugins.nonebot_plugin_nianlun.store.models import Chat
from tests.support.standalone import finish, put_package, start

ROOT = Path(__file__).resolve().parents[2]
PREPARE = """
import asyncio, sys
from pathlib import Path
from nianlun.store import database
asyncio.run(database.prepare(Path(sys.argv[1])))
"""
KNOWN = database._known_migrations()
ADD_CHAT = (
    "INSERT INTO nianlun_chat (self_id, kind, peer_id, created_at)"
    " VALUES ('1', 'group', '2', '2026-11-29 00:00:00+00:00')"
)


def backups_beside(path: Path) -> list[Path]:
    return sorted((path.parent / "backups").glob("*"))


def hash_of(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def query(path: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


@pytest.fixture
def copied(prepared_database: Path, tmp_path: Path) -> Path:
    """A closed database of this version."""
    return Path(shutil.copy(prepared_database, tmp_path / "nianlun.db"))


@pytest.fixture(params=[bytes(range(256)) * 64, "年轮".encode() * 1000], ids=["bytes", "text"])
def garbage(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "nianlun.db"
    path.write_bytes(request.param)
    return path


@pytest.fixture
def damaged(copied: Path) -> Path:
    content = copied.read_bytes()
    copied.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    return copied


@pytest.fixture
def closed_folder(tmp_path: Path) -> Iterator[Path]:
    tmp_path.chmod(0o500)
    yield tmp_path
    tmp_path.chmod(0o700)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 100)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("", "data/nianlun.db"),
        ("sqlite://some/file.db", "some/file.db"),
        ("sqlite:///var/lib/file.db", "/var/lib/file.db"),
        ("sqlite://file.db?mode=rw", "file.db"),
    ],
)
def test_addresses(url: str, path: str) -> None:
    assert database.database_path(url, Path("data")) == Path(path)


@pytest.mark.parametrize(
    "url", ["postgres://host/db", "sqlite://", "sqlite://:memory:", "nianlun.db", "sqlite:x"]
)
def test_an_address_that_cannot_serve_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(ConfigError, match="NIANLUN__DATABASE_URL"):
        database.database_path(url, Path("data"))


async def test_a_fresh_file_is_created_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "nianlun.db"
    await database.prepare(path)
    tables = {name for (name,) in query(path, "SELECT name FROM sqlite_master")}
    wanted = {"nianlun_message", "nianlun_memory", "nianlun_message_pending", "nianlun_search"}
    assert wanted <= tables
    assert backups_beside(path) == []


async def test_preparing_twice_changes_nothing(copied: Path) -> None:
    query(copied, ADD_CHAT)
    before = query(copied, "SELECT sql FROM sqlite_master ORDER BY name")
    await database.prepare(copied)
    await database.prepare(copied)
    assert query(copied, "SELECT sql FROM sqlite_master ORDER BY name") == before
    assert query(copied, "SELECT count(*) FROM nianlun_chat") == [(1,)]
    assert len(query(copied, "SELECT name FROM tortoise_migrations")) == len(KNOWN)
    assert backups_beside(copied) == []


def test_several_processes_prepare_one_file_at_once(tmp_path: Path) -> None:
    put_package(tmp_path)
    for attempt in range(3):
        path = tmp_path / f"{attempt}.db"
        processes = [start(tmp_path, PREPARE, path) for _ in range(4)]
        results = [finish(process) for process in processes]
        assert [status for status, _, _ in results] == [0] * 4, results
        assert len(query(path, "SELECT name FROM tortoise_migrations")) == len(KNOWN)
        assert query(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_file_that_is_no_database(garbage: Path) -> None:
    before = hash_of(garbage)
    with pytest.raises(StoreUnavailable, match="不是 SQLite 数据库"):
        await database.prepare(garbage)
    assert hash_of(garbage) == before


async def test_a_damaged_database(damaged: Path) -> None:
    with pytest.raises(StoreUnavailable, match=re.escape(str(damaged))) as caught:
        await database.prepare(damaged)
    assert len(str(caught.value).splitlines()) == 1


async def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="文件夹"):
        await database.prepare(tmp_path)


async def test_a_folder_that_cannot_be_made(garbage: Path) -> None:
    for path in (garbage / "nianlun.db", garbage / "deeper" / "nianlun.db"):
        with pytest.raises(StoreUnavailable, match=re.escape(str(path))):
            await database.prepare(path)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere"
)
async def test_a_folder_that_may_not_be_written(closed_folder: Path) -> None:
    with pytest.raises(StoreUnavailable):
        await database.prepare(closed_folder / "nianlun.db")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fresh", [True, False])
async def test_a_lock_that_is_never_given(copied: Path, fresh: bool) -> None:
    path = copied.with_name("other.db") if fresh else copied
    with locked(path), pytest.raises(StoreLocked, match=re.escape(str(path))):
        await database.prepare(path)
    await database.prepare(path)


async def test_a_reader_who_comes_before_the_migrations_is_no_endless_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "nianlun.db"
    migrate = database.migrate

    async def read_meanwhile(**options: Any) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM sqlite_master").fetchall()
            await asyncio.wait_for(migrate(**options), 20)

    monkeypatch.setattr(database, "migrate", read_meanwhile)
    await database.prepare(path)
    assert query(path, "PRAGMA journal_mode") == [("wal",)]
    assert len(query(path, "SELECT name FROM tortoise_migrations")) == len(KNOWN)


async def test_a_newer_database_is_left_alone(copied: Path) -> None:
    add = "INSERT INTO tortoise_migrations (app, name, applied_at) VALUES (?, ?, ?)"
    query(copied, add, "nianlun", "9999_tomorrow", "2030-01-01 00:00:00+00:00")
    query(copied, add, "another", "9999_other", "2030-01-01 00:00:00+00:00")
    everything = "SELECT sql FROM sqlite_master UNION ALL SELECT name FROM tortoise_migrations"
    before = query(copied, everything)
    with pytest.raises(StoreTooNew, match="9999_tomorrow"):
        await database.prepare(copied)
    assert query(copied, everything) == before


async def test_a_migration_that_landed_without_its_record_is_recovered(copied: Path) -> None:
    query(copied, ADD_CHAT)
    query(copied, "DELETE FROM tortoise_migrations")
    await database.prepare(copied)
    recorded = query(copied, "SELECT app, name FROM tortoise_migrations")
    assert recorded == [("nianlun", name) for name in KNOWN]
    assert query(copied, "SELECT peer_id FROM nianlun_chat") == [("2",)]


NEXT = "9000_mood"
ADD_MOOD = f"""
from tortoise import fields, migrations
from tortoise.migrations import operations as ops

class Migration(migrations.Migration):
    dependencies = [("nianlun", "{KNOWN[-1]}")]
    operations = [ops.AddField(model_name="Chat", name="mood", field=fields.TextField(null=True))]
"""


@pytest.mark.parametrize("landed", [False, True])
def test_an_older_database_is_backed_up_and_migrated(
    copied: Path, tmp_path: Path, landed: bool
) -> None:
    package = put_package(tmp_path)
    (package / "store" / "migrations" / f"{NEXT}.py").write_text(ADD_MOOD, "utf-8")
    query(copied, ADD_CHAT)
    if landed:
        query(copied, "ALTER TABLE nianlun_chat ADD COLUMN mood TEXT")
    assert finish(start(tmp_path, PREPARE, copied))[0] == 0
    assert query(copied, "SELECT peer_id, mood FROM nianlun_chat") == [("2", None)]
    names = "SELECT name FROM tortoise_migrations ORDER BY name"
    assert query(copied, names) == [(name,) for name in (*KNOWN, NEXT)]
    backups = backups_beside(copied)
    if landed:
        assert backups == []
        return
    (backup,) = backups
    assert backup.name.endswith(f"-before-{NEXT}.db")
    assert query(backup, names) == [(name,) for name in KNOWN]
    assert query(backup, "SELECT peer_id FROM nianlun_chat") == [("2",)]


def test_a_migration_that_fails_leaves_the_older_database(copied: Path, tmp_path: Path) -> None:
    package = put_package(tmp_path)
    (package / "store" / "migrations" / f"{NEXT}.py").write_text(
        ADD_MOOD.replace("operations = [", 'operations = [ops.RunSQL("SELECT nonsense"), '), "utf-8"
    )
    query(copied, ADD_CHAT)
    status, _, complaints = finish(start(tmp_path, PREPARE, copied))
    assert status == 1
    assert "StoreUnavailable" in complaints.splitlines()[-1]
    assert query(copied, "SELECT name FROM tortoise_migrations") == [(name,) for name in KNOWN]
    assert query(copied, "SELECT peer_id FROM nianlun_chat") == [("2",)]


def test_only_the_newest_backups_are_kept(copied: Path, tmp_path: Path) -> None:
    package = put_package(tmp_path)
    folder = tmp_path / "backups"
    folder.mkdir()
    for year in range(2020, 2025):
        (folder / f"{year}0101T000000-before-0001_initial.db").touch()
    (folder / "my own.db").touch()
    (package / "store" / "migrations" / f"{NEXT}.py").write_text(ADD_MOOD, "utf-8")
    assert finish(start(tmp_path, PREPARE, copied))[0] == 0
    kept = sorted(file.name for file in folder.iterdir())
    assert len(kept) == 4
    assert kept[0].startswith("2023")
    assert kept[1].startswith("2024")
    assert kept[2].endswith(f"before-{NEXT}.db")
    assert kept[3] == "my own.db"


@pytest.mark.usefixtures("database_file")
async def test_the_open_connection_is_safe() -> None:
    found = {}
    for pragma in ("foreign_keys", "journal_mode", "busy_timeout", "synchronous"):
        (row,) = await get_connection("default").execute_query_dict(f"PRAGMA {pragma}")
        found[pragma] = next(iter(row.values()))
    assert found == {
        "foreign_keys": 1,
        "journal_mode": "wal",
        "busy_timeout": database.BUSY_TIMEOUT_MS,
        "synchronous": 2,
    }


Shape = dict[str, tuple[set[tuple[Any, ...]], set[tuple[Any, ...]], set[tuple[Any, ...]]]]


def shape(path: Path) -> Shape:
    """Columns, indexes without their names, and foreign keys of each of the models' tables."""
    named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'nianlun%'"
    tables = query(path, f"{named} AND name NOT LIKE 'nianlun_search%'")
    found: Shape = {}
    for (table,) in tables:
        columns = {
            (name, kind.upper(), required, str(default or "").strip("'\""), key)
            for _, name, kind, required, default, key in query(path, f"PRAGMA table_info({table})")
        }
        indexes = set()
        for _, index, unique, _, partial in query(path, f"PRAGMA index_list({table})"):
            if not partial:
                inside = query(path, f"PRAGMA index_info({index})")
                indexes.add((unique, *(name for _, _, name in inside)))
        keys = {row[2:7] for row in query(path, f"PRAGMA foreign_key_list({table})")}
        found[table] = (columns, indexes, keys)
    return found


async def test_the_migrations_make_what_the_models_say(copied: Path, tmp_path: Path) -> None:
    path = tmp_path / "models.db"
    async with TortoiseContext():
        await Tortoise.init(
            db_url=f"sqlite://{path}",
            modules={"nianlun": ["plugins.nonebot_plugin_nianlun.store.models"]},
            use_tz=True,
        )
        await Tortoise.generate_schemas()
        await Tortoise.close_connections()
    expected, made = shape(path), shape(copied)
    assert len(expected) > 10
    assert set(made) == set(expected)
    for table, parts in expected.items():
        assert made[table] == parts, table


def test_every_unique_constraint_and_index_leads_with_the_chat(copied: Path) -> None:
    """An index over a name that is no column would be one over a constant."""
    for table, (columns, indexes, _) in shape(copied).items():
        names = {column[0] for column in columns}
        for _, *inside in indexes:
            assert set(inside) <= names, table
            assert inside[0] == "chat_id" or "chat_id" not in names, table


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("message_id = '1'", "(chat_id=? AND message_id=?)"),
        ("dedup_key IN ('1', '2')", "(chat_id=? AND dedup_key=?)"),
        ("activity_id = 1", "(chat_id=? AND activity_id=?)"),
        ("seq > 100 ORDER BY seq LIMIT 9", "(chat_id=? AND seq>?)"),
        ("1 ORDER BY time DESC, platform_order DESC, seq DESC LIMIT 9", "(chat_id=?)"),
        ("activity_id IS NULL AND skipped IS NULL ORDER BY time", "nianlun_message_pending"),
        (
            "activity_id IS NULL AND skipped IS NULL AND withdrawn_at IS NULL"
            " AND time >= '2026-11-28' AND time < '2026-11-29' LIMIT 1",
            "nianlun_message_pending (chat_id=? AND time>? AND time<?)",
        ),
    ],
)
def test_hot_queries_use_an_index(copied: Path, condition: str, index: str) -> None:
    statement = (
        f"EXPLAIN QUERY PLAN SELECT * FROM nianlun_message WHERE chat_id = 1 AND {condition}"
    )
    plan = [row[-1] for row in query(copied, statement)]
    assert index in plan[0]
    assert not any("SCAN" in step for step in plan)


async def test_another_process_may_write_while_the_store_is_open(database_file: Path) -> None:
    query(database_file, ADD_CHAT)
    assert await Chat.all().count() == 1


async def test_opening_and_closing_leaves_no_thread(copied: Path) -> None:
    before = set(threading.enumerate())
    await database.open_store(copied)
    assert set(threading.enumerate()) - before
    await database.close_store()
    await database.close_store()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()


STANDALONE = """
import asyncio, sys, time
from pathlib import Path
from tortoise.connection import get_connection
from nianlun.store import database

@database.transactional
async def write():
    await get_connection("default").execute_query(
        "INSERT INTO nianlun_property (key, value) VALUES ('a', 'b')")
    time.sleep(0.3)

async def main():
    path = Path(sys.argv[1])
    await database.prepare(path)
    await database.open_store(path)
    try:
        task = asyncio.create_task(write())
        await asyncio.sleep(0.1)
        if sys.argv[2] == "raise":
            raise RuntimeError("trouble")
        task.cancel()
        await task
    finally:
        await database.close_store()

asyncio.run(main())
"""


@pytest.mark.parametrize(("end", "name"), [("raise", "RuntimeError"), ("cancel", "Cancelled")])
def test_a_process_in_trouble_ends(tmp_path: Path, end: str, name: str) -> None:
    put_package(tmp_path)
    status, _, complaints = finish(start(tmp_path, STANDALONE, tmp_path / "a.db", end), 30)
    assert status == 1
    assert name in complaints


WHOLE = """
import asyncio, sys
import nonebot
from nonebot.adapters.onebot.v11 import Adapter
nonebot.init(log_level="ERROR")
nonebot.get_driver().register_adapter(Adapter)
nonebot.load_plugin("plugins.nonebot_plugin_nianlun")
from plugins.nonebot_plugin_nianlun import nianlun

async def main():
    await nianlun.open()
    if sys.argv[1] == "raise":
        raise RuntimeError("trouble")
    asyncio.current_task().cancel()
    await asyncio.sleep(5)

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["raise", "cancel"])
def test_a_product_that_nobody_closes_ends(tmp_path: Path, end: str) -> None:
    place = {"NIANLUN__DATA_DIR": str(tmp_path), "LOCALSTORE_USE_CWD": "true"}
    process = start(tmp_path, WHOLE, end, PYTHONPATH=str(ROOT), **place)
    status, _, complaints = finish(process, 30)
    assert status == 1, complaints
    assert "Error" in complaints
    assert (tmp_path / "nianlun.db").exists()


async def test_a_cancelled_caller_leaves_no_lock_behind(database_file: Path) -> None:
    @database.transactional
    async def slow() -> None:
        await get_connection("default").execute_query(
            "INSERT INTO nianlun_property (key, value) VALUES ('a', 'b')"
        )
        time.sleep(0.2)  # noqa: ASYNC251 (it is the database's thread that sleeps)

    task = asyncio.create_task(slow())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(5):
        assert await Chat.all().count() == 0
    assert query(database_file, "SELECT value FROM nianlun_property") == [("b",)]


@pytest.mark.usefixtures("impatient")
async def test_a_writer_that_gets_no_lock_says_so(copied: Path) -> None:
    @database.transactional
    async def write() -> None:
        await get_connection("default").execute_query(
            "INSERT INTO nianlun_property (key, value) VALUES ('a', 'b')"
        )

    await database.open_store(copied)
    try:
        with locked(copied), pytest.raises(StoreLocked):
            await write()
        await write()
    finally:
        await database.close_store()
    assert query(copied, "SELECT value FROM nianlun_property") == [("b",)]


def test_a_file_that_is_moved_or_replaced_is_another(copied: Path, tmp_path: Path) -> None:
    known = database.identity(copied)
    assert known is not None
    assert database.identity(copied) == known
    moved = copied.rename(tmp_path / "elsewhere.db")
    assert database.identity(copied) is None
    shutil.copy(moved, copied)
    assert database.identity(copied) not in (None, known)


async def test_an_sqlite_without_full_text_search_is_said(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*arguments: Any) -> Any:
        raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(database, "connect", connect)
    with pytest.raises(StoreUnavailable, match="FTS5") as caught:
        await database.prepare(copied)
    assert len(str(caught.value).splitlines()) == 1
