"""Our own export's lines beside messages, read into values and checked one by one."""

from __future__ import annotations

from collections.abc import Callable
import json
from typing import cast, get_args

from ..capture.cleaning import NAME_LIMIT, clean_name
from ..memory.edits import typed_key_marks
from ..memory.event_dates import event_date
from ..memory.secrets import mask_secrets
from ..store.records import (
    ChatSettings,
    ExcludedSpan,
    FactText,
    GapSpan,
    KnownFact,
    Noted,
    NoteState,
    Person,
    Record,
    Remembered,
    SkippedRun,
    UsageOfDay,
    Version,
)
from ..types import Activity, Memory, MemoryKind, NoteKind, Origin, SkipReason, is_edited
from . import values
from .values import Line, OddRecord

USAGE_COUNTS = ("calls", "failures", "prompt_tokens", "cached_tokens", "completion_tokens")
_LOWER: dict[NoteKind, MemoryKind] = {"month": "day", "year": "month"}
_CATEGORY, _FACT_NAME, _PURPOSE, _MODEL = 80, 128, 16, 128
"""Widths of the columns."""
_EXCLUSIONS = frozenset(
    {"withdrawn", "opted_out", "paused", "forgotten", "window", "moment", "fact"}
)
_SUBJECT = 64


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
        paused=values.flag(line, "paused"),
        muted=values.flag(line, "muted"),
        persona=values.optional(line, "persona"),
        daily_token_limit=None if limit is None else values.whole(limit, "daily_token_limit", 0),
        speaker_limit=None if people is None else values.whole(people, "speaker_limit", 0),
        members_read=None
        if line.get("members_read") is None
        else values.flag(line, "members_read"),
        day_starts_at=values.clock(line),
    )


def _written(line: Line) -> str:
    """The text of a note or a fact. Other hands may have put secrets into the file, and
    references as they type them."""
    text = mask_secrets(values.text(line, "text"))
    return text if line.get("exported") is None else typed_key_marks(text)


def shown_name(name: str, user_id: str) -> str:
    """A name as it was exported, or the id of whoever has none that can be seen."""
    return (name if clean_name(name) else user_id)[:NAME_LIMIT]


def _person(line: Line) -> Person:
    name = values.text(line, "name")
    names = line.get("names", [name])
    if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
        raise OddRecord("names 不是名字的列表")
    user_id = values.user_id(line, "user_id")
    shown = shown_name(name, user_id)
    earlier = [item[:NAME_LIMIT] for item in names if clean_name(item)]
    since = line.get("names_since", [])
    if not isinstance(since, list) or len(since) != len(names):
        since = []  # somebody edited the names
    seen = dict(zip(names, (values.moment(at, "names_since") for at in since), strict=False))
    called = (*(item for item in earlier if item != shown), shown)
    return Person(
        user_id,
        shown,
        called,
        values.flag(line, "opted_out"),
        values.optional_moment(line, "registered_at"),
        named_at=values.optional_moment(line, "named_at"),
        names_since=tuple(seen[one] for one in called) if seen.keys() >= {*called} else (),
        opted_out_at=values.optional_moment(line, "opted_out_at"),
    )


def _noted(line: Line) -> Noted:
    activity = _activity(line)
    state = None
    if "stale" in line:
        state = NoteState(
            values.flag(line, "merged"), values.flag(line, "stale"), usage=_usage(line)
        )
    versions = _versions(line, "activity", activity.version)
    return Noted(activity, versions, state, values.optional(line, "exported"))


