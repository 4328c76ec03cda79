"""The logical day: which date a moment belongs to, and when that date begins and ends."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

_ONE_DAY = timedelta(days=1)
_WEEKDAYS = "一二三四五六日"
_HOURS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
# Each part of the day with its first hour.
_PARTS = (
    (23, "深夜"), (19, "晚上"), (17, "傍晚"), (13, "下午"), (12, "中午"),
    (8, "上午"), (5, "清晨"), (0, "凌晨"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calendar:
    """Logical days of one time zone. Every moment is in exactly one of them.

    A day begins when the clocks of the zone first show `day_starts_at` on its date, or jump over
    it, and ends where the next begins; so it may have 23 or 25 hours.
    """

    zone: ZoneInfo
    day_starts_at: time

    def local(self, moment: datetime) -> datetime:
        """`moment` as the clocks of the zone show it. Raises ValueError when it has no zone."""
        return _checked(moment).astimezone(self.zone)

    def day_of(self, moment: datetime) -> date:
        """The logical day that `moment` belongs to. Raises ValueError when it has no zone."""
        if moment.tzinfo is not UTC:
            # In one zone both passes of a repeated hour compare equal, and are different moments.
            moment = _checked(moment).astimezone(UTC)
        return _day_of(self, moment)

    def start_of(self, day: date) -> datetime:
        """The first moment of the logical day, in UTC."""
        return _start_of(self.zone, self.day_starts_at, day)

    def end_of(self, day: date) -> datetime:
        """The first moment that is no longer in the logical day, in UTC."""
        return self.start_of(day + _ONE_DAY)

    def clock_words(self, moment: datetime) -> str:
        """The time of day to the half hour, as one would say it: 凌晨一点半左右."""
        local = self.local(moment)
        halves = (local.hour * 60 + local.minute + 15) // 30 % 48
        hour, half = divmod(halves, 2)
        part = next(words for first, words in _PARTS if hour >= first)
        return f"{part}{_HOURS[hour if hour <= 12 else hour - 12]}点{'半' if half else ''}左右"


def _checked(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise ValueError("a moment needs a time zone")
    return moment


# What stands before one reply mostly stands before the next.
@lru_cache(4_096)
def _day_of(calendar: Calendar, moment: datetime) -> date:
    day = moment.astimezone(calendar.zone).date()
    while moment < calendar.start_of(day):
        day -= _ONE_DAY
    while moment >= calendar.end_of(day):
        day += _ONE_DAY
    return day


@lru_cache(maxsize=1024)
def _start_of(zone: ZoneInfo, day_starts_at: time, day: date) -> datetime:
    wall = datetime.combine(day, day_starts_at, zone)
    start = wall.astimezone(UTC)
    if start.astimezone(zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return start
    # The clocks skip this time. Read with the offset after the jump it is a moment before the
    # jump, with the one before it a moment behind (PEP 495); the jump is in between.
    after = wall.replace(fold=1)
    early = after.astimezone(UTC)
    seconds = bisect_left(
        range(int((start - early).total_seconds())),
        True,
        key=lambda s: (
            (early + timedelta(seconds=s)).astimezone(zone).utcoffset() == after.utcoffset()
        ),
    )
    return early + timedelta(seconds=seconds)


def weekday(day: date) -> str:
    """`周日`."""
    return f"周{_WEEKDAYS[day.weekday()]}"


def titled(period: str) -> str:
    """`2026-11-29（周日）`; a month or a year as it is."""
    is_day = len(period) == len("2026-11-29")
    return f"{period}（{weekday(date.fromisoformat(period))}）" if is_day else period


def day_after(period: str) -> date:
    """The first day after a day, month or year."""
    year, month, day = (int(part) for part in f"{period}-00-00".split("-")[:3])
    if day:
        return date(year, month, day) + timedelta(days=1)
    return date(year + month // 12, month % 12 + 1, 1) if month else date(year + 1, 1, 1)
