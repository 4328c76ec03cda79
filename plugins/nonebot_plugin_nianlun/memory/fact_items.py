"""What may become a fact: one rule for every way in, judged item by item."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
import re
import unicodedata

from ..errors import NoteRejected
from ..types import Fact
from .keymarks import strip_key_marks
from .render import one_line
from .secrets import mask_secrets
from .units import count_units, shortened

CATEGORIES = (
    *("preferences", "daily_life", "profile", "event", "knowledge", "relationship", "promise"),
)
"""What a category is chosen from before a new one is made."""
LONGEST_TURN = 12
"""So many messages at most are read as one turn."""
TURN_AGE = timedelta(hours=6)
"""What was said longer before the end of a turn is no part of it: its moments would get the wrong
time, and a line that is taken back later looks for them near its own."""
MAX_FACTS = 8
"""So many of one answer are taken."""
FACT_UNITS = 300
FACT_CHARACTERS = 3_000
"""Marks and emoji are no units, and must not make a fact endless."""
FACT_NAME_CHARACTERS = 80

_CATEGORY = re.compile(r"[a-z0-9_][a-z0-9_-]{0,79}")
_NOT_IN_A_NAME = re.compile(r"[:|#]|\[\[|\]\]")


@dataclass(frozen=True, slots=True)
class FactItem:
    """A fact whose owner and source are known otherwise."""

    category: str
    name: str
    content: str
    due: str | None = None
    done: bool = False


def fact_item(category: object, name: object, content: object) -> FactItem:
    """The fact as it is stored. Raises NoteRejected with what a model can change."""
    return FactItem(fact_category(category), fact_name(name), fact_content(content))


def fact_category(given: object) -> str:
    """A slug: lower-case ASCII letters, digits, `_`, and `-` but not in front."""
    if not isinstance(given, str) or not _CATEGORY.fullmatch(given):
        raise NoteRejected(f"category 应为小写英文、数字、_ 或 -，收到 {quoted(given)}")
    return given


def fact_name(given: object) -> str:
    """On one line and in NFC, so that what looks the same is the same fact."""
    name = unicodedata.normalize("NFC", one_line(given)) if isinstance(given, str) else ""
    name = mask_secrets(name)
    if not _shows(name) or len(name) > FACT_NAME_CHARACTERS or _NOT_IN_A_NAME.search(name):
        raise NoteRejected(
            f"name 应为 1 到 {FACT_NAME_CHARACTERS} 个字，不含 : | # [[ ]]，收到 {quoted(given)}"
        )
    return name


def fact_content(given: object) -> str:
    """Text on one line, whatever it looks like; only references to messages are taken off, and
    secrets are masked."""
    content = mask_secrets(one_line(strip_key_marks(given))) if isinstance(given, str) else ""
    too_long = len(content) > FACT_CHARACTERS or count_units(content) > FACT_UNITS
    if not _shows(content) or too_long:
        raise NoteRejected(f"content 应为 1 到 {FACT_UNITS} 字的文字")
    return content


def read_facts(given: object, shown: Collection[int]) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
    """The facts of a model's list that may be kept, and why each of the others may not.

    Each names in `from` the message that it is from, which must be one of those `shown`.
    """
    if given is None:
        return (), ()
    if not isinstance(given, list):
        return (), ("facts 应为一个列表",)
    facts: list[Fact] = []
    dropped: list[str] = []
    for number, item in enumerate(given[:MAX_FACTS], 1):
        try:
            facts.append(_fact(item, shown))
        except NoteRejected as error:
            dropped.append(f"第 {number} 条：{error}")
    if len(given) > MAX_FACTS:
        dropped.append(f"最多 {MAX_FACTS} 条，后面的 {len(given) - MAX_FACTS} 条没有收")
    return tuple(facts), tuple(dropped)


def _fact(given: object, shown: Collection[int]) -> Fact:
    if not isinstance(given, dict):
        raise NoteRejected("应为一个对象")
    item = fact_item(given.get("category"), given.get("name"), given.get("content"))
    source = given.get("from")
    if type(source) is not int or source not in shown:
        raise NoteRejected(f"from 应为资料里出现过的消息编号，收到 {quoted(source)}")
    return Fact(item.category, item.name, item.content, source, done=given.get("done") is True)


def _shows(text: str) -> bool:
    """Whether anything of it can be seen."""
    return any(not char.isspace() and unicodedata.category(char) != "Cf" for char in text)


def quoted(value: object) -> str:
    """A value of the model's as it may be shown back to it: bounded, on one line."""
    return "空" if value is None else repr(shortened(str(value), 40))
