"""A year as a calendar: a block a month, a row a week from Monday, a square a day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from math import log1p

from PIL import Image, ImageDraw

from .digits import draw_number, width_of, write_years
from .palette import FAINT, GROUND, QUIET, TODAY, Colour, glow, mix, png

SIZE = 1080
_FINE = 2
_COLUMNS = 4
_DAY, _STEP = 30, 34
_BLOCK = 263, 322
_CORNER = 28, 60
_HEAD = 40
_NUMBER = 20
_CONTRAST = 2.0
_USUAL_TOP = 0.95
"""Of the days with anything, the share that the brightest colour stands above."""


def draw_heat_map(year: int, amounts: Mapping[date, int], today: date) -> bytes:
    """A square PNG of `SIZE` pixels: brighter where more happened, today framed."""
    image = Image.new("RGB", (SIZE * _FINE, SIZE * _FINE), GROUND)
    draw = ImageDraw.Draw(image)
    amounts = {day: n for day, n in amounts.items() if day.year == year and n > 0}
    highest = sorted(amounts.values())[int(len(amounts) * _USUAL_TOP)] if amounts else 1
    day = date(year, 1, 1)
    while day.year == year:
        if day.day == 1:
            _draw_month(draw, day)
        level = (log1p(amounts.get(day, 0)) / log1p(highest)) ** _CONTRAST
        _draw_day(draw, day, _colour(level, day <= today), framed=day == today)
        if day == date.max:
            break
        day += timedelta(days=1)
    image = image.reduce(_FINE)
    write_years(image, year, year)
    return png(image)


def _colour(level: float, over: bool) -> Colour:
    if level > 0:
        return glow(min(1.0, level))
    return FAINT if over else mix(GROUND, FAINT, 0.4)


def _corner(day: date) -> tuple[int, int]:
    row, column = divmod(day.month - 1, _COLUMNS)
    return _CORNER[0] + column * _BLOCK[0], _CORNER[1] + row * _BLOCK[1]


def _draw_month(draw: ImageDraw.ImageDraw, first: date) -> None:
    x, y = _corner(first)
    # Over the middle of the week, so that the block hangs from its number.
    x += (7 * _STEP - (_STEP - _DAY) - width_of(str(first.month), _NUMBER)) / 2
    draw_number(draw, (x * _FINE, y * _FINE), str(first.month), _NUMBER * _FINE, QUIET)


def _draw_day(draw: ImageDraw.ImageDraw, day: date, colour: Colour, *, framed: bool) -> None:
    x, y = _corner(day)
    week = (day.day - 1 + day.replace(day=1).weekday()) // 7
    x, y = x + day.weekday() * _STEP, y + _HEAD + week * _STEP
    box = [side * _FINE for side in (x, y, x + _DAY - 0.5, y + _DAY - 0.5)]
    draw.rounded_rectangle(box, 7 * _FINE, fill=colour)
    if framed:
        draw.rounded_rectangle(box, 7 * _FINE, outline=TODAY, width=3 * _FINE)
