"""Forgetting a member: their messages, names and facts, in every layer and at every version.

All of it is one transaction, so that it is done wholly or not at all; that the emptied notes are
to be written anew, and the files to be cleaned, is on record with it and outlives the process.
"""

from __future__ import annotations

from datetime import datetime

from ..types import ME, Forgotten
from . import diary, exclusions, facts, speakers, sql, traces, withdrawals
from .database import transactional
from .keys import NAMELESS, short_id
from .models import Activity, Chat, Exclusion


async def forget(chat_id: int, user_id: str, at: datetime) -> Forgotten:
    """Remove all that is here of a member, and keep away what was said until `at`.

    In a private chat that is all there is, the bot's own part too: it is about this one person.
    """
    try:
        return await _forget(chat_id, user_id, at)
    finally:
        speakers.forget_cached_names()


@transactional
async def _forget(chat_id: int, user_id: str, at: datetime) -> Forgotten:
    await sql.move_last_seqs({chat_id: 0})
    chat = await Chat.get(id=chat_id).only("id", "kind")
    speaker = short_id(user_id)
    private = chat.kind == "private"
    user_ids = sorted({speaker, ME, *await sql.everybody(chat_id)}) if private else [speaker]
    said_in = set(await sql.windows_of(chat_id, user_ids))
    moments = Activity.filter(chat_id=chat_id).exclude(text="")
    if not private:
        moments = moments.filter(owner=speaker)
        said_in |= set(await diary.resting_on_speakers(chat_id, user_ids))
    said_in |= {row.id for row in await moments.only("id")}
    # Facts first: what they were taken from is found by who said it.
    fact_count = await facts.forget(chat_id, user_ids)
    forgotten = Forgotten(
        messages=await sql.blank_speakers(chat_id, user_ids, at, speaker),
        notes=await withdrawals.blank_notes(chat_id, sorted(said_in))
        + await withdrawals.blank_edited(chat_id, user_ids)
        + (await withdrawals.blank_memories(chat_id) if private else 0),
        facts=fact_count,
        names=sum([await speakers.forget(chat_id, one) for one in user_ids if one != ME]),
        opted_out=await exclusions.opted_out(chat_id, user_id),
    )
    if private:
        await Chat.filter(id=chat_id).update(name=None)
        await Activity.filter(chat_id=chat_id, owner__startswith=NAMELESS).update(owner=speaker)
    for excluded in (speaker, ME) if private else (speaker,):
        await _keep_away(chat_id, excluded, at)
    await traces.owe(chat_id)
    return forgotten


async def _keep_away(chat_id: int, user_id: str, at: datetime) -> None:
    same = {"chat_id": chat_id, "reason": "forgotten", "user_id": user_id}
    before = await Exclusion.filter(**same).order_by("-ends").first()
    ends = at + exclusions.THAT_SECOND
    if before is not None and before.ends is not None:
        ends = max(ends, before.ends)
    await Exclusion.filter(**same).delete()
    await Exclusion.create(**same, ends=ends, created_at=at)
