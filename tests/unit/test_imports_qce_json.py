"""JSON files of qq-chat-exporter."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
import json
from pathlib import Path
import tracemalloc
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports import json_stream
from plugins.nonebot_plugin_nianlun.imports.found import (
    Found,
    FoundChat,
    FoundMessage,
    Unreadable,
)
from plugins.nonebot_plugin_nianlun.imports.json_stream import JsonStream
from plugins.nonebot_plugin_nianlun.imports.qce_elements import segments_of
from plugins.nonebot_plugin_nianlun.imports.qce_json import QceJson

SAMPLES = Path(__file__).parents[1] / "fixtures" / "exports"
SAMPLE = (SAMPLES / "qce_v6_single.json").read_bytes()
UTC_ZONE = ZoneInfo("UTC")
PARTS: dict[str, Any] = json.loads(SAMPLE)
MESSAGE: dict[str, Any] = PARTS["messages"][0]


def read(document: object) -> list[Found]:
    """Read a document, given as it stands or as data."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return list(QceJson().read(BytesIO(data), UTC_ZONE))


def read_message(**changes: object) -> FoundMessage | Unreadable:
    found = read({**PARTS, "messages": [{**MESSAGE, **changes}]})
    assert len(found) == 2
    assert isinstance(found[1], FoundMessage | Unreadable)
    return found[1]


def text_of(elements: object) -> str:
    return readable(segments_of(elements), lambda _: None)


def test_the_sample() -> None:
    found = read(SAMPLE)
    assert found[0] == FoundChat("group", "摸鱼研究所①群", "742100123", "3889001234")
    said = [one for one in found if isinstance(one, FoundMessage)]
    assert len(said) == len(found) - 1 == 6
    assert [(one.line, one.order, one.user_id, one.name) for one in said] == [
        (6, 37360, "10010", "阿澈"),
        (7, 37361, "1620003002", "鹿老师"),
        (8, 37362, "1620003002", "鹿老师"),
        (9, 37363, "10010", "阿澈"),
        (10, 37364, "u_nnnnnnnnnnnnnnnnnnnnnn", "QQ用户"),
        (11, 37366, "10010", "阿澈"),
    ]
    assert [readable(one.segments, lambda _: None) for one in said] == [
        "明天下午三点开会",
        "@阿澈 收到",
        "[图片]",
        "[表情:斜眼笑]",
        "QQ用户 撤回了一条消息",
        "[聊天记录]\n  阿澈: 第一条\n  小鹿🦌: 第二条",
    ]
    assert said[0].time == datetime(2026, 3, 7, 15, 58, 41, tzinfo=UTC)
    assert said[0].message_id == said[1].reply_to_id == "7520000000000000001"
    assert [(one.withdrawn, one.system) for one in said] == [(False, False)] * 4 + [
        (True, False),
        (False, False),
    ]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_however_it_is_laid_out(indent: int | None, mark: bytes) -> None:
    again = mark + json.dumps(PARTS, indent=indent).encode()
    assert QceJson().recognises(again)

    def unplaced(found: list[Found]) -> list[Any]:
        return [(type(one), getattr(one, "message_id", None)) for one in found]

    assert unplaced(read(again)) == unplaced(read(SAMPLE))
    lines = [one.line for one in read(again) if isinstance(one, FoundMessage)]
    text = again.decode()
    begins = [
        text.rindex("{", 0, text.index(f'"id": "752000000000000000{n}"')) for n in range(1, 7)
    ]
    assert lines == [text.count("\n", 0, at) + 1 for at in begins]


@pytest.mark.parametrize(
    ("info", "chat"),
    [
        ({"type": "group", "peerUid": "u_x"}, FoundChat("group")),
        ({"type": "group", "peerUid": "u_x", "peerUin": 5}, FoundChat("group", None, "5")),
        ({"type": "private", "name": "小鹿", "peerUid": "12"}, FoundChat("private", "小鹿")),
        ({"type": "temp", "peerUin": "12", "selfUin": "0"}, FoundChat("private", None, "12")),
    ],
)
def test_where_it_was_said(info: dict[str, object], chat: FoundChat) -> None:
    assert read({**PARTS, "chatInfo": info})[0] == chat


