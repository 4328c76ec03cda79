"""Which span of time a Chinese or English sentence asks about: a gate for recall, not a vote.

Right or None: what is not surely a time that is asked about opens no window.

- Days are logical days of the chat (see `calendar`), weeks begin on Monday. At 01:30, 今天 and
  昨晚 count from the day that began the morning before; the small hours of a date (5月1日凌晨) are
  those that the clock shows on it.
- A date, month, weekday or holiday without its year or week is the last one that has begun, today
  included (周三 said on a Wednesday is today).
- 上周三 is last week's, "last Monday" the last one before today, 三周前 a whole week, 三个月前 a
  whole month; 最近三天 runs from the day three days back through today.
- Of several times those count that are over before today; only where there are none, or where
  what was said today is asked about (今天你说的上周的事), one that reaches it. Of these it is the
  first in the last clause that asks; where no sentence asks, the first that is not merely told of
  (see `time_asking`). Times joined by 到, 至, 和 or "to", "and" give one window from the
  first to the last. Denied ones (不是昨天), recurring ones (每周三) and open ones (上周以前) are
  passed over; 以来 and "since" run through today.
- Only the first 2,000 characters, and in them the first 24 times, are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
import re
from zoneinfo import ZoneInfo

from .calendar import Calendar
from .time_asking import (
    clause_around,
    is_asking,
    is_naming,
    is_planning,
    is_recalling,
    is_said_then,
    is_telling,
    is_weather,
    sentence_around,
)
from .time_dates import DATE_RULES
from .time_english import ENGLISH_RULES
from .time_relative import RELATIVE_RULES
from .time_spans import (
    PART_WORDS,
    PARTS,
    Frame,
    Rule,
    Span,
    Unit,
    moments,
    month_away,
    months,
    with_part,
)

_READ = 2000
_MOST_TIMES = 24
_WIDTHS = {ord("０") + digit: str(digit) for digit in range(10)} | {
    ord("／"): "/",
    ord("－"): "-",
    ord("○"): "〇",
}
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]{2}")
_QUOTED = re.compile("《[^《》]*》|「[^「」]*」|『[^『』]*』|“[^“”]*”")
_JOINED = re.compile(
    r"\s*(?:到|至|[~\-—–～]+|和|跟|与|、|及|to|and|through|until|till)\s*(?:了|the\b)?\s*",
    re.IGNORECASE,
)
_LISTED = re.compile("和|跟|与|、|及|and", re.IGNORECASE)
_SKIPPED_BEFORE = re.compile(
    r"(?:(?<!是)不是在?|并非|不在|没在|除了|非|[每逢隔](?:个|年|月|周|逢|到)?的?|农历|阴历|旧历|直到|"
    r"\b(?:not|except|every|each|before|after|until|till|by)(?:\s+(?:on|in|the))?\s*)$",
    re.IGNORECASE,
)
_OPEN_BEHIND = re.compile(r"\s*(?:[以之]前|前(?![台端男女任])|[以之]后|后(?![来天])|为止)")
_SINCE_BEHIND = re.compile(r"\s*(?:以来|至今|到现在|到目前|到今(?![天日年])|开始|起(?![来床码]))")
_SINCE_BEFORE = re.compile(r"\bsince\s+(?:the\s+)?$", re.IGNORECASE)
_LOOK_BACK = 16
_SIZES: tuple[Unit, ...] = ("part", "day", "week", "month", "year")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A window of time: from `begin` until before `end`, both aware and in UTC."""

    begin: datetime
    end: datetime
    unit: Unit
    """The size of what was named; it widens by this much."""
    words: str
    """What was read as a time."""
    calendar: Calendar = field(repr=False)
    dated: bool = False
    """A date stood there (5月1日), not a word (昨天)."""

    @property
    def earliest(self) -> datetime:
        """From when on something may be meant: of a date also the hours from midnight until its
        logical day begins."""
        if not self.dated or self.unit == "part":
            return self.begin
        midnight = datetime.combine(self.first_day, time(0), self.calendar.zone)
        return min(midnight.astimezone(UTC), self.begin)

    @classmethod
    def of_days(
        cls, calendar: Calendar, first: date, last: date, unit: Unit = "day", words: str = ""
    ) -> TimeRange:
        """The logical days from `first` to `last`. Raises ValueError when they are reversed."""
        if last < first:
            raise ValueError("the last day is before the first")
        return cls(calendar.start_of(first), calendar.end_of(last), unit, words, calendar)

    @property
    def first_day(self) -> date:
        """The logical day that `begin` is in."""
        return self.calendar.day_of(self.begin)

    @property
    def last_day(self) -> date:
        """The logical day of the last moment before `end`."""
        return self.calendar.day_of(self.end - timedelta(microseconds=1))

    def widened(self) -> TimeRange:
        """The next wider window of whole days: a part of a day becomes its day; days, weeks,
        months and years get one of theirs on either side."""
        first, last = self.first_day, self.last_day
        if self.unit == "part":
            return TimeRange.of_days(self.calendar, first, last, "day", self.words)
        try:
            if self.unit in ("day", "week"):
                room = timedelta(days=1 if self.unit == "day" else 7)
                first, last = first - room, last + room
            else:
                many = 1 if self.unit == "month" else 12
                first = months(*month_away(first, -many)).first
                last = months(*month_away(last, many)).last
            return TimeRange.of_days(self.calendar, first, last, self.unit, self.words)
        except (ValueError, OverflowError):  # the end of all dates
            return self


