"""The estimate of tokens, and texts cut to a budget of them."""

from __future__ import annotations

import timeit
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.tokens import cut_to_tokens, estimate_tokens

WRITTEN = st.lists(
    st.sampled_from([
        "今天天气很好", "。", "，", "hello ", "World", "HTTPServer", " ", "  ", "\n", "20002", "龘",
        "😀", "👨‍👩‍👧‍👦", "하늘", "さくら", "བོད་", "Привет", "（关键消息：[1,3]）",
    ])
    | st.text(max_size=4),
    max_size=25,
).map("".join)  # fmt: skip


# Counts of OpenAI's o200k_base encoding.
@pytest.mark.parametrize(
    ("text", "o200k"),
    [
        ("你好，世界", 3),
        ("#12 10:32 小明: 好的", 11),
        ("—— 2026-11-29 周日 ——", 11),
        ("今天，他，我，你，大家，", 7),
        ("哈哈哈哈哈哈哈哈", 4),
        ("𠮷野家", 6),
        ("😀", 1),
        ("👨‍👩‍👧‍👦", 11),
        ("🇨🇳🇯🇵", 8),
        ("👍🏽❤️1️⃣", 6),
        ("하늘이 파랗다", 7),
        ("한국어를 배우고 있습니다", 6),
        ("ﾊﾛｰ", 5),
        ("བོད་སྐད", 12),
        ("ሰላም", 6),
        ("สวัสดีครับ", 5),
        ("नमस्ते दुनिया", 5),
        ("Привет, мир!", 5),
        ("مرحبا بالعالم", 4),
        ("٣٫١٤", 4),
        ("𝓗𝓮𝓵𝓵𝓸", 14),
    ],
)
def test_it_is_an_upper_bound_and_not_a_wild_one(text: str, o200k: int) -> None:
    estimate = estimate_tokens(text)
    assert estimate >= o200k
    assert estimate <= 3 * o200k + 2


def test_weights_of_the_classes() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("今" * 100) == 71  # 100 × 0.70 and one run
    assert estimate_tokens("word " * 100) == 101  # a blank belongs to the word behind it
    assert estimate_tokens("a1b2") == 5
    assert estimate_tokens("20002") == 3


@given(st.characters(exclude_categories=["Cs"]))
def test_every_character_costs_something_but_no_more_than_its_bytes(char: str) -> None:
    assert 1 <= estimate_tokens(char) <= len(char.encode()) + 1


def test_lone_surrogates_cost_too() -> None:
    assert estimate_tokens("\ud800" * 10) == 30


@given(WRITTEN, WRITTEN)
def test_more_text_never_costs_less_and_a_whole_no_more_than_its_parts(a: str, b: str) -> None:
    apart = estimate_tokens(a) + estimate_tokens(b)
    whole = estimate_tokens(a + b)
    assert max(estimate_tokens(a), estimate_tokens(b)) <= whole
    assert estimate_tokens(f"{a}\n{b}") <= apart + 1
    if not (is_letter(a[-1:]) and is_letter(b[:1])):
        assert whole <= apart


def is_letter(char: str) -> bool:
    return char.isascii() and char.isalpha()


def test_a_key_costs_more_than_the_words_that_it_could_be_cut_into() -> None:
    assert estimate_tokens("A" * 14) > estimate_tokens("A" * 4) + estimate_tokens("A" * 10)


@given(WRITTEN, st.integers(min_value=-1, max_value=40))
def test_a_cut_fits_and_is_a_beginning(text: str, budget: int) -> None:
    cut = cut_to_tokens(text, budget)
    assert estimate_tokens(cut) <= max(budget, 0)
    assert text.startswith(cut)
    if estimate_tokens(text) <= budget:
        assert cut == text


@given(st.sampled_from("今龘한😀བ아aé\u0301"), st.integers(min_value=1, max_value=200))
def test_a_cut_uses_the_budget_in_any_script(char: str, budget: int) -> None:
    text = f"{char}x" * 5000 if unicodedata.combining(char) else char * 5000
    assert estimate_tokens(cut_to_tokens(text, budget)) > budget - 5


@pytest.mark.parametrize(
    ("text", "budget", "cut"),
    [
        ("今天很好。明天也很好", 8, "今天很好。"),
        ("今天很好。明天也很好", 100, "今天很好。明天也很好"),
        ("今天很好。明天也很好", 0, ""),
        ("今天很好", -5, ""),
    ],
)
def test_where_a_cut_falls(text: str, budget: int, cut: str) -> None:
    assert cut_to_tokens(text, budget) == cut


def test_it_is_fast() -> None:
    text = ("今天Alice说：3.14，对吧？😂" * 6)[:100]
    assert min(timeit.repeat(lambda: estimate_tokens(text), number=100, repeat=5)) < 0.02
    huge = text * 10_000
    assert timeit.timeit(lambda: cut_to_tokens(huge, 800), number=1) < 1
