"""Numbers of a file and what they are here, also inside of texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.keymarks import renumber_key_marks
from plugins.nonebot_plugin_nianlun.store.numbers import Cover, Numbers, next_number

small = st.integers(1, 60)
pairs = st.dictionaries(small, st.integers(1, 1000))


@given(pairs, small, small)
def test_numbers_are_a_map(pairs: dict[int, int], one: int, other: int) -> None:
    numbers = Numbers()
    for theirs in sorted(pairs):
        numbers.add(theirs, pairs[theirs])
    assert [numbers.get(n) for n in range(70)] == [pairs.get(n) for n in range(70)]
    assert numbers.highest == max(pairs, default=0)
    first, last = sorted((one, other))
    wanted = [pairs.get(n) for n in range(first, last + 1)]
    spans = numbers.spans(first, last)
    if None in wanted:
        assert spans is None
        assert numbers.all(range(first, last + 1)) is None
    else:
        assert spans is not None
        assert [n for low, high in spans for n in range(low, high + 1)] == wanted
        assert numbers.all(range(first, last + 1)) == wanted


def test_numbers_ascend() -> None:
    numbers = Numbers()
    numbers.add(5, 9)
    for theirs in (5, 4):
        with pytest.raises(ValueError, match="ascend"):
            numbers.add(theirs, 10)


@given(st.lists(st.tuples(small, small)))
def test_a_cover_knows_what_is_free(runs: list[tuple[int, int]]) -> None:
    cover, taken = Cover(), set[int]()
    for one, other in runs:
        first, last = sorted((one, other))
        run = set(range(first, last + 1))
        assert cover.is_free(first, last) == (not run & taken)
        if not run & taken:
            cover.add(first, last)
            taken |= run


def test_counting_goes_on_from_the_file_where_it_can() -> None:
    assert next_number(0, 1) == 1
    assert next_number(5, 8) == 8
    assert next_number(5, 3) == 6
    assert next_number(5, None) == 6
    assert next_number(5, 2**62) == 6


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("爬山（关键消息：[1,3]）。", "爬山（关键消息：[11,13]）。"),
        ("爬山（关键消息：[1,9]）。", "爬山（关键消息：[11]）。"),
        ("爬山（关键消息：[9]）。", "爬山。"),
        ("第 1 个（#1）", "第 1 个（#1）"),
    ],
)
def test_citations_in_a_text_are_moved(text: str, moved: str) -> None:
    assert renumber_key_marks(text, {1: 11, 3: 13}.get) == moved


@given(st.lists(small), st.sampled_from(["(关键消息: #{})", "（关键消息：[{}]）", "【{}】"]))
def test_a_text_whose_numbers_stay_is_untouched(ids: list[int], form: str) -> None:
    text = f"甲{form.format('，'.join(map(str, ids)))}乙"
    assert renumber_key_marks(text, lambda number: number) == text
