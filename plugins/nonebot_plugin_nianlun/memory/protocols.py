"""What the pure part of the memory asks of the outside, as small protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from ..types import Note, RollupTask, Scene, Window


class NoteWriter(Protocol):
    """Writes notes. Both methods raise ModelError when no usable text can be had."""

    @property
    def name(self) -> Literal["model", "offline"]: ...

    async def write_activity(self, window: Window, scene: Scene) -> Note | None:
        """A note about the window, or None when nothing in it is worth noting."""
        ...

    async def write_memories(
        self, tasks: Sequence[RollupTask], scene: Scene, has_next_tasks: bool
    ) -> list[Note]:
        """The complete new text of each task's target, in the order of the tasks."""
        ...
