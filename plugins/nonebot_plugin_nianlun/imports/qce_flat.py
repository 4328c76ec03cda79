"""Messages of qq-chat-exporter's versions 4 and 5, whose text has everything in it.

What is no text stands there as a mark, such as `[图片: a.jpg]`, and what the marks mean is told
beside it. A quotation comes first, with the quoted words, which are somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import json
import re
from typing import Any

from ..capture.segments import to_segments
from ..types import Segment
from .qce_elements import mapped

_MEDIA = {"image": "图片", "video": "视频", "file": "文件"}
_KEPT = frozenset({*_MEDIA, "audio"})
"""What a message has even where its text has no mark of it."""
_VOICE = re.compile(r"\[语音(?:[: ](?P<seconds>\d{1,5})秒)?\]", re.ASCII)
_MOST_ELEMENTS = 200
_NAME_LIMIT = 300

_Data = Mapping[str, Any]


def is_flat(content: _Data) -> bool:
    """Whether the first of several elements is the whole text.

    In the sixth version a text is what stands between the other elements.
    """
    elements, text = content.get("elements"), content.get("text")
    if not (isinstance(elements, list) and len(elements) > 1 and isinstance(text, str) and text):
        return False
    first = elements[0]
    if not isinstance(first, dict) or first.get("type") != "text":
        return False
    return _data(first).get("text") == text


def segments_of_v4(content: _Data) -> list[Segment]:
    """The content of a message of the fourth version.

    What it calls raw are OneBot's own segments, where it has them.
    """
    raw, reply = content.get("raw"), content.get("reply")
    try:
        segments = json.loads(raw) if isinstance(raw, str) else None
    except (ValueError, RecursionError):
        segments = None
    replies = [{"type": "reply", "data": reply}] if isinstance(reply, dict) else []
    if isinstance(segments, list) and segments and all(map(_is_segment, segments)):
        segments = [one for one in segments if one["type"] != "reply"]
        return to_segments([*mapped(replies), *segments])
    elements = [
        *({"type": r.get("type"), "data": _resource(r)} for r in _objects(content, "resources")),
        *({"type": "at", "data": one} for one in _objects(content, "mentions")),
        *({"type": _emoji(one), "data": one} for one in _objects(content, "emojis")),
        *replies,
    ]
    return flat_segments(content.get("text"), elements)


def flat_segments(text: object, elements: object) -> list[Segment]:
    """The text with segments in the places of the marks; media without a mark come last."""
    said = text if isinstance(text, str) else ""
    listed = [one for one in _list(elements) if isinstance(one, dict)]
    replies = [one for one in listed if one.get("type") == "reply"][:1]
    for reply in replies:
        said = without_quotation(said, _data(reply))
    others = [one for one in listed if one.get("type") not in ("text", "reply")]
    return to_segments([*mapped(replies), *_pieces(said, others[:_MOST_ELEMENTS])])


def without_quotation(text: str, reply: _Data) -> str:
    """What somebody said to a quotation."""
    name, quoted = reply.get("senderName", "undefined"), reply.get("content", "undefined")
    whole = f"[回复 {name}: {quoted}]"
    if text.startswith(whole):
        return text.removeprefix(whole).removeprefix("\n")
    if text.startswith("[回复 "):
        return text.partition("]\n")[2]
    return text


def _pieces(text: str, elements: Sequence[_Data]) -> Iterator[Segment]:
    """The text with each element in the place of its mark; media that have none come last."""
    placed, left = _placed(text, elements)
    at = 0
    for start in sorted(placed):
        end, segment = placed[start]
        if start < at:
            continue  # a name inside of another mark
        yield from _typed(text[at:start])
        yield segment
        at = end
    yield from _typed(text[at:])
    yield from left


def _placed(
    text: str, elements: Sequence[_Data]
) -> tuple[dict[int, tuple[int, Segment]], list[Segment]]:
    """Segments by where their marks begin, with where these end, and the media without one."""
    placed: dict[int, tuple[int, Segment]] = {}
    left: list[Segment] = []
    # A longer name comes first: `@小明` is not the `@小` of somebody else.
    for element in sorted(elements, key=lambda one: -len(_name(one))):
        segment = next(iter(mapped([element])), None)
        if segment is None:
            continue
        for mark in _marks(element):
            found = mark.search(text)
            while found and found.start() in placed:
                found = mark.search(text, found.end())
            if found:
                placed[found.start()] = found.end(), segment
                if seconds := found.groupdict().get("seconds"):
                    segment["data"]["duration"] = int(seconds)
                break
        else:
            if element.get("type") in _KEPT:
                left.append(segment)
    return placed, left


def _marks(element: _Data) -> list[re.Pattern[str]]:
    kind, name = element.get("type"), re.escape(_name(element))
    if kind == "audio":
        return [_VOICE]
    if kind in _MEDIA:
        label = _MEDIA[kind]
        return [re.compile(rf"\[{label}: ?{name}\]"), re.compile(rf"\[{label}\]")]
    if not name:
        return []
    return [re.compile(f"@{name}" if kind == "at" else rf"\[{name}\]")]


def _name(element: _Data) -> str:
    data = _data(element)
    name = data.get("filename") or data.get("name")
    return name.strip()[:_NAME_LIMIT] if isinstance(name, str) else ""


def _typed(text: str) -> list[Segment]:
    return [{"type": "text", "data": {"text": text}}] if text else []


def _resource(resource: _Data) -> _Data:
    return {"filename": resource.get("fileName"), "url": resource.get("originalUrl")}


def _objects(content: _Data, key: str) -> list[dict[str, Any]]:
    return [one for one in _list(content.get(key)) if isinstance(one, dict)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _data(element: _Data) -> _Data:
    data = element.get("data")
    return data if isinstance(data, dict) else {}


def _emoji(emoji: _Data) -> str:
    return "market_face" if emoji.get("type") == "market" else "face"


def _is_segment(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and isinstance(value.get("data"), dict)
    )
