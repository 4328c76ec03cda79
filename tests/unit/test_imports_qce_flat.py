"""Messages of qq-chat-exporter's versions 4 and 5, whose text has marks for all that is no text."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.imports.found import FoundChat, FoundMessage
from plugins.nonebot_plugin_nianlun.imports.qce_flat import flat_segments, is_flat
from plugins.nonebot_plugin_nianlun.imports.qce_json import QceJson
from plugins.nonebot_plugin_nianlun.imports.qce_messages import chat_of, message, with_peer

SECOND = 1_700_000_000
SAMPLES = Path(__file__).parents[1] / "fixtures" / "exports"


def five(text: str, *elements: tuple[str, dict[str, Any]], **changes: Any) -> FoundMessage:
    """A message as version 5 writes it: the whole text first, then everything that it marks."""
    listed = [("text", {"text": text}), *elements] if text else list(elements)
    raw = {
        "id": "7540000000000000001",
        "seq": "100",
        "timestamp": SECOND * 1000,
        "time": "2023-11-15 06:13:20",
        "sender": {"uid": "u_a", "uin": "10010", "name": "老澈", "nickname": "阿澈"},
        "type": "type_1",
        "content": {
            "text": text,
            "html": "",
            "elements": [{"type": kind, "data": data} for kind, data in listed],
            "resources": [],
            "mentions": [],
        },
        "recalled": False,
        "system": False,
    }
    found = message(raw | changes, 1)
    assert isinstance(found, FoundMessage)
    return found


def text_of(found: FoundMessage) -> str:
    return readable(found.segments, lambda _: None)


IMAGE = ("image", {"filename": "{A+B}.jpg", "size": 5, "url": ""})


@pytest.mark.parametrize(
    ("text", "elements", "said"),
    [
        ("看[图片: {A+B}.jpg]吧", [IMAGE], "看[图片]吧"),
        ("[图片]", [IMAGE], "[图片]"),
        ("[图片: {A+B}.jpg][图片: {A+B}.jpg]", [IMAGE, IMAGE], "[图片][图片]"),
        ("[语音 7秒]", [("audio", {"filename": "a.amr"})], '[语音 7"]'),
        ("[视频: a.mp4]", [("video", {"filename": "a.mp4"})], "[视频]"),
        ("[文件: 计划.xlsx]", [("file", {"filename": "计划.xlsx"})], "[文件: 计划.xlsx]"),
        ("好[/斜眼笑]", [("face", {"id": "178", "name": "/斜眼笑"})], "好[表情:斜眼笑]"),
        ("[[贴贴]]", [("market_face", {"id": "x", "name": "[贴贴]"})], "[贴贴]"),
        (
            "@小 @小明 来",
            [("at", {"uid": "u_1", "name": "小"}), ("at", {"uid": "u_2", "name": "小明"})],
            "@小 @小明 来",
        ),
        (
            "[图片: @小.jpg]好",
            [("image", {"filename": "@小.jpg"}), ("at", {"uid": "u_1", "name": "小"})],
            "[图片]好",
        ),
        ("没有标记", [IMAGE], "没有标记[图片]"),
        ("一句话", [("face", {"id": "178", "name": "/斜眼笑"})], "一句话"),
        ("[卡片消息: 公告]", [("nonsense", {})], "[卡片消息: 公告]"),
    ],
)
def test_each_mark_is_what_it_stands_for(
    text: str, elements: list[tuple[str, dict[str, Any]]], said: str
) -> None:
    assert text_of(five(text, *elements)) == said


def test_the_sample() -> None:
    with (SAMPLES / "qce_v5_single.json").open("rb") as file:
        found = list(QceJson().read(file, ZoneInfo("UTC")))
    assert found[0] == FoundChat("group", "摸鱼研究所①群", "742100123", "3889001234")
    said = [one for one in found if isinstance(one, FoundMessage)]
    assert [(one.name, text_of(one), one.withdrawn) for one in said[:3]] == [
        ("阿澈", "明天的火锅还去吗", False),
        ("鹿老师", "去！@阿澈 看[图片][表情:斜眼笑]", False),
        ("阿澈", '[语音 7"]', False),
    ]
    assert said[1].reply_to_id == said[0].message_id
    assert (said[3].name, said[3].withdrawn, said[3].system) == ("鹿老师", True, False)


def test_mentions_are_those_of_the_people_they_name() -> None:
    who = [("at", {"uid": "u_1", "name": "小"}), ("at", {"uid": "u_2", "name": "小明"})]
    said = five("@小明 @小", *who).segments
    assert [one["data"]["qq"] for one in said if one["type"] == "at"] == ["u_2", "u_1"]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("[回复 小鹿: 今天]\n下雨]\n收到", {"senderName": "小鹿", "content": "今天]\n下雨"}),
        ("[回复 undefined: 引用消息]\n收到", {"content": "引用消息"}),
        ("[回复 小鹿: 别的写法]\n收到", {"senderName": "小鹿", "content": "原消息"}),
    ],
)
def test_a_quotation_is_not_what_was_said(text: str, data: dict[str, str]) -> None:
    found = five(text, ("reply", data | {"messageId": "5", "referencedMessageId": "7"}))
    assert (text_of(found), found.reply_to_id) == ("收到", "7")
    alone = five(text.partition("收到")[0].strip(), ("reply", data))
    assert text_of(alone) == ""


def test_the_sixth_version_is_not_taken_for_it() -> None:
    text = {"type": "text", "data": {"text": "好"}}
    image = {"type": "image", "data": {"filename": "a.jpg"}}
    assert not is_flat({"text": "好[图片:a.jpg]", "elements": [text, image]})
    assert not is_flat({"text": "好", "elements": [text]})
    assert not is_flat({"text": "好", "elements": [5, text]})
    assert not is_flat({"text": "", "elements": [image, image]})
    assert is_flat({"text": "好", "elements": [text, image]})


def test_the_fourth_version_has_it_in_lists() -> None:
    content = {
        "text": "[回复 小鹿: 原文]\n@阿澈 看[图片: a.jpg][/斜眼笑]",
        "raw": '{"elementType":1}\n{"elementType":2}',
        "reply": {"messageId": "5", "senderName": "小鹿", "content": "原文"},
        "mentions": [{"uid": "u_a", "name": "阿澈", "type": "user"}, 5],
        "resources": [{"type": "image", "fileName": "a.jpg", "originalUrl": ""}],
        "emojis": [{"id": "178", "name": "/斜眼笑", "type": "face"}],
    }
    raw = {
        "messageId": "1",
        "messageSeq": "2",
        "timestamp": "2025-08-31T15:58:41.000Z",
        "sender": {"uid": "u_a", "uin": "10010", "name": "阿澈"},
        "content": content,
    }
    found = message(raw, 1)
    assert isinstance(found, FoundMessage)
    assert (text_of(found), found.reply_to_id) == ("@阿澈 看[图片][表情:斜眼笑]", "5")


def test_what_was_taken_back_is_the_message_of_whoever_said_it() -> None:
    found = five("[1]", recalled=True, system=True)
    assert (found.withdrawn, found.system, found.user_id) == (True, False, "10010")
    nobody = five("[1]", recalled=True, system=True, sender={"uid": "未知", "name": "系统消息"})
    assert (nobody.withdrawn, nobody.system) == (True, True)


def test_a_friend_is_called_as_everybody_calls_them() -> None:
    assert five("好").name == "阿澈"


@pytest.mark.parametrize(
    ("kind", "avatar", "number"),
    [
        ("group", "https://p.qlogo.cn/gh/742100123/742100123/640/", "742100123"),
        ("private", "https://q1.qlogo.cn/g?b=qq&nk=10010&s=640", "10010"),
        ("group", "https://q1.qlogo.cn/g?b=qq&nk=10010&s=640", None),
        ("private", "data:image/jpeg;base64,/9j/", None),
        ("private", 5, None),
    ],
)
def test_the_number_of_a_chat_in_its_picture(kind: str, avatar: object, number: str | None) -> None:
    assert chat_of({"name": "群", "type": kind, "avatar": avatar}).peer_id == number


def test_the_number_of_a_chat_in_a_message() -> None:
    group, private = FoundChat("group"), FoundChat("private")
    receiver = {"receiver": {"uid": "742100123", "type": "group"}}
    assert with_peer(group, receiver).peer_id == "742100123"
    assert with_peer(private, receiver).peer_id is None
    assert with_peer(private, {"rawMessage": {"peerUin": "10010"}}).peer_id == "10010"
    assert with_peer(group, 5) == group


texts = st.text("[]:回复图片语音秒@小明 7\n\u2028", max_size=20)
kinds = st.sampled_from(["image", "audio", "at", "face", "reply", "market_face", "forward", "?"])
values = st.none() | st.integers() | texts | st.lists(st.integers(), max_size=2)
fields = st.sampled_from(["filename", "name", "uid", "senderName", "content", "messages"])
elements = st.builds(
    lambda kind, data: {"type": kind, "data": data}, kinds, st.dictionaries(fields, values)
)


@given(texts, st.lists(elements, max_size=6))
def test_nothing_in_it_raises_and_words_stay(text: str, listed: list[dict[str, Any]]) -> None:
    segments = flat_segments(text, listed)
    typed = "".join(one["data"]["text"] for one in segments if one["type"] == "text")
    known = [one for one in listed if one["type"] not in ("forward", "?", "reply")]
    if len(known) == len(listed):
        assert len(typed) <= len(text)
    if not listed:
        assert typed == text
