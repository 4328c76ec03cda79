"""Notes by a model that calls the skill: the loop, and what becomes of broken calls and words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio

from plugins.nonebot_plugin_nianlun.errors import BadAnswer, ModelRefused, ModelUnavailable
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.tool_writer import ToolWriter
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.protocols import NoteWriter
from plugins.nonebot_plugin_nianlun.memory.skill import SKILL_TOOL
from plugins.nonebot_plugin_nianlun.types import (
    Activity,
    ChatKey,
    Fact,
    Message,
    Note,
    RollupTask,
    Scene,
    Usage,
    Window,
)
from tests.support.model_server import ModelServer, Reply, calling, completion, helpful

CHAT = ChatKey("10001", "group", "123")
AT = datetime(2026, 11, 29, 2, 32, tzinfo=UTC)
CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
SCENE = Scene(
    chat=CHAT,
    place="QQ群「摸鱼研究所」",
    character="小年",
    persona="爱听故事的女孩。{character} %s",
    memory="昨天我和大家说了晚安。",
)
COST = Usage(prompt=100, cached=64, completion=20)
GET = {"action": "get_tasks"}
ADD = {"action": "add_activity", "memory": "我听了故事。（关键消息：[11]）"}
NOTE = Note("我听了故事。（关键消息：[11]）", (11,), "model")


def window() -> Window:
    texts = ("早安", "我买了蓝色雨伞", "明天去看海")
    found = (
        Message(seq, AT + timedelta(minutes=seq), "20002", "Alice", text)
        for seq, text in enumerate(texts, 11)
    )
    return Window("2026-11-29", tuple(found))


def task(period: str = "2026-11-29", text: str = "我听大家说早安。") -> RollupTask:
    source = Activity(1, period, text, (11,), "window", AT, "model", AT)
    return RollupTask("day", period, (source,), None, rebuild=True, closes=True)


def update(memory: str, task_id: int = 1, date: str = "2026-11-29") -> dict[str, Any]:
    fields = {"action": "update_memory", "task_id": task_id, "kind": "day", "date": date}
    return {"actions": [fields | {"memory": memory}]}


class Bench:
    """A writer in front of a scripted server, and the ledger of what it reported."""

    def __init__(self, server: ModelServer, client: ModelClient) -> None:
        self.server = server
        self.reported: list[tuple[ChatKey, str, Usage, bool]] = []
        self.taken_back = False
        self.writer = ToolWriter(client, CALENDAR, self._report, self._taken_back, "notes-model")

    async def _taken_back(self, chat: ChatKey) -> bool:
        return self.taken_back

    async def _report(self, chat: ChatKey, purpose: str, usage: Usage, ok: bool) -> None:
        self.reported.append((chat, purpose, usage, ok))

    @property
    def oks(self) -> list[bool]:
        return [ok for *_, ok in self.reported]

    def turns(self, request: int = -1) -> list[dict[str, Any]]:
        return self.server.requests[request]["messages"]

    def answers(self, request: int = -1) -> list[dict[str, Any]]:
        """What the tool said, up to this request."""
        turns = self.turns(request)
        return [json.loads(turn["content"]) for turn in turns if turn["role"] == "tool"]

    async def note(self) -> Note | None:
        return await self.writer.write_activity(window(), SCENE)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest_asyncio.fixture
async def bench(server: ModelServer) -> AsyncIterator[Bench]:
    client = ModelClient(
        api_key="k", base_url=server.base_url, model="chat-model", timeout=5, max_tries=1
    )
    yield Bench(server, client)
    await client.close()


async def test_an_activity_call_by_call(bench: Bench) -> None:
    fact = {"category": "event", "name": "雨伞", "content": "Alice 买了雨伞", "from": 12}
    bench.server.script([calling(GET), calling(ADD | {"facts": [fact]})])
    writer: NoteWriter = bench.writer
    note = await writer.write_activity(window(), SCENE)
    assert note == Note(
        NOTE.text, (11,), "model", (Fact("event", "雨伞", "Alice 买了雨伞", 12),)
    )  # fmt: skip
    assert bench.reported == [(CHAT, "activity", COST, True)] * 2
    first, second = bench.server.requests
    assert (first["model"], first["tools"]) == ("notes-model", [SKILL_TOOL])
    assert "response_format" not in first
    system, user = (turn["content"] for turn in first["messages"])
    assert system.endswith(SCENE.persona)
    assert "update_short_term_memory" in system
    assert SCENE.memory in user
    assert "蓝色雨伞" not in user
    assert second["messages"][:2] == first["messages"]
    called, answered = second["messages"][2:]
    assert called["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert "蓝色雨伞" in json.loads(answered["content"])["prompt"]


async def test_a_rejected_note_is_mended(bench: Bench) -> None:
    bad = ADD | {"memory": "好。（关键消息：[99])"}
    bench.server.script([calling(GET), calling(bad), calling(ADD)])
    assert await bench.note() == NOTE
    assert bench.oks == [True, False, True]
    assert "99" in bench.answers()[-1]["error"]


@pytest.mark.parametrize("end", ["没有什么值得记的。", "这次不用记了 [笑]"])
async def test_ending_after_the_task_declines(bench: Bench, end: str) -> None:
    bench.server.script([calling(GET), end])
    assert await bench.note() is None
    assert bench.oks == [True, True]


async def test_declining_by_call(bench: Bench) -> None:
    bench.server.script([calling(GET), calling({"action": "decline"})])
    assert await bench.note() is None
    assert len(bench.server.requests) == 2


@pytest.mark.parametrize(
    "reply",
    [
        completion(""),
        "请求失败: 401",
        "<html><body>502</body></html>",
        "上午 Alice 说买了雨伞。（关键消息：[12]）",
        completion("今天上午大家聊", finish_reason="length"),
    ],
)
async def test_what_broke_is_no_declining(bench: Bench, reply: Reply) -> None:
    bench.server.script([calling(GET), reply, calling(ADD)])
    assert await bench.note() == NOTE
    assert bench.oks == [True, False, True]


async def test_words_before_the_task_or_after_a_failure_are_no_declining(bench: Bench) -> None:
    bad = ADD | {"memory": ""}
    bench.server.script(["好的！", calling(GET), calling(bad), "那我放弃。", calling(ADD)])
    assert await bench.note() == NOTE
    assert bench.oks == [False, True, False, False, True]


@pytest.mark.parametrize("fence", ["{}", "好的：\n```json\n{}\n```", "<think>嗯</think>{}"])
async def test_json_in_the_place_of_a_call_is_taken(bench: Bench, fence: str) -> None:
    bench.server.script(
        [
            fence.replace("{}", json.dumps(GET)),
            fence.replace("{}", json.dumps(ADD, ensure_ascii=False)),
        ]
    )
    assert await bench.note() == NOTE
    assert bench.oks == [True, True]


async def test_json_in_the_place_of_a_call_is_told_what_is_wrong(bench: Bench) -> None:
    bad = json.dumps(ADD | {"memory": "长" * 101}, ensure_ascii=False)
    bench.server.script([calling(GET), bad, calling(ADD)])
    assert await bench.note() == NOTE
    assert "上限是 100" in bench.turns()[-1]["content"]


@pytest.mark.parametrize("broken", ["{'action': 'get_tasks'}", '{"action": "get_', "", "[1]"])
async def test_broken_arguments_are_told(bench: Bench, broken: str) -> None:
    bench.server.script([calling(broken), calling(GET), calling(ADD)])
    assert await bench.note() == NOTE
    assert bench.answers()[0]["success"] is False
    assert bench.oks == [False, True, True]


async def test_arguments_with_small_faults_are_read(bench: Bench) -> None:
    bench.server.script([calling('```json\n{"action": "get_tasks",}\n```'), calling(ADD)])
    assert await bench.note() == NOTE


async def test_calls_without_ids_get_their_own(bench: Bench) -> None:
    first = calling(GET, GET, GET)
    calls = first["choices"][0]["message"]["tool_calls"]
    calls[0]["id"], calls[1]["id"] = "", "same"
    calls[2] |= {"id": "same", "function": calls[2]["function"] | {"arguments": GET}}
    del calls[0]["type"]
    bench.server.script([first, calling(ADD)])
    assert await bench.note() == NOTE
    turns = bench.turns()
    sent = turns[2]["tool_calls"]
    ids = [call["id"] for call in sent]
    assert all(ids)
    assert len(set(ids)) == 3
    assert [turn["tool_call_id"] for turn in turns[3:]] == ids
    assert all(call["type"] == "function" for call in sent)
    assert all(isinstance(call["function"]["arguments"], str) for call in sent)
    assert [answer.get("action") for answer in bench.answers()] == ["add_activity", None, None]


async def test_several_calls_in_one_answer(bench: Bench) -> None:
    bench.server.script([calling(GET, ADD)])
    assert await bench.note() == NOTE
    assert len(bench.server.requests) == 1


async def test_another_tool_is_told(bench: Bench) -> None:
    wrong = calling(GET)
    wrong["choices"][0]["message"]["tool_calls"][0]["function"]["name"] = "exec"
    bench.server.script([wrong, calling(GET), calling(ADD)])
    assert await bench.note() == NOTE
    assert "exec" in bench.answers()[0]["error"]


async def test_what_a_provider_puts_beside_its_calls_is_sent_back(bench: Bench) -> None:
    first = calling(GET, text="<think>想想</think>我先看看任务。")
    message = first["choices"][0]["message"]
    message |= {"reasoning_content": "嗯", "refusal": None}
    message["tool_calls"][0]["extra_content"] = {"signature": "x"}
    bench.server.script([first, calling(ADD)])
    await bench.note()
    sent = bench.turns()[2]
    assert (sent["reasoning_content"], sent["content"]) == ("嗯", "我先看看任务。")
    assert sent["tool_calls"][0]["extra_content"] == {"signature": "x"}
    assert "refusal" not in sent


async def test_the_rounds_are_bounded(bench: Bench) -> None:
    bench.server.script(lambda body: calling(GET))
    with pytest.raises(BadAnswer):
        await bench.note()
    assert len(bench.reported) == len(bench.server.requests) == 8


async def test_three_times_too_long_is_cut_and_marked(bench: Bench) -> None:
    long = calling(ADD | {"memory": "我听了一个很长的故事。" * 20})
    bench.server.script([calling(GET), long, long, long])
    note = await bench.note()
    assert note is not None
    assert note.text.endswith("故事。……")


@pytest.mark.parametrize(
    ("reply", "error", "cost"),
    [
        ((500, {}, "oops"), ModelUnavailable, Usage()),
        ((400, {}, '{"error": {"code": "content_filter"}}'), ModelRefused, Usage()),
        (completion("不行", finish_reason="content_filter"), ModelRefused, COST),
    ],
)
async def test_trouble_ends_the_work_and_is_counted(
    bench: Bench, reply: Reply, error: type[Exception], cost: Usage
) -> None:
    bench.server.script([calling(GET), reply])
    with pytest.raises(error):
        await bench.note()
    assert bench.reported == [(CHAT, "activity", COST, True), (CHAT, "activity", cost, False)]


async def test_the_batches_of_a_run_are_one_conversation(bench: Bench) -> None:
    other = task("2026-11-28", "前一天。")
    bench.server.script(
        [
            calling(GET),
            calling(update("二十九号。")),
            calling(GET),
            calling(update("二十八号。", date="2026-11-28")),
        ]
    )
    (first,) = await bench.writer.write_memories([task()], SCENE, True)
    (second,) = await bench.writer.write_memories([other], SCENE, False)
    assert (first.text, second.text) == ("二十九号。", "二十八号。")
    requests = [request["messages"] for request in bench.server.requests]
    for earlier, later in pairwise(requests):
        assert later[: len(earlier)] == earlier
    got = bench.answers()
    assert [answer["has_next_tasks"] for answer in got] == [True, True, False]
    assert [answer["tasks"][0]["target"]["date"] for answer in got if "tasks" in answer] == [
        "2026-11-29",
        "2026-11-28",
    ]


async def test_calls_behind_a_submission_are_about_the_next_batch(bench: Bench) -> None:
    bench.server.script(
        [
            calling(GET),
            calling(update("二十九号。"), GET),
            calling(update("二十八号。", date="2026-11-28")),
        ]
    )
    await bench.writer.write_memories([task()], SCENE, True)
    (second,) = await bench.writer.write_memories([task("2026-11-28")], SCENE, False)
    assert second.text == "二十八号。"
    assert len(bench.server.requests) == 3
    assert [turn["role"] for turn in bench.turns()][-3:] == ["assistant", "tool", "tool"]


async def test_after_the_last_batch_a_new_conversation_begins(bench: Bench) -> None:
    bench.server.script(
        [calling(GET), calling(update("一。")), calling(GET), calling(update("二。"))]
    )
    await bench.writer.write_memories([task()], SCENE, False)
    await bench.writer.write_memories([task()], SCENE, False)
    assert len(bench.turns(2)) == 2


async def test_a_conversation_that_failed_is_not_gone_on_with(bench: Bench) -> None:
    bench.server.script([calling(GET), (500, {}, "oops"), calling(GET), calling(update("好。"))])
    with pytest.raises(ModelUnavailable):
        await bench.writer.write_memories([task()], SCENE, True)
    (note,) = await bench.writer.write_memories([task()], SCENE, False)
    assert note.text == "好。"
    assert len(bench.turns(2)) == 2


async def test_a_conversation_that_grew_long_is_not_gone_on_with(bench: Bench) -> None:
    bench.server.script(helpful("早安"))
    await bench.writer.write_memories([task(text="早安" + "龘" * 20_000)], SCENE, True)
    await bench.writer.write_memories([task()], SCENE, False)
    assert len(bench.turns(2)) == 2


async def test_a_conversation_is_not_gone_on_with_when_something_was_taken_back(
    bench: Bench,
) -> None:
    bench.server.script(helpful())
    await bench.writer.write_memories([task(text="说错了的话")], SCENE, True)
    bench.taken_back = True
    await bench.writer.write_memories([task("2026-11-28")], SCENE, False)
    later = bench.server.requests[2:]
    assert len(later[0]["messages"]) == 2
    assert "说错了的话" not in json.dumps(later, ensure_ascii=False)


async def test_ending_a_roll_up_early_is_not_taken(bench: Bench) -> None:
    bench.server.script([calling(GET), "都整理好了。", calling(update("好。"))])
    (note,) = await bench.writer.write_memories([task()], SCENE, False)
    assert note.text == "好。"
    assert bench.oks == [True, False, True]


async def test_the_helpful_model_works_with_tools(bench: Bench) -> None:
    bench.server.script(helpful("蓝色雨伞"))
    note = await bench.note()
    assert note is not None
    assert "蓝色雨伞" in note.text
    tasks = [task(text="蓝色雨伞"), task("2026-11-28")]
    notes = await bench.writer.write_memories(tasks, SCENE, True)
    notes += await bench.writer.write_memories([task()], SCENE, False)
    assert ["蓝色雨伞" in note.text for note in notes] == [True, False, False]


async def test_a_task_that_is_asked_for_again_is_not_sent_again(bench: Bench) -> None:
    bench.server.script(
        [calling(*[GET] * 50), calling(GET), '{"action":"get_tasks"}', calling(ADD)]
    )
    assert await bench.note() == NOTE
    sent = json.dumps(bench.turns(), ensure_ascii=False)
    assert sent.count("蓝色雨伞") == 1
    assert len(bench.answers()) == 51


async def test_a_conversation_that_swells_is_given_up(bench: Bench) -> None:
    rubbish = ADD | {"memory": "", "note": "龘" * 9000}
    bench.server.script(lambda body: calling(*[rubbish] * 3))
    with pytest.raises(BadAnswer):
        await bench.note()
    assert len(bench.server.requests) == 1


async def test_a_large_task_leaves_room_to_work_on_it(bench: Bench) -> None:
    bench.server.script(
        [calling(GET), calling(update("")), calling(update("")), calling(update("早安。"))]
    )
    (note,) = await bench.writer.write_memories([task(text="早安" + "龘" * 30_000)], SCENE, True)
    assert note.text == "早安。"


async def test_a_note_in_plain_words_is_not_lost(bench: Bench) -> None:
    told = "上午 Alice 在群里说买了一把蓝色的雨伞，大家都夸好看，还约好下雨天一起撑着去公园走走。"
    told += "我听着觉得很暖，也想看看那把伞是什么样子。"
    bench.server.script([calling(GET), told, calling(ADD)])
    assert await bench.note() == NOTE
    assert bench.oks == [True, False, True]
    bench.server.script([calling(GET), *[told] * 9])
    with pytest.raises(BadAnswer):
        await bench.note()
