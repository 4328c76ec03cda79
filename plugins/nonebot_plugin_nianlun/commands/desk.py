"""What the commands need from the rest of the product."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from ..clock import Clock
from ..memory.calendar import Calendar
from ..memory.invariants import Inspection
from ..types import Activity, ChatKey, ChatStatus, Forgotten, Memory, MemoryKind, TidyReport


class Desk(Protocol):
    """The one place that commands ask. Its methods raise `NianlunError`, one line for a person."""

    @property
    def calendar(self) -> Calendar: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def members_read(self) -> bool:
        """Ordinary members of a group may read what is remembered of it."""
        ...

    @property
    def superusers(self) -> frozenset[str]:
        """QQ numbers as text."""
        ...

    def hears(self, chat: ChatKey) -> bool:
        """Whether this chat is served at all."""
        ...

    async def status(self, chat: ChatKey) -> ChatStatus: ...

    async def memory(self, chat: ChatKey, kind: MemoryKind, period: str) -> Memory | None: ...

    async def activities(self, chat: ChatKey, date: str) -> list[Activity]:
        """Those of one logical day (`YYYY-MM-DD`), in time order."""
        ...

    async def tidy(self, chat: ChatKey) -> TidyReport:
        """Do everything that the chat owes, now."""
        ...

    async def inspect(self, chat: ChatKey) -> Inspection:
        """Check that nothing is lost, taken twice, or kept against a withdrawal."""
        ...

    async def opt_out(self, chat: ChatKey, user_id: str, at: datetime) -> bool:
        """Stop recording a member's words from `at` on; False when they were not recorded."""
        ...

    async def opt_in(self, chat: ChatKey, user_id: str, at: datetime) -> bool:
        """Record a member's words again from `at` on; False when they are recorded already."""
        ...

    async def forget(self, chat: ChatKey, user_id: str, at: datetime) -> Forgotten:
        """Remove what a member said until `at`, with their names and facts."""
        ...
