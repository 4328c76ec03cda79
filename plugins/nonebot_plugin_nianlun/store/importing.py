"""Importing: lines of a chat export become messages, each once, whatever is stored already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from ..types import Incoming
from . import exclusions, search, speakers, sql, withdrawals
from .database import transactional
from .keys import chunks, short_id
from .matching import Line, Matching, Near
from .models import Chat
from .models import Message as MessageRow
from .numbers import Numbers, next_number
from .recording import Readable, dedup_key, message_row, reply_targets, store_rows

SYSTEM = "10000"
"""Who says what nobody said, such as who joined: no person, so never a speaker."""
_REMEMBERED = 50_000
"""Entries kept of what has passed: a file is in order of time, or nearly so."""


@dataclass(slots=True)
class Stored:
    """What became of a batch of lines."""

    new: int = 0
    known: int = 0
    withdrawn: int = 0
    """Of the new ones: masked."""
    empty: int = 0
    """Of the new ones: with nothing in it that could be read."""
    taken_back: list[int] = field(default_factory=list)
    """Short ids of messages whose words may not be told: here, in the file, or both."""
    wordless: list[int] = field(default_factory=list)
    """Of those that have short ids in the file, those of which it tells no words."""


class Importer:
    """Brings the lines of one file into one chat, batch after batch, in the order of the file.

    Its memory does not grow with the file. Lines of one second belong into one batch.
    """

    def __init__(self, chat_id: int, readable: Readable, character: str) -> None:
        self.chat_id = chat_id
        self.numbers = Numbers()
        """The short ids of what was stored so far, by those that the file has."""
        self._readable = readable
        self._character = character
        self._occurrences: dict[str, int] = {}
        self._claimed: dict[int, None] = {}
        self._aliases: dict[str, int] = {}
        """Short ids of stored messages by the ids that the file has for them."""
        self._registered: dict[tuple[str, str], None] = {}
        self._names: dict[str, tuple[datetime, str]] = {}
        self._told_better: set[str] = set()
        """Ids under which somebody was on record until the file told better who it is."""

    async def store(self, lines: Sequence[Line]) -> Stored:
        """Store what is not there yet, in one transaction. Raises StoreError: nothing is stored."""
        stored = await self._store(lines)
        for remembered in (self._occurrences, self._claimed, self._aliases, self._registered):
            _forget_oldest(remembered)
        return stored

    def note_name(self, user_id: str, name: str, at: datetime) -> None:
        """How somebody was called at a time: the newest name is shown once all is imported."""
        newest = self._names.get(user_id)
        if newest is None or newest[0] <= at:
            self._names[user_id] = (at, name)

    async def finish(self) -> None:
        """Show everybody by the newest name that file and store have."""
        await speakers.settle_names(self.chat_id, self._names)
        if self._told_better:
            await speakers.forget_unheard(self.chat_id, self._told_better)

    def _keys(self, lines: Iterable[Line]) -> list[str]:
        keys: list[str] = []
        for line in lines:
            message = line.message
            # What we sent and got no id for has a key of its own only when it is told live.
            key = dedup_key(replace(message, source="import"))
            if message.user_id != SYSTEM and message.name:
                self.note_name(message.user_id, message.name, message.time)
            if message.message_id is None:
                number = self._occurrences.get(key, 0)
                self._occurrences[key] = number + 1
                if number:
                    key = f"{key.removesuffix('0')}{number}"
            keys.append(key)
        return keys

    @transactional
    async def _store(self, lines: Sequence[Line]) -> Stored:
        await sql.move_last_seqs({self.chat_id: 0})
        excluded = await exclusions.known_for([self.chat_id])
        bare = [line.seq for line in lines if line.seq is not None and _is_wordless(line)]
        lines = [_redacted(excluded, self.chat_id, line) for line in lines]
        keys = self._keys(lines)
        chat = await Chat.get(id=self.chat_id).only("id", "last_seq", "name")
        text_of = await self._texts(lines)
        matching = Matching(self.chat_id, lines, keys, text_of, self._claimed)
        await matching.run()
        stored = Stored()
        for index, line in enumerate(lines):
            if (row := matching.found.get(index)) is not None and line.message.message_id:
                self._aliases[short_id(line.message.message_id)] = row.seq
        await self._tell_better(matching)
        last = await self._insert(chat.last_seq, lines, keys, text_of, matching.found, stored)
        await self._compare(lines, matching.found, stored)
        stored.wordless += [seq for number in bare if (seq := self.numbers.get(number))]
        await sql.move_last_seqs({self.chat_id: last - chat.last_seq})
        chat_name = lines[-1].message.chat_name
        if not chat.name and chat_name:
            await Chat.filter(id=chat.id).update(name=chat_name)
        return stored

    async def _tell_better(self, matching: Matching) -> None:
        """Put what is stored under the number of whoever said it, or under the bot itself."""
        rows = {row.seq: row for row in matching.found.values()}
        people: dict[str, list[Near]] = {}
        for seq, user_id in matching.told_better().items():
            if rows[seq].user_id != user_id:
                people.setdefault(user_id, []).append(rows[seq])
        for user_id, said in people.items():
            query = MessageRow.filter(chat_id=self.chat_id)
            for part in chunks([row.seq for row in said]):
                await query.filter(seq__in=part).update(user_id=user_id)
                await search.add(self.chat_id, "message", part)
            self._told_better |= {row.user_id for row in said}
            shown = {(user_id, row.name, datetime.fromtimestamp(row.second, UTC)) for row in said}
            await speakers.register(self.chat_id, sorted(shown, key=lambda one: one[2]))

    async def _texts(self, lines: Sequence[Line]) -> Callable[[int], str]:
        messages = [line.message for line in lines if line.text is None]
        names = await speakers.names_for_mentions(self.chat_id, messages, self._character)
        texts: dict[int, str] = {}

        def text_of(index: int) -> str:
            if index not in texts:
                line = lines[index]
                written = self._readable(line.message.segments, names) if line.text is None else ""
                texts[index] = line.text or written
            return texts[index]

        return text_of

    async def _insert(
        self,
        last: int,
        lines: Sequence[Line],
        keys: Sequence[str],
        text_of: Callable[[int], str],
        found: Mapping[int, Near],
        stored: Stored,
    ) -> int:
        """Store the lines that are not there; returns the highest short id then."""
        fresh = {keys[i]: line.message for i, line in enumerate(lines) if i not in found}
        withdrawn = await withdrawals.known_for({self.chat_id: fresh})
        replies = self._aliases | await reply_targets(self.chat_id, fresh.values())
        rows: list[list[Any]] = []
        placed: dict[str, int] = {}
        for index, (line, key) in enumerate(zip(lines, keys, strict=True)):
            seq = found[index].seq if index in found else placed.get(key)
            if seq is not None:
                stored.known += 1
                self._place(line, seq)
                continue
            message = line.message
            last = placed[key] = next_number(last, line.seq)
            self._place(line, last)
            masked_at = withdrawals.masked_at(withdrawn, self.chat_id, message)
            excluded = message.skipped in exclusions.UNRECORDED
            if masked_at is not None or excluded or line.withdrawn:
                stored.taken_back.append(last)
            if line.withdrawn:
                masked_at = masked_at or line.withdrawn_at or message.time
            reply_to = self.numbers.get(line.reply_to or 0)
            reply_to = reply_to or replies.get(short_id(message.reply_to_id or ""))
            row = message_row(self.chat_id, last, key, message, text_of(index), masked_at, reply_to)
            rows.append(row)
            self._claimed[last] = None
            stored.withdrawn += masked_at is not None
            stored.empty += row[-1] == "empty" and message.user_id != SYSTEM
            if message.message_id is not None:
                replies[short_id(message.message_id)] = last
        stored.new = len(rows)
        await self._register(fresh.values())
        await store_rows(rows)
        return last

    def _place(self, line: Line, seq: int) -> None:
        if line.seq is not None:
            self.numbers.add(line.seq, seq)

    async def _register(self, messages: Iterable[Incoming]) -> None:
        people: list[tuple[str, str, datetime]] = []
        for message in messages:
            shown = (message.user_id, message.name)
            # Of whom nothing may be told there is no name either.
            named = message.name and message.user_id != SYSTEM
            if named and shown not in self._registered:
                self._registered[shown] = None
                people.append((*shown, message.time))
        await speakers.register(self.chat_id, people)

    async def _compare(
        self, lines: Sequence[Line], found: Mapping[int, Near], stored: Stored
    ) -> None:
        """What only one side knows to be withdrawn is withdrawn."""
        for index, row in found.items():
            if row.withdrawn or lines[index].withdrawn:
                stored.taken_back.append(row.seq)
            if lines[index].withdrawn and not row.withdrawn:
                at = lines[index].withdrawn_at or lines[index].message.time
                await withdrawals.mask(self.chat_id, row.seq, at)


def _is_wordless(line: Line) -> bool:
    return line.withdrawn or not (line.text or line.message.segments)


def _redacted(excluded: exclusions.Known, chat_id: int, line: Line) -> Line:
    """The line as it may be stored: without its words where its speaker may not be recorded."""
    message = exclusions.redact(excluded, chat_id, line.message)
    if message is line.message:
        return line
    wordless = message.skipped in exclusions.UNRECORDED
    return line._replace(message=message, text="" if wordless else line.text)


def _forget_oldest(remembered: dict[Any, Any]) -> None:
    if len(remembered) > _REMEMBERED:
        for key in list(islice(remembered, _REMEMBERED // 2)):
            del remembered[key]
