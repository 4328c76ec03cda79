"""Texts of a vault that somebody changed after it was exported.

Where the text here is still the one that was exported, theirs becomes the next version, as when
they had corrected it in the chat. Where it has gone on since, it stays, and that is told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from ..errors import CorrectionError, NoteRejected, NotRecorded
from ..memory.duplicates import same_key
from ..memory.fact_items import fact_content
from ..memory.keymarks import find_key_messages
from ..memory.vault import digest
from ..types import Activity, Memory, NoteKind
from . import editing, exclusions, restored_facts, search
from .models import Activity as ActivityRow
from .models import Fact, FactVersion, NoteVersion
from .models import Memory as MemoryRow
from .numbers import Numbers
from .records import KnownFact, Noted, Remembered

_MOVED_ON = "导出以后又写过，留着现在的；要改请重新导出"
_TAKEN_BACK = "里面有收回的话，没有照改"
_EMPTY = "正文空了，没有照改；要删掉请用指令"
_LONGEST_NUMBER = 12
"""Digits of a number that is told back."""


class Edits:
    """Takes in the edits of one chat of a file; its methods run inside the caller's transaction."""

    def __init__(self, chat_id: int, seqs: Numbers, editor: str, now: datetime) -> None:
        self._chat_id = chat_id
        self._seqs = seqs
        self._editor = editor
        self._now = now
        self.made = 0
        self.refused: list[str] = []
        """What was not taken since this was last emptied, and why."""

    async def note(
        self, row: ActivityRow | MemoryRow, theirs: Activity | Memory, text: str, *, tainted: bool
    ) -> None:
        """Of a note that is here; `text` is theirs as it may stand here."""
        kind, ref = _place(row)
        if _plain(text) == _plain(row.text):
            return
        called = row.period if isinstance(row, MemoryRow) else f"活动 &{row.number}"
        if row.text and (why := self._wrong(theirs.text, tainted=tainted)):
            self.refused.append(f"{called} {why}")
            return
        if row.text:
            versions = NoteVersion.filter(chat_id=self._chat_id, kind=kind, ref=ref)
            since = _since([*await versions.order_by("version"), row], theirs)
            if _plain(text) in {_plain(one.text) for one in since[1:]}:
                return  # it was taken before
            if not since or not all(self._is_own(one, since[0]) for one in since[1:]):
                self.refused.append(f"{called} {_MOVED_ON}")
                return
        try:
            await editing.rewrite(self._chat_id, kind, ref, text, self._editor, self._now)
        except (CorrectionError, NoteRejected) as error:
            why = str(error)
            self.refused.append(why if why.startswith(called) else f"{called} {why}")
        else:
            self.made += 1

    def _is_own(
        self,
        later: NoteVersion | ActivityRow | MemoryRow,
        exported: NoteVersion | ActivityRow | MemoryRow,
    ) -> bool:
        """Whether nothing was added to it: then it is an earlier edit of the same export."""
        sources = [getattr(one, "sources", None) for one in (later, exported)]
        added = isinstance(later, MemoryRow) and sources[0] != sources[1]
        return later.writer == self._editor and not added

    def _wrong(self, typed: str, *, tainted: bool) -> str:
        """Why this text of the file is not taken; empty where nothing is wrong."""
        if tainted:
            return _TAKEN_BACK
        unknown = [seq for seq in find_key_messages(typed) if self._seqs.get(seq) is None]
        if unknown:
            return f"引用的 #{str(unknown[0])[:_LONGEST_NUMBER]} 不在文件里，没有照改"
        return "" if _plain(typed) else _EMPTY

    def new_activity(self, noted: Noted, text: str) -> Noted:
        """An edited activity of which nothing is here: its text is the editor's; `text` is what
        can stand of it."""
        theirs = noted.activity
        if why := self._wrong(theirs.text, tainted=not text):
            self.refused.append(f"活动 &{theirs.number} {why}")
        if not _plain(text):
            return noted
        self.made += 1
        return replace(
            noted,
            activity=replace(
                theirs, version=theirs.version + 1, writer=self._editor, written_at=self._now
            ),
            state=noted.state and replace(noted.state, merged=False, stale=False, usage=None),
        )

    def new_memory(self, theirs: Remembered, text: str) -> Remembered:
        """The same of a day, month or year."""
        memory = theirs.memory
        if why := self._wrong(memory.text, tainted=not text):
            self.refused.append(f"{memory.period} {why}")
        if not _plain(text):
            return theirs
        self.made += 1
        return replace(
            theirs,
            memory=replace(
                memory, version=memory.version + 1, writer=self._editor, written_at=self._now
            ),
            state=theirs.state and replace(theirs.state, merged=False, stale=False, usage=None),
        )

    async def fact(self, fact: KnownFact, *, tainted: bool) -> int:
        """An edited fact or note; returns how many are new here. `tainted`: what it was made of
        was taken back."""
        called = fact.category if fact.name is None else f"{fact.category}:{fact.name}"
        try:
            content = fact.text.text if fact.name is None else fact_content(fact.text.text)
            if not content.strip():
                raise CorrectionError(_EMPTY)
            if tainted:
                raise CorrectionError(_TAKEN_BACK)
            await exclusions.refuse(self._chat_id, fact.owner, self._now)
            row = await self._find(fact)
            if row is None:
                text = replace(fact.text, text=content, written_at=self._now)
                self.made += 1
                return await restored_facts.restore(self._chat_id, replace(fact, text=text))
            await self._change(row, fact, content)
        except (CorrectionError, NoteRejected, NotRecorded) as error:
            self.refused.append(f"{called} {error}")
        return 0

    async def _find(self, fact: KnownFact) -> Fact | None:
        same = Fact.filter(
            chat_id=self._chat_id, owner=fact.owner, category=fact.category, name=fact.name
        )
        if fact.name is not None:
            return await same.first()
        notes = same.filter(event_date=fact.event_date)
        at = fact.text.written_at
        for row in await notes.filter(written_at=at):
            if digest(row.text) == fact.exported:
                return row
        for old in await FactVersion.filter(chat_id=self._chat_id, written_at=at):
            if digest(old.text) == fact.exported and (
                row := await notes.get_or_none(id=old.fact_id)
            ):
                return row
        return await notes.filter(note_key=same_key(fact.text.text)).first()

    async def _change(self, row: Fact, fact: KnownFact, content: str) -> None:
        if _plain(content) == _plain(row.text):
            return
        if not row.text:
            raise CorrectionError("已经忘掉了，没有照改")
        earlier = await FactVersion.filter(fact_id=row.id, written_at__gt=fact.text.written_at)
        if _plain(content) in {_plain(old.text) for old in earlier}:
            return  # it was taken before
        if row.written_at != fact.text.written_at or digest(row.text) != fact.exported:
            raise CorrectionError(_MOVED_ON)
        await FactVersion.create(
            chat_id=self._chat_id,
            fact_id=row.id,
            text=row.text,
            source=row.source,
            written_at=row.written_at,
        )
        # It stays with its message: taken back, that takes along what was made of it.
        await Fact.filter(id=row.id).update(
            text=content,
            written_at=self._now,
            note_key=same_key(content) if fact.name is None else None,
        )
        await search.add(self._chat_id, "fact", [row.id])
        self.made += 1


