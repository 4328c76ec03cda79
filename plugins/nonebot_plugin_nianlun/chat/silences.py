"""Chats that take no messages of the bot: muted, removed, refused. When to try again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
import re

from nonebot import logger
from nonebot.adapters.onebot.v11 import ActionFailed

from ..types import ChatKey

REFUSALS = 3
"""So many refusals in a row, whatever the reason, bring a rest."""
FIRST_REST, LONGEST_REST = 60.0, 3600.0
"""Seconds. A notice that the mute is over may be missed, so no rest is longer."""
_GOCQ_SEND_ERROR = 100
# 120 is QQ's own code for it, which implementations pass on.
_MUTED = re.compile(r"禁言|\bmuted?\b|\"?(?:result|code)\"?\s*[:=]\s*120\b", re.IGNORECASE)


@dataclass(slots=True)
class _Silence:
    reason: str
    since: float
    until: float
    refusals: int


class Silences:
    """Keeps the bot from writing replies that cannot be sent, and from trying without end."""

    def __init__(self) -> None:
        self._of: dict[ChatKey, _Silence] = {}

    def reason(self, chat: ChatKey) -> str | None:
        """One line for a person why nothing is sent there now; None where all is well."""
        silence = self._of.get(chat)
        return silence.reason if silence is not None and silence.until > _now() else None

    def begin(self, chat: ChatKey, reason: str, seconds: float) -> None:
        """Send nothing there for so long; a log line the first time."""
        known = self._of.get(chat)
        if known is None or known.reason != reason:
            logger.warning(f"{chat} {reason}，暂时不在那里说话")
        refusals = known.refusals if known is not None else 0
        now = _now()
        self._of[chat] = _Silence(reason, now, now + min(seconds, LONGEST_REST), refusals)

    def end(self, chat: ChatKey) -> None:
        """Sending works again, or may."""
        known = self._of.pop(chat, None)
        if known is not None and known.until:
            logger.success(f"{chat} 又可以说话了")

    def worked(self, chat: ChatKey, tried_at: float) -> None:
        """Take notice that a message arrived that was sent at `tried_at` by the loop's clock.

        A mute may be told of before the result of what was sent ahead of it.
        """
        known = self._of.get(chat)
        if known is not None and known.since <= tried_at:
            self.end(chat)

    def refused(self, chat: ChatKey, error: ActionFailed) -> None:
        """Take notice that a message was refused: more and more time before the next try."""
        known = self._of.get(chat)
        refusals = 1 if known is None else known.refusals + 1
        muted = is_mute(error)
        if muted or refusals >= REFUSALS:
            doublings = min(refusals - (1 if muted else REFUSALS), 10)
            reason = "机器人被禁言了" if muted else f"连续 {REFUSALS} 条以上消息被拒绝发送"
            self.begin(chat, reason, FIRST_REST * 2**doublings)
            self._of[chat].refusals = refusals
        else:
            self._of[chat] = _Silence("有一条消息被拒绝发送", _now(), 0.0, refusals)


def is_refusal(error: ActionFailed, ambiguous: bool) -> bool:
    """Whether a failure tells that the chat takes no messages, and not just that time ran out.

    go-cqhttp has one code for both.
    """
    return not ambiguous or error.info.get("retcode") == _GOCQ_SEND_ERROR or is_mute(error)


def is_mute(error: ActionFailed) -> bool:
    """Whether the other side names a mute as the reason."""
    info = error.info
    return bool(_MUTED.search(" ".join(str(info.get(key)) for key in ("message", "wording"))))


def _now() -> float:
    return asyncio.get_running_loop().time()
