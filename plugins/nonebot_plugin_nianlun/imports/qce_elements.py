"""The elements of a qq-chat-exporter message as OneBot segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..capture.cleaning import one_line, tag
from ..capture.segments import to_segments
from ..types import Segment

FORWARD_DEPTH = 3
FORWARD_MESSAGES = 100
"""Deepest nesting and most messages of a merged forward that are kept, at each level."""

_Data = Mapping[str, Any]


def segments_of(elements: object) -> list[Segment]:
    """Map what is known and describe the rest; what is no element at all is left out."""
    return to_segments(mapped(elements))


def mapped(elements: object, depth: int = 0) -> list[Segment]:
    """The same, not cleaned yet; `depth` counts the forwards around them."""
    segments: list[Segment] = []
    for element in elements if isinstance(elements, list) else ():
        if not isinstance(element, dict):
            continue
        kind, data = element.get("type"), element.get("data")
        if not isinstance(kind, str) or not isinstance(data, dict):
            continue
        if kind == "text":
            segments.append({"type": "text", "data": {"text": _string(data.get("text"))}})
        elif kind == "forward":
            segments.append(_forward(data, depth))
        elif kind in _WRITERS:
            segments.append(_WRITERS[kind](data))
        elif kind not in _SILENT:
            segments.append(_described(data))
    return segments


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _segment(kind: str, **data: object) -> Segment:
    return {"type": kind, "data": {key: value for key, value in data.items() if value is not None}}


def _at(data: _Data) -> Segment:
    if data.get("uid") == "all" or data.get("atType") == 1:
        return _segment("at", qq="all")
    number = data.get("uin")
    if number in (None, "", "0", 0):
        number = data.get("uid")
    return _segment("at", qq=number, name=data.get("name"))


def _face(data: _Data) -> Segment:
    result = data.get("resultId")
    if result and data.get("id") in ("358", "359"):
        return _segment("dice" if data["id"] == "358" else "rps", result=result)
    return _segment("face", id=data.get("id"), raw={"faceText": data.get("name")})


def _sticker(data: _Data) -> Segment:
    key, package = data.get("key"), data.get("emojiPackageId")
    return _segment(
        "mface",
        summary=one_line(data.get("name")) or "表情",
        emoji_id=data.get("emojiId"),
        emoji_package_id=package,
        key=key,
        url=data.get("url"),
    )


def _image(data: _Data) -> Segment:
    sticker = data.get("subType") == "sticker"
    return _segment(
        "image",
        file=data.get("filename"),
        url=data.get("url"),
        file_size=data.get("size"),
        sub_type=1 if sticker else 0,
        summary="[动画表情]" if sticker else None,
    )


def _video(data: _Data) -> Segment:
    return _segment("video", file=data.get("filename"), duration=data.get("duration"))


def _audio(data: _Data) -> Segment:
    return _segment("record", file=data.get("filename"), duration=data.get("duration"))


def _file(data: _Data) -> Segment:
    return _segment("file", name=data.get("filename"), file_size=data.get("size"))


def _reply(data: _Data) -> Segment:
    return _segment("reply", id=data.get("referencedMessageId") or data.get("messageId"))


def _json(data: _Data) -> Segment:
    content = data.get("content")
    return _segment("json", data=content) if isinstance(content, str) else _described(data)


def _markdown(data: _Data) -> Segment:
    return _segment("markdown", content=_string(data.get("content")))


def _system(data: _Data) -> Segment:
    return _segment("text", text=_string(data.get("text")) or _string(data.get("summary")))


def _location(data: _Data) -> Segment:
    # The exporter keeps no place, only that there was one.
    return _segment("location")


def _wallet(data: _Data) -> Segment:
    return _segment("redbag", title=data.get("summary"))


def _described(data: _Data) -> Segment:
    said = (one_line(data.get(key)) for key in ("summary", "title", "text", "content"))
    return _segment("text", text=tag(next(filter(None, said), "消息")))


def _forward(data: _Data, depth: int) -> Segment:
    messages, preview = data.get("messages"), data.get("preview")
    nodes: Iterable[Segment] = ()
    if depth < FORWARD_DEPTH and isinstance(messages, list) and messages:
        nodes = (_node(m, depth) for m in messages[:FORWARD_MESSAGES] if isinstance(m, dict))
    elif isinstance(preview, list):
        nodes = (_previewed(line) for line in preview[:FORWARD_MESSAGES] if isinstance(line, str))
    return _segment("forward", id=data.get("resId"), content=list(nodes))


def _node(message: _Data, depth: int) -> Segment:
    sender, content = message.get("sender"), message.get("content")
    who: _Data = sender if isinstance(sender, dict) else {}
    said: _Data = content if isinstance(content, dict) else {}
    inside = mapped(said.get("elements"), depth + 1)
    return _segment(
        "node",
        user_id=who.get("uin") or who.get("uid"),
        nickname=who.get("groupCard") or who.get("name"),
        content=inside or _string(said.get("text")),
    )


def _previewed(line: str) -> Segment:
    """The card of a forward shows its first lines as `名字: 内容`."""
    name, _, said = line.partition(": ")
    return _segment("node", nickname=name, content=said)


_SILENT = frozenset({"inline_keyboard", "action_bar"})
_WRITERS: dict[str, Callable[[_Data], Segment]] = {
    "at": _at,
    "face": _face,
    "market_face": _sticker,
    "image": _image,
    "video": _video,
    "audio": _audio,
    "file": _file,
    "reply": _reply,
    "json": _json,
    "markdown": _markdown,
    "system": _system,
    "location": _location,
    "wallet": _wallet,
}
