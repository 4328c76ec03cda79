"""What notes may cost, and notes by tool calls, with the bot and its command line as processes."""

from __future__ import annotations

import json

from tests.e2e.checks import of_type, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess
from tests.support.model_server import ModelServer
from tests.support.onebot_client import OneBotClient

CHAT = "group:7"
LINE = "今天的额度用完了，由离线写手代写"


async def talk(bot: BotProcess, count: int) -> None:
    """Say something in a bot that is stopped again before it writes about it."""
    await bot.start()
    async with OneBotClient(bot.port) as client:
        for number in range(count):
            await client.group_message(f"第 {number} 句", group_id=7)
        await wait_stored(bot, CHAT, count)
    await bot.terminate()


async def test_beyond_the_limit_notes_are_written_offline(
    new_bot: BotMaker, model: ModelServer
) -> None:
    # One call of the scripted model costs 120.
    bot = new_bot({"NIANLUN__DAILY_TOKEN_LIMIT": "100"}, model=model)
    await talk(bot, 6)
    assert LINE not in await bot.cli_ok("doctor")
    await bot.cli_ok("rollup")
    await talk(bot, 6)
    await bot.cli_ok("rollup")
    rows = of_type(await bot.export(CHAT), "activity")
    assert [row["writer"] for row in rows] == ["model", "offline"]
    assert LINE in await bot.cli_ok("doctor")
    (chat,) = json.loads(await bot.cli_ok("doctor", "--json"))["chats"]
    assert (chat["token_limit"], chat["limit_reached"], chat["writer"]) == (100, True, "offline")
    assert len(model.requests) == 1


async def test_notes_by_tool_calls(new_bot: BotMaker, model: ModelServer) -> None:
    bot = new_bot({"NIANLUN__NOTES_TOOLS": "true"}, model=model)
    await talk(bot, 6)
    await bot.cli_ok("rollup")
    (row,) = of_type(await bot.export(CHAT), "activity")
    assert (row["writer"], row["from_seq"], row["to_seq"]) == ("model", 1, 6)
    assert [len(request["messages"]) for request in model.requests] == [2, 4]
