"""How what is looked at reads. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from difflib import SequenceMatcher
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..memory.calendar import Calendar, titled
from ..memory.edits import NOT_BROUGHT
from ..memory.evidence import QUOTE
from ..memory.keymarks import show_key_marks
from ..memory.layers import ROLES, cost_line
from ..memory.prompt import ReplyPrompt
from ..memory.render import one_line
from ..memory.units import count_units
from ..memory.why import Edit
from .views import moment, version_line

if TYPE_CHECKING:
    from ..store.models import UsageCount

_MARK = r"（#\d+(?: #\d+)*+）"
# What somebody said is one piece, whatever ends in it, and a mark ends what it stands behind.
_SENTENCES = re.compile(
    rf"(?:{QUOTE}|『[^『』]*+』|“[^“”]*+”|(?!{_MARK})[^。！？!?；;\n])++"
    rf"[。！？!?；;]*…*[”’」』）)]*(?:{_MARK}[。！？!?；;，]*)?\n*|{_MARK}|\n+"
)
_PURPOSES = {
    "reply": "回复",
    "activity": "写活动",
    "rollup": "写日、月、年",
    "facts": "回复之后的事实",
    "diary": "日记",
    "embedding": "向量",
    "caption": "看图",
}
_Gone: TypeAlias = Literal["已清空", "已删", "拿掉了"]
_WHY_GONE: dict[_Gone, str] = {
    "已清空": "这一版已经清空：它用到的话被撤回、删掉或忘记了。",
    "已删": "这时候删掉了。",
    "拿掉了": "这时候拿掉了。",
}


@dataclass(frozen=True, slots=True)
class Version:
    """A text of a note or a fact as it stands or stood."""

    number: int
    text: str
    """Empty when it held something that was taken back, when the note was deleted, and while a
    fact was taken away."""
    writer: str | None
    """None of a fact, and where the note was deleted: nobody wrote that."""
    written_at: datetime | None
    """None where it is not on record."""
    edit: Edit | None = None
    """That a person wrote it."""
    gone: _Gone = "已清空"
    """What it is where it has no text."""


def earlier_years_view(days: Iterable[tuple[str, str]]) -> str:
    """`days`: each by its date, and what there is of it."""
    return "\n\n".join(f"{titled(day)}\n{text}" for day, text in days)


def prompt_view(prompt: ReplyPrompt, budget: int) -> str:
    """The whole prompt turn by turn, and what each layer of it costs."""
    turns = [f"—— {ROLES[turn['role']]} ——\n{turn['content']}" for turn in prompt.messages]
    return "\n\n".join([cost_line(prompt.tokens, budget), *turns])


def usage_view(counts: Sequence[UsageCount], today: date) -> str:
    """Tokens of the last 7 and 30 logical days; by purpose and model, and by day."""
    week = (today - timedelta(days=6)).isoformat()
    lines = [
        f"近 7 天 {_total(c for c in counts if c.date >= week)}",
        f"近 30 天 {_total(counts)}",
        "",
        "用在哪里：",
        *_shares(counts, lambda count: _PURPOSES.get(count.purpose, count.purpose)),
        "",
        "哪个模型：",
        *_shares(counts, lambda count: one_line(count.model) or "没有名字"),
        "",
        "最近几天：",
        *_shares([c for c in counts if c.date >= week], lambda count: count.date, by_size=False),
    ]
    return "\n".join(lines)


def last_change(versions: Sequence[Version]) -> str:
    """What the newest version changed."""
    if len(versions) < 2:
        return "只有一版，没有可以比的。"
    old, new = versions[-2:]
    return f"第 {old.number} 版 → 第 {new.number} 版\n{comparison(old, new)}"


def versions_view(versions: Sequence[Version], calendar: Calendar) -> str:
    """A line for each, newest first, and for those that are not kept any more."""
    lines: list[str] = []
    before = 0
    for one in versions:
        if missing := one.number - before - 1:
            first = f"{before + 1}" if missing == 1 else f"{before + 1}–{one.number - 1}"
            lines.append(f"第 {first} 版 · {NOT_BROUGHT}")
        size = f"{count_units(one.text)} 字" if one.text else one.gone
        lines.append(f"{_frame(one, calendar)} · {size}")
        before = one.number
    return "\n".join(reversed(lines))


def version_view(one: Version, calendar: Calendar) -> str:
    text = one.text if one.writer is None else show_key_marks(one.text)
    text = text or _WHY_GONE[one.gone]
    return f"{text}\n{_frame(one, calendar)}"


def _frame(one: Version, calendar: Calendar) -> str:
    if one.written_at is None:
        return f"第 {one.number} 版"
    if one.writer is None:
        return f"第 {one.number} 版 · {moment(one.written_at, calendar)}"
    return version_line(one.number, one.writer, one.written_at, calendar, one.edit)


def comparison(old: Version, new: Version) -> str:
    """Sentence by sentence: `－` what is gone, `＋` what is new; what stayed is counted."""
    for one in (old, new):
        if not one.text and one.gone != "拿掉了":
            return f"第 {one.number} 版{one.gone}，没有文字可以比。"
    before, after = (_sentences(show_key_marks(one.text)) for one in (old, new))
    lines: list[str] = []
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            lines.append(f"　……{j - i} 句没有变")
        else:
            lines += [f"－{sentence}" for sentence in before[i:j]]
            lines += [f"＋{sentence}" for sentence in after[k:m]]
    return "\n".join(lines) if before != after else "两版的文字一样。"


def _sentences(text: str) -> list[str]:
    found = (one_line(part) for part in _SENTENCES.findall(text))
    return [sentence for sentence in found if sentence]


def _total(counts: Iterable[UsageCount]) -> str:
    calls = failures = asked = cached = answered = 0
    for count in counts:
        calls += count.calls
        failures += count.failures
        asked += count.prompt_tokens
        cached += count.cached_tokens
        answered += count.completion_tokens
    failed = f"，{failures} 次没成" if failures else ""
    return (
        f"{asked + answered} token：{calls} 次调用{failed}，"
        f"读 {asked}（其中缓存 {cached}），写 {answered}"
    )


def _shares(
    counts: Iterable[UsageCount], name_of: Callable[[UsageCount], str], *, by_size: bool = True
) -> list[str]:
    tokens: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for count in counts:
        name = name_of(count)
        tokens[name] += count.prompt_tokens + count.completion_tokens
        calls[name] += count.calls
    names = [name for name, _ in tokens.most_common()] if by_size else sorted(tokens, reverse=True)
    return [f"{name}  {tokens[name]} token，{calls[name]} 次" for name in names]
