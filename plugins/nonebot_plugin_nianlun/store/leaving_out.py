"""What a member said in a short while and takes out of the record again."""

from __future__ import annotations

from datetime import datetime

from . import exclusions, sql, traces, withdrawals
from .database import transactional
from .keys import short_id
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
    seqs = {row.seq: row for row in rows}
    for seq in seqs:
        await withdrawals.mask(chat_id, seq, now)
    # Nobody took these back: what no note covers stands as what was never recorded.
    unnoted = [seq for seq, row in seqs.items() if row.activity_id is None]
    await MessageRow.filter(chat_id=chat_id, seq__in=unnoted).update(
        skipped="opted_out", withdrawn_at=None, name=""
    )
    await Exclusion.create(
        chat_id=chat_id,
        reason="opted_out",
        user_id=speaker,
        begins=begins,
        ends=ends,
        created_at=now,
    )
    if seqs:
        await traces.owe(chat_id)
    return sum(row.skipped != "command" for row in seqs.values())
