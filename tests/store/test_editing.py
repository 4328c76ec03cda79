"""Notes that people correct, with all that goes on around them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import (
    BadAnswer,
    CorrectionError,
    NoteRejected,
    Overtaken,
)
from plugins.nonebot_plugin_nianlun.llm.offline_rollup import describe_task
from plugins.nonebot_plugin_nianlun.llm.offline_writer import OfflineWriter
from plugins.nonebot_plugin_nianlun.memory.edits import keeps_edit
from plugins.nonebot_plugin_nianlun.memory.upkeep import Upkeep
from plugins.nonebot_plugin_nianlun.memory.why import Edit, explain
from plugins.nonebot_plugin_nianlun.store import (
    editing,
    forgetting,
    invariants,
    memories,
    notes,
    provenance,
)
from plugins.nonebot_plugin_nianlun.store.models import Activity as ActivityRow
from plugins.nonebot_plugin_nianlun.types import (
    Activity,
    Memory,
    MemoryKind,
    Note,
    NoteKind,
    RollupTask,
)
from tests.store.test_upkeep import CALENDAR, DAY, World, close_days, local, world

__all__ = ["world"]

FIRST = date(2026, 10, 28)
DAY_KEY, MONTH_KEY, YEAR_KEY = "2026-10-28", "2026-10", "2026"
EDITOR, OTHER = "20002", "20003"
WORDS = "小鹿其实不爱吃草莓。"


async def sound(world: World) -> None:
    found = await invariants.check(world.file, 1, CALENDAR, world.clock.now())
    assert found.findings == ()


async def edit(world: World, kind: NoteKind, ref: str, text: str, by: str = EDITOR) -> int:
    edited = await editing.edit(1, kind, ref, text, by, world.clock.now())
    await sound(world)
    return edited.version


async def stands(world: World, kind: MemoryKind, period: str) -> tuple[str, str, int]:
    found = await memories.memory(1, kind, period)
    assert found is not None
    return found.text, found.writer, found.version


async def rewrite(world: World, kind: MemoryKind, period: str, **changed: Any) -> Note | None:
    upkeep = replace(world.upkeep(), **changed)
    note = await upkeep.rewrite(1, kind, period)
    await sound(world)
    return note


def offline(world: World) -> Upkeep:
    writer = OfflineWriter(CALENDAR)
    return replace(world.upkeep(), writer=writer, fallback=writer)


@pytest.mark.parametrize(
    ("kind", "ref"), [("day", DAY_KEY), ("month", MONTH_KEY), ("year", "2026")]
)
async def test_an_edit_is_the_next_version_and_its_editors(
    world: World, kind: MemoryKind, ref: str
) -> None:
    await close_days(world, 5, start=FIRST)
    before, writer, version = await stands(world, kind, ref)
    assert await edit(world, kind, ref, WORDS) == version + 1
    assert await stands(world, kind, ref) == (WORDS, EDITOR, version + 1)
    old = (await memories.versions(1, kind, ref))[-1]
    assert (old.text, old.writer, old.version) == (before, writer, version)


async def test_what_is_built_on_an_edited_text_is_written_anew(world: World) -> None:
    await close_days(world, 5, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    assert (await world.run()).memories == 2  # the month and the year
    assert WORDS in (await stands(world, "month", MONTH_KEY))[0]
    assert WORDS in (await stands(world, "year", YEAR_KEY))[0]
    assert (await world.run()).memories == 0
    await sound(world)


async def test_an_edited_activity_changes_its_day(world: World) -> None:
    await close_days(world, 5, start=FIRST)
    await edit(world, "activity", "1", f"{WORDS}（#1 #2）")
    activity = await memories.activity(1, 1)
    assert activity is not None
    assert (activity.writer, activity.key_messages, activity.version) == (EDITOR, (1, 2), 2)
    await world.run()
    assert WORDS in (await stands(world, "day", DAY_KEY))[0]
    [old] = await memories.versions(1, "activity", "1")
    assert (old.version, old.writer, old.blanked) == (1, "model", False)
    await sound(world)


@pytest.mark.parametrize("shorten", [False, True], ids=["kept", "dropped by the model"])
async def test_later_sources_are_added_and_never_replace_it(world: World, shorten: bool) -> None:
    await close_days(world, 2, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    if shorten:
        world.writer.shorten = lambda text: "模型写了别的"
    await world.say("迟到的话", local(FIRST, 12))
    await world.run()
    text, writer, version = await stands(world, "day", DAY_KEY)
    assert text.startswith(WORDS)
    assert "迟到的话" in text
    assert (writer, version) == (EDITOR, 3)
    await world.say("更晚到的话", local(FIRST, 13))
    await world.run()
    later, writer, _ = await stands(world, "day", DAY_KEY)
    assert later.startswith(text)
    assert "更晚到的话" in later
    assert writer == EDITOR
    await sound(world)


async def edits_of(world: World, kind: MemoryKind, period: str) -> list[Edit | None]:
    note = await memories.memory(1, kind, period)
    return [edit for _, edit in await provenance.texts(1, kind, period, note)]


@pytest.mark.parametrize("by_model", [True, False], ids=["model", "offline"])
async def test_only_what_a_writer_added_is_told_as_added(world: World, by_model: bool) -> None:
    upkeep = world.upkeep() if by_model else offline(world)
    await close_days(world, 5, start=FIRST)
    layers: tuple[tuple[MemoryKind, str], ...] = (
        ("year", YEAR_KEY), ("month", MONTH_KEY), ("day", DAY_KEY)
    )  # fmt: skip
    for kind, period in layers:
        before = len(await edits_of(world, kind, period))
        for text in (WORDS, f"{WORDS}又写了一句。"):
            await edit(world, kind, period, text)
        told = [found and found.continued for found in await edits_of(world, kind, period)]
        assert told == [None] * before + [False, False]
    await edit(world, "activity", "1", "他们约好了带伞。（#2）")
    await upkeep.run(1)
    for kind, period in layers:
        text, writer, _ = await stands(world, kind, period)
        assert "带伞" in text
        *_, theirs, added = await edits_of(world, kind, period)
        assert theirs is not None
        assert not theirs.continued
        assert added == theirs._replace(continued=True)
        await edit(world, kind, period, f"{text}再写一句。")
        assert (await edits_of(world, kind, period))[-1] == Edit(
            writer, world.clock.now(), continued=False
        )


async def test_what_leads_down_through_an_edited_month_is_not_what_cites_nothing(
    world: World,
) -> None:
    upkeep = offline(world)
    await close_days(world, 5, start=FIRST)
    await edit(world, "month", MONTH_KEY, "草莓的事我们聊过，没有引用")
    await edit(world, "day", DAY_KEY, "「草莓」的事（#2）")
    await upkeep.run(1)
    assert (await stands(world, "month", MONTH_KEY))[0] == (
        "草莓的事我们聊过，没有引用\n二十八日，「草莓」的事（关键消息：[2]）。"
    )
    await upkeep.rewrite(1, "year", YEAR_KEY)
    year = await memories.memory(1, "year", YEAR_KEY)
    assert year is not None
    why = explain(await provenance.beneath(1, year), year)
    [found] = [one for one in why.told if 2 in one.sentence.key_messages]
    assert [below.sentence.text for below in found.below] == ["二十八日，「草莓」的事。"]


async def test_a_model_that_gives_up_on_it_leaves_it_to_the_fallback(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    await world.say("迟到的话", local(FIRST, 12))

    async def give_up() -> None:
        if world.writer.batches[-1][0][0].kind == "day":
            raise BadAnswer("没有一字不改地留下")

    world.writer.while_rolling_up = give_up
    assert (await world.run()).errors == ()
    text, writer, _ = await stands(world, "day", DAY_KEY)
    assert text.startswith(WORDS)
    assert "迟到的话" in text
    assert writer == EDITOR
    assert len(world.fallback.batches) == 1


async def test_where_no_writer_keeps_it_it_stands_as_it_is(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    world.writer.shorten = world.fallback.shorten = lambda text: "写了别的"
    await world.say("迟到的话", local(FIRST, 12))
    await world.run()
    assert (await stands(world, "day", DAY_KEY))[:2] == (WORDS, EDITOR)
    assert (await world.run()).memories == 0
    await sound(world)


async def test_the_end_of_a_period_does_not_overwrite_an_edited_text(world: World) -> None:
    for number in range(21):
        await world.talk(8, local(DAY, 5) + timedelta(minutes=40 * number), f"第{number}段")
    world.clock.time = local(DAY, 23)
    await world.run()
    await edit(world, "day", "2026-11-27", WORDS)
    await world.talk(8, local(DAY, 23, 1), "最后")
    world.clock.time = local(DAY + timedelta(days=1), 4, 30)
    assert (await world.run()).errors == ()
    found = await memories.memory(1, "day", "2026-11-27")
    assert found is not None
    assert found.closed
    assert found.text.startswith(WORDS)
    assert "最后0" in found.text
    assert len(found.sources) == 22
    await sound(world)


async def test_a_day_is_closed_without_a_word_where_nothing_came_since(world: World) -> None:
    for number in range(20):
        await world.talk(8, local(DAY, 5) + timedelta(minutes=40 * number), f"第{number}段")
    world.clock.time = local(DAY, 23)
    await world.run()
    version = await edit(world, "day", "2026-11-27", WORDS)
    calls = world.writer.calls
    world.clock.time = local(DAY + timedelta(days=1), 4, 30)
    await world.run()
    assert await stands(world, "day", "2026-11-27") == (WORDS, EDITOR, version)
    assert world.writer.calls == calls
    await sound(world)


async def test_months_and_years_keep_edits_over_their_end(world: World) -> None:
    await close_days(world, 3, start=date(2026, 12, 29))
    await edit(world, "month", "2026-12", WORDS)
    await edit(world, "year", "2026", "这一年很好。")
    await world.say("迟到的话", local(date(2026, 12, 29), 12))
    await world.run()
    assert (await stands(world, "month", "2026-12"))[0].startswith(WORDS)
    assert (await stands(world, "year", "2026"))[0].startswith("这一年很好。")
    assert "迟到的话" in (await stands(world, "year", "2026"))[0]
    await sound(world)


@settings(max_examples=25)
@given(
    extra=st.lists(
        st.sampled_from(["说了一句", "又说", "再说一句更长的话"]), min_size=1, max_size=4
    )
)
def test_offline_additions_hold_the_edit(extra: list[str]) -> None:
    at = local(DAY, 9)
    sources = tuple(
        Activity(n, "2026-11-27", text, (n,), "window", at, "offline", at)
        for n, text in enumerate(extra, 1)
    )
    target = Memory("day", "2026-11-27", WORDS, (), ("9",), 2, EDITOR, at)
    task = RollupTask("day", "2026-11-27", sources, target, rebuild=False, closes=True)
    assert keeps_edit(task, describe_task(task, "群里", CALENDAR).text)


async def test_an_edit_while_a_roll_up_runs_is_not_lost(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    await world.say("迟到的话", local(FIRST, 12))

    async def meanwhile() -> None:
        world.writer.while_rolling_up = world.writer.while_noting
        await editing.edit(1, "day", DAY_KEY, WORDS, EDITOR, world.clock.now())

    world.writer.while_rolling_up = meanwhile
    assert (await world.run()).errors == ()
    text, writer, _ = await stands(world, "day", DAY_KEY)
    assert text.startswith(WORDS)
    assert "迟到的话" in text
    assert writer == EDITOR
    await sound(world)


async def test_an_edit_while_its_activity_is_written_again_is_not_lost(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    await ActivityRow.filter(number=1).update(writer="offline")
    await notes.ask_again(1)

    async def meanwhile() -> None:
        world.writer.while_noting = world.writer.while_rolling_up
        await editing.edit(1, "activity", "1", WORDS, EDITOR, world.clock.now())

    world.writer.while_noting = meanwhile
    await world.run()
    activity = await memories.activity(1, 1)
    assert activity is not None
    assert (activity.text, activity.writer) == (WORDS, EDITOR)
    await world.run()
    assert WORDS in (await stands(world, "day", DAY_KEY))[0]
    await sound(world)


async def test_two_editors_at_once_leave_both_texts(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    now = world.clock.now()
    await asyncio.gather(
        editing.edit(1, "day", DAY_KEY, "甲写的。", EDITOR, now),
        editing.edit(1, "day", DAY_KEY, "乙写的。", OTHER, now),
    )
    old = await memories.versions(1, "day", DAY_KEY)
    text, writer, version = await stands(world, "day", DAY_KEY)
    assert version == 3
    assert {(text, writer), (old[1].text, old[1].writer)} == {
        ("甲写的。", EDITOR),
        ("乙写的。", OTHER),
    }
    await sound(world)


async def test_an_edited_text_goes_with_what_it_was_written_from(world: World) -> None:
    ids = await close_days(world, 5, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    await world.withdraw(ids[0][0])
    with pytest.raises(CorrectionError, match="正等着重写"):
        await editing.edit(1, "day", DAY_KEY, "又写", EDITOR, world.clock.now())
    with pytest.raises(CorrectionError, match="正等着重写"):
        await editing.restore(1, "day", DAY_KEY, 2, EDITOR, world.clock.now())
    await world.run()
    text, writer, _ = await stands(world, "day", DAY_KEY)
    assert WORDS not in text
    assert writer == "model"
    with pytest.raises(CorrectionError, match="已经清空"):
        await editing.restore(1, "day", DAY_KEY, 2, EDITOR, world.clock.now())
    assert WORDS not in repr(await memories.versions(1, "day", DAY_KEY))
    await sound(world)


async def test_what_may_be_cited(world: World) -> None:
    await close_days(world, 5, start=FIRST)
    # Messages 1–8 are the first day's, 9–16 the second's; all but the last days are October's.
    cases: list[tuple[NoteKind, str, int, int]] = [
        ("day", DAY_KEY, 8, 9),
        ("activity", "2", 9, 8),
        ("month", MONTH_KEY, 32, 33),
        ("year", YEAR_KEY, 32, 99),
    ]
    for kind, ref, may, may_not in cases:
        with pytest.raises(NoteRejected, match=f"#{may_not}"):
            await editing.edit(1, kind, ref, f"{WORDS}（#{may_not}）", EDITOR, world.clock.now())
        await edit(world, kind, ref, f"{WORDS}（#{may}）")


async def test_what_cannot_be_edited_changes_nothing(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    before = world.dump()
    cases: list[tuple[NoteKind, str, str, type[Exception]]] = [
        ("day", "2026-10-01", WORDS, CorrectionError),
        ("activity", "99", WORDS, CorrectionError),
        ("day", DAY_KEY, "字" * 501, NoteRejected),
        ("day", DAY_KEY, "（#1）", NoteRejected),
        ("month", MONTH_KEY, "字" * 301, CorrectionError),
    ]
    for kind, ref, text, error in cases:
        with pytest.raises(error):
            await editing.edit(1, kind, ref, text, EDITOR, world.clock.now())
    text, _, _ = await stands(world, "day", DAY_KEY)
    with pytest.raises((CorrectionError, NoteRejected)):
        await editing.edit(1, "day", DAY_KEY, text, EDITOR, world.clock.now())
    assert world.dump() == before


async def test_an_older_version_comes_back_as_a_new_one(world: World) -> None:
    await close_days(world, 5, start=FIRST)
    first, _, _ = await stands(world, "day", DAY_KEY)
    await world.say("迟到的话", local(FIRST, 12))
    await world.run()
    restored = await editing.restore(1, "day", DAY_KEY, 1, EDITOR, world.clock.now())
    await sound(world)
    assert (restored.version, restored.text, restored.before) == (3, first, "model")
    assert await stands(world, "day", DAY_KEY) == (first, EDITOR, 3)
    await world.run()
    text, writer, _ = await stands(world, "day", DAY_KEY)
    assert text.startswith(first)
    assert text.count("迟到的话") == 1  # what came since is added again
    assert writer == EDITOR
    assert [old.version for old in await memories.versions(1, "day", DAY_KEY)] == [1, 2, 3]
    for version in (4, 9):
        with pytest.raises(CorrectionError, match=f"第 {version} 版"):
            await editing.restore(1, "day", DAY_KEY, version, EDITOR, world.clock.now())
    await sound(world)


async def test_an_older_month_comes_back_with_its_sources(world: World) -> None:
    for number in range(16):
        day = date(2026, 10, 1) + timedelta(days=number)
        await world.talk(8, local(day, 10), f"{day:%d}日")
    world.clock.time = local(date(2026, 10, 17), 4, 30)
    await world.run()
    first, _, version = await stands(world, "month", MONTH_KEY)
    await close_days(world, 16, start=date(2026, 10, 17))
    closed, _, last = await stands(world, "month", MONTH_KEY)
    assert "31日0" in closed
    assert last > version
    await editing.restore(1, "month", MONTH_KEY, version, EDITOR, world.clock.now())
    await sound(world)
    await world.run()
    text, _, _ = await stands(world, "month", MONTH_KEY)
    assert text.startswith(first)
    assert "31日0" in text  # the days that came since are added again
    await sound(world)


async def test_the_same_words_of_another_month_come_into_a_persons_year(world: World) -> None:
    upkeep = offline(world)
    words = "九月，阿澈说「今天发工资了」（关键消息：[1]），"
    for day in (date(2026, 9, 28), FIRST):
        await world.say("今天发工资了", local(day, 11))
        world.clock.time = local(date(2026, day.month + 1, 1), 4, 30)
        await upkeep.run(1)
        if day.month == 9:
            await edit(world, "year", YEAR_KEY, words)
    added = f"{words}\n十月，小鹿说「今天发工资了」（关键消息：[2]）。"
    assert await stands(world, "year", YEAR_KEY) == (added, EDITOR, 3)
    restored = await editing.restore(1, "year", YEAR_KEY, 2, EDITOR, world.clock.now())
    assert (restored.text, restored.owed) == (words, 1)
    await upkeep.run(1)
    assert await stands(world, "year", YEAR_KEY) == (added, EDITOR, 5)
    await edit(world, "year", YEAR_KEY, words)
    await edit(world, "month", MONTH_KEY, "阿澈说「今天发工资了」（#2）")
    await upkeep.run(1)
    await upkeep.run(1)
    again = f"{words}\n十月，阿澈说「今天发工资了」（关键消息：[2]）。"
    assert await stands(world, "year", YEAR_KEY) == (again, EDITOR, 7)
    await sound(world)


async def test_an_older_activity_comes_back(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    first = await memories.activity(1, 1)
    assert first is not None
    await edit(world, "activity", "1", WORDS)
    restored = await editing.restore(1, "activity", "1", 1, OTHER, world.clock.now())
    again = await memories.activity(1, 1)
    assert again is not None
    assert (again.text, again.key_messages) == (first.text, first.key_messages)
    assert (again.writer, again.version, restored.before) == (OTHER, 3, EDITOR)
    await sound(world)


async def test_a_rewriting_replaces_an_edited_text_and_keeps_it(world: World) -> None:
    await close_days(world, 5, start=FIRST)
    first, _, _ = await stands(world, "day", DAY_KEY)
    await edit(world, "day", DAY_KEY, WORDS)
    note = await rewrite(world, "day", DAY_KEY)
    assert note is not None
    assert await stands(world, "day", DAY_KEY) == (first, "model", 3)
    assert [v.text for v in await memories.versions(1, "day", DAY_KEY)] == [first, WORDS]
    task = world.writer.batches[-1][0][0]
    assert (task.rebuild, task.closes) == (True, True)
    await world.run()
    assert WORDS not in (await stands(world, "month", MONTH_KEY))[0]
    await sound(world)


async def test_months_and_years_are_rewritten(world: World) -> None:
    await close_days(world, 5, start=FIRST)
    layers: list[tuple[MemoryKind, str]] = [("month", MONTH_KEY), ("year", YEAR_KEY)]
    for kind, period in layers:
        first, _, version = await stands(world, kind, period)
        await edit(world, kind, period, f"{period} 很好。".replace("-", ""))
        assert await rewrite(world, kind, period) is not None
        assert await stands(world, kind, period) == (first, "model", version + 2)
        await world.run()


async def test_nothing_to_rewrite(world: World) -> None:
    assert await rewrite(world, "day", DAY_KEY) is None
    await close_days(world, 2, start=FIRST)
    assert await rewrite(world, "day", "2026-10-01") is None


async def test_a_failed_rewriting_changes_nothing(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    await world.run()
    before = world.dump()
    world.writer.broken = True
    with pytest.raises(Exception, match="模型没有回应"):
        await rewrite(world, "day", DAY_KEY)
    assert world.dump() == before


async def test_an_edit_during_a_rewriting_wins(world: World) -> None:
    await close_days(world, 2, start=FIRST)

    async def meanwhile() -> None:
        world.writer.while_rolling_up = world.writer.while_noting
        await editing.edit(1, "day", DAY_KEY, WORDS, EDITOR, world.clock.now())

    world.writer.while_rolling_up = meanwhile
    with pytest.raises(Overtaken, match="正在被别处改动"):
        await rewrite(world, "day", DAY_KEY)
    assert (await stands(world, "day", DAY_KEY))[0] == WORDS


async def test_a_withdrawal_during_a_rewriting_is_seen(world: World) -> None:
    ids = await close_days(world, 2, start=FIRST)

    async def meanwhile() -> None:
        world.writer.while_rolling_up = world.writer.while_noting
        await world.withdraw(ids[0][0])

    world.writer.while_rolling_up = meanwhile
    await rewrite(world, "day", DAY_KEY)
    await world.run()
    assert "28日0" not in (await stands(world, "day", DAY_KEY))[0]
    await sound(world)


async def test_an_activity_is_rewritten_from_its_messages(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    first = await memories.activity(1, 1)
    await edit(world, "activity", "1", WORDS)
    edited = await memories.activity(1, 1)
    assert first is not None
    assert edited is not None
    assert await world.upkeep().rewrite_activity(1, edited) is not None
    again = await memories.activity(1, 1)
    assert again is not None
    assert (again.text, again.writer, again.version) == (first.text, "model", 3)
    world.writer.declines = lambda window: True
    assert await world.upkeep().rewrite_activity(1, again) is None
    assert await memories.activity(1, 1) == again
    world.writer.declines = lambda window: False
    with pytest.raises(Overtaken):
        await world.upkeep().rewrite_activity(1, edited)
    await sound(world)


async def test_the_offline_writer_rewrites_too(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    note = await offline(world).rewrite(1, "day", DAY_KEY)
    assert note is not None
    assert note.writer == "offline"
    await sound(world)


@pytest.mark.parametrize(
    ("kind", "ref"), [("activity", "1"), ("day", DAY_KEY), ("month", MONTH_KEY), ("year", YEAR_KEY)]
)
async def test_whoever_is_forgotten_leaves_no_edit(world: World, kind: NoteKind, ref: str) -> None:
    await close_days(world, 5, start=FIRST)
    await edit(world, kind, ref, WORDS, by="29999")
    await edit(world, kind, ref, "别人又改了。")
    await world.run()
    forgotten = await forgetting.forget(1, "29999", world.clock.now())
    assert forgotten.notes > 0
    assert WORDS not in world.dump()
    await sound(world)
    assert (await world.run()).errors == ()
    await sound(world)
    if kind != "activity":
        assert (await stands(world, kind, ref))[1] == "model"


async def test_words_that_cite_nothing_are_left_behind_with_their_source(world: World) -> None:
    upkeep = offline(world)
    await close_days(world, 1, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    await edit(world, "activity", "1", "又约好了带伞")
    await world.say("下山了", local(FIRST, 15))
    await upkeep.run(1)
    text, *_ = await stands(world, "day", DAY_KEY)
    assert ("又约好了带伞" in text, "下山了" in text) == (True, True)
    restored = await editing.restore(1, "day", DAY_KEY, 2, EDITOR, world.clock.now())
    assert (restored.owed, restored.left_behind) == (1, True)
    await upkeep.run(1)
    text, *_ = await stands(world, "day", DAY_KEY)
    assert ("又约好了带伞" in text, "下山了" in text) == (False, True)
    await sound(world)


async def test_what_waited_for_a_rewriting_may_be_written_before_its_turn(world: World) -> None:
    await close_days(world, 1, start=FIRST)
    await world.withdraw("1")
    waits = await memories.activity(1, 1)
    assert waits is not None
    assert waits.text == ""
    await world.run()
    calls = world.writer.calls
    note = await world.upkeep().rewrite_activity(1, waits)
    written = await memories.activity(1, 1)
    assert note is not None
    assert written is not None
    assert (note.text, note.writer, written.version) == (written.text, "model", waits.version + 1)
    assert world.writer.calls == calls
    await edit(world, "activity", "1", WORDS)
    with pytest.raises(Overtaken):
        await world.upkeep().rewrite_activity(1, waits)
    await sound(world)
