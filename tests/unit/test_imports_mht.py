"""MHT exports of the old QQ for Windows."""

from __future__ import annotations

from contextlib import suppress
from html import escape
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
from plugins.nonebot_plugin_nianlun.imports import mht
from plugins.nonebot_plugin_nianlun.imports.found import Found, FoundChat, FoundMessage, Unreadable
from plugins.nonebot_plugin_nianlun.imports.mht import QqMht

SAMPLE = Path(__file__).parents[1] / "fixtures" / "exports" / "qq_pc_legacy.mht"
SHANGHAI = ZoneInfo("Asia/Shanghai")
BOUNDARY = "----=_NextPart_1.2"
HEADERS = (
    "From: <Save by Tencent MsgMgr>\nSubject: Tencent IM Message\nMIME-Version: 1.0\n"
    f'Content-Type:multipart/related;\n\tcharset="utf-8"\n\ttype="text/html";\n'
    f'\tboundary="{BOUNDARY}"\n\n--{BOUNDARY}\nContent-Type: text/html\n'
    "Content-Transfer-Encoding:7bit\n\n<html><head><style>td{color:red}</style></head><body><table>"
)
PICTURE = (
    f"\n--{BOUNDARY}\nContent-Type:image/png\nContent-Transfer-Encoding:base64\n"
    "Content-Location:{A}.dat\n\n" + f"{'QUJD' * 19}\n" * 40
)


def chat_rows(name: str = "群", folder: str = "我的群聊") -> str:
    rows = (f"消息分组:{folder}", f"消息对象:{name}", "&nbsp;")
    return "".join(f"<tr><td><div>{row}</div></td></tr>\n" for row in rows)


def date(day: str) -> str:
    return f'<tr><td style="color:#3568BB">日期: {day}</td></tr>\n'


def row(who: str, clock: str, said: str, color: str = "#006EFE") -> str:
    """`said` is HTML already."""
    return (
        f'<tr><td><div style="color:{color};"><div style="float:left;">{escape(who)}</div>{clock}'
        f"</div><div style=\"padding-left:20px;\"><font color='000000'>{said}</font></div>"
        "</td></tr>\n"
    )


def document(rows: str) -> bytes:
    return f"{HEADERS}{rows}</table></body></html>\n{PICTURE}\n--{BOUNDARY}--\n".encode()


def read(data: str | bytes) -> list[Found]:
    data = document(data) if isinstance(data, str) else data
    assert QqMht().recognises(data[:500])
    return list(QqMht().read(BytesIO(data), SHANGHAI))


def messages(found: list[Found]) -> list[FoundMessage]:
    return [one for one in found if isinstance(one, FoundMessage)]


def text_of(message: FoundMessage) -> str:
    return "".join(one["data"].get("text", "[图]") for one in message.segments)


def test_the_sample() -> None:
    found = read(SAMPLE.read_bytes())
    assert found[0] == FoundChat("group", "摸鱼研究所①群")
    said = messages(found)
    assert len(said) == len(found) - 1
    assert [(one.user_id, one.name, text_of(one)) for one in said] == [
        ("10010", "阿澈", "明天下午三点开会 <三楼>"),
        (None, "小忆", "收到"),
        ("1620003002", "鹿老师🦌", "看图[图]"),
    ]
    assert [f"{one.time.astimezone(SHANGHAI):%Y-%m-%d %H:%M:%S}" for one in said] == [
        "2021-03-07 23:58:41",
        "2021-03-07 23:59:59",
        "2021-03-08 00:00:03",
    ]
    assert said[2].segments[1] == {
        "type": "image",
        "data": {"file": "{8B2F0C1A-1111-4222-9333-ABCDEF012345}.dat"},
    }


def test_lines_are_those_of_the_file() -> None:
    lines = SAMPLE.read_text("utf-8").split("\n")
    for message in messages(read(SAMPLE.read_bytes())):
        assert message.name in lines[message.line - 1] + lines[message.line]


@pytest.mark.parametrize(
    ("clock", "time"),
    [
        ("0:00:03", "00:00:03"),
        ("23:59:59", "23:59:59"),
        ("8:43:38 PM", "20:43:38"),
        ("12:00:05 AM", "00:00:05"),
        ("下午 8:43:38", "20:43:38"),
        ("上午12:00:05", "00:00:05"),
    ],
)
@pytest.mark.parametrize("day", ["2021-03-07", "2021/3/7"])
def test_clocks(clock: str, time: str, day: str) -> None:
    (said,) = messages(read(chat_rows() + date(day) + row("甲(10010)", clock, "好")))
    assert f"{said.time.astimezone(SHANGHAI):%F %T}" == f"2021-03-07 {time}"


def test_several_chats() -> None:
    found = read(
        chat_rows("小鹿", "我的好友")
        + date("2021-03-07")
        + row("小鹿", "8:00:00", "早")
        + row("小忆", "8:00:01", "早", "#42B475")
        + chat_rows("群")
        + row("甲(10010)", "9:00:00", "没有日期")
        + date("2020-03-07")
        + row("系统消息(10000)", "9:00:00", "乙加入本群")
        + row("甲(10010)", "9:00:01", "欢迎<br>欢迎<br/>")
    )
    assert [one for one in found if isinstance(one, FoundChat)] == [
        FoundChat("private", "小鹿"),
        FoundChat("group", "群"),
    ]
    assert [one.reason for one in found if isinstance(one, Unreadable)] == ["没有能用的时间"]
    assert [(one.name, text_of(one), one.system) for one in messages(found)] == [
        ("小鹿", "早", False),
        ("小忆", "早", False),
        ("系统消息", "乙加入本群", True),
        ("甲", "欢迎\n欢迎\n", False),
    ]


