"""Diary moments: activities without a window, each with a time of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
import json
from typing import Literal, TypeAlias

from tortoise.expressions import F
from tortoise.queryset import QuerySet

from ..errors import NotRecorded, Overtaken
from ..types import Activity, Fact
from . import exclusions, facts, memories, removals, search, traces
from .database import transactional
from .keys import chunks, short_id
from .models import Activity as ActivityRow
from .models import Chat
from .models import Message as MessageRow

MomentOrigin: TypeAlias = Literal["tool", "turn"]
_ORIGINS: tuple[MomentOrigin, ...] = ("tool", "turn")
_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that is to be stored; its text is checked already."""

    text: str
    date: str
    time: datetime
    origin: MomentOrigin
    owner: str | None = None
    """Whom it is about, by user id: it goes when they are forgotten."""
    source_conv: str | None = None
    seen: tuple[int, ...] = ()
    """Messages that it was written from: it goes when one of them is taken back."""


@transactional
async def append(chat_id: int, moments: Sequence[Moment], now: datetime) -> list[int]:
    """Store moments, all or none; returns their activity numbers.

    Raises NotRecorded when the chat is paused or an owner may not be recorded.
    """
    return await _append(chat_id, moments, now)


@transactional
async def keep_turn(
    chat_id: int,
    seen: Sequence[int],
    learnt: Sequence[Fact],
    moments: Sequence[Moment],
    now: datetime,
    read: traces.Reading | None = None,
) -> None:
    """Store what one turn yielded, all or nothing.

    Raises Overtaken when one of the messages it was taken from does not stand any more, or
    something was erased since the chat was `read`, and NotRecorded as `append` does.
    """
    await _append(chat_id, moments, now)
    await traces.check(chat_id, read)
    stands = MessageRow.filter(chat_id=chat_id, seq__in=list(seen), withdrawn_at=None)
    if await stands.count() != len(seen):
        raise Overtaken
    await facts.store(chat_id, learnt, now)


async def _append(chat_id: int, moments: Sequence[Moment], now: datetime) -> list[int]:
    await Chat.filter(id=chat_id).update(last_activity=F("last_activity") + len(moments))
    chat = await Chat.get(id=chat_id).only("id", "last_activity", "paused")
    if chat.paused:
        raise NotRecorded("这个会话暂停了记录，没有保存")
    for owner, at in {(moment.owner, moment.time) for moment in moments if moment.owner}:
        await exclusions.refuse(chat_id, owner, at)
        await exclusions.refuse(chat_id, owner, now)
    numbers = range(chat.last_activity - len(moments) + 1, chat.last_activity + 1)
    for number, moment in zip(numbers, moments, strict=True):
        await ActivityRow.create(
            chat_id=chat_id,
            number=number,
            date=moment.date,
            text=moment.text,
            key_messages=json.dumps(moment.seen),
            origin=moment.origin,
            owner=None if moment.owner is None else short_id(moment.owner),
            source_conv=moment.source_conv,
            time=moment.time,
            version=1,
            writer="model",
            written_at=now,
            merged=False,
            stale=False,
        )
    await search.add(chat_id, "activity", numbers)
    return list(numbers)


async def between(chat_id: int, first: str, last: str) -> list[Activity]:
    """The moments of these logical days, both ends included, in order of time."""
    rows = _moments(chat_id).filter(date__gte=first, date__lte=last)
    return memories.to_activities(await rows.order_by("date", "time", "number"), {})


async def dates(chat_id: int) -> list[str]:
    """The logical days that have a moment, in order."""
    rows = await _moments(chat_id).distinct().order_by("date").values("date")
    return [row["date"] for row in rows]


async def last_read(chat_id: int) -> int:
    """The last message that a moment of a turn was written from, also of one that somebody
    removed; 0 when there is none."""
    rows = _moments(chat_id).filter(origin="turn").exclude(key_messages="[]")
    newest = await rows.order_by("-number").first().only("id", "key_messages")
    read = 0 if newest is None else max(json.loads(newest.key_messages))
    return max(read, await removals.last_of_moments(chat_id))


async def resting_on(chat_id: int, seq: int, said_at: datetime) -> list[int]:
    """Row ids of the moments that were written from this message."""
    # A turn is over within hours of what was said in it, whatever the time zone.
    first, last = (said_at - _ONE_DAY).date(), (said_at + 2 * _ONE_DAY).date()
    near = _moments(chat_id).filter(date__gte=first.isoformat(), date__lte=last.isoformat())
    return [id_ for id_, seen in await _seen(near) if seq in seen]


async def resting_on_speakers(chat_id: int, user_ids: Collection[str]) -> list[int]:
    """Row ids of the moments that were written from what any of these speakers said."""
    moments = await _seen(_moments(chat_id))
    theirs: set[int] = set()
    for part in chunks(sorted({seq for _, seen in moments for seq in seen})):
        said = MessageRow.filter(chat_id=chat_id, seq__in=part, user_id__in=list(user_ids))
        theirs.update(row.seq for row in await said.only("seq"))
    return [id_ for id_, seen in moments if not theirs.isdisjoint(seen)]


async def _seen(moments: QuerySet[ActivityRow]) -> list[tuple[int, list[int]]]:
    rows = await moments.exclude(key_messages="[]").only("id", "key_messages")
    return [(row.id, json.loads(row.key_messages)) for row in rows]


def _moments(chat_id: int) -> QuerySet[ActivityRow]:
    return ActivityRow.filter(chat_id=chat_id, origin__in=_ORIGINS).exclude(text="")