@pytest.mark.parametrize(
    ("sender", "user_id", "name"),
    [
        ({"uid": "u_1", "uin": "10010", "name": "甲", "groupCard": "乙"}, "10010", "乙"),
        ({"uid": "u_1", "uin": 10010, "name": " ", "nickname": "丙"}, "10010", "丙"),
        ({"uid": "u_1", "uin": "0", "name": "甲"}, "u_1", "甲"),
        ({"uid": "u_1", "groupCard": "\u200b"}, "u_1", "u_1"),
        ({"uid": "未知", "name": "系统消息"}, None, "系统消息"),
    ],
)
def test_who_said_it(sender: dict[str, object], user_id: str | None, name: str) -> None:
    found = read_message(sender=sender)
    assert isinstance(found, FoundMessage)
    assert (found.user_id, found.name) == (user_id, name)


@pytest.mark.parametrize(
    "changes",
    [
        {"timestamp": None, "time": None},
        {"timestamp": 0, "time": "2026-03-07 23:58:41"},
        {"timestamp": True, "time": 5},
        {"timestamp": 1 << 80, "time": "9999-12-31T23:59:59-12:00"},
        {"sender": None},
        {"sender": {}},
        {"sender": {"uid": "me", "name": "我"}},
        {"sender": {"uin": "Me", "name": "我"}},
        {"content": None},
    ],
)
def test_a_message_with_a_wrong_field_is_left_out(changes: dict[str, object]) -> None:
    found = read_message(**changes)
    assert isinstance(found, Unreadable)
    assert (found.line, bool(found.reason)) == (1, True)


def test_the_rest_goes_on_after_a_message_that_is_none() -> None:
    found = read({**PARTS, "messages": [5, None, MESSAGE]})
    assert [type(one) for one in found] == [FoundChat, Unreadable, Unreadable, FoundMessage]
    told = [one.reason for one in found if isinstance(one, Unreadable)]
    assert told == ["第 1 条不是一条消息", "第 2 条不是一条消息"]


def test_a_name_is_never_long() -> None:
    found = read_message(sender={"uid": "u" * 500})
    assert isinstance(found, FoundMessage)
    assert len(found.name) == 100


def test_what_can_be_missing() -> None:
    found = read_message(timestamp=None, id="", seq="", content={"text": "只有文字"})
    assert isinstance(found, FoundMessage)
    assert found.time == datetime(2026, 3, 7, 15, 58, 41, tzinfo=UTC)
    assert (found.message_id, found.order) == (None, None)
    assert found.segments == [{"type": "text", "data": {"text": "只有文字"}}]


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("text", {"text": "一\n二"}, "一\n二"),
        ("at", {"uid": "all", "uin": "0", "name": "全体成员", "atType": 1}, "@全体成员"),
        ("at", {"uid": "u_1", "uin": "0", "name": "阿澈", "atType": 2}, "@阿澈"),
        ("face", {"id": "178", "name": "/斜眼笑"}, "[表情:斜眼笑]"),
        ("face", {"id": "358", "name": "/骰子", "resultId": "4"}, "[骰子: 4]"),
        ("market_face", {"name": "一箱猫猫", "emojiId": "x"}, "[一箱猫猫]"),
        ("image", {"filename": "a.jpg", "subType": "photo"}, "[图片]"),
        ("image", {"filename": "a.jpg", "subType": "sticker"}, "[动画表情]"),
        ("file", {"filename": "计划.xlsx", "size": 5}, "[文件: 计划.xlsx]"),
        ("video", {"filename": "a.mp4"}, "[视频]"),
        ("audio", {"duration": 12}, '[语音 12"]'),
        ("reply", {"messageId": "5"}, ""),
        ("json", {"content": '{"prompt":"[QQ小程序]哔哩"}'}, "[小程序: 哔哩]"),
        ("json", {"title": "公告"}, "[公告]"),
        ("markdown", {"content": "# 好"}, "# 好"),
        ("location", {"title": "位置消息"}, "[位置]"),
        ("system", {"text": "甲 加入了本群"}, "甲 加入了本群"),
        ("wallet", {"summary": "恭喜发财"}, "[红包: 恭喜发财]"),
        ("av_record", {"summary": "语音通话 - 已结束"}, "[语音通话 - 已结束]"),
        ("calendar", {"summary": "日历"}, "[日历]"),
        ("action_bar", {"summary": "操作栏"}, ""),
        ("nonsense", {}, "[消息]"),
    ],
)
def test_elements(kind: str, data: dict[str, object], text: str) -> None:
    assert text_of([{"type": kind, "data": data}]) == text


