"""A question that others have spoken after is to be quoted, as long as it is still there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import chats, messages, recording
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Incoming, Withdrawal

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP, OTHER = ChatKey("10001", "group", "123"), ChatKey("10001", "group", "124")
SHE, HE = "20001", "20002"

pytestmark = pytest.mark.usefixtures("database_file")


async def say(by: str, at: int, message_id: str | None = None, chat: ChatKey = GROUP) -> None:
    segments = [{"type": "text", "data": {"text": f"第 {at} 句"}}]
    line = Incoming(chat, NOON + timedelta(seconds=at), by, "名", segments, "event", message_id)
    await recording.record([line], readable, "小忆", NOON)


async def is_buried(message_id: str) -> bool:
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    return await messages.is_buried(chat_id, message_id)


async def test_only_the_lines_of_others_bury_a_message() -> None:
    await say(HE, 0, "0")
    await say(SHE, 1, "1")
    await say(SHE, 2, "2")
    await say(ME, 3, "3")
    await say(HE, 4, "4", OTHER)
    assert not await is_buried("1")
    await say(HE, 5, "5")
    assert await is_buried("1")
    assert not await is_buried("5")
    assert not await is_buried("unknown")
    assert not await is_buried("4")


async def test_the_newest_of_one_id_is_meant() -> None:
    await say(SHE, 0, "1")
    await say(HE, 1, "2")
    await say(SHE, 2, "1")
    assert not await is_buried("1")


async def test_what_is_withdrawn_is_not_quoted() -> None:
    await say(SHE, 0, "1")
    await say(HE, 1, "2")
    assert await is_buried("1")
    await recording.record([Withdrawal(GROUP, "1", SHE, NOON)], readable, "小忆", NOON)
    assert not await is_buried("1")
