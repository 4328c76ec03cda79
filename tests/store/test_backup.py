"""The whole database goes into a file and comes back, also while somebody uses it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta
import os
from pathlib import Path
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import StoreError, StoreTooNew, StoreUnavailable
from plugins.nonebot_plugin_nianlun.store import (
    backup,
    carrying_over,
    chats,
    database,
    exclusions,
    forgetting,
    gaps,
    leftovers,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import Chat, Message
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, Withdrawal
from tests.support.product_store import ProductStore

NOW = datetime.now(UTC).replace(microsecond=0)
GROUP = ChatKey("10001", "group", "123")
LATER = ChatKey("10001", "group", "456")
SECRET = "芝麻开门七八九"


@pytest.fixture
async def path(prepared_database: Path, tmp_path: Path) -> Path:
    """A database with a talk, closed."""
    path = tmp_path / "data" / "nianlun.db"
    path.parent.mkdir()
    shutil.copy(prepared_database, path)
    async with ProductStore(path):
        await say(*(f"第{number}句" for number in range(12)), at=NOW - timedelta(days=2))
        await say(SECRET, user_id="20002", first=90, at=NOW - timedelta(days=2))
        await nianlun.jobs.tidy([GROUP])
    return path


async def say(
    *texts: str,
    chat: ChatKey = GROUP,
    user_id: str = "20001",
    first: int = 1,
    at: datetime = NOW - timedelta(hours=1),
) -> None:
    batch = [
        Incoming(
            chat,
            at + timedelta(seconds=number),
            user_id,
            f"人{user_id}",
            [{"type": "text", "data": {"text": text}}],
            "event",
            message_id=str(number),
        )
        for number, text in enumerate(texts, first)
    ]
    await recording.record(batch, readable, "小忆", NOW)


async def exported(path: Path, chat: ChatKey = GROUP) -> list[str]:
    async with ProductStore(path):
        return [repr(row) async for row in lines(chat, "Asia/Shanghai", NOW)]


def bytes_of(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


async def test_a_copy_brings_back_what_was(path: Path, tmp_path: Path) -> None:
    before = await exported(path)
    copy = tmp_path / "copies" / "copy.db"
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT COUNT(*) FROM nianlun_message").fetchone()
        assert await backup.back_up_to(path, copy) == copy.stat().st_size
        async with ProductStore(path):
            await say("后来说的", first=50)
            await say("新的群", chat=LATER)
            number = await chats.find(LATER)
        after = await exported(path)
        done = await backup.restore(copy, path)
        assert reader.execute("SELECT COUNT(*) FROM nianlun_message").fetchone() == (13,)
    assert (done.chats, done.messages, done.taken_back) == (2, 13, 0)
    assert await exported(path) == before
    assert done.kept is not None
    assert await exported(done.kept) == after
    assert not list(path.parent.glob(".restoring-*"))
    # A chat that is newer than the copy keeps its number, whoever has it in mind.
    async with ProductStore(path):
        assert await Chat.filter(peer_id="456").values_list("id", "last_seq") == [(number, 0)]


async def test_what_is_taken_back_while_the_copy_is_made_ready_stays_so(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    carry_over = carrying_over.carry_over

    async def meanwhile(fresh: Path, known: list[carrying_over.Known]) -> int:
        count = await carry_over(fresh, known)
        if fresh != path:
            async with ProductStore(path):
                await recording.record([Withdrawal(GROUP, "90", None, NOW)], readable, "小忆", NOW)
        return count

    monkeypatch.setattr(carrying_over, "carry_over", meanwhile)
    done = await backup.restore(copy, path)
    assert done.taken_back == 1
    assert SECRET not in repr(await exported(path))


async def test_what_was_taken_back_since_stays_so(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    assert SECRET in repr(await exported(path))
    async with ProductStore(path):
        chat_id = await chats.find(GROUP)
        assert chat_id is not None
        await recording.record([Withdrawal(GROUP, "90", None, NOW)], readable, "小忆", NOW)
        await forgetting.forget(chat_id, "20001", NOW)
        await exclusions.opt_out(chat_id, "20003", NOW, NOW)
    done = await backup.restore(copy, path)
    assert done.taken_back == 3
    told = repr(await exported(path))
    assert SECRET not in told
    assert "第3句" not in told
    assert SECRET.encode() not in bytes_of(path)
    async with ProductStore(path):
        await say("又来了", user_id="20003", first=70, at=NOW + timedelta(minutes=1))
        await say("旧话", user_id="20001", first=71, at=NOW - timedelta(days=1))
    told = repr(await exported(path))
    assert "又来了" not in told
    assert "旧话" not in told


@pytest.mark.parametrize("shown", [True, False])
async def test_a_message_without_id_that_was_masked_stays_masked(
    path: Path, tmp_path: Path, shown: bool
) -> None:
    if not shown:
        # What it holds may be no part of its text.
        async with ProductStore(path):
            await Message.filter(text=SECRET).update(text="")
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    async with ProductStore(path):
        chat_id = await chats.find(GROUP)
        assert chat_id is not None
        await carrying_over.mask(
            chat_id, [(13, NOW - timedelta(days=2) + timedelta(seconds=90), NOW)]
        )
    assert SECRET not in repr(await exported(path))
    assert (await backup.restore(copy, path)).taken_back == 1
    assert SECRET not in repr(await exported(path))


async def test_what_was_said_since_is_a_gap(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with ProductStore(path):
        await gaps.set_alive({"10001": NOW - timedelta(hours=5)})
    await backup.back_up_to(path, copy)
    await backup.restore(copy, path)
    async with ProductStore(path):
        chat_id = await chats.find(GROUP)
        assert chat_id is not None
        gap = await gaps.newest(chat_id)
    assert gap is not None
    assert gap[0] == NOW - timedelta(hours=5)
    assert gap[1] >= NOW


@pytest.mark.parametrize(
    "what", ["nothing", "text", "torn", "other", "newer", "itself", "part", "odd", "in use"]
)
async def test_what_is_no_copy_changes_nothing(path: Path, tmp_path: Path, what: str) -> None:
    copy = tmp_path / "copy.db"
    if what == "text":
        copy.write_text("这不是数据库" * 500, "utf-8")
    elif what == "other":
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("CREATE TABLE t (x)")
    elif what in ("torn", "newer", "part", "odd", "in use"):
        await backup.back_up_to(path, copy)
    if what == "torn":
        copy.write_bytes(copy.read_bytes()[:20_000])
    elif what == "newer":
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(
                "INSERT INTO tortoise_migrations (app, name, applied_at)"
                " VALUES ('nianlun', '9999_future', '2030-01-01 00:00:00+00:00')"
            )
    spoil = {
        "part": "DROP TABLE nianlun_message",
        "odd": "INSERT INTO nianlun_property (key, value) VALUES ('alive:1', 'soon')",
    }
    if what in spoil:
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(spoil[what])
    before = await exported(path)
    with closing(sqlite3.connect(copy if what == "in use" else ":memory:")) as writer:
        if what == "in use":
            writer.execute("BEGIN EXCLUSIVE")
            writer.execute("DELETE FROM nianlun_message")
        with pytest.raises(StoreTooNew if what == "newer" else StoreError) as told:
            await backup.restore(path if what == "itself" else copy, path)
    assert ".restoring" not in str(told.value)
    if what == "part":
        assert re.search(f"{re.escape(str(copy))} 坏了.*，不能用来恢复$", str(told.value))
    assert len(str(told.value).splitlines()) == 1
    assert await exported(path) == before
    assert not list(path.parent.glob(".restoring-*"))


async def test_a_copy_of_another_database_waits_until_nobody_uses_this(
    path: Path, tmp_path: Path, prepared_database: Path
) -> None:
    other = tmp_path / "other.db"
    shutil.copy(prepared_database, other)
    async with ProductStore(other):
        await say("别处", chat=LATER)
    copy = tmp_path / "copy.db"
    await backup.back_up_to(other, copy)
    with closing(sqlite3.connect(path)) as user:
        user.execute("SELECT 1 FROM nianlun_chat").fetchall()
        with pytest.raises(StoreError, match="停掉机器人"):
            await backup.restore(copy, path)
    assert len(await exported(path)) > 12
    await backup.restore(copy, path)
    assert "别处" in repr(await exported(path, LATER))


async def test_a_copy_takes_the_place_of_nothing_else(path: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    before = await exported(path)
    places = (
        path,
        link,
        path.with_name(f"{path.name}-wal"),
        pipe,
        tmp_path,
        tmp_path / ("a" * 300),
    )
    for target in places:
        with pytest.raises(StoreError) as told:
            await backup.back_up_to(path, target)
        assert len(str(told.value).splitlines()) == 1
    assert pipe.is_fifo()
    assert await exported(path) == before


async def test_an_empty_place_is_filled(path: Path, tmp_path: Path) -> None:
    copy, place = tmp_path / "copy.db", tmp_path / "new" / "nianlun.db"
    await backup.back_up_to(path, copy)
    done = await backup.restore(copy, place)
    assert done.kept is None
    assert await exported(place) == await exported(path)


_KILLED = """
import os, sqlite3, sys
from plugins.nonebot_plugin_nianlun.store import backup
backup.PAGES = 20
source, target = (sqlite3.connect(name) for name in sys.argv[1:])
def told(left, total):
    if left < total / 2:
        os._exit(9 if left else 1)
