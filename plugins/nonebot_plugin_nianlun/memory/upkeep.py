"""All owed work of one chat: notes for closed windows, then days, months and years."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ..clock import Clock
from ..errors import BadAnswer, ModelError, ModelRefused, Overtaken
from ..types import (
    Activity,
    Memory,
    MemoryKind,
    Note,
    RollupTask,
    Scene,
    TidyReport,
    Window,
    is_edited,
)
from .calendar import Calendar
from .edits import edit_of, keeps_edit
from .keymarks import find_key_messages
from .owed import INPUT_TOKENS, Batch, MemoryStore, MessageStore, NoteJob, NoteStore, Owed
from .protocols import NoteWriter
from .render import display_names
from .rollups import RollupPolicy
from .skill import SkillSession
from .splitting import joined_task, split_task
from .windows import WindowPolicy

_ROUNDS = 1000
"""Far more rounds than years of work take; ends a loop that makes no progress."""
_REWRITES = 3
_Written: TypeAlias = tuple[Note | None, Literal["model", "offline"]]
"""A note, None where nothing was worth one, and who wrote it or found so."""


async def _always() -> bool:
    return True


class _Spent(ModelError):
    """The day's tokens ran out between the parts of one text."""


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
    """Has what one chat owes written, by a model as long as that may be and can."""

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
    scene: Callable[[str], Awaitable[Scene]]
    """The scene as it is now, with what a text brings up there; asked anew for each job, since
    each job changes the memory."""
    still_ours: Callable[[], Awaitable[bool]]
    """Renews the lease on this chat's work; False when somebody else has taken it."""
    patient: bool = True
    """Whether what the writer gives no usable answer for may wait; else the fallback writes it."""
    affordable: Callable[[], Awaitable[bool]] = _always
    """Whether the writer may be asked now; while it may not, the fallback writes."""

    async def run(self, chat_id: int, *, everything: bool = False) -> TidyReport:
        """Do all owed work; `everything` also closes windows that are not due yet.

        Never raises ModelError: what failed stays owed and is told in the report.
        """
        tally = _Tally()
        owed = self._owed(chat_id)
        try:
            await self._rewrite_stale(owed, tally)
            await self._write_windows(owed, tally, everything=everything)
            await self._roll_up(owed, tally)
        except ModelError as error:
            tally.errors.append(str(error))
        return tally.report()

    async def owes(self, chat_id: int) -> bool:
        """Whether anything is due now; reads only."""
        return await self._owed(chat_id).anything()

    def session(self, chat_id: int) -> SkillSession:
        """The same work to be done by a caller; windows that are not due yet are handed out too."""
        return SkillSession(self._owed(chat_id), self._scene_of, self.calendar, self.still_ours)

    def _owed(self, chat_id: int) -> Owed:
        return Owed(
            chat_id,
            self.messages,
            self.memories,
            self.notes,
            self.clock,
            self.calendar,
            self.windows,
            self.rollups,
            self.still_ours,
        )

    async def _rewrite_stale(self, owed: Owed, tally: _Tally) -> None:
        for activity in await owed.stale():
            if not await self.still_ours():
                return
            job = await owed.rewriting(activity)
            note, by = await self._rewrite(job.window)
            try:
                await owed.keep_note(job, note, by)
                tally.activities += note is not None
            except Overtaken:
                return

    async def _rewrite(self, window: Window) -> _Written:
        """Of a window that may be empty, and then no model is asked."""
        if not window.messages:
            return None, self.fallback.name
        try:
            return await self._write(window)
        except ModelRefused:
            return await self._fall_back(window, await self._scene_of(window))

    async def _write_windows(self, owed: Owed, tally: _Tally, *, everything: bool) -> None:
        failed: set[int] = set()
        for _ in range(_ROUNDS):
            closed = [
                window
                for window in await owed.closed_windows(everything=everything)
                if window.messages[0].seq not in failed
            ]
            if not closed:
                return
            for window in closed:
                if not await self.still_ours():
                    return
                try:
                    await self._note_window(owed, window, tally)
                except Overtaken:
                    break
                except BadAnswer as error:
                    # It stays owed; the other windows need not wait for it.
                    failed.add(window.messages[0].seq)
                    tally.errors.append(str(error))

    async def _note_window(self, owed: Owed, window: Window, tally: _Tally) -> None:
        """Store a note of the window. Of refused content only the very lines are left out."""
        try:
            note, _ = await self._write(window)
        except ModelRefused:
            if len(window.messages) == 1:
                await owed.leave_out(window)
                return
            for part in _halves(window):
                await self._note_window(owed, part, tally)
            return
        await owed.keep_note(NoteJob(window), note)
        if note is None:
            tally.declined += 1
        else:
            tally.activities += 1

    async def _write(self, window: Window) -> _Written:
        scene = await self._scene_of(window)
        if not await self.affordable():
            return await self._fall_back(window, scene)
        try:
            return await self.writer.write_activity(window, scene), self.writer.name
        except BadAnswer:
            if self.patient:
                raise
            return await self._fall_back(window, scene)

    async def _fall_back(self, window: Window, scene: Scene) -> _Written:
        return await self.fallback.write_activity(window, scene), self.fallback.name

    async def _scene_of(self, window: Window) -> Scene:
        names = display_names({m.user_id: m.name for m in window.messages})
        said = "\n".join(message.text for message in window.messages)
        return replace(await self.scene(said), names=names)

    async def _roll_up(self, owed: Owed, tally: _Tally) -> None:
        for _ in range(_ROUNDS):
            batch = await owed.next_batch()
            if batch is None:
                return
            try:
                notes = await self._write_batch(batch)
                await owed.keep_memories(batch, notes)
            except Overtaken:
                continue
            tally.memories += len(notes)

    async def rewrite(self, chat_id: int, kind: MemoryKind, period: str) -> Note | None:
        """Do what is due, then build one memory anew from all its sources, whoever wrote it.

        None when it cannot be built yet, or nothing is left that it could be built from. Raises
        ModelError, and then nothing is changed; Overtaken when it keeps changing meanwhile.
        """
        await self.run(chat_id)
        owed = self._owed(chat_id)
        replaced: Memory | None = None
        for _ in range(_REWRITES):
            batch = await owed.rebuilding(kind, period)
            if batch is None:
                return None
            target = batch.tasks[0].target
            if replaced and target and target.version != replaced.version:
                break  # somebody wrote it meanwhile, which nobody asked to have replaced
            replaced = target
            with suppress(Overtaken):
                (note,) = await self._write_batch(batch)
                await owed.keep_memories(batch, [note])
                return note
        raise Overtaken(f"{period} 正在被别处改动，这次没有重写，过一会儿再试")

    async def rewrite_activity(self, chat_id: int, activity: Activity) -> Note | None:
        """Write the note of a window anew, whoever wrote it.

        None when there is no window, or nothing in it is worth noting: the old text stands, and one
        that waited to be written anew does so no longer. Raises ModelError, and Overtaken when the
        window or its note has changed meanwhile.
        """
        of_day = await self.memories.activities(chat_id, activity.date)
        now = next((one for one in of_day if one.number == activity.number), activity)
        if now.text and not (activity.text or is_edited(now.writer)):
            # It waited for this, and whoever had the chat before has done it.
            by = "model" if now.writer == "model" else "offline"
            return Note(now.text, now.key_messages, by)
        owed = self._owed(chat_id)
        waits = activity.number in {one.number for one in await owed.stale()}
        job = await owed.rewriting(activity)
        note, by = await self._rewrite(job.window)
        if note is not None or waits:
            await owed.keep_note(job, note, by)
        return note

    async def _write_batch(self, batch: Batch) -> list[Note]:
        """The new texts; one that would lose what a person wrote is written by the fallback."""
        notes = await self._write_texts(batch)
        for place, task in enumerate(batch.tasks):
            if not keeps_edit(task, notes[place].text):
                scene = replace(await self.scene(""), memory="")
                (note,) = await self.fallback.write_memories([task], scene, batch.has_next_tasks)
                notes[place] = note if keeps_edit(task, note.text) else _unchanged(task)
        return notes

    async def _write_texts(self, batch: Batch) -> list[Note]:
        # A text that is built anew must not be shown its own earlier form, not even as memory.
        scene = replace(await self.scene(""), memory="")
        tasks, follows = batch.tasks, batch.has_next_tasks
        try:
            if not await self.affordable():
                raise _Spent
            if len(tasks) == 1 and self.writer.name == "model":
                return [await self._write_in_parts(tasks[0], scene, follows)]
            return await self.writer.write_memories(tasks, scene, follows)
        except (ModelRefused, BadAnswer, _Spent) as error:
            edited = any(edit_of(task) for task in tasks)
            if self.patient and isinstance(error, BadAnswer) and not edited:
                raise
            return await self.fallback.write_memories(tasks, scene, follows)

    async def _write_in_parts(self, task: RollupTask, scene: Scene, follows: bool) -> Note:
        """One text; of more sources than a request carries first one a part, then one of these."""
        while parts := split_task(task, INPUT_TOKENS):
            notes = [await self._write_part(part, scene) for part in parts]
            task = joined_task(task, parts, notes)
            if not await self.affordable():
                raise _Spent
        (note,) = await self.writer.write_memories([task], scene, follows)
        return note

    async def _write_part(self, part: RollupTask, scene: Scene) -> Note:
        if not await self.still_ours():
            raise Overtaken
        if not await self.affordable():
            raise _Spent
        (note,) = await self.writer.write_memories([part], scene, True)
        return note


def _unchanged(task: RollupTask) -> Note:
    """A person's text as it stands, where nothing can be added to it."""
    edit = edit_of(task)
    return Note(edit, find_key_messages(edit), "offline")


def _halves(window: Window) -> tuple[Window, Window]:
    middle = len(window.messages) // 2
    return (
        Window(window.date, window.messages[:middle]),
        Window(window.date, window.messages[middle:]),
    )
