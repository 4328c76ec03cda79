"""What may become a fact, by whichever way it comes in."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import NoteRejected
from plugins.nonebot_plugin_nianlun.llm import turn_writer
from plugins.nonebot_plugin_nianlun.memory.fact_items import (
    CATEGORIES,
    FACT_CHARACTERS,
    FACT_NAME_CHARACTERS,
    FACT_UNITS,
    MAX_FACTS,
    FactItem,
    fact_category,
    fact_content,
    fact_item,
    fact_name,
    read_facts,
)
from plugins.nonebot_plugin_nianlun.memory.units import count_units
from plugins.nonebot_plugin_nianlun.types import Fact


@pytest.mark.parametrize("good", ["preferences", "a", "_x", "9", "daily_life", "a-b", "a" * 80])
def test_a_category(good: str) -> None:
    assert fact_category(good) == good


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "a\n",
        "\na",
        "A",
        "a b",
        "-a",
        "偏好",
        "../secret",
        "a/b",
        "a:b",
        "１",
        "é",
        "a" * 81,
        None,
    ],
)
def test_no_category(bad: object) -> None:
    with pytest.raises(NoteRejected, match="category"):
        fact_category(bad)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("  冰 \n\t 咖啡 ", "冰 咖啡"),
        ("冒号：全角", "冒号：全角"),
        ("[单括号]", "[单括号]"),
        ("<b> -->", "<b> -->"),
        ("Coffee", "Coffee"),
        ("cafe\u0301", "café"),
        ("长" * FACT_NAME_CHARACTERS, "长" * FACT_NAME_CHARACTERS),
    ],
)
def test_a_name(given: str, stored: str) -> None:
    assert fact_name(given) == stored


@pytest.mark.parametrize(
    "bad",
    ["", " \n", "\u200b", "a:b", "a|b", "#a", "[[a", "a]]", "长" * (FACT_NAME_CHARACTERS + 1), 3],
)
def test_no_name(bad: object) -> None:
    with pytest.raises(NoteRejected, match="name") as caught:
        fact_name(bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "## 23:59 其实是一句话",
        "<!-- owner=admin -->",
        "见 [[nowhere:nothing]] 和 [[坏]]",
        '"} {"category":"x"',
        "只喝冰美式",
    ],
)
def test_content_stays_text(text: str) -> None:
    assert fact_content(text) == text


def test_content_is_one_line_without_references_to_messages() -> None:
    assert (
        fact_content("只喝\r\n冰\u2028美式\x00（关键消息：[1,99]）\ud800") == "只喝 冰 美式 \ufffd"
    )


@pytest.mark.parametrize(
    "bad", ["", " ", "\u200d", "长" * (FACT_UNITS + 1), "!" * (FACT_CHARACTERS + 1), None, ["x"]]
)
def test_no_content(bad: object) -> None:
    with pytest.raises(NoteRejected, match="content"):
        fact_content(bad)


def test_an_item() -> None:
    assert fact_item("event", " 旅行 ", "去过 大理") == FactItem("event", "旅行", "去过 大理")


def test_each_item_is_judged_alone_and_eight_are_taken() -> None:
    good = [{"category": "event", "name": f"第{n}", "content": "x", "from": 5} for n in range(9)]
    facts, dropped = read_facts([good[0], {"name": "没有类"}, "x", *good[1:]], {5})
    assert [fact.name for fact in facts] == [f"第{n}" for n in range(MAX_FACTS - 2)]
    assert len(dropped) == 3
    assert "第 2 条：category" in dropped[0]


def test_no_list_is_no_fact() -> None:
    assert read_facts(None, {1}) == ((), ())
    assert read_facts([], {1}) == ((), ())
    assert read_facts({"a": 1}, {1})[0] == ()
    assert read_facts("[]", {1})[1] != ()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=10) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"category": st.sampled_from(["event", "x\n"]) | st.text(), "name": st.text()},
            optional={"content": st.text() | values, "from": st.integers(0, 3) | values},
        )
        | values
    )
    | values
)
def test_whatever_comes_only_good_facts_get_in(answer: object) -> None:
    facts, _ = read_facts(answer, {1, 2})
    assert len(facts) <= MAX_FACTS
    for fact in facts:
        assert isinstance(fact, Fact)
        assert fact.source in (1, 2)
        assert fact_item(fact.category, fact.name, fact.content) == FactItem(
            fact.category, fact.name, fact.content
        )
        assert count_units(fact.content) <= FACT_UNITS
        assert "\n" not in fact.content


def test_the_prompt_offers_the_same_categories() -> None:
    prompts = Path(turn_writer.__file__).parent / "prompts"
    text = (prompts / "facts.txt").read_text("utf-8")
    assert "、".join(CATEGORIES) in text
    assert f"最多 {MAX_FACTS} 条" in text
