"""What a trace of sentences needs to know: a chat's notes, and the messages that they cite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
import json
from typing import Literal, NamedTuple, TypeAlias

from tortoise.expressions import Q
from tortoise.functions import Count, Max, Min

from ..memory.calendar import Calendar, day_after
from ..memory.provenance import Held
from ..memory.why import Edit, FactWhy, Text, edit_of, written_first
from ..types import Activity, Memory, MemoryKind, Message, NoteKind, is_edited
from . import facts, memories
from .keys import MOMENT, chunks
from .messages import to_message
from .models import Activity as ActivityRow
from .models import Exclusion, NoteVersion
from .models import Fact as FactRow
from .models import Memory as MemoryRow
from .models import Message as MessageRow
from .speakers import current_names

_KINDS: tuple[MemoryKind, ...] = ("year", "month", "day")
_BELOW: dict[MemoryKind, tuple[tuple[MemoryKind, int], ...]] = {
    "year": (("month", 7), ("day", 10)),
    "month": (("day", 10),),
    "day": (),
}
"""The layers of memories under each, with how much of a date is their period."""
WHY_EMPTY: dict[Literal["deleted", "waiting", "left"], str] = {
    "deleted": "已经删掉了",
    "waiting": "里面有话收回、删掉或忘记了，正等着重写",
    "left": "已经清空：里面有话收回、删掉或忘记了，没有剩下值得记的",
}
"""What became of an activity that has no text, without a full stop."""
Missing: TypeAlias = Literal["gone", "waiting", "emptied", "unwritten"]
"""Why a day, month or year has no text: nothing is left to write it from; it waits to be written
anew; nothing of what it was written from is left, but something else in its time; or it has not
been written."""
WHY_MISSING: dict[Missing, str] = {
    "gone": "里记下的都删掉或清空了，没有剩下可以写的",
    "waiting": f"{WHY_EMPTY['waiting']}，写好了再来",
    "emptied": "已经清空：它的来源都删掉或清空了，等那段时间里别的内容写好了再写",
    "unwritten": "还没有写成记忆",
}
"""The same in words, without a full stop."""


class Emptied(NamedTuple):
    """Why an activity has no text."""

    state: Literal["deleted", "waiting", "left"]
    """Somebody deleted it; it waits to be written anew; or what was left of its messages is not
    worth noting."""
    at: datetime | None
    """When it was deleted, as far as that is on record."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who spoke in a chat, how much, and from when to when."""

    user_id: str
    name: str
    messages: int
    first: datetime
    last: datetime


async def people(chat_id: int) -> list[Person]:
    """Everybody whose messages are there, the most talkative first; withdrawn ones not counted."""
    rows = (
        await MessageRow.filter(chat_id=chat_id, withdrawn_at=None)
        .annotate(messages=Count("id"), first=Min("time"), last=Max("time"))
        .group_by("user_id")
        .order_by("-messages", "user_id")
        .values("user_id", "messages", "first", "last")
    )
    names = await current_names(chat_id, [row["user_id"] for row in rows])
    return [Person(name=names.get(row["user_id"]) or row["user_id"], **row) for row in rows]


async def held(chat_id: int) -> Held:
    """Every note of the chat that may be shown, and what any of them cites."""
    notes = [
        memory
        for kind in _KINDS
        for memory in await memories.all_memories(chat_id, kind)
        if memory.text
    ]
    activities = [a for a in await memories.all_activities(chat_id) if a.text]
    cited = {seq for note in (*notes, *activities) for seq in note.key_messages}
    rows: list[MessageRow] = []
    for part in chunks(sorted(cited)):
        rows += await MessageRow.filter(chat_id=chat_id, seq__in=part, withdrawn_at=None)
    return Held(
        {(memory.kind, memory.period): memory for memory in notes},
        {activity.number: activity for activity in activities},
        {row.seq: to_message(row) for row in rows},
    )


