"""What is said while the bot is away: fetched once each, or recorded as a gap."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
import json
import sqlite3
import time

import pytest

from tests.e2e.checks import Stored, check_cover, stored, until, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess
from tests.support.model_server import ModelServer
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_history import History, Kind
from tests.support.onebot_platform import text

GROUP = 501
CHAT = f"group:{GROUP}"
CONNECTED = "SELECT key FROM nianlun_property WHERE key LIKE 'connected:%'"
AWAY = 1800
"""Seconds that the bot was away in these tests, by the times of what was said."""


def write(bot: BotProcess, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(bot.database, timeout=5)) as connection, connection:
        connection.execute(sql, values)


def set_back(bot: BotProcess, seconds: float) -> None:
    """As if the bot, which does not run, had been stopped so long ago."""
    at = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
    write(bot, "UPDATE nianlun_property SET value = ? WHERE key LIKE 'alive:%'", at)


def gaps(bot: BotProcess) -> list[tuple[float, float]]:
    """Begin and end of each gap, in seconds before now."""

    def ago(at: str) -> float:
        return time.time() - datetime.fromisoformat(at).timestamp()

    rows = bot.query("SELECT begins, ends FROM nianlun_gap ORDER BY begins")
    return [(ago(begins), ago(ends)) for begins, ends in rows]


def history_calls(client: OneBotClient) -> int:
    return len([call for call in client.calls if "history" in call.action])


async def back(bot: BotProcess, client: OneBotClient) -> None:
    """Start the bot if need be, connect, and wait until it has caught up as far as it can."""
    if not bot.running:
        await bot.start()
    calls = history_calls(client)
    await client.connect()
    await until(lambda: history_calls(client) > calls)
    behind = "SELECT key FROM nianlun_property WHERE key LIKE 'behind:%'"
    await until(lambda: not bot.query(behind), within=20)


async def before(bot: BotProcess, client: OneBotClient) -> float:
    """The bot hears two lines and is stopped; returns the Unix time at which it then left."""
    left = time.time() - AWAY
    for number, seconds in ((1, 50), (2, 40)):
        await client.group_message(f"之前 {number}", group_id=GROUP, at=left - seconds)
    await wait_stored(bot, CHAT, 2)
    await bot.terminate()
    await client.close()
    set_back(bot, AWAY)
    return left


def say(client: OneBotClient, left: float, count: int = 30) -> list[str]:
    """So many lines are said while the bot is away."""
    lines = [f"离线 {number}" for number in range(count)]
    for number, line in enumerate(lines):
        by = 10010 + number % 3
        client.missed(line, by, at=left + 60 + number, peer=GROUP)
    return lines


def in_order(rows: list[Stored]) -> list[str]:
    return [row.text for row in sorted(rows, key=lambda row: (row.time, row.seq))]


@pytest.mark.parametrize(
    ("kind", "renumbered"),
    [("napcat", False), ("napcat", True), ("llbot", True), ("lagrange", True), ("gocq", False)],
)
async def test_what_was_missed_is_there_once_and_in_order(
    new_bot: BotMaker, kind: Kind, renumbered: bool
) -> None:
    bot = await new_bot().start()
    client = await OneBotClient(bot.port).connect()
    client.history = History(kind, renumbered=renumbered)
    left = await before(bot, client)
    lines = say(client, left)
    await back(bot, client)
    await client.group_message("之后", group_id=GROUP)
    rows = await wait_stored(bot, CHAT, 33)
    assert in_order(rows) == ["之前 1", "之前 2", *lines, "之后"]
    assert [row.seq for row in rows] == list(range(1, 34))
    assert {row.text for row in rows if row.user_id == "10011"} == set(lines[1::3])
    assert gaps(bot) == []
    assert client.sent == []
    await client.close()


async def test_pages_overlap_and_a_second_connection_finds_nothing_new(new_bot: BotMaker) -> None:
    bot = await new_bot().start()
    client = await OneBotClient(bot.port).connect()
    client.history = History()
    left = await before(bot, client)
    lines = say(client, left, 130)
    await back(bot, client)
    rows = await wait_stored(bot, CHAT, 132)
    assert in_order(rows)[2:] == lines
    await client.close()
    client.history = History(renumbered=True)
    await back(bot, client)
    assert len(stored(bot, CHAT)) == 132
    await client.close()
    await bot.cli_ok("rollup", "--offline")
    check_cover(await bot.export(CHAT))


async def test_private_chats_own_lines_and_commands(new_bot: BotMaker, model: ModelServer) -> None:
    bot = await new_bot({"SUPERUSERS": '["10010"]'}, model=model).start()
    client = await OneBotClient(bot.port).connect()
    client.history = History()
    left = time.time() - AWAY
    await client.private_message("我自己说的", client.self_id, "小忆", at=left - 50, peer=10010)
    await wait_stored(bot, "private:10010", 1)
    await bot.terminate()
    await client.close()
    set_back(bot, AWAY)
    client.missed("/记忆 整理", at=left + 60, peer=10010, private=True)
    client.missed("手机上说的", client.self_id, "小忆", at=left + 70, peer=10010, private=True)
    client.missed("你在做什么", at=left + 80, peer=10010, private=True)
    await back(bot, client)
    rows = stored(bot, "private:10010")
    found = sorted((row.text, row.user_id, row.skipped) for row in rows)
    assert found == sorted(
        [
            ("我自己说的", "me", None),
            ("/记忆 整理", "10010", "command"),
            ("手机上说的", "me", None),
            ("你在做什么", "10010", None),
        ]
    )
    assert await client.stays_silent(1)
    assert client.sent == []
    await client.close()


async def test_without_a_history_there_is_a_gap_and_it_is_shown(new_bot: BotMaker) -> None:
    bot = await new_bot({"SUPERUSERS": '["10010"]'}).start()
    client = await OneBotClient(bot.port).connect()
    assert await until(lambda: bot.query(CONNECTED))
    left = await before(bot, client)
    assert bot.query(CONNECTED) == []
    say(client, left)
    await back(bot, client)
    ((begins, ends),) = gaps(bot)
    assert begins == pytest.approx(time.time() - left, abs=2)
    assert 0 < ends < 15
    assert history_calls(client) == 1
    (row,) = await bot.export_rows(CHAT, "gap")
    assert row["from"] < row["to"]
    report = json.loads(await bot.cli_ok("doctor", "--json"))
    assert report["chats"][0]["gaps"] == 1
    assert len(report["chats"][0]["last_gap"]) == 2
    shown = await bot.cli_ok("doctor")
    assert "缺口 1（最近 " in shown
    assert f"✓ OneBot：{client.self_id} 连着" in shown
    await client.group_message("/记忆 状态", group_id=GROUP)
    assert "缺口 1 处，最近一处 20" in (await client.wait_for_send(GROUP)).text
    bot.kill()
    assert f"· OneBot：{client.self_id} 最近一次在线" in await bot.cli_ok("doctor")
    await client.close()


@pytest.mark.parametrize("garbage", ["", {"messages": ["好", 7, None, {"time": "昨天"}]}])
async def test_garbage_is_no_history(new_bot: BotMaker, garbage: object) -> None:
    bot = await new_bot().start()
    client = await OneBotClient(bot.port).connect()
    await before(bot, client)
    client.answers["get_group_msg_history"] = garbage
    await back(bot, client)
    assert len(stored(bot, CHAT)) == 2
    assert len(gaps(bot)) == 1
    assert "Traceback" not in bot.output
    await client.close()


async def test_a_history_that_hangs_delays_nobody(new_bot: BotMaker, model: ModelServer) -> None:
    bot = await new_bot(model=model).start()
    client = await OneBotClient(bot.port).connect()
    client.history = History()
    left = await before(bot, client)
    say(client, left)
    client.delays["get_group_msg_history"] = 60
    await bot.start()
    await client.connect()
    await until(lambda: history_calls(client))
    began = time.monotonic()
    await client.group_message([text("小忆在吗")], group_id=GROUP)
    await client.private_message("在吗", user_id=9)
    await client.wait_for_send(9)
    assert time.monotonic() - began < 3
    began = time.monotonic()
    await bot.terminate()
    assert time.monotonic() - began < 5
    assert len(gaps(bot)) == 1
    client.delays.clear()
    await client.close()
    await back(bot, client)
    assert len([row for row in stored(bot, CHAT) if row.text.startswith("离线")]) == 30
    assert gaps(bot) == []
    await client.close()


async def test_what_the_history_lacks_stays_a_gap(new_bot: BotMaker) -> None:
    bot = await new_bot().start()
    client = await OneBotClient(bot.port).connect()
    client.history = History(kept=10)
    left = await before(bot, client)
    say(client, left)
    await back(bot, client)
    rows = await wait_stored(bot, CHAT, 12)
    assert in_order(rows)[2:] == [f"离线 {number}" for number in range(20, 30)]
    ((begins, ends),) = gaps(bot)
    now = time.time()
    assert begins == pytest.approx(now - left, abs=2)
    assert ends == pytest.approx(now - (left + 80), abs=2)
    await client.close()


async def test_what_was_taken_back_does_not_come_in_again(new_bot: BotMaker) -> None:
    bot = await new_bot().start()
    client = await OneBotClient(bot.port).connect()
    left = time.time() - AWAY
    known = await client.group_message("说错了 hunter1", group_id=GROUP, at=left - 50)
    later = await client.group_message("说错了 hunter2", group_id=GROUP, at=left - 40)
    await wait_stored(bot, CHAT, 2)
    await client.recall(known)
    await until(lambda: [row.skipped for row in stored(bot, CHAT)].count("withdrawn") == 1)
    await bot.terminate()
    await client.close()
    set_back(bot, AWAY)
    missed = client.missed("说错了 hunter3", at=left + 60, peer=GROUP)
    client.missed("没什么", at=left + 61, peer=GROUP)
    deleted = {later["message_id"], missed["message_id"]}
    client.history = History("llbot", renumbered=True, deleted=deleted)
    await back(bot, client)
    rows = await wait_stored(bot, CHAT, 4)
    assert [row.text for row in rows] == ["", "", "", "没什么"]
    assert [row["withdrawn"] for row in await bot.export_rows(CHAT, "message")] == [
        True,
        True,
        True,
        False,
    ]
    await client.close()
