"""How text is sent: as text, marked, and a long one as a bundle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from nonebot.adapters import Bot as BaseBot
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    ApiNotAvailable,
    Bot,
    GroupMessageEvent,
    Message,
    MessageEvent,
    MessageSegment,
    NetworkError,
    PrivateMessageEvent,
)
import pytest

from plugins.nonebot_plugin_nianlun.chat.delivery import (
    MOST_NODES,
    MOST_PLAIN,
    Purpose,
    send_long,
    send_text,
    sending,
    split_text,
)

SELF = 10001


@dataclass
class Wire:
    """Stands in for the adapter: notes each API call and the mark under which it came."""

    failures: dict[str, Exception] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    marks: list[Purpose | None] = field(default_factory=list)

    async def _call_api(self, bot: BaseBot, api: str, **data: Any) -> Any:
        self.calls.append((api, data))
        self.marks.append(sending.get())
        if api in self.failures:
            raise self.failures[api]
        return {"message_id": 8}

    def bot(self) -> Bot:
        return Bot(cast(Any, self), str(SELF))


def event_in(kind: str) -> MessageEvent:
    payload = {
        "time": 1795973112,
        "self_id": SELF,
        "post_type": "message",
        "message_type": kind,
        "sub_type": "normal" if kind == "group" else "friend",
        "message_id": 7,
        "user_id": 20002,
        "message": [{"type": "text", "data": {"text": "你好"}}],
        "raw_message": "你好",
        "font": 14,
        "sender": {"user_id": 20002, "nickname": "小鹿", "role": "member"},
    }
    if kind == "group":
        return GroupMessageEvent.model_validate({**payload, "group_id": 123})
    return PrivateMessageEvent.model_validate(payload)


def sent(event: MessageEvent, text: str) -> tuple[str, dict[str, Any]]:
    place = {"group_id": 123} if event.message_type == "group" else {}
    message = Message(MessageSegment.text(text))
    data = {"user_id": 20002, "message_type": event.message_type, "message": message}
    return "send_msg", data | place


def bundle(*texts: str) -> list[MessageSegment]:
    return [
        MessageSegment.node_custom(SELF, "小年", Message(MessageSegment.text(text)))
        for text in texts
    ]


@pytest.mark.parametrize("kind", ["group", "private"])
async def test_text_goes_out_as_text_and_is_marked_on_its_way(kind: str) -> None:
    wire, event, text = Wire(), event_in(kind), "[CQ:at,qq=all] 早"
    await send_text(wire.bot(), event, text, purpose="reply")
    await send_text(wire.bot(), event, text, purpose="command")
    await wire.bot().send(event, text)
    assert wire.calls == [sent(event, text)] * 3
    assert wire.marks == ["reply", "command", None]


async def test_the_mark_is_seen_by_hooks() -> None:
    """They run as tasks of their own, after the call."""
    seen: list[Purpose | None] = []

    async def called(
        bot: BaseBot, exception: Exception | None, api: str, data: dict[str, Any], result: Any
    ) -> None:
        seen.append(sending.get())

    Bot.on_called_api(called)
    try:
        await send_text(Wire().bot(), event_in("group"), "早", purpose="reply")
    finally:
        Bot._called_api_hook.discard(called)
    assert seen == ["reply"]


async def test_the_mark_goes_when_sending_fails() -> None:
    wire = Wire({"send_msg": ActionFailed(retcode=1200)})
    with pytest.raises(ActionFailed):
        await send_text(wire.bot(), event_in("group"), "早", purpose="reply")
    assert sending.get() is None


async def test_a_short_text_goes_out_under_its_title() -> None:
    wire, event = Wire(), event_in("group")
    await send_long(wire.bot(), event, "标题", "正文", character="小年", purpose="command")
    await send_long(wire.bot(), event, "", "正文", character="小年", purpose="command")
    assert wire.calls == [sent(event, "标题\n正文"), sent(event, "正文")]


@pytest.mark.parametrize("text", ["\n".join("一二三四五六七八"), "长" * 300])
async def test_many_lines_or_characters_go_out_as_a_bundle(text: str) -> None:
    wire, event = Wire(), event_in("group")
    await send_long(wire.bot(), event, "标题", text, character="小年", purpose="command")
    messages = bundle(f"标题\n{text}")
    assert wire.calls == [("send_group_forward_msg", {"group_id": 123, "messages": messages})]
    assert wire.marks == ["command"]


@pytest.mark.parametrize(
    "failure", [ActionFailed(retcode=1404), ActionFailed(retcode=100), ApiNotAvailable()]
)
async def test_without_bundles_it_goes_out_in_pieces(failure: Exception) -> None:
    wire, event = Wire({"send_private_forward_msg": failure}), event_in("private")
    text = "\n".join(f"&{number} 10:00 {'忙' * 90}" for number in range(20))
    pieces = split_text(text, 1000)
    assert len(pieces) == 3
    await send_long(wire.bot(), event, "", text, character="小年", purpose="command")
    forward = {"user_id": 20002, "messages": bundle(*pieces)}
    assert wire.calls == [
        ("send_private_forward_msg", forward),
        *(sent(event, piece) for piece in pieces),
    ]
    assert set(wire.marks) == {"command"}


@pytest.mark.parametrize(("refused", "most"), [(False, MOST_NODES), (True, MOST_PLAIN)])
async def test_what_is_too_long_is_cut_off_and_told(refused: bool, most: int) -> None:
    wire, event = Wire(), event_in("group")
    if refused:
        wire = Wire({"send_group_forward_msg": ActionFailed(retcode=1404)})
    text = "".join(f"{number:04}" for number in range(25 * (most + 3)))
    await send_long(wire.bot(), event, "", text * 10, character="小年", purpose="command")
    said = [data["message"].extract_plain_text() for api, data in wire.calls if api == "send_msg"]
    if not refused:
        [(_, data)] = wire.calls
        said = [node.data["content"].extract_plain_text() for node in data["messages"]]
    assert len(said) == most
    assert (text * 10).startswith("".join(said[:-1]))
    assert said[-1] == "……太长了，后面还有 4 段没有发出来。"


async def test_a_bundle_that_may_have_arrived_is_not_sent_again() -> None:
    wire = Wire({"send_group_forward_msg": NetworkError("timeout")})
    with pytest.raises(NetworkError):
        await send_long(
            wire.bot(), event_in("group"), "", "长" * 400, character="小年", purpose="command"
        )
    assert len(wire.calls) == 1


def test_pieces_end_where_a_line_or_a_sentence_does() -> None:
    assert split_text("一二三四五。\n六七八九十。", 9) == ["一二三四五。", "六七八九十。"]
    assert split_text("一二三四五！」六七八九十", 9) == ["一二三四五！」", "六七八九十"]
    assert split_text("一二三四五六七八九十", 4) == ["一二三四", "五六七八", "九十"]
    assert split_text("  \n ", 4) == []


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_pieces_lose_nothing_but_white_space(text: str, limit: int) -> None:
    pieces = split_text(text, limit)
    assert all(0 < len(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
