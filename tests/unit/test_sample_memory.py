"""What the offline writer makes of the sample's whole year: supported, varied, within limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise
import re
from typing import TypeVar
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.demo.sample import SAMPLE_CHAT, SAMPLE_NOW, sample_lines
from plugins.nonebot_plugin_nianlun.llm.offline_writer import OfflineWriter
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.keymarks import strip_key_marks
from plugins.nonebot_plugin_nianlun.memory.notes import check_note
from plugins.nonebot_plugin_nianlun.memory.render import display_names
from plugins.nonebot_plugin_nianlun.memory.windows import WindowPolicy, plan_windows
from plugins.nonebot_plugin_nianlun.types import (
    Activity,
    Memory,
    MemoryKind,
    Message,
    NoteKind,
    RollupTask,
    Scene,
)

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
WRITER = OfflineWriter(CALENDAR)
SCENE = Scene(SAMPLE_CHAT, "QQ群「周五打球群」", "年轮", "")
POLICY = WindowPolicy(messages=50, min_messages=8, idle=timedelta(minutes=20))
QUOTE = re.compile("「([^「」]*)」")
T = TypeVar("T")
Layers = dict[NoteKind, Sequence[Activity | Memory]]


@pytest.fixture(scope="module")
def messages() -> list[Message]:
    return [
        Message(
            line["seq"],
            datetime.fromisoformat(line["time"]),
            line["user_id"],
            line["name"],
            line["text"],
            line["reply_to"],
            source="import",
        )
        for line in sample_lines()
        if line["type"] == "message" and not line["withdrawn"]
    ]


@pytest.fixture(scope="module")
async def layers(messages: list[Message]) -> Layers:
    activities: list[Activity] = []
    for window in plan_windows(messages, CALENDAR, POLICY, SAMPLE_NOW, everything=True):
        names = display_names({m.user_id: m.name for m in window.messages})
        scene = Scene(SAMPLE_CHAT, SCENE.place, SCENE.character, "", names=names)
        note = await WRITER.write_activity(window, scene)
        if note is not None:
            ends = window.messages[-1].time
            number = len(activities) + 1
            activities.append(
                Activity(
                    number,
                    window.date,
                    note.text,
                    note.key_messages,
                    "window",
                    ends,
                    "offline",
                    ends,
                )
            )
    days = await rolled_up("day", grouped(activities, lambda item: item.date))
    months = await rolled_up("month", grouped(days, lambda item: item.period[:7]))
    years = await rolled_up("year", grouped(months, lambda item: item.period[:4]))
    return {"activity": activities, "day": days, "month": months, "year": years}


async def rolled_up(kind: MemoryKind, groups: dict[str, list[T]]) -> list[Memory]:
    found = []
    for period, sources in groups.items():
        task = RollupTask(kind, period, tuple(sources), None, rebuild=True, closes=True)  # type: ignore[arg-type]
        (note,) = await WRITER.write_memories([task], SCENE, has_next_tasks=False)
        found.append(
            Memory(kind, period, note.text, note.key_messages, (), 1, "offline", SAMPLE_NOW)
        )
    return found


def grouped(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def most_common(items: Iterable[Hashable]) -> int:
    return Counter(items).most_common(1)[0][1]


KINDS: tuple[NoteKind, ...] = ("activity", "day", "month", "year")


def test_every_layer_has_what_fourteen_months_give(layers: Layers) -> None:
    counts = {kind: len(items) for kind, items in layers.items()}
    assert counts["month"] >= 14
    assert counts["year"] == 2
    assert counts["day"] > 300
    assert counts["activity"] > counts["day"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_quote_stands_in_a_cited_message(
    kind: NoteKind, layers: Layers, messages: list[Message]
) -> None:
    texts = {message.seq: message.text for message in messages}
    quotes = 0
    for note in layers[kind]:
        cited = [" ".join(texts[seq].split()) for seq in note.key_messages]
        for quote in QUOTE.findall(note.text):
            assert any(quote in text for text in cited), (note.text, quote)
            quotes += 1
    assert quotes > len(layers[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_outside_quotes_there_is_no_number(kind: NoteKind, layers: Layers) -> None:
    for note in layers[kind]:
        assert not re.search(r"\d", QUOTE.sub("", strip_key_marks(note.text))), note.text


@pytest.mark.parametrize("kind", KINDS)
def test_every_note_keeps_the_rules_and_leaves_nothing_relative(
    kind: NoteKind, layers: Layers
) -> None:
    for note in layers[kind]:
        assert check_note(kind, note.text, note.key_messages) == (note.text, note.key_messages)
        outside = QUOTE.sub("引文", note.text)
        assert not re.search("明天|昨天|今天|下周|上周|刚才", outside), note.text
        assert "「」" not in note.text
        assert not re.search("，，|。。|，。|：。|；。", outside), note.text


@pytest.mark.parametrize(("kind", "share"), [("activity", 0.02), ("day", 0.04), ("month", 0.3)])
def test_openings_are_not_a_template(kind: NoteKind, share: float, layers: Layers) -> None:
    notes = layers[kind]
    first = [re.split("[。「]", note.text)[0] for note in notes]
    assert most_common(first) <= max(2, share * len(notes))
    same = sum(a == b for a, b in pairwise(first))
    assert same <= max(1, len(notes) / 100)


def test_the_year_tells_the_story(layers: Layers) -> None:
    year = next(
        note for note in layers["year"] if isinstance(note, Memory) and note.period == "2025"
    )
    assert len(re.findall("[一二三四五六七八九十]月(?:里)?，", year.text)) >= 11
    assert "枸杞岛" in year.text
    assert re.search("吵架|和好|道歉", year.text)
