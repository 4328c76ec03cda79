"""What a member said in a short while and takes out of the record again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tortoise.expressions import Q
from tortoise.queryset import QuerySet

from . import exclusions, sql, withdrawals
from .database import transactional
from .keys import NAMELESS, chunks, short_id
from .models import Chat, Exclusion
from .models import Message as MessageRow


@transactional
async def leave_out(
    chat_id: int,
    user_id: str,
    begins: datetime,
    ends: datetime,
    now: datetime,
    first_seq: int | None = None,
) -> int:
    """Mask what a member said from `begins` until before `ends`, and keep it away when it comes
    again; the notes that were built on it are written anew. Returns how many messages that were,
    commands not counted.

    With `first_seq`, of the second of `begins` only what is numbered from there on. A span of
    time cannot say that, so the one on record begins with the next second: what is masked of
    this one is known when it comes again, and what came before it there may come in.

    In a private chat that is also what somebody said of whom only the name is known.
    """
    await sql.move_last_seqs({chat_id: 0})
    speaker = short_id(user_id)
    since = begins if first_seq is None else begins.replace(microsecond=0)
    theirs = await _said_by(chat_id, speaker)
    theirs = theirs.filter(time__gte=since, time__lt=ends)
    if first_seq is not None:
        begins = since + exclusions.THAT_SECOND
        theirs = theirs.filter(Q(time__gte=begins) | Q(seq__gte=first_seq))
    rows = await theirs.filter(withdrawn_at=None).exclude(skipped__in=exclusions.UNRECORDED)
    rows += await theirs.filter(withdrawn_at=None, skipped=None)
    said = {row.seq: row for row in rows}.values()
    await take_out(chat_id, list(said), now)
    for part in chunks([row.seq for row in said if row.user_id != speaker]):
        # That id is a name, and the line would come again as the speaker's.
        await MessageRow.filter(chat_id=chat_id, seq__in=part).update(user_id=speaker)
    if begins < ends:
        await Exclusion.create(
            chat_id=chat_id,
            reason="opted_out",
            user_id=speaker,
            begins=begins,
            ends=ends,
            created_at=now,
        )
    return sum(row.skipped != "command" for row in said)


async def _said_by(chat_id: int, speaker: str) -> QuerySet[MessageRow]:
    """The same lines as those that `exclusions.redact` takes for a member's."""
    chat = await Chat.get(id=chat_id).only("id", "kind", "peer_id")
    whose = Q(user_id=speaker)
    if chat.kind == "private" and speaker == short_id(chat.peer_id):
        whose |= Q(user_id__startswith=NAMELESS)
    return MessageRow.filter(whose, chat_id=chat_id)


async def take_out(chat_id: int, rows: Sequence[MessageRow], now: datetime) -> None:
    """Mask these messages, and see that the notes built on them are written anew.

    Runs inside the caller's transaction.
    """
    for row in rows:
        await withdrawals.mask(chat_id, row.seq, now)
    # Nobody took these back: what no note covers stands as what was never recorded.
    for part in chunks([row.seq for row in rows if row.activity_id is None]):
        await MessageRow.filter(chat_id=chat_id, seq__in=part).update(
            skipped="opted_out", withdrawn_at=None, name=""
        )
