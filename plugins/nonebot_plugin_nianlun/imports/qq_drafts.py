"""Lines of a text export gathered into messages: what is a heading and what a quotation.

A line that looks like a heading is content when time would run back, or when it names no id
although everybody in the chat has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from .qq_headings import SYSTEM_IDS, Heading, is_banner
from .wall_clock import WallClock

MESSAGE_LIMIT = 1 << 20
"""Longest message, in characters; QQ's own limit is a few thousand."""
STRAYS = 20
"""After so many headings that lie before the newest message, that one was none: somebody had
written a line like a heading with a date to come, and everything since would be its content."""

_NAMES = 10_000
"""Most names that are kept in mind."""


class Draft:
    """A message, with its lines."""

    __slots__ = ("cut", "first", "heading", "instant", "lines", "number", "refused", "size")

    def __init__(self, number: int, first: str, heading: Heading, instant: datetime) -> None:
        self.number = number
        self.first = first
        self.heading = heading
        self.instant = instant
        self.lines: list[str] = []
        self.refused: dict[int, Heading] = {}
        """By their place among the lines, what looked like headings and was taken for content."""
        self.size = 0
        self.cut = False
        """It went on beyond MESSAGE_LIMIT."""

    def add(self, line: str) -> None:
        self.size += len(line) + 1
        if self.size <= MESSAGE_LIMIT:
            self.lines.append(line)
        else:
            self.cut = True

    def text(self) -> str:
        """The content: blank lines inside are part of it, those after it are not."""
        return "\n".join(self.lines).rstrip("\n")


class Drafts:
    """Gathers the lines of one chat. A message comes out once the next but one has begun."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.orphans: list[int] = []
        """First and last of the lines before the first heading, which belong to no message."""
        self._clock = WallClock(zone)
        self._clock_before: WallClock | None = None
        self._previous: Draft | None = None
        self._current: Draft | None = None
        self._ids: set[str] = set()
        self._names: set[str] = set()
        """Of those who have said something and have no id."""
        self._everybody_has_an_id = True
        self._strays: list[int] = []
        self._stray_clock: WallClock | None = None

    def feed(self, number: int, line: str, opens: Heading | None = None) -> Sequence[Draft]:
        """Take the next line, with the heading that it seems to be; return what is complete."""
        if opens is not None and self._may_be_a_member(opens):
            instant = self._clock.read(opens.local)
            if instant is not None:
                return self._begin(Draft(number, line, opens, instant))
            if self._is_stray(opens):
                return self._undo(line, opens)
        if self._current is not None:
            if opens is not None:
                self._current.refused[len(self._current.lines)] = opens
            self._current.add(line)
        elif line and not is_banner(line):
            self.orphans[1:] = [number]
        return ()

    def end(self) -> Sequence[Draft]:
        """Return what is left."""
        return [draft for draft in (self._previous, self._current) if draft is not None]

    def drop_banner(self) -> None:
        """Where exports were put into one file, the next one's first line is no content."""
        lines = self._current.lines if self._current is not None else []
        while lines and not lines[-1]:
            lines.pop()
        if lines and is_banner(lines[-1]):
            lines.pop()

    def is_of_a_stranger(self, found: Heading) -> bool:
        """Whether somebody whom nobody has heard of, without an id, would speak now."""
        known = found.user_id is not None or found.name in self._names
        return not known and self.may_follow(found)

    def may_follow(self, found: Heading) -> bool:
        """Whether time would not run back."""
        return self._clock.read(found.local) is not None

    def _may_be_a_member(self, found: Heading) -> bool:
        # Two people with ids make a group; a bare name in it is not a member's.
        return found.user_id is not None or not self._everybody_has_an_id or len(self._ids) < 2

    def _begin(self, draft: Draft) -> Sequence[Draft]:
        done = () if self._previous is None else (self._previous,)
        self._previous, self._current = self._current, draft
        self._clock_before = self._clock
        self._clock = self._clock.at(draft.heading.local, draft.instant)
        self._strays, self._stray_clock = [], None
        if draft.heading.user_id is None:
            self._everybody_has_an_id = False
            if len(self._names) < _NAMES:
                self._names.add(draft.heading.name)
        elif len(self._ids) < 2 and draft.heading.user_id not in SYSTEM_IDS:
            self._ids.add(draft.heading.user_id)
        return done

    def _is_stray(self, found: Heading) -> bool:
        """Note a heading that would follow the message before the current one; true for enough."""
        if self._current is None or self._previous is None or self._clock_before is None:
            return False
        clock = self._stray_clock or self._clock_before
        instant = clock.read(found.local)
        if instant is None or self._current.cut:
            self._strays, self._stray_clock = [], None
            return False
        self._stray_clock = clock.at(found.local, instant)
        self._strays.append(len(self._current.lines))
        return len(self._strays) == STRAYS

    def _undo(self, line: str, opens: Heading) -> Sequence[Draft]:
        """Make the current message content of the one before, up to the first stray heading."""
        before, false, clock = self._previous, self._current, self._clock_before
        assert before and false and clock  # noqa: PT018 - one fact: there are strays
        first = self._strays[0]
        for content in (false.first, *false.lines[:first]):
            before.add(content)
        self._current, self._previous = before, None
        self._clock, self._clock_before = clock, None
        false.refused[len(false.lines)] = opens
        done: list[Draft] = []
        for place, again in enumerate((*false.lines, line)[first:], first):
            done += self.feed(false.number + 1 + place, again, false.refused.get(place))
        return done
