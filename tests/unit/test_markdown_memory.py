"""Memories as a Markdown file: nothing is lost on the way, and content stays content."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.markdown_memory import (
    Complaint,
    MarkdownEntry,
    parse,
    render,
)

NOON = datetime(2025, 1, 15, 12)  # noqa: DTZ001
HEADING = "## 2025-01-15 12:00:00 | 项目"


def entry(content: str, category: str = "项目") -> MarkdownEntry:
    return MarkdownEntry(NOON, category, content)


def read(text: str) -> list[tuple[str, str, str]]:
    entries, complaints = parse(text)
    assert complaints == []
    return [(str(e.time), e.category, e.content) for e in entries]


def test_a_file_as_people_write_it() -> None:
    text = (
        "## 2025-01-15 14:30:00 | 用户偏好\n用户喜欢简洁的回答风格\n\n"
        "## 2025-01-15 15:00:00 | 项目信息  \n用户在做 Python 电商项目\n"
    )
    assert read(text) == [
        ("2025-01-15 14:30:00", "用户偏好", "用户喜欢简洁的回答风格"),
        ("2025-01-15 15:00:00", "项目信息", "用户在做 Python 电商项目"),
    ]
    assert render(parse(text)[0]) == text.replace("  \n", "\n")


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("两行\n\n中间空一行", "两行\n\n中间空一行"),
        ("## 小标题\n### 2025 年\n# 3.14", "## 小标题\n### 2025 年\n# 3.14"),
        ("```\n## 2025-01-15 12:00:00 | 假\n```", "```\n\\## 2025-01-15 12:00:00 | 假\n```"),
        ("#2025/1/5｜假", "\\#2025/1/5｜假"),
        ("\\## 2025-01-15", "\\\\## 2025-01-15"),
        ("\\# 别的", "\\# 别的"),
        ("好\n## 2025-99-99", "好\n\\## 2025-99-99"),
        (" ## 2025-01-15 12:00:00 | 假", " ## 2025-01-15 12:00:00 | 假"),
        ("行尾  \n\t缩进", "行尾  \n\t缩进"),
        ("\n首尾空行\n \n", "\\\n首尾空行\n \n\\"),
        ("\n", "\\\n\\"),
        ("  ", "\\  "),
        ("\\", "\\\\"),
        ("中\n\\\n间", "中\n\\\n间"),
        ("C:\\readme &amp; &lt;b&gt; &#39;", "C:\\readme &amp; &lt;b&gt; &#39;"),
        ("甲\r\n乙\r丙", "甲&#13;\n乙&#13;丙"),
        ("&#13; &amp;#13;", "&amp;#13; &amp;amp;#13;"),
        ("\x00\ud800", "&#0;&#55296;"),
        ("甲\u2028## 2025-01-15 12:00:00 | 假", "甲\u2028## 2025-01-15 12:00:00 | 假"),
        ("\ufeff首", "\ufeff首"),
    ],
)
def test_how_a_content_is_written(content: str, written: str) -> None:
    text = render([entry(content)])
    assert text == f"{HEADING}\n{written}\n"
    assert parse(text) == ([entry(content)], [])


@pytest.mark.parametrize(
    ("category", "written"),
    [
        ("a|b ｜ c", " | a|b ｜ c"),
        ("", " |"),
        (" 前后 ", " | &#32;前后&#32;"),
        ("\u3000", " | &#12288;"),
        ("两\n行\r", " | 两&#10;行&#13;"),
        ("# 题", " | # 题"),
        ("\u2028", " | \u2028"),
    ],
)
def test_how_a_category_is_written(category: str, written: str) -> None:
    text = render([entry("x", category)])
    assert text == f"## 2025-01-15 12:00:00{written}\nx\n"
    assert parse(text) == ([entry("x", category)], [])


def test_entries_of_one_second_and_of_no_content_are_all_kept() -> None:
    entries = [entry("一"), entry("一"), entry(""), entry("二")]
    assert parse(render(entries)) == (entries, [])
    assert render([]) == ""
    assert parse("") == ([], [])


def test_a_time_is_what_a_heading_can_say() -> None:
    with pytest.raises(ValueError, match="whole seconds"):
        MarkdownEntry(NOON.replace(microsecond=1), "", "")
    with pytest.raises(ValueError, match="no time zone"):
        MarkdownEntry(NOON.replace(tzinfo=UTC), "", "")
    early = MarkdownEntry(NOON.replace(year=7), "", "")
    assert parse(render([early])) == ([early], [])


@pytest.mark.parametrize(
    "heading",
    [
        "## 2025-01-15 12:00 | 项目", "##2025-1-15 12:00:00|项目", "# 2025/01/15 12:00｜项目",
        "## 2025年1月15日 12：00 |　项目", "###### 2025.1.15 12:00:00\t|\t项目 ",
        "## 2025-01-15T12:00 | 项目",
    ],
)  # fmt: skip
def test_headings_as_people_type_them(heading: str) -> None:
    assert read(f"{heading}\n\n\n内容\n\n\n") == [("2025-01-15 12:00:00", "项目", "内容")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_files_of_other_systems(end: str) -> None:
    text = "\ufeff" + render([entry("一\n二"), entry("三")]).replace("\n", end)
    assert parse(text) == ([entry("一\n二"), entry("三")], [])


def test_complaints_name_the_line() -> None:
    text = (
        "# 小鹿的记忆\n\n## 2025-01-15\n没有时刻\n## 2025-02-30 12:00:00 | 假期\n正文\n"
        "## 2025-01-16 09:00 没有竖线\n## 2025-01-16 09:00\n\\## 2025-01-15 是正文\n"
    )
    entries, complaints = parse(text)
    assert [(str(e.time), e.category, e.content) for e in entries] == [
        (
            "2025-01-15 00:00:00",
            "",
            "没有时刻\n## 2025-02-30 12:00:00 | 假期\n正文\n## 2025-01-16 09:00 没有竖线",
        ),
        ("2025-01-16 09:00:00", "", "## 2025-01-15 是正文"),
    ]
    assert complaints == [
        Complaint(1, "在第一条记忆之前，没有读入"),
        Complaint(3, "标题里没有时刻和分类"),
        Complaint(5, "像一条记忆的标题，但日期或写法不对，没有当作标题"),
        Complaint(7, "像一条记忆的标题，但日期或写法不对，没有当作标题"),
        Complaint(8, "标题里没有分类"),
    ]
    assert parse(render(entries)) == (entries, [])


PIECES = st.sampled_from([
    "\n", "\r", "\r\n", "\u2028", "\x85", "\x00", "\ud800", "\ufeff", " ", "\u3000", "\t", "\\",
    "#", "## ", "## 2025-01-15 12:00:00 | ", "#2025年1月", "2025-01-15", "|", "｜", "```",
    "&", "amp;", "#13;", "&#13;", "&amp;#10;", "&#55296;", "今天", "a",
])  # fmt: skip
HOSTILE = st.lists(PIECES | st.text(st.characters(codec=None), max_size=3), max_size=12).map(
    "".join
)
ENTRIES = st.lists(
    st.builds(
        MarkdownEntry, st.datetimes().map(lambda t: t.replace(microsecond=0)), HOSTILE, HOSTILE
    ),
    max_size=4,
)


@given(ENTRIES)
@example([MarkdownEntry(NOON, "\n", "\\\\\n\\")])
def test_whatever_is_written_is_read_back(entries: list[MarkdownEntry]) -> None:
    text = render(entries)
    text.encode()
    assert parse(text) == (entries, [])
    assert parse(text.replace("\n", "\r\n")) == (entries, [])
    assert not {"\r", "\x00"} & set(text)


@given(HOSTILE)
def test_any_file_is_read_and_what_was_read_can_be_written(text: str) -> None:
    entries, complaints = parse(text)
    assert all(complaint.line >= 1 and complaint.text for complaint in complaints)
    assert parse(render(entries))[0] == entries
