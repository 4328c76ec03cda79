"""Our own export's lines beside messages, read into values and checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
import re
from typing import Any, cast, get_args

from ..capture.cleaning import NAME_LIMIT, clean_name
from ..memory.event_dates import event_date
from ..store.records import (
    ChatSettings,
    FactText,
    GapSpan,
    KnownFact,
    Person,
    Record,
    Remembered,
    SkippedRun,
    Version,
)
from ..types import ME, Activity, Memory, MemoryKind, Origin, SkipReason

FIRST_YEAR, LAST_YEAR = 1970, 8999
"""Beyond them a time is a mistake, and no calendar can tell the day before or after it."""
_LARGEST = (1 << 63) - 1
_PERIODS: dict[MemoryKind, tuple[re.Pattern[str], str]] = {
    "day": (re.compile(r"\d{4}-\d\d-\d\d", re.ASCII), "{}"),
    "month": (re.compile(r"\d{4}-\d\d", re.ASCII), "{}-01"),
    "year": (re.compile(r"\d{4}", re.ASCII), "{}-01-01"),
}
_LOWER: dict[MemoryKind, MemoryKind] = {"month": "day", "year": "month"}
_MOST_VERSIONS = 1 << 31
"""Counting must be able to go on from any of them."""
_USER_ID, _WRITER, _CATEGORY, _FACT_NAME = 128, 32, 80, 128
"""Widths of the columns."""

Line = Mapping[str, Any]


class OddRecord(ValueError):
    """A line is not what it must be; the text says why, for a person."""


def record(kind: str, line: Line) -> Record:
    """Read a line of that type. Raises OddRecord."""
    reader = _READERS.get(kind)
    if reader is None:
        raise OddRecord(f"不认识 {kind[:40]} 这种行")
    return reader(line)


def settings(line: Line) -> ChatSettings:
    """Read a settings line, or an empty one. Raises OddRecord."""
    limit, people = line.get("daily_token_limit"), line.get("speaker_limit")
    return ChatSettings(
        paused=_flag(line, "paused"),
        muted=_flag(line, "muted"),
        persona=_optional(line, "persona"),
        daily_token_limit=None if limit is None else _whole(limit, "daily_token_limit", 0),
        speaker_limit=None if people is None else _whole(people, "speaker_limit", 0),
    )


def shown_name(name: str, user_id: str) -> str:
    """A name as it was exported, or the id of whoever has none that can be seen."""
    return (name if clean_name(name) else user_id)[:NAME_LIMIT]


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


def _person(line: Line) -> Person:
    name = _text(line, "name")
    names = line.get("names", [name])
    if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
        raise OddRecord("names 不是名字的列表")
    user_id = _user_id(line, "user_id")
    shown = shown_name(name, user_id)
    earlier = [item[:NAME_LIMIT] for item in names if clean_name(item)]
    registered = line.get("registered_at")
    return Person(
        user_id,
        shown,
        (*(item for item in earlier if item != shown), shown),
        _flag(line, "opted_out"),
        None if registered is None else moment(registered, "registered_at"),
    )


def _activity(line: Line) -> Activity:
    origin = line.get("origin")
    if origin not in get_args(Origin):
        raise OddRecord("origin 的值不认识")
    ranges = _ranges(line)
    if (origin == "window") and not ranges:
        raise OddRecord("没有写活动包含哪些消息（from_seq、to_seq）")
    return Activity(
        number=_whole(line.get("id"), "id"),
        date=_period("day", line.get("date")),
        text=_text(line, "text"),
        key_messages=_wholes(line, "key_messages"),
        origin=cast("Origin", origin),
        time=moment(line.get("time"), "time"),
        writer=_writer(line),
        written_at=moment(line.get("written_at"), "written_at"),
        ranges=ranges,
        owner=None if line.get("owner") is None else _user_id(line, "owner"),
        source_conv=_optional(line, "source_conv"),
    )


def _ranges(line: Line) -> tuple[tuple[int, int], ...]:
    runs = line.get("ranges")
    if runs is None:
        runs = [[line.get("from_seq"), line.get("to_seq")]]
        if runs == [[None, None]]:
            return ()
    if not isinstance(runs, list) or not runs:
        raise OddRecord("ranges 不是列表")
    found: list[tuple[int, int]] = []
    for run in runs:
        if not isinstance(run, list) or len(run) != 2:
            raise OddRecord("ranges 里的每一段要有头和尾")
        first, last = (_whole(value, "seq") for value in run)
        if first > last or (found and first <= found[-1][1]):
            raise OddRecord("消息的范围倒过来了，或者前后重叠")
        found.append((first, last))
    return tuple(found)


def _skipped(line: Line) -> SkippedRun:
    first, last = _whole(line.get("from_seq"), "from_seq"), _whole(line.get("to_seq"), "to_seq")
    if first > last:
        raise OddRecord("消息的范围倒过来了")
    reason = line.get("reason")
    if reason not in get_args(SkipReason):
        raise OddRecord("reason 的值不认识")
    return SkippedRun(first, last, cast("SkipReason", reason))


def _gap(line: Line) -> GapSpan:
    begins, ends = moment(line.get("from"), "from"), moment(line.get("to"), "to")
    if begins > ends:
        raise OddRecord("from 比 to 晚")
    return GapSpan(begins, ends)


def _remembered(kind: MemoryKind) -> Callable[[Line], Remembered]:
    def read(line: Line) -> Remembered:
        memory = Memory(
            kind=kind,
            period=_period(kind, line.get("date")),
            text=_text(line, "text"),
            key_messages=_wholes(line, "key_messages"),
            sources=_sources(kind, line),
            version=_version_number(line),
            writer=_writer(line),
            written_at=moment(line.get("written_at"), "written_at"),
        )
        versions = tuple(map(_version, _objects(line, "versions")))
        numbers = [version.version for version in versions]
        if numbers != sorted(set(numbers)) or any(n >= memory.version for n in numbers):
            raise OddRecord("versions 的编号要从小到大，并且比现在的 version 小")
        return Remembered(memory, versions)

    return read


def _version(line: Line) -> Version:
    return Version(
        version=_version_number(line),
        text=_text(line, "text"),
        writer=_writer(line),
        written_at=moment(line.get("written_at"), "written_at"),
    )


def _sources(kind: MemoryKind, line: Line) -> tuple[str, ...]:
    """Activity numbers of a day as text, dates of the layer below of the others."""
    if kind == "day":
        return tuple(map(str, _wholes(line, "sources")))
    values = line.get("sources")
    if not isinstance(values, list):
        raise OddRecord("sources 不是列表")
    period = _text(line, "date")
    sources = tuple(_period(_LOWER[kind], value) for value in values)
    if not all(source.startswith(f"{period}-") for source in sources):
        raise OddRecord("sources 里有不在这段时间里的日期")
    return sources


def _fact(line: Line) -> KnownFact:
    name, due = _optional(line, "name"), line.get("due")
    return KnownFact(
        owner=_user_id(line, "owner") if line.get("owner") else "",
        category=_short(_text(line, "category"), "category", _CATEGORY),
        name=None if name is None else _short(name, "name", _FACT_NAME),
        due=None if due is None else _period("day", due),
        text=_fact_text(line),
        journal=tuple(map(_fact_text, _objects(line, "journal"))),
        event_date=_event_date(line),
    )


def _event_date(line: Line) -> str | None:
    value = line.get("event_date")
    try:
        return None if value is None else event_date(value)
    except ValueError:
        raise OddRecord("event_date 不是能用的日期") from None


def _fact_text(line: Line) -> FactText:
    source = line.get("source")
    return FactText(
        text=_text(line, "text"),
        written_at=moment(line.get("written_at"), "written_at"),
        source=None if source is None else _whole(source, "source"),
    )


def _period(kind: MemoryKind, value: object) -> str:
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


def _whole(value: object, key: str, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST:
        raise OddRecord(f"{key} 不是正整数")
    return value


def _wholes(line: Line, key: str) -> tuple[int, ...]:
    values = line.get(key)
    if not isinstance(values, list):
        raise OddRecord(f"{key} 不是列表")
    return tuple(_whole(value, key) for value in values)


def _objects(line: Line, key: str) -> list[Line]:
    values = line.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise OddRecord(f"{key} 不是列表")
    return values


def _text(line: Line, key: str) -> str:
    value = line.get(key)
    if not isinstance(value, str):
        raise OddRecord(f"{key} 不是文字")
    return value


def _optional(line: Line, key: str) -> str | None:
    return None if line.get(key) is None else _text(line, key)


def _user_id(line: Line, key: str) -> str:
    value = _short(_text(line, key), key, _USER_ID)
    if not value.strip() or (value.lower() == ME and value != ME):
        raise OddRecord(f"{key} 不能用")
    return value


def _writer(line: Line) -> str:
    """Whoever edits a text is told by an id, which has neither blanks nor controls in it."""
    value = _short(_text(line, "writer"), "writer", _WRITER)
    if not value.isprintable() or value.split() != [value]:
        raise OddRecord("writer 不能用")
    return value


def _version_number(line: Line) -> int:
    number = _whole(line.get("version"), "version")
    if number > _MOST_VERSIONS:
        raise OddRecord("version 太大")
    return number


def _short(value: str, key: str, width: int) -> str:
    if len(value) > width:
        raise OddRecord(f"{key} 太长")
    return value


def _flag(line: Line, key: str) -> bool:
    value = line.get(key, False)
    if not isinstance(value, bool):
        raise OddRecord(f"{key} 不是 true 或 false")
    return value


_READERS: dict[str, Callable[[Line], Record]] = {
    "speaker": _person,
    "activity": _activity,
    "skipped": _skipped,
    "gap": _gap,
    "day": _remembered("day"),
    "month": _remembered("month"),
    "year": _remembered("year"),
    "fact": _fact,
}
