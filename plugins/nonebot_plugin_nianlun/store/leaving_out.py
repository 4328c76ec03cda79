"""What a member said in a short while and takes out of the record again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tortoise.expressions import Q

from . import exclusions, sql, withdrawals
from .database import transactional
from .keys import chunks, short_id
from .models import Exclusion
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
    """
    await sql.move_last_seqs({chat_id: 0})
    speaker = short_id(user_id)
    since = begins if first_seq is None else begins.replace(microsecond=0)
    theirs = MessageRow.filter(chat_id=chat_id, time__gte=since, time__lt=ends, user_id=speaker)
    if first_seq is not None:
        begins = since + exclusions.THAT_SECOND
        theirs = theirs.filter(Q(time__gte=begins) | Q(seq__gte=first_seq))
    rows = await theirs.filter(withdrawn_at=None).exclude(skipped__in=exclusions.UNRECORDED)
    rows += await theirs.filter(withdrawn_at=None, skipped=None)
    said = {row.seq: row for row in rows}.values()
    await take_out(chat_id, list(said), now)
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
