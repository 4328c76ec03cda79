"""Spans of logical days seen from one moment: the week, month, year or date that words mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
import re
from typing import Literal, NamedTuple, TypeAlias

from .calendar import Calendar
from .time_holidays import HOLIDAYS

Unit: TypeAlias = Literal["part", "day", "week", "month", "year"]
"""The size of what was named, in which a window widens."""
Part: TypeAlias = tuple[int | None, int | None]
"""Hours of a day from, and until; None is where the logical day begins or ends."""

SMALL_HOURS: Part = (0, 6)
"""Of the date itself, though they stand before the logical day begins."""
SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
"""Each season's first month, as reckoned in the north."""


@dataclass(frozen=True, slots=True)
class Span:
    """Whole logical days, or a part of one, or two moments."""

    first: date
    last: date
    unit: Unit
    part: Part | None = None
    counted: bool = False
    """Counted from today (昨天), so that the small hours belong to the night one is still in."""
    assumed: bool = False
    """Its year, month or week was not named; the last one is meant."""
    moments: tuple[datetime, datetime] | None = None


class Frame:
    """One moment's today, and what is counted from it. Weeks begin on Monday.

    Methods raise ValueError or OverflowError for what is in no calendar.
    """

    __slots__ = ("calendar", "now", "today")

    def __init__(self, calendar: Calendar, now: datetime) -> None:
        self.calendar = calendar
        self.now = now
        self.today = calendar.day_of(now)

    def day(self, shift: int) -> Span:
        day = self.today + timedelta(days=shift)
        return Span(day, day, "day", counted=True)

    def days(self, first: int, last: int, unit: Unit = "day") -> Span:
        """From `first` to `last` days away from today; those before are negative."""
        return Span(self.today + timedelta(days=first), self.today + timedelta(days=last), unit)

    def monday(self, shift: int) -> date:
        return self.today + timedelta(days=7 * shift - self.today.weekday())

    def week(self, shift: int) -> Span:
        monday = self.monday(shift)
        return Span(monday, monday + timedelta(days=6), "week")

    def weekday(self, shift: int, index: int) -> Span:
        day = self.monday(shift) + timedelta(days=index)
        return Span(day, day, "day")

    def weekend(self, shift: int) -> Span:
        saturday = self.monday(shift) + timedelta(days=5)
        return Span(saturday, saturday + timedelta(days=1), "week")

    def recent_weekday(self, index: int, after: Span | None) -> Span:
        """The last such day, today included; or the first one from `after` on."""
        if after:
            day = after.first + timedelta(days=(index - after.first.weekday()) % 7)
        else:
            day = self.today - timedelta(days=(self.today.weekday() - index) % 7)
        return Span(day, day, "day", assumed=True)

    def between(self, begin: datetime, end: datetime) -> Span:
        first, last = self.calendar.day_of(begin), self.calendar.day_of(end)
        return Span(first, last, "part", moments=(begin.astimezone(UTC), end.astimezone(UTC)))

    def month(self, shift: int) -> tuple[int, int]:
        """Year and month that many months away."""
        return month_away(self.today, shift)

    def recent(self, dates: Callable[[int], Span], after: Span | None) -> Span:
        """Of something yearly the last one that has begun; or the first one from `after` on.

        `dates` raises ValueError in a year without it, as 29 February.
        """
        years = (
            range(after.first.year, after.first.year + 9)
            if after
            else range(self.today.year + 1, self.today.year - 9, -1)
        )
        for year in years:
            try:
                span = dates(year)
            except ValueError:
                continue
            if span.first >= after.first if after else span.first <= self.today:
                return replace(span, assumed=True)
        raise ValueError("no such date in the years around")

    def recent_day(self, dates: Callable[[int, int], Span], after: Span | None) -> Span:
        """The same of something monthly; `dates` takes a year and a month."""
        base = after.first if after else self.today
        for shift in (0, 1, 2) if after else (0, -1, -2):
            try:
                span = dates(*month_away(base, shift))
            except ValueError:
                continue
            if span.first >= base if after else span.first <= base:
                return replace(span, assumed=True)
        raise ValueError("no such day in the months around")


