"""Text for a terminal: wrapped by how wide it shows, coloured line by line, safe to print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
import re
from typing import Literal, TypeAlias
import unicodedata

from ..memory.render import one_line

Tone: TypeAlias = Literal["plain", "title", "dim", "memory", "said"]

WIDEST = 96
NARROWEST = 60
_CODES: dict[Tone, str] = {
    "plain": "",
    "title": "1;33",
    "dim": "2",
    "memory": "36",
    "said": "32",
}
# A run of letters and digits is never broken; every other character may stand alone.
_PIECE = re.compile(r"\s+|[!-~]+|.", re.DOTALL)
_NOT_FIRST = frozenset("。，、；：！？」』）】》〉”’…—～·!?,.;:)]}%")
_NOT_LAST = frozenset("「『（【《〈“‘([{#")
_JOINER = "\u200d"


def shown(text: str) -> str:
    """`text` on one line, without anything that could command the terminal or turn its order.

    Texts are what people typed: escape sequences, overrides of direction and the like.
    """
    return "".join(
        char
        for char in one_line(text)
        if char == _JOINER or unicodedata.category(char) not in ("Cf", "Co", "Cn")
    )


def width(text: str) -> int:
    """Columns of a terminal that `text` takes: two for Han, kana, full-width signs and emoji.

    What is wide in some terminals only counts as wide, so that no line is ever too long.
    """
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WFA" else 1


def wrap(text: str, columns: int) -> list[str]:
    """`text` as lines of at most `columns`; a word that is longer than a line is broken.

    No line begins with a sign that closes, or ends with one that opens, where that can be.
    """
    lines: list[str] = []
    line: list[str] = []
    left = columns
    for piece in _pieces(text, columns):
        size = width(piece)
        if size > left:
            if piece.isspace():
                continue
            kept = _carried(line, piece)
            lines.append("".join(line[: len(line) - kept]).rstrip())
            line = line[len(line) - kept :]
            left = columns - sum(map(width, line))
        if piece.isspace() and not line:
            continue
        line.append(piece)
        left -= size
    if line:
        lines.append("".join(line).rstrip())
    return lines


def _pieces(text: str, columns: int) -> Iterator[str]:
    for piece in _PIECE.findall(text):
        if width(piece) <= columns:
            yield piece
        else:
            yield from piece


def _carried(line: list[str], piece: str) -> int:
    """How many of the last pieces of a full line go to the next one, before `piece`."""
    kept = 0
    following = piece
    while kept < min(4, len(line) - 1):
        if following[0] not in _NOT_FIRST and line[-1 - kept][-1] not in _NOT_LAST:
            return kept
        following = line[-1 - kept]
        kept += 1
    return 0 if kept == len(line) - 1 else kept


@dataclass(frozen=True, slots=True)
class Teller:
    """Writes the parts of a story, line by line."""

    write: Callable[[str], object]
    columns: int
    coloured: bool

    def line(
        self, text: str = "", tone: Tone = "plain", *, indent: int = 0, lead: str = ""
    ) -> None:
        """A paragraph; `lead` stands before its first line, the others are indented as deep.

        A lead that takes more than half of the line gets lines of its own.
        """
        blank = " " * (len(lead) - len(lead.rstrip(" ")))
        front = shown(lead) + blank
        if width(front) > (self.columns - indent) // 2:
            self.line(front, "dim", indent=indent)
            front = "  "
        body = wrap(shown(text), self.columns - indent - width(front)) or [""]
        for number, part in enumerate(body):
            edge = " " * indent + (front if number == 0 else " " * width(front))
            edge = self._toned(edge if part else edge.rstrip(), "dim")
            self.write(f"{edge}{self._toned(part, tone)}\n")

    def heading(self, number: int, title: str) -> None:
        self.write("\n")
        self.line(f"{number}. {title}", "title")
        self.write("\n")

    def _toned(self, text: str, tone: Tone) -> str:
        code = _CODES[tone]
        if not self.coloured or not code or not text.strip():
            return text
        return f"\x1b[{code}m{text}\x1b[0m"
