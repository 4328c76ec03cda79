"""How a chat's memory is doing, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .models import Activity, Chat, Gap, Memory
from .models import Message as MessageRow


@dataclass(frozen=True, slots=True)
class Counts:
    """Row counts of a chat, of notes those that have a text, and the times of its last work."""

    messages: int
    pending: int
    skipped: int
    activities: int
    days: int
    months: int
    years: int
    gaps: int
    last_note_at: datetime | None
    last_rollup_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None
    failures: int
    paused: bool
    muted: bool


async def counts(chat_id: int) -> Counts:
    chat = await Chat.get(id=chat_id)
    messages = MessageRow.filter(chat_id=chat_id)
    note = await Activity.filter(chat_id=chat_id).order_by("-number").first()
    rollup = await Memory.filter(chat_id=chat_id).order_by("-written_at").first()
    memories = Memory.filter(chat_id=chat_id).exclude(text="")
    return Counts(
        messages=await messages.count(),
        pending=await messages.filter(activity_id=None, skipped=None).count(),
        skipped=await messages.filter(skipped__isnull=False).count(),
        activities=await Activity.filter(chat_id=chat_id).exclude(text="").count(),
        days=await memories.filter(kind="day").count(),
        months=await memories.filter(kind="month").count(),
        years=await memories.filter(kind="year").count(),
        gaps=await Gap.filter(chat_id=chat_id).count(),
        last_note_at=None if note is None else note.written_at,
        last_rollup_at=None if rollup is None else rollup.written_at,
        last_error=chat.last_error,
        last_error_at=chat.last_error_at,
        failures=chat.failures,
        paused=chat.paused,
        muted=chat.muted,
    )


async def pending(chat_id: int) -> int:
    """Messages that no activity covers and that are not skipped."""
    return await MessageRow.filter(chat_id=chat_id, activity_id=None, skipped=None).count()
