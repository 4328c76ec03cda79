"""The product's own work on its chats: what it may cost, by which writer, and by whom else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from nonebot import get_driver
import pytest
from tortoise.queryset import QuerySet

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.commands.views import status_view
from plugins.nonebot_plugin_nianlun.config import Config, Settings
from plugins.nonebot_plugin_nianlun.errors import ChatError
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.llm.breaker import FAILURES
from plugins.nonebot_plugin_nianlun.memory.upkeep import Upkeep
from plugins.nonebot_plugin_nianlun.store import chats, recording, traces, usage
from plugins.nonebot_plugin_nianlun.store.models import Activity, Chat, Lease, Memory, UsageCount
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, TidyReport, Usage
from tests.support.model_server import ModelServer, Reply, completion, helpful
from tests.support.scripted_writer import SetClock

GROUP = ChatKey("10001", "group", "123")
NOON = datetime(2026, 11, 27, 4, tzinfo=UTC)  # in Shanghai
GET = {"action": "get_tasks"}
Opener: TypeAlias = Callable[..., Awaitable[Nianlun]]
"""Opens the product with these settings."""


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def clock() -> SetClock:
    return SetClock(NOON)


@pytest.fixture
async def opened(tmp_path: Path, model: ModelServer, clock: SetClock) -> AsyncIterator[Opener]:
    made: list[Nianlun] = []

    async def open_with(**values: Any) -> Nianlun:
        config = Config(
            nianlun=Settings(activity_messages=10, **values),
            openai_api_key="k",
            openai_base_url=model.base_url,
        )
        made.append(Nianlun(config, tmp_path, get_driver().config, clock))
        await made[-1].open()
        return made[-1]

    yield open_with
    for nianlun in made:
        await nianlun.close()


async def talk(count: int, start: datetime = NOON) -> None:
    for number in range(count):
        at = start + timedelta(seconds=number)
        segments = [{"type": "text", "data": {"text": f"第{number}句"}}]
        line = Incoming(GROUP, at, "20001", "小鹿", segments, "event", message_id=f"{at:%d%H%M%S}")
        await recording.record([line], readable, "小忆", at)


async def writers() -> list[str]:
    return [row.writer for row in await Activity.all().order_by("number")]


async def test_after_the_limit_the_offline_writer_takes_over(
    opened: Opener, model: ModelServer, clock: SetClock
) -> None:
    nianlun = await opened(daily_token_limit=200)  # a call costs 120
    await talk(40)
    report = await nianlun.tidy(GROUP)
    assert (report.activities, report.errors) == (4, ())
    assert await writers() == ["model", "model", "offline", "offline"]
    assert len(model.requests) == 2
    status = await nianlun.status(GROUP)
    assert (status.tokens_today, status.limit_reached, status.writer) == (240, True, "offline")
    shown = status_view(status, nianlun.calendar)
    assert "今天的额度用完了，由离线写手代写" in shown
    assert "240 token，额度 200" in shown

    clock.time = NOON + timedelta(days=1)
    status = await nianlun.status(GROUP)
    assert (status.tokens_today, status.limit_reached, status.writer) == (0, False, "model")
    assert "额度用完" not in status_view(status, nianlun.calendar)
    await nianlun.tidy(GROUP)
    assert [row.writer for row in await Memory.all()] == ["model"]


async def test_a_limit_of_nothing_is_always_offline(opened: Opener, model: ModelServer) -> None:
    nianlun = await opened(daily_token_limit=0)
    await talk(10)
    await nianlun.tidy(GROUP)
    assert await writers() == ["offline"]
    assert model.requests == []
    assert "额度是 0" in status_view(await nianlun.status(GROUP), nianlun.calendar)


@pytest.mark.parametrize(("own", "general", "writer"), [(0, None, "offline"), (500, 0, "model")])
async def test_a_chats_own_limit_comes_first(
    opened: Opener, own: int, general: int | None, writer: str
) -> None:
    nianlun = await opened(daily_token_limit=general)
    await talk(10)
    await Chat.all().update(daily_token_limit=own)
    await nianlun.tidy(GROUP)
    assert await writers() == [writer]


async def test_replies_do_not_count(opened: Opener, clock: SetClock) -> None:
    nianlun = await opened(daily_token_limit=200)
    await talk(10)
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    await usage.count(chat_id, "2026-11-27", "reply", "m", Usage(5000, 0, 10), True)
    await nianlun.tidy(GROUP)
    assert await writers() == ["model"]


async def test_failures_count(opened: Opener, model: ModelServer) -> None:
    nianlun = await opened(daily_token_limit=200)
    model.script(lambda body: completion(""))
    await talk(10)
    assert (await nianlun.tidy(GROUP)).errors
    row = await UsageCount.get(purpose="activity")
    assert (row.calls, row.failures) == (3, 3)
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens) == (300, 192, 60)
    await nianlun.tidy(GROUP)
    assert await writers() == ["offline"]
    assert len(model.requests) == 3


async def test_the_limit_holds_where_the_endpoint_counts_nothing(
    opened: Opener, model: ModelServer
) -> None:
    nianlun = await opened(daily_token_limit=200)
    respond = helpful()

    def uncounted(body: dict[str, Any]) -> Reply:
        reply = respond(body)
        assert isinstance(reply, str)
        return completion(reply) | {"usage": None}

    model.script(uncounted)
    await talk(40)
    await nianlun.tidy(GROUP)
    assert await writers() == ["model", "offline", "offline", "offline"]
    assert len(model.requests) == 1
    assert (await nianlun.status(GROUP)).limit_reached


async def test_who_asks_for_the_work_is_served_by_an_endpoint_that_is_left_alone(
    opened: Opener, model: ModelServer, clock: SetClock
) -> None:
    nianlun = await opened()
    model.script(lambda _: (401, {}, "{}"))
    await talk(10)
    for _ in range(FAILURES):
        assert (await nianlun.tidy(GROUP)).errors
    assert nianlun.client is not None
    assert nianlun.client.trouble is not None
    clock.time = NOON + timedelta(hours=12)
    await nianlun.jobs.do_owed()
    assert len(model.requests) == FAILURES
    await nianlun.tidy(GROUP)
    assert len(model.requests) == FAILURES + 1
    [(chat_id, key, _)] = await chats.with_work()
    await nianlun.jobs.rewriting(chat_id, key, ("day", "2026-11-27"))
    assert len(model.requests) == FAILURES + 2
    clock.time = NOON + timedelta(days=1)
    await nianlun.jobs.do_owed()
    assert len(model.requests) == FAILURES + 2

    model.script(helpful())
    assert (await nianlun.tidy(GROUP)).activities == 1
    assert nianlun.client.trouble is None
    assert await writers() == ["model"]


async def test_notes_by_tool_calls(opened: Opener, model: ModelServer, clock: SetClock) -> None:
    nianlun = await opened(notes_tools=True)
    await talk(20)
    clock.time = NOON + timedelta(days=1)
    report = await nianlun.tidy(GROUP)
    assert (report.activities, report.memories, report.errors) == (2, 1, ())
    assert all(request["tools"] for request in model.requests)
    assert len(model.requests) == 6
    assert await writers() == ["model", "model"]
    assert [row.calls for row in await UsageCount.all().order_by("purpose")] == [4, 2]


async def test_the_skill_from_python(opened: Opener, model: ModelServer) -> None:
    nianlun = await opened()
    with pytest.raises(ChatError):
        async with nianlun.skill(GROUP):
            pass
    await talk(12)
    async with nianlun.skill(GROUP) as session:
        assert await Lease.all().count() == 1
        task = await session.call(GET)
        assert "第9句" in task["prompt"]
        assert "第10句" not in task["prompt"]
        await asyncio.wait_for(nianlun.jobs.do_owed(), 5)
        assert await Activity.all().count() == 0
        add = {"action": "add_activity", "memory": "中午大家说了十句话。（关键消息：[1])"}
        assert await session.call(add) == {"success": True}
    assert await Lease.all().count() == 0
    assert (await session.call(GET))["success"] is False
    async with nianlun.skill(GROUP) as session:
        assert "第11句" in (await session.call(GET))["prompt"]
    assert [row.text for row in await Activity.all()] == ["中午大家说了十句话。（关键消息：[1]）"]
    assert model.requests == []


async def test_a_clock_that_is_put_back_holds_nothing_up(opened: Opener, clock: SetClock) -> None:
    nianlun = await opened()
    nianlun.start_ticking(0.01)
    await talk(10)
    await written(Activity.all(), 1)
    clock.time = NOON - timedelta(hours=5)
    await talk(10, clock.time - timedelta(minutes=1))
    await written(Activity.all(), 2)
    assert await Memory.all().count() == 0
    clock.time = NOON + timedelta(hours=17)
    await written(Memory.filter(kind="day", closed=True), 1)


async def test_one_look_that_goes_wrong_is_not_the_last(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    nianlun = await opened()
    keep, broken = nianlun.presence.keep, [RuntimeError("broken")]

    async def keep_later() -> None:
        if broken:
            raise broken.pop()
        await keep()

    monkeypatch.setattr(nianlun.presence, "keep", keep_later)
    await talk(10)
    nianlun.start_ticking(0.01)
    await written(Activity.all(), 1)
    assert broken == []
    await nianlun.close()
    assert [task for task in asyncio.all_tasks() if task.get_name() == "nianlun-ticking"] == []


async def written(rows: QuerySet[Any], count: int) -> None:
    """Wait until there are so many of them."""
    for _ in range(1000):
        if await rows.count() >= count:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not {count} of {rows.sql()}")


async def test_a_failure_does_not_tell_what_was_forgotten_meanwhile(
    opened: Opener, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    nianlun = await opened()
    await talk(10)
    clock.time = NOON + timedelta(minutes=5)

    async def fail(upkeep: Upkeep, chat_id: int, *, everything: bool = False) -> TidyReport:
        await nianlun.forget(GROUP, "20001", clock.now())
        return TidyReport(errors=("模型写了：第3句",))

    with monkeypatch.context() as patch:
        patch.setattr(Upkeep, "run", fail)
        await nianlun.tidy(GROUP)
    chat = await Chat.get(peer_id="123")
    assert (chat.failures, chat.last_error) == (1, traces.REPLACED)
