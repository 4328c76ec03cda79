"""The lines of old QQ's text export that are not content: headings and the start of a chat."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
import re
from typing import NamedTuple

from ..capture.cleaning import clean_name, clean_text

WHO_LIMIT = 300
"""Longest name with its id; QQ allows 60 characters, a mail address 254."""
SYSTEM_IDS = frozenset({"10000", "1000000"})
"""Under which QQ itself tells of joins and withdrawals."""
BANNER = "消息记录（此消息记录为文本格式"

_DATE = r"(?P<year>\d{4})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?) "
_TIME = r"(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d)"
_HALF = r"(?P<half>[AaPp][Mm]|上午|下午)"
_PLAIN = rf"{_DATE}{_TIME} "
_HALVED = (rf"{_DATE}{_HALF} ?{_TIME} ", rf"{_DATE}{_TIME}[ \u00a0\u202f]{_HALF} ")
_HEADING_24 = (re.compile(f"{_PLAIN}(?P<who>.*)", re.ASCII | re.DOTALL),)
_HEADING_12 = tuple(re.compile(f"{h}(?P<who>.*)", re.ASCII | re.DOTALL) for h in _HALVED)
_PLAIN_IN_HEAD = re.compile(f"^{_PLAIN}(?!{_HALF} )", re.ASCII | re.MULTILINE)
_HALVED_IN_HEAD = tuple(re.compile(f"^{h}", re.ASCII | re.MULTILINE) for h in _HALVED)
_LEVEL = re.compile(r"【(?:群主|管理员|潜水|冒泡|吐槽|活跃|话唠|传说)】(?=.*\S)", re.DOTALL)
_RULE = re.compile(r"={16,}")
_RULE_IN_HEAD = re.compile(r"^={16,}", re.MULTILINE)
_BLOCK = (_RULE, re.compile("消息分组[:：]"), _RULE, re.compile("消息对象[:：]"), _RULE)
_HELD = 64
"""Most lines that wait for what follows the start of a chat."""
_MORNING = frozenset({"am", "上午"})


class Heading(NamedTuple):
    """The first line of a message."""

    local: datetime
    """Naive: the wall clock of the computer that wrote the export."""
    user_id: str | None
    """QQ number or mail address; None where chats of two people have only a name."""
    name: str


class ChatStart(NamedTuple):
    """The five lines with which a chat begins."""

    folder: str
    """The list that its owner kept the chat in: 我的好友, 我的群聊 or one of their own."""
    name: str


def is_banner(line: str) -> bool:
    """Whether it is the line with which such a file begins."""
    return line.removeprefix("\ufeff").startswith(BANNER)


def rule_of(head: str) -> str:
    """The line that a file which begins so puts between the lines that say which chat it is."""
    found = _RULE_IN_HEAD.search(head)
    return found[0] if found else "=" * 64


def has_twelve_hours(head: str) -> bool:
    """Whether the export comes from a computer that writes `8:43:38 PM`.

    On such a computer every heading is so; elsewhere somebody may be called `PM 小王`.
    """
    halved = [match for form in _HALVED_IN_HEAD for match in form.finditer(head)]
    plain = sum(1 for _ in _PLAIN_IN_HEAD.finditer(head))
    return len(halved) > plain and all(1 <= int(match["hour"]) <= 12 for match in halved)


def heading(line: str, *, twelve_hours: bool) -> Heading | None:
    """Read a line as a heading, or return None when it is something else."""
    if len(line) > WHO_LIMIT + 40:
        return None
    for form in _HEADING_12 if twelve_hours else _HEADING_24:
        if match := form.match(line):
            local = _local(match, twelve_hours=twelve_hours)
            return None if local is None else Heading(local, *speaker(match["who"]))
    return None


def _local(match: re.Match[str], *, twelve_hours: bool) -> datetime | None:
    year, month, day, hour, minute, second = map(
        int, match.group("year", "month", "day", "hour", "minute", "second")
    )
    if twelve_hours:
        hour = hour % 12 + (0 if match["half"].lower() in _MORNING else 12)
    try:
        local = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001
    except ValueError:
        return None
    return local if 1999 <= year < 2100 else None


@lru_cache(maxsize=1024)
def speaker(who: str) -> tuple[str | None, str]:
    """The id and the name in `名字(QQ号)`, `名字<mail@x>` or a bare name."""
    user_id, name = None, who
    for opening, closing in ("()", "<>"):
        if who.endswith(closing):
            before, opened, inside = who[:-1].rpartition(opening)
            if opened and _is_id(inside):
                user_id, name = clean_text(inside), before
    if user_id is not None and (level := _LEVEL.match(name)):
        name = name[level.end() :]
    return user_id, clean_name(name) or user_id or ""


def _is_id(text: str) -> bool:
    """A QQ number or the mail address of an account that is known by one."""
    if text.isascii() and text.isdigit():
        return 5 <= len(text) <= 12
    return text.find("@") > 0 and not text.endswith("@") and text.split() == [text]


def with_chat_starts(
    lines: Iterable[tuple[int, str]], is_heading: Callable[[str], bool]
) -> Iterator[tuple[int, str] | tuple[int, ChatStart]]:
    """Put a ChatStart in place of each five lines that make one.

    They do where a blank line stands before and after them and a heading or the next chat
    follows, and the rules are as long as the file's first: else somebody quotes an export.
    """
    held: deque[tuple[int, str]] = deque()
    blank, rule = True, ""
    for item in lines:
        line = item[1]
        if not held and not (blank and line.startswith("=")):
            blank = not line or is_banner(line)
            yield item
            continue
        held.append(item)
        if len(held) > len(_BLOCK):
            if not line and len(held) < _HELD:
                continue
            if not rule or line == rule or is_heading(line) or is_banner(line):
                rule = held[0][1]
                yield _chat_start(held)
                held.clear()
                if line == rule:
                    held.append(item)
                else:
                    yield item
                blank = False
                continue
        while held and (len(held) > len(_BLOCK) or not _may_start(held, rule)):
            blank = not held[0][1]
            yield held.popleft()
    if len(held) >= len(_BLOCK):
        yield _chat_start(held)
    else:
        yield from held


def _chat_start(held: deque[tuple[int, str]]) -> tuple[int, ChatStart]:
    return held[0][0], ChatStart(held[1][1][5:].strip(), held[3][1][5:].strip())


def _may_start(held: deque[tuple[int, str]], rule: str) -> bool:
    """Whether these lines are the first ones of such five; `rule` is "" where none is known."""
    for (_, line), shape in zip(held, _BLOCK, strict=False):
        if shape is _RULE:
            if line != (rule or held[0][1]) or not _RULE.fullmatch(line):
                return False
        elif not shape.match(line):
            return False
    return True
