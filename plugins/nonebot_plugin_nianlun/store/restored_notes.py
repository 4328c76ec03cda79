"""Activities, days, months and years of an export, brought back with their numbers moved.

What is there already stays as it is; the file's text is then kept beside it as an earlier one.
A text that was built on a message which is withdrawn, here or by the file's own word, is not
brought back: it is written anew from what is left. Nor is a moment or edit of who was forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
import json

from tortoise.expressions import Q

from ..memory.calendar import Calendar, day_after
from ..memory.keymarks import find_key_messages, renumber_key_marks
from ..types import Activity, Memory
from . import exclusions, provenance, removals, search
from .models import Activity as ActivityRow
from .models import Memory as MemoryRow
from .models import Message as MessageRow
from .numbers import Cover, Numbers, next_number
from .records import Noted, Refused, Remembered, Version
from .restored_bare import BARE, DELETED, emptied, is_bare, same
from .restored_edits import TAKEN_BACK, Edits, lacks_words
from .restored_moments import Moments
from .restored_sources import mark_merged
from .restored_versions import EarlierTexts
from .restored_windows import MAY_BE_NOTED, Runs, day_told, holds_all, state_of, without


class NoteRestorer:
    """Stores the notes of one chat of a file, lower layers first, as an export has them.

    Its methods run inside the caller's transaction and raise Refused before they store anything.
    """

    def __init__(
        self,
        chat_id: int,
        seqs: Numbers,
        cover: Cover,
        taken_back: set[int],
        wordless: set[int],
        calendar: Calendar,
        edits: Edits,
    ) -> None:
        self._chat_id = chat_id
        self._seqs = seqs
        self._cover = cover
        self._taken_back = taken_back
        self._wordless = wordless
        self.outdated: set[int] = set()
        """All messages of windows in which the file tells words that are gone: so may its facts."""
        self.unnoted: set[int] = set()
        """Short ids here of messages whose note somebody removed: they make no other."""
        self._calendar = calendar
        self._edits = edits
        self.moments = Moments(chat_id)
        self._activities: dict[int, tuple[int, str]] = {}
        """By their number in the file: the number here, and the day."""
        self._merged: dict[str, bool] = {}
        """Whether the layer above holds it by the file's word, by its number here or its period;
        never of what was here before, of which what is on record here stands."""
        self.claimed: set[int] = set()
        """Row ids of the activities that the file's were found to be; each is one of them."""
        self._periods: set[str] = set()
        self._tainted: set[int | str] = set()
        """What holds words that are withdrawn: activities by their number in the file, periods."""
        self._absent: set[int | str] = set()
        """Of which nothing could be brought: activities by their number in the file, periods."""
        self._earlier = EarlierTexts(chat_id, seqs, self._activities, self._periods, self._kept)
        self.last = 0
        """The highest number of an activity in the chat."""
        self.new = 0

    async def activity(self, noted: Noted) -> None:
        theirs, state = noted.activity, noted.state
        if theirs.number in self._activities:
            raise Refused(f"活动编号 {theirs.number} 在文件里有两次")
        if is_bare(noted):
            await self._bury(noted)
            return
        runs = self._window(theirs)
        keys = self._keys(theirs.key_messages)
        all_runs, runs = runs, without(runs, self.unnoted)
        if all_runs and not runs:
            await self._keep_out(noted, DELETED)
            return
        # What somebody made it cite since is judged with the edit, and taints nothing else.
        cited = theirs.text if noted.exported is None else ""
        tainted = runs != all_runs or self._cites_taken_back(cited, keys)
        tainted = tainted or await self._is_excluded(noted)
        window = {seq for first, last in all_runs for seq in range(first, last + 1)}
        gone = window & self._taken_back
        if not gone <= self._wordless:
            self.outdated |= window
        tainted = tainted or bool(gone)
        moved = self._moved(theirs.text)
        text = "" if tainted else moved
        # What cites a message that the file does not have is no text that anything here has.
        texts = set() if noted.exported and self._edits.unknown(theirs.text) else {text, moved}
        row, free, left = await self._state(noted, runs, texts)
        moment = row is None and not runs
        first = noted.versions[0].text if noted.versions else theirs.text
        if moment and await removals.is_removed_moment(self._chat_id, theirs.time, first):
            await self._keep_out(noted, DELETED)
            return
        is_gone = row is None and free > 0 and not left
        if is_gone and await emptied(self._chat_id, theirs, self.claimed) is not None:
            await self._keep_out(noted, TAKEN_BACK)
            return
        tainted = tainted or (row is not None and not await holds_all(row, runs))
        if row is None and runs and not free:
            raise Refused("包含的消息在这里都已经标为不记")
        is_new, lost = row is None, False
        if row is None:
            if noted.exported is not None:
                citable = {seq for first, last in runs for seq in range(first, last + 1)}
                noted = self._edits.new_activity(noted, {*citable, *keys}, tainted=tainted)
                text, state = noted.activity.text, noted.state
                if moment and not (text or tainted):
                    self._absent.add(theirs.number)
                    return
                keys = list(find_key_messages(text)) if runs else keys
                lost = not text
            owed = state.stale if state else not text and left > 0
            stale = tainted or lost or owed
            row = await self._create_activity(noted, runs, text, keys, stale=stale)
            self.new += not lost
            await self._earlier.restore(
                "activity", str(row.number), noted.versions, [], tainted=tainted
            )
        elif noted.exported is not None:
            await self._edits.note(row, theirs, noted.exported, tainted=tainted)
        elif text and not tainted and row.text != text and not row.stale:
            now = Version(0, theirs.text, theirs.writer, theirs.written_at)
            texts = [*noted.versions, now]
            row.version += await self._earlier.keep("activity", str(row.number), row, texts, [])
            await ActivityRow.filter(id=row.id).update(version=row.version)
        self.claimed.add(row.id)
        self._activities[theirs.number] = row.number, day_told(theirs.date, row.date)
        for run in theirs.ranges:
            self._cover.add(*run)
        if state:
            self._merged[str(row.number)] = is_new and state.merged and not (tainted or lost)
        if theirs.text and not (runs or row.text or row.stale):
            tainted = True  # a moment that was emptied here
        # What the file itself owes has been seen to in all of its notes.
        if tainted or lacks_words(row, theirs, noted, is_new=is_new):
            self._tainted.add(theirs.number)

    async def _keep_out(self, noted: Noted, why: str) -> None:
        """Of an activity that is removed here, or empty, there is a number, and nothing else."""
        theirs = noted.activity
        self._refuse_edit(noted, why)
        row = await emptied(self._chat_id, theirs, self.claimed)
        if row is None:
            bare = replace(theirs, key_messages=(), source_conv=None, owner=None)
            row = await self._create_activity(Noted(bare), [], "", [], stale=False)
        self.claimed.add(row.id)
        self._activities[theirs.number] = row.number, theirs.date
        for run in theirs.ranges:
            self._cover.add(*run)
        self._tainted.add(theirs.number)

    async def _bury(self, noted: Noted) -> None:
        """Of an activity of which the file itself has nothing left: number and writer."""
        theirs = noted.activity
        self._refuse_edit(noted, BARE)
        row = await same(self._chat_id, theirs, self.claimed)
        if row is None:
            row = await self._create_activity(noted, [], "", [], stale=False)
            of_it = "activity", str(row.number), noted.versions, []
            await self._earlier.restore(*of_it, tainted=True)
        if not row.text:
            # One that stands is taken out by the removal that the file tells of.
            self.claimed.add(row.id)
        self._activities[theirs.number] = row.number, theirs.date

    def _refuse_edit(self, noted: Noted, why: str) -> None:
        if noted.exported is not None:
            self._edits.refused.append(f"活动 &{noted.activity.number} {why}")

    def _window(self, theirs: Activity) -> list[tuple[int, int]]:
        """The runs of `seq` here that the window covers."""
        found: list[tuple[int, int]] = []
        for first, last in theirs.ranges:
            spans = self._seqs.spans(first, last)
            if spans is None:
                raise Refused(f"包含的消息 {first} 到 {last} 不都在文件里")
            if not self._cover.is_free(first, last):
                raise Refused(f"包含的消息 {first} 到 {last} 已经在另一段里")
            found += spans
        return found

    def _keys(self, theirs: Iterable[int]) -> list[int]:
        keys = self._seqs.all(theirs)
        if keys is None:
            raise Refused("关键消息不都在文件里")
        return keys

    def _cites_taken_back(
        self, text: str, keys: Iterable[int] = (), kind: str = "activity"
    ) -> bool:
        """Whether a text of the file, or `keys` of this chat, tell of what is withdrawn; or, of
        what is built on notes, of what makes none any more."""
        cited = {*keys, *(self._seqs.get(number) for number in find_key_messages(text))}
        unnoted = self.unnoted if kind != "activity" else frozenset()
        return not (cited.isdisjoint(self._taken_back) and cited.isdisjoint(unnoted))

    async def _is_excluded(self, noted: Noted) -> bool:
        """Whether it is a moment of somebody who was forgotten here, or was not to be recorded;
        or anybody's of before the chat was cleared; or has words of who was forgotten."""
        theirs = noted.activity
        if await exclusions.wrote(self._chat_id, (theirs, *noted.versions)):
            return True
        excluded = await exclusions.known_for([self._chat_id])
        return exclusions.covers(excluded, self._chat_id, theirs.owner or "", theirs.time)

    def _moved(self, text: str) -> str:
        return renumber_key_marks(text, self._seqs.get)

    def _kept(self, kind: str, earlier: Version) -> str:
        """An earlier text as it may be kept: not at all when it tells of what is withdrawn."""
        refs = earlier.sources or ()
        tainted = any((int(ref) if kind == "day" else ref) in self._tainted for ref in refs)
        if tainted or self._cites_taken_back(earlier.text, kind=kind):
            return ""
        return self._moved(earlier.text)

    async def _state(
        self, noted: Noted, runs: Runs, texts: Collection[str]
    ) -> tuple[ActivityRow | None, int, int]:
        """The activity if it is here; messages that a note may cover; those of them with words."""
        if not runs:
            return await self.moments.find(noted, texts, self.claimed), 0, 0
        return await state_of(self._chat_id, runs)

    async def _create_activity(
        self, noted: Noted, runs: Runs, text: str, keys: list[int], *, stale: bool
    ) -> ActivityRow:
        theirs, state = noted.activity, noted.state
        self.last = next_number(self.last, theirs.number)
        row = await ActivityRow.create(
            chat_id=self._chat_id,
            number=self.last,
            date=theirs.date,
            from_seq=min((first for first, _ in runs), default=None),
            to_seq=max((last for _, last in runs), default=None),
            text=text,
            key_messages=json.dumps(keys if text else []),
            origin=theirs.origin,
            owner=theirs.owner,
            source_conv=theirs.source_conv,
            time=theirs.time,
            version=theirs.version,
            writer=theirs.writer,
            written_at=theirs.written_at,
            usage=state and state.usage,
            # Whatever has a text is merged by the day that holds it, if that comes in too.
            merged=not text and (state.merged if state and state.stale == stale else not stale),
            stale=stale,
        )
        may_be_noted = Q(skipped=None) | Q(skipped__in=MAY_BE_NOTED[1:])
        for first, last in runs:
            window = MessageRow.filter(may_be_noted, chat_id=self._chat_id, activity_id=None)
            await window.filter(seq__gte=first, seq__lte=last).update(
                activity_id=row.id, skipped=None
            )
        await search.add(self._chat_id, "activity", [row.number])
        return row

    async def remembered(self, theirs: Remembered) -> None:
        memory = theirs.memory
        if memory.period in self._periods:
            raise Refused(f"{memory.period} 在文件里有两次")
        sources = self._sources(memory)
        keys = self._keys(memory.key_messages)
        refs = [int(ref) if memory.kind == "day" else ref for ref in memory.sources]
        tainted = not (memory.text or theirs.state) or any(ref in self._tainted for ref in refs)
        cited = memory.text if theirs.exported is None else ""
        tainted = tainted or self._cites_taken_back(cited, keys, memory.kind)
        tainted = tainted or await exclusions.wrote(self._chat_id, (memory, *theirs.versions))
        is_new = lost = False
        row = await MemoryRow.get_or_none(
            chat_id=self._chat_id, kind=memory.kind, period=memory.period
        )
        if row is None:
            is_new = True
            text = "" if tainted else self._moved(memory.text)
            if theirs.exported is not None:
                theirs = await self._edits.new_memory(theirs, sources, tainted=tainted)
                text = theirs.memory.text
                keys, lost = list(find_key_messages(text)), not text
            if tainted and await provenance.nothing_left(self._chat_id, memory.period):
                self._absent.add(memory.period)
                self._tainted.add(memory.period)
                return
            row = await self._create_memory(
                theirs, sources, text, [] if tainted else keys, tainted=tainted, lost=lost
            )
            await mark_merged(self._chat_id, memory, sources, self._merged)
        else:
            await self._add_to(row, theirs, sources, tainted=tainted)
        self._periods.add(memory.period)
        if theirs.state:
            self._merged[memory.period] = is_new and theirs.state.merged and not (tainted or lost)
        if tainted or lacks_words(row, memory, theirs, is_new=is_new):
            self._tainted.add(memory.period)

    async def _add_to(
        self, row: MemoryRow, theirs: Remembered, sources: list[str], *, tainted: bool
    ) -> None:
        """What is here keeps its text; what the file adds to it is earlier texts."""
        memory = theirs.memory
        if theirs.exported is not None:
            await self._edits.note(row, memory, theirs.exported, sources=sources, tainted=tainted)
            return
        if row.text == self._moved(memory.text):
            await mark_merged(self._chat_id, memory, sources, self._merged)
        if not (tainted or row.stale):
            now = Version(0, memory.text, memory.writer, memory.written_at)
            added = await self._earlier.keep(
                row.kind, row.period, row, [*theirs.versions, now], sources
            )
            await MemoryRow.filter(id=row.id).update(version=row.version + added)

    def _sources(self, memory: Memory) -> list[str]:
        """The sources as they are called here. A text that is written anew needs none."""
        if memory.kind == "day":
            known = ((ref, self._activities.get(int(ref))) for ref in memory.sources)
            # Once a message is withdrawn, what holds it is found by the day of its activity.
            found = {ref: str(a[0]) for ref, a in known if a is not None and a[1] == memory.period}
        else:
            found = {ref: ref for ref in memory.sources if ref in self._periods}
        absent = set(map(str, self._absent))
        missing = [ref for ref in memory.sources if ref not in found and ref not in absent]
        if memory.text and missing:
            raise Refused(f"它的来源 {missing[0]} 不在文件里、没能导入，或者不是那天的")
        return list(dict.fromkeys(found.values()))

    async def _create_memory(
        self,
        theirs: Remembered,
        sources: list[str],
        text: str,
        keys: list[int],
        *,
        tainted: bool,
        lost: bool,
    ) -> MemoryRow:
        """`lost`: its own text is not in the file, so it is written anew."""
        memory = theirs.memory
        self.new += not lost
        state = theirs.state
        await self._earlier.restore(
            memory.kind, memory.period, theirs.versions, sources, tainted=tainted
        )
        row = await MemoryRow.create(
            chat_id=self._chat_id,
            kind=memory.kind,
            period=memory.period,
            text=text,
            key_messages=json.dumps(keys),
            sources=json.dumps(sources),
            version=memory.version,
            writer=memory.writer,
            written_at=memory.written_at,
            usage=state and state.usage,
            # Whatever was written once a period was over was written to close it.
            closed=state.closed
            if state
            else memory.written_at >= self._calendar.start_of(day_after(memory.period)),
            merged=False,
            stale=tainted or lost or bool(state and state.stale),
        )
        await search.add(self._chat_id, memory.kind, [row.id])
        return row
