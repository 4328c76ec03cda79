"""How length is counted, and where a text is cut."""

from __future__ import annotations

import timeit
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.keymarks import key_mark, key_mark_spans
from plugins.nonebot_plugin_nianlun.memory.units import (
    count_units,
    cut_before,
    cut_to_units,
    shortened,
    whole_sentences,
)

PIECES = st.sampled_from([
    "今天", "小明", "。", "！", "？”", "\n", "，", "……", "don’t", "hello world. ", "3.14", "1,000",
    "2026-11-29", "さくら", "ラーメン", "하늘", "नमस्ते", "สวัสดี", "👨‍👩‍👧‍👦", "🇨🇳🇯🇵", "👍🏽", "1️⃣",
    "cafe\u0301", "（关键消息：[1,3,5]）", "（关键消息：[2])", "（", " ", "\u200d", "𠮷",
    "葛\U000e0100",
])  # fmt: skip
MIXED = st.lists(PIECES | st.text(max_size=3), max_size=25).map("".join)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("", 0),
        ("さくら", 3),
        ("하늘", 1),
        ("don't", 1),
        ("don’t", 1),
        ("3.14", 1),
        ("Python3", 2),
        ("Python写代码很好玩", 7),
        ("2026-11-29", 3),
        ("AI助手说今天天气很好", 10),
        ("我" * 5000, 5000),
        # Han of every plane and kind, kana of every width.
        ("𠮷野家", 3),
        ("人々〇", 3),
        ("\u3400\uf900\U00030000", 3),
        ("葛\U000e0100城", 2),
        ("ラーメン", 4),
        ("ﾗｰﾒﾝ", 4),
        ("ﾊﾞﾅﾅ", 3),
        ("か\u3099", 1),
        # Words of other scripts.
        ("hello world", 2),
        ("well-known", 2),
        ("snake_case", 2),
        ("'quoted'", 1),
        ("rock'n'roll", 1),
        ("cafe\u0301 naïve", 2),
        ("한국어를 배우고", 2),
        ("\u1112\u1161\u11ab글", 1),
        ("नमस्ते दुनिया", 2),
        ("สวัสดีครับ", 1),
        ("می‌خواهم", 1),
        ("Привет, мир!", 2),
        ("ＡＢＣ１２３", 2),
        # Numbers.
        ("1,000", 1),
        ("12,345,678.9", 1),
        ("1,2,3", 3),
        ("1,2345", 2),
        ("10:32", 2),
        ("３．１４", 1),
        ("٣٫١٤", 1),
        ("①Ⅷ", 1),
        # Punctuation and emoji.
        ("，。！？…—（）《》「」~·", 0),
        ("👨‍👩‍👧‍👦👍🏽🇨🇳❤️🏴\U000e0067\U000e0062\U000e007f", 0),
        ("1️⃣#️⃣", 0),
        ("12️⃣", 1),
        ("好👍🏽的", 2),
        # References.
        ("好（关键消息：[1,3,5]）", 1),
        ("好（关键消息：[...])", 1),
        (f"（关键消息：[{'9' * 5000}]）", 0),
        ("ab（关键消息：[1]）cd", 2),
    ],
)
def test_the_unit(text: str, units: int) -> None:
    assert count_units(text) == units


def test_a_hundred_characters_take_less_than_50_microseconds() -> None:
    for text in ("今天天气很好" * 20, "hello world " * 9, "今天Alice说：3.14，对吧？😂" * 6):
        head = text[:100]
        assert min(timeit.repeat(lambda head=head: count_units(head), number=100, repeat=5)) < 0.005


@given(MIXED)
def test_composed_or_not_is_the_same_length(text: str) -> None:
    composed = unicodedata.normalize("NFC", text)
    assert count_units(composed) == count_units(unicodedata.normalize("NFD", text))


