"""Words of time and numerals that more than one reader of them needs."""

from __future__ import annotations

import re

DIGITS = "〇一二三四五六七八九"
WEEKDAYS = {name: index for index, name in enumerate("一二三四五六日")} | {"天": 6, "末": 5}
DAY_SHIFTS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}

NUMERALS = "零〇一二两三四五六七八九十百千几"
NOT_NUMERAL = rf"(?<![0-9{NUMERALS}万亿数半第初.,/:\-])"
"""Pattern of a place where a number may begin."""
_VALUES = {digit: value for value, digit in enumerate(DIGITS)} | {"零": 0, "两": 2}
_WHOLE = re.compile(
    "(?:([一二两三四五六七八九])千)?零?(?:([一二两三四五六七八九])百)?零?"
    "(?:([一二三四五六七八九])?(十))?零?([一二两三四五六七八九])?"
)


def whole_number(words: str) -> int | None:
    """The number that digits or Chinese numerals up to 9999 stand for; None when they do not."""
    if words.isascii():
        return int(words) if words.isdigit() else None
    match = _WHOLE.fullmatch(words)
    if match is None or words in ("零", ""):
        return None
    thousands, hundreds, tens, ten, ones = match.groups()
    ten_value = _VALUES.get(tens or "一", 1) * 10 if ten else 0
    return (
        _VALUES.get(thousands, 0) * 1000
        + _VALUES.get(hundreds, 0) * 100
        + ten_value
        + _VALUES.get(ones, 0)
    )


def number(words: str) -> int:
    """The same, with ValueError for words that are no number."""
    value = whole_number(words)
    if value is None:
        raise ValueError("not a numeral")
    return value


def count(words: str) -> tuple[int, int] | None:
    """Least and most of a number that may be a rough one: 三四 is 3 to 4, 十几 is 11 to 19."""
    if len(words) == 2 and all(_VALUES.get(digit, 0) > 0 for digit in words):
        low, high = (_VALUES[digit] for digit in words)
        return (low, high) if high == low + 1 else None
    if words.endswith("几") and (base := whole_number(words[:-1])) and base % 10 == 0:
        return base + 1, base + 9
    value = whole_number(words)
    return None if value is None else (value, value)


def year_number(words: str) -> int:
    """`2024`, `24` or `二〇二四` as a year. Raises ValueError for other words."""
    if not words.isascii():
        words = "".join(str(_VALUES[digit]) for digit in words)
    year = int(words)
    if len(words) > 2:
        return year
    return year + (2000 if year < 70 else 1900)
