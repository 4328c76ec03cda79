"""Which memories are injected, and how they read."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.layers import Layers, as_text, beside, sections, select
from plugins.nonebot_plugin_nianlun.memory.rollups import MemoryState
from plugins.nonebot_plugin_nianlun.types import Activity, Memory, MemoryKind, Message, Origin

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
WRITTEN = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)
DAYS = [(date(2026, 11, 1) + timedelta(days=n)).isoformat() for n in range(20)]
MONTHS = [f"2026-{n:02d}" for n in range(1, 12)]


def state(
    kind: MemoryKind, period: str, *, merged: bool = False, stale: bool = False
) -> MemoryState:
    return MemoryState(kind, period, True, merged, stale, False, frozenset())


def memory(kind: MemoryKind, period: str, text: str) -> Memory:
    return Memory(kind, period, text, (), (), 1, "model", WRITTEN)


def activity(text: str, number: int = 1) -> Activity:
    return Activity(
        number, "2026-11-30", text, (), "window", WRITTEN + timedelta(hours=1), "model", WRITTEN
    )


def test_the_newest_days_and_those_that_no_month_holds() -> None:
    folded = [state("day", period, merged=period not in DAYS[3:5]) for period in DAYS]
    assert select(folded, 7, 2)["day"] == [*DAYS[3:5], *DAYS[-7:]]


def test_the_newest_months_and_those_that_no_year_holds() -> None:
    folded = [state("month", period, merged=period != MONTHS[0]) for period in MONTHS]
    assert select(folded, 7, 2)["month"] == [MONTHS[0], *MONTHS[-2:]]


def test_all_years() -> None:
    years = [state("year", str(year), merged=True) for year in range(2020, 2026)]
    assert select(years, 7, 2)["year"] == [str(year) for year in range(2020, 2026)]


def test_what_is_being_rewritten_is_never_shown_and_takes_no_place() -> None:
    states = [state("day", p, merged=True, stale=p == DAYS[-1]) for p in DAYS]
    states.append(state("month", "2026-11", stale=True))
    states.append(state("year", "2026", stale=True))
    assert select(states, 7, 2) == {"day": DAYS[-8:-1], "month": [], "year": []}


STATES = st.lists(
    st.builds(
        MemoryState,
        kind=st.sampled_from(["day", "month", "year"]),
        period=st.sampled_from(DAYS),
        closed=st.booleans(),
        merged=st.booleans(),
        stale=st.booleans(),
        edited=st.booleans(),
        sources=st.just(frozenset()),
    ),
    unique_by=lambda s: (s.kind, s.period),
    max_size=40,
)


@given(STATES, st.integers(1, 9), st.integers(1, 4))
def test_nothing_that_no_upper_layer_holds_is_left_out(
    states: list[MemoryState], keep_days: int, keep_months: int
) -> None:
    chosen = select(states, keep_days, keep_months)
    for s in states:
        shown = s.period in chosen[s.kind]
        if s.stale:
            assert not shown
        elif s.kind == "year" or not s.merged:
            assert shown
    kept: dict[MemoryKind, int] = {"day": keep_days, "month": keep_months}
    for kind, keep in kept.items():
        usable = sorted(s.period for s in states if s.kind == kind and not s.stale)
        assert chosen[kind] == sorted(chosen[kind])
        assert set(usable[-keep:]) <= set(chosen[kind])
        folded = {s.period for s in states if s.kind == kind and s.merged}
        assert len(set(chosen[kind]) & folded) <= keep


def test_sections_go_from_years_to_activities_and_empty_ones_are_left_out() -> None:
    layers = Layers(
        years=(memory("year", "2025", "一年"),),
        days=(memory("day", "2026-11-28", "前天"), memory("day", "2026-11-29", "昨天")),
        activities=(activity("刚才"), activity("", 2)),
    )
    found = sections(layers, CALENDAR)
    assert [s.name for s in found] == ["years", "days", "activities"]
    assert found[1].items == ("- 2026-11-28（周六）：前天", "- 2026-11-29（周日）：昨天")
    assert found[2].items == ("- 2026-11-30 05:00 前后：刚才",)
    assert as_text(found).count("【") == 3
    assert sections(Layers(activities=(activity(""),)), CALENDAR) == []


@given(st.text(), st.text())
def test_each_memory_is_one_line(text: str, other: str) -> None:
    layers = Layers(days=(memory("day", "2026-11-29", text),), activities=(activity(f"在{other}"),))
    lines = as_text(sections(layers, CALENDAR)).splitlines()
    assert len(lines) == 5
    assert [line[0] for line in lines if line] == ["【", "-", "【", "-"]


def noted(number: int, origin: Origin, seqs: tuple[int, int] | None, minute: int = 0) -> Activity:
    at = WRITTEN + timedelta(minutes=minute)
    ranges = () if seqs is None else (seqs,)
    return Activity(number, "2026-11-30", "聊天", (), origin, at, "model", WRITTEN, ranges)


def test_what_still_stands_as_it_was_said_is_not_told_beside_it() -> None:
    windows = [noted(1, "window", (1, 50)), noted(2, "window", (51, 100))]
    turns = [noted(3, "turn", None, minute=1), noted(4, "turn", None, minute=9)]
    own = noted(5, "tool", None, minute=9)
    layers = Layers(activities=(*windows, *turns, own))

    def told(first_seq: int) -> list[int]:
        at = WRITTEN + timedelta(minutes=5)
        history = [Message(n, at, "20001", "小鹿", "嗯") for n in range(first_seq, 120)]
        return [one.number for one in beside(layers, history).activities]

    assert told(1) == [3, 5]
    assert told(40) == [1, 3, 5]
    assert told(51) == [1, 3, 5]
    assert told(52) == [1, 2, 3, 5]
    assert beside(layers, []) == layers
