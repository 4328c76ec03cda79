"""What a member said in a short while and takes out of the record again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from . import exclusions, sql, withdrawals
from .database import transactional
from .keys import chunks, short_id
from .models import Exclusion
from .models import Message as MessageRow


@transactional
async def leave_out(
    chat_id: int, user_id: str, begins: datetime, ends: datetime, now: datetime
) -> int:
    """Mask what a member said from `begins` until before `ends`, and keep it away when it comes
    again; the notes that were built on it are written anew. Returns how many messages that were,
    commands not counted.
    """
    await sql.move_last_seqs({chat_id: 0})
    speaker = short_id(user_id)
    theirs = MessageRow.filter(chat_id=chat_id, time__gte=begins, time__lt=ends, user_id=speaker)
    rows = await theirs.filter(withdrawn_at=None).exclude(skipped__in=exclusions.UNRECORDED)
    rows += await theirs.filter(withdrawn_at=None, skipped=None)
    said = {row.seq: row for row in rows}.values()
    await take_out(chat_id, list(said), now)
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
