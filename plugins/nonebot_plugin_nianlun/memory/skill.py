"""The skill `update_short_term_memory`: its tool schema, and a session that answers its calls.

The same session serves a tool-calling model and a caller in Python. It plans and stores nothing
itself: behind it is a desk that hands out jobs and takes what was written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
import json
from typing import Any, Protocol, TypeVar

from ..errors import NoteRejected, Overtaken
from ..types import Note, Scene, Window
from .asking import NOTHING_TO_DO, rollup_request, window_prompt
from .calendar import Calendar
from .fact_items import MAX_FACTS
from .owed import Batch, NoteJob
from .submissions import TRIES, TooLong, read_activity, read_memories
from .tasks import activity_task, rollup_tasks

T = TypeVar("T")

SKILL_NAME = "update_short_term_memory"

_TEXT = {"type": "string"}
_FACT = {
    "type": "object",
    "properties": {
        "category": _TEXT,
        "name": _TEXT,
        "content": _TEXT,
        "from": {"type": "integer", "description": "说出这件事的消息编号"},
        "done": {"type": "boolean", "description": "约定（promise）已经做到"},
    },
    "required": ["category", "name", "content", "from"],
}
_UPDATE = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["update_memory"]},
        "task_id": {"type": "integer"},
        "kind": {"type": "string", "enum": ["day", "month", "year"]},
        "date": {"type": "string", "description": "照抄这个任务的 target.date"},
        "memory": {"type": "string", "description": "更新后的完整正文"},
    },
    "required": ["action", "task_id", "kind", "date", "memory"],
}
SKILL_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": SKILL_NAME,
        "description": (
            "更新自己的短期记忆。先用 get_tasks 取任务：任务是 add_activity 时，"
            "用 add_activity 提交一条活动记录，没有值得记的用 decline；任务是 update_memory 时，"
            "用 actions 一次提交这一批全部任务，has_next_tasks 为 true 就再取下一批。"
            "提交失败会说明原因，改好后重新提交。"
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["get_tasks", "add_activity", "decline"]},
                "memory": {"type": "string", "description": "add_activity 的正文"},
                "facts": {
                    "type": "array",
                    "maxItems": MAX_FACTS,
                    "items": _FACT,
                    "description": "随 add_activity 提交的事实，没有就不写",
                },
                "actions": {
                    "type": "array",
                    "items": _UPDATE,
                    "description": "整理任务的提交，每个 task 一条",
                },
            },
        },
    },
}
"""For the `tools` of a chat completion; the arguments are those of `SkillSession.call`."""


class Desk(Protocol):
    """Hands out one chat's jobs and stores what is written. Both `keep…` raise Overtaken."""

    async def next_note(self) -> NoteJob | None: ...
    async def next_batch(self) -> Batch | None: ...
    async def keep_note(self, job: NoteJob, note: Note | None) -> None: ...
    async def keep_memories(self, batch: Batch, notes: Sequence[Note]) -> None: ...


async def _always() -> bool:
    return True


