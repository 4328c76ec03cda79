"""Which memories stand before a reply or a note, and how they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..types import Activity, Memory, Message
from .calendar import Calendar, titled
from .render import one_line
from .tokens import estimate_tokens

ROLES = {"system": "设定和记忆", "user": "别人说的", "assistant": "自己说的"}
"""What the turns of a prompt are called, by their role."""
_CALLED = {
    "base": "人设",
    "years": "年",
    "months": "月",
    "days": "日",
    "activities": "活动",
    "history": "聊天",
    "recalled": "想起的旧事",
    "tail": "此刻",
}


@dataclass(frozen=True, slots=True)
class Layers:
    """Current memory, each layer oldest first."""

    years: tuple[Memory, ...] = ()
    months: tuple[Memory, ...] = ()
    days: tuple[Memory, ...] = ()
    activities: tuple[Activity, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A layer as text: a heading, and its items oldest first."""

    name: str
    title: str
    items: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    """Of each activity, by which blocks of them are dropped; other layers change nightly."""


def beside(layers: Layers, history: Sequence[Message]) -> Layers:
    """The layers without activities about lines of which each still stands in `history`.

    What is told there need not be told twice; and an activity that appears with the next step of
    the history costs no beginning of its own. What the character wrote down itself is no retelling.
    """
    if not history:
        return layers
    first_seq, first_time = min(m.seq for m in history), min(m.time for m in history)

    def stands_there(activity: Activity) -> bool:
        if activity.ranges:
            return activity.ranges[0][0] >= first_seq
        return activity.origin == "turn" and activity.time >= first_time

    told = tuple(one for one in layers.activities if not stands_there(one))
    return replace(layers, activities=told)


def sections(layers: Layers, calendar: Calendar) -> list[Section]:
    """The layers as text, from what changes least to what changes most; empty ones left out."""
    found = [
        Section("years", "这些年", _memories(layers.years)),
        Section("months", "最近几个月", _memories(layers.months)),
        Section("days", "最近几天", _memories(layers.days)),
        _activities(layers.activities, calendar),
    ]
    return [section for section in found if section.items]


def newest(found: Sequence[Section], budget: int) -> list[Section]:
    """What fits into `budget` tokens, taken from the most recent layer and item backwards."""
    kept: list[Section] = []
    for section in reversed(found):
        items: list[str] = []
        for item in reversed(section.items):
            cost = estimate_tokens(item) + 1
            if cost > budget:
                break
            budget -= cost
            items.append(item)
        if items:
            kept.append(Section(section.name, section.title, tuple(reversed(items))))
        if len(items) < len(section.items):
            break
    return kept[::-1]


def as_text(found: Sequence[Section]) -> str:
    """All sections under their headings."""
    return "\n\n".join(f"【{s.title}】\n" + "\n".join(s.items) for s in found)


def cost_line(tokens: Mapping[str, int], budget: int) -> str:
    """What a prompt costs, all in all and layer by layer, as text for people."""
    parts = "，".join(f"{_CALLED[name]} {count}" for name, count in tokens.items() if count)
    return f"约 {sum(tokens.values())} / {budget} token（{parts}）"


def _memories(memories: Sequence[Memory]) -> tuple[str, ...]:
    return tuple(f"- {titled(memory.period)}：{one_line(memory.text)}" for memory in memories)


def _activities(activities: Sequence[Activity], calendar: Calendar) -> Section:
    told = [activity for activity in activities if activity.text]
    items = tuple(
        f"- {activity.date} {calendar.local(activity.time):%H:%M} 前后：{one_line(activity.text)}"
        for activity in told
    )
    return Section("activities", "还没写进日记的事", items, tuple(one.number for one in told))
