"""Chats in which the bot was told to say nothing of its own accord."""

from __future__ import annotations

from ..store import chat_settings
from ..types import ChatKey


class Mutes:
    """Known without asking the database, which may be in trouble when somebody calls."""

    def __init__(self) -> None:
        self._chats: frozenset[ChatKey] = frozenset()

    def __contains__(self, chat: ChatKey) -> bool:
        return chat in self._chats

    async def look(self) -> None:
        """See what was set, by whichever process."""
        self._chats = await chat_settings.muted_chats()
