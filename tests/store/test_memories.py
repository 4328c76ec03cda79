"""Notes of all layers: stored whole or not at all, checked against what they were written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import Overtaken
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    memories,
    messages,
    notes,
    recording,
    usage,
)
from plugins.nonebot_plugin_nianlun.store.models import Activity as ActivityRow
from plugins.nonebot_plugin_nianlun.store.models import Memory as MemoryRow
from plugins.nonebot_plugin_nianlun.store.models import NoteVersion
from plugins.nonebot_plugin_nianlun.types import (
    Activity,
    ChatKey,
    Incoming,
    Memory,
    Note,
    RollupTask,
    Usage,
    Window,
    Withdrawal,
)
from tests.support.reply_layers import layers

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
LATER = NOON + timedelta(days=1)
TODAY = "2026-11-29"
GROUP = ChatKey("10001", "group", "123")

pytestmark = pytest.mark.usefixtures("database_file")


async def talk(count: int, first: int = 1) -> int:
    """Record that many lines; returns the chat's row id."""
    lines = [
        Incoming(
            GROUP,
            NOON + timedelta(seconds=number),
            "20001",
            "小鹿",
            [{"type": "text", "data": {"text": f"第{number}句"}}],
            "event",
            message_id=str(number),
        )
        for number in range(first, first + count)
    ]
    await recording.record(lines, readable, "小忆", NOON)
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    return chat_id


async def withdraw(number: int) -> None:
    await recording.record([Withdrawal(GROUP, str(number), None, LATER)], readable, "小忆", LATER)


async def window(chat_id: int, count: int = 100) -> Window:
    return Window(TODAY, tuple(await messages.pending(chat_id, count)))


def note(text: str) -> Note:
    return Note(text, (1,), "model")


def task(
    sources: Sequence[Activity], target: Memory | None = None, *, rebuild: bool = True
) -> RollupTask:
    return RollupTask("day", TODAY, tuple(sources), target, rebuild, closes=True)


async def write_day(chat_id: int, text: str, *, rebuild: bool = True) -> None:
    found = await memories.activities(chat_id, TODAY)
    target = await memories.target(chat_id, "day", TODAY)
    owed = task(found, target, rebuild=rebuild)
    await notes.store_memories(chat_id, [owed], [note(text)], LATER)


async def test_an_activity_takes_its_messages_once() -> None:
    chat_id = await talk(3)
    seen = await window(chat_id)
    assert await notes.store_activity(chat_id, seen, note("我听了三句"), LATER) == 1
    with pytest.raises(Overtaken):
        await notes.store_activity(chat_id, seen, note("我又听了三句"), LATER)
    (found,) = await memories.activities(chat_id, TODAY)
    assert (found.text, found.ranges, found.merged) == ("我听了三句", ((1, 3),), False)
    await talk(1, first=9)
    assert await notes.store_activity(chat_id, await window(chat_id), note("二"), LATER) == 2


async def test_an_activity_of_a_withdrawn_message_is_not_stored_at_all() -> None:
    chat_id = await talk(3)
    seen = await window(chat_id)
    await withdraw(2)
    with pytest.raises(Overtaken):
        await notes.store_activity(chat_id, seen, note("我听了三句"), LATER)
    assert await ActivityRow.all().count() == 0
    assert [m.seq for m in await messages.pending(chat_id, 9)] == [1, 3]


async def test_a_new_text_keeps_the_old_one() -> None:
    chat_id = await talk(2)
    await notes.store_activity(chat_id, await window(chat_id), note("一"), LATER)
    for text in ("甲", "乙", "丙"):
        await write_day(chat_id, text)
    found = await memories.memory(chat_id, "day", TODAY)
    assert found is not None
    assert (found.text, found.version, found.sources, found.closed) == ("丙", 3, ("1",), True)
    old = await memories.versions(chat_id, "day", TODAY)
    assert [(v.version, v.text, v.blanked) for v in old] == [(1, "甲", False), (2, "乙", False)]


async def test_a_text_written_from_an_older_version_is_not_stored() -> None:
    chat_id = await talk(2)
    await notes.store_activity(chat_id, await window(chat_id), note("一"), LATER)
    found = await memories.activities(chat_id, TODAY)
    await write_day(chat_id, "甲")
    with pytest.raises(Overtaken):
        await notes.store_memories(chat_id, [task(found)], [note("乙")], LATER)
    target = await memories.target(chat_id, "day", TODAY)
    assert target is not None
    old = replace(found[0], version=7)
    with pytest.raises(Overtaken):
        await notes.store_memories(chat_id, [task([old], target)], [note("乙")], LATER)
    assert (await MemoryRow.get(period=TODAY)).text == "甲"
    assert await memories.versions(chat_id, "day", TODAY) == []


async def test_one_overtaken_target_leaves_the_whole_batch_unstored() -> None:
    chat_id = await talk(2)
    await notes.store_activity(chat_id, await window(chat_id), note("一"), LATER)
    found = await memories.activities(chat_id, TODAY)
    other = replace(task([replace(found[0], number=99)]), period="2026-11-28")
    with pytest.raises(Overtaken):
        await notes.store_memories(chat_id, [task(found), other], [note("甲")] * 2, LATER)
    assert await MemoryRow.all().count() == 0
    assert not (await memories.activities(chat_id, TODAY))[0].merged


