"""What days, months and years of a file are built on, as it is here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tortoise.queryset import QuerySet

from ..types import Memory, MemoryKind
from .keys import chunks
from .models import Activity as ActivityRow
from .models import Memory as MemoryRow


async def mark_merged(
    chat_id: int, memory: Memory, sources: Sequence[str], known: Mapping[str, bool]
) -> None:
    """The sources are in this text, unless they were written after it; of those in `known` it is
    told whether they are."""
    before = {"written_at__lte": memory.written_at, "stale": False}
    untold = [ref for ref in sources if ref not in known]
    told = [ref for ref in sources if known.get(ref)]
    for refs, where in ((untold, before), (told, {})):
        for part in chunks(refs):
            await _below(chat_id, memory.kind, part).filter(**where).update(merged=True)


def _below(
    chat_id: int, kind: MemoryKind, refs: Sequence[str]
) -> QuerySet[ActivityRow] | QuerySet[MemoryRow]:
    """The notes of the layer under one, by number or period."""
    if kind == "day":
        return ActivityRow.filter(chat_id=chat_id, number__in=list(map(int, refs)))
    lower: MemoryKind = "day" if kind == "month" else "month"
    return MemoryRow.filter(chat_id=chat_id, kind=lower, period__in=list(refs))
