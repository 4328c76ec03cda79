"""One message, one row: whatever the platform does to ids, order, repetition and text."""

from __future__ import annotations

import time

import pytest

from tests.e2e.checks import stored, wait_stored
from tests.support.bot_process import BotProcess
from tests.support.onebot_client import Echo, OneBotClient
from tests.support.onebot_platform import ApiFailure, reply, text


async def end_of(bot: BotProcess, client: OneBotClient, group: int, count: int) -> list[str]:
    """Say one thing more, and return the texts of all before it once that one is stored."""
    await client.group_message("完", group_id=group)
    rows = await wait_stored(bot, f"group:{group}", count + 1)
    return [row.text for row in rows if row.text != "完"]


async def test_a_redelivery_is_the_same_message(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    said = await client.group_message("只说一次", group_id=201)
    await wait_stored(shared_bot, "group:201", 1)
    await client.emit(said)
    await client.emit(said | {"sender": said["sender"] | {"card": "改过的名片"}})
    assert await end_of(shared_bot, client, 201, 1) == ["只说一次"]


@pytest.mark.parametrize(("echo", "group"), [("before", 202), ("after", 203)])
async def test_an_own_message_that_is_also_reported(
    shared_bot: BotProcess, client: OneBotClient, echo: Echo, group: int
) -> None:
    client.echo = echo
    await client.group_message("/记忆 帮助", group_id=group, role="owner")
    await client.wait_for_send(group)
    await end_of(shared_bot, client, group, 2)
    rows = stored(shared_bot, f"group:{group}")
    assert [row.user_id for row in rows] == ["10010", "me", "10010"]
    assert (rows[1].via, rows[1].skipped) == ("nianlun", "command")


async def test_a_line_typed_on_another_device_is_the_bots_own(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    said = await client.group_message("我在手机上说的", client.self_id, "小忆", group_id=204)
    sent = said | {"post_type": "message_sent", "message_id": 5150, "target_id": 204}
    await client.emit(sent)
    await end_of(shared_bot, client, 204, 2)
    assert {row.user_id for row in stored(shared_bot, "group:204")} == {"me", "10010"}


async def test_a_slow_quotation_arrives_late_but_once(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    now = int(time.time())
    first = await client.group_message("原话", group_id=205, at=now - 30)
    await wait_stored(shared_bot, "group:205", 1)
    client.delays["get_msg"] = 0.6
    quoting = [reply(first["message_id"]), text("先说的")]
    await client.group_message(quoting, group_id=205, at=now - 20)
    await client.group_message("后说的", group_id=205, at=now - 10)
    await wait_stored(shared_bot, "group:205", 3)
    rows = await shared_bot.export_rows("group:205", "message")
    assert sorted(row["text"] for row in rows) == sorted(["原话", "先说的", "后说的"])
    in_time = sorted(rows, key=lambda row: row["time"])
    assert [row["text"] for row in in_time] == ["原话", "先说的", "后说的"]
    assert in_time[1]["reply_to"] == in_time[0]["seq"]


async def test_a_quotation_that_cannot_be_fetched_keeps_its_target(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    first = await client.group_message("原话", group_id=206)
    await wait_stored(shared_bot, "group:206", 1)
    client.failures["get_msg"] = ApiFailure(1200, "消息不存在")
    await client.group_message([reply(first["message_id"]), text("说得对")], group_id=206)
    await wait_stored(shared_bot, "group:206", 2)
    rows = await shared_bot.export_rows("group:206", "message")
    assert (rows[1]["text"], rows[1]["reply_to"]) == ("说得对", 1)


@pytest.mark.parametrize(
    ("message_id", "group"),
    [
        (-294283545, 211),
        (-(2**31), 212),
        (7336105950764948274, 214),
        ("1795973239489", 215),
        ("AbC_9", 216),
    ],
)
async def test_any_id_will_do(
    shared_bot: BotProcess, client: OneBotClient, message_id: int | str, group: int
) -> None:
    said = await client.group_message("一句话", group_id=group, message_id=message_id)
    await client.emit(said)
    await end_of(shared_bot, client, group, 1)
    rows = stored(shared_bot, f"group:{group}")
    assert [row.text for row in rows] == ["一句话", "完"]
    assert rows[0].message_id == str(message_id)


async def test_ids_collide_between_chats_and_over_time(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    now = int(time.time())
    for group in (221, 222):
        await client.group_message(f"在 {group} 说", group_id=group, message_id=5, at=now - 9)
    await client.group_message("重启之后", group_id=221, message_id=5, at=now - 3)
    await client.group_message("别人", 20002, "小鹿", group_id=221, message_id=5, at=now - 3)
    await client.private_message("私下说", message_id=5, at=now - 9, user_id=221)
    rows = await wait_stored(shared_bot, "group:221", 3)
    assert {row.text for row in rows} == {"在 221 说", "重启之后", "别人"}
    assert await end_of(shared_bot, client, 222, 1) == ["在 222 说"]
    private = await wait_stored(shared_bot, "private:221", 1)
    assert [row.text for row in private if row.user_id != "me"] == ["私下说"]


async def test_two_accounts_in_one_group_keep_their_own_rows(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    async with OneBotClient(shared_bot.port, self_id=10001) as other:
        now = time.time()
        await client.group_message("大家好", group_id=231, message_id=7, at=now)
        await other.group_message("大家好", group_id=231, message_id=7, at=now)
        assert len(await wait_stored(shared_bot, "group:231", 2)) == 2
    for account in (client.self_id, 10001):
        rows = await shared_bot.export_rows(f"{account}/group:231", "message")
        assert [(row["seq"], row["text"]) for row in rows] == [(1, "大家好")]


@pytest.mark.parametrize(
    ("said", "kept", "group"),
    [
        ("前\ud800后", ("前", "后"), 241),
        ("前\x00后", ("前", "后"), 242),
        ("一行\n## 23:59\u2028又一行", ("一行", "## 23:59", "又一行"), 243),
        ("{MEMORY} {0} %s $& \\1", ("{MEMORY} {0} %s $& \\1",), 244),
        ("\u202e反的\u200b", ("反的",), 245),
        ("长" * 20000, ("长" * 100,), 246),
    ],
)
async def test_any_text_will_do(
    shared_bot: BotProcess, client: OneBotClient, said: str, kept: tuple[str, ...], group: int
) -> None:
    event = await client.group_message(said, name=said[:40], group_id=group)
    await client.emit(event)
    await end_of(shared_bot, client, group, 1)
    rows = await shared_bot.export_rows(f"group:{group}", "message")
    assert len(rows) == 2
    for part in kept:
        assert part in rows[0]["text"]


async def test_an_event_of_unusual_shape_is_still_a_message(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    said = await client.group_message("普通", group_id=251)
    odd = said | {"message_id": 251251, "real_seq": "40002"}
    await client.emit(odd | {"sender": said["sender"] | {"level": 3}, "anonymous": {}})
    assert await end_of(shared_bot, client, 251, 2) == ["普通", "普通"]


async def test_a_thousand_at_once(shared_bot: BotProcess, client: OneBotClient) -> None:
    for number in range(1000):
        await client.group_message(f"{number}", 10010 + number % 7, group_id=261)
    rows = await wait_stored(shared_bot, "group:261", 1000, within=30)
    assert [row.text for row in rows] == [f"{number}" for number in range(1000)]
    assert [row.seq for row in rows] == list(range(1, 1001))


async def test_a_withdrawn_message_is_masked(shared_bot: BotProcess, client: OneBotClient) -> None:
    said = await client.group_message("我的密码是 hunter2", group_id=271)
    await client.group_message("快撤回", 20002, "小鹿", group_id=271)
    await wait_stored(shared_bot, "group:271", 2)
    await client.recall(said, operator_id=20002)
    private = await client.private_message("说错了 hunter2", user_id=271)
    await wait_stored(shared_bot, "private:271", 1)
    await client.recall(private)
    await client.emit(said)
    await end_of(shared_bot, client, 271, 2)
    for chat in ("group:271", "private:271"):
        exported = await shared_bot.export(chat)
        assert "hunter2" not in repr(exported)
        first = next(row for row in exported if row["type"] == "message")
        assert first["withdrawn"] is True
    skipped = await shared_bot.export_rows("group:271", "skipped")
    assert [(row["from_seq"], row["to_seq"], row["reason"]) for row in skipped] == [
        (1, 1, "withdrawn")
    ]


async def test_a_withdrawal_that_comes_before_its_message(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    now = int(time.time())
    said = {"user_id": 10010, "group_id": 281, "message_id": 8150}
    await client.recall(said)
    await client.group_message("太快了 hunter2", group_id=281, message_id=8150, at=now)
    await end_of(shared_bot, client, 281, 1)
    assert "hunter2" not in repr(await shared_bot.export("group:281"))
