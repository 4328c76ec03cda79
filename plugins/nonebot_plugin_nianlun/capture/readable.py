"""Segments as text that a person or a model can read: `[图片]`, `@名字`, `[语音 12"]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..types import Segment
from .cards import json_card, xml_card
from .cleaning import clean_name, clean_text, one_line, tag
from .faces import FACE_NAMES
from .forwards import FORWARD, data_of, forward_text, kind_of
from .pictures import caption_of

NameOf: TypeAlias = Callable[[str], str | None]
"""Name of a speaker by QQ number, or None when it is not known."""

MARKDOWN_CHARS = 4_000
LONGEST_VOICE = 86_400
"""In seconds; a larger number is not a duration."""

# What is always said of a kind, and where it may name itself.
_PLAIN: dict[str, tuple[str, tuple[str, ...]]] = {
    "video": ("视频", ()),
    "dice": ("骰子", ("result", "value")),
    "shake": ("窗口抖动", ()),
    "poke": ("戳一戳", ()),
    "share": ("分享", ("title", "content", "url")),
    "location": ("位置", ("title", "content")),
    "music": ("音乐", ("title", "content")),
    "longmsg": ("长消息", ()),
    "redbag": ("红包", ("title",)),
    "gift": ("礼物", ()),
    "tts": ("语音", ("text",)),
    "cardimage": ("图片", ()),
    "flashfile": ("闪传", ("title", "name", "fileName")),
    "flash_file": ("闪传", ("title", "name", "fileName")),
    "flashtransfer": ("闪传", ("title", "name", "fileName")),
    "onlinefile": ("文件", ("fileName", "name")),
    "online_file": ("文件", ("fileName", "name")),
    "weather": ("天气", ("title", "city")),
}
_SILENT = frozenset({"reply", "anonymous", "keyboard"})
# NapCat and others on the new client count down from the rock, go-cqhttp counts up from it.
_RPS = {
    "result": {"1": "布", "2": "剪刀", "3": "石头"},
    "value": {"0": "石头", "1": "剪刀", "2": "布"},
}


def readable(segments: Sequence[Segment], name_of: NameOf) -> str:
    """Write a message as text. What is typed stays as it is; all else is short and bounded."""
    if segments and kind_of(segments[0]) == "node":
        return _forward({"content": segments}, name_of)
    return _join(segments, name_of, nested=False)


def line_of_forward(content: Sequence[Any]) -> str:
    """Write what a line of a forward says; whom it mentions is not looked up here."""
    return _join(content, lambda _: None, nested=True)


def _join(segments: Sequence[Any], name_of: NameOf, *, nested: bool) -> str:
    parts: list[str] = []
    after_at = False
    for segment in segments:
        kind = kind_of(segment)
        part = FORWARD if nested and kind in ("forward", "node") else _part(kind, segment, name_of)
        if part:
            if after_at and (part[0].isalnum() or part[0] == "@"):
                parts.append(" ")  # else the name would run on into what follows it
            parts.append(part)
            after_at = kind == "at"
    return "".join(parts)


def _part(kind: str, segment: object, name_of: NameOf) -> str:
    data = data_of(segment)
    if kind == "text":
        text = data.get("text")
        return clean_text(text) if isinstance(text, str) else one_line(text)
    if kind in _SILENT or not kind:
        return ""
    if kind in _PLAIN:
        label, keys = _PLAIN[kind]
        return tag(label, _first(data, *keys))
    if kind in _WRITERS:
        return _WRITERS[kind](data, name_of)
    return tag(one_line(kind, 20) or "消息")


def _first(data: Mapping[str, Any], *keys: str) -> str:
    return next((text for key in keys if (text := one_line(data.get(key)))), "")


def _at(data: Mapping[str, Any], name_of: NameOf) -> str:
    number = _first(data, "qq", "user_id")
    if number == "all":
        return "@全体成员"
    name = clean_name(one_line(data.get("name")).lstrip("@"))
    return "@" + (name or one_line(name_of(number) if number else "某人") or number)


def _face(data: Mapping[str, Any], _: NameOf) -> str:
    raw = data.get("raw")
    said = one_line(raw.get("faceText"), 20).strip("/[]") if isinstance(raw, Mapping) else ""
    number = one_line(data.get("id"), 20)
    name = said or FACE_NAMES.get(number, number)
    return f"[表情:{name}]" if name else "[表情]"


def _sticker(data: Mapping[str, Any], _: NameOf) -> str:
    return _bracketed(_first(data, "summary", "text", "name"), "表情")


def _image(data: Mapping[str, Any], _: NameOf) -> str:
    if caption := caption_of(data):
        return f"[图片：{caption}]"
    default = "闪照" if data.get("type") == "flash" else "图片"
    return _bracketed(_first(data, "summary"), default)


def _bracketed(summary: str, default: str) -> str:
    return tag(summary.removeprefix("[").removesuffix("]").strip() or default)


def _record(data: Mapping[str, Any], _: NameOf) -> str:
    try:
        seconds = float(_first(data, "duration", "seconds"))
    except ValueError:
        return "[语音]"
    return f'[语音 {round(seconds)}"]' if 0 < seconds < LONGEST_VOICE else "[语音]"


def _file(data: Mapping[str, Any], _: NameOf) -> str:
    for key in ("name", "file_name", "file"):
        value = data.get(key)
        if isinstance(value, str) and value and not value.startswith("base64:"):
            return tag("文件", one_line(value.replace("\\", "/").rsplit("/", 1)[-1]))
    return "[文件]"


def _rps(data: Mapping[str, Any], _: NameOf) -> str:
    hands = (hand for key, names in _RPS.items() if (hand := names.get(one_line(data.get(key)))))
    return tag("猜拳", next(hands, ""))


def _contact(data: Mapping[str, Any], name_of: NameOf) -> str:
    number = one_line(data.get("id"))
    if data.get("type") == "group":
        return tag("推荐群", number)
    return tag("推荐好友", one_line(name_of(number)) or number)


def _markdown(data: Mapping[str, Any], _: NameOf) -> str:
    content = data.get("content")
    return clean_text(content[:MARKDOWN_CHARS]) if isinstance(content, str) else "[markdown]"


def _json(data: Mapping[str, Any], _: NameOf) -> str:
    return json_card(data.get("data"))


def _xml(data: Mapping[str, Any], _: NameOf) -> str:
    return xml_card(data.get("data"))


def _forward(data: Mapping[str, Any], name_of: NameOf) -> str:
    return forward_text(data, lambda content: _join(content, name_of, nested=True))


_WRITERS: dict[str, Callable[[Mapping[str, Any], NameOf], str]] = {
    "at": _at,
    "face": _face,
    "mface": _sticker,
    "marketface": _sticker,
    "bface": _sticker,
    "sface": _sticker,
    "image": _image,
    "record": _record,
    "file": _file,
    "rps": _rps,
    "contact": _contact,
    "markdown": _markdown,
    "json": _json,
    "miniapp": _json,
    "xml": _xml,
    "forward": _forward,
}
