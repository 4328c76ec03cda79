"""Facts and diary after each reply: in the background, one call a turn, and never at its cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
import json
from pathlib import Path
import threading
import time
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.turn_writer import PURPOSE, TurnWriter
from plugins.nonebot_plugin_nianlun.memory.fact_items import LONGEST_TURN
from plugins.nonebot_plugin_nianlun.outcomes import Outcomes
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    facts,
    invariants,
    memories,
    recording,
    usage,
)
from plugins.nonebot_plugin_nianlun.store.models import Activity, Fact
from plugins.nonebot_plugin_nianlun.turn_memory import TurnMemory
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Incoming, Scene, Usage
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, World, local
from tests.support.model_server import Delay, ModelServer, Reply

TODAY = DAY.isoformat()
OTHER = ChatKey("10001", "group", "456")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as found:
        yield found


@dataclass
class Bench:
    """A turn memory on a real file, asking a model over HTTP."""

    world: World
    server: ModelServer
    client: ModelClient
    outcomes: Outcomes
    turns: TurnMemory = field(init=False)
    affordable: bool = True
    recalled: dict[ChatKey, str] = field(default_factory=dict)
    asked_about: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns = TurnMemory(
            TurnWriter(self.client, CALENDAR, self._count),
            self.world.clock,
            CALENDAR,
            self.outcomes,
            settle=self._settle,
            scene=self._scene,
            affordable=self._affordable,
        )

    async def _settle(self) -> None:
        return None

    async def _affordable(self, chat_id: int, chat: ChatKey) -> bool:
        return self.affordable

    async def _scene(self, chat: ChatKey, chat_id: int, text: str) -> Scene:
        self.asked_about.append(text)
        known = tuple(await facts.categories(chat_id))
        recalled = self.recalled.get(chat, "")
        return Scene(chat, "QQ群", "小忆", "温柔", recalled=recalled, known_categories=known)

    async def _count(self, chat: ChatKey, purpose: str, cost: Usage, ok: bool) -> None:
        chat_id = await chats.find(chat)
        assert chat_id is not None
        await usage.count(chat_id, TODAY, purpose, "scripted", cost, ok)

    async def say(
        self, *texts: str, by: str = "20001", chat: ChatKey = GROUP, hours_ago: int = 0
    ) -> None:
        for text in texts:
            self.world.numbers += 1
            number = self.world.numbers
            at = local(DAY, 9) + timedelta(seconds=number, hours=-hours_ago)
            segments = [{"type": "text", "data": {"text": text}}]
            line = Incoming(chat, at, by, "小鹿", segments, "event", message_id=str(number))
            await recording.record([line], readable, "小忆", self.world.clock.now())

    async def turn(self, said: str, reply: str, *, chat: ChatKey = GROUP) -> None:
        await self.say(said, chat=chat)
        await self.say(reply, by=ME, chat=chat)
        self.turns.after(chat, "20001")

    def asked(self, index: int = -1) -> str:
        return self.server.requests[index]["messages"][-1]["content"]


@pytest.fixture
async def bench(database_file: Path, server: ModelServer) -> AsyncIterator[Bench]:
    world = World(database_file)
    await chats.ensure([GROUP, OTHER], world.clock.now())
    client = ModelClient(api_key="k", base_url=server.base_url, model="m", timeout=10, max_tries=1)
    found = Bench(world, server, client, Outcomes(world.clock))
    yield found
    await found.turns.stop()
    await client.close()
    check = await invariants.check(world.file, 1, CALENDAR, world.clock.now())
    assert check.findings == ()


def fact(name: str, source: int, content: str = "只喝美式") -> dict[str, Any]:
    return {"category": "preferences", "name": name, "content": content, "from": source}


def found(*listed: dict[str, Any], diary: tuple[str, ...] = ()) -> str:
    entries = [{"content": text} for text in diary]
    return json.dumps({"facts": listed, "diary": entries}, ensure_ascii=False)


async def test_one_call_yields_facts_and_moments(bench: Bench) -> None:
    promise = fact("起床", 2, "答应叫小鹿起床") | {"category": "promise"}
    bench.server.script([found(fact("咖啡", 1), promise, diary=("她说只喝美式，笑得很开心。",))])
    await bench.turn("我只喝美式", "记住啦，我叫你起床")
    await bench.turns.flush()
    assert len(bench.server.requests) == 1
    stored = {row.name: (row.owner, row.text) for row in await facts.listed(1)}
    assert stored == {"咖啡": ("20001", "只喝美式"), "起床": (ME, "答应叫小鹿起床")}
    (moment,) = await memories.activities(1, TODAY)
    assert (moment.text, moment.origin) == ("她说只喝美式，笑得很开心。", "turn")
    assert (moment.owner, moment.key_messages) == ("20001", (1, 2))
    assert moment.time == local(DAY, 9) + timedelta(seconds=2)
    assert await usage.calls(1, TODAY, [PURPOSE]) == (1, 0)
    outcome = bench.outcomes.of(GROUP)
    assert (outcome.error, outcome.success_at) == (None, bench.world.clock.now())


async def test_a_moment_is_about_whom_the_reply_was_for(bench: Bench) -> None:
    bench.server.script([found(diary=("她笑了。",))])
    await bench.say("我只喝美式")
    await bench.say("好", by=ME)
    await bench.say("我也是", by="20002")
    bench.turns.after(GROUP, "20001")
    await bench.turns.flush()
    assert [a.owner for a in await memories.activities(1, TODAY)] == ["20001"]


async def test_the_hook_returns_at_once_and_flush_waits(bench: Bench) -> None:
    bench.server.script([Delay(0.5, found(fact("咖啡", 1)))])
    await bench.say("我只喝美式")
    started = time.monotonic()
    bench.turns.after(GROUP, "20001")
    assert time.monotonic() - started < 0.1
    assert await Fact.all().count() == 0
    await bench.turns.flush()
    assert await Fact.all().count() == 1


async def test_the_model_is_told_what_is_known_and_where_it_is(bench: Bench) -> None:
    bench.recalled[GROUP] = "- [profile:工作] 在机器人公司"
    bench.server.script([found(), found()])
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    system, asked = (turn["content"] for turn in bench.server.requests[0]["messages"])
    assert "[profile:工作] 在机器人公司" in asked
    assert "已有的 category：还没有" in asked
    assert "#1 09:00 小鹿: 我只喝美式" in asked
    assert "小忆: 好" in asked
    assert "[[类:名]]" in system
    assert bench.asked_about == ["我只喝美式\n好"]


async def test_turns_of_two_chats_at_once_keep_what_was_recalled_apart(bench: Bench) -> None:
    bench.recalled = {GROUP: "- [profile:甲] 一", OTHER: "- [profile:乙] 二"}

    def answer(body: dict[str, Any]) -> Reply:
        return Delay(0.1, found())

    bench.server.script(answer)
    await bench.turn("这边", "好", chat=GROUP)
    await bench.turn("那边", "好", chat=OTHER)
    await bench.turns.flush()
    by_text = {"这边" in text: text for text in (bench.asked(0), bench.asked(1))}
    assert "profile:甲" in by_text[True]
    assert "profile:乙" not in by_text[True]
    assert "profile:乙" in by_text[False]
    assert "profile:甲" not in by_text[False]


async def test_each_line_is_read_with_one_turn(bench: Bench) -> None:
    bench.server.script([found()] * 2)
    await bench.turn("第一句", "好")
    await bench.turns.flush()
    bench.turns.after(GROUP, "20001")
    await bench.turns.flush()
    assert len(bench.server.requests) == 1
    await bench.turn("第二句", "嗯")
    await bench.turns.flush()
    assert "第一句" not in bench.asked()
    assert "第二句" in bench.asked()


async def test_after_a_start_no_moment_is_written_twice(bench: Bench) -> None:
    bench.server.script([found(diary=("她说只喝美式。",)), found()])
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    bench.__post_init__()
    await bench.turn("第二句", "嗯")
    await bench.turns.flush()
    assert "我只喝美式" not in bench.asked()
    assert "第二句" in bench.asked()


async def test_what_was_said_long_before_is_no_part_of_a_turn(bench: Bench) -> None:
    """A moment has one time, that of the turn's end."""
    bench.server.script([found(diary=("她说只喝美式。",))])
    await bench.say("三天前的话", hours_ago=72)
    await bench.say("昨晚的话", hours_ago=7)
    await bench.say("刚才的话", hours_ago=5)
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    assert "三天前的话" not in bench.asked()
    assert "昨晚的话" not in bench.asked()
    assert "刚才的话" in bench.asked()
    assert (await memories.activities(1, TODAY))[0].key_messages == (3, 4, 5)


