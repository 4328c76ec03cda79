"""Until when each account was really there: what tells how long nobody listened."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from nonebot import logger
from nonebot.adapters.onebot.v11 import Bot, Event

from ..clock import Clock
from ..errors import StoreError
from ..processes import this_process
from ..store import connections, gaps
from .catching_up import CatchingUp
from .recorder import Recorder

_UNNOTICED = timedelta(seconds=40)
"""So long a dead connection passes for a living one: the server asks for a sign every 20 s."""


@dataclass(slots=True)
class _Link:
    """A connection of one account."""

    bot: Bot
    heard: datetime
    """When the last event came in that shows QQ itself to be reached."""
    beats: bool = False
    """It sends heartbeats, so that their absence tells something."""
    down: bool = False
    """The other side is there and says that QQ is not."""


class Presence:
    """Keeps the marks, and starts to catch up when an account is back."""

    def __init__(self, clock: Clock, recorder: Recorder, catching_up: CatchingUp) -> None:
        self._clock = clock
        self._recorder = recorder
        self._catching_up = catching_up
        self._links: dict[str, _Link] = {}
        self._left: dict[str, datetime] = {}
        """Accounts that are away, and until when they were there."""
        self._writing = asyncio.Lock()
        self._written: dict[str, datetime] = {}
        self._told: dict[str, datetime] | None = {}
        """Who was said to be connected, and until when; None while that is not known."""
        self._stopped = False

    async def start(self) -> None:
        """Take back what a process that was killed may have said under the number we have now."""
        self._told = None
        await self.tell()

    def connected(self, bot: Bot) -> None:
        self._links[bot.self_id] = _Link(bot, self._clock.now())
        self._catching_up.begin(bot, self._left.pop(bot.self_id, None))

    async def disconnected(self, bot: Bot) -> None:
        link = self._links.get(bot.self_id)
        if link is not None and link.bot is bot:
            del self._links[bot.self_id]
            self._catching_up.cancel(bot.self_id)
            self._left[bot.self_id] = self._sign_of(link)
            await self.keep()

    def heard(self, bot: Bot, event: Event) -> None:
        """Take any event of the account as a sign of life, unless it says the contrary."""
        link = self._links.get(bot.self_id)
        if link is None:
            return
        if getattr(event, "meta_event_type", None) == "heartbeat":
            link.beats = True
            if getattr(getattr(event, "status", None), "online", None) is False:
                link.down = True
                return
        if link.down:
            link.down = False
            self._catching_up.begin(bot, link.heard)
        link.heard = self._clock.now()

    async def keep(self) -> None:
        """Write down until when each account was there, and who is connected."""
        if self._stopped:
            return
        # Not while messages wait for the database: the mark says that what came is on record.
        if self._recorder.trouble is None:
            await self._mark()
        await self.tell()

    async def _mark(self) -> None:
        marks = self._left | {id_: self._sign_of(link) for id_, link in self._links.items()}
        try:
            async with self._writing:
                if marks != self._written:
                    await gaps.set_alive(marks)
                    self._written = marks
        except StoreError as error:
            logger.warning(f"没有记下机器人在线到什么时候：{error}")

    async def tell(self) -> None:
        """Write down who is connected, for whoever asks from another process."""
        try:
            async with self._writing:
                here = self._here()
                if here != self._told:
                    await connections.tell(this_process(), here)
                    self._told = here
        except StoreError as error:
            logger.warning(f"没有记下谁连着：{error}")

    def _here(self) -> dict[str, datetime]:
        if self._stopped:
            return {}
        return {id_: self._sign_of(link) for id_, link in self._links.items() if not link.down}

    async def stop(self) -> None:
        """Write the last marks, and that nobody is connected any more."""
        await self.keep()
        self._stopped = True
        await self.tell()
        async with self._writing:
            pass

    def _sign_of(self, link: _Link) -> datetime:
        now = self._clock.now()
        # What was heard later than now was heard before the clock was put back.
        if link.beats or link.down:
            return min(link.heard, now)
        return min(max(link.heard, now - _UNNOTICED), now)
