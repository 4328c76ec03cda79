"""Recall of a time or a person when no word of the question is in what was said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.search import RecallResult
from plugins.nonebot_plugin_nianlun.recalling import Recalling, RecallQuery
from plugins.nonebot_plugin_nianlun.store import chats, recording
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming
from tests.support.scripted_writer import SetClock

NOW = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "742100123")
DEER, RIVER = "20001", "20002"
Recall = Callable[..., Awaitable[RecallResult]]


@pytest.fixture
async def recall(database_file: Path) -> AsyncIterator[Recall]:
    calendar = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
    reader = SearchReader(database_file, calendar)
    recalling = Recalling(reader, "小忆", SetClock(NOW), calendar)

    async def ask(text: str, asker: str | None = None) -> RecallResult:
        chat_id = await chats.find(GROUP)
        assert chat_id is not None
        return await recalling.recall(chat_id, RecallQuery(text, asker=asker))

    try:
        yield ask
    finally:
        await reader.close()


async def say(text: str, by: str, days: float) -> None:
    name = {DEER: "小鹿", RIVER: "阿川"}[by]
    segments = [{"type": "text", "data": {"text": text}}]
    at = (NOW - timedelta(days=days)).replace(microsecond=0)
    line = Incoming(GROUP, at, by, name, segments, "event")
    await recording.record([line], readable, "小忆", NOW)


def contents(found: RecallResult) -> list[str]:
    return [item.content for item in found.items]


async def test_of_a_time_the_rest_comes_behind_what_matches(recall: Recall) -> None:
    await say("早上堵车，气死了", RIVER, 1.3)
    await say("火锅真香", RIVER, 1)
    await say("火锅一般", RIVER, 9)
    assert contents(await recall("昨天的火锅")) == ["火锅真香", "早上堵车，气死了"]


async def test_of_ones_own_day_only_ones_own_lines_come_without_a_term(recall: Recall) -> None:
    await say("早上堵车，气死了", RIVER, 1.3)
    await say("又是开心的一天", DEER, 1)
    assert contents(await recall("昨天我情绪如何", asker=RIVER)) == ["早上堵车，气死了"]


async def test_what_is_not_near_the_time_either_is_looked_for_everywhere(recall: Recall) -> None:
    await say("枸杞岛的船票订好了", RIVER, 90)
    found = await recall("昨天说的枸杞岛")
    assert (contents(found), found.widened) == (["枸杞岛的船票订好了"], True)


async def test_of_a_person_the_newest_lines_come_without_a_term(recall: Recall) -> None:
    await say("换了新工作", RIVER, 30)
    await say("天天加班", RIVER, 3)
    await say("晚上吃什么", DEER, 2)
    assert contents(await recall("阿川怎么样了")) == ["天天加班", "换了新工作"]