async def find_moment(
    chat_id: int, noted: Noted, texts: Collection[str], claimed: Collection[int]
) -> ActivityRow | None:
    """The activity without a window that this one of the file is, but none of the `claimed` rows:
    by its time and one of these texts or, where it was edited, the text that was exported."""
    theirs = noted.activity
    here = ActivityRow.filter(chat_id=chat_id, date=theirs.date, origin=theirs.origin)
    same = await here.filter(time=theirs.time).exclude(id__in=claimed).order_by("number")
    found = next((row for row in same if row.text in texts), None)
    if found is None and noted.exported is not None:
        found = next((row for row in same if digest(row.text) == noted.exported), None)
        # What became of it since: another edit, or nothing at all.
        found = found or next((row for row in same if row.number == theirs.number), None)
    return found


def _since(
    texts: Sequence[NoteVersion | ActivityRow | MemoryRow], theirs: Activity | Memory
) -> Sequence[NoteVersion | ActivityRow | MemoryRow]:
    """The text that was exported and those that came after it; empty where it is not here."""
    told = (theirs.writer, theirs.written_at)
    found = [at for at, one in enumerate(texts) if (one.writer, one.written_at) == told]
    return texts[found[-1] :] if found else ()


def _place(row: ActivityRow | MemoryRow) -> tuple[NoteKind, str]:
    if isinstance(row, MemoryRow):
        return cast("NoteKind", row.kind), row.period
    return "activity", str(row.number)


def _plain(text: str) -> str:
    """Without what editors add and take away by themselves."""
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))
