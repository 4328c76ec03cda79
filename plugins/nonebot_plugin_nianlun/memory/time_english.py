"""English words for a span of time. Each rule is a pattern and what it means."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
import re

from .time_holidays import HOLIDAYS
from .time_relative import around, until_today
from .time_spans import (
    PARTS,
    SEASONS,
    Frame,
    Rule,
    Span,
    days_of,
    holiday,
    months,
    one_day,
    season,
    whole_year,
    with_part,
)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"(?:jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?)"
)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WEEKDAY = rf"(?:{_FULL_WEEKDAY}|(?:mon|tues?|wed|thurs?|thu|fri|sat|sun)\b\.?)"
_PART = "(?:early morning|morning|afternoon|evening|night)"
_ORDINAL = r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?(?![0-9A-Za-z:/%])(?!\.[0-9])"
_YEAR = "(?:19|20)[0-9]{2}(?![0-9])"
_NUMBERS = {
    word: value
    for value, words in enumerate(
        ("", "a|an|one", "two|a couple of|couple of", "three", "four", "five", "six", "seven",
         "eight", "nine", "ten", "eleven", "twelve")
    )
    for word in words.split("|")
}  # fmt: skip
_NUMBER = (
    r"(?:(?<![0-9.,/-])[0-9]{1,5}|a\s+couple\s+of|couple\s+of|an?|one|two|three|four|five|six|"
    r"seven|eight|nine|ten|eleven|twelve)"
)
_SEASON_NAMES = {"spring": "春", "summer": "夏", "fall": "秋", "autumn": "秋", "winter": "冬"}
_SEASON = "(?:spring|summer|fall|autumn|winter)"
_NO_DATE = r"(?!\s*(?:people|persons?|times|miles|km|kg|percent|dollars|points?|hours?|minutes?)\b)"


def _pattern(words: str) -> re.Pattern[str]:
    # ASCII: a Chinese character ends a word.
    whole = rf"(?<![\w'’/@#-])(?:{words})(?![\w-])".replace(" ", r"\s+")
    return re.compile(whole, re.IGNORECASE | re.ASCII)


_DAYS = _pattern(
    rf"(?:the )?day (?:(?P<before>before yesterday)|(?P<after>after tomorrow))(?: (?P<p2>{_PART}))?"
    rf"|(?P<name>yesterday|today|tomorrow)(?:(?:['’]s)? (?P<part>{_PART}))?"
    r"|(?P<night>(?:last night|tonight))"
    r"|this (?P<this>morning|afternoon|evening)|earlier (?P<earlier>today)"
)
_AGO = _pattern(
    rf"(?P<n>{_NUMBER}|(?P<few>a few|few)|(?P<half>half an?)) "
    r"(?P<unit>day|week|month|year|hour|minute)s? ago"
)
_LATELY = _pattern(
    rf"(?:the )?(?:(?:last|past) (?:(?P<n>{_NUMBER})|(?P<few>few|several)) "
    r"(?P<unit>day|week|month|year)s?|past (?P<one>week|month|year))"
)
_AWAY = _pattern(
    r"(?:the )?(?:(?P<two>(?P<unit2>week|month|year) before last)"
    r"|(?P<way>last|previous|this|next) (?:(?P<unit>week|month|year|weekend)(?! of)"
    rf"|(?P<season>{_SEASON})"
    rf"|(?P<weekday>{_WEEKDAY})(?: (?P<part>{_PART}))?|(?P<month>{_MONTH})))"
)
_MONTH_FIRST = _pattern(
    rf"(?P<month>{_MONTH}) (?:the )?(?P<d>{_ORDINAL}){_NO_DATE}"
    rf"(?:\s*(?:-|–|—|to|through|until|till|and(?=\s*{_ORDINAL}\s*(?:[,.?!]|$)))\s*(?:the )?"
    rf"(?P<to>{_ORDINAL})(?!\s*{_MONTH}))?(?:\s*,?\s*(?P<y>{_YEAR}))?"
)
_DAY_FIRST = _pattern(
    rf"(?:the )?(?P<d>{_ORDINAL})(?:\s*(?:-|–|—|to|through)\s*(?P<to>{_ORDINAL}))?(?: of)? "
    rf"(?P<month>{_MONTH})(?:\s*,?\s*(?P<y>{_YEAR}))?"
)
_MONTH_ALONE = _pattern(rf"(?P<month>{_MONTH})(?:(?: of)?,? (?P<y>{_YEAR}))?")
_SIGN = re.compile(
    r"\b(?:in|during|since|throughout|until|before|after|late|early|mid|year)[\s-]+(?:the\s+)?$",
    re.IGNORECASE,
)
_WEEK_OF = re.compile(r"\bweek(?P<end>end)?\s+of\s+(?:the\s+)?$", re.IGNORECASE)
_SURE_MONTHS = frozenset(
    ("january", "february", "july", "september", "october", "november", "december")
)
_YEAR_ALONE = _pattern(
    rf"(?:(?P<season>{_SEASON}) (?:of )?)?(?P<y>{_YEAR})"
    r"(?! (?:words|people|dollars|steps|lines|units|tokens|years|pieces))"
)
_ON_THE = _pattern(rf"on the (?P<d>{_ORDINAL})(?= *(?:$|[,.?!]))".replace(" *", r"\s*"))
_WEEKDAY_ALONE = _pattern(
    rf"(?:on (?P<short>{_WEEKDAY})|(?<!black\s)(?<!good\s)(?<!ash\s)(?P<name>{_FULL_WEEKDAY}))"
    rf"(?: (?P<part>{_PART}))?"
)
_US_DATE = re.compile(
    rf"(?<![0-9A-Za-z_./:\-])(?P<a>[0-9]{{1,2}})/(?P<b>[0-9]{{1,2}})/(?P<y>{_YEAR})(?![/.\w-])"
)
_HOLIDAY = re.compile(
    r"(?<![\w'’-])(?:(?P<way>last|this)\s+)?(?P<name>"
    + "|".join(
        re.escape(name).replace("\\ ", r"\s+").replace("'", "['’]?")
        for name in HOLIDAYS
        if name.isascii()
    )
    + rf")(?:\s+(?:day|holiday))?(?:\s+(?:of\s+)?(?P<y>{_YEAR}))?(?![\w-])"
    r"(?!\s+(?:tree|card|song))",
    re.IGNORECASE | re.ASCII,
)
_LETTERS = re.compile("[^a-z]")
_HOLIDAY_NAMES = {_LETTERS.sub("", name): name for name in HOLIDAYS if name.isascii()}


def _number(words: str) -> int:
    plain = " ".join(words.lower().split())
    return int(plain) if plain.isdigit() else _NUMBERS[plain]


def _month(words: str) -> int:
    return _MONTHS.index(words[:3].lower()) + 1


def _part(span: Span, words: str | None) -> Span:
    return with_part(span, PARTS[" ".join(words.lower().split())]) if words else span


def _days(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    if match["before"] or match["after"]:
        return _part(frame.day(-2 if match["before"] else 2), match["p2"])
    if match["night"]:
        return _part(frame.day(-1 if match["night"].lower().startswith("l") else 0), "night")
    name = (match["name"] or "today").lower()
    shift = {"yesterday": -1, "today": 0, "tomorrow": 1}[name]
    return _part(frame.day(shift), match["part"] or match["this"])


def _ago(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    unit = match["unit"].lower()
    if match["few"]:
        return frame.days(-7, -2) if unit == "day" else None
    if match["half"]:
        if unit == "year":
            return months(*frame.month(-6))
        return around(frame, -30, -30) if unit == "hour" else None
    number = _number(match["n"])
    if not 0 < number <= 36_600:
        return None
    if unit == "day":
        return frame.day(-number)
    if unit == "week":
        return frame.week(-number)
    if unit == "month":
        return months(*frame.month(-number))
    if unit == "year":
        return whole_year(frame.today.year - number)
    minutes = number * (60 if unit == "hour" else 1)
    return around(frame, -minutes, -minutes)


_UNITS = {"day": "天", "week": "周", "month": "月", "year": "年"}


def _lately(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    if match["few"]:
        return frame.days(-5, 0) if match["unit"].lower() == "day" else None
    if match["one"]:
        return until_today(frame, 1, _UNITS[match["one"].lower()])
    return until_today(frame, _number(match["n"]), _UNITS[match["unit"].lower()])


def _away(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    if match["two"]:
        return _whole(frame, match["unit2"].lower(), -2)
    shift = {"this": 0, "next": 1}.get(match["way"].lower(), -1)
    if match["unit"]:
        return _whole(frame, match["unit"].lower(), shift)
    if match["weekday"]:
        return _part(_weekday_away(match["weekday"], frame, shift), match["part"])
    if match["season"]:
        first = SEASONS[_SEASON_NAMES[match["season"].lower()]]
        return _yearly(frame, shift, lambda year: season(year, first))
    month = _month(match["month"])
    return _yearly(frame, shift, lambda year: months(year, month))


def _whole(frame: Frame, unit: str, shift: int) -> Span:
    if unit == "week":
        return frame.week(shift)
    if unit == "weekend":
        return frame.weekend(shift)
    if unit == "month":
        return months(*frame.month(shift))
    return whole_year(frame.today.year + shift)


def _weekday_away(words: str, frame: Frame, shift: int) -> Span:
    index = _WEEKDAYS.index(words[:3].lower())
    if shift >= 0:
        return frame.weekday(shift, index)
    yesterday = frame.today - timedelta(days=1)
    return frame.day(-1 - (yesterday.weekday() - index) % 7)


def _yearly(frame: Frame, shift: int, dates: Callable[[int], Span]) -> Span:
    """The last one that is over, this year's, or the first one that is still to begin."""
    this_year = frame.today.year
    if shift == 0:
        return dates(this_year)
    if shift > 0:
        return next(span for y in (0, 1) if (span := dates(this_year + y)).first > frame.today)
    return next(span for y in (0, 1, 2) if (span := dates(this_year - y)).last < frame.today)