def _activity(line: Line) -> Activity:
    origin = line.get("origin")
    if origin not in get_args(Origin):
        raise OddRecord("origin 的值不认识")
    ranges = _ranges(line)
    if origin == "window" and not ranges and line.get("text") and line.get("exported") is None:
        raise OddRecord("没有写活动包含哪些消息（from_seq、to_seq）")
    return Activity(
        number=values.whole(line.get("id"), "id"),
        date=values.period("day", line.get("date")),
        text=_written(line),
        key_messages=values.wholes(line, "key_messages"),
        origin=cast("Origin", origin),
        time=values.moment(line.get("time"), "time"),
        writer=values.writer(line),
        written_at=values.moment(line.get("written_at"), "written_at"),
        ranges=ranges,
        owner=None if line.get("owner") is None else values.user_id(line, "owner"),
        version=values.version_number(line) if "version" in line else 1,
        source_conv=values.optional(line, "source_conv"),
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
        first, last = (values.whole(value, "seq") for value in run)
        if first > last or (found and first <= found[-1][1]):
            raise OddRecord("消息的范围倒过来了，或者前后重叠")
        found.append((first, last))
    return tuple(found)


def _skipped(line: Line) -> SkippedRun:
    first, last = (
        values.whole(line.get("from_seq"), "from_seq"),
        values.whole(line.get("to_seq"), "to_seq"),
    )
    if first > last:
        raise OddRecord("消息的范围倒过来了")
    reason = line.get("reason")
    if reason not in get_args(SkipReason):
        raise OddRecord("reason 的值不认识")
    return SkippedRun(first, last, cast("SkipReason", reason))


def _gap(line: Line) -> GapSpan:
    begins, ends = values.moment(line.get("from"), "from"), values.moment(line.get("to"), "to")
    if begins > ends:
        raise OddRecord("from 比 to 晚")
    return GapSpan(begins, ends)


def _remembered(kind: MemoryKind) -> Callable[[Line], Remembered]:
    def read(line: Line) -> Remembered:
        memory = Memory(
            kind=kind,
            period=values.period(kind, line.get("date")),
            text=_written(line),
            key_messages=values.wholes(line, "key_messages"),
            sources=_sources(kind, line),
            version=values.version_number(line),
            writer=values.writer(line),
            written_at=values.moment(line.get("written_at"), "written_at"),
        )
        state = None
        if "stale" in line:
            flags = (values.flag(line, key) for key in ("merged", "stale", "closed"))
            state = NoteState(*flags, usage=_usage(line))
        versions = _versions(line, kind, memory.version)
        return Remembered(memory, versions, state, values.optional(line, "exported"))

    return read


def _versions(line: Line, kind: NoteKind, newest: int) -> tuple[Version, ...]:
    versions = tuple(_version(kind, old, line) for old in values.objects(line, "versions"))
    numbers = [version.version for version in versions]
    if numbers != sorted(set(numbers)) or any(n >= newest for n in numbers):
        raise OddRecord("versions 的编号要从小到大，并且比现在的 version 小")
    return versions


def _version(kind: NoteKind, line: Line, of: Line) -> Version:
    has_sources = kind != "activity" and "sources" in line
    return Version(
        version=values.version_number(line),
        text=_written(line),
        writer=values.writer(line),
        written_at=values.moment(line.get("written_at"), "written_at"),
        key_messages=values.wholes(line, "key_messages") if "key_messages" in line else None,
        sources=_sources(kind, {**line, "date": of.get("date")}) if has_sources else None,
        blanked=values.flag(line, "blanked") if "blanked" in line else None,
        usage=_usage(line),
        merged=values.flag(line, "merged"),
    )


def _sources(kind: NoteKind, line: Line) -> tuple[str, ...]:
    """Activity numbers of a day as text, dates of the layer below of the others."""
    if kind not in _LOWER:
        return tuple(map(str, values.wholes(line, "sources")))
    given = line.get("sources")
    if not isinstance(given, list):
        raise OddRecord("sources 不是列表")
    period = values.text(line, "date")
    sources = tuple(values.period(_LOWER[kind], value) for value in given)
    if not all(source.startswith(f"{period}-") for source in sources):
        raise OddRecord("sources 里有不在这段时间里的日期")
    return sources


def _fact(line: Line) -> KnownFact:
    name = values.optional(line, "name")
    return KnownFact(
        owner=values.user_id(line, "owner") if line.get("owner") else "",
        category=values.short(values.text(line, "category"), "category", _CATEGORY),
        name=None if name is None else mask_secrets(values.short(name, "name", _FACT_NAME)),
        text=_fact_text(line),
        journal=tuple(map(_fact_text, values.objects(line, "journal"))),
        event_date=_event_date(line),
        created_at=values.optional_moment(line, "created_at"),
        exported=values.optional(line, "exported"),
        redated=line.get("redated") is True,
        misdated=_due(line)[1],
    )


def _due(line: Line) -> tuple[str | None, str]:
    """The day of a text's promise; and what a person put there that is none."""
    due = line.get("due")
    try:
        return None if due is None else values.period("day", due), ""
    except OddRecord:
        if line.get("redated") is True and line.get("exported") is not None:
            return None, str(due)
        raise


def _event_date(line: Line) -> str | None:
    value = line.get("event_date")
    try:
        return None if value is None else event_date(value)
    except ValueError:
        raise OddRecord("event_date 不是能用的日期") from None


def _fact_text(line: Line) -> FactText:
    source = line.get("source")
    writer = None if line.get("writer") is None else values.writer(line)
    return FactText(
        text=_written(line),
        written_at=values.moment(line.get("written_at"), "written_at"),
        source=None if source is None else values.whole(source, "source"),
        # Of facts only edits have one: by itself neither model nor program is told.
        writer=writer if writer is not None and is_edited(writer) else None,
        due=_due(line)[0],
        done_at=values.optional_moment(line, "done_at"),
    )


def _exclusion(line: Line) -> ExcludedSpan:
    reason, message_id = line.get("reason"), values.optional(line, "message_id")
    if reason not in _EXCLUSIONS:
        raise OddRecord("reason 的值不认识")
    return ExcludedSpan(
        reason=str(reason),
        user_id=None if line.get("user_id") is None else values.user_id(line, "user_id"),
        message_id=None
        if message_id is None
        else values.short(message_id, "message_id", values.USER_ID),
        begins=values.optional_moment(line, "from"),
        ends=values.optional_moment(line, "to"),
        noted_at=values.moment(line.get("noted_at"), "noted_at"),
        subject=None
        if line.get("subject") is None
        else values.short(values.text(line, "subject"), "subject", _SUBJECT),
    )


def _usage_of_day(line: Line) -> UsageOfDay:
    return UsageOfDay(
        values.period("day", line.get("date")),
        values.short(values.text(line, "purpose"), "purpose", _PURPOSE),
        values.short(values.text(line, "model"), "model", _MODEL),
        *(values.whole(line.get(key), key, 0) for key in USAGE_COUNTS),
    )


def _usage(line: Line) -> str | None:
    """What a note cost, as it is stored."""
    usage = line.get("usage")
    if usage is None:
        return None
    if not isinstance(usage, dict):
        raise OddRecord("usage 不是一个对象")
    return json.dumps(
        {str(key)[:20]: values.whole(value, "usage", 0) for key, value in usage.items()}
    )


_READERS: dict[str, Callable[[Line], Record]] = {
    "speaker": _person,
    "activity": _noted,
    "skipped": _skipped,
    "gap": _gap,
    "day": _remembered("day"),
    "month": _remembered("month"),
    "year": _remembered("year"),
    "fact": _fact,
    "exclusion": _exclusion,
    "usage": _usage_of_day,
}
