"""How what was found reads. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
import re
from typing import TYPE_CHECKING, TypeAlias

from ..memory.calendar import Calendar
from ..memory.keymarks import show_key_marks, strip_key_marks
from ..memory.links import parse_links
from ..memory.render import one_line
from ..memory.search import Recalled, RecallResult
from ..memory.terms import fold, index_terms, telling_parts, telling_terms
from ..types import Message
from .views import fact_written, moment

if TYPE_CHECKING:
    from ..store.models import Fact, FactVersion
    from ..store.said import Heard, Original

PAGE_LINES = 15
_MENTION = re.compile(r"@\S+")
_LINE = 120
"""Characters of a message where it is one of many."""

People: TypeAlias = Mapping[str, str]
"""Names to show, by user id."""


def people_view(people: Sequence[Heard], names: People, total: int, calendar: Calendar) -> str:
    lines = [
        f"{place}. {names.get(one.user_id, one.user_id)}  {one.messages} 条，"
        f"最近 {moment(one.last_at, calendar)}"
        for place, one in enumerate(people, 1)
    ]
    if total > len(people):
        lines.append(f"……还有 {total - len(people)} 人。")
    return "\n".join(lines)


def said_view(lines: Sequence[Message], calendar: Calendar) -> str:
    """`#12 2026-11-29 10:32 文本`, latest first."""
    return "\n".join(f"#{one.seq} {moment(one.time, calendar)} {_short(one.text)}" for one in lines)


def found_view(found: RecallResult, wording: str) -> str:
    """`wording` is what should be written there (see `query.wording`)."""
    if not found.items:
        return "没有找到。"
    # A person may have typed what looks like a reference; only in what was written it is one.
    lines = [
        item.text if item.kind == "message" else show_key_marks(item.text) for item in found.items
    ]
    lines = [line.removeprefix("- ") for line in lines]
    if not is_written(found, wording):
        lines.insert(0, "没有正好写到的，相近的有这些：")
    if found.widened:
        lines.insert(0, "那段时间里没有，别的时候有这些：")
    return "\n".join(lines)


def is_written(found: RecallResult, wording: str) -> bool:
    """Whether anything of what was found says `wording` (see `query.wording`)."""
    return any(_says(item, wording) for item in found.items)


def _says(item: Recalled, wording: str) -> bool:
    """Whether each telling part of what was typed, and each @, stands in the text, itself or by
    all of its terms of two or more characters; where no part tells anything, whether all typed
    words do."""
    text = fold(f"{item.text} {item.content}")
    if item.kind != "message":
        text = strip_key_marks(text)
    held = set(index_terms(text))
    typed = fold(wording)
    parts = [*telling_parts(typed), *_MENTION.findall(typed)] or typed.split()
    return all(part in text or _has_all(held, part) for part in parts)


def _has_all(held: set[str], part: str) -> bool:
    # A single character all kinds of words share.
    terms = [term for term in telling_terms(part) if len(term) > 1]
    return bool(terms) and held.issuperset(terms)


def originals_view(
    seqs: Sequence[int], found: Mapping[int, Original], names: People, calendar: Calendar
) -> str:
    """Each message as it was said; one that may not be shown is as if it had never been."""
    parts: list[str] = []
    for seq in seqs:
        if seq not in found:
            parts.append(f"#{seq} 没有这条，或者不在记忆里。")
            continue
        message = found[seq].message
        if message.withdrawn:
            parts.append(f"#{seq} 已经撤回或忘记，没有留下内容。")
            continue
        name = names.get(message.user_id) or one_line(message.name) or message.user_id
        parts.append(f"#{seq} {moment(message.time, calendar)} {name}：\n{message.text}")
    return "\n".join(parts)


def categories_view(rows: Sequence[Fact]) -> str:
    if not rows:
        return "还没有词条。"
    counts = Counter(row.category for row in rows)
    return "\n".join(f"{one_line(category)}  {count} 条" for category, count in counts.items())


def facts_view(rows: Sequence[Fact], owners: People) -> str:
    return "\n".join(
        f"{one_line(row.name or '')}{_owner(row, owners)}  {_short(row.text)}" for row in rows
    )


def fact_view(row: Fact, journal: Sequence[FactVersion], owners: People, calendar: Calendar) -> str:
    """One fact with where it is from, what it was before and where it leads. `owners`: also those
    who changed it by hand."""
    lines = [
        f"[{one_line(f'{row.category}:{row.name}')}]{_owner(row, owners)}",
        row.text,
        f"{fact_written(row.written_at, row.writer, owners, calendar)}{_source(row)}",
    ]
    if row.due is not None:
        lines.append(f"约在 {row.due}" + ("，已经做到" if row.done_at else ""))
    if links := parse_links(row.text):
        lines.append(f"连到：{'、'.join(one_line(str(link)) for link in links)}")
    if journal:
        lines.append("从前：")
        lines += [
            f"　{_earlier(old, owners, calendar)}{_source(old)}  "
            + (_short(old.text) if old.text else "（没有）")
            for old in reversed(journal)
        ]
    return "\n".join(lines)


def _owner(row: Fact, owners: People) -> str:
    return f"（{owners.get(row.owner, row.owner)}）" if row.owner else ""


def _earlier(old: FactVersion, names: People, calendar: Calendar) -> str:
    if old.writer is None:
        return moment(old.written_at, calendar)
    return fact_written(old.written_at, old.writer, names, calendar)


def _source(told: Fact | FactVersion) -> str:
    """What somebody changed by hand was only at first taken from its message."""
    if told.source is None:
        return ""
    return f"，{'' if told.writer is None else '起初'}来自 #{told.source}"


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"
