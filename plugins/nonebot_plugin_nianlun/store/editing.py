"""Notes that people correct: what they write becomes the next version, and is theirs.

Whatever was built on the note is owed anew from then on. What a person wrote is not overwritten;
later sources are added to it, until somebody asks to have it written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
import json

from tortoise.expressions import Q
from tortoise.queryset import QuerySet

from ..errors import CorrectionError
from ..memory.diary import DIARY_UNITS
from ..memory.edits import NOT_BROUGHT, checked_edit, typed_key_marks
from ..memory.keymarks import find_key_messages
from ..memory.provenance import sentences
from ..memory.units import shortened
from ..types import MemoryKind, NoteKind
from . import memories, provenance, search, sql
from .database import transactional
from .keys import chunks
from .models import Activity as ActivityRow
from .models import Memory as MemoryRow
from .models import Message as MessageRow
from .models import NoteVersion
from .notes import keep_version

_LOWER: dict[str, str] = {"year": "month", "month": "day"}
_LONGEST_NUMBER = 12
"""Digits of a number that is told back."""


@dataclass(frozen=True, slots=True)
class Edited:
    """What became of a note."""

    version: int
    text: str
    before: str
    """Who wrote the text that was replaced."""
    owed: int = 0
    """So many sources that were taken in later are to be added to it again."""
    left_behind: bool = False
    """What was added to it, or what of that is not owed, stands only in the version replaced."""


@transactional
async def edit(
    chat_id: int, kind: NoteKind, ref: str, typed: str, editor: str, now: datetime
) -> Edited:
    """Replace the text of a note by what `editor` (a QQ number) typed.

    `ref` is a period, or the number of an activity. Raises CorrectionError when there is nothing to
    be edited, and NoteRejected when the text breaks a writing rule or cites what the note may
    not cite.
    """
    await sql.move_last_seqs({chat_id: 0})
    return await rewrite(chat_id, kind, ref, typed, editor, now)


async def rewrite(
    chat_id: int,
    kind: NoteKind,
    ref: str,
    typed: str,
    editor: str,
    now: datetime,
    told: Sequence[str] | None = None,
) -> Edited:
    """The same inside the caller's transaction. `told`: what sources of a memory are in the text
    that was corrected; others, which are in the one that it replaces, are owed again."""
    row = await _standing(chat_id, kind, ref)
    typed_keys = find_key_messages(typed_key_marks(typed))
    units = DIARY_UNITS if isinstance(row, ActivityRow) and row.from_seq is None else None
    text, keys = checked_edit(kind, typed, await citable(row, typed_keys), units)
    if text == row.text:
        raise CorrectionError(f"{_called(row)} 现在就是这样写的，没有改动")
    if told is not None and isinstance(row, MemoryRow):
        row.sources, _ = await _sources_again(row, told)
    return await _replace(row, text, keys, editor, now)


@transactional
async def restore(
    chat_id: int, kind: NoteKind, ref: str, version: int, editor: str, now: datetime
) -> Edited:
    """Make an earlier version the next one; from then on it is `editor`'s text.

    What was merged since that version is merged into it again. Raises CorrectionError.
    """
    await sql.move_last_seqs({chat_id: 0})
    row = await _standing(chat_id, kind, ref)
    if version == row.version:
        raise CorrectionError(f"{_called(row)} 现在就是第 {version} 版")
    old = None
    if 0 < version < row.version:  # what is typed may be more than a database can count
        old = await NoteVersion.get_or_none(chat_id=chat_id, kind=kind, ref=ref, version=version)
    if old is None:
        if 0 < version < row.version:
            raise CorrectionError(f"{_called(row)} 的第 {version} 版不能还原，{NOT_BROUGHT}")
        named = shortened(str(version), _LONGEST_NUMBER)
        raise CorrectionError(f"{_called(row)} 没有第 {named} 版，现在是第 {row.version} 版")
    if old.blanked or not old.text:
        raise CorrectionError(f"{_called(row)} 的第 {version} 版里有收回的话，已经清空，不能还原")
    if old.text == row.text:
        raise CorrectionError(f"{_called(row)} 的第 {version} 版和现在的一样，没有改动")
    if isinstance(row, ActivityRow):
        return await _replace(row, old.text, json.loads(old.key_messages), editor, now)
    added_to = await _was_added_to(row, old.text)
    since = [ref for ref in json.loads(row.sources) if ref not in json.loads(old.sources)]
    row.sources, owed = await _sources_again(row, json.loads(old.sources))
    added = _added(row.text, old.text)
    left = added_to and (not owed or await _tells_of_sources(row, added, since))
    restored = await _replace(row, old.text, json.loads(old.key_messages), editor, now)
    return replace(restored, owed=owed, left_behind=left)


async def _was_added_to(row: MemoryRow, old: str) -> bool:
    """Whether the text that stands is this older one with what a writer added to it."""
    now = await memories.target(row.chat_id, _kind(row), row.period)
    *_, (_, edit) = await provenance.texts(row.chat_id, _kind(row), row.period, now)
    return edit is not None and edit.continued and old.strip() in row.text


def _added(now: str, old: str) -> str:
    before, _, after = now.partition(old.strip())
    return f"{before}\n{after}"


async def _tells_of_sources(row: MemoryRow, added: str, since: Sequence[str]) -> bool:
    """Whether a sentence that was added is of a source that the memory has, by the messages that it
    cites or by its words, which none of the sources `since` then has."""
    parts = sentences(added)
    held = await citable(row, [key for part in parts for key in part.key_messages])
    if any(not held.isdisjoint(part.key_messages) for part in parts):
        return True
    theirs, others = (
        await _words_below(row, json.loads(row.sources)),
        await _words_below(row, since),
    )
    told = (part.text.strip().rstrip("。") for part in parts)
    return any(words and words in theirs and words not in others for words in told)


async def _words_below(row: MemoryRow, refs: Sequence[str]) -> str:
    texts = [source.text for part in chunks(refs) for source in await _below(row, part)]
    return "\n".join(texts)


async def _standing(chat_id: int, kind: NoteKind, ref: str) -> ActivityRow | MemoryRow:
    row: ActivityRow | MemoryRow | None
    if kind == "activity":
        row = await ActivityRow.get_or_none(chat_id=chat_id, number=int(ref))
    else:
        row = await MemoryRow.get_or_none(chat_id=chat_id, kind=kind, period=ref)
    if row is not None and row.text:
        return row
    if kind != "activity":
        why = provenance.WHY_MISSING["unwritten" if row is None else "waiting"]
        raise CorrectionError(f"{ref} {why}")
    if (emptied := await provenance.emptied(chat_id, int(ref))) is None:
        raise CorrectionError(f"没有活动 &{ref}")
    raise CorrectionError(f"活动 &{ref} {provenance.WHY_EMPTY[emptied.state]}")


def _called(row: ActivityRow | MemoryRow) -> str:
    return row.period if isinstance(row, MemoryRow) else f"活动 &{row.number}"


async def _replace(
    row: ActivityRow | MemoryRow, text: str, keys: Sequence[int], editor: str, now: datetime
) -> Edited:
    stored = type(row).filter(id=row.id)
    earlier = await stored.get()
    await keep_version(earlier)
    changes = {
        "text": text,
        "key_messages": json.dumps(list(keys)),
        "version": earlier.version + 1,
        "writer": editor,
        "written_at": now,
        "usage": None,
        "merged": False,
        "stale": False,
    }
    if isinstance(row, MemoryRow):
        await stored.update(**changes, sources=row.sources)
        await search.add(row.chat_id, _kind(row), [row.id])
    else:
        if row.from_seq is None:
            changes["key_messages"] = row.key_messages  # it goes when one of these is taken back
        await stored.update(**changes)
        await search.add(row.chat_id, "activity", [row.number])
    return Edited(earlier.version + 1, text, earlier.writer)


def _kind(row: MemoryRow) -> MemoryKind:
    kinds: dict[str, MemoryKind] = {"day": "day", "month": "month", "year": "year"}
    return kinds[row.kind]


async def _sources_again(row: MemoryRow, old: Sequence[str]) -> tuple[str, int]:
    """The sources of an earlier text, as far as they are there; what came later is owed again,
    and how many these are."""
    now: list[str] = json.loads(row.sources)
    kept = [ref for ref in old if ref in now]
    later = [ref for ref in now if ref not in old]
    owed = 0
    for part in chunks(later):
        sources = _below(row, part)
        if row.kind == "day":
            sources = sources.exclude(text="")
        owed += await sources.update(merged=False)
    return json.dumps(kept), owed


def _below(row: MemoryRow, refs: Sequence[str]) -> QuerySet[ActivityRow] | QuerySet[MemoryRow]:
    if row.kind == "day":
        return ActivityRow.filter(chat_id=row.chat_id, number__in=list(map(int, refs)))
    return MemoryRow.filter(chat_id=row.chat_id, kind=_LOWER[row.kind], period__in=list(refs))


async def citable(row: ActivityRow | MemoryRow, keys: Sequence[int]) -> set[int]:
    """Those of the messages that stand and that the note was, layer by layer, written from."""
    said: dict[int, int | None] = {}
    for part in chunks(keys):
        standing = MessageRow.filter(chat_id=row.chat_id, seq__in=part, withdrawn_at=None)
        said |= {message.seq: message.activity_id for message in await standing}
    if isinstance(row, ActivityRow):
        return _of_activity(row, said)
    windows = Q(id__in=list(set(said.values()) - {None})) | Q(from_seq=None)
    activities = ActivityRow.filter(windows, chat_id=row.chat_id, date__startswith=row.period)
    numbers = await _activities_of(row)
    found = [_of_activity(each, said) for each in await activities if each.number in numbers]
    return {seq for seqs in found for seq in seqs}


def _of_activity(activity: ActivityRow, said: Mapping[int, int | None]) -> set[int]:
    seen = json.loads(activity.key_messages)
    return {seq for seq, window in said.items() if window == activity.id or seq in seen}


async def _activities_of(row: MemoryRow) -> set[int]:
    """Numbers of the activities that a memory was, layer by layer, written from."""
    kind, refs = row.kind, json.loads(row.sources)
    while kind != "day":
        kind = _LOWER[kind]
        lower = MemoryRow.filter(chat_id=row.chat_id, kind=kind, period__in=refs)
        refs = [ref for below in await lower for ref in json.loads(below.sources)]
    return {int(ref) for ref in refs}
