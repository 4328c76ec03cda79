"""Everything that runs, put together once, opened and closed in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nonebot import logger
from nonebot.adapters import Bot
from nonebot.adapters.onebot.v11 import Bot as OneBot
from nonebot.adapters.onebot.v11 import Event, MessageEvent
from nonebot.config import Config as NoneBotConfig

from .capture.catching_up import CatchingUp
from .capture.events import chat_of, incoming, withdrawal
from .capture.outgoing import SEND_APIS, ambiguous, sent
from .capture.presence import Presence
from .capture.recorder import Recorder
from .capture.sent_files import SentFiles
from .chat.delivery import sending
from .chat.mutes import Mutes
from .chat.recall import Recaller
from .chat.reply import new_replier
from .chat_status import chat_status
from .clearings import Clearings
from .clock import Clock, SystemClock
from .commands.gate import CommandWords
from .config import Config
from .embedding import Embedding
from .errors import ChatError
from .jobs import Jobs
from .llm.writers import new_client, new_writer
from .media import new_media
from .memory.calendar import Calendar
from .memory.invariants import Inspection
from .memory.protocols import NoteWriter
from .memory.search import RecallResult
from .memory.skill import SkillSession
from .outcomes import Outcomes
from .recalling import AROUND, Recalling, RecallQuery
from .store import chats, database, exclusions, forgetting, invariants, memories, speakers, usage
from .store.backup import Restorations
from .store.endpoints import Endpoints
from .store.reindexing import Reindexing
from .store.search import SearchReader
from .store.traces import Traces
from .turn_memory import turn_memory
from .types import (
    ME,
    Activity,
    ChatKey,
    ChatStatus,
    Forgotten,
    Incoming,
    Memory,
    MemoryKind,
    TidyReport,
    Usage,
    Via,
)


class Nianlun:
    """The running product: what events, commands and the command line talk to."""

    def __init__(
        self,
        config: Config,
        data_dir: Path,
        nonebot: NoneBotConfig,
        clock: Clock | None = None,
    ) -> None:
        """Raises ConfigError or PromptTooSmall when the settings cannot work; opens nothing."""
        settings = config.nianlun
        self.settings = settings
        self.superusers = frozenset(user.removeprefix("onebot:") for user in nonebot.superusers)
        self.members_read = settings.members_read
        self.clock = clock = clock or SystemClock()
        self.calendar = Calendar(settings.timezone, settings.day_starts_at)
        self.character = settings.character or min(nonebot.nickname, default="") or "年轮"
        self._commands = CommandWords(nonebot.command_start, nonebot.nickname)
        self.data_dir = settings.data_dir or data_dir
        self.path = database.database_path(settings.database_url, self.data_dir)
        self.recorder = Recorder(self.clock, self.character)
        self.catching_up = CatchingUp(
            self.clock, self.recorder, self.character, self.hears, self._is_command
        )
        self.presence = Presence(self.clock, self.recorder, self.catching_up)
        self.sent_files = SentFiles()
        self.searching = SearchReader(self.path, self.calendar)
        self.embedding = Embedding(config, self.path, self.clock, self.calendar, self.hears)
        nearest = self.embedding if self.embedding.on else None
        self.recalling = Recalling(
            self.searching, self.character, self.clock, self.calendar, nearest
        )
        self.recaller = Recaller(
            settings, self.character, self.clock, self.calendar, self.recalling
        )
        self.recaller.check()
        self.notes_model = settings.notes_model or settings.model
        self.client = new_client(config, self.clock, Endpoints())
        self.writer = self._new_writer()
        self.jobs = Jobs(
            settings, clock, self.calendar, self._new_writer, self.recaller, self.hears, self.client
        )
        self.media = new_media(self, config)
        self.outcomes = Outcomes(self.clock)
        self.turns = turn_memory(self)
        self.mutes = Mutes()
        self.replier = new_replier(self)
        self.traces = Traces(self.path)
        self.clearings = Clearings(self)
        self._restorations = Restorations(self.path)
        self.reindexing = Reindexing(self.path)
        self._guard: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._said_at: dict[int, datetime] = {}
        self._file: tuple[int, int] | None = None
        self.lost: str | None = None

    def _new_writer(self) -> NoteWriter:
        return new_writer(
            self.settings, self.client, self.calendar, self.count_notes, self._taken_back
        )

    async def check(self) -> None:
        """See that the database can serve, and bring it to this version. Raises StoreError."""
        await database.prepare(self.path)

    async def open(self) -> None:
        """Check, migrate and open the database. Raises StoreError."""
        await database.prepare(self.path)
        await database.open_store(self.path)
        self._guard = asyncio.create_task(self._close_at_the_end(), name="nianlun-guard")
        # Let it reach its wait: a task that is cancelled before its first step runs no finally.
        await asyncio.sleep(0)
        self._file = database.identity(self.path)
        await self._restorations.start()
        await self.mutes.look()
        self.clearings.start()
        self.traces.start()
        self.reindexing.start()
        self.traces.soon()

    def start_ticking(self, every: float) -> None:
        """Tick each so many seconds until the end."""
        self._ticking = asyncio.create_task(self._tick_on(every), name="nianlun-ticking")

    async def _tick_on(self, every: float) -> None:
        """Not a job of APScheduler: it takes the next run from the time of day, and where the
        clock is put back by hours it would rest until the old time is reached again."""
        while True:
            await asyncio.sleep(every)
            try:
                await self.tick()
            except Exception as error:
                logger.opt(exception=error).error("查看该做什么时出了意外，稍后再试")

    async def tick(self) -> None:
        """See that the database is still there, and do what is owed."""
        self.lost = None
        if database.identity(self.path) != self._file:
            self.lost = f"数据库文件 {self.path} 被移走或换掉了，现在记的都会丢失：请重启机器人"
            logger.error(self.lost)
        await self._restorations.look()
        await self.presence.keep()
        self.embedding.soon()
        self.media.soon()
        self.jobs.soon()
        self.traces.soon()
        # Last: it raises where the database is in trouble, and all else is to go on then.
        await self.mutes.look()

    async def close(self) -> None:
        """End what runs, store what is waiting, close the database."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
            self._ticking = None
        await self.clearings.stop()
        await self.jobs.stop()
        await self.catching_up.stop()
        await self.media.stop()
        if self.turns is not None:
            await self.turns.stop()
        await self.recorder.stop()
        await self.presence.stop()
        await self.reindexing.stop()
        await self.traces.stop()
        await self.embedding.stop()
        await self.searching.close()
        if self.client is not None:
            await self.client.close()
        if self._guard is not None:
            self._guard.cancel()
            with suppress(asyncio.CancelledError):
                await self._guard
            self._guard = None

    async def _close_at_the_end(self) -> None:
        """Close the database on every path, also when another plugin's start-up fails.

        The driver's thread is no daemon: left open it would keep the process alive for ever.
        An event loop cancels what is left when it ends, and waits for it.
        """
        try:
            await asyncio.Event().wait()
        finally:
            await database.close_store()
            chats.forget_cached_ids()
            speakers.forget_cached_names()

    def hears(self, chat: ChatKey) -> bool:
        """Whether this chat is recorded and answered at all."""
        names = {str(chat), chat.full, chat.peer_id}
        if names & self.settings.disabled_chats:
            return False
        return not self.settings.enabled_chats or bool(names & self.settings.enabled_chats)

    def on_event(self, bot: OneBot, event: Event) -> None:
        """Take in an event as it arrived; only enqueues."""
        now = self.clock.now()
        self.presence.heard(bot, event)
        self.sent_files.hear(event, bot.self_id, now)
        kind = event.post_type
        if kind == "notice":
            notice = withdrawal(event, self_id=bot.self_id, now=now)
            # Also of a chat that is not served any more: what it said before is still here.
            if notice is not None:
                self.recorder.accept(notice)
                self.traces.soon()
            self.replier.noticed(event, bot.self_id)
        elif kind in ("message", "message_sent"):
            message = incoming(event, self_id=bot.self_id, now=now)
            if message is None or not self.hears(message.chat):
                return
            if message.user_id != ME and self._is_command(message):
                message = replace(message, skipped="command")
            self.recorder.accept(message)
            self.media.heard(message)
            self.replier.heard(message)

    def _is_command(self, message: Incoming) -> bool:
        return self._commands.in_segments(message.segments, message.chat.self_id)

    def on_sending(self, api: str, data: dict[str, Any]) -> None:
        """Note when a line is said: its result may come after what somebody says to it."""
        if api in SEND_APIS:
            self._said_at[id(data)] = self.clock.now()

    def on_sent(
        self, bot: Bot, exception: Exception | None, api: str, data: dict[str, Any], result: object
    ) -> None:
        """Take in what the bot said through any plugin; only enqueues."""
        said_at = self._said_at.pop(id(data), None) or self.clock.now()
        if api not in SEND_APIS or (exception is not None and not ambiguous(exception)):
            return
        purpose = sending.get()
        via: Via = "other" if purpose is None else "nianlun"
        message = sent(
            api,
            data,
            result,
            self_id=bot.self_id,
            name=self.character,
            now=said_at,
            via=via,
            delivery="ok" if exception is None else "unknown",
            skipped=None if purpose == "reply" else purpose,
        )
        if message is not None and self.hears(message.chat):
            self.recorder.accept(message)

    async def answer(self, bot: OneBot, event: MessageEvent) -> None:
        """Reply to a message that the gate let through."""
        chat = chat_of(event, bot.self_id)
        if chat is not None and self.hears(chat):
            await self.replier.answer(chat, bot, event)

    async def status(self, chat: ChatKey) -> ChatStatus:
        """How the chat's memory is doing. Raises ChatError when nothing was recorded there."""
        if self.recorder.waiting and not self.recorder.trouble:
            await self.recorder.flush()
        return await chat_status(self, chat, await self._known(chat))

    async def memory(self, chat: ChatKey, kind: MemoryKind, period: str) -> Memory | None:
        chat_id = await chats.find(chat)
        return None if chat_id is None else await memories.memory(chat_id, kind, period)

    async def activities(self, chat: ChatKey, date: str) -> list[Activity]:
        chat_id = await chats.find(chat)
        if chat_id is None:
            return []
        return [a for a in await memories.activities(chat_id, date) if a.text]

    @asynccontextmanager
    async def skill(self, chat: ChatKey) -> AsyncIterator[SkillSession]:
        """Do a chat's owed work oneself, by the calls of `update_short_term_memory`:

            async with nianlun.skill(chat) as session:
                task = await session.call({"action": "get_tasks"})

        All that is pending is handed out, one window or one roll-up a session. Until it is left
        nobody else works on the chat, so `tidy` must not be called inside. Raises ChatError
        when nothing was recorded there.
        """
        async with self.jobs.skill(await self.settled(chat), chat) as session:
            yield session

    async def recall(
        self,
        chat: ChatKey,
        text: str,
        *,
        limit: int = 10,
        budget_tokens: int = 800,
        speaker: str | None = None,
        time_range: tuple[datetime, datetime] | None = None,
        asker: str | None = None,
        around: int = AROUND,
    ) -> RecallResult:
        """What a text brings up in one chat, best first, with no model call.

        `limit` counts hits; facts that they link to come with them. `budget_tokens` bounds the
        estimated size of the whole text. `speaker`: only what this one said, by number, by any
        name they have had, or `me`. `time_range`: only from the first moment until before the
        second, in place of the time that the text itself names; a fact is of when it was written.
        `asker`: the user id of whoever asks, whom 我 stands for. `around`: so many lines before
        and after a message that matches come into question as well. No record, nothing to recall.
        Raises ChatError when nobody or several people are called `speaker`, and StoreError.
        """
        if self.recorder.waiting:
            await self.recorder.flush()
        chat_id = await chats.find(chat)
        if chat_id is None:
            return RecallResult()
        query = RecallQuery(
            text,
            limit=limit,
            budget_tokens=budget_tokens,
            speaker=None if speaker is None else await speakers.resolve(chat_id, speaker),
            time_range=time_range,
            asker=asker,
            linked=True,
            around=around,
        )
        return await self.recalling.recall(chat_id, query)

    async def tidy(self, chat: ChatKey) -> TidyReport:
        if self.recorder.waiting:
            await self.recorder.flush()
        return (await self.jobs.tidy([chat])).get(chat, TidyReport())

    async def inspect(self, chat: ChatKey) -> Inspection:
        chat_id = await self.settled(chat)
        return await invariants.check(self.path, chat_id, self.calendar, self.clock.now())

    async def opt_out(self, chat: ChatKey, user_id: str, at: datetime) -> bool:
        chat_id = await self.settled(chat)
        changed = await exclusions.opt_out(chat_id, user_id, at, self.clock.now())
        self.traces.soon()
        return changed

    async def opt_in(self, chat: ChatKey, user_id: str, at: datetime) -> bool:
        return await exclusions.opt_in(await self.settled(chat), user_id, at)

    async def forget(self, chat: ChatKey, user_id: str, at: datetime) -> Forgotten:
        forgotten = await forgetting.forget(await self.settled(chat), user_id, at)
        self.traces.soon()
        self.jobs.soon()
        return forgotten

    async def settled(self, chat: ChatKey) -> int:
        """The chat's row id, once everything that was said so far is stored."""
        if self.recorder.waiting:
            await self.recorder.flush()
        return await self._known(chat)

    async def _known(self, chat: ChatKey) -> int:
        chat_id = await chats.find(chat)
        if chat_id is None:
            raise ChatError("这个会话还没有记录过消息")
        return chat_id

    async def _taken_back(self, chat: ChatKey) -> bool:
        return bool(await memories.stale_activities(await self._known(chat)))

    async def count_notes(self, chat: ChatKey, purpose: str, cost: Usage, ok: bool) -> None:
        chat_id = await self._known(chat)
        date = self.calendar.day_of(self.clock.now()).isoformat()
        await usage.count(chat_id, date, purpose, self.notes_model, cost, ok)
