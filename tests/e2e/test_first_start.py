"""A bot that somebody has just installed: no `.env`, no key."""

from __future__ import annotations

from collections.abc import AsyncIterator
import re

import pytest

from tests.e2e.checks import until, wait_stored
from tests.support.bot_process import BotProcess
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import mention, text


@pytest.fixture(scope="module")
async def fresh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BotProcess]:
    async with BotProcess(tmp_path_factory.mktemp("fresh")) as bot:
        yield bot


async def test_it_says_what_one_has_to_know(fresh: BotProcess) -> None:
    assert fresh.ready_after is not None
    shown = await until(lambda: fresh.output if "整理" in fresh.output else "")
    assert str(fresh.database) in shown
    assert f"ws://127.0.0.1:{fresh.port}/onebot/v11/ws" in shown
    writer = [line for line in shown.splitlines() if "离线" in line]
    assert len(writer) == 1
    assert re.search(r"整理.*\d{1,2}:\d{2}", shown)


async def test_it_keeps_everything_in_its_folder(fresh: BotProcess) -> None:
    assert fresh.database.is_relative_to(fresh.folder / "data" / "nonebot_plugin_nianlun")
    left = {path.name for path in fresh.folder.iterdir() if not path.name.startswith("__")}
    assert left == {"bot.py", "pyproject.toml", "plugins", "data", "output.log"}


async def test_without_a_key_it_says_so_once_and_goes_on_writing(fresh: BotProcess) -> None:
    async with OneBotClient(fresh.port) as client:
        await client.group_message([mention(client.self_id), text(" 在吗")], group_id=101)
        answer = await client.wait_for_send(101)
        assert "OPENAI_API_KEY" in answer.text
        assert "都记着" in answer.text
        await client.group_message([mention(client.self_id), text(" 喂")], group_id=101)
        assert await client.stays_silent(0.5, 101)
        for number in range(50):
            await client.group_message(f"第 {number} 句话", group_id=101)
        await wait_stored(fresh, "group:101", 53)
        for wish, group_id in (("别记我", 102), ("暂停", 103)):
            await client.group_message("早", group_id=group_id)
            await client.group_message(f"/记忆{wish}", group_id=group_id, role="admin")
            await client.wait_for_send(group_id)
            await client.group_message([mention(client.self_id), text(" 在吗")], group_id=group_id)
            answer = await client.wait_for_send(group_id)
            assert "OPENAI_API_KEY" in answer.text
            assert "记" not in answer.text
    # Owed work is done by the clock and on every connection; the latter is sooner here.
    async with OneBotClient(fresh.port):
        writers = await until(lambda: fresh.query("SELECT writer FROM nianlun_activity"))
        assert set(writers) == {("offline",)}
    # What the program says of itself is no part of what the character remembers.
    (chat_id,) = fresh.query("SELECT id FROM nianlun_chat WHERE peer_id = '101'")[0]
    mine = f"SELECT skipped FROM nianlun_message WHERE user_id = 'me' AND chat_id = {chat_id}"
    assert fresh.query(mine) == [("command",)]
    (noted,) = fresh.query("SELECT group_concat(text) FROM nianlun_activity")[0]
    assert "还不会说话" not in noted
