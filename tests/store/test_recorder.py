"""The way into the store: in order, on disk in time, and nothing lost in trouble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
import sqlite3
import time
from typing import Any

import pytest
from tortoise.connection import get_connection
from tortoise.exceptions import OperationalError

from plugins.nonebot_plugin_nianlun.capture import recorder as module
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.capture.recorder import Recorder
from plugins.nonebot_plugin_nianlun.clock import SystemClock
from plugins.nonebot_plugin_nianlun.errors import StoreError
from plugins.nonebot_plugin_nianlun.store import sql
from plugins.nonebot_plugin_nianlun.store.models import Chat
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, Segment, Withdrawal

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")


def said(number: int, text: str | None = None, chat: ChatKey = GROUP) -> Incoming:
    segments = [{"type": "text", "data": {"text": text or f"第{number}句"}}]
    at = NOON + timedelta(seconds=number)
    return Incoming(chat, at, "20001", "小鹿", segments, "event", message_id=str(number))


@pytest.fixture
async def recorder(database_file: Path) -> AsyncIterator[Recorder]:
    found = Recorder(SystemClock(), "小忆")
    found.start()
    try:
        yield found
    finally:
        await found.stop()


def on_disk(path: Path) -> list[str]:
    """What another process finds."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT text FROM nianlun_message ORDER BY chat_id, seq")
        return [text for (text,) in rows]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


async def until(condition: Callable[[], bool], seconds: float) -> float:
    """How long it took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "it took too long"
        await asyncio.sleep(0.005)
    return time.monotonic() - start


async def test_what_was_accepted_is_on_disk_after_a_flush(
    recorder: Recorder, database_file: Path
) -> None:
    for number in range(20):
        recorder.accept(said(number))
    assert recorder.waiting == 20
    await recorder.flush()
    assert recorder.waiting == 0
    assert len(on_disk(database_file)) == 20


async def test_a_flush_does_not_wait_for_company(
    recorder: Recorder, database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMIT_INTERVAL", 30.0)
    recorder.accept(said(1))
    async with asyncio.timeout(5):
        await recorder.flush()
        recorder.accept(said(2))
        await asyncio.sleep(0.05)
        await recorder.flush()
    assert len(on_disk(database_file)) == 2


async def test_what_comes_after_a_flush_waits_for_company_again(
    recorder: Recorder, database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where somebody else asked for the same lines while they were being stored."""
    monkeypatch.setattr(module, "COMMIT_INTERVAL", 30.0)
    storing, go_on, store = asyncio.Event(), asyncio.Event(), module.record

    async def slowly(*values: Any) -> None:
        storing.set()
        await go_on.wait()
        await store(*values)

    monkeypatch.setattr(module, "record", slowly)
    recorder.accept(said(1))
    first = asyncio.create_task(recorder.flush())
    await storing.wait()
    second = asyncio.create_task(recorder.flush())
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, second)
    recorder.accept(said(2))
    await asyncio.sleep(0.1)
    assert len(on_disk(database_file)) == 1


async def test_a_flush_of_nothing_returns(recorder: Recorder) -> None:
    async with asyncio.timeout(1):
        await recorder.flush()
        await recorder.flush()


async def test_a_message_is_on_disk_soon_without_a_flush(
    recorder: Recorder, database_file: Path
) -> None:
    recorder.accept(said(0))
    await recorder.flush()
    taken = []
    for number in range(1, 6):
        recorder.accept(said(number))
        taken.append(await until(lambda n=number: len(on_disk(database_file)) > n, 5))
    # The promise is 0.2 s; a busy machine may delay one of them, hardly all.
    assert min(taken) < 0.2
    assert sorted(taken)[2] < 0.5


async def test_messages_keep_their_order(recorder: Recorder, database_file: Path) -> None:
    for number in range(1200):
        recorder.accept(said(number))
        if number % 300 == 0:
            await asyncio.sleep(0.05)
    await recorder.flush()
    assert on_disk(database_file) == [f"第{number}句" for number in range(1200)]


async def test_a_withdrawal_that_follows_at_once_masks(
    recorder: Recorder, database_file: Path
) -> None:
    recorder.accept(said(1))
    recorder.accept(Withdrawal(GROUP, "1", None, NOON + timedelta(seconds=2)))
    await recorder.flush()
    assert on_disk(database_file) == [""]


