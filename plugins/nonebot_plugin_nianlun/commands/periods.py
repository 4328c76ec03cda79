"""Dates as people type them."""

from __future__ import annotations

from datetime import date
import re

from ..types import MemoryKind

PERIOD_SHAPE = r"[0-9]{4}(?:[-/.][0-9]{1,2}){0,2}"
"""What is meant as a day, a month or a year, whether or not it exists."""
PERIOD_HINT = "请写成 2026-01-05、2026-01 或 2026。"


def read_period(text: str) -> tuple[MemoryKind, str] | None:
    """`2026-1-5` -> `("day", "2026-01-05")`; None when `text` has another shape or no such
    date exists."""
    if not re.fullmatch(PERIOD_SHAPE, text):
        return None
    numbers = [int(part) for part in re.split(r"[-/.]", text)]
    try:
        key = date(*numbers, *[1] * (3 - len(numbers))).isoformat()
    except ValueError:
        return None
    kinds: tuple[MemoryKind, ...] = ("year", "month", "day")
    return kinds[len(numbers) - 1], key[: (4, 7, 10)[len(numbers) - 1]]
