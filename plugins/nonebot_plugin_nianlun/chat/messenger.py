"""Saying an answer: in parts, at a person's pace, and nothing twice."""

from __future__ import annotations

import asyncio

from nonebot import logger
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    ApiNotAvailable,
    Bot,
    MessageEvent,
    NetworkError,
)

from ..capture.outgoing import ambiguous
from ..types import ChatKey
from .delivery import Purpose, send_text
from .parts import LONGEST_PART, MOST_PARTS, pauses, reply_parts
from .silences import Silences, is_refusal

_LONGEST = MOST_PARTS * LONGEST_PART
_MOST_UNCERTAIN = 1
"""After so many parts of which nobody knows whether they arrived, one more ends the answer."""


class Messenger:
    """Sends what the bot says in a talk, part after part."""

    def __init__(self, characters: int, typing_speed: int, silences: Silences) -> None:
        """`characters`: what is longer goes out as several messages; `typing_speed` in
        characters a second."""
        self._characters = characters
        self._typing_speed = typing_speed
        self._silences = silences

    async def say(
        self,
        chat: ChatKey,
        bot: Bot,
        event: MessageEvent,
        text: str,
        purpose: Purpose = "reply",
        *,
        quote: bool = False,
    ) -> bool:
        """Send `text` where `event` came from, under a quotation of it with `quote`.

        Returns whether any of it may have arrived. Never raises for a failed delivery, and
        never sends again what failed: it may have arrived all the same.
        """
        if len(text) > _LONGEST:
            logger.warning(f"{chat} 的一条回复有 {len(text)} 字，只发前 {_LONGEST} 字")
        parts = reply_parts(text[:_LONGEST], self._characters)
        arrived = uncertain = 0
        waits = pauses(parts, self._typing_speed)
        for number, (part, pause) in enumerate(zip(parts, waits, strict=True)):
            await asyncio.sleep(pause)
            if number and self._silences.reason(chat):
                break
            tried_at = asyncio.get_running_loop().time()
            try:
                await send_text(bot, event, part, purpose=purpose, quote=quote and not number)
                self._silences.worked(chat, tried_at)
                arrived += 1
            except (ActionFailed, ApiNotAvailable, NetworkError) as error:
                uncertain += self._may_have_arrived(chat, error)
                if uncertain > _MOST_UNCERTAIN or not ambiguous(error):
                    break
        if left := len(parts) - arrived - uncertain:
            logger.warning(f"{chat} 的一条回复有 {left} 段没有发")
        return arrived + uncertain > 0

    def _may_have_arrived(self, chat: ChatKey, error: Exception) -> bool:
        uncertain = ambiguous(error)
        if isinstance(error, ActionFailed) and is_refusal(error, uncertain):
            self._silences.refused(chat, error)
        state = "不确定有没有发出去" if uncertain else "没有发出去"
        logger.warning(f"{chat} 的一条回复{state}：{error!r}")
        return uncertain
