"""Texts of a vault that somebody changed after it was exported.

Where the text here is still the one that was exported, theirs becomes the next version, as when
they had corrected it in the chat. Where it has gone on since, it stays, and that is told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import dropwhile
import json
from typing import TypeAlias, cast

from ..errors import CorrectionError, NoteRejected
from ..memory.diary import DIARY_UNITS
from ..memory.edits import checked_edit
from ..memory.keymarks import find_key_messages, renumber_key_marks
from ..memory.units import shortened
from ..memory.vault import digest
from ..types import Activity, Memory, NoteKind, is_edited
from . import editing, search
from .models import Activity as ActivityRow
from .models import Memory as MemoryRow
from .models import NoteVersion
from .numbers import Numbers
from .records import Noted, Remembered

MOVED_ON = "导出以后又写过，留着现在的；要改请重新导出"
TAKEN_BACK = "里面有收回的话，没有照改"
EMPTY = "正文空了，没有照改；要删掉请用指令"
NOT_EXPORTED = "导出时的正文不在文件里，所以没有带来"
AS_EXPORTED = "这里用的是导出时的正文"
_WRITTEN_ANEW = "导出时的正文不在文件里，整理时会重新写"
_Text: TypeAlias = NoteVersion | ActivityRow | MemoryRow
_LONGEST_NUMBER = 12
"""Digits of a number that is told back."""


class Edits:
    """Takes in the edits of one chat of a file; its methods run inside the caller's transaction."""

    def __init__(self, chat_id: int, seqs: Numbers, editor: str, now: datetime) -> None:
        self._chat_id = chat_id
        self._seqs = seqs
        self.editor = editor
        self._now = now
        self.made = 0
        self.refused: list[str] = []
        """What was not taken since this was last emptied, and why."""

    async def note(
        self,
        row: ActivityRow | MemoryRow,
        theirs: Activity | Memory,
        exported: str,
        *,
        sources: Sequence[str] = (),
        tainted: bool,
    ) -> None:
        """Of a note that is here; `exported` is the digest of the text that was changed, and
        `sources` are those that the file gives, as they are called here."""
        kind, ref = _place(row)
        called = row.period if isinstance(row, MemoryRow) else f"活动 &{row.number}"
        text, unknown = self._moved(theirs.text), self.unknown(theirs.text)
        emptied = row.stale and not plain(text) and exported != digest("")
        if plain(text) == plain(row.text) and not (unknown or emptied):
            return
        awaited = not tainted and is_awaited(row, theirs, exported)
        try:
            if (row.text or awaited or unknown) and (why := self._wrong(theirs.text, tainted)):
                raise CorrectionError(why)
            if row.text and await self._was_taken(row, theirs, text, exported, sources):
                return
            if awaited:
                await self._fill(row, text)
            else:
                await editing.rewrite(
                    self._chat_id, kind, ref, text, self.editor, self._now, sources
                )
        except (CorrectionError, NoteRejected) as error:
            why = reason(error).removeprefix(called).strip()
            self.refused.append(f"{called} {why}{f'；{_WRITTEN_ANEW}' if awaited else ''}")
        else:
            self.made += 1

    async def _was_taken(
        self,
        row: ActivityRow | MemoryRow,
        theirs: Activity | Memory,
        text: str,
        exported: str,
        sources: Sequence[str],
    ) -> bool:
        """Whether the edit was taken before. Raises CorrectionError when somebody else has
        written the note since it was exported."""
        kind, ref = _place(row)
        versions = NoteVersion.filter(chat_id=self._chat_id, kind=kind, ref=ref)
        texts = [*await versions.order_by("version"), row]
        was, later = _since(texts, theirs)
        if plain(text) in {plain(one.text) for one in later}:
            return True
        if was is None:
            never_here = all(one.version != theirs.version for one in texts)
        else:
            never_here = not was.text and exported != digest("")
        is_known = was is not None or (never_here and len(later) > 0)
        if never_here:
            # What the machine wrote for want of it; more than was exported is owed again.
            later = list(dropwhile(lambda one: not is_edited(one.writer), later))
        if not is_known or not all(self._is_own(one, sources) for one in later):
            raise CorrectionError(MOVED_ON)
        return False

    async def _fill(self, row: ActivityRow | MemoryRow, typed: str) -> None:
        """Take an edit for a note whose text was not brought, because an earlier one could not be
        taken. Raises NoteRejected."""
        kind, _ = _place(row)
        citable = await editing.citable(row, find_key_messages(typed))
        text, keys = checked_edit(kind, typed, citable)
        stored = type(row).filter(id=row.id)
        await stored.update(
            text=text,
            key_messages=json.dumps(list(keys)),
            version=row.version + 1,
            writer=self.editor,
            written_at=self._now,
            usage=None,
            merged=False,
            stale=False,
        )
        await search.add(
            self._chat_id, kind, [row.id if isinstance(row, MemoryRow) else row.number]
        )

    def _is_own(self, later: _Text, sources: Sequence[str]) -> bool:
        """Whether nothing was added to it: then it is an earlier edit of the same export."""
        told = json.loads(later.sources) if isinstance(later, MemoryRow) else []
        return later.writer == self.editor and set(told) <= set(sources)

    def _wrong(self, typed: str, tainted: bool) -> str:
        """Why this text of the file is not taken; empty where nothing is wrong."""
        if tainted:
            return TAKEN_BACK
        return self.unknown(typed) or ("" if plain(typed) else EMPTY)

    def unknown(self, typed: str) -> str:
        """What it cites that is no message of the file, told to a person."""
        unknown = [seq for seq in find_key_messages(typed) if self._seqs.get(seq) is None]
        if not unknown:
            return ""
        return f"引用的 #{shortened(str(unknown[0]), _LONGEST_NUMBER)} 不在文件里，没有照改"

    def new_activity(self, noted: Noted, citable: Collection[int], *, tainted: bool) -> Noted:
        """An edited activity of which nothing is here: with the editor's text or, where that is
        not taken, the one that was exported; empty where the file does not have it either.

        `citable` are messages here that it may cite.
        """
        theirs = noted.activity
        units = None if theirs.ranges else DIARY_UNITS
        told = f"活动 &{theirs.number}"
        text, is_edit = self._new("activity", told, noted, theirs.text, citable, units, tainted)
        activity = replace(theirs, text=text)
        if not is_edit:
            return replace(noted, activity=activity)
        return replace(
            noted,
            activity=replace(
                activity, version=theirs.version + 1, writer=self.editor, written_at=self._now
            ),
            state=noted.state and replace(noted.state, merged=False, stale=False, usage=None),
        )

    async def new_memory(
        self, theirs: Remembered, sources: Sequence[str], *, tainted: bool
    ) -> Remembered:
        """The same of a day, month or year, whose `sources` are here."""
        memory = theirs.memory
        row = MemoryRow(
            chat_id=self._chat_id,
            kind=memory.kind,
            period=memory.period,
            sources=json.dumps(list(sources)),
        )
        citable = await editing.citable(row, find_key_messages(self._moved(memory.text)))
        text, is_edit = self._new(
            memory.kind, memory.period, theirs, memory.text, citable, None, tainted
        )
        memory = replace(memory, text=text)
        if not is_edit:
            return replace(theirs, memory=memory)
        return replace(
            theirs,
            memory=replace(
                memory, version=memory.version + 1, writer=self.editor, written_at=self._now
            ),
            state=theirs.state and replace(theirs.state, merged=False, stale=False, usage=None),
        )

    def _new(
        self,
        kind: NoteKind,
        called: str,
        of: Noted | Remembered,
        typed: str,
        citable: Collection[int],
        units: int | None,
        tainted: bool,
    ) -> tuple[str, bool]:
        """The text of a note of which nothing is here, and whether it is the editor's."""
        try:
            if why := self._wrong(typed, tainted):
                raise CorrectionError(why)
            text, _ = checked_edit(kind, self._moved(typed), citable, units)
        except (CorrectionError, NoteRejected) as error:
            told = f"{called} {reason(error)}"
            if tainted:
                self.refused.append(told)
                return "", False
            texts = (old.text for old in of.versions if old.text)
            was = next((text for text in texts if digest(text) == of.exported), "")
            fate = AS_EXPORTED if was else _WRITTEN_ANEW if units is None else NOT_EXPORTED
            self.refused.append(f"{told}；{fate}")
            return self._moved(was), False
        self.made += 1
        return text, True

    def _moved(self, text: str) -> str:
        return renumber_key_marks(text, self._seqs.get)


