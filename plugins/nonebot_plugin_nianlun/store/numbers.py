"""Short ids in a file, and what they are here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

_LARGEST_HOLE = 1_000_000
"""A file whose numbers leave out more than this must not use up those of the chat."""


def next_number(last: int, wanted: int | None) -> int:
    """The number after `last`, or the one that the file has where the counting goes on from it."""
    if wanted is not None and last < wanted <= last + _LARGEST_HOLE:
        return wanted
    return last + 1


class Numbers:
    """Maps ascending numbers of a file to those of the store.

    Kept in runs in which both count up together, so that a file takes a few of them however
    long it is.
    """

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._runs: list[tuple[int, int]] = []
        """The number here of each run's first, and its length."""

    def add(self, theirs: int, ours: int) -> None:
        """Raises ValueError when `theirs` is not larger than every number before it."""
        if theirs <= self.highest:
            raise ValueError("numbers must ascend")
        if self._firsts:
            first, (start, length) = self._firsts[-1], self._runs[-1]
            if theirs == first + length and ours == start + length:
                self._runs[-1] = (start, length + 1)
                return
        self._firsts.append(theirs)
        self._runs.append((ours, 1))

    @property
    def highest(self) -> int:
        """The largest number that the file has had so far."""
        return self._firsts[-1] + self._runs[-1][1] - 1 if self._firsts else 0

    def get(self, theirs: int) -> int | None:
        """What the number is here; None when the file did not have it."""
        index = bisect_right(self._firsts, theirs) - 1
        if index < 0:
            return None
        start, length = self._runs[index]
        offset = theirs - self._firsts[index]
        return start + offset if offset < length else None

    def holds(self, ours: int) -> bool:
        """Whether a number of the file is this one here."""
        return any(start <= ours < start + length for start, length in self._runs)

    def all(self, theirs: Iterable[int]) -> list[int] | None:
        """The numbers here of all of them, or None when the file did not have one."""
        ours = [self.get(number) for number in theirs]
        return None if None in ours else [number for number in ours if number is not None]

    def spans(self, first: int, last: int) -> list[tuple[int, int]] | None:
        """The runs of numbers here of those from `first` to `last`; None when one is missing."""
        found: list[tuple[int, int]] = []
        index = bisect_right(self._firsts, first) - 1
        while first <= last:
            if not 0 <= index < len(self._firsts):
                return None
            start, length = self._runs[index]
            offset = first - self._firsts[index]
            if not 0 <= offset < length:
                return None
            taken = min(length - offset, last - first + 1)
            found.append((start + offset, start + offset + taken - 1))
            first += taken
            index += 1
        return found


class Cover:
    """Disjoint runs of numbers; neighbours are kept as one."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def is_free(self, first: int, last: int) -> bool:
        """Whether no run has a number from `first` to `last`."""
        index = bisect_right(self._firsts, last)
        return index == 0 or self._lasts[index - 1] < first

    def add(self, first: int, last: int) -> None:
        """Add a run that is free."""
        index = bisect_right(self._firsts, first)
        if index and self._lasts[index - 1] == first - 1:
            index -= 1
            self._lasts[index] = last
        else:
            self._firsts.insert(index, first)
            self._lasts.insert(index, last)
        if index + 1 < len(self._firsts) and self._firsts[index + 1] == last + 1:
            self._lasts[index] = self._lasts.pop(index + 1)
            self._firsts.pop(index + 1)
