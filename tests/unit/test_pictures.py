"""The pictures: what they show, how large they are, and that like numbers give like files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from io import BytesIO

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageDraw, ImageStat
import pytest

from plugins.nonebot_plugin_nianlun.memory.moods import DayGrowth, mood_of
from plugins.nonebot_plugin_nianlun.pictures.bars import MOST_BARS, draw_bars
from plugins.nonebot_plugin_nianlun.pictures.digits import WIDTH, draw_number, width_of
from plugins.nonebot_plugin_nianlun.pictures.heat_map import draw_heat_map
from plugins.nonebot_plugin_nianlun.pictures.palette import GROUND, QUIET, TODAY
from plugins.nonebot_plugin_nianlun.pictures.rings import SIZE, draw_rings
from plugins.nonebot_plugin_nianlun.pictures.trunk import ANGLES, MOST_YEARS, Ring, angle_of, grow

TODAY_DATE = date(2026, 7, 20)
LARGEST_FILE = 300_000
Days = Mapping[date, DayGrowth]


def every_day(first: date, last: date, of: Callable[[date], DayGrowth]) -> Days:
    days = ((first + timedelta(n)) for n in range((last - first).days + 1))
    return {day: grown for day in days if (grown := of(day)).amount}


def lively(rate: float) -> Callable[[date], DayGrowth]:
    """Days that differ from each other, as real ones do, without dice."""

    def of(day: date) -> DayGrowth:
        number = day.toordinal()
        mood = (number * 7 % 200 - 100) / 150 if number % 40 < 20 else (number % 13 - 6) / 9
        return DayGrowth(int(rate * (number * 37 % 11)), 0, mood)

    return of


CHATS: dict[str, Days] = {
    "empty": {},
    "one day": {TODAY_DATE: DayGrowth(1, 0)},
    "a week": every_day(date(2026, 7, 14), TODAY_DATE, lively(30)),
    "new year": every_day(date(2025, 12, 30), date(2026, 1, 2), lively(5)),
    "a year": every_day(date(2025, 9, 1), TODAY_DATE, lively(8)),
    "five years": every_day(date(2021, 8, 5), TODAY_DATE, lively(20)),
    "fifteen years": every_day(date(2012, 2, 5), TODAY_DATE, lively(4)),
    "more years than are shown": every_day(date(1990, 1, 1), TODAY_DATE, lively(4)),
    "years of silence": {
        date(2009, 3, 1): DayGrowth(5, 1),
        **every_day(date(2024, 5, 1), date(2024, 9, 1), lively(9)),
    },
    "10,000 a day": every_day(date(2023, 1, 1), TODAY_DATE, lively(2000)),
    "3 a day": every_day(date(2023, 1, 1), TODAY_DATE, lively(0.6)),
    "tomorrow alone": {TODAY_DATE + timedelta(1): DayGrowth(9, 1)},
}


def opened(picture: bytes) -> Image.Image:
    with Image.open(BytesIO(picture)) as image:
        assert image.format == "PNG"
        return image.convert("RGB")


def spots(image: Image.Image, colour: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Where the picture has nearly this colour."""
    plain = Image.new("RGB", image.size, colour)
    far = ImageChops.difference(image, plain).convert("L").tobytes()
    return [(n % image.width, n // image.width) for n, apart in enumerate(far) if apart < 6]


def mean(image: Image.Image) -> list[float]:
    return ImageStat.Stat(image).mean


@pytest.mark.parametrize("name", CHATS)
def test_rings_of(name: str) -> None:
    picture = draw_rings(CHATS[name], TODAY_DATE)
    image = opened(picture)
    assert image.size == (SIZE, SIZE)
    assert len(picture) < LARGEST_FILE
    assert len(spots(image, TODAY)) > 100
    # A margin stays free all around.
    assert {image.getpixel((x, y)) for x in (2, SIZE - 3) for y in (2, 500, SIZE - 3)} == {GROUND}


def test_the_same_days_give_the_same_file() -> None:
    for name in ("empty", "a week", "five years"):
        days = dict(reversed([*CHATS[name].items()]))
        assert draw_rings(days, TODAY_DATE) == draw_rings(CHATS[name], TODAY_DATE)


def test_the_mark_of_today_goes_round_with_the_year() -> None:
    days = every_day(date(2021, 1, 1), date(2026, 12, 31), lively(20))

    def mark(today: date) -> tuple[float, float]:
        found = spots(opened(draw_rings(days, today)), TODAY)
        return sum(x for x, _ in found) / len(found), sum(y for _, y in found) / len(found)

    (east, _), (_, south), (west, _) = (mark(date(2026, month, 2)) for month in (4, 7, 10))
    assert west < SIZE * 0.3 < SIZE * 0.7 < east
    assert south > SIZE * 0.7


def test_merry_days_are_orange_and_sad_ones_blue() -> None:
    def colours(mood: float) -> list[float]:
        days = every_day(date(2024, 1, 1), TODAY_DATE, lambda _: DayGrowth(9, 0, mood))
        return mean(opened(draw_rings(days, TODAY_DATE)))

    (merry_red, _, merry_blue), (red, _, blue), (sad_red, _, sad_blue) = map(colours, (1, 0, -1))
    assert merry_red - merry_blue > red - blue > sad_red - sad_blue
    assert sad_blue > blue > merry_blue


def test_busy_months_are_thick_and_nothing_grows_after_today() -> None:
    def of(day: date) -> DayGrowth:
        return DayGrowth(200 if day.month in (5, 6, 7) else 2, 0)

    rings = grow(every_day(date(2022, 1, 1), date(2026, 3, 1), of), date(2026, 3, 1))
    busy, quiet = angle_of(date(2025, 6, 15)), angle_of(date(2025, 1, 20))
    # The first rings are evened out, or a young trunk would be no trunk.
    for ring, rate in zip(rings[:-1], (1.1, 1.2, 1.3, 1.4), strict=True):
        thickness = [b - a for a, b in zip(ring.inner, ring.outer, strict=True)]
        assert thickness[busy] > rate * thickness[quiet]
    last = rings[-1]
    begun, to_come = (angle_of(date(2026, month, 1)) for month in (2, 9))
    assert last.outer[begun] - last.inner[begun] > 2 * (last.outer[to_come] - last.inner[to_come])
    assert [ring.year for ring in rings] == [2022, 2023, 2024, 2025, 2026]


def test_lively_and_quiet_chats_grow_alike() -> None:
    def rings(messages: int) -> list[Ring]:
        days = every_day(date(2023, 1, 1), TODAY_DATE, lambda _: DayGrowth(messages))
        return grow(days, TODAY_DATE)

    one, other = rings(3), rings(10_000)
    assert [ring.level for ring in one] == [ring.level for ring in other]


def test_a_trunk_is_larger_the_older_it_is() -> None:
    ages = (timedelta(1), timedelta(100), timedelta(500), timedelta(3000))
    sizes = [
        max(grow(every_day(TODAY_DATE - age, TODAY_DATE, lively(9)), TODAY_DATE)[-1].outer)
        for age in ages
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.5 < 0.9 < sizes[-1]


dates = st.dates(date(1985, 1, 1), date(2030, 12, 31))
grown_days = st.builds(DayGrowth, st.integers(0, 10**9), st.integers(0, 10**6), st.floats(-1, 1))


@settings(max_examples=25)
@given(days=st.dictionaries(dates, grown_days, max_size=40), today=dates)
def test_rings_lie_around_each_other(days: Days, today: date) -> None:
    rings = grow(days, today)
    shown = [day for day in days if day <= today and days[day].amount]
    assert bool(rings) == any(day.year > today.year - MOST_YEARS for day in shown)
    assert [ring.year for ring in rings] == list(range(today.year - len(rings) + 1, today.year + 1))
    for before, ring in zip([None, *rings], rings, strict=False):
        assert before is None or ring.inner == before.outer
        assert all(0 < a <= b <= 1.0001 for a, b in zip(ring.inner, ring.outer, strict=True))
        assert len(ring.level) == len(ring.mood) == ANGLES
        assert all(0 <= level <= 1 for level in ring.level)


def drawn(text: str) -> Image.Image:
    image = Image.new("L", (round(width_of(text, 100)) + 40, 140))
    draw_number(ImageDraw.Draw(image), (20, 20), text, 100, 255)
    return image


def test_digits_differ_and_keep_to_their_places() -> None:
    images = [drawn(digit) for digit in "0123456789"]
    assert len({image.tobytes() for image in images}) == 10
    for image in images:
        box = image.getbbox()
        assert box is not None
        left, top, right, bottom = box
        assert 20 - 7 <= left < right <= 20 + 100 * WIDTH + 7 + 1
        assert (top, bottom) == (pytest.approx(14, abs=2), pytest.approx(127, abs=2))
    assert drawn("12").getbbox() != drawn("1").getbbox()


def test_a_calendar_is_brighter_where_more_happened() -> None:
    def square(amount: int, day: date = date(2024, 2, 29)) -> float:
        others = dict.fromkeys([date(2024, 1, n) for n in range(1, 31)], 1000)
        image = opened(draw_heat_map(2024, {**others, day: amount}, date(2025, 1, 1)))
        none = opened(draw_heat_map(2024, others, date(2025, 1, 1)))
        box = ImageChops.difference(image, none).getbbox()
        return 0.0 if box is None else sum(mean(image.crop(box)))

    assert square(1000) > square(100) > square(1) > square(0) == 0
    assert square(9, date(2023, 12, 31)) == 0


@pytest.mark.parametrize("year", [1, 1999, 2024, 2026, 9999])
def test_a_calendar_of(year: int) -> None:
    days = {date(year, 6, day): day**9 for day in range(1, 30)}
    picture = draw_heat_map(year, days, TODAY_DATE)
    assert picture == draw_heat_map(year, days, TODAY_DATE)
    assert opened(picture).size == (SIZE, SIZE)
    assert len(picture) < LARGEST_FILE / 5
    assert bool(spots(opened(picture), TODAY)) == (year == TODAY_DATE.year)


def bar_lengths(counts: list[int]) -> list[int]:
    """How many pixels in the middle of each bar belong to it, in their order."""
    image = opened(draw_bars(counts))
    rows = min(len(counts), MOST_BARS + 1)
    lengths = []
    for row in range(rows):
        y = 40 + 72 * row + 22
        colours = [image.getpixel((x, y)) for x in range(104, 840)]
        lengths.append(sum(colour == colours[3] for colour in colours))
    return lengths


def test_bars_are_as_long_as_their_numbers() -> None:
    full, half, tenth = bar_lengths([1000, 500, 100])
    assert full == 736
    assert half / bar_lengths([1000, 1000, 100])[1] == pytest.approx(0.58, abs=0.04)
    assert half / tenth == pytest.approx(5, rel=0.05)


def test_those_beyond_the_twelfth_share_a_bar() -> None:
    assert opened(draw_bars([5] * 12)).height < opened(draw_bars([5] * 13)).height
    assert draw_bars([5] * 12 + [3, 2]) == draw_bars([5] * 12 + [5])
    assert len(spots(opened(draw_bars([5] * 13)), QUIET)) > 1000


@pytest.mark.parametrize("counts", [[], [0], [0, 0], [1, 0], [10**15, 1]])
def test_bars_of_odd_numbers(counts: list[int]) -> None:
    picture = draw_bars(counts)
    assert picture == draw_bars(counts)
    assert opened(picture).width == 1080


def test_moods_are_read_from_words() -> None:
    assert mood_of("") == mood_of("下午我们修好了门锁。") == 0
    assert 0 < mood_of("小鹿很开心") < mood_of("小鹿很开心，大家都高兴，笑成一片") < 1
    assert -1 < mood_of("她很难过，哭了一场，想家") < mood_of("他有点失望") < 0
    assert mood_of("有人高兴，有人难过") == 0


@pytest.mark.parametrize("text", ["他不开心", "没难过，别担心", "别生气"])
def test_a_denied_mood_is_none(text: str) -> None:
    assert mood_of(text) == 0


@given(st.text(st.sampled_from("开心难过不高兴哭了\n\u2028\0\ud800x")))
def test_a_mood_has_bounds(text: str) -> None:
    assert -1 < mood_of(text) < 1
