"""Whose turn it is: one reply at a time in a chat, and an asker's lines answered together."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from nonebot import logger
from nonebot.adapters.onebot.v11 import MessageEvent

from ..capture.events import id_text
from ..types import ChatKey

MOST_WAITING = 5
"""Askers of one chat that may wait for their turn; who comes then is not answered."""
LONGEST_QUIET = 4
"""An asker who goes on and on is answered after so many times the quiet time."""
_MOST_CALLS = 10
_KNOWN = 500
"""So many of the last calls are known when they are delivered again."""


@dataclass(slots=True)
class Turn:
    """What one person said to the bot and is to get one reply for."""

    asker: str
    calls: list[MessageEvent]
    """The lines that called, the oldest first; the newest ones of many."""
    called: bool
    """Somebody wants an answer: it is not the bot that joins in."""
    began_at: float
    called_at: float
    heard_at: float
    """When the asker last said anything, a call or not."""
    started: bool = False


class Turns:
    """The turns of all chats. All times are those of the event loop's clock, in seconds."""

    def __init__(self, quiet: float) -> None:
        """A turn begins when its asker has said nothing for `quiet` seconds."""
        self._quiet = quiet
        self._locks: defaultdict[ChatKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._open: defaultdict[ChatKey, list[Turn]] = defaultdict(list)
        self._known: deque[tuple[ChatKey, str, str, int]] = deque(maxlen=_KNOWN)

    def busy(self, chat: ChatKey) -> bool:
        """Whether somebody is being answered, or waits for it."""
        return chat in self._open

    def heard(self, chat: ChatKey, user_id: str) -> None:
        """Take notice of any line of a chat, before it is known whether it calls."""
        for turn in self._open.get(chat, ()):
            if user_id == turn.asker:
                turn.heard_at = _now()

    @asynccontextmanager
    async def turn(
        self, chat: ChatKey, event: MessageEvent, *, called: bool, patience: float
    ) -> AsyncIterator[Turn | None]:
        """Wait for the turn that this line belongs to, and hold it.

        None where there is nothing to do: it was delivered before, another call of the same asker
        holds the turn, too many wait, or it took longer than `patience` seconds.
        """
        turn = None if self._is_known(chat, event) else self._join(chat, event, called)
        if turn is None:
            yield None
            return
        try:
            async with self._locks[chat]:
                await self._hear_out(turn)
                turn.started = True
                late = _now() - turn.called_at > patience
                if late:
                    logger.info(f"{chat} 排队太久的一句话不再回答")
                yield None if late else turn
        finally:
            self._close(chat, turn)

    def _is_known(self, chat: ChatKey, event: MessageEvent) -> bool:
        """Whether this very line called before: some platforms deliver twice."""
        message_id = id_text(event.message_id)
        if message_id is None:
            return False
        # Ids alone are used again by some platforms.
        call = (chat, str(event.user_id), message_id, event.time)
        if call in self._known:
            return True
        self._known.append(call)
        return False

    def _join(self, chat: ChatKey, event: MessageEvent, called: bool) -> Turn | None:
        asker, now = str(event.user_id), _now()
        waiting = [turn for turn in self._open.get(chat, ()) if not turn.started]
        for turn in waiting:
            if turn.asker == asker:
                turn.calls = [*turn.calls, event][-_MOST_CALLS:]
                turn.called |= called
                turn.called_at = turn.heard_at = now
                return None
        if len(waiting) >= MOST_WAITING:
            logger.info(f"{chat} 等着回答的人太多，有一句话不回答了")
            return None
        turn = Turn(asker, [event], called, now, now, now)
        self._open[chat].append(turn)
        return turn

    async def _hear_out(self, turn: Turn) -> None:
        last = turn.began_at + self._quiet * LONGEST_QUIET
        while True:
            seconds = min(turn.heard_at + self._quiet, last) - _now()
            if seconds <= 0:
                return
            await asyncio.sleep(seconds)

    def _close(self, chat: ChatKey, turn: Turn) -> None:
        self._open[chat].remove(turn)
        if not self._open[chat]:
            # Nobody waits for the lock either.
            del self._open[chat]
            self._locks.pop(chat, None)


def _now() -> float:
    return asyncio.get_running_loop().time()
