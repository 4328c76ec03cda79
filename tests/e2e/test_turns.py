"""Facts and diary after each reply, where the settings ask for them."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from tests.e2e.checks import asked, of_type, until
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess
from tests.support.model_server import Delay, ModelServer, Reply, helpful_responder
from tests.support.onebot_client import OneBotClient

TURNS = {"NIANLUN__FACTS_FROM": "turns"}
USER = 20001


def is_turn(request: dict[str, Any]) -> bool:
    return "找 facts 和 diary" in asked(request)


def remembering(request: dict[str, Any]) -> Reply:
    if not is_turn(request):
        return helpful_responder(request)
    fact = {"category": "preferences", "name": "咖啡", "content": "小鹿只喝美式", "from": 1}
    diary = [{"content": "她说只喝美式，笑得很开心。"}]
    return Delay(0.5, json.dumps({"facts": [fact], "diary": diary}, ensure_ascii=False))


def count(bot: BotProcess, table: str) -> int:
    return bot.query(f"SELECT count(*) FROM {table}")[0][0]


async def test_a_reply_is_followed_by_facts_and_diary(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(remembering)
    bot = await new_bot(TURNS, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.private_message("我只喝美式", user_id=USER)
        await client.wait_for_send(USER)
        assert count(bot, "nianlun_fact") == 0
        await until(lambda: count(bot, "nianlun_fact"))
        (fact,) = of_type(await bot.export(f"private:{USER}"), "fact")
        assert (fact["owner"], fact["text"], fact["source"]) == (str(USER), "小鹿只喝美式", 1)
        (moment,) = of_type(await bot.export(f"private:{USER}"), "activity")
        assert (moment["origin"], moment["owner"]) == ("turn", str(USER))
        assert moment["key_messages"] == [1, 2]
        await client.private_message("/记忆 状态", user_id=USER)
        assert "今天 1 次，没写成 0 次" in (await client.wait_for_send(USER)).text
    notes = [r for r in model.requests if "add_activity" in asked(r)]
    assert all("以后用得着的事实" not in asked(request) for request in notes)
    booked = bot.query("SELECT DISTINCT model FROM nianlun_usage")
    assert booked == [("gpt-4o-mini",)]


async def test_trouble_with_it_costs_no_reply_and_shows_in_the_status(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(lambda request: "没有" if is_turn(request) else helpful_responder(request))
    bot = await new_bot(TURNS, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.private_message("我只喝美式", user_id=USER)
        await client.wait_for_send(USER)
        failures = "SELECT failures FROM nianlun_usage WHERE purpose = 'facts'"
        await until(lambda: bot.query(failures))
        await client.private_message("/记忆 状态", user_id=USER)
        status = (await client.wait_for_send(USER)).text
        assert "今天 1 次，没写成 1 次" in status
        assert "事实和日记没有记成" in status


async def test_no_reply_waits_for_the_turn_before_it(new_bot: BotMaker, model: ModelServer) -> None:
    def slow(request: dict[str, Any]) -> Reply:
        return Delay(30, "{}") if is_turn(request) else helpful_responder(request)

    model.script(slow)
    bot = await new_bot(TURNS, model=model).start()
    async with OneBotClient(bot.port) as client:
        begun = time.monotonic()
        for text in ("我只喝美式", "还有拿铁", "晚安"):
            await client.private_message(text, user_id=USER)
            await client.wait_for_send(USER)
        assert time.monotonic() - begun < 20
        await until(lambda: any(map(is_turn, model.requests)))
        begun = time.monotonic()
        await bot.terminate()
        assert time.monotonic() - begun < 20
    assert sum(map(is_turn, model.requests)) == 1


async def test_beyond_the_limit_of_the_day_no_turn_is_taken_in(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(remembering)
    bot = await new_bot(TURNS | {"NIANLUN__DAILY_TOKEN_LIMIT": "1"}, model=model).start()
    async with OneBotClient(bot.port) as client:
        for text in ("我只喝美式", "还有拿铁"):
            await client.private_message(text, user_id=USER)
            await client.wait_for_send(USER)
            await asyncio.sleep(1.5)
    assert sum(map(is_turn, model.requests)) == 1


async def test_a_bot_that_is_ended_finishes_the_turn(new_bot: BotMaker, model: ModelServer) -> None:
    model.script(remembering)
    bot = await new_bot(TURNS, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.private_message("我只喝美式", user_id=USER)
        await client.wait_for_send(USER)
        await until(lambda: any(map(is_turn, model.requests)))
        assert count(bot, "nianlun_fact") == 0
        await bot.terminate()
    assert count(bot, "nianlun_fact") == 1


async def test_without_the_setting_a_reply_is_one_call(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot({}, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.private_message("我只喝美式", user_id=USER)
        await client.wait_for_send(USER)
        await client.private_message("/记忆 状态", user_id=USER)
        assert "回复之后" not in (await client.wait_for_send(USER)).text
    assert len(model.requests) == 1
