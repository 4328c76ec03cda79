"""What is owed between the layers: which days, months and years are due, and from what.

A period that is over is written from all its sources, never from its own earlier text:
a text that is rewritten again and again loses most of what it held. While it lasts, new
sources are added to what is there. One layer is finished before the next is planned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import get_args

from ..types import MemoryKind

DAYS_FOR_A_MONTH = 7
"""So many days must be waiting before a month that is not over is written again."""


@dataclass(frozen=True, slots=True)
class ActivityState:
    """What must be known of an activity."""

    number: int
    date: str
    merged: bool
    stale: bool


@dataclass(frozen=True, slots=True)
class MemoryState:
    """What must be known of a day, month or year."""

    kind: MemoryKind
    period: str
    closed: bool
    merged: bool
    stale: bool
    edited: bool
    sources: frozenset[str]


@dataclass(frozen=True, slots=True)
class RollupPolicy:
    pending_activities: int
    """So many new activities update the day that is not over."""
    keep_days: int
    """The newest days stay out of their month until it is over."""


@dataclass(frozen=True, slots=True)
class Due:
    """One memory that must be written, from which sources, and how.

    `rebuild`: from all of them, the old text is not read. Otherwise they are new and are
    added to it. With no sources there is nothing to write: a rebuild means that nothing is
    left of the period, otherwise it only has to be closed.
    """

    kind: MemoryKind
    period: str
    sources: tuple[str, ...]
    rebuild: bool
    closes: bool


@dataclass(frozen=True, slots=True)
class _Source:
    ref: str
    merged: bool
    usable: bool


def plan_rollups(
    activities: Iterable[ActivityState],
    memories: Iterable[MemoryState],
    today: date,
    policy: RollupPolicy,
    waiting_days: Collection[str] = (),
) -> list[Due]:
    """The next batch that is owed: days first, then months, then years; empty when none is.

    `activities` are those of every day that is not closed, is stale, or has one that is not
    merged. `waiting_days` have messages that no window covers yet: they and the months and
    years above them are not closed before that.
    """
    activities, memories = list(activities), list(memories)
    for kind in get_args(MemoryKind):
        if due := plan_layer(kind, activities, memories, today, policy, waiting_days):
            return due
    return []


def plan_all(
    activities: Iterable[ActivityState],
    memories: Iterable[MemoryState],
    today: date,
    policy: RollupPolicy,
    waiting_days: Collection[str] = (),
) -> list[Due]:
    """Everything that is owed, as far as it can be told before the lower layers are written."""
    found: list[Due] = []
    for _ in get_args(MemoryKind):
        activities, memories = list(activities), list(memories)
        due = plan_rollups(activities, memories, today, policy, waiting_days)
        activities, memories = settle(activities, memories, due)
        found += due
    return found


def plan_layer(
    kind: MemoryKind,
    activities: Sequence[ActivityState],
    memories: Sequence[MemoryState],
    today: date,
    policy: RollupPolicy,
    waiting_days: Collection[str] = (),
) -> list[Due]:
    """What is due of one kind, given that what it is built on is as it should be."""
    layers: dict[MemoryKind, dict[str, MemoryState]] = {"day": {}, "month": {}, "year": {}}
    for memory in memories:
        layers[memory.kind][memory.period] = memory
    if kind == "day":
        return _days(activities, layers["day"], today, policy, waiting_days)
    open_days = {p for p, m in layers["day"].items() if not m.closed} | set(waiting_days)
    open_days |= {a.date for a in activities if a.stale}
    if kind == "month":
        return _months(layers["day"], layers["month"], open_days, today, policy)
    open_months = {p for p, m in layers["month"].items() if not m.closed}
    open_months |= {day[:7] for day in open_days}
    return _years(layers["month"], layers["year"], open_months, today)


def _days(
    activities: Sequence[ActivityState],
    days: Mapping[str, MemoryState],
    today: date,
    policy: RollupPolicy,
    waiting: Collection[str],
) -> list[Due]:
    by_day: dict[str, list[_Source]] = {}
    for activity in activities:
        source = _Source(str(activity.number), activity.merged, not activity.stale)
        by_day.setdefault(activity.date, []).append(source)
    due: list[Due] = []
    for period in sorted(by_day.keys() | {p for p, m in days.items() if not m.closed or m.stale}):
        sources = by_day.get(period, [])
        if any(not source.usable for source in sources):
            continue  # it is rewritten first
        over = period < today.isoformat()
        if over and period in waiting:
            continue
        enough = _unmerged(sources) >= policy.pending_activities
        due += _due("day", period, days.get(period), sources, over=over, enough=enough)
    return due


def _months(
    days: Mapping[str, MemoryState],
    months: Mapping[str, MemoryState],
    open_days: Collection[str],
    today: date,
    policy: RollupPolicy,
) -> list[Due]:
    newest = set(sorted(days)[-policy.keep_days :])
    this_month = today.isoformat()[:7]
    by_month: dict[str, list[_Source]] = {}
    for period, day in days.items():
        by_month.setdefault(period[:7], []).append(_Source(period, day.merged, not day.stale))
    open_months = {period[:7] for period in open_days}
    due: list[Due] = []
    for period in sorted(by_month.keys() | months.keys()):
        over = period < this_month
        if over and period in open_months:
            continue
        sources = sorted(by_month.get(period, []), key=lambda source: source.ref)
        current = months.get(period)
        if not over:
            held = () if current is None else current.sources
            sources = [
                s
                for s in sources
                if s.ref in held or (s.ref not in newest and s.ref not in open_days)
            ]
        enough = _unmerged(sources) >= DAYS_FOR_A_MONTH
        due += _due("month", period, current, sources, over=over, enough=enough)
    return due


def _years(
    months: Mapping[str, MemoryState],
    years: Mapping[str, MemoryState],
    open_months: Collection[str],
    today: date,
) -> list[Due]:
    by_year: dict[str, list[_Source]] = {}
    for period, month in months.items():
        year = years.get(period[:4])
        # A month that the year holds stays in it while something late is added to the month.
        held = year is not None and period in year.sources
        if held or (month.closed and period not in open_months):
            by_year.setdefault(period[:4], []).append(
                _Source(period, month.merged, not month.stale)
            )
    open_years = {period[:4] for period in open_months}
    due: list[Due] = []
    for period in sorted(by_year.keys() | years.keys()):
        over = period < f"{today.year:04d}"
        if over and period in open_years:
            continue
        sources = sorted(by_year.get(period, []), key=lambda source: source.ref)
        enough = _unmerged(sources) >= 1
        due += _due("year", period, years.get(period), sources, over=over, enough=enough)
    return due


def _unmerged(sources: Sequence[_Source]) -> int:
    return sum(not source.merged for source in sources)


def _due(
    kind: MemoryKind,
    period: str,
    current: MemoryState | None,
    sources: Sequence[_Source],
    *,
    over: bool,
    enough: bool,
) -> list[Due]:
    """Whether a memory is due and how, given what belongs in it."""
    if current is None:
        if not sources or not (over or enough):
            return []
        return [Due(kind, period, tuple(s.ref for s in sources), rebuild=True, closes=over)]
    refs = {source.ref for source in sources}
    # A source that the text holds was written anew or is gone: adding cannot mend that.
    changed = any(not s.merged and s.ref in current.sources for s in sources)
    changed = changed or not refs.issuperset(current.sources) or current.stale
    new = tuple(s.ref for s in sources if not s.merged)
    if current.edited and not current.stale:
        closing = over and not current.closed
        if not (closing or (new and (over or enough))):
            return []
        return [Due(kind, period, new, rebuild=False, closes=over)]
    if (over and (new or not current.closed)) or changed:
        return [Due(kind, period, tuple(s.ref for s in sources), rebuild=True, closes=over)]
    if not over and enough:
        return [Due(kind, period, new, rebuild=False, closes=False)]
    return []


def settle(
    activities: Iterable[ActivityState], memories: Iterable[MemoryState], due: Sequence[Due]
) -> tuple[list[ActivityState], list[MemoryState]]:
    """How the states stand once these are written: tells whether another batch follows."""
    done = {(item.kind, ref) for item in due for ref in item.sources}
    written = {(item.kind, item.period): item for item in due}
    activities = [replace(a, merged=a.merged or ("day", str(a.number)) in done) for a in activities]
    upper: dict[MemoryKind, MemoryKind | None] = {"day": "month", "month": "year", "year": None}
    after: list[MemoryState] = []
    for memory in memories:
        item = written.pop((memory.kind, memory.period), None)
        parent = upper[memory.kind]
        if parent is not None and (parent, memory.period) in done:
            memory = replace(memory, merged=True)
        if item is None:
            after.append(memory)
        elif item.sources or not item.rebuild:
            kept = frozenset() if item.rebuild else memory.sources
            after.append(
                replace(
                    memory,
                    closed=item.closes or memory.closed,
                    merged=memory.merged and not item.sources,
                    stale=memory.stale and not item.sources,
                    sources=kept | frozenset(item.sources),
                )
            )
    for item in written.values():
        if item.sources:
            after.append(
                MemoryState(
                    kind=item.kind,
                    period=item.period,
                    closed=item.closes,
                    merged=False,
                    stale=False,
                    edited=False,
                    sources=frozenset(item.sources),
                )
            )
    return activities, after
