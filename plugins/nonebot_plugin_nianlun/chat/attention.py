"""Whether a line wants a reply: somebody calls, or the bot may join in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import time
import random

from nonebot.adapters.onebot.v11 import MessageEvent

from ..clock import Clock
from ..config import Settings
from ..memory.calendar import Calendar
from ..types import ChatKey
from .chains import Chains


class Attention:
    """Decides for all chats. The call of a person is always heard, at night as well."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        calendar: Calendar,
        dice: Callable[[], float] = random.random,
    ) -> None:
        """`dice` gives numbers from 0 until before 1."""
        self._chance = settings.chime_in
        self._keywords = tuple(word.casefold() for word in settings.keywords)
        self._cooldown = settings.chime_in_minutes * 60.0
        self._quiet_hours = settings.quiet_hours
        self._clock = clock
        self._calendar = calendar
        self._dice = dice
        self._chains = Chains(settings.bots, settings.bot_replies, settings.fast_replies)
        self._chimed_at: dict[ChatKey, float] = {}

    @property
    def chimes(self) -> bool:
        """Whether the bot ever speaks in a group without being called."""
        return bool(self._keywords) or self._chance > 0

    def heard(self, chat: ChatKey, user_id: str) -> None:
        """Take notice of any line of a chat."""
        self._chains.heard(chat, user_id, _now())

    def admits(self, chat: ChatKey, user_id: str) -> bool:
        """Whether this one's call is answered: not in an endless talk of bots."""
        return self._chains.admits(chat, user_id, _now())

    def answered(self, chat: ChatKey, user_id: str) -> None:
        """Take notice that this one got a reply."""
        self._chains.answered(chat, user_id, _now())

    def joins_in(self, chat: ChatKey, event: MessageEvent) -> bool:
        """Whether to answer a line of a group that does not call. A yes starts the cool-down."""
        text, now = event.get_plaintext().strip(), _now()
        if chat.kind != "group" or not text or self._chains.is_bot(str(event.user_id)):
            return False
        if now - self._chimed_at.get(chat, float("-inf")) < self._cooldown or self._is_quiet():
            return False
        folded = text.casefold()
        if not any(word in folded for word in self._keywords) and self._dice() >= self._chance:
            return False
        self._chimed_at[chat] = now
        return True

    def _is_quiet(self) -> bool:
        if self._quiet_hours is None:
            return False
        return within(self._calendar.local(self._clock.now()).time(), self._quiet_hours)


def within(moment: time, hours: tuple[time, time]) -> bool:
    """Whether a time of day is in these hours, which may go past midnight; the end is not."""
    begins, ends = hours
    if begins < ends:
        return begins <= moment < ends
    return moment >= begins or moment < ends


def _now() -> float:
    return asyncio.get_running_loop().time()
