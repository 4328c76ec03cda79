"""Days that come round: a birthday or another dated day that a fact tells, and 去年今天."""

from __future__ import annotations

import calendar
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
import re

from ..types import ME, Memory
from .keymarks import strip_key_marks
from .render import one_line, safe_name
from .tokens import cut_to_tokens, estimate_tokens, fitting, longest_fit
from .units import cut_before, whole_sentences

YEARS_BACK = 30
_LINE_TOKENS = 60
YEARLY_WORDS = ("生日", "周年", "纪念", "认识", "相识", "结婚", "birthday", "anniversary")
"""What a fact speaks of that comes round every year. The search index knows each as one term."""
_DATE = re.compile(
    r"(?<![\d.\-/])(?:\d{4}\s*[年./-]\s*)?(1[0-2]|0?[1-9])\s*(?:月\s*|[./-])(3[01]|[12]\d|0?[1-9])"
    r"(?![\d.\-/])"
)
_BY_THE_MOON = re.compile(r"[农阴旧]历|\blunar\b", re.IGNORECASE)
_NAME_TOKENS = 20
_NUMERALS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十")


@dataclass(frozen=True, slots=True)
class YearlyFact:
    """A fact that may be about a day that comes round."""

    owner: str
    """Whose it is: a user id, `me`, or empty for the chat."""
    category: str
    name: str
    text: str


def yearly_line(facts: Iterable[YearlyFact], names: Mapping[str, str], today: date) -> str:
    """One line about the first of these facts whose day is today, at most 60 tokens; empty
    without one.

    `names` are display names by user id. Dates are of our calendar (3月5日, 2001-03-05); on 28
    February of a short year it is the 29th too.
    """
    days = {(today.month, today.day)}
    if (today.month, today.day) == (2, 28) and not calendar.isleap(today.year):
        days.add((2, 29))
    for fact in facts:
        told = one_line(" ".join(part for part in (fact.name, fact.text) if part))
        if _BY_THE_MOON.search(told) or not any(word in told.lower() for word in YEARLY_WORDS):
            continue
        if any((int(month), int(day)) in days for month, day in _DATE.findall(told)):
            head = f"今天这个日子你记得：{_whose(fact.owner, names)}"
            return head + _cut(told, _LINE_TOKENS - estimate_tokens(head))
    return ""


def _whose(owner: str, names: Mapping[str, str]) -> str:
    if owner == ME:
        return "你的 "
    known = names.get(owner) if owner else None
    return f"{cut_to_tokens(safe_name(known), _NAME_TOKENS)}的 " if known else ""


def same_dates(today: date) -> list[str]:
    """The date of `today` in the 30 years before, latest first, as periods of days.

    29 February comes round every year: on the 28th where there is no 29th, and what was on a 28th
    does for a 29th, each behind the date itself.
    """
    years = range(today.year - 1, max(0, today.year - 1 - YEARS_BACK), -1)
    day = f"{today:%m-%d}"
    dates = [f"{year:04}-{day}" for year in years]
    beside = {(2, 28): "02-29", (2, 29): "02-28"}.get((today.month, today.day))
    if beside and not (today.day == 28 and calendar.isleap(today.year)):
        dates += [f"{year:04}-{beside}" for year in years]
    return dates


def anniversary_line(days: Sequence[Memory], today: date, shown: Collection[str] = ()) -> str:
    """`去年今天：…` from the best of these day memories, at most 60 tokens; empty without one.

    `shown` are days that stand in the prompt anyway.
    """
    ranks = {period: rank for rank, period in enumerate(same_dates(today))}
    known = [day for day in days if day.period in ranks and day.period not in shown]
    for day in sorted(known, key=lambda day: ranks[day.period]):
        head = f"{_years_ago(today.year - int(day.period[:4]))}："
        if text := _cut(one_line(strip_key_marks(day.text)), _LINE_TOKENS - estimate_tokens(head)):
            return head + text
    return ""


# One line stands before every reply of a day.
@lru_cache(256)
def _cut(text: str, room: int) -> str:
    """As many whole sentences as fit; of a sentence that does not, its beginning."""
    if estimate_tokens(text) <= room:
        return text
    end = fitting(text, room)
    if whole := whole_sentences(text, end):
        return whole
    mark = "……"
    end = longest_fit(len(text), lambda length: estimate_tokens(text[:length] + mark) <= room)
    begun = cut_before(text, end)
    return begun + mark if begun else ""


def _years_ago(years: int) -> str:
    if years == 1:
        return "去年今天"
    return f"{_NUMERALS[years] if years < len(_NUMERALS) else years}年前的今天"
