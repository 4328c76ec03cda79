"""Text files of qq-chat-exporter."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
import tracemalloc
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.cleaning import clean_name, clean_text
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.found import Found, FoundChat, FoundMessage, Unreadable
from plugins.nonebot_plugin_nianlun.imports.qce_text import QceText

SAMPLE = Path(__file__).parents[1] / "fixtures" / "exports" / "qce_v6_text.txt"
SHANGHAI = ZoneInfo("Asia/Shanghai")
RULE = "=" * 47


def document(*blocks: str, total: int | None = None, kind: str = "群聊") -> str:
    count = len(blocks) if total is None else total
    head = f"[QQChatExporter V5 / x]\n[y]\n\n{RULE}\n  QQ聊天记录导出文件\n{RULE}\n\n"
    above = f"聊天名称: 群\n聊天类型: {kind}\n消息总数: {count}\n\n\n"
    foot = f"\n{RULE}\n              导出完成\n{RULE}\n总计导出 {count} 条消息\n导出时间: x"
    return head + above + "\n\n\n".join(blocks) + "\n" + foot


def block(who: str, time: str, *lines: str) -> str:
    return "\n".join([f"{who}:", f"时间: 2026-03-07 {time}", *lines])


def read(data: str | bytes) -> list[Found]:
    data = data if isinstance(data, bytes) else data.encode()
    assert QceText().recognises(data)
    return list(QceText().read(BytesIO(data), SHANGHAI))


def messages(found: list[Found]) -> list[FoundMessage]:
    return [one for one in found if isinstance(one, FoundMessage)]


def text_of(message: FoundMessage) -> str:
    return readable(message.segments, lambda _: None)


def test_the_sample() -> None:
    found = read(SAMPLE.read_bytes())
    assert found[0] == FoundChat("group", "摸鱼研究所①群")
    assert [(one.line, one.name, text_of(one)) for one in messages(found)] == [
        (16, "阿澈", "明天下午三点开会"),
        (21, "鹿老师", "[图片]"),
    ]
    assert len(found) == 3
    assert f"{messages(found)[1].time.astimezone(SHANGHAI):%F %T}" == "2026-03-08 00:00:03"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["内容: 好"], "好"),
        (["内容: 一\n\n二\n\n\n三"], "一\n\n二\n\n\n三"),
        (["内容: [无文本内容]"], ""),
        ([], ""),
        (["内容: [图片:a.jpg]", "资源: 1 个文件", "  - image: a.jpg"], "[图片]"),
        (
            [
                "内容: 看[图片: a.jpg][语音 7秒]",
                "资源: 2 个文件",
                "  - image: a.jpg",
                "  - audio: b",
            ],
            '看[图片][语音 7"]',
        ),
        (
            ["内容: [文件:计划: 终.txt]", "资源: 1 个文件", "  - file: 计划: 终.txt"],
            "[文件: 计划: 终.txt]",
        ),
        (["内容: [回复 小鹿: 早 - 安]\n好", "回复: 小鹿 - 早 - 安"], "好"),
        (["内容: [回复 小鹿: 早\n安]", "回复: 小鹿 - 早\n安"], ""),
        (["内容: [回复 小鹿: 早]好", "回复: 不是 - 这句"], "[回复 小鹿: 早]好\n回复: 不是 - 这句"),
        (["内容: [转发消息: 2条]\n  甲: 一\n  乙: 二"], "[聊天记录]\n  甲: 一\n  乙: 二"),
        (["内容: 资源: 2 个文件", "  - 苹果"], "资源: 2 个文件\n  - 苹果"),
        (["内容: 买\n资源: 2 个文件", "  - 苹果"], "买\n资源: 2 个文件\n  - 苹果"),
        (["内容: @小鹿 早", "提及: 小鹿"], "@小鹿 早"),
        (["内容: 请看\n提及: 小鹿"], "请看\n提及: 小鹿"),
        (["内容: [回复消息]好", "回复: 03-07 08:00 小鹿 - 早\n第二行"], "好"),
        (["内容: 他说\n回复: 小鹿 - 早"], "他说\n回复: 小鹿 - 早"),
        (
            [
                "内容: [回复消息]@甲 好[图片:a]",
                "资源: 1 个文件",
                "  - image: a",
                "提及: 甲",
                "回复: 甲 - 早",
            ],
            "@甲 好[图片]",
        ),
    ],
)
def test_what_was_said(lines: list[str], text: str) -> None:
    found = read(document(block("甲", "08:00:00", *lines), block("乙", "08:00:01", "内容: 后")))
    assert [text_of(one) for one in messages(found)] == [text, "后"]
    assert len(found) == 3


@pytest.mark.parametrize(
    ("who", "name"),
    [
        ("[歌神] 鹿老师", "鹿老师"),
        ("[歌神]鹿老师", "[歌神]鹿老师"),
        ("甲: 乙", "甲: 乙"),
        ("[x] ", "[x]"),
    ],
)
def test_who_said_it(who: str, name: str) -> None:
    (said,) = messages(read(document(block(who, "08:00:00", "内容: 好"))))
    assert (said.user_id, said.name) == (None, name)


def test_what_nobody_said() -> None:
    lines = block("系统消息", "08:00:00", "内容: 乙加入了群聊"), block("甲", "08:00:01", "内容: 好")
    assert [one.system for one in messages(read(document(*lines)))] == [True, False]


def test_a_private_chat() -> None:
    found = read(document(block("甲", "08:00:00", "内容: 好"), kind="私聊"))
    assert found[0] == FoundChat("private", "群")
    with pytest.raises(ImportFileError, match="聊天类型"):
        read(document(block("甲", "08:00:00", "内容: 好"), kind="未知类型"))


@pytest.mark.parametrize(
    "quoted",
    [
        block("张三", "07:00:00", "内容: 假的"),
        block("张三", "25:00:00", "内容: 假的"),
        f"\n{block('张三', '09:00:00', '内容: 一个空行')}".removeprefix("\n"),
        "张三:\n内容: 没有时间",
        f"{RULE}\n  导出完成\n{RULE}\n总计导出 9 条消息\n导出时间: x",
    ],
)
def test_content_that_looks_like_a_message(quoted: str) -> None:
    blanks = "\n\n" if "一个空行" in quoted else "\n\n\n"
    found = read(
        document(block("甲", "08:00:00", f"内容: 看{blanks}{quoted}"), block("乙", "08:00:01"))
    )
    assert [one.name for one in messages(found)] == ["甲", "乙"]
    assert text_of(messages(found)[0]) == f"看{blanks}{quoted}"
    assert len(found) == 3


def test_what_cannot_be_told_from_a_message_is_told_by_the_count() -> None:
    fake = block("张三", "08:00:00", "内容: 假的")
    found = read(document(block("甲", "08:00:00", f"内容: 看\n\n\n{fake}"), total=1))
    assert isinstance(found[-1], Unreadable)
    assert "文件说有 1 条消息，读出来 2 条" in found[-1].reason


@pytest.mark.parametrize("tail", ["", "\n", "\r\n\r\n"])
def test_the_end_may_be_followed_by_blank_lines(tail: str) -> None:
    assert len(messages(read(document(block("甲", "08:00:00", "内容: 好")) + tail))) == 1


@pytest.mark.parametrize("cut", [20, 60, 200])
def test_a_file_without_its_end_is_refused(cut: int) -> None:
    with pytest.raises(ImportFileError, match=r"导出完成|中间断了"):
        read(document(block("甲", "08:00:00", "内容: 好" * 50)).encode()[:-cut])


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(count: int) -> int:
        when = datetime(2026, 3, 7)  # noqa: DTZ001
        blocks = [
            block("甲", f"{when + timedelta(seconds=n):%T}", "内容: 好") for n in range(count)
        ]
        file = BytesIO(document(*blocks).encode())
        tracemalloc.start()
        total = sum(isinstance(one, FoundMessage) for one in QceText().read(file, SHANGHAI))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == count
        return top

    assert peak(8_000) < peak(1_000) + 200_000


line = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
tricky = st.sampled_from(
    [
        "",
        "",
        "张三:",
        "时间: 2020-01-01 08:00:00",
        "内容: 假的",
        RULE,
        "  导出完成",
        "聊天类型: 私聊",
    ]
)
names = line.map(clean_name).filter(lambda text: text and not text.startswith("["))
said = st.tuples(
    st.integers(0, 9), names, line.filter(str.strip), st.lists(line | tricky, max_size=6)
)


@given(st.lists(said, min_size=1, max_size=5))
def test_what_is_written_is_read(parts: list[tuple[int, str, str, list[str]]]) -> None:
    """The exporter trims what was said; nothing of it makes a speaker of whoever is quoted."""
    when = datetime(2026, 3, 7, 8)  # noqa: DTZ001
    blocks: list[str] = []
    expected: list[tuple[str, str]] = []
    for step, who, first, lines in parts:
        when += timedelta(seconds=step)
        text = "\n".join([first, *lines]).strip()
        blocks.append(block(who, f"{when:%T}", f"内容: {text}"))
        expected.append((who, clean_text(text)))
    assert [(one.name, text_of(one)) for one in messages(read(document(*blocks)))] == expected


@given(st.binary(max_size=200), st.booleans())
def test_nothing_raises_anything_else(noise: bytes, inside: bool) -> None:
    data = document(block("甲", "08:00:00", "内容: 好")).encode()
    place = len(data) // 2 if inside else len(data)
    with suppress(ImportFileError):
        assert isinstance(list(QceText().read(BytesIO(data[:place] + noise), SHANGHAI)), list)
    with suppress(ImportFileError):
        assert isinstance(read(data[:place] + noise + data[place:]), list)
