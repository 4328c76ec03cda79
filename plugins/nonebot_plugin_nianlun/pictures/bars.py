"""Who spoke how much: a bar for each, numbered, since names would need a font."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw

from .digits import draw_number, width_of
from .palette import FAINT, GROUND, QUIET, TODAY, mix, png, wood

WIDTH = 1080
MOST_BARS = 12
_FINE = 2
_ROW, _BAR, _MARGIN = 72, 44, 40
_LEFT, _SPACE = 104, 24
_DIGITS = 24


def draw_bars(counts: Sequence[int]) -> bytes:
    """A PNG `WIDTH` pixels wide. Counts come in the order of the numbers, from 1; those beyond
    `MOST_BARS` share a last bar without a number."""
    rows = [(str(number), count) for number, count in enumerate(counts[:MOST_BARS], 1)]
    if len(counts) > MOST_BARS:
        rows.append(("", sum(counts[MOST_BARS:])))
    height = 2 * _MARGIN + max(1, len(rows)) * _ROW - (_ROW - _BAR)
    image = Image.new("RGB", (WIDTH * _FINE, height * _FINE), GROUND)
    draw = ImageDraw.Draw(image)
    longest = max([count for _, count in rows], default=1) or 1
    widest = max([width_of(str(count), _DIGITS) for _, count in rows], default=0.0)
    room = WIDTH - _LEFT - _SPACE - widest - _MARGIN
    for row, (number, count) in enumerate(rows):
        _draw_bar(draw, _MARGIN + row * _ROW, number, count, room * count / longest, room)
    return png(image.reduce(_FINE))


def _draw_bar(
    draw: ImageDraw.ImageDraw, y: float, number: str, count: int, length: float, room: float
) -> None:
    text_y = (y + (_BAR - _DIGITS) / 2) * _FINE
    x = _LEFT - _SPACE - width_of(number, _DIGITS) if number else 0.0
    draw_number(draw, (x * _FINE, text_y), number, _DIGITS * _FINE, TODAY)
    track = [side * _FINE for side in (_LEFT, y, _LEFT + room, y + _BAR)]
    draw.rounded_rectangle(track, 9 * _FINE, fill=mix(GROUND, FAINT, 0.5))
    colour = wood(length / room, 0) if number else QUIET
    # A bar too short for its round corners would be drawn wrong.
    track[2] = (_LEFT + max(length, 6.0)) * _FINE
    draw.rounded_rectangle(track, min(9.0, max(length, 6.0) / 2) * _FINE, fill=colour)
    x = WIDTH - _MARGIN - width_of(str(count), _DIGITS)
    draw_number(draw, (x * _FINE, text_y), str(count), _DIGITS * _FINE, QUIET)
