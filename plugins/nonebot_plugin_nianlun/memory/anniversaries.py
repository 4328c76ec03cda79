"""去年今天: one line about what the same date of an earlier year brought."""

from __future__ import annotations

import calendar
from collections.abc import Collection, Sequence
from datetime import date

from ..types import Memory
from .keymarks import strip_key_marks
from .render import one_line
from .tokens import estimate_tokens, longest_fit
from .units import cut_before, whole_sentences

YEARS_BACK = 30
_LINE_TOKENS = 60
_NUMERALS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十")


def same_dates(today: date) -> list[str]:
    """The date of `today` in the 30 years before, latest first, as periods of days.

    29 February comes round every year: on the 28th where there is no 29th, and what was on a 28th
    does for a 29th, each behind the date itself.
    """
    years = range(today.year - 1, max(0, today.year - 1 - YEARS_BACK), -1)
    dates = [f"{year:04}-{today:%m-%d}" for year in years]
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


def _cut(text: str, room: int) -> str:
    """As many whole sentences as fit; of a sentence that does not, its beginning."""
    if estimate_tokens(text) <= room:
        return text
    end = longest_fit(len(text), lambda length: estimate_tokens(text[:length]) <= room)
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
