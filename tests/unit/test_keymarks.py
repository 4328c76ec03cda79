"""References to key messages."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.keymarks import (
    UNKNOWN_ID,
    blank_key_marks,
    find_key_messages,
    key_mark,
    key_mark_spans,
    normalise_key_marks,
    strip_key_marks,
)

IDS = st.lists(st.integers(min_value=0, max_value=10**17), min_size=1, max_size=8)
PLAIN = st.text().filter(lambda text: "关键消息" not in text)


@st.composite
def hands(draw: st.DrawFn, ids: list[int]) -> str:
    """A reference as some model may write it."""
    blank = st.sampled_from(["", " ", "\u3000", "\t"])
    comma = draw(st.sampled_from([",", "，", ", ", "、", " "]))
    hashed = draw(st.booleans())
    left, right = draw(st.sampled_from(["（）", "()", "（)", "(）"]))
    opened, closed = draw(st.sampled_from(["[]", "［］", "【】", "  "]))
    listed = comma.join(f"#{number}" if hashed else str(number) for number in ids)
    colon = draw(st.sampled_from("：:"))
    return (
        f"{left}{draw(blank)}关键消息{draw(blank)}{colon}{draw(blank)}"
        f"{opened}{draw(blank)}{listed}{draw(blank)}{closed}{draw(blank)}{right}"
    )


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ("（关键消息：[1,3,5]）", (1, 3, 5)),
        ("（关键消息：[1,3,5])", (1, 3, 5)),
        ("(关键消息:[1, 3])", (1, 3)),
        ("（关键消息：［１，３］）", (1, 3)),
        ("（关键消息：[#12、#7]）", (12, 7)),
        ("（关键消息：12）", (12,)),
        ("（关键消息：[007]）", (7,)),
        ("（关键消息：[1,]）", (1,)),
        ("（关键消息：[]）", ()),
        ("（关键消息：[...])", ()),
        ("（关键消息：[……]）", ()),
    ],
)
def test_accepted_forms(written: str, ids: tuple[int, ...]) -> None:
    assert find_key_messages(f"早上好{written}") == ids
    assert normalise_key_marks(f"早上好{written}。") == f"早上好{key_mark(ids)}。"
    assert strip_key_marks(f"早上好{written}。") == "早上好。"


@pytest.mark.parametrize(
    "text",
    [
        "（关键消息：[-1]）",
        "（关键消息：[一]）",
        "关键消息：[1]",
        "（关键消息[1]）",
        "（消息：[1]）",
        "",
    ],
)
def test_anything_else_is_text(text: str) -> None:
    assert find_key_messages(text) == ()
    assert normalise_key_marks(text) == text


def test_ids_come_once_in_order_of_mention() -> None:
    assert find_key_messages("甲（关键消息：[5,1]）乙（关键消息：[1,9,5]）") == (5, 1, 9)


def test_huge_numbers_are_bounded() -> None:
    assert find_key_messages(f"（关键消息：[{'9' * 50_000},2]）") == (UNKNOWN_ID, 2)
    assert find_key_messages(f"（关键消息：[{'0' * 50_000}2]）") == (2,)


@pytest.mark.parametrize(
    "piece",
    [
        "（关键消息：[",
        "（关键消息：",
        "（关键消息：[1,",
        "（" + " " * 9,
        "1",
        " ",
        "[]",
        "（关键消息：[1]",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = "（关键消息：[" + piece * (200_000 // len(piece))
    begun = time.perf_counter()
    normalise_key_marks(text)
    assert time.perf_counter() - begun < 1


@given(PLAIN, IDS, PLAIN, st.data())
def test_every_hand_becomes_canonical_and_the_rest_stays(
    before: str, ids: list[int], after: str, data: st.DataObject
) -> None:
    written = data.draw(hands(ids))
    text = before + written + after
    assert normalise_key_marks(text) == before + key_mark(ids) + after
    assert find_key_messages(text) == tuple(dict.fromkeys(ids))
    assert strip_key_marks(text) == before + after
    assert key_mark_spans(text) == [(len(before), len(before) + len(written))]
    assert normalise_key_marks(normalise_key_marks(text)) == normalise_key_marks(text)


@given(st.text(alphabet="（()）关键消息：:[]【】,，#12 .", max_size=60))
def test_blanks_keep_every_index(text: str) -> None:
    blanked = blank_key_marks(text)
    assert len(blanked) == len(text)
    assert key_mark_spans(blanked) == []