@dataclass(frozen=True, slots=True)
class Found:
    """A match of a rule, not yet resolved."""

    start: int
    end: int
    match: re.Match[str]
    rule: Rule


@dataclass(frozen=True, slots=True)
class _Read:
    """One time, or several joined ones."""

    window: TimeRange
    start: int
    end: int
    """Where it begins and ends in the text."""
    taken: int
    """How many matches it took."""
    assumed: bool
    """Nobody named the year, month or week of it."""


def parse_time_range(
    text: str, *, now: datetime, tz: ZoneInfo, day_starts_at: time = time(4, 0)
) -> TimeRange | None:
    """The span of time that `text`, said at `now`, asks about; None when it asks about none.

    Any text is safe. Raises ValueError when `now` has no time zone.
    """
    calendar = Calendar(tz, day_starts_at)
    try:
        return _asked_about(readable(text), Frame(calendar, now))
    except OverflowError:  # at the first or last day of all
        return None


def readable(text: str) -> str:
    """The part that is read, character by character the same length, quotes and titles blank."""
    plain = text[:_READ].translate(_WIDTHS)
    return _QUOTED.sub(lambda quote: "\0" * len(quote[0]), plain)


def _asked_about(text: str, frame: Frame) -> TimeRange | None:
    found = find_times(text)
    asked: list[_Read] = []
    named = None
    index = 0
    while index < len(found):
        read = _read(text, found, index, frame)
        if read:
            sentence = sentence_around(text, read.start, read.end)
            rest, behind = _without(text, found, sentence, read)
            if is_asking(rest):
                if _is_asked(read, rest, behind, frame):
                    asked.append(read)
            elif (named is None or _is_late(named, frame)) and (
                _is_named(read, rest, behind, frame)
            ):
                named = read.window
        index += read.taken if read else 1
    return _of_the_question(text, found, asked, frame) or named


def _of_the_question(
    text: str, found: list[Found], asked: list[_Read], frame: Frame
) -> TimeRange | None:
    """Of the times of asking sentences that of the last clause that asks. What is of today is in
    sight anyway, so what was before goes first."""
    before = [read for read in asked if not _is_late(read.window, frame)]
    if len(asked) == len(before) == 1:
        return asked[0].window
    told: list[TimeRange] = []
    for read in reversed(before or asked):
        clause = clause_around(text, read.start, read.end)
        words, _ = _without(text, found, clause, read)
        if is_asking(words):
            return _of_the_clause(text, clause[0], asked, before or asked)
        # 今天见到他了，他欠谁一顿: it is not today that is asked about.
        if before or not is_telling(words):
            told.append(read.window)
    return told[-1] if told else None


def _of_the_clause(text: str, begins: int, asked: list[_Read], preferred: list[_Read]) -> TimeRange:
    """The first time of a clause, unless only a later one of it is preferred: where nothing that
    was said at the first is asked about, that is when somebody asks."""
    first = next(one for one in asked if one.start >= begins)
    chosen = next(one for one in preferred if one.start >= begins)
    return (first if is_said_then(text[first.end : chosen.start]) else chosen).window


def _is_late(window: TimeRange, frame: Frame) -> bool:
    """Whether it reaches today, or is still to come."""
    return window.last_day >= frame.today


def _is_over(window: TimeRange, frame: Frame) -> bool:
    return window.end <= frame.now or window.first_day < frame.today == window.last_day


