"""Whose words may not be recorded, and when: members who opted out, and who were forgotten; and
everybody's while recording is paused, or from before a chat was cleared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
import sqlite3
from typing import NamedTuple, TypeAlias

from tortoise.queryset import QuerySet

from ..errors import NotRecorded
from ..types import ME, Activity, Incoming, Memory, SkipReason, is_edited
from . import sql, traces
from .database import transactional
from .keys import NAMELESS, short_id
from .models import Exclusion, Speaker
from .records import FactText, Version


class Span(NamedTuple):
    """A stretch of message time, from its beginning up to before its end, where it has them."""

    begins: datetime | None
    ends: datetime | None

    def holds(self, at: datetime) -> bool:
        return (self.begins is None or self.begins <= at) and (self.ends is None or at < self.ends)


THAT_SECOND = timedelta(seconds=1)
"""Platforms tell whole seconds: what was said just before a wish bears the same time."""
_EVERYBODY = "*"
"""In place of a user id: whatever there is of the chat."""
_PAUSED = "-"
"""The same while recording is paused: who is who stays known."""
_UNNOTED = "="
"""The same of a window whose note was removed: what was said stays, and is not noted again."""
_UNRECORDED = (
    "SELECT EXISTS (SELECT 1 FROM nianlun_exclusion WHERE chat_id = ? AND ends IS NULL"
    " AND (reason = 'paused' OR (reason = 'opted_out' AND user_id = ?)))"
)
UNRECORDED: tuple[SkipReason, ...] = ("opted_out", "paused")
"""Why a message is stored without words and name."""
Known: TypeAlias = dict[tuple[int, str], list[Span]]
"""By chat row id and user id."""


async def known_for(chat_ids: Iterable[int]) -> Known:
    """Every exclusion of these chats that is about a member or a time, none about a message."""
    found: Known = {}
    for chat_id, reason, user_id, begins, ends in await sql.exclusions(list(chat_ids)):
        whose = user_id or ""
        if reason in ("paused", "window"):
            whose = _PAUSED if reason == "paused" else _UNNOTED
        elif user_id == ME:
            # The bot's own part is forgotten only with all the rest of a chat.
            whose = _EVERYBODY
        found.setdefault((chat_id, whose), []).append(Span(begins, ends))
    return found


def covers(known: Known, chat_id: int, user_id: str, at: datetime) -> bool:
    """Whether what this member said or was called at that time may not be kept."""
    return any(span.holds(at) for span in _spans(known, chat_id, user_id))


async def wrote(chat_id: int, texts: Iterable[Activity | Memory | Version | FactText]) -> bool:
    """Whether one of these texts was written by hand, by somebody who was forgotten since.

    Opting out leaves standing what somebody corrected, and so does this.
    """
    edits = [(one.writer, one.written_at) for one in texts if one.text and one.writer]
    edits = [(writer, at) for writer, at in edits if is_edited(writer)]
    known = await known_for([chat_id]) if edits else {}
    return any(
        span.begins is None and span.holds(at)
        for writer, at in edits
        for span in _spans(known, chat_id, writer)
    )


async def forgot_since(chat_id: int, at: datetime) -> bool:
    """Whether anybody was forgotten in this chat at that time or later."""
    forgotten = Exclusion.filter(chat_id=chat_id, reason="forgotten")
    return await forgotten.filter(ends__gte=at + THAT_SECOND).exists()


def concerns(known: Known, chat_id: int, user_id: str) -> bool:
    """Whether there is or was a time at which this member may not be recorded."""
    return bool(_spans(known, chat_id, user_id))


def by_name(known: Known, chat_id: int, user_id: str) -> bool:
    """Whether this member by themselves may or might not be recorded at some time."""
    return (chat_id, short_id(user_id)) in known


def cleared(known: Known, chat_id: int) -> tuple[Span, ...]:
    """The times of which nothing of the chat may be kept; others once it is cleared again."""
    return tuple(known.get((chat_id, _EVERYBODY), ()))


def paused(known: Known, chat_id: int, at: datetime) -> bool:
    """Whether recording was paused then."""
    return any(span.holds(at) for span in known.get((chat_id, _PAUSED), ()))


def _spans(known: Known, chat_id: int, user_id: str) -> list[Span]:
    return known.get((chat_id, short_id(user_id)), []) + known.get((chat_id, _EVERYBODY), [])


async def refuse(chat_id: int, user_id: str, at: datetime) -> None:
    """Raise NotRecorded when what is this person's may not be kept as of that time."""
    known = await known_for([chat_id])
    if paused(known, chat_id, at):
        raise NotRecorded("这个会话暂停了记录，没有保存")
    if covers(known, chat_id, user_id, at):
        raise NotRecorded("这位成员不希望被记录，没有保存")


