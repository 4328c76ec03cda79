"""All owed work under clocks that jump: nothing is done twice, and nothing is left for ever."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
import random
import sqlite3
from typing import Any

import nonebot
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.config import Config
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.store import chats, invariants, recording
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming
from tests.support.scripted_writer import SetClock

GROUP = ChatKey("10001", "group", "123")
BEGIN = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
FAR = datetime(2099, 6, 1, tzinfo=UTC)

_PENDING = "SELECT count(*) FROM nianlun_message WHERE activity_id IS NULL AND skipped IS NULL"
_ACTIVITIES = "SELECT number, date, version, text FROM nianlun_activity ORDER BY number"
_MEMORIES = (
    "SELECT kind, period, version, closed, sources FROM nianlun_memory ORDER BY kind, period"
)


class World:
    """The product with the offline writer, on a file, and the hands of its clock."""

    def __init__(self, file: Path, zone: str) -> None:
        self.file = file
        self.clock = SetClock(BEGIN)
        config = Config.model_validate({"nianlun": {"timezone": zone}})
        self.nianlun = Nianlun(config, file.parent, nonebot.get_driver().config, clock=self.clock)
        self.numbers = 0

    async def talk(self, count: int, at: datetime) -> None:
        """So many lines, a minute apart, recorded at once whatever the clock says."""
        lines = []
        for number in range(count):
            self.numbers += 1
            segments = [{"type": "text", "data": {"text": f"第{self.numbers}句，周末去爬山"}}]
            lines.append(
                Incoming(
                    GROUP,
                    at + timedelta(minutes=number),
                    "20001",
                    "小鹿",
                    segments,
                    "event",
                    message_id=str(self.numbers),
                )
            )
        await recording.record(lines, readable, "小忆", self.clock.now())

    async def tick(self, now: datetime) -> None:
        self.clock.time = now
        await self.nianlun.jobs.do_owed()

    def rows(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.file)) as connection:
            return connection.execute(query).fetchall()

    async def check(self) -> None:
        found = await invariants.check(
            self.file, 1, self.nianlun.calendar, self.clock.now() + timedelta(days=40_000)
        )
        assert found.findings == ()


@pytest.fixture(params=["Asia/Shanghai", "UTC", "America/New_York"])
def world(request: pytest.FixtureRequest, database_file: Path) -> World:
    return World(database_file, request.param)


async def test_a_clock_that_jumps_ahead_and_back_costs_nothing(world: World) -> None:
    await world.talk(10, BEGIN)
    await world.tick(FAR)
    assert world.rows(_PENDING) == [(0,)]
    before = world.rows(_ACTIVITIES)
    assert len(before) == 1
    await world.talk(10, BEGIN + timedelta(hours=2))
    await world.tick(BEGIN + timedelta(hours=3))
    await world.tick(BEGIN + timedelta(days=2))
    after = world.rows(_ACTIVITIES)
    assert after[: len(before)] == before
    assert len(after) == 2
    (day,) = [row for row in world.rows(_MEMORIES) if row[0] == "day"]
    assert (day[3], day[4]) == (1, '["1", "2"]')
    await world.check()


async def test_a_clock_that_jumps_back_does_nothing_again(world: World) -> None:
    for number in range(4):
        await world.talk(9, BEGIN + timedelta(days=number))
        await world.tick(BEGIN + timedelta(days=number, hours=5))
    await world.tick(BEGIN + timedelta(days=5))
    state = world.rows(_ACTIVITIES), world.rows(_MEMORIES)
    for back in (1, 3, 30, 3000):
        await world.tick(BEGIN - timedelta(days=back))
    await world.tick(BEGIN + timedelta(days=5, minutes=1))
    assert (world.rows(_ACTIVITIES), world.rows(_MEMORIES)) == state
    assert len(state[0]) == 4
    await world.check()


async def test_a_message_from_the_future_holds_nobody_up(world: World) -> None:
    await world.talk(3, BEGIN)
    await world.talk(1, BEGIN + timedelta(hours=1))
    await world.talk(1, FAR)
    await world.tick(BEGIN + timedelta(minutes=5))
    assert world.rows(_ACTIVITIES) == []
    await world.tick(BEGIN + timedelta(days=2))
    assert len(world.rows(_ACTIVITIES)) == 1
    assert world.rows(_PENDING) == [(1,)]
    assert [(row[1], row[3]) for row in world.rows(_MEMORIES)] == [("2026-11-20", 1)]
    await world.nianlun.jobs.tidy()
    assert world.rows(_PENDING) == [(1,)]
    await world.tick(datetime(2027, 1, 3, tzinfo=UTC))
    assert [(row[0], row[1], row[3]) for row in world.rows(_MEMORIES)] == [
        ("day", "2026-11-20", 1),
        ("month", "2026-11", 1),
        ("year", "2026", 1),
    ]
    await world.tick(FAR + timedelta(days=2))
    assert world.rows(_PENDING) == [(0,)]
    await world.check()


async def test_a_failure_in_the_far_future_does_not_silence_a_chat(world: World) -> None:
    await world.talk(10, BEGIN)
    await chats.note_failure(1, "没写成", FAR)
    await world.tick(BEGIN + timedelta(hours=1))
    assert len(world.rows(_ACTIVITIES)) == 1


async def test_a_failure_just_now_is_waited_out(world: World) -> None:
    await world.talk(10, BEGIN)
    now = BEGIN + timedelta(hours=1)
    await chats.note_failure(1, "没写成", now)
    await world.tick(now + timedelta(seconds=30))
    assert world.rows(_ACTIVITIES) == []
    await world.tick(now + timedelta(seconds=61))
    assert len(world.rows(_ACTIVITIES)) == 1


async def test_a_lease_from_the_far_future_does_not_silence_a_chat(world: World) -> None:
    await world.talk(10, BEGIN)
    elsewhere = "abc@1/another-machine"
    until = FAR + timedelta(minutes=10)
    assert await chats.claim(1, "upkeep", elsewhere, FAR, until, lambda holder: False)
    await world.tick(BEGIN + timedelta(hours=1))
    assert len(world.rows(_ACTIVITIES)) == 1


async def test_a_lease_of_another_machine_is_respected(world: World) -> None:
    await world.talk(10, BEGIN)
    now = BEGIN + timedelta(hours=1)
    until = now + timedelta(minutes=10)
    assert await chats.claim(1, "upkeep", "abc@1/another-machine", now, until, lambda _: False)
    await world.tick(now)
    assert world.rows(_ACTIVITIES) == []
    await world.tick(now + timedelta(minutes=11))
    assert len(world.rows(_ACTIVITIES)) == 1


@pytest.mark.parametrize("seed", [4, 11])
async def test_a_drunken_clock(world: World, seed: int) -> None:
    """Talk goes on as time really does, while the clock shows anything between 2026 and 2099."""
    dice = random.Random(seed)
    real = BEGIN
    for _ in range(25):
        real += timedelta(hours=dice.randint(1, 30))
        await world.talk(dice.randint(1, 60), real)
        wrong = [real - timedelta(days=dice.randint(1, 900)), real + timedelta(days=40), FAR, real]
        await world.tick(dice.choice(wrong))
    real += timedelta(days=2)
    world.clock.time = real
    await world.nianlun.jobs.tidy()
    assert world.rows(_PENDING) == [(0,)]
    covered = "SELECT count(*), count(activity_id), count(DISTINCT message_id) FROM nianlun_message"
    assert world.rows(covered) == [(world.numbers,) * 3]
    days = [row[1] for row in world.rows(_MEMORIES) if row[0] == "day"]
    assert days == sorted({row[1] for row in world.rows(_ACTIVITIES)})
    assert world.rows("SELECT 1 FROM nianlun_activity WHERE merged = 0") == []
    await world.check()
    state = world.rows(_ACTIVITIES), world.rows(_MEMORIES)
    await world.nianlun.jobs.tidy()
    assert (world.rows(_ACTIVITIES), world.rows(_MEMORIES)) == state
