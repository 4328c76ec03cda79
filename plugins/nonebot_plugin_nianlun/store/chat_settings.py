"""What those who govern a chat have set for it."""

from __future__ import annotations

from typing import TypedDict, Unpack

from ..types import ChatKey
from . import chats, sql
from .database import transactional
from .models import Chat


class Settings(TypedDict, total=False):
    """The settings that commands change; what is None is as the product's settings say."""

    muted: bool
    persona: str | None
    daily_token_limit: int | None
    members_read: bool | None


@transactional
async def change(chat_id: int, **settings: Unpack[Settings]) -> bool:
    """Set these; False when all of them were so already."""
    await sql.move_last_seqs({chat_id: 0})
    chat = await Chat.get(id=chat_id)
    if all(getattr(chat, name) == value for name, value in settings.items()):
        return False
    await Chat.filter(id=chat_id).update(**settings)
    return True


async def muted_chats() -> frozenset[ChatKey]:
    """The chats in which the bot says nothing of its own accord."""
    return frozenset(chats.key_of(chat) for chat in await Chat.filter(muted=True))