async def beneath(chat_id: int, note: Memory | Activity) -> Held:
    """A note, and of what it was made of whatever leads to a message that it cites."""
    said: dict[int, MessageRow] = {}
    for part in chunks(note.key_messages):
        rows = MessageRow.filter(chat_id=chat_id, seq__in=part, withdrawn_at=None)
        said |= {row.seq: row for row in await rows}
    found = {to_message(row).seq: to_message(row) for row in said.values()}
    if isinstance(note, Activity):
        ranges = tuple((seq, seq) for seq in said)
        return Held({}, {note.number: replace(note, ranges=ranges)}, found)
    activities = await _activities(chat_id, note, said)
    days = {activity.date for activity in activities}
    held: dict[tuple[MemoryKind, str], Memory] = {(note.kind, note.period): note}
    for kind, length in _BELOW[note.kind]:
        for memory in await memories.memories(chat_id, kind, {day[:length] for day in days}):
            held[kind, memory.period] = memory
    theirs = {key: await _persons_words(chat_id, one) for key, one in held.items()}
    return Held(held, {activity.number: activity for activity in activities}, found, theirs)


async def _activities(chat_id: int, note: Memory, said: Mapping[int, MessageRow]) -> list[Activity]:
    """The activities of the note's time that hold one of these messages; only these in ranges."""
    windows = {row.activity_id for row in said.values()} - {None}
    rests = Q(id__in=list(windows)) | Q(from_seq=None)
    inside = ActivityRow.filter(rests, chat_id=chat_id, date__startswith=note.period)
    rows = await inside.exclude(text="").order_by("number")
    holds: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        seen = json.loads(row.key_messages) if row.from_seq is None else ()
        mine = [seq for seq, line in said.items() if line.activity_id == row.id or seq in seen]
        holds[row.id] = [(seq, seq) for seq in mine]
    return memories.to_activities([row for row in rows if holds[row.id]], holds)


async def window(chat_id: int, activity: Activity) -> list[Message]:
    """The messages that an activity was written from, those withdrawn since among them without
    their words, in event order."""
    row = await ActivityRow.get(chat_id=chat_id, number=activity.number)
    query = MessageRow.filter(chat_id=chat_id, activity_id=row.id)
    if row.from_seq is None:
        query = MessageRow.filter(chat_id=chat_id, seq__in=list(activity.key_messages))
    return [
        to_message(line) for line in sorted(await query, key=lambda line: (line.time, line.seq))
    ]


async def edits(chat_id: int, held: Held) -> dict[tuple[NoteKind, str], Edit]:
    """Which of these notes a person wrote, by kind and period or number."""
    found: dict[tuple[NoteKind, str], Edit] = {}
    for note in held.notes:
        kind: NoteKind = "activity" if isinstance(note, Activity) else note.kind
        ref = str(note.number) if isinstance(note, Activity) else note.period
        if not is_edited(note.writer):
            continue
        if (edit := (await texts(chat_id, kind, ref, note))[-1][1]) is not None:
            found[kind, ref] = edit
    return found


async def texts(
    chat_id: int, kind: NoteKind, ref: str, note: Memory | Activity | None
) -> list[tuple[Text, Edit | None]]:
    """Every version of a note that is on record, oldest first, and who wrote it if a person did.

    `note`: as it stands; None where only earlier versions are wanted.
    """
    found = [
        Text(
            old.text,
            old.writer,
            old.written_at,
            old.version,
            frozenset(json.loads(old.sources)),
            old.usage is not None,
        )
        for old in await memories.versions(chat_id, kind, ref)
    ]
    if note is not None:
        text = Text(note.text, note.writer, note.written_at, note.version)
        if isinstance(note, Memory) and note.edited:
            paid = MemoryRow.filter(chat_id=chat_id, kind=kind, period=ref, version=note.version)
            written = await paid.filter(usage__isnull=False).exists()
            text = text._replace(sources=frozenset(note.sources), written=written)
        found.append(text)
    grows = kind != "activity"
    return [(text, edit_of(text, found[:place], grows=grows)) for place, text in enumerate(found)]


async def _persons_words(chat_id: int, note: Memory) -> str:
    """What in a note's text a person wrote; empty where a writer wrote all of it."""
    if not is_edited(note.writer):
        return ""
    *earlier, now = [text for text, _ in await texts(chat_id, note.kind, note.period, note)]
    return written_first(now, earlier).text


