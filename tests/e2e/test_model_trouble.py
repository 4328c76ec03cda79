"""A model that fails costs a reply at most, and no memory."""

from __future__ import annotations

import asyncio
from contextlib import closing
import sqlite3

import pytest

from plugins.nonebot_plugin_nianlun.llm.breaker import FAILURES
from tests.e2e.checks import (
    asked,
    calls_for_notes,
    check_cover,
    check_failure,
    of_type,
    stored,
    until,
    wait_stored,
)
from tests.e2e.conftest import BotMaker
from tests.support.model_server import (
    HTML,
    Delay,
    Disconnect,
    ModelServer,
    Reply,
    completion,
    helpful_responder,
)
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import mention, text

_OWN = "SELECT skipped, count(*) FROM nianlun_message WHERE user_id = 'me' GROUP BY skipped"
BROKEN: Reply = (500, {}, '{"error": {"message": "secret upstream detail"}}')


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(BROKEN, id="server-error"),
        pytest.param(HTML, id="html"),
        pytest.param(Disconnect(), id="disconnect"),
        pytest.param(completion(""), id="empty"),
    ],
)
async def test_trouble_is_kept_from_the_memory(
    new_bot: BotMaker, model: ModelServer, trouble: Reply
) -> None:
    model.script(lambda _: trouble)
    bot = await new_bot({"NIANLUN__ACTIVITY_MESSAGES": "10"}, model=model).start()
    async with OneBotClient(bot.port) as client:
        for number in range(12):
            await client.group_message(f"第 {number} 句", group_id=1)
        await client.group_message([mention(client.self_id), text(" 在吗")], group_id=1)
        await until(lambda: [r for r in model.requests if "在吗" in asked(r)], within=15)
        answered = not await client.stays_silent(6, 1)
        assert await client.stays_silent(0.5, 1)
        for answer in client.sent:
            assert len(answer.text) <= 60
            assert "\n" not in answer.text
            for detail in ("500", "secret", "html", "Error", "OPENAI"):
                assert detail not in answer.text

        failed = await bot.cli("rollup")
        assert failed.returncode == 1
        check_failure(failed)
        assert len(await wait_stored(bot, "group:1", 13 + answered)) == 13 + answered
        assert not bot.query("SELECT 1 FROM nianlun_activity")
        assert not bot.query("SELECT 1 FROM nianlun_memory")

        model.script(helpful_responder)
        await bot.cli_ok("rollup")
        rows = await bot.export("group:1")
        check_cover(rows)
        assert {row["writer"] for row in of_type(rows, "activity")} == {"model"}


