"""What is shown as a picture: the growth rings of a chat, its years, what it cost, who spoke."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import TYPE_CHECKING
import unicodedata

from nonebot_plugin_alconna import Args

from ..errors import ChatError
from ..memory.moods import DayGrowth
from ..pictures.trunk import MOST_YEARS
from ..store import growth
from .command import Answer, Asked, Command, WrongUsage

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_PAINTER = ThreadPoolExecutor(1, thread_name_prefix="nianlun-pictures")
"""One picture at a time: they are asked for by anybody, and the event loop needs its share."""


class Drawing:
    """Serves the pictures."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun

    def commands(self) -> tuple[Command, ...]:
        return (
            Command(
                "年轮",
                "read",
                "这个会话长到现在的年轮，一年一圈；写上年份就看那一年每天说了多少",
                self._serve,
                arguments=(Args["年份;?", str],),
                example="2025",
                usage="[年份]",
            ),
        )

    async def _serve(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        calendar = self._nianlun.calendar
        today = calendar.day_of(self._nianlun.clock.now())
        year = _year(asked.arguments.get("年份"), today)
        first = date(max(1, today.year - MOST_YEARS + 1) if year is None else year, 1, 1)
        last = today if year is None else min(today, date(year, 12, 31))
        days = await growth.growth(self._nianlun.path, chat_id, calendar, first, last)
        if year is None:
            picture = await _painted(lambda: _rings(days, today))
            return Answer(rings_text(days, today), picture=picture)
        if not days:
            raise ChatError(f"{year} 年没有记录")
        amounts = {day: grown.amount for day, grown in days.items()}
        picture = await _painted(lambda: _heat_map(year, amounts, today))
        return Answer(year_text(year, days), picture=picture)


async def usage_picture(chat_id: int, today: date) -> bytes | None:
    """A calendar of the tokens of each day of this year; None when nothing was spent in it."""
    tokens = await growth.tokens_by_day(chat_id, today.year)
    if not any(tokens.values()):
        return None
    return await _painted(lambda: _heat_map(today.year, tokens, today))


async def speakers_picture(counts: Sequence[int]) -> bytes | None:
    """Bars of how much each has said, numbered in the order given; None without anybody."""
    return await _painted(lambda: _bars(counts)) if counts else None


def rings_text(days: Mapping[date, DayGrowth], today: date) -> str:
    """How to read the rings, in a line or two."""
    if not days:
        return "还什么都没有长出来，说说话吧。"
    first = min(days)
    rings = today.year - first.year + 1
    return (
        f"从 {first} 到今天，{rings} 圈，有 {len(days)} 天说过话；{_busiest(days)}。\n"
        "一年一圈，最里面最早，正上方是一月，顺时针走；越厚越热闹，橙色高兴，蓝色难过，白点是今天。"
    )


def year_text(year: int, days: Mapping[date, DayGrowth]) -> str:
    return f"{year} 年有 {len(days)} 天说过话；{_busiest(days)}。越亮说得越多。"


def _busiest(days: Mapping[date, DayGrowth]) -> str:
    day = max(days, key=lambda day: (days[day].messages, day))
    return f"最热闹的是 {day}，{days[day].messages} 条消息"


def _year(text: str | None, today: date) -> int | None:
    if text is None:
        return None
    digits = unicodedata.normalize("NFKC", text).removesuffix("年")
    if not (len(digits) == 4 and digits.isascii() and digits.isdecimal() and int(digits)):
        raise WrongUsage("年份写成四个数字")
    if int(digits) > today.year:
        raise WrongUsage(f"{digits} 年还没有到")
    return int(digits)


# Pillow is imported by the first picture, in the painter's thread: few starts draw anything.


def _rings(days: Mapping[date, DayGrowth], today: date) -> bytes:
    from ..pictures.rings import draw_rings

    return draw_rings(days, today)


def _heat_map(year: int, amounts: Mapping[date, int], today: date) -> bytes:
    from ..pictures.heat_map import draw_heat_map

    return draw_heat_map(year, amounts, today)


def _bars(counts: Sequence[int]) -> bytes:
    from ..pictures.bars import draw_bars

    return draw_bars(counts)


async def _painted(draw: Callable[[], bytes]) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(_PAINTER, draw)
