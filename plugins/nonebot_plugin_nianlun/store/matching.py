"""Which lines of a chat export are stored already.

A line is the same message as a stored one when their keys agree (see `recording.dedup_key`), or
when second, speaker and words do: exports number messages anew or not at all, and write media in
their own way. Both sides are taken as multisets, so that two equal lines of a second stay two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
import re
from typing import NamedTuple

from ..types import ME, Incoming
from . import sql
from .keys import short_id
from .speakers import name_key

_NEIGHBOURS = 60
"""Seconds; lines that are nearer than this to each other are looked up together."""
_OWN_CLOCK = 120
"""How far our own line's time, which is our clock's, may lie from the platform's, in seconds."""
_MARK_OR_BLANKS = re.compile(r"\[[^\[\]]*\]|\s+")


class Line(NamedTuple):
    """A message of a file on its way into the store."""

    message: Incoming
    text: str | None = None
    """Its readable text where the file has it; else it is made from the segments."""
    withdrawn: bool = False
    seq: int | None = None
    """Its short id in the file, which it keeps where that is free and in order."""
    reply_to: int | None = None
    """The short id in the file of the message that it answers."""
    nameless: bool = False
    """The file gives its speaker no number: only the name tells who it is."""


class Near(NamedTuple):
    """What must be known of a stored message to tell whether a line is the same."""

    seq: int
    key: str
    second: int
    user_id: str
    name: str
    text: str
    withdrawn: bool


def words(text: str) -> str:
    """What two exports of a line have in common: every `[…]` is one mark, blanks are one."""
    return _MARK_OR_BLANKS.sub(lambda part: "[]" if part[0][0] == "[" else " ", text).strip()


def second_of(line: Line) -> int:
    return int(line.message.time.timestamp())


class Matching:
    """Finds for each line of a batch the stored message that it is; each serves one line only.

    `claimed` holds the short ids of stored messages that are spoken for, also by earlier batches.
    """

    def __init__(
        self,
        chat_id: int,
        lines: Sequence[Line],
        keys: Sequence[str],
        text_of: Callable[[int], str],
        claimed: dict[int, None],
    ) -> None:
        self._chat_id = chat_id
        self._lines = lines
        self._keys = keys
        self._text_of = text_of
        self._claimed = claimed
        self.found: dict[int, Near] = {}
        """By the line's place in the batch."""

    async def run(self) -> None:
        near = await self._near(map(second_of, self._lines))
        self._by_key(near)
        by_second: dict[int, list[Near]] = {}
        for row in near:
            by_second.setdefault(row.second, []).append(row)
        if near:
            self._pair(lambda line: by_second.get(second_of(line), ()), self._same_words)
        await self._own_lines()
        if near:
            self._pair(lambda line: by_second.get(second_of(line), ()), self._taken_back)

    def _by_key(self, near: Iterable[Near]) -> None:
        by_key = {row.key: row for row in near}
        for index, key in enumerate(self._keys):
            if (row := by_key.get(key)) is not None:
                self._claim(index, row)

    async def _own_lines(self) -> None:
        """What we sent ourselves bears the time of our clock, and no id that an export has."""
        left = [
            second_of(line)
            for index, line in enumerate(self._lines)
            if line.message.user_id == ME and index not in self.found
        ]
        shifts = range(-_OWN_CLOCK, _OWN_CLOCK + 1, _NEIGHBOURS)
        sent = await self._near((second + shift for second in left for shift in shifts), sent=True)
        by_stretch: dict[int, list[Near]] = {}
        for row in sent:
            by_stretch.setdefault(row.second // _OWN_CLOCK, []).append(row)

        def nearest(line: Line) -> list[Near]:
            second = second_of(line)
            stretch = second // _OWN_CLOCK
            near = (row for n in (-1, 0, 1) for row in by_stretch.get(stretch + n, ()))
            within = (row for row in near if abs(row.second - second) <= _OWN_CLOCK)
            return sorted(within, key=lambda row: abs(row.second - second))

        if sent:
            self._pair(nearest, self._same_words)

    def _pair(
        self, rows_for: Callable[[Line], Iterable[Near]], same: Callable[[int, Near], bool]
    ) -> None:
        for index, line in enumerate(self._lines):
            if index in self.found:
                continue
            for row in rows_for(line):
                if row.seq not in self._claimed and same(index, row):
                    self._claim(index, row)
                    break

    def _claim(self, index: int, row: Near) -> None:
        self.found[index] = row
        self._claimed[row.seq] = None

    def _same_words(self, index: int, row: Near) -> bool:
        return (
            not row.withdrawn
            and self._same_speaker(index, row)
            and words(row.text) == words(self._text_of(index))
        )

    def _taken_back(self, index: int, row: Near) -> bool:
        """A masked message has lost its words: whoever said something then, said that."""
        return row.withdrawn and self._same_speaker(index, row)

    def _same_speaker(self, index: int, row: Near) -> bool:
        line = self._lines[index]
        if row.user_id == short_id(line.message.user_id):
            return True
        return line.nameless and name_key(row.name) == name_key(line.message.name)

    async def _near(self, seconds: Iterable[int], *, sent: bool = False) -> list[Near]:
        """Stored messages of these seconds and of the short times between them."""
        rows = await sql.messages_within(self._chat_id, _spans(seconds), sent=sent)
        return [
            Near(seq, key, _second(time), user_id, name, text, withdrawn)
            for seq, key, time, user_id, name, text, withdrawn in rows
        ]


def _spans(seconds: Iterable[int]) -> list[tuple[str, str]]:
    """First second and the one after the last, as the time column begins, without overlaps."""
    spans: list[list[int]] = []
    for second in sorted(set(seconds)):
        if spans and second - spans[-1][1] <= _NEIGHBOURS:
            spans[-1][1] = second
        else:
            spans.append([second, second])
    return [(_text(first), _text(last + 1)) for first, last in spans]


def _second(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp())


def _text(second: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return moment.isoformat(" ", "seconds").removesuffix("+00:00")
