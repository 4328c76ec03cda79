"""What QQNT_Export writes."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from io import BytesIO
from itertools import pairwise
import json
from pathlib import Path
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.cleaning import clean_name, clean_text
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.found import Found, FoundChat, FoundMessage, Unreadable
from plugins.nonebot_plugin_nianlun.imports.qqnt_elements import is_label
from plugins.nonebot_plugin_nianlun.imports.qqnt_export import QqntJson, QqntText

SAMPLES = Path(__file__).parents[1] / "fixtures" / "exports"
SHANGHAI = ZoneInfo("Asia/Shanghai")


def read(data: str | bytes) -> list[Found]:
    return list(
        QqntText().read(BytesIO(data if isinstance(data, bytes) else data.encode()), SHANGHAI)
    )


def read_json(value: object) -> list[Found]:
    return list(QqntJson().read(BytesIO(json.dumps(value).encode()), SHANGHAI))


def messages(found: list[Found]) -> list[FoundMessage]:
    return [one for one in found if isinstance(one, FoundMessage)]


def text_of(message: FoundMessage) -> str:
    return readable(message.segments, lambda _: None)


def said(who: str, clock: str, *elements: tuple[str | None, str | None]) -> str:
    body = "".join(f"{label}\n{text}\n" for label, text in elements)
    return f"2026-03-07 {clock} {who}\n{body}\n"


@pytest.mark.parametrize("suffix", ["txt", "json"])
def test_the_sample_of_two_people(suffix: str) -> None:
    path = SAMPLES / f"qqnt_export_c2c.{suffix}"
    reader = QqntText() if suffix == "txt" else QqntJson()
    with path.open("rb") as file:
        found = list(reader.read(file, SHANGHAI))
    assert found[0] == FoundChat("private", "qqnt_export_c2c")
    assert [(one.user_id, one.name) for one in messages(found)] == [
        (None, "qqnt_export_c2c"),
        ("me", "我"),
    ]
    assert f"{messages(found)[1].time.astimezone(SHANGHAI):%F %T}" == "2026-03-07 23:58:50"


@pytest.mark.parametrize("suffix", ["txt", "json"])
def test_the_sample_of_a_group(suffix: str) -> None:
    path = SAMPLES / f"qqnt_export_group.{suffix}"
    reader = QqntText() if suffix == "txt" else QqntJson()
    with path.open("rb") as file:
        found = list(reader.read(file, SHANGHAI))
    assert found[0] == FoundChat("group", "qqnt_export_group")
    ids = [None, None] if suffix == "txt" else ["10010", "1620003002"]
    assert [one.user_id for one in messages(found)] == ids
    assert [one.name for one in messages(found)] == ["阿澈", "鹿老师"]


def test_without_a_file_the_other_one_has_no_name() -> None:
    found = read(said("收", "08:00:00", ("[文本]", "在吗")))
    assert found[0] == FoundChat("private", None)
    assert messages(found)[0].name == "对方"


ELEMENTS: list[tuple[tuple[str | None, str | None], str]] = [
    (("[文本]", "一\n\n二"), "一\n\n二"),
    (("[图片]", "8D5F0A3B.jpg\nC:\\a.jpg"), "[图片]"),
    (("[文件]", "计划.xlsx 1.00 KiB"), "[文件: 计划.xlsx]"),
    (("[文件]", "README 512 Bytes"), "[文件: README]"),
    (("[文件]", "README None"), "[文件: README]"),
    (("[图片]", "/p/chatraw/3b0/Cache_d20372e27ef63b0 None"), "[图片]"),
    (("[图片]", "[动画表情]/p/chatraw/3b0/Cache_d2037 12.00 KiB\nhttps://x/y"), "[动画表情]"),
    (("[语音]", "12″ 好的 "), '[语音 12"]'),
    (("[视频]", "a.mp4"), "[视频]"),
    (("[表情]", "/斜眼笑-178"), "[表情:斜眼笑]"),
    (("[红包]", "恭喜发财"), "[红包: 恭喜发财]"),
    (("[应用消息]", "[QQ小程序]哔哩"), "[小程序: 哔哩]"),
    (("[通话]", "1-通话时长 01:00"), "[通话: 1-通话时长 01:00]"),
    (("[被引用的消息][文本]", "别人说的"), ""),
    (("[被引用的消息]", "None"), ""),
]


@pytest.mark.parametrize(("element", "text"), ELEMENTS)
def test_elements(element: tuple[str, str], text: str) -> None:
    one, other = said("甲", "08:00:00", element), said("乙", "08:00:01", ("[文本]", "后"))
    assert [text_of(m) for m in messages(read(one + other))] == [text, "后"]
    (found,) = messages(
        read_json([{"time": "2026-03-07 08:00:00", "sender": "甲", "contents": [element]}])
    )
    assert text_of(found) == text


def test_cards_as_they_come_out() -> None:
    """The exporter means to write a label and a text, and writes the text alone."""
    card = "[应用消息][QQ小程序]哔哩"
    entry = {"time": "2026-03-07 08:00:00", "sender": "甲", "contents": [card, ["[文本]", "看"]]}
    assert [text_of(one) for one in messages(read_json([entry]))] == ["[小程序: 哔哩]看"]
    cut = ("[", "应"), ("[被引用的消息][", "应"), ("[文本]", "看\n[\n这个")
    found = messages(read(said("甲", "08:00:00", *cut) + said("乙", "08:00:01", *cut[:1])))
    assert [text_of(one) for one in found] == ["[卡片]看\n[\n这个", "[卡片]"]


@pytest.mark.parametrize("typed", ["[图片]", "[表情]", "[文件]", "看\n[图片]\n好", "[不是标签]"])
def test_labels_that_somebody_typed(typed: str) -> None:
    (found,) = messages(read(said("甲", "08:00:00", ("[文本]", f"我说\n{typed}\n完"))))
    assert text_of(found) == f"我说\n{typed}\n完"


def test_a_notice_is_the_systems() -> None:
    found = messages(read(said("甲", "08:00:00", ("[提示]", "甲 撤回了一条消息"))))
    assert [(one.system, text_of(one)) for one in found] == [(True, "甲 撤回了一条消息")]


@pytest.mark.parametrize(
    "quoted",
    [
        "2026-03-07 07:00:00 张三\n[文本]\n以前的",
        "2026-03-07 09:00:00 张三\n不是标签",
        "2026-03-07 09:00:00 张三\n",
        "2026-03-07 9:00:00 张三\n[文本]\n时间少一位",
        "2026-03-07 25:00:00 张三\n[文本]\n没有这个时间",
    ],
)
def test_content_that_looks_like_a_message(quoted: str) -> None:
    found = read(
        said("甲", "08:00:00", ("[文本]", f"看：\n\n{quoted}"))
        + said("乙", "09:30:00", ("[文本]", "嗯"))
    )
    assert [one.name for one in messages(found)] == ["甲", "乙"]
    for part in quoted.replace("[文本]", "").split("\n"):
        assert part in text_of(messages(found)[0])


@pytest.mark.parametrize("who", [["发"], {"收": 1}, 5, None, True, ""])
def test_whatever_says_who_it_was_is_read_or_left_out(who: object) -> None:
    entries = json.loads((SAMPLES / "qqnt_export_c2c.json").read_bytes())
    found = read_json([{**entries[0], "direction": who}, *entries])
    assert [one.user_id for one in messages(found)[-2:]] == [None, "me"]
    assert len(found) == 4


def test_between_two_people_nobody_else_speaks() -> None:
    quoted = "2026-03-07 08:30:00 张三\n[文本]\n转述"
    found = read(said("收", "08:00:00", ("[文本]", f"看：\n\n{quoted}")) + said("发", "09:00:00"))
    assert [one.user_id for one in messages(found)] == [None, "me"]


def test_messages_without_elements() -> None:
    found = read(
        said("甲", "08:00:00", ("[文本]", "早"))
        + said("甲", "08:00:01")
        + said("甲", "08:00:02", (None, None))
        + said("甲", "08:00:02", ("[文本]", "好"), (None, None), (None, None), ("[文本]", "的"))
        + said("乙", "08:00:03", ("[文本]", "早"))
    )
    assert [(one.name, text_of(one)) for one in messages(found)] == [
        ("甲", "早"),
        ("甲", ""),
        ("甲", ""),
        ("甲", "好的"),
        ("乙", "早"),
    ]


@pytest.mark.parametrize(
    "entry",
    [
        5,
        {"time": "x", "sender": "甲", "contents": []},
        {"time": None, "direction": "收"},
        {"time": "2026-03-07 08:00:00", "sender": "", "contents": []},
        {"time": "2026-03-07 08:00:00", "sender": "甲", "sender_qq": "Me"},
    ],
)
def test_an_entry_that_is_none_is_left_out(entry: object) -> None:
    good = {"time": "2026-03-07 08:00:00", "sender": "甲", "contents": [["[文本]", "早"]]}
    found = read_json([entry, good])
    assert [type(one) for one in found if not isinstance(one, FoundChat)] == [
        Unreadable,
        FoundMessage,
    ]


@pytest.mark.parametrize("value", [{}, 5, "x"])
def test_other_documents_are_refused(value: object) -> None:
    with pytest.raises(ImportFileError):
        read_json(value)


line = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
tricky = st.sampled_from(
    [
        "",
        "2020-01-01 08:00:00 张三",
        "[文本]",
        "[图片]",
        "None",
        "[被引用的消息]",
        "2026-03-07 08:00:05 李四",
    ]
)
names = line.map(clean_name).filter(lambda name: name and name not in "收发未知转发")


@given(
    st.lists(
        st.tuples(st.integers(0, 9), names, st.lists(line | tricky, min_size=1, max_size=6)),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_said_makes_no_speaker(parts: list[tuple[int, str, list[str]]]) -> None:
    """But for a whole quoted message with a later time, which nothing tells from a real one."""
    for _, _, lines in parts:
        # What follows a typed label and looks like a file's name is one.
        pairs = pairwise(lines)
        assume(not any(label == "[图片]" and is_label(label, name) for label, name in pairs))
    when = datetime(2026, 3, 7, 8, 1)  # noqa: DTZ001
    text, expected = "", []
    for step, who, lines in parts:
        when += timedelta(seconds=step)
        text += said(who, f"{when:%T}", ("[文本]", "\n".join(lines)))
        expected.append(who)
    found = read(text)
    assert [one.name for one in messages(found)] == expected
    for (_, _, lines), one in zip(parts, messages(found), strict=True):
        for part in lines:
            if "[" not in part and part not in ("", "None"):
                assert clean_text(part) in text_of(one)


@given(st.lists(line | tricky, max_size=20), st.binary(max_size=60))
def test_nothing_raises_anything_else(lines: list[str], tail: bytes) -> None:
    data = "\n".join(lines).encode() + tail
    with suppress(ImportFileError):
        assert isinstance(read(said("甲", "08:00:00", ("[文本]", "早")).encode() + data), list)
    with suppress(ImportFileError):
        assert isinstance(list(QqntJson().read(BytesIO(data), SHANGHAI)), list)