def test_forwards() -> None:
    leaf = {"sender": {"name": "丙"}, "content": {"text": "最里层"}}
    inner = {"type": "forward", "data": {"title": "x", "messages": [leaf]}}
    node = {"sender": {"name": "乙"}, "content": {"elements": [inner]}}
    assert text_of([{"type": "forward", "data": {"messages": [node, 5]}}]) == (
        "[聊天记录]\n  乙: [聊天记录]\n    丙: 最里层"
    )
    deep: dict[str, Any] = leaf
    for _ in range(200):
        deep = {"content": {"elements": [{"type": "forward", "data": {"messages": [deep] * 2}}]}}
    assert text_of(deep["content"]["elements"]).startswith("[聊天记录]")


V4: dict[str, Any] = json.loads((SAMPLES / "qce_v4_single.json").read_bytes())


def read_v4(**changes: object) -> FoundMessage:
    found = read({**V4, "messages": [{**V4["messages"][1], **changes}]})
    assert isinstance(found[1], FoundMessage)
    return found[1]


def test_the_sample_of_the_fourth_version() -> None:
    found = read(V4)
    assert found[0] == FoundChat("group", "摸鱼研究所①群")
    said = [one for one in found if isinstance(one, FoundMessage)]
    assert len(said) == len(found) - 1
    assert [(one.order, one.user_id, one.name) for one in said] == [
        (100, "10010", "阿澈"),
        (101, "1620003002", "鹿老师"),
    ]
    assert [readable(one.segments, lambda _: None) for one in said] == [
        "V4 的时间是 UTC ISO 字符串",
        "回复一条",
    ]
    assert said[0].time == datetime(2025, 8, 31, 15, 58, 41, tzinfo=UTC)
    assert said[0].message_id == said[1].reply_to_id == "7540000000000000001"


def test_what_the_fourth_version_has_elsewhere() -> None:
    sender = {"uid": "u_1", "uin": "10010", "name": "昵称"}
    inner = {"sendMemberName": "群名片", "peerUin": "742100123"}
    found = read_v4(sender=sender, rawMessage=inner, isRecalled=True, isSystemMessage=True)
    assert (found.name, found.withdrawn, found.system) == ("群名片", True, False)
    found = read({**V4, "messages": [{**V4["messages"][0], "rawMessage": inner}]})
    assert found[0] == FoundChat("group", "摸鱼研究所①群", "742100123")
    raw = [{"type": "reply", "data": {"id": "-5"}}, {"type": "image", "data": {"file": "a.jpg"}}]
    content = {"text": "[CQ:image,file=a.jpg]", "raw": json.dumps(raw)}
    assert readable(read_v4(content=content).segments, lambda _: None) == "[图片]"
    for broken in ("[", "5", "[5]", '[{"type":"at"}]', "[" * 9000):
        found = read_v4(content={"text": "只有文字", "raw": broken, "reply": 5})
        assert found.segments == [{"type": "text", "data": {"text": "只有文字"}}]


def test_backups_that_were_put_together() -> None:
    """They say not which chat it is, so that whoever imports them has to."""
    merged = {"mergedAt": "2026-03-09T10:00:00.000Z", "messageCount": 1, "resourceCount": 0}
    document = {"metadata": merged, "messages": [MESSAGE], "resources": []}
    assert QceJson().recognises(json.dumps(document, indent=2).encode())
    found = read(document)
    assert [type(one) for one in found] == [FoundChat, FoundMessage]
    assert found[0] == FoundChat("group")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16(encoding: str) -> None:
    data = SAMPLE.decode().encode(encoding)
    if encoding != "utf-16":
        data = "\ufeff".encode(encoding) + data
    assert QceJson().recognises(data)
    assert read(data) == read(SAMPLE)
    with pytest.raises(ImportFileError, match=r"第 8 行（第 \d+ 字节）.*断了"):
        read(data[: data.index("7520000000000000003".encode(encoding)[-30:])])


@pytest.mark.parametrize(
    "document",
    [[], 5, {}, {"messages": []}, {"chatInfo": 5}, {"chatInfo": {"type": "channel"}}, b"", b"{}{"],
)
def test_other_documents_are_refused(document: object) -> None:
    with pytest.raises(ImportFileError):
        read(document)


