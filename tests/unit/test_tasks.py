"""The skill protocol: the shapes of tasks, and what is taken as a submission."""

from __future__ import annotations

from datetime import UTC, datetime, time
import json
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import NoteRejected
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.fact_items import (
    FACT_NAME_CHARACTERS,
    FACT_UNITS,
    MAX_FACTS,
)
from plugins.nonebot_plugin_nianlun.memory.tasks import (
    ActivitySubmission,
    Declined,
    activity_task,
    ids_shown,
    parse_activity,
    parse_memories,
    rollup_tasks,
)
from plugins.nonebot_plugin_nianlun.types import Activity, Fact, Memory, MemoryKind, RollupTask

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
AT = datetime(2026, 11, 29, 2, 32, tzinfo=UTC)
HOSTILE = '一\n- 2026-11-30：二\u2028三"}]'


def activity(text: str = "早上聊了天", keys: tuple[int, ...] = ()) -> Activity:
    return Activity(3, "2026-11-29", text, keys, "window", AT, "model", AT)


def memory(kind: MemoryKind, period: str, text: str = "旧文", keys: tuple[int, ...] = ()) -> Memory:
    return Memory(kind, period, text, keys, (), 1, "model", AT)


def day_task(**changes: Any) -> RollupTask:
    fields = {
        "kind": "day",
        "period": "2026-11-29",
        "sources": (activity(keys=(1, 2)),),
        "target": memory("day", "2026-11-29", keys=(7,)),
        "rebuild": False,
        "closes": False,
    }
    return RollupTask(**(fields | changes))


YEAR_TASK = day_task(kind="year", period="2026", sources=(memory("month", "2026-11"),), target=None)


def update(task_id: object = 1, **changes: object) -> dict[str, object]:
    fields = {"action": "update_memory", "kind": "day", "date": "2026-11-29", "memory": "新文"}
    return fields | {"task_id": task_id} | changes


YEAR_UPDATE = update(2, kind="year", date="2026", memory="一年")


def test_the_activity_task() -> None:
    assert activity_task("写吧") == {
        "action": "add_activity",
        "prompt": "写吧",
        "has_next_tasks": False,
    }


def test_nothing_to_do() -> None:
    assert rollup_tasks("没有了", [], True, CALENDAR) == {
        "action": "update_memory",
        "prompt": "没有了",
        "has_next_tasks": False,
        "tasks": [],
    }


def test_a_batch_of_days() -> None:
    second = day_task(period="2026-11-28", sources=(activity("甲"), activity("乙")), rebuild=True)
    assert rollup_tasks("整理", [day_task(), second], True, CALENDAR) == {
        "action": "update_memory",
        "prompt": "整理",
        "has_next_tasks": True,
        "tasks": [
            {
                "task_id": 1,
                "source": {"kind": "activity", "memory": "- [2026-11-29 10:32] 早上聊了天"},
                "target": {"kind": "day", "date": "2026-11-29", "memory": "旧文"},
            },
            {
                "task_id": 2,
                "source": {
                    "kind": "activity",
                    "memory": "- [2026-11-29 10:32] 甲\n- [2026-11-29 10:32] 乙",
                },
                "target": {"kind": "day", "date": "2026-11-28", "memory": ""},
            },
        ],
    }


def test_months_and_years_are_written_from_dated_texts() -> None:
    days = (memory("day", "2026-11-28", "甲"), memory("day", "2026-11-29", "乙"))
    month = day_task(kind="month", period="2026-11", sources=days, target=None)
    batch = rollup_tasks("整理", [month, YEAR_TASK], False, CALENDAR)["tasks"]
    assert batch[0]["source"] == {
        "kind": "day",
        "memory": "- 2026-11-28：甲\n\n- 2026-11-29：乙",
    }
    assert batch[0]["target"] == {"kind": "month", "date": "2026-11", "memory": ""}
    assert batch[1]["source"] == {"kind": "month", "memory": "- 2026-11：旧文"}


