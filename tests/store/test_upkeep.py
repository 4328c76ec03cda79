"""All owed work of a chat, with a scripted writer on a real file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
import itertools
from itertools import pairwise
from pathlib import Path
import sqlite3
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.rollups import RollupPolicy
from plugins.nonebot_plugin_nianlun.memory.upkeep import Upkeep
from plugins.nonebot_plugin_nianlun.memory.windows import WindowPolicy
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    export,
    facts,
    memories,
    messages,
    notes,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.models import Activity, Memory
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    ChatKey,
    Fact,
    Incoming,
    MemoryKind,
    Note,
    Scene,
    Source,
    TidyReport,
    Window,
    Withdrawal,
)
from tests.support.reply_layers import layers
from tests.support.scripted_writer import ScriptedWriter, SetClock

ZONE = ZoneInfo("Asia/Shanghai")
CALENDAR = Calendar(ZONE, time(4))
GROUP = ChatKey("10001", "group", "123")
DAY = date(2026, 11, 27)
SECRET = "芝麻开门"
NOTHING_DONE = TidyReport(0, 0, 0, ())


def local(day: date, hour: int, minute: int = 0) -> datetime:
    return datetime.combine(day, time(hour, minute), ZONE).astimezone(UTC)


async def claim(holder: str, now: datetime, until: datetime, *gone: str) -> bool:
    return await chats.claim(1, "upkeep", holder, now, until, lambda other: other in gone)


class World:
    """One chat, its writer, and the hands of its clock."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.writer = ScriptedWriter()
        self.fallback = ScriptedWriter()
        self.clock = SetClock(local(DAY, 9))
        self.numbers = 0
        self.holders = 0

    @property
    def chat_id(self) -> int:
        return 1

    async def say(
        self, text: str, at: datetime, *, by: str = "20001", source: Source = "event"
    ) -> str:
        """Record a line; returns its platform id."""
        self.numbers += 1
        segments = [{"type": "text", "data": {"text": text}}]
        line = Incoming(
            GROUP, at, by, "小鹿", segments, source, message_id=str(self.numbers)
        )  # fmt: skip
        await recording.record([line], readable, "小忆", self.clock.now())
        return str(self.numbers)

    async def talk(self, count: int, start: datetime, label: str = "话") -> list[str]:
        """Record lines a minute apart."""
        ids = []
        for number in range(count):
            at = start + timedelta(minutes=number)
            ids.append(await self.say(f"{label}{number}", at, by=f"2000{number % 3}"))
        return ids

    async def withdraw(self, message_id: str) -> None:
        notice = Withdrawal(GROUP, message_id, None, self.clock.now() + timedelta(days=400))
        await recording.record([notice], readable, "小忆", self.clock.now())

    def upkeep(self, *, leased: bool = False, patient: bool = True) -> Upkeep:
        self.holders += 1
        holder = f"holder-{self.holders}"

        async def scene(_: str) -> Scene:
            return Scene(GROUP, "QQ群", "小忆", "人设")

        async def ours() -> bool:
            now = self.clock.now()
            until = now + timedelta(minutes=10)
            return not leased or await claim(holder, now, until)

        return Upkeep(
            messages=messages,
            memories=memories,
            notes=notes,
            writer=self.writer,
            fallback=self.fallback,
            clock=self.clock,
            calendar=CALENDAR,
            windows=WindowPolicy(messages=50, min_messages=8, idle=timedelta(minutes=20)),
            rollups=RollupPolicy(pending_activities=20, keep_days=7),
            scene=scene,
            still_ours=ours,
            patient=patient,
        )

    async def run(self, *, everything: bool = False) -> TidyReport:
        return await self.upkeep().run(self.chat_id, everything=everything)

    async def memory(self, kind: MemoryKind, period: str) -> str | None:
        found = await memories.memory(self.chat_id, kind, period)
        return None if found is None else found.text

    async def export(self) -> list[dict[str, Any]]:
        return [line async for line in export.lines(GROUP, ZONE.key, self.clock.now())]

    def dump(self) -> str:
        """Every value of every table, as another process reads it."""
        with closing(sqlite3.connect(self.file)) as connection:
            # What a virtual table holds is in tables of its own.
            query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
            tables = [name for (name,) in connection.execute(query)]
            queries = [f"SELECT * FROM {table}" for table in tables]
            return "\n".join(repr(row) for query in queries for row in connection.execute(query))


@pytest.fixture
async def world(database_file: Path) -> AsyncIterator[World]:
    found = World(database_file)
    ids = await chats.ensure([GROUP], found.clock.now())
    assert ids == {GROUP: found.chat_id}
    yield found
    await check_cover(found)


