"""What the present database knows was taken back, told to a copy that is older than that."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
import sqlite3
from typing import NamedTuple, cast

from tortoise.expressions import Q

from ..types import ME, ChatKey, ChatKind, Withdrawal
from . import (
    chats,
    clearing,
    deleting,
    exclusions,
    forgetting,
    gaps,
    leaving_out,
    pauses,
    speakers,
    sql,
    traces,
    withdrawals,
)
from .database import BUSY_TIMEOUT_MS, close_store, connect, open_store, transactional
from .models import Chat, Exclusion, Property
from .models import Message as MessageRow


class Excluded(NamedTuple):
    reason: str
    user_id: str | None
    message_id: str | None
    begins: datetime | None
    ends: datetime | None
    created_at: datetime
    subject: str | None


class Known(NamedTuple):
    """What the present database knows of a chat that the copy may not know yet."""

    id: int
    key: ChatKey
    created_at: datetime
    exclusions: list[Excluded]
    masked: list[tuple[int, datetime, datetime]]
    """Messages without words: number, when it was said, when it was taken back."""


def known(path: Path) -> list[Known]:
    with closing(connect(path, BUSY_TIMEOUT_MS / 1000)) as connection:
        connection.execute("BEGIN")
        found = connection.execute(
            "SELECT id, self_id, kind, peer_id, created_at FROM nianlun_chat ORDER BY id"
        ).fetchall()
        return [
            Known(
                id_,
                ChatKey(self_id, cast("ChatKind", kind), peer_id),
                datetime.fromisoformat(created_at),
                _exclusions(connection, id_),
                _masked(connection, id_),
            )
            for id_, self_id, kind, peer_id, created_at in found
        ]


def _exclusions(connection: sqlite3.Connection, chat_id: int) -> list[Excluded]:
    rows = connection.execute(
        "SELECT reason, user_id, message_id, begins, ends, created_at, subject"
        " FROM nianlun_exclusion WHERE chat_id = ? ORDER BY id",
        (chat_id,),
    )
    return [
        Excluded(
            reason, user_id, message_id, _moment(begins), _moment(ends),
            datetime.fromisoformat(created_at), subject,
        )
        for reason, user_id, message_id, begins, ends, created_at, subject in rows
    ]  # fmt: skip


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _masked(connection: sqlite3.Connection, chat_id: int) -> list[tuple[int, datetime, datetime]]:
    rows = connection.execute(
        "SELECT seq, time, COALESCE(withdrawn_at, time) FROM nianlun_message WHERE chat_id = ?"
        " AND (withdrawn_at IS NOT NULL OR skipped IN ('opted_out', 'paused'))",
        (chat_id,),
    )
    moment = datetime.fromisoformat
    return [(seq, moment(said_at), moment(at)) for seq, said_at, at in rows]


async def carry_over(fresh: Path, present: list[Known]) -> int:
    """Take back in the copy what has been taken back since; returns how much that was.

    Chats that are newer than the copy are made in it, empty: whoever has the database open knows
    a chat by its number.
    """
    await open_store(fresh)
    try:
        await _note_gaps(datetime.now(UTC))
        count = sum([await _carry_over_chat(fresh, chat) for chat in present])
        remover = traces.Traces(fresh)
        await remover.remove(hurry=True)
        return count
    finally:
        await close_store()
        chats.forget_cached_ids()
        speakers.forget_cached_names()


async def _note_gaps(now: datetime) -> None:
    """What was said since the copy was made is not in it."""
    for mark in await Property.filter(key__startswith=gaps.ALIVE):
        at = datetime.fromisoformat(mark.value)
        if now - at < gaps.SHORTEST:
            continue
        missed = await gaps.recorded_before(mark.key.removeprefix(gaps.ALIVE), at)
        await gaps.note({chat.chat_id: (at, now) for chat in missed})


async def _carry_over_chat(path: Path, chat: Known) -> int:
    row = await chats.row(chat.key)
    if row is None:
        if not await Chat.filter(id=chat.id).exists():
            await Chat.create(
                id=chat.id,
                self_id=chat.key.self_id,
                kind=chat.key.kind,
                peer_id=chat.key.peer_id,
                created_at=chat.created_at,
            )
        return 0
    count = 0
    for excluded in chat.exclusions:
        count += await _exclude(path, row.id, chat.key, excluded)
    return count + await mask(row.id, chat.masked)


async def _exclude(path: Path, chat_id: int, key: ChatKey, new: Excluded) -> bool:
    """Record one exclusion, and do what it asks; False when the copy has it."""
    whose = {"reason": new.reason, "user_id": new.user_id, "message_id": new.message_id}
    same = Exclusion.filter(chat_id=chat_id, **whose, subject=new.subject)
    if await same.filter(begins=new.begins, ends=new.ends).exists():
        return False
    if new.reason == "withdrawn" and new.message_id is not None:
        notice = Withdrawal(key, new.message_id, new.user_id, new.begins or new.created_at)
        await _withdraw(chat_id, notice)
    elif new.reason == "forgotten" and new.user_id is not None and new.ends is not None:
        if new.user_id != ME:
            await forgetting.forget(chat_id, new.user_id, new.ends - exclusions.THAT_SECOND)
        else:
            await clearing.clear(path, chat_id, new.ends - exclusions.THAT_SECOND)
    elif new.reason == "opted_out" and new.user_id is not None:
        begins = new.begins or new.created_at
        if new.ends is None:
            await exclusions.opt_out(chat_id, new.user_id, begins, new.created_at)
        elif await same.filter(begins=begins, ends=None).exists():
            await exclusions.opt_in(chat_id, new.user_id, new.ends)
        else:
            await leaving_out.leave_out(chat_id, new.user_id, begins, new.ends, new.created_at)
    elif new.reason == "paused" and new.begins is not None:
        if not await same.filter(begins=new.begins).exists():
            await pauses.pause(chat_id, new.begins, new.created_at)
        if new.ends is not None:
            await pauses.resume(chat_id, new.ends)
    else:
        await _remove_again(chat_id, new)
    return new.user_id != ME


@transactional
async def _withdraw(chat_id: int, notice: Withdrawal) -> None:
    await sql.move_last_seqs({chat_id: 0})
    await withdrawals.withdraw(chat_id, notice)


@transactional
async def _remove_again(chat_id: int, new: Excluded) -> None:
    await sql.move_last_seqs({chat_id: 0})
    await deleting.remove_again(await Exclusion.create(chat_id=chat_id, **new._asdict()))


@transactional
async def mask(chat_id: int, masked: list[tuple[int, datetime, datetime]]) -> int:
    """Mask what has no words any more in the present database, for whatever reason."""
    await sql.move_last_seqs({chat_id: 0})
    count = 0
    for seq, said_at, at in masked:
        same = MessageRow.filter(chat_id=chat_id, seq=seq, time=said_at, withdrawn_at=None)
        if await same.exclude(Q(text="", segments="[]")).exists():
            await withdrawals.mask(chat_id, seq, at)
            count += 1
    return count
