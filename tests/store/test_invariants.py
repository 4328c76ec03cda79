"""A chat is checked as it lies in the database, while everything else goes on."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
import sqlite3
import time as stopwatch
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import StoreError
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.store import invariants, messages, notes, recording
from plugins.nonebot_plugin_nianlun.types import (
    Activity,
    ChatKey,
    Fact,
    Incoming,
    Note,
    RollupTask,
    Window,
    Withdrawal,
)
from tests.store.test_reindexing import all_steps

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
GROUP = ChatKey("10001", "group", "123")
AT = datetime(2026, 11, 27, 2, 0, tzinfo=UTC)
NOW = datetime(2026, 11, 28, 2, 0, tzinfo=UTC)
MANY = 100_000

_MANY_MESSAGES = f"""
WITH RECURSIVE n (seq) AS (SELECT 3 UNION ALL SELECT seq + 1 FROM n WHERE seq < {MANY})
INSERT INTO nianlun_message
    (chat_id, seq, dedup_key, time, user_id, name, text, source, activity_id)
SELECT 1, seq, 'k' || seq, '2026-11-27 02:00:00+00:00', '20001', '小鹿', '很长的一句话', 'event',
    1 + (seq - 1) / 50 FROM n
"""
_MANY_ACTIVITIES = f"""
WITH RECURSIVE n (number) AS
    (SELECT 2 UNION ALL SELECT number + 1 FROM n WHERE number < {MANY // 50})
INSERT INTO nianlun_activity
    (id, chat_id, number, date, from_seq, to_seq, text, key_messages, origin, time, writer,
    written_at)
SELECT number, 1, number, '2026-11-27', number * 50 - 49, number * 50, '我听着',
    '[' || (number * 50 - 9) || ']', 'window', '2026-11-27 02:00:00+00:00', 'offline',
    '2026-11-27 02:00:00+00:00' FROM n
"""


def incoming(number: int) -> Incoming:
    segments = [{"type": "text", "data": {"text": f"第{number}句"}}]
    at = AT + timedelta(minutes=number)
    return Incoming(GROUP, at, "20001", "小鹿", segments, "event", message_id=str(number))


def contents(connection: sqlite3.Connection) -> list[list[tuple[object, ...]]]:
    """Everything in every table; what a virtual one holds is in others."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    tables = [name for (name,) in connection.execute(query)]
    return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


async def small_chat() -> None:
    """Two messages in a note, the note in its day."""
    await recording.record([incoming(1), incoming(2)], readable, "小忆", NOW)
    lines = await messages.pending(1, 10)
    note = Note("我听见了", (1,), "model", (Fact("event", "伞", "有一把伞", 2),))
    await notes.store_activity(1, Window("2026-11-27", tuple(lines)), note, NOW)
    source = Activity(1, "2026-11-27", "我听见了", (1,), "window", AT, "model", NOW)
    task = RollupTask("day", "2026-11-27", (source,), None, rebuild=True, closes=True)
    await notes.store_memories(1, [task], [Note("这一天", (1,), "model")], NOW)


async def findings(file: Path) -> tuple[str, ...]:
    return (await invariants.check(file, 1, CALENDAR, NOW)).findings


async def test_what_the_product_writes_is_sound(database_file: Path) -> None:
    await small_chat()
    found = await invariants.check(database_file, 1, CALENDAR, NOW)
    assert (found.findings, found.found) == ((), 0)
    assert (found.messages, found.activities, found.memories) == (2, 1, 1)
    await recording.record([Withdrawal(GROUP, "1", None, NOW)], readable, "小忆", NOW)
    assert await findings(database_file) == ()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE nianlun_message SET skipped = 'empty' WHERE seq = 1", "消息 #1 在一条活动里"),
        ("UPDATE nianlun_message SET withdrawn_at = time WHERE seq = 2", "正文还在"),
        ("UPDATE nianlun_activity SET date = '2026-11-26', merged = 0", "超出了它的那一天"),
        ("UPDATE nianlun_activity SET key_messages = '[9]'", "活动 &1 引用了 #9，没有这条消息"),
        ("UPDATE nianlun_memory SET sources = '[]'", "活动 &1 标着已并入 2026-11-27"),
        ("UPDATE nianlun_fact SET source = 7", "事实 event:伞 引用了 #7，没有这条消息"),
        ("UPDATE nianlun_chat SET last_seq = 1", "消息编号数到 #1，却已经有 #2"),
        ("DELETE FROM nianlun_search_terms", "消息 #1 检索不到"),
        (
            "INSERT INTO nianlun_search_terms SELECT id + 5, terms FROM nianlun_search_terms",
            "消息 #6 已经不在，检索里还有",
        ),
        (
            "INSERT INTO nianlun_lease (chat_id, work, holder, expires_at)"
            " VALUES (1, 'upkeep', 'x', '2099-01-01 00:00:00+00:00')",
            "x 占着 upkeep 直到 2099-01-01 08:00，太久了",
        ),
    ],
)
async def test_damage_is_found_and_left_as_it_is(
    database_file: Path, damage: str, told: str
) -> None:
    await small_chat()
    all_steps(database_file)
    with closing(sqlite3.connect(database_file)) as connection, connection:
        connection.execute(damage)
        before = contents(connection)
    assert any(told in one for one in await findings(database_file))
    with closing(sqlite3.connect(database_file)) as connection:
        assert contents(connection) == before


async def test_a_hundred_thousand_messages_hold_up_nobody(database_file: Path) -> None:
    await small_chat()
    with closing(sqlite3.connect(database_file)) as connection, connection:
        connection.execute(_MANY_MESSAGES)
        connection.execute(_MANY_ACTIVITIES)
        connection.execute("UPDATE nianlun_activity SET to_seq = 50 WHERE number = 1")
        connection.execute("UPDATE nianlun_chat SET last_seq = ?, last_activity = 9999", (MANY,))
    began = stopwatch.monotonic()
    check = asyncio.create_task(invariants.check(database_file, 1, CALENDAR, NOW))
    longest, stored = 0.0, 0
    while not check.done():
        number = MANY + stored
        before = stopwatch.monotonic()
        await recording.record([incoming(number)], readable, "小忆", NOW)
        await asyncio.sleep(0.01)
        longest = max(longest, stopwatch.monotonic() - before)
        stored += 1
    found = await check
    assert MANY <= found.messages <= MANY + stored
    assert found.activities == MANY // 50
    assert found.findings == ()
    assert stopwatch.monotonic() - began < 8
    assert stored > 3
    assert longest < 1


async def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    file.write_bytes(b"no database " * 100)
    with pytest.raises(StoreError):
        await invariants.check(file, 1, CALENDAR, NOW)


async def test_a_chat_that_is_not_there_has_no_faults(database_file: Path) -> None:
    async with asyncio.timeout(10):
        assert (await invariants.check(database_file, 99, CALENDAR, NOW)).findings == ()
