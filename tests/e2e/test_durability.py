"""What was accepted stays, however the process ends."""

from __future__ import annotations

import time

from tests.e2e.checks import stored, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import CLEAN_EXIT
from tests.support.onebot_client import OneBotClient

PROMISED = 0.2
"""Seconds from a message's arrival to the disk."""
SLACK = 0.15
"""Seconds for the way through the socket, the look at the database, and a busy machine."""


async def test_a_message_is_on_disk_at_once_and_survives_a_kill(new_bot: BotMaker) -> None:
    bot = await new_bot().start()
    async with OneBotClient(bot.port) as client:
        await client.group_message("暖身", group_id=1)
        await wait_stored(bot, "group:1", 1)
        took = []
        for number in range(2, 7):
            began = time.monotonic()
            await client.group_message(f"第 {number} 句", group_id=1)
            await wait_stored(bot, "group:1", number)
            took.append(time.monotonic() - began)
        assert sorted(took)[len(took) // 2] < PROMISED
        assert max(took) < PROMISED + SLACK
        bot.kill()
    texts = [row["text"] for row in await bot.export_rows("group:1", "message")]
    assert texts == ["暖身", *(f"第 {number} 句" for number in range(2, 7))]


async def test_a_burst_before_the_end_is_kept(new_bot: BotMaker) -> None:
    bot = await new_bot().start()
    async with OneBotClient(bot.port) as client:
        for number in range(200):
            await client.group_message(f"第 {number} 句", group_id=1)
        await client.settle()
        began = time.monotonic()
        assert await bot.terminate() in CLEAN_EXIT
        assert time.monotonic() - began < 5
    assert [row.text for row in stored(bot, "group:1")] == [f"第 {n} 句" for n in range(200)]


async def test_an_idle_bot_ends_quickly(new_bot: BotMaker) -> None:
    bot = await new_bot().start()
    async with OneBotClient(bot.port):
        began = time.monotonic()
        assert await bot.terminate() in CLEAN_EXIT
        assert time.monotonic() - began < 5
    assert "Traceback" not in bot.output