async def check_cover(world: World) -> None:
    """Windows and skipped runs are disjoint, and with what is pending they are everything."""
    lines = await world.export()
    covered: list[int] = []
    for line in lines:
        runs: list[list[int]] = []
        if line["type"] == "skipped" or (line["type"] == "activity" and line["from_seq"]):
            runs = line.get("ranges") or [[line["from_seq"], line["to_seq"]]]
            assert (runs[0][0], runs[-1][1]) == (line["from_seq"], line["to_seq"])
        for first, last in runs:
            covered += range(first, last + 1)
    pending = [m.seq for m in await messages.pending(world.chat_id, 10_000)]
    everything = [line["seq"] for line in lines if line["type"] == "message"]
    assert everything == list(range(1, len(everything) + 1))
    assert sorted(covered + pending) == everything


async def close_days(world: World, count: int, *, start: date = DAY) -> list[list[str]]:
    """Talk on each of these days, then do what is owed the morning after the last."""
    ids = []
    for number in range(count):
        day = start + timedelta(days=number)
        ids.append(await world.talk(8, local(day, 10), f"{day:%d}日"))
    world.clock.time = local(start + timedelta(days=count), 4, 30)
    report = await world.run()
    assert report.errors == ()
    return ids


async def test_a_window_is_written_once(world: World) -> None:
    await world.talk(60, local(DAY, 9))
    world.clock.time = local(DAY, 10)
    assert await world.run() == TidyReport(1, 0, 0, ())
    assert await world.run() == NOTHING_DONE
    world.clock.time = local(DAY, 10, 30)
    assert await world.run() == TidyReport(1, 0, 0, ())
    assert [len(window.messages) for window in world.writer.windows] == [50, 10]
    found = await memories.activities(world.chat_id, "2026-11-27")
    assert [a.ranges for a in found] == [((1, 50),), ((51, 60),)]
    assert [a.number for a in found] == [1, 2]
    assert found[0].time == local(DAY, 9, 49)


async def test_everything_closes_what_is_not_due(world: World) -> None:
    await world.talk(3, local(DAY, 9))
    assert await world.run() == NOTHING_DONE
    assert await world.run(everything=True) == TidyReport(1, 0, 0, ())


async def test_a_declined_window_is_consumed(world: World) -> None:
    world.writer.declines = lambda window: True
    await world.talk(8, local(DAY, 9))
    world.clock.time = local(DAY, 10)
    assert await world.run() == TidyReport(0, 0, 1, ())
    assert await world.run() == NOTHING_DONE
    assert await messages.pending(world.chat_id, 10) == []
    skipped = [line for line in await world.export() if line["type"] == "skipped"]
    assert skipped == [{"type": "skipped", "from_seq": 1, "to_seq": 8, "reason": "declined"}]
    assert await chats.with_work() == []


async def test_a_model_error_leaves_everything_owed_and_is_told(world: World) -> None:
    await world.talk(8, local(DAY, 9))
    world.clock.time = local(DAY + timedelta(days=1), 5)
    world.writer.broken = True
    assert await world.run() == TidyReport(0, 0, 0, ("模型没有回应",))
    assert len(await messages.pending(world.chat_id, 10)) == 8
    world.writer.broken = False

    async def break_down() -> None:
        world.writer.broken = True

    world.writer.while_rolling_up = break_down
    assert await world.run() == TidyReport(1, 0, 0, ("模型没有回应",))
    assert await world.memory("day", "2026-11-27") is None
    world.writer.broken = False
    world.writer.while_rolling_up = world.writer.while_noting
    assert await world.run() == TidyReport(0, 1, 0, ())


async def test_a_window_without_a_usable_answer_holds_up_no_other(world: World) -> None:
    await world.talk(8, local(DAY, 10), "毒")
    await world.talk(8, local(DAY, 14), "好")
    world.clock.time = local(DAY, 20)
    world.writer.puzzled_by = lambda text: "毒" in text
    report = await world.run()
    assert report == TidyReport(1, 0, 0, ("没有可用的记忆",))
    assert [m.text for m in await messages.pending(1, 99)] == [f"毒{n}" for n in range(8)]
    assert await world.upkeep(patient=False).run(1) == TidyReport(1, 0, 0, ())
    assert await messages.pending(1, 99) == []
    assert world.fallback.calls == 1


async def test_what_owes_nothing_is_told_without_a_write(world: World) -> None:
    await world.talk(8, local(DAY, 10))
    world.clock.time = local(DAY, 10, 10)
    before = world.dump()
    assert not await world.upkeep().owes(1)
    world.clock.time = local(DAY, 11)
    assert await world.upkeep().owes(1)
    assert world.dump() == before
    await world.run()
    assert not await world.upkeep().owes(1)
    world.clock.time = local(DAY + timedelta(days=1), 5)
    assert await world.upkeep().owes(1)


