"""What holds of a chat's memory at every moment, whatever was interrupted and wherever.

Takes plain values that were read in one view of the store, and says in words what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import get_args

from ..types import MemoryKind, NoteKind, SkipReason
from .calendar import Calendar
from .chat_view import ActivityView, ChatView, LineView, MemoryView

SHOWN = 10
"""So many findings are told in full; of the others only how many there are."""
LONGEST_LEASE = timedelta(hours=1)
"""Nobody claims work for longer, so a lease beyond it was taken by a clock that was wrong."""

_NAMED = 5
_REASONS = frozenset(get_args(SkipReason))
_KEY_LENGTH: dict[MemoryKind, int] = {"day": 10, "month": 7, "year": 4}
_UPPER: dict[MemoryKind, MemoryKind] = {"day": "month", "month": "year"}
_LOWER: dict[MemoryKind, MemoryKind] = {"month": "day", "year": "month"}


@dataclass(frozen=True, slots=True)
class Inspection:
    """How a chat's memory stood the check."""

    messages: int
    activities: int
    """Those that have a text; so of memories."""
    memories: int
    findings: tuple[str, ...]
    """The first of them, each one line for a person that says what is wrong and where."""
    found: int
    """How many there are in all."""


def inspect(view: ChatView, calendar: Calendar, now: datetime) -> Inspection:
    """Check a chat. Reads `view.lines` once and changes nothing."""
    walk = _Walk(view)
    found, told = 0, []
    for finding in _all(walk, calendar, now):
        found += 1
        if found <= SHOWN:
            told.append(finding)
    activities, memories = (
        sum(note.has_text for note in notes) for notes in (view.activities, view.memories)
    )
    return Inspection(walk.count, activities, memories, tuple(told), found)


@dataclass(slots=True)
class _Cover:
    """What the messages say of an activity's window."""

    first: LineView
    last: LineView
    earliest: datetime
    latest: datetime


@dataclass(slots=True)
class _Walk:
    """What is kept of the messages while they are read once: the windows, and what is cited."""

    view: ChatView
    count: int = 0
    last: int = 0
    covers: dict[int, _Cover] = field(default_factory=dict)
    cited: dict[int, LineView] = field(default_factory=dict)

    def lines(self) -> Iterator[LineView]:
        wanted = {seq for _, seq in self.view.facts}
        for notes in (self.view.activities, self.view.memories, self.view.versions):
            for note in notes:
                wanted.update(note.key_messages)
        for line in self.view.lines:
            self.count += 1
            self.last = max(self.last, line.seq)
            if line.seq in wanted:
                self.cited[line.seq] = line
            if line.activity is not None:
                self._cover(line.activity, line)
            yield line

    def _cover(self, activity: int, line: LineView) -> None:
        cover = self.covers.get(activity)
        if cover is None:
            self.covers[activity] = _Cover(line, line, line.time, line.time)
            return
        cover.last = line
        cover.earliest = min(cover.earliest, line.time)
        cover.latest = max(cover.latest, line.time)


def _all(walk: _Walk, calendar: Calendar, now: datetime) -> Iterator[str]:
    view = walk.view
    activities = {activity.row: activity for activity in view.activities}
    for line in walk.lines():
        yield from _line(line, activities)
    yield from _stale(view)
    yield from _windows(view.activities, walk.covers)
    yield from _days_of_windows(view.activities, walk.covers, calendar)
    yield from _citations(walk, activities)
    yield from _layers(view)
    yield from _early(view.memories, calendar.day_of(now))
    yield from _versions(view)
    yield from _counters(walk)
    yield from view.search
    for work, holder, until in view.leases:
        if until > now + LONGEST_LEASE:
            yield f"{holder} 占着 {work} 直到 {calendar.local(until):%Y-%m-%d %H:%M}，太久了"


def _line(line: LineView, activities: Mapping[int, ActivityView]) -> Iterator[str]:
    where = f"消息 #{line.seq}"
    if line.activity is not None and line.skipped is not None:
        yield f"{where} 在一条活动里，又标着跳过（{line.skipped}）"
    if line.activity is not None and line.activity not in activities:
        yield f"{where} 所在的活动不存在"
    if line.skipped is not None and line.skipped not in _REASONS:
        yield f"{where} 跳过的原因 {line.skipped!r} 不认识"
    if line.withdrawn and line.has_text:
        yield f"{where} 已经撤回，正文还在"
    if line.withdrawn and line.activity is None and line.skipped is None:
        yield f"{where} 已经撤回，还等着写进活动"


def _stale(view: ChatView) -> Iterator[str]:
    """What was built on something taken back is blank until it is written anew."""
    for activity in view.activities:
        if activity.stale and activity.has_text and not activity.offline:
            yield f"活动 &{activity.number} 等着重写，旧的正文还在"
    for memory in view.memories:
        if memory.stale and memory.has_text:
            yield f"{memory.period} 等着重写，旧的正文还在"


def _windows(activities: Sequence[ActivityView], covers: Mapping[int, _Cover]) -> Iterator[str]:
    for activity in activities:
        cover = covers.get(activity.row)
        where = f"活动 &{activity.number}"
        if cover is None:
            if activity.origin == "window" and activity.has_text:
                yield f"{where} 没有任何消息"
        elif activity.outer is None:
            yield f"{where} 有消息 #{cover.first.seq}，却没有写明范围"
        elif not activity.outer[0] <= cover.first.seq <= cover.last.seq <= activity.outer[1]:
            yield (
                f"{where} 写明的范围是 #{activity.outer[0]}–#{activity.outer[1]}，"
                f"消息却是 #{cover.first.seq}–#{cover.last.seq}"
            )


