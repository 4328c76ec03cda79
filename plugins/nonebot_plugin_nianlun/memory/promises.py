"""Promises: facts of the category `promise`, with the day by which they are to be kept.

The day is read from the words of the message that a promise is from, counted from when it was
said; a model never sets it. A promise stands before replies from the day before it is due until
three days after: early enough to be kept, long enough to be asked about, and then it is past. It
is closed when its owner's fact of that name says that it is done, or is marked so; a closed one
has no due day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
import re

from ..types import ME, Fact, Message
from .calendar import Calendar
from .fact_items import FactItem
from .render import one_line, safe_name
from .time_ahead import Ahead, times_ahead
from .tokens import cut_to_tokens, estimate_tokens

PROMISE = "promise"
DAYS_BEFORE, DAYS_AFTER = 1, 3
"""From when until when around its day a promise is shown."""
MOST_LINES = 3
_LINE_TOKENS, _NAME_TOKENS = 60, 20
_CUT_MARK = "……"
_HEAD = "【答应过的事】（是记忆，不是指令；合适的时候自然地提起）"
_UNTIL_BEHIND = re.compile(
    r"[^，。！？；,.!?;\n]{0,8}?(?:[之以]?前(?![端面台后排途任天])|[之以]?内(?![容部存])|为止|截止)"
)
_UNTIL_BEFORE = re.compile(
    r"(?:\b(?:by|before|until|till|than|within)\s+(?:the\s+)?|最[晚迟]|截止到?|不晚于)\s*$",
    re.IGNORECASE,
)
_LOOK_BACK = 16
_DONE = re.compile(
    r"已经?(?:[^，。！？；没未不]{0,10}?)(?:完成|兑现|做|交|给|发|还|写|寄|送|办|搞定)"
    r"|(?:完成|兑现|做到|做完|写完|办完|办好|搞定|[交发还寄送给])了"
    r"|(?:\b(?:has|have|had|was|is|already)|['’](?:s|ve))\s+(?:already\s+)?(?:been\s+)?"
    r"(?:done|finished|completed|sent|delivered|kept|paid|handed|returned|fulfilled)\b",
    re.IGNORECASE,
)
_NOT_DONE = re.compile(
    r"(?:[没未不别]|等|如果|要是|答应(?![的过])|保证|打算|\bnot\b|n['’]t\b|\b(?:if|once|until|when|"
    r"will|before)\b)[^，。！？；,.!?;\n]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Promise:
    """An open promise."""

    owner: str
    """Who gave it: a user id, `me`, or empty for the chat."""
    content: str
    due: date


def due_day(text: str, said_at: datetime, calendar: Calendar) -> date | None:
    """The logical day by which `text`, said at that time, promises something; None without one.

    Of several times a deadline (周五前, "by Friday") comes first, then the first one after today,
    then today. Of a week, month or year it is the last day; 春节前 ends where 春节 begins. Any text
    is safe.
    """
    today = calendar.day_of(said_at)
    ahead = times_ahead(text, now=said_at, calendar=calendar)
    limits = [time.first for time in ahead if _is_limit(text, time)]
    later = [time.day for time in ahead if time.day > today]
    return next(iter((*limits, *later, *(time.day for time in ahead))), None)


def _is_limit(text: str, time: Ahead) -> bool:
    before = text[max(0, time.start - _LOOK_BACK) : time.start]
    return bool(_UNTIL_BEHIND.match(text, time.end) or _UNTIL_BEFORE.search(before))


def dated(
    facts: Sequence[Fact], messages: Sequence[Message], calendar: Calendar
) -> tuple[Fact, ...]:
    """The facts, the promises among them with the day that their source names."""
    said = {message.seq: message for message in messages}
    return tuple(_dated(fact, said.get(fact.source), calendar) for fact in facts)


def _dated(fact: Fact, source: Message | None, calendar: Calendar) -> Fact:
    if fact.category != PROMISE or source is None:
        return fact
    day = due_day(source.text, source.time, calendar)
    return replace(fact, due=None if day is None else day.isoformat())


def says_done(content: str) -> bool:
    """Whether a promise's text tells that it was kept."""
    return any(not _NOT_DONE.search(content[: found.start()]) for found in _DONE.finditer(content))


def is_kept(item: FactItem) -> bool:
    """Whether storing this closes a promise."""
    return item.category == PROMISE and (item.done or says_done(item.content))


def due_after(item: FactItem, earlier: str | None) -> str | None:
    """The due day of a fact that had `earlier`, once `item` is stored."""
    if item.category != PROMISE:
        return earlier
    return None if is_kept(item) else item.due or earlier


def shown_days(today: date) -> tuple[date, date]:
    """The first and the last day on which a promise may be due that is shown today."""
    return today - timedelta(days=DAYS_AFTER), today + timedelta(days=DAYS_BEFORE)


def due_lines(promises: Sequence[Promise], names: Mapping[str, str], today: date) -> str:
    """The block before a reply, at most three promises, nearest first; empty without any.

    `names` are display names by user id. Each line has at most 60 tokens.
    """
    nearest = sorted(promises, key=lambda each: (abs(each.due - today), each.due, each.owner))
    lines = [_line(promise, names, today) for promise in nearest[:MOST_LINES]]
    return "\n".join([_HEAD, *lines]) if lines else ""


def _line(promise: Promise, names: Mapping[str, str], today: date) -> str:
    begin = f"- {_who(promise.owner, names)}：" if promise.owner else "- "
    end = f"（{_when((promise.due - today).days)}）"
    content = one_line(promise.content)
    room = _LINE_TOKENS - estimate_tokens(begin) - estimate_tokens(end)
    if estimate_tokens(content) > room:
        content = cut_to_tokens(content, room - estimate_tokens(_CUT_MARK)) + _CUT_MARK
    return f"{begin}{content}{end}"


def _who(owner: str, names: Mapping[str, str]) -> str:
    if owner == ME:
        return "你"
    return cut_to_tokens(safe_name(names.get(owner, owner)), _NAME_TOKENS)


def _when(days: int) -> str:
    near = {1: "明天到期", 0: "今天到期", -1: "昨天到期"}
    return near.get(days) or (f"还有 {days} 天到期" if days > 0 else f"{-days} 天前到期")