async def test_of_refused_content_only_the_very_lines_are_skipped(world: World) -> None:
    world.writer.refuses = lambda text: "禁语" in text
    await world.talk(5, local(DAY, 9))
    await world.say("禁语", local(DAY, 9, 5))
    await world.talk(5, local(DAY, 9, 6))
    world.clock.time = local(DAY, 10)
    report = await world.run()
    assert report.errors == ()
    skipped = [line for line in await world.export() if line["type"] == "skipped"]
    assert skipped == [{"type": "skipped", "from_seq": 6, "to_seq": 6, "reason": "refused"}]
    assert await world.run() == NOTHING_DONE


async def test_a_refused_roll_up_is_written_by_the_fallback(world: World) -> None:
    await world.talk(8, local(DAY, 9))
    world.writer.refuses = lambda text: len(world.writer.batches) > 0
    world.clock.time = local(DAY + timedelta(days=1), 5)
    assert await world.run() == TidyReport(1, 1, 0, ())
    assert len(world.fallback.batches) == 1
    assert await world.memory("day", "2026-11-27") is not None


async def test_messages_after_midnight_belong_to_the_day_before(world: World) -> None:
    await world.talk(4, local(DAY, 23, 58))
    await world.talk(4, local(DAY + timedelta(days=1), 1, 30))
    await world.talk(4, local(DAY + timedelta(days=1), 4, 0))
    world.clock.time = local(DAY + timedelta(days=2), 9)
    await world.run()
    sizes = {w.date: len(w.messages) for w in world.writer.windows}
    assert sizes == {"2026-11-27": 8, "2026-11-28": 4}
    assert await world.memory("day", "2026-11-27") is not None


async def test_twenty_activities_update_the_day_and_its_end_rebuilds_it(world: World) -> None:
    for number in range(21):
        await world.talk(8, local(DAY, 5) + timedelta(minutes=40 * number), f"第{number}段")
    world.clock.time = local(DAY, 23)
    assert await world.run() == TidyReport(21, 1, 0, ())
    open_day = await memories.memory(world.chat_id, "day", "2026-11-27")
    assert open_day is not None
    assert not open_day.closed
    world.clock.time = local(DAY + timedelta(days=1), 4, 30)
    await world.run()
    (task,) = world.writer.batches[-1][0]
    assert (task.rebuild, task.closes, len(task.sources)) == (True, True, 21)
    day = await memories.memory(world.chat_id, "day", "2026-11-27")
    assert day is not None
    assert (day.closed, day.version) == (True, 2)
    (old,) = await memories.versions(world.chat_id, "day", "2026-11-27")
    assert (old.version, old.text, old.blanked) == (1, open_day.text, False)


async def test_two_months_of_days(world: World) -> None:
    first = date(2026, 11, 10)
    silent = {first + timedelta(days=n) for n in (3, 17, 18, 40)}
    missed_nights = {first + timedelta(days=n) for n in (5, 6, 25)}
    for number in range(66):
        day = first + timedelta(days=number)
        if day not in silent:
            await world.talk(8, local(day, 10), f"{day}早")
            await world.talk(8, local(day, 22), f"{day}晚")
        if day not in missed_nights:
            world.clock.time = local(day + timedelta(days=1), 4, 10)
            assert (await world.run()).errors == ()
    world.clock.time = local(first + timedelta(days=66), 12)
    assert await world.run() == NOTHING_DONE
    assert await world.run(everything=True) == NOTHING_DONE

    days = await memories.all_memories(world.chat_id, "day")
    assert len(days) == 66 - len(silent)
    for found in days:
        parts = await memories.activities(world.chat_id, found.period)
        assert [a.ranges[0][1] - a.ranges[0][0] for a in parts] == [7, 7]
        assert found.sources == tuple(str(a.number) for a in parts)
        assert all(a.text in found.text and a.merged for a in parts)
        assert (found.closed, found.version) == (True, 1)
    months = {m.period: m for m in await memories.all_memories(world.chat_id, "month")}
    assert list(months) == ["2026-11", "2026-12", "2027-01"]
    for period in ("2026-11", "2026-12"):
        month = months[period]
        inside = [d for d in days if d.period.startswith(period)]
        assert month.closed
        assert month.sources == tuple(d.period for d in inside)
        assert all(d.merged and d.text in month.text for d in inside)
        old = await memories.versions(world.chat_id, "month", period)
        assert [v.version for v in old] == list(range(1, month.version))
        assert all(v.text and not v.blanked for v in old)
    assert months["2026-12"].version > 2
    assert not months["2027-01"].closed
    assert "2027-01-14" not in months["2027-01"].sources
    (year,) = await memories.all_memories(world.chat_id, "year")
    assert (year.period, year.closed) == ("2026", True)
    assert year.sources == ("2026-11", "2026-12")
    for tasks, _ in world.writer.batches:
        assert len({task.kind for task in tasks}) == 1
        assert all(task.rebuild for task in tasks if task.closes)


async def test_running_twice_changes_nothing(world: World) -> None:
    await close_days(world, 9)
    before, calls = world.dump(), world.writer.calls
    assert await world.run() == NOTHING_DONE
    assert await world.run(everything=True) == NOTHING_DONE
    assert world.dump() == before
    assert world.writer.calls == calls


