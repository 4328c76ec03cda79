"""Facts and notes of a vault that somebody changed after it was exported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
import re

from ..errors import CorrectionError, NoteRejected, NotRecorded
from ..memory.calendar import Calendar
from ..memory.duplicates import same_key
from ..memory.fact_items import FACT_UNITS, FactItem, fact_content
from ..memory.keymarks import find_key_messages
from ..memory.promises import PROMISE, due_after, due_day, is_kept
from ..memory.vault import digest
from . import exclusions, facts, restored_facts, search
from .models import Fact, FactVersion
from .models import Message as MessageRow
from .records import KnownFact
from .restored_edits import (
    AS_EXPORTED,
    EMPTY,
    MOVED_ON,
    NOT_EXPORTED,
    TAKEN_BACK,
    Edits,
    plain,
    reason,
)

_CITES = "写了消息编号，词条不引用消息，没有照改"
_FORGOTTEN = "导出以后这里忘记过人，里面也许有那人写的，没有照改；要改请重新导出"
_NO_DAY = "的到期日 {} 不是日期，{}"
_LONGEST_DAY = 20
"""Characters of what is told back in its place."""
_BOTH = "的到期日用了标记里改的（{}），没有用正文里说的 {}"
_CLOSED = "说已经做到了，标记里改的到期日没有用"
_UNREAD = "正文里的 {} 没有读成日子，到期日还是 {}"
_NUMBERS = re.compile(r"(?<!\d)(?:1[0-2]|0?[1-9])[-/.](?:3[01]|[12]\d|0?[1-9])(?!\d)", re.ASCII)
"""What may be meant for a month and a day, or for something else."""
_MARKUP = re.compile(r"~~.*?~~|[*`]+")
"""What Markdown strikes out, and its marks within words."""


@dataclass(frozen=True, slots=True)
class _Dated:
    """Until when an edited promise is to be kept."""

    due: str | None
    done_at: datetime | None
    told: str = ""
    """What of the edit this is not, for a person."""


class FactEdits:
    """Takes them in for one chat of a file; its methods run inside the caller's transaction."""

    def __init__(
        self,
        chat_id: int,
        edits: Edits,
        calendar: Calendar,
        exported_at: datetime,
        now: datetime,
    ) -> None:
        """What is taken and what is not is counted and told by `edits`."""
        self._chat_id = chat_id
        self._edits = edits
        self._calendar = calendar
        self._exported_at = exported_at
        self._now = now

    async def take(self, fact: KnownFact, *, tainted: bool) -> int:
        """Returns how many facts are new here. `tainted`: what it was made of was taken back."""
        called = fact.category if fact.name is None else f"{fact.category}:{fact.name}"
        row: Fact | None = None
        try:
            if tainted:
                raise CorrectionError(TAKEN_BACK)
            await exclusions.refuse(self._chat_id, fact.owner, self._now)
            row = await self._find(fact)
            if row is None and await exclusions.forgot_since(self._chat_id, self._exported_at):
                # It may have been here already, and be gone with whoever wrote this.
                raise CorrectionError(_FORGOTTEN)
            if fact.misdated:
                typed = fact.misdated[:_LONGEST_DAY]
                raise NoteRejected(_NO_DAY.format(typed, "没有照改" if row else "所以没有带来"))
            content = self._content(fact)
            dated = await self._dated(fact, content, fact.text.due if row is None else row.due)
            if row is None:
                new = await self._add(fact, content, dated)
            else:
                await self._change(row, fact, content, dated)
                new = 0
        except NoteRejected as error:
            return await self._refuse(called, fact, row, error)
        except (CorrectionError, NotRecorded) as error:
            self._edits.refused.append(f"{called} {reason(error)}")
            return 0
        if dated.told:
            self._edits.refused.append(f"{called} {dated.told}")
        return new

    def _content(self, fact: KnownFact) -> str:
        """The text as it is stored. Raises NoteRejected."""
        typed = fact.text.text
        if not typed.strip():
            raise NoteRejected(EMPTY)
        if fact.name is None:
            return typed
        if find_key_messages(typed):
            # Stored facts have none; to leave it out would be another edit than theirs.
            raise NoteRejected(self._edits.unknown(typed) or _CITES)
        try:
            return fact_content(typed)
        except NoteRejected as error:
            # What that says is for a model, which knows the text by the name of a field.
            raise NoteRejected(f"正文应为 1 到 {FACT_UNITS} 字的文字，没有照改") from error

    async def _refuse(
        self, called: str, fact: KnownFact, row: Fact | None, error: NoteRejected
    ) -> int:
        """Of a text that no fact may have: what is here stays, or comes as it was exported."""
        told = f"{called} {reason(error)}"
        if row is not None or fact.misdated:
            self._edits.refused.append(told)
            return 0
        texts = (old.text for old in fact.journal if old.text)
        was = next((text for text in texts if digest(text) == fact.exported), None)
        self._edits.refused.append(f"{told}；{NOT_EXPORTED if was is None else AS_EXPORTED}")
        if was is None:
            return 0
        due = None if fact.redated else fact.text.due
        exported = replace(fact, text=replace(fact.text, text=was, due=due))
        return await restored_facts.restore(self._chat_id, exported)

    async def _add(self, fact: KnownFact, content: str, dated: _Dated) -> int:
        edit = {"text": content, "written_at": self._now, "writer": self._edits.editor}
        text = replace(fact.text, due=dated.due, done_at=dated.done_at, **edit)
        journal = fact.journal
        if _is_as_exported(fact):
            # Which day it had is not in the file.
            journal = (*journal, replace(fact.text, due=None))
        self._edits.made += 1
        return await restored_facts.restore(
            self._chat_id, replace(fact, text=text, journal=journal)
        )

    async def _dated(self, fact: KnownFact, content: str, earlier: str | None) -> _Dated:
        """As when the fact were told anew in these words, where nobody wrote a day beside them.

        The day is counted from when the promise was given: most edits leave it as it was.
        """
        day, is_as_exported, was = None, _is_as_exported(fact), fact.text
        if fact.category == PROMISE and fact.name is not None and not is_as_exported:
            given_at = await self._given_at(fact)
            day = due_day(_MARKUP.sub("", content), given_at, self._calendar)
        named = None if day is None else day.isoformat()
        item = FactItem(fact.category, fact.name or "", content, named)
        if is_kept(item):
            told = _CLOSED if fact.redated and was.due else ""
            return _Dated(None, was.done_at if is_as_exported else self._now, told)
        done_at = None if fact.category == PROMISE else was.done_at
        if not fact.redated:
            told = "" if named or is_as_exported else _unread(content, earlier)
            return _Dated(due_after(item, earlier), done_at, told)
        told = _BOTH.format(was.due or "没有", named) if named and named != was.due else ""
        return _Dated(was.due, done_at, told)

    async def _given_at(self, fact: KnownFact) -> datetime:
        source = None
        if fact.text.source is not None:
            source = await MessageRow.get_or_none(chat_id=self._chat_id, seq=fact.text.source)
        return fact.text.written_at if source is None else source.time

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

    async def _change(self, row: Fact, fact: KnownFact, content: str, dated: _Dated) -> None:
        if plain(content) == plain(row.text) and not (fact.redated and dated.due != row.due):
            return
        if not row.text:
            raise CorrectionError("已经忘掉了，没有照改")
        earlier = await FactVersion.filter(fact_id=row.id, written_at__gt=fact.text.written_at)
        if plain(content) in {plain(old.text) for old in earlier}:
            return  # it was taken before
        if row.written_at != fact.text.written_at or digest(row.text) != fact.exported:
            raise CorrectionError(MOVED_ON)
        await facts.keep_version(row)
        # It stays with its message: taken back, that takes along what was made of it.
        await Fact.filter(id=row.id).update(
            text=content,
            due=dated.due,
            done_at=dated.done_at,
            written_at=self._now,
            writer=self._edits.editor,
            note_key=same_key(content) if fact.name is None else None,
        )
        await search.add(self._chat_id, "fact", [row.id])
        self._edits.made += 1


def _unread(content: str, earlier: str | None) -> str:
    """That a day which stays may not be the one that new words mean."""
    found = _NUMBERS.search(content) if earlier else None
    return _UNREAD.format(found[0], earlier) if found else ""


def _is_as_exported(fact: KnownFact) -> bool:
    """Whether its words are, so that only the day beside them was changed."""
    return digest(fact.text.text) == fact.exported
