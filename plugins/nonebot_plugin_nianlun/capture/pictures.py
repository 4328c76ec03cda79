"""The pictures of a message: which of them may be looked at, and what was seen in them.

Stickers show their own summary and are not looked at; nor is a picture that is to be seen only
once (闪照), nor one inside a forward, which a member can make up with any address in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import re
from typing import Any, NamedTuple

from ..types import Segment
from .cleaning import one_line
from .picture_size import size_of

LARGEST = 4_000_000
"""Bytes of a picture that is looked at."""
MOST_PIXELS = 64_000_000
CAPTION_CHARS = 76
"""Longest caption. With it a mark in a text is still recognised as one by the offline writer."""

_BRACKETS = str.maketrans("[]", "〔〕")
_CAPTION = "caption"
_NAMED_BY_HASH = re.compile(r"\{?([0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?\.")
_URL_CHARS = 4_000


class Picture(NamedTuple):
    """A picture that nobody has looked at yet."""

    place: int
    """Which segment of the message it is."""
    url: str
    md5: str | None
    """Of its bytes, where its file's name tells it, as QQ's do."""


def pictures(segments: Sequence[Segment]) -> list[Picture]:
    """The pictures of a message that may be looked at and were not, in their order."""
    found: list[Picture] = []
    for place, segment in enumerate(segments):
        data = segment["data"]
        if segment["type"] == "image" and _may_be_seen(data) and (url := _url(data)):
            found.append(Picture(place, url, _md5(data)))
    return found


def with_captions(segments: Sequence[Segment], captions: Mapping[int, str]) -> list[Segment]:
    """A copy in which the segments at these places say what is to be seen in them."""
    return [
        {**segment, "data": {**segment["data"], _CAPTION: captions[place]}}
        if place in captions
        else segment
        for place, segment in enumerate(segments)
    ]


def caption_of(data: Mapping[str, Any]) -> str:
    """What was seen in a picture: one line that cannot end the mark it stands in, or ""."""
    return one_line(data.get(_CAPTION), CAPTION_CHARS).translate(_BRACKETS)


def still_type(content: bytes) -> str | None:
    """The media type of a picture by its own first bytes; None for what moves, is no picture, or
    has too many pixels."""
    width, height = size_of(content) or (0, 0)
    return _type(content) if 0 < width * height <= MOST_PIXELS else None


def _type(content: bytes) -> str | None:
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        head = content.partition(b"IDAT")[0]
        return None if b"acTL" in head else "image/png"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        moves = content[12:16] == b"VP8X" and len(content) > 20 and content[20] & 2
        return None if moves else "image/webp"
    return None


def _may_be_seen(data: Mapping[str, Any]) -> bool:
    if data.get(_CAPTION) is not None or data.get("type") == "flash":
        return False
    # Implementations spell it in both ways; anything but an ordinary picture is a sticker.
    kind = one_line(data.get("sub_type", data.get("subType")))
    if kind not in ("", "0") or data.get("emoji_id") or data.get("emoji_package_id"):
        return False
    size = one_line(data.get("file_size"))
    return not (size.isascii() and size.isdecimal()) or int(size) <= LARGEST


def _url(data: Mapping[str, Any]) -> str | None:
    for key in ("url", "file"):
        value = data.get(key)
        if isinstance(value, str) and value[:8].lower().startswith(("http://", "https://")):
            return value if len(value) <= _URL_CHARS else None
    return None


def _md5(data: Mapping[str, Any]) -> str | None:
    for key in ("file", "filename"):
        name = one_line(data.get(key)).lower()
        if found := _NAMED_BY_HASH.match(name):
            return found[1].replace("-", "")
    return None
