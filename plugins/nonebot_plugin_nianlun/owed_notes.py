"""What is owed of a chat's notes beside those of messages that no note covers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from .memory.rollups import Due, RollupPolicy, plan_all
from .store import memories, messages

if TYPE_CHECKING:
    from .lifecycle import Nianlun

_PENDING_LIMIT = 2000
"""Messages that are looked through for the days that they keep open."""


async def count(nianlun: Nianlun, chat_id: int) -> int:
    """How many notes are to be written or written anew beside those of pending messages."""
    pending = await messages.pending(chat_id, _PENDING_LIMIT)
    days = {nianlun.calendar.day_of(message.time).isoformat() for message in pending}
    again = await memories.rewritable(chat_id)
    due = await rollups(nianlun, chat_id, days, again)
    owed = {(item.kind, item.period) for item in due if item.sources}
    # What was emptied is written anew also where that waits for what is pending.
    for memory in await memories.memory_states(chat_id):
        if memory.stale and any(day.startswith(memory.period) for day in days):
            owed.add((memory.kind, memory.period))
    return len(again) + len(owed)


async def rollups(
    nianlun: Nianlun, chat_id: int, waiting: Collection[str], again: Collection[int]
) -> list[Due]:
    """The days, months and years that are due once activities are written anew.

    `waiting` are the days of pending messages: they are closed once those are noted. `again`: the
    activities that will be written anew, by number.
    """
    layers = await memories.memory_states(chat_id)
    open_days = [m.period for m in layers if m.kind == "day" and (m.stale or not m.closed)]
    states = await memories.activity_states(chat_id, open_days)
    worded = await memories.worded(chat_id, [one.number for one in states if not one.stale])
    # Of the others no word comes into any day.
    activities = [
        replace(one, stale=False, merged=False) if one.stale else one
        for one in states
        if one.number in (again if one.stale else worded)
    ]
    today = nianlun.calendar.day_of(nianlun.clock.now())
    policy = RollupPolicy(nianlun.settings.rollup_pending_activities, nianlun.settings.keep_days)
    return plan_all(activities, layers, today, policy, waiting)
