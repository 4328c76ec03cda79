"""What one turn of a talk yields, by one completion of a model: facts and diary moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import secrets

from ..errors import ModelError
from ..memory.answers import parse_json
from ..memory.asking import background, window_blocks
from ..memory.calendar import Calendar
from ..memory.diary import MAX_MOMENTS, entries_of, moment_cut
from ..memory.fact_items import read_facts
from ..memory.notes import not_an_answer
from ..memory.relative_days import settled
from ..types import ChatKey, Fact, Message, Scene, Usage, Window
from .client import ModelClient
from .model_writer import ReportUsage, persona, rules

PURPOSE = "facts"


@dataclass(frozen=True, slots=True)
class TurnYield:
    """Often nothing at all."""

    facts: tuple[Fact, ...]
    moments: tuple[str, ...]
    dropped: tuple[str, ...]
    """Why each fact that was left out was left out."""


class TurnWriter:
    """Asks once, and takes what of the answer can be used."""

    def __init__(
        self,
        client: ModelClient,
        calendar: Calendar,
        report_usage: ReportUsage,
        model: str | None = None,
    ) -> None:
        self._client = client
        self._calendar = calendar
        self._report_usage = report_usage
        self._model = model
        self._rules = rules("turn", "facts", "answer")

    async def write(self, lines: Sequence[Message], scene: Scene) -> TurnYield:
        """What these lines yield. Raises ModelError when there is no usable answer."""
        day = self._calendar.day_of(lines[-1].time).isoformat()
        nonce = secrets.token_hex(4)
        window = Window(day, tuple(lines))
        asked = "\n\n".join(
            [
                *background(scene, nonce),
                *window_blocks(window, scene, self._calendar, nonce),
                "任务：从上面聊天记录里找 facts 和 diary。",
            ]
        )
        answer = await self._ask(scene.chat, self._rules + persona(scene), asked)
        facts, dropped = read_facts(answer.get("facts"), {line.seq for line in lines})
        texts = [settled(moment_cut(t), "activity", day) for t in entries_of(answer.get("diary"))]
        moments = [text for text in texts if text and not not_an_answer(text)]
        return TurnYield(facts, tuple(moments[:MAX_MOMENTS]), dropped)

    async def _ask(self, chat: ChatKey, system: str, asked: str) -> dict[str, object]:
        turns = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
        usage = Usage()
        try:
            completion = await self._client.complete(turns, json=True, model=self._model)
            usage = completion.usage
            answer = parse_json(completion.text)
        except ModelError as error:
            await self._report_usage(chat, PURPOSE, error.usage or usage, False)
            raise
        await self._report_usage(chat, PURPOSE, usage, True)
        return answer if isinstance(answer, dict) else {"facts": answer}