async def test_a_late_message_reopens_its_day_and_its_month_once(world: World) -> None:
    start = date(2026, 10, 28)
    await close_days(world, 5, start=start)
    month = await memories.memory(world.chat_id, "month", "2026-10")
    assert month is not None
    assert month.closed
    await world.say("迟到的话", local(date(2026, 10, 29), 12))
    report = await world.run()
    assert report == TidyReport(1, 3, 0, ())  # and the year, in which the month is
    day = await memories.memory(world.chat_id, "day", "2026-10-29")
    newer = await memories.memory(world.chat_id, "month", "2026-10")
    assert day is not None
    assert newer is not None
    assert (day.version, day.closed, "迟到的话" in day.text) == (2, True, True)
    assert (newer.version, newer.closed) == (month.version + 1, True)
    assert "迟到的话" in newer.text
    (old,) = await memories.versions(world.chat_id, "day", "2026-10-29")
    assert old.text
    assert await world.run() == NOTHING_DONE


async def test_a_withdrawn_message_leaves_no_trace(world: World) -> None:
    start = date(2026, 10, 28)
    await world.talk(5, local(start, 10, 30), "前")
    message_id = await world.say(f"口令是{SECRET}", local(start, 10, 40))
    await world.talk(4, local(start, 10, 41), "后")
    await close_days(world, 5, start=start)
    await world.say("让日记和月记都有旧版", local(start, 12))
    await world.run()
    month = await world.memory("month", "2026-10")
    assert month is not None
    assert SECRET in month
    assert len(await memories.versions(world.chat_id, "month", "2026-10")) >= 1

    await world.withdraw(message_id)
    assert await world.memory("day", "2026-10-28") is None
    assert await world.memory("month", "2026-10") is None
    assert await world.memory("day", "2026-10-29") is not None
    shown = await memories.activities(world.chat_id, "2026-10-28")
    assert SECRET not in repr(shown)
    assert SECRET not in repr(await layers(world.file, GROUP))
    assert SECRET not in repr(await memories.memories(world.chat_id, "month", ["2026-10"]))
    assert SECRET not in repr(await world.export())

    report = await world.run()
    assert report.errors == ()
    day = await world.memory("day", "2026-10-28")
    month = await world.memory("month", "2026-10")
    assert day is not None
    assert month is not None
    assert "前4" in day
    assert "后0" in day
    assert "前4" in month
    assert SECRET not in world.dump()
    old = await memories.versions(world.chat_id, "month", "2026-10")
    assert old
    assert all(v.blanked and v.text == "" for v in old)
    assert await world.run() == NOTHING_DONE


async def test_a_withdrawal_spares_what_was_not_built_on_the_message(world: World) -> None:
    await close_days(world, 20, start=date(2026, 11, 1))
    today = date(2026, 11, 21)
    ids = await world.talk(8, local(today, 10), "今天")
    world.clock.time = local(today, 11)
    await world.run()
    month = await world.memory("month", "2026-11")
    assert month is not None
    calls = world.writer.calls

    await world.withdraw(ids[3])
    assert await world.memory("month", "2026-11") == month
    assert await world.run() == TidyReport(1, 0, 0, ())
    assert world.writer.calls == calls + 1
    assert await world.memory("month", "2026-11") == month


async def test_a_fact_from_a_withdrawn_message_goes_with_it(world: World) -> None:
    world.writer.facts = lambda window: (
        Fact("preferences", "口令", SECRET, window.messages[0].seq),
        Fact("preferences", "茶", "爱喝茶", window.messages[1].seq),
    )
    ids = await world.talk(8, local(DAY, 9))
    world.clock.time = local(DAY, 10)
    await world.run()
    assert SECRET in world.dump()
    world.writer.facts = lambda window: (
        Fact("preferences", "茶", "爱喝茶", window.messages[0].seq),
    )
    await world.withdraw(ids[0])
    assert SECRET not in world.dump()
    await world.run()
    assert [row.name for row, _ in await facts.everything(world.chat_id)] == ["茶"]


async def test_a_fact_that_tells_a_neighbours_withdrawn_words_goes_too(world: World) -> None:
    world.writer.facts = lambda window: (
        Fact("preferences", "口令", SECRET, window.messages[1].seq),
    )
    ids = await world.talk(8, local(DAY, 9))
    world.clock.time = local(DAY, 10)
    await world.run()
    world.writer.facts = lambda window: ()
    await world.withdraw(ids[0])
    assert SECRET not in world.dump()


