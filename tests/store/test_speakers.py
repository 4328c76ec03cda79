"""Who is meant: by number, or by any name that somebody has ever had."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
import unicodedata

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import SpeakerError
from plugins.nonebot_plugin_nianlun.store import chats, recording, speakers
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming

NOW = datetime(2026, 11, 29, 9, 30, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")
OTHER = ChatKey("10001", "group", "999")

pytestmark = pytest.mark.usefixtures("database_file")


async def say(user_id: str, name: str, chat: ChatKey = GROUP, minute: int = 0) -> int:
    at = NOW + timedelta(minutes=minute)
    segments = [{"type": "text", "data": {"text": "大家好"}}]
    message_id = f"{user_id}{name}{minute}"
    line = Incoming(chat, at, user_id, name, segments, "event", message_id=message_id)
    await recording.record([line], readable, "小忆", NOW)
    chat_id = await chats.find(chat)
    assert chat_id is not None
    return chat_id


async def test_a_renamed_member_is_one_and_found_by_every_name() -> None:
    chat_id = await say("20001", "小鹿")
    await say("20001", "鹿老师", minute=1)
    await say("20002", "阿澈", minute=2)
    for called in ("20001", "小鹿", " 鹿老师 "):
        assert await speakers.resolve(chat_id, called) == "20001"
    assert await speakers.resolve(chat_id, "阿澈") == "20002"


async def test_the_name_of_the_newest_message_is_shown_also_after_an_import() -> None:
    chat_id = await say("20001", "小鹿")
    await speakers.settle_names(chat_id, {"20001": (NOW + timedelta(minutes=1), "鹿老师")})
    assert await speakers.current_names(chat_id, ["20001"]) == {"20001": "鹿老师"}
    await say("20001", "小鹿", minute=2)
    assert await speakers.current_names(chat_id, ["20001"]) == {"20001": "小鹿"}


async def test_names_compare_composed_and_with_case() -> None:
    chat_id = await say("20001", "Zoë")
    await say("20002", "zoë", minute=1)
    assert await speakers.resolve(chat_id, unicodedata.normalize("NFD", "Zoë")) == "20001"
    assert await speakers.resolve(chat_id, "zoë") == "20002"


async def test_a_shared_name_lists_who_bears_it() -> None:
    chat_id = await say("20002", "小明")
    await say("20001", "小明", minute=1)
    await say("20002", "大明", minute=2)
    with pytest.raises(SpeakerError) as error:
        await speakers.resolve(chat_id, "小明")
    assert error.value.user_ids == ("20001", "20002")
    assert "20001、20002" in str(error.value)
    assert await speakers.resolve(chat_id, "大明") == "20002"


async def test_a_number_comes_before_a_name() -> None:
    chat_id = await say("20001", "20002")
    await say("20002", "小明", minute=1)
    assert await speakers.resolve(chat_id, "20002") == "20002"


async def test_a_long_name_is_found() -> None:
    chat_id = await say("20001", "名" * 100)
    await say("20002", "名" * 99, minute=1)
    assert await speakers.resolve(chat_id, "名" * 100) == "20001"


@pytest.mark.parametrize("called", ["小明", "", " ", "20009", "\u2028", "\ud800", "x" * 5000])
async def test_nobody(called: str) -> None:
    chat_id = await say("20001", "小鹿")
    await say("20009", "小明", OTHER)
    with pytest.raises(SpeakerError) as error:
        await speakers.resolve(chat_id, called)
    assert error.value.user_ids == ()
    assert "\n" not in str(error.value)


async def test_me_is_the_bot_in_lower_case_alone() -> None:
    chat_id = await say("20001", "ME")
    assert await speakers.resolve(chat_id, "me") == "me"
    for called in ("Me", "ME"):
        with pytest.raises(SpeakerError):
            await speakers.resolve(chat_id, called)
    assert await speakers.resolve(chat_id, "20001") == "20001"
