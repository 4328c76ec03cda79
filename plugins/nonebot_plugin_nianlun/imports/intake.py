"""One chat of a file on its way into the store, batch after batch."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..capture.readable import readable
from ..lifecycle import Nianlun
from ..memory.calendar import Calendar
from ..store import chats, health, pauses
from ..store.importing import SYSTEM, Importer
from ..store.matching import Line, second_of
from ..store.records import ChatSettings, ExcludedSpan, KnownFact, Noted, Person, Record, Remembered
from ..store.restoring import Restorer, create_chat
from ..types import ME, ChatKey, Incoming
from .found import FoundMessage, FoundRecord, Unreadable
from .places import Me, Speakers, is_nameless
from .records import record, settings
from .report import ChatReport, ImportReport
from .survey import SurveyedChat
from .values import OddRecord, moment

_BATCH = 2000
"""Messages a transaction; it ends with the second in which that many are reached."""
_LARGEST_BATCH = 10_000
_RECORDS = 500
"""Other lines a transaction."""
_SYSTEM_NAME = "系统消息"
_NOT_STORED = frozenset({"header", "settings"})
"""Known from the first look at the file."""


class Intake:
    """Takes in what the file has of one chat, in order."""

    def __init__(
        self,
        nianlun: Nianlun,
        surveyed: SurveyedChat,
        key: ChatKey,
        mine: Me,
        report: ImportReport,
        editor: str,
    ) -> None:
        self._nianlun = nianlun
        self._editor = editor
        self._surveyed = surveyed
        self._key = key
        self._speakers = Speakers(key, surveyed.found, mine)
        self._people: set[str] = set()
        self._lines: list[Line] = []
        self._records: list[tuple[int, Record]] = []
        self._into: tuple[Importer, Restorer] | None = None
        """Opened by the first thing to store: a file without any leaves no chat behind."""
        self._report = report
        self._told = ChatReport(
            key,
            surveyed.label,
            surveyed.messages,
            surveyed.first,
            surveyed.last,
            nameless=is_nameless(key) and surveyed.found.peer_id is None,
            heard=nianlun.hears(key),
        )
        report.chats.append(self._told)

    async def take(self, found: FoundMessage | FoundRecord) -> None:
        if isinstance(found, FoundMessage):
            line = self._line(found)
            if self._records or self._is_full(line):
                await self._flush()
            self._lines.append(line)
        else:
            if self._lines or len(self._records) >= _RECORDS:
                await self._flush()
            self._record(found)

    async def finish(self) -> None:
        """Store what is left, and count."""
        await self._flush()
        self._told.people = len(self._people)
        if self._into is None:
            return
        importer, restorer = self._into
        await importer.finish()
        await pauses.settle(importer.chat_id, self._nianlun.clock.now())
        await self._nianlun.jobs.let_go(importer.chat_id)
        self._told.notes = restorer.new
        self._told.edited = restorer.edited
        self._told.pending = await health.pending(importer.chat_id)

    def _is_full(self, line: Line) -> bool:
        """A second is not divided, unless it is endless: equal lines in it are told apart."""
        count = len(self._lines)
        if count < _BATCH:
            return False
        return count >= _LARGEST_BATCH or second_of(line) != second_of(self._lines[-1])

    async def _flush(self) -> None:
        """Store the messages or other lines that wait; there are never both."""
        if not (self._lines or self._records):
            return
        if self._into is None:
            self._into = await self._open()
        importer, restorer = self._into
        await self._nianlun.jobs.hold(importer.chat_id)
        if self._lines:
            stored = await importer.store(self._lines)
            restorer.note_messages(stored)
            self._told.count(stored.new, stored.known, stored.withdrawn, stored.empty)
            self._lines.clear()
        else:
            for index, reason in await restorer.store([one for _, one in self._records]):
                line, odd = self._records[index]
                self._report.add_unreadable(Unreadable(line, reason, _is_edited(odd)))
            self._records.clear()

    async def _open(self) -> tuple[Importer, Restorer]:
        now = self._nianlun.clock.now()
        ours = self._nianlun.settings
        header = self._surveyed.header
        zone = _zone(header.get("timezone")) or ours.timezone
        timezone = None if zone.key == ours.timezone.key else zone.key
        await create_chat(self._key, self._settings(), timezone, now)
        ids = await chats.ensure([self._key], now)
        importer = Importer(ids[self._key], readable, self._nianlun.character)
        exported_at = _moment(header.get("exported_at"), now)
        calendar = Calendar(zone, ours.day_starts_at)
        return importer, Restorer(importer, calendar, exported_at, self._editor, now)

    def _settings(self) -> ChatSettings:
        found = self._surveyed.settings
        if found is None:
            return ChatSettings()
        try:
            return replace(settings(found.data), name=self._surveyed.name)
        except OddRecord as odd:
            self._report.add_unreadable(Unreadable(found.line, str(odd)))
            return ChatSettings()

    def _record(self, found: FoundRecord) -> None:
        if found.kind in _NOT_STORED:
            return
        try:
            self._records.append((found.line, self._with_speakers(record(found.kind, found.data))))
        except OddRecord as odd:
            edit = found.data.get("exported") is not None
            self._report.add_unreadable(Unreadable(found.line, str(odd), edit))

    def _with_speakers(self, found: Record) -> Record:
        """Whoever is the bot here is so in everything that the file says."""
        if isinstance(found, Person):
            return replace(found, user_id=self._speakers.user_id(found.user_id, found.name))
        if isinstance(found, KnownFact) and found.owner:
            return replace(found, owner=self._speakers.user_id(found.owner, ""))
        if isinstance(found, Noted) and found.activity.owner:
            owner = self._speakers.user_id(found.activity.owner, "")
            return replace(found, activity=replace(found.activity, owner=owner))
        if isinstance(found, ExcludedSpan) and found.user_id:
            return replace(found, user_id=self._speakers.user_id(found.user_id, ""))
        return found

    def _line(self, found: FoundMessage) -> Line:
        told_as = None
        if found.system:
            user_id, name = SYSTEM, _SYSTEM_NAME
        else:
            user_id, name = self._speakers.user_id(found.user_id, found.name), found.name
            told_as = self._speakers.told_as(found.user_id, found.name)
        if user_id == SYSTEM:
            self._told.system += 1
        else:
            self._people.add(user_id)
            self._told.mine += user_id == ME
        message = Incoming(
            chat=self._key,
            time=found.time if found.time.tzinfo is UTC else found.time.astimezone(UTC),
            user_id=user_id,
            name=name,
            segments=found.segments,
            source=found.source,
            message_id=found.message_id,
            order=found.order,
            chat_name=self._surveyed.name,
            reply_to_id=found.reply_to_id,
            via=found.via,
            delivery=found.delivery,
            skipped="empty" if found.system else None,
        )
        return Line(
            message,
            found.text,
            found.withdrawn,
            found.seq,
            found.reply_to,
            nameless=found.user_id is None and not found.system,
            told_as=told_as,
            withdrawn_at=found.withdrawn_at,
        )


def _is_edited(found: Record) -> bool:
    return isinstance(found, Noted | Remembered | KnownFact) and found.exported is not None


def _zone(name: object) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if isinstance(name, str) else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _moment(value: object, latest: datetime) -> datetime:
    try:
        return min(moment(value, "exported_at"), latest)
    except OddRecord:
        return latest
