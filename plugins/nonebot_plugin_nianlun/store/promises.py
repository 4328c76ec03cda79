"""Open promises that are due about now."""

from __future__ import annotations

from datetime import date

from ..memory.promises import PROMISE, Promise, shown_days
from .models import Fact

_AT_MOST = 50


async def due(chat_id: int, today: date) -> list[Promise]:
    """The chat's open promises that are shown on this logical day, by their due day.

    At most 50: more than are ever shown, of a chat that gives too many.
    """
    first, last = shown_days(today)
    between = {"due__gte": first.isoformat(), "due__lte": last.isoformat()}
    rows = Fact.filter(chat_id=chat_id, category=PROMISE, done_at=None, **between)
    found = await rows.exclude(text="").order_by("due", "id").limit(_AT_MOST)
    return [Promise(row.owner, row.text, date.fromisoformat(row.due)) for row in found if row.due]