def _since(
    texts: Sequence[_Text], theirs: Activity | Memory
) -> tuple[_Text | None, Sequence[_Text]]:
    """The text that was exported, None where it is not here, and those that came after it."""
    told = (theirs.writer, theirs.written_at)
    found = [at for at, one in enumerate(texts) if (one.writer, one.written_at) == told]
    if not found:
        return None, [one for one in texts if one.version > theirs.version]
    return texts[found[-1]], texts[found[-1] + 1 :]


def _place(row: ActivityRow | MemoryRow) -> tuple[NoteKind, str]:
    if isinstance(row, MemoryRow):
        return cast("NoteKind", row.kind), row.period
    return "activity", str(row.number)


def is_awaited(row: ActivityRow | MemoryRow, theirs: Activity | Memory, exported: str) -> bool:
    """Whether it stands without a text since its edit could not be taken: it had one when it was
    exported, and nothing was written here since."""
    same = ((one.version, one.writer, one.written_at) for one in (row, theirs))
    return row.stale and not row.text and exported != digest("") and len(set(same)) == 1


def lacks_words(
    row: ActivityRow | MemoryRow,
    theirs: Activity | Memory,
    of: Noted | Remembered,
    *,
    is_new: bool,
) -> bool:
    """Whether words are gone from here that the file may still have, in what is above it too.

    A text that is only to be written again stands until then; and nothing was taken back where
    the file itself owes the text, or where an edit of it could not be taken.
    """
    if row.text or not row.stale:
        return False
    if of.exported is not None and is_awaited(row, theirs, of.exported):
        return False
    return of.state is None or not (is_new or (of.state.stale and not theirs.text))


def reason(error: Exception) -> str:
    """What is wrong, as the beginning of a longer line."""
    return str(error).rstrip("。")


def plain(text: str) -> str:
    """Without what editors add and take away by themselves."""
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))
