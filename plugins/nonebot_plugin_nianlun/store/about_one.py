"""What is on record of one person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from tortoise.functions import Count, Max, Min

from . import exclusions
from .keys import LONGEST_WRITER, short_id
from .messages import PART_OF_THE_TALK
from .models import (
    Activity,
    Fact,
    FactVersion,
    Memory,
    NoteVersion,
    Speaker,
    SpeakerName,
)
from .models import Message as MessageRow

_MOST_FACTS = 50


@dataclass(frozen=True, slots=True)
class Mine:
    """What a chat holds of one person, in rows."""

    messages: int
    first_at: datetime | None
    last_at: datetime | None
    names: tuple[str, ...]
    """The first one first."""
    moments: int
    facts: int
    shown: tuple[tuple[str, str], ...]
    """The first of their facts: `category:name` or the category, and the text."""
    opted_out: bool


async def known(chat_id: int, user_id: str) -> Mine:
    speaker = short_id(user_id)
    said = MessageRow.filter(PART_OF_THE_TALK, chat_id=chat_id, user_id=speaker, withdrawn_at=None)
    counted = said.annotate(count=Count("id"), first=Min("time"), last=Max("time"))
    (row,) = await counted.values("count", "first", "last")
    names = SpeakerName.filter(chat_id=chat_id, user_id=speaker).order_by("first_seen", "id")
    facts = Fact.filter(chat_id=chat_id, owner=speaker).exclude(text="")
    shown = await facts.order_by("category", "name", "id").limit(_MOST_FACTS)
    return Mine(
        messages=row["count"],
        first_at=_moment(row["first"]),
        last_at=_moment(row["last"]),
        names=tuple(cast("list[str]", await names.values_list("name", flat=True))),
        moments=await Activity.filter(chat_id=chat_id, owner=speaker).exclude(text="").count(),
        facts=await facts.count(),
        shown=tuple((":".join(filter(None, (f.category, f.name))), f.text) for f in shown),
        opted_out=await exclusions.opted_out(chat_id, user_id),
    )


async def chats_of(user_id: str) -> set[int]:
    """Row ids of the chats in which somebody is known, something is known of them, or they wrote
    a text by hand.

    Reads all chats: it is asked for seldom.
    """
    speaker = short_id(user_id)
    found = [Speaker.filter(user_id=speaker), Fact.filter(owner=speaker)]
    if len(speaker) <= LONGEST_WRITER:
        texts = (Fact, FactVersion, Activity, Memory, NoteVersion)
        found += [text.filter(writer=speaker).exclude(text="") for text in texts]
    ids = [await rows.distinct().values_list("chat_id", flat=True) for rows in found]
    return {chat_id for part in ids for chat_id in cast("list[int]", part)}


def _moment(value: object) -> datetime | None:
    """SQLite gives back an aggregate of times as text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else cast("datetime", value)
