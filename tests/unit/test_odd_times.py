"""Days that clocks skip, repeat or stretch, and messages from a time that has not come."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.rollups import (
    ActivityState,
    MemoryState,
    RollupPolicy,
    plan_rollups,
    settle,
)
from plugins.nonebot_plugin_nianlun.memory.windows import AHEAD, WindowPolicy, plan_windows
from plugins.nonebot_plugin_nianlun.types import Message, Window

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
POLICY = WindowPolicy(messages=50, min_messages=8, idle=timedelta(minutes=20))
NOW = datetime(2026, 11, 29, 2, 0, tzinfo=UTC)  # 10:00 in Shanghai

JUMPS = [
    ("Asia/Shanghai", datetime(1991, 9, 14, 17, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("America/Sao_Paulo", datetime(2018, 11, 4, 3, tzinfo=UTC)),
    ("Africa/Cairo", datetime(2026, 4, 23, 22, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2026, 2, 15, 2, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Antarctica/Troll", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ("Pacific/Kwajalein", datetime(1993, 8, 21, 12, tzinfo=UTC)),
    ("Asia/Pyongyang", datetime(2018, 5, 4, 15, tzinfo=UTC)),
    ("UTC", datetime(2026, 1, 1, tzinfo=UTC)),
]
"""Zones, and a moment at which their clocks jumped: by minutes, hours or a whole day."""


def line(seq: int, at: datetime) -> Message:
    return Message(seq=seq, time=at, user_id="1", name="甲", text="在")


def plan(messages: list[Message], now: datetime = NOW, *, everything: bool = False) -> list[Window]:
    ordered = sorted(messages, key=lambda message: message.time)
    return plan_windows(ordered, CALENDAR, POLICY, now, everything=everything)


def seqs(windows: list[Window]) -> list[list[int]]:
    return [[message.seq for message in window.messages] for window in windows]


def talk(count: int) -> list[Message]:
    return [line(n, NOW - timedelta(minutes=count - n)) for n in range(count)]


@pytest.mark.parametrize(("zone", "jump"), JUMPS)
@given(data=st.data())
def test_around_a_jump_every_moment_is_in_one_day(
    zone: str, jump: datetime, data: st.DataObject
) -> None:
    starts = data.draw(st.sampled_from([time(0), time(2, 30), time(4), time(11, 59)]))
    calendar = Calendar(ZoneInfo(zone), starts)
    moment = jump + timedelta(seconds=data.draw(st.integers(-200_000, 200_000)))
    day = calendar.day_of(moment)
    assert calendar.start_of(day) <= moment < calendar.end_of(day)
    assert calendar.end_of(day) == calendar.start_of(day + timedelta(days=1))
    later = moment + timedelta(seconds=data.draw(st.integers(0, 200_000)))
    assert calendar.day_of(later) >= day


@pytest.mark.parametrize(("zone", "jump"), JUMPS)
@given(data=st.data())
def test_around_a_jump_windows_keep_to_their_days(
    zone: str, jump: datetime, data: st.DataObject
) -> None:
    calendar = Calendar(ZoneInfo(zone), data.draw(st.sampled_from([time(0), time(4)])))
    offsets = data.draw(st.lists(st.integers(-150_000, 150_000), max_size=80))
    messages = [line(n, jump + timedelta(seconds=s)) for n, s in enumerate(sorted(offsets))]
    now = jump + timedelta(days=9)
    windows = plan_windows(messages, calendar, POLICY, now)
    assert [m for window in windows for m in window.messages] == messages
    for window in windows:
        assert {calendar.day_of(m.time).isoformat() for m in window.messages} == {window.date}


def test_a_day_that_a_zone_skipped_is_short_or_empty() -> None:
    apia, skipped = ZoneInfo("Pacific/Apia"), date(2011, 12, 30)
    night = Calendar(apia, time(4))
    assert night.end_of(skipped) - night.start_of(skipped) == timedelta(hours=4)
    midnight = Calendar(apia, time(0))
    assert midnight.start_of(skipped) == midnight.end_of(skipped)
    assert midnight.day_of(midnight.start_of(skipped)) == date(2011, 12, 31)
    assert midnight.day_of(midnight.start_of(skipped) - timedelta(seconds=1)) == date(2011, 12, 29)


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=3652)])
@pytest.mark.parametrize("count", [1, 7, 30])
def test_a_message_from_the_future_ends_no_talk(ahead: timedelta, count: int) -> None:
    assert plan([*talk(count), line(99, NOW + ahead)]) == []


def test_a_clock_that_is_a_little_behind_is_no_future() -> None:
    early = [line(n, NOW + AHEAD / 2) for n in range(50)]
    assert [len(run) for run in seqs(plan(early))] == [50]


def test_by_hand_the_rest_of_today_is_taken_and_no_later_day() -> None:
    tonight = line(5, datetime(2026, 11, 29, 19, 59, tzinfo=UTC))
    tomorrow = line(6, datetime(2026, 11, 29, 20, 0, tzinfo=UTC))
    far = line(7, datetime(2099, 1, 1, tzinfo=UTC))
    assert seqs(plan([line(1, NOW), tonight, tomorrow, far], everything=True)) == [[1, 5]]
    assert seqs(plan([far], far.time + timedelta(days=2))) == [[7]]


def test_many_from_the_future_do_not_hide_that_all_of_today_is_read() -> None:
    future = [line(100 + n, NOW + timedelta(days=9)) for n in range(40)]
    quiet = [line(n, NOW - timedelta(hours=2)) for n in range(9)]
    windows = plan_windows([*quiet, *future], CALENDAR, POLICY, NOW, more=True)
    assert seqs(windows) == [list(range(9))]


@given(st.lists(st.integers(-4000, 4000), max_size=120), st.booleans())
def test_what_has_not_come_changes_nothing_for_what_has(
    minutes: list[int], everything: bool
) -> None:
    messages = [line(n, NOW + timedelta(minutes=m)) for n, m in enumerate(sorted(minutes))]
    windows = plan(messages, everything=everything)
    come = CALENDAR.end_of(CALENDAR.day_of(NOW)) if everything else NOW + AHEAD
    assert windows == plan([m for m in messages if m.time < come], everything=everything)
    assert all(m.time < come for window in windows for m in window.messages)


def test_waiting_in_2099_keeps_no_day_month_or_year_open() -> None:
    policy = RollupPolicy(pending_activities=20, keep_days=7)
    activities = [ActivityState(1, "2025-12-31", merged=False, stale=False)]
    memories: list[MemoryState] = []
    closed = []
    for _ in range(4):
        due = plan_rollups(activities, memories, date(2026, 11, 29), policy, {"2099-01-01"})
        closed += [item.period for item in due if item.closes]
        activities, memories = settle(activities, memories, due)
    assert closed == ["2025-12-31", "2025-12", "2025"]


@given(st.dates(date(2026, 1, 1), date(2100, 1, 1)))
def test_no_period_that_is_not_over_is_closed(day: date) -> None:
    policy = RollupPolicy(pending_activities=1, keep_days=0)
    today = date(2026, 11, 29)
    activities = [ActivityState(n, day.isoformat(), merged=False, stale=False) for n in range(9)]
    memories: list[MemoryState] = []
    for _ in range(4):
        due = plan_rollups(activities, memories, today, policy)
        for item in due:
            assert item.closes == (item.period < today.isoformat()[: len(item.period)])
        activities, memories = settle(activities, memories, due)
