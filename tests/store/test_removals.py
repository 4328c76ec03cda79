"""What people removed by hand stays away, whatever older file, copy or history comes in later."""

from __future__ import annotations

from datetime import datetime, timedelta
import json
from pathlib import Path
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.memory.vault import digest
from plugins.nonebot_plugin_nianlun.store import (
    backup,
    carrying_over,
    chats,
    database,
    deleting,
    diary,
    facts,
    memories,
    provenance,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import Exclusion, FactVersion
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import ChatKey, Fact, Incoming
from tests.store.test_deleting import SECRET
from tests.store.test_editing import FIRST, sound
from tests.store.test_restoring import bring, write
from tests.store.test_upkeep import GROUP, World, close_days, local, world
from tests.support.product_store import ProductStore

__all__ = ["world"]

COPY = ChatKey("10001", "group", "456")
MOMENT = "我偷偷写下的心事"
SHE = "20001"
LATER = local(FIRST + timedelta(days=9), 12)


async def whispered(world: World, tmp_path: Path) -> Path:
    """Five days; &1 tells a secret, &6 is a diary moment; the file that they were exported to."""
    await world.talk(8, local(FIRST, 9), SECRET)
    at = local(FIRST, 9, 3)
    world.writer.facts = lambda window: (
        (Fact("event", "口令", f"口令是{SECRET}", window.messages[0].seq),)
        if window.date == FIRST.isoformat()
        else ()
    )
    await close_days(world, 5, start=FIRST + timedelta(days=1))
    world.writer.facts = lambda window: ()
    moment = diary.Moment(MOMENT, FIRST.isoformat(), at, "tool")
    await diary.append(1, [moment], world.clock.now())
    await world.run(everything=True)
    assert all(word in world.dump() for word in (SECRET, MOMENT))
    return write(tmp_path / "old.jsonl", await world.export())


async def told(chat: ChatKey = GROUP) -> str:
    """All that is remembered of a chat, without what was said."""
    return repr(without_messages([row async for row in lines(chat, "Asia/Shanghai", LATER)]))


def without_messages(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["type"] not in ("message", "header")]


async def test_activities_do_not_come_back_from_a_file(world: World, tmp_path: Path) -> None:
    old = await whispered(world, tmp_path)
    moment = next(row["id"] for row in await world.export() if row.get("text") == MOMENT)
    await deleting.delete(1, [], [1, moment], world.clock.now())
    await world.run(everything=True)
    before = await told()
    assert SECRET not in before
    assert MOMENT not in before
    for _ in range(2):
        report = await bring(old)
        assert not report.unreadable
        assert SECRET in repr([row.text for row in await Row.all()])  # what was said stays
        await world.run(everything=True)
        assert await told() == before
        await sound(world)


@pytest.mark.parametrize("tidied", [True, False])
@pytest.mark.parametrize("stands_there", [True, False])
async def test_elsewhere_it_is_known_as_well_what_became_of_them(
    world: World, tmp_path: Path, stands_there: bool, tidied: bool
) -> None:
    old = await whispered(world, tmp_path)
    if stands_there:
        await bring(old, COPY)
    second = await memories.activity(1, 2)
    assert second is not None
    [(first, last)] = second.ranges
    gone = second.text
    moment = next(row["id"] for row in await world.export() if row.get("text") == MOMENT)
    await deleting.delete(1, list(range(first, last + 1)), [1, moment], world.clock.now())
    if tidied:
        await world.run(everything=True)
    rows = await world.export()
    notes = repr([row for row in rows if row["type"] not in ("message", "exclusion")])
    assert SECRET not in notes
    assert gone not in notes
    file = write(tmp_path / "new.jsonl", rows)
    for _ in range(2):
        report = await bring(file, COPY)
        assert report.unreadable == []
        copy = await chats.find(COPY)
        assert copy is not None
        before = {row["id"] for row in rows if row["type"] == "activity"}
        assert {one.number for one in await memories.all_activities(copy)} == before
        assert await provenance.emptied(copy, 1) == ("deleted", world.clock.now())
        emptied = await provenance.emptied(copy, 2)
        assert emptied is not None
        assert emptied.state == ("waiting" if stands_there else "left")
        assert await provenance.nothing_left(copy, FIRST.isoformat())
        assert await provenance.nothing_left(copy, second.date)
        assert not await provenance.nothing_left(copy, FIRST.strftime("%Y-%m"))
    if not stands_there:
        assert await told(COPY) == await told()
    await sound(world)


async def test_nor_where_only_the_removal_is_on_record(world: World, tmp_path: Path) -> None:
    old = await whispered(world, tmp_path)
    await deleting.delete(1, [], [1], world.clock.now())
    kept = [row for row in await world.export() if row["type"] in ("header", "exclusion")]
    await bring(write(tmp_path / "removals.jsonl", kept), COPY)
    await bring(old, COPY)
    copy = await chats.find(COPY)
    assert copy is not None
    assert SECRET in repr([row.text for row in await Row.filter(chat_id=copy)])
    await world.upkeep().run(copy, everything=True)
    assert SECRET not in await told(COPY)
    assert MOMENT in await told(COPY)


async def test_of_two_moments_of_one_second_the_other_one_stays(
    world: World, tmp_path: Path
) -> None:
    await world.talk(3, local(FIRST, 9))
    at = local(FIRST, 9, 3)
    texts = [MOMENT, "晚上吃了火锅", MOMENT]
    moments = [diary.Moment(text, FIRST.isoformat(), at, "tool") for text in texts]
    await diary.append(1, moments, world.clock.now())
    old = write(tmp_path / "old.jsonl", await world.export())
    # The twin of a moment says the same, and goes with it.
    await deleting.delete(1, [], [1], world.clock.now())
    new = write(tmp_path / "new.jsonl", await world.export())
    for chat in (GROUP, COPY):
        for file in (old, new, old):
            await bring(file, chat)
        assert (await told(chat)).count(texts[1]) == 1
        assert MOMENT not in await told(chat)


async def test_a_turn_is_not_read_again(world: World) -> None:
    await world.talk(3, local(FIRST, 9))
    at = local(FIRST, 9, 2)
    moment = diary.Moment(MOMENT, FIRST.isoformat(), at, "turn", seen=(1, 2, 3))
    await diary.keep_turn(1, (1, 2, 3), (), [moment], at)
    await world.say("后来", local(FIRST, 10))
    assert await diary.last_read(1) == 3
    await deleting.delete(1, [], [1], world.clock.now())
    assert await diary.last_read(1) == 3


@pytest.mark.parametrize("old_first", [True, False])
async def test_nor_where_an_old_and_a_new_file_meet(
    world: World, tmp_path: Path, old_first: bool
) -> None:
    old = await whispered(world, tmp_path)
    moment = next(row["id"] for row in await world.export() if row.get("text") == MOMENT)
    await deleting.delete(1, [], [1, moment], world.clock.now())
    await world.run(everything=True)
    new = write(tmp_path / "new.jsonl", await world.export())
    for file in (old, new) if old_first else (new, old):
        await bring(file, COPY)
    copy = await chats.find(COPY)
    assert copy is not None
    await world.upkeep().run(copy, everything=True)
    found = await told(COPY)
    assert SECRET not in found
    assert MOMENT not in found
    assert f"{FIRST.day + 1}日" in found


async def test_what_was_said_then_and_comes_in_late_is_not_noted(
    world: World, tmp_path: Path
) -> None:
    await whispered(world, tmp_path)
    await deleting.delete(1, [], [1], world.clock.now())
    await world.run(everything=True)
    calls = len(world.writer.windows)
    for number in range(4):
        at = local(FIRST, 9, number) + timedelta(seconds=30)
        await world.say(f"{SECRET}{number}", at, source="history")
    await world.say("别的", local(FIRST, 9, 20), source="history")
    await world.run(everything=True)
    assert [m.text for window in world.writer.windows[calls:] for m in window.messages] == ["别的"]
    assert SECRET not in await told()


def fact(text: str, source: int, name: str = "咖啡") -> Fact:
    return Fact("preferences", name, text, source)


async def test_a_fact_is_established_only_by_what_is_said_later(
    world: World, tmp_path: Path
) -> None:
    first = int(await world.say("我只喝美式", local(FIRST, 9), by=SHE))
    now = world.clock.time = local(FIRST, 10)
    for name in ("咖啡", "茶"):
        await facts.store(1, [fact("只喝美式", first, name)], now)
    await facts.remember(1, "", [FactItem("event", "群规", "不发广告")], None, now)
    old = write(tmp_path / "old.jsonl", await world.export())
    erased = local(FIRST, 12)
    world.clock.time = erased
    assert await facts.erase(1, SHE, "preferences", "咖啡", erased, erased)
    assert await facts.erase(1, "", "event", "群规", erased, erased)
    await facts.store(1, [fact("只喝美式", first)], erased)
    await bring(old)
    rows = [json.loads(line) for line in old.read_text("utf-8").splitlines()]
    for row in (row for row in rows if row.get("name") == "咖啡"):
        row |= {"text": "有人在文件里改成拿铁", "exported": digest(row["text"])}
    report = await bring(write(tmp_path / "typed.jsonl", rows))
    assert [one.reason for one in report.unreadable] == [
        "preferences:咖啡 在这里已经忘掉了，没有照改"
    ]
    new = write(tmp_path / "new.jsonl", await world.export())
    for file in (old, new, old):
        await bring(file, COPY)
    for chat in (GROUP, COPY):
        chat_id = await chats.find(chat)
        assert chat_id is not None
        assert [row.name for row in await facts.listed(chat_id)] == ["茶"]
        assert await FactVersion.filter(chat_id=chat_id).count() == 0
    assert "咖啡" not in repr([row.subject for row in await Exclusion.all()])
    later = await later_line("改喝拿铁了", erased + timedelta(minutes=1))
    await facts.store(1, [fact("改喝拿铁", later)], erased + timedelta(hours=1))
    await bring(old)
    await bring(write(tmp_path / "newest.jsonl", await world.export()), COPY)
    for chat in (GROUP, COPY):
        chat_id = await chats.find(chat)
        assert chat_id is not None
        (row,) = await facts.named(chat_id, "preferences", "咖啡")
        assert (row.text, await facts.journal(row.id)) == ("改喝拿铁", [])


async def later_line(text: str, at: datetime) -> int:
    segments = [{"type": "text", "data": {"text": text}}]
    line = Incoming(GROUP, at, SHE, "小鹿", segments, "event", message_id="later")
    await recording.record([line], readable, "小忆", at)
    return (await Row.get(message_id="later")).seq


async def test_a_person_may_have_it_kept_again(world: World) -> None:
    now = world.clock.now()
    item = FactItem("preferences", "咖啡", "只喝美式")
    await facts.remember(1, SHE, [item], None, now)
    await facts.erase(1, SHE, "preferences", "咖啡", now, now)
    assert await facts.remember(1, SHE, [item], None, now + timedelta(minutes=1)) == ["added"]
    assert await facts.erase(1, SHE, "preferences", "咖啡", now, now)
    assert await Exclusion.filter(reason="fact").count() == 1


@pytest.mark.parametrize("with_words", [True, False])
async def test_an_older_copy_of_the_database_is_told(
    world: World, tmp_path: Path, with_words: bool
) -> None:
    """`with_words`: the copy has the notes; else only what was said."""
    await world.talk(8, local(FIRST, 9), SECRET)
    world.writer.facts = lambda window: (Fact("event", "口令", SECRET, 1),)
    copy = tmp_path / "copy.db"
    world.clock.time = LATER
    moment = diary.Moment(MOMENT, FIRST.isoformat(), local(FIRST, 9, 3), "tool")
    [number] = await diary.append(1, [moment], LATER)
    if with_words:
        await world.run(everything=True)
    await backup.back_up_to(world.file, copy)
    await world.run(everything=True)
    await facts.erase(1, "20000", "event", "口令", LATER, LATER)
    await deleting.delete(1, [], [number, number + 1], LATER)
    present = carrying_over.known(world.file)
    await database.close_store()
    await carrying_over.carry_over(copy, present)
    async with ProductStore(copy):
        assert SECRET not in await told()
        assert MOMENT not in await told()
        await world.upkeep().run(1, everything=True)
        assert SECRET not in await told()
        assert await Exclusion.filter(reason__in=["window", "moment", "fact"]).count() == 3
    await database.open_store(world.file)


async def test_nor_does_it_come_back_in_a_fact_of_its_turn(world: World, tmp_path: Path) -> None:
    for number, words in enumerate(["嗯", SECRET, *(f"话{n}" for n in range(12)), "咖啡"]):
        await world.say(words, local(FIRST, 9, number))
    await facts.store(1, [fact("不知道", 15, "口令"), fact("爱喝", 15)], LATER)
    await facts.store(1, [fact(SECRET, 1, "口令")], LATER + timedelta(minutes=1))
    old = write(tmp_path / "old.jsonl", await world.export())
    await deleting.delete(1, [2], [], LATER)
    new = write(tmp_path / "new.jsonl", await world.export())
    await bring(old)
    for file in (new, old):
        await bring(file, COPY)
    assert SECRET not in world.dump()
    copy = await chats.find(COPY)
    assert copy is not None
    for chat_id in (1, copy):
        assert {row.text for row in await facts.listed(chat_id)} == {"爱喝", "不知道"}


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("old_first", [True, False])
async def test_a_deleted_message_stays_away_where_both_files_meet(
    world: World, tmp_path: Path, numbered: bool, old_first: bool
) -> None:
    """Also one without an id, among others of its second and speaker."""
    for number in range(9):
        words = SECRET if number == 4 else f"话{number}"
        segments = [{"type": "text", "data": {"text": words}}]
        message_id = str(number) if numbered else None
        at = local(FIRST, 9, number // 3)
        line = Incoming(GROUP, at, SHE, "小鹿", segments, "event", message_id=message_id)
        await recording.record([line], readable, "小忆", at)
    world.clock.time = LATER
    # A fact may tell the line beside the one that it is from.
    world.writer.facts = lambda window: tuple(
        Fact("event", "口令", m.text, window.messages[0].seq)
        for m in window.messages
        if m.text == SECRET
    )
    await world.run(everything=True)
    old = write(tmp_path / "old.jsonl", await world.export())
    await deleting.delete(1, [5], [], LATER)
    await world.run(everything=True)
    new = write(tmp_path / "new.jsonl", await world.export())
    await bring(old)
    for file in (old, new, old) if old_first else (new, old):
        await bring(file, COPY)
    copy = await chats.find(COPY)
    assert copy is not None
    await world.upkeep().run(copy, everything=True)
    assert SECRET not in world.dump()
    assert await Row.filter(chat_id=copy).count() == 9
    assert await Row.filter(chat_id=copy, text="").count() == 1


async def test_an_older_file_adds_nothing_where_activities_were_emptied(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one the activity was deleted, of another all lines, of a third both in part."""
    monkeypatch.setattr(nianlun, "clock", world.clock)
    await close_days(world, 5, start=FIRST)
    old = write(tmp_path / "old.jsonl", await world.export())
    second, fourth = await memories.activity(1, 2), await memories.activity(1, 4)
    assert second is not None
    assert fourth is not None
    [(first, last)], [(one, _)] = second.ranges, fourth.ranges
    gone = [*range(first, last + 1), one]
    await deleting.delete(1, gone, [1, 4], world.clock.now())
    await world.run(everything=True)
    rows = await world.export()
    new = write(tmp_path / "new.jsonl", rows)
    await bring(new, COPY)
    for chat in (COPY, GROUP):
        chat_id = await chats.find(chat)
        assert chat_id is not None
        for _ in range(2):
            report = await bring(old, chat)
            assert (report.chats[0].notes, report.chats[0].owed) == (0, 0)
            assert await told(chat) == repr(without_messages(rows))
            await world.upkeep().run(chat_id, everything=True)
            assert await told(chat) == repr(without_messages(rows))
    for file, reasons in (
        (new, dict.fromkeys([1, 2], "导出时已经删掉或清空，没有照改")),
        (old, {1: "在这里已经删掉了，没有照改", 2: "里面有收回的话，没有照改"}),
    ):
        typed = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for row in typed:
            if row["type"] == "activity" and row["id"] in reasons:
                row |= {"text": "有人后来写的", "exported": digest(row["text"])}
        report = await bring(write(tmp_path / "typed.jsonl", typed), COPY)
        assert [one.reason for one in report.unreadable] == [
            f"活动 &{number} {why}" for number, why in reasons.items()
        ]
        assert await told(COPY) == repr(without_messages(rows))
    await sound(world)


async def test_two_windows_of_one_second_are_both_on_record(world: World, tmp_path: Path) -> None:
    at = local(FIRST, 9)
    for number in range(160):
        await world.say(f"话{number}", at)
    await world.run(everything=True)
    assert [a.number for a in await memories.all_activities(1)] == [1, 2, 3, 4]
    old, other = write(tmp_path / "old.jsonl", await world.export()), ChatKey("10001", "group", "9")
    await deleting.delete(1, [], [1, 3], world.clock.now())
    await world.run(everything=True)
    rows = await world.export()
    for _ in range(2):
        await bring(write(tmp_path / "new.jsonl", rows), COPY)
        assert await told(COPY) == repr(without_messages(rows))
    for file in (old, tmp_path / "new.jsonl", old):
        await bring(file, other)
    chat_id = await chats.find(other)
    assert chat_id is not None
    await world.upkeep().run(chat_id, everything=True)
    found = await memories.all_activities(chat_id)
    assert [(one.number, bool(one.text)) for one in found] == [
        (1, False), (2, True), (3, False), (4, True)
    ]  # fmt: skip
