"""Clearing a chat: nothing of it is left anywhere, it does not come back, and a new one begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
import json
from pathlib import Path
import shutil
import signal
import sys

from nonebot import get_driver
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.config import Config, Settings
from plugins.nonebot_plugin_nianlun.errors import Overtaken
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    clearing,
    database,
    diary,
    exclusions,
    invariants,
    recording,
    speakers,
    usage,
)
from plugins.nonebot_plugin_nianlun.store import messages as stored_messages
from plugins.nonebot_plugin_nianlun.store.models import Activity, Chat, Exclusion, Fact, Speaker
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.store.notes import store_activity
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from plugins.nonebot_plugin_nianlun.types import ChatKey, Note, Usage, Window
from tests.store.test_forgetting import START, files_with, plant, prompt, record, said
from tests.store.test_upkeep import CALENDAR, GROUP, World, local
from tests.support.scripted_writer import SetClock
from tests.support.standalone import finish, put_package, start

OTHER = ChatKey("10001", "group", "456")
WORD = "石榴色的灯塔"
START_AT = local(START, 9)


@pytest.fixture
async def world(database_file: Path) -> World:
    found = World(database_file)
    await chats.ensure([GROUP], found.clock.now())
    return found


async def clear(world: World) -> None:
    await clearing.clear(world.file, world.chat_id, world.clock.now())


async def faults(world: World) -> tuple[str, ...]:
    now = world.clock.now() + timedelta(days=1)
    return (await invariants.check(world.file, world.chat_id, CALENDAR, now)).findings


async def test_nothing_is_left_and_no_byte(world: World) -> None:
    planted = await plant(world)
    await recording.record(
        [said("别处的话", local(START, 10), chat=OTHER, message_id="o")], readable, "小忆", START_AT
    )
    await usage.count(
        world.chat_id, "2026-10-28", "note", "m", Usage(prompt=10, completion=5), ok=True
    )
    await exclusions.opt_out(world.chat_id, "20002", world.clock.now(), world.clock.now())
    before = await Chat.get(id=world.chat_id)
    with closing(database.connect(world.file, 5)) as connection:
        database.back_up(connection, world.file, "0002")
    world.clock.time += timedelta(minutes=5)
    there = await clearing.contents(world.chat_id)
    rows = await Row.filter(chat_id=world.chat_id)
    assert there.messages == sum(bool(row.text) or row.segments != "[]" for row in rows)
    await Row.filter(chat_id=world.chat_id, seq=rows[0].seq).update(text="")
    assert (await clearing.contents(world.chat_id)).messages == there.messages
    assert (there.messages > 10, there.days > 0, there.years, there.facts > 1) == (True,) * 2 + (
        1, True,
    )  # fmt: skip
    await clear(world)

    assert await clearing.contents(world.chat_id) == clearing.Contents(0, 0, 0, 0, 0, 0, 1)
    for place, text in planted.items():
        assert text not in world.dump(), place
        assert text not in repr(await world.export()), place
        assert text not in await prompt(world), place
    assert await Traces(world.file).remove()
    for place, text in planted.items():
        assert files_with(world, text) == set(), place
    assert len(database.backups(world.file)) == 1
    after = await Chat.get(id=world.chat_id)
    assert (after.last_seq, after.last_activity) == (before.last_seq, before.last_activity)
    assert await exclusions.opted_out(world.chat_id, "20002")
    assert [(s.user_id, s.name) for s in await Speaker.filter(chat_id=1)] == [("20002", "20002")]
    assert await usage.tokens(world.chat_id, "2026-10-28", replies=False) == 15
    assert [row.text for row in await Row.filter(chat_id=2)] == ["别处的话"]
    with closing(database.connect(world.file, 5)) as connection:
        left = connection.execute("SELECT count(*) FROM nianlun_search_terms").fetchone()
        vectors = connection.execute("SELECT count(*) FROM nianlun_vector").fetchone()
    assert (left, vectors) == ((1,), (0,))
    assert await faults(world) == ()


async def test_a_new_record_begins_with_new_numbers(world: World) -> None:
    await plant(world)
    last = (await Chat.get(id=world.chat_id)).last_seq
    await clear(world)
    later = world.clock.now() + timedelta(minutes=1)
    await record(world, said("又来了", later, name="小蓝", message_id="n"))
    (row,) = await Row.filter(chat_id=world.chat_id)
    assert (row.seq, row.text) == (last + 1, "又来了")
    assert await speakers.resolve(world.chat_id, "小蓝") == "20777"
    world.clock.time = later + timedelta(minutes=1)
    await world.run(everything=True)
    (note,) = await Activity.filter(chat_id=world.chat_id)
    assert note.number == 100
    assert await faults(world) == ()


async def test_what_comes_late_or_again_does_not_bring_it_back(world: World) -> None:
    at = local(START, 10)
    await record(world, said("旧话", at, message_id="1"))
    world.clock.time = at + timedelta(minutes=1)
    await clear(world)
    await record(world, said("旧话", at, message_id="1"), said("补来", at, message_id="2"))
    await record(world, said("同一秒", world.clock.now(), message_id="3"))
    await record(world, said("新话", world.clock.now() + timedelta(seconds=1), message_id="4"))
    texts = [row.text for row in await Row.filter(chat_id=world.chat_id).order_by("seq")]
    assert texts == ["", "", "", "新话"]
    assert "旧话" not in world.dump()
    await clear(world)
    assert [row.text for row in await Row.filter(chat_id=world.chat_id)] == []
    assert await faults(world) == ()


async def test_names_are_known_again_in_every_process(world: World) -> None:
    """The other process remembers that it has the name on record; the clearing strikes it off."""
    at = local(START, 10)
    for _ in range(2):
        await record(world, said("在", at, name="小蓝", message_id=f"{at}"))
        remembered = dict(speakers._shown)
        world.clock.time = at
        await clear(world)
        speakers._shown.update(remembered)
        at += timedelta(seconds=2)
        await record(world, said("在", at, name="小蓝", message_id=f"{at}"))
        assert await speakers.resolve(world.chat_id, "小蓝") == "20777"


async def test_what_was_written_meanwhile_from_what_goes(world: World) -> None:
    """Others had read the messages before they went, and store what they made of them."""
    await world.talk(10, local(START, 10), "旧")
    world.clock.time = local(START, 11)
    read = await stored_messages.pending(world.chat_id, 10)
    await clearing.begin(world.chat_id, world.clock.now())
    note = Note(f"{WORD}。（#1）", (1,), "model")
    number = await store_activity(
        world.chat_id, Window("2026-10-28", tuple(read)), note, world.clock.now()
    )
    moment = diary.Moment(WORD, "2026-10-28", world.clock.now(), "tool", seen=(1,))
    await diary.append(world.chat_id, [moment], world.clock.now())
    new = said("新话", world.clock.now() + timedelta(seconds=2), message_id="n")
    await record(world, new)
    while await clearing.go_on(world.file, world.chat_id):
        pass
    assert number == 1
    assert WORD not in world.dump()
    assert [row.text for row in await Row.filter(chat_id=world.chat_id)] == ["新话"]
    with pytest.raises(Overtaken):
        await store_activity(
            world.chat_id, Window("2026-10-28", tuple(read)), note, world.clock.now()
        )
    with pytest.raises(Overtaken):
        await diary.keep_turn(world.chat_id, [1], [], [], world.clock.now())
    assert await faults(world) == ()


async def test_a_long_chat_goes_in_parts_between_which_others_write(world: World) -> None:
    await fill(world, 3000)
    await clearing.begin(world.chat_id, world.clock.now())
    left = [await Row.filter(chat_id=world.chat_id).count()]
    number = 0
    while await clearing.go_on(world.file, world.chat_id):
        number += 1
        await record(
            world,
            said("新", world.clock.now() + timedelta(seconds=9 + number), message_id=f"{number}"),
        )
        left.append(await Row.filter(chat_id=world.chat_id, text="旧").count())
    assert max(a - b for a, b in pairwise(left)) <= 400
    assert left[-1] == 0
    assert await Row.filter(chat_id=world.chat_id, text="新").count() == number
    assert await faults(world) == ()


async def fill(world: World, count: int) -> None:
    at = local(START, 9)
    lines = [said("旧", at + timedelta(seconds=n), message_id=f"old{n}") for n in range(count)]
    await recording.record(lines, readable, "小忆", at)
    world.clock.time = local(START, 11)


async def test_a_message_of_the_same_moment_is_either_gone_or_new(world: World) -> None:
    await world.talk(30, local(START, 10))
    world.clock.time = local(START, 11)
    now = world.clock.now()
    arriving = [
        said(f"来{n}", now + timedelta(seconds=n - 2), message_id=f"m{n}") for n in range(6)
    ]
    await asyncio.gather(clear(world), *[record(world, line) for line in arriving])
    texts = {row.text for row in await Row.filter(chat_id=world.chat_id)} - {""}
    assert texts == {"来3", "来4", "来5"}
    assert await faults(world) == ()


SCRIPT = """
import asyncio, os, signal, sys
from datetime import datetime
from pathlib import Path
from nianlun.store import clearing, database

