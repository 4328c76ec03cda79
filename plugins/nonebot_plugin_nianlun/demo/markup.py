"""Script words as OneBot segments: `@name`, `[图片]`, `[表情:doge]`, `[语音 12"]`, `[文件: x]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
import re

from ..capture.faces import FACE_NAMES
from ..types import Segment
from .people import PEOPLE

_FACE_IDS = {name: number for number, name in FACE_NAMES.items()}
_MARK = re.compile(
    r"@(?P<at>NAMES) ?|\[(?P<image>图片|动画表情)\]|\[表情:(?P<face>[^\]]+)\]"
    r'|\[语音 (?P<seconds>\d+)"\]|\[文件: (?P<file>[^\]]+)\]'.replace("NAMES", "|".join(PEOPLE))
)
QUOTE = re.compile(r"<([^<>]+)> ?(.*)", re.DOTALL)
"""`<some of an earlier line> words`: a reply to it."""


def segments(words: str, card: Callable[[str], str], number: str, rng: Random) -> list[Segment]:
    """Cut words into segments; `card` names a member as of now, `number` is the bot's account."""
    return list(_cut(words.replace("\\n", "\n"), card, number, rng))


def _cut(words: str, card: Callable[[str], str], number: str, rng: Random) -> Iterator[Segment]:
    end = 0
    for mark in _MARK.finditer(words):
        if mark.start() > end:
            yield _text(words[end : mark.start()])
        kind = mark.lastgroup or ""
        yield _marked(kind, mark.group(kind), card, number, rng)
        end = mark.end()
    if end < len(words):
        yield _text(words[end:])


def _text(words: str) -> Segment:
    return {"type": "text", "data": {"text": words}}


def _marked(kind: str, value: str, card: Callable[[str], str], number: str, rng: Random) -> Segment:
    if kind == "at":
        user_id = PEOPLE[value].user_id
        qq = number if user_id == "me" else user_id
        return {"type": "at", "data": {"qq": qq, "name": card(value)}}
    if kind == "face":
        return {"type": "face", "data": {"id": _FACE_IDS[value]}}
    if kind == "seconds":
        return {"type": "record", "data": {"file": _file(rng, "amr"), "duration": value}}
    if kind == "file":
        return {"type": "file", "data": {"file": value}}
    summary = {} if value == "图片" else {"summary": f"[{value}]"}
    return {"type": "image", "data": {"file": _file(rng, "jpg"), **summary}}


def _file(rng: Random, suffix: str) -> str:
    return f"{rng.getrandbits(64):016X}.{suffix}"
