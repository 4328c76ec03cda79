"""Speakers: who is who in a chat, and the names they have had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import cast
import unicodedata

from tortoise.expressions import F

from ..types import Incoming
from . import exclusions, sql
from .database import transactional
from .keys import chunks
from .models import Chat, Fact, Message, Speaker, SpeakerName
from .records import Person

_CACHED = 4096
_shown: dict[tuple[int, str], str] = {}
"""Names already on record, so that most messages need no query; bounded."""


def forget_cached_names() -> None:
    """Drop what was remembered about the database that was open."""
    _shown.clear()


def name_key(name: str) -> str:
    """What names are compared by: trimmed, in NFC, case kept; a long one is hashed."""
    key = unicodedata.normalize("NFC", name.strip())
    return key if len(key) <= 128 else sha256(key.encode()).hexdigest()


async def note_names(chat_id: int, messages: Iterable[Incoming]) -> None:
    """Register the speakers of new messages and keep every name that they show."""
    for message in messages:
        known = _shown.get((chat_id, message.user_id))
        if known == message.name or message.skipped == "opted_out":
            continue
        await _note_name(chat_id, message)
        if len(_shown) >= _CACHED:
            _shown.clear()
        _shown[chat_id, message.user_id] = message.name


async def _note_name(chat_id: int, message: Incoming) -> None:
    user_id = message.user_id[:128]
    await Speaker.bulk_create(
        [Speaker(chat_id=chat_id, user_id=user_id, name=message.name, named_at=message.time)],
        ignore_conflicts=True,
    )
    await Speaker.filter(chat_id=chat_id, user_id=user_id, named_at__lt=message.time).update(
        name=message.name, named_at=message.time
    )
    await SpeakerName.bulk_create(
        [
            SpeakerName(
                chat_id=chat_id,
                user_id=user_id,
                name=message.name,
                name_key=name_key(message.name),
                first_seen=message.time,
            )
        ],
        ignore_conflicts=True,
    )


async def register(chat_id: int, people: Sequence[tuple[str, str, datetime]]) -> None:
    """Put on record who (by user id) was called what and when, as an export tells it.

    Whoever is known keeps the name that is shown; see `settle_names`.
    """
    known = await exclusions.known_for([chat_id])
    people = [one for one in people if not exclusions.covers(known, chat_id, one[0], one[2])]
    if not people:
        return
    await Speaker.bulk_create(
        [
            Speaker(chat_id=chat_id, user_id=user_id, name=name, named_at=at)
            for user_id, name, at in people
        ],
        ignore_conflicts=True,
    )
    await SpeakerName.bulk_create(
        [
            SpeakerName(
                chat_id=chat_id,
                user_id=user_id,
                name=name,
                name_key=name_key(name),
                first_seen=at,
            )
            for user_id, name, at in people
        ],
        ignore_conflicts=True,
    )


async def restore(chat_id: int, person: Person, at: datetime) -> None:
    """Put somebody on record as an export of that time knows them; runs inside a transaction."""
    excluded = await exclusions.known_for([chat_id])
    if exclusions.covers(excluded, chat_id, person.user_id, at):
        return
    speaker = Speaker(
        chat_id=chat_id,
        user_id=person.user_id,
        name=person.name,
        named_at=at,
        opted_out_at=at if person.opted_out else None,
    )
    known = await Speaker.filter(chat_id=chat_id, user_id=person.user_id).exists()
    await Speaker.bulk_create([speaker], ignore_conflicts=True)
    await register(chat_id, [(person.user_id, name, at) for name in person.names])
    if person.opted_out and not known:
        await exclusions.begin(chat_id, person.user_id, at, at)


async def forget(chat_id: int, user_id: str) -> int:
    """Remove the names of a speaker; returns how many. Runs inside the caller's transaction."""
    names = await SpeakerName.filter(chat_id=chat_id, user_id=user_id).delete()
    speaker = Speaker.filter(chat_id=chat_id, user_id=user_id)
    await speaker.filter(opted_out_at=None).delete()
    await speaker.update(name=user_id)
    return names


@transactional
async def settle_names(chat_id: int, newest: Mapping[str, tuple[datetime, str]]) -> None:
    """Show these people (by user id) by the name they had then, unless they spoke later."""
    await Chat.filter(id=chat_id).update(last_seq=F("last_seq"))
    changed: list[str] = []
    excluded = await exclusions.known_for([chat_id])
    for part in chunks(list(newest)):
        for speaker in await Speaker.filter(chat_id=chat_id, user_id__in=part):
            at, name = newest[speaker.user_id]
            if exclusions.covers(excluded, chat_id, speaker.user_id, at):
                continue
            if name != speaker.name and speaker.named_at < at:
                changed.append(speaker.user_id)
    # The time of a shown name is that of its first message; what counts here is the last one.
    last_heard = await sql.last_heard(chat_id) if changed else {}
    for user_id in changed:
        at, name = newest[user_id]
        if user_id not in last_heard or datetime.fromisoformat(last_heard[user_id]) <= at:
            query = Speaker.filter(chat_id=chat_id, user_id=user_id)
            await query.update(name=name, named_at=at)


@transactional
async def forget_unheard(chat_id: int, user_ids: Iterable[str]) -> None:
    """Strike off those of whom nothing is left: all that they said is now known as another's."""
    await Chat.filter(id=chat_id).update(last_seq=F("last_seq"))
    for user_id in user_ids:
        if await Message.filter(chat_id=chat_id, user_id=user_id).exists():
            continue
        if await Fact.filter(chat_id=chat_id, owner=user_id).exists():
            continue
        if await Speaker.filter(chat_id=chat_id, user_id=user_id, opted_out_at=None).delete():
            await SpeakerName.filter(chat_id=chat_id, user_id=user_id).delete()


async def names_for_mentions(
    chat_id: int, messages: Iterable[Incoming], character: str
) -> Callable[[str], str | None]:
    """A look-up of the names of everybody whom these messages of one chat mention."""
    wanted: set[str] = set()
    names: dict[str, str] = {}
    for message in messages:
        names[message.chat.self_id] = character
        if message.skipped != "opted_out":
            names[message.user_id] = message.name
        for segment in message.segments:
            if segment["type"] == "at":
                wanted.add(str(segment["data"].get("qq", "")))
    missing = [user_id for user_id in wanted if user_id not in names]
    for part in chunks(missing):
        query = Speaker.filter(chat_id=chat_id, user_id__in=part)
        pairs = cast("list[tuple[str, str]]", await query.values_list("user_id", "name"))
        names.update(pairs)
    return names.get


async def current_names(chat_id: int, user_ids: Iterable[str]) -> dict[str, str]:
    """Today's names of these people; those who were never recorded are left out."""
    query = Speaker.filter(chat_id=chat_id, user_id__in=list(set(user_ids)))
    return dict(cast("list[tuple[str, str]]", await query.values_list("user_id", "name")))
