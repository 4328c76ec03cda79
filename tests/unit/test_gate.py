"""What counts as a command to the bot."""

from __future__ import annotations

import re
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from nonebot.adapters.onebot.v11 import Adapter, Bot, Message, MessageSegment
import pytest

from plugins.nonebot_plugin_nianlun.commands import gate
from plugins.nonebot_plugin_nianlun.commands.gate import (
    HELP_WORDS,
    SEPARATORS,
    VERBS,
    WORD,
    CommandWords,
    command_body,
    has_command,
    is_command,
)
from plugins.nonebot_plugin_nianlun.memory.periods import names_time
from plugins.nonebot_plugin_nianlun.types import Segment

ME = "10001"
TEXT, AT, REPLY = MessageSegment.text, MessageSegment.at, MessageSegment.reply


@pytest.mark.parametrize(
    ("text", "starts", "expected"),
    [
        ("/记忆", {"/"}, True),
        ("/记忆 今天", {"/"}, True),
        ("  /记忆\n今天", {"/"}, True),
        ("/记忆　今天", {"/"}, True),
        ("/nianlun", {"/"}, True),
        ("/nianlun 今天", {"/"}, True),
        ("/nianluns", {"/"}, False),
        ("/Nianlun", {"/"}, True),
        ("／NIANLUN HELP", {"/"}, True),
        ("/nianlun今天", {"/"}, True),
        ("/nianlunhelp", {"/"}, True),
        ("/nianlunhelper", {"/"}, False),
        ("/记忆help", {"/"}, True),
        ("/记忆HELP 搜索", {"/"}, True),
        ("/记忆-h", {"/"}, True),
        ("/记忆？", {"/"}, True),
        ("/记忆-hi", {"/"}, False),
        ("/记忆今天", {"/"}, True),
        ("/记忆搜索 爬山", {"/"}, True),
        ("/记忆今天天气真好", {"/"}, False),
        ("/记忆2026", {"/"}, True),
        ("/记忆2026-09-13", {"/"}, True),
        ("/记忆２０２６-9", {"/"}, True),
        ("/记忆2026-13-45", {"/"}, True),
        ("/记忆2026年9月13日", {"/"}, True),
        ("/记忆去年 7月21日", {"/"}, True),
        ("/记忆上周五", {"/"}, True),
        ("/记忆昨晚", {"/"}, True),
        ("/记忆上周", {"/"}, True),
        ("/记忆月底", {"/"}, True),
        ("/记忆2026年的事真多", {"/"}, False),
        ("/记忆20261", {"/"}, False),
        ("/记忆上周五的火锅", {"/"}, False),
        ("/记忆昨晚睡得好", {"/"}, False),
        ("/记忆的那天", {"/"}, False),
        ("/记忆力不好", {"/"}, False),
        ("记忆今天", {"/"}, False),
        ("nianlun 今天", {"/"}, False),
        ("/记忆力真好", {"/"}, False),
        ("/记忆，今天", {"/"}, False),
        ("记忆 今天", {"/"}, False),
        ("我说/记忆 今天", {"/"}, False),
        ("／记忆 今天", {"/"}, True),
        ("／nianlun", {"/"}, True),
        ("／记忆 今天", {"!"}, False),
        ("记忆 今天", {"/", ""}, True),
        ("记忆力", {""}, False),
        ("!!记忆", {"!", "!!"}, True),
        ("/记忆", set(), False),
        ("", {"/"}, False),
        ("", {""}, False),
    ],
)
def test_is_command(text: str, starts: set[str], expected: bool) -> None:
    assert is_command(text, starts) is expected


@given(
    tail=st.text()
    | st.builds(str.__add__, st.sampled_from([*sorted(VERBS), "-h", "2026", "昨天"]), st.text()),
    start=st.sampled_from(["/", "", "!!"]),
)
def test_only_the_end_a_separator_or_what_is_asked_for_ends_the_word(tail: str, start: str) -> None:
    word = re.split(f"[{SEPARATORS}]", tail)[0]
    ends = not word or word in VERBS or word.lower() in HELP_WORDS or names_time(word)
    assert is_command(f"{start}{WORD}{tail}", {start}) is ends


