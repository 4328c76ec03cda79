"""OneBot segments as plain data that JSON, a database and the rest of Nianlun can take.

Knows no adapter. Text for people and models is made from the same data by `readable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import math
from typing import Any

from ..types import Segment
from .cleaning import clean_text
from .readable import readable

__all__ = ["clean_text", "readable", "to_segments"]

VALUE_LIMIT = 4_096
"""Longest string kept in a segment, in characters; texts are kept whole."""
CARD_VALUE_LIMIT = 65_536
"""The same for the one string that is the content of a card or a markdown message."""
DEPTH_LIMIT = 32
"""Deepest nesting kept. One forward inside another takes six levels."""
NODE_LIMIT = 50_000
"""Most values kept of one message, counting every one inside lists and mappings."""

_CUT = "…"
_CARDS = frozenset({"json", "xml", "markdown", "miniapp"})


def to_segments(message: object) -> list[Segment]:
    """Turn a message into segments `{"type": str, "data": {...}}` of JSON-safe data.

    Takes an adapter's message or segment (anything with `.type` and `.data`), mappings of that
    shape, and lists of them; whatever else is in a list is dropped. A plain string is one text
    segment: who knows that a string holds CQ codes decodes it first. Huge strings and file
    contents are replaced by a short note of their size.
    """
    if type(message) is not list and not isinstance(message, list | tuple):
        message = [message]
    cleaner = _Cleaner()
    return [segment for item in message if (segment := cleaner.segment(item)) is not None]


class _Cleaner:
    """Copies one message into JSON-safe data, up to a fixed number of values."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = NODE_LIMIT

    def segment(self, item: object) -> Segment | None:
        """Return the item as a segment, or None when it is not one."""
        if isinstance(item, str):
            return {"type": "text", "data": {"text": clean_text(item)}}
        shape = _shape(item)
        if shape is None:
            return None
        kind, data = shape
        if kind == "reply":
            # What some add of the quoted text would stay here when that is taken back.
            data = {key: data[key] for key in ("id", "seq") if key in data}
        if kind == "text" and len(data) == 1 and isinstance(text := data.get("text"), str):
            return {"type": "text", "data": {"text": clean_text(text)}}
        return {"type": clean_text(kind), "data": self.mapping(data, 0, _limit(kind))}

    def mapping(self, data: Mapping[Any, Any], depth: int, limit: float) -> dict[str, Any]:
        clean = {}
        if "data" in data and isinstance(kind := data.get("type"), str):
            limit = _limit(kind)
        for key, value in data.items():
            if self.left <= 0:
                break
            clean[self.string(_str(key), VALUE_LIMIT)] = self.value(value, depth + 1, limit)
        return clean

    def value(self, value: object, depth: int, limit: float = VALUE_LIMIT) -> Any:
        self.left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.string(value, limit)
        if isinstance(value, int | float):
            return _number(value)
        if isinstance(value, bytes | bytearray):
            return f"base64://…({len(value)} bytes)"
        if depth >= DEPTH_LIMIT:
            return _CUT
        if isinstance(value, list | tuple):
            return self.items(value, depth)
        if isinstance(value, Mapping):
            return self.mapping(value, depth, limit)
        if (shape := _shape(value)) is not None:
            return self.mapping({"type": shape[0], "data": shape[1]}, depth, limit)
        return self.string(_str(value), limit)

    def items(self, values: Sequence[Any], depth: int) -> list[Any]:
        clean = []
        for value in values:
            if self.left <= 0:
                break
            clean.append(self.value(value, depth + 1))
        return clean

    def string(self, text: str, limit: float) -> str:
        if text.startswith("base64://") and not text.startswith("base64://…") and limit != math.inf:
            return f"base64://…({(len(text) - 9) * 3 // 4} bytes)"
        if len(text) > limit:
            return f"{clean_text(text[:32])}…({len(text)} chars)"
        return clean_text(text)


def _shape(item: object) -> tuple[str, Mapping[str, Any]] | None:
    """Return type and data of anything that looks like a segment."""
    if isinstance(item, Mapping):
        kind, data = item.get("type"), item.get("data")
    else:
        kind, data = getattr(item, "type", None), getattr(item, "data", None)
    if not isinstance(kind, str):
        return None
    if data is None:
        data = {}
    return (kind, data) if isinstance(data, Mapping) else None


def _limit(kind: str) -> float:
    if kind == "text":
        return math.inf
    return CARD_VALUE_LIMIT if kind in _CARDS else VALUE_LIMIT


def _number(value: float) -> float | str:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    # Beyond 64 bits neither database keeps it, and Python refuses to write thousands of digits.
    if -(1 << 63) <= value < 1 << 63:
        return value
    return str(value) if value.bit_length() < 1_024 else _CUT


def _str(value: object) -> str:
    try:
        return str(value)
    except Exception:  # a foreign object may raise anything when asked for its text
        return type(value).__name__
