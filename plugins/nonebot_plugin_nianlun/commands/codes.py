"""One-time codes: what cannot be undone is asked for twice."""

from __future__ import annotations

from datetime import datetime, timedelta
import secrets

from ..types import ChatKey

VALID = timedelta(minutes=10)


def wrong_code(nothing: str, again: str) -> str:
    """What a code that does not serve is answered; `nothing`: what was not done."""
    return f"确认码不对，或者已经过了 10 分钟，{nothing}。要重新来，请发送：{again}"


class Codes:
    """Codes, each for one person, one chat and one purpose; a new one replaces the last."""

    def __init__(self) -> None:
        self._given: dict[tuple[ChatKey, str, str], tuple[str, datetime]] = {}

    def give(self, chat: ChatKey, user_id: str, now: datetime, purpose: str = "") -> str:
        """Six digits that serve for ten minutes."""
        valid = {key: given for key, given in self._given.items() if now < given[1]}
        code = f"{secrets.randbelow(1_000_000):06}"
        self._given = {**valid, (chat, user_id, purpose): (code, now + VALID)}
        return code

    def take(
        self, chat: ChatKey, user_id: str, code: str, now: datetime, purpose: str = ""
    ) -> bool:
        """Whether this is that person's code for it here; if so, it serves no more."""
        given, until = self._given.get((chat, user_id, purpose), ("", now))
        if now >= until or not secrets.compare_digest(given, code):
            return False
        del self._given[chat, user_id, purpose]
        return True