def _days_of_windows(
    activities: Sequence[ActivityView], covers: Mapping[int, _Cover], calendar: Calendar
) -> Iterator[str]:
    """One finding for all of them: another time zone would find fault with every old window."""
    outside: list[str] = []
    for activity in activities:
        if (cover := covers.get(activity.row)) is None:
            continue
        day = date.fromisoformat(activity.date)
        if not calendar.start_of(day) <= cover.earliest <= cover.latest < calendar.end_of(day):
            outside.append(f"&{activity.number}")
    if outside:
        more = f" 等 {len(outside)} 条" if len(outside) > _NAMED else ""
        yield (
            f"活动 {'、'.join(outside[:_NAMED])}{more}的消息超出了它的那一天"
            "（改过时区或一天的起点时，以前的活动会这样）"
        )


def _citations(walk: _Walk, activities: Mapping[int, ActivityView]) -> Iterator[str]:
    view = walk.view
    # What a moment was written from may be told before a window covers it, or without one.
    in_moments = {
        (_key(kind, activity.date), seq)
        for activity in view.activities
        if activity.outer is None
        for seq in activity.key_messages
        for kind in _KEY_LENGTH
    }
    for activity in view.activities:
        for seq in activity.key_messages:
            yield from _cited(walk, f"活动 &{activity.number}", seq)
            line = walk.cited.get(seq)
            if activity.outer and line is not None and line.activity != activity.row:
                yield f"活动 &{activity.number} 引用了 #{seq}，它不在这条活动里"
    for memory in view.memories:
        for seq in memory.key_messages:
            yield from _cited(walk, memory.period, seq)
            line = walk.cited.get(seq)
            if line is None or memory.edited or (memory.period, seq) in in_moments:
                continue
            source = activities.get(line.activity or 0)
            if source is None or _key(memory.kind, source.date) != memory.period:
                yield f"{memory.period} 引用了 #{seq}，它不在这段时间的任何活动里"
    for version in view.versions:
        for seq in version.key_messages:
            yield from _cited(walk, f"{version.ref} 的第 {version.version} 版", seq)
    for name, seq in view.facts:
        yield from _cited(walk, f"事实 {name}", seq)


def _cited(walk: _Walk, where: str, seq: int) -> Iterator[str]:
    line = walk.cited.get(seq)
    if line is None:
        yield f"{where} 引用了 #{seq}，没有这条消息"
    elif line.withdrawn:
        yield f"{where} 引用了 #{seq}，它已经撤回"


def _key(kind: MemoryKind, day: str) -> str:
    return day[: _KEY_LENGTH[kind]]


def _layers(view: ChatView) -> Iterator[str]:
    memories: dict[tuple[MemoryKind, str], MemoryView] = {}
    for memory in view.memories:
        if (memory.kind, memory.period) in memories:
            yield f"{memory.period} 有两篇"
        memories[memory.kind, memory.period] = memory
    numbers = {str(activity.number): activity for activity in view.activities}
    for activity in view.activities:
        day = memories.get(("day", activity.date))
        if activity.merged and activity.has_text and not _holds(day, str(activity.number)):
            yield f"活动 &{activity.number} 标着已并入 {activity.date}，那一天却没有它"
    for memory in view.memories:
        upper = _UPPER.get(memory.kind)
        if upper is not None and memory.merged:
            above = _key(upper, memory.period)
            if not _holds(memories.get((upper, above)), memory.period):
                yield f"{memory.period} 标着已并入 {above}，那里却没有它"
        if memory.stale:
            continue  # it is written anew from what is there now
        yield from _sources(memory, numbers, memories)


def _holds(memory: MemoryView | None, source: str) -> bool:
    return memory is not None and source in memory.sources


def _sources(
    memory: MemoryView,
    numbers: Mapping[str, ActivityView],
    memories: Mapping[tuple[MemoryKind, str], MemoryView],
) -> Iterator[str]:
    if not memory.has_text:
        yield f"{memory.period} 是空的"
    if len(set(memory.sources)) != len(memory.sources):
        yield f"{memory.period} 把同一个来源并入了两次"
    for source in memory.sources:
        if memory.kind == "day":
            activity = numbers.get(source)
            if activity is None:
                yield f"{memory.period} 的来源 &{source} 不存在"
            elif activity.date != memory.period:
                yield f"{memory.period} 的来源 &{source} 是 {activity.date} 的"
        elif _key(memory.kind, source) != memory.period:
            yield f"{memory.period} 的来源 {source} 不属于它"
        elif (_LOWER[memory.kind], source) not in memories:
            yield f"{memory.period} 的来源 {source} 不存在"


def _early(memories: Sequence[MemoryView], today: date) -> Iterator[str]:
    for memory in memories:
        if memory.closed and memory.period > _key(memory.kind, today.isoformat()):
            yield f"{memory.period} 还没有到，却已经写完"


def _versions(view: ChatView) -> Iterator[str]:
    current: dict[tuple[NoteKind, str], int] = {
        (m.kind, m.period): m.version for m in view.memories
    }
    for version in view.versions:
        where = f"{version.ref} 的第 {version.version} 版"
        if version.blanked and version.has_text:
            yield f"{where} 已经作废，正文还在"
        if version.kind != "activity":
            newest = current.get((version.kind, version.ref))
            if newest is None:
                if version.has_text:
                    yield f"{where} 还在，{version.ref} 却不存在"
            elif version.version >= newest:
                yield f"{where} 不比现在的第 {newest} 版旧"


def _counters(walk: _Walk) -> Iterator[str]:
    if walk.last > walk.view.last_seq:
        yield f"消息编号数到 #{walk.view.last_seq}，却已经有 #{walk.last}"
    highest = max((activity.number for activity in walk.view.activities), default=0)
    if highest > walk.view.last_activity:
        yield f"活动编号数到 &{walk.view.last_activity}，却已经有 &{highest}"
