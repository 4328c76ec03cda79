"""What other plugins say through the bot's account."""

from __future__ import annotations

from tests.e2e.checks import stored, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.onebot_client import OneBotClient

PING = """
from nonebot import on_fullmatch
from nonebot.adapters.onebot.v11 import Bot, MessageEvent
from nonebot.message import event_preprocessor
from nonebot.exception import IgnoredException

@on_fullmatch("ping").handle()
async def _(bot: Bot, event: MessageEvent) -> None:
    await bot.send(event, "pong")

@on_fullmatch("raw").handle()
async def _(bot: Bot, event: MessageEvent) -> None:
    await bot.call_api("send_group_msg", group_id=event.group_id, message="[CQ:face,id=178]好")

@event_preprocessor
async def _(event: MessageEvent) -> None:
    if event.get_plaintext() == "ignored":
        raise IgnoredException("not for us")
"""


async def test_their_lines_are_the_bots_and_marked(new_bot: BotMaker) -> None:
    bot = await new_bot(plugins={"ping": PING}).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message("ping", group_id=1)
        assert (await client.wait_for_send(1)).text == "pong"
        await wait_stored(bot, "group:1", 2)
        await client.group_message("raw", group_id=1)
        await client.wait_for_send(1)
        await wait_stored(bot, "group:1", 4)
        await client.group_message("ignored", group_id=1)
        await wait_stored(bot, "group:1", 5)
    rows = stored(bot, "group:1")
    assert [(row.user_id, row.via) for row in rows] == [
        ("10010", None),
        ("me", "other"),
        ("10010", None),
        ("me", "other"),
        ("10010", None),
    ]
    assert rows[3].text.endswith("好")
    assert "CQ:" not in rows[3].text
    assert [row["text"] for row in await bot.export_rows("group:1", "message")] == [
        row.text for row in rows
    ]
