"""All owed work of one chat: notes for closed windows, then days, months and years."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from ..clock import Clock
from ..errors import BadAnswer, ModelError, ModelRefused, Overtaken
from ..types import (
    Activity,
    Memory,
    MemoryKind,
    Message,
    Note,
    RollupTask,
    Scene,
    SkipReason,
    TidyReport,
    Window,
)
from .calendar import Calendar
from .protocols import NoteWriter
from .render import display_names
from .rollups import ActivityState, Due, MemoryState, RollupPolicy, plan_rollups, settle
from .tokens import estimate_tokens
from .windows import WindowPolicy, plan_windows

_PENDING_LIMIT = 2000
_INPUT_TOKENS = 12_000
"""Sources that one roll-up request carries at most, unless a single target has more."""
_ROUNDS = 1000
"""Far more rounds than years of work take; ends a loop that makes no progress."""


class MessageStore(Protocol):
    async def pending(self, chat_id: int, limit: int) -> list[Message]: ...
    async def of_activity(self, chat_id: int, number: int) -> list[Message]: ...
    async def skip(self, chat_id: int, seqs: Sequence[int], reason: SkipReason) -> None: ...


class MemoryStore(Protocol):
    async def stale_activities(self, chat_id: int) -> list[Activity]: ...
    async def activity_states(self, chat_id: int, dates: Iterable[str]) -> list[ActivityState]: ...
    async def memory_states(self, chat_id: int) -> list[MemoryState]: ...
    async def activities(self, chat_id: int, date: str) -> list[Activity]: ...
    async def target(self, chat_id: int, kind: MemoryKind, period: str) -> Memory | None: ...
    async def memories(
        self, chat_id: int, kind: MemoryKind, periods: Iterable[str]
    ) -> list[Memory]: ...


class NoteStore(Protocol):
    """Stores what was written; raises Overtaken when what it was written from has changed."""

    async def store_activity(
        self, chat_id: int, window: Window, note: Note, now: datetime
    ) -> int: ...
    async def replace_activity(
        self,
        chat_id: int,
        activity: Activity,
        kept: Sequence[int],
        note: Note | None,
        now: datetime,
    ) -> None: ...
    async def store_memories(
        self, chat_id: int, tasks: Sequence[RollupTask], notes: Sequence[Note], now: datetime
    ) -> None: ...
    async def close(self, chat_id: int, kind: MemoryKind, period: str) -> None: ...
    async def discard(self, chat_id: int, kind: MemoryKind, period: str) -> None: ...


@dataclass(slots=True)
class _Tally:
    activities: int = 0
    memories: int = 0
    declined: int = 0
    errors: list[str] = field(default_factory=list)

    def report(self) -> TidyReport:
        return TidyReport(self.activities, self.memories, self.declined, tuple(self.errors))


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Does what one chat owes. Safe to run twice, or in two processes at once: what is stored
    is checked against what it was written from, in the transaction that stores it."""

    messages: MessageStore
    memories: MemoryStore
    notes: NoteStore
    writer: NoteWriter
    fallback: NoteWriter
    """Writes what the writer's provider refuses to read, and in the end what it cannot do."""
    clock: Clock
    calendar: Calendar
    windows: WindowPolicy
    rollups: RollupPolicy
    scene: Callable[[], Awaitable[Scene]]
    """The scene as it is now; asked anew for each job, since each job changes the memory."""
    still_ours: Callable[[], Awaitable[bool]]
    """Renews the lease on this chat's work; False when somebody else has taken it."""
    patient: bool = True
    """Whether what the writer gives no usable answer for may wait; else the fallback writes it."""

    async def run(self, chat_id: int, *, everything: bool = False) -> TidyReport:
        """Do all owed work; `everything` also closes windows that are not due yet.

        Never raises ModelError: what failed stays owed and is told in the report.
        """
        tally = _Tally()
        try:
            await self._rewrite_stale(chat_id, tally)
            waiting = await self._write_windows(chat_id, tally, everything=everything)
            await self._roll_up(chat_id, tally, waiting)
        except ModelError as error:
            tally.errors.append(str(error))
        return tally.report()

    async def owes(self, chat_id: int) -> bool:
        """Whether anything is due now; reads only."""
        if await self.memories.stale_activities(chat_id):
            return True
        pending = await self.messages.pending(chat_id, _PENDING_LIMIT)
        if self._closed(pending, everything=False):
            return True
        activities, memories = await self._states(chat_id)
        today = self.calendar.day_of(self.clock.now())
        waiting = _days_of(pending, self.calendar)
        return bool(plan_rollups(activities, memories, today, self.rollups, waiting))

    def _closed(self, pending: Sequence[Message], *, everything: bool) -> list[Window]:
        return plan_windows(
            pending,
            self.calendar,
            self.windows,
            self.clock.now(),
            everything=everything,
            more=len(pending) == _PENDING_LIMIT,
        )

    async def _states(self, chat_id: int) -> tuple[list[ActivityState], list[MemoryState]]:
        memories = await self.memories.memory_states(chat_id)
        open_days = [m.period for m in memories if m.kind == "day" and _is_open(m)]
        return await self.memories.activity_states(chat_id, open_days), memories

    async def _rewrite_stale(self, chat_id: int, tally: _Tally) -> None:
        for activity in await self.memories.stale_activities(chat_id):
            if not await self.still_ours():
                return
            left = await self.messages.of_activity(chat_id, activity.number)
            note = None
            if left:
                note = await self._rewrite(Window(activity.date, tuple(left)))
            try:
                await self.notes.replace_activity(
                    chat_id, activity, [m.seq for m in left], note, self.clock.now()
                )
                tally.activities += note is not None
            except Overtaken:
                return

    async def _rewrite(self, window: Window) -> Note | None:
        try:
            return await self._write(window)
        except ModelRefused:
            return await self.fallback.write_activity(window, await self._scene_of(window))

    async def _write_windows(self, chat_id: int, tally: _Tally, *, everything: bool) -> set[str]:
        """Write a note for every closed window; returns the days that still have pending lines."""
        pending: list[Message] = []
        failed: set[int] = set()
        for _ in range(_ROUNDS):
            pending = await self.messages.pending(chat_id, _PENDING_LIMIT)
            closed = [
                window
                for window in self._closed(pending, everything=everything)
                if window.messages[0].seq not in failed
            ]
            for window in closed:
                if not await self.still_ours():
                    return _days_of(pending, self.calendar)
                try:
                    await self._note_window(chat_id, window, tally)
                except Overtaken:
                    break
                except BadAnswer as error:
                    # It stays owed; the other windows need not wait for it.
                    failed.add(window.messages[0].seq)
                    tally.errors.append(str(error))
            if not closed:
                return _days_of(pending, self.calendar)
        return _days_of(pending, self.calendar)

    async def _note_window(self, chat_id: int, window: Window, tally: _Tally) -> None:
        """Store a note of the window. Of refused content only the very lines are left out."""
        seqs = [message.seq for message in window.messages]
        try:
            note = await self._write(window)
        except ModelRefused:
            if len(seqs) == 1:
                await self.messages.skip(chat_id, seqs, "refused")
                return
            for part in _halves(window):
                await self._note_window(chat_id, part, tally)
            return
        if note is None:
            await self.messages.skip(chat_id, seqs, "declined")
            tally.declined += 1
        else:
            await self.notes.store_activity(chat_id, window, note, self.clock.now())
            tally.activities += 1

    async def _write(self, window: Window) -> Note | None:
        scene = await self._scene_of(window)
        try:
            return await self.writer.write_activity(window, scene)
        except BadAnswer:
            if self.patient:
                raise
            return await self.fallback.write_activity(window, scene)

    async def _scene_of(self, window: Window) -> Scene:
        names = display_names({m.user_id: m.name for m in window.messages})
        return replace(await self.scene(), names=names)

    async def _roll_up(self, chat_id: int, tally: _Tally, waiting: Collection[str]) -> None:
        for _ in range(_ROUNDS):
            activities, memories = await self._states(chat_id)
            today = self.calendar.day_of(self.clock.now())
            due = plan_rollups(activities, memories, today, self.rollups, waiting)
            if not due or not await self.still_ours():
                return
            batch = await self._batch(chat_id, due)
            follows = len(batch) < len(due) or bool(
                plan_rollups(*settle(activities, memories, due), today, self.rollups, waiting)
            )
            try:
                await self._write_batch(chat_id, batch, tally, follows)
            except Overtaken:
                continue

    async def _batch(self, chat_id: int, due: Sequence[Due]) -> list[tuple[Due, RollupTask]]:
        """As many of the targets as one request carries, at least one."""
        batch: list[tuple[Due, RollupTask]] = []
        tokens = 0
        for item in due:
            task = await self._task(chat_id, item)
            size = sum(estimate_tokens(source.text) for source in task.sources)
            if task.target is not None:
                size += estimate_tokens(task.target.text)
            if batch and tokens + size > _INPUT_TOKENS:
                break
            batch.append((item, task))
            tokens += size
        return batch

    async def _task(self, chat_id: int, item: Due) -> RollupTask:
        target = await self.memories.target(chat_id, item.kind, item.period)
        sources: tuple[Activity, ...] | tuple[Memory, ...]
        if item.kind == "day":
            found = await self.memories.activities(chat_id, item.period)
            sources = tuple(a for a in found if a.text and str(a.number) in item.sources)
        else:
            below: MemoryKind = "day" if item.kind == "month" else "month"
            sources = tuple(await self.memories.memories(chat_id, below, item.sources))
        return RollupTask(item.kind, item.period, sources, target, item.rebuild, item.closes)

    async def _write_batch(
        self,
        chat_id: int,
        batch: Sequence[tuple[Due, RollupTask]],
        tally: _Tally,
        has_next_tasks: bool,
    ) -> None:
        tasks = [task for _, task in batch if task.sources]
        for item, task in batch:
            if task not in tasks:
                await self._finish_without_text(chat_id, item)
        if not tasks:
            return
        # A text that is built anew must not be shown its own earlier form, not even as memory.
        scene = replace(await self.scene(), memory="")
        try:
            notes = await self.writer.write_memories(tasks, scene, has_next_tasks)
        except (ModelRefused, BadAnswer) as error:
            if self.patient and isinstance(error, BadAnswer):
                raise
            notes = await self.fallback.write_memories(tasks, scene, has_next_tasks)
        await self.notes.store_memories(chat_id, tasks, notes, self.clock.now())
        tally.memories += len(notes)

    async def _finish_without_text(self, chat_id: int, item: Due) -> None:
        if item.rebuild:
            await self.notes.discard(chat_id, item.kind, item.period)
        else:
            await self.notes.close(chat_id, item.kind, item.period)


def _halves(window: Window) -> tuple[Window, Window]:
    middle = len(window.messages) // 2
    return (
        Window(window.date, window.messages[:middle]),
        Window(window.date, window.messages[middle:]),
    )


def _is_open(memory: MemoryState) -> bool:
    return memory.stale or not memory.closed


def _days_of(messages: Sequence[Message], calendar: Calendar) -> set[str]:
    return {calendar.day_of(message.time).isoformat() for message in messages}