backup.copy_into(source, target, told)
"""


async def test_who_is_killed_leaves_what_was(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    async with ProductStore(path):
        await say("后来说的", first=50)
    before = await exported(path)
    script = "import nonebot\nnonebot.init(driver='~none')\n" + _KILLED
    # The package is wiring; the one module is loaded by itself.
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", _without_package(script), str(copy), str(path)],
        check=False,
        capture_output=True,
    )
    assert done.returncode == 9, done.stderr
    assert await exported(path) == before


def _without_package(script: str) -> str:
    package = "plugins.nonebot_plugin_nianlun"
    folder = Path(backup.__file__).parents[1]
    stub = (
        "import sys, types\n"
        "for name, path in (('plugins', None), ('" + package + "', '" + folder.as_posix() + "')):\n"
        "    module = types.ModuleType(name)\n"
        "    module.__path__ = [path] if path else []\n"
        "    sys.modules[name] = module\n"
    )
    return stub + script


async def test_what_killed_processes_left_is_removed_when_nobody_uses_it(path: Path) -> None:
    stage, used = (path.parent / f".restoring-{name}" for name in ("old", "new"))
    for folder in (stage, used):
        folder.mkdir()
        (folder / "nianlun.db").write_bytes(b"words")
    long_ago = time.time() - 2 * leftovers.UNTOUCHED
    os.utime(stage / "nianlun.db", (long_ago, long_ago))
    os.utime(stage, (long_ago, long_ago))
    os.utime(used, (long_ago, long_ago))
    async with ProductStore(path):
        await backup.Restorations(path).look()
    assert (stage.exists(), used.exists()) == (False, True)


async def test_a_damaged_database_is_not_taken_for_a_damaged_copy(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'nianlun_exclusion'"
        (page,) = connection.execute(query).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with pytest.raises(StoreUnavailable, match=f"数据库 {re.escape(str(path))} 坏了.*移开它"):
        await backup.restore(copy, path)
    await asyncio.to_thread(path.unlink)
    assert (await backup.restore(copy, path)).kept is None


async def test_a_full_disk_is_no_fault_of_a_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    full = sqlite3.OperationalError("database or disk is full")

    def no_room(*_: object) -> None:
        raise full

    monkeypatch.setattr(backup, "copy_into", no_room)
    with pytest.raises(StoreUnavailable, match=r"^数据库出错：database or disk is full$"):
        await backup.restore(copy, path)
    assert "打不开" not in str(database.explain(full, path))


async def test_a_copy_that_was_not_finished_counts_for_nothing(path: Path, tmp_path: Path) -> None:
    folder = path.parent / "backups"
    folder.mkdir()
    torn = folder / "20200101T000000-1-before-restore-1.part"
    torn.write_bytes(b"half")
    long_ago = time.time() - 2 * leftovers.UNTOUCHED
    os.utime(torn, (long_ago, long_ago))
    for number in range(4):
        # The clock was put back since.
        (folder / f"2099010{number}T000000-1-before-restore-1.db").write_bytes(b"whole")
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    kept = (await backup.restore(copy, path)).kept
    assert kept is not None
    assert await exported(kept)
    assert len(list(folder.iterdir())) == database.BACKUPS_KEPT


async def test_a_running_bot_notices(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    await backup.restore(copy, path)
    async with ProductStore(path):
        noticing = backup.Restorations(path)
        await noticing.start()
        assert not await noticing.look()
    await backup.restore(copy, path)
    async with ProductStore(path):
        await chats.find(GROUP)
        assert await noticing.look()
        assert not await noticing.look()
