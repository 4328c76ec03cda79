"""Bots that answer bots: how long the bot goes along before it keeps quiet."""

from __future__ import annotations

from dataclasses import dataclass

from nonebot import logger

from ..types import ME, ChatKey

FAST_SECONDS = 3.0
"""Who begins to answer within so many seconds, time after time, is hardly a person."""
REST_SECONDS = 600.0


@dataclass(slots=True)
class _Exchange:
    """The replies to one person in a row, each of them answered faster than people type."""

    asker: str
    answered_at: float
    replies: int = 1
    fast: bool | None = None
    """Whether the next line came fast; None until it comes."""


class Chains:
    """Counts replies in a row, chat by chat. Times are in seconds of any steady clock."""

    def __init__(self, bots: frozenset[str], most_to_bots: int, most_fast: int) -> None:
        """`bots` are known to be bots, by user id: they get at most `most_to_bots` replies
        with nobody else speaking in between. To anybody else, after `most_fast` fast ones,
        there is a rest; 0 is without bound.
        """
        self._bots = bots
        self._most_to_bots = most_to_bots
        self._most_fast = most_fast
        self._to_bots: dict[ChatKey, int] = {}
        self._exchanges: dict[ChatKey, _Exchange] = {}

    def is_bot(self, user_id: str) -> bool:
        return user_id in self._bots

    def heard(self, chat: ChatKey, user_id: str, now: float) -> None:
        """Take notice of any line of a chat."""
        if user_id not in self._bots and user_id != ME:
            self._to_bots.pop(chat, None)
        exchange = self._exchanges.get(chat)
        if exchange is not None and exchange.asker == user_id and exchange.fast is None:
            exchange.fast = now - exchange.answered_at <= FAST_SECONDS

    def admits(self, chat: ChatKey, user_id: str, now: float) -> bool:
        """Whether this one may be answered."""
        if user_id in self._bots:
            return self._to_bots.get(chat, 0) < self._most_to_bots
        exchange = self._exchanges.get(chat)
        if exchange is None or exchange.asker != user_id or not self._is_over(exchange):
            return True
        return now - exchange.answered_at > REST_SECONDS

    def answered(self, chat: ChatKey, user_id: str, now: float) -> None:
        """Take notice that this one got a reply."""
        if user_id in self._bots:
            self._to_bots[chat] = self._to_bots.get(chat, 0) + 1
            if self._to_bots[chat] >= self._most_to_bots:
                logger.info(f"{chat} 和机器人 {user_id} 接话到此为止，等有人说话再接")
            return
        exchange = self._exchanges.get(chat)
        replies = 1
        if exchange is not None and exchange.asker == user_id and exchange.fast:
            replies = 1 if self._is_over(exchange) else exchange.replies + 1
        self._exchanges[chat] = exchange = _Exchange(user_id, now, replies)
        if self._is_over(exchange):
            logger.warning(
                f"{chat} 里 {user_id} 连续 {replies} 次都是秒回，像是机器人，"
                f"{REST_SECONDS / 60:g} 分钟内不再回答；是机器人的话请写进 NIANLUN__BOTS"
            )

    def _is_over(self, exchange: _Exchange) -> bool:
        return 0 < self._most_fast <= exchange.replies
