"""What a person wrote stays as they left it, whatever is done to what it was written from."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plugins.nonebot_plugin_nianlun.errors import CorrectionError, NoteRejected
from plugins.nonebot_plugin_nianlun.llm.offline_writer import OfflineWriter
from plugins.nonebot_plugin_nianlun.memory.upkeep import Upkeep
from plugins.nonebot_plugin_nianlun.store import (
    database,
    diary,
    editing,
    invariants,
    memories,
    notes,
    reindexing,
)
from tests.store.test_editing import (
    DAY_KEY,
    EDITOR,
    FIRST,
    MONTH_KEY,
    WORDS,
    YEAR_KEY,
    edit,
    offline,
    sound,
    stands,
)
from tests.store.test_upkeep import CALENDAR, World, close_days, local, world

__all__ = ["world"]

MONTH_WORDS, YEAR_WORDS = "十月里没有什么事。", "这一年平平淡淡。"


async def test_what_they_took_out_does_not_come_back_when_all_is_written_again(
    world: World,
) -> None:
    for number in range(3):
        await world.talk(8, local(FIRST + timedelta(days=number), 10), f"{number}日的话")
    world.clock.time = local(FIRST + timedelta(days=5), 4, 30)
    await offline(world).run(1)
    await edit(world, "day", DAY_KEY, WORDS)
    await world.run()
    await edit(world, "month", MONTH_KEY, MONTH_WORDS)
    await world.run()
    await edit(world, "year", YEAR_KEY, YEAR_WORDS)
    assert await notes.ask_again(1) == 3
    await sound(world)  # the old texts stand until then
    await world.run()
    await world.run(everything=True)
    assert (await stands(world, "day", DAY_KEY))[:2] == (WORDS, EDITOR)
    assert (await stands(world, "month", MONTH_KEY))[:2] == (MONTH_WORDS, EDITOR)
    assert (await stands(world, "year", YEAR_KEY))[:2] == (YEAR_WORDS, EDITOR)
    assert "1日的话" in (await stands(world, "day", "2026-10-29"))[0]
    assert (await stands(world, "day", "2026-10-29"))[1] == "model"
    await sound(world)


async def test_what_is_new_is_added_all_the_same(world: World) -> None:
    await close_days(world, 4, start=FIRST)
    await edit(world, "month", MONTH_KEY, MONTH_WORDS)
    await world.run()
    await world.say("迟到的话", local(FIRST, 12))
    await world.run()
    text, writer, _ = await stands(world, "month", MONTH_KEY)
    assert text.startswith(MONTH_WORDS)
    assert "迟到的话" in text
    assert writer == EDITOR
    await edit(world, "activity", "2", WORDS)
    await world.run()
    text, writer, _ = await stands(world, "month", MONTH_KEY)
    assert text.startswith(MONTH_WORDS)
    assert WORDS in text  # a correction below is something new
    await sound(world)


async def test_edits_outlive_a_restart_and_a_new_index(world: World) -> None:
    await close_days(world, 4, start=FIRST)
    await edit(world, "day", DAY_KEY, WORDS)
    await edit(world, "activity", "2", f"{WORDS}（#9）")
    await world.run()
    before = await world.export()
    await database.close_store()
    await database.open_store(world.file)
    await reindexing.rebuild(world.file, [1], lambda *_: None)
    assert await world.export() == before
    assert (await world.run(everything=True)).memories == 0
    found = await invariants.check(world.file, 1, CALENDAR, world.clock.now())
    assert found.findings == ()


async def test_a_moment_is_free_of_an_activitys_limit(world: World) -> None:
    await world.talk(2, local(FIRST, 10))
    moment = diary.Moment("一件小事。", DAY_KEY, local(FIRST, 11), "tool", seen=(1, 2))
    await diary.keep_turn(1, (1, 2), (), [moment], world.clock.now())
    await edit(world, "activity", "1", "字" * 300)
    with pytest.raises(NoteRejected, match="300"):
        await editing.edit(1, "activity", "1", "字" * 301, EDITOR, world.clock.now())
    found = await memories.activity(1, 1)
    assert found is not None
    assert (found.text, found.key_messages) == ("字" * 300, (1, 2))


@pytest.mark.parametrize("version", [0, -1, 10**9, 10**30])
async def test_a_version_that_cannot_be(world: World, version: int) -> None:
    await close_days(world, 2, start=FIRST)
    before = world.dump()
    with pytest.raises(CorrectionError, match="没有第"):
        await editing.restore(1, "day", DAY_KEY, version, EDITOR, world.clock.now())
    assert world.dump() == before


@pytest.mark.parametrize("writes", ["model", "garbage", "offline"])
async def test_a_correction_below_is_added_once_and_only_what_is_new_in_it(
    world: World, writes: str
) -> None:
    def upkeep() -> Upkeep:
        if writes == "offline":
            return offline(world)
        fallback = OfflineWriter(CALENDAR)
        return replace(world.upkeep(), fallback=fallback)

    async def work() -> None:
        report = await upkeep().run(1, everything=True)
        assert not report.errors
        await sound(world)

    await close_days(world, 4, start=FIRST)
    await edit(world, "day", DAY_KEY, "我和小鹿去爬了山。她说下次还要去。")
    await work()
    assert "我和小鹿去爬了山" in (await stands(world, "month", MONTH_KEY))[0]
    await edit(world, "month", MONTH_KEY, "十月去爬了山，不累。")
    if writes == "garbage":
        world.writer.shorten = lambda text: "胡说八道。"
    await work()
    before = await stands(world, "month", MONTH_KEY)
    assert before[0] == "十月去爬了山，不累。"
    # Twice before anything is written: what the first one told is not lost to the second.
    await edit(world, "day", DAY_KEY, "我和小鹿去爬了山。她说再也不去了。")
    await edit(world, "day", DAY_KEY, "我和小鹿去爬了山。她说再也不去了。天很冷。")
    await work()
    text, writer, _ = await stands(world, "month", MONTH_KEY)
    assert text.startswith(before[0])
    assert writer == EDITOR
    told = ["我和小鹿去爬了山", "她说下次还要去", "她说再也不去了", "天很冷"]
    assert [text.count(words) for words in told] == [0, 0, 1, 1]
    # An earlier wording that comes back, and the same text again, say nothing new.
    await editing.restore(1, "day", DAY_KEY, 3, EDITOR, world.clock.now())
    await work()
    await edit(world, "day", DAY_KEY, "她说再也不去了。")
    await work()
    assert (await stands(world, "month", MONTH_KEY))[0] == text
    # A day that is told more is written anew; what it said before is not added again.
    await world.say("迟到的话", local(FIRST + timedelta(days=1), 12))
    await work()
    after = (await stands(world, "month", MONTH_KEY))[0]
    assert after.startswith(text)
    assert after.count("29日3") == 0
    await edit(world, "month", MONTH_KEY, "十月很短。")
    await work()
    assert (await upkeep().run(1, everything=True)).memories == 0
    assert (await stands(world, "month", MONTH_KEY))[0] == "十月很短。"


async def test_a_corrected_activity_is_not_told_twice_in_an_edited_day(world: World) -> None:
    await close_days(world, 2, start=FIRST)
    await edit(world, "day", DAY_KEY, "我们聊了一早上。")
    await edit(world, "activity", "1", "早上在聊爬山。")
    await world.run(everything=True)
    text = (await stands(world, "day", DAY_KEY))[0]
    assert text.startswith("我们聊了一早上。")
    assert text.count("早上在聊爬山。") == 1
    await edit(world, "activity", "1", "早上在聊爬山。小鹿没来。")
    await world.run(everything=True)
    text = (await stands(world, "day", DAY_KEY))[0]
    assert (text.count("早上在聊爬山。"), text.count("小鹿没来。")) == (1, 1)
    await world.withdraw("3")
    await world.run(everything=True)
    assert "一早上" not in (await stands(world, "day", DAY_KEY))[0]  # it may tell what is gone
