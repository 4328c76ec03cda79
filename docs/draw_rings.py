"""Draws docs/rings.png: the growth rings of the sample chat that `uv run bot.py demo` imports."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path
import sys

import nonebot
from nonebot.adapters.onebot.v11 import Adapter

REPOSITORY = Path(__file__).resolve().parents[1]
DATABASE = REPOSITORY / "data" / "nonebot_plugin_nianlun" / "demo" / "nianlun.db"


def main() -> None:
    sys.path.insert(0, str(REPOSITORY))
    nonebot.init(driver="~fastapi", log_level="WARNING")
    nonebot.get_driver().register_adapter(Adapter)
    nonebot.load_plugin("plugins.nonebot_plugin_nianlun")
    from plugins.nonebot_plugin_nianlun.config import Settings
    from plugins.nonebot_plugin_nianlun.demo.sample import SAMPLE_NOW
    from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
    from plugins.nonebot_plugin_nianlun.pictures.rings import draw_rings
    from plugins.nonebot_plugin_nianlun.store.growth import growth

    if not DATABASE.exists():
        sys.exit("先运行 uv run bot.py demo")
    calendar = Calendar(Settings().timezone, Settings().day_starts_at)
    today = calendar.day_of(SAMPLE_NOW)
    # The sample is the first and only chat of its database.
    days = asyncio.run(growth(DATABASE, 1, calendar, date(2000, 1, 1), today))
    (REPOSITORY / "docs" / "rings.png").write_bytes(draw_rings(days, today))


if __name__ == "__main__":
    main()
