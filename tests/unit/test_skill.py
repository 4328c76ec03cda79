"""The skill session: what each call answers, and that a failed one changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
import json
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import Overtaken
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.owed import Batch, NoteJob
from plugins.nonebot_plugin_nianlun.memory.skill import SKILL_TOOL, SkillSession
from plugins.nonebot_plugin_nianlun.memory.units import count_units
from plugins.nonebot_plugin_nianlun.types import (
    Activity,
    ChatKey,
    Fact,
    Memory,
    MemoryKind,
    Message,
    Note,
    RollupTask,
    Scene,
    Window,
)

AT = datetime(2026, 11, 29, 2, 32, tzinfo=UTC)
CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
GET = {"action": "get_tasks"}


def window(*texts: str) -> Window:
    found = [
        Message(seq, AT + timedelta(minutes=seq), "20002", "Alice", text)
        for seq, text in enumerate(texts or ("早安", "我买了蓝色雨伞"), 11)
    ]
    return Window("2026-11-29", tuple(found))


def task(kind: MemoryKind = "day", period: str = "2026-11-29", *keys: int) -> RollupTask:
    sources: tuple[Activity, ...] | tuple[Memory, ...]
    if kind == "day":
        sources = (
            Activity(1, period, "早上聊了天", keys or (11,), "window", AT, "model", AT),
        )  # fmt: skip
    else:
        sources = (Memory("day", "2026-11-28", "旧日记", keys, (), 1, "model", AT),)
    return RollupTask(kind, period, sources, None, rebuild=True, closes=True)


def update(memory: str = "这一天很好。", task_id: object = 1, **changes: object) -> dict[str, Any]:
    fields = {"action": "update_memory", "kind": "day", "date": "2026-11-29"}
    return fields | {"task_id": task_id, "memory": memory} | changes


SECOND = update(task_id=2, date="2026-11-28")


class Desk:
    """Jobs in a list; what is handed in is written down, or thrown back."""

    def __init__(self, *jobs: NoteJob | Batch) -> None:
        self.jobs = list(jobs)
        self.kept: list[Note | None] = []
        self.overtaken = False

    async def next_note(self) -> NoteJob | None:
        return next((job for job in self.jobs if isinstance(job, NoteJob)), None)

    async def next_batch(self) -> Batch | None:
        return next((job for job in self.jobs if isinstance(job, Batch)), None)

    async def keep_note(self, job: NoteJob, note: Note | None) -> None:
        self._keep(job, [note])

    async def keep_memories(self, batch: Batch, notes: Sequence[Note]) -> None:
        self._keep(batch, notes)

    def _keep(self, job: NoteJob | Batch, notes: Sequence[Note | None]) -> None:
        if self.overtaken:
            raise Overtaken
        self.jobs.remove(job)
        self.kept += notes


async def scene(window: Window) -> Scene:
    return Scene(ChatKey("1", "group", "2"), "QQ群「摸鱼」", "小年", "人设", names={})


def session_of(desk: Desk) -> SkillSession:
    return SkillSession(desk, scene, CALENDAR)


def batches(*groups: Sequence[RollupTask]) -> list[Batch]:
    last = len(groups) - 1
    return [Batch(tuple(group), number < last) for number, group in enumerate(groups)]


async def test_an_activity_from_task_to_note() -> None:
    desk = Desk(NoteJob(window()))
    session = session_of(desk)
    given_task = await session.call(GET)
    assert set(given_task) == {"action", "prompt", "has_next_tasks"}
    assert (given_task["action"], given_task["has_next_tasks"]) == ("add_activity", False)
    assert "蓝色雨伞" in given_task["prompt"]
    assert "#12" in given_task["prompt"]
    fact = {"category": "event", "name": "雨伞", "content": "Alice 买了雨伞", "from": 12}
    memory = "上午 Alice 说买了雨伞。（关键消息：[12])"
    answer = await session.call(
        {"action": "add_activity", "memory": memory, "facts": [fact, fact | {"from": 99}]}
    )
    assert answer["success"] is True
    assert len(answer["dropped_facts"]) == 1
    fact_kept = Fact("event", "雨伞", "Alice 买了雨伞", 12)
    assert desk.kept == [
        Note("上午 Alice 说买了雨伞。（关键消息：[12]）", (12,), "model", (fact_kept,))
    ]


async def test_one_window_a_session() -> None:
    desk = Desk(NoteJob(window()), NoteJob(window("别的")), *batches([task()]))
    session = session_of(desk)
    await session.call(GET)
    assert await session.call({"action": "decline"}) == {"success": True}
    again = await session.call(GET)
    assert (again["action"], again["has_next_tasks"]) == ("add_activity", False)
    late = await session.call({"action": "add_activity", "memory": "又一条。"})
    assert late["success"] is False
    assert "已经完成" in late["error"]
    assert desk.kept == [None]
    assert len(desk.jobs) == 2


async def test_a_roll_up_goes_batch_by_batch() -> None:
    first = [task(), task("day", "2026-11-28")]
    desk = Desk(*batches(first, [task("month", "2026-11")]))
    session = session_of(desk)
    got = await session.call(GET)
    assert set(got) == {"action", "prompt", "has_next_tasks", "tasks"}
    assert got["has_next_tasks"] is True
    assert [one["task_id"] for one in got["tasks"]] == [1, 2]
    assert got["tasks"][0]["source"] == {
        "kind": "activity",
        "memory": "- [2026-11-29 10:32] 早上聊了天",
    }
    assert got["tasks"][0]["target"] == {"kind": "day", "date": "2026-11-29", "memory": ""}
    done = await session.call(
        {"actions": [update("二十八号。", 2, date="2026-11-28"), update("二十九号。")]}
    )
    assert done == {"success": True, "has_next_tasks": True}
    early = await session.call({"actions": [update()]})
    assert "get_tasks" in early["error"]
    got = await session.call(json.dumps(GET))
    assert got["has_next_tasks"] is False
    assert [one["task_id"] for one in got["tasks"]] == [1]
    month = update("这个月。", kind="month", date="2026-11")
    assert (await session.call(json.dumps({"actions": [month]})))["success"] is True
    assert await session.call(GET) == {
        "action": "update_memory",
        "prompt": "没有需要整理的记忆了。",
        "has_next_tasks": False,
        "tasks": [],
    }
    assert [note.text for note in desk.kept if note] == ["二十九号。", "二十八号。", "十一月。"]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ({"actions": [update()]}, ["2 个", "缺少 task_id 2"]),
        ({"actions": [update(), update(task_id=2)]}, ["date", "2026-11-28"]),
        ({"actions": [update(kind="month"), update(task_id=2)]}, ["kind", "day"]),
        ({"actions": [update(), update(task_id=1)]}, ["两次"]),
        ({"actions": [update("好。（关键消息：[99]）"), SECOND]}, ["99"]),
        ({"actions": [update("owner 来了。"), SECOND]}, ["owner"]),
        ({"actions": [update("长" * 501), SECOND]}, ["500"]),
        ({"action": "add_activity", "memory": "好。"}, ["add_activity", "update_memory"]),
        ({"action": "decline"}, ["decline", "update_memory"]),
        ({"actions": "好"}, ["actions"]),
        ("{'action': 'get_tasks'}", ["JSON"]),
        ('{"actions": [', ["JSON"]),
        ("7", ["对象"]),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_told_and_nothing_is_stored(
    call: str | dict[str, Any], named: list[str]
) -> None:
    desk = Desk(*batches([task(), task("day", "2026-11-28")]))
    session = session_of(desk)
    before = await session.call(GET)
    answer = await session.call(call)
    assert set(answer) == {"success", "error"}
    assert answer["success"] is False
    assert all(word in answer["error"] for word in named)
    assert desk.kept == []
    assert await session.call(GET) == before


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ({"actions": [update()]}, "update_memory"),
        ({"action": "add_activity"}, "memory"),
        ({"action": "add_activity", "memory": "长" * 101}, "100"),
        ({"action": "add_activity", "memory": "好。（关键消息：[1])"}, "#1"),
        ({"action": "add_activity", "memory": "# 标题\n好。"}, "标题"),
        ({"action": "sing"}, "sing"),
        ({}, "add_activity"),
    ],
)
async def test_a_bad_activity_is_told(call: dict[str, Any], named: str) -> None:
    desk = Desk(NoteJob(window()))
    session = session_of(desk)
    await session.call(GET)
    answer = await session.call(call)
    assert answer["success"] is False
    assert named in answer["error"]
    assert (await session.call({"action": "add_activity", "memory": "好。"})) == {"success": True}


async def test_nothing_is_taken_before_the_task_was_fetched() -> None:
    desk = Desk(NoteJob(window()))
    answer = await session_of(desk).call({"action": "add_activity", "memory": "好。"})
    assert answer["success"] is False
    assert "get_tasks" in answer["error"]
    assert desk.kept == []


async def test_the_third_text_that_is_too_long_is_cut_and_marked() -> None:
    desk = Desk(NoteJob(window()))
    session = session_of(desk)
    await session.call(GET)
    long = {"action": "add_activity", "memory": "我听了一个很长的故事。" * 20}
    assert [(await session.call(long))["success"] for _ in range(2)] == [False, False]
    assert await session.call(long) == {"success": True, "shortened": True}
    (note,) = desk.kept
    assert note is not None
    assert note.text.endswith("故事。……")
    assert 50 <= count_units(note.text) <= 100


async def test_what_was_overtaken_is_fetched_again() -> None:
    desk = Desk(*batches([task()]))
    session = session_of(desk)
    await session.call(GET)
    desk.overtaken = True
    answer = await session.call({"actions": [update()]})
    assert answer["success"] is False
    assert "get_tasks" in answer["error"]
    desk.overtaken = False
    assert (await session.call({"actions": [update()]}))["success"] is False
    await session.call(GET)
    assert (await session.call({"actions": [update()]}))["success"] is True


async def test_calls_at_once_store_once() -> None:
    desk = Desk(NoteJob(window()))
    session = session_of(desk)
    await session.call(GET)
    add = {"action": "add_activity", "memory": "好。"}
    answers = await asyncio.gather(*(session.call(add) for _ in range(5)))
    assert [answer["success"] for answer in answers] == [True] + [False] * 4
    assert len(desk.kept) == 1


async def test_a_session_without_its_lease_or_closed_stores_nothing() -> None:
    desk = Desk(NoteJob(window()))
    ours = True

    async def still_ours() -> bool:
        return ours

    session = SkillSession(desk, scene, CALENDAR, still_ours)
    await session.call(GET)
    ours = False
    add = {"action": "add_activity", "memory": "好。"}
    assert (await session.call(add))["success"] is False
    ours = True
    session.close()
    assert (await session.call(add))["success"] is False
    assert desk.kept == []


def test_the_schema_is_plain_json_with_the_names_of_the_protocol() -> None:
    function = json.loads(json.dumps(SKILL_TOOL))["function"]
    assert function["name"] == "update_short_term_memory"
    fields = function["parameters"]["properties"]
    assert set(fields) == {"action", "memory", "facts", "actions"}
    assert fields["action"]["enum"] == ["get_tasks", "add_activity", "decline"]
    assert set(fields["actions"]["items"]["required"]) == {
        "action",
        "task_id",
        "kind",
        "date",
        "memory",
    }


words = st.sampled_from(
    ["get_tasks", "add_activity", "update_memory", "decline", "day", "2026-11-29", "好。"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["action", "actions", "memory", "task_id", "kind", "date", "facts"]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(values | st.text(max_size=30), max_size=6), st.booleans())
def test_whatever_is_called_is_answered(calls: list[Any], rolls_up: bool) -> None:
    async def work() -> None:
        desk = Desk(*batches([task()])) if rolls_up else Desk(NoteJob(window()))
        session = session_of(desk)
        await session.call(GET)
        for call in calls:
            answer = await session.call(call)
            json.dumps(answer)
            assert answer.get("success") in (True, None) or answer["error"]
        assert len(desk.kept) <= 1

    asyncio.run(work())


def endless() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


def deep(value: Any = 1) -> Any:
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "odd",
    [endless(), deep(), 10**5000, b"x", {1}, object(), {(1,): 2}],
    ids=["endless", "deep", "huge", "bytes", "set", "object", "keys"],
)
@pytest.mark.parametrize("key", ["action", "memory", "facts", "actions", "task_id"])
async def test_what_is_no_json_is_told(odd: object, key: str) -> None:
    for job in (NoteJob(window()), *batches([task()])):
        session = session_of(desk := Desk(job))
        await session.call(GET)
        answer = await session.call({"action": "add_activity", "memory": "好。"} | {key: odd})
        assert answer["success"] is False
        assert (desk.jobs, desk.kept) == ([job], [])


async def test_what_was_too_long_for_another_job_does_not_count() -> None:
    first, second = NoteJob(window()), NoteJob(window("别的"))
    desk = Desk(first, second)
    session = session_of(desk)
    long = {"action": "add_activity", "memory": "我听了一个很长的故事。" * 20}
    await session.call(GET)
    assert [(await session.call(long))["success"] for _ in range(2)] == [False, False]
    desk.jobs.remove(first)
    await session.call(GET)
    assert [(await session.call(long))["success"] for _ in range(2)] == [False, False]
    await session.call(GET)
    assert await session.call(long) == {"success": True, "shortened": True}