async def test_a_fact_goes_back_to_what_was_said_before(world: World) -> None:
    texts = iter(["爱喝美式", SECRET, "爱喝水"])
    world.writer.facts = lambda window: (
        Fact("preferences", "coffee", next(texts), window.messages[0].seq),
    )
    for hour in (9, 10):
        gone = await world.say("我说", local(DAY, hour))
        kept = await world.say("嗯", local(DAY, hour, 1), by="20009")
        await world.run(everything=True)
    await world.withdraw(gone)
    await world.run()
    assert SECRET not in world.dump()
    found = {row.owner: (row.text, old) for row, old in await facts.everything(world.chat_id)}
    assert found == {"20001": ("爱喝美式", []), "20009": ("爱喝水", [])}
    assert kept


async def test_a_day_of_which_all_is_withdrawn_is_gone_and_may_come_back(world: World) -> None:
    ids = await world.talk(8, local(DAY, 10), SECRET)
    world.clock.time = local(DAY + timedelta(days=1), 5)
    await world.run()
    ids.append(await world.say(f"迟到{SECRET}", local(DAY, 12)))
    await world.run()
    assert len(await memories.versions(world.chat_id, "day", "2026-11-27")) == 1
    for message_id in ids:
        await world.withdraw(message_id)
    assert (await world.run()).errors == ()
    assert await Memory.all().count() == 0
    assert SECRET not in world.dump()
    assert await world.run() == NOTHING_DONE
    for hour in (13, 14):
        await world.say(f"{hour}点才到", local(DAY, hour))
        assert (await world.run()).errors == ()
    day = await world.memory("day", "2026-11-27")
    assert day is not None
    assert "13点才到" in day
    assert "14点才到" in day
    assert await world.run() == NOTHING_DONE


@pytest.mark.parametrize("moment", ["noting", "rolling up", "rewriting"])
async def test_a_withdrawal_during_the_model_call_is_never_stored(
    world: World, moment: str
) -> None:
    message_id = await world.say(f"口令是{SECRET}", local(DAY, 9))
    other_id = await world.say(f"再说一遍{SECRET}", local(DAY, 9, 1))
    await world.talk(8, local(DAY, 9, 2))
    withdrawn: list[str] = []

    async def withdraw() -> None:
        for found in {message_id, other_id} - set(withdrawn):
            withdrawn.append(found)
            await world.withdraw(found)

    world.clock.time = local(DAY + timedelta(days=1), 5)
    if moment == "rewriting":
        await world.run()
        withdrawn.append(message_id)
        await world.withdraw(message_id)
    if moment == "rolling up":
        world.writer.while_rolling_up = withdraw
    else:
        world.writer.while_noting = withdraw
    assert (await world.run()).errors == ()
    assert len(withdrawn) == 2
    assert await world.memory("day", "2026-11-27") is None or SECRET not in str(
        await world.memory("day", "2026-11-27")
    )
    assert SECRET not in repr(await memories.activities(world.chat_id, "2026-11-27"))
    assert (await world.run()).errors == ()
    assert SECRET not in world.dump()
    day = await world.memory("day", "2026-11-27")
    assert day is not None
    assert "话0" in day
    assert await world.run() == NOTHING_DONE


async def test_a_withdrawal_while_a_month_is_written_is_never_stored(world: World) -> None:
    start = date(2026, 10, 28)
    message_id = await world.say(f"口令是{SECRET}", local(start, 10, 30))

    async def withdraw() -> None:
        tasks, _ = world.writer.batches[-1]
        if tasks[0].kind == "month":
            await world.withdraw(message_id)

    world.writer.while_rolling_up = withdraw
    await close_days(world, 5, start=start)
    assert SECRET not in str(await world.memory("month", "2026-10"))
    await world.run()
    assert SECRET not in world.dump()
    assert "28日0" in str(await world.memory("month", "2026-10"))
    assert await world.run() == NOTHING_DONE


@pytest.mark.parametrize("leased", [True, False])
async def test_two_at_once_store_each_job_once(world: World, leased: bool) -> None:
    for number in range(3):
        await world.talk(8, local(DAY + timedelta(days=number), 10))
    world.clock.time = local(DAY + timedelta(days=3), 5)

    async def wait() -> None:
        await asyncio.sleep(0.01)

    world.writer.while_noting = world.writer.while_rolling_up = wait
    two = [world.upkeep(leased=leased) for _ in range(2)]
    reports = await asyncio.gather(*(one.run(world.chat_id) for one in two))
    assert sum(report.activities for report in reports) == 3
    assert sum(report.memories for report in reports) == 3
    if leased:
        assert len(world.writer.windows) == 3
        assert len(world.writer.batches) == 1
    assert await Activity.all().order_by("number").values_list("number", flat=True) == [1, 2, 3]
    assert set(await Memory.all().values_list("version", flat=True)) == {1}
    assert await world.run() == NOTHING_DONE


