"""Restoring: what our own export holds beside messages comes back, as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime

from tortoise.expressions import Q
from tortoise.queryset import QuerySet

from ..memory.calendar import Calendar
from ..memory.fact_items import LONGEST_TURN
from ..types import COMMAND_LINE, ChatKey
from . import (
    chats,
    deleting,
    exclusions,
    gaps,
    leaving_out,
    removals,
    restored_facts,
    speakers,
    sql,
    traces,
    withdrawals,
)
from .database import transactional
from .importing import Importer, Stored
from .keys import MOMENT
from .models import Chat, Exclusion, Speaker, UsageCount
from .models import Message as MessageRow
from .numbers import Cover
from .records import (
    ChatSettings,
    ExcludedSpan,
    FactText,
    GapSpan,
    KnownFact,
    Noted,
    Person,
    Record,
    Refused,
    Remembered,
    SkippedRun,
    UsageOfDay,
)
from .restored_edits import Edits
from .restored_fact_edits import FactEdits
from .restored_notes import NoteRestorer


async def create_chat(
    key: ChatKey, settings: ChatSettings, timezone: str | None, now: datetime
) -> None:
    """Create the chat with the settings of its export; one that exists keeps its own."""
    chat = Chat(
        self_id=key.self_id,
        kind=key.kind,
        peer_id=key.peer_id,
        paused=settings.paused,
        muted=settings.muted,
        persona=settings.persona,
        daily_token_limit=settings.daily_token_limit,
        speaker_limit=settings.speaker_limit,
        members_read=settings.members_read,
        day_starts_at=settings.day_starts_at,
        name=settings.name,
        timezone=timezone,
        created_at=now,
    )
    if await chats.row(key) is None:
        await Chat.bulk_create([chat], ignore_conflicts=True)


class Restorer:
    """Brings what an export says of one chat into the store, in the order of the file."""

    def __init__(
        self,
        importer: Importer,
        calendar: Calendar,
        exported_at: datetime,
        editor: str = COMMAND_LINE,
        now: datetime | None = None,
    ) -> None:
        """`calendar` is that of the export: it tells what was over when it was written. Texts that
        were changed since become `editor`'s."""
        self._importer = importer
        self._chat_id = importer.chat_id
        self._seqs = importer.numbers
        self._exported_at = exported_at
        self._cover = Cover()
        self._taken_back: set[int] = set()
        self._wordless: set[int] = set()
        """Messages of which the file itself has no words."""
        self._erasure: str | None = None
        self._edits = Edits(self._chat_id, self._seqs, editor, now or exported_at)
        self._fact_edits = FactEdits(
            self._chat_id, self._edits, calendar, exported_at, now or exported_at
        )
        self._notes = NoteRestorer(
            self._chat_id,
            self._seqs,
            self._cover,
            self._taken_back,
            self._wordless,
            calendar,
            self._edits,
        )
        self._told = removals.Told(self._notes.claimed, self._seqs.holds)
        self._facts = 0
        self._begun: Counter[ExcludedSpan] = Counter()

    @property
    def new(self) -> int:
        """Notes and facts that were not here before."""
        return self._notes.new + self._facts

    @property
    def edited(self) -> int:
        """Notes and facts whose text somebody had changed in the file, and that are so now."""
        return self._edits.made

    def note_messages(self, stored: Stored) -> None:
        """Take in what became of messages, before anything that is built on them."""
        self._taken_back.update(stored.taken_back)
        self._wordless.update(stored.wordless)

    @transactional
    async def store(self, records: Sequence[Record]) -> list[tuple[int, str]]:
        """Store the records in one transaction.

        Returns the place and the fault of those whose references do not hold, of which nothing
        is stored, and of those whose edit is not taken.
        """
        await sql.move_last_seqs({self._chat_id: 0})
        chat = await Chat.get(id=self._chat_id).only("id", "last_activity")
        self._notes.last = chat.last_activity
        await self._look_what_was_erased()
        self._notes.moments.expect(records)
        refused: list[tuple[int, str]] = []
        for index, record in enumerate(records):
            try:
                await self._store(record)
            except Refused as fault:
                refused.append((index, str(fault)))
            refused += [(index, fault) for fault in self._edits.refused]
            self._edits.refused.clear()
        if self._notes.last != chat.last_activity:
            await Chat.filter(id=chat.id).update(last_activity=self._notes.last)
        return refused

    async def _look_what_was_erased(self) -> None:
        """Others may take back words while the file is read, also of what was just stored."""
        self._notes.unnoted = await removals.left_out(self._chat_id)
        erasure = await traces.last_erasure(self._chat_id)
        if erasure != self._erasure:
            self._erasure = erasure
            self._taken_back.update(await sql.wordless(self._chat_id))

    async def _store(self, record: Record) -> None:
        if isinstance(record, Person):
            await speakers.restore(self._chat_id, record, self._exported_at)
            self._importer.note_name(record.user_id, record.name, self._exported_at)
        elif isinstance(record, Noted):
            await self._notes.activity(record)
        elif isinstance(record, SkippedRun):
            await self._skip(record)
        elif isinstance(record, GapSpan):
            await gaps.add(self._chat_id, (record.begins, record.ends))
        elif isinstance(record, Remembered):
            await self._notes.remembered(record)
        elif isinstance(record, ExcludedSpan):
            await self._exclude(record)
        elif isinstance(record, UsageOfDay):
            counted = UsageCount(chat_id=self._chat_id, **asdict(record))
            await UsageCount.bulk_create([counted], ignore_conflicts=True)
        else:
            await self._fact(record)

    async def _exclude(self, span: ExcludedSpan) -> None:
        """Keep away from now on what the exporting chat keeps away; it comes last in a file.

        What is on record here keeps its own end: a member may have come back meanwhile.
        """
        whose = {"reason": span.reason, "user_id": span.user_id, "message_id": span.message_id}
        whose["subject"] = span.subject
        same = Exclusion.filter(chat_id=self._chat_id, **whose, begins=span.begins)
        alike = replace(span, noted_at=self._exported_at, ends=None)
        if span.reason in ("forgotten", "window", "fact"):
            same = same.filter(ends=span.ends)
            alike = replace(alike, ends=span.ends)
        if await self._is_on_record(span, alike, same):
            return
        ends = span.ends
        if span.reason == "paused" and ends is None and not await self._is_paused():
            ends = self._exported_at
        row = await Exclusion.create(
            chat_id=self._chat_id,
            **whose,
            begins=span.begins,
            ends=ends,
            created_at=span.noted_at,
        )
        await deleting.remove_again(row, self._told)
        if span.reason == "opted_out" and span.ends is None:
            person = Speaker.filter(chat_id=self._chat_id, user_id=span.user_id)
            await person.update(opted_out_at=span.begins)
        if span.message_id is not None and span.begins is not None:
            await self._mask(span.message_id, span.user_id, span.begins)

    async def _is_on_record(
        self, span: ExcludedSpan, alike: ExcludedSpan, same: QuerySet[Exclusion]
    ) -> bool:
        # Of two windows of one second both may be deleted; and who went, came and went again within
        # one has several that begin alike. The first of the file is the first here, and so on.
        self._begun[alike] += 1
        if await same.count() >= self._begun[alike]:
            return True
        # One who is away is so once.
        is_away = span.reason in ("opted_out", "paused") and span.ends is None
        return is_away and await same.filter(ends=None).exists()

    async def _is_paused(self) -> bool:
        """Whether recording is paused here; a chat that was there keeps its own settings."""
        return await Chat.filter(id=self._chat_id, paused=True).exists()

    async def _mask(self, message_id: str, user_id: str | None, at: datetime) -> None:
        """Take back what is here of a message that the exporting chat knows to be withdrawn."""
        rows = MessageRow.filter(chat_id=self._chat_id, message_id=message_id)
        if user_id is not None:
            rows = rows.filter(user_id=user_id)
        # Where an id was used twice, the last to come in was meant.
        row = await rows.order_by("-seq").first()
        if row is not None and row.withdrawn_at is None:
            await withdrawals.mask(self._chat_id, row.seq, at)

    async def _skip(self, run: SkippedRun) -> None:
        spans = self._seqs.spans(run.first, run.last)
        if spans is None:
            raise Refused(f"消息 {run.first} 到 {run.last} 不都在文件里")
        if not self._cover.is_free(run.first, run.last):
            raise Refused(f"消息 {run.first} 到 {run.last} 已经在另一段里")
        self._cover.add(run.first, run.last)
        for first, last in spans:
            here = MessageRow.filter(chat_id=self._chat_id, seq__gte=first, seq__lte=last)
            told = here.filter(withdrawn_at=None).exclude(Q(text="", segments="[]"))
            if run.reason == "opted_out":
                await leaving_out.take_out(self._chat_id, await told, self._exported_at)
            elif run.reason == "paused":
                # Recording went on here: that it was paused there takes nothing away.
                here = here.filter(text="", segments="[]")
            unsaid = Q(skipped=None) | Q(skipped="empty")
            await here.filter(unsaid, activity_id=None).update(skipped=run.reason)

    async def _fact(self, fact: KnownFact) -> None:
        whose = fact.owner, fact.category, fact.name
        for one in (fact.text, *fact.journal):
            self._told.facts.add((*whose, one.text, one.written_at))
        text, overtaken = self._moved(fact.text), self._is_overtaken(fact.text)
        holds = await self._holds(fact, text)
        if fact.exported is not None and not holds:
            # Somebody had it erased here, or the note that it was taken from.
            called = ":".join(filter(None, (fact.category, fact.name)))
            self._edits.refused.append(f"{called} 在这里已经忘掉了，没有照改")
            return
        kept = [self._moved(old) for old in fact.journal if not self._is_overtaken(old)]
        kept = [old for old in kept if await self._holds(fact, old)]
        excluded = await exclusions.known_for([self._chat_id])
        about = excluded, self._chat_id, fact.owner
        kept = [old for old in kept if not exclusions.covers(*about, old.written_at)]
        if fact.exported is not None:
            moved = replace(fact, text=text, journal=tuple(kept))
            self._facts += await self._fact_edits.take(moved, tainted=overtaken)
            return
        if overtaken or not holds:
            # As it would have here, it goes back to what was true before.
            if not any(old.text for old in kept):
                return
            if not overtaken and await exclusions.wrote(self._chat_id, (text,)):
                kept.append(replace(kept[-1], written_at=kept[-1].written_at + MOMENT))
            *kept, text = kept
        if exclusions.covers(*about, text.written_at):
            return  # whom it is about was forgotten here
        moved = replace(fact, text=text, journal=tuple(kept))
        self._facts += await restored_facts.restore(self._chat_id, moved)

    def _is_overtaken(self, theirs: FactText) -> bool:
        """Whether what a fact of the file says was taken back, or may hold what was since: it may
        tell any line of its window or turn."""
        if theirs.source is None or (source := self._seqs.get(theirs.source)) is None:
            return False
        if source in self._taken_back or source in self._notes.outdated:
            return True
        if not self._cover.is_free(theirs.source, theirs.source):
            return False
        turn = range(source - LONGEST_TURN + 1, source + LONGEST_TURN)
        return not self._taken_back.intersection(turn) <= self._wordless

    async def _holds(self, fact: KnownFact, text: FactText) -> bool:
        if text.source in self._notes.unnoted or await exclusions.wrote(self._chat_id, (text,)):
            return False
        ends = await removals.fact_ends(self._chat_id, fact.owner, fact.category, fact.name)
        return ends is None or await removals.told_at(self._chat_id, text) >= ends

    def _moved(self, text: FactText) -> FactText:
        if text.source is None:
            return text
        source = self._seqs.get(text.source)
        if source is None:
            raise Refused(f"它的来源消息 {text.source} 不在文件里")
        return replace(text, source=source)
