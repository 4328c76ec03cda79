"""How many tokens a text costs a model, estimated without a tokenizer.

A tokenizer merges what people often write, so:

* scripts that the vocabularies know well have a weight of their own, fitted to running text
  counted by GPT-4o's tokenizer (o200k_base);
* all else costs its length in UTF-8, which no byte-level tokenizer exceeds.

Budgets are bounds by the estimate; what a model counts differs from it. Measured, tokens for one
estimated token, the mean and the most of any block of 200 estimated tokens (of 8 lines in the
languages of translated program messages, which are shorter and full of names):

| text | o200k_base | DeepSeek V4 |
| --- | --- | --- |
| Chinese chat, three collections | 0.87 to 0.98, at most 1.09 | 0.65 to 0.82, 0.90 |
| English | 0.75 to 0.82, 0.86 | 0.8, 0.89 |
| German, French, Spanish, Russian, Japanese, Korean | 0.3 to 0.8, 0.9 | 0.35 to 0.95, 1.04 |
| 39 languages in other scripts | 0.3 to 0.85, 0.9 | 0.35 to 0.95, 0.96 |
| 66 other languages in Latin letters | 0.35 to 1.3, 1.4 | 0.45 to 1.45, 1.6 |

So a tenth of headroom is enough for chat in the large languages. A single short line can cost
1.75 times its estimate in Chinese and twice in Latin letters; text that nobody writes costs more
still: keys in base64 1.4, everyday Han or Hangul drawn at random 2.2, random letters in groups
of four 2.3 (DeepSeek 2.5), and 4 where each group is chosen so. The older cl100k_base of GPT-4
and GPT-3.5 makes 1.2 to 1.6 of Chinese: give it three fifths of the budget, or count with
`tokenizers.counter_for`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import accumulate
import re
from typing import Final

from .units import cut_before


def _two_byte(encoding: str, first_row: int, last_row: int) -> frozenset[str]:
    """The characters of some rows of a national standard."""
    rows = range(first_row, last_row + 1)
    return frozenset("".join(
        bytes((row, cell)).decode(encoding, "ignore") for row in rows for cell in range(0xA1, 0xFF)
    ))  # fmt: skip


# Weights are in hundredths of a token, so that sums are exact.
_EVERYDAY: Final = (
    (frozenset("，。！？、；：（）《》【】「」『』“”‘’…—～·￥"), 125),
    (_two_byte("gb2312", 0xB0, 0xD7), 70),  # level 1: the 3,755 most used Han characters
    (_two_byte("euc_kr", 0xB0, 0xC8), 100),  # the 2,350 Hangul syllables in use
)
_SCRIPTS: Final = (
    (range(0x0370, 0x0700), 105),  # Greek, Cyrillic, Armenian, Hebrew, Arabic
    (range(0x0900, 0x0E80), 125),  # the scripts of India, Thai
    (range(0x1000, 0x1100), 125),  # Myanmar, Georgian
    (range(0x1780, 0x1800), 125),  # Khmer
    (range(0x3041, 0x3100), 120),  # kana
    (range(0x4E00, 0xA000), 225),  # Han beyond the everyday
    (range(0x1F000, 0x1FB00), 300),  # emoji
)
_HAN_RUN: Final = 50
"""What a run of Han costs beside its characters: its ends have nothing to merge with."""
_DIGITS: Final = 129
_SPACES: Final = 100
_WORD: Final = 100
_LETTER_BEYOND_4: Final = 25
_LETTER_BEYOND_12: Final = 40
"""Beside the former: so long a "word" is a key, a hash or noise."""
_REFERENCE: Final = 400
"""More than a reference to key messages is long: it must be seen whole to be kept whole."""

_MOST_FOR_A_TOKEN: Final = 16
"""Characters; of blanks."""

_SHORT: Final = 8
_KEPT: Final = 16_384
_TEXTS_KEPT: Final = 2_048
_LONGEST_KEPT: Final = 1_000

_PIECE: Final = re.compile(
    r" ?(?:[A-Z]?[a-z]+|[A-Z]+)|[0-9]{1,3}| {1,16}|[\u4e00-\u9fff]+|.", re.DOTALL
)


def estimate_tokens(text: str) -> int:
    """Upper estimate of the tokens of `text`, rounded up; zero only for no text.

    Text added before or behind never lowers it, and a whole is never above the sum of its parts,
    unless one of them ends within a Latin word: what is too long for a word costs more by the
    letter, and in pieces it looks like words.
    """
    return _counted_before(text) if len(text) <= _LONGEST_KEPT else _count(text)


def _count(text: str) -> int:
    return _tokens(sum(map(_weight_of, _PIECE.findall(text))))


# What stands before one reply mostly stands before the next.
_counted_before = lru_cache(_TEXTS_KEPT)(_count)


def cut_to_tokens(text: str, budget: int) -> str:
    """The longest well-ended beginning of `text` estimated at no more than `budget` tokens."""
    length = fitting(text, budget)
    return text if length == len(text) else cut_before(text[: 2 * length + _REFERENCE], length)


def fitting(text: str, budget: int) -> int:
    """How long a beginning of `text` is estimated at no more than `budget` tokens."""
    # What is behind that does not fit: no piece weighs less than a run of blanks.
    pieces = _PIECE.findall(text[: _MOST_FOR_A_TOKEN * max(budget, 0) + _MOST_FOR_A_TOKEN])
    before = list(accumulate(map(_weight_of, pieces), initial=0))
    whole = max(0, bisect_right(before, 100 * budget) - 1)
    if whole == len(pieces):
        return len(text)
    fits = partial(_is_at_most, 100 * budget - before[whole], pieces[whole])
    return sum(map(len, pieces[:whole])) + longest_fit(len(pieces[whole]), fits)


def longest_fit(length: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `length` that `fits`, or 0; never asks beyond its double."""
    reach = 1
    while reach < length and fits(reach):
        reach *= 2
    return bisect_left(range(1, min(reach, length) + 1), True, key=lambda end: not fits(end))


def _is_at_most(weight: int, text: str, end: int) -> bool:
    return sum(map(_weight_of, _PIECE.findall(text[:end]))) <= weight


def _tokens(weight: int) -> int:
    return -(-weight // 100)


def _weigh(piece: str) -> int:
    last = piece[-1]
    if "a" <= last <= "z" or "A" <= last <= "Z":
        letters = len(piece.lstrip(" "))
        return (
            _WORD
            + _LETTER_BEYOND_4 * max(0, letters - 4)
            + _LETTER_BEYOND_12 * max(0, letters - 12)
        )
    if "0" <= last <= "9":
        return _DIGITS
    if last == " ":
        return _SPACES
    if "\u4e00" <= last <= "\u9fff":
        return _HAN_RUN + sum(map(_weight_of_char, piece))
    return _weight_of_char(last)


def _weigh_char(char: str) -> int:
    for characters, weight in _EVERYDAY:
        if char in characters:
            return weight
    for script, weight in _SCRIPTS:
        if ord(char) in script:
            return weight
    return 100 * len(char.encode("utf-8", "surrogatepass"))


class _Weights(dict[str, int]):
    """What has been weighed before, as far as it is short; bounded."""

    def __init__(self, weigh: Callable[[str], int]) -> None:
        self._weigh = weigh

    def __missing__(self, text: str) -> int:
        weight = self._weigh(text)
        if len(text) <= _SHORT and len(self) < _KEPT:
            self[text] = weight
        return weight


# As C functions: they are called for every piece of every prompt.
_weight_of = _Weights(_weigh).__getitem__
_weight_of_char = _Weights(_weigh_char).__getitem__
