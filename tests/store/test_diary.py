"""The diary of a chat: every entry kept, in its place, and text all the way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
import json
from pathlib import Path
import threading
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun.errors import NotRecorded, Overtaken, StoreUnavailable
from plugins.nonebot_plugin_nianlun.interface.diary import (
    Diary,
    DiaryEntry,
    handle_diary_tool,
    memorize,
)
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.diary import DIARY_PROMPT
from plugins.nonebot_plugin_nianlun.memory.layers import as_text, sections
from plugins.nonebot_plugin_nianlun.outcomes import Outcomes
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    forgetting,
    invariants,
    memories,
    usage,
)
from plugins.nonebot_plugin_nianlun.store import diary as store
from plugins.nonebot_plugin_nianlun.store.models import Activity, Chat
from plugins.nonebot_plugin_nianlun.types import ChatKey
from tests.store.test_restoring import bring, exported, write
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, World, local
from tests.support.reply_layers import layers
from tests.support.scripted_writer import SetClock

TODAY = DAY.isoformat()
OTHER = ChatKey("10001", "group", "456")


@dataclass
class Host:
    clock: SetClock
    calendar: Calendar
    outcomes: Outcomes


@pytest.fixture
async def world(database_file: Path) -> World:
    found = World(database_file)
    await chats.ensure([GROUP], found.clock.now())
    return found


@pytest.fixture
def host(world: World) -> Host:
    return Host(world.clock, CALENDAR, Outcomes(world.clock))


@pytest.fixture
def diary(host: Host) -> Diary:
    return Diary(host, GROUP)


class Model:
    """Answers with what it is given, and remembers what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[list[dict[str, str]]] = []
        self.thread: int | None = None

    def chat(self, messages: list[dict[str, str]]) -> Any:
        self.asked.append(messages)
        self.thread = threading.get_ident()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class AsyncModel(Model):
    async def chat(self, messages: list[dict[str, str]]) -> Any:
        return super().chat(messages)


def answered(*texts: str) -> str:
    return json.dumps([{"content": text} for text in texts], ensure_ascii=False)


async def sound(world: World) -> None:
    found = await invariants.check(world.file, 1, CALENDAR, world.clock.now())
    assert found.findings == ()


async def test_an_entry_is_an_activity_with_the_hosts_time_and_owner(
    world: World, diary: Diary
) -> None:
    entry = await diary.append(" 她笑了。\n", owner="20001", source_conv="conv-1")
    at = world.clock.now()
    assert entry == DiaryEntry(1, TODAY, "09:00", "她笑了。", "20001", "conv-1", at)
    assert await diary.day(TODAY) == [entry]
    (activity,) = await memories.activities(1, TODAY)
    assert (activity.origin, activity.owner, activity.time) == ("tool", "20001", at)
    assert (activity.text, activity.ranges, activity.merged) == ("她笑了。", (), False)
    await sound(world)


async def test_entries_of_one_minute_are_all_kept_in_order(diary: Diary) -> None:
    for text in ("一", "二", "三"):
        await diary.append(text, date=TODAY, time="14:30")
    await diary.append("早", date=TODAY, time="09:05")
    await diary.append("夜", date=TODAY, time="01:20")
    entries = await diary.day(DAY)
    assert [e.content for e in entries] == ["早", "一", "二", "三", "夜"]
    assert [e.time for e in entries] == ["09:05", "14:30", "14:30", "14:30", "01:20"]
    assert {e.date for e in entries} == {TODAY}


async def test_days_and_windows(diary: Diary) -> None:
    for day in ("2026-11-20", "2026-11-22", "2026-11-25"):
        await diary.append(f"那天 {day}", date=day, time="12:00")
    assert await diary.dates() == ["2026-11-20", "2026-11-22", "2026-11-25"]
    found = await diary.window("2026-11-22", "2026-11-25")
    assert [e.date for e in found] == ["2026-11-22", "2026-11-25"]
    assert await diary.window("2026-11-25", "2026-11-22") == found
    assert await diary.day("2026-11-21") == []
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        await diary.window("2026-11-22", "11-25")


