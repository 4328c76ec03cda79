"""Notes written by a language model: one completion a job, told what is wrong when it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cache
import json
from pathlib import Path
import secrets
from typing import Any, Literal, TypeAlias, TypeVar

from nonebot.log import logger

from ..errors import BadAnswer, ModelError, NoteRejected
from ..memory.answers import parse_json
from ..memory.asking import background, block, rollup_request, window_blocks, window_request
from ..memory.calendar import Calendar
from ..memory.render import one_line
from ..memory.submissions import TRIES, TooLong, read_activity, read_memories
from ..memory.tasks import activity_task, rollup_tasks
from ..types import ChatKey, Note, RollupTask, Scene, Usage, Window
from .client import ModelClient

Turns: TypeAlias = list[dict[str, str]]
ReportUsage: TypeAlias = Callable[[ChatKey, str, Usage, bool], Awaitable[None]]
"""Called after each completion with the chat, the purpose, its cost, and whether it was used."""
T = TypeVar("T")

_ECHOED_CHARACTERS = 4000
_PROMPTS = Path(__file__).parent / "prompts"


class ModelWriter:
    """Writes notes with a model (`model`: the client's own when None)."""

    name: Literal["model"] = "model"

    def __init__(
        self,
        client: ModelClient,
        calendar: Calendar,
        report_usage: ReportUsage,
        model: str | None = None,
        *,
        facts: bool = True,
    ) -> None:
        """`facts`: ask for those of a window together with its note."""
        self._client = client
        self._calendar = calendar
        self._report_usage = report_usage
        self._model = model
        self._rules = {
            "activity": rules("rules", *activity_parts(facts), "answer"),
            "rollup": rules("rules", "rollup", "answer"),
        }

    async def write_activity(self, window: Window, scene: Scene) -> Note | None:
        """A note about the window with its facts, or None when the model declined."""
        shown = {message.seq for message in window.messages if not message.withdrawn}
        nonce = secrets.token_hex(4)
        asked = "\n\n".join(
            [
                *background(scene, nonce),
                *window_blocks(window, scene, self._calendar, nonce),
                "任务：" + _json(activity_task(window_request(window, "上面"))),
            ]
        )
        submitted, usage = await self._ask(
            scene, "activity", asked, lambda answer: read_activity(answer, shown, window.date)
        )
        if submitted.dropped:
            logger.debug("dropped facts: {}", submitted.dropped)
        return None if submitted.note is None else replace(submitted.note, usage=usage)

    async def write_memories(
        self, tasks: Sequence[RollupTask], scene: Scene, has_next_tasks: bool
    ) -> list[Note]:
        """The complete new text of each target, in the order of the tasks."""
        nonce = secrets.token_hex(4)
        batch = rollup_tasks(rollup_request(tasks), tasks, has_next_tasks, self._calendar)
        asked = "\n\n".join(
            [
                *background(scene, nonce),
                block("场合", one_line(scene.place), nonce),
                block("任务", _json(batch), nonce),
            ]
        )
        notes, usage = await self._ask(
            scene, "rollup", asked, lambda answer: read_memories(answer, tasks)
        )
        return [replace(note, usage=usage.share(len(notes))) for note in notes]

    async def _ask(
        self,
        scene: Scene,
        purpose: Literal["activity", "rollup"],
        asked: str,
        read: Callable[[object], T],
    ) -> tuple[T, Usage]:
        """Ask until `read` takes the answer, telling the model what it objected to.

        Returns what was read with the cost of all that was asked for it.
        """
        opening = [
            {"role": "system", "content": self._rules[purpose] + persona(scene)},
            {"role": "user", "content": asked},
        ]
        turns, problem = opening, ""
        shortened: list[T] = []
        spent = Usage()
        for _ in range(TRIES):
            text = ""
            usage = Usage()
            try:
                completion = await self._client.complete(turns, json=True, model=self._model)
                text, usage = completion.text, completion.usage
                result = read(parse_json(text))
            except (NoteRejected, BadAnswer) as error:
                spent += _cost(error, usage)
                await self._report_usage(scene.chat, purpose, _cost(error, usage), False)
                if isinstance(error, TooLong):
                    shortened = [error.shortened]
                problem = str(error)
                turns = opening + _objection(text, problem)
            except ModelError as error:
                await self._report_usage(scene.chat, purpose, _cost(error, usage), False)
                raise
            else:
                await self._report_usage(scene.chat, purpose, usage, True)
                return result, spent + usage
        if shortened:
            return shortened[0], spent
        raise BadAnswer(f"模型连续 {TRIES} 次没有给出可用的记忆：{problem}")


@cache
def rules(*parts: str) -> str:
    """The constant part, which comes first so that a provider's prefix cache can keep it."""
    return "\n".join((_PROMPTS / f"{part}.txt").read_text("utf-8").strip() for part in parts)


def activity_parts(facts: bool) -> tuple[str, ...]:
    """What tells how a window is noted, and what facts of it are wanted."""
    return ("activity", "facts") if facts else ("activity",)


def persona(scene: Scene) -> str:
    return "\n\n角色的名字：" + scene.character + "\n角色设定：\n" + scene.persona


def _cost(error: Exception, usage: Usage) -> Usage:
    """What a failed completion cost: an answer without any text has its price too."""
    return (error.usage if isinstance(error, ModelError) else None) or usage


def _objection(answer: str, problem: str) -> Turns:
    if not answer:
        return []
    return [
        {"role": "assistant", "content": answer[:_ECHOED_CHARACTERS]},
        {"role": "user", "content": f"这个回答不能用：{problem}。请改好后重新输出完整的 JSON。"},
    ]


def _json(task: dict[str, Any]) -> str:
    return json.dumps(task, ensure_ascii=False)
