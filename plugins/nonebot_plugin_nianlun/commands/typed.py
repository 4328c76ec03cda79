"""A command as it was typed, taken apart without losing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import itertools
import re

from nonebot.adapters.onebot.v11 import Message, MessageSegment

from ..capture.cleaning import clean_name, clean_text
from ..capture.readable import readable
from ..memory.periods import MOST_WORDS, date_before_text
from ..types import ChatKind
from .gate import SEPARATORS, command_body

_WORD = re.compile(rf"[^{SEPARATORS}]+")
_CHINESE_PAIRS = r"""[“”]([^“”"\\]*)[“”]|[‘’]([^‘’"\\]*)[‘’]|「([^」"\\]*)」|『([^』"\\]*)』"""
CHINESE_QUOTED = re.compile(rf"(?<!\S)(?:{_CHINESE_PAIRS})(?!\S)")
"""As Chinese input methods type quotation marks; the parser knows the others alone."""
_QUOTED = re.compile(rf"""(?<!\S)(?:{_CHINESE_PAIRS}|"([^"\\]*)"|'([^'\\]*)')(?!\S)""")
_LAST_QUOTED = re.compile(rf"(.*\s)({_QUOTED.pattern})", re.DOTALL)
_ABOUT: dict[str, ChatKind] = {"-g": "group", "-u": "private"}


@dataclass(frozen=True, slots=True)
class Typed:
    """What stands behind `/记忆`."""

    words: tuple[str, ...] = ()
    """The verb, and its arguments as far as they are words."""
    rest: str = ""
    """Of a verb that ends in free text: that text, as typed."""
    about: tuple[tuple[ChatKind, str], ...] = ()
    """The chats that `-g` and `-u` name: (`group` or `private`, what was typed)."""

    @property
    def verb(self) -> str:
        return self.words[0] if self.words else ""


def typed_text(message: Message, self_id: str) -> str:
    """A command as text: an @ as `@20002`, a picture and the like as `[图片]`; without an @ of
    the bot around it."""
    return "".join(map(_text_of, command_body(message, self_id)))


def mention_behind(message: Message, self_id: str) -> str:
    """The @ of the bot that ends a message as it was sent, as it is typed; empty without one."""
    words = [segment for segment in message if _text_of(segment).strip(SEPARATORS)]
    behind = words and words[-1].type == "at" and str(words[-1].data.get("qq")) == self_id
    return _text_of(words[-1]) if behind else ""


def says_something(text: str) -> bool:
    """Whether anything of it can be seen."""
    return clean_name(text) != ""


def _first_word(text: str) -> tuple[str, int]:
    """The word, or the date of several, that `text` begins with, and how long it is there."""
    if quoted := _QUOTED.match(text):
        return quoted[0], quoted.end()
    line = re.split("[\r\n]", text, maxsplit=1)[0]  # a date ends with its line
    words = list(itertools.islice(_WORD.finditer(line), MOST_WORDS))
    date = date_before_text([word[0] for word in words])
    if date is None:
        return words[0][0], words[0].end()
    return f'"{date[1]}"', words[date[0] - 1].end()


def unquoted(text: str) -> str:
    """A word without the quotation marks around it."""
    quoted = _QUOTED.fullmatch(text)
    return quoted[quoted.lastindex or 0] if quoted else text


def as_typed(word: str, text: str) -> str:
    """A word with the quotation marks in which it stands in `text`."""
    return next((one[0] for one in _QUOTED.finditer(text) if unquoted(one[0]) == word), word)


def last_word(text: str) -> tuple[str, str]:
    """What stands before the last word, and that word, which may be quoted for its blanks."""
    if quoted := _LAST_QUOTED.fullmatch(text):
        return quoted[1].strip(), quoted[2]
    front, _, last = text.rpartition(" ")
    return front.strip(), last


def _text_of(segment: MessageSegment) -> str:
    if segment.type == "text":
        return clean_text(str(segment.data.get("text", "")))
    if segment.type == "at":
        return f" @{clean_text(str(segment.data.get('qq', '')))} "
    return readable([{"type": segment.type, "data": segment.data}], lambda _: None)


def take_apart(text: str, words_before_rest: Mapping[str, int]) -> Typed:
    """Take apart what stands behind `/记忆`. `words_before_rest`: the verbs that end in free text,
    and how many words stand between them and it.

    `-g` and `-u` may stand anywhere, but of a free text only behind its end. What cannot be seen
    is no word, and no free text. Before a free text a word may be quoted, or be a date with blanks
    in it (see `date_before_text`); this arrives quoted.
    """
    words = list(_WORD.finditer(text))
    about: list[tuple[ChatKind, str]] = []
    while len(words) > 1 and words[-2][0] in _ABOUT:
        about.insert(0, (_ABOUT[words[-2][0]], words[-1][0]))
        del words[-2:]
    end = words[-1].end() if words else 0
    kept: list[str] = []
    named = None
    taken = 0
    for word in words:
        if word.start() < taken:
            continue
        if named is not None:
            about.append((named, word[0]))
            named = None
        elif word[0] in _ABOUT and word is not words[-1]:
            named = _ABOUT[word[0]]
        elif kept and len(kept) - 1 == words_before_rest.get(kept[0]):
            rest = text[word.start() : end]
            return Typed(tuple(kept), rest if says_something(rest) else "", tuple(about))
        elif says_something(word[0]):
            first = word[0]
            if kept and kept[0] in words_before_rest:
                first, length = _first_word(text[word.start() : end])
                taken = word.start() + length
            kept.append(first)
    return Typed(tuple(kept), "", tuple(about))