async def main():
    path, steps = Path(sys.argv[1]), int(sys.argv[2])
    await database.open_store(path)
    await clearing.begin(1, datetime.fromisoformat(sys.argv[3]))
    for _ in range(steps):
        await clearing.go_on(path, 1)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("steps", [0, 3, 7])
async def test_what_a_killed_process_left_is_finished_at_the_next_start(
    prepared_database: Path, tmp_path: Path, steps: int
) -> None:
    path = tmp_path / "nianlun.db"
    shutil.copy(prepared_database, path)
    await database.open_store(path)
    world = World(path)
    try:
        await chats.ensure([GROUP], world.clock.now())
        await fill(world, 900)
        await plant(world)
        world.clock.time += timedelta(seconds=1)
    finally:
        await database.close_store()
        chats.forget_cached_ids()
        speakers.forget_cached_names()
    put_package(tmp_path)
    at = world.clock.now()
    status, _, complaints = finish(start(tmp_path, SCRIPT, path, steps, at.isoformat()))
    assert status == -signal.SIGKILL, complaints
    product = nianlun_at(tmp_path, SetClock(at + timedelta(minutes=1)))
    await product.open()
    try:
        async with asyncio.timeout(10):
            while await clearing.owed():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await clearing.contents(1) == clearing.Contents(0, 0, 0, 0, 0, 0, 0)
        assert "暗号" not in world.dump()
        assert await faults(world) == ()
    finally:
        await product.close()
    assert files_with(world, "暗号") == set()


