"""A command as it was typed, taken apart without losing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import re

from nonebot.adapters.onebot.v11 import Message, MessageSegment

from ..capture.cleaning import clean_name, clean_text
from ..capture.readable import readable
from ..types import ChatKind
from .gate import SEPARATORS, command_body

_WORD = re.compile(rf"[^{SEPARATORS}]+")
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
    is no word, and no free text.
    """
    words = list(_WORD.finditer(text))
    about: list[tuple[ChatKind, str]] = []
    while len(words) > 1 and words[-2][0] in _ABOUT:
        about.insert(0, (_ABOUT[words[-2][0]], words[-1][0]))
        del words[-2:]
    end = words[-1].end() if words else 0
    kept: list[str] = []
    named = None
    for word in words:
        if named is not None:
            about.append((named, word[0]))
            named = None
        elif word[0] in _ABOUT and word is not words[-1]:
            named = _ABOUT[word[0]]
        elif kept and len(kept) - 1 == words_before_rest.get(kept[0]):
            rest = text[word.start() : end]
            return Typed(tuple(kept), rest if says_something(rest) else "", tuple(about))
        elif says_something(word[0]):
            kept.append(word[0])
    return Typed(tuple(kept), "", tuple(about))