async def test_turns_that_end_together_are_one_call(bench: Bench) -> None:
    bench.server.script([Delay(0.2, found())])
    await bench.say("第一句")
    await bench.turn("第二句", "嗯")
    bench.turns.after(GROUP, "20001")
    await bench.turns.flush()
    assert len(bench.server.requests) == 1
    assert "第一句" in bench.asked()
    assert "第二句" in bench.asked()


async def test_only_the_last_lines_are_read(bench: Bench) -> None:
    bench.server.script([found()])
    await bench.say(*[f"话{n:02}" for n in range(20)])
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    assert bench.asked().count("\n#") == LONGEST_TURN
    assert "话09" not in bench.asked()


async def test_bad_items_are_left_out_alone(bench: Bench) -> None:
    bad = [fact("a:b", 1), fact("茶", 99), {"name": "x"}]
    diary = ("她笑了。", "", "Error: 500")
    bench.server.script([found(fact("咖啡", 1), *bad, diary=diary)])
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    assert [row.name for row in await facts.listed(1)] == ["咖啡"]
    assert [a.text for a in await memories.activities(1, TODAY)] == ["她笑了。"]


@pytest.mark.parametrize(
    "answer",
    [
        f"好的：{json.dumps([fact('咖啡', 1)])}",
        f"```json\n{found(fact('咖啡', 1))}\n```",
        f"<think>[1]</think>\n{found(fact('咖啡', 1))}",
    ],
)
async def test_an_answer_is_read_with_patience(bench: Bench, answer: str) -> None:
    bench.server.script([answer])
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    assert [row.name for row in await facts.listed(1)] == ["咖啡"]


