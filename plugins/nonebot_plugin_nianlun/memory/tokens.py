"""How many tokens a text costs a model, estimated without a tokenizer.

The estimate is meant as an upper bound of what GPT-4o's tokenizer (o200k_base) makes of a text;
Qwen's and DeepSeek's make less of Chinese. A tokenizer merges what people often write, so:

* scripts that the vocabulary knows well have a weight of their own, fitted with a margin to
  running text counted by that tokenizer: Chinese chat comes to 0.87 of the estimate (at most
  0.99 in blocks of 8 lines), forty other languages, in translated program messages, to between
  0.3 and 0.9 on average;
* all else costs its length in UTF-8, which no byte-level tokenizer exceeds.

What it does not bound: a single short line can cost 1.1 times its estimate, a block of Finnish
1.03, keys in base64 1.2, and text that nobody writes (everyday Han or Hangul, or short Latin
"words", drawn at random) up to two and a half.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
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

_PIECE: Final = re.compile(
    r" ?(?:[A-Z]?[a-z]+|[A-Z]+)|[0-9]{1,3}| {1,16}|[\u4e00-\u9fff]+|.", re.DOTALL
)


def estimate_tokens(text: str) -> int:
    """Upper estimate of the tokens of `text`, rounded up; zero only for no text.

    Text added before or behind never lowers it, and a whole is never above the sum of its parts.
    """
    return -(-sum(map(_weigh, _PIECE.findall(text))) // 100)


def cut_to_tokens(text: str, budget: int) -> str:
    """The longest well-ended beginning of `text` estimated at no more than `budget` tokens."""
    if budget <= 0:
        return ""
    # The cheapest character is a sixteenth of a run of spaces: no longer head can fit.
    head = text[: 16 * budget + 1]
    if estimate_tokens(head) <= budget:
        return head
    return cut_before(head, _longest_fit(head, budget))


def _longest_fit(text: str, budget: int) -> int:
    lengths = range(1, len(text) + 1)
    return bisect_right(lengths, budget, key=lambda length: estimate_tokens(text[:length]))


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
        return _HAN_RUN + sum(map(_weigh_char, piece))
    return _weigh_char(last)


@lru_cache(maxsize=16_384)
def _weigh_char(char: str) -> int:
    for characters, weight in _EVERYDAY:
        if char in characters:
            return weight
    for script, weight in _SCRIPTS:
        if ord(char) in script:
            return weight
    return 100 * len(char.encode("utf-8", "surrogatepass"))
