"""Named stores: memories that other programs keep, and the people whom each has registered.

A store is the chat `store:NAME` of the account `me`. No bot account can have that number, and
no registered person that name, so that nobody's words pass for the bot's own in an import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from tortoise.functions import Count

from ..errors import MemoryNotFound, MemoryRequestError
from ..types import ME, ChatKey
from . import search, sql
from .database import transactional
from .keys import chunks
from .models import Chat, Fact, Message, Speaker, SpeakerName
from .speakers import name_key

SPEAKER_LIMIT = 50
"""So many people a store registers until its own limit is set."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A person of a store."""

    name: str
    memories: int
    created_at: datetime
    """When they were registered."""


def chat_of(name: str) -> ChatKey:
    return ChatKey(ME, "store", name)


async def speaker_limit(chat_id: int) -> int:
    chat = await Chat.get(id=chat_id).only("id", "speaker_limit")
    return SPEAKER_LIMIT if chat.speaker_limit is None else chat.speaker_limit


async def set_speaker_limit(chat_id: int, limit: int) -> None:
    """Whoever is registered stays so, should there be more."""
    await Chat.filter(id=chat_id).update(speaker_limit=limit)


@transactional
async def register(chat_id: int, name: str, now: datetime) -> Registered:
    """Register a person; nothing changes when they are. Raises MemoryRequestError at the limit."""
    await sql.move_last_seqs({chat_id: 0})
    known = Speaker.filter(chat_id=chat_id, registered_at__not_isnull=True)
    person = await known.get_or_none(user_id=name)
    if person is not None:
        memories = Fact.filter(chat_id=chat_id, owner=name).exclude(text="")
        return Registered(name, await memories.count(), person.registered_at or now)
    limit = await speaker_limit(chat_id)
    if await known.count() >= limit:
        raise MemoryRequestError(
            f"The speaker limit of this store, {limit}, is reached."
            " Remove somebody, or raise the limit.",
            speaker_limit=limit,
        )
    speaker = Speaker(chat_id=chat_id, user_id=name, name=name, named_at=now)
    await Speaker.bulk_create([speaker], ignore_conflicts=True)
    await Speaker.filter(chat_id=chat_id, user_id=name).update(registered_at=now)
    called = SpeakerName(
        chat_id=chat_id, user_id=name, name=name, name_key=name_key(name), first_seen=now
    )
    await SpeakerName.bulk_create([called], ignore_conflicts=True)
    return Registered(name, 0, now)


async def registered(chat_id: int) -> list[Registered]:
    """Who is registered, in the order in which they were."""
    people = Speaker.filter(chat_id=chat_id, registered_at__not_isnull=True)
    rows = await people.order_by("registered_at", "id").values_list("user_id", "registered_at")
    there = Fact.filter(chat_id=chat_id).exclude(text="")
    counted = there.annotate(memories=Count("id")).group_by("owner")
    memories = dict(cast("list[tuple[str, int]]", await counted.values_list("owner", "memories")))
    return [Registered(name, memories.get(name, 0), at) for name, at in rows]


def unknown(name: str) -> MemoryNotFound:
    return MemoryNotFound(f"No speaker {name!r} is registered in this store.", speaker=name)


def unregistered(name: str) -> MemoryRequestError:
    return MemoryRequestError(
        f"No speaker {name!r} is registered in this store, so nothing was stored."
        " Register the name first.",
        speaker=name,
    )


async def must_know(chat_id: int, name: str) -> None:
    """Raises MemoryNotFound when nobody of that name is registered; `me` always is."""
    if not await knows(chat_id, name):
        raise unknown(name)


async def knows(chat_id: int, name: str) -> bool:
    people = Speaker.filter(chat_id=chat_id, user_id=name, registered_at__not_isnull=True)
    return name == ME or await people.exists()


@transactional
async def unregister(chat_id: int, name: str) -> int:
    """Strike a person off; what they said stays, as nobody's. Returns how many memories that is.

    Raises MemoryNotFound when nobody of that name is registered.
    """
    await sql.move_last_seqs({chat_id: 0})
    await must_know(chat_id, name)
    rows = await Fact.filter(chat_id=chat_id, owner=name)
    await _untag(chat_id, rows)
    person = {"chat_id": chat_id, "user_id": name}
    if await Message.filter(**person).exists():
        await Speaker.filter(**person).update(registered_at=None)
    else:
        await Speaker.filter(**person).delete()
        await SpeakerName.filter(**person).delete()
    return len(rows)


async def _untag(chat_id: int, rows: Sequence[Fact]) -> None:
    for part in chunks([row.id for row in rows if row.name is None]):
        await Fact.filter(id__in=part).update(owner="")
    for row in rows:
        if row.name is None:
            continue
        # Nobody's may be called so already: the text stays all the same, without a name.
        same = {"chat_id": chat_id, "owner": "", "category": row.category, "name": row.name}
        name = None if await Fact.filter(**same).exists() else row.name
        await Fact.filter(id=row.id).update(owner="", name=name)
    await search.add(chat_id, "fact", [row.id for row in rows])
