"""Speakers: who is who in a chat, and the names they have had."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import cast
import unicodedata

from ..types import Incoming
from .keys import chunks
from .models import Speaker, SpeakerName

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
        if known == message.name:
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


async def names_for_mentions(
    chat_id: int, messages: Iterable[Incoming], character: str
) -> Callable[[str], str | None]:
    """A look-up of the names of everybody whom these messages of one chat mention."""
    wanted: set[str] = set()
    names: dict[str, str] = {}
    for message in messages:
        names[message.chat.self_id] = character
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
