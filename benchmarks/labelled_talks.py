"""Chats with questions about them and the lines that answer each, as JSON. See README.md."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
import random
from zoneinfo import ZoneInfo

_ZONE = ZoneInfo("Asia/Shanghai")


@dataclass(frozen=True)
class Line:
    id: str
    chat: str
    time: datetime
    speaker: str
    text: str


@dataclass(frozen=True)
class Asked:
    text: str
    chat: str
    asker: str | None
    evidence: frozenset[str]
    kind: str


@dataclass
class Talk:
    """One chat: its lines in the order they are stored, and the questions about them."""

    lines: list[Line] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)

    @property
    def private(self) -> bool:
        return len({line.speaker for line in self.lines} - {"me"}) <= 1

    @property
    def end(self) -> datetime:
        return max(line.time for line in self.lines) + timedelta(hours=1)


def read(path: Path, pooled: bool, seed: int | None) -> dict[str, Talk]:
    """The chats of a file; with a seed only one half of its questions, drawn by that seed."""
    content = json.loads(path.read_text("utf-8-sig"))
    chats: defaultdict[str, list[Line]] = defaultdict(list)
    for one in content["messages"]:
        name = str(one.get("chat", ""))
        line = Line(
            str(one["id"]), name, moment(one["ts"]), str(one["speaker"]), str(one["text"] or "")
        )
        chats[name].append(line)
    questions = [
        Asked(
            str(one["q"]),
            str(one.get("chat", "")),
            one.get("asker"),
            frozenset(map(str, one["evidence"])),
            str(one.get("kind") or "-"),
        )
        for one in content["questions"]
        if one.get("evidence")
    ]
    if seed is not None:
        random.Random(seed).shuffle(questions)
        questions = questions[len(questions) // 2 :]
    talks: defaultdict[str, Talk] = defaultdict(Talk)
    for name, lines in chats.items():
        talks["" if pooled else name].lines += sorted(lines, key=lambda line: line.time)
    for question in questions:
        talks["" if pooled else question.chat].questions.append(question)
    return {name: talk for name, talk in talks.items() if talk.questions and talk.lines}


def moment(text: str) -> datetime:
    """A time of the file in UTC; without a zone it is the local time of the product's default."""
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=_ZONE)).astimezone(UTC)
