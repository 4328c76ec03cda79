"""Notes of a file that were made by other windows or another calendar go with what they tell."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import chats, forgetting, memories, recording
from plugins.nonebot_plugin_nianlun.store.importing import Importer
from plugins.nonebot_plugin_nianlun.store.matching import Line
from plugins.nonebot_plugin_nianlun.store.models import Memory as MemoryRow
from plugins.nonebot_plugin_nianlun.store.records import Noted, Remembered, Version
from plugins.nonebot_plugin_nianlun.store.restoring import Restorer
from plugins.nonebot_plugin_nianlun.types import Activity, Incoming, Memory
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, SECRET, World, local

SHE = "20777"
WRITTEN = local(DAY, 23)


@pytest.fixture
async def world(database_file: Path) -> World:
    found = World(database_file)
    await chats.ensure([GROUP], found.clock.now())
    return found


def talk(count: int, hers: int, pause_after: int) -> list[Incoming]:
    """Lines a minute apart, one of them hers, with hours of silence somewhere."""
    lines = []
    for number in range(1, count + 1):
        at = local(DAY, 9, number) + timedelta(hours=5 if number > pause_after else 0)
        by, text = (SHE, SECRET) if number == hers else ("20001", f"话{number}")
        segments = [{"type": "text", "data": {"text": text}}]
        lines.append(Incoming(GROUP, at, by, "谁", segments, "event", message_id=str(number)))
    return lines


async def noted_here(world: World, lines: list[Incoming]) -> list[tuple[tuple[int, int], ...]]:
    """Record and note the lines; returns the windows."""
    await recording.record(lines, readable, "小忆", world.clock.now())
    world.clock.time = WRITTEN
    await world.run(everything=True)
    await MemoryRow.all().delete()
    return [activity.ranges for activity in await memories.all_activities(1)]


async def restorer_of(lines: list[Incoming]) -> Restorer:
    importer = Importer(1, readable, "小忆")
    restorer = Restorer(importer, CALENDAR, WRITTEN)
    found = [Line(line, seq=number) for number, line in enumerate(lines, 1)]
    restorer.note_messages(await importer.store(found))
    return restorer


def activity(date: str, last: int) -> Noted:
    text, ranges = f"她说{SECRET}", ((1, last),)
    return Noted(Activity(1, date, text, (), "window", WRITTEN, "model", WRITTEN, ranges=ranges))


def memory(kind: str, period: str, source: str) -> Remembered:
    text = f"她说{SECRET}"
    assert kind in ("day", "month", "year")
    newest = Memory(kind, period, f"{text}了", (), (source,), 2, "model", WRITTEN)
    return Remembered(newest, (Version(1, text, "model", WRITTEN),))


async def test_a_day_of_another_calendar_is_emptied_too(world: World) -> None:
    lines = talk(9, hers=4, pause_after=9)
    assert await noted_here(world, lines) == [((1, 9),)]
    restorer = await restorer_of(lines)
    later = f"{DAY + timedelta(days=1)}"
    layers = [memory("day", later, "1"), memory("month", "2031-02", later)]
    layers.append(memory("year", "2040", "2031-02"))
    assert await restorer.store([activity(later, 9), *layers]) == []
    assert await MemoryRow.all().exclude(text="").count() == 3
    done = await forgetting.forget(1, SHE, WRITTEN)
    assert done.notes == 4
    assert SECRET not in world.dump()
    await world.run(everything=True)
    assert SECRET not in world.dump()


async def test_a_note_over_several_windows_of_ours_does_not_outlive_one(world: World) -> None:
    lines = talk(18, hers=12, pause_after=9)
    assert await noted_here(world, lines) == [((1, 9),), ((10, 18),)]
    restorer = await restorer_of(lines)
    assert await restorer.store([activity(f"{DAY}", 18), memory("day", f"{DAY}", "1")]) == []
    await world.withdraw("12")
    assert SECRET not in world.dump()
    await world.run(everything=True)
    day = await world.memory("day", f"{DAY}")
    assert day is not None
    assert "话1；" in day
    assert "话18" in day
    assert SECRET not in world.dump()