async def test_a_lease_runs_out(world: World) -> None:
    now = world.clock.now()
    until = now + timedelta(minutes=10)
    assert await claim("甲", now, until)
    assert not await claim("乙", now, until)
    assert await claim("甲", now, until + timedelta(minutes=5))
    assert not await claim("乙", until, until + timedelta(hours=1))
    later = until + timedelta(minutes=6)
    assert await claim("乙", later, later + timedelta(minutes=10))
    await chats.release(1, "upkeep", "甲")
    assert not await claim("甲", later, later + timedelta(minutes=10))
    await chats.release(1, "upkeep", "乙")
    assert await claim("甲", later, later + timedelta(minutes=10))
    assert not await claim("乙", later, later, "丙")
    assert await claim("乙", later, later, "甲")


async def test_facts_belong_to_whoever_said_the_source(world: World) -> None:
    texts = iter(["爱喝美式", "改喝拿铁了", "改喝拿铁了"])

    def told(window: Window) -> tuple[Fact, ...]:
        first = window.messages[0].seq
        return (
            Fact("preferences", "coffee", next(texts), first),
            Fact("self", "mood", "开心", first + 1),
            Fact("nobody", "none", "没有这条消息", 999_999),
        )

    world.writer.facts = told
    for hour in (9, 10, 11):
        await world.say("我说", local(DAY, hour), by="20007")
        await world.say("我说", local(DAY, hour, 1), by=ME)
        world.clock.time = local(DAY, hour, 30)
        await world.run(everything=True)
    found = {row.owner: (row, old) for row, old in await facts.everything(world.chat_id)}
    assert set(found) == {"20007", ME}
    row, old = found["20007"]
    assert (row.text, row.source) == ("改喝拿铁了", 3)
    assert [(v.text, v.source) for v in old] == [("爱喝美式", 1)]
    assert found[ME][1] == []
    line = next(x for x in await world.export() if x["type"] == "fact" and x["owner"] == "20007")
    assert [entry["text"] for entry in line["journal"]] == ["爱喝美式"]


async def check_has_next(world: World) -> None:
    flags = [follows for _, follows in world.writer.batches]
    assert flags == [True] * (len(flags) - 1) + [False]


async def test_has_next_tasks_is_true_exactly_before_another_batch(world: World) -> None:
    await close_days(world, 40, start=date(2026, 10, 20))
    kinds = [tasks[0].kind for tasks, _ in world.writer.batches]
    assert kinds == ["day", "month", "year"]
    await check_has_next(world)


async def test_has_next_tasks_holds_where_a_batch_is_split(world: World) -> None:
    for number in range(6):
        day = DAY + timedelta(days=number - 6)
        for hour in (9, 13, 17):
            await world.talk(8, local(day, hour), "长" * 500)
    world.clock.time = local(DAY, 5)
    await world.run()
    sizes = [len(tasks) for tasks, _ in world.writer.batches]
    assert len(sizes) > 1
    assert sum(sizes) == 6
    await check_has_next(world)


async def test_has_next_tasks_does_not_count_what_needs_no_text(world: World) -> None:
    start = date(2026, 10, 30)
    ids = await close_days(world, 2, start=start)
    world.clock.time = local(date(2026, 11, 2), 5)
    await world.run()
    for message_id in ids[0]:
        await world.withdraw(message_id)
    world.writer.batches.clear()
    await world.run()
    assert [tasks[0].kind for tasks, _ in world.writer.batches] == ["month", "year"]
    await check_has_next(world)


async def test_a_window_around_a_skipped_message_has_two_ranges(world: World) -> None:
    await world.talk(4, local(DAY, 9))
    gone = await world.say("说错了", local(DAY, 9, 5))
    await world.talk(6, local(DAY, 9, 6))
    await world.withdraw(gone)
    world.clock.time = local(DAY, 10)
    await world.run()
    (line,) = [x for x in await world.export() if x["type"] == "activity"]
    assert line["ranges"] == [[1, 4], [6, 11]]
    assert (line["from_seq"], line["to_seq"]) == (1, 11)


async def test_a_message_withdrawn_after_its_window_is_a_hole_in_its_export(world: World) -> None:
    ids = await world.talk(8, local(DAY, 9))
    world.clock.time = local(DAY, 10)
    await world.run()
    await world.withdraw(ids[3])
    await world.run()
    rows = await world.export()
    (line,) = [x for x in rows if x["type"] == "activity"]
    assert line["ranges"] == [[1, 3], [5, 8]]
    assert "话3" not in line["text"]
    (run,) = [x for x in rows if x["type"] == "skipped"]
    assert (run["from_seq"], run["to_seq"], run["reason"]) == (4, 4, "withdrawn")
    (activity,) = await memories.activities(world.chat_id, DAY.isoformat())
    assert activity.ranges == ((1, 8),)


async def test_interleaved_windows_tell_their_runs(world: World) -> None:
    await world.talk(4, local(DAY, 9), "现")
    for number in range(4):
        await world.say(f"旧{number}", local(DAY, 8, number), source="import")
        await world.say(f"新{number}", local(DAY, 9, 10 + number))
    world.clock.time = local(DAY, 10)
    await world.run()
    found = [x for x in await world.export() if x["type"] == "activity"]
    assert sorted(len(x.get("ranges", [])) for x in found) == [4, 5]
    rows = await Row.all().order_by("seq")
    assert len({row.activity_id for row in rows}) == 2
    assert all(one.seq + 1 == other.seq for one, other in pairwise(rows))