@given(MIXED, st.lists(st.integers(min_value=0, max_value=10**30), max_size=9))
def test_a_reference_never_counts(text: str, ids: list[int]) -> None:
    assert count_units(text + " " + key_mark(ids)) == count_units(text)


@given(MIXED, MIXED)
def test_a_blank_between_two_texts_adds_their_lengths(left: str, right: str) -> None:
    assert count_units(f"{left}\n{right}") == count_units(left) + count_units(right)


@given(MIXED, st.integers(min_value=-1, max_value=40))
def test_a_cut_fits_and_is_a_beginning(text: str, limit: int) -> None:
    cut = cut_to_units(text, limit)
    assert count_units(cut) <= max(limit, 0)
    assert text.startswith(cut)
    if 0 < count_units(text) <= limit:
        assert cut == text


@given(MIXED, st.integers(min_value=1, max_value=40))
def test_a_cut_never_parts_a_reference_or_a_character(text: str, limit: int) -> None:
    end = len(cut_to_units(text, limit))
    assert not any(start < end < stop for start, stop in key_mark_spans(text))
    if end < len(text):
        assert not unicodedata.category(text[end]).startswith("M")


@example("don’t\u200d今天", 1)
@example("12\u200dab", 1)
@given(MIXED, st.integers(min_value=1, max_value=40))
def test_a_cut_keeps_whole_words(text: str, limit: int) -> None:
    cut = cut_to_units(text, limit)
    rest = text[len(cut) :]
    assert count_units(cut) + count_units(rest) == count_units(text)


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("今天很好。明天也很好", 0, ""),
        ("今天很好。明天也很好", 9, "今天很好。明天也很好"),
        ("今天很好。明天也很好", 6, "今天很好。"),
        ("他说：“走吧！”然后就走了", 6, "他说：“走吧！”"),
        ("好。今天的天气真的很不错", 8, "好。今天的天气真的"),
        ("今天很好。（关键消息：[1,3]）明天也很好", 5, "今天很好。（关键消息：[1,3]）"),
        ("今天很好\n明天也很好", 5, "今天很好"),
        ("I like it. You do not", 4, "I like it."),
        ("你好（世界）真大", 2, "你好"),
        ("圆周率3.14159吗", 4, "圆周率3.14159"),
        ("好的👨‍👩‍👧‍👦呀", 2, "好的👨‍👩‍👧‍👦"),
    ],
)
def test_where_a_cut_falls(text: str, limit: int, cut: str) -> None:
    assert cut_to_units(text, limit) == cut


@pytest.mark.parametrize(
    ("text", "end", "cut"),
    [
        ("我们说hello", 6, "我们说"),
        ("abcdefghij", 6, "abcdef"),
        ("好👨‍👩‍👧‍👦", 4, "好"),
        ("🇨🇳🇯🇵🇰🇷", 3, "🇨🇳"),
        ("cafe\u0301", 4, "caf"),
        ("好的（关键消息：[1]）", 6, "好的"),
    ],
)
def test_cutting_at_an_index(text: str, end: int, cut: str) -> None:
    assert cut_before(text, end) == cut


@pytest.mark.parametrize(
    ("text", "end", "cut"),
    [
        ("好。很长很长很长的一句", 11, "好。"),
        ("好。再好！", 5, "好。再好！"),
        ("好。再好！", 4, "好。"),
        ("没有句号", 4, ""),
        ("好。", 0, ""),
        ("一行\n第二行", 6, "一行"),
        ("好。（关键消息：[1,3]）再说", 16, "好。（关键消息：[1,3]）"),
        ("好。（关键消息：[1,3]）再说", 8, "好。"),
    ],
)
def test_whole_sentences(text: str, end: int, cut: str) -> None:
    assert whole_sentences(text, end) == cut


@given(st.text(max_size=80), st.integers(1, 30))
def test_what_is_shortened_says_so(text: str, most: int) -> None:
    short = shortened(text, most)
    assert len(short) <= most
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
    assert shortened("no such model: gpt", 12) == "no such…"
