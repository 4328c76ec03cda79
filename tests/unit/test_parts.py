"""A long answer in several messages: nothing lost, nothing torn apart, none too long."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.chat.parts import (
    LONGEST_PART,
    LONGEST_WAIT,
    MOST_PARTS,
    pauses,
    reply_parts,
)

LIMITS = st.integers(min_value=20, max_value=300)
FAMILY, THUMB, FLAG, DIGIT, HEART = "👨‍👩‍👧‍👦", "👍🏽", "🇨🇳", "1️⃣", "❤️"
LINK = "https://example.com/a/b?c=d&e=%E5%B1%B1#f.g"
CODE = "```python\nfor x in y:\n    print('好。真的')\n```"
LINKED = "[看 这里。](https://example.com/x)"
ATOMS = (FAMILY, THUMB, FLAG, DIGIT, HEART, "e\u0301", "\ud83d\ude00", LINK, CODE, LINKED)
PIECES = st.sampled_from(
    [*ATOMS, "今天去爬山。", "好呀！", "嗯，", "那就这样吧", "one two three. ", "\n", "\n\n", " "]
)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(st.text(), LIMITS)
def test_only_white_space_is_lost(text: str, limit: int) -> None:
    parts = reply_parts(text, limit)
    assert squeezed("".join(parts)) == squeezed(text)
    assert all(part.strip() and part == part.rstrip() for part in parts)


@given(st.text(alphabet="今天好。！，a b1.\n「」🙂", max_size=900), LIMITS)
def test_parts_keep_to_the_limit_until_there_would_be_too_many(text: str, limit: int) -> None:
    parts = reply_parts(text, limit)
    assert len(parts) <= MOST_PARTS
    if len(parts) > 1 and len(text) <= limit * 2:
        assert max(map(len, parts)) <= limit


@given(st.lists(PIECES, max_size=60), LIMITS)
def test_what_belongs_together_stays_together(pieces: list[str], limit: int) -> None:
    text = "".join(f"{piece}。" if piece in ATOMS else piece for piece in pieces)
    parts = reply_parts(text, limit)
    for atom in ATOMS:
        assert sum(part.count(atom) for part in parts) == text.count(atom)


@given(st.text(alphabet="\u0301\u200d🇨a👍🏽\ud83d\ude00`[]( )。\n", max_size=400), LIMITS)
def test_no_part_begins_with_half_a_character(text: str, limit: int) -> None:
    text = text.strip()
    at = 0
    for part in reply_parts(text, limit):
        at = text.index(part, at)
        if at:
            assert part[0] != "\u200d"
            assert text[at - 1] != "\u200d"
            assert not ("\udc00" <= part[0] <= "\udfff" and text[at - 1] == "\ud83d")
            assert part[0] != "\u0301" or text[at - 1].isspace()
        at += len(part)


def test_cuts_are_where_a_person_would_make_them() -> None:
    text = "今天我们去爬了山，天气特别好。大家都很开心！照片发在群里了，记得看。明天再聊"
    assert reply_parts(text, 20) == [
        "今天我们去爬了山，天气特别好。",
        "大家都很开心！照片发在群里了，记得看。",
        "明天再聊",
    ]
    lines = "第一件事是买菜\n第二件事是做饭。还有洗碗\n第三件事"
    assert reply_parts(lines, 22) == ["第一件事是买菜\n第二件事是做饭。还有洗碗", "第三件事"]
    assert reply_parts("他说：「好吧！」然后就走了，谁也没有再提这件事情。", 20) == [
        "他说：「好吧！」",
        "然后就走了，谁也没有再提这件事情。",
    ]


def test_words_numbers_and_indents_stay_whole() -> None:
    parts = reply_parts("The temperature is 36.5 degrees today and well-known", 22)
    assert parts == ["The temperature is", "36.5 degrees today and", "well-known"]
    assert reply_parts("先看这个列表，挺长的\n    缩进的一行，也挺长的呀", 20)[1].startswith(
        "    缩"
    )


def test_a_short_text_is_one_part() -> None:
    assert reply_parts("好呀。\n走吧！", 20) == ["好呀。\n走吧！"]
    assert reply_parts(" \n ", 20) == []
    assert reply_parts("", 20) == []


def test_a_link_at_a_sentence_end_keeps_its_mark() -> None:
    assert reply_parts(f"看这个 {LINK}。好吗", 20) == ["看这个", f"{LINK}。", "好吗"]


def test_code_stays_whole_until_it_is_longer_than_any_message() -> None:
    code = "```\n" + "x = 1  # 好。\n" * 100 + "```"
    assert reply_parts(f"这样写：\n{code}\n就好。", 50) == ["这样写：", code, "就好。"]
    lines = [f"第 {number} 行代码" for number in range(600)]
    parts = reply_parts("```\n" + "\n".join(lines) + "\n```", 50)
    assert max(map(len, parts)) <= LONGEST_PART
    assert "\n".join(parts).splitlines()[1:-1] == lines


@pytest.mark.parametrize(
    "unit",
    ["🇨", "`", "[", "啊", "a", "\u0301", "x\n", "http://", "。", "[a](", "\u200d", "\ud83d\ude00"],
)
def test_hostile_texts_end_quickly_and_within_the_bounds(unit: str) -> None:
    text = unit * (MOST_PARTS * LONGEST_PART // len(unit))
    began = time.process_time()
    parts = reply_parts(text, 200)
    assert time.process_time() - began < 2
    assert max(map(len, parts), default=0) <= LONGEST_PART
    assert squeezed("".join(parts)) == squeezed(text)


@given(st.lists(st.text(max_size=500), max_size=12), st.integers(min_value=0, max_value=300))
def test_pauses_are_bounded(parts: list[str], speed: int) -> None:
    waits = pauses(parts, speed)
    assert len(waits) == len(parts)
    assert sum(waits) <= LONGEST_WAIT + 1e-6
    assert all(seconds >= 0 for seconds in waits)
    assert waits[:1] == [0.0] * bool(parts)


def test_longer_parts_take_longer_to_type() -> None:
    assert pauses(["一", "二" * 40, "三" * 80], 40) == [0.0, 1.0, 2.0]
    assert pauses(["一", "二" * 40], 0) == [0.0, 0.0]
