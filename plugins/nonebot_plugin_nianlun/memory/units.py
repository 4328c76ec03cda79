"""The unit: how the length of a note is counted, and where a text may be cut.

One Han or kana character, one word of another script, or one number is one unit; punctuation,
emoji and references to key messages are none. In doubt:

* kana include the half-width ones; each prolonged sound mark `ー` is a character of its own
  (ラーメン 4); a voiced mark written apart (ﾊﾞ) belongs to its kana;
* apostrophes inside a word do not split it, hyphens and underscores do; a digit ends a word
  (Python3 2) and a letter ends a number;
* `3.14` and `1,000` are one number, `2026-11-29` and `1,2,3` three;
* scripts without spaces between words (Thai, Khmer) count one unit a run of letters;
* combining marks, joiners and other invisible format characters never split anything.
"""

from __future__ import annotations

from collections.abc import Iterator
import re
from typing import Final
import unicodedata

from .keymarks import blank_key_marks, key_mark_spans

# Script=Han and Script=Hiragana/Katakana of the Unicode character database, by whole blocks
# where the rest of the block is unassigned, with the two prolonged sound marks.
_HAN_AND_KANA: Final = re.compile(
    "["
    "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00016fe3\U00016ff0-\U00016ff6\U00020000-\U0003ffff"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u32d0-\u32fe\u3300-\u3357\uff66-\uff9d\U0001aff0-\U0001b16f"
    "]"
)
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_ZERO_WIDTH_JOINER: Final = "\u200d"

# Classes of characters: C Han or kana, L letter, N digit, M joins what stands before it,
# K the enclosing keycap of an emoji, R regional indicator, ' . , themselves, - the rest.
_SPECIAL: Final = {
    "'": "'", "’": "'", "＇": "'",
    ".": ".", "．": ".", "٫": ".",
    ",": ",", "٬": ",",
    "\u20e3": "K",
    "\u200b": "-",  # zero width space: the one invisible character that does part words
    "\uff9e": "M", "\uff9f": "M",
}  # fmt: skip

_UNIT: Final = re.compile(
    r"C|L[LM]*+(?:'L[LM]*+)*+"
    # A digit under a keycap is an emoji, not a number.
    r"|N{1,3}(?:,NNN)++(?!N|M?K)(?:\.N++)?+|N+(?!M?K)(?:\.N+(?!M?K))?+"
)
_SENTENCE_END: Final = re.compile(r"(?:[。！？!?…；;]+|\.(?=\s))[”’」』）)】》〉\"']*|\n")
_OPENERS: Final = " \t\r\n\u3000（([［【「『《〈“‘{"


class _Classes(dict[int, str]):
    """Class of each code point, worked out when first met; a table for `str.translate`."""

    def __missing__(self, code: int) -> str:
        found = _classify(chr(code))
        if len(self) < 20_000:  # hostile text must not fill the memory with rare characters
            self[code] = found
        return found


def _classify(char: str) -> str:
    if char in _SPECIAL:
        return _SPECIAL[char]
    if _HAN_AND_KANA.match(char):
        return "C"
    if ord(char) in _SKIN_TONES:
        return "M"
    if 0x1F1E6 <= ord(char) <= 0x1F1FF:
        return "R"
    category = unicodedata.category(char)
    if category == "Cf":
        return "M"
    return {"L": "L", "N": "N", "M": "M"}.get(category[0], "-")


_CLASSES: Final = _Classes()


def count_units(text: str) -> int:
    """Length of `text` in units."""
    return len(_UNIT.findall(_classes(text)))


def cut_to_units(text: str, limit: int) -> str:
    """The longest well-ended beginning of `text` with at most `limit` units."""
    if limit <= 0:
        return ""
    starts = [unit.start() for unit in _UNIT.finditer(_classes(text))]
    return text if len(starts) <= limit else cut_before(text, starts[limit])


def cut_before(text: str, end: int) -> str:
    """The beginning of `text` up to the best place to cut at or before index `end`.

    A sentence end in the last half is preferred, then the edge of a word in the last half.
    References to key messages and combined characters are never cut in two; a word only is
    when it alone takes more than half of the room.
    """
    marks = dict(key_mark_spans(text))
    end = _before_mark(end, marks)
    classes = _classes(text)
    place = next(_sentence_ends(text, end, marks, classes), 0)
    if place and place >= end / 2:
        return text[:place].rstrip()
    return text[: _edge(text, classes, end)].rstrip(_OPENERS)


def shortened(text: str, most: int) -> str:
    """At most `most` characters of a text, with … behind the best place to cut where that is not
    all of it."""
    if len(text) <= most:
        return text
    return f"{cut_before(text[: 2 * most], most - 1)}…"


def whole_sentences(text: str, end: int) -> str:
    """The sentences of `text` that end at or before index `end`; empty where none does."""
    marks = dict(key_mark_spans(text))
    place = next(_sentence_ends(text, _before_mark(end, marks), marks, _classes(text)), 0)
    return text[:place].rstrip()


def _before_mark(end: int, marks: dict[int, int]) -> int:
    """`end`, or where the reference to key messages begins that it would cut in two."""
    return next((start for start, stop in marks.items() if start < end < stop), end)


def _sentence_ends(text: str, end: int, marks: dict[int, int], classes: str) -> Iterator[int]:
    """Where sentences end, from index `end` backwards."""
    for sentence in reversed(list(_SENTENCE_END.finditer(blank_key_marks(text), 0, end))):
        # A reference right behind a sentence belongs to it.
        place = min(marks.get(sentence.end(), sentence.end()), end)
        if not _joined(text, classes, place):
            yield place


def _edge(text: str, classes: str, end: int) -> int:
    """The last place at or before `end` between two words, or else between two characters."""
    for unit in _UNIT.finditer(classes):
        if unit.end() >= end:
            if end / 2 <= unit.start() < end < unit.end():
                return unit.start()
            break
    while _joined(text, classes, end):
        end -= 1
    return end


def _classes(text: str) -> str:
    """One class a character; references to key messages stand as blanks."""
    return blank_key_marks(text).translate(_CLASSES)


def _joined(text: str, classes: str, place: int) -> bool:
    """Whether the characters on both sides of `place` are shown as one."""
    if not 0 < place < len(text):
        return False
    if classes[place] in "MK":
        return True
    if text[place - 1] == _ZERO_WIDTH_JOINER:
        # It joins emoji, and the letters of one word; what begins another unit stays apart.
        before = classes[:place].rstrip("M")[-1:]
        return classes[place] not in "CLN" or before == classes[place] == "L"
    if classes[place - 1] == classes[place] == "R":
        before = classes[:place]
        return (len(before) - len(before.rstrip("R"))) % 2 == 1
    return _is_jamo(text[place - 1]) and _is_jamo(text[place])


def _is_jamo(char: str) -> bool:
    return "\u1100" <= char <= "\u11ff"
