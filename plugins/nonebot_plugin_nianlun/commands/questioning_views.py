"""Why something is remembered, as text for people. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..memory.calendar import Calendar
from ..memory.keymarks import strip_key_marks
from ..memory.provenance import Trace
from ..memory.render import display_names, one_line, text_of
from ..memory.why import Edit, FactWhy, Why
from ..types import COMMAND_LINE, Activity, Memory, Message, NoteKind
from .correcting_views import owner_words
from .views import WRITERS, moment, version_line

_BRANCH_LINES = 10
"""Of what one sentence was made of, so many lines at most."""
_LINES = 20
"""Of an activity's messages, so many at most."""
_SOURCES = 12
_JOURNAL = 5
_LONGEST = 120
_BELOW = {"day": "条活动", "month": "天", "year": "个月"}


@dataclass(frozen=True, slots=True)
class Showing:
    """What is needed to show a trace."""

    calendar: Calendar
    names: Mapping[str, str]
    """Display names by user id."""
    edits: Mapping[tuple[NoteKind, str], Edit]
    """The notes that a person wrote, by kind and period or number."""


def memory_why(memory: Memory, why: Why, showing: Showing) -> str:
    """A day, month or year: what it was made of, its most telling sentences down to messages."""
    shown = [f"&{ref}" if memory.kind == "day" else ref for ref in memory.sources[:_SOURCES]]
    more = " 等" if len(memory.sources) > _SOURCES else ""
    lines = [
        version_line(memory.version, memory.writer, memory.written_at, showing.calendar),
        *_edited(showing, memory.kind, memory.period),
        f"写自 {len(memory.sources)} {_BELOW[memory.kind]}：{'、'.join(shown)}{more}",
    ]
    for number, found in enumerate(why.told, 1):
        lines += ["", f"{number}. {_sentence(found)}", *_branches(found, showing)]
    return "\n".join([*lines, "", _rest(why)])


def activity_why(activity: Activity, why: Why, window: Sequence[Message], showing: Showing) -> str:
    """An activity: its sentences with what they cite, and the other messages of its window."""
    frame = version_line(activity.version, activity.writer, activity.written_at, showing.calendar)
    lines = [f"{activity.date} · {frame}", *_edited(showing, "activity", str(activity.number))]
    for number, found in enumerate(why.told, 1):
        lines += ["", f"{number}. {_sentence(found)}", *_branches(found, showing)]
    told = {seq for found in why.told for seq in found.reached}
    others = [message for message in window if message.seq not in told]
    if others:
        lines += ["", f"同一段里的{'其他' if told else ''}话："]
        lines += [_line(message, showing) for message in others[:_LINES]]
    if len(others) > _LINES:
        lines.append(f"……还有 {len(others) - _LINES} 条没有列出。")
    if not window:
        lines += ["", "没有留下消息：它是随手写的，或者那些话不在了。"]
    return "\n".join([*lines, *([_rest(why)] if why.more else [])])


def fact_why(fact: FactWhy, showing: Showing) -> str:
    """A fact: whose it is, the line that it is from, and what it said before."""
    owner = owner_words(fact.owner, showing.names)
    lines = [
        f"{owner}的 {fact.category}:{fact.name}：{_short(fact.text)}",
        f"写于 {moment(fact.written_at, showing.calendar)}"
        + (f" · 到期 {fact.due}" if fact.due else ""),
    ]
    if fact.source is None:
        lines.append("没有来源消息：是程序，或者别处的指令写下的。")
    else:
        lines.append(f"出自 {_line(fact.source, showing)}")
    if fact.journal:
        lines.append("以前：")
    for text, since in fact.journal[:_JOURNAL]:
        lines.append(f"  {moment(since, showing.calendar)} {_short(text) or '（拿掉了）'}")
    if len(fact.journal) > _JOURNAL:
        lines.append(f"  ……还有更早的 {len(fact.journal) - _JOURNAL} 版。")
    return "\n".join(lines)


def _rest(why: Why) -> str:
    parts = []
    if why.more:
        parts.append(f"另有 {why.more} 句有出处，没有列出")
    if why.uncited:
        parts.append(f"{why.uncited} 句没有引用消息")
    return f"{'；'.join(parts) or '每一句都列在这里了'}。"


def _edited(showing: Showing, kind: NoteKind, ref: str) -> list[str]:
    edit = showing.edits.get((kind, ref))
    if edit is None:
        return []
    since = "，后来又接着写了新的事" if edit.continued else ""
    at = moment(edit.at, showing.calendar)
    if edit.by == COMMAND_LINE:
        return [f"这篇是{WRITERS[COMMAND_LINE]}，写于 {at}{since}"]
    who = one_line(showing.names.get(edit.by, edit.by))
    return [f"这篇由 {who}（{edit.by}）改写于 {at}{since}"]


def _branches(found: Trace, showing: Showing) -> list[str]:
    lines = [line for part in _beneath(found, 1) for line in _node(part, showing)]
    if not lines:
        return ["  它引用的消息不在了。"]
    if len(lines) <= _BRANCH_LINES:
        return lines
    return [*lines[: _BRANCH_LINES - 1], f"  ……还有 {len(lines) - _BRANCH_LINES + 1} 行没有列出。"]


def _beneath(found: Trace, depth: int) -> Iterator[tuple[int, Trace | Message]]:
    for below in found.below:
        yield depth, below
        yield from _beneath(below, depth + 1)
    for message in found.messages:
        yield depth, message


def _node(part: tuple[int, Trace | Message], showing: Showing) -> Iterator[str]:
    depth, node = part
    indent = "  " * depth
    if isinstance(node, Message):
        yield f"{indent}{_line(node, showing)}"
        return
    ref = f"&{node.ref}" if node.kind == "activity" else node.ref
    edit = showing.edits.get((node.kind, node.ref))
    yield f"{indent}{ref}{_by(edit, showing)} {_sentence(node)}"


def _by(edit: Edit | None, showing: Showing) -> str:
    if edit is None:
        return ""
    name = one_line(showing.names.get(edit.by, edit.by))
    return f"（{WRITERS.get(edit.by, f'{name} 改写')}）"


def _sentence(found: Trace) -> str:
    return _short(strip_key_marks(found.sentence.text).strip().rstrip("；，"))


def _line(message: Message, showing: Showing) -> str:
    head = f"#{message.seq} {moment(message.time, showing.calendar)}"
    if message.withdrawn:
        gone = "已经收回" if message.name else "已经忘记"
        return f"{head} [{gone}]"
    by_itself = display_names({message.user_id: message.name})
    who = showing.names.get(message.user_id) or by_itself[message.user_id]
    return f"{head} {who}：「{_short(text_of(message))}」"


def _short(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
