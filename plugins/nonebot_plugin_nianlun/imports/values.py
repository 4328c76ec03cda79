"""Single values of an export's lines, each checked; what is odd is told to a person."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
import re
from typing import Any

from ..types import ME, MemoryKind

FIRST_YEAR, LAST_YEAR = 1970, 8999
"""Beyond them a time is a mistake, and no calendar can tell the day before or after it."""
_LARGEST = (1 << 63) - 1
_PERIODS: dict[MemoryKind, tuple[re.Pattern[str], str]] = {
    "day": (re.compile(r"\d{4}-\d\d-\d\d", re.ASCII), "{}"),
    "month": (re.compile(r"\d{4}-\d\d", re.ASCII), "{}-01"),
    "year": (re.compile(r"\d{4}", re.ASCII), "{}-01-01"),
}
_MOST_VERSIONS = 1 << 31
"""Counting must be able to go on from any of them."""
USER_ID, WRITER = 128, 32
"""Widths of the columns."""
_CLOCK = re.compile(r"(?:0\d|1[01]):[0-5]\d", re.ASCII)

Line = Mapping[str, Any]


class OddRecord(ValueError):
    """A line is not what it must be; the text says why, for a person."""


def moment(value: object, key: str) -> datetime:
    """A time with its zone, in UTC. Raises OddRecord."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        if time is not None and time.tzinfo is not None:
            time = time.astimezone(UTC)
            if FIRST_YEAR <= time.year <= LAST_YEAR:
                return time
    except (ValueError, OverflowError):
        pass
    raise OddRecord(f"{key} 不是能用的时间")


def optional_moment(line: Line, key: str) -> datetime | None:
    return None if line.get(key) is None else moment(line[key], key)


def clock(line: Line) -> str | None:
    value = optional(line, "day_starts_at")
    if value is not None and not _CLOCK.fullmatch(value):
        raise OddRecord("day_starts_at 不是时刻")
    return value


def period(kind: MemoryKind, value: object) -> str:
    pattern, day = _PERIODS[kind]
    if isinstance(value, str) and pattern.fullmatch(value) and _in_range(value):
        try:
            date.fromisoformat(day.format(value))
        except ValueError:
            pass
        else:
            return value
    raise OddRecord("日期不对")


def _in_range(period: str) -> bool:
    return FIRST_YEAR <= int(period[:4]) <= LAST_YEAR


def whole(value: object, key: str, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST:
        raise OddRecord(f"{key} 不是正整数")
    return value


def wholes(line: Line, key: str) -> tuple[int, ...]:
    values = line.get(key)
    if not isinstance(values, list):
        raise OddRecord(f"{key} 不是列表")
    return tuple(whole(value, key) for value in values)


def objects(line: Line, key: str) -> list[Line]:
    values = line.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise OddRecord(f"{key} 不是列表")
    return values


def text(line: Line, key: str) -> str:
    value = line.get(key)
    if not isinstance(value, str):
        raise OddRecord(f"{key} 不是文字")
    return value


def optional(line: Line, key: str) -> str | None:
    return None if line.get(key) is None else text(line, key)


def user_id(line: Line, key: str) -> str:
    value = short(text(line, key), key, USER_ID)
    if not value.strip() or (value.lower() == ME and value != ME):
        raise OddRecord(f"{key} 不能用")
    return value


def writer(line: Line) -> str:
    """Whoever edits a text is told by an id, which has neither blanks nor controls in it."""
    value = short(text(line, "writer"), "writer", WRITER)
    if not value.isprintable() or value.split() != [value]:
        raise OddRecord("writer 不能用")
    return value


def version_number(line: Line) -> int:
    number = whole(line.get("version"), "version")
    if number > _MOST_VERSIONS:
        raise OddRecord("version 太大")
    return number


def short(value: str, key: str, width: int) -> str:
    if len(value) > width:
        raise OddRecord(f"{key} 太长")
    return value


def flag(line: Line, key: str) -> bool:
    value = line.get(key, False)
    if not isinstance(value, bool):
        raise OddRecord(f"{key} 不是 true 或 false")
    return value
