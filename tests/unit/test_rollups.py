"""What is owed between the layers."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.memory.rollups import (
    ActivityState,
    Due,
    MemoryState,
    RollupPolicy,
    plan_rollups,
    settle,
)
from plugins.nonebot_plugin_nianlun.types import MemoryKind

POLICY = RollupPolicy(pending_activities=20, keep_days=7)
TODAY = date(2026, 11, 29)


def activity(number: int, day: str, *, merged: bool = False, stale: bool = False) -> ActivityState:
    return ActivityState(number, day, merged, stale)


def memory(
    kind: MemoryKind,
    period: str,
    sources: tuple[str, ...] = (),
    *,
    closed: bool = True,
    merged: bool = False,
    stale: bool = False,
    edited: bool = False,
) -> MemoryState:
    return MemoryState(kind, period, closed, merged, stale, edited, frozenset(sources))


def plan(
    activities: list[ActivityState], memories: list[MemoryState], waiting: tuple[str, ...] = ()
) -> list[Due]:
    return plan_rollups(activities, memories, TODAY, POLICY, waiting)


def days(first: str, count: int, *, merged: bool = False) -> list[MemoryState]:
    start = date.fromisoformat(first)
    periods = [(start + timedelta(days=n)).isoformat() for n in range(count)]
    return [memory("day", period, (str(n),), merged=merged) for n, period in enumerate(periods)]


def test_nothing_new_owes_nothing() -> None:
    assert plan([], []) == []
    assert plan([activity(1, "2026-11-29")], []) == []


def test_a_day_that_is_over_is_written_from_all_its_activities() -> None:
    owed = plan([activity(1, "2026-11-28"), activity(2, "2026-11-28")], [])
    assert owed == [Due("day", "2026-11-28", ("1", "2"), rebuild=True, closes=True)]


def test_a_day_updated_while_it_lasted_is_rebuilt_when_it_ends() -> None:
    held = memory("day", "2026-11-28", ("1",), closed=False)
    owed = plan([activity(1, "2026-11-28", merged=True)], [held])
    assert owed == [Due("day", "2026-11-28", ("1",), rebuild=True, closes=True)]


def test_twenty_new_activities_update_today_with_the_new_ones_only() -> None:
    held = memory("day", "2026-11-29", ("1",), closed=False)
    old = [activity(1, "2026-11-29", merged=True)]
    new = [activity(n, "2026-11-29") for n in range(2, 22)]
    assert plan(old + new[:-1], [held]) == []
    (owed,) = plan(old + new, [held])
    assert (owed.rebuild, owed.closes) == (False, False)
    assert owed.sources == tuple(str(n) for n in range(2, 22))


def test_a_late_activity_reopens_its_day_and_what_was_built_on_it() -> None:
    held = [
        memory("day", "2025-10-03", ("1",), merged=True),
        memory("month", "2025-10", ("2025-10-03",), merged=True),
        memory("year", "2025", ("2025-10",)),
    ]
    late = [activity(1, "2025-10-03", merged=True), activity(9, "2025-10-03")]
    owed = plan(late, held)
    assert owed == [Due("day", "2025-10-03", ("1", "9"), rebuild=True, closes=True)]
    kinds = []
    activities, memories = late, held
    while owed:
        kinds.append([item.kind for item in owed])
        activities, memories = settle(activities, memories, owed)
        owed = plan(activities, memories)
    assert kinds == [["day"], ["month"], ["year"]]


def test_a_month_waits_for_seven_days_beyond_the_newest_seven() -> None:
    assert plan([], days("2026-11-01", 13)) == []
    (owed,) = plan([], days("2026-11-01", 14))
    assert (owed.kind, owed.rebuild, owed.closes) == ("month", True, False)
    assert owed.sources == tuple(f"2026-11-0{n}" for n in range(1, 8))


def test_a_month_that_exists_takes_the_seven_new_days_only() -> None:
    held = memory("month", "2026-11", tuple(f"2026-11-0{n}" for n in range(1, 8)), closed=False)
    old = days("2026-11-01", 7, merged=True)
    (owed,) = plan([], [*old, *days("2026-11-08", 14), held])
    assert (owed.rebuild, owed.closes) == (False, False)
    assert owed.sources == tuple(f"2026-11-{n:02}" for n in range(8, 15))


def test_a_month_that_is_over_is_written_once_more_from_all_its_days() -> None:
    (owed,) = plan([], days("2026-10-30", 2))
    assert owed == Due("month", "2026-10", ("2026-10-30", "2026-10-31"), rebuild=True, closes=True)


def test_a_month_is_not_closed_while_one_of_its_days_is_open_or_waits_for_notes() -> None:
    held = days("2026-10-30", 2)
    assert plan([], held, waiting=("2026-10-31",)) == []
    failing = [activity(1, "2026-10-31"), activity(2, "2026-10-31", stale=True)]
    assert all(item.kind == "day" for item in plan(failing, held))


def test_a_month_enters_its_year_when_it_is_over() -> None:
    october = memory("month", "2026-10", ("2026-10-01",))
    november = memory("month", "2026-11", closed=False)
    inside = memory("day", "2026-10-01", ("1",), merged=True)
    (owed,) = plan([], [inside, october, november])
    assert owed == Due("year", "2026", ("2026-10",), rebuild=True, closes=False)
    year = memory("year", "2026", ("2026-09",), closed=False)
    (owed,) = plan([], [inside, memory("month", "2026-09", merged=True), october, year])
    assert owed == Due("year", "2026", ("2026-10",), rebuild=False, closes=False)


def test_a_month_that_its_year_holds_stays_there_while_it_is_open_again() -> None:
    months = [memory("month", f"2026-0{n}", (f"2026-0{n}-05",), merged=True) for n in (3, 4)]
    inside = [memory("day", f"2026-0{n}-05", ("1",), merged=True) for n in (3, 4)]
    year = memory("year", "2026", ("2026-03", "2026-04"), closed=False)
    assert plan([], [*inside, *months, year], waiting=("2026-03-09",)) == []
    reopened = [replace(months[0], closed=False), months[1]]
    assert [item.kind for item in plan([], [*inside, *reopened, year])] == ["month"]


def test_a_text_that_a_person_edited_is_continued_and_never_replaced() -> None:
    held = memory("day", "2026-11-28", ("1",), edited=True)
    late = [activity(1, "2026-11-28", merged=True), activity(2, "2026-11-28")]
    assert plan(late, [held]) == [Due("day", "2026-11-28", ("2",), rebuild=False, closes=True)]
    unfinished = memory("day", "2026-11-28", ("1",), edited=True, closed=False)
    assert plan(late[:1], [unfinished]) == [
        Due("day", "2026-11-28", (), rebuild=False, closes=True)
    ]


def test_a_day_of_which_nothing_is_left_is_due_without_sources() -> None:
    held = memory("day", "2026-11-28", ("1",), stale=True)
    assert plan([], [held]) == [Due("day", "2026-11-28", (), rebuild=True, closes=True)]
    assert settle([], [held], plan([], [held])) == ([], [])


@given(
    st.dictionaries(st.integers(0, 500), st.integers(1, 30), max_size=60),
    st.integers(0, 500),
)
def test_the_work_of_any_history_ends_and_holds_everything(
    counts: dict[int, int], today: int
) -> None:
    start = date(2025, 6, 20)
    numbers = iter(range(10_000))
    activities = [
        activity(next(numbers), (start + timedelta(days=day)).isoformat())
        for day, count in sorted(counts.items())
        if day <= today
        for _ in range(count)
    ]
    memories: list[MemoryState] = []
    now = start + timedelta(days=today)
    for _ in range(10):
        owed = plan_rollups(activities, memories, now, POLICY)
        if not owed:
            break
        assert len({item.kind for item in owed}) == 1
        activities, memories = settle(activities, memories, owed)
    assert plan_rollups(activities, memories, now, POLICY) == []
    over = [a for a in activities if a.date < now.isoformat()]
    assert all(a.merged for a in over)
    ended = [m for m in memories if m.kind == "day" and m.period[:7] < now.isoformat()[:7]]
    assert all(m.merged and m.closed for m in ended)
