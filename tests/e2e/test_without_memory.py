"""A memory in trouble, or switched off, costs what it would have told, never the reply; and the
status says what is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
import sqlite3
import time

import pytest

from tests.e2e.checks import asked, until, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess
from tests.support.model_server import ModelServer
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import mention, text

SHE, GROUP = 10010, 800
LIMIT = 3.0
"""Seconds that a reply waits for its memory."""
SLACK = 3.0
"""Another process on a busy machine, and the sending."""
PLUGIN = """
import asyncio
import threading

from nonebot import on_fullmatch, require

require("nonebot_plugin_nianlun")

from plugins.nonebot_plugin_nianlun import nianlun
from tortoise import Tortoise

blocked = set()

released = threading.Event()

async def hold_up(thread):
    await thread.run(lambda connection: released.wait(20), to_its_end=True)

@on_fullmatch("占住", priority=0, block=True).handle()
async def _(bot, event):
    for thread in (nianlun.searching._reading, nianlun.searching._beside):
        blocked.add(asyncio.create_task(hold_up(thread)))
    await bot.send(event, "好")

@on_fullmatch("放开", priority=0, block=True).handle()
async def _(bot, event):
    released.set()
    await asyncio.gather(*blocked)
    await bot.send(event, "好")

@on_fullmatch("只读", priority=0, block=True).handle()
async def _(bot, event):
    await Tortoise.get_connection("default").execute_query("PRAGMA query_only = ON")
    await bot.send(event, "好")

@on_fullmatch("可写", priority=0, block=True).handle()
async def _(bot, event):
    await Tortoise.get_connection("default").execute_query("PRAGMA query_only = OFF")
    await bot.send(event, "好")

@on_fullmatch("看一眼", priority=0, block=True).handle()
async def _(bot, event):
    await nianlun.tick()
    await bot.send(event, "好")
