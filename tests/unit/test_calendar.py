"""Logical days in zones whose clocks jump."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar

SHANGHAI = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
ZONES = [
    "Asia/Shanghai", "UTC", "America/New_York", "Australia/Lord_Howe", "Europe/London",
    "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca", "America/Sao_Paulo",
]  # fmt: skip
CALENDARS = st.builds(
    Calendar,
    st.sampled_from(ZONES).map(ZoneInfo),
    st.builds(time, st.integers(0, 11), st.sampled_from([0, 1, 15, 30, 59])),
)
MOMENTS = st.integers(157_766_400, 2_082_758_400).map(lambda s: datetime.fromtimestamp(s, UTC))
DAYS = st.dates(date(1975, 1, 1), date(2036, 1, 1))


def at(calendar: Calendar, text: str, *, fold: int = 0) -> datetime:
    wall = datetime.fromisoformat(text).replace(tzinfo=calendar.zone, fold=fold)
    return wall.astimezone(UTC)


@given(CALENDARS, MOMENTS)
def test_every_moment_lies_in_its_day(calendar: Calendar, moment: datetime) -> None:
    day = calendar.day_of(moment)
    assert calendar.start_of(day) <= moment < calendar.end_of(day)


@given(CALENDARS, DAYS)
def test_days_tile_the_line(calendar: Calendar, day: date) -> None:
    start, end = calendar.start_of(day), calendar.end_of(day)
    assert start < end
    assert end == calendar.start_of(day + timedelta(days=1))
    assert calendar.day_of(start) == day
    assert calendar.day_of(end - timedelta(microseconds=1)) == day


@given(CALENDARS, DAYS)
def test_a_day_begins_as_soon_as_the_clocks_have_reached_its_hour(
    calendar: Calendar, day: date
) -> None:
    wall = datetime.combine(day, calendar.day_starts_at)
    start = calendar.start_of(day)
    assert calendar.local(start).replace(tzinfo=None) >= wall
    assert calendar.local(start - timedelta(seconds=1)).replace(tzinfo=None) < wall


@given(MOMENTS)
def test_the_zone_of_the_moment_does_not_matter(moment: datetime) -> None:
    elsewhere = moment.astimezone(ZoneInfo("America/New_York"))
    assert SHANGHAI.day_of(elsewhere) == SHANGHAI.day_of(moment)


def test_half_past_one_belongs_to_the_day_before() -> None:
    assert SHANGHAI.day_of(at(SHANGHAI, "2026-11-30 01:30")) == date(2026, 11, 29)
    assert SHANGHAI.day_of(at(SHANGHAI, "2026-11-30 03:59:59")) == date(2026, 11, 29)
    assert SHANGHAI.day_of(at(SHANGHAI, "2026-11-30 04:00")) == date(2026, 11, 30)
    assert SHANGHAI.start_of(date(2026, 11, 29)) == datetime(2026, 11, 28, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", date(2026, 3, 7), 23),
        ("America/New_York", date(2026, 10, 31), 25),
        ("Australia/Lord_Howe", date(2026, 4, 4), 24.5),
        ("Australia/Lord_Howe", date(2026, 10, 3), 23.5),
        ("Asia/Shanghai", date(2026, 3, 7), 24),
    ],
)
def test_the_length_of_days_when_clocks_change(zone: str, day: date, hours: float) -> None:
    calendar = Calendar(ZoneInfo(zone), time(4, 0))
    assert calendar.end_of(day) - calendar.start_of(day) == timedelta(hours=hours)


def test_a_skipped_hour_begins_the_day_at_the_jump() -> None:
    calendar = Calendar(ZoneInfo("America/New_York"), time(2, 30))
    assert calendar.start_of(date(2026, 3, 8)) == datetime(2026, 3, 8, 7, 0, tzinfo=UTC)
    assert calendar.day_of(at(calendar, "2026-03-08 03:10")) == date(2026, 3, 8)
    assert calendar.day_of(at(calendar, "2026-03-08 01:59")) == date(2026, 3, 7)


def test_a_repeated_hour_begins_the_day_once() -> None:
    calendar = Calendar(ZoneInfo("America/New_York"), time(1, 30))
    assert calendar.day_of(at(calendar, "2026-11-01 01:29")) == date(2026, 10, 31)
    assert calendar.day_of(at(calendar, "2026-11-01 01:30")) == date(2026, 11, 1)
    assert calendar.day_of(at(calendar, "2026-11-01 01:10", fold=1)) == date(2026, 11, 1)
    first = datetime(2026, 11, 1, 1, 15, tzinfo=calendar.zone)
    assert calendar.day_of(first) == date(2026, 10, 31)
    assert calendar.day_of(first.replace(fold=1)) == date(2026, 11, 1)


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        SHANGHAI.day_of(datetime(2026, 11, 29, 12, 0))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ("00:05", "凌晨零点左右"),
        ("01:30", "凌晨一点半左右"),
        ("02:14", "凌晨两点左右"),
        ("05:40", "清晨五点半左右"),
        ("08:50", "上午九点左右"),
        ("11:50", "中午十二点左右"),
        ("12:20", "中午十二点半左右"),
        ("12:50", "下午一点左右"),
        ("17:16", "傍晚五点半左右"),
        ("20:00", "晚上八点左右"),
        ("22:46", "深夜十一点左右"),
        ("23:50", "凌晨零点左右"),
    ],
)
def test_the_time_of_day_in_words(clock: str, words: str) -> None:
    assert SHANGHAI.clock_words(at(SHANGHAI, f"2026-11-29 {clock}")) == words