async def test_nothing_found_is_a_success(bench: Bench) -> None:
    bench.server.script([found()])
    await bench.turn("早", "早")
    await bench.turns.flush()
    assert await Fact.all().count() == await Activity.all().count() == 0
    assert bench.outcomes.of(GROUP).success_at is not None


@pytest.mark.parametrize(
    "reply", ["没有什么", (500, {}, "坏了"), (200, {}, "<html>"), (401, {}, "no")]
)
async def test_trouble_costs_the_turn_only_and_is_seen_until_it_is_over(
    bench: Bench, reply: Reply
) -> None:
    bench.server.script([reply, found(fact("咖啡", 1))])
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    assert "没有记成" in (bench.outcomes.of(GROUP).error or "")
    assert bench.outcomes.of(OTHER).error is None
    assert await usage.calls(1, TODAY, [PURPOSE]) == (1, 1)
    await bench.turn("还有呢", "嗯")
    await bench.turns.flush()
    assert bench.outcomes.of(GROUP).error is None
    assert [row.name for row in await facts.listed(1)] == ["咖啡"]


async def test_a_broken_store_is_seen_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("表坏了")

    bench.server.script([found(fact("咖啡", 1))])
    monkeypatch.setattr("plugins.nonebot_plugin_nianlun.store.diary.keep_turn", broken)
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    assert "表坏了" in (bench.outcomes.of(GROUP).error or "")


async def test_the_day_limit_holds(bench: Bench) -> None:
    bench.affordable = False
    await bench.turn("我只喝美式", "好")
    await bench.turns.flush()
    assert bench.server.requests == []
    bench.affordable = True
    bench.server.script([found()])
    await bench.turn("还有呢", "嗯")
    await bench.turns.flush()
    assert "我只喝美式" in bench.asked()


async def test_a_line_taken_back_meanwhile_takes_the_turn_with_it(bench: Bench) -> None:
    asked = threading.Event()

    def answer(body: dict[str, Any]) -> Reply:
        asked.set()
        return Delay(0.3, found(fact("咖啡", 1), diary=("她笑了。",)))

    bench.server.script(answer)
    await bench.turn("我只喝美式", "好")
    assert await asyncio.to_thread(asked.wait, 10)
    await bench.world.withdraw("1")
    await bench.turns.flush()
    assert await Fact.all().count() == await Activity.all().count() == 0
    assert bench.outcomes.of(GROUP).error is None


async def test_what_was_recalled_and_is_taken_back_meanwhile_takes_the_turn_with_it(
    bench: Bench,
) -> None:
    await bench.turn("我要搬家了", "好")
    await bench.turns.flush()
    asked = threading.Event()

    def answer(body: dict[str, Any]) -> Reply:
        asked.set()
        return Delay(0.3, found(fact("搬家", 3), diary=("他要搬家。",)))

    bench.server.script(answer)
    await bench.turn("你还记得吗", "记得")
    assert await asyncio.to_thread(asked.wait, 10)
    await bench.world.withdraw("1")
    await bench.turns.flush()
    assert await Fact.all().count() == await Activity.exclude(text="").count() == 0
    assert bench.outcomes.of(GROUP).error is None


async def test_a_talk_without_anybody_is_no_turn(bench: Bench) -> None:
    bench.turns.after(ChatKey("10001", "group", "999"), "20001")
    await bench.say("自言自语", by=ME)
    bench.turns.after(GROUP, "20001")
    await bench.turns.flush()
    assert bench.server.requests == []


async def test_at_the_end_what_takes_too_long_is_dropped(bench: Bench) -> None:
    bench.server.script([Delay(5, found())])
    await bench.turn("我只喝美式", "好")
    started = time.monotonic()
    await bench.turns.stop(within=0.2)
    assert time.monotonic() - started < 2
    await bench.turns.flush()


async def test_at_the_end_what_is_under_way_is_finished(bench: Bench) -> None:
    bench.server.script([Delay(0.2, found(fact("咖啡", 1)))])
    await bench.turn("我只喝美式", "好")
    await bench.turns.stop()
    assert await Fact.all().count() == 1
