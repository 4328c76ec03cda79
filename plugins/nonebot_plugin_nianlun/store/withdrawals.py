"""Messages that were taken back: masked at once, and everything that was built on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from ..types import Incoming, Withdrawal
from . import diary, facts, sql, traces
from .keys import LONGEST_WRITER, chunks, short_id, wordless_key
from .models import Activity, Exclusion, Memory, NoteVersion
from .models import Message as MessageRow

Known: TypeAlias = dict[tuple[int, str], list[tuple[str | None, datetime]]]
"""By chat row id and platform id: whose message it was, if the notice said so, and when."""
_BLANK = {"text": "", "key_messages": "[]"}
_CLOCK_TOLERANCE = timedelta(minutes=10)
"""How much earlier than its message a withdrawal may seem to be, where the clocks differ."""
_AGAIN = timedelta(minutes=1)
"""A notice is reported twice within this time."""


async def known_for(fresh: Mapping[int, Mapping[str, Incoming]]) -> Known:
    """Withdrawals that came before their message did; takes messages by chat row id and key."""
    pairs = [
        (chat_id, short_id(message.message_id))
        for chat_id, messages in fresh.items()
        for message in messages.values()
        if message.message_id is not None
    ]
    found: Known = {}
    for chat_id, message_id, user_id, at in await sql.withdrawals(pairs):
        found.setdefault((chat_id, message_id), []).append((user_id, datetime.fromisoformat(at)))
    return found


def masked_at(known: Known, chat_id: int, message: Incoming) -> datetime | None:
    """When this message was taken back, if it was."""
    for user_id, at in known.get((chat_id, short_id(message.message_id or "")), ()):
        if message.time <= at + _CLOCK_TOLERANCE and user_id in (None, message.user_id):
            return at
    return None


async def withdraw(chat_id: int, notice: Withdrawal) -> None:
    """Mask the message if it is here, and remember the notice for when it comes later.

    Runs inside the caller's transaction.
    """
    message_id = short_id(notice.message_id)
    same = Exclusion.filter(
        chat_id=chat_id, reason="withdrawn", message_id=message_id, user_id=notice.user_id
    )
    if await same.filter(
        begins__gte=notice.time - _AGAIN, begins__lte=notice.time + _AGAIN
    ).exists():
        return
    await Exclusion.create(
        chat_id=chat_id,
        reason="withdrawn",
        message_id=message_id,
        user_id=notice.user_id,
        begins=notice.time,
        created_at=notice.time,
    )
    query = MessageRow.filter(chat_id=chat_id, message_id=message_id, withdrawn_at=None)
    if notice.user_id is not None:
        query = query.filter(user_id=notice.user_id)
    # The last to come in, not the last by its time: the two clocks need not agree.
    row = await query.order_by("-seq").first()
    if row is not None:
        await _mask(chat_id, row, notice.time)


async def mask(chat_id: int, seq: int, at: datetime) -> None:
    """Mask a message of which it is known otherwise that it was taken back.

    Runs inside the caller's transaction.
    """
    await _mask(chat_id, await MessageRow.get(chat_id=chat_id, seq=seq), at)


async def _mask(chat_id: int, row: MessageRow, at: datetime) -> None:
    changes: dict[str, Any] = {"text": "", "segments": "[]", "withdrawn_at": at}
    if row.activity_id is None:
        changes["skipped"] = "withdrawn"
    if row.message_id is None:
        changes["dedup_key"] = wordless_key(row.time, row.seq)
    await MessageRow.filter(id=row.id).update(**changes)
    await facts.take_back(chat_id, [row.seq])
    await facts.take_back_around(chat_id, [row.seq])
    noted = [] if row.activity_id is None else [row.activity_id]
    moments = await diary.resting_on(chat_id, row.seq, row.time)
    if noted or moments:
        await blank_notes(chat_id, [*noted, *moments])
    await traces.owe(chat_id)


async def blank_notes(chat_id: int, activity_ids: Sequence[int]) -> int:
    """Empty these activities and, at every version, what was built on them.

    The next run writes them anew. Returns of how many notes a text is gone. Runs inside the
    caller's transaction.
    """
    numbers: list[str] = []
    blanked = 0
    for part in chunks(activity_ids):
        activities = Activity.filter(chat_id=chat_id, id__in=part)
        rows = await activities.only("number", "text")
        numbers += [str(row.number) for row in rows]
        blanked += sum(row.text != "" for row in rows)
        await activities.update(stale=True, merged=False, **_BLANK)
    # A fact may tell the words of the line beside its own; what still holds is noted anew.
    await facts.take_back_noted(chat_id, activity_ids)
    for part in chunks(numbers):
        earlier = NoteVersion.filter(chat_id=chat_id, kind="activity", ref__in=part)
        await earlier.update(blanked=True, **_BLANK)
    sources = numbers
    for kind in ("day", "month", "year"):
        current, sources = await _blank_built_on(chat_id, kind, sources)
        blanked += current
    return blanked


async def blank_memories(chat_id: int) -> int:
    """Empty all days, months and years at every version; returns of how many a text is gone.

    Runs inside the caller's transaction.
    """
    memories = Memory.filter(chat_id=chat_id)
    blanked = await memories.exclude(text="").count()
    await memories.update(stale=True, merged=False, **_BLANK)
    await NoteVersion.filter(chat_id=chat_id).update(blanked=True, **_BLANK)
    return blanked


async def blank_edited(chat_id: int, user_ids: Sequence[str]) -> int:
    """Empty what these people wrote into notes, at whatever version, with what was built on it.

    Returns of how many notes a text is gone. Runs inside the caller's transaction.
    """
    writers = [user_id for user_id in user_ids if len(user_id) <= LONGEST_WRITER]
    theirs = {"chat_id": chat_id, "writer__in": writers}
    refs: dict[str, set[str]] = {"activity": set(), "day": set(), "month": set(), "year": set()}
    # A blank one tells who wrote what was emptied before, and has nothing of it.
    for old in await NoteVersion.filter(**theirs).exclude(text="").only("kind", "ref"):
        refs[old.kind].add(old.ref)
    activities = Activity.filter(**theirs).exclude(text="")
    refs["activity"] |= {str(row.number) for row in await activities.only("number")}
    for row in await Memory.filter(**theirs).exclude(text="").only("kind", "period"):
        refs[row.kind].add(row.period)
    ids: list[int] = []
    for part in chunks(sorted(refs["activity"])):
        numbered = Activity.filter(chat_id=chat_id, number__in=list(map(int, part)))
        ids += [row.id for row in await numbered.only("id")]
    blanked = await blank_notes(chat_id, ids) if ids else 0
    built_on: list[str] = []
    for kind in ("day", "month", "year"):
        above, more = await _blank_built_on(chat_id, kind, built_on) if built_on else (0, [])
        blanked += above + await _blank_periods(chat_id, kind, sorted(refs[kind]))
        built_on = sorted({*more, *refs[kind]})
    return blanked


async def _blank_periods(chat_id: int, kind: str, periods: Sequence[str]) -> int:
    blanked = 0
    for part in chunks(periods):
        memories = Memory.filter(chat_id=chat_id, kind=kind, period__in=part)
        blanked += await memories.exclude(text="").count()
        await memories.update(stale=True, merged=False, **_BLANK)
        earlier = NoteVersion.filter(chat_id=chat_id, kind=kind, ref__in=part)
        await earlier.update(blanked=True, **_BLANK)
    return blanked


async def _blank_built_on(chat_id: int, kind: str, sources: Sequence[str]) -> tuple[int, list[str]]:
    """Empty the memories of a kind, and their earlier texts, that hold such a source.

    Returns of how many memories a text is gone, and the periods of which any version was emptied.
    """
    told: dict[int, bool] = {}
    periods: set[str] = set()
    for part in chunks(sources):
        held = await sql.built_on(chat_id, kind, part, earlier=False)
        old = await sql.built_on(chat_id, kind, part, earlier=True)
        told |= {id_: text for id_, _, text in held if id_ not in told}
        periods |= {period for _, period, _ in (*held, *old)}
        for ids in chunks([id_ for id_, _, _ in held]):
            await Memory.filter(id__in=ids).update(stale=True, merged=False, **_BLANK)
        for ids in chunks([id_ for id_, _, _ in old]):
            await NoteVersion.filter(id__in=ids).update(blanked=True, **_BLANK)
    return sum(told.values()), sorted(periods)