@pytest.mark.parametrize("size", [7, 64, 1 << 18])
def test_a_file_that_ends_too_early_says_where(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(json_stream, "READ_BYTES", size)
    cut = SAMPLE[: SAMPLE.index(b"7520000000000000003")]
    stream = QceJson().read(BytesIO(cut), UTC_ZONE)
    assert [type(next(stream)) for _ in range(3)] == [FoundChat, FoundMessage, FoundMessage]
    with pytest.raises(ImportFileError, match=f"第 8 行（第 {len(cut)} 字节）.*断了"):
        next(stream)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (b'"seq":"37362"', b'"seq":37362"', 8),
        (b'"seq":"37362"', b'"seq":\xff', 8),
        (b'"seq":"37362"', b'"seq":' + b"[" * 50_000, 8),
        (b'  ],\n  "exportOptions"', b'  ;\n  "exportOptions"', 12),
        (b'"messages":[', b'"messages" [', 5),
        (b'"messages":[', b"5:[", 5),
    ],
)
def test_a_broken_file_says_where(old: bytes, new: bytes, line: int) -> None:
    assert old in SAMPLE
    with pytest.raises(ImportFileError, match=f"第 {line} 行"):
        read(SAMPLE.replace(old, new))


def test_what_follows_the_end_is_not_passed_over() -> None:
    with pytest.raises(ImportFileError, match="多余"):
        read(SAMPLE + b"{}")


def test_huge_numbers_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    data = SAMPLE.replace(b'"seq":"37362"', b'"seq":' + b"9" * 5000)
    assert len(read(data)) == 7
    monkeypatch.setattr(json_stream, "VALUE_LIMIT", 1 << 19)
    with pytest.raises(ImportFileError, match="长得不像"):
        read(SAMPLE.replace(b"37362", b"3" * 2_000_000))


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(count: int) -> int:
        row = b"    " + json.dumps(MESSAGE).encode()
        avatars = b",".join(b'"%d":"%s"' % (n, b"x" * 1000) for n in range(count))
        data = b'{"metadata":{"name":"QQChatExporter"},"chatInfo":{"type":"group"},"messages":[\n'
        data += b",\n".join([row] * count) + b'],"avatars":{' + avatars + b"}}"
        file = BytesIO(data)
        tracemalloc.start()
        total = sum(isinstance(one, FoundMessage) for one in QceJson().read(file, UTC_ZONE))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == count
        return top

    assert peak(8_000) < peak(2_000) + 200_000


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=10)
    | st.sampled_from(["all", "0", "358", "2026-03-07T15:58:41.000Z", "forward"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KINDS = (
    "text at face market_face image video audio file reply json markdown system location wallet "
    "forward av_record inline_keyboard nonsense"
)
KEYS = (
    "text uid uin name atType id resultId filename url size subType duration summary title content "
    "messages preview resId referencedMessageId messageId sender elements type"
)
element = st.fixed_dictionaries(
    {
        "type": st.sampled_from(KINDS.split()) | anything,
        "data": st.dictionaries(st.sampled_from(KEYS.split()), anything, max_size=6) | anything,
    }
)


@given(st.lists(element, max_size=4) | anything)
def test_no_element_raises_and_all_can_be_stored(elements: object) -> None:
    segments = segments_of(elements)
    json.dumps(segments, ensure_ascii=False, allow_nan=False).encode()
    readable(segments, lambda _: None).encode()


@given(st.dictionaries(st.sampled_from(list(MESSAGE)), anything))
def test_no_value_of_any_field_raises(changes: dict[str, object]) -> None:
    found = read_message(**changes)
    if isinstance(found, FoundMessage):
        assert found.name.strip()
        assert found.user_id != "me"


@given(st.dictionaries(st.sampled_from(list(PARTS)), anything), st.integers(0, 5000))
def test_no_document_raises_anything_else(changes: dict[str, object], cut: int) -> None:
    data = json.dumps({**PARTS, **changes}).encode()
    for document in (data, data[:cut], SAMPLE[:cut] + b"\xf0" + SAMPLE[cut:]):
        with suppress(ImportFileError):
            assert isinstance(read(document), list)


@given(anything, st.integers(1, 9))
def test_a_document_in_parts_is_the_same_document(value: object, size: int) -> None:
    data = json.dumps([value, {"a": value}], ensure_ascii=True).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "READ_BYTES", size)
        stream = JsonStream(BytesIO(data))
        values = [stream.value() for _ in stream.items()]
        stream.finish()
        passed = JsonStream(BytesIO(data))
        for _ in passed.items():
            passed.skip()
        passed.finish()
    assert json.dumps(values) == json.dumps(json.loads(data))
