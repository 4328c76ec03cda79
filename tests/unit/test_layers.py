"""Which memories are injected, and how they read."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.layers import Layers, as_text, beside, sections
from plugins.nonebot_plugin_nianlun.types import Activity, Memory, MemoryKind, Message, Origin

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
WRITTEN = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)


def memory(kind: MemoryKind, period: str, text: str) -> Memory:
    return Memory(kind, period, text, (), (), 1, "model", WRITTEN)


def activity(text: str, number: int = 1) -> Activity:
    return Activity(
        number, "2026-11-30", text, (), "window", WRITTEN + timedelta(hours=1), "model", WRITTEN
    )


def test_sections_go_from_years_to_activities_and_empty_ones_are_left_out() -> None:
    layers = Layers(
        years=(memory("year", "2025", "一年"),),
        days=(memory("day", "2026-11-28", "前天"), memory("day", "2026-11-29", "昨天")),
        activities=(activity("刚才"), activity("", 2)),
    )
    found = sections(layers, CALENDAR)
    assert [s.name for s in found] == ["years", "days", "activities"]
    assert found[1].items == ("- 2026-11-28（周六）：前天", "- 2026-11-29（周日）：昨天")
    assert found[2].items == ("- 2026-11-30 05:00 前后：刚才",)
    assert as_text(found).count("【") == 3
    assert sections(Layers(activities=(activity(""),)), CALENDAR) == []


@given(st.text(), st.text())
def test_each_memory_is_one_line(text: str, other: str) -> None:
    layers = Layers(days=(memory("day", "2026-11-29", text),), activities=(activity(f"在{other}"),))
    lines = as_text(sections(layers, CALENDAR)).splitlines()
    assert len(lines) == 5
    assert [line[0] for line in lines if line] == ["【", "-", "【", "-"]


def noted(number: int, origin: Origin, seqs: tuple[int, int] | None, minute: int = 0) -> Activity:
    at = WRITTEN + timedelta(minutes=minute)
    ranges = () if seqs is None else (seqs,)
    return Activity(number, "2026-11-30", "聊天", (), origin, at, "model", WRITTEN, ranges)


def test_what_still_stands_as_it_was_said_is_not_told_beside_it() -> None:
    windows = [noted(1, "window", (1, 50)), noted(2, "window", (51, 100))]
    turns = [noted(3, "turn", None, minute=1), noted(4, "turn", None, minute=9)]
    own = noted(5, "tool", None, minute=9)
    layers = Layers(activities=(*windows, *turns, own))

    def told(first_seq: int) -> list[int]:
        at = WRITTEN + timedelta(minutes=5)
        history = [Message(n, at, "20001", "小鹿", "嗯") for n in range(first_seq, 120)]
        return [one.number for one in beside(layers, history).activities]

    assert told(1) == [3, 5]
    assert told(40) == [1, 3, 5]
    assert told(51) == [1, 3, 5]
    assert told(52) == [1, 2, 3, 5]
    assert beside(layers, []) == layers
