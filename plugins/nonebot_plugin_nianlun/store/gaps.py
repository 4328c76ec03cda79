"""Gaps: spans of time in which messages may have been missed, and until when all was heard."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from ..types import ChatKey
from . import chats, sql
from .database import transactional
from .keys import short_id
from .models import Chat, Gap, Property

Span = tuple[datetime, datetime]

SHORTEST = timedelta(minutes=1)
"""A shorter absence is no gap: the other side holds back or repeats what came meanwhile."""
ALIVE = "alive:"
_BEHIND = "behind:"
_KEY_LIMIT = 64


class Missed(NamedTuple):
    """A chat in which something may have been missed."""

    chat_id: int
    chat: ChatKey
    last: datetime
    """When its last message before the connection was said."""


async def alive_until(self_id: str) -> datetime | None:
    """Until when everything that an account was told is on record; None: nothing is known."""
    return await _moment(ALIVE, self_id)


@transactional
async def set_alive(marks: Mapping[str, datetime]) -> None:
    """Write down, by account, until when everything is on record. Raises StoreError."""
    await _write({_key(ALIVE, self_id): at.isoformat() for self_id, at in marks.items()})


async def behind_since(self_id: str) -> datetime | None:
    """When a catching-up began that has not ended yet."""
    return await _moment(_BEHIND, self_id)


@transactional
async def set_behind(self_id: str, since: datetime | None) -> None:
    """Write down that an account catches up since then, or with None that it is done.

    Raises StoreError.
    """
    if since is None:
        await Property.filter(key=_key(_BEHIND, self_id)).delete()
    else:
        await _write({_key(_BEHIND, self_id): since.isoformat()})


def _key(kind: str, self_id: str) -> str:
    room = _KEY_LIMIT - len(kind)
    return kind + short_id(self_id, room)[:room]


async def _moment(kind: str, self_id: str) -> datetime | None:
    row = await Property.get_or_none(key=_key(kind, self_id))
    return None if row is None else datetime.fromisoformat(row.value)


async def _write(values: Mapping[str, str]) -> None:
    rows = [Property(key=key, value=value) for key, value in values.items()]
    await Property.bulk_create(rows, on_conflict=["key"], update_fields=["value"])


async def recorded_before(self_id: str, moment: datetime) -> list[Missed]:
    """The account's chats that it heard before this moment, those with the newest talk first.

    Chats that hold nothing but imported messages, and paused ones, are no such chats.
    """
    rows = {row.id: row for row in await Chat.filter(self_id=self_id, paused=False)}
    last = await sql.last_before(self_id, moment.isoformat(" "))
    found = [
        Missed(chat_id, chats.key_of(rows[chat_id]), datetime.fromisoformat(time))
        for chat_id, time in last
        if chat_id in rows
    ]
    return sorted(found, key=lambda missed: missed.last, reverse=True)


@transactional
async def note(spans: Mapping[int, Span]) -> None:
    """Record a gap of each of these chats; gaps that touch become one. Raises StoreError."""
    await sql.move_last_seqs(dict.fromkeys(sorted(spans), 0))
    for chat_id, span in spans.items():
        await add(chat_id, span)


async def add(chat_id: int, span: Span) -> None:
    """The same of one chat, inside the caller's transaction."""
    begins, ends = span
    if await Gap.filter(chat_id=chat_id, begins__lte=begins, ends__gte=ends).exists():
        return
    touching = Gap.filter(chat_id=chat_id, begins__lte=ends, ends__gte=begins)
    for gap in await touching:
        begins, ends = min(begins, gap.begins), max(ends, gap.ends)
    await touching.delete()
    await Gap.create(chat_id=chat_id, begins=begins, ends=ends)


@transactional
async def close(spans: Mapping[int, Span]) -> None:
    """All that was said in these spans of time is on record, by chat. Raises StoreError."""
    await sql.move_last_seqs(dict.fromkeys(sorted(spans), 0))
    for chat_id, (begins, ends) in spans.items():
        touching = Gap.filter(chat_id=chat_id, begins__lt=ends, ends__gt=begins)
        gaps = await touching
        await touching.delete()
        for gap in gaps:
            for left in without((gap.begins, gap.ends), (begins, ends)):
                await Gap.create(chat_id=chat_id, begins=left[0], ends=left[1])


def without(span: Span, hole: Span) -> list[Span]:
    """What is left of a span of time when another is taken out of it."""
    parts = [(span[0], min(span[1], hole[0])), (max(span[0], hole[1]), span[1])]
    return [part for part in parts if part[0] < part[1]]


async def reaching(chat_ids: Collection[int], moment: datetime) -> dict[int, datetime]:
    """When the earliest gap that is not over before this moment begins, by chat."""
    found: dict[int, datetime] = {}
    for gap in await Gap.filter(ends__gte=moment).order_by("begins"):
        if gap.chat_id in chat_ids:
            found.setdefault(gap.chat_id, gap.begins)
    return found


async def newest(chat_id: int) -> Span | None:
    """The gap of a chat that ended last."""
    gap = await Gap.filter(chat_id=chat_id).order_by("-ends").first()
    return None if gap is None else (gap.begins, gap.ends)
