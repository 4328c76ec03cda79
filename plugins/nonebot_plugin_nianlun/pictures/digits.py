"""The ten digits as strokes, so that no font is needed and they look alike everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, radians, sin
from typing import TypeAlias

from PIL import Image, ImageDraw

from .palette import QUIET

Point: TypeAlias = tuple[float, float]
Stroke: TypeAlias = Sequence[Point]
Ink: TypeAlias = int | tuple[int, int, int]

WIDTH, GAP = 0.56, 0.2
"""Width of a digit and of the space behind it, in its height."""


def _arc(x: float, y: float, rx: float, ry: float, start: float, end: float) -> list[Point]:
    """Points of an ellipse from one angle to another, in degrees clockwise from the right."""
    steps = max(2, int(abs(end - start) // 10))
    angles = [radians(start + (end - start) * step / steps) for step in range(steps + 1)]
    return [(x + rx * cos(a), y + ry * sin(a)) for a in angles]


# In a box of WIDTH × 1, y downwards.
_STROKES: dict[str, tuple[Stroke, ...]] = {
    "0": (_arc(0.28, 0.5, 0.28, 0.5, 0, 360),),
    "1": ([(0.1, 0.2), (0.34, 0.0), (0.34, 1.0)],),
    "2": ([*_arc(0.28, 0.28, 0.27, 0.28, 185, 390), (0.0, 1.0), (0.56, 1.0)],),
    "3": (
        [*_arc(0.27, 0.25, 0.25, 0.25, 200, 450), (0.2, 0.5)],
        [(0.27, 0.5), *_arc(0.27, 0.75, 0.28, 0.25, 270, 520)],
    ),
    "4": ([(0.42, 1.0), (0.42, 0.0), (0.0, 0.7), (0.56, 0.7)],),
    "5": ([(0.5, 0.0), (0.09, 0.0), (0.05, 0.45), *_arc(0.26, 0.68, 0.29, 0.32, 228, 515)],),
    "6": (
        _arc(0.28, 0.69, 0.28, 0.31, 0, 360),
        [(0.45, 0.0), *_arc(0.4, 0.66, 0.4, 0.6, 230, 180)],
    ),
    "7": ([(0.0, 0.0), (0.56, 0.0), (0.2, 1.0)],),
    "8": (_arc(0.28, 0.25, 0.23, 0.25, 0, 360), _arc(0.28, 0.75, 0.28, 0.25, 0, 360)),
    "9": (
        _arc(0.28, 0.31, 0.28, 0.31, 0, 360),
        [(0.11, 1.0), *_arc(0.16, 0.34, 0.4, 0.6, 50, 0)],
    ),
}


def width_of(text: str, height: float) -> float:
    """How wide a number is when its digits are so high."""
    return height * (len(text) * (WIDTH + GAP) - GAP)


def draw_number(
    draw: ImageDraw.ImageDraw,
    at: Point,
    text: str,
    height: float,
    ink: Ink,
    bolder: float = 0.0,
) -> None:
    """Draw a number, its left upper corner at a point, with strokes so much wider than usual; all
    in pixels of the image."""
    pen = max(1.0, height * 0.13) + bolder
    x, y = at
    for digit in text:
        for stroke in _STROKES[digit]:
            points = [(x + px * height, y + py * height) for px, py in stroke]
            _draw_stroke(draw, points, pen, ink)
        x += height * (WIDTH + GAP)


def _draw_stroke(draw: ImageDraw.ImageDraw, points: Sequence[Point], pen: float, ink: Ink) -> None:
    draw.line(points, fill=ink, width=round(pen), joint="curve")
    half = pen / 2
    for x, y in (points[0], points[-1]):
        draw.ellipse((x - half, y - half, x + half, y + half), fill=ink)


def write_years(image: Image.Image, first: int, last: int) -> None:
    """A year, or from which to which, at the foot of a picture."""
    fine, height, dash = 2, 44.0, 52.0
    years = [f"{year:04}" for year in sorted({first, last})]
    width = width_of(years[0], height)
    layer = Image.new("L", (image.width * fine, 100))
    draw = ImageDraw.Draw(layer)
    x = (layer.width - len(years) * width - (len(years) - 1) * 2 * dash) / 2
    for year in years:
        draw_number(draw, (x, 4), year, height, 255)
        x += width + 2 * dash
    if len(years) > 1:
        middle = layer.width / 2
        draw.line([(middle - dash / 2, 26), (middle + dash / 2, 26)], fill=255, width=4)
    mask = layer.reduce(fine)
    image.paste(QUIET, (0, image.height - mask.height), mask)