def redact(known: Known, chat_id: int, message: Incoming) -> Incoming:
    """The message as it may be stored: where it is excluded, without its words and name.

    To be used before keys are made, for the key of a line without an id tells its words.
    """
    user_id, chat_name = message.user_id, message.chat_name
    if message.chat.kind == "private":
        # Between two people there is nobody else, and the chat is called after the other one.
        user_id = message.chat.peer_id if user_id.startswith(NAMELESS) else user_id
        chat_name = None
    reason: SkipReason
    if covers(known, chat_id, user_id, message.time):
        reason = "opted_out"
    elif paused(known, chat_id, message.time):
        reason = "paused"
    else:
        return message if message.skipped else _unnoted(known, chat_id, message)
    bare = replace(message, user_id=user_id, chat_name=chat_name)
    return replace(bare, name="", segments=[], skipped=reason)


def _unnoted(known: Known, chat_id: int, message: Incoming) -> Incoming:
    if any(span.holds(message.time) for span in known.get((chat_id, _UNNOTED), ())):
        return replace(message, skipped="declined")
    return message


def unrecorded(connection: sqlite3.Connection, chat_id: int, user_id: str) -> bool:
    """Whether what this member says now is not recorded, for whatever reason."""
    row = connection.execute(_UNRECORDED, (chat_id, short_id(user_id))).fetchone()
    return bool(row[0])


async def opted_out(chat_id: int, user_id: str) -> bool:
    """Whether this member does not want to be recorded now."""
    return await _open(chat_id, user_id).exists()


@transactional
async def opt_out(chat_id: int, user_id: str, at: datetime, now: datetime) -> bool:
    """Record nothing that the member says from `at` on, nor what is pending of it.

    False when that was so already.
    """
    await sql.move_last_seqs({chat_id: 0})
    if await _open(chat_id, user_id).exists():
        return False
    await begin(chat_id, user_id, at, now)
    await Speaker.filter(chat_id=chat_id, user_id=short_id(user_id)).update(opted_out_at=at)
    if await sql.blank_pending(chat_id, short_id(user_id)):
        await traces.owe(chat_id)
    return True


async def begin(chat_id: int, user_id: str, at: datetime, now: datetime) -> None:
    """Put an opt-out on record; runs inside the caller's transaction."""
    await Exclusion.create(
        chat_id=chat_id,
        reason="opted_out",
        user_id=short_id(user_id),
        begins=at,
        created_at=now,
    )


@transactional
async def opt_in(chat_id: int, user_id: str, at: datetime) -> bool:
    """Record the member's words again, those after `at`; False when they are recorded already."""
    await sql.move_last_seqs({chat_id: 0})
    # An import may have brought another that began at another time.
    if not await _open(chat_id, user_id).update(ends=at):
        return False
    await Speaker.filter(chat_id=chat_id, user_id=short_id(user_id)).update(opted_out_at=None)
    return True


def _open(chat_id: int, user_id: str) -> QuerySet[Exclusion]:
    return Exclusion.filter(
        chat_id=chat_id, reason="opted_out", user_id=short_id(user_id), ends=None
    )
