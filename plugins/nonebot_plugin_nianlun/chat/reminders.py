"""What the day itself brings up before a reply: a promise that is due, or else 去年今天."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from ..memory.anniversaries import anniversary_line, same_dates
from ..memory.promises import due_lines
from ..memory.render import display_names
from ..store import memories, promises, speakers


async def reminder(chat_id: int, today: date, shown: Collection[str]) -> str:
    """At most three lines about promises, or one about an earlier year; empty without either.

    `shown` are the days that stand in the prompt anyway. Raises StoreError.
    """
    due = await promises.due(chat_id, today)
    if due:
        names = await speakers.current_names(chat_id, {promise.owner for promise in due})
        return due_lines(due, display_names(names), today)
    days = await memories.memories(chat_id, "day", same_dates(today))
    return anniversary_line(days, today, shown)