def _of_month(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    month, day = _month(match["month"]), _day(match["d"])

    def in_year(year: int) -> Span:
        if match["to"]:
            return days_of(year, month, day, _day(match["to"]))
        return one_day(year, month, day)

    span = in_year(int(match["y"])) if match["y"] else frame.recent(in_year, after)
    week = _WEEK_OF.search(_before(match))
    if week is None:
        return span
    monday = span.first - timedelta(days=span.first.weekday())
    begin = monday + timedelta(days=5 if week["end"] else 0)
    return Span(begin, monday + timedelta(days=6), "week")


def _before(match: re.Match[str]) -> str:
    """The words just before a match."""
    return match.string[max(0, match.start() - 20) : match.start()]


def _day(ordinal: str) -> int:
    return int(ordinal.lower().rstrip("stndrh"))


def _month_alone(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    name = match["month"].lower()
    month = _month(name)
    if match["y"]:
        return months(int(match["y"]), month)
    if not (_SIGN.search(_before(match)) or name in _SURE_MONTHS or after):
        return None
    return frame.recent(lambda year: months(year, month), after)


def _year_alone(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    year = int(match["y"])
    if match["season"]:
        return season(year, SEASONS[_SEASON_NAMES[match["season"].lower()]])
    return whole_year(year) if _SIGN.search(_before(match)) or after else None


def _on_the(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    day = _day(match["d"])
    return frame.recent_day(lambda year, month: one_day(year, month, day), after)


def _weekday_alone(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    index = _WEEKDAYS.index((match["short"] or match["name"])[:3].lower())
    return _part(frame.recent_weekday(index, after), match["part"])


def _us_date(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    """3/14/2024 and 14/3/2024; where either number could be the month nobody can tell."""
    a, b, year = int(match["a"]), int(match["b"]), int(match["y"])
    if a <= 12 and b <= 12 and a != b:
        return None
    return one_day(year, a, b) if a <= 12 else one_day(year, b, a)


def _holiday(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    name = _HOLIDAY_NAMES[_LETTERS.sub("", match["name"].lower())]
    if match["y"]:
        return holiday(int(match["y"]), name)
    if match["way"]:
        shift = -1 if match["way"].lower() == "last" else 0
        return _yearly(frame, shift, lambda year: holiday(year, name))
    return frame.recent(lambda year: holiday(year, name), after)


ENGLISH_RULES: tuple[Rule, ...] = (
    Rule(("day", "night", "this", "tomorrow"), _DAYS, _days),
    Rule(("ago",), _AGO, _ago),
    Rule(("last", "past"), _LATELY, _lately),
    Rule(("last", "previous", "this", "next"), _AWAY, _away),
    Rule(_MONTHS, _MONTH_FIRST, _of_month),
    Rule(_MONTHS, _DAY_FIRST, _of_month),
    Rule(_MONTHS, _MONTH_ALONE, _month_alone),
    Rule(("19", "20"), _YEAR_ALONE, _year_alone),
    Rule(("on",), _ON_THE, _on_the),
    Rule(_WEEKDAYS, _WEEKDAY_ALONE, _weekday_alone),
    Rule(("/",), _US_DATE, _us_date),
    Rule(("day", "eve", "christmas", "hallow", "thanks", "new", "festival"), _HOLIDAY, _holiday),
)
