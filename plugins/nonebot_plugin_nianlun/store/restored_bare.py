"""Activities of a file of which nothing is left, there or here, and which of those here they are.

There is the number of such a one, for whoever asks what became of it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection

from tortoise.queryset import QuerySet

from ..types import Activity
from .models import Activity as ActivityRow
from .records import Noted

DELETED = "在这里已经删掉了，没有照改"
BARE = "导出时已经删掉或清空，没有照改"


def is_bare(noted: Noted) -> bool:
    """Whether it was deleted, or all of its window taken back, in the file itself."""
    theirs, state = noted.activity, noted.state
    if theirs.origin == "window":
        return not theirs.ranges
    left = theirs.ranges or theirs.text or (state is not None and state.stale)
    return not left and noted.exported is None


async def emptied(chat_id: int, theirs: Activity, claimed: Collection[int]) -> ActivityRow | None:
    """The one here of which nothing is left either, but none of the `claimed` rows."""
    return await _same(chat_id, theirs, claimed).filter(text="", stale=False).first()


async def same(chat_id: int, theirs: Activity, claimed: Collection[int]) -> ActivityRow | None:
    """The one here, if need be one that stands: of several the one that has no text."""
    of_it = _same(chat_id, theirs, claimed)
    return await of_it.filter(text="").first() or await of_it.first()


def _same(chat_id: int, theirs: Activity, claimed: Collection[int]) -> QuerySet[ActivityRow]:
    here = ActivityRow.filter(chat_id=chat_id, date=theirs.date, origin=theirs.origin)
    return here.filter(time=theirs.time).exclude(id__in=claimed).order_by("number")
