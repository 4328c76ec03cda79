"""A machine's clock is set while the bot runs: what is owed goes on being done."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.e2e.checks import until, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.moved_clock import AVAILABLE, MovedClock
from tests.support.onebot_client import OneBotClient

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOON = datetime(2026, 5, 20, 12, 0, tzinfo=SHANGHAI).timestamp()
HOUR = 3600
SETTINGS = {"NIANLUN__ACTIVITY_MESSAGES": "5"}
OFTEN = """
from nonebot import require
require("nonebot_plugin_nianlun")
import plugins.nonebot_plugin_nianlun as package
package.OWED_EVERY_SECONDS = 0.3
"""
"""A plugin with which the bot looks at what is owed more often than every half minute."""

_WRITTEN = "SELECT written_at FROM nianlun_activity ORDER BY number"
_CLOSED = "SELECT period FROM nianlun_memory WHERE kind = 'day' AND closed = 1"


@pytest.mark.skipif(not AVAILABLE, reason="needs Linux and a C compiler")
async def test_owed_work_goes_on_when_the_clock_is_put_back(
    new_bot: BotMaker, tmp_path: Path
) -> None:
    clock = MovedClock(tmp_path)
    clock.set(NOON)
    bot = await new_bot(SETTINGS | clock.env, plugins={"often": OFTEN}).start()
    async with OneBotClient(bot.port) as client:

        async def talk(first: int) -> None:
            for number in range(first, first + 5):
                await client.group_message(f"第 {number} 句", at=clock.now - 10, group_id=1)
            await wait_stored(bot, "group:1", first + 5)

        await talk(0)
        await until(lambda: len(bot.query(_WRITTEN)) == 1)
        clock.set(NOON - 5 * HOUR)
        await talk(5)
        # No event comes any more that would set the bot to work: only time passes.
        await until(lambda: len(bot.query(_WRITTEN)) == 2)
        before, after = (datetime.fromisoformat(at) for (at,) in bot.query(_WRITTEN))
        assert abs(before - after - timedelta(hours=5)) < timedelta(minutes=1)
        assert bot.query(_CLOSED) == []
        # Night comes, later than by the clock that was put back.
        clock.set(NOON + 16 * HOUR + 180)
        assert await until(lambda: bot.query(_CLOSED)) == [("2026-05-20",)]
