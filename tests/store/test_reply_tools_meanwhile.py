"""Tools of a reply while the chat changes under them, and models that do not know when to stop."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun.chat import tools as tools_module
from plugins.nonebot_plugin_nianlun.chat.standing import Standing
from plugins.nonebot_plugin_nianlun.chat.tool_talk import ToolTalk
from plugins.nonebot_plugin_nianlun.chat.tools import ToolDesk
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.store import (
    deleting,
    diary,
    exclusions,
    facts,
    links,
    memories,
    pauses,
    traces,
)
from tests.store.test_reply_tools import (
    ASKED,
    DEER,
    GROUP,
    OTHER,
    RIVER,
    TODAY,
    World,
    call,
    client,
    server,
    world,
)
from tests.support.model_server import ModelServer, calling

__all__ = ["client", "server", "world"]

MOMENT = call("append_diary", '{"content": "阿川说他要搬家了。"}')
FACT = call("remember", '{"category": "profile", "name": "家", "content": "在找房子"}')


async def desk_of(world: World, *asked: str) -> ToolDesk:
    read = await traces.reading(1)
    return world.tools.desk(GROUP, DEER, asked, writing=True, read=read)


async def kept() -> list[str]:
    moments = [one.text for one in await memories.activities(1, TODAY) if one.text]
    return [*moments, *(row.text for row in await facts.listed(1))]


@pytest.mark.parametrize("how", ["taken back", "deleted"])
async def test_what_was_read_before_an_erasure_is_not_written_down(world: World, how: str) -> None:
    theirs = await world.say("我要搬家了，先别说出去", RIVER)
    asked = await world.say("他刚才说什么")
    desk = await desk_of(world, asked)
    if how == "taken back":
        await world.withdraw(theirs)
    else:
        await deleting.delete(1, [1], [], world.clock.now())
    for one in (MOMENT, FACT):
        assert await desk.run(one) == "没有做成：刚刚有话被撤回了"
    assert await kept() == []
    assert "他刚才说什么" in await desk.run(call("read_messages", '{"ids": [2]}'))
    later = await desk_of(world, asked)
    assert [await later.run(one) for one in (MOMENT, FACT)] == ["写进日记了", "记住了"]


async def test_a_moment_goes_with_the_lines_of_others_around_it(world: World) -> None:
    theirs = await world.say("我要搬家了", RIVER)
    await (await desk_of(world, await world.say("他说什么"))).run(MOMENT)
    assert await kept() == ["阿川说他要搬家了。"]
    await world.withdraw(theirs)
    assert await kept() == []


async def test_but_not_with_what_was_said_long_before(world: World) -> None:
    theirs = await world.say("早", RIVER, days=1)
    await (await desk_of(world, await world.say("他说什么"))).run(MOMENT)
    await world.withdraw(theirs)
    assert await kept() == ["阿川说他要搬家了。"]


@pytest.mark.parametrize("how", ["opted out", "paused"])
async def test_who_is_not_recorded_any_more_gets_nothing_written(world: World, how: str) -> None:
    desk = await desk_of(world, await world.say("记一下"))
    now = world.clock.now()
    if how == "paused":
        await pauses.pause(1, now, now)
    else:
        await exclusions.opt_out(1, DEER, now, now)
    for one in (MOMENT, FACT):
        assert (await desk.run(one)).startswith("没有做成：")
    assert await kept() == []


@pytest.mark.parametrize("where", ["here", "linked", "elsewhere"])
async def test_an_answer_stands_until_something_it_may_tell_is_gone(
    world: World, where: str
) -> None:
    asked = await world.say("他刚才说什么")
    await world.say("我要搬家了，先别说出去", RIVER, chat={"here": GROUP}.get(where, OTHER))
    if where == "linked":
        await links.link(1, 2, "90001", world.clock.now())
    answer = Standing(1, await traces.reading(1), [asked])
    assert await answer.verdict() == "stands"
    await deleting.delete(1 if where == "here" else 2, [2 if where == "here" else 1], [],
                          world.clock.now())  # fmt: skip
    assert await answer.verdict() == ("stands" if where == "elsewhere" else "overtaken")


async def test_who_takes_back_all_that_was_asked_gets_no_answer(world: World) -> None:
    first, second = await world.say("在吗"), await world.say("我升职了")
    answer = Standing(1, await traces.reading(1), [first, second])
    await world.withdraw(second)
    assert await answer.verdict() == "overtaken"
    await world.withdraw(first)
    assert await answer.verdict() == "unasked"
    unrecorded = Standing(1, await traces.reading(1), ["77"])
    assert await unrecorded.verdict() == "stands"


async def test_a_slow_write_is_not_cut_in_half_nor_called_undone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await desk_of(world, await world.say("记一下"))
    check, reached, go_on = traces.check, threading.Event(), threading.Event()

    async def slow(*given: Any) -> None:
        reached.set()
        go_on.wait(5)
        await check(*given)

    monkeypatch.setattr(traces, "check", slow)
    monkeypatch.setattr(tools_module, "_SECONDS", 0.05)
    assert await desk.run(MOMENT) == "太慢了，不知道写成了没有"
    assert reached.is_set()
    go_on.set()
    assert await kept() == ["阿川说他要搬家了。"]


async def test_an_accident_in_a_tool_is_told_and_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(diary, "keep_turn", broken)
    desk = await desk_of(world, await world.say("记一下"))
    assert await desk.run(MOMENT) == "没有做成：程序出了意外"
    assert await desk.run(FACT) == "记住了"


async def test_a_flood_of_calls_is_bounded(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    await world.say("话")
    flood = calling(*[{"ids": [1]}] * 500, name="read_messages")
    server.script([flood, flood, flood, flood, "好"])
    talk = ToolTalk(client, await desk_of(world))
    assert (await talk.answer(ASKED)).text == "好"
    assert len(server.requests) == 5
    assert max(len(repr(one)) for one in server.requests) < 100_000
    assert talk.spent.prompt == 500


async def test_names_and_arguments_go_back_as_every_endpoint_takes_them(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    odd = calling({"ids": [1]}, name="读 消息\n——")
    odd["choices"][0]["message"]["tool_calls"].append(
        {
            "id": "b",
            "type": "function",
            "function": {"name": "append_diary", "arguments": '{"content": "' + "长" * 55_000},
        }
    )
    server.script([odd, "好"])
    assert (await ToolTalk(client, await desk_of(world)).answer(ASKED)).text == "好"
    *_, said, first, second = server.requests[1]["messages"]
    back = [one["function"] for one in said["tool_calls"]]
    assert [one["name"] for one in back] == ["unknown", "append_diary"]
    assert back[1]["arguments"] == "{}"
    assert first["content"].startswith("没有 '读 消息 ——' 这个工具")
    assert second["content"].startswith("没有做成")
    assert client.takes_tools()
    assert await kept() == []
