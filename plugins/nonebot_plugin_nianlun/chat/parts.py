"""Cutting a long answer into several messages, and how long a person would take to type each."""

from __future__ import annotations

from collections.abc import Sequence
import re
import unicodedata

LONGEST_PART = 2000
"""No message is longer than so many characters, whatever must be cut for it."""
MOST_PARTS = 6
"""A text that makes more messages than this is cut into longer ones."""
LONGEST_WAIT = 12.0
"""Seconds that all pauses of one answer take together at most."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 4.0

_WHOLE = re.compile(
    r"(?:```.*?(?:```|\Z)"  # a block of code
    r"|`[^`\n]{1,200}`"
    r"|\[[^\[\]\n]{1,100}\]\([^\s()]{1,500}\)"  # a link of Markdown
    r"|(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'，。！？；、（）「」『』《》【】\u3400-\u9fff]+)"
    r"[，。！？；：、…”’」』）》】]*",
    re.DOTALL | re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?:[。！？!?…；;]|(?<=[^\W\d_])\.(?=\s))[。！？!?…]*[”’」』）)】\"']*")
_CLAUSE_END = re.compile(r"[，、,：:]+(?!\d)[”’」』）)】]*")
_SPACE = re.compile(r"\s+")
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]+")
"""A flag is two letters of an alphabet of its own."""
_IN_WORDS = frozenset("._-@/'&+%:")
_NOT_FIRST = frozenset("，。！？；：、…”’」』）》】,.!?;:)]}")

_NEVER, _ANYWHERE, _BETWEEN_WORDS, _CLAUSE, _SENTENCE, _LINE = range(6)
"""How good a place for a cut is; the worst may be used only where a part gets too long."""


def reply_parts(text: str, limit: int) -> list[str]:
    """Cut `text` into messages of at most `limit` characters; only white space is lost.

    Cuts are at the end of a line or sentence if one ends in the last two thirds of a message,
    else of a clause or word. Code, links and composed characters stay whole, so they may make
    a message longer than `limit`, but not than `LONGEST_PART`.
    """
    text = text.strip()
    ranks = _ranks(text)
    limit = min(limit, LONGEST_PART)
    while len(parts := _cut(text, ranks, limit)) > MOST_PARTS and limit < LONGEST_PART:
        limit = min(limit + limit // 4 + 1, LONGEST_PART)
    return parts


def pauses(parts: Sequence[str], speed: int) -> list[float]:
    """Seconds to wait before each part, for somebody who types `speed` characters a second;
    nothing before the first, and nothing at all for a speed of 0."""
    if not speed:
        return [0.0] * len(parts)
    typed = [min(max(len(part) / speed, _SHORTEST_PAUSE), _LONGEST_PAUSE) for part in parts[1:]]
    shrink = min(1.0, LONGEST_WAIT / (sum(typed) or 1.0))
    return [0.0] * bool(parts) + [seconds * shrink for seconds in typed]


def _cut(text: str, ranks: Sequence[int], limit: int) -> list[str]:
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = len(text) if len(text) - start <= limit else _end(text, ranks, start, limit)
        if part := text[start:end].rstrip():
            parts.append(part)
        start = end
    return parts


def _end(text: str, ranks: Sequence[int], start: int, limit: int) -> int:
    """Where the part that begins at `start` ends."""
    last = start + limit
    while last < len(text) and text[last].isspace() and last < start + LONGEST_PART:
        last += 1  # what is lost at the end of a part does not count
    for wanted in (_LINE, _SENTENCE, _CLAUSE, _BETWEEN_WORDS, _ANYWHERE):
        first = start + (limit // 3 if wanted >= _CLAUSE else 0)
        for end in range(min(last, len(text) - 1), first, -1):
            if ranks[end] >= wanted:
                return end
    hard = min(start + LONGEST_PART, len(text))
    after = (end for end in range(last + 1, hard) if ranks[end] > _NEVER)
    return next(after, hard if hard == len(text) else _hard_end(text, start, hard))


def _hard_end(text: str, start: int, hard: int) -> int:
    """Inside something that is longer than any message: the last line's end, if there is one."""
    line = text.rfind("\n", start + 1, hard) + 1
    return line if line > start + 1 else hard - _splits_pair(text, hard)


def _ranks(text: str) -> list[int]:
    """For each index how good a place for a cut before it is."""
    ranks = [_plain_rank(text, index) for index in range(len(text))]
    for pattern, rank in ((_CLAUSE_END, _CLAUSE), (_SENTENCE_END, _SENTENCE)):
        for found in pattern.finditer(text):
            end = found.end()
            if end < len(text) and ranks[end] > _NEVER:
                ranks[end] = max(ranks[end], rank)
    for found in _SPACE.finditer(text):
        _rank_space(text, ranks, found.start(), found.end())
    for found in _WHOLE.finditer(text):
        ranks[found.start() + 1 : found.end()] = [_NEVER] * (len(found[0]) - 1)
    for found in _FLAGS.finditer(text):
        for index in range(found.start() + 1, found.end(), 2):
            ranks[index] = _NEVER
    return ranks


def _rank_space(text: str, ranks: list[int], first: int, end: int) -> None:
    """A cut is behind white space; behind the last line break, so that lines stay indented."""
    before, after = ranks[first], ranks[end]
    ranks[first : end + 1] = [_NEVER] * (end + 1 - first)
    if line := text.rfind("\n", first, end) + 1:
        ranks[line] = _LINE
    elif after > _NEVER:
        ranks[end] = max(before, _BETWEEN_WORDS)


def _plain_rank(text: str, index: int) -> int:
    if index == 0 or _is_composed(text, index):
        return _NEVER
    before, after = text[index - 1], text[index]
    if after in _NOT_FIRST or (_is_word(before) and _is_word(after)):
        return _ANYWHERE
    return _BETWEEN_WORDS


def _is_word(character: str) -> bool:
    """Part of a word that is written with spaces around it."""
    return (character.isalnum() and ord(character) < 0x2E80) or character in _IN_WORDS


def _is_composed(text: str, index: int) -> bool:
    """Whether what a reader sees as one character reaches across this place."""
    before, after = text[index - 1], text[index]
    if before == "\u200d" or after == "\u200d" or (before, after) == ("\r", "\n"):
        return True
    if unicodedata.category(after) in ("Mn", "Me", "Mc") or _is_modifier(after):
        return True
    return _splits_pair(text, index)


def _is_modifier(character: str) -> bool:
    """A skin tone, a tag of a flag, or a vowel or final of a Korean syllable in letters."""
    code = ord(character)
    return 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F or 0x1160 <= code <= 0x11FF


def _splits_pair(text: str, index: int) -> bool:
    """Whether the halves of a character lie around this place, as broken JSON leaves them."""
    return (
        0 < index < len(text)
        and "\ud800" <= text[index - 1] <= "\udbff"
        and "\udc00" <= text[index] <= "\udfff"
    )
