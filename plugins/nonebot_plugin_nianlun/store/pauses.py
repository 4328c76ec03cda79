"""Pausing the record of a chat: what is said meanwhile leaves no text, however it arrives."""

from __future__ import annotations

from datetime import datetime

from tortoise.queryset import QuerySet

from . import sql, traces
from .database import transactional
from .models import Chat, Exclusion


@transactional
async def pause(chat_id: int, at: datetime, now: datetime) -> bool:
    """Record nothing that is said from `at` on; False when that was so already."""
    await sql.move_last_seqs({chat_id: 0})
    await Chat.filter(id=chat_id).update(paused=True)
    if await _open(chat_id).exists():
        return False
    await Exclusion.create(chat_id=chat_id, reason="paused", begins=at, created_at=now)
    # Others may have spoken before this was carried out. Of the same second most came before it.
    if await sql.blank_since(chat_id, at):
        await traces.owe(chat_id)
    return True


@transactional
async def resume(chat_id: int, at: datetime) -> bool:
    """Record what is said from `at` on again; False when it is recorded already."""
    await sql.move_last_seqs({chat_id: 0})
    await Chat.filter(id=chat_id).update(paused=False)
    return bool(await _open(chat_id).update(ends=at))


@transactional
async def settle(chat_id: int, now: datetime) -> None:
    """See that a chat which a file says is paused is so: not every file says since when."""
    await sql.move_last_seqs({chat_id: 0})
    chat = await Chat.get(id=chat_id).only("id", "paused")
    if chat.paused and not await _open(chat_id).exists():
        await Exclusion.create(chat_id=chat_id, reason="paused", begins=now, created_at=now)


def _open(chat_id: int) -> QuerySet[Exclusion]:
    return Exclusion.filter(chat_id=chat_id, reason="paused", ends=None)