async def fill_a_day(world: World) -> None:
    """A day whose six activities are more than one request carries."""
    for hour in range(8, 20, 2):
        await world.talk(8, local(DAY, hour), f"{hour}点" + "长" * 500)
    world.clock.time = local(DAY + timedelta(days=1), 5)
    world.writer.shorten = lambda text: text[:80]


async def test_a_day_larger_than_a_request_is_written_in_parts(world: World) -> None:
    await fill_a_day(world)
    report = await world.run()
    assert report == TidyReport(6, 1, 0, ())
    tasks = [tasks for tasks, _ in world.writer.batches]
    *parts, whole = [batch[0] for batch in tasks]
    assert all(len(batch) == 1 for batch in tasks)
    texts = [source.text for part in parts for source in part.sources]
    assert [text[:7] for text in texts] == [f"我听见：{hour}点长"[:7] for hour in range(8, 20, 2)]
    assert len(parts) == len(whole.sources) > 1
    assert [source.text[:8] for source in whole.sources] == [
        part.sources[0].text[:8] for part in parts
    ]
    await check_has_next(world)
    row = await Memory.get(chat_id=world.chat_id, kind="day")
    assert (row.sources, row.version, row.closed) == ('["1", "2", "3", "4", "5", "6"]', 1, True)
    assert await Activity.filter(merged=False).count() == 0
    assert await world.run() == NOTHING_DONE


async def test_a_month_larger_than_a_request_is_written_in_parts(world: World) -> None:
    world.writer.shorten = lambda text: text[:80] + "事" * 700
    await close_days(world, 30, start=date(2026, 10, 1))
    world.clock.time = local(date(2026, 11, 2), 5)
    world.writer.batches.clear()
    await world.run()
    months = [tasks[0] for tasks, _ in world.writer.batches if tasks[0].kind == "month"]
    *parts, whole = months
    assert len(parts) == len(whole.sources) == 2
    assert sum(len(part.sources) for part in parts) == 30
    await check_has_next(world)
    row = await Memory.get(chat_id=world.chat_id, kind="month")
    assert row.sources.count("2026-10-") == 30


async def test_what_is_taken_back_between_the_parts_is_not_in_the_whole(world: World) -> None:
    await fill_a_day(world)
    gone = await world.say(SECRET, local(DAY, 8, 3))

    async def take_back() -> None:
        if len(world.writer.batches) == 2:
            await world.withdraw(gone)

    world.writer.while_rolling_up = take_back
    await world.run()
    await world.run()
    assert SECRET not in (await world.memory("day", "2026-11-27") or SECRET)
    assert await Activity.filter(merged=False).count() == 0


async def test_a_lease_lost_between_the_parts_stores_nothing(world: World) -> None:
    await fill_a_day(world)

    async def ours() -> bool:
        return len(world.writer.batches) < 1

    assert (await replace(world.upkeep(), still_ours=ours).run(world.chat_id)).memories == 0
    assert len(world.writer.batches) == 1
    assert await world.memory("day", "2026-11-27") is None
    assert (await world.run()).memories == 1


async def test_what_cannot_be_afforded_is_written_by_the_fallback(world: World) -> None:
    await world.talk(50, local(DAY, 9))
    await world.talk(8, local(DAY, 12))
    world.clock.time = local(DAY + timedelta(days=1), 5)

    async def once() -> bool:
        return world.writer.calls < 1

    report = await replace(world.upkeep(), affordable=once).run(world.chat_id)
    assert report == TidyReport(2, 1, 0, ())
    assert len(world.writer.windows) == 1
    assert world.writer.batches == []
    assert (len(world.fallback.windows), len(world.fallback.batches)) == (1, 1)


@pytest.mark.parametrize("why", ["spent", "refused", "impatient", None])
async def test_of_an_emptied_note_it_is_known_who_found_nothing_in_it(
    world: World, why: str | None
) -> None:
    world.fallback.name = "offline"
    ids = await world.talk(8, local(DAY, 9))
    world.clock.time = local(DAY, 10)
    await world.run()
    await world.withdraw(ids[0])
    for writer in (world.writer, world.fallback):
        writer.declines = lambda window: True
    world.writer.refuses = lambda text: why == "refused"
    world.writer.puzzled_by = lambda text: why == "impatient"

    async def affordable() -> bool:
        return why != "spent"

    upkeep = world.upkeep(patient=why != "impatient")
    await replace(upkeep, affordable=affordable).run(world.chat_id)
    row = await Activity.get(chat_id=world.chat_id, number=1)
    assert (row.text, row.stale) == ("", False)
    assert row.writer == ("model" if why is None else "offline")


