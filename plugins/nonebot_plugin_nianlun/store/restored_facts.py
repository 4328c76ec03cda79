"""Facts of an export, brought back: the newest text is what is true, the others its journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..memory.duplicates import same_key
from . import search
from .models import Fact, FactVersion
from .records import FactText, KnownFact


async def restore(chat_id: int, fact: KnownFact) -> bool:
    """Add a fact, or to the one that is here the texts that it has not; True when it is new.

    Sources are short ids of this chat. Runs inside the caller's transaction.
    """
    texts = [*fact.journal, fact.text]
    row = await _find(chat_id, fact)
    if row is None:
        await _create(chat_id, fact)
        return True
    stored = await FactVersion.filter(fact_id=row.id).order_by("id")
    known = [
        FactText(one.text, one.written_at, one.source, one.writer, one.due, one.done_at)
        for one in (*stored, row)
    ]
    seen = {(text.text, text.written_at) for text in known}
    new = [text for text in texts if (text.text, text.written_at) not in seen]
    if not new:
        return False
    # Sorting is stable: of two texts of one moment the one that is here stays true.
    *journal, newest = sorted([*new, *known], key=lambda text: text.written_at)
    await FactVersion.filter(fact_id=row.id).delete()
    await _write_journal(chat_id, row.id, journal)
    await Fact.filter(id=row.id).update(
        text=newest.text,
        source=newest.source,
        written_at=newest.written_at,
        writer=newest.writer,
        due=newest.due,
        done_at=newest.done_at,
        note_key=_note_key(fact, newest.text),
    )
    await search.add(chat_id, "fact", [row.id])
    return False


async def _find(chat_id: int, fact: KnownFact) -> Fact | None:
    query = Fact.filter(chat_id=chat_id, owner=fact.owner, category=fact.category, name=fact.name)
    if fact.name is not None:
        return await query.first()
    notes = query.filter(event_date=fact.event_date)
    # Nothing but a text that it has or had tells a note from others.
    for text in (fact.text, *fact.journal):
        same = {"text": text.text, "written_at": text.written_at}
        row = await notes.filter(**same, note_key=same_key(text.text)).first()
        if row is None:
            earlier = FactVersion.filter(chat_id=chat_id, **same).values_list("fact_id", flat=True)
            row = await notes.filter(id__in=cast("list[int]", await earlier)).first()
        if row is not None:
            return row
    return None


def _note_key(fact: KnownFact, text: str) -> str | None:
    return same_key(text) if fact.name is None else None


async def _create(chat_id: int, fact: KnownFact) -> None:
    row = await Fact.create(
        chat_id=chat_id,
        owner=fact.owner,
        category=fact.category,
        name=fact.name,
        text=fact.text.text,
        source=fact.text.source,
        due=fact.text.due,
        note_key=_note_key(fact, fact.text.text),
        event_date=fact.event_date,
        done_at=fact.text.done_at,
        created_at=fact.created_at or min(text.written_at for text in (*fact.journal, fact.text)),
        written_at=fact.text.written_at,
        writer=fact.text.writer,
    )
    await search.add(chat_id, "fact", [row.id])
    await _write_journal(chat_id, row.id, fact.journal)


async def _write_journal(chat_id: int, fact_id: int, texts: Sequence[FactText]) -> None:
    for text in texts:
        await FactVersion.create(
            chat_id=chat_id,
            fact_id=fact_id,
            text=text.text,
            source=text.source,
            written_at=text.written_at,
            writer=text.writer,
            due=text.due,
            done_at=text.done_at,
        )
