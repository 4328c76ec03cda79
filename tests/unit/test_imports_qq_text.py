"""Text exports of the old QQ for Windows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
import tracemalloc
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.cleaning import clean_name, clean_text
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.found import (
    Found,
    FoundChat,
    FoundMessage,
    Unreadable,
)
from plugins.nonebot_plugin_nianlun.imports.qq_text import QqText

SAMPLES = Path(__file__).parents[1] / "fixtures" / "exports"
SHANGHAI = ZoneInfo("Asia/Shanghai")
NEW_YORK = ZoneInfo("America/New_York")
BANNER = "消息记录（此消息记录为文本格式，不支持重新导入）"
RULE = "=" * 64


def start(folder: str = "我的群聊", name: str = "群") -> str:
    return f"{RULE}\n消息分组:{folder}\n{RULE}\n消息对象:{name}\n{RULE}\n\n"


def read(text: str | bytes, zone: ZoneInfo = SHANGHAI) -> list[Found]:
    data = text if isinstance(text, bytes) else f"\ufeff{BANNER}\n\n{text}".encode()
    return list(QqText().read(BytesIO(data), zone))


def messages(found: list[Found]) -> list[FoundMessage]:
    return [one for one in found if isinstance(one, FoundMessage)]


def chat(*lines: str, folder: str = "我的群聊", zone: ZoneInfo = SHANGHAI) -> list[FoundMessage]:
    """The messages of one chat; nothing else may come of it but the chat."""
    found = read(start(folder) + "\n".join(lines), zone)
    assert isinstance(found[0], FoundChat)
    rest = messages(found)
    assert len(rest) == len(found) - 1
    return rest


def text_of(message: FoundMessage) -> str:
    return "".join(segment["data"]["text"] for segment in message.segments)


def local(message: FoundMessage, zone: ZoneInfo = SHANGHAI) -> str:
    return f"{message.time.astimezone(zone):%Y-%m-%d %H:%M:%S}"


def test_the_sample_of_a_group() -> None:
    found = read((SAMPLES / "qq_pc_legacy_group.txt").read_bytes())
    assert found[0] == FoundChat("group", "摸鱼研究所①群")
    said = messages(found)
    assert len(said) == len(found) - 1 == 9
    assert [(one.line, one.user_id, one.name) for one in said] == [
        (9, "10010", "阿澈"),
        (14, "2854196312", "搬砖的[阿巴(摸鱼中)]"),
        (17, "1620003002", "鹿老师🦌"),
        (20, "1620003002", "鹿老师🦌"),
        (23, "1620003003", "1620003003"),
        (26, "zhang.wei@example.com", "wei.zhang"),
        (29, "10000", "系统消息"),
        (32, "10010", "阿澈"),
        (37, "10010", "阿澈（出差中）"),
    ]
    assert text_of(said[0]) == "明天下午三点开会\n地点：三楼小会议室\n[表情]"
    assert said[3].segments == []
    assert [one.system for one in said] == [False] * 6 + [True, False, False]
    assert "2021-03-08 08:00:00 张三(12345)" in text_of(said[7])
    assert said[2].time == datetime(2021, 3, 7, 16, 0, 3, tzinfo=UTC)


def test_the_sample_of_all_chats() -> None:
    found = read((SAMPLES / "qq_pc_legacy_all_records.txt").read_bytes())
    assert [type(one) for one in found] == [
        FoundChat,
        FoundMessage,
        FoundMessage,
        FoundChat,
        FoundMessage,
    ]
    assert found[0] == FoundChat("private", "鹿老师🦌")
    assert found[3] == FoundChat("group", "摸鱼研究所①群")
    said = messages(found)
    assert [(one.user_id, one.name, text_of(one)) for one in said] == [
        (None, "鹿老师🦌", "在吗"),
        (None, "小忆", "在的\n第二行"),
        ("10010", "阿澈", "新年开工"),
    ]


@pytest.mark.parametrize(
    ("evening", "night", "after"),
    [
        ("8:43:38 PM", "11:26:00 PM", "12:00:05 AM"),
        ("8:43:38\u202fpm", "11:26:00\u202fpm", "12:00:05\u202fam"),
        ("下午 8:43:38", "下午 11:26:00", "上午 12:00:05"),
        ("下午8:43:38", "下午11:26:00", "上午12:00:05"),
        ("8:43:38 下午", "11:26:00 下午", "12:00:05 上午"),
    ],
)
def test_twelve_hours(evening: str, night: str, after: str) -> None:
    said = chat(
        f"2020-02-12 {evening} 阿澈(10010)\n在吗\n",
        f"2020-02-12 {evening} PM 小王(10011)\n2020-02-12 8:43:39 引用(10012)\n",
        f"2020-02-12 {night} 阿澈(10010)\n睡了\n",
        f"2020-02-13 {after} 阿澈(10010)\n还没\n",
    )
    assert [local(one) for one in said] == [
        "2020-02-12 20:43:38",
        "2020-02-12 20:43:38",
        "2020-02-12 23:26:00",
        "2020-02-13 00:00:05",
    ]
    assert said[1].name == "PM 小王"


def test_a_name_that_looks_like_half_a_day() -> None:
    said = chat(
        "2020-02-12 8:43:38 PM 小王(10010)\n早\n",
        "2020-02-12 14:00:00 PM 小王(10010)\n下午好\n",
    )
    assert [(local(one)[11:], one.name) for one in said] == [
        ("08:43:38", "PM 小王"),
        ("14:00:00", "PM 小王"),
    ]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encodings_and_line_ends(encoding: str, end: str) -> None:
    text = (
        f"{BANNER}\n\n{start()}2021-03-07 23:58:41 鹿老师🦌(10010)\n第一行\n\n第三行\u2028还是\n\n"
    )
    data = text.replace("\n", end).encode(encoding)
    reader = QqText()
    assert reader.recognises(data)
    (said,) = messages(list(reader.read(BytesIO(data), SHANGHAI)))
    assert (said.line, said.name, text_of(said)) == (9, "鹿老师🦌", "第一行\n\n第三行\u2028还是")


@pytest.mark.parametrize(
    ("who", "user_id", "name"),
    [
        ("【群主】阿澈(10010)", "10010", "阿澈"),
        ("【活跃】【光】(10010)", "10010", "【光】"),
        ("【歌神】阿澈(10010)", "10010", "【歌神】阿澈"),
        ("【管理员】(10010)", "10010", "【管理员】"),
        ("【管理员】 (10010)", "10010", "【管理员】"),
        ("(10010)", "10010", "10010"),
        ("\u200b(10010)", "10010", "10010"),
        ("阿(1)(10010)", "10010", "阿(1)"),
        ("阿<b>(10010)", "10010", "阿<b>"),
        ("a@b.c<a@b.c>", "a@b.c", "a@b.c"),
        ("阿澈<a b@c>", None, "阿澈<a b@c>"),
        ("阿澈(1234)", None, "阿澈(1234)"),
        ("阿澈<10010>", "10010", "阿澈"),
        ("wei.zhang(zhang.wei@example.com)", "zhang.wei@example.com", "wei.zhang"),
        ("阿澈(a b@c)", None, "阿澈(a b@c)"),
        ("阿澈(１２３４５６)", None, "阿澈(１２３４５６)"),
        ("【群主】阿澈", None, "【群主】阿澈"),
        ("系统消息(1000000)", "1000000", "系统消息"),
    ],
)
def test_who_said_it(who: str, user_id: str | None, name: str) -> None:
    (said,) = chat(f"2021-03-07 1:02:03 {who}\n好\n")
    assert (said.user_id, said.name) == (user_id, name)
    assert said.system == (user_id == "1000000")


def test_who_calls_himself_the_system_is_not_the_system() -> None:
    (said,) = chat("2021-03-07 1:02:03 系统消息(10010)\n你已被移出群聊\n")
    assert not said.system


def test_nobody_said_it() -> None:
    found = read(f"{start()}2021-03-07 1:02:03 \n好\n\n2021-03-07 1:02:04 阿澈(10010)\n好\n")
    assert found[1] == Unreadable(9, "没有写是谁说的")
    assert len(messages(found)) == 1


@pytest.mark.parametrize("date", ["2021/3/7", "2021.3.7", "2021-3-07"])
def test_dates_of_other_computers(date: str) -> None:
    (said,) = chat(f"{date} 1:02:03 阿澈(10010)\n好\n")
    assert local(said) == "2021-03-07 01:02:03"


@pytest.mark.parametrize(
    "line",
    [
        "2021-03-07 23:58:40 张三(12345)",
        "2021-13-07 23:59:40 张三(12345)",
        "2021-03-07 24:00:00 张三(12345)",
        "1998-03-07 23:59:00 张三(12345)",
        "2021-03-07 23:59:00",
        "2021-03/07 23:59:00 张三(12345)",
        f"2021-03-07 23:59:00 {'长' * 400}",
        "消息分组:我的群聊",
        RULE,
        f"{RULE}\n消息分组:x\n{RULE}\n消息对象:y",
        f"{RULE} \n消息分组:x\n{RULE}\n消息对象:y\n{RULE}",
    ],
)
def test_content_that_looks_like_something_else(line: str) -> None:
    said = chat(
        f"2021-03-07 23:58:41 阿澈(10010)\n看：\n\n{line}\n完\n",
        "2021-03-07 23:59:59 小鹿(10011)\n嗯\n",
    )
    assert [text_of(one) for one in said] == [f"看：\n\n{line}\n完", "嗯"]


def test_among_people_with_ids_a_bare_name_is_no_speaker() -> None:
    plan = "计划：\n\n2021-05-01 09:00:00 集合\n\n2021-05-01 10:00:00 出发"
    said = chat(
        "2021-03-07 1:00:00 阿澈(10010)\n早\n",
        "2021-03-07 1:00:01 小鹿(10011)\n早\n",
        f"2021-03-07 1:00:02 阿澈(10010)\n{plan}\n",
        "2021-03-07 1:00:03 小鹿(10011)\n好\n",
    )
    assert [text_of(one) for one in said] == ["早", "早", plan, "好"]


def test_a_date_to_come_does_not_swallow_the_rest() -> None:
    talk = [f"2021-03-07 2:{n:02}:00 阿澈\n第{n}句\n\n接着\n" for n in range(60)]
    said = chat("2021-03-07 1:00:00 小鹿\n计划：\n\n2031-05-01 9:00:00 集合\n带伞\n", *talk)
    assert len(said) == 61
    assert text_of(said[0]) == "计划：\n\n2031-05-01 9:00:00 集合\n带伞"
    assert text_of(said[60]) == "第59句\n\n接着"
    assert [one.line for one in said[1:]] == list(range(15, 15 + 60 * 5, 5))


def test_blank_lines() -> None:
    said = chat(
        "2021-03-07 1:00:00 阿澈(10010)\n\n\n\n",
        "2021-03-07 1:00:01 阿澈(10010)\n",
        "2021-03-07 1:00:02 阿澈(10010)\n\n  \n一\n\n\n二\n\n\n\n",
    )
    assert [text_of(one) for one in said] == ["", "", "\n  \n一\n\n\n二"]


@pytest.mark.parametrize(
    ("folder", "who", "kind"),
    [
        ("我的好友", "阿澈", "private"),
        ("家人", "阿澈", "private"),
        ("我的讨论组", "阿澈", "group"),
        ("家人", "阿澈(10010)", "group"),
        ("我的好友", "阿澈(10010)", "private"),
    ],
)
def test_the_kind_of_a_chat(folder: str, who: str, kind: str) -> None:
    body = f"2021-03-07 1:00:00 系统消息(10000)\n有人来了\n\n2021-03-07 1:00:01 {who}\n好\n"
    found = read(start(folder, "某处") + body)
    assert found[0] == FoundChat(kind, "某处")  # pyright: ignore[reportArgumentType]
    assert len(messages(found)) == 2


def test_only_the_system_ever_spoke() -> None:
    lines = [f"2021-03-07 1:{n:02}:00 系统消息(10000)\n有人来了\n" for n in range(60)]
    assert len(chat(*lines)) == 60


def test_each_chat_has_its_own_time_and_empty_ones_say_nothing() -> None:
    found = read(
        f"{start('我的好友', '甲')}2021-03-07 1:00:00 甲\n早\n\n"
        f"{start('我的好友', '空')}{start('我的好友', '乙')}2020-01-01 1:00:00 乙\n更早\n"
    )
    assert [one.name for one in found if isinstance(one, FoundChat)] == ["甲", "乙"]
    assert [text_of(one) for one in messages(found)] == ["早", "更早"]


def test_exports_put_into_one_file() -> None:
    part = f"{BANNER}\n\n{start('我的好友')}2021-03-07 1:00:00 甲\n早\n\n"
    found = read(f"\ufeff{part}\ufeff{part}".encode())
    assert [type(one) for one in found] == [FoundChat, FoundMessage] * 2
    assert [text_of(one) for one in messages(found)] == ["早", "早"]


def test_what_belongs_to_no_message_is_told() -> None:
    found = read(f"{start()}谁说的\n\n不知道\n\n2021-03-07 1:00:00 甲(10010)\n早\n")
    assert found[-1] == Unreadable(9, "到第 11 行为止，不属于任何一条消息")
    assert len(messages(found)) == 1


def test_broken_bytes_are_told_and_the_rest_goes_on() -> None:
    body = "2021-03-07 1:00:00 甲(10010)\n好@的\n\n2021-03-07 1:00:01 甲(10010)\n早\n"
    found = read(f"{BANNER}\n\n{start()}{body}".encode().replace(b"@", b"\xff"))
    assert [one for one in found if isinstance(one, Unreadable)] == [
        Unreadable(10, "有认不出的字节，读成了 �")
    ]
    assert [text_of(one) for one in messages(found)] == ["好\ufffd的", "早"]


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16", "utf-16-le"])
def test_a_file_that_ends_inside_a_character_is_refused(encoding: str) -> None:
    text = f"{BANNER}\n\n{start()}2021-03-07 1:00:00 甲(10010)\n早上好"
    with pytest.raises(ImportFileError, match=r"第 10 行在一个字的中间断了"):
        read(text.encode(encoding)[:-1])


@pytest.mark.parametrize(
    ("first", "second"), [("utf-8", "gb18030"), ("gb18030", "utf-8"), ("utf-8", "utf-16-le")]
)
def test_a_file_of_two_encodings_is_refused(first: str, second: str) -> None:
    head = f"{BANNER}\n\n{start()}2021-03-07 1:00:00 甲(10010)\n早上好\n\n"
    rest = "2021-03-07 1:00:01 甲(10010)\n这里换了一种编码\n\n"
    with pytest.raises(ImportFileError, match=r"第 1[23] 行换了文字编码"):
        read(head.encode(first) + rest.encode(second))


def test_half_an_emoji_is_no_other_encoding() -> None:
    body = "2021-03-07 1:00:00 甲(10010)\n好\ud83d\n".encode("utf-8", "surrogatepass")
    found = read(f"{BANNER}\n\n{start()}".encode() + body)
    assert [text_of(one) for one in messages(found)] == ["好\ufffd"]


def test_an_endless_line_and_an_endless_message_are_told() -> None:
    found = read(
        f"{start()}2021-03-07 1:00:00 甲(10010)\n{'长' * 700_000}\n完\n\n"
        f"2021-03-07 1:00:01 甲(10010)\n{'x' * 1000}" + f"\n{'x' * 1000}" * 1100
    )
    assert [(one.line, one.reason[:7]) for one in found if isinstance(one, Unreadable)] == [
        (10, "这一行太长，不"),
        (13, "这条消息太长，"),
    ]
    assert text_of(messages(found)[0]) == "完"
    assert len(text_of(messages(found)[1])) < 1 << 20


QUOTED = f"看：\n\n{start('我的好友', '别人').rstrip()}"


@pytest.mark.parametrize(
    "after", ["", "\n还有话", "\n\n还有话", f"\n\n{'=' * 30}", f"\n\n{RULE} ", "\n" * 80 + "还有话"]
)
def test_the_start_of_a_chat_that_somebody_quotes(after: str) -> None:
    said = (
        chat(
            f"2021-03-07 1:00:00 阿澈(10010)\n{QUOTED}{after}\n",
            "2021-03-07 1:00:01 小鹿(10011)\n嗯\n",
        )
        if after
        else chat(f"2021-03-07 1:00:00 阿澈(10010)\n{QUOTED[4:]}\n2021 年\n")
    )
    assert text_of(said[0]).rstrip().endswith(after.strip() or "2021 年")
    assert {one.user_id for one in said} <= {"10010", "10011"}


def test_rules_of_another_length_start_no_chat() -> None:
    for rule in ("=" * 30, "=" * 65):
        block = f"{rule}\n消息分组:x\n{rule}\n消息对象:y\n{rule}\n"
        said = chat(
            f"2021-03-07 1:00:00 阿澈(10010)\n看：\n\n{block}\n",
            "2021-03-07 1:00:01 小鹿(10011)\n嗯\n",
        )
        assert text_of(said[0]).endswith(rule)


def test_an_hour_that_comes_twice() -> None:
    said = chat(
        "2021-11-07 0:59:00 甲(10010)\n一\n",
        "2021-11-07 1:10:00 甲(10010)\n二\n",
        "2021-11-07 1:50:00 甲(10010)\n三\n",
        "2021-11-07 1:20:00 甲(10010)\n四\n",
        "2021-11-07 1:40:00 甲(10010)\n五\n\n2021-11-07 1:30:00 甲(10010)\n引用\n",
        "2021-11-07 2:00:00 甲(10010)\n六\n",
        zone=NEW_YORK,
    )
    assert [text_of(one)[0] for one in said] == list("一二三四五六")
    assert [f"{one.time:%H:%M}" for one in said] == [
        "04:59",
        "05:10",
        "05:50",
        "06:20",
        "06:40",
        "07:00",
    ]


def test_an_hour_that_never_was() -> None:
    said = chat(
        "2021-03-14 1:50:00 甲(10010)\n一\n",
        "2021-03-14 2:30:00 甲(10010)\n二\n",
        "2021-03-14 3:10:00 甲(10010)\n三\n",
        zone=NEW_YORK,
    )
    assert [f"{one.time:%H:%M}" for one in said] == ["06:50", "07:30", "07:10"]


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(count: int) -> int:
        when = datetime(2021, 3, 7)  # noqa: DTZ001
        lines = (
            f"{when + timedelta(seconds=n):%Y-%m-%d %H:%M:%S} 甲{n % 7}(1001{n % 7})\n第{n}句\n\n"
            for n in range(count)
        )
        file = BytesIO((start() + "".join(lines)).encode())
        tracemalloc.start()
        total = sum(isinstance(one, FoundMessage) for one in QqText().read(file, SHANGHAI))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == count
        return top

    assert peak(20_000) < peak(2_000) + 200_000


line = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=30)
tricky = st.sampled_from(
    ["", RULE, BANNER, "消息分组:x", "消息对象:y", "2020-01-01 0:00:00 张三(12345)", "上午 8:00:00"]
)
name = line.map(clean_name).filter(lambda text: text and not text.endswith((")", ">")))
message: st.SearchStrategy[tuple[int, str, str | None, list[str]]] = st.tuples(
    st.integers(0, 90_000),
    name,
    st.one_of(st.sampled_from(["12345", "4294967295"]), st.just("a.b@c.d")),
    st.lists(line | tricky, max_size=6),
)


def written(said: list[Any], when: datetime) -> Iterator[tuple[datetime, str]]:
    for step, who, user_id, lines in said:
        when += timedelta(seconds=step)
        number = f"<{user_id}>" if "@" in user_id else f"({user_id})"
        body = "".join(f"{one}\n" for one in lines)
        clock = f"{when:%Y-%m-%d} {when.hour}:{when:%M:%S}"
        yield when, f"{clock} 【活跃】{who}{number}\n{body}\n"


@given(st.lists(message, min_size=1, max_size=6), st.sampled_from(["utf-8", "utf-16", "gb18030"]))
def test_what_is_written_is_read(said: list[Any], encoding: str) -> None:
    parts = list(written(said, datetime(2021, 3, 7, 23, 58)))  # noqa: DTZ001
    text = f"{BANNER}\n\n{start()}{''.join(part for _, part in parts)}".replace("\n", "\r\n")
    found = read(text.encode(encoding))
    assert found[0] == FoundChat("group", "群")
    assert [(local(m), m.user_id, m.name, text_of(m)) for m in messages(found)] == [
        (f"{when:%Y-%m-%d %H:%M:%S}", user_id, who, clean_text("\n".join(lines).rstrip("\n")))
        for (when, _), (_, who, user_id, lines) in zip(parts, said, strict=True)
    ]


@given(st.lists(line | tricky, max_size=20), st.binary(max_size=60))
def test_nothing_raises_anything_else(lines: list[str], tail: bytes) -> None:
    text = "\n".join(lines).encode()
    for head in (b"", BANNER.encode(), b"\xff\xfe", BANNER.encode("gb18030")):
        for zone in (SHANGHAI, NEW_YORK):
            with suppress(ImportFileError):
                assert isinstance(read(head + text + tail, zone), list)
