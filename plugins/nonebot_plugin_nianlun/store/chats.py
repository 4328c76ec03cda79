"""Chats: finding them, and what is known about their health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
import re
import sqlite3
from typing import cast

from tortoise.exceptions import OperationalError
from tortoise.expressions import F, Q

from ..errors import ChatError, NotAChat
from ..memory.invariants import LONGEST_LEASE
from ..memory.render import one_line
from ..memory.units import shortened
from ..types import ChatKey, ChatKind
from . import sql, traces
from .database import transactional, translate
from .keys import ID_LENGTH
from .models import Chat, Lease

LONGEST_WAIT = timedelta(hours=1)
"""So long at most a chat is left alone after failed jobs."""

_CHAT = re.compile(
    r"(?:(?P<account>[^/:]{1,64})/)?(?P<kind>group|private|store):(?P<peer>.{1,128})"
)
"""As long at most as the columns are. The name of a store may have slashes in it."""
_SHOWN = 60
_REASON = 500
"""Characters of an error that are kept."""
_ids: dict[ChatKey, int] = {}


def forget_cached_ids() -> None:
    """Drop what was remembered about the database that was open."""
    _ids.clear()


def key_of(chat: Chat) -> ChatKey:
    return ChatKey(chat.self_id, cast("ChatKind", chat.kind), chat.peer_id)


async def find(key: ChatKey) -> int | None:
    """The chat's row id, or None when nothing was ever recorded there."""
    if len(key.peer_id) > ID_LENGTH:
        return None
    if key not in _ids:
        row = await Chat.get_or_none(self_id=key.self_id, kind=key.kind, peer_id=key.peer_id)
        if row is None:
            return None
        _ids[key] = row.id
    return _ids[key]


async def ensure(keys: Sequence[ChatKey], now: datetime) -> dict[ChatKey, int]:
    """Row ids of the chats, creating those that are new. Raises StoreError."""
    new = [
        Chat(self_id=key.self_id, kind=key.kind, peer_id=key.peer_id, created_at=now)
        for key in keys
        if key not in _ids
    ]
    try:
        if new:
            await Chat.bulk_create(new, ignore_conflicts=True)
        found = {key: await find(key) for key in keys}
    except (OperationalError, sqlite3.Error) as error:
        raise translate(error) from error
    return {key: chat_id for key, chat_id in found.items() if chat_id is not None}


async def row(key: ChatKey) -> Chat | None:
    return await Chat.get_or_none(self_id=key.self_id, kind=key.kind, peer_id=key.peer_id)


async def everyone() -> list[Chat]:
    """All chats, oldest first."""
    return await Chat.all().order_by("id")


async def resolve(text: str) -> ChatKey:
    """The chat that a person means by `group:123` or `10001/group:123`.

    Raises NotAChat when the text is no chat, and ChatError when no such chat was recorded or
    when two bot accounts have it.
    """
    named = _CHAT.fullmatch(text.strip())
    if named is None:
        shown = shortened(one_line(text), _SHOWN)
        raise NotAChat(f"「{shown}」不是会话：请写成 group:群号 或 private:QQ号")
    query = Chat.filter(kind=named["kind"], peer_id=named["peer"])
    found = await (query.filter(self_id=named["account"]) if named["account"] else query)
    if not found:
        raise ChatError(f"没有记录过 {shortened(one_line(text), _SHOWN)} 这个会话")
    if len(found) > 1:
        names = "、".join(key_of(chat).full for chat in found)
        raise ChatError(f"{text} 在几个机器人账号里都有，请写全：{names}")
    return key_of(found[0])


@transactional
async def note_failure(chat_id: int, error: str, now: datetime, erasure: str | None = None) -> None:
    """Write down a failed job; the next try waits twice as long, an hour at most.

    `erasure` names the last one before the job began: an error may tell what was read.
    """
    chat = Chat.filter(id=chat_id)
    await chat.update(failures=F("failures") + 1, last_error_at=now)
    told = error if await traces.last_erasure(chat_id) == erasure else traces.REPLACED
    await chat.update(last_error=shortened(told, _REASON))
    failures = (await chat.get()).failures
    wait = min(timedelta(minutes=2 ** min(failures - 1, 6)), LONGEST_WAIT)
    await chat.update(retry_at=now + wait)


@transactional
async def note_success(chat_id: int) -> None:
    """The chat's jobs work again. The last error stays readable."""
    await Chat.filter(id=chat_id, failures__gt=0).update(failures=0, retry_at=None)


@transactional
async def claim(
    chat_id: int,
    work: str,
    holder: str,
    now: datetime,
    until: datetime,
    is_gone: Callable[[str], bool],
) -> bool:
    """Take a piece of work unless somebody else holds it; True when it is ours until then.

    A lease that has expired is taken over, one whose holder `is_gone` as well, and one that
    a clock far ahead of ours has given out.
    """
    leases = Lease.filter(chat_id=chat_id, work=work)
    await leases.filter(Q(expires_at__lt=now) | Q(expires_at__gt=now + LONGEST_LEASE)).delete()
    await Lease.bulk_create(
        [Lease(chat_id=chat_id, work=work, holder=holder, expires_at=until)],
        ignore_conflicts=True,
    )
    lease = await Lease.get(chat_id=chat_id, work=work)
    if lease.holder != holder and not is_gone(lease.holder):
        return False
    await Lease.filter(id=lease.id).update(holder=holder, expires_at=until)
    return True


@transactional
async def release(chat_id: int, work: str, holder: str) -> None:
    await Lease.filter(chat_id=chat_id, work=work, holder=holder).delete()


async def with_work() -> list[tuple[int, ChatKey, datetime | None]]:
    """Chats that may owe something: row id, key, and when to try again after a failure."""
    rows = await Chat.filter(id__in=await sql.chats_with_work()).order_by("id")
    return [(chat.id, key_of(chat), chat.retry_at) for chat in rows]
