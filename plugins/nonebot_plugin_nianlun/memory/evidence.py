"""Whether a sentence says more than the messages it cites: its quotes, and its Arabic numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
import re
import unicodedata

from ..types import Message
from .calendar import Calendar
from .render import one_line
from .secrets import mask_secrets

QUOTE = r"「(?:[^「」『』]|『[^「」『』]*+』)*+」"
"""A quote with the quotes in it. One that never closes is given up where the next one opens."""
_QUOTE = re.compile(QUOTE)
_LEFT_OUT = re.compile(r"…+")
_QUOTE_MARKS = str.maketrans(dict.fromkeys("「」『』“”‘’\"'", '"'))
_DATE = re.compile(
    r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号])?"
    r"|(?P<lone_year>\d{4})年|(?P<lone_day>\d{1,2})[日号]"
    r"|(?P<iso>\d{4}-\d{2}-\d{2})",
    re.ASCII,
)
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})|[点时](?:(?P<spoken>\d{1,2})分)?)", re.ASCII
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*", re.ASCII)
# Words that point at another day than that on which they are said.
_POINTING = re.compile(
    r"[今明后昨前去][天日晚早夜年儿]|[上下这本]个?(?:周|星期|礼拜|月)"
    r"|(?:周|星期|礼拜)[一二三四五六日天末]|\d[号日月]|[月年]底"
)
_REACH_DAYS = 370
_CLOCK_MINUTES = 30


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the cited messages say and when they were said."""

    texts: tuple[str, ...]
    times: tuple[datetime, ...]
    days: frozenset[date]
    pointed_from: tuple[date, ...]
    """The days of messages that may mean other days."""

    def says(self, parts: Sequence[str]) -> bool:
        """Whether one text holds all of the parts, in their order."""
        return bool(parts) and any(_in_order(parts, text) for text in self.texts)

    def counts(self, number: str) -> bool:
        whole = re.compile(rf"(?<!\d){re.escape(number)}(?!\d)")
        return any(whole.search(text) for text in self.texts)


def quoted_spans(text: str) -> list[str]:
    """What stands in 「…」 in `text`: of quotes within quotes the outermost, as it stands."""
    return [found[0][1:-1] for found in _QUOTE.finditer(text)]


def unsupported(
    sentence: str, messages: Sequence[Message], calendar: Calendar, known: Sequence[str] = ()
) -> list[str]:
    """The quotes and numbers of a sentence (without marks) that the cited messages do not hold.

    A quote may leave words out where it has `…`; quotation marks of all kinds are alike. Dates
    and times count as supported where the messages' own times give them, or where a message
    that speaks of another day (明天, 周末, 3号) was said less than about a year from them.
    Names that need no message to hold them, as that of the chat, are `known`.
    """
    heard = _heard(messages, calendar, known)
    missing = [f"「{span}」" for span in quoted_spans(sentence) if not _is_said(span, heard)]
    rest = unicodedata.normalize("NFKC", _QUOTE.sub(" ", sentence))
    for pattern, given in ((_DATE, _is_day), (_CLOCK, _is_time)):
        rest = pattern.sub(
            lambda found, given=given: " " if given(found, heard) else found[0], rest
        )
    return missing + [found[0] for found in _NUMBER.finditer(rest) if not heard.counts(found[0])]


def _heard(messages: Sequence[Message], calendar: Calendar, known: Sequence[str]) -> _Heard:
    days = [calendar.day_of(message.time) for message in messages]
    local = tuple(calendar.local(message.time) for message in messages)
    return _Heard(
        texts=tuple(
            _folded(part) for m in messages for part in (m.text, mask_secrets(m.text), m.name)
        )
        + tuple(map(_folded, known)),
        times=local,
        days=frozenset([*days, *(moment.date() for moment in local)]),
        pointed_from=tuple(
            day for day, m in zip(days, messages, strict=True) if _POINTING.search(m.text)
        ),
    )


def _folded(text: str) -> str:
    """Text as quotes are compared by: width, blanks and the kind of quotation marks aside."""
    return one_line(unicodedata.normalize("NFKC", text.translate(_QUOTE_MARKS)))


def _is_said(span: str, heard: _Heard) -> bool:
    return heard.says([folded for part in _LEFT_OUT.split(span) if (folded := _folded(part))])


def _in_order(parts: Sequence[str], text: str) -> bool:
    place = 0
    for part in parts:
        found = text.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


def _is_day(found: re.Match[str], heard: _Heard) -> bool:
    year, month, day = found["year"] or found["lone_year"], found["month"], found["day"]
    day = day or found["lone_day"]
    if found["iso"]:
        year, month, day = found["iso"].split("-")
    wanted = [None if part is None else int(part) for part in (year, month, day)]
    if any(_fits(known, wanted) for known in heard.days):
        return True
    return any(_within_reach(start, wanted) for start in heard.pointed_from)


def _fits(day: date, wanted: Sequence[int | None]) -> bool:
    pairs = zip((day.year, day.month, day.day), wanted, strict=True)
    return all(part is None or part == own for own, part in pairs)


def _within_reach(start: date, wanted: Sequence[int | None]) -> bool:
    """Whether a day that fits `wanted` is near enough for words said on `start` to mean it."""
    nearby = (date.fromordinal(start.toordinal() + n) for n in range(-_REACH_DAYS, _REACH_DAYS + 1))
    return any(_fits(day, wanted) for day in nearby)


def _is_time(found: re.Match[str], heard: _Heard) -> bool:
    minutes = int(found["hour"]) * 60 + int(found["minute"] or found["spoken"] or 0)
    # 8点 may be said of the evening, 8:00 may not.
    turn = 12 * 60 if found["minute"] is None else 24 * 60
    for moment in heard.times:
        apart = abs(moment.hour * 60 + moment.minute - minutes) % turn
        if min(apart, turn - apart) <= _CLOCK_MINUTES:
            return True
    return False
