"""Where windows close."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.windows import WindowPolicy, plan_windows
from plugins.nonebot_plugin_nianlun.types import Message, Source, Window

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
POLICY = WindowPolicy(messages=50, min_messages=8, idle=timedelta(minutes=20))
MORNING = datetime(2026, 11, 29, 2, 0, tzinfo=UTC)


def line(seq: int, minutes: float, source: Source = "event") -> Message:
    at = MORNING + timedelta(minutes=minutes)
    return Message(seq=seq, time=at, user_id="1", name="甲", text="在", source=source)


def plan(
    messages: list[Message],
    after: float,
    *,
    everything: bool = False,
    more: bool = False,
    noted: float | None = None,
) -> list[Window]:
    """The windows at so many minutes after the first message, with notes up to `noted`."""
    now = MORNING + timedelta(minutes=after)
    noted_until = None if noted is None else MORNING + timedelta(minutes=noted)
    return plan_windows(
        messages,
        CALENDAR,
        POLICY,
        now,
        everything=everything,
        more=more,
        noted_until=noted_until,
    )


def seqs(windows: list[Window]) -> list[list[int]]:
    return [[m.seq for m in window.messages] for window in windows]


def test_the_trigger_count_closes_and_bounds_a_window() -> None:
    burst = [line(n, n / 100) for n in range(1, 121)]
    assert [len(run) for run in seqs(plan(burst, 2))] == [50, 50]
    assert plan(burst[:49], 2) == []


@pytest.mark.parametrize(("count", "silence", "closed"), [(8, 20, 1), (8, 19.9, 0), (7, 60, 0)])
def test_silence_closes_from_the_minimum_on(count: int, silence: float, closed: int) -> None:
    messages = [line(n, 0) for n in range(count)]
    assert len(plan(messages, silence)) == closed


def test_silence_between_messages_counts_as_it_would_have_live() -> None:
    messages = [line(n, n) for n in range(8)] + [line(8, 40)]
    assert seqs(plan(messages, 41)) == [list(range(8))]


def test_the_end_of_the_day_closes_whatever_is_pending() -> None:
    evening = [line(1, 0)]
    until_four = 18 * 60
    assert plan(evening, until_four) == []
    (window,) = plan(evening, until_four + 2)
    assert window.date == "2026-11-29"


def test_a_window_never_crosses_a_logical_day_and_belongs_to_the_night_before() -> None:
    night = [line(1, 15.5 * 60), line(2, 18 * 60 - 1), line(3, 18 * 60)]
    windows = plan(night, 18 * 60 + 1, everything=True)
    assert seqs(windows) == [[1, 2], [3]]
    assert [window.date for window in windows] == ["2026-11-29", "2026-11-30"]


def test_a_late_message_of_another_day_has_a_window_of_its_own() -> None:
    late = [line(9, -24 * 60), line(1, 0), line(2, 1)]
    assert seqs(plan(late, 2)) == [[9]]


def test_imported_messages_share_no_window_with_live_ones() -> None:
    mixed = [line(1, 0), line(5, 0.5, "import"), line(2, 1)]
    assert seqs(plan(mixed, 2)) == [[5]]
    assert seqs(plan(mixed, 2, everything=True)) == [[1, 2], [5]]


def test_what_was_fetched_in_time_is_part_of_the_talk() -> None:
    talk = [line(1, 0), *(line(n, n / 10, "history") for n in range(5, 10)), line(2, 1)]
    for noted in (None, -5):
        assert seqs(plan(talk, 2, everything=True, noted=noted)) == [[1, 5, 6, 7, 8, 9, 2]]


def test_what_was_fetched_after_younger_lines_were_noted_has_a_window_of_its_own() -> None:
    late = [line(n, n / 10, "history") for n in range(20, 24)]
    assert seqs(plan([*late, line(30, 9)], 10, everything=True, noted=8)) == [
        [20, 21, 22, 23],
        [30],
    ]
    eight = [line(n, n / 10, "history") for n in range(20, 28)]
    assert seqs(plan([*eight, line(30, 9)], 25, noted=8)) == [list(range(20, 28))]
    assert plan([*late, line(30, 9)], 25, noted=8) == []


def test_the_last_run_waits_while_younger_messages_are_not_read_yet() -> None:
    messages = [line(n, n / 100) for n in range(1, 61)]
    assert len(plan(messages, 9999, everything=True, more=True)) == 1


@given(
    st.lists(
        st.tuples(st.integers(0, 5000), st.sampled_from(["event", "history", "import"])),
        max_size=300,
    ),
    st.booleans(),
    st.none() | st.integers(0, 5000),
)
def test_every_message_is_in_at_most_one_window(
    times: list[tuple[int, Source]], everything: bool, noted: int | None
) -> None:
    ordered = sorted(times)
    messages = [line(seq, minutes, source) for seq, (minutes, source) in enumerate(ordered)]
    windows = plan(messages, 5000, everything=everything, noted=noted)
    taken = [m.seq for window in windows for m in window.messages]
    assert len(taken) == len(set(taken))
    if everything:
        assert sorted(taken) == [m.seq for m in messages]
    for window in windows:
        assert 1 <= len(window.messages) <= POLICY.messages
        days = {CALENDAR.day_of(m.time).isoformat() for m in window.messages}
        assert days == {window.date}
        assert list(window.messages) == sorted(window.messages, key=lambda m: m.time)
