"""Whose words may not be recorded, and when: members who opted out, and who were forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeAlias

from ..types import Incoming
from . import sql, traces
from .database import transactional
from .keys import chunks, short_id
from .models import Exclusion, Speaker


class Span(NamedTuple):
    """A stretch of message time, from its beginning up to before its end, where it has them."""

    begins: datetime | None
    ends: datetime | None

    def holds(self, at: datetime) -> bool:
        return (self.begins is None or self.begins <= at) and (self.ends is None or at < self.ends)


Known: TypeAlias = dict[tuple[int, str], list[Span]]
"""By chat row id and user id."""


async def known_for(chat_ids: Iterable[int]) -> Known:
    """Every exclusion of these chats that is about a member."""
    found: Known = {}
    for part in chunks(list(chat_ids)):
        rows = Exclusion.filter(chat_id__in=part, reason__in=["opted_out", "forgotten"])
        for row in await rows.only("chat_id", "user_id", "begins", "ends"):
            span = Span(row.begins, row.ends)
            found.setdefault((row.chat_id, row.user_id or ""), []).append(span)
    return found


def covers(known: Known, chat_id: int, user_id: str, at: datetime) -> bool:
    """Whether what this member said or was called at that time may not be kept."""
    return any(span.holds(at) for span in known.get((chat_id, short_id(user_id)), ()))


def redact(known: Known, chat_id: int, message: Incoming) -> Incoming:
    """The message as it may be stored: where it is excluded, without its words and name.

    To be used before keys are made, for the key of a line without an id tells its words.
    """
    if covers(known, chat_id, message.user_id, message.time):
        return replace(message, name="", segments=[], skipped="opted_out")
    return message


async def opted_out(chat_id: int, user_id: str) -> bool:
    """Whether this member does not want to be recorded now."""
    return await _open(chat_id, user_id) is not None


@transactional
async def opt_out(chat_id: int, user_id: str, at: datetime, now: datetime) -> bool:
    """Record nothing that the member says from `at` on, nor what is pending of it.

    False when that was so already.
    """
    await sql.move_last_seqs({chat_id: 0})
    if await _open(chat_id, user_id) is not None:
        return False
    await begin(chat_id, user_id, at, now)
    await Speaker.filter(chat_id=chat_id, user_id=user_id).update(opted_out_at=at)
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
    row = await _open(chat_id, user_id)
    if row is None:
        return False
    await Exclusion.filter(id=row.id).update(ends=at)
    await Speaker.filter(chat_id=chat_id, user_id=user_id).update(opted_out_at=None)
    return True


async def _open(chat_id: int, user_id: str) -> Exclusion | None:
    return await Exclusion.filter(
        chat_id=chat_id, reason="opted_out", user_id=short_id(user_id), ends=None
    ).first()
