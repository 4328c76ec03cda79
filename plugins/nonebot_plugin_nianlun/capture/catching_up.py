"""Catching up: what was said while the bot was away is fetched, or recorded as a gap."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from nonebot import logger
from nonebot.adapters.onebot.v11 import ActionFailed, ApiNotAvailable, Bot, NetworkError

from ..clock import Clock
from ..errors import StoreError
from ..store import gaps
from ..store.fetched import settle, sort_out
from ..store.matching import Line
from ..types import ME, ChatKey, Incoming, Withdrawal
from .history import Fetched, NoAnswer, Reach, action, walk_back
from .readable import readable
from .recorder import Recorder

_FURTHEST = timedelta(days=3)
_PAGES = 20
_MESSAGES = 1000
_ALL_PAGES = 1000
"""Of all chats of a connection together."""
_LONGEST = 1800.0
"""Seconds after which no further chat is begun."""
_PAUSE = 0.2
"""Seconds between two calls."""
_ANSWER = 15.0
"""Seconds that the other side may take for a page."""
_PATIENCE = 2
"""After so many chats in a row without an answer, an action is not called any more."""
_SETTLING = 2.0
"""Seconds in which the other side delivers what it held back, before it is asked."""
_MARGIN = timedelta(minutes=2)
"""How far the clocks of the two sides may be apart."""
_UNSUPPORTED = {404, 1404, 10002}
"""Return codes for an unknown action: Lagrange's, most others', and that of OneBot 12."""
_PART = 200
"""Lines that are handed to the recorder at a time, so that live ones need not wait long."""


class Unsupported(NoAnswer):
    """The other side has no such action, or never answers it."""


class Refused(NoAnswer):
    """The other side has no history of this chat."""


@dataclass(slots=True)
class _Talk:
    """A chat that somebody may have spoken in."""

    chat_id: int
    chat: ChatKey
    left: datetime
    """Until when the bot heard what was said there."""
    since: datetime
    """From when on its history is wanted."""


class CatchingUp:
    """Brings an account's chats up to date whenever it connects, in the background."""

    def __init__(
        self,
        clock: Clock,
        recorder: Recorder,
        character: str,
        hears: Callable[[ChatKey], bool],
        is_command: Callable[[Incoming], bool],
    ) -> None:
        self._clock = clock
        self._recorder = recorder
        self._character = character
        self._hears = hears
        self._is_command = is_command
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, bot: Bot, until: datetime | None) -> None:
        """Start on what an account missed since `until`; None: since its last message."""
        self.cancel(bot.self_id)
        name = f"nianlun-catching-up-{bot.self_id}"
        work = self._catch_up(bot, until, self._clock.now())
        self._tasks[bot.self_id] = asyncio.create_task(work, name=name)

    def cancel(self, self_id: str) -> None:
        if (task := self._tasks.pop(self_id, None)) is not None:
            task.cancel()

    async def stop(self) -> None:
        """End what runs. What it has not fetched stays recorded as a gap."""
        tasks = list(self._tasks.values())
        for self_id in list(self._tasks):
            self.cancel(self_id)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _catch_up(self, bot: Bot, until: datetime | None, now: datetime) -> None:
        try:
            talks = await self._note_gaps(bot.self_id, until, now)
            await asyncio.sleep(_SETTLING)
            await self._fetch_all(_Caller(bot), talks)
            short = {t.chat_id: (t.left, now) for t in talks if now - t.left <= gaps.SHORTEST}
            await gaps.close(short)
            await gaps.set_behind(bot.self_id, None)
        except ApiNotAvailable:
            logger.info(f"{bot.self_id} 断开了，离线时错过的消息下次连上再补")
        except StoreError as error:
            logger.warning(f"离线时错过的消息没有补完，下次连上再补：{error}")
        except Exception as error:
            logger.opt(exception=error).error("补离线消息时出了意外")

    async def _note_gaps(self, self_id: str, until: datetime | None, now: datetime) -> list[_Talk]:
        """Record what may be missing before anything is fetched.

        So an end by force leaves no hole that nobody knows of, and the next connection goes on.
        """
        if until is None:
            until = await gaps.alive_until(self_id)
        if until is not None and until > now + _MARGIN:
            until = None  # written down before the clock was put back, it tells nothing
        behind = await gaps.behind_since(self_id)
        if behind is None:
            await gaps.set_behind(self_id, now)
        # What the other side held back may be on record already: it was not heard in its time.
        heard = now if until is None else min(now, until + _MARGIN)
        missed = [m for m in await gaps.recorded_before(self_id, heard) if self._hears(m.chat)]
        left = {m.chat_id: min(now, max(m.last, until or m.last)) for m in missed}
        await gaps.note({chat_id: (at, now) for chat_id, at in left.items() if at < now})
        earliest = left | await gaps.reaching(left.keys(), min(behind or now, now))
        return [
            _Talk(m.chat_id, m.chat, left[m.chat_id], max(now - _FURTHEST, earliest[m.chat_id]))
            for m in missed
        ]

    async def _fetch_all(self, call: _Caller, talks: Sequence[_Talk]) -> None:
        pages = _ALL_PAGES
        end = monotonic() + _LONGEST
        for talk in talks:
            if pages <= 0 or monotonic() > end:
                logger.warning("离线太久，剩下的会话没有补，错过的记为缺口")
                return
            if not call.serves(talk.chat):
                continue
            try:
                reach = await walk_back(
                    call,
                    talk.chat,
                    talk.since,
                    self._clock.now,
                    pages=min(_PAGES, pages),
                    messages=_MESSAGES,
                )
            except NoAnswer as error:
                call.gave_nothing(talk.chat, error)
                pages -= 1
                continue
            call.answered(talk.chat)
            pages -= reach.pages
            await self._take_in(talk, reach)

    async def _take_in(self, talk: _Talk, reach: Reach) -> None:
        """Record what a walk brought and close the gap as far as it went."""
        now = self._clock.now()
        lines = [self._line(f) for f in reach.lines if f.message.time >= talk.since - _MARGIN]
        await self._recorder.flush()
        found = await sort_out(talk.chat_id, lines, readable, self._character)
        if found.taken_back or found.delivered:
            await settle(talk.chat_id, found, now)
        for part in _parts(found.new):
            for line in part:
                if line.withdrawn:
                    self._accept_withdrawn(line.message, now)
                else:
                    self._recorder.accept(line.message)
            await self._recorder.flush()
        oldest = reach.oldest
        if oldest is not None:
            reached = talk.since if reach.complete else oldest
            await gaps.close({talk.chat_id: (reached, now)})
        if found.new:
            logger.info(f"{talk.chat} 补上了离线时的 {len(found.new)} 条消息")

    def _accept_withdrawn(self, message: Incoming, now: datetime) -> None:
        """Record that something was said and taken back; its words do not even come in."""
        self._recorder.accept(replace(message, segments=[], skipped="withdrawn"))
        if message.message_id is not None:
            self._recorder.accept(
                Withdrawal(message.chat, message.message_id, message.user_id, now)
            )

    def _line(self, fetched: Fetched) -> Line:
        message = fetched.message
        if message.user_id != ME and self._is_command(message):
            message = replace(message, skipped="command")
        return Line(message, withdrawn=fetched.withdrawn)


