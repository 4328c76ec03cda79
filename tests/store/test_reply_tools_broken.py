"""Calls as no tool takes them: each is told what is wrong in bounded time, and changes nothing."""

from __future__ import annotations

import json
import time

import pytest

from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens
from plugins.nonebot_plugin_nianlun.store import facts, links, memories
from tests.store.test_reply_tools import OTHER, RIVER, TODAY, World, call, world

__all__ = ["world"]

ARGUMENTS = (
    "",
    "{",
    "}",
    "null",
    "true",
    "1",
    '"x"',
    '"{\\"query\\": \\"钥匙"',
    "[]",
    '[{"query": "钥匙"}]',
    "{'query': '钥匙'}",
    '{"query": "钥匙"',
    '{"query": NaN}',
    '{"query": 1e999}',
    '{"query": {"a": 1}}',
    '{"query": "\\ud800\\u0000\\u202e"}',
    '{"query": "\\" OR \\"* NEAR(a b) AND ^ : -"}',
    '{"query": "\'; DROP TABLE nianlun_message;--"}',
    '{"query": "' + "钥" * 100_000 + '"}',
    '{"query": "钥匙", "speaker": ["me"]}',
    '{"query": "钥匙", "when": "99999-99-99"}',
    '{"query": "钥匙", "chat": "group:456", "chat_id": 2, "group_id": "456"}',
    "{" * 50_000,
    "[" * 50_000,
    '{"a":' * 20_000,
    "{}" * 20_000,
    '{"query": ' + "9" * 5_000 + "}",
    '{"ids": ' + json.dumps(list(range(2, 50_000))) + "}",
    '{"ids": 99999999999999999999999999999}',
    '{"ids": [-1, 0, "２", 1e3, [1], {"a": 1}, null]}',
    '{"date": ["2026"], "ids": {"a": 1}}',
    '{"date": "0000-00-00"}',
    '{"date": "9999-12-31T23:59:59Z"}',
    '{"content": 5, "time": "2020-01-01"}',
    '{"content": "' + "字" * 100_000 + '"}',
    '{"category": ["preferences"], "name": {}, "content": []}',
    '{"category": "a:b", "name": "[[x]]", "content": "c"}',
    '{"category": "preferences", "name": "n", "content": "' + "x" * 100_000 + '"}',
)
TOOLS = ("search_memory", "read_messages", "recall_day", "append_diary", "remember", "清空", "")


@pytest.mark.parametrize("name", TOOLS)
async def test_every_broken_call_is_answered(world: World, name: str) -> None:
    asked = await world.say("我把钥匙藏在花盆底下")
    await world.say("别处的钥匙在柜子里", RIVER, chat=OTHER)
    for arguments in ARGUMENTS:
        began = time.monotonic()
        told = await world.desk(asked).run(call(name, arguments))
        assert time.monotonic() - began < 2, arguments[:40]
        assert told.strip()
        assert estimate_tokens(told) <= 800
        assert "意外" not in told, arguments[:40]
        assert "柜子" not in told
    assert await facts.listed(1) == []
    assert await memories.activities(1, TODAY) == []


async def test_many_calls_at_once_share_one_room_and_one_link(world: World) -> None:
    for number in range(20):
        await world.say(f"钥匙的第{number}件事，" + "很长很长。" * 40, RIVER, chat=OTHER, days=1)
    await world.say("话")
    await links.link(1, 2, "90001", world.clock.now())
    desk = world.desk()
    asked = [call("search_memory", f'{{"query": "钥匙 {number}"}}') for number in range(50)]
    told = [await desk.run(one) for one in asked]
    assert sum(map(estimate_tokens, told)) < 1_600 + 50 * 40
    shown = [one for one in told if "很长" in one]
    assert shown
    assert all("在群「456」" in one for one in shown)
    assert "看得够多了" in told[-1]