def test_what_follows_a_day_that_cannot_be_read_is_not_of_the_day_before() -> None:
    said = row("甲(10010)", "9:00:00", "好")
    found = read(chat_rows() + date("2021-03-07") + said + date("7/3/2021") + said)
    assert [type(one) for one in found] == [FoundChat, FoundMessage, Unreadable]
    assert isinstance(found[2], Unreadable)
    assert found[2].reason == "没有能用的时间"


def test_a_row_without_a_name_is_the_systems() -> None:
    rows = row("", "9:00:00", "乙加入本群") + row("甲(10010)", "9:00:01", "好")
    said = messages(read(chat_rows() + date("2021-03-07") + rows))
    assert [(one.name, one.system) for one in said] == [("系统消息", True), ("甲", False)]


def test_a_message_that_came_late_keeps_its_time() -> None:
    said = messages(
        read(
            chat_rows()
            + date("2021-03-07")
            + row("甲(10010)", "9:00:00", "一")
            + row("乙(10011)", "8:59:00", "二")
        )
    )
    assert said[1].time < said[0].time


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (f"--{BOUNDARY}--", "", "没有结尾"),
        ("7bit", "quoted-printable", "改写过"),
        ("boundary=", "bound=", "开头不完整"),
    ],
)
def test_what_is_not_whole_is_refused(old: str, new: str, told: str) -> None:
    data = document(chat_rows() + date("2021-03-07") + row("甲(10010)", "9:00:00", "一"))
    with pytest.raises(ImportFileError, match=told):
        read(data.replace(old.encode(), new.encode()))


def test_a_page_without_end_is_refused() -> None:
    data = document(chat_rows()).replace(f"\n--{BOUNDARY}\nContent-Type:image".encode(), b"\n")
    data = data.replace(f"\n--{BOUNDARY}--".encode(), f"x--{BOUNDARY}--".encode())
    with pytest.raises(ImportFileError, match="网页没有结束"):
        read(data)


def test_a_row_that_never_ends_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mht, "ROW_LIMIT", 10_000)
    long = row("甲(10010)", "9:00:00", "长" * 900_000)
    found = read(chat_rows() + date("2021-03-07") + long + row("甲(10010)", "9:00:01", "后"))
    assert [one.reason[:6] for one in found if isinstance(one, Unreadable)] == ["这一行太长，"]
    assert [text_of(one) for one in messages(found)] == ["后"]


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(count: int) -> int:
        rows = "".join(
            row("甲(10010)", f"9:{n // 60 % 60:02}:{n % 60:02}", "好") for n in range(count)
        )
        file = BytesIO(document(chat_rows() + date("2021-03-07") + rows))
        tracemalloc.start()
        total = sum(isinstance(one, FoundMessage) for one in QqMht().read(file, SHANGHAI))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == count
        return top

    assert peak(9_000) < peak(3_000) + 400_000


line = st.text(st.characters(exclude_characters="\r\n\xa0", exclude_categories=["Cs"]), max_size=20)
tricky = st.sampled_from(
    [
        *("</tr>", "</div></td></tr>", f"--{BOUNDARY}", "日期: 2030-01-01", "消息对象:别人"),
        *("<br>", "&lt;", "\u2028", row("张三(12345)", "9:00:00", "假的")),
    ]
)
names = line.map(clean_name).filter(lambda text: text and not text.endswith((")", ">")))


@given(st.lists(st.tuples(names, st.lists(line | tricky, max_size=4)), min_size=1, max_size=5))
def test_what_is_said_stays_said(said: list[tuple[str, list[str]]]) -> None:
    """Content is escaped: whatever it looks like, it makes no row, no speaker and no chat."""
    rows = "".join(
        row(f"{who}(1001{n})", f"9:00:{n:02}", "<br>".join(map(escape, lines)))
        for n, (who, lines) in enumerate(said)
    )
    found = read(chat_rows() + date("2021-03-07") + rows)
    told = messages(found)
    assert len(told) == len(found) - 1
    for n, ((_, lines), one) in enumerate(zip(said, told, strict=True)):
        assert one.user_id == f"1001{n}"
        expected = clean_text("\n".join(lines).replace("\r", "").replace("\n", ""))
        assert text_of(one).replace("\n", "") == expected


@given(st.binary(max_size=300), st.integers(0, 400))
def test_nothing_raises_anything_else(noise: bytes, at: int) -> None:
    data = document(chat_rows() + date("2021-03-07") + row("甲(10010)", "9:00:00", "一"))
    place = min(len(HEADERS) + at, len(data))
    with suppress(ImportFileError):
        assert isinstance(read(data[:place] + noise + data[place:]), list)
    rest: Any = read(data)
    assert len(messages(rest)) == 1