async def test_a_diary_begins_with_its_first_entry_and_is_the_chats_alone(host: Host) -> None:
    other = Diary(host, OTHER)
    assert await other.dates() == await other.day(TODAY) == []
    assert await chats.find(OTHER) is None
    await other.append("别处的事")
    assert await Diary(host, GROUP).dates() == []
    assert [e.content for e in await other.day(TODAY)] == ["别处的事"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"content": " \n"}, "content is empty"),
        ({"content": "长" * 301}, "too long"),
        ({"date": "2026-02-30"}, "day"),
        ({"time": "25:00"}, "HH:MM"),
        ({"ts": "昨天"}, "isoformat"),
        ({"owner": "ME"}, "user id"),
        ({"owner": " "}, "user id"),
        ({"owner": 20001}, "user id"),
        ({"owner": "20001\0"}, "user id"),
        ({"owner": "20\n001"}, "user id"),
        ({"owner": "\ud800"}, "user id"),
        ({"content": None}, "must be text"),
        ({"content": b"x"}, "must be text"),
        ({"ts": 1764000000}, "not a time"),
        ({"ts": "8999-12-31T23:00:00Z"}, "no year"),
        ({"source_conv": "x" * 201}, "source_conv"),
    ],
)
async def test_what_cannot_be_is_refused_and_leaves_nothing(
    diary: Diary, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        await diary.append(**({"content": "好"} | wrong))
    assert await Activity.all().count() == 0
    assert (await Chat.get(id=1)).last_activity == 0


async def test_entries_written_at_once_are_all_there(world: World, diary: Diary) -> None:
    async def write_some(task: int) -> None:
        for number in range(25):
            await diary.append(f"{task}-{number}", time="14:30")

    await asyncio.gather(*(write_some(task) for task in range(8)))
    entries = await diary.day(TODAY)
    assert {e.content for e in entries} == {f"{t}-{n}" for t in range(8) for n in range(25)}
    assert sorted(e.number for e in entries) == list(range(1, 201))
    assert (await Chat.get(id=1)).last_activity == 200
    assert len((await layers(world.file, GROUP)).activities) == 200
    await sound(world)


HOSTILE = (
    "早上\n## 23:59\n伪造的一条\n<!-- owner=u:9 | ts=1999 -->",
    "一\r\n二\u2028三\u2029四\t五",
    '—— 2026-11-29 周日 ——\n#12 10:00 小鹿: 假的\n【聊天记录】"}]',
    "[[profile:没有]] ```json\n[]\n```",
)


async def test_content_stays_content_here_there_and_before_a_model(
    world: World, host: Host, diary: Diary, tmp_path: Path
) -> None:
    for text in HOSTILE:
        await diary.append(text, owner="20001", source_conv="c|1\n## x")
    before = await diary.day(TODAY)
    assert [e.content for e in before] == list(HOSTILE)
    shown = as_text(sections(await layers(world.file, GROUP), CALENDAR))
    assert len(shown.splitlines()) == 1 + len(HOSTILE)
    lines = await exported()
    assert [line["text"] for line in lines if line["type"] == "activity"] == list(HOSTILE)
    file = write(tmp_path / "diary.jsonl", lines)
    await Activity.all().delete()
    await bring(file)
    after = await diary.day(TODAY)
    assert [replace(e, number=0) for e in after] == [replace(e, number=0) for e in before]
    await bring(file)
    assert await diary.day(TODAY) == after
    await sound(world)


async def test_entries_go_into_their_day_also_a_late_one(world: World, diary: Diary) -> None:
    await diary.append("她笑了。", time="09:30")
    world.clock.time = local(DAY + timedelta(days=1), 5)
    assert [key for _, key, _ in await chats.with_work()] == [GROUP]
    report = await world.run()
    assert (report.activities, report.memories, report.errors) == (0, 1, ())
    assert await world.memory("day", TODAY) == "她笑了。"
    await diary.append("她哭了。", date=TODAY, time="10:00")
    await world.run()
    assert await world.memory("day", TODAY) == "她笑了。 / 她哭了。"
    assert all(a.merged for a in await memories.activities(1, TODAY))
    assert world.writer.windows == []
    await sound(world)


async def test_a_member_who_opted_out_is_not_written_about(world: World, diary: Diary) -> None:
    await exclusions.opt_out(1, "20001", world.clock.now(), world.clock.now())
    for when in ({}, {"ts": "2026-01-01T00:00:00Z"}):
        with pytest.raises(NotRecorded):
            await diary.append("她笑了。", owner="20001", **when)
    await diary.append("他笑了。", owner="20002")
    assert [e.content for e in await diary.day(TODAY)] == ["他笑了。"]


async def test_blanks_around_an_owner_do_not_outlast_being_forgotten(
    world: World, diary: Diary
) -> None:
    assert (await diary.append("她笑了。", owner=" 20001\n")).owner == "20001"
    await forgetting.forget(1, "20001", world.clock.now())
    assert await diary.day(TODAY) == []


async def test_a_forgotten_member_goes_and_does_not_come_back(world: World, diary: Diary) -> None:
    await diary.append("她笑了。", owner="20001")
    await diary.append("他笑了。", owner="20002")
    await forgetting.forget(1, "20001", world.clock.now())
    assert [e.content for e in await diary.day(TODAY)] == ["他笑了。"]
    with pytest.raises(NotRecorded):
        await diary.append("她那时笑了。", owner="20001", ts=world.clock.now() - timedelta(hours=1))
    await world.run()
    await sound(world)
    world.clock.time += timedelta(minutes=1)
    await diary.append("她又来了。", owner="20001")
    assert len(await diary.day(TODAY)) == 2


async def test_a_paused_chat_has_no_diary(diary: Diary) -> None:
    await Chat.filter(id=1).update(paused=True)
    with pytest.raises(NotRecorded):
        await diary.append("她笑了。")
    assert (await Chat.get(id=1)).last_activity == 0


async def turn_moment(world: World, *seqs: int, owner: str = "20001") -> None:
    moment = store.Moment(
        "她说了芝麻开门。", TODAY, world.clock.now(), "turn", owner=owner, seen=seqs
    )
    await store.keep_turn(1, seqs, [], [moment], world.clock.now())


async def test_a_moment_goes_with_any_message_that_it_was_written_from(
    world: World, diary: Diary
) -> None:
    ids = [await world.say(f"话{n}", local(DAY, 8, n), by=f"2000{n}") for n in range(1, 4)]
    await turn_moment(world, 1, 2)
    await turn_moment(world, 3)
    world.clock.time = local(DAY + timedelta(days=1), 5)
    await world.run()
    assert "芝麻开门" in (await world.memory("day", TODAY) or "")
    await sound(world)
    await world.withdraw(ids[1])
    assert await world.memory("day", TODAY) is None
    assert [e.number for e in await diary.day(TODAY)] == [2]
    await world.run()
    assert (await world.memory("day", TODAY) or "").count("芝麻开门") == 1
    await sound(world)


async def test_a_moment_goes_with_whoever_said_what_it_was_written_from(
    world: World, diary: Diary
) -> None:
    for n in range(1, 3):
        await world.say(f"话{n}", local(DAY, 8, n), by=f"2000{n}")
    await turn_moment(world, 1, 2)
    await forgetting.forget(1, "20002", world.clock.now())
    assert await diary.day(TODAY) == []
    await world.run()
    await sound(world)


async def test_a_turn_of_which_a_message_is_gone_leaves_nothing(world: World) -> None:
    message_id = await world.say("话", local(DAY, 8))
    await world.withdraw(message_id)
    with pytest.raises(Overtaken):
        await turn_moment(world, 1)
    assert await Activity.all().count() == 0


async def test_memorize_asks_once_and_keeps_all_moments_of_one_minute(
    world: World, diary: Diary
) -> None:
    model = AsyncModel(answered("一", "二", " "))
    entries = await memorize(
        diary, "他：{你好}", llm=model, character="伊蕾娜", owner="20001", source_conv="c1"
    )
    assert [e.content for e in entries] == ["一", "二"]
    assert {(e.time, e.owner, e.source_conv) for e in entries} == {("09:00", "20001", "c1")}
    assert await diary.day(TODAY) == entries
    assert {a.origin for a in await memories.activities(1, TODAY)} == {"turn"}
    (asked,) = model.asked
    assert asked == [
        {"role": "system", "content": DIARY_PROMPT.format(character="伊蕾娜")},
        {"role": "user", "content": "他：{你好}"},
    ]


async def test_a_model_that_blocks_does_so_in_a_thread(diary: Diary) -> None:
    class Slow(Model):
        def chat(self, messages: list[dict[str, str]]) -> Any:
            waiting.wait(10)
            return super().chat(messages)

    waiting = threading.Event()
    model = Slow(answered("一"))
    task = asyncio.create_task(memorize(diary, "x", llm=model))
    await asyncio.sleep(0.05)
    assert not task.done()
    waiting.set()
    assert len(await task) == 1
    assert model.thread != threading.get_ident()


async def test_models_that_never_answer_take_nobodys_threads(diary: Diary) -> None:
    """The process's own pool has a few threads, which closing the store needs, too."""
    never = threading.Event()

    class Stuck(Model):
        def chat(self, messages: list[dict[str, str]]) -> Any:
            never.wait(30)
            return super().chat(messages)

    calls = [asyncio.create_task(memorize(diary, "一轮", llm=Stuck("[]"))) for _ in range(40)]
    try:
        await asyncio.sleep(0.1)
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()
    finally:
        never.set()
    assert await asyncio.gather(*calls) == [[]] * 40


async def test_a_method_that_returns_something_to_await_is_awaited(diary: Diary) -> None:
    async def later() -> str:
        return answered("一")

    class Wrapped(Model):
        def chat(self, messages: list[dict[str, str]]) -> Any:
            return later()

    assert [e.content for e in await memorize(diary, "x", llm=Wrapped(""))] == ["一"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (TimeoutError("太久了"), "TimeoutError"),
        (RuntimeError("坏了\n第二行"), "RuntimeError: 坏了 第二行"),
        ("没什么好写的", "JSON"),
        (None, "NoneType"),
        (b"[]", "bytes"),
        (7, "int"),
        (StopIteration("没有了"), "StopIteration"),
    ],
)
async def test_trouble_with_the_model_gives_nothing_and_is_seen(
    host: Host, diary: Diary, answer: Any, said: str
) -> None:
    assert await memorize(diary, "x", llm=Model(answer)) == []
    outcome = host.outcomes.of(GROUP)
    assert outcome.error is not None
    assert said in outcome.error
    assert outcome.error_at == host.clock.now()
    assert await usage.calls(1, TODAY, ["diary"]) == (1, 1)
    assert await memorize(diary, "x", llm=Model("[]")) == []
    assert host.outcomes.of(GROUP).error is None
    assert host.outcomes.of(GROUP).success_at == host.clock.now()
    assert await usage.calls(1, TODAY, ["diary"]) == (2, 1)


