"""Our own export read back."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
import json
import tracemalloc
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports import native
from plugins.nonebot_plugin_nianlun.imports.found import (
    Found,
    FoundChat,
    FoundMessage,
    FoundRecord,
    Unreadable,
)
from plugins.nonebot_plugin_nianlun.imports.native import Native

UTC_ZONE = ZoneInfo("UTC")
HEADER: dict[str, Any] = {
    "type": "header",
    "format": "nianlun",
    "version": 1,
    "chat": "group:123",
    "self_id": "10001",
    "timezone": "Asia/Shanghai",
    "exported_at": "2026-11-29T09:30:00Z",
}
MESSAGE: dict[str, Any] = {
    "type": "message",
    "seq": 12,
    "message_id": "-12345",
    "time": "2026-11-29T09:30:00Z",
    "user_id": "20002",
    "name": "Alice",
    "text": "早",
    "segments": [{"type": "text", "data": {"text": "早"}}],
    "reply_to": 11,
    "withdrawn": False,
}


def read(*lines: object) -> list[Found]:
    """Read lines that are objects, or text as it stands."""
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    return list(Native().read(BytesIO(text.encode()), UTC_ZONE))


def read_message(**changes: object) -> FoundMessage | Unreadable:
    found = read(HEADER, {**MESSAGE, **changes})
    assert len(found) == 3
    assert isinstance(found[2], FoundMessage | Unreadable)
    return found[2]


def test_the_lines_of_an_export() -> None:
    settings = {"type": "settings", "paused": False}
    own = {
        **MESSAGE,
        "seq": 13,
        "message_id": None,
        "user_id": "me",
        "reply_to": None,
        "reply_to_id": "-9",
        "withdrawn": True,
        "via": "other",
        "delivery": "unknown",
    }
    assert read(HEADER, settings, MESSAGE, "", own) == [
        FoundChat("group", None, "123", "10001"),
        FoundRecord(1, "header", HEADER),
        FoundRecord(2, "settings", settings),
        FoundMessage(
            line=3,
            time=datetime(2026, 11, 29, 9, 30, tzinfo=UTC),
            user_id="20002",
            name="Alice",
            segments=[{"type": "text", "data": {"text": "早"}}],
            message_id="-12345",
            text="早",
            seq=12,
            reply_to=11,
        ),
        FoundMessage(
            line=5,
            time=datetime(2026, 11, 29, 9, 30, tzinfo=UTC),
            user_id="me",
            name="Alice",
            segments=[{"type": "text", "data": {"text": "早"}}],
            reply_to_id="-9",
            withdrawn=True,
            text="早",
            seq=13,
            via="other",
            delivery="unknown",
        ),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"seq": 0},
        {"seq": -1},
        {"seq": True},
        {"seq": 1 << 63},
        {"seq": 1.0},
        {"reply_to": "11"},
        {"time": "2026-11-29T09:30:00"},
        {"time": "0001-01-01T00:00:00+14:00"},
        {"time": 1772899121},
        {"time": "yesterday"},
        {"user_id": ""},
        {"user_id": None},
        {"user_id": "Me"},
        {"user_id": 20002},
        {"name": None},
        {"text": None},
        {"text": ["早"]},
        {"message_id": 5},
        {"withdrawn": 1},
        {"via": "telepathy"},
        {"via": ["other"]},
        {"delivery": None},
        {"segments": None},
        {"segments": ["早"]},
        {"segments": [{"type": "text"}, 5]},
        {"segments": [{"type": 5, "data": {}}]},
    ],
)
def test_a_message_with_a_wrong_field_is_left_out(changes: dict[str, object]) -> None:
    found = read_message(**changes)
    assert isinstance(found, Unreadable)
    assert found.line == 2
    assert found.reason


def test_a_message_whose_short_id_does_not_rise_is_kept_without_it() -> None:
    seqs = (12, 12, 5, None, 13)
    found = read(HEADER, *({**MESSAGE, "seq": seq} for seq in seqs))
    said = [one for one in found if isinstance(one, FoundMessage)]
    assert [one.seq for one in said] == [12, None, None, None, 13]
    told = [one.line for one in found if isinstance(one, Unreadable)]
    assert told == [3, 4, 5]


def test_hostile_text_is_made_safe() -> None:
    bad = "\ud800\0x"
    message = read_message(
        name=bad, text=bad, user_id=f"1{bad}", segments=[{"type": "text", "data": {"text": bad}}]
    )
    assert isinstance(message, FoundMessage)
    assert (message.name, message.text, message.user_id) == ("\ufffdx", "\ufffdx", "1\ufffdx")
    assert message.segments == [{"type": "text", "data": {"text": "\ufffdx"}}]
    fact = {"type": "fact", "journal": [{bad: bad}]}
    assert read(HEADER, fact)[2] == FoundRecord(
        2, "fact", {"type": "fact", "journal": [{"\ufffdx": "\ufffdx"}]}
    )


def test_names_come_back_as_they_are() -> None:
    kept = read_message(name=" 阿澈 ")
    unseen = read_message(name="\u200b")
    endless = read_message(name="长" * 5000)
    assert isinstance(kept, FoundMessage)
    assert isinstance(unseen, FoundMessage)
    assert isinstance(endless, FoundMessage)
    assert (kept.name, unseen.name, len(endless.name)) == (" 阿澈 ", "20002", 100)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "5",
        "{}",
        '{"type": 5}',
        '{"type": ["message"]}',
        '{"type": "fact", "due": NaN}',
        "[" * 100_000,
        '{"type": "fact", "x": ' + "[" * 900 + "]" * 900 + "}",
        '{"type": "fact", "x": ' + "9" * 5000 + "}",
        json.dumps(MESSAGE)[:-20],
    ],
)
def test_a_broken_line_is_told_and_the_rest_goes_on(line: str) -> None:
    found = read(HEADER, line, MESSAGE)
    assert isinstance(found[2], Unreadable | FoundRecord)
    assert isinstance(found[3], FoundMessage)
    if isinstance(found[2], FoundRecord):
        assert '"x"' in line


def test_bytes_that_are_no_text() -> None:
    data = json.dumps(HEADER).encode() + b"\n\xff\n" + json.dumps(MESSAGE).encode()
    found = list(Native().read(BytesIO(data), UTC_ZONE))
    assert found[2] == Unreadable(2, "不是 UTF-8 编码的文字")
    assert isinstance(found[3], FoundMessage)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"version": 2}, "升级"),
        ({"version": 0}, "version"),
        ({"version": True}, "version"),
        ({"version": "1"}, "version"),
        ({"format": "other"}, "format"),
        ({"chat": "group:"}, "chat"),
        ({"chat": "channel:5"}, "chat"),
        ({"chat": None}, "chat"),
        ({"self_id": 10001}, "self_id"),
        ({"type": "settings"}, "header"),
        ({"type": None}, "header"),
    ],
)
def test_a_header_that_cannot_be_used(changes: dict[str, object], told: str) -> None:
    with pytest.raises(ImportFileError, match=told):
        read({**HEADER, **changes}, MESSAGE)


@pytest.mark.parametrize("lines", [(), ("",), (MESSAGE, HEADER), ("{", HEADER)])
def test_no_header(lines: tuple[object, ...]) -> None:
    with pytest.raises(ImportFileError, match="header"):
        read(*lines)


def test_a_second_header_begins_another_chat() -> None:
    found = read(HEADER, MESSAGE, {**HEADER, "chat": "private:9"}, MESSAGE)
    assert found[3] == FoundChat("private", None, "9", "10001")
    assert isinstance(found[5], FoundMessage)


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LINE_LIMIT", 2000)
    found = read(HEADER, {**MESSAGE, "text": "长" * 5000}, MESSAGE)
    assert isinstance(found[2], Unreadable)
    assert [getattr(one, "line", 0) for one in found[2:]] == [2, 3]


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(count: int) -> int:
        lines = [json.dumps(HEADER), *(json.dumps({**MESSAGE, "seq": n + 1}) for n in range(count))]
        file = BytesIO("\n".join(lines).encode())
        tracemalloc.start()
        total = sum(isinstance(one, FoundMessage) for one in Native().read(file, UTC_ZONE))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == count
        return top

    assert peak(10_000) < peak(1_000) + 100_000


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=()), max_size=10)
    | st.sampled_from(["me", "text", "2026-11-29T09:30:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*MESSAGE, "via", "delivery", "reply_to_id"]), anything))
def test_no_value_of_any_field_raises(changes: dict[str, object]) -> None:
    found = read(HEADER, {**MESSAGE, **changes})
    assert isinstance(found[2], FoundMessage | FoundRecord | Unreadable)
    json.dumps(getattr(found[2], "segments", None), ensure_ascii=False).encode()


@given(st.dictionaries(st.sampled_from([*HEADER]), anything), st.binary(max_size=50))
def test_no_header_and_no_bytes_raise_anything_else(
    changes: dict[str, object], tail: bytes
) -> None:
    data = json.dumps({**HEADER, **changes}).encode() + b"\n" + tail
    with suppress(ImportFileError):
        assert list(Native().read(BytesIO(data), UTC_ZONE))
