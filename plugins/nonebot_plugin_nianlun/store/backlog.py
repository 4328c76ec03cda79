"""How much talk waits to be noted: times and lengths alone, so that it may be years of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from tortoise.expressions import Q

from .models import Message as MessageRow

_AT_ONCE = 10_000


async def pending_lengths(chat_id: int) -> AsyncIterator[tuple[datetime, int]]:
    """Time and length in characters of each pending message, in event order."""
    query = MessageRow.filter(chat_id=chat_id, activity_id=None, skipped=None)
    last: tuple[datetime, int] | None = None
    while True:
        part = query
        if last is not None:
            # The one condition leads through the index, the other passes over what was had.
            had = Q(time=last[0], seq__lte=last[1])
            part = query.filter(time__gte=last[0]).exclude(had)
        rows = await part.order_by("time", "seq").limit(_AT_ONCE).values_list("time", "seq", "text")
        for time, _, text in rows:
            yield time, len(text)
        if len(rows) < _AT_ONCE:
            return
        last = rows[-1][0], rows[-1][1]
