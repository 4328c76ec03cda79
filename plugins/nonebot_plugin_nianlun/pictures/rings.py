"""The growth rings of a chat: a ring a year, the oldest inside, January at the top.

A ring is as thick as its days were busy, and tinted by their moods. The year that is not over has
grown as far as today.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import asin, cos, pi, sin
from random import Random

from PIL import Image, ImageChops, ImageDraw, ImageEnhance, ImageFilter

from ..memory.moods import DayGrowth
from .digits import Point, draw_number, width_of, write_years
from .palette import BARK, FAINT, GROUND, INK, TODAY, png, wood
from .trunk import ANGLES, Ring, angle_of, grow, smooth

SIZE = 1080
_LARGEST = 468
_MIDDLE = 540, 516
_FINE, _COARSE = 2, 0.5
"""Pixels of a layer for one of the picture: edges are drawn fine, while colours may run."""
_X = [sin(2 * pi * k / ANGLES) for k in range(ANGLES)]
_Y = [-cos(2 * pi * k / ANGLES) for k in range(ANGLES)]
_GRAIN = 5.0
"""Width of the lines within a ring."""
_BARK = 9.0
_LABELS = 24.0, 16.0
"""Height of the digits on the wood, where rings are wide and where they are narrow."""
_TO_COME = range(90, 451, 90)
"""Radii of the rings that a young trunk has still before it."""
_MOOD, _UNMOVED = 1.7, 0.1
"""Moods that last are weak on the average: how much stronger they are shown, and which share of
days without any is taken as usual."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """The trunk as it lies in the picture."""

    rings: Sequence[Ring]
    x: float
    y: float

    def curve(self, radii: Sequence[float], scale: float, more: float = 0.0) -> list[Point]:
        """The closed line at these radii, `more` pixels farther out, in pixels of a layer."""
        reach = [(r * _LARGEST + more) * scale for r in radii]
        x, y = self.x * scale, self.y * scale
        return [(x + r * dx, y + r * dy) for r, dx, dy in zip(reach, _X, _Y, strict=True)]


def draw_rings(days: Mapping[date, DayGrowth], today: date) -> bytes:
    """A square PNG of `SIZE` pixels."""
    image = Image.new("RGB", (SIZE, SIZE), GROUND)
    rings = grow(days, today)
    if not rings:
        _draw_rings_to_come(image, 0)
        _bead(image, _MIDDLE)
        return png(image)
    trunk = _Slice(rings, *_middle(rings[-1].outer))
    _draw_rings_to_come(image, max(rings[-1].outer) * _LARGEST)
    image.paste(BARK, mask=_bark(trunk))
    grain = _grain(trunk)
    tint, shape = _tint(trunk), _shape(trunk, rings[-1].outer)
    image.paste(ImageChops.multiply(tint, Image.merge("RGB", [grain] * 3)), mask=shape)
    plain = Image.composite(ImageEnhance.Brightness(tint).enhance(0.9), image, shape)
    _label(image, plain, trunk)
    write_years(image, rings[0].year, rings[-1].year)
    _bead(image, trunk.curve(rings[-1].outer, 1)[angle_of(today)])
    return png(image)


def _middle(outer: Sequence[float]) -> tuple[float, float]:
    """Where the pith has to lie for the trunk to be in the middle of the picture."""
    xs = [r * dx for r, dx in zip(outer, _X, strict=True)]
    ys = [r * dy for r, dy in zip(outer, _Y, strict=True)]
    x, y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    return _MIDDLE[0] - x * _LARGEST, _MIDDLE[1] - y * _LARGEST


def _canvas() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("L", (SIZE * _FINE, SIZE * _FINE))
    return image, ImageDraw.Draw(image)


def _shape(trunk: _Slice, radii: Sequence[float]) -> Image.Image:
    mask, draw = _canvas()
    draw.polygon(trunk.curve(radii, _FINE), fill=255)
    return mask.reduce(_FINE)


def _bark(trunk: _Slice) -> Image.Image:
    dice = Random(trunk.rings[0].year)
    rough = smooth([dice.random() for _ in range(ANGLES)], 2)
    outer = trunk.rings[-1].outer
    return _shape(
        trunk, [r + (0.4 + 1.2 * x) * _BARK / _LARGEST for r, x in zip(outer, rough, strict=True)]
    )


def _grain(trunk: _Slice) -> Image.Image:
    """Light and dark: within a ring early wood is pale, late wood is dark and ends in a line."""
    layer, draw = _canvas()
    for ring in reversed(trunk.rings):
        dice = Random(ring.year)
        width = sum(ring.outer) / ANGLES - sum(ring.inner) / ANGLES
        lines = max(2, round(width * _LARGEST / _GRAIN))
        draw.polygon(trunk.curve(ring.outer, _FINE), fill=100)
        for line in range(lines, 0, -1):
            share = (line - dice.uniform(0, 0.5)) / lines if line < lines else 1.0
            radii = [a + (b - a) * share for a, b in zip(ring.inner, ring.outer, strict=True)]
            if line == lines:
                radii = [max(a, r - 2 / _LARGEST) for a, r in zip(ring.inner, radii, strict=True)]
            tone = 252 - 60 * share**1.7 + dice.uniform(-9, 3)
            draw.polygon(trunk.curve(radii, _FINE), fill=round(tone))
    _rays(draw, trunk)
    pith = trunk.rings[0].inner
    draw.polygon(trunk.curve(pith, _FINE), fill=110)
    draw.polygon(trunk.curve(pith, _FINE, -4), fill=150)
    return layer.reduce(_FINE)


def _rays(draw: ImageDraw.ImageDraw, trunk: _Slice) -> None:
    """Where a month begins, a ray as fine as those of real wood."""
    for ring in trunk.rings:
        inner, outer = trunk.curve(ring.inner, _FINE), trunk.curve(ring.outer, _FINE)
        for k in range(0, ANGLES, ANGLES // 12):
            draw.line((inner[k], outer[k]), fill=150, width=_FINE)


def _tint(trunk: _Slice) -> Image.Image:
    size = round(SIZE * _COARSE)
    layer = Image.new("RGB", (size, size), wood(1, 0))
    draw = ImageDraw.Draw(layer)
    pith = trunk.x * _COARSE, trunk.y * _COARSE
    step = 2
    for ring in reversed(trunk.rings):
        level = smooth(ring.level, 2)
        mood = _lasting(ring.mood)
        # The outermost reaches farther: no ground may bleed in when the colours run.
        curve = trunk.curve(ring.outer, _COARSE, 30 if ring is trunk.rings[-1] else 0)
        curve.append(curve[0])
        for k in range(0, ANGLES, step):
            # A silent day has no mood of its own.
            colour = wood(level[k], mood[k] * min(1.0, 3 * level[k]))
            draw.polygon((pith, *curve[k : k + step + 1]), fill=colour)
    layer = layer.filter(ImageFilter.GaussianBlur(2.5))
    return layer.resize((SIZE, SIZE), Image.Resampling.BICUBIC)


def _lasting(mood: Sequence[float]) -> list[float]:
    """The mood of the weeks around each angle, by the days that tell of one."""
    total, told = mood, [float(each != 0) for each in mood]
    for _ in range(2):
        total, told = smooth(total, 9), smooth(told, 9)
    return [_MOOD * one / (share + _UNMOVED) for one, share in zip(total, told, strict=True)]


def _label(image: Image.Image, plain: Image.Image, trunk: _Slice) -> None:
    """The years on their rings; as on the contours of a map, no line runs through a number."""
    height, years = _labelled(trunk.rings)
    for paint, bolder in ((plain, 8.0), (INK, 0.0)):
        labels, draw = _canvas()
        for year, (low, high) in years.items():
            text = f"{year:04}"
            x = (trunk.x - width_of(text, height) / 2) * _FINE
            y = (trunk.y - (low + high + height) / 2) * _FINE
            draw_number(draw, (x, y), text, height * _FINE, 255, bolder * _FINE)
        image.paste(paint, mask=labels.reduce(_FINE))


def _labelled(rings: Sequence[Ring]) -> tuple[float, dict[int, tuple[float, float]]]:
    """How high the labels are, and on which years they stand, with the room of each.

    Where most rings are too narrow each fifth year has one.
    """
    rooms = {ring.year: _room(ring) for ring in rings}
    for height in _LABELS:
        fitting = {year: room for year, room in rooms.items() if room[1] - room[0] > height + 6}
        if 2 * len(fitting) >= len(rings):
            return height, fitting
    return _LABELS[-1], {year: room for year, room in rooms.items() if year % 5 == 0}


def _room(ring: Ring) -> tuple[float, float]:
    """Between which heights above the pith a label can stand within the ring."""
    half = width_of("0000", _LABELS[0]) / 2 + 2
    reach = ring.outer[0] * _LARGEST
    side = int(asin(min(1.0, half / reach)) / (2 * pi) * ANGLES) + 1
    beside = range(-side, side + 1)
    high = min(-ring.outer[k] * _Y[k] for k in beside) * _LARGEST
    low = max(-ring.inner[k] * _Y[k] for k in beside) * _LARGEST
    return low, high


def _bead(image: Image.Image, at: Point) -> None:
    x, y = at
    for radius, colour in ((13, GROUND), (8.5, TODAY)):
        layer, draw = _canvas()
        box = (x - radius, y - radius, x + radius, y + radius)
        draw.ellipse([side * _FINE for side in box], fill=255)
        image.paste(colour, mask=layer.reduce(_FINE))


def _draw_rings_to_come(image: Image.Image, grown: float) -> None:
    layer, draw = _canvas()
    x, y = _MIDDLE
    for radius in _TO_COME:
        if radius > grown + 2 * _BARK:
            box = (x - radius, y - radius, x + radius, y + radius)
            draw.ellipse([side * _FINE for side in box], outline=255, width=2 * _FINE)
    image.paste(FAINT, mask=layer.reduce(_FINE))