async def test_a_line_that_cannot_be_stored_takes_no_other_along(
    recorder: Recorder, database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def brittle(segments: Sequence[Segment], names: Callable[[str], str | None]) -> str:
        if "毒" in str(segments):
            raise ValueError("poison")
        return readable(segments, names)

    monkeypatch.setattr(module, "readable", brittle)
    for number, text in enumerate(["一", "毒", "二", "毒", "三"]):
        recorder.accept(said(number, text))
    await recorder.flush()
    assert on_disk(database_file) == ["一", "二", "三"]
    assert (recorder.waiting, recorder.trouble) == (0, None)
    recorder.accept(said(9, "四"))
    await recorder.flush()
    assert on_disk(database_file)[-1] == "四"


async def test_a_lock_held_elsewhere_costs_nothing(
    recorder: Recorder, database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.05)
    await get_connection("default").execute_query("PRAGMA busy_timeout=20")
    with locked(database_file):
        for number in range(3):
            recorder.accept(said(number))
        with pytest.raises(StoreError):
            await recorder.flush()
        assert recorder.trouble is not None
        recorder.accept(said(3))
        recorder.accept(said(4, chat=ChatKey("10001", "private", "5")))
        await asyncio.sleep(0.3)
        assert recorder.waiting == 5
        assert on_disk(database_file) == []
    await until(lambda: recorder.waiting == 0, 10)
    assert recorder.trouble is None
    assert on_disk(database_file) == [f"第{number}句" for number in range(5)]


async def test_stopping_right_after_trouble_and_a_flush_ends(
    database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.05)
    await get_connection("default").execute_query("PRAGMA busy_timeout=20")
    recorder = Recorder(SystemClock(), "小忆")
    recorder.start()
    with locked(database_file):
        recorder.accept(said(0))
        with pytest.raises(StoreError):
            await recorder.flush()
        recorder.accept(said(1))
    await until(lambda: recorder.waiting == 0, 10)
    await recorder.flush()
    begun = time.monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(3):
            await recorder.stop()
    assert time.monotonic() - begun < 2


async def test_a_disk_that_cannot_be_read_for_a_while_loses_nothing(
    recorder: Recorder, database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.02)
    failures = iter(range(3))
    found: Any = Chat.get_or_none

    def unreadable(**where: Any) -> Any:
        if next(failures, None) is not None:
            raise OperationalError("disk I/O error")
        return found(**where)

    monkeypatch.setattr(Chat, "get_or_none", unreadable)
    for number in range(3):
        recorder.accept(said(number))
    await until(lambda: recorder.waiting == 0, 10)
    assert on_disk(database_file) == ["第0句", "第1句", "第2句"]


async def test_stopping_stores_everything(database_file: Path) -> None:
    recorder = Recorder(SystemClock(), "小忆")
    recorder.start()
    for number in range(700):
        recorder.accept(said(number))
    await recorder.stop()
    assert (recorder.waiting, len(on_disk(database_file))) == (0, 700)
    await recorder.stop()


async def test_stopping_waits_for_a_lock(
    database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.05)
    await get_connection("default").execute_query("PRAGMA busy_timeout=20")
    recorder = Recorder(SystemClock(), "小忆")
    recorder.start()
    with locked(database_file):
        recorder.accept(said(1))
        stopping = asyncio.create_task(recorder.stop())
        await asyncio.sleep(0.3)
        assert not stopping.done()
    await stopping
    assert on_disk(database_file) == ["第1句"]


async def test_stopping_does_not_wait_for_ever(
    database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(module, "_GIVE_UP_SECONDS", 0.3)
    await get_connection("default").execute_query("PRAGMA busy_timeout=20")
    recorder = Recorder(SystemClock(), "小忆")
    recorder.start()
    with locked(database_file):
        recorder.accept(said(1))
        async with asyncio.timeout(10):
            await recorder.stop()
    assert recorder.waiting == 1


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (sql._KNOWN_KEYS, "(chat_id=? AND dedup_key=?)"),
        (sql._WITHDRAWALS, "(chat_id=? AND message_id=?)"),
    ],
)
def test_what_is_known_of_a_message_is_found_without_reading_the_chat(
    database_file: Path, query: str, index: str
) -> None:
    statement = f"EXPLAIN QUERY PLAN {query.format(pairs='(?,?),(?,?)')}"
    with closing(sqlite3.connect(database_file)) as database:
        plan = [row[3] for row in database.execute(statement, (1, "a", 2, "b"))]
    assert any(step.startswith("SEARCH") and index in step for step in plan)
    assert not any("SCAN m" in step or "SCAN e" in step for step in plan)
