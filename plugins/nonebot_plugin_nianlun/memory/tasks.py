"""The skill protocol: what a task looks like to a model, and what counts as its submission.

`get_tasks` results are plain dicts ready for JSON. Submissions are judged as a whole: one that
is not exactly what was asked raises NoteRejected with a sentence that tells the model what to
change, and nothing of it is used.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import NoteRejected
from ..types import Activity, Fact, Memory, MemoryKind, NoteKind, RollupTask
from .calendar import Calendar
from .fact_items import quoted, read_facts
from .render import one_line

SOURCE_KINDS: dict[MemoryKind, NoteKind] = {"day": "activity", "month": "day", "year": "month"}


@dataclass(frozen=True, slots=True)
class ActivitySubmission:
    """What a model handed in for a window. The text is not checked yet, the facts are."""

    memory: str
    facts: tuple[Fact, ...] = ()
    dropped: tuple[str, ...] = ()
    """Why each fact that was left out was left out."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The model found nothing worth noting."""


def activity_task(prompt: str) -> dict[str, Any]:
    """The `get_tasks` result of a session that writes one activity."""
    return {"action": "add_activity", "prompt": prompt, "has_next_tasks": False}


def rollup_tasks(
    prompt: str, tasks: Sequence[RollupTask], has_next_tasks: bool, calendar: Calendar
) -> dict[str, Any]:
    """The `get_tasks` result of a roll-up batch; task ids count from 1 in each batch.

    Without tasks it says that nothing is left, whatever `has_next_tasks` is.
    """
    return {
        "action": "update_memory",
        "prompt": prompt,
        "has_next_tasks": has_next_tasks and bool(tasks),
        "tasks": [_task(number, task, calendar) for number, task in enumerate(tasks, 1)],
    }


def ids_shown(task: RollupTask) -> frozenset[int]:
    """Short ids of the messages that the task shows, which are those that it may cite."""
    shown = {number for source in task.sources for number in source.key_messages}
    if task.target is not None and not task.rebuild:
        shown.update(task.target.key_messages)
    return frozenset(shown)


def parse_activity(answer: object, shown: Collection[int]) -> ActivitySubmission | Declined:
    """Read `{"action":"add_activity","memory":…,"facts":[…]}` or `{"action":"decline"}`."""
    actions = _actions(answer)
    if len(actions) != 1:
        raise NoteRejected(f"应提交 1 个 add_activity，收到 {len(actions)} 个")
    action = actions[0]
    name = action.get("action")
    if name == "decline":
        return Declined()
    if name != "add_activity":
        raise NoteRejected(f"action 应为 add_activity 或 decline，收到 {quoted(name)}")
    facts, dropped = read_facts(action.get("facts"), shown)
    return ActivitySubmission(_memory_text(action, "add_activity"), facts, dropped)


def parse_memories(answer: object, tasks: Sequence[RollupTask]) -> list[str]:
    """Read `{"actions":[{"action":"update_memory",…}]}`: one text for each task, in their order.

    A bare list of actions is taken too, and a lone action where there is one task.
    """
    actions = _actions(answer)
    by_id: dict[str, dict[str, Any]] = {}
    for action in actions:
        task_id = str(action.get("task_id"))
        if task_id in by_id:
            raise NoteRejected(f"task_id {quoted(task_id)} 提交了两次，每个任务只能提交一次")
        by_id[task_id] = action
    missing = [number for number in range(1, len(tasks) + 1) if str(number) not in by_id]
    if missing or len(actions) != len(tasks):
        lacking = f"，缺少 task_id {'、'.join(map(str, missing))}" if missing else ""
        raise NoteRejected(
            f"应一次提交 {len(tasks)} 个 update_memory，收到 {len(actions)} 个{lacking}"
        )
    return [_checked_text(by_id[str(number)], number, task) for number, task in enumerate(tasks, 1)]


def _task(number: int, task: RollupTask, calendar: Calendar) -> dict[str, Any]:
    separator = "\n" if task.kind == "day" else "\n\n"
    return {
        "task_id": number,
        "source": {
            "kind": SOURCE_KINDS[task.kind],
            "memory": separator.join(_source_line(source, calendar) for source in task.sources),
        },
        "target": {
            "kind": task.kind,
            "date": task.period,
            "memory": "" if task.rebuild or task.target is None else task.target.text,
        },
    }


def _source_line(source: Activity | Memory, calendar: Calendar) -> str:
    if isinstance(source, Activity):
        return f"- [{calendar.local(source.time):%Y-%m-%d %H:%M}] {one_line(source.text)}"
    return f"- {source.period}：{one_line(source.text)}"


def _actions(answer: object) -> list[dict[str, Any]]:
    if isinstance(answer, dict):
        answer = answer.get("actions", [answer])
    if not isinstance(answer, list) or not all(isinstance(item, dict) for item in answer):
        raise NoteRejected("actions 应为一个列表，里面每一项都是对象")
    return answer


def _checked_text(action: dict[str, Any], number: int, task: RollupTask) -> str:
    where = f"task_id {number} 的 "
    # Texts are compared, because a year is as likely to come back as a number.
    for key, expected in (
        ("action", "update_memory"),
        ("kind", task.kind),
        ("date", task.period),
    ):
        if str(action.get(key)) != expected:
            raise NoteRejected(f"{where}{key} 应为 {expected}，收到 {quoted(action.get(key))}")
    return _memory_text(action, f"task_id {number}")


def _memory_text(action: dict[str, Any], where: str) -> str:
    memory = action.get("memory")
    if not isinstance(memory, str) or not memory.strip():
        raise NoteRejected(f"{where} 的 memory 应为不是空的文字")
    return memory
