"""The writer in use without a model: it counts and quotes, and adds nothing of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..memory.calendar import Calendar
from ..types import Note, RollupTask, Scene, Window
from .offline_activity import describe_window
from .offline_names import place_words
from .offline_rollup import describe_task


class OfflineWriter:
    """Deterministic and extractive: the same sources always give the same note."""

    name: Literal["offline"] = "offline"

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar

    async def write_activity(self, window: Window, scene: Scene) -> Note | None:
        """A note about the window, or None when nothing in it can be read."""
        return describe_window(window, scene, self._calendar)

    async def write_memories(
        self, tasks: Sequence[RollupTask], scene: Scene, has_next_tasks: bool
    ) -> list[Note]:
        """The complete new text of each task's target, in the order of the tasks."""
        place = place_words(scene)
        return [describe_task(task, place, self._calendar) for task in tasks]
