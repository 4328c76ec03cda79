"""What people removed by hand, and what it keeps away from then on.

A window: none of its messages is noted again, whenever they come in once more. A diary moment: its
time and first text. A fact: until when what was said, or written down, does not establish it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import cast

from tortoise.queryset import QuerySet

from . import exclusions
from .keys import MOMENT, short_id
from .models import Activity, Exclusion, FactVersion, NoteVersion
from .models import Fact as FactRow
from .models import Message as MessageRow
from .records import FactText


@dataclass(slots=True)
class Told:
    """What a file tells beside a removal: it stands there in spite of it, and so it does here.

    Of two windows in one second, say, the removal names both, and only one of them is gone.
    """

    activities: Collection[int] = ()
    """Row ids here."""
    has_message: Callable[[int], bool] = bool
    """By the number here."""
    facts: set[tuple[str, str, str | None, str, datetime]] = field(default_factory=set)
    """Owner, category, name, and of each text that one has or had that text and its time."""


def subject_of(category: str, name: str | None) -> str:
    """What tells a fact of somebody from their others, without its words."""
    return sha256(f"{category}\n{name or ''}".encode()).hexdigest()


def subject_of_moment(first_text: str) -> str:
    """What tells a diary moment from others of its second, whatever it is rewritten to.

    Without digits: in another chat the messages that it cites have other numbers.
    """
    return sha256("".join(c for c in first_text if not c.isdigit()).encode()).hexdigest()


async def note_activity(row: Activity, now: datetime) -> Exclusion:
    """Put on record that an activity was removed; before its window is dissolved."""
    said = MessageRow.filter(chat_id=row.chat_id, activity_id=row.id).values_list("time", flat=True)
    times = cast("list[datetime]", await said)
    # Moments may be told of the same second as windows, and are others.
    reason, times = ("window", times) if times else ("moment", [row.time])
    return await Exclusion.create(
        chat_id=row.chat_id,
        reason=reason,
        subject=subject_of_moment(await _first_text(row)) if reason == "moment" else None,
        begins=min(times),
        ends=max(times) + MOMENT,
        created_at=now,
    )


async def _first_text(row: Activity) -> str:
    of_it = NoteVersion.filter(chat_id=row.chat_id, kind="activity", ref=str(row.number))
    first = await of_it.order_by("version").first().only("id", "text")
    return row.text if first is None else first.text


async def note_fact(row: FactRow, at: datetime, now: datetime) -> None:
    """Put on record that a fact was taken away at that time."""
    of_it = {"owner": row.owner, "category": row.category, "name": row.name}
    before = _of_fact(row.chat_id, **of_it)
    ends = at + exclusions.THAT_SECOND
    for earlier in await before:
        ends = max(ends, earlier.ends or ends)
    await before.delete()
    await Exclusion.create(
        chat_id=row.chat_id,
        reason="fact",
        user_id=row.owner or None,
        subject=subject_of(row.category, row.name),
        ends=ends,
        created_at=now,
    )


def _of_fact(chat_id: int, owner: str, category: str, name: str | None) -> QuerySet[Exclusion]:
    return Exclusion.filter(
        chat_id=chat_id,
        reason="fact",
        user_id=short_id(owner) or None,
        subject=subject_of(category, name),
    )


async def fact_ends(chat_id: int, owner: str, category: str, name: str | None) -> datetime | None:
    """Up to when nothing that was said establishes this fact; None where it never was removed."""
    rows = await _of_fact(chat_id, owner, category, name).order_by("-ends")
    return rows[0].ends if rows else None


async def told_at(chat_id: int, text: FactRow | FactVersion | FactText) -> datetime:
    """When what a fact says was said, or, where no message here says it, was written."""
    if text.source is None:
        return text.written_at
    said = await MessageRow.get_or_none(chat_id=chat_id, seq=text.source)
    return text.written_at if said is None else said.time


async def left_out(chat_id: int) -> set[int]:
    """The messages that stay, and that no note may be made of."""
    found: set[int] = set()
    for span in await Exclusion.filter(chat_id=chat_id, reason="window"):
        said = MessageRow.filter(chat_id=chat_id, time__gte=span.begins, time__lt=span.ends)
        seqs = said.filter(activity_id=None, skipped="declined").values_list("seq", flat=True)
        found.update(cast("list[int]", await seqs))
    return found


async def is_removed_moment(chat_id: int, at: datetime, first_text: str) -> bool:
    """Whether a diary moment of that time was removed that at first said this."""
    subject = subject_of_moment(first_text)
    removed = Exclusion.filter(chat_id=chat_id, reason="moment", begins=at, subject=subject)
    return await removed.exists()


async def last_of_moments(chat_id: int) -> int:
    """The last message that was there when a moment that was removed had been told; else 0."""
    removed = Exclusion.filter(chat_id=chat_id, reason="moment")
    newest = await removed.order_by("-begins").first()
    if newest is None:
        return 0
    said = MessageRow.filter(chat_id=chat_id, time__lte=newest.begins)
    last = await said.order_by("-time", "-seq").first().only("id", "seq")
    return 0 if last is None else last.seq


async def concerned(chat_id: int, removal: Exclusion) -> Sequence[Activity]:
    """The activities that are here and that a removal of an activity means."""
    last = None if removal.ends is None else removal.ends - MOMENT
    if removal.reason == "moment":
        told = Activity.filter(chat_id=chat_id, from_seq=None, time=removal.begins)
        return [
            row
            for row in await told.exclude(text="")
            if subject_of_moment(await _first_text(row)) == removal.subject
        ]
    noted = MessageRow.filter(chat_id=chat_id, time=removal.begins, activity_id__not_isnull=True)
    found: list[Activity] = []
    for id_ in {*cast("list[int]", await noted.values_list("activity_id", flat=True))}:
        window = MessageRow.filter(chat_id=chat_id, activity_id=id_)
        times = cast("list[datetime]", await window.values_list("time", flat=True))
        if (min(times), max(times)) == (removal.begins, last):
            found.append(await Activity.get(id=id_))
    return found
