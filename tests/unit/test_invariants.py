"""What is wrong with a memory is found and told, and nothing is found where nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.chat_view import (
    ActivityView,
    ChatView,
    LineView,
    MemoryView,
    VersionView,
)
from plugins.nonebot_plugin_nianlun.memory.invariants import inspect
from plugins.nonebot_plugin_nianlun.types import MemoryKind

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
NOW = datetime(2026, 12, 2, 4, 0, tzinfo=UTC)
AT = datetime(2026, 11, 29, 2, 0, tzinfo=UTC)

LINES = [
    LineView(1, AT, 70, None, withdrawn=False, has_text=True),
    LineView(2, AT + timedelta(minutes=1), None, "command", withdrawn=False, has_text=True),
    LineView(3, AT + timedelta(minutes=2), 70, None, withdrawn=False, has_text=True),
    LineView(4, AT + timedelta(minutes=3), None, "withdrawn", withdrawn=True, has_text=False),
    LineView(5, AT + timedelta(days=1), 71, None, withdrawn=False, has_text=True),
    LineView(6, AT + timedelta(days=2), None, None, withdrawn=False, has_text=True),
]
ACTIVITIES = [
    ActivityView(
        row=70,
        number=1,
        date="2026-11-29",
        origin="window",
        outer=(1, 3),
        has_text=True,
        key_messages=(1, 3),
        merged=True,
        stale=False,
    ),
    ActivityView(
        row=71,
        number=2,
        date="2026-11-30",
        origin="window",
        outer=(5, 5),
        has_text=True,
        key_messages=(5,),
        merged=True,
        stale=False,
    ),
]


def _memory(kind: MemoryKind, period: str, *sources: str, keys: tuple[int, ...] = ()) -> MemoryView:
    return MemoryView(
        kind=kind,
        period=period,
        has_text=True,
        key_messages=keys,
        sources=sources,
        version=2,
        edited=False,
        closed=True,
        merged=kind != "year",
        stale=False,
    )


MEMORIES = [
    _memory("day", "2026-11-29", "1", keys=(1,)),
    _memory("day", "2026-11-30", "2", keys=(5,)),
    _memory("month", "2026-11", "2026-11-29", "2026-11-30", keys=(1, 5)),
    replace(_memory("year", "2026", "2026-11", keys=(5,)), closed=False),
]
VERSIONS = [VersionView("day", "2026-11-29", 1, True, (3,), blanked=False)]
SOUND = ChatView(
    last_seq=6,
    last_activity=2,
    lines=LINES,
    activities=ACTIVITIES,
    memories=MEMORIES,
    versions=VERSIONS,
    facts=[("event:伞", 3)],
    leases=[("upkeep", "somebody", NOW + timedelta(minutes=9))],
)


def line(seq: int, **changes: Any) -> ChatView:
    lines = [replace(one, **changes) if one.seq == seq else one for one in LINES]
    return replace(SOUND, lines=lines)


def activity(number: int, **changes: Any) -> ChatView:
    rows = [replace(a, **changes) if a.number == number else a for a in ACTIVITIES]
    return replace(SOUND, activities=rows)


def memory(period: str, **changes: Any) -> ChatView:
    rows = [replace(m, **changes) if m.period == period else m for m in MEMORIES]
    return replace(SOUND, memories=rows)


def version(**changes: Any) -> ChatView:
    return replace(SOUND, versions=[replace(VERSIONS[0], **changes)])


def findings(view: ChatView) -> tuple[str, ...]:
    return inspect(view, CALENDAR, NOW).findings


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    found = inspect(SOUND, CALENDAR, NOW)
    assert (found.findings, found.found) == ((), 0)
    assert (found.messages, found.activities, found.memories) == (6, 2, 4)


MOMENT = replace(
    ACTIVITIES[0], row=72, number=3, origin="tool", outer=None, key_messages=(6,), merged=False
)


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(activity(2, merged=False), id="not-merged-yet"),
        pytest.param(memory("2026-11-30", merged=False), id="day-not-folded-yet"),
        pytest.param(memory("2026-11", stale=True, has_text=False, key_messages=()), id="stale"),
        pytest.param(memory("2026-11-29", edited=True, key_messages=(5,)), id="edited"),
        pytest.param(replace(SOUND, last_seq=99, last_activity=9), id="counters-ahead"),
        pytest.param(
            replace(SOUND, activities=[*ACTIVITIES, MOMENT], last_activity=3), id="diary-moment"
        ),
        pytest.param(line(6, skipped="declined"), id="declined"),
    ],
)
def test_what_may_be_is_no_fault(view: ChatView) -> None:
    assert findings(view) == ()


FAULTS: list[tuple[str, ChatView, str]] = [
    ("both", line(1, skipped="empty"), "消息 #1 在一条活动里，又标着跳过"),
    ("lost-activity", line(5, activity=99), "消息 #5 所在的活动不存在"),
    ("reason", line(2, skipped="mood"), "消息 #2 跳过的原因 'mood' 不认识"),
    ("kept-text", line(4, has_text=True), "消息 #4 已经撤回，正文还在"),
    ("waiting", line(4, skipped=None), "消息 #4 已经撤回，还等着写进活动"),
    ("stolen", line(1, activity=71), "活动 &2 写明的范围是 #5–#5，消息却是 #1–#5"),
    ("empty-window", line(5, activity=None), "活动 &2 没有任何消息"),
    ("no-range", activity(2, outer=None), "活动 &2 有消息 #5，却没有写明范围"),
    ("other-day", line(3, time=AT + timedelta(hours=21)), "活动 &1的消息超出了它的那一天"),
    ("outside", activity(1, key_messages=(5,)), "活动 &1 引用了 #5，它不在这条活动里"),
    ("no-such", activity(1, key_messages=(77,)), "活动 &1 引用了 #77，没有这条消息"),
    (
        "cites-withdrawn",
        line(3, withdrawn=True, has_text=False),
        "活动 &1 引用了 #3，它已经撤回",
    ),
    ("stale-text", activity(1, stale=True), "活动 &1 等着重写，旧的正文还在"),
    ("stale-memory", memory("2026-11", stale=True), "2026-11 等着重写，旧的正文还在"),
    ("foreign-key", memory("2026-11-29", key_messages=(5,)), "2026-11-29 引用了 #5，它不在"),
    ("not-held", memory("2026-11-30", sources=()), "活动 &2 标着已并入 2026-11-30，那一天却没有它"),
    ("no-day", replace(SOUND, memories=MEMORIES[1:]), "活动 &1 标着已并入 2026-11-29"),
    ("month-lacks", memory("2026-11", sources=("2026-11-29",)), "2026-11-30 标着已并入 2026-11"),
    ("year-lacks", memory("2026", sources=()), "2026-11 标着已并入 2026，那里却没有它"),
    ("twice", memory("2026-11-29", sources=("1", "1")), "2026-11-29 把同一个来源并入了两次"),
    ("no-source", memory("2026-11-29", sources=("1", "8")), "2026-11-29 的来源 &8 不存在"),
    (
        "wrong-date",
        memory("2026-11-29", sources=("1", "2")),
        "2026-11-29 的来源 &2 是 2026-11-30 的",
    ),
    (
        "wrong-month",
        memory("2026-11", sources=("2026-11-29", "2026-11-30", "2026-10-01")),
        "2026-11 的来源 2026-10-01 不属于它",
    ),
    (
        "gone-day",
        memory("2026-11", sources=("2026-11-29", "2026-11-30", "2026-11-01")),
        "2026-11 的来源 2026-11-01 不存在",
    ),
    ("blank", memory("2026-11", has_text=False), "2026-11 是空的"),
    ("two", replace(SOUND, memories=[*MEMORIES, MEMORIES[0]]), "2026-11-29 有两篇"),
    (
        "early",
        replace(SOUND, memories=[*MEMORIES, _memory("year", "2027")]),
        "2027 还没有到，却已经写完",
    ),
    ("blanked", version(blanked=True), "2026-11-29 的第 1 版 已经作废，正文还在"),
    ("old-cites", version(key_messages=(4,)), "2026-11-29 的第 1 版 引用了 #4，它已经撤回"),
    ("newer", version(version=2), "2026-11-29 的第 2 版 不比现在的第 2 版旧"),
    ("orphan", version(ref="2026-11-01"), "2026-11-01 的第 1 版 还在，2026-11-01 却不存在"),
    ("fact", replace(SOUND, facts=[("event:伞", 4)]), "事实 event:伞 引用了 #4，它已经撤回"),
    ("seq", replace(SOUND, last_seq=5), "消息编号数到 #5，却已经有 #6"),
    ("number", replace(SOUND, last_activity=1), "活动编号数到 &1，却已经有 &2"),
    (
        "lease",
        replace(SOUND, leases=[("upkeep", "x@1/y", NOW + timedelta(days=9))]),
        "x@1/y 占着 upkeep 直到 2026-12-11 12:00，太久了",
    ),
]


@pytest.mark.parametrize(
    ("view", "told"), [pytest.param(view, told, id=name) for name, view, told in FAULTS]
)
def test_each_fault_is_found_and_named(view: ChatView, told: str) -> None:
    found = findings(view)
    assert [one for one in found if one.startswith(told)], found
    assert all("\n" not in one for one in found)


def test_only_the_first_are_told_and_all_are_counted() -> None:
    bare = replace(SOUND, activities=[], memories=[], versions=[], facts=[])
    found = inspect(replace(bare, lines=_lost(500), last_seq=500), CALENDAR, NOW)
    assert (found.messages, len(found.findings), found.found) == (500, 10, 500)


def test_the_lines_are_read_once_and_not_held() -> None:
    bare = replace(SOUND, activities=[], memories=[], versions=[], facts=[])
    read: list[int] = []

    def lines() -> Iterator[LineView]:
        for one in _lost(50):
            read.append(one.seq)
            yield replace(one, activity=None)

    assert inspect(replace(bare, lines=lines(), last_seq=50), CALENDAR, NOW).found == 0
    assert read == list(range(1, 51))


def test_old_windows_of_another_time_zone_are_one_finding() -> None:
    rows = [
        replace(ACTIVITIES[0], row=n, number=n, outer=(n, n), key_messages=(), merged=False)
        for n in range(1, 31)
    ]
    lines = [
        LineView(n, AT - timedelta(days=1), n, None, withdrawn=False, has_text=True)
        for n in range(1, 31)
    ]
    view = replace(
        SOUND,
        lines=lines,
        activities=rows,
        memories=[],
        versions=[],
        facts=[],
        last_seq=30,
        last_activity=30,
    )
    (told,) = findings(view)
    assert told.startswith("活动 &1、&2、&3、&4、&5 等 30 条的消息超出了它的那一天")


def _lost(count: int) -> Iterator[LineView]:
    for seq in range(1, count + 1):
        yield LineView(seq, AT, 9, None, withdrawn=False, has_text=True)
