"""Lines of old QQ's text export gathered into messages: what is a heading and what a quotation.

A line that looks like a heading is content when no blank line stands before it, when time would
run back, or when it names no id although everybody in the chat has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from .qq_headings import SYSTEM_IDS, Heading, heading, is_banner
from .wall_clock import WallClock

MESSAGE_LIMIT = 1 << 20
"""Longest message, in characters; QQ's own limit is a few thousand."""
STRAYS = 20
"""After so many headings that lie before the newest message, that one was none: somebody had
written a line like a heading with a date to come, and everything since would be its content."""


class Draft:
    """A message, with its lines."""

    __slots__ = ("cut", "first", "heading", "instant", "lines", "number", "size")

    def __init__(self, number: int, first: str, heading: Heading, instant: datetime) -> None:
        self.number = number
        self.first = first
        self.heading = heading
        self.instant = instant
        self.lines: list[str] = []
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

    def __init__(self, zone: ZoneInfo, *, twelve_hours: bool) -> None:
        self.orphans: list[int] = []
        """First and last of the lines before the first heading, which belong to no message."""
        self._twelve_hours = twelve_hours
        self._clock = WallClock(zone)
        self._clock_before: WallClock | None = None
        self._previous: Draft | None = None
        self._current: Draft | None = None
        self._blank = True
        self._ids: set[str] = set()
        self._everybody_has_an_id = True
        self._strays: list[int] = []
        self._stray_clock: WallClock | None = None

    def feed(self, number: int, line: str) -> Sequence[Draft]:
        """Take the next line; return what is complete by then."""
        opens = self._heading(line) if self._blank else None
        self._blank = not line
        if opens is not None:
            instant = self._clock.read(opens.local)
            if instant is not None:
                return self._begin(Draft(number, line, opens, instant))
            if self._is_stray(opens):
                return self._undo(line)
        if self._current is not None:
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

    def _heading(self, line: str) -> Heading | None:
        found = heading(line, twelve_hours=self._twelve_hours)
        if found is None or found.user_id is not None or not self._everybody_has_an_id:
            return found
        # Two people with ids make a group; a bare name in it is not a member's.
        return found if len(self._ids) < 2 else None

    def _begin(self, draft: Draft) -> Sequence[Draft]:
        done = () if self._previous is None else (self._previous,)
        self._previous, self._current = self._current, draft
        self._clock_before = self._clock
        self._clock = self._clock.at(draft.heading.local, draft.instant)
        self._strays, self._stray_clock = [], None
        if draft.heading.user_id is None:
            self._everybody_has_an_id = False
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

    def _undo(self, line: str) -> Sequence[Draft]:
        """Make the current message content of the one before, up to the first stray heading."""
        before, false, clock = self._previous, self._current, self._clock_before
        assert before and false and clock  # noqa: PT018 - one fact: there are strays
        first = self._strays[0]
        for content in (false.first, *false.lines[:first]):
            before.add(content)
        self._current, self._previous = before, None
        self._clock, self._clock_before = clock, None
        self._blank = True
        done: list[Draft] = []
        for number, again in enumerate((*false.lines[first:], line), false.number + 1 + first):
            done += self.feed(number, again)
        return done
