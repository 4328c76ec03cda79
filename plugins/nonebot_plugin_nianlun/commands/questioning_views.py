"""Why something is remembered, as text for people. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..memory.calendar import Calendar
from ..memory.keymarks import strip_key_marks
from ..memory.provenance import UNTOLD, Trace
from ..memory.render import display_names, one_line, text_of
from ..memory.why import Edit, FactWhy, Why
from ..types import COMMAND_LINE, Activity, Memory, Message, NoteKind
from .correcting_views import owner_words
from .views import SINCE, SOURCES, WRITERS, fact_written, moment, version_line, writer_words

_BRANCH_LINES = 12
"""Of what one passage was made of, so many lines at most."""
_GONE = 12
"""Of its messages that are not there any more, so many by number."""
_LINES = 20
"""Of an activity's messages, so many at most."""
_SOURCES = 12
_JOURNAL = 5
_LONGEST = 120
_LONGEST_PASSAGE = 300
"""A whole activity, as the longest that one citation stands for in most notes."""


@dataclass(frozen=True, slots=True)
class Showing:
    """What is needed to show a trace."""

    calendar: Calendar
    names: Mapping[str, str]
    """Display names by user id."""
    edits: Mapping[tuple[NoteKind, str], Edit]
    """The notes that a person wrote, by kind and period or number."""


def memory_why(memory: Memory, why: Why, showing: Showing) -> str:
    """A day, month or year: what it was made of, its most telling passages down to messages."""
    shown = [f"&{ref}" if memory.kind == "day" else ref for ref in memory.sources[:_SOURCES]]
    more = " 等" if len(memory.sources) > _SOURCES else ""
    lines = [
        _frame(memory, memory.kind, memory.period, showing),
        *_edited(showing, memory.kind, memory.period),
        f"写自 {len(memory.sources)} {SOURCES[memory.kind]}：{'、'.join(shown)}{more}",
    ]
    return "\n".join([*lines, *_told(why, showing), "", _rest(why)])


def activity_why(activity: Activity, why: Why, window: Sequence[Message], showing: Showing) -> str:
    """An activity: its passages with what they cite, and the other messages of its window."""
    ref = str(activity.number)
    frame = _frame(activity, "activity", ref, showing)
    lines = [f"{activity.date} · {frame}", *_edited(showing, "activity", ref), *_told(why, showing)]
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
        fact_written(fact.written_at, fact.writer, showing.names, showing.calendar)
        + (f" · 到期 {fact.due}" if fact.due else ""),
    ]
    if fact.source is not None:
        first = "" if fact.writer is None else "起初"
        lines.append(f"{first}出自 {_line(fact.source, showing)}")
    elif fact.writer is None:
        lines.append("没有来源消息：是程序，或者别处的指令写下的。")
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
        parts.append(f"另有 {why.more} 段有出处，没有列出")
    if why.uncited:
        parts.append(f"{why.uncited} 句没有引用消息")
    return f"{'；'.join(parts) or '每一句都列在这里了'}。"


def _frame(note: Memory | Activity, kind: NoteKind, ref: str, showing: Showing) -> str:
    edit = showing.edits.get((kind, ref))
    return version_line(note.version, note.writer, note.written_at, showing.calendar, edit)


def _edited(showing: Showing, kind: NoteKind, ref: str) -> list[str]:
    edit = showing.edits.get((kind, ref))
    if edit is None:
        return []
    since = SINCE if edit.continued else ""
    at = moment(edit.at, showing.calendar)
    done = "改写" if edit.again is None else f"还原自第 {edit.again} 版，"
    if edit.by == COMMAND_LINE:
        return [f"这篇是{WRITERS[COMMAND_LINE]}，写于 {at}{since}"]
    who = one_line(showing.names.get(edit.by, edit.by))
    return [f"这篇由 {who}（{edit.by}）{done}于 {at}{since}"]


def _told(why: Why, showing: Showing) -> list[str]:
    """The passages one after the other, each line that was said shown once."""
    shown: set[int] = set()
    lines: list[str] = []
    for number, found in enumerate(why.told, 1):
        passage = _short(_words(found), _LONGEST_PASSAGE)
        lines += ["", f"{number}. {passage}", *_branches(found, showing, shown)]
    return lines


def _branches(found: Trace, showing: Showing, shown: set[int]) -> list[str]:
    """`shown`: the lines that stand above already; those shown here are added."""
    nodes = list(_beneath(found, 1))
    if len(nodes) <= _BRANCH_LINES:
        return [*(_node(*node, showing, shown) for node in nodes), *_gone(found.gone)]
    left = len(nodes) - _BRANCH_LINES + 1
    lines = [_node(*node, showing, shown) for node in nodes[:-left]]
    return [*lines, f"  ……还有 {left} 行没有列出。", *_gone(found.gone)]


def _gone(seqs: Sequence[int]) -> list[str]:
    if not seqs:
        return []
    named = " ".join(f"#{seq}" for seq in seqs[:_GONE])
    more = f" 等 {len(seqs)} 条" if len(seqs) > _GONE else ""
    return [f"  {named}{more} 已经不在了。"]


def _beneath(found: Trace, depth: int) -> Iterator[tuple[int, Trace | Message, Trace]]:
    """All that is beneath, each with its depth and what is right above it."""
    for below in found.below:
        yield depth, below, found
        yield from _beneath(below, depth + 1)
    for message in (*found.messages, *found.apart):
        yield depth, message, found


def _node(
    depth: int, node: Trace | Message, above: Trace, showing: Showing, shown: set[int]
) -> str:
    indent = "  " * depth
    if isinstance(node, Message):
        if node.seq in shown:
            return f"{indent}#{node.seq} 见上面"
        shown.add(node.seq)
        return f"{indent}{_line(node, showing)}"
    ref = f"&{node.ref}" if node.kind == "activity" else node.ref
    edit = showing.edits.get((node.kind, node.ref))
    head = f"{indent}{ref}{_by(edit, showing)}"
    words = _words(node)
    if not words:
        return f"{head}{UNTOLD}" if node.kind == "activity" else head
    return f"{head} {'同上' if words == _words(above) else _short(words)}"


def _by(edit: Edit | None, showing: Showing) -> str:
    if edit is None:
        return ""
    return f"（{writer_words(edit.by, edit, showing.names)}）"


def _words(found: Trace) -> str:
    return strip_key_marks(found.sentence.text).strip().rstrip("；，")


def _line(message: Message, showing: Showing) -> str:
    head = f"#{message.seq} {moment(message.time, showing.calendar)}"
    if message.withdrawn:
        gone = "已经收回" if message.name else "已经忘记"
        return f"{head} [{gone}]"
    by_itself = display_names({message.user_id: message.name})
    who = showing.names.get(message.user_id) or by_itself[message.user_id]
    return f"{head} {who}：「{_short(text_of(message))}」"


def _short(text: str, most: int = _LONGEST) -> str:
    text = one_line(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