async def emptied(chat_id: int, number: int) -> Emptied | None:
    """Why an activity has no text; None where it has one, or where there is no such activity."""
    row = await ActivityRow.get_or_none(chat_id=chat_id, number=number)
    if row is None or row.text:
        return None
    if row.stale:
        return Emptied("waiting", None)
    # The time of a window is that of its last message, where what keeps it away ends.
    gone = Exclusion.filter(chat_id=chat_id, reason__in=["window", "moment"])
    removal = await gone.filter(ends=row.time + MOMENT).order_by("-created_at").first()
    left = await MessageRow.filter(chat_id=chat_id, activity_id=row.id).exists()
    if left or (removal is None and row.from_seq is None):
        return Emptied("left", None)
    return Emptied("deleted", None if removal is None else removal.created_at)


async def nothing_left(chat_id: int, period: str) -> bool:
    """Whether a day, month or year was noted, and of what was nothing is left to write it from."""
    noted = ActivityRow.filter(chat_id=chat_id, date__startswith=period)
    days = MemoryRow.filter(chat_id=chat_id, kind="day", period__startswith=period)
    if not await noted.exists():
        return False
    for standing in (noted.exclude(text=""), days.exclude(text="")):
        if await standing.exists():
            return False
    return not await has_lines(chat_id, await noted.filter(stale=True).only("id"))


async def has_lines(chat_id: int, activities: Sequence[ActivityRow]) -> bool:
    """Whether a message that stands is in the window of any of these activities."""
    for part in chunks([row.id for row in activities]):
        said = MessageRow.filter(chat_id=chat_id, activity_id__in=part, withdrawn_at=None)
        if await said.exists():
            return True
    return False


async def awaits_note(chat_id: int, period: str, calendar: Calendar) -> bool:
    """Whether something was said in a day, month or year that is still to be noted."""
    pending = MessageRow.filter(chat_id=chat_id, activity_id=None, skipped=None, withdrawn_at=None)
    first = date.fromisoformat(f"{period}-01-01"[:10])
    begins, ends = calendar.start_of(first), calendar.start_of(day_after(period))
    return await pending.filter(time__gte=begins, time__lt=ends).exists()


async def missing(chat_id: int, kind: MemoryKind, period: str, calendar: Calendar) -> Missing:
    """Why what was noted of a day, month or year has no text now."""
    if await nothing_left(chat_id, period) and not await awaits_note(chat_id, period, calendar):
        return "gone"
    row = await MemoryRow.get_or_none(chat_id=chat_id, kind=kind, period=period)
    if row is not None and not row.text:
        return "waiting" if await _has_sources(row, calendar) else "emptied"
    noted = ActivityRow.filter(chat_id=chat_id, date=period, text="", stale=True)
    if kind == "day" and await noted.exists():
        return "waiting"
    written = NoteVersion.filter(chat_id=chat_id, kind=kind, ref=period)
    return "emptied" if row is None and await written.exists() else "unwritten"


async def _has_sources(row: MemoryRow, calendar: Calendar) -> bool:
    """Whether one of a memory's sources stands, or will; of a day, of which something is left, and
    where it is not on record what they were, one does."""
    kinds: dict[str, MemoryKind] = {"year": "month", "month": "day"}
    kind, refs = kinds.get(row.kind), json.loads(row.sources)
    if kind is None or not refs:
        return True
    for ref in refs:
        below = await MemoryRow.get_or_none(chat_id=row.chat_id, kind=kind, period=ref)
        stands = below is not None and below.text != ""
        if stands or await missing(row.chat_id, kind, ref, calendar) == "waiting":
            return True
    return False


async def facts_why(chat_id: int, category: str, name: str) -> list[FactWhy]:
    """What the facts of that name rest on: one for each owner, the chat's own first."""
    return [await _fact_why(row) for row in await facts.named(chat_id, category, name)]


async def _fact_why(row: FactRow) -> FactWhy:
    source = await MessageRow.get_or_none(chat_id=row.chat_id, seq=row.source, withdrawn_at=None)
    return FactWhy(
        owner=row.owner,
        category=row.category,
        name=row.name or "",
        text=row.text,
        written_at=row.written_at,
        due=row.due,
        source=None if source is None else to_message(source),
        writer=row.writer,
        journal=tuple((old.text, old.written_at) for old in reversed(await facts.journal(row.id))),
    )
