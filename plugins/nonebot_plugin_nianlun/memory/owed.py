"""What one chat owes: planned and stored here, whoever does the writing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Protocol, cast

from ..clock import Clock
from ..types import (
    Activity,
    Memory,
    MemoryKind,
    Message,
    Note,
    NoteKind,
    RollupTask,
    SkipReason,
    Window,
)
from .calendar import Calendar
from .edits import edit_of, news
from .promises import dated
from .rollups import ActivityState, Due, MemoryState, RollupPolicy, plan_layer, plan_rollups, settle
from .splitting import task_tokens
from .windows import WindowPolicy, plan_windows

INPUT_TOKENS = 12_000
"""Sources that one request carries at most."""
_PENDING_LIMIT = 2000
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
    async def noted_until(self, chat_id: int) -> datetime | None: ...
    async def activities(self, chat_id: int, date: str) -> list[Activity]: ...
    async def target(self, chat_id: int, kind: MemoryKind, period: str) -> Memory | None: ...
    async def memories(
        self, chat_id: int, kind: MemoryKind, periods: Iterable[str]
    ) -> list[Memory]: ...
    async def held(self, chat_id: int, kind: NoteKind, ref: str) -> list[str]: ...


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
        by: Literal["model", "offline"],
    ) -> None: ...
    async def store_memories(
        self, chat_id: int, tasks: Sequence[RollupTask], notes: Sequence[Note], now: datetime
    ) -> None: ...
    async def hold(self, chat_id: int, task: RollupTask) -> None: ...
    async def discard(self, chat_id: int, kind: MemoryKind, period: str) -> None: ...


@dataclass(frozen=True, slots=True)
class NoteJob:
    """A window to be noted."""

    window: Window
    replaces: Activity | None = None
    """The activity that was built on something taken back; the window is what is left of it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Roll-up tasks to be done together: one kind of target, each with sources."""

    tasks: tuple[RollupTask, ...]
    has_next_tasks: bool
    """Another batch follows once these are stored."""


@dataclass(frozen=True, slots=True)
class Owed:
    """Safe to use twice, or in two processes at once: what is stored is checked against what
    it was written from, in the transaction that stores it."""

    chat_id: int
    messages: MessageStore
    memories: MemoryStore
    notes: NoteStore
    clock: Clock
    calendar: Calendar
    windows: WindowPolicy
    rollups: RollupPolicy
    still_ours: Callable[[], Awaitable[bool]]
    """Renews the lease on this chat's work; False when somebody else has taken it."""

    async def anything(self) -> bool:
        """Whether anything is due now; reads only."""
        if await self.memories.stale_activities(self.chat_id):
            return True
        pending = await self._pending()
        if await self._closed(pending):
            return True
        _, due, _ = await self._due(pending)
        return bool(due)

    async def stale(self) -> list[Activity]:
        return await self.memories.stale_activities(self.chat_id)

    async def rewriting(self, activity: Activity) -> NoteJob:
        """The job of writing a stale activity anew; its window may be empty."""
        left = await self.messages.of_activity(self.chat_id, activity.number)
        return NoteJob(Window(activity.date, tuple(left)), activity)

    async def closed_windows(self, *, everything: bool = False) -> list[Window]:
        """Windows that are due; with `everything` also those that are not due yet."""
        return await self._closed(await self._pending(), everything=everything)

    async def _closed(
        self, pending: Sequence[Message], *, everything: bool = False
    ) -> list[Window]:
        fetched = any(message.source == "history" for message in pending)
        return plan_windows(
            pending,
            self.calendar,
            self.windows,
            self.clock.now(),
            everything=everything,
            more=len(pending) == _PENDING_LIMIT,
            noted_until=await self.memories.noted_until(self.chat_id) if fetched else None,
        )

    async def next_note(self) -> NoteJob | None:
        """The next window to be noted, also one that is not due yet."""
        for activity in await self.stale():
            job = await self.rewriting(activity)
            if job.window.messages:
                return job
            await self.keep_note(job, None, "offline")  # nobody was asked
        windows = await self.closed_windows(everything=True)
        return NoteJob(windows[0]) if windows else None

    async def next_batch(self) -> Batch | None:
        """The next batch that needs texts; what needs none is finished on the way."""
        for _ in range(_ROUNDS):
            states, due, waiting = await self._due(await self._pending())
            if not due or not await self.still_ours():
                return None
            batch = await self._batch(due)
            follows = len(batch) < len(due) or bool(self._plan(settle(*states, due), waiting))
            for _, task in batch:
                if not task.sources:
                    await self._finish_without_text(task)
            if tasks := tuple(task for _, task in batch if task.sources):
                return Batch(tasks, follows)
        return None

    async def rebuilding(self, kind: MemoryKind, period: str) -> Batch | None:
        """The task of building one memory anew from all its sources, whoever wrote its text.

        None when there is no such memory, when one of its sources has to be written first, or
        when none is left.
        """
        waiting = {self.calendar.day_of(m.time).isoformat() for m in await self._pending()}
        memories = [
            replace(memory, stale=True)
            if (memory.kind, memory.period) == (kind, period)
            else memory
            for memory in await self.memories.memory_states(self.chat_id)
        ]
        days = [period] if kind == "day" else []
        activities = await self.memories.activity_states(self.chat_id, days)
        today = self.calendar.day_of(self.clock.now())
        due = plan_layer(kind, activities, memories, today, self.rollups, waiting)
        tasks = [await self._task(item) for item in due if item.period == period and item.rebuild]
        return Batch((tasks[0],), False) if tasks and tasks[0].sources else None

    async def keep_note(
        self, job: NoteJob, note: Note | None, by: Literal["model", "offline"] = "model"
    ) -> None:
        """Store what was written of a window; None when `by` found nothing in it worth noting.

        Raises Overtaken when the window is not any more what was shown.
        """
        seqs = [message.seq for message in job.window.messages]
        now = self.clock.now()
        if note is not None:
            note = replace(note, facts=dated(note.facts, job.window.messages, self.calendar))
        if job.replaces is not None:
            await self.notes.replace_activity(self.chat_id, job.replaces, seqs, note, now, by)
        elif note is None:
            await self.messages.skip(self.chat_id, seqs, "declined")
        else:
            await self.notes.store_activity(self.chat_id, job.window, note, now)

    async def leave_out(self, window: Window) -> None:
        """Consume a window that no writer is allowed to read."""
        seqs = [message.seq for message in window.messages]
        await self.messages.skip(self.chat_id, seqs, "refused")

    async def keep_memories(self, batch: Batch, notes: Sequence[Note]) -> None:
        """Store the texts of a batch, all or none. Raises Overtaken."""
        now = self.clock.now()
        await self.notes.store_memories(self.chat_id, batch.tasks, notes, now)

    async def _pending(self) -> list[Message]:
        return await self.messages.pending(self.chat_id, _PENDING_LIMIT)

    async def _due(
        self, pending: Sequence[Message]
    ) -> tuple[tuple[list[ActivityState], list[MemoryState]], list[Due], set[str]]:
        """How everything stands, what is due, and the days that still have pending lines."""
        waiting = {self.calendar.day_of(message.time).isoformat() for message in pending}
        memories = await self.memories.memory_states(self.chat_id)
        open_days = [m.period for m in memories if m.kind == "day" and (m.stale or not m.closed)]
        activities = await self.memories.activity_states(self.chat_id, open_days)
        states = (activities, memories)
        return states, self._plan(states, waiting), waiting

    def _plan(
        self, states: tuple[list[ActivityState], list[MemoryState]], waiting: Collection[str]
    ) -> list[Due]:
        today = self.calendar.day_of(self.clock.now())
        return plan_rollups(*states, today, self.rollups, waiting)

    async def _batch(self, due: Sequence[Due]) -> list[tuple[Due, RollupTask]]:
        """As many of the targets as one request carries, at least one."""
        batch: list[tuple[Due, RollupTask]] = []
        tokens = 0
        for item in due:
            task = await self._task(item)
            size = task_tokens(task)
            if batch and tokens + size > INPUT_TOKENS:
                break
            batch.append((item, task))
            tokens += size
        return batch

    async def _task(self, item: Due) -> RollupTask:
        target = await self.memories.target(self.chat_id, item.kind, item.period)
        sources: tuple[Activity, ...] | tuple[Memory, ...]
        if item.kind == "day":
            found = await self.memories.activities(self.chat_id, item.period)
            sources = tuple(a for a in found if a.text and str(a.number) in item.sources)
        else:
            below: MemoryKind = "day" if item.kind == "month" else "month"
            sources = tuple(await self.memories.memories(self.chat_id, below, item.sources))
        task = RollupTask(item.kind, item.period, sources, target, item.rebuild, item.closes)
        return await self._with_news(task) if edit_of(task) else task

    async def _with_news(self, task: RollupTask) -> RollupTask:
        """Of the sources that a person's text holds, what is new in them."""
        assert task.target is not None
        new: list[Activity | Memory] = []
        told: list[Activity | Memory] = []
        for source in task.sources:
            kind, ref = _place(source)
            if ref in task.target.sources:
                held = await self.memories.held(self.chat_id, kind, ref)
                if (changed := news(source, held, task.target.text)) is None:
                    told.append(source)
                    continue
                source = changed
            new.append(source)
        sources = cast("tuple[Activity, ...] | tuple[Memory, ...]", tuple(new))
        return replace(task, sources=sources, told=tuple(told))

    async def _finish_without_text(self, task: RollupTask) -> None:
        if task.rebuild:
            await self.notes.discard(self.chat_id, task.kind, task.period)
        else:
            await self.notes.hold(self.chat_id, task)


def _place(source: Activity | Memory) -> tuple[NoteKind, str]:
    if isinstance(source, Activity):
        return "activity", str(source.number)
    return source.kind, source.period
