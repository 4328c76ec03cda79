"""The colours of every picture, and how a picture becomes a small file."""

from __future__ import annotations

from io import BytesIO
from typing import TypeAlias

from PIL import Image

Colour: TypeAlias = tuple[int, int, int]

GROUND: Colour = (27, 23, 20)
"""Pictures bring their own ground: clients show transparent parts in whatever they like."""
FAINT: Colour = (54, 46, 40)
QUIET: Colour = (150, 134, 116)
TODAY: Colour = (255, 244, 222)
INK: Colour = (56, 34, 20)
BARK: Colour = (84, 58, 38)
SAPWOOD: Colour = (240, 214, 172)
HEARTWOOD: Colour = (200, 146, 92)
# Orange and blue stay apart for every kind of colour blindness.
MERRY: Colour = (214, 100, 44)
SAD: Colour = (92, 128, 156)
_COLOURS = 200
"""In one picture; more make the file larger and nothing more beautiful."""


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """The first colour with a share (0 to 1) of the other."""
    a, b, c = (round(x + (y - x) * share) for x, y in zip(one, other, strict=True))
    return a, b, c


def wood(level: float, mood: float) -> Colour:
    """Of what happened on a level from 0 to 1, in a mood from -1 (sad) to 1 (merry)."""
    plain = mix(SAPWOOD, HEARTWOOD, level)
    return mix(plain, MERRY if mood > 0 else SAD, 0.85 * min(1.0, abs(mood)))


def glow(level: float) -> Colour:
    """The same on the dark ground, where more is brighter."""
    ember = mix(BARK, HEARTWOOD, min(1.0, level / 0.6))
    return mix(ember, SAPWOOD, max(0.0, level - 0.6) / 0.4)


def png(image: Image.Image) -> bytes:
    """A file with a palette: a third of the size, and nothing that an eye would miss."""
    file = BytesIO()
    # Choosing them from all pixels would take as long as the drawing.
    few = image.resize((image.width // 3, image.height // 3), Image.Resampling.NEAREST)
    colours = few.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE)
    small = image.quantize(palette=colours, dither=Image.Dither.NONE)
    small.save(file, "PNG", compress_level=9)
    return file.getvalue()
