"""Facts and diary after each reply, in the background: the talk never waits for it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nonebot import logger

from .clock import Clock
from .errors import NotRecorded, Overtaken
from .llm.turn_writer import TurnWriter
from .memory.calendar import Calendar
from .memory.fact_items import LONGEST_TURN, TURN_AGE
from .memory.promises import dated
from .memory.render import display_names, text_of
from .outcomes import Outcomes
from .store import chats, diary, messages, traces
from .types import ChatKey, Message, Scene

if TYPE_CHECKING:
    from .lifecycle import Nianlun

SceneOf: TypeAlias = Callable[[ChatKey, int, str], Awaitable[Scene]]
"""The scene in a chat (by key and row id), with what a text brings up there."""
Affordable: TypeAlias = Callable[[int, ChatKey], Awaitable[bool]]
STOP_SECONDS = 5.0
"""At the end, so long is waited for what is under way."""


class TurnMemory:
    """Takes in the turns of all chats, those of one chat one after the other."""

    def __init__(
        self,
        writer: TurnWriter,
        clock: Clock,
        calendar: Calendar,
        outcomes: Outcomes,
        *,
        settle: Callable[[], Awaitable[None]],
        scene: SceneOf,
        affordable: Affordable,
    ) -> None:
        """`settle` returns once everything that was said so far is stored."""
        self._writer = writer
        self._clock = clock
        self._calendar = calendar
        self._outcomes = outcomes
        self._settle = settle
        self._scene = scene
        self._affordable = affordable
        self._locks: defaultdict[ChatKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._read: dict[ChatKey, int] = {}
        """The last message of each chat that a turn was taken in with; after a start, the last
        one that a moment was written from."""
        self._pending: set[asyncio.Task[None]] = set()

    def after(self, chat: ChatKey, asker: str) -> None:
        """Take in the turn that a reply to this user has just ended; returns at once."""
        task = asyncio.create_task(self._take_in(chat, asker), name="nianlun-turn")
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def flush(self) -> None:
        """Wait until every turn so far is taken in, or failed to be."""
        while self._pending:
            await asyncio.gather(*self._pending, return_exceptions=True)

    async def stop(self, within: float = STOP_SECONDS) -> None:
        """Finish what can be finished in that many seconds, and drop the rest."""
        if self._pending:
            await asyncio.wait(self._pending, timeout=within)
        for task in self._pending:
            task.cancel()
        await self.flush()

    async def _take_in(self, chat: ChatKey, asker: str) -> None:
        try:
            async with self._locks[chat]:
                if await self._write(chat, asker):
                    self._outcomes.succeeded(chat)
        except (Overtaken, NotRecorded) as error:
            logger.debug(f"{chat} 的这一轮没有记：{error or '其中有话刚被撤回'}")
        except Exception as error:
            reason = str(error) or type(error).__name__
            self._outcomes.failed(chat, f"回复之后的事实和日记没有记成：{reason}")
            logger.opt(exception=error).warning(f"{chat} 的这一轮没有记下事实和日记：{reason}")

    async def _write(self, chat: ChatKey, asker: str) -> bool:
        """Whether there was something to take in and the model could be asked about it."""
        await self._settle()
        chat_id = await chats.find(chat)
        if chat_id is None:
            return False
        read = await traces.reading(chat_id)
        lines = await self._new_lines(chat, chat_id)
        if all(line.is_mine for line in lines) or not await self._affordable(chat_id, chat):
            return False
        scene = await self._scene(chat, chat_id, "\n".join(text_of(line) for line in lines))
        names = display_names({line.user_id: line.name for line in lines})
        found = await self._writer.write(lines, replace(scene, names=names))
        if found.dropped:
            logger.debug("dropped facts: {}", found.dropped)
        seen = [line.seq for line in lines]
        moments = [self._moment(text, lines, asker) for text in found.moments]
        learnt = dated(found.facts, lines, self._calendar)
        await diary.keep_turn(chat_id, seen, learnt, moments, self._clock.now(), read)
        self._read[chat] = max(seen)
        return True

    async def _new_lines(self, chat: ChatKey, chat_id: int) -> list[Message]:
        """What was said since the last turn, as far as it still belongs to this one."""
        if chat not in self._read:
            self._read[chat] = await diary.last_read(chat_id)
        recent = await messages.recent(chat_id, LONGEST_TURN)
        new = [line for line in recent if line.seq > self._read[chat]]
        return [line for line in new if line.time >= new[-1].time - TURN_AGE]

    def _moment(self, text: str, lines: Sequence[Message], asker: str) -> diary.Moment:
        at = lines[-1].time
        return diary.Moment(
            text=text,
            date=self._calendar.day_of(at).isoformat(),
            time=at,
            origin="turn",
            owner=asker,
            seen=tuple(line.seq for line in lines),
        )


def turn_memory(nianlun: Nianlun) -> TurnMemory | None:
    """As the settings ask for it; None where facts come with the notes, or without a model."""
    if nianlun.client is None or nianlun.settings.facts_from != "turns":
        return None
    return TurnMemory(
        TurnWriter(nianlun.client, nianlun.calendar, nianlun.count_notes, nianlun.notes_model),
        nianlun.clock,
        nianlun.calendar,
        nianlun.outcomes,
        settle=nianlun.recorder.flush,
        scene=nianlun.recaller.scene,
        affordable=nianlun.jobs.affordable,
    )