"""
SETTINGS = {
    "NICKNAME": '["小忆"]',
    "NIANLUN__ACTIVITY_MESSAGES": "500",
    "NIANLUN__ACTIVITY_MESSAGES_PRIVATE": "500",
    "NIANLUN__REPLY_WAIT": "0",
}


class Talk:
    """A private chat with the bot, and a group of which the same person is the owner."""

    def __init__(self, bot: BotProcess, client: OneBotClient, model: ModelServer) -> None:
        self.bot = bot
        self.client = client
        self.model = model
        self.count = 0

    async def order(self, words: str) -> None:
        await self.client.private_message(words, SHE)
        assert (await self.client.wait_for_send(SHE)).text == "好"

    async def ask(self, *, group: bool = False) -> tuple[str, float]:
        """The prompt of a reply to a line never said before, and how many seconds that took."""
        self.count += 1
        began, before = time.monotonic(), len(self.model.requests)
        words = f"第{self.count}个问题"
        if group:
            at_bot = [mention(self.client.self_id), text(words)]
            await self.client.group_message(at_bot, SHE, role="owner", group_id=GROUP)
        else:
            await self.client.private_message(words, SHE)
        answer = await self.client.wait_for_send(GROUP if group else SHE, within=20)
        assert answer.text == "好呀，我记着呢。"
        [request] = self.model.requests[before:]
        prompt = asked(request)
        assert words in prompt
        return prompt, time.monotonic() - began

    async def status(self, *, group: bool = False) -> str:
        if group:
            await self.client.group_message("/记忆 状态", SHE, role="owner", group_id=GROUP)
        else:
            await self.client.private_message("/记忆 状态", SHE)
        return (await self.client.wait_for_send(GROUP if group else SHE, within=20)).text

    async def healed(self) -> None:
        """Replies have their memory again, and nothing is wrong any more."""
        await until(lambda: not self._waits(), within=20)
        prompt, _ = await self.ask()
        assert "我爱吃橘子" in prompt
        status = await self.status()
        assert "最近的错误：没有" in status
        assert "没有记忆" not in status

    def _waits(self) -> bool:
        query = "SELECT count(*) FROM nianlun_message WHERE text LIKE '%第%个问题'"
        return self.bot.query(query)[0][0] < self.count


@pytest.fixture(scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    folder = tmp_path_factory.mktemp("trouble")
    with ModelServer() as model:
        keys = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": model.base_url}
        bot = BotProcess(folder, SETTINGS | keys, plugins={"trouble": PLUGIN})
        async with bot, OneBotClient(bot.port) as client:
            await client.private_message("我爱吃橘子", SHE)
            await client.wait_for_send(SHE)
            await wait_stored(bot, f"private:{SHE}", 2)
            yield Talk(bot, client, model)


async def test_reading_that_takes_too_long(talk: Talk) -> None:
    await talk.order("占住")
    prompt, seconds = await talk.ask()
    assert "橘子" not in prompt
    assert LIMIT <= seconds < LIMIT + SLACK
    await talk.order("放开")
    assert "最近一次回复没有记忆：读记忆超过了 3 秒" in await talk.status()
    await talk.healed()


async def test_a_database_that_takes_nothing(talk: Talk) -> None:
    await talk.order("只读")
    prompt, seconds = await talk.ask(group=True)
    assert "你叫小忆" in prompt
    assert seconds < LIMIT + SLACK
    status = await talk.status()
    assert "readonly" in status
    await talk.order("可写")
    await talk.healed()


async def test_a_database_that_another_process_holds(talk: Talk) -> None:
    with closing(sqlite3.connect(talk.bot.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for group in (True, False, False):
            prompt, seconds = await talk.ask(group=group)
            assert "你叫小忆" in prompt
            assert seconds < LIMIT + SLACK
        status = await talk.status()
        other.execute("ROLLBACK")
    assert "数据库正被另一个进程占用" in status
    await talk.healed()


async def test_a_database_that_is_gone(talk: Talk) -> None:
    file = talk.bot.database
    aside = file.with_suffix(".aside")
    file.rename(aside)
    file.write_bytes(b"not a database")
    prompt, seconds = await talk.ask()
    assert "你叫小忆" in prompt
    assert seconds < LIMIT + SLACK
    await talk.order("看一眼")
    assert "被移走或换掉了" in await talk.status()
    aside.rename(file)
    await talk.order("看一眼")
    await talk.healed()


async def test_a_memory_that_is_switched_off(new_bot: BotMaker, model: ModelServer) -> None:
    settings = SETTINGS | {"NIANLUN__RECALL_BUDGET": "0", "NIANLUN__HISTORY_MESSAGES": "6"}
    settings |= {"NIANLUN__DISABLED_CHATS": f'["group:{GROUP}"]', "NIANLUN__REPLY_TOOLS": "false"}
    bot = await new_bot(settings, model=model).start()
    async with OneBotClient(bot.port) as client:
        talk = Talk(bot, client, model)
        at_bot = [mention(client.self_id), text("在吗")]
        await client.group_message(at_bot, SHE, role="owner", group_id=GROUP)
        prompt, seconds = await talk.ask()
        assert "【这句话让你想起】" not in prompt
        assert seconds < SLACK
        status = await talk.status()
        assert "最近的错误：没有" in status
        assert "没想起旧事" not in status
        assert await client.stays_silent(0.3, GROUP)
        assert not bot.query("SELECT 1 FROM nianlun_chat WHERE kind = 'group'")


async def test_a_database_that_is_damaged(talk: Talk) -> None:
    """The last one: nothing mends this."""
    bot = talk.bot
    await talk.ask(group=True)
    with closing(sqlite3.connect(bot.database)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with bot.database.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    for group in (False, True):
        prompt, seconds = await talk.ask(group=group)
        assert "你叫小忆" in prompt
        assert seconds < LIMIT + SLACK
        assert "malformed" in await talk.status(group=group)
