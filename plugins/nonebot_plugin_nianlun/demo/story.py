"""The hand-written part of the sample chat: scenes in a small script format.

A scene begins with `## 2025-01-04 周六 20:30 title`; its lines are `name：words`. `-- 21:05` lets
time pass (an earlier clock is past midnight), `// …` is a remark. `~ FROM..TO …` says what holds
between two days for everyday talk: a number (how much of it there is), `holiday`, `workday`, or
`without` and names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
import re

from .people import PEOPLE

WEEKDAYS = "一二三四五六日"
_FOLDER = Path(__file__).with_name("story")
_HEAD = re.compile(r"## (\d{4}-\d\d-\d\d) 周(.) (\d\d:\d\d) (.+)")
_SPAN = re.compile(r"~ (\d{4}-\d\d-\d\d)(?:\.\.(\d{4}-\d\d-\d\d))? (.+)")


class ScriptError(ValueError):
    """A script that breaks its format; names the file and the line."""


@dataclass(frozen=True, slots=True)
class Saying:
    """One line of a scene, with the clock that is set right before it, if any."""

    who: str
    words: str
    clock: time | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    start: datetime
    """Local time."""
    title: str
    sayings: list[Saying] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Span:
    """What holds from `first` to `last`, both included."""

    first: date
    last: date
    rule: str

    def covers(self, day: date) -> bool:
        return self.first <= day <= self.last


@dataclass(frozen=True, slots=True)
class Story:
    scenes: tuple[Scene, ...]
    """By time."""
    spans: tuple[Span, ...]

    def amount(self, day: date) -> float:
        """How much everyday talk there is on a day, 1 being as usual."""
        found = [float(s.rule) for s in self.spans if s.covers(day) and s.rule[0].isdigit()]
        return min(found, default=1.0)

    def is_workday(self, day: date) -> bool:
        rules = [s.rule for s in self.spans if s.covers(day) and s.rule in ("holiday", "workday")]
        return rules[-1] == "workday" if rules else day.weekday() < 5

    def absent(self, day: date) -> frozenset[str]:
        rules = [s.rule.split() for s in self.spans if s.covers(day)]
        return frozenset(name for rule in rules if rule[0] == "without" for name in rule[1:])


def load_story() -> Story:
    """All scenes of the story folder. Raises ScriptError."""
    scenes: list[Scene] = []
    spans: list[Span] = []
    for file in sorted(_FOLDER.glob("*.txt")):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            try:
                _take(line.strip(), scenes, spans)
            except ValueError as error:
                raise ScriptError(f"{file.name}:{number}: {error}") from error
    sayings = [_timed(scene.sayings) for scene in scenes]
    scenes = [Scene(s.start, s.title, timed) for s, timed in zip(scenes, sayings, strict=True)]
    return Story(tuple(sorted(scenes, key=lambda scene: scene.start)), tuple(spans))


def split_saying(line: str) -> tuple[str, str]:
    """Speaker and words of `name：words`. Raises ValueError."""
    who, colon, words = line.partition("：")
    if not colon or who not in PEOPLE or not words:
        raise ValueError(f"not a line of a known speaker: {line!r}")
    return who, words


def _take(line: str, scenes: list[Scene], spans: list[Span]) -> None:
    if not line or line.startswith("//"):
        return
    if line.startswith("## "):
        scenes.append(_scene(line))
    elif line.startswith("~ "):
        spans.append(_span(line))
    elif line.startswith("-- "):
        scenes[-1].sayings.append(Saying("", "", time.fromisoformat(line[3:])))
    else:
        scenes[-1].sayings.append(Saying(*split_saying(line)))


def _scene(line: str) -> Scene:
    found = _HEAD.fullmatch(line)
    if found is None:
        raise ValueError(f"not the head of a scene: {line!r}")
    day, weekday, clock, title = found.groups()
    start = datetime.fromisoformat(f"{day} {clock}")
    if WEEKDAYS[start.weekday()] != weekday:
        raise ValueError(f"{day} is 周{WEEKDAYS[start.weekday()]}, not 周{weekday}")
    return Scene(start, title)


def _span(line: str) -> Span:
    found = _SPAN.fullmatch(line)
    if found is None:
        raise ValueError(f"not a span of days: {line!r}")
    first, last, rule = found.groups()
    return Span(date.fromisoformat(first), date.fromisoformat(last or first), rule)


def _timed(sayings: Iterable[Saying]) -> list[Saying]:
    """Give each clock mark to the line after it."""
    timed: list[Saying] = []
    clock: time | None = None
    for saying in sayings:
        if saying.who:
            timed.append(Saying(saying.who, saying.words, clock))
        clock = saying.clock
    return timed


def moments(scene: Scene, gaps: Iterable[float]) -> list[datetime]:
    """When each line of a scene is said, `gaps` being the seconds before each of them."""
    now = scene.start
    found: list[datetime] = []
    for saying, gap in zip(scene.sayings, gaps, strict=True):
        if saying.clock is not None:
            set_to = datetime.combine(now.date(), saying.clock)
            now = set_to + timedelta(days=set_to < now)
        now += timedelta(seconds=gap)
        found.append(now)
    return found