async def test_an_endpoint_that_is_down_is_left_alone_and_said_to_be(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(lambda _: (401, {}, "{}"))
    bot = await new_bot({"NIANLUN__ACTIVITY_MESSAGES": "100"}, model=model).start()
    async with OneBotClient(bot.port) as client:
        for group in range(1, 9):
            await client.group_message([mention(client.self_id), text(" 在吗")], group_id=group)
            # An excuse at once, whether the endpoint is asked or not.
            assert "走神" in (await client.wait_for_send(group)).text
        assert len(model.requests) == FAILURES
        await client.group_message("/记忆 状态", role="owner", group_id=8)
        answer = await client.wait_for_send(8)
        assert f"连续失败 {FAILURES} 次" in answer.text
        await until(lambda: bot.query(_OWN) == [("command", 9)])
    doctor = await bot.cli("doctor")
    assert doctor.returncode == 1
    assert f"连续失败 {FAILURES} 次" in doctor.stdout
    assert len(model.requests) == FAILURES


async def test_a_kill_while_the_model_writes_loses_nothing(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot({"NIANLUN__ACTIVITY_MESSAGES": "10"}, model=model).start()

    def answer_and_kill(request: dict[str, object]) -> Reply:
        bot.kill()
        return helpful_responder(request)

    model.script(answer_and_kill)
    async with OneBotClient(bot.port) as client:
        for number in range(10):
            await client.group_message(f"第 {number} 句", group_id=1)
        await wait_stored(bot, "group:1", 10)
    async with OneBotClient(bot.port):
        await until(lambda: not bot.running, within=15)
    model.script(helpful_responder)
    assert len(stored(bot, "group:1")) == 10
    with closing(sqlite3.connect(bot.database)) as connection, connection:
        # As if the time had passed for which the dead process had claimed the work.
        connection.execute("UPDATE nianlun_lease SET expires_at = '2020-01-01 00:00:00+00:00'")
    await bot.start()
    await until(lambda: bot.query("SELECT 1 FROM nianlun_activity"), within=15)
    await bot.cli_ok("rollup")
    rows = await bot.export("group:1")
    check_cover(rows)
    assert len(of_type(rows, "activity")) == 1


async def test_a_declined_window_is_not_asked_about_again(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(lambda _: '{"action": "decline"}')
    bot = await new_bot(model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message("嗯", group_id=1)
        await client.group_message("哦", group_id=1)
        await wait_stored(bot, "group:1", 2)
        await bot.cli_ok("rollup")
        before = len(model.requests)
        assert before == 1
        assert calls_for_notes(model.requests[0])
        await bot.cli_ok("rollup")
        assert len(model.requests) == before
    [skipped] = await bot.export_rows("group:1", "skipped")
    assert (skipped["from_seq"], skipped["to_seq"], skipped["reason"]) == (1, 2, "declined")


async def test_two_rollups_at_once_write_once(new_bot: BotMaker, model: ModelServer) -> None:
    model.script(lambda request: Delay(3, helpful_responder(request)))
    bot = await new_bot(model=model).start()
    async with OneBotClient(bot.port) as client:
        for number in range(20):
            await client.group_message(f"第 {number} 句", group_id=1)
        await wait_stored(bot, "group:1", 20)
        done = await asyncio.gather(bot.cli("rollup"), bot.cli("rollup"))
    rows = await bot.export("group:1")
    check_cover(rows)
    assert len(of_type(rows, "activity")) == 1
    assert bot.query("SELECT failures, last_error FROM nianlun_chat") == [(0, None)]
    assert [one.returncode for one in done] == [0, 0]


async def test_offline_on_request_asks_no_model(new_bot: BotMaker, model: ModelServer) -> None:
    model.script(helpful_responder)
    bot = await new_bot({"NIANLUN__ACTIVITY_MESSAGES": "500"}, model=model).start()
    async with OneBotClient(bot.port) as client:
        for number in range(12):
            await client.group_message(f"第 {number} 句，周六去爬山", group_id=1)
        await wait_stored(bot, "group:1", 12)
    assert "1 条活动" in await bot.cli_ok("rollup", "--offline")
    rows = await bot.export("group:1")
    check_cover(rows)
    assert {row["writer"] for row in of_type(rows, "activity")} == {"offline"}
    assert not [r for r in model.requests if calls_for_notes(r)]


async def test_what_was_written_offline_is_written_again_on_request(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(helpful_responder)
    bot = await new_bot({"NIANLUN__ACTIVITY_MESSAGES": "500"}, model=model).start()
    async with OneBotClient(bot.port) as client:
        for number in range(12):
            await client.group_message(f"第 {number} 句，周六去爬山", group_id=1)
        await wait_stored(bot, "group:1", 12)
    await bot.cli_ok("rollup", "--offline")
    [offline] = of_type(await bot.export("group:1"), "activity")
    assert "1 条活动" in await bot.cli_ok("rollup", "--rewrite", "--chat", "group:1")
    rows = await bot.export("group:1")
    check_cover(rows)
    [rewritten] = of_type(rows, "activity")
    assert (rewritten["id"], rewritten["writer"]) == (offline["id"], "model")
    kept = bot.query("SELECT text, writer FROM nianlun_note_version WHERE kind = 'activity'")
    assert kept == [(offline["text"], "offline")]
    assert (await bot.cli("rollup", "--offline", "--rewrite")).returncode == 2
