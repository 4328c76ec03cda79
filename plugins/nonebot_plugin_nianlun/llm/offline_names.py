"""What people and places are called in a note that no model writes."""

from __future__ import annotations

import re

from ..errors import NoteRejected
from ..memory.notes import check_note
from ..memory.relative_days import has_relative_days
from ..memory.render import safe_name
from ..memory.units import cut_to_units
from ..types import Scene

_LONGEST = 8
_PUNCTUATION = re.compile(r"[\s，。：；！？,;!?“”‘’（）〔〕∶♯″′、*|~…—]+")
_TAIL = re.compile(r"（尾号(\w+)）$")
_NOT_ME = ("我", "我们", "自己", "me")
_PARTS_OF_DAY = "凌晨|清晨|早上|上午|中午|下午|傍晚|晚上|夜里|深夜"
# A name that would read as a part of the sentence around it.
_MISLEADING = re.compile(
    f"{_PARTS_OF_DAY}|^(?:大家|[咱你他她它]们?|人|有人|群里|那句|对方|一位群友|第二天)$"
    "|^(?:听|在|到了|等到|接着|后来|随后|过后)|(?:说|问|答|回|提到|觉得|提醒|告诉)$"
    "|^[一二三四五六七八九十]+[日月]$"
)
_GROUP = re.compile(r"^QQ群「(.*)」$", re.DOTALL)
_PRIVATE = re.compile(r"^与 (.*) 的私聊$", re.DOTALL)


def place_words(scene: Scene) -> str:
    """Where it happened, as it reads after 在: `摸鱼研究所群里`, `私聊里`."""
    if scene.chat.kind == "private":
        return "私聊里"
    found = _GROUP.match(scene.place)
    name = _plain(found[1] if found else scene.place)
    if not name or not is_allowed(f"在{name}里") or _is_misleading(name):
        return "群里"
    if scene.chat.kind == "group" and not name.endswith("群"):
        name += "群"
    return f"{name}里"


def short_place(scene: Scene) -> str:
    """The same without the name of a group."""
    return "私聊里" if scene.chat.kind == "private" else "群里"


def person(name: str, scene: Scene) -> str:
    """A name as the subject of a sentence, whatever it is made of; else what a stranger is."""
    stranger = "对方" if scene.chat.kind == "private" else "一位群友"
    tail = _TAIL.search(name)
    plain = _plain(name[: tail.start()] if tail else name)
    for shown in (plain, f"网名叫{plain}的人"):
        misleads = shown in _NOT_ME or (shown == plain and _is_misleading(plain))
        if plain and not misleads and is_allowed(f"{shown}、{stranger}说话。"):
            return f"尾号{tail[1]}的{shown}" if tail else shown
    return stranger


def peer(scene: Scene) -> str:
    """The other one of a private chat."""
    found = _PRIVATE.match(scene.place)
    return person(found[1] if found else "", scene)


def is_allowed(sentence: str) -> bool:
    """Whether the writing rules take a note that begins with this."""
    try:
        check_note("activity", sentence, ())
    except NoteRejected:
        return False
    return True


def _is_misleading(name: str) -> bool:
    return _MISLEADING.search(name) is not None or has_relative_days(name)


def _plain(name: str) -> str:
    """A name in one line without punctuation, so that it cannot pass for a part of the sentence."""
    plain = _PUNCTUATION.sub(" ", safe_name(name)).strip() if name else ""
    return cut_to_units(plain, _LONGEST)[:24].strip()
