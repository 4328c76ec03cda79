"""What a text export ends with when it was cut off: the beginning of a heading, not all of it.

A file that ends within somebody's words looks like a whole one whose last line break is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
import re

from .qq_headings import BANNER, is_banner

_FOLDER, _NAME = "消息分组", "消息对象"
_D = r"\d"
_DAY = ("2", "0", _D, _D, "(?P<sign>[-/.])", r"\d\d?", "(?P=sign)", r"\d\d?", " ")
_CLOCK = (r"\d\d?", ":", _D, _D, ":", _D, _D)
_HALF = ("[上下AaPp]", "[午Mm]")


def _beginning(*parts: str) -> re.Pattern[str]:
    """A pattern that matches the first of these, the first two, and so on up to all."""
    pattern = ""
    for part in reversed(parts):
        pattern = f"(?:{part}{pattern})?"
    return re.compile(pattern, re.ASCII)


Form = tuple[re.Pattern[str], ...]

HOURS_24: Form = (_beginning(*_DAY, *_CLOCK, " "),)
HOURS_12: Form = (
    _beginning(*_DAY, *_HALF, " ?", *_CLOCK, " "),
    _beginning(*_DAY, *_CLOCK, "[ \u00a0\u202f]", *_HALF, " "),
)
PADDED: Form = (
    _beginning(*_DAY[:4], "-", "[01]", _D, "-", "[0-3]", _D, " ", "[0-2]", _D, *_CLOCK[1:], " "),
)


def begins_time(line: str, form: Form) -> bool:
    """Whether it is the beginning of the time in a heading of this form, or that alone."""
    return line != "" and any(one.fullmatch(line) for one in form)


def ends_in_chat_start(lines: Sequence[str], rule: str) -> bool:
    """Whether these lines end where a chat, or the next of several files put into one, begins, and
    not all of that is there. The last is empty where nothing of it was written yet.

    `rule` is what the file puts between the lines that say which chat it is.
    """
    *before, last = lines
    block = (rule, _FOLDER, rule, _NAME, rule)
    for count in range(min(len(block), len(before) + 1)):
        above, whole = before[: len(before) - count], before[len(before) - count :]
        if above and above[-1] and not is_banner(above[-1]):
            continue
        if all(map(_is_whole, whole, block)) and _is_part(last, block, count):
            return True
    return False


def _is_whole(line: str, begins: str) -> bool:
    return line.startswith(begins) if begins in (_FOLDER, _NAME) else line == begins


def _is_part(line: str, block: Sequence[str], count: int) -> bool:
    if count == 0:
        return line != "" and (block[0].startswith(line) or _is_begun_banner(line))
    if count == len(block) - 1 and line == block[-1]:
        return False
    return block[count].startswith(line) or _is_whole(line, block[count])


def _is_begun_banner(line: str) -> bool:
    """Also of its first word alone, but not of a part of that, which anybody may say."""
    return line.startswith(BANNER[:4]) and (BANNER.startswith(line) or is_banner(line))
