"""Pictures and forwards are looked into in the background: nothing that is said waits for it.

A message is recorded at once, with `[图片]` and `[聊天记录]`. What these hold is found out soon
after, for addresses expire within an hour or two, and becomes part of the message's text. What
was written from it before stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
import time
from typing import TYPE_CHECKING
from uuid import uuid4

from nonebot import get_bots, logger
from nonebot.adapters import Bot

from .clock import Clock
from .config import Config
from .errors import NianlunError
from .llm.captions import new_captioner
from .looking_into import Later, LookingInto, Place
from .store import captions, chats
from .store.endpoints import Endpoints
from .types import ChatKey, Incoming

if TYPE_CHECKING:
    from .lifecycle import Nianlun
    from .store.models import Chat

WAITS = (30.0, 300.0, 1200.0)
"""Seconds until another try; after the last one a message stays as it is."""
_AT_ONCE = 2
"""Chats that are worked on at the same time."""
_OLDEST = timedelta(hours=1)
"""What is older when it is found has an address that has expired, or soon will have."""
_COMPANY = 0.3
"""Seconds that a message may take to be on disk before it is looked for."""
_LEASE = timedelta(minutes=3)
"""Longer than any one picture takes."""
_WORK = "media"


@dataclass(slots=True)
class _Owed:
    """A message to be looked into."""

    seq: int
    tries: int = 0
    due: float = 0.0
    """By the monotonic clock."""


class Media:
    """Knows which messages are to be looked into, of the accounts that are connected here.

    What a chat owes is worked on by one process at a time, one message after the other.
    """

    def __init__(
        self,
        looking: LookingInto,
        clock: Clock,
        hears: Callable[[ChatKey], bool],
        bots: Callable[[], Mapping[str, Bot]] = get_bots,
        waits: tuple[float, ...] = WAITS,
    ) -> None:
        self._looking = looking
        self._clock = clock
        self._hears = hears
        self._bots = bots
        self._waits = waits
        self._holder = uuid4().hex
        self._heard: set[ChatKey] = set()
        """Chats in which something was just said that is to be looked into."""
        self._everywhere = False
        self._read_to: dict[int, int] = {}
        self._owed: dict[int, list[_Owed]] = {}
        self._working: dict[int, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str | None:
        """Why pictures are not looked at; None when it works or is off."""
        return self._looking.trouble

    def heard(self, message: Incoming) -> None:
        """Look soon into what was just said, where there is something to look into."""
        if any(segment["type"] in ("image", "forward") for segment in message.segments):
            self._heard.add(message.chat)
            self._awake()

    def soon(self) -> None:
        """Look soon for what is new in any chat, in the background."""
        self._everywhere = True
        self._awake()

    def _awake(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="nianlun-media")
        self._wake.set()

    async def stop(self) -> None:
        """End what runs; what was not found out stays as it is."""
        tasks = [*self._working.values(), *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._task = None
        await self._looking.close()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._until_due()):
                    await self._wake.wait()
            except TimeoutError:
                self._everywhere = True
            self._wake.clear()
            await asyncio.sleep(_COMPANY)
            try:
                await self._look()
            except Exception as error:
                # Nobody waits for this task, so it would end without a word.
                logger.opt(exception=error).warning("没有查到新来的图片和聊天记录，稍后再查")

    def _until_due(self) -> float | None:
        """Seconds until a message is due in a chat that nobody works on."""
        waiting = (part for id_, part in self._owed.items() if id_ not in self._working)
        due = [owed.due for part in waiting for owed in part]
        return max(0.0, min(due) - time.monotonic()) if due else None

    async def _look(self) -> None:
        """Find out what is new, and set to work on every chat with something due."""
        bots = self._bots()
        for row in await self._rows():
            chat = chats.key_of(row)
            if chat.self_id not in bots or not self._hears(chat):
                self._owed.pop(row.id, None)
                continue
            await self._read_on(row.id, row.last_seq)
            if self._next_due(row.id) is not None and row.id not in self._working:
                work = self._work(Place(row.id, chat, bots[chat.self_id]))
                self._working[row.id] = asyncio.create_task(work, name="nianlun-media-chat")

    async def _rows(self) -> list[Chat]:
        """The chats to look at: a picture somewhere is no reason to read all of them."""
        heard, everywhere = self._heard, self._everywhere
        self._heard, self._everywhere = set(), False
        if everywhere:
            return await chats.everyone()
        found = [await chats.row(key) for key in heard]
        return [row for row in found if row is not None]

    async def _read_on(self, chat_id: int, last_seq: int) -> None:
        read_to = self._read_to.get(chat_id, 0)
        if last_seq > read_to:
            since = self._clock.now() - _OLDEST
            new = await captions.showing(chat_id, read_to, last_seq, since)
            self._read_to[chat_id] = last_seq
            if new:
                self._owed.setdefault(chat_id, []).extend(map(_Owed, new))

    def _next_due(self, chat_id: int) -> _Owed | None:
        now = time.monotonic()
        return next((owed for owed in self._owed.get(chat_id, ()) if owed.due <= now), None)

    async def _work(self, place: Place) -> None:
        """Look into what is due in a chat, one message after the other."""
        chat_id = place.chat_id
        try:
            async with self._slots:
                while (owed := self._next_due(chat_id)) is not None:
                    if await self._claim(chat_id):
                        await self._try(place, owed)
                    else:
                        # Another process is at it, and tells nobody what it leaves.
                        owed.due = time.monotonic() + self._waits[0]
        finally:
            del self._working[chat_id]
            self._wake.set()
            await asyncio.shield(self._release(chat_id))

    async def _try(self, place: Place, owed: _Owed) -> None:
        last = owed.tries >= len(self._waits)
        try:
            await self._looking.into(place, owed.seq, lambda: self._claim(place.chat_id), last=last)
        except (Later, NianlunError) as error:
            logger.debug(f"{place.chat} 的 #{owed.seq} 里有东西没有看到：{error}")
        except Exception as error:
            logger.opt(exception=error).error(f"看 {place.chat} 的 #{owed.seq} 时出了意外")
        else:
            last = True
        if last:
            self._drop(place.chat_id, owed)
        else:
            owed.due = time.monotonic() + self._waits[owed.tries]
            owed.tries += 1

    def _drop(self, chat_id: int, owed: _Owed) -> None:
        left = [one for one in self._owed.pop(chat_id, ()) if one is not owed]
        if left:
            self._owed[chat_id] = left

    async def _claim(self, chat_id: int) -> bool:
        now = self._clock.now()
        return await chats.claim(
            chat_id, _WORK, self._holder, now, now + _LEASE, lambda holder: False
        )

    async def _release(self, chat_id: int) -> None:
        with suppress(NianlunError):
            await chats.release(chat_id, _WORK, self._holder)


def new_media(nianlun: Nianlun, config: Config) -> Media:
    """As the settings ask for it. Raises ConfigError when they cannot work."""
    looking = LookingInto(
        new_captioner(config, nianlun.clock, Endpoints()),
        nianlun.clock,
        nianlun.calendar,
        nianlun.character,
        nianlun.jobs.affordable,
        nianlun.embedding.changed,
    )
    return Media(looking, nianlun.clock, nianlun.hears)
