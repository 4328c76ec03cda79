"""What a model will be asked for the talk that waits, as far as that can be told beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from ..types import UNIT_LIMITS, MemoryKind, NoteKind
from .calendar import Calendar
from .owed import INPUT_TOKENS
from .rollups import Due
from .windows import WindowPolicy, continues

_LINE_TOKENS = 8
"""Number and name before each message, and the line's end."""
_FRAME_TOKENS = 60
"""The JSON around a text in a task or an answer."""
_FACT_TOKENS = 60
"""Facts that are handed in with an activity."""
_BELOW: dict[MemoryKind, NoteKind] = {"day": "activity", "month": "day", "year": "month"}
_TOKENS_A_CHARACTER = 0.9
"""Of Chinese with some Latin and digits in it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls of a model, and tokens of all prompts and all answers together."""

    calls: int = 0
    prompt: int = 0
    completion: int = 0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.completion + other.completion,
        )


@dataclass(slots=True)
class Backlog:
    """Counts the windows of messages that are pending, in event order, and their periods."""

    calendar: Calendar
    policy: WindowPolicy
    windows: int = 0
    messages: int = 0
    characters: int = 0
    _days: int = 0
    _months: set[tuple[int, int]] = field(default_factory=set)
    _day: date | None = None
    _last: datetime | None = None
    _size: int = 0

    def take(self, time: datetime, characters: int) -> None:
        day = self.calendar.day_of(time)
        if self._last is None or not continues(
            self._size, self._last, time, self.calendar.day_of, self.policy
        ):
            self.windows += 1
            self._size = 0
        if day != self._day:
            self._days += 1
            self._months.add((day.year, day.month))
        self._day, self._last = day, time
        self._size += 1
        self.messages += 1
        self.characters += characters

    def estimate(self, activity_tokens: int, rollup_tokens: int) -> Estimate:
        """`activity_tokens` and `rollup_tokens` are what stands around the sources in a request.

        Each answer is counted as long as it may be, and each roll-up once.
        """
        total = of_windows(self.windows, self.messages, self.characters, activity_tokens)
        years = {year for year, _ in self._months}
        levels: tuple[tuple[MemoryKind, int, int], ...] = (
            ("day", self._days, self.windows),
            ("month", len(self._months), self._days),
            ("year", len(years), len(self._months)),
        )
        for kind, count, sources in levels:
            total += _of_layer(kind, count, sources, rollup_tokens)
        return total


def of_windows(windows: int, messages: int, characters: int, around: int) -> Estimate:
    """Of noting so many windows; `around` are the tokens beside the talk in each request."""
    talk = round(characters * _TOKENS_A_CHARACTER) + messages * _LINE_TOKENS
    answers = windows * (_answer("activity") + _FACT_TOKENS)
    return Estimate(windows, talk + windows * around, answers)


def of_rollups(due: Sequence[Due], around: int) -> Estimate:
    """Of writing these memories; `around` are the tokens beside the sources in each request."""
    total = Estimate()
    for kind in _BELOW:
        its = [item for item in due if item.kind == kind and item.sources]
        total += _of_layer(kind, len(its), sum(len(item.sources) for item in its), around)
    return total


def _of_layer(kind: MemoryKind, count: int, sources: int, around: int) -> Estimate:
    read = sources * _answer(_BELOW[kind])
    calls = -(-read // INPUT_TOKENS)
    return Estimate(calls, read + calls * around, count * _answer(kind))


def _answer(kind: NoteKind) -> int:
    return UNIT_LIMITS[kind] + _FRAME_TOKENS
