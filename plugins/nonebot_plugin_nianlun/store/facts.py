"""Facts: what is true now, each with the texts it had before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..types import Fact
from .keys import chunks
from .models import Fact as FactRow
from .models import FactVersion
from .models import Message as MessageRow


async def store(chat_id: int, facts: Sequence[Fact], now: datetime) -> None:
    """Add or update facts; runs inside the caller's transaction.

    The owner is whoever sent the message that the fact names as its source. A source that
    is no message of this chat, or was withdrawn, makes no fact.
    """
    for fact in facts:
        source = await MessageRow.get_or_none(chat_id=chat_id, seq=fact.source, withdrawn_at=None)
        if source is None:
            continue
        where = {
            "chat_id": chat_id,
            "owner": source.user_id,
            "category": fact.category,
            "name": fact.name,
        }
        row = await FactRow.get_or_none(**where)
        if row is None:
            await FactRow.create(
                **where, text=fact.content, source=fact.source, created_at=now, written_at=now
            )
        elif row.text != fact.content:
            await FactVersion.create(
                chat_id=chat_id,
                fact_id=row.id,
                text=row.text,
                source=row.source,
                written_at=row.written_at,
            )
            await FactRow.filter(id=row.id).update(
                text=fact.content, source=fact.source, written_at=now
            )


async def take_back(chat_id: int, seqs: Sequence[int]) -> int:
    """Remove what facts took from messages that were withdrawn; an earlier text comes back.

    Returns how many facts that changed. Runs inside the caller's transaction.
    """
    changed = 0
    for part in chunks(seqs):
        await FactVersion.filter(chat_id=chat_id, source__in=part).delete()
    for part in chunks(seqs):
        for row in await FactRow.filter(chat_id=chat_id, source__in=part):
            await _go_back(row)
            changed += 1
    return changed


async def _go_back(row: FactRow) -> None:
    fact = FactRow.filter(id=row.id)
    before = await FactVersion.filter(fact_id=row.id).order_by("-id").first()
    if before is None:
        await fact.delete()
        return
    await fact.update(text=before.text, source=before.source, written_at=before.written_at)
    await FactVersion.filter(id=before.id).delete()


async def forget(chat_id: int, user_ids: Sequence[str]) -> int:
    """Remove all facts about these speakers, and what others' facts took from what they said.

    Returns how many facts are gone or have gone back. Runs inside the caller's transaction.
    """
    own = [row.id for row in await FactRow.filter(chat_id=chat_id, owner__in=user_ids).only("id")]
    for part in chunks(own):
        await FactVersion.filter(chat_id=chat_id, fact_id__in=part).delete()
        await FactRow.filter(id__in=part).delete()
    sources = {row.source for row in await FactRow.filter(chat_id=chat_id).only("source")}
    sources |= {row.source for row in await FactVersion.filter(chat_id=chat_id).only("source")}
    said: list[int] = []
    for part in chunks([source for source in sources if source is not None]):
        rows = MessageRow.filter(chat_id=chat_id, seq__in=part, user_id__in=user_ids)
        said += [row.seq for row in await rows.only("seq")]
    return len(own) + await take_back(chat_id, said)


async def everything(chat_id: int) -> list[tuple[FactRow, list[FactVersion]]]:
    """All facts of a chat with their earlier texts, oldest first."""
    rows = await FactRow.filter(chat_id=chat_id).order_by("owner", "category", "name", "id")
    earlier: dict[int, list[FactVersion]] = {}
    for version in await FactVersion.filter(chat_id=chat_id).order_by("id"):
        earlier.setdefault(version.fact_id, []).append(version)
    return [(row, earlier.get(row.id, [])) for row in rows]


async def categories(chat_id: int) -> list[str]:
    """The categories in use."""
    rows = await FactRow.filter(chat_id=chat_id).distinct().order_by("category").values("category")
    return [row["category"] for row in rows]