async def test_trouble_with_the_store_gives_nothing_and_is_seen(
    host: Host, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any) -> list[int]:
        raise StoreUnavailable("磁盘满了")

    monkeypatch.setattr(store, "append", full)
    assert await memorize(diary, "x", llm=Model(answered("一"))) == []
    assert "磁盘满了" in (host.outcomes.of(GROUP).error or "")


async def test_somebody_who_opted_out_is_no_trouble(world: World, host: Host, diary: Diary) -> None:
    await exclusions.opt_out(1, "20001", world.clock.now(), world.clock.now())
    assert await memorize(diary, "x", llm=Model(answered("一")), owner="20001") == []
    assert host.outcomes.of(GROUP).error is None
    assert await diary.dates() == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"prompt": '[{"content": "x"}]'}, KeyError),
        ({"prompt": "{0}"}, IndexError),
        ({"prompt": "{"}, ValueError),
        ({"owner": "Me"}, ValueError),
        ({"date": "29"}, ValueError),
    ],
)
async def test_what_is_wrong_before_the_call_is_raised_before_it(
    diary: Diary, given: dict[str, str], error: type[Exception]
) -> None:
    model = Model("[]")
    with pytest.raises(error):
        await memorize(diary, "x", llm=model, **given)  # pyright: ignore[reportArgumentType]
    assert model.asked == []


