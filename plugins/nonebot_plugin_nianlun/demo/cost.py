"""What it would cost to have a model write the memory, measured without asking one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import ModelRefused
from ..llm.client import Completion, ModelClient
from ..llm.model_writer import ModelWriter
from ..llm.offline_writer import OfflineWriter
from ..memory.calendar import Calendar
from ..memory.tokens import estimate_tokens
from ..types import UNIT_LIMITS, ChatKey, Note, NoteKind, RollupTask, Scene, Usage, Window

_FRAME_TOKENS = 40
"""The JSON around a text in an answer."""
_FACT_TOKENS = 60
"""Room for the facts that a model may hand in with an activity."""


@dataclass(slots=True)
class Cost:
    """Estimated: calls, and tokens of all prompts and all answers together."""

    activities: int = 0
    batches: int = 0
    prompt: int = 0
    completion: int = 0

    @property
    def calls(self) -> int:
        return self.activities + self.batches


class MeasuringWriter:
    """Measures the prompts that a model would be sent, and writes the notes offline.

    Answers count as long as they may be; a model's notes being longer than these, the prompts
    of a model that is really asked are a little larger.
    """

    name: Literal["offline"] = "offline"

    def __init__(self, calendar: Calendar) -> None:
        self.cost = Cost()
        self._offline = OfflineWriter(calendar)
        self._model = ModelWriter(_Scales(self.cost), calendar, _uncounted)

    async def write_activity(self, window: Window, scene: Scene) -> Note | None:
        self.cost.activities += 1
        self.cost.completion += _answer("activity") + _FACT_TOKENS
        try:
            return await self._model.write_activity(window, scene)
        except ModelRefused:
            return await self._offline.write_activity(window, scene)

    async def write_memories(
        self, tasks: Sequence[RollupTask], scene: Scene, has_next_tasks: bool
    ) -> list[Note]:
        self.cost.batches += 1
        self.cost.completion += sum(_answer(task.kind) for task in tasks)
        try:
            return await self._model.write_memories(tasks, scene, has_next_tasks)
        except ModelRefused:
            return await self._offline.write_memories(tasks, scene, has_next_tasks)


class _Scales(ModelClient):
    """Weighs what it is to send, and sends nothing."""

    def __init__(self, cost: Cost) -> None:
        super().__init__(api_key="", base_url="", model="")
        self._cost = cost

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        json: bool = False,
        model: str | None = None,
        seconds: float | None = None,
    ) -> Completion:
        self._cost.prompt += sum(estimate_tokens(turn["content"]) for turn in messages)
        raise ModelRefused("这里只量长短，不问模型")


async def _uncounted(chat: ChatKey, purpose: str, usage: Usage, ok: bool) -> None:
    """Nothing was spent."""


def _answer(kind: NoteKind) -> int:
    return UNIT_LIMITS[kind] + _FRAME_TOKENS