class Rule(NamedTuple):
    """A way to name a time."""

    signs: tuple[str, ...]
    """One of these is in every match, in lower case; a text without any need not be searched."""
    pattern: re.Pattern[str]
    meaning: Callable[[re.Match[str], Frame, Span | None], Span | None]
    """The span that a match means, given the frame and the span that it follows behind a 到, if
    any. May raise ValueError or OverflowError for what is in no calendar."""


def month_away(day: date, shift: int) -> tuple[int, int]:
    """Year and month that many months from that of `day`."""
    year, month = divmod(day.year * 12 + day.month - 1 + shift, 12)
    return year, month + 1


def one_day(year: int, month: int, day: int) -> Span:
    only = date(year, month, day)
    return Span(only, only, "day")


def days_of(year: int, month: int, first: int, last: int) -> Span:
    """The dates `first` to `last`, which may be one of the next month when it is lower."""
    begin = date(year, month, first)
    if last > first:
        return Span(begin, date(year, month, last), "day")
    year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return Span(begin, date(year, month, last), "day")


def months(year: int, first: int, length: int = 1) -> Span:
    """Whole months from the `first` one of the year on."""
    after, month = divmod(year * 12 + first - 1 + length, 12)
    return Span(date(year, first, 1), date(after, month + 1, 1) - timedelta(days=1), "month")


def third(year: int, month: int, name: str) -> Span:
    """初, 上旬; 中, 中旬; 底, 末, 下旬: the days 1 to 10, 11 to 20, and the rest of a month."""
    whole = months(year, month)
    begin = 1 if name in ("初", "上旬") else 11 if name in ("中", "中旬") else 21
    last = whole.last if begin == 21 else date(year, month, begin + 9)
    return Span(date(year, month, begin), last, "week")


def whole_year(year: int) -> Span:
    return Span(date(year, 1, 1), date(year, 12, 31), "year")


def season(year: int, first_month: int) -> Span:
    return months(year, first_month, 3)


def holiday(year: int, name: str) -> Span:
    first, last = HOLIDAYS[name](year)
    return Span(first, last, "day")


def with_part(span: Span, part: Part) -> Span:
    return replace(span, part=part, unit="part")


def moments(span: Span, calendar: Calendar, now: datetime) -> tuple[datetime, datetime]:
    """The first moment of `span` and the first one after it, in UTC."""
    if span.moments:
        return span.moments
    begin, end = calendar.start_of(span.first), calendar.end_of(span.last)
    if span.part is None:
        return begin, end
    if span.part == SMALL_HOURS:
        local = calendar.local(now)
        still_up = span.counted and local.date() > calendar.day_of(now)
        day = span.first + timedelta(days=1 if still_up else 0)
        return _at(calendar, day, 0), _at(calendar, day, SMALL_HOURS[1] or 0)
    since, until = span.part
    part_begin = begin if since is None else max(begin, _at(calendar, span.first, since))
    part_end = end if until is None else min(end, _at(calendar, span.last, until))
    return (part_begin, part_end) if part_begin < part_end else (begin, end)


def _at(calendar: Calendar, day: date, hour: int) -> datetime:
    return Calendar(calendar.zone, time(hour)).start_of(day)


_PART_HOURS: tuple[tuple[str, Part], ...] = (
    ("凌晨|early morning|small hours", SMALL_HOURS),
    ("大清早|清晨|清早|一早|晨", (None, 10)),
    ("早上|早晨|早|morning", (None, 12)),
    ("上午", (6, 12)),
    ("中午|noon", (11, 14)),
    ("午后|下午|afternoon", (12, 19)),
    ("傍晚", (16, 20)),
    ("深夜|半夜|午夜", (21, None)),
    ("晚上|晚间|夜里|夜晚|夜间|晚|夜|evening|night", (17, None)),
)
PARTS: dict[str, Part] = {name: part for names, part in _PART_HOURS for name in names.split("|")}
PART_WORDS = re.compile(
    r"的?(?P<part>大清早|清晨|清早|一早|凌晨|早上|早晨|早(?![就已点])|晨(?![跑练报])|上午|中午|午后|下午|傍晚|"
    r"晚上|晚间|夜里|夜晚|夜间|深夜|半夜|午夜|晚(?![点了年会])|夜(?![宵市班]))"
)
