"""Notes written by a language model: one completion a job, told what is wrong when it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import date
import json
from pathlib import Path
import secrets
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from nonebot.log import logger

from ..errors import BadAnswer, ModelError, NoteRejected
from ..memory.calendar import Calendar
from ..memory.notes import check_note
from ..memory.render import one_line, render_messages
from ..memory.tasks import (
    Declined,
    activity_task,
    ids_shown,
    parse_activity,
    parse_memories,
    rollup_tasks,
)
from ..memory.units import count_units, cut_to_units
from ..types import UNIT_LIMITS, ChatKey, Note, NoteKind, RollupTask, Scene, Usage, Window
from .answers import parse_json
from .client import ModelClient

Turns: TypeAlias = list[dict[str, str]]
ReportUsage: TypeAlias = Callable[[ChatKey, str, Usage, bool], Awaitable[None]]
"""Called after each completion with the chat, the purpose, its cost, and whether it was used."""
T = TypeVar("T")

_TRIES = 3
_ECHOED_CHARACTERS = 4000
_PROMPTS = Path(__file__).parent / "prompts"


class _TooLong(NoteRejected, Generic[T]):
    """The only trouble is the length; `shortened` is what a cut would make of it."""

    def __init__(self, message: str, shortened: T) -> None:
        super().__init__(message)
        self.shortened = shortened


class ModelWriter:
    """Writes notes with a model (`model`: the client's own when None)."""

    name: Literal["model"] = "model"

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
        self._rules = {name: _rules(name) for name in ("activity", "rollup")}

    async def write_activity(self, window: Window, scene: Scene) -> Note | None:
        """A note about the window with its facts, or None when the model declined."""
        shown = {message.seq for message in window.messages if not message.withdrawn}
        nonce = secrets.token_hex(4)
        task = activity_task(
            f"把上面聊天记录里的 {len(window.messages)} 条消息写成一条活动记录。"
            f"这一天是 {_day(window.date)}。"
        )
        messages = render_messages(window.messages, self._calendar, scene.names, me=scene.character)
        categories = "、".join(scene.known_categories) or "还没有"
        asked = "\n\n".join(
            [
                *_background(scene, nonce),
                _block("场合", f"{one_line(scene.place)}\n已有的 category：{categories}", nonce),
                _block("聊天记录", messages, nonce),
                "任务：" + _json(task),
            ]
        )
        return await self._ask(
            scene, "activity", asked, lambda answer: _read_activity(answer, shown)
        )

    async def write_memories(
        self, tasks: Sequence[RollupTask], scene: Scene, has_next_tasks: bool
    ) -> list[Note]:
        """The complete new text of each target, in the order of the tasks."""
        nonce = secrets.token_hex(4)
        days = "、".join(_day(task.period) for task in tasks if task.kind == "day")
        prompt = f"整理这一批 {len(tasks)} 个任务。" + (days and f"日期：{days}。")
        batch = rollup_tasks(prompt, tasks, has_next_tasks, self._calendar)
        asked = "\n\n".join(
            [
                *_background(scene, nonce),
                _block("场合", one_line(scene.place), nonce),
                _block("任务", _json(batch), nonce),
            ]
        )
        return await self._ask(scene, "rollup", asked, lambda answer: _read_memories(answer, tasks))

    async def _ask(
        self,
        scene: Scene,
        purpose: Literal["activity", "rollup"],
        asked: str,
        read: Callable[[object], T],
    ) -> T:
        """Ask until `read` takes the answer, telling the model what it objected to."""
        opening = [
            {"role": "system", "content": self._rules[purpose] + _persona(scene)},
            {"role": "user", "content": asked},
        ]
        turns, problem = opening, ""
        shortened: list[T] = []
        for _ in range(_TRIES):
            text = ""
            usage = Usage()
            try:
                completion = await self._client.complete(turns, json=True, model=self._model)
                text, usage = completion.text, completion.usage
                result = read(parse_json(text))
            except (NoteRejected, BadAnswer) as error:
                await self._report_usage(scene.chat, purpose, usage, False)
                if isinstance(error, _TooLong):
                    shortened = [error.shortened]
                problem = str(error)
                turns = opening + _objection(text, problem)
            except ModelError:
                await self._report_usage(scene.chat, purpose, usage, False)
                raise
            else:
                await self._report_usage(scene.chat, purpose, usage, True)
                return result
        if shortened:
            return shortened[0]
        raise BadAnswer(f"模型连续 {_TRIES} 次没有给出可用的记忆：{problem}")


def _read_activity(answer: object, shown: Collection[int]) -> Note | None:
    submission = parse_activity(answer, shown)
    if isinstance(submission, Declined):
        return None
    if submission.dropped:
        logger.debug("dropped facts: {}", submission.dropped)
    text, keys, complaint = _check("activity", submission.memory, shown)
    note = Note(text, keys, "model", submission.facts)
    if complaint:
        raise _TooLong(complaint, note)
    return note


def _read_memories(answer: object, tasks: Sequence[RollupTask]) -> list[Note]:
    notes: list[Note] = []
    complaints: list[str] = []
    for number, (task, memory) in enumerate(
        zip(tasks, parse_memories(answer, tasks), strict=True), 1
    ):
        try:
            text, keys, complaint = _check(task.kind, memory, ids_shown(task))
        except NoteRejected as error:
            raise NoteRejected(f"task_id {number}：{error}") from None
        notes.append(Note(text, keys, "model"))
        if complaint:
            complaints.append(f"task_id {number}：{complaint}")
    if complaints:
        raise _TooLong("；".join(complaints), notes)
    return notes


def _check(kind: NoteKind, memory: str, shown: Collection[int]) -> tuple[str, tuple[int, ...], str]:
    """Text, key messages, and the complaint where it is good but for a length now cut."""
    try:
        return *check_note(kind, memory, shown), ""
    except NoteRejected as error:
        if count_units(memory) <= UNIT_LIMITS[kind]:
            raise
        return *check_note(kind, cut_to_units(memory, UNIT_LIMITS[kind]), shown), str(error)


def _rules(name: str) -> str:
    """The constant part, which comes first so that a provider's prefix cache can keep it."""
    return "\n".join(
        (_PROMPTS / f"{part}.txt").read_text("utf-8").strip() for part in ("rules", name)
    )


def _persona(scene: Scene) -> str:
    return "\n\n角色的名字：" + scene.character + "\n角色设定：\n" + scene.persona


def _background(scene: Scene, nonce: str) -> list[str]:
    parts = (("现有的记忆", scene.memory), ("想起来的事", scene.recalled))
    return [_block(title, text, nonce) for title, text in parts if text]


def _block(title: str, text: str, nonce: str) -> str:
    """Text of others between marks that it cannot forge, as the nonce is new in each request."""
    return f"【{title} {nonce}】\n{text}\n【{title}完 {nonce}】"


def _objection(answer: str, problem: str) -> Turns:
    if not answer:
        return []
    return [
        {"role": "assistant", "content": answer[:_ECHOED_CHARACTERS]},
        {"role": "user", "content": f"这个回答不能用：{problem}。请改好后重新输出完整的 JSON。"},
    ]


def _day(day: str) -> str:
    return f"{day}（星期{'一二三四五六日'[date.fromisoformat(day).weekday()]}）"


def _json(task: dict[str, Any]) -> str:
    return json.dumps(task, ensure_ascii=False)
