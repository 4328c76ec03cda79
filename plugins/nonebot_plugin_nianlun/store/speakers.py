"""Speakers: who is who in a chat, and the names they have had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import cast
import unicodedata

from tortoise.expressions import F

from ..capture.cleaning import clean_text
from ..errors import SpeakerError
from ..memory.render import one_line
from ..types import ME, Incoming
from . import exclusions, sql
from .database import transactional
from .keys import chunks, short_id
from .models import Chat, Fact, Message, Speaker, SpeakerName
from .records import Person

_CACHED = 4096
_shown: dict[tuple[int, str], tuple[str, tuple[exclusions.Span, ...]]] = {}
"""Names already on record since the chat was cleared last, so that most messages need no query;
bounded."""


def forget_cached_names() -> None:
    """Drop what was remembered about the database that was open."""
    _shown.clear()


def name_key(name: str) -> str:
    """What names are compared by: trimmed, in NFC, case kept; a long one is hashed."""
    key = unicodedata.normalize("NFC", name.strip())
    return key if len(key) <= 128 else sha256(key.encode()).hexdigest()


async def note_names(
    chat_id: int, messages: Iterable[Incoming], excluded: exclusions.Known
) -> None:
    """Register the speakers of new messages and keep every name that they show.

    `excluded` are the exclusions of the chat.
    """
    for message in messages:
        known = _shown.get((chat_id, message.user_id))
        if exclusions.by_name(excluded, chat_id, message.user_id):
            known = None  # another process may have struck off the name
        shown = message.name, exclusions.cleared(excluded, chat_id)
        if known == shown or message.skipped in exclusions.UNRECORDED:
            continue
        user_id, key = short_id(message.user_id), name_key(message.name)
        await sql.note_name(chat_id, user_id, message.name, key, message.time)
        if len(_shown) >= _CACHED:
            _shown.clear()
        _shown[chat_id, message.user_id] = shown


async def register(chat_id: int, people: Sequence[tuple[str, str, datetime]]) -> None:
    """Put on record who (by user id) was called what and when, as an export tells it.

    Whoever is known keeps the name that is shown; see `settle_names`. What was not recorded, or is
    masked, has no name: that is not one that anybody has.
    """
    known = await exclusions.known_for([chat_id])
    people = [
        (user_id, name, at)
        for user_id, name, at in people
        if name and not exclusions.covers(known, chat_id, user_id, at)
    ]
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
    if exclusions.concerns(excluded, chat_id, person.user_id):
        # The names of a file have no times: they may be what was forgotten. What they are called
        # since then is in their messages.
        person = replace(person, name=person.user_id, names=(), names_since=())
        if not person.opted_out:
            return
    speaker = Speaker(
        chat_id=chat_id,
        user_id=person.user_id,
        name=person.name,
        named_at=person.named_at or at,
        opted_out_at=(person.opted_out_at or at) if person.opted_out else None,
    )
    known = await Speaker.filter(chat_id=chat_id, user_id=person.user_id).exists()
    await Speaker.bulk_create([speaker], ignore_conflicts=True)
    if person.registered_at is not None and person.user_id != ME:
        # A limit is for whoever registers people, not for what is brought back.
        unregistered = Speaker.filter(
            chat_id=chat_id, user_id=person.user_id, registered_at__isnull=True
        )
        await unregistered.update(registered_at=person.registered_at)
    seen = person.names_since or (at,) * len(person.names)
    names = zip(person.names, seen, strict=True)
    await register(chat_id, [(person.user_id, name, since) for name, since in names])
    if person.opted_out and person.opted_out_at is None and not known:
        await exclusions.begin(chat_id, person.user_id, at, at)


async def forget(chat_id: int, user_id: str) -> int:
    """Remove the names of a speaker; returns how many. Runs inside the caller's transaction."""
    user_id = short_id(user_id)
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
            _shown.pop((chat_id, user_id), None)  # the next message may show the earlier name again


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
        if message.skipped not in exclusions.UNRECORDED:
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


async def bearers(chat_id: int, names: Iterable[str]) -> dict[str, str]:
    """Everybody who is or was called by one of these names, by user id, with that name."""
    keys = {name_key(name) for name in names}
    query = SpeakerName.filter(chat_id=chat_id, name_key__in=sorted(keys)).order_by("id")
    return dict(cast("list[tuple[str, str]]", await query.values_list("user_id", "name")))


async def resolve(chat_id: int, name_or_number: str) -> str:
    """The user id of whom a person means: by number, or by any name that they have ever had.

    Raises SpeakerError when nobody is called so, or several people are, or were.
    """
    key = name_key(clean_text(name_or_number))
    if key == ME:
        return ME
    if key.lower() == ME:
        raise SpeakerError(f"机器人自己写作 {ME}，全部小写")
    if await Speaker.filter(chat_id=chat_id, user_id=key).exists():
        return key
    named = SpeakerName.filter(chat_id=chat_id, name_key=key).distinct()
    found = tuple(cast("list[str]", await named.values_list("user_id", flat=True)))
    if len(found) == 1:
        return found[0]
    shown = one_line(name_or_number)
    if not found:
        raise SpeakerError(f"这里没有叫 {shown} 的人")
    several = tuple(sorted(found))
    raise SpeakerError(f"叫 {shown} 的不止一人，请写号码：{'、'.join(several)}", several)
