"""ChatLab's standard format."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
import json
from pathlib import Path
import tracemalloc
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.chatlab import ChatLab
from plugins.nonebot_plugin_nianlun.imports.found import Found, FoundChat, FoundMessage, Unreadable

SAMPLES = Path(__file__).parents[1] / "fixtures" / "exports"
UTC_ZONE = ZoneInfo("UTC")
PARTS: dict[str, Any] = json.loads((SAMPLES / "chatlab_0.0.2.json").read_bytes())
MESSAGE: dict[str, Any] = PARTS["messages"][0]


def read(document: object) -> list[Found]:
    """Read a document, given as it stands, as data, or as a list of lines."""
    if isinstance(document, list):
        document = "".join(
            f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in document
        ).encode()
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return list(ChatLab().read(BytesIO(data), UTC_ZONE))


def read_message(**changes: object) -> FoundMessage | Unreadable:
    found = read({**PARTS, "messages": [{**MESSAGE, **changes}]})
    assert len(found) == 2
    assert isinstance(found[1], FoundMessage | Unreadable)
    return found[1]


def as_lines(messages: list[Any]) -> list[Any]:
    header = {"_type": "header", "chatlab": PARTS["chatlab"], "meta": PARTS["meta"]}
    members = [{"_type": "member", **one} for one in PARTS["members"]]
    return [header, *members, *({"_type": "message", **one} for one in messages)]


@pytest.mark.parametrize("lines", [False, True])
def test_the_sample(lines: bool) -> None:
    found = read(as_lines(PARTS["messages"]) if lines else PARTS)
    assert found[0] == FoundChat("group", "摸鱼研究所①群", "742100123", "3889001234")
    said = [one for one in found if isinstance(one, FoundMessage)]
    assert len(said) == len(found) - 1
    assert [(one.user_id, one.name, one.system) for one in said] == [
        ("10010", "阿澈", False),
        ("1620003002", "鹿老师", False),
        ("1620003002", "小鹿🦌", False),
        ("10010", "阿澈", True),
    ]
    assert [readable(one.segments, lambda _: None) for one in said] == [
        "明天下午三点开会",
        "收到",
        "[图片]",
        "阿澈 撤回了一条消息",
    ]
    assert said[0].time == datetime(2026, 3, 7, 15, 58, 41, tzinfo=UTC)
    assert said[0].message_id == said[1].reply_to_id == "358108020"


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        (0, "一\n二", "一\n二"),
        (0, None, ""),
        (1, "C:/a.jpg", "[图片]"),
        (2, None, "[语音]"),
        (3, None, "[视频]"),
        (4, "计划.xlsx", "[文件: 计划.xlsx]"),
        (5, None, "[表情]"),
        (5, "[斜眼笑]", "[斜眼笑]"),
        (4, "[文件:计划.xlsx]", "[文件:计划.xlsx]"),
        (25, "[回复消息]收到", "收到"),
        (7, "标题", "[分享: 标题]"),
        (8, "外滩", "[位置: 外滩]"),
        (20, "恭喜发财", "[红包: 恭喜发财]"),
        (21, None, "[转账]"),
        (22, "甲 拍了拍 乙", "甲 拍了拍 乙"),
        (26, None, "[聊天记录]"),
        (80, "甲 加入了本群", "甲 加入了本群"),
        (99, "别的", "别的"),
        ("0", "不是数", "不是数"),
        (None, "没有", "没有"),
    ],
)
def test_kinds(kind: object, content: object, text: str) -> None:
    found = read_message(type=kind, content=content)
    assert isinstance(found, FoundMessage)
    assert readable(found.segments, lambda _: None) == text


def test_names_of_members_serve_where_a_message_has_none() -> None:
    found = read_message(sender="1620003002", accountName="", groupNickname=None)
    assert isinstance(found, FoundMessage)
    assert found.name == "鹿老师"
    found = read_message(sender="999", accountName="")
    assert isinstance(found, FoundMessage)
    assert found.name == "999"


@pytest.mark.parametrize(
    "changes",
    [
        {"timestamp": None},
        {"timestamp": True},
        {"timestamp": 1_772_899_121_000},
        {"timestamp": -1},
        {"sender": None, "accountName": None},
        {"sender": "ME"},
    ],
)
def test_a_message_with_a_wrong_field_is_left_out(changes: dict[str, object]) -> None:
    found = read_message(**changes)
    assert isinstance(found, Unreadable)
    assert found.reason.startswith("第 1 条")


@pytest.mark.parametrize(
    ("meta", "chat"),
    [
        ({"name": "群", "type": "group", "groupId": "x@chatroom"}, FoundChat("group", "群")),
        ({"name": " ", "type": "private"}, FoundChat("private", None)),
        (
            {"name": "g", "type": "group", "groupId": "81", "ownerId": "5", "platform": "discord"},
            FoundChat("group", "g"),
        ),
        (
            {"name": "阿澈", "type": "private", "ownerId": "1620003002", "platform": "QQ"},
            FoundChat("private", "阿澈", "10010", "1620003002"),
        ),
        (
            {"name": "甲", "type": "private", "ownerId": 10001},
            FoundChat("private", "甲", None, "10001"),
        ),
    ],
)
def test_where_it_was_said(meta: dict[str, object], chat: FoundChat) -> None:
    assert read({**PARTS, "meta": meta})[0] == chat
    header, *others = as_lines(PARTS["messages"])
    assert read([header | {"meta": meta}, *others])[0] == chat


@pytest.mark.parametrize(
    "document",
    [
        {"chatlab": {}},
        {"chatlab": {}, "messages": []},
        {"chatlab": {}, "meta": 5, "messages": []},
        {"chatlab": {}, "meta": {"type": "channel"}},
        {"chatlab": {}, "meta": PARTS["meta"]},
        [{"_type": "header", "meta": None}],
    ],
)
def test_other_documents_are_refused(document: object) -> None:
    with pytest.raises(ImportFileError):
        read(document)


def test_lines_that_are_broken_are_told_and_the_rest_goes_on() -> None:
    lines = as_lines([MESSAGE])
    extra = ["# 说明", "{", '["x"]', "\xff", {"_type": "other"}, {"no": 1}, ""]
    found = read([*extra[:1], *lines[:1], *extra[1:], *lines[1:]])
    assert [one.line for one in found if isinstance(one, Unreadable)] == [3, 4, 5, 6, 7]
    assert len([one for one in found if isinstance(one, FoundMessage)]) == 1


def test_a_last_line_that_is_broken_is_told_as_well() -> None:
    text = "\n".join(map(json.dumps, as_lines([MESSAGE, MESSAGE])))
    found = read(text.encode()[:-9])
    assert [type(one) for one in found] == [FoundChat, FoundMessage, Unreadable]


def test_both_are_recognised_and_told_apart() -> None:
    for lines in (as_lines([MESSAGE]), ["# 一", "", *as_lines([MESSAGE])]):
        data = "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines)
        assert ChatLab().recognises(data.encode())
    assert ChatLab().recognises(json.dumps(PARTS).encode("utf-16"))
    assert ChatLab().recognises(json.dumps({"meta": PARTS["meta"], **PARTS}).encode())
    assert not ChatLab().recognises(json.dumps({"a": [{"text": '"chatlab": {'}]}).encode())
    assert not ChatLab().recognises(b'{"_type":"message"}')
    assert read(json.dumps(PARTS).encode("utf-16")) == read(PARTS)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "gb18030"])
def test_lines_in_another_encoding_are_named(encoding: str) -> None:
    lines = (json.dumps(one, ensure_ascii=False) for one in as_lines(PARTS["messages"] * 9))
    with pytest.raises(ImportFileError, match="另存为 UTF-8"):
        read("\n".join(lines).replace("🦌", "").encode(encoding))


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(count: int, lines: bool) -> int:
        messages = [MESSAGE] * count
        document = as_lines(messages) if lines else {**PARTS, "messages": messages}
        text = "\n".join(map(json.dumps, document)) if lines else json.dumps(document)
        file = BytesIO(f"{text}\n".encode())
        tracemalloc.start()
        total = sum(isinstance(one, FoundMessage) for one in ChatLab().read(file, UTC_ZONE))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == count
        return top

    for lines in (False, True):
        assert peak(8_000, lines) < peak(3_000, lines) + 200_000


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(list(MESSAGE)), anything), anything)
def test_no_value_of_any_field_raises(changes: dict[str, object], meta: object) -> None:
    found = read_message(**changes)
    if isinstance(found, FoundMessage):
        json.dumps(found.segments, allow_nan=False).encode()
    with suppress(ImportFileError):
        assert isinstance(read([*as_lines([changes]), meta]), list)
