"""Which lines of a chat export are stored already.

A line is the same message as a stored one when their keys agree (see `recording.dedup_key`), or
when second, speaker and words do: exports number messages anew or not at all, and write media in
their own way. Both sides are taken as multisets, so that two equal lines of a second stay two.

Who speaks may be told in several ways: by number, by name alone, or as the bot's own only since
somebody said so. Whoever agrees more closely is paired first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
import re
from typing import NamedTuple

from ..types import ME, Incoming
from . import sql
from .keys import NAMELESS, short_id
from .speakers import name_key

_NEIGHBOURS = 60
"""Seconds; lines that are nearer than this to each other are looked up together."""
_OWN_CLOCK = 120
"""How far our own line's time, which is our clock's, may lie from the platform's, in seconds."""
_WHEN_SAID = frozenset({"sent", "echo"})
"""How our own line came in that has the platform's id from then."""
# The lines below a forward's mark are there only where somebody has opened it.
_MARK_OR_BLANKS = re.compile(r"\[聊天记录\](?:\n  .*)+|\[[^\[\]]*\]|\s+")


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
    told_as: str | None = None
    """The speaker's id as the file alone tells it; None: that of the message."""
    withdrawn_at: datetime | None = None
    """When it was taken back, where the file tells."""


class Near(NamedTuple):
    """What must be known of a stored message to tell whether a line is the same."""

    seq: int
    key: str
    second: int
    user_id: str
    name: str
    text: str
    withdrawn: bool
    source: str = ""
    message_id: str | None = None


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
        self._words_of: dict[int, str] = {}

    async def run(self) -> None:
        near = await self._near(map(second_of, self._lines))
        self._by_key(near)
        said: defaultdict[tuple[int, str], list[Near]] = defaultdict(list)
        masked: defaultdict[int, list[Near]] = defaultdict(list)
        for row in near:
            if row.withdrawn:
                masked[row.second].append(row)
            elif row.seq not in self._claimed:
                said[row.second, words(row.text)].append(row)
        seconds = {second for second, _ in said}

        def with_the_words(index: int) -> Iterable[Near]:
            line = self._lines[index]
            second = second_of(line)
            rows = said.get((second, self._words(index)), ()) if second in seconds else ()
            return (row for row in rows if not _is_of_another_id(line.message, row))

        self._pair(with_the_words, self._same_speaker)
        await self._own_lines()
        self._pair(with_the_words, self._same_person)
        self._pair(with_the_words, self._one_of_two)
        # A masked message has lost its words: whoever said something then, said that.
        for same in (self._same_speaker, self._same_person, self._one_of_two, self._lost_name):
            self._pair(lambda index: masked.get(second_of(self._lines[index]), ()), same)
        self._taken_back(near)

    def _taken_back(self, near: Iterable[Near]) -> None:
        """What the file masks has lost its words there: without an id, it is what nothing else in
        the file is."""
        spoken: defaultdict[int, list[Near]] = defaultdict(list)
        for row in near:
            if not row.withdrawn and row.key.startswith(f"{row.second}||"):
                spoken[row.second].append(row)

        def of_that_second(index: int) -> Sequence[Near]:
            line = self._lines[index]
            lost = line.withdrawn and line.message.message_id is None and not self._words(index)
            return spoken.get(second_of(line), ()) if lost else ()

        self._pair(of_that_second, self._same_speaker)

    def told_better(self) -> dict[int, str]:
        """Stored messages of which the file tells better who said them: the user id by seq."""
        better: dict[int, str] = {}
        for index, row in self.found.items():
            user_id = short_id(self._lines[index].message.user_id)
            learnt = row.user_id.startswith(NAMELESS) and not user_id.startswith(NAMELESS)
            declared = user_id == ME and row.user_id == self._lines[index].told_as
            if learnt or declared:
                better[row.seq] = user_id
        return better

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
        by_stretch: defaultdict[int, list[Near]] = defaultdict(list)
        for row in sent:
            by_stretch[row.second // _OWN_CLOCK].append(row)

        def nearest(index: int) -> list[Near]:
            second = second_of(self._lines[index])
            stretch = second // _OWN_CLOCK
            near = (row for n in (-1, 0, 1) for row in by_stretch.get(stretch + n, ()))
            within = (row for row in near if abs(row.second - second) <= _OWN_CLOCK)
            return sorted(within, key=lambda row: abs(row.second - second))

        self._pair(
            nearest,
            lambda index, row: (
                not row.withdrawn
                and not _is_of_another_id(self._lines[index].message, row)
                and self._same_speaker(index, row)
                and words(row.text) == self._words(index)
            ),
        )

    def _pair(
        self, rows_for: Callable[[int], Iterable[Near]], same: Callable[[int, Near], bool]
    ) -> None:
        for index in range(len(self._lines)):
            if index in self.found:
                continue
            for row in rows_for(index):
                if row.seq not in self._claimed and same(index, row):
                    self._claim(index, row)
                    break

    def _claim(self, index: int, row: Near) -> None:
        self.found[index] = row
        self._claimed[row.seq] = None

    def _words(self, index: int) -> str:
        if index not in self._words_of:
            self._words_of[index] = words(self._text_of(index))
        return self._words_of[index]

    def _same_speaker(self, index: int, row: Near) -> bool:
        line = self._lines[index]
        if row.user_id == short_id(line.message.user_id):
            return True
        return line.nameless and name_key(row.name) == name_key(line.message.name)

    def _same_person(self, index: int, row: Near) -> bool:
        """One side does not know the number, or not yet that it is the bot: names tell."""
        line = self._lines[index]
        if row.user_id == line.told_as:
            return True
        unsure = ME in (row.user_id, line.message.user_id) or row.user_id.startswith(NAMELESS)
        return unsure and name_key(row.name) == name_key(line.message.name)

    def _one_of_two(self, index: int, row: Near) -> bool:
        """Between two people there is nobody else, whatever name an export has for either."""
        line = self._lines[index]
        unsure = line.nameless or row.user_id.startswith(NAMELESS)
        return unsure and line.message.chat.kind == "private"

    def _lost_name(self, index: int, row: Near) -> bool:
        """Whoever is forgotten or not recorded has no name here, and none but that in the file."""
        return self._lines[index].nameless and not row.name

    async def _near(self, seconds: Iterable[int], *, sent: bool = False) -> list[Near]:
        """Stored messages of these seconds and of the short times between them."""
        rows = await sql.messages_within(self._chat_id, _spans(seconds), sent=sent)
        return [
            Near(seq, key, _second(time), user_id, name, text, withdrawn, source, message_id)
            for seq, key, time, user_id, name, text, source, message_id, withdrawn in rows
        ]


def _is_of_another_id(message: Incoming, row: Near) -> bool:
    """Whether both are our own lines as the platform numbered them when they were said, and it
    gave them two ids. Numbers of exports, and of histories fetched later, tell nothing here."""
    if message.message_id is None or row.message_id is None:
        return False
    when_said = message.source in _WHEN_SAID and row.source in _WHEN_SAID
    return when_said and row.message_id != short_id(message.message_id)


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
