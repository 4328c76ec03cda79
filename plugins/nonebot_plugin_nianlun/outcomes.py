"""How the writing of facts and diary after turns went lately, chat by chat, in this process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from .clock import Clock
from .memory.units import shortened
from .types import ChatKey

_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    error: str | None = None
    """One line for a person; None when the last try went well."""
    error_at: datetime | None = None
    """When it last failed, whatever came after."""
    success_at: datetime | None = None


class Outcomes:
    """Trouble here never reaches the talk, so this is where it must be seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: dict[ChatKey, Outcome] = {}

    def of(self, chat: ChatKey) -> Outcome:
        return self._of.get(chat, Outcome())

    def succeeded(self, chat: ChatKey) -> None:
        self._of[chat] = replace(self.of(chat), error=None, success_at=self._clock.now())

    def failed(self, chat: ChatKey, reason: str) -> None:
        reason = shortened(" ".join(reason.split()), _LONGEST_REASON)
        self._of[chat] = replace(self.of(chat), error=reason, error_at=self._clock.now())
