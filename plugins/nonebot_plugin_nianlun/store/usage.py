"""What the models cost, counted by chat, logical day, purpose and model."""

from __future__ import annotations

from collections.abc import Sequence

from tortoise.expressions import F
from tortoise.functions import Sum

from ..types import Usage
from .database import transactional
from .models import UsageCount


@transactional
async def count(chat_id: int, date: str, purpose: str, model: str, usage: Usage, ok: bool) -> None:
    """Add one call; a failed one counts too.

    `model` is the name that the owner has set: the one in an answer may be another, and differs
    from call to call.
    """
    where = {"chat_id": chat_id, "date": date, "purpose": purpose, "model": model[:128]}
    await UsageCount.bulk_create(
        [
            UsageCount(
                **where,
                calls=0,
                failures=0,
                prompt_tokens=0,
                cached_tokens=0,
                completion_tokens=0,
            )
        ],
        ignore_conflicts=True,
    )
    await UsageCount.filter(**where).update(
        calls=F("calls") + 1,
        failures=F("failures") + (0 if ok else 1),
        prompt_tokens=F("prompt_tokens") + usage.prompt,
        cached_tokens=F("cached_tokens") + usage.cached,
        completion_tokens=F("completion_tokens") + usage.completion,
    )


async def tokens(chat_id: int, date: str, *, replies: bool) -> int:
    """Prompt and completion tokens of a day; those of replies only when asked for."""
    query = UsageCount.filter(chat_id=chat_id, date=date)
    if not replies:
        query = query.exclude(purpose="reply")
    rows = await query.annotate(
        asked=Sum("prompt_tokens"), answered=Sum("completion_tokens")
    ).values("asked", "answered")
    return sum((row["asked"] or 0) + (row["answered"] or 0) for row in rows)


async def spent(chat_id: int, date: str) -> tuple[int, int]:
    """Calls and tokens of a day, replies included."""
    query = UsageCount.filter(chat_id=chat_id, date=date)
    rows = await query.values("calls", "prompt_tokens", "completion_tokens")
    tokens = sum(row["prompt_tokens"] + row["completion_tokens"] for row in rows)
    return sum(row["calls"] for row in rows), tokens


async def calls(chat_id: int, date: str, purposes: Sequence[str]) -> tuple[int, int]:
    """Calls of a day for these purposes, and how many of them failed."""
    query = UsageCount.filter(chat_id=chat_id, date=date, purpose__in=list(purposes))
    rows = await query.values("calls", "failures")
    return sum(row["calls"] for row in rows), sum(row["failures"] for row in rows)


async def since(chat_id: int, date: str) -> list[UsageCount]:
    """All counts from that logical day on, oldest first."""
    query = UsageCount.filter(chat_id=chat_id, date__gte=date)
    return await query.order_by("date", "purpose", "model")
