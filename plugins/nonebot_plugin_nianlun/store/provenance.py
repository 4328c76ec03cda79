"""What a trace of sentences needs to know: a chat's notes, and the messages that they cite."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tortoise.functions import Count, Max, Min

from ..memory.provenance import Held
from ..types import MemoryKind
from . import memories
from .keys import chunks
from .messages import to_message
from .models import Message as MessageRow
from .speakers import current_names

_KINDS: tuple[MemoryKind, ...] = ("year", "month", "day")


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