async def test_a_text_whose_parts_cost_too_much_is_the_fallbacks_as_a_whole(world: World) -> None:
    await fill_a_day(world)

    async def for_one_part() -> bool:
        return not world.writer.batches

    await replace(world.upkeep(), affordable=for_one_part).run(world.chat_id)
    assert len(world.writer.batches) == 1
    ((tasks, _),) = world.fallback.batches
    assert [len(task.sources) for task in tasks] == [6]


async def test_a_session_does_the_owed_work(world: World) -> None:
    await world.talk(50, local(DAY, 9))
    await world.talk(3, local(DAY, 12))
    world.clock.time = local(DAY + timedelta(days=1), 5)
    get = {"action": "get_tasks"}
    for memory in ("上午聊得很热闹。（关键消息：[1,50])", "中午又说了几句。"):
        session = world.upkeep().session(world.chat_id)
        assert (await session.call(get))["action"] == "add_activity"
        assert await session.call({"action": "add_activity", "memory": memory}) == {"success": True}
        assert (await session.call(get))["has_next_tasks"] is False
    session = world.upkeep().session(world.chat_id)
    batch = await session.call(get)
    assert batch["has_next_tasks"] is False
    (task,) = batch["tasks"]
    assert "上午聊得很热闹" in task["source"]["memory"]
    assert "中午又说了几句" in task["source"]["memory"]
    update = {"action": "update_memory", "task_id": 1, "memory": "这一天。（关键消息：[50]）"}
    wrong = update | {"kind": "day", "date": "2026-11-28"}
    assert (await session.call({"actions": [wrong]}))["success"] is False
    right = update | {"kind": "day", "date": "2026-11-27"}
    assert (await session.call({"actions": [right]}))["success"] is True
    assert (await session.call(get))["tasks"] == []
    assert await world.memory("day", "2026-11-27") == "这一天。（关键消息：[50]）"
    assert await world.run() == NOTHING_DONE
    assert world.writer.calls == 0


async def test_a_session_closes_windows_of_declined_and_withdrawn_lines(world: World) -> None:
    ids = await world.talk(10, local(DAY, 9))
    world.clock.time = local(DAY, 10)
    await world.run()
    for message_id in ids[:3]:
        await world.withdraw(message_id)
    await world.talk(4, local(DAY, 11), "后来")
    session = world.upkeep().session(world.chat_id)
    task = await session.call({"action": "get_tasks"})
    assert "话0" not in task["prompt"]
    assert "话3" in task["prompt"]
    assert "后来" not in task["prompt"]
    await session.call({"action": "add_activity", "memory": "只记得后面的话。"})
    session = world.upkeep().session(world.chat_id)
    assert "后来0" in (await session.call({"action": "get_tasks"}))["prompt"]
    assert await session.call({"action": "decline"}) == {"success": True}
    (line,) = [x for x in await world.export() if x["type"] == "activity"]
    assert line["text"] == "只记得后面的话。"
    assert await messages.pending(world.chat_id, 10) == []


async def test_a_session_hands_out_nothing_that_has_changed(world: World) -> None:
    ids = await world.talk(10, local(DAY, 9))
    session = world.upkeep().session(world.chat_id)
    await session.call({"action": "get_tasks"})
    await world.withdraw(ids[0])
    answer = await session.call({"action": "add_activity", "memory": "话0。"})
    assert answer["success"] is False
    assert await Activity.all().count() == 0
    assert "话0" not in (await session.call({"action": "get_tasks"}))["prompt"]
    assert await session.call({"action": "add_activity", "memory": "话1。"}) == {"success": True}


async def test_a_burst_while_a_model_call_takes_a_minute(world: World) -> None:
    start = local(DAY, 9)
    await world.talk(50, start)
    write = world.writer.write_activity
    burst = iter(range(1, 1001))

    async def slowly(window: Window, scene: Scene) -> Note | None:
        # A minute of the clock passes while the model writes, and everybody talks on.
        world.clock.time += timedelta(minutes=1)
        for number in itertools.islice(burst, 250):
            await world.say(f"抢着说{number}", world.clock.time, by=f"2000{number % 7}")
        return await write(window, scene)

    world.clock.time = local(DAY, 10)
    with patch.object(world.writer, "write_activity", slowly):
        await world.run()
    assert next(burst, None) is None
    sizes = [len(window.messages) for window in world.writer.windows]
    assert sizes == [50] * 21
    told = [message.seq for window in world.writer.windows for message in window.messages]
    assert sorted(told) == list(range(1, 1051))
    assert await messages.pending(world.chat_id, 10) == []


async def test_a_look_at_what_is_owed_reads_what_is_pending_once(world: World) -> None:
    await world.talk(3, local(DAY, 9))
    with patch.object(messages, "pending", wraps=messages.pending) as read:
        assert not await world.upkeep().owes(world.chat_id)
    assert read.await_count == 1
