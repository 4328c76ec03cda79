"""Messages and activities that are removed by hand, with all that was built on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.memory.render import render_messages
from plugins.nonebot_plugin_nianlun.store import (
    deleting,
    editing,
    facts,
    memories,
    messages,
    provenance,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.deleting import Deleted
from plugins.nonebot_plugin_nianlun.store.importing import Importer
from plugins.nonebot_plugin_nianlun.store.matching import Line
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from plugins.nonebot_plugin_nianlun.types import Fact, Incoming, Source, Window
from tests.store.test_editing import DAY_KEY, EDITOR, FIRST, MONTH_KEY, sound, stands
from tests.store.test_upkeep import CALENDAR, GROUP, World, close_days, local, world

__all__ = ["world"]

SECRET = "芝麻开门"


async def delete(world: World, *, seqs: Sequence[int] = (), numbers: Sequence[int] = ()) -> Deleted:
    deleted = await deleting.delete(1, seqs, numbers, world.clock.now())
    await sound(world)
    return deleted


async def whispered(world: World) -> int:
    """Five days of which the first tells a secret; its short id."""
    await world.talk(4, local(FIRST, 9), "早")
    await world.say(f"口令是{SECRET}", local(FIRST, 9, 5))
    await world.talk(4, local(FIRST, 9, 6), "后")
    await close_days(world, 5, start=FIRST)
    return 5


def said(words: str, at: datetime, message_id: str | None, source: Source) -> Incoming:
    segments = [{"type": "text", "data": {"text": words}}]
    return Incoming(GROUP, at, "20001", "小鹿", segments, source, message_id=message_id)


async def test_a_message_goes_from_every_layer(world: World) -> None:
    seq = await whispered(world)
    assert SECRET in (await stands(world, "month", MONTH_KEY))[0]
    deleted = await delete(world, seqs=[seq, 999])
    assert (deleted.messages, deleted.activities, deleted.missing) == ((5,), (), ("#999",))
    assert deleted.rewritten == 4  # its activity, the day, the month and the year
    assert SECRET not in world.dump()
    await world.run()
    text, _, _ = await stands(world, "day", DAY_KEY)
    assert "后3" in text
    assert (await delete(world, seqs=[seq])).missing == ("#5",)


async def test_no_trace_is_left_in_the_files(world: World) -> None:
    seq = await whispered(world)
    await delete(world, seqs=[seq])
    assert await Traces(world.file).remove(hurry=True)
    for file in world.file.parent.iterdir():
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize("source", ["event", "history"])
async def test_it_does_not_come_back_when_it_is_reported_again(
    world: World, source: Source
) -> None:
    seq = await whispered(world)
    await delete(world, seqs=[seq])
    for shift in (0, 3):  # the second time by another clock
        at = local(FIRST, 9, 5) + timedelta(seconds=shift)
        line = said(SECRET, at, "5", source)
        await recording.record([line], readable, "小忆", world.clock.now())
    await world.run(everything=True)
    assert SECRET not in world.dump()
    await sound(world)


async def test_a_later_message_of_the_same_id_is_another_one(world: World) -> None:
    seq = await whispered(world)
    await delete(world, seqs=[seq])
    line = said("别的话", local(FIRST, 23), "5", "event")
    await recording.record([line], readable, "小忆", world.clock.now())
    assert [message.text for message in await messages.pending(1, 9)] == ["别的话"]


@pytest.mark.parametrize("numbered", [True, False])
async def test_it_does_not_come_back_from_an_old_file(world: World, numbered: bool) -> None:
    seq = await whispered(world)
    await delete(world, seqs=[seq])
    line = said(SECRET, local(FIRST, 9, 5), "5" if numbered else None, "import")
    importer = Importer(1, readable, "小忆")
    stored = await importer.store([Line(line)])
    await importer.finish()
    assert stored.new == 0
    assert SECRET not in world.dump()
    await sound(world)


async def test_an_activity_is_not_written_again(world: World) -> None:
    await whispered(world)
    deleted = await delete(world, numbers=[1, 99])
    assert (deleted.activities, deleted.missing, deleted.rewritten) == ((1,), ("&99",), 3)
    calls = len(world.writer.windows)
    await world.run(everything=True)
    assert len(world.writer.windows) == calls
    gone = await memories.activity(1, 1)
    assert gone is not None
    assert (gone.text, gone.ranges, gone.key_messages) == ("", (), ())
    assert SECRET not in (await stands(world, "day", DAY_KEY))[0]
    assert SECRET not in (await stands(world, "month", MONTH_KEY))[0]
    skipped = [line for line in await world.export() if line["type"] == "skipped"]
    assert skipped == [{"type": "skipped", "from_seq": 1, "to_seq": 9, "reason": "declined"}]
    assert (await delete(world, numbers=[1])).missing == ("&1",)
    await sound(world)


async def test_its_messages_stay_and_those_withdrawn_stay_withdrawn(world: World) -> None:
    await whispered(world)
    await world.withdraw("1")
    await delete(world, numbers=[1])
    lines = await messages.recent(1, 100)
    assert SECRET in render_messages(lines, CALENDAR, {}, me="小忆")
    skipped = [line for line in await world.export() if line["type"] == "skipped"]
    assert [(line["from_seq"], line["reason"]) for line in skipped] == [
        (1, "withdrawn"),
        (2, "declined"),
    ]
    await world.run(everything=True)
    await sound(world)


async def test_the_last_activity_of_a_day_takes_the_day_with_it(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    await delete(world, numbers=[1])
    await world.run()
    assert await memories.memory(1, "day", DAY_KEY) is None
    assert await memories.target(1, "day", DAY_KEY) is None
    month = await memories.memory(1, "month", MONTH_KEY)
    assert month is None or DAY_KEY not in month.sources
    assert await provenance.nothing_left(1, DAY_KEY)
    assert not await provenance.nothing_left(1, MONTH_KEY)
    await sound(world)


async def test_of_a_removed_activity_it_stays_known_who_wrote_it(world: World) -> None:
    await close_days(world, 1, start=FIRST)
    written = await memories.activity(1, 1)
    assert written is not None
    world.clock.time += timedelta(hours=1)
    await delete(world, numbers=[1])
    assert await provenance.emptied(1, 1) == ("deleted", world.clock.now())
    [version] = await memories.versions(1, "activity", "1")
    assert (version.version, version.text, version.writer) == (1, "", written.writer)
    assert (version.written_at, version.blanked) == (written.written_at, True)


async def test_what_was_withdrawn_whole_was_not_deleted(world: World) -> None:
    await close_days(world, 1, start=FIRST)
    activity = await memories.activity(1, 1)
    assert activity is not None
    [(first, last)] = activity.ranges
    await delete(world, seqs=list(range(first, last + 1)))
    assert await provenance.emptied(1, 1) == ("waiting", None)
    await world.run()
    assert await provenance.emptied(1, 1) == ("left", None)
    assert await provenance.emptied(1, 99) is None


async def test_facts_of_what_is_removed_go_with_it(world: World) -> None:
    def learnt(window: Window) -> tuple[Fact, ...]:
        source = window.messages[0].seq
        return (Fact("event", f"第{source}句", SECRET, source),)

    world.writer.facts = learnt
    await close_days(world, 3, start=FIRST)
    assert len(await facts.listed(1)) == 3
    world.writer.facts = lambda window: ()
    await delete(world, seqs=[1])
    assert [row.name for row in await facts.listed(1)] == ["第17句", "第9句"]
    await delete(world, numbers=[2])
    assert [row.name for row in await facts.listed(1)] == ["第17句"]


async def test_what_a_person_wrote_is_named(world: World) -> None:
    await whispered(world)
    await editing.edit(1, "day", DAY_KEY, "人写的。", EDITOR, world.clock.now())
    await editing.edit(1, "activity", "2", "也是人写的。", EDITOR, world.clock.now())
    deleted = await delete(world, seqs=[5, 10])
    assert deleted.edited == ("&2", DAY_KEY)


async def test_several_at_once(world: World) -> None:
    await whispered(world)
    deleted = await delete(world, seqs=[10, 5, 5], numbers=[1, 3, 3])
    assert (deleted.messages, deleted.activities, deleted.missing) == ((10, 5), (1, 3), ())
    await world.run(everything=True)
    assert SECRET not in world.dump()
    await sound(world)


@pytest.mark.parametrize("target", ["message", "activity"])
async def test_while_a_note_is_being_written(world: World, target: str) -> None:
    await world.talk(4, local(FIRST, 9), "早")
    await world.say(f"口令是{SECRET}", local(FIRST, 9, 5))
    await world.talk(4, local(FIRST, 9, 6), "后")
    world.clock.time = local(FIRST, 12)
    seqs, numbers = ([5], []) if target == "message" else ([], [1])

    async def meanwhile() -> None:
        world.writer.while_noting = nothing
        await deleting.delete(1, seqs, numbers, world.clock.now())

    async def nothing() -> None: ...

    if target == "activity":
        await world.run()
        await world.withdraw("1")  # the activity is written again
    world.writer.while_noting = meanwhile
    await world.run()
    await sound(world)
    await world.run(everything=True)
    await sound(world)
    if target == "message":
        assert SECRET not in world.dump()
    else:
        assert [a.text for a in await memories.all_activities(1)] == [""]


@pytest.mark.parametrize("target", ["message", "activity"])
async def test_while_a_day_is_being_written(world: World, target: str) -> None:
    await world.talk(4, local(FIRST, 9), "早")
    await world.say(f"口令是{SECRET}", local(FIRST, 9, 5))
    await world.talk(4, local(FIRST, 9, 6), "后")
    await world.talk(9, local(FIRST, 14), "午")
    seqs, numbers = ([5], []) if target == "message" else ([], [1])

    async def meanwhile() -> None:
        world.writer.while_rolling_up = nothing
        await deleting.delete(1, seqs, numbers, world.clock.now())

    async def nothing() -> None: ...

    world.writer.while_rolling_up = meanwhile
    world.clock.time = local(FIRST + timedelta(days=1), 5)
    await world.run()
    await world.run()
    text, _, _ = await stands(world, "day", DAY_KEY)
    assert SECRET not in text
    assert "午8" in text
    await sound(world)


async def test_edits_and_deletions_at_once_leave_a_sound_chat(world: World) -> None:
    await whispered(world)
    now = world.clock.now()
    results = await asyncio.gather(
        deleting.delete(1, [5], [2], now),
        editing.edit(1, "day", DAY_KEY, "人写的。", EDITOR, now),
        editing.edit(1, "month", MONTH_KEY, "人写的。", EDITOR, now),
        deleting.delete(1, [5, 6], [], now),
        editing.edit(1, "activity", "3", "人写的。", EDITOR, now),
        world.run(),
        return_exceptions=True,
    )
    unforeseen = [r for r in results if isinstance(r, BaseException) and "重写" not in str(r)]
    assert unforeseen == []
    await sound(world)
    await world.run(everything=True)
    await sound(world)
    assert SECRET not in world.dump()
