"""How large a picture is, by its own head: a few bytes may promise more pixels than any server
that unpacks them has room for.

Written by hand: to tell as much, Pillow gives the bytes of strangers to decoders in C.
"""

from __future__ import annotations

from struct import unpack_from

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG's frame, which has its size (ITU T.81, table B.1)."""
_MOST_MARKERS = 5_000
"""Before the frame's; a profile of colours takes up to 255."""


def size_of(content: bytes) -> tuple[int, int] | None:
    """Width and height that a PNG, JPEG or WebP gives; None where it gives none."""
    if content[12:16] == b"IHDR" and len(content) >= 24:
        return unpack_from(">II", content, 16)
    if content.startswith(b"\xff\xd8"):
        return _of_jpeg(content)
    if content[8:12] == b"WEBP" and len(content) >= 30:
        return _of_webp(content)
    return None


def _of_jpeg(content: bytes) -> tuple[int, int] | None:
    place = 2
    for _ in range(_MOST_MARKERS):
        if place + 9 > len(content) or content[place] != 0xFF:
            break
        marker = content[place + 1]
        if marker == 0xFF:  # any number of these may stand before a marker
            place += 1
            continue
        if marker in _FRAMES:
            height, width = unpack_from(">HH", content, place + 5)
            return width, height
        place += 2 + unpack_from(">H", content, place + 2)[0]
    return None


def _of_webp(content: bytes) -> tuple[int, int] | None:
    kind = content[12:16]
    if kind == b"VP8X":
        width, height = content[24:27], content[27:30]
        return int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1
    if kind == b"VP8L" and content[20] == 0x2F:
        bits = unpack_from("<I", content, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and content[23:26] == b"\x9d\x01\x2a":
        width, height = unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
