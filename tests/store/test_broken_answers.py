"""A model that answers in every broken way: nothing of it is stored, and nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
import sqlite3
from typing import Any

import nonebot
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.config import Config
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.store import chats, messages, notes, recording
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, Note, TidyReport, Window
from tests.support.model_server import Disconnect, ModelServer, Reply, completion
from tests.support.scripted_writer import SetClock

GROUP = ChatKey("10001", "group", "123")
AT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
DAY = "2026-11-20"
MOST_CALLS = 3

Group = tuple[str, list[Reply]]


def dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def add(memory: object, **more: object) -> dict[str, Any]:
    return {"action": "add_activity", "memory": memory, **more}


def update(
    memory: object = "这一天大家说了早安。（关键消息：[1]）", **changes: object
) -> dict[str, Any]:
    action = {"action": "update_memory", "task_id": 1, "kind": "day", "date": DAY}
    return action | {"memory": memory} | changes


def batch(*actions: object) -> str:
    return dump({"actions": list(actions)})


GOOD = dump(add("我听大家说早安。（关键消息：[1]）"))
GOOD_DAY = batch(update())

NO_MEMORY: list[object] = [
    *("", "  \n", "。。。", "😂😂", "（关键消息：[1]）"),
    *(None, 0, 1.5, True, [], {}, ["我听大家说早安。"], {"text": "我听大家说早安。"}),
]
"""What may stand where the text should, and is none."""
NO_NOTE = [
    "<think>我该写什么</think>我听大家说早安。",
    "我听大家说早安。<|im_end|>",
    "<!DOCTYPE html><html><body>502</body></html>",
    "Error: 429 Too Many Requests",
    "HTTP/1.1 503 Service Unavailable",
    "Traceback (most recent call last):\n  File",
    "请求失败: 401",
    "ValueError: bad input",
    GOOD,
    dump([{"text": "我听大家说早安。"}]),
    "# 今天\n我听大家说早安。",
    "- 早安\n- 晚安",
    "1. 早安\n2. 晚安",
    "```\n我听大家说早安。\n```\n完",
    "2026-11-20：我听大家说早安。",
    "【日记】\n我听大家说早安。",
    "好的，以下是今天的记录：我听大家说早安。",
    "我调用了 add_activity 来写。",
    "我把它存进 update_short_term_memory 了。",
    "owner 说早安，other 没有回。",
    "我听大家说早安。（关键消息：[99]）",
    "我听大家说早安。（关键消息：[0]）",
    "我听大家说早安。（关键消息：第一句）",
    "，" * 30_000 + "我听大家说早安。",
]
"""Text that a note may not be."""
NO_JSON = [
    *("", " ", "\n\n", "\ufeff", "null", "true", "42", '"我听大家说早安。"', "NaN", "Infinity"),
    *("[]", "{}", "[[]]", "[1, 2]", "{]", "{'action': 'add_activity', 'memory': '早安'}"),
    *("好的！我已经记下来了。", "抱歉，我不能。", "OK", "作为一个语言模型，我没有感受。"),
    *("```json\n```", "```\n好的\n```", "action: add_activity\nmemory: 早安", "{action: decline}"),
    *("<memory>我听大家说早安。</memory>", "add_activity(memory='早安')", "data: [DONE]"),
    *("\x00\x01\x02", "\ud800", "🙂" * 5000, "{" * 20_000, "[" * 20_000, '{"' * 20_000),
    *("<think>想了很久，没有写完", "<think>好</think>", "<thinking>\n" * 50),
]
NO_COMPLETION: list[Reply] = [
    *(completion(None), completion(""), completion([]), completion([{"type": "image"}])),
    *(completion({"text": "早安"}), completion(7), completion("早安", message=None)),
    *({"choices": []}, {"choices": None}, {"choices": {}}, {"choices": [None]}, {"choices": [{}]}),
    *({"choices": [{"message": "早安"}]}, {"choices": [{"message": {}}]}, {}, {"object": "error"}),
    completion(None, message={"role": "assistant", "tool_calls": [{"id": "1"}]}),
    {"error": {"message": "Rate limit reached", "code": 429}},
    {"error": "quota exceeded"},
    {"code": 500, "msg": "服务繁忙", "data": None},
    (200, {}, "429 Too Many Requests"),
    (200, {"Content-Type": "text/html"}, "<html><body>Welcome</body></html>"),
    (200, {"Content-Type": "text/event-stream"}, 'data: {"choices":[{"delta":{"content":"早"}}]}'),
    (200, {}, ""),
    (200, {}, "null"),
    (200, {}, "[]"),
    (200, {}, '"早安"'),
    (200, {}, json.dumps(completion(GOOD))[:-20]),
    (200, {}, json.dumps(completion("早" * 500_000))),
    *((status, {}, '{"error": {"message": "no"}}') for status in (400, 401, 403, 404, 408, 409)),
    *((status, {}, "oops") for status in (422, 429, 500, 502, 503, 504, 529)),
    Disconnect(),
]


def cuts(whole: str) -> list[Reply]:
    """The beginnings of an answer, as when the tokens ran out, in several disguises."""
    ends = range(1, len(whole), max(1, len(whole) // 9))
    parts = [whole[:end] for end in ends] + [whole[:-1]]
    return [
        *parts,
        f"```json\n{whole[:-2]}\n```",
        f"<think>好</think>{whole[:-2]}",
        f"\ufeff{parts[3]}",
    ]


ACTIVITY: list[Group] = [
    ("cut", cuts(GOOD)),
    ("no-json", list(NO_JSON)),
    ("no-memory", [dump(add(memory)) for memory in NO_MEMORY]),
    ("no-note", [dump(add(memory)) for memory in NO_NOTE]),
    (
        "other-shapes",
        [
            dump({"memory": "我听大家说早安。"}),
            dump({"action": "add_activity"}),
            dump(add("早安") | {"action": "ADD_ACTIVITY"}),
            dump(add("早安") | {"action": "get_tasks"}),
            dump(add("早安") | {"action": ["add_activity"]}),
            dump(add("早安") | {"action": None}),
            dump({"action": "declined"}),
            dump({"decline": True}),
            dump({"result": add("早安")}),
            dump({"actions": []}),
            dump({"actions": {}}),
            dump({"actions": "add_activity"}),
            dump({"actions": [add("早安"), add("晚安")]}),
            dump({"actions": [GOOD]}),
            dump([add("早安"), "晚安"]),
            dump({"name": "update_short_term_memory", "arguments": GOOD}),
            dump({"tool_calls": [{"function": {"arguments": GOOD}}]}),
            dump(GOOD),
            GOOD.replace('"我听', 'NaN, "x": "我听'),
            dump(add(float("nan"))),
            GOOD_DAY,
        ],
    ),
    ("no-completion", NO_COMPLETION),
]
ROLLUP: list[Group] = [
    ("cut", cuts(GOOD_DAY)),
    ("no-json", list(NO_JSON)),
    ("no-memory", [batch(update(memory)) for memory in NO_MEMORY]),
    ("no-note", [batch(update(memory)) for memory in NO_NOTE]),
    (
        "other-tasks",
        [
            *(batch(update(task_id=task_id)) for task_id in (0, 2, -1, "一", "1 ", None, [1], 1.5)),
            *(batch(update(kind=kind)) for kind in ("month", "year", "activity", "Day", None)),
            *(
                batch(update(date=day))
                for day in ("2026-11-21", "2026-11", "2026/11/20", "20261120", "今天", None)
            ),
            *(batch(update(action=name)) for name in ("add_activity", "decline", None)),
            batch(update(), update()),
            batch(update(), update(task_id=2)),
            batch(),
            batch(update(), "早安"),
            batch(GOOD_DAY),
            dump({"action": "decline"}),
            dump({"tasks": [update()]}),
            dump({"memory": "这一天大家说了早安。"}),
            dump(GOOD_DAY),
            GOOD,
        ],
    ),
    ("no-completion", NO_COMPLETION),
]


class World:
    """The product with a model, one chat, and what its database says."""

    def __init__(self, file: Path, server: ModelServer) -> None:
        self.file, self.server = file, server
        config = Config.model_validate(
            {"nianlun": {}, "openai_api_key": "k", "openai_base_url": server.base_url}
        )
        self.clock = SetClock(AT + timedelta(hours=1))
        driver = nonebot.get_driver().config
        self.nianlun = Nianlun(config, file.parent, driver, clock=self.clock)
        assert self.nianlun.client is not None
        # Passing trouble is waited out before; here each answer has its say at once.
        self.nianlun.client._max_tries = 1

    def rows(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.file)) as connection:
            return connection.execute(query).fetchall()

    async def tidy(self, reply: Reply) -> tuple[TidyReport, int]:
        """Do all owed work with a model that always answers this; with the number of calls."""
        self.server.script(lambda body: reply)
        # Nor do the answers before it count, after which the endpoint would be left alone.
        assert self.nianlun.client is not None
        self.nianlun.client._breaker.succeeded()
        await chats.note_success(1)
        before = len(self.server.requests)
        report = (await self.nianlun.jobs.tidy())[GROUP]
        return report, len(self.server.requests) - before


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
async def world(database_file: Path, server: ModelServer) -> AsyncIterator[World]:
    found = World(database_file, server)
    lines = [
        Incoming(
            GROUP,
            AT + timedelta(minutes=number),
            "20001",
            "小鹿",
            [{"type": "text", "data": {"text": f"早安{number}"}}],
            "event",
            message_id=str(number),
        )
        for number in range(3)
    ]
    await recording.record(lines, readable, "小忆", AT)
    yield found
    await found.nianlun.close()


def test_the_ways_to_be_broken_are_many() -> None:
    for groups in (ACTIVITY, ROLLUP):
        answers = {repr(reply) for _, replies in groups for reply in replies}
        assert len(answers) >= 130


@pytest.mark.parametrize("replies", [pytest.param(replies, id=name) for name, replies in ACTIVITY])
async def test_no_broken_answer_is_a_note_and_the_window_stays(
    world: World, replies: list[Reply]
) -> None:
    pending = "SELECT seq FROM nianlun_message WHERE activity_id IS NULL AND skipped IS NULL"
    for reply in replies:
        report, calls = await world.tidy(reply)
        shown = repr(reply)[:200]
        assert (report.activities, report.declined) == (0, 0), shown
        assert len(report.errors) == 1, shown
        assert "\n" not in report.errors[0], shown
        assert 1 <= calls <= MOST_CALLS, shown
        assert world.rows("SELECT 1 FROM nianlun_activity") == [], shown
        assert world.rows("SELECT 1 FROM nianlun_fact") == [], shown
        assert world.rows(pending) == [(1,), (2,), (3,)], shown
        assert world.rows("SELECT last_error FROM nianlun_chat") == [(report.errors[0],)], shown
    assert (await world.tidy(GOOD))[0].activities == 1


@pytest.mark.parametrize("replies", [pytest.param(replies, id=name) for name, replies in ROLLUP])
async def test_no_broken_answer_is_a_memory_and_the_day_stays_owed(
    world: World, replies: list[Reply]
) -> None:
    window = Window(DAY, tuple(await messages.pending(1, 10)))
    await notes.store_activity(1, window, Note("我听大家说早安。", (1,), "model"), AT)
    world.clock.time = AT + timedelta(days=2)
    for reply in replies:
        report, calls = await world.tidy(reply)
        shown = repr(reply)[:200]
        assert report.memories == 0, shown
        assert len(report.errors) == 1, shown
        assert 1 <= calls <= MOST_CALLS, shown
        assert world.rows("SELECT 1 FROM nianlun_memory") == [], shown
        assert world.rows("SELECT merged FROM nianlun_activity") == [(0,)], shown
    assert (await world.tidy(GOOD_DAY))[0].memories == 1
    assert world.rows("SELECT kind, period, closed FROM nianlun_memory") == [("day", DAY, 1)]
