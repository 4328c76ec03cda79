"""Recall over a real file: the right things, whole, from one chat, and never more than the room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
import re
import sqlite3
import threading
import time as clock
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.chat.recall import Recaller, last_words
from plugins.nonebot_plugin_nianlun.chat.standing import Standing
from plugins.nonebot_plugin_nianlun.config import Settings
from plugins.nonebot_plugin_nianlun.errors import StoreError
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.search import Candidate, RecallResult
from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens
from plugins.nonebot_plugin_nianlun.recalling import Recalling, RecallQuery
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    diary,
    exclusions,
    facts,
    links,
    recording,
    reply_view,
    searching,
)
from plugins.nonebot_plugin_nianlun.store.database import transactional
from plugins.nonebot_plugin_nianlun.store.reply_view import DayView
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Fact, Incoming, Message, Withdrawal
from tests.support.scripted_writer import SetClock

ZONE = ZoneInfo("Asia/Shanghai")
CALENDAR = Calendar(ZONE, time(4))
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=ZONE).astimezone(UTC)
GROUP = ChatKey("10001", "group", "742100123")
OTHER = ChatKey("10001", "group", "742100124")
DEER, RIVER, NAMESAKE = "20001", "20002", "20003"
NAMES = {DEER: "小鹿", RIVER: "阿川", NAMESAKE: "小鹿", ME: "小忆"}


@dataclass
class World:
    clock: SetClock
    reader: SearchReader
    recalling: Recalling

    async def say(
        self, text: str, by: str = DEER, *, days: float = 0, chat: ChatKey = GROUP
    ) -> None:
        """Record a line that was said so many days ago."""
        at = NOW - timedelta(days=days)
        segments = [{"type": "text", "data": {"text": text}}]
        line = Incoming(chat, at.replace(microsecond=0), by, NAMES[by], segments, "event")
        await recording.record([line], readable, "小忆", NOW)

    async def know(self, *found: Fact, chat: ChatKey = GROUP) -> None:
        await transactional(facts.store)(await self.id_of(chat), found, NOW)

    async def id_of(self, chat: ChatKey = GROUP) -> int:
        chat_id = await chats.find(chat)
        assert chat_id is not None
        return chat_id

    async def recall(self, text: str, *, chat: ChatKey = GROUP, **options: Any) -> RecallResult:
        query = RecallQuery(text, **options)
        return await self.recalling.recall(await self.id_of(chat), query)

    def recaller(self, nearest: Meaning | None = None, **values: Any) -> Recaller:
        recalling = Recalling(self.reader, "小忆", self.clock, CALENDAR, nearest)
        return Recaller(Settings(**values), "小忆", self.clock, CALENDAR, recalling)


@pytest.fixture
async def world(database_file: Path) -> AsyncIterator[World]:
    clock = SetClock(NOW)
    reader = SearchReader(database_file, CALENDAR)
    try:
        yield World(clock, reader, Recalling(reader, "小忆", clock, CALENDAR))
    finally:
        await reader.close()


def contents(found: RecallResult) -> list[str]:
    return [item.content for item in found.items]


async def test_an_old_line_comes_back_with_who_and_when(world: World) -> None:
    await world.say("我对花生过敏，一吃就肿", days=200)
    for number in range(40):
        await world.say(f"第 {number} 句闲话，天气还行", RIVER, days=1)
    found = await world.recall("谁对花生过敏来着？")
    assert found.items[0].text == "- #1 2026-05-13 12:00 小鹿：我对花生过敏，一吃就肿"
    assert found.items[0].address == "#1"
    assert found.text == "\n".join(item.text for item in found.items)
    assert found.budget_used == sum(item.tokens for item in found.items)
    assert not found.embedding_used


async def test_an_answer_comes_with_its_question(world: World) -> None:
    await world.say("枸杞岛的船票多少钱", RIVER, days=30)
    await world.say("一百二，学生半价", days=30 - 0.0001)
    await world.say("晚上吃什么", RIVER, days=3)
    assert contents(await world.recall("枸杞岛船票什么价"))[:2] == [
        "枸杞岛的船票多少钱",
        "一百二，学生半价",
    ]


async def test_two_of_one_name_are_told_apart(world: World) -> None:
    await world.say("我养了一只三花猫", DEER, days=9)
    await world.say("我养了一只橘猫", NAMESAKE, days=8)
    found = await world.recall("谁养了猫")
    assert {item.text.partition(" ")[2].split(" ", 3)[3] for item in found.items} == {
        "小鹿（尾号0001）：我养了一只三花猫",
        "小鹿（尾号0003）：我养了一只橘猫",
    }
    only = await world.recall("谁养了猫", speaker=NAMESAKE)
    assert contents(only) == ["我养了一只橘猫"]


async def test_another_chat_is_never_found(world: World) -> None:
    await world.say("群里的密码本在抽屉", days=3)
    await world.say("另一个群的密码本在柜子", days=3, chat=OTHER)
    assert contents(await world.recall("密码本在哪")) == ["群里的密码本在抽屉"]
    assert contents(await world.recall("密码本在哪", chat=OTHER)) == ["另一个群的密码本在柜子"]


async def test_a_fact_comes_first_and_brings_what_it_links_to(world: World) -> None:
    await world.say("我不喝咖啡，只喝龙井", DEER, days=5)
    await world.say("咖啡馆新开了一家", RIVER, days=4)
    await world.know(
        Fact("preferences", "coffee", "不喝咖啡，改喝 [[preferences:tea]]，见 [[event:gone]]", 1),
        Fact("preferences", "tea", "只喝龙井", 1),
    )
    found = await world.recall("小鹿喝不喝咖啡", asker=RIVER)
    assert [item.address for item in found.items[:2]] == [
        "[preferences:coffee]",
        "[preferences:tea]",
    ]
    assert found.items[1].text == "- [preferences:tea]（小鹿） 只喝龙井"
    assert found.unresolved_links == ("event:gone",)
    own = await world.recall("我喝不喝咖啡", asker=DEER)
    assert own.items[1].text == "- [preferences:tea] 只喝龙井"


async def test_a_time_in_words_is_a_gate(world: World) -> None:
    await world.say("在吃火锅", days=31)
    await world.say("又吃火锅", days=1)
    await world.say("还吃火锅", days=3)
    yesterday = await world.recall("昨天吃了什么？火锅吗")
    assert (contents(yesterday), yesterday.widened) == (["又吃火锅"], False)


async def test_an_empty_time_widens_and_says_so(world: World) -> None:
    await world.say("吃了火锅", days=3)
    await world.say("吃了火锅", days=90)
    found = await world.recall("前天吃了什么？火锅吗")
    assert (contents(found), found.widened) == (["吃了火锅"], True)


async def test_a_given_time_stands_in_place_of_words(world: World) -> None:
    await world.say("吃了火锅", days=3)
    await world.say("又吃火锅", days=90)
    span = (NOW - timedelta(days=91), NOW - timedelta(days=89))
    found = await world.recall("昨天的火锅", time_range=span)
    assert (contents(found), found.widened) == (["又吃火锅"], False)


async def test_a_fact_is_of_a_given_time_when_it_was_written_in_it(world: World) -> None:
    await world.say("早", days=3)
    await world.know(
        Fact("event", "hotpot", "火锅，见 [[event:shop]]", 1), Fact("event", "shop", "城西", 1)
    )
    day = timedelta(days=1)
    found = await world.recall("火锅", time_range=(NOW, NOW + day))
    assert [item.address for item in found.items] == ["[event:hotpot]", "[event:shop]"]
    for span in ((NOW - day, NOW), (NOW + day, NOW + 2 * day)):
        assert (await world.recall("火锅", time_range=span)).items == ()
        assert (await world.recall("火锅", time_range=span, speaker=DEER)).items == ()
    assert contents(await world.recall("昨天的火锅")) != []


async def test_limit_and_budget_and_what_was_dropped(world: World) -> None:
    for number in range(30):
        await world.say(f"第{number}次说起跑步计划，每天早上五公里，风雨无阻", days=20 - number / 2)
    three = await world.recall("跑步计划", limit=3)
    assert len(three.items) == 3
    small = await world.recall("跑步计划", budget_tokens=100)
    assert 0 < small.budget_used <= 100
    assert small.dropped
    assert len(small.items) + len(small.dropped) == 10
    assert await world.recall("跑步计划", limit=0) == RecallResult()
    assert await world.recall("跑步计划", budget_tokens=0) == RecallResult()


ANY_TEXT = st.text(max_size=60) | st.text(
    st.sampled_from('"*^:()-+{}[]AND OR NOT NEAR%_\x00\ud800\u2028我昨天3月5日小鹿咖啡a'),
    max_size=40,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ANY_TEXT, st.integers(-5, 300), st.none() | st.sampled_from([DEER, ME, "x'\x00", ""]))
async def test_no_text_makes_recall_raise_or_pass_its_budget(
    world: World, text: str, budget: int, person: str | None
) -> None:
    if await chats.find(GROUP) is None:
        await world.say('昨天3月5日和小鹿喝咖啡 "AND" a* OR \u2028 b')
        await world.say("小忆你好", RIVER)
    found = await world.recall(text, budget_tokens=budget, speaker=person, asker=person)
    assert estimate_tokens(found.text) <= found.budget_used <= max(budget, 0)


async def test_a_reply_gets_what_its_question_brings_up_and_nothing_twice(world: World) -> None:
    await world.say("我对花生过敏，一吃就肿", days=200)
    for number in range(90):
        await world.say(f"第 {number} 句闲话", RIVER, days=1 - number / 100)
    await world.say("小忆，谁对花生过敏来着", RIVER)
    messages = (await world.recaller().prompt(GROUP)).messages
    end = messages[-1]["content"]
    assert "【这句话让你想起】\n- #1 05-13 12:00 小鹿：我对花生过敏，一吃就肿\n" in end
    assert repr(messages).count("谁对花生过敏来着") == 1
    assert "花生" not in messages[0]["content"]


async def test_two_moments_of_one_minute_both_come_back(world: World) -> None:
    await world.say("拿到驾照啦", days=2)
    at = NOW - timedelta(days=2)
    day = CALENDAR.day_of(at).isoformat()
    texts = ["他拿到驾照了，高兴得跳起来。", "他说驾照要先拿给妈妈看。"]
    moments = [diary.Moment(text, day, at, "tool", DEER, None) for text in texts]
    await diary.append(await world.id_of(), moments, NOW)
    for asked in ("驾照", "前天发生了什么"):
        assert set(texts) <= set(contents(await world.recall(asked)))


async def test_a_note_is_shown_the_facts_that_its_window_touches(world: World) -> None:
    await world.say("我不喝咖啡", DEER, days=5)
    await world.say("我养了只猫", RIVER, days=5)
    await world.know(
        Fact("preferences", "coffee", "不喝咖啡", 1), Fact("profile", "cat", "养了一只三花猫", 2)
    )
    recaller, chat_id = world.recaller(), await world.id_of()
    scene = await recaller.scene(GROUP, chat_id, "早\n这家店的咖啡\n真不错")
    assert scene.recalled == "- [preferences:coffee]（小鹿） 不喝咖啡"
    assert scene.known_categories == ("preferences", "profile")
    assert (await recaller.scene(GROUP, chat_id, "早上好")).recalled == ""
    assert (await recaller.scene(GROUP, chat_id, "")).recalled == ""


class Meaning:
    """A search by meaning that finds nothing, in its own time."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        self._meanwhile = meanwhile

    async def nearest(self, chat_id: int, text: str) -> None:
        if self._meanwhile is not None:
            await self._meanwhile()


