"""Dates as people type them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
import re
import unicodedata
from zoneinfo import ZoneInfo

from ..types import MemoryKind
from .calendar import Calendar
from .time_words import TimeRange, parse_time_range

PERIOD_SHAPE = r"[0-9]{4}(?:[-/.][0-9]{1,2}){0,2}"
"""What is meant as a day, a month or a year, whether or not it exists."""
PERIOD_HINT = "请写成 2026-01-05、2026-01 或 2026。"
_LONGEST = 40
MOST_WORDS = 8
"""Of a time that is typed with blanks: 2026 年 11 月 28 日 上午."""
_FILLERS = re.compile(r"[\s的那这天]*")
_GAP = re.compile(r"(?<=\S)\s+(?=[\u4e00-\u9fff])")
_GOES_ON = re.compile("[0-9]{4} ?年(?:[ 0-9]|$)|.*月 [0-9]+ ?[日号]")
"""A date of which more stands behind its first word."""
_A_DAY_OF_IT = re.compile("[0-9]{1,2} ?[日号]")
_LONGEST_PART = timedelta(hours=12)
_ANY_CALENDAR = Calendar(ZoneInfo("UTC"), time(0))
_ANY_DAY = datetime(2048, 12, 31, 12, tzinfo=UTC)
"""The end of a leap year: whatever part of a year and whatever date is named has begun then."""


def read_period(text: str) -> tuple[MemoryKind, str] | None:
    """`2026-1-5` -> `("day", "2026-01-05")`; None when `text` has another shape or no such
    date exists."""
    text = unicodedata.normalize("NFKC", text)  # phones type full-width digits
    if not re.fullmatch(PERIOD_SHAPE, text):
        return None
    numbers = [int(part) for part in re.split(r"[-/.]", text)]
    try:
        key = date(*numbers, *[1] * (3 - len(numbers))).isoformat()
    except ValueError:
        return None
    kinds: tuple[MemoryKind, ...] = ("year", "month", "day")
    return kinds[len(numbers) - 1], key[: (4, 7, 10)[len(numbers) - 1]]


def names_time(text: str) -> bool:
    """Whether `text` is a time and nothing else, on whatever day it is said; also a date that
    there is not, as long as it is written as one."""
    plain = unicodedata.normalize("NFKC", text) if len(text) <= _LONGEST else ""
    if re.fullmatch(PERIOD_SHAPE, plain):
        return True
    return read_time(text, _ANY_CALENDAR, _ANY_DAY) is not None


def time_of_words(words: Sequence[str]) -> tuple[int, str] | None:
    """The longest time that `words` begin with, if it is of two words or more: of how many, and
    the time without the blanks that part it (前天 上午 -> 2, 前天上午)."""
    return _longest(words, names_time)


def date_before_text(words: Sequence[str]) -> tuple[int, str] | None:
    """As `time_of_words`, the day, month or year of several words that stands before a free text
    (11 月 28 日 新文); None where the first word is a time by itself, but for a year or a month
    before a day of it (11月 28日 新文).

    Nothing that may be a word of the text is taken with it: no part of the day, no 的 or 那. A
    month is none before a day of it with more behind (11 月 28 日晚上).
    """
    words = [unicodedata.normalize("NFKC", word) for word in words[:MOST_WORDS]]
    if names_time(words[0]) and not _GOES_ON.match(" ".join(words)):
        return None
    found = _longest(words, _is_bare_date)
    if found and found[1].endswith("月") and _A_DAY_OF_IT.match(" ".join(words[found[0] :])):
        return None
    return found


def _longest(words: Sequence[str], fits: Callable[[str], bool]) -> tuple[int, str] | None:
    longest = 1 if _FILLERS.fullmatch(words[0]) else min(len(words), MOST_WORDS)
    for count in range(longest, 1, -1):
        text = _GAP.sub("", " ".join(words[:count]))
        if fits(text):
            return count, text
    return None


def _is_bare_date(text: str) -> bool:
    """Whether `text` is a day, a month or a year, with no word around it."""
    found = read_time(text, _ANY_CALENDAR, _ANY_DAY)
    if found is None or found.unit == "part" or len(found.words) != len(text):
        return False
    return read_date(text, _ANY_CALENDAR, _ANY_DAY) is not None


def read_time(text: str, calendar: Calendar, now: datetime) -> TimeRange | None:
    """The time that `text` is, all of it; None for words that are, or have in them, more."""
    if len(text) > _LONGEST:
        return None
    text = _GAP.sub("", text)  # 昨天 下午
    found = parse_time_range(text, now=now, tz=calendar.zone, day_starts_at=calendar.day_starts_at)
    if found is None or not _FILLERS.fullmatch(text.replace(found.words, "", 1)):
        return None
    return found


def read_date(text: str, calendar: Calendar, now: datetime) -> tuple[MemoryKind, str] | None:
    """A day, month or year as a date or in words (上周三, 去年7月21日, 上个月); else None.

    A part of a day (昨晚) and a moment of it (刚才) stand for the logical day that they are in; the
    small hours, which are the end of one and the beginning of the next, for that of their middle.
    """
    if (period := read_period(text)) is not None:
        return period
    if re.fullmatch(PERIOD_SHAPE, text) or (found := read_time(text, calendar, now)) is None:
        return None
    if found.unit == "part" and (length := found.end - found.begin) <= _LONGEST_PART:
        return "day", calendar.day_of(found.begin + length / 2).isoformat()
    first, last = found.first_day, found.last_day
    if found.unit in ("part", "day") and first == last:
        return "day", first.isoformat()
    if found.unit == "month" and (first.year, first.month) == (last.year, last.month):
        return "month", first.isoformat()[:7]
    if found.unit == "year" and first.year == last.year:
        return "year", first.isoformat()[:4]
    return None
