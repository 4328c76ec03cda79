"""What members ask about themselves: not to be recorded, to be recorded again, to be forgotten."""

from __future__ import annotations

from datetime import datetime, timedelta
import secrets

from ..types import ChatKey
from .desk import Desk
from .tree import Request
from .views import ask_before_forgetting, forgotten_view, opted_in_view, opted_out_view

_VALID = timedelta(minutes=10)
_WRONG_CODE = "确认码不对，或者已经过了 10 分钟，什么都没有清掉。要重新来，请发送：{head} 忘记我"


class Codes:
    """One-time codes, each for one person in one chat; a new one replaces the last."""

    def __init__(self) -> None:
        self._given: dict[tuple[ChatKey, str], tuple[str, datetime]] = {}

    def give(self, chat: ChatKey, user_id: str, now: datetime) -> str:
        """Six digits that serve for ten minutes."""
        valid = {key: given for key, given in self._given.items() if now < given[1]}
        code = f"{secrets.randbelow(1_000_000):06}"
        self._given = {**valid, (chat, user_id): (code, now + _VALID)}
        return code

    def take(self, chat: ChatKey, user_id: str, code: str, now: datetime) -> bool:
        """Whether this is the code of this person here; if so, it serves no more."""
        given, until = self._given.get((chat, user_id), ("", now))
        if now >= until or not secrets.compare_digest(given, code):
            return False
        del self._given[chat, user_id]
        return True


class AboutMe:
    """Serves the speaker of a command, about nobody else."""

    def __init__(self, desk: Desk, head: str) -> None:
        """`head` is how a command begins."""
        self._desk = desk
        self._head = head
        self._codes = Codes()

    async def serve(self, chat: ChatKey, user_id: str, at: datetime, request: Request) -> str:
        """Do what was asked for at that time; returns the answer."""
        match request.verb:
            case "别记我":
                return opted_out_view(await self._desk.opt_out(chat, user_id, at), self._head)
            case "可以记我":
                return opted_in_view(await self._desk.opt_in(chat, user_id, at))
            case _:
                return await self._forget(chat, user_id, at, request.code)

    async def _forget(self, chat: ChatKey, user_id: str, at: datetime, code: str) -> str:
        now = self._desk.clock.now()
        if not code:
            code = self._codes.give(chat, user_id, now)
            return ask_before_forgetting(f"{self._head} 忘记我 {code}")
        if not self._codes.take(chat, user_id, code, now):
            return _WRONG_CODE.format(head=self._head)
        forgotten = await self._desk.forget(chat, user_id, at)
        return forgotten_view(forgotten, chat.kind, self._head)
