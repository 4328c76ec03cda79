"""Windows of an export in the chat that they come into: what of them is here, and who holds it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import TypeAlias

from . import sql
from .models import Activity

MAY_BE_NOTED = (None, "withdrawn", "empty", "declined", "refused")
"""Skip reasons of messages that a note of the file may cover: nobody wanted them left out."""

Runs: TypeAlias = Sequence[tuple[int, int]]
"""Runs of `seq`."""
_CALENDARS = timedelta(days=2)
"""So far apart two time zones and beginnings of the day may put the same moment."""


def without(runs: Runs, seqs: Collection[int]) -> list[tuple[int, int]]:
    """What is left of the runs."""
    found: list[tuple[int, int]] = []
    for first, last in runs:
        for seq in sorted(seq for seq in seqs if first <= seq <= last):
            if first < seq:
                found.append((first, seq - 1))
            first = seq + 1
        if first <= last:
            found.append((first, last))
    return found


async def state_of(chat_id: int, runs: Runs) -> tuple[Activity | None, int, int]:
    """Who holds most of it; messages that a note may cover; those of them with words."""
    holders: dict[int, int] = {}
    free = left = 0
    for first, last in runs:
        for holder, skipped, masked, count in await sql.covered(chat_id, first, last):
            if holder is not None:
                holders[holder] = holders.get(holder, 0) + count
            elif skipped in MAY_BE_NOTED:
                free += count
                left += 0 if masked else count
    if not holders:
        return None, free, left
    return await Activity.get(id=max(holders, key=lambda id_: holders[id_])), free, left


async def holds_all(row: Activity, runs: Runs) -> bool:
    """Whether the window here has all that the file's has.

    When something of the rest is taken back, it would not lead to the file's text.
    """
    for first, last in runs:
        covered = await sql.covered(row.chat_id, first, last)
        if any(holder != row.id for holder, *_ in covered):
            return False
    return True


def day_told(theirs: str, here: str) -> str:
    """The day of an activity as its file has it, unless that is more than another calendar."""
    apart = abs(date.fromisoformat(theirs) - date.fromisoformat(here))
    return theirs if apart <= _CALENDARS else here
