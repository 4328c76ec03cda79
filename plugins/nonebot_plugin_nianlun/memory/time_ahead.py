"""The times in a text that are still to come, whether or not anybody asks about them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
import re

from .calendar import Calendar
from .time_lexicon import count
from .time_spans import Frame, months
from .time_words import find_times, readable

_RECURRING_BEFORE = re.compile(r"(?:[每逢]个?|(?<!是)不是|\b(?:every|each|not)\s+)$", re.IGNORECASE)
_WEEKEND = re.compile("(?:周|星期|礼拜)末")
_WITHIN = re.compile(
    r"(?P<n>[0-9]{1,3}|[一二两三四五六七八九十]{1,3})个?(?P<unit>天|日|周|星期|礼拜|月)[之以]?内"
    r"|\b(?:with)?in\s+(?P<en>[0-9]{1,3})\s+(?P<en_unit>day|week|month)s?\b",
    re.IGNORECASE,
)
_END_OF = re.compile(
    r"(?<![个下本这今明去大0-9一二三四五六七八九十])(?P<unit>[月年])[底末]"
    r"|\bend\s+of\s+(?:the|this)\s+(?P<en>week|month|year)\b",
    re.IGNORECASE,
)
_LOOK_BACK = 16


@dataclass(frozen=True, slots=True)
class Ahead:
    """A time in a text that is not over."""

    first: date
    """Where it begins, if it is days (春节); of a week, a month or a year the same as `day`."""
    day: date
    """Its last logical day."""
    start: int
    end: int


def times_ahead(text: str, *, now: datetime, calendar: Calendar) -> list[Ahead]:
    """The times of `text`, said at `now`, that are today or still to come, in their order.

    What is not told to be past counts forward here: 周五 is the next one, today included. Denied
    and recurring times are left out. Any text is safe.
    """
    plain, frame = readable(text), Frame(calendar, now)
    ahead: list[Ahead] = []
    for found in find_times(plain):
        before = plain[max(0, found.start - _LOOK_BACK) : found.start]
        if _RECURRING_BEFORE.search(before):
            continue
        try:
            span = found.rule.meaning(found.match, frame, frame.day(0))
            if span is None:
                continue
            weekend = timedelta(days=7 if _WEEKEND.fullmatch(found.match[0]) else 0)
            last = span.last if span.last >= frame.today else span.last + weekend
        except (ValueError, OverflowError):  # 2月30日, and years in no calendar
            continue
        if last >= frame.today:
            first = max(span.first, frame.today) if span.unit == "day" else last
            ahead.append(Ahead(first, last, found.start, found.end))
    ahead += [*_within(plain, frame), *_ends(plain, frame)]
    return sorted(ahead, key=lambda time: time.start)


def _within(text: str, frame: Frame) -> list[Ahead]:
    """三天内, "in 3 days": until the day that lies so far away."""
    found: list[Ahead] = []
    for match in _WITHIN.finditer(text):
        number = count(match["n"] or match["en"])
        unit = match["unit"] or match["en_unit"].lower()
        days = {"天": 1, "日": 1, "day": 1, "月": 30, "month": 30}.get(unit, 7)
        if number is not None and number[0] > 0:
            with suppress(OverflowError):
                day = frame.day(number[1] * days).last
                found.append(Ahead(day, day, match.start(), match.end()))
    return found


def _ends(text: str, frame: Frame) -> list[Ahead]:
    """月底, "end of the week": the last day of the one that is now."""
    found: list[Ahead] = []
    for match in _END_OF.finditer(text):
        with suppress(ValueError, OverflowError):
            day = _last_of(match["unit"] or match["en"].lower(), frame)
            found.append(Ahead(day, day, match.start(), match.end()))
    return found


def _last_of(unit: str, frame: Frame) -> date:
    if unit == "week":
        return frame.week(0).last
    if unit in ("年", "year"):
        return date(frame.today.year, 12, 31)
    return months(*frame.month(0)).last
