"""How a chat's memory is doing, put together from everything that knows of it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from . import owed_notes
from .interface import diary
from .llm import turn_writer
from .outcomes import Outcome
from .store import gaps, health, usage
from .types import ChatKey, ChatStatus

if TYPE_CHECKING:
    from .lifecycle import Nianlun

_AFTER_TURNS = (turn_writer.PURPOSE, diary.PURPOSE)


async def chat_status(nianlun: Nianlun, chat: ChatKey, chat_id: int) -> ChatStatus:
    """The status of a recorded chat, whose row id is known."""
    counts = await health.counts(chat_id)
    today = nianlun.calendar.day_of(nianlun.clock.now()).isoformat()
    limit = await nianlun.jobs.limit_of(chat)
    tokens = await usage.tokens(chat_id, today, replies=False)
    turns_today, turns_failed = await usage.calls(chat_id, today, _AFTER_TURNS)
    turn = nianlun.outcomes.of(chat)
    error, error_at = _last_error(nianlun, chat, counts, turn)
    spent = limit is not None and tokens >= limit and nianlun.writer.name == "model"
    return ChatStatus(
        messages=counts.messages,
        pending=counts.pending,
        skipped=counts.skipped,
        activities=counts.activities,
        days=counts.days,
        months=counts.months,
        years=counts.years,
        last_note_at=counts.last_note_at,
        last_rollup_at=counts.last_rollup_at,
        last_error=error,
        last_error_at=error_at,
        next_rollup_at=nianlun.jobs.next_rollup(),
        gaps=counts.gaps,
        last_gap=await gaps.newest(chat_id),
        tokens_today=tokens,
        writer="offline" if spent else nianlun.writer.name,
        paused=counts.paused,
        token_limit=limit,
        limit_reached=spent,
        turns_today=turns_today,
        turns_failed=turns_failed,
        last_turn_at=turn.success_at,
        muted=counts.muted,
        owed=await owed_notes.count(nianlun, chat_id),
    )


def _last_error(
    nianlun: Nianlun, chat: ChatKey, counts: health.Counts, turn: Outcome
) -> tuple[str | None, datetime | None]:
    """What is wrong now, the worst first, and since when it is known."""
    client = [nianlun.client] if nianlun.client else []
    parts = (
        nianlun.recorder,
        nianlun.replier,
        nianlun.recaller,
        nianlun.recaller.personas,
        *client,
        nianlun.embedding,
        nianlun.media,
    )
    trouble = nianlun.lost or next((part.trouble for part in parts if part.trouble), None)
    trouble = trouble or nianlun.replier.silence(chat)
    if trouble:
        return trouble, nianlun.clock.now()
    if counts.failures:
        return counts.last_error, counts.last_error_at
    return (turn.error, turn.error_at) if turn.error else (None, counts.last_error_at)