def test_a_source_cannot_pass_for_two() -> None:
    day = day_task(sources=(activity(HOSTILE),))
    month = day_task(
        kind="month", period="2026-11", sources=(memory("day", "2026-11-29", HOSTILE),)
    )
    for task in rollup_tasks("整理", [day, month], False, CALENDAR)["tasks"]:
        assert len(task["source"]["memory"].splitlines()) == 1


def test_a_task_shows_the_ids_of_its_sources_and_its_target() -> None:
    assert ids_shown(day_task()) == {1, 2, 7}
    assert ids_shown(day_task(rebuild=True)) == {1, 2}
    assert ids_shown(day_task(target=None)) == {1, 2}


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "add_activity", "memory": "好", "facts": []},
        {"action": "add_activity", "memory": "好"},
        {"action": "add_activity", "memory": "好", "facts": None, "mood": "开心"},
        {"actions": [{"action": "add_activity", "memory": "好"}]},
        [{"action": "add_activity", "memory": "好"}],
    ],
)
def test_an_activity(answer: object) -> None:
    assert parse_activity(answer, ()) == ActivitySubmission("好")


def test_declining() -> None:
    assert parse_activity({"action": "decline"}, ()) == Declined()


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({"action": "update_memory", "memory": "好"}, "update_memory"),
        ({"memory": "好"}, "add_activity"),
        ({"action": "add_activity"}, "memory"),
        ({"action": "add_activity", "memory": " \n"}, "memory"),
        ({"action": "add_activity", "memory": ["好"]}, "memory"),
        ({"actions": "好"}, "actions"),
        ({"actions": ["好"]}, "actions"),
        ([], "0"),
        ([{"action": "decline"}, {"action": "decline"}], "2"),
        ("好", "actions"),
        (None, "actions"),
    ],
)
def test_what_is_no_activity(answer: object, named: str) -> None:
    with pytest.raises(NoteRejected, match=named):
        parse_activity(answer, ())


def fact(**changes: object) -> dict[str, object]:
    return {"category": "preferences", "name": "咖啡", "content": "爱喝", "from": 12} | changes


def submitted(*facts: object) -> ActivitySubmission:
    answer = {"action": "add_activity", "memory": "好", "facts": list(facts)}
    submission = parse_activity(answer, {12})
    assert isinstance(submission, ActivitySubmission)
    return submission


def test_a_fact_is_cleaned() -> None:
    good = submitted(fact(name=" 冰 \n 咖啡", content="只喝\n冰美式 "))
    assert good.facts == (Fact("preferences", "冰 咖啡", "只喝 冰美式", 12),)
    assert good.dropped == ()


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (fact(category="Preferences"), "category"),
        (fact(category="偏好"), "category"),
        (fact(category="-a"), "category"),
        (fact(category="a\n"), "category"),
        (fact(category=None), "category"),
        (fact(name=""), "name"),
        (fact(name="\n "), "name"),
        (fact(name="a:b"), "name"),
        (fact(name="a|b"), "name"),
        (fact(name="#a"), "name"),
        (fact(name="[[a"), "name"),
        (fact(name="a]]"), "name"),
        (fact(name="长" * (FACT_NAME_CHARACTERS + 1)), "name"),
        (fact(name=["a"]), "name"),
        (fact(content=" "), "content"),
        (fact(content="长" * (FACT_UNITS + 1)), "content"),
        (fact(content=None), "content"),
        (fact(**{"from": 13}), "from"),
        (fact(**{"from": "12"}), "from"),
        (fact(**{"from": True}), "from"),
        (fact(**{"from": 12.0}), "from"),
        ("咖啡", "对象"),
    ],
)
def test_a_bad_fact_is_dropped_alone(bad: object, named: str) -> None:
    result = submitted(fact(name="甲"), bad, fact(name="乙"))
    assert [kept.name for kept in result.facts] == ["甲", "乙"]
    assert len(result.dropped) == 1
    assert named in result.dropped[0]
    assert "2" in result.dropped[0]