@pytest.mark.parametrize(
    ("message", "body"),
    [
        (Message(TEXT("/记忆 今天")), "/记忆 今天"),
        (Message([AT(ME), TEXT(" /记忆 今天")]), " /记忆 今天"),
        (Message([AT(ME), TEXT(" "), AT(ME), TEXT("/记忆")]), "/记忆"),
        (Message([REPLY(5), TEXT("/记忆 今天")]), "/记忆 今天"),
        (Message([REPLY(5), AT("20002"), TEXT(" "), AT(ME), TEXT(" /记忆")]), " /记忆"),
        (Message([TEXT("/记忆 今天 "), AT(ME), TEXT(" ")]), "/记忆 今天 "),
        (Message([TEXT("/记忆"), MessageSegment.image("a.jpg")]), None),
    ],
)
def test_a_command_may_be_addressed(message: Message, body: str | None) -> None:
    assert has_command(message, ME, {"/"})
    if body is not None:
        assert command_body(message, ME) == Message(TEXT(body))


@pytest.mark.parametrize(
    "message",
    [
        Message(),
        Message(TEXT("")),
        Message(AT(ME)),
        Message([AT("20002"), TEXT(" /记忆 今天")]),
        Message([MessageSegment.image("a.jpg"), TEXT("/记忆")]),
        Message([TEXT("看"), TEXT("/记忆")]),
        Message([REPLY(5), TEXT("好的")]),
        Message(MessageSegment("text", {})),
    ],
)
def test_ordinary_messages_are_no_commands(message: Message) -> None:
    assert not has_command(message, ME, {"/"})


def test_taking_the_body_leaves_the_event_alone() -> None:
    message = Message([AT(ME), TEXT("/记忆"), AT(ME)])
    command_body(message, ME)
    assert len(message) == 3


def text(content: str) -> Segment:
    return {"type": "text", "data": {"text": content}}


def at(number: int) -> Segment:
    return {"type": "at", "data": {"qq": str(number)}}


def reply(number: int) -> Segment:
    return {"type": "reply", "data": {"id": str(number)}}


def image() -> Segment:
    return {"type": "image", "data": {"file": "a.jpg"}}


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([text("/记忆 今天")], True),
        ([text("小忆，/记忆 今天")], True),
        ([text("/nianlun 今天")], True),
        ([text("小忆 /nianlun")], True),
        ([text("nianlun 真好用")], False),
        ([text("小忆 /记忆")], True),
        ([text("小忆好 /记忆")], False),
        ([text("/记忆力真好")], False),
        ([text("/记忆今天")], True),
        ([text("小忆 /记忆今天")], True),
        ([text("小忆 /记忆-h")], True),
        ([text("/记忆2026-09-13")], True),
        ([text("／NianLun Help")], True),
        ([text("说说 /记忆 今天")], False),
        ([at(10001), text(" /记忆 今天")], True),
        ([at(20002), text(" /记忆 今天")], False),
        ([reply(5), at(20002), text(" /记忆 今天")], True),
        ([text(" "), text("/记忆 今天"), at(10001)], True),
        ([image(), text("/记忆 今天")], False),
        ([], False),
    ],
)
def test_a_command_is_told_from_the_message_as_it_was_sent(
    segments: list[Segment], expected: bool
) -> None:
    words = CommandWords({"/"}, {"小忆"})
    assert words.in_segments(segments, "10001") is expected


@pytest.mark.parametrize(("user_id", "opens"), [(20001, True), (20002, False), (10001, False)])
async def test_no_account_of_ours_opens_a_gate(
    monkeypatch: pytest.MonkeyPatch, user_id: int, opens: bool
) -> None:
    monkeypatch.setattr(gate, "get_bots", lambda: {"10001": None, "20002": None})
    event = Adapter.json_to_event(
        {
            "post_type": "message",
            "message_type": "group",
            "sub_type": "normal",
            "time": 1795973112,
            "self_id": 10001,
            "user_id": user_id,
            "group_id": 123,
            "message_id": 1,
            "message": [{"type": "text", "data": {"text": "/记忆"}}],
            "raw_message": "/记忆",
            "font": 0,
            "sender": {"user_id": user_id, "nickname": "小鹿"},
        }
    )
    assert event is not None
    assert await gate.CommandGate({"/"})(cast("Bot", None), event) is opens
