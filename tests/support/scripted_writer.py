"""A writer of notes that does what a test tells it, and a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Literal

from plugins.nonebot_plugin_nianlun.errors import BadAnswer, ModelRefused, ModelUnavailable
from plugins.nonebot_plugin_nianlun.types import Fact, Note, RollupTask, Scene, Window


class SetClock:
    """Stands still until it is set."""

    def __init__(self, now: datetime) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time


async def _nothing() -> None:
    return None


class ScriptedWriter:
    """Repeats its sources word for word, so that what was read can be found again."""

    name: Literal["model", "offline"] = "model"

    def __init__(self) -> None:
        self.windows: list[Window] = []
        self.batches: list[tuple[list[RollupTask], bool]] = []
        self.scenes: list[Scene] = []
        self.declines: Callable[[Window], bool] = lambda window: False
        self.refuses: Callable[[str], bool] = lambda text: False
        self.puzzled_by: Callable[[str], bool] = lambda text: False
        self.facts: Callable[[Window], tuple[Fact, ...]] = lambda window: ()
        self.shorten: Callable[[str], str] = lambda text: text
        self.broken = False
        self.while_noting: Callable[[], Awaitable[None]] = _nothing
        self.while_rolling_up: Callable[[], Awaitable[None]] = _nothing

    @property
    def calls(self) -> int:
        return len(self.windows) + len(self.batches)

    async def write_activity(self, window: Window, scene: Scene) -> Note | None:
        self.windows.append(window)
        self.scenes.append(scene)
        await self.while_noting()
        if self.broken:
            raise ModelUnavailable("模型没有回应")
        text = "我听见：" + "；".join(message.text for message in window.messages)
        if self.refuses(text):
            raise ModelRefused("模型拒绝了这段内容")
        if self.puzzled_by(text):
            raise BadAnswer("没有可用的记忆")
        if self.declines(window):
            return None
        return Note(text, (window.messages[0].seq,), self.name, self.facts(window))

    async def write_memories(
        self, tasks: Sequence[RollupTask], scene: Scene, has_next_tasks: bool
    ) -> list[Note]:
        self.batches.append((list(tasks), has_next_tasks))
        self.scenes.append(scene)
        await self.while_rolling_up()
        if self.broken:
            raise ModelUnavailable("模型没有回应")
        notes = [self._rolled_up(task) for task in tasks]
        if any(self.refuses(note.text) for note in notes):
            raise ModelRefused("模型拒绝了这段内容")
        return notes

    def _rolled_up(self, task: RollupTask) -> Note:
        texts = [source.text for source in task.sources]
        if not task.rebuild and task.target is not None:
            texts.insert(0, task.target.text)
        keys = [key for source in task.sources for key in source.key_messages][:10]
        return Note(self.shorten(" / ".join(texts)), tuple(keys), self.name)
