"""Markdown files keep any text, and take nothing in a text for structure."""

from __future__ import annotations

import re
from typing import Any
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.vault import (
    Block,
    Complaint,
    block,
    digest,
    escape,
    file_name,
    front_matter,
    heading,
    read,
    unescape,
)
from plugins.nonebot_plugin_nianlun.memory.vault_pages import OURS, files, rows_of

PIECES = st.one_of(
    st.sampled_from(
        [
            "## 23:59",
            "---",
            "[[",
            "]]",
            "|",
            "<!-- nianlun: {} -->",
            "```",
            "\\",
            "&#10;",
            "\n",
            "[[preferences:tea]]",
            "\r\n",
            "\u2028",
            " ",
            "#",
            "\t",
            "\u202e",
            "\x00",
            "&amp;",
        ]
    ),
    st.text(max_size=6),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@given(TEXTS)
def test_a_text_comes_back(text: str) -> None:
    assert unescape(escape(text)) == text


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_blocks_come_back_as_they_were(blocks: list[tuple[str, str]]) -> None:
    pages = {"preferences:tea": "wiki/preferences"}
    written = front_matter({"chat": "group:1", "list": ["---", "\u2028"]}) + "".join(
        f"\n{block(heading(title, 2), text, {'n': number, 'x': text}, pages)}"
        for number, (title, text) in enumerate(blocks)
    )
    for file in (written, written.replace("\n", "\r\n"), f"\ufeff{written}"):
        found = list(read(file))
        assert [(one.text, one.data) for one in found if isinstance(one, Block)] == [
            (text, {"n": number, "x": text}) for number, (_, text) in enumerate(blocks)
        ]
        assert len(found) == len(blocks)


def test_a_link_leads_to_the_file_of_the_fact_and_is_read_back() -> None:
    pages = {"preferences:tea": "wiki/preferences"}
    text = "喝 [[preferences:tea]]，不喝 [[preferences:milk]]"
    written = block("## coffee", text, {}, pages)
    assert "[[wiki/preferences#tea|preferences:tea]]" in written
    assert "\\[[preferences:milk]]" in written
    (found,) = read(written)
    assert isinstance(found, Block)
    assert found.text == text


def test_what_was_written_by_hand() -> None:
    text = '## 14:30\n改过的话\n<!-- nianlun: {"n":1} -->\n\n## 没有标记\n别的\n\n随手写的\n'
    found = list(read(text))
    assert found[0] == Block(1, "改过的话", {"n": 1})
    assert [one.line for one in found[1:] if isinstance(one, Complaint)] == [5]
    assert list(read("---\nchat: x\n---\n")) == []
    (odd,) = read("# 题\n\n话\n\n<!-- nianlun: {坏} -->\n")
    assert isinstance(odd, Complaint)


@given(st.text(max_size=80))
def test_names_are_safe_on_every_system(text: str) -> None:
    name = file_name(text)
    assert re.fullmatch(r"[\w -]+", name)
    assert name == unicodedata.normalize("NFC", name).casefold() == name.strip()
    assert OURS.fullmatch(f"wiki/{name}.md")


@pytest.mark.parametrize(
    "texts",
    [
        ["喜好", "喜\u0000好"],
        ["tea", "Tea", "TEA", "tea ", "te\u0301a", "t\u00e9a"],
        ["../../etc/passwd", "..", ".", "", "/", "a/b", "a\\b", "a:b"],
        ["con", "CON", "nul", "com1", "com\u00b9", "lpt0", "aux."],
        ["x" * 41, "x" * 200, "x" * 40],
        ["a", file_name("A"), file_name(file_name("A"))],
    ],
)
def test_names_of_different_texts_differ(texts: list[str]) -> None:
    names = [file_name(text) for text in texts]
    assert len({name.casefold() for name in names}) == len(texts)
    reserved = {"con", "nul", "com1", "com\u00b9", "lpt0", "aux"}
    assert not reserved & {name.casefold() for name in names}


HEADER = {
    "type": "header",
    "format": "nianlun",
    "version": 1,
    "chat": "group:123",
    "self_id": "10001",
    "timezone": "Asia/Shanghai",
    "exported_at": "2026-11-29T09:30:00Z",
}
MOMENT = {
    "type": "activity",
    "id": 3,
    "date": "2026-11-29",
    "text": "## 23:59\n是他写的",
    "time": "2026-11-29T06:30:00Z",
    "versions": [{"version": 1, "text": "旧"}],
}
DAY = {
    "type": "day",
    "date": "2026-11-29",
    "text": "爬山",
    "sources": [3],
    "versions": [],
}
MONTH = {
    "type": "month",
    "date": "2026-11",
    "text": "秋天",
    "sources": ["2026-11-29"],
    "versions": [],
}
FACT = {
    "type": "fact",
    "owner": "20002",
    "category": "preferences",
    "name": "coffee",
    "text": "不喝",
    "written_at": "2026-11-29T06:30:00Z",
    "journal": [],
}
NOTE = FACT | {"owner": None, "name": None, "category": "../备忘", "text": "带伞"}


def test_the_shapes_of_the_files() -> None:
    rows = [HEADER, MOMENT, DAY, MONTH, NOTE, FACT]
    made = files(rows)
    assert made["diary/2026-11-29.md"] == (
        '---\nchat: "group:123"\ndate: "2026-11-29"\nmonth: "[[months/2026-11]]"\n---\n'
        "\n# 2026-11-29（周日）\n\n爬山\n\n"
        '<!-- nianlun: {"type":"day","date":"2026-11-29","sources":[3],'
        f'"digest":"{digest("爬山")}"}} -->\n'
        "\n## 14:30\n\n\\## 23:59\n是他写的\n\n"
        '<!-- nianlun: {"type":"activity","id":3,"date":"2026-11-29",'
        f'"time":"2026-11-29T06:30:00Z","digest":"{digest(str(MOMENT["text"]))}"}} -->\n'
    )
    assert 'days:\n  - "[[diary/2026-11-29]]"\n' in made["months/2026-11.md"]
    assert "\n## coffee\n\n不喝\n" in made["wiki/preferences.md"]
    (other,) = [name for name in made if name.startswith("wiki/") and "preferences" not in name]
    assert "\n## 2026-11-29 06:30:00 | ../备忘\n\n带伞\n" in made[other]
    assert all(OURS.fullmatch(name) for name in made)
    placed, complaints = rows_of(made.items())
    assert complaints == []
    assert [one.row for one in placed] == rows
    moment = placed[1]
    assert made[moment.file].split("\n")[moment.line - 1] == "## 14:30"


def test_what_has_no_text_is_on_no_page() -> None:
    deleted = MOMENT | {"id": 2, "date": "2026-11-28", "text": "", "time": "2026-11-28T14:12:00Z"}
    waiting = DAY | {"date": "2026-11-28", "text": "", "sources": [2]}
    month = MONTH | {"sources": ["2026-11-28", "2026-11-29"]}
    erased = FACT | {"category": "secret", "text": ""}
    rows = [HEADER, deleted, MOMENT, waiting, DAY, month, FACT, erased]
    made = files([*rows, {"type": "end"}])
    assert sorted(name for name in made if name.endswith(".md")) == [
        DIARY, "months/2026-11.md", "wiki/preferences.md",
    ]  # fmt: skip
    assert "2026-11-28]]" not in made["months/2026-11.md"]
    placed, complaints = rows_of(made.items())
    assert ([one.row for one in placed[:-1]], complaints) == (rows, [])
    end = placed[-1].row
    assert end["pages"] == {DIARY: 2, "months/2026-11.md": 1, "wiki/preferences.md": 1}
    assert (end["records"], end["history"]) == (4, 2)
    # As a vault may have it that was written before.
    data = {key: value for key, value in deleted.items() if key not in ("text", "versions")}
    page = f"# 2026-11-28（周六）\n\n{block('## 22:12', '', data | {'digest': digest('')}, {})}"
    placed, complaints = rows_of([*files([HEADER]).items(), ("diary/2026-11-28.md", page)])
    assert ([one.row for one in placed], complaints) == ([HEADER, deleted | {"versions": []}], [])


def test_lines_that_are_no_objects_are_told() -> None:
    placed, complaints = rows_of(
        [("nianlun.jsonl", '{"type":"header"}\n[]\n{\n'), ("wiki/a.md", "话\n")]
    )
    assert [one.row for one in placed] == [{"type": "header"}]
    assert [(file, one.line) for file, one in complaints] == [
        ("nianlun.jsonl", 2),
        ("nianlun.jsonl", 3),
        ("wiki/a.md", 1),
    ]


def test_a_tag_and_a_blank_behind_the_fence_are_not_structure() -> None:
    """Obsidian's tags begin with the sign of a heading, and editors leave blanks behind."""
    page = (
        '--- \ndate: x\n---\t\n\n## 09:00\n\n早上\n#旅行 去了海边\n\n<!-- nianlun: {"id":1} -->\n'
    )
    assert list(read(page)) == [Block(5, "早上\n#旅行 去了海边", {"id": 1})]


def page(*rows: dict[str, Any]) -> dict[str, str]:
    return files([HEADER, *rows])


def edited(made: dict[str, str], name: str, old: str, new: str) -> tuple[list[Any], list[Any]]:
    assert made[name].count(old) == 1
    placed, complaints = rows_of((made | {name: made[name].replace(old, new)}).items())
    return [one.row for one in placed], complaints


DIARY = "diary/2026-11-29.md"


@pytest.mark.parametrize("typed", ["## 午后", "# 午后", "###### 午后", "## 14:30", "## "])
@pytest.mark.parametrize("where", ["{0}\n\n{1}", "{1}\n{0}", "{1}\n\n{0}\n{0}\n\n{1}"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_heading_that_somebody_types_is_text(typed: str, where: str, ends: str) -> None:
    new = where.format(typed, "说了很多")
    moment = MOMENT | {"text": "原来的话"}
    other = MOMENT | {"id": 4, "text": "后面的", "time": "2026-11-29T07:00:00Z"}
    made = page(moment, other, DAY, FACT)
    made = {name: text.replace("\n", ends) for name, text in made.items()}
    for name, old, row in (
        (DIARY, "原来的话", moment),
        (DIARY, "爬山", DAY),
        ("wiki/preferences.md", "不喝", FACT),
    ):
        rows, complaints = edited(made, name, old, new.replace("\n", ends))
        assert complaints == []
        if row is DAY and typed == "## 14:30" and where.endswith("{1}"):
            continue  # it may be the moment's heading as well
        found = next(one for one in rows if one["type"] == row["type"] and "exported" in one)
        assert found["text"] == new
        assert found["exported"] == digest(row["text"])
        assert [one.get("exported") for one in rows].count(None) == len(rows) - 1


def test_what_is_written_between_our_texts_is_told() -> None:
    made = page(MOMENT | {"text": "原来的话"}, DAY)
    mine = "## 我的想法\n\n不给机器人看\n\n## 14:30\n"
    rows, complaints = edited(made, DIARY, "## 14:30\n", mine)
    assert [one.get("exported") for one in rows] == [None] * 3
    ((name, complaint),) = complaints
    assert name == DIARY
    assert made[DIARY].split("\n")[complaint.line - 1] == "## 14:30"
    rows, complaints = edited(made, DIARY, "## 14:30\n", "随手写的\n\n## 下午\n")
    assert [row["text"] for row in rows[1:]] == ["原来的话", "爬山"]
    assert len(complaints) == 1
    rows, complaints = edited(made, DIARY, "## 14:30\n", "")
    assert [row["text"].strip() for row in rows[1:]] == ["原来的话", "爬山"]
    assert complaints == []


def test_who_owns_a_fact_is_no_part_of_it() -> None:
    rows, complaints = edited(page(FACT), "wiki/preferences.md", "## coffee", "## 咖啡")
    assert (rows, complaints) == ([HEADER, FACT], [])


@given(st.lists(st.sampled_from(["## a", "# b", "话", "", "## 14:30", "\\## c"]), max_size=6))
def test_no_line_of_a_page_is_lost(typed: list[str]) -> None:
    """Whatever is typed in the text, it is in it, or it is told."""
    made = page(MOMENT | {"text": "原来的话"})
    rows, complaints = edited(made, DIARY, "原来的话", "\n".join(["开头", *typed, "结尾"]))
    assert complaints == []
    assert rows[-1]["text"] == "\n".join(["开头", *map(unescape, typed), "结尾"])


@pytest.mark.parametrize("depth", [100, 400, 900, 1100, 5000])
def test_brackets_without_end_are_told(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    made = page(MOMENT, FACT)
    for name, old, new in (
        (DIARY, '"id":3', f'"id":{deep}'),
        (DIARY, '"2026-11-29T06:30:00Z"', deep),
        ("wiki/preferences.md", '"owner":"20002"', f'"owner":{deep}'),
        ("wiki/preferences.md", '"preferences","name":"coffee"', f'{deep},"name":{deep}'),
        ("nianlun.jsonl", '"Asia/Shanghai"', deep),
        ("history.jsonl", '"of": 3', f'"of": {deep}'),
    ):
        rows, complaints = edited(made, name, old, new)
        assert rows
        assert len(complaints) <= 2
