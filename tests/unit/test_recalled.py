"""The lines of a recall: within limit and budget, whole, addressed, forging nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.recalled import Chosen, Look, choose, shown_names
from plugins.nonebot_plugin_nianlun.memory.search import Candidate, SearchKind
from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens
from plugins.nonebot_plugin_nianlun.types import ME

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
AT = datetime(2026, 3, 5, 2, 32, tzinfo=UTC)
NAMES = {"20001": "小鹿", "20002": "阿川"}
HOSTILE = st.text(
    st.sampled_from('#12:：- —【】[[]]\n\r\u2028\x85\x00"“me我小忆a1\ud800\u202e\u200b👍🏻か')
    | st.characters(codec=None)
)


def message(seq: int, text: str, by: str = "20001", name: str = "小鹿") -> Candidate:
    return Candidate("message", seq, 1.0, AT, text, by, name)


def fact(row: int, name: str, text: str, owner: str | None = "20001") -> Candidate:
    return Candidate("fact", row, 1.0, AT, text, owner, name, "preferences")


def chosen(
    found: Sequence[Candidate],
    linked: dict[int, list[Candidate]] | None = None,
    *,
    limit: int = 10,
    budget: int = 800,
    asker: str | None = "20001",
) -> Chosen:
    return choose(found, linked or {}, Look(CALENDAR, NAMES, "小忆", asker), limit, budget)


def lines(found: Chosen) -> list[str]:
    return [item.text for item in found.items]


@pytest.mark.parametrize(
    ("candidate", "line"),
    [
        (message(12, "明早去枸杞岛"), "- #12 2026-03-05 10:32 小鹿：明早去枸杞岛"),
        (message(13, "好", ME, "小忆"), "- #13 2026-03-05 10:32 小忆：好"),
        (message(14, "a\nb", "20009", "新人"), "- #14 2026-03-05 10:32 新人：a b"),
        (fact(1, "coffee", "不喝咖啡"), "- [preferences:coffee] 不喝咖啡"),
        (fact(1, "coffee", "不喝咖啡", "20002"), "- [preferences:coffee]（阿川） 不喝咖啡"),
        (fact(1, "coffee", "请客", ME), "- [preferences:coffee]（小忆） 请客"),
        (fact(1, "rule", "每周五聚", None), "- [preferences:rule] 每周五聚"),
        (
            Candidate("activity", 3, 1.0, AT, "大家说起枸杞岛", period="2026-03-05"),
            "- &3 2026-03-05 10:32 前后：大家说起枸杞岛",
        ),
        (
            Candidate("day", 9, 1.0, AT, "去了枸杞岛", period="2026-03-05"),
            "- 2026-03-05（周四）：去了枸杞岛",
        ),
        (Candidate("month", 9, 1.0, AT, "春天", period="2026-03"), "- 2026-03：春天"),
        (Candidate("year", 9, 1.0, AT, "一年", period="2026"), "- 2026：一年"),
    ],
)
def test_each_kind_has_its_address(candidate: Candidate, line: str) -> None:
    assert lines(chosen([candidate])) == [line]


def test_the_year_that_its_reader_knows_is_not_told() -> None:
    """Of a period it is the address."""
    eve = datetime(2025, 12, 31, 15, 59, tzinfo=UTC)  # 23:59 by the clocks of the zone
    found = [
        message(12, "明早去枸杞岛"),
        message(9, "新年好")._replace(time=eve + timedelta(minutes=1)),
        message(8, "快新年了")._replace(time=eve),
        Candidate("activity", 3, 1.0, AT, "大家说起枸杞岛", period="2026-03-05", place="群「鱼」"),
        Candidate("day", 9, 1.0, AT, "去了枸杞岛", period="2026-03-05"),
    ]
    look = Look(CALENDAR, NAMES, "小忆", "20001", this_year=2026)
    assert lines(choose(found, {}, look, 10, 800)) == [
        "- #12 03-05 10:32 小鹿：明早去枸杞岛",
        "- #9 01-01 00:00 小鹿：新年好",
        "- #8 2025-12-31 23:59 小鹿：快新年了",
        "- 在群「鱼」（那里的 &3） 03-05 10:32 前后：大家说起枸杞岛",
        "- 2026-03-05（周四）：去了枸杞岛",
    ]


def test_a_note_of_a_store_has_no_name() -> None:
    note = Candidate("fact", 1, 1.0, AT, "周二截止", "Bob", None, "work")
    assert lines(chosen([note])) == ["- [work]（有人） 周二截止"]
    plain = Candidate("fact", 2, 1.0, AT, "周二截止", None, None, "")
    assert lines(chosen([plain])) == ["- [笔记] 周二截止"]


def test_a_link_stands_behind_the_fact_once_and_beside_the_limit() -> None:
    coffee, tea, mug = (
        fact(1, "coffee", "[[preferences:tea]]"),
        fact(2, "tea", "茶"),
        fact(3, "m", "杯"),
    )
    found = chosen([coffee, mug, tea], {1: [tea]}, limit=2)
    assert [item.address for item in found.items] == [
        "[preferences:coffee]",
        "[preferences:tea]",
        "[preferences:m]",
    ]


def test_what_does_not_fit_is_dropped_whole_and_smaller_ones_still_come() -> None:
    long = "长" * 60
    found = chosen([message(n, t) for n, t in enumerate(["短", long, long, "短"])], budget=140)
    assert [item.address for item in found.items] == ["#0", "#1", "#3"]
    assert [(item.address, item.content) for item in found.dropped] == [("#2", long)]
    assert found.used == sum(item.tokens for item in found.items)


def test_an_item_larger_than_half_of_the_budget_is_cut_at_a_sentence_end() -> None:
    (item,) = chosen([message(1, "第一句话说完了。" * 40)], budget=120).items
    assert item.text.endswith("第一句话说完了。……")
    assert item.tokens <= 60
    assert item.content == "第一句话说完了。" * 40


@pytest.mark.parametrize("budget", [-5, 0, 1, 7])
def test_no_room_is_no_item(budget: int) -> None:
    found = chosen([message(1, "短")], budget=budget)
    assert (found.items, found.used) == ((), 0)
    assert len(found.dropped) == 1


def test_two_of_one_name_are_told_apart_and_nobody_is_the_character() -> None:
    names = shown_names({"11112222": "小鹿", "33334444": "小鹿", "5": "小忆", ME: "小忆"}, "小忆")
    assert names == {
        "11112222": "小鹿（尾号2222）",
        "33334444": "小鹿（尾号4444）",
        "5": "小忆（别人）",
    }


KINDS: list[SearchKind] = ["message", "activity", "fact"]
CANDIDATES = st.builds(
    Candidate,
    st.sampled_from(KINDS),
    st.integers(1, 6),
    st.floats(0, 9),
    st.builds(lambda hours: AT + timedelta(hours=hours), st.integers(-9000, 9000)),
    HOSTILE | st.text(min_size=200, max_size=900),
    st.sampled_from([None, ME, "20001", "20002", "x"]),
    st.none() | HOSTILE,
    st.just("preferences"),
    st.just("2026-03-05"),
    st.sampled_from(["", "群「摸鱼研究所」"]),
)


@given(st.lists(CANDIDATES, max_size=12), st.integers(0, 8), st.integers(-9, 400))
def test_limit_and_budget_are_bounds_whatever_is_found(
    found: list[Candidate], limit: int, budget: int
) -> None:
    result = chosen(found, limit=limit, budget=budget)
    assert len(result.items) + len(result.dropped) <= limit
    assert estimate_tokens("\n".join(lines(result))) <= result.used <= max(budget, 0)
    for item in [*result.items, *result.dropped]:
        assert len(item.text.splitlines()) == 1
        item.text.encode()
        assert item.text.startswith(("- #", "- &", "- [", "- 在"))
    refs = [(item.kind, item.address) for item in result.items if item.kind != "fact"]
    assert len(refs) == len(set(refs))
