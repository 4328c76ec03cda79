"""An answer goes out once, part by part, and stops where the chat takes no more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

from nonebot.adapters import Bot as BaseBot
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    ApiNotAvailable,
    Bot,
    Message,
    MessageSegment,
    NetworkError,
)
import pytest

from plugins.nonebot_plugin_nianlun.chat import messenger as module
from plugins.nonebot_plugin_nianlun.chat.delivery import Purpose, sending
from plugins.nonebot_plugin_nianlun.chat.messenger import Messenger
from plugins.nonebot_plugin_nianlun.chat.parts import LONGEST_PART, MOST_PARTS
from plugins.nonebot_plugin_nianlun.chat.silences import Silences
from plugins.nonebot_plugin_nianlun.types import ChatKey
from tests.support.events import SELF, message_event

CHAT = ChatKey(str(SELF), "group", "123")
ONE, TWO, THREE = "今天一起去爬了香山。", "山上的叶子都红了呢。", "下次你也来吧，好吗？"
TEXT = ONE + TWO + THREE
TIMEOUT = ActionFailed(retcode=1200, message="Timeout: EventChecker Failed", wording="")
REFUSED = ActionFailed(retcode=1400, message="消息体无法解析", wording="")
MUTED = ActionFailed(retcode=1200, message="发送失败，你已被禁言", wording="")
LOST = NetworkError("WebSocket call api send_msg timeout")


@dataclass
class Wire:
    """Stands in for the adapter: fails call by call as told, and notes what it was to send."""

    failures: list[Exception | None] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)
    marks: list[Purpose | None] = field(default_factory=list)

    async def _call_api(self, bot: BaseBot, api: str, **data: Any) -> Any:
        assert api == "send_msg"
        self.sent.append(data["message"])
        self.marks.append(sending.get())
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return {"message_id": 8}

    @property
    def texts(self) -> list[str]:
        return [message.extract_plain_text() for message in self.sent]


async def say(
    wire: Wire,
    text: str = TEXT,
    silences: Silences | None = None,
    *,
    speed: int = 0,
    purpose: Purpose = "reply",
    quote: bool = False,
) -> bool:
    bot = Bot(cast(Any, wire), str(SELF))
    messenger = Messenger(20, speed, silences or Silences())
    return await messenger.say(CHAT, bot, message_event("问"), text, purpose, quote=quote)


async def test_each_part_is_a_message_of_its_own_and_only_the_first_quotes() -> None:
    wire = Wire()
    assert await say(wire, quote=True)
    assert wire.sent == [
        Message([MessageSegment.reply(7), MessageSegment.text(ONE + TWO)]),
        Message(MessageSegment.text(THREE)),
    ]
    assert wire.marks == ["reply", "reply"]


async def test_text_is_text_whatever_it_looks_like() -> None:
    wire = Wire()
    assert await say(wire, "[CQ:at,qq=all] [CQ:image,file=file:///etc/passwd] {0}", quote=False)
    assert {part.type for message in wire.sent for part in message} == {"text"}
    assert (
        "".join("".join(wire.texts).split())
        == "[CQ:at,qq=all][CQ:image,file=file:///etc/passwd]{0}"
    )


async def test_nothing_to_say_is_nothing_sent() -> None:
    wire = Wire()
    assert not await say(wire, " \n")
    assert wire.sent == []


async def test_it_types_like_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(module.asyncio, "sleep", note)
    await say(Wire(), speed=10)
    assert slept == [0.0, len(THREE) / 10]


@pytest.mark.parametrize("failure", [TIMEOUT, LOST, ActionFailed(retcode=100)])
async def test_a_part_that_may_have_arrived_is_not_sent_again(failure: Exception) -> None:
    wire = Wire([failure])
    assert await say(wire)
    assert wire.texts == [ONE + TWO, THREE]


async def test_a_side_that_does_not_answer_is_not_waited_for_again_and_again() -> None:
    wire = Wire([LOST] * 9)
    assert await say(wire, TEXT * 3)
    assert len(wire.sent) == 2


@pytest.mark.parametrize("failure", [REFUSED, MUTED, ApiNotAvailable()])
async def test_a_refusal_ends_the_answer(failure: Exception) -> None:
    wire = Wire([failure])
    assert not await say(wire)
    assert wire.texts == [ONE + TWO]
    wire = Wire([None, failure])
    assert await say(wire, TEXT * 2)
    assert len(wire.sent) == 2


async def test_a_mute_silences_the_chat_and_a_success_ends_that() -> None:
    silences = Silences()
    await say(Wire([MUTED]), silences=silences)
    assert silences.reason(CHAT)
    await say(Wire(), silences=silences)
    assert silences.reason(CHAT) is None


async def test_a_mute_that_looks_like_a_timeout_ends_the_answer() -> None:
    muted = ActionFailed(retcode=1200, message='EventChecker Failed: {"result":120}', wording="")
    silences, wire = Silences(), Wire([muted])
    await say(wire, silences=silences)
    assert silences.reason(CHAT)
    assert len(wire.sent) == 1


@pytest.mark.parametrize("failure", [TIMEOUT, LOST, ApiNotAvailable()])
async def test_slowness_silences_nothing(failure: Exception) -> None:
    silences = Silences()
    for _ in range(10):
        await say(Wire([failure] * 2), silences=silences)
    assert silences.reason(CHAT) is None


async def test_a_model_that_does_not_end_is_cut_off() -> None:
    wire = Wire()
    assert await say(wire, "哈" * 100_000)
    assert sum(map(len, wire.texts)) == MOST_PARTS * LONGEST_PART
    assert max(map(len, wire.texts)) <= LONGEST_PART
