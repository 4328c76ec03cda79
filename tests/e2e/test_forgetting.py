"""Taken back, forgotten, not to be recorded: over the wire, down to the bytes of the files."""

from __future__ import annotations

from contextlib import closing
import re
import sqlite3
import time

from tests.e2e.checks import (
    asked,
    calls_for_notes,
    check_cover,
    of_type,
    stored,
    until,
    wait_stored,
)
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import CLEAN_EXIT, BotProcess
from tests.support.model_server import ModelServer, helpful
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import Payload, mention, text

GROUP = 742100777
CHAT = f"group:{GROUP}"
SHE, NAME = 1620007777, "小蓝鲸"
SECRET = "口令是芝麻开门三百遍"
SOON = 15.0


async def say(client: OneBotClient, words: str | list[Payload], **more: float) -> Payload:
    return await client.group_message(words, SHE, NAME, group_id=GROUP, at=more.get("at"))


async def others(client: OneBotClient, count: int = 8) -> None:
    for number in range(count):
        await client.group_message(f"第 {number} 句，说说爬山", 10010, "阿澈", group_id=GROUP)


def files_with(bot: BotProcess, words: str) -> set[str]:
    files = (path for path in bot.database.parent.rglob("*") if path.is_file())
    return {path.name for path in files if words.encode() in path.read_bytes()}


async def gone(bot: BotProcess, *words: str) -> None:
    """Wait until no file of the data folder has these words any more."""
    await until(lambda: not any(files_with(bot, word) for word in words), SOON, every=0.1)


async def noted(bot: BotProcess, client: OneBotClient) -> Payload:
    """A secret that has gone into notes."""
    told = await say(client, SECRET)
    await others(client)
    await wait_stored(bot, CHAT, 9)
    await bot.cli_ok("rollup", "--chat", CHAT)
    written = [row for row in await bot.export(CHAT) if row["type"] == "activity"]
    assert any(SECRET in row["text"] for row in written)
    return told


async def prompt(client: OneBotClient, model: ModelServer) -> str:
    """What the model is shown for a reply now."""
    call = [mention(client.self_id), text(" 还记得什么？")]
    await client.group_message(call, 10010, "阿澈", group_id=GROUP)
    await client.wait_for_send(GROUP)
    return asked([one for one in model.requests if not calls_for_notes(one)][-1])


async def test_a_withdrawn_text_leaves_the_files_of_a_running_bot(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(helpful(SECRET))
    bot = await new_bot(model=model).start()
    async with OneBotClient(bot.port) as client:
        told = await noted(bot, client)
        with closing(sqlite3.connect(bot.database, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM nianlun_message").fetchone()
            await client.recall(told)
            await until(lambda: not any(row.text == SECRET for row in stored(bot, CHAT)))
            assert files_with(bot, SECRET)
            reader.execute("COMMIT")
        await gone(bot, SECRET)
        await bot.cli_ok("rollup", "--chat", CHAT)
        rows = await bot.export(CHAT)
        check_cover(rows)
        assert SECRET not in repr(rows)
        assert all(row["text"] for row in of_type(rows, "activity"))
        assert SECRET not in await prompt(client, model)
        assert files_with(bot, SECRET) == set()


async def test_a_member_is_forgotten_and_goes_on(new_bot: BotMaker, model: ModelServer) -> None:
    model.script(helpful(SECRET))
    bot = await new_bot(model=model).start()
    async with OneBotClient(bot.port) as client:
        told = await noted(bot, client)
        await say(client, "还没写进日记的")
        await say(client, "/记忆 忘记我")
        question = (await client.wait_for_send(GROUP)).text
        found = re.search(r"/记忆 忘记我 ([0-9]{6})$", question)
        assert found is not None
        await client.group_message(f"/记忆 忘记我 {found[1]}", 10010, "阿澈", group_id=GROUP)
        assert "确认码不对" in (await client.wait_for_send(GROUP)).text
        await say(client, f"/记忆 忘记我 {found[1]}")
        answer = (await client.wait_for_send(GROUP)).text
        assert "已经忘记：4 条消息，1 个名字" in answer
        await gone(bot, SECRET, NAME, "还没写进日记的")
        assert SECRET not in await prompt(client, model)

        assert await bot.terminate() in CLEAN_EXIT
    await bot.start()
    async with OneBotClient(bot.port) as client:
        await client.emit(told | {"message_id": 77001})
        await client.emit(told)
        await say(client, "我还在", at=time.time() + 2)
        await until(lambda: any(row.text == "我还在" for row in stored(bot, CHAT)))
        await bot.cli_ok("rollup", "--chat", CHAT)
        rows = await bot.export(CHAT)
        check_cover(rows)
        assert SECRET not in repr(rows)
        hers = [row for row in of_type(rows, "message") if row["user_id"] == str(SHE)]
        assert [row["text"] for row in hers if row["text"]] == ["我还在"]
        await gone(bot, SECRET)


async def test_an_opted_out_member_is_answered_and_not_recorded(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(lambda request: f"你说的是{SECRET}吧" if SECRET in asked(request) else "好呀")
    bot = await new_bot(model=model).start()
    async with OneBotClient(bot.port) as client:
        await say(client, "早上好")
        await wait_stored(bot, CHAT, 1)
        await say(client, "/记忆 别记我")
        assert "不记你在这里说的话" in (await client.wait_for_send(GROUP)).text
        await say(client, "路过")
        await say(client, [mention(client.self_id), text(SECRET)])
        assert SECRET in (await client.wait_for_send(GROUP)).text
        assert SECRET in asked(model.requests[-1])
        await wait_stored(bot, CHAT, 6)
        rows = stored(bot, CHAT)
        assert [(row.text, row.skipped) for row in rows if row.user_id == str(SHE)] == [
            ("", "opted_out"),
            ("/记忆 别记我", "command"),
            ("", "opted_out"),
            ("", "opted_out"),
        ]
        assert rows[-1].user_id == "me"
        assert (rows[-1].text, rows[-1].skipped) == ("", "opted_out")
        assert SECRET not in await prompt(client, model)
        await gone(bot, SECRET, "早上好", "路过")

        await say(client, "/记忆 可以记我")
        assert "又会记你说的话" in (await client.wait_for_send(GROUP)).text
        await say(client, "我回来了")
        await until(lambda: any(row.text == "我回来了" for row in stored(bot, CHAT)))


async def test_a_private_peer_is_forgotten(shared_bot: BotProcess, client: OneBotClient) -> None:
    await client.private_message(f"私下说{SECRET}", user_id=377)
    await wait_stored(shared_bot, "private:377", 1)
    await client.private_message("/记忆 忘记我", user_id=377)
    while "忘记我" not in (question := (await client.wait_for_send(377)).text):
        pass
    await client.private_message(f"/记忆 忘记我 {question.rpartition(' ')[2]}", user_id=377)
    assert "已经忘记" in (await client.wait_for_send(377)).text
    await gone(shared_bot, SECRET)
    assert all(not row.text for row in stored(shared_bot, "private:377")[:-1])