def broken(*_: object, **__: object) -> list[Candidate]:
    raise sqlite3.DatabaseError("database disk image is malformed")


def stuck(connection: sqlite3.Connection, *_: object, **__: object) -> list[Candidate]:
    counting = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    )
    connection.execute(counting)
    raise AssertionError("nobody ended it")


@pytest.mark.parametrize("nearest", [None, Meaning()])
async def test_a_search_that_fails_costs_what_it_would_have_found(
    world: World, monkeypatch: pytest.MonkeyPatch, nearest: Meaning | None
) -> None:
    await world.say("我对花生过敏，一吃就肿", RIVER, days=200)
    for number in range(80):
        await world.say(f"第{number}句", RIVER, days=2 - number / 1000)
    await world.say("谁对花生过敏来着")
    recaller = world.recaller(nearest)

    async def told() -> str:
        memory = await recaller.remember(GROUP, DEER)
        return recaller.prompt_of(GROUP, memory).messages[-1]["content"]

    for search, trouble in ((broken, "数据库坏了"), (stuck, "搜索记忆超过了 1 秒")):
        with monkeypatch.context() as patched:
            patched.setattr(searching, "find", search)
            content = await told()
        assert "谁对花生过敏来着" in content
        assert "一吃就肿" not in content
        assert recaller.trouble is not None
        assert recaller.trouble.startswith(trouble)
    assert "一吃就肿" in await told()
    assert recaller.trouble is None


