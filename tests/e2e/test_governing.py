"""What governing commands do to the talk, over a real connection."""

from __future__ import annotations

import asyncio

from tests.e2e.checks import wait_stored
from tests.e2e.conftest import BotMaker
from tests.e2e.test_speaking import FAST, GROUP, HE, SHE, at_bot, own_lines, replies
from tests.support.model_server import Delay, ModelServer
from tests.support.onebot_client import OneBotClient

CHAT = f"group:{GROUP}"


async def say(client: OneBotClient, words: str) -> str:
    await client.group_message(f"/记忆 {words}", SHE, role="owner", group_id=GROUP)
    return (await client.wait_for_send(GROUP)).text


async def test_a_muted_bot_records_and_says_nothing_but_answers_to_commands(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message(at_bot(client, "在吗"), HE)
        await client.wait_for_send(GROUP)
        assert "只听不说" in await say(client, "静音")
        await client.group_message(at_bot(client, "听得见吗"), HE)
        assert await client.stays_silent(1.5)
        assert "静音中" in await say(client, "状态")
        assert "会回话" in await say(client, "开口")
        await client.group_message(at_bot(client, "再来"), HE)
        await client.wait_for_send(GROUP)
        assert len(replies(model)) == 2
        texts = [row.text for row in await wait_stored(bot, CHAT, 10)]
        assert any("听得见吗" in text for text in texts)


async def test_a_reply_under_way_when_it_is_muted_is_not_sent(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(lambda request: Delay(1.0, "慢吞吞地答。"))
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message(at_bot(client, "想好了吗"), HE)
        while not replies(model):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert "只听不说" in await say(client, "静音")
        assert await client.stays_silent(1.5)


async def test_while_recording_is_paused_it_answers_and_keeps_nothing(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(lambda request: "石榴色的答案。")
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message("早上好", HE)
        await wait_stored(bot, CHAT, 1)
        await asyncio.sleep(1)  # what was said in the second of the command is still recorded
        assert "不记这里说的话" in await say(client, "暂停")
        await asyncio.sleep(1)
        await client.group_message(at_bot(client, "石榴是什么颜色"), HE)
        assert "石榴" in (await client.wait_for_send(GROUP)).text
        assert "石榴是什么颜色" in replies(model)[-1]
        assert "已暂停记录" in await say(client, "状态")
        assert "又会记" in await say(client, "继续")
        rows = await wait_stored(bot, CHAT, 8)
        told = [(row.text, row.skipped) for row in rows]
        assert told.count(("", "paused")) >= 4
        assert not [text for text, _ in told if "石榴" in text]
        assert "石榴色的答案。" not in [text for text, _ in own_lines(bot)]
        assert "没有问题" in await say(client, "核对")
