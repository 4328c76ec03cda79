"""A bot whose files may not grow any more: it lives on, says so, and loses nothing."""

from __future__ import annotations

import sys

import pytest

from tests.e2e.checks import check_cover, until, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess
from tests.support.onebot_client import OneBotClient

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")

MESSAGES = 400
ROOM = 30_000
"""Bytes that the largest file of the bot may still grow by."""


def limit_files(bot: BotProcess, size: int) -> None:
    """Let no file that the bot writes be longer than that, as if the disk were full."""
    import resource

    _, hard = resource.prlimit(bot.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(bot.pid, resource.RLIMIT_FSIZE, (size, hard))


def unlimited(bot: BotProcess) -> None:
    import resource

    limit_files(bot, resource.RLIM_INFINITY)


async def test_what_finds_no_room_waits_until_there_is(new_bot: BotMaker) -> None:
    # What it prints goes into a file too, and shall find room.
    bot = await new_bot({"LOG_LEVEL": "WARNING"}).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message("还有地方", group_id=1)
        await wait_stored(bot, "group:1", 1)
        files = bot.database.parent.glob(f"{bot.database.name}*")
        limit_files(bot, max(file.stat().st_size for file in files) + ROOM)
        for number in range(MESSAGES):
            await client.group_message(f"第{number}句" + "很长" * 100, group_id=1)
        await until(lambda: "存不进数据库" in bot.output)
        await client.group_message("/记忆 状态", role="owner", group_id=1)
        status = await client.wait_for_send(1)
        assert "数据库出错" in status.text
        unlimited(bot)
        rows = await wait_stored(bot, "group:1", MESSAGES + 3, within=20)
    said = [row.text.partition("句")[0] for row in rows if "句很长" in row.text]
    assert said == [f"第{number}" for number in range(MESSAGES)]
    assert "Traceback" not in bot.output
    await bot.cli_ok("rollup")
    check_cover(await bot.export("group:1"))