async def test_behind_somebody_elses_long_search_a_reply_waits_no_longer_than_for_its_own(
    world: World,
) -> None:
    await world.say("小忆你好")
    recaller, done = world.recaller(), threading.Event()
    long = asyncio.create_task(world.reader.run(lambda _: done.wait(20)))
    await asyncio.sleep(0.1)
    began = clock.monotonic()
    prompt = recaller.prompt_of(GROUP, await recaller.remember(GROUP, DEER))
    assert 0.9 < clock.monotonic() - began < 2.5
    assert "小忆你好" in prompt.messages[-1]["content"]
    assert recaller.trouble == "搜索记忆超过了 1 秒"
    done.set()
    assert await long


async def test_of_what_nobody_waits_for_nothing_more_is_searched(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The promises of a day are read before, and their trouble is told apart from all else."""
    await world.say("小忆你好")

    def interrupted(*_: object) -> DayView:
        raise sqlite3.OperationalError("interrupted")

    def never(*_: object, **__: object) -> list[Candidate]:
        raise AssertionError("nobody waits for it")

    monkeypatch.setattr(reply_view, "_read_day", interrupted)
    monkeypatch.setattr(searching, "find", never)
    memory = await world.recaller().remember(GROUP, DEER)
    assert isinstance(memory.recalled, StoreError)
    assert [line.text for line in memory.lines] == ["小忆你好"]


@pytest.mark.parametrize("nearest", [None, Meaning()])
async def test_the_persona_is_that_of_its_file_now(
    world: World, tmp_path: Path, nearest: Meaning | None
) -> None:
    await world.say("小忆你好")
    file = tmp_path / "persona.md"
    file.write_text("爱说笑话。", encoding="utf-8")
    recaller = world.recaller(nearest, persona_file=file)
    for text in ("爱说笑话。", "话不多，也不爱笑。"):
        file.write_text(text, encoding="utf-8")
        prompt = recaller.prompt_of(GROUP, await recaller.remember(GROUP, DEER))
        assert f"\n\n{text}\n\n" in prompt.messages[0]["content"]


@pytest.mark.parametrize("nearest", [None, Meaning()])
async def test_lines_that_are_not_recorded_are_answered_all_the_same(
    world: World, nearest: Meaning | None
) -> None:
    await world.say("我对花生过敏，一吃就肿", RIVER, days=200)
    for number in range(80):
        await world.say(f"第{number}句", RIVER, days=2 - number / 1000)
    recaller = world.recaller(nearest)
    said = [Message(1, NOW, DEER, "小鹿", "谁对花生过敏来着")]
    content = recaller.prompt_of(GROUP, await recaller.remember(GROUP, DEER, said)).messages[-1]
    assert "谁对花生过敏来着" not in content["content"]  # it is on its way into the history
    await exclusions.opt_out(await world.id_of(), DEER, NOW - timedelta(days=1), NOW)
    content = recaller.prompt_of(GROUP, await recaller.remember(GROUP, DEER, said)).messages[-1]
    assert re.search(r"小鹿: 谁对花生过敏来着.*一吃就肿", content["content"], re.DOTALL)


@pytest.mark.parametrize("nearest", [None, Meaning()])
async def test_where_nothing_was_recorded_nothing_is_searched(
    world: World, nearest: Meaning | None
) -> None:
    recaller = world.recaller(nearest)
    memory = await recaller.remember(GROUP, DEER, [Message(1, NOW, DEER, "小鹿", "在吗")])
    assert memory.recalled == RecallResult()
    prompt = recaller.prompt_of(GROUP, memory)
    assert recaller.trouble is None
    assert [turn["role"] for turn in prompt.messages] == ["system", "user"]


@pytest.mark.parametrize("where", [GROUP, OTHER])
@pytest.mark.parametrize("how", ["withdrawn", "opted out"])
async def test_what_is_erased_once_the_rest_is_read_does_not_come(
    world: World, where: ChatKey, how: str
) -> None:
    at = (NOW - timedelta(days=9)).replace(microsecond=0)
    segments = [{"type": "text", "data": {"text": "我对花生过敏，一吃就肿"}}]
    told = Incoming(where, at, DEER, NAMES[DEER], segments, "event", message_id="1")
    await recording.record([told], readable, "小忆", NOW)
    for number in range(80):
        await world.say(f"第{number}句", RIVER, days=2 - number / 1000)
    await world.say("谁对花生过敏来着", RIVER)
    if where is OTHER:
        await links.link(await world.id_of(), await world.id_of(OTHER), "1", NOW)

    async def erase() -> None:
        if how == "withdrawn":
            await recording.record([Withdrawal(where, "1", DEER, NOW)], readable, "小忆", NOW)
        else:
            opted_out = await world.id_of(where), DEER, NOW - timedelta(days=10), NOW
            await exclusions.opt_out(*opted_out)

    async def told_and_verdict(recaller: Recaller) -> tuple[bool, str]:
        memory = await recaller.remember(GROUP, RIVER)
        assert memory.view.chat_id is not None
        assert memory.view.read is not None
        prompt = recaller.prompt_of(GROUP, memory)
        standing = Standing(memory.view.chat_id, memory.view.read, [])
        return "花生过敏，" in repr(prompt.messages), await standing.verdict()

    for recaller in (world.recaller(), world.recaller(Meaning())):
        assert await told_and_verdict(recaller) == (True, "stands")
    assert await told_and_verdict(world.recaller(Meaning(erase))) == (False, "overtaken")
    assert await told_and_verdict(world.recaller()) == (False, "stands")


def line(seq: int, by: str, text: str, seconds: int) -> Message:
    return Message(seq, NOW + timedelta(seconds=seconds), by, NAMES[by], text)


def test_the_last_words_are_the_askers_own_and_of_one_breath() -> None:
    history = [
        line(1, RIVER, "很久以前", 0),
        line(2, RIVER, "在吗", 300),
        line(3, DEER, "在", 310),
        line(4, RIVER, "上次那家店叫什么", 320),
        line(5, DEER, "哪家", 330),
    ]
    assert last_words(history, RIVER, "小忆") == ("在吗\n上次那家店叫什么", RIVER)
    assert last_words(history, "20009", "小忆") == ("在\n哪家", DEER)
    assert last_words([], None, "小忆") == ("", None)


@pytest.mark.parametrize(
    "question", ["去年阿川欠谁火锅", "今天真好，阿川欠谁火锅", "今天阿川说过欠谁火锅吗"]
)
async def test_talk_of_today_does_not_hide_what_is_older(world: World, question: str) -> None:
    """Nor does today, when all that was said then stands in the prompt."""
    await world.say("我欠小鹿一顿火锅", RIVER, days=400)
    for number in range(80):
        await world.say(f"第{number}句", RIVER, days=2 - number / 1000)
    for text in ("今天聊得好开心", "今天吃了火锅吗", question):
        await world.say(text)
    recaller = world.recaller()
    prompt = recaller.prompt_of(GROUP, await recaller.remember(GROUP, DEER))
    assert "我欠小鹿一顿火锅" in repr(prompt.messages)


async def test_a_line_of_another_time_that_stands_there_ends_no_search(world: World) -> None:
    await world.say("小鹿欠阿川一顿火锅", RIVER, days=60)
    await world.say("我想吃火锅", RIVER)
    await world.say("昨天谁欠火锅来着")
    found = await world.recall("昨天谁欠火锅来着", asker=DEER, shown={"#2", "#3"})
    assert (contents(found), found.widened) == (["小鹿欠阿川一顿火锅"], True)


async def test_what_is_asked_about_may_stand_there_already(world: World) -> None:
    await world.say("买了台灯", RIVER, days=60)
    await world.say("台灯坏了", RIVER, days=1)
    assert contents(await world.recall("昨天台灯怎么了", asker=DEER, shown={"#2"})) == []


async def test_what_stands_in_the_prompt_is_of_this_chat_alone(world: World) -> None:
    await world.say("火锅三缺一", days=30)
    await world.say("那边的火锅很远", days=300, chat=OTHER)
    await world.say("那边今天吃火锅", chat=OTHER)
    await links.link(await world.id_of(), await world.id_of(OTHER), "1", NOW)
    found = await world.recall("今天说过火锅吗", shown={"#2"}, linked=True)
    assert set(contents(found)) == {"火锅三缺一", "那边今天吃火锅"}


async def test_whoever_is_often_called_is_not_found_by_the_calls(world: World) -> None:
    await world.say("阿川搬到徐汇了", days=50)
    for number in range(80):
        await world.say(f"@阿川 出来打{number}局游戏", days=40 - number / 10)
    assert contents(await world.recall("阿川搬到哪里了", limit=1)) == ["阿川搬到徐汇了"]


async def test_an_open_question_about_somebody_finds_what_they_said_last(world: World) -> None:
    await world.say("阿川来了", days=90)
    await world.say("我去云南出差了，下个月才回来", RIVER, days=9)
    for number in range(20):
        await world.say("哈" * (number % 3 + 1), RIVER, days=8 - number / 10)
    assert contents(await world.recall("阿川最近怎么样", limit=2)) == [
        "我去云南出差了，下个月才回来",
        "阿川来了",
    ]


async def test_a_time_with_anything_in_it_is_not_widened_for_a_question_open_to_all(
    world: World,
) -> None:
    await world.say("手术很顺利", days=1)
    await world.say("昨天聊什么了", days=20)
    found = await world.recall("昨天大家聊了什么")
    assert (contents(found), found.widened) == (["手术很顺利"], False)
    found = await world.recall("昨天小鹿说了什么", asker=RIVER)
    assert (contents(found), found.widened) == (["手术很顺利"], False)


async def test_a_given_time_without_a_zone_is_by_the_clocks_of_the_bot(world: World) -> None:
    await world.say("吃了火锅", days=1)
    local = NOW.astimezone(ZONE).replace(tzinfo=None)
    day, hour = timedelta(days=1), timedelta(hours=1)
    found = await world.recall("火锅", time_range=(local - day - hour, local - day + hour))
    assert contents(found) == ["吃了火锅"]
    found = await world.recall("火锅", time_range=(local - day + hour, local))
    assert contents(found) == []