async def test_a_text_that_was_continued_and_then_withdrawn_is_not_stored() -> None:
    """Only the target went stale meanwhile; the new source did not."""
    chat_id = await talk(2)
    await notes.store_activity(chat_id, await window(chat_id), note("一"), LATER)
    await write_day(chat_id, "含有秘密的一天")
    await talk(2, first=10)
    await notes.store_activity(chat_id, await window(chat_id), note("二"), LATER)
    target = await memories.target(chat_id, "day", TODAY)
    new = [a for a in await memories.activities(chat_id, TODAY) if not a.merged]
    await withdraw(1)
    owed = task(new, target, rebuild=False)
    with pytest.raises(Overtaken):
        await notes.store_memories(chat_id, [owed], [note("含有秘密的一天，还有二")], LATER)
    assert await memories.memory(chat_id, "day", TODAY) is None


async def test_what_is_being_rewritten_says_nothing_anywhere(database_file: Path) -> None:
    chat_id = await talk(2)
    await notes.store_activity(chat_id, await window(chat_id), note("秘密"), LATER)
    await write_day(chat_id, "秘密的一天")
    await write_day(chat_id, "还是秘密的一天")
    await withdraw(1)
    assert await memories.activities(chat_id, TODAY) == []
    assert (await layers(database_file, GROUP)).activities == ()
    assert await memories.memory(chat_id, "day", TODAY) is None
    assert await memories.memories(chat_id, "day", [TODAY]) == []
    assert [a.text for a in await memories.all_activities(chat_id)] == [""]
    assert [m.text for m in await memories.all_memories(chat_id, "day")] == [""]
    assert [v.text for v in await memories.versions(chat_id, "day", TODAY)] == [""]
    (stale,) = await memories.stale_activities(chat_id)
    assert stale.number == 1


async def test_more_withdrawn_while_it_is_rewritten_is_overtaken() -> None:
    chat_id = await talk(3)
    await notes.store_activity(chat_id, await window(chat_id), note("秘密"), LATER)
    await withdraw(1)
    (stale,) = await memories.stale_activities(chat_id)
    left = await messages.of_activity(chat_id, stale.number)
    assert [m.seq for m in left] == [2, 3]
    await withdraw(2)
    with pytest.raises(Overtaken):
        await notes.replace_activity(chat_id, stale, [2, 3], note("还有第2句"), LATER)
    await notes.replace_activity(chat_id, stale, [3], note("第3句"), LATER)
    (found,) = await memories.activities(chat_id, TODAY)
    assert (found.text, found.version, found.ranges) == ("第3句", 2, ((1, 3),))
    (old,) = await memories.versions(chat_id, "activity", "1")
    assert (old.version, old.text, old.blanked) == (1, "", True)
    assert (old.writer, old.written_at) == (stale.writer, stale.written_at)
    await withdraw(3)
    (stale,) = await memories.stale_activities(chat_id)
    await notes.replace_activity(chat_id, stale, [], None, LATER)
    old = await memories.versions(chat_id, "activity", "1")
    assert [(v.version, v.text, v.blanked) for v in old] == [(1, "", True), (2, "", True)]


async def test_an_activity_of_which_nothing_is_left_is_empty_and_owes_nothing(
    database_file: Path,
) -> None:
    chat_id = await talk(1)
    await notes.store_activity(chat_id, await window(chat_id), note("秘密"), LATER)
    await withdraw(1)
    (stale,) = await memories.stale_activities(chat_id)
    await notes.replace_activity(chat_id, stale, [], None, LATER)
    (found,) = await memories.activities(chat_id, TODAY)
    assert (found.text, found.key_messages, found.merged) == ("", (), True)
    assert (await layers(database_file, GROUP)).activities == ()
    assert await chats.with_work() == []


async def test_of_loose_activities_the_newest_are_found(database_file: Path) -> None:
    chat_id = await talk(3)
    for number in (1, 2, 3):
        one = await window(chat_id, 1)
        await notes.store_activity(chat_id, one, note(f"第{number}件"), LATER)
    found = (await layers(database_file, GROUP, 2)).activities
    assert [activity.text for activity in found] == ["第2件", "第3件"]


async def test_activities_are_told_in_order_of_time() -> None:
    chat_id = await talk(2, first=10)
    await notes.store_activity(chat_id, await window(chat_id), note("后"), LATER)
    await talk(2, first=1)
    await notes.store_activity(chat_id, await window(chat_id), note("先"), LATER)
    found = await memories.activities(chat_id, TODAY)
    assert [(a.number, a.text) for a in found] == [(2, "先"), (1, "后")]
    assert [a.number for a in await memories.all_activities(chat_id)] == [1, 2]


async def test_what_was_spent_on_a_day() -> None:
    chat_id = await talk(1)
    assert await usage.spent(chat_id, TODAY) == (0, 0)
    for purpose, ok in (("activity", True), ("activity", False), ("reply", True)):
        await usage.count(chat_id, TODAY, purpose, "some-model", Usage(100, 10, 5), ok)
    await usage.count(chat_id, "2026-11-28", "activity", "some-model", Usage(1, 0, 1), True)
    assert await usage.spent(chat_id, TODAY) == (3, 315)


async def test_every_version_keeps_what_it_cost() -> None:
    chat_id = await talk(3)
    cost = Usage(100, 20, 7)
    seen = await window(chat_id)
    await notes.store_activity(chat_id, seen, replace(note("我听了三句"), usage=cost), LATER)
    activity = await ActivityRow.get(chat_id=chat_id)
    assert activity.usage == '{"prompt": 100, "cached": 20, "completion": 7}'
    found = await memories.activities(chat_id, TODAY)
    priced = replace(note("第一版"), usage=cost)
    await notes.store_memories(chat_id, [task(found)], [priced], LATER)
    await write_day(chat_id, "第二版")
    (old,) = await NoteVersion.filter(chat_id=chat_id, kind="day")
    assert (old.text, old.usage) == ("第一版", activity.usage)
    assert (await MemoryRow.get(chat_id=chat_id, kind="day")).usage is None
