"""Whether an answer may still be said, once it is written: while a model thinks, people take back
what they said, and an answer would quote it after all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import Overtaken
from ..store import messages, traces
from ..store.exclusions import UNRECORDED

Verdict: TypeAlias = Literal["stands", "overtaken", "unasked"]
"""`overtaken`: what it was made from may hold words that are gone since, so that it has to be made
anew; `unasked`: all that it answers was taken back."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What an answer rests on: the memory as it was read for it and by its tools, here and in
    linked chats, and the lines that it answers."""

    chat_id: int
    read: traces.Reading
    asked: Sequence[str]
    """Platform ids."""

    async def verdict(self) -> Verdict:
        """Raises StoreError."""
        try:
            await traces.check(self.chat_id, self.read)
        except Overtaken:
            return "overtaken" if await self.is_asked() else "unasked"
        return "stands"

    async def is_asked(self) -> bool:
        """Whether any of what it answers is still there. Raises StoreError."""
        rows = [await messages.newest(self.chat_id, message_id) for message_id in self.asked]
        # Of what is not recorded, no words are known.
        known = [row for row in rows if row is not None and row.skipped not in UNRECORDED]
        return not known or any(row.text or row.skipped == "empty" for row in known)
