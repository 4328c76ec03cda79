"""Messages and activities that somebody who governs the chat removes.

A message goes as one goes that its sender takes back: it is masked, and every note that was built
on it is written anew from the rest. An activity goes alone: its messages stay, marked as not worth
noting, so that nobody writes it again; and what was built on it is written anew. All of it is put
on record, and holds against older files, copies of the database and history that come in later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tortoise.expressions import F

from ..types import MemoryKind, is_edited
from . import facts, provenance, removals, sql, traces, withdrawals
from .database import transactional
from .models import Activity as ActivityRow
from .models import Exclusion
from .models import Memory as MemoryRow
from .models import Message as MessageRow
from .notes import keep_version

_KINDS: Mapping[int, MemoryKind] = {4: "year", 7: "month", 10: "day"}
"""By the length of a period."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was removed and what was not there, by short id and activity number."""

    messages: tuple[int, ...]
    activities: tuple[int, ...]
    missing: tuple[str, ...]
    """As `#12` or `&3`: there is none, or it was removed before."""
    rewritten: int
    """Of so many activities, days, months and years the text is gone until it is written anew."""
    gone: tuple[str, ...]
    """The others of which the text is gone: as things are, nothing is left to write it from."""
    periods: tuple[tuple[MemoryKind, str], ...]
    """The days, months and years among both."""
    edited: tuple[str, ...]
    """Those of both that a person had written: a period, or as `&3`."""


@transactional
async def delete(
    chat_id: int, seqs: Sequence[int], numbers: Sequence[int], at: datetime
) -> Deleted:
    """Remove these messages and activities of a chat, all that are there or none."""
    await sql.move_last_seqs({chat_id: 0})
    before = await _standing(chat_id)
    messages = [seq for seq in dict.fromkeys(seqs) if await _delete_message(chat_id, seq, at)]
    activities = [n for n in dict.fromkeys(numbers) if await _delete_activity(chat_id, n, at)]
    if activities:
        await traces.owe(chat_id)
    blank = before.keys() - (await _standing(chat_id)).keys() - {f"&{n}" for n in activities}
    gone = [note for note in sorted(blank) if await _is_gone(chat_id, note)]
    return Deleted(
        messages=tuple(messages),
        activities=tuple(activities),
        missing=(
            *(f"#{seq}" for seq in dict.fromkeys(seqs) if seq not in messages),
            *(f"&{number}" for number in dict.fromkeys(numbers) if number not in activities),
        ),
        rewritten=len(blank) - len(gone),
        gone=tuple(gone),
        periods=tuple(
            (_KINDS[len(note)], note) for note in sorted(blank) if not note.startswith("&")
        ),
        edited=tuple(sorted(note for note in blank if is_edited(before[note]))),
    )


async def _standing(chat_id: int) -> dict[str, str]:
    """The writer of each note of the chat that has a text, by period or as `&3`."""
    told: dict[str, str] = {}
    for row in await ActivityRow.filter(chat_id=chat_id).exclude(text="").only("number", "writer"):
        told[f"&{row.number}"] = row.writer
    for row in await MemoryRow.filter(chat_id=chat_id).exclude(text="").only("period", "writer"):
        told[row.period] = row.writer
    return told


async def _is_gone(chat_id: int, note: str) -> bool:
    if not note.startswith("&"):
        return await provenance.nothing_left(chat_id, note)
    row = await ActivityRow.get(chat_id=chat_id, number=int(note[1:])).only("id")
    return not await provenance.has_lines(chat_id, [row])


async def _delete_message(chat_id: int, seq: int, at: datetime) -> bool:
    row = await MessageRow.get_or_none(chat_id=chat_id, seq=seq, withdrawn_at=None)
    if row is None:
        return False
    await withdrawals.mask(chat_id, seq, at)
    if row.message_id is not None:
        # Reported once more under another key it is masked as it comes. As of its own time:
        # platforms use ids again, and a later message of that id is another one.
        await Exclusion.create(
            chat_id=chat_id,
            reason="withdrawn",
            message_id=row.message_id,
            user_id=row.user_id,
            begins=row.time,
            created_at=at,
        )
    return True


async def _delete_activity(chat_id: int, number: int, at: datetime) -> bool:
    row = await ActivityRow.get_or_none(chat_id=chat_id, number=number)
    if row is None or not (row.text or row.stale):
        return False
    removal = await removals.note_activity(row, at)
    # A moment that was written down twice goes with its twin: it says the same.
    twins = await removals.concerned(chat_id, removal) if removal.reason == "moment" else ()
    for one in [row, *(twin for twin in twins if twin.id != row.id)]:
        await _take_out(one)
    return True


async def _take_out(row: ActivityRow) -> None:
    await withdrawals.blank_notes(row.chat_id, [row.id])
    # Empty as it is by now, it tells who had written what was deleted.
    await keep_version(await ActivityRow.get(id=row.id))
    # With another version: whoever writes it or its day at this moment comes too late.
    changes = {"stale": False, "merged": True, "version": F("version") + 1}
    await ActivityRow.filter(id=row.id).update(**changes)
    window = MessageRow.filter(chat_id=row.chat_id, activity_id=row.id)
    await window.filter(withdrawn_at=None).update(activity_id=None, skipped="declined")
    await window.update(activity_id=None, skipped="withdrawn")


async def remove_again(removal: Exclusion, told: removals.Told | None = None) -> int:
    """Do to what came back from an older copy or file what a removal that is on record did.

    What is `told` beside it stays. Returns how many notes and facts that were. Runs inside the
    caller's transaction.
    """
    chat_id = removal.chat_id
    if removal.reason == "fact":
        return await facts.erase_again(removal, told.facts if told else ())
    stands = told.activities if told else ()
    rows = [row for row in await removals.concerned(chat_id, removal) if row.id not in stands]
    for row in rows:
        await _take_out(row)
    if removal.reason == "window":
        pending = MessageRow.filter(chat_id=chat_id, activity_id=None, skipped=None)
        pending = pending.filter(time__gte=removal.begins, time__lt=removal.ends)
        seqs = [row.seq for row in await pending.only("seq")]
        if told is not None:
            seqs = [seq for seq in seqs if not told.has_message(seq)]
        await sql.change_pending(chat_id, seqs, "skipped", "declined")
    if rows:
        await traces.owe(chat_id)
    return len(rows)
