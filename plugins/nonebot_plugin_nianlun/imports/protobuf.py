"""The wire format of protocol buffers, of which a reader needs no schema.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator

Field = tuple[int, int | bytes]
"""Number and value: an integer for wire types 0, 1 and 5, bytes for wire type 2."""

_WIDTHS = {1: 8, 5: 4}


class BrokenMessage(ValueError):
    """The bytes are no message, or not all of one."""


def fields(data: bytes) -> Iterator[Field]:
    """The fields in their order. Raises BrokenMessage when the rest cannot be read."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        else:
            size = _WIDTHS.get(wire, len(data) + 1)
        if at + size > len(data):
            raise BrokenMessage
        part = data[at : at + size]
        at += size
        yield number, part if wire == 2 else int.from_bytes(part, "little")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise BrokenMessage
