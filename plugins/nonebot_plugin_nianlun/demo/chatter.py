"""Everyday talk from a grammar: small conversations with slots, told apart by who may have them.

A conversation begins with `= conditions`; its lines are `name：words`, `?name：words` being said
three times in five. In the words `{a|b}` is a choice, and `{1:a|b}` one that goes together with
`{1:c|d}` elsewhere in the conversation: first with first, second with second. `{dish}` is a word of
the list of that name in `words.txt`, the same all through the conversation, and `{dish2}` another
one of it; `{3-9}` is a number, `{price:3-9}` a number with a name. Conditions: `t18-23` (hours,
past midnight being 24 and more), `m6-9` (months), `FROM..TO` (days, either may be left out),
`work`, `free`, `周五`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from random import Random
import re

from .story import WEEKDAYS, ScriptError, split_saying

_FOLDER = Path(__file__).with_name("chatter")
_SLOT = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"(?:(\w+):)?(\d+)-(\d+)")
_LINKED = re.compile(r"(\d):([^|]*\|.*)")
_HOURS = re.compile(r"t(\d+)-(\d+)")
_MONTHS = re.compile(r"m(\d+)-(\d+)")
_OPTIONAL = 0.6


@dataclass(slots=True)
class Conversation:
    """A pattern of a conversation, and when it may come up."""

    lines: list[tuple[str, str, bool]] = field(default_factory=list)
    """Speaker, words, whether it may be left out."""
    hours: range = range(8, 26)
    months: frozenset[int] = frozenset(range(1, 13))
    first: date = date.min
    last: date = date.max
    weekdays: frozenset[int] = frozenset(range(7))
    work: bool | None = None
    """Only on working days, only on free days, or any."""

    @property
    def cast(self) -> frozenset[str]:
        return frozenset(who for who, _, _ in self.lines)

    def fits(self, day: date, hour: int, work: bool) -> bool:
        return (
            hour in self.hours
            and day.month in self.months
            and self.first <= day <= self.last
            and day.weekday() in self.weekdays
            and self.work in (None, work)
        )


@dataclass(frozen=True, slots=True)
class Grammar:
    conversations: tuple[Conversation, ...]
    words: dict[str, tuple[str, ...]]

    def tell(self, conversation: Conversation, rng: Random) -> list[tuple[str, str]]:
        """Speaker and words of each line, with one choice made for every slot."""
        bound: dict[str, str] = {}
        return [
            (who, self._fill(words, bound, rng))
            for who, words, optional in conversation.lines
            if not optional or rng.random() < _OPTIONAL
        ]

    def _fill(self, words: str, bound: dict[str, str], rng: Random) -> str:
        while slot := _SLOT.search(words):
            value = self._value(slot[1], bound, rng)
            words = words[: slot.start()] + value + words[slot.end() :]
        return words

    def _value(self, slot: str, bound: dict[str, str], rng: Random) -> str:
        if linked := _LINKED.fullmatch(slot):
            choices = linked[2].split("|")
            return choices[int(bound.setdefault(linked[1], str(rng.randrange(len(choices)))))]
        if "|" in slot:
            return rng.choice(slot.split("|"))
        if slot == "哈":
            return "哈" * rng.randint(2, 9)
        if number := _NUMBER.fullmatch(slot):
            name, low, high = number.groups()
            value = str(rng.randint(int(low), int(high)))
            return bound.setdefault(name, value) if name else value
        if slot not in bound:
            taken = {value for key, value in bound.items() if key[:-1] == slot or slot[:-1] == key}
            words = self.words[slot.rstrip("23")]
            bound[slot] = rng.choice([word for word in words if word not in taken])
        return bound[slot]


def load_grammar() -> Grammar:
    """Read the chatter folder. Raises ScriptError, also for a slot that no list fills."""
    words = dict(_lists((_FOLDER / "words.txt").read_text("utf-8")))
    found: list[Conversation] = []
    for file in sorted(_FOLDER.glob("*.txt")):
        if file.name == "words.txt":
            continue
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            try:
                _take(line.strip(), found, words)
            except ValueError as error:
                raise ScriptError(f"{file.name}:{number}: {error}") from error
    return Grammar(tuple(found), words)


def _lists(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in text.splitlines():
        name, colon, values = line.partition("：")
        if colon:
            yield name, tuple(values.split("|"))


def _take(line: str, found: list[Conversation], words: dict[str, tuple[str, ...]]) -> None:
    if not line or line.startswith("//"):
        return
    if line.startswith("="):
        found.append(_conditions(line[1:].split()))
        return
    who, said = split_saying(line.removeprefix("?"))
    for slot in _SLOT.findall(said):
        known = "|" in slot or slot == "哈" or _NUMBER.fullmatch(slot) or slot.rstrip("23") in words
        if not known and not re.search(rf"\{{{slot}:", _said(found[-1]) + said):
            raise ValueError(f"no list fills {{{slot}}}")
    found[-1].lines.append((who, said, line.startswith("?")))


def _said(conversation: Conversation) -> str:
    return "\n".join(words for _, words, _ in conversation.lines)


def _conditions(marks: list[str]) -> Conversation:
    made = Conversation()
    for mark in marks:
        if hours := _HOURS.fullmatch(mark):
            made.hours = range(int(hours[1]), int(hours[2]) + 1)
        elif months := _MONTHS.fullmatch(mark):
            low, high = int(months[1]), int(months[2])
            made.months = frozenset(m for m in range(1, 13) if (m - low) % 12 <= (high - low) % 12)
        elif ".." in mark:
            first, _, last = mark.partition("..")
            made.first = date.fromisoformat(first) if first else date.min
            made.last = date.fromisoformat(last) if last else date.max
        elif mark in ("work", "free"):
            made.work = mark == "work"
        elif mark[0] == "周":
            made.weekdays = frozenset(WEEKDAYS.index(day) for day in mark[1:])
        else:
            raise ValueError(f"unknown condition {mark!r}")
    return made