class _Caller:
    """Calls the history actions of one connection, unhurriedly, and gives up what is not there."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._silences: Counter[str] = Counter()
        self._missing: set[str] = set()

    def serves(self, chat: ChatKey) -> bool:
        return action(chat) not in self._missing

    def answered(self, chat: ChatKey) -> None:
        self._silences[action(chat)] = 0

    def gave_nothing(self, chat: ChatKey, why: NoAnswer) -> None:
        """Take note of a chat of which there is no history."""
        name = action(chat)
        self._silences[name] += not isinstance(why, Refused)
        if isinstance(why, Unsupported) or self._silences[name] >= _PATIENCE:
            self._missing.add(name)
            logger.info(f"OneBot 一端不能用 {name} 补离线消息，记为缺口：{why}")

    async def __call__(self, name: str, params: Mapping[str, Any]) -> object:
        await asyncio.sleep(_PAUSE)
        try:
            async with asyncio.timeout(_ANSWER):
                return await self._bot.call_api(name, **params)
        except ActionFailed as error:
            code = error.info.get("retcode")
            said = f"{error.info.get('message')} {error.info.get('wording')}"
            if code in _UNSUPPORTED or "不支持的" in said or "unsupported" in said.lower():
                raise Unsupported(f"retcode {code}") from error
            raise Refused(f"retcode {code}") from error
        except (NetworkError, TimeoutError) as error:
            raise NoAnswer("没有回答") from error


def _parts(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The lines in parts that are recorded at once; a second's lines stay together."""
    part: list[Line] = []
    for line in lines:
        if len(part) >= _PART and part[-1].message.time != line.message.time:
            yield part
            part = []
        part.append(line)
    if part:
        yield part
