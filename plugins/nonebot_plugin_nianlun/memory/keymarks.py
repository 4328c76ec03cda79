"""Key-message references in notes: `（关键消息：[1,3,5]）`.

Models write them in many hands, so every bracket, colon and separator may be ASCII or full
width, ids may carry `#`, the square brackets may be missing, and the `...` of the writing rules
may be copied as it stands, which cites nothing. One form is written back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import re

UNKNOWN_ID = 10**18
"""Stands for every id too long to be a `seq`: no chat has such a message."""

_SPACE = r"[ \t\u00a0\u3000]*+"
# Possessive throughout: on hostile text every attempt to match ends after one pass.
_MARK = re.compile(
    rf"[（(]{_SPACE}关键消息{_SPACE}[：:]{_SPACE}[\[［【]?+"
    r"(?P<ids>[0-9０-９ \t\u00a0\u3000,，、;；#＃.…]*+)"
    rf"[\]］】]?+{_SPACE}[）)]"
)
_ID = re.compile(r"[0-9０-９]+")


def key_mark(ids: Sequence[int]) -> str:
    """The canonical reference to `ids`; nothing at all for no ids."""
    return f"（关键消息：[{','.join(map(str, ids))}]）" if ids else ""


def key_mark_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every reference in `text`, in order."""
    return [match.span() for match in _MARK.finditer(text)]


def blank_key_marks(text: str) -> str:
    """`text` with every reference overwritten by blanks, so that indices stay what they are."""
    return _MARK.sub(lambda mark: " " * len(mark[0]), text)


def find_key_messages(text: str) -> tuple[int, ...]:
    """All ids cited in `text`, in order of first mention; absurdly long ones as `UNKNOWN_ID`."""
    marks = _MARK.finditer(text)
    return tuple(dict.fromkeys(number for mark in marks for number in _ids(mark)))


def strip_key_marks(text: str) -> str:
    """`text` without its references; the rest is untouched, in one pass.

    What two halves around a reference then make is text like any other.
    """
    return _MARK.sub("", text)


def show_key_marks(text: str) -> str:
    """`text` with its references as people write message numbers: `（#1 #3）`."""
    return _MARK.sub(lambda mark: _numbers(_ids(mark)), text)


def normalise_key_marks(text: str) -> str:
    """`text` with every reference in canonical form and empty ones gone; the rest is untouched."""
    return _MARK.sub(lambda mark: key_mark(_ids(mark)), text)


def renumber_key_marks(text: str, number_of: Callable[[int], int | None]) -> str:
    """`text` with every cited id as `number_of` has it, those left out that it does not have.

    A reference in which nothing changes stays as it is written.
    """

    def moved(mark: re.Match[str]) -> str:
        ids = _ids(mark)
        ours = [number for old in ids if (number := number_of(old)) is not None]
        return mark[0] if ours == ids else key_mark(ours)

    return _MARK.sub(moved, text)


def _numbers(ids: Sequence[int]) -> str:
    return f"（{' '.join(f'#{number}' for number in ids)}）" if ids else ""


def _ids(mark: re.Match[str]) -> list[int]:
    return [_number(digits) for digits in _ID.findall(mark["ids"])]


def _number(digits: str) -> int:
    # int() itself refuses more than 4,300 digits; leading zeros must not get a number there.
    significant = digits.lstrip("0０") or "0"
    return int(significant) if len(significant) <= 18 else UNKNOWN_ID
