"""Terms: one word gives one term, whatever is between two words and however they are spelt."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.terms import (
    fold,
    index_terms,
    is_stop_word,
    query_terms,
)

ANY_TEXT = st.text(st.characters(), max_size=300)


def test_chinese_gives_its_pairs_and_its_longer_or_single_words() -> None:
    terms = index_terms("图书馆养猫")
    assert {"图书", "书馆", "馆养", "养猫", "图书馆"} <= set(terms)
    assert {"养", "猫"} <= set(index_terms("她养了猫"))


@pytest.mark.parametrize("text", ["我养了一只橘猫", "三花猫", "猫", "谁家的猫？"])
def test_a_kind_is_found_by_what_it_is_a_kind_of(text: str) -> None:
    assert "猫" in set(query_terms("谁养了猫")).intersection(index_terms(text))


def test_repeats_stay_and_the_order_of_words_is_kept() -> None:
    assert index_terms("red blue red") == ["red", "blue", "red"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＱＱ音乐", "qq音乐"),
        ("CAFÉ", "cafe\u0301"),
        ("running dogs", "runs dog"),
        ("she bought it", "she buys it"),
        ("1,000 元", "1000元"),
        ("ｶﾅ", "カナ"),
        ("Straße", "STRASSE"),
    ],
)
def test_spellings_of_one_word_are_one_term(one: str, other: str) -> None:
    assert index_terms(one) == index_terms(other)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("v1.0", ["v1.0"]),
        ("P95=0.35", ["p95", "0.35"]),
        ("12,5", ["12", "5"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("한국어", ["한국", "국어"]),
        ("に", ["に"]),
        ("snake_case", ["snake", "case"]),
        ("привет", ["привет"]),
        ("", []),
        ("？！…\ud800\x00\u2028", []),
    ],
)
def test_other_scripts_and_numbers(text: str, terms: list[str]) -> None:
    assert index_terms(text) == terms


def test_a_question_loses_what_any_sentence_may_hold() -> None:
    assert query_terms("我喜欢哪些菜系？") == ["喜欢", "菜系"]
    assert query_terms("What did you say about the hiking?") == ["say", "hike"]


def test_a_question_of_nothing_else_keeps_it() -> None:
    assert query_terms("what is this") == ["what", "be", "this"]
    assert query_terms("什么？") == ["什么"]
    assert query_terms("？？") == []


def test_a_pair_does_not_reach_across_a_stop_word() -> None:
    assert query_terms("猫的名字") == ["猫", "名字"]


def test_stop_words_are_looked_up_folded() -> None:
    assert is_stop_word("什么")
    assert is_stop_word(fold("THE"))
    assert not is_stop_word("猫")


@given(ANY_TEXT)
def test_any_text_gives_terms_without_blanks(text: str) -> None:
    terms = index_terms(text)
    assert all(term and not any(char.isspace() for char in term) for term in terms)
    assert all(char < "\ud800" or char > "\udfff" for term in terms for char in term)
    assert "\x00" not in "".join(terms)


@given(ANY_TEXT)
def test_a_question_asks_for_what_an_index_would_hold(text: str) -> None:
    asked = query_terms(text)
    assert len(asked) == len(set(asked)) <= 64
    assert bool(asked) == bool(index_terms(text))


@given(ANY_TEXT)
def test_a_text_is_found_by_each_of_its_words(text: str) -> None:
    # A stretch of a question is cut at stop words, so each of its terms is one of the whole text.
    pairs = {term for term in query_terms(text) if len(term) <= 2}
    assert pairs <= set(index_terms(text))


@pytest.mark.parametrize("char", ["我", "a", "\ufdfa", "あ", "1", " ", "ก", "한", "\u0301"])
def test_a_huge_text_takes_a_moment(char: str) -> None:
    began = time.perf_counter()
    assert len(index_terms(char * 1_000_000)) <= 20_000
    assert len(query_terms(char * 1_000_000)) <= 64
    assert time.perf_counter() - began < 2


def test_no_term_is_longer_than_a_word() -> None:
    assert max(map(len, index_terms("a" * 9_000 + " " + "ж" * 500))) == 40


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@小鹿🦌 吃饭去了", "吃饭去了"),
        ("看看 @【管理】老王 说的", "看看 说的"),
        ("@[管理]小王 你好", "你好"),
        ("在吗@阿川-上海-前端", "在吗"),
        ("@小鹿@阿宁 走", "走"),
        ("好笑[表情:笑哭]", "好笑"),
        ("[动画表情]", ""),
        ("[表情]", ""),
        # Those stay, as they are something that was said.
        ("写信到 a@b.com", "写信到 a b.com"),
        ("@types/node 怎么装", "types/node 怎么装"),
        ("@小鹿你上次说的那家烤肉店在哪来着", "小鹿你上次说的那家烤肉店在哪来着"),
        ("[图片]", "图片"),
    ],
)
def test_whom_it_is_sent_to_and_stickers_are_not_what_it_says(text: str, said: str) -> None:
    assert index_terms(text) == index_terms(said)


def test_an_animal_is_found_by_what_it_is_also_where_it_is_called_something() -> None:
    assert {"猫"} & set(index_terms("我家猫叫年糕")) & set(query_terms("小鹿的猫叫什么"))
    assert "狗" in query_terms("我的狗叫啥")
