"""Owed work: what is due is done at start, when a bot connects, and by the clock.

There are no timers that could be missed. The one function here does everything that is owed
since the last commit, whenever it is called and by whichever process.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from nonebot import logger

from .chat.recall import Recaller
from .clock import Clock
from .config import Settings
from .errors import ModelUnavailable, NianlunError
from .llm.client import ModelClient
from .llm.offline_writer import OfflineWriter
from .memory.calendar import Calendar
from .memory.protocols import NoteWriter
from .memory.rollups import RollupPolicy
from .memory.skill import SkillSession
from .memory.upkeep import Upkeep
from .memory.windows import DAY_END_GRACE, WindowPolicy
from .processes import runs, this_process
from .store import chats, memories, messages, notes, traces, usage
from .types import Activity, ChatKey, MemoryKind, Note, TidyReport

_LEASE = timedelta(minutes=10)
"""Longer than any single model call; a process that dies blocks its chat no longer than this."""
_AT_ONCE = 3
_PATIENCE = 3
"""After so many failures in a row the offline writer takes what the model cannot do."""
_POLL_SECONDS = 0.5
LONGEST_REWRITING = 300.0
"""Seconds; what takes longer is given up, and the old text stands."""
_WORK = "upkeep"
_NOTHING = TidyReport()


def _is_gone(holder: str) -> bool:
    """Whether a lease was left by a process of this machine that does not run any more.

    A holder of our own process number that is not us had it before: numbers are used again.
    """
    process = holder.partition("@")[2]
    return process == this_process() or runs(process) is False


class Jobs:
    """Does the owed work of all chats, each chat by one process at a time."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        calendar: Calendar,
        new_writer: Callable[[], NoteWriter],
        recaller: Recaller,
        hears: Callable[[ChatKey], bool],
        client: ModelClient | None = None,
    ) -> None:
        """`client`: what the writers ask; it is asked at once where a person wants the work."""
        self._client = client
        self._settings = settings
        self._clock = clock
        self._calendar = calendar
        self._new_writer = new_writer
        self._recaller = recaller
        self._hears = hears
        self._holder = f"{uuid4().hex[:12]}@{this_process()}"
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._held_until: dict[int, datetime] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._running: asyncio.Task[None] | None = None
        self._asked: set[asyncio.Task[Note | None]] = set()
        self._again = False

    def next_rollup(self) -> datetime:
        """When the current logical day will be closed."""
        today = self._calendar.day_of(self._clock.now())
        return self._calendar.end_of(today) + DAY_END_GRACE

    def soon(self) -> None:
        """Start on what is owed in the background, or once more after the run in progress."""
        self._again = True
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name="nianlun-owed")

    async def stop(self) -> None:
        """End running jobs. What they have not stored stays owed."""
        running = [*self._asked, *([] if self._running is None else [self._running])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self) -> None:
        while self._again:
            self._again = False
            try:
                await self.do_owed()
            except NianlunError as error:
                logger.error(f"整理记忆时数据库出错，稍后再试：{error}")
            except Exception as error:
                logger.opt(exception=error).error("整理记忆时出了意外，稍后再试")

    async def do_owed(self) -> None:
        """Do what every chat owes; chats that failed lately and chats in work are left alone."""
        now = self._clock.now()
        due = [
            (chat_id, key)
            for chat_id, key, retry_at in await chats.with_work()
            # A time that is too far away was written down while the clock was wrong.
            if (retry_at is None or not now < retry_at <= now + chats.LONGEST_WAIT)
            and self._hears(key)
            and not self._locks[chat_id].locked()
        ]
        work = (self._do_one(chat_id, key) for chat_id, key in due)
        results = await asyncio.gather(*work, return_exceptions=True)
        for (_, key), result in zip(due, results, strict=True):
            if isinstance(result, Exception):
                # One chat's trouble must hide neither another's nor its own.
                logger.opt(exception=result).error(f"整理 {key} 的记忆时出了意外，稍后再试")

    async def _do_one(self, chat_id: int, key: ChatKey) -> None:
        async with self._slots:
            await self._tidy(chat_id, key, by_hand=False)

    async def tidy(
        self, only: Sequence[ChatKey] | None = None, *, offline: bool = False
    ) -> dict[ChatKey, TidyReport]:
        """Do all owed work now, also of windows that are not due yet, chat after chat.

        `offline`: without a model, whatever the settings say.
        """
        reports: dict[ChatKey, TidyReport] = {}
        for chat_id, key, _ in await chats.with_work():
            if self._hears(key) and (only is None or key in only):
                # One try is enough: to a model that does not answer each chat would wait anew.
                asks = not reports
                reports[key] = await self._tidy(
                    chat_id, key, by_hand=True, offline=offline, asks=asks
                )
        return reports

    async def ask_again(self, only: Sequence[ChatKey] | None = None) -> None:
        """Owe anew what the offline writer wrote in these chats, or in all."""
        for row in await chats.everyone():
            key = chats.key_of(row)
            if self._hears(key) and (only is None or key in only):
                await notes.ask_again(row.id)

    async def _tidy(
        self,
        chat_id: int,
        key: ChatKey,
        *,
        by_hand: bool,
        offline: bool = False,
        asks: bool = False,
    ) -> TidyReport:
        """By hand: also windows that are not due, and after whoever works on the chat now.

        `asks`: the model is asked at once, also while it is left alone.
        """
        erasure = await traces.last_erasure(chat_id)
        try:
            report = await self._work(chat_id, key, by_hand=by_hand, offline=offline, asks=asks)
        except Exception as error:
            # Without a word in the database it would be tried, and paid for, at every tick.
            told = str(error) or repr(error)
            await chats.note_failure(chat_id, told, self._clock.now(), erasure)
            raise
        if report.errors:
            logger.warning(f"{key} 的记忆没有写成，留着下次再写：{report.errors[0]}")
            await chats.note_failure(chat_id, report.errors[0], self._clock.now(), erasure)
        elif report != _NOTHING:
            await chats.note_success(chat_id)
        if report.activities or report.memories:
            logger.info(f"{key} 写了 {report.activities} 条活动、{report.memories} 篇记忆")
        return report

    async def _work(
        self, chat_id: int, key: ChatKey, *, by_hand: bool, offline: bool, asks: bool
    ) -> TidyReport:
        async with self._locks[chat_id]:
            chat = await chats.row(key)
            patient = chat is None or chat.failures < _PATIENCE
            upkeep = self._upkeep(chat_id, key, patient=patient)
            if offline:
                upkeep = replace(upkeep, writer=upkeep.fallback)
            if not by_hand and not await upkeep.owes(chat_id):
                if chat is not None and chat.failures:
                    await chats.note_success(chat_id)  # what failed is not owed any more
                return _NOTHING
            if by_hand:
                await self._claim_in_turn(chat_id)
            elif not await self._claim(chat_id):
                return _NOTHING
            if asks:  # not before its turn: whoever came meanwhile would have taken the one try
                self._ask_at_once()
            try:
                return await upkeep.run(chat_id, everything=by_hand)
            finally:
                await self.let_go(chat_id)

    @asynccontextmanager
    async def skill(self, chat_id: int, key: ChatKey) -> AsyncIterator[SkillSession]:
        """A session on a chat's owed work, which nobody else does meanwhile."""
        async with self.alone_with(chat_id):
            session = self._upkeep(chat_id, key, patient=True).session(chat_id)
            try:
                yield session
            finally:
                session.close()

    def rewriting(
        self, chat_id: int, key: ChatKey, of: Activity | tuple[MemoryKind, str]
    ) -> asyncio.Task[Note | None]:
        """Start on writing a note anew, whoever wrote it; see `Upkeep.rewrite`.

        It may be left to itself: it ends within `LONGEST_REWRITING`, and when the product stops.
        """
        task = asyncio.create_task(self._rewrite(chat_id, key, of), name="nianlun-rewriting")
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        return task

    async def _rewrite(
        self, chat_id: int, key: ChatKey, of: Activity | tuple[MemoryKind, str]
    ) -> Note | None:
        try:
            async with asyncio.timeout(LONGEST_REWRITING), self.alone_with(chat_id):
                self._ask_at_once()
                upkeep = self._upkeep(chat_id, key, patient=True)
                if isinstance(of, Activity):
                    note = await upkeep.rewrite_activity(chat_id, of)
                else:
                    note = await upkeep.rewrite(chat_id, *of)
                if note is not None and note.writer == "model":
                    await chats.note_success(chat_id)  # what else is owed need not wait either
                return note
        except TimeoutError:
            raise ModelUnavailable("等了太久，没有写完，原来的还在") from None

    def _ask_at_once(self) -> None:
        """A person wants it now: a model that is left alone for a while is asked once more."""
        if self._client is not None:
            self._client.try_now()

    async def limit_of(self, key: ChatKey) -> int | None:
        """Tokens that a chat's notes may cost in one logical day; None without a limit."""
        chat = await chats.row(key)
        if chat is not None and chat.daily_token_limit is not None:
            return chat.daily_token_limit
        return self._settings.daily_token_limit

    async def affordable(self, chat_id: int, key: ChatKey) -> bool:
        """Whether a model may still be asked about notes or facts in this logical day."""
        limit = await self.limit_of(key)
        if limit is None:
            return True
        today = self._calendar.day_of(self._clock.now()).isoformat()
        return await usage.tokens(chat_id, today, replies=False) < limit

    async def hold(self, chat_id: int) -> bool:
        """Keep everybody from noting a chat while it is filled; call again to go on.

        False when somebody works on it now, which does no harm but cuts windows short.
        """
        return await self._claim(chat_id)

    @asynccontextmanager
    async def alone_with(self, chat_id: int, patience: float | None = None) -> AsyncIterator[None]:
        """Keep everybody, also of this process, from noting a chat; `hold` it to go on.

        Raises TimeoutError when after so many seconds of `patience` somebody still works on it;
        without any it waits for its turn.
        """
        async with asyncio.timeout(patience):
            await self._locks[chat_id].acquire()
        try:
            async with asyncio.timeout(patience):
                await self._claim_in_turn(chat_id)
            try:
                yield
            finally:
                await self.let_go(chat_id)
        finally:
            self._locks[chat_id].release()

    async def let_go(self, chat_id: int) -> None:
        self._held_until.pop(chat_id, None)
        await asyncio.shield(chats.release(chat_id, _WORK, self._holder))

    async def _claim_in_turn(self, chat_id: int) -> None:
        """Take the lease once whoever has it is done."""
        while True:
            if await self._claim(chat_id):
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _claim(self, chat_id: int) -> bool:
        """Take or renew the lease; it is renewed well before it can run out, not for every job."""
        now = self._clock.now()
        # More than a whole lease is left only where the clock was put back meanwhile.
        if _LEASE / 2 < self._held_until.get(chat_id, now) - now <= _LEASE:
            return True
        if await self._take(chat_id, now):
            self._held_until[chat_id] = now + _LEASE
            return True
        return False

    async def _take(self, chat_id: int, now: datetime) -> bool:
        return await chats.claim(chat_id, _WORK, self._holder, now, now + _LEASE, _is_gone)

    def _upkeep(self, chat_id: int, key: ChatKey, *, patient: bool) -> Upkeep:
        settings = self._settings
        private = key.kind == "private"
        return Upkeep(
            messages=messages,
            memories=memories,
            notes=notes,
            writer=self._new_writer(),
            fallback=OfflineWriter(self._calendar),
            clock=self._clock,
            calendar=self._calendar,
            windows=WindowPolicy(
                messages=settings.activity_messages_private
                if private
                else settings.activity_messages,
                min_messages=settings.activity_min_messages,
                idle=timedelta(minutes=settings.activity_idle_minutes),
            ),
            rollups=RollupPolicy(
                pending_activities=settings.rollup_pending_activities,
                keep_days=settings.keep_days,
            ),
            scene=lambda text: self._recaller.scene(key, chat_id, text),
            still_ours=lambda: self._claim(chat_id),
            patient=patient,
            affordable=lambda: self.affordable(chat_id, key),
        )