class SkillSession:
    """One writer at work on one chat: one window, or all batches of a roll-up.

    What kind it is shows with its first task; windows come before roll-ups.
    """

    tool = SKILL_TOOL
    """What a model is to be offered, whose calls then go to `call`."""

    def __init__(
        self,
        desk: Desk,
        scene: Callable[[Window], Awaitable[Scene]],
        calendar: Calendar,
        still_ours: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        self._desk = desk
        self._scene = scene
        self._calendar = calendar
        self._still_ours = still_ours
        self._job: NoteJob | Batch | None = None
        self._kind: type[NoteJob | Batch] | None = None
        self._noted = False
        self._closed = False
        self._too_long = 0
        self._turn = asyncio.Lock()

    def close(self) -> None:
        """Take nothing more."""
        self._closed = True

    async def call(self, arguments: str | dict[str, Any]) -> dict[str, Any]:
        """Answer one call of the tool; `arguments` as JSON text or as the object itself.

        `{"action":"get_tasks"}` gives the task. A submission gives `{"success": true, …}`, or
        `{"success": false, "error": "…"}` with what to change: then nothing of it was stored.
        Raises StoreError when the database cannot serve, and nothing else.
        """
        async with self._turn:
            try:
                return await self._serve(_request(arguments))
            except Overtaken:
                self._job = None
                return failure("资料刚刚有了变化，这次没有保存，请重新调用 get_tasks")
            except NoteRejected as error:
                return failure(str(error))

    async def _serve(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._closed:
            raise NoteRejected("这次更新已经结束，不能再提交")
        if not await self._still_ours():
            raise NoteRejected("这个会话的记忆正在由别处整理，这次没有保存")
        if request.get("action") == "get_tasks":
            return await self._tasks()
        if isinstance(self._job, NoteJob):
            return await self._take_note(self._job, request)
        if isinstance(self._job, Batch):
            return await self._take_memories(self._job, request)
        raise NoteRejected(self._nothing_open())

    async def _tasks(self) -> dict[str, Any]:
        if self._noted:
            return activity_task("这条活动记录已经完成，没有别的任务了。")
        if self._kind is not Batch and (job := await self._desk.next_note()):
            self._open(job, NoteJob)
            scene = await self._scene(job.window)
            return activity_task(window_prompt(job.window, scene, self._calendar))
        batch = await self._desk.next_batch()
        self._open(batch, Batch)
        if batch is None:
            return rollup_tasks(NOTHING_TO_DO, (), False, self._calendar)
        prompt = rollup_request(batch.tasks)
        return rollup_tasks(prompt, batch.tasks, batch.has_next_tasks, self._calendar)

    def _open(self, job: NoteJob | Batch | None, kind: type[NoteJob | Batch]) -> None:
        if job != self._job:
            self._too_long = 0  # that was about another job
        self._job, self._kind = job, kind

    async def _take_note(self, job: NoteJob, request: dict[str, Any]) -> dict[str, Any]:
        if "update_memory" in _named(request):
            raise NoteRejected("update_memory 只能用于整理任务，现在的任务是 add_activity")
        shown = {message.seq for message in job.window.messages if not message.withdrawn}
        submitted, cut = self._read(lambda: read_activity(request, shown, job.window.date))
        await self._desk.keep_note(job, submitted.note)
        self._job, self._noted = None, True
        dropped = {"dropped_facts": list(submitted.dropped)} if submitted.dropped else {}
        return {"success": True, **cut, **dropped}

    async def _take_memories(self, batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
        if wrong := _named(request) & {"add_activity", "decline"}:
            raise NoteRejected(f"{min(wrong)} 只能用于新增活动记录，现在的任务是 update_memory")
        notes, cut = self._read(lambda: read_memories(request, batch.tasks))
        await self._desk.keep_memories(batch, notes)
        self._job = None
        return {"success": True, "has_next_tasks": batch.has_next_tasks, **cut}

    def _read(self, read: Callable[[], T]) -> tuple[T, dict[str, bool]]:
        """What was handed in; the last of some that were too long is taken as far as it fits."""
        try:
            result, cut = read(), {}
        except TooLong as error:
            self._too_long += 1
            if self._too_long < TRIES:
                raise
            result, cut = error.shortened, {"shortened": True}
        self._too_long = 0
        return result, cut

    def _nothing_open(self) -> str:
        if self._noted:
            return "这次的活动记录已经完成，不能再提交"
        return '请先用 {"action":"get_tasks"} 取得任务，再提交'


def failure(error: str) -> dict[str, Any]:
    """The answer to a call that changed nothing."""
    return {"success": False, "error": error}


def _request(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise NoteRejected("参数不是完整的 JSON，请改好后重新调用") from None
    if isinstance(arguments, list):
        arguments = {"actions": arguments}
    if not isinstance(arguments, dict):
        raise NoteRejected("参数应为一个 JSON 对象")
    try:
        json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):
        # From Python may come what has no end, or cannot even be shown in an objection.
        raise NoteRejected("参数里有 JSON 写不出来的东西") from None
    return arguments


def _named(request: dict[str, Any]) -> set[str]:
    """The actions that a submission names."""
    actions = request.get("actions", [request])
    items = actions if isinstance(actions, list) else []
    names = [item.get("action") for item in items if isinstance(item, dict)]
    return {name for name in names if isinstance(name, str)}
