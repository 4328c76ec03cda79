"""Two orders made one: only places count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.memory.fusion import fuse
from plugins.nonebot_plugin_nianlun.memory.search import Candidate

NOW = datetime(2026, 11, 29, tzinfo=UTC)
orders = st.lists(st.integers(1, 40), unique=True, max_size=25)
scores = st.lists(st.floats(1e-6, 1e6), min_size=25, max_size=25)


def lines(seqs: Sequence[int]) -> list[Candidate]:
    return [Candidate("message", seq, 1.0, NOW, f"第 {seq} 句") for seq in seqs]


def refs(found: Sequence[Candidate]) -> list[int]:
    return [one.ref for one in found]


@given(orders, orders, scores)
def test_only_places_count(words: list[int], near: list[int], given: list[float]) -> None:
    rescored = [one._replace(score=score) for one, score in zip(lines(words), given, strict=False)]
    assert refs(fuse(rescored, lines(near))) == refs(fuse(lines(words), lines(near)))


@given(orders, orders)
def test_nothing_is_lost_and_nothing_comes_twice(words: list[int], near: list[int]) -> None:
    found = refs(fuse(lines(words), lines(near)))
    assert sorted(found) == sorted({*words, *near})


@given(orders, orders)
def test_whatever_is_in_both_is_not_below_its_worse_place(
    words: list[int], near: list[int]
) -> None:
    found = refs(fuse(lines(words), lines(near)))
    for seq in set(words) & set(near):
        worse = max(words.index(seq), near.index(seq))
        # In one list alone there would be this many better ones, in each of the two.
        better = set(words[:worse]) | set(near[:worse])
        assert found.index(seq) <= len(better - {seq})


@given(orders)
def test_one_order_alone_stays_as_it_is(seqs: list[int]) -> None:
    assert refs(fuse(lines(seqs), [])) == refs(fuse([], lines(seqs))) == seqs


@given(orders, orders)
def test_what_has_no_score_has_no_place(words: list[int], near: list[int]) -> None:
    company = [one._replace(score=0.0) for one in lines(words)]
    expected = near + [seq for seq in words if seq not in near]
    assert refs(fuse(company, lines(near))) == expected


def test_the_places_add_up() -> None:
    # 3 is second in both; 1 and 2 are first in one.
    assert refs(fuse(lines([1, 3]), lines([2, 3]))) == [3, 1, 2]


def test_what_the_words_found_keeps_its_score() -> None:
    (one,) = fuse(lines([1]), [lines([1])[0]._replace(score=0.0)])
    assert one.score == 1.0


def test_kinds_with_one_ref_are_two() -> None:
    fact = Candidate("fact", 1, 0.0, NOW, "不吃花生", None, "peanut", "preferences")
    assert [one.kind for one in fuse(lines([1]), [fact])] == ["message", "fact"]