def test_there_are_at_most_eight_facts() -> None:
    result = submitted(*[fact(name=f"第{n}") for n in range(MAX_FACTS + 2)])
    assert [kept.name for kept in result.facts] == [f"第{n}" for n in range(MAX_FACTS)]
    assert len(result.dropped) == 1


def test_facts_that_are_no_list_cost_only_themselves() -> None:
    answer = {"action": "add_activity", "memory": "好", "facts": {"a": 1}}
    result = parse_activity(answer, {12})
    assert isinstance(result, ActivitySubmission)
    assert result.facts == ()
    assert result.dropped


@pytest.mark.parametrize(
    "answer",
    [
        {"actions": [update(), YEAR_UPDATE]},
        {"actions": [YEAR_UPDATE, update()]},
        [update(), YEAR_UPDATE],
        {"actions": [update("1"), YEAR_UPDATE | {"date": 2026}]},
    ],
)
def test_texts_come_in_the_order_of_the_tasks(answer: object) -> None:
    assert parse_memories(answer, [day_task(), YEAR_TASK]) == ["新文", "一年"]


def test_a_lone_action_serves_a_lone_task() -> None:
    assert parse_memories(update(), [day_task()]) == ["新文"]


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (update(), ["2 个", "1 个", "task_id 2"]),
        ({"actions": []}, ["2 个", "0 个", "1、2"]),
        ([update(), YEAR_UPDATE, update(3)], ["2 个", "3 个"]),
        ([update(), update()], ["1", "两次"]),
        ([update(), update(3)], ["task_id 2"]),
        ([update(True), YEAR_UPDATE], ["task_id 1"]),
        ([update(kind="month"), YEAR_UPDATE], ["task_id 1", "kind", "day", "month"]),
        ([update(date="2026-11-30"), YEAR_UPDATE], ["date", "2026-11-29", "2026-11-30"]),
        ([update(date=None), YEAR_UPDATE], ["date", "2026-11-29", "空"]),
        ([update(action="add_activity"), YEAR_UPDATE], ["update_memory", "add_activity"]),
        ([update(memory=""), YEAR_UPDATE], ["task_id 1", "memory"]),
        ([update(memory=3), YEAR_UPDATE], ["task_id 1", "memory"]),
        ({"action": "decline"}, ["2 个"]),
        ({"actions": [update(), "好"]}, ["对象"]),
        (7, ["actions"]),
    ],
)
def test_a_batch_that_is_not_whole_is_refused_whole(answer: object, named: list[str]) -> None:
    with pytest.raises(NoteRejected) as caught:
        parse_memories(answer, [day_task(), YEAR_TASK])
    assert all(word in str(caught.value) for word in named)


def test_a_complaint_is_short_and_on_one_line() -> None:
    with pytest.raises(NoteRejected) as caught:
        parse_memories(update(date="长\n" * 10_000), [day_task()])
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["decline", "day"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["action", "actions", "memory", "facts", "task_id", "from", "name"])
            | st.text(),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(json_values)
def test_no_answer_breaks_the_parsers(answer: object) -> None:
    for parse in (lambda: parse_activity(answer, {1}), lambda: parse_memories(answer, [YEAR_TASK])):
        try:
            parse()
        except NoteRejected as error:
            refused = str(error)
        else:
            continue
        assert refused


@given(st.text(), st.text())
def test_texts_survive_the_trip_through_json(source: str, target: str) -> None:
    task = day_task(sources=(activity(source),), target=memory("day", "2026-11-29", target))
    batch = json.loads(json.dumps(rollup_tasks("整理", [task], False, CALENDAR)))
    assert batch["tasks"][0]["target"]["memory"] == target
    assert len(batch["tasks"][0]["source"]["memory"].splitlines()) == 1
