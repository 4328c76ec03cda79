"""Segments as text that a person or a model can read: `[图片]`, `@名字`, `[语音 12"]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..types import Segment
from .cards import json_card, xml_card
from .cleaning import clean_name, clean_text, one_line, tag
from .faces import FACE_NAMES

NameOf: TypeAlias = Callable[[str], str | None]
"""Name of a speaker by QQ number, or None when it is not known."""

FORWARD_DEPTH = 3
FORWARD_LINES = 100
FORWARD_CHARS = 4_000
FORWARD_LINE_CHARS = 500
MARKDOWN_CHARS = 4_000
LONGEST_VOICE = 86_400
"""In seconds; a larger number is not a duration."""

_FORWARD = "[聊天记录]"
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
    if segments and _kind(segments[0]) == "node":
        return _forward({"content": segments}, name_of)
    return _join(segments, name_of, nested=False)


def _join(segments: Sequence[Any], name_of: NameOf, *, nested: bool) -> str:
    parts: list[str] = []
    after_at = False
    for segment in segments:
        kind = _kind(segment)
        part = _FORWARD if nested and kind in ("forward", "node") else _part(kind, segment, name_of)
        if part:
            if after_at and (part[0].isalnum() or part[0] == "@"):
                parts.append(" ")  # else the name would run on into what follows it
            parts.append(part)
            after_at = kind == "at"
    return "".join(parts)


def _kind(segment: object) -> str:
    if not isinstance(segment, Mapping):
        return ""
    kind = segment.get("type")
    return kind if isinstance(kind, str) else ""


def _data(segment: object) -> Mapping[str, Any]:
    data = segment.get("data") if isinstance(segment, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _part(kind: str, segment: object, name_of: NameOf) -> str:
    data = _data(segment)
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
    lines = [_FORWARD]
    room = FORWARD_CHARS
    for line in _forward_lines(data.get("content") or data.get("messages"), name_of, 1):
        room -= len(line) + 1
        if room < 0 or len(lines) > FORWARD_LINES:
            lines.append("  …")
            break
        lines.append(line)
    return "\n".join(lines)


def _forward_lines(nodes: object, name_of: NameOf, depth: int) -> Iterator[str]:
    """Yield `名字: 内容` of every node, and below it those of the forwards inside it."""
    for node in _as_list(nodes):
        name, content = _node(node)
        text = one_line(_join(content, name_of, nested=True), FORWARD_LINE_CHARS)
        yield f"{'  ' * depth}{name}: {text or '[消息]'}"
        if depth == FORWARD_DEPTH:
            continue
        for segment in content:
            if _kind(segment) == "forward":
                inner = _data(segment)
                yield from _forward_lines(
                    inner.get("content") or inner.get("messages"), name_of, depth + 1
                )


def _node(node: object) -> tuple[str, Sequence[Any]]:
    """Return speaker and content of a forward's entry: a node segment or a whole event."""
    if not isinstance(node, Mapping):
        return "?", _as_list(node)
    kind = _kind(node)
    body = _data(node) if kind == "node" else node
    if kind and kind != "node":
        return "?", [node]
    sender = body.get("sender")
    people = [sender, body] if isinstance(sender, Mapping) else [body]
    keys = ("card", "nickname", "name", "user_id", "uin")
    names = (clean_name(one_line(who.get(key), 40)) for who in people for key in keys)
    content = body.get("content") or body.get("message")
    return next(filter(None, names), "?"), _as_list(content)


def _as_list(value: object) -> Sequence[Any]:
    if isinstance(value, str):
        return [{"type": "text", "data": {"text": value}}]
    if isinstance(value, Mapping):
        return [value]
    return value if isinstance(value, list | tuple) else []


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