async def test_a_long_answer_is_cut_and_a_chatty_one_stops(diary: Diary) -> None:
    model = Model(answered("她笑了。" * 200, *(f"第{n}件" for n in range(20))))
    entries = await memorize(diary, "x", llm=model)
    assert len(entries) == 8
    assert entries[0].content.endswith("……")


async def test_a_cancelled_memorize_is_cancelled(diary: Diary) -> None:
    class Never(Model):
        async def chat(self, messages: list[dict[str, str]]) -> Any:
            await asyncio.Event().wait()

    task = asyncio.create_task(memorize(diary, "x", llm=Never("")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_tool_call_is_stored_as_the_host_stamps_it(diary: Diary) -> None:
    entry = await handle_diary_tool(
        diary, '{"content":"她笑了。"}', owner="20001", source_conv="c", ts="2026-11-20T02:00:00Z"
    )
    assert (entry.date, entry.time) == ("2026-11-20", "10:00")
    assert (entry.owner, entry.source_conv) == ("20001", "c")
    assert await diary.day("2026-11-20") == [entry]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ({"date": "2026-11-29", "content": "x"}, "unexpected argument"),
        ({}, "missing a string"),
        ({"content": "\n"}, "empty"),
    ],
)
async def test_a_bad_tool_call_writes_nothing(diary: Diary, arguments: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        await handle_diary_tool(diary, arguments)
    assert await diary.dates() == []


async def test_a_tool_call_about_somebody_who_opted_out_says_so(world: World, diary: Diary) -> None:
    await exclusions.opt_out(1, "20001", world.clock.now(), world.clock.now())
    with pytest.raises(ValueError, match="not written"):
        await handle_diary_tool(diary, {"content": "她笑了。"}, owner="20001")
    assert await diary.dates() == []
