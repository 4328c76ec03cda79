"""The shape of a trunk: how far each year's ring reaches in each direction, and what fills it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from math import cos, exp, log1p, pi, sin
from random import Random
from zlib import crc32

from ..memory.moods import DayGrowth

ANGLES = 720
"""Directions of a turn, clockwise from the top, where the year begins."""
MOST_YEARS = 30
"""Older years are left out; QQ itself is hardly older."""
_PITH = 0.03
_SLIM, _STOUT, _SLOWNESS = 0.34, 1.0, 1.4
"""Radius of a trunk that has just sprouted and of one that is old, and years between the two."""
_LEAN, _WOBBLE = 0.09, 0.07
_DEEPEST = 0.13
"""How far a ring may stand out or back from its mean, in the trunk's radius."""
_RUN_OUT = 20
"""Angles in which the edges of what has grown this year run out."""
_SMOOTHING = 11
"""Angles on each side that a day's growth spreads to, three times over."""


@dataclass(frozen=True, slots=True)
class Ring:
    """One year, by angle. Radii are in those of the largest trunk."""

    year: int
    inner: Sequence[float]
    outer: Sequence[float]
    level: Sequence[float]
    """How busy, from 0 to 1."""
    mood: Sequence[float]


def grow(days: Mapping[date, DayGrowth], today: date) -> list[Ring]:
    """The rings, the oldest first; none without a day until today."""
    first = date(max(1, today.year - MOST_YEARS + 1), 1, 1)
    days = {day: grown for day, grown in days.items() if first <= day <= today and grown.amount}
    if not days:
        return []
    begin = min(days)
    dice = Random(crc32(f"{begin} {days[begin].amount}".encode()))
    lean = dice.random() * 2 * pi
    full = _full_day(days)
    inner = [_PITH] * ANGLES
    rings: list[Ring] = []
    for year in range(begin.year, today.year + 1):
        level, mood = _year(days, year, full)
        thickness = _thickness(level, lean, dice)
        if year == today.year:
            thickness = _until(angle_of(today), thickness)
        thickness = _even(thickness, sum(inner) / ANGLES)
        outer = [a + b for a, b in zip(inner, thickness, strict=True)]
        rings.append(Ring(year, inner, outer, level, mood))
        inner = outer
    return _scaled(rings, _radius((today - begin).days / 365))


def angle_of(day: date) -> int:
    """The direction of the middle of a day."""
    begin = date(day.year, 1, 1)
    length = date(day.year, 12, 31) - begin
    return int(((day - begin).days + 0.5) / (length.days + 1) * ANGLES)


def smooth(values: Sequence[float], reach: int) -> list[float]:
    """The mean of each value with its neighbours on a circle."""
    around = [*values[-reach:], *values, *values[: reach + 1]]
    sums = [0.0, *accumulate(around)]
    width = 2 * reach + 1
    return [(sums[k + width] - sums[k]) / width for k in range(len(values))]


def _full_day(days: Mapping[date, DayGrowth]) -> float:
    """What counts as a full day here: lively and quiet chats grow alike."""
    amounts = sorted(grown.amount for grown in days.values())
    return log1p(amounts[int(len(amounts) * 0.95)])


def _year(
    days: Mapping[date, DayGrowth], year: int, full: float
) -> tuple[list[float], list[float]]:
    level, mood = [0.0] * ANGLES, [0.0] * ANGLES
    ordinal = date(year, 1, 1).toordinal()
    length = date(year, 12, 31).toordinal() - ordinal + 1
    for k in range(ANGLES):
        grown = days.get(date.fromordinal(ordinal + k * length // ANGLES))
        if grown is not None:
            level[k] = min(1.0, log1p(grown.amount) / full)
            mood[k] = grown.mood
    return level, mood


def _thickness(level: Sequence[float], lean: float, dice: Random) -> list[float]:
    grown = list(level)
    for _ in range(3):
        grown = smooth(grown, _SMOOTHING)
    whole = sum(level) / ANGLES
    waves = [(n, dice.random() * 2 * pi, dice.uniform(0.3, 1) / n) for n in (2, 3, 5, 8)]
    thickness: list[float] = []
    for k in range(ANGLES):
        turn = 2 * pi * k / ANGLES
        wave = sum(size * sin(n * turn + phase) for n, phase, size in waves)
        shape = 1 + _LEAN * cos(turn - lean) + _WOBBLE * wave
        thickness.append((0.12 + 0.4 * whole + 0.48 * grown[k]) * shape)
    return thickness


def _until(today: int, thickness: Sequence[float]) -> list[float]:
    """What has grown of a year by today; both ends run out, as bark closes over new wood."""
    return [
        each * _eased((k + 0.5) / _RUN_OUT) * _eased(1 - (k - today) / _RUN_OUT)
        for k, each in enumerate(thickness)
    ]


def _even(thickness: Sequence[float], radius: float) -> list[float]:
    """The same growth around a trunk of this radius, with no dents that would split it.

    So in a young trunk some wood stands already where the year is still to come.
    """
    mean = sum(thickness) / ANGLES
    widest = max(abs(each - mean) for each in thickness)
    rate = min(1.0, _DEEPEST * (radius + mean) / widest)
    return [mean + (each - mean) * rate for each in thickness]


def _eased(x: float) -> float:
    x = max(0.0, min(1.0, x))
    return x * x * (3 - 2 * x)


def _radius(years: float) -> float:
    return _STOUT - (_STOUT - _SLIM) * exp(-years / _SLOWNESS)


def _scaled(rings: Sequence[Ring], radius: float) -> list[Ring]:
    """The rings in such a size that the trunk reaches the radius where it is widest."""
    rate = (radius - _PITH) / (max(rings[-1].outer) - _PITH)

    def size(radii: Sequence[float]) -> list[float]:
        return [_PITH + (r - _PITH) * rate for r in radii]

    return [Ring(r.year, size(r.inner), size(r.outer), r.level, r.mood) for r in rings]