def _is_asked(read: _Read, rest: str, behind: str, frame: Frame) -> bool:
    if is_recalling(rest):
        return True
    if _is_over(read.window, frame):
        return not (read.assumed and is_planning(rest))
    return read.window.begin > frame.now and not is_weather(behind)


def _is_named(read: _Read, rest: str, behind: str, frame: Frame) -> bool:
    over = _is_over(read.window, frame)
    return (over or not is_weather(behind)) and is_naming(rest, behind, over=over)


def find_times(text: str) -> list[Found]:
    """Matches of all rules in text order, the longest where several begin, without overlaps."""
    rules = DATE_RULES
    if _HAN.search(text):
        rules += RELATIVE_RULES
    if _LATIN.search(text):
        rules += ENGLISH_RULES
    lowered = text.lower()
    matches = [
        Found(match.start(), match.end(), match, rule)
        for rule in rules
        if any(sign in lowered for sign in rule.signs)
        for match in rule.pattern.finditer(text)
    ]
    matches.sort(key=lambda found: (found.start, -found.end))
    kept: list[Found] = []
    for found in matches:
        if not kept or found.start >= kept[-1].end:
            kept.append(found)
    return kept[:_MOST_TIMES]


def _read(text: str, found: list[Found], index: int, frame: Frame) -> _Read | None:
    """The window of the match at `index` and of those that are joined to it."""
    start = found[index].start
    before = text[max(0, start - _LOOK_BACK) : start]
    if _SKIPPED_BEFORE.search(before):
        return None
    span, end = _span(text, found[index], frame, None)
    if span is None or _OPEN_BEHIND.match(text, end):
        return None
    window = _range(span, frame, text[start:end])
    assumed, taken = span.assumed, 1
    while index + taken < len(found):
        following = found[index + taken]
        joint = _JOINED.fullmatch(text, end, following.start)
        if joint is None:
            break
        span, second_end = _joined(text, following, frame, span, joint[0])
        if span is None:
            break
        end, taken = second_end, taken + 1
        window = _hull(window, _range(span, frame, ""), text[start:end])
    since = _SINCE_BEHIND.match(text, end)
    if since or _SINCE_BEFORE.search(before):
        end = since.end() if since else end
        window = _hull(window, _range(frame.day(0), frame, ""), text[start:end])
    dated = found[index].rule in DATE_RULES
    return _Read(replace(window, dated=dated), start, end, taken, assumed)


def _joined(
    text: str, found: Found, frame: Frame, after: Span, joint: str
) -> tuple[Span | None, int]:
    """The span behind 到 or 和. Behind 到 it comes after the first; of a mere list, 周三和周一,
    each is the last one that has begun."""
    span, end = _span(text, found, frame, after)
    if span and span.first > frame.today and _LISTED.search(joint):
        alone, _ = _span(text, found, frame, None)
        span = alone or span
    return span, end


def _span(text: str, found: Found, frame: Frame, after: Span | None) -> tuple[Span | None, int]:
    """What a match means, with the part of the day behind it, and where both end."""
    try:
        span = found.rule.meaning(found.match, frame, after)
    except (ValueError, OverflowError):  # 2月30日, and years in no calendar
        span = None
    if span and span.unit == "day" and span.first == span.last:
        part = PART_WORDS.match(text, found.end)
        if part:
            return with_part(span, PARTS[part["part"]]), part.end()
    return span, found.end


def _range(span: Span, frame: Frame, words: str) -> TimeRange:
    begin, end = moments(span, frame.calendar, frame.now)
    return TimeRange(begin, end, span.unit, words, frame.calendar)


def _hull(one: TimeRange, other: TimeRange, words: str) -> TimeRange:
    unit = _SIZES[max(_SIZES.index(one.unit), _SIZES.index(other.unit))]
    begin, end = min(one.begin, other.begin), max(one.end, other.end)
    return TimeRange(begin, end, unit, words, one.calendar)


def _without(
    text: str, found: list[Found], around: tuple[int, int], read: _Read
) -> tuple[str, str]:
    """The sentence or clause around a time without any times in it, and its part behind this
    one."""
    begin, finish = around
    pieces, at = [], begin
    for each in found:
        if each.start >= at and each.end <= finish:
            pieces.append(text[at : each.start])
            at = max(each.end, read.end) if each.start == read.start else each.end
    pieces.append(text[at:finish])
    return "".join(pieces), text[read.end : finish]