def nianlun_at(folder: Path, clock: SetClock) -> Nianlun:
    return Nianlun(Config(nianlun=Settings()), folder, get_driver().config, clock)


@pytest.fixture
async def product(prepared_database: Path, tmp_path: Path) -> AsyncIterator[Nianlun]:
    shutil.copy(prepared_database, tmp_path / "nianlun.db")
    found = nianlun_at(tmp_path, SetClock(local(START, 12)))
    await found.open()
    yield found
    await found.close()


async def test_an_old_export_does_not_bring_it_back(product: Nianlun, tmp_path: Path) -> None:
    world = World(product.path)
    await chats.ensure([GROUP], world.clock.now())
    await plant(world)
    moment = diary.Moment("没人听见的暗号", START.isoformat(), START_AT, "tool")
    await diary.append(world.chat_id, [moment], world.clock.now())
    file = tmp_path / "old.jsonl"
    lines = [json.dumps(line, ensure_ascii=False) for line in await world.export()]
    file.write_text("\n".join(lines), "utf-8")
    cast_clock = product.clock
    assert isinstance(cast_clock, SetClock)
    cast_clock.time = world.clock.now() + timedelta(minutes=1)
    assert (await product.clearings.clear(GROUP, cast_clock.now())).messages > 10
    await import_file(product, file, ImportOptions())
    assert "暗号" not in world.dump()
    there = await clearing.contents(world.chat_id)
    assert replace(there, people=0) == clearing.Contents(0, 0, 0, 0, 0, 0, 0)
    assert await Fact.all().count() == 0
    spans = [(e.reason, e.user_id) for e in await Exclusion.filter(chat_id=1)]
    assert ("forgotten", "me") in spans
    inspection = await product.inspect(GROUP)
    assert inspection.findings == ()
