"""The commands over the wire: who may, how long answers go out, and how they are recorded."""

from __future__ import annotations

import pytest

from tests.e2e.checks import stored, until, wait_stored
from tests.support.bot_process import BotProcess
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import ApiFailure

NOTES = 9


@pytest.fixture(scope="module")
async def full_day(shared_bot: BotProcess, shared_client: OneBotClient) -> int:
    """A group with so many notes of today that a list of them is long."""
    for number in range(NOTES):
        await shared_client.group_message(f"今天爬了第 {number} 座山", group_id=341)
        await wait_stored(shared_bot, "group:341", 3 * number + 1)
        await shared_client.group_message("/记忆 整理", role="owner", group_id=341)
        await shared_client.wait_for_send(341)
    return 341


async def test_the_owner_asks_for_the_status(shared_bot: BotProcess, client: OneBotClient) -> None:
    for number in range(3):
        await client.group_message(f"第 {number} 句", group_id=301)
    await wait_stored(shared_bot, "group:301", 3)
    await client.group_message("/记忆 状态", role="owner", group_id=301)
    answer = await client.wait_for_send(301)
    assert "离线" in answer.text
    assert "待写 3 条" in answer.text


@pytest.mark.parametrize(
    ("role", "word", "group", "refused"),
    [
        ("member", "状态", 311, True),
        ("member", "整理", 312, True),
        ("member", "今天", 313, False),
        ("admin", "整理", 314, False),
    ],
)
async def test_who_may(
    client: OneBotClient, role: str, word: str, group: int, refused: bool
) -> None:
    await client.group_message(f"/记忆 {word}", role=role, group_id=group)
    answer = await client.wait_for_send(group)
    assert ("只有群主" in answer.text) is refused


async def test_the_peer_of_a_private_chat_may_do_everything(client: OneBotClient) -> None:
    await client.private_message("/记忆 整理", user_id=321)
    assert "只有群主" not in (await client.wait_for_send(321)).text
    await client.private_message("/记忆 状态", user_id=321)
    assert "离线" in (await client.wait_for_send(321)).text


async def test_tidying_writes_what_is_pending(shared_bot: BotProcess, client: OneBotClient) -> None:
    await client.group_message("周六去爬山吧", group_id=331)
    await client.group_message("好，七点在地铁口见", 20002, "小鹿", group_id=331)
    await wait_stored(shared_bot, "group:331", 2)
    await client.group_message("/记忆 整理", role="owner", group_id=331)
    await client.wait_for_send(331)
    await client.group_message("/记忆 今天", group_id=331)
    assert "爬山" in (await client.wait_for_send(331)).text
    await client.group_message("/记忆 核对", role="admin", group_id=331)
    assert "没有问题" in (await client.wait_for_send(331)).text


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_long_answer(full_day: int, client: OneBotClient, refuses: bool) -> None:
    if refuses:
        client.failures["send_group_forward_msg"] = ApiFailure(1200, "发送合并转发失败")
    await client.group_message("/记忆 今天", group_id=full_day)
    answer = await client.wait_for_send(full_day)
    assert answer.is_forward is not refuses
    for number in range(NOTES):
        assert f"第 {number} 座山" in answer.text
    parts = [*answer.segments, *(part for node in answer.nodes for part in node["data"]["content"])]
    assert {part["type"] for part in parts} == {"text"}
    assert await client.stays_silent(0.2, full_day)


async def test_commands_and_answers_are_recorded_and_skipped(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    await client.group_message("早上好", group_id=351)
    await wait_stored(shared_bot, "group:351", 1)
    await client.group_message("/记忆 今天", group_id=351)
    await client.wait_for_send(351)
    await client.group_message("/记忆 没有这个", group_id=351)
    await client.wait_for_send(351)
    await client.group_message("/记忆力不好怎么办", group_id=351)
    await wait_stored(shared_bot, "group:351", 6)
    rows = stored(shared_bot, "group:351")
    skipped = sorted((row.user_id, row.skipped) for row in rows if row.skipped)
    assert skipped == [("10010", "command")] * 2 + [("me", "command")] * 2
    assert {row.text for row in rows if not row.skipped} == {"早上好", "/记忆力不好怎么办"}


async def test_a_refused_answer_leaves_the_bot_alive(client: OneBotClient) -> None:
    for action in ("send_msg", "send_group_msg", "send_group_forward_msg"):
        client.failures[action] = ApiFailure(1200, "EventChecker Failed")
    await client.group_message("/记忆 今天", group_id=361)
    await until(lambda: any(call.params.get("group_id") == 361 for call in client.calls))
    client.failures.clear()
    await client.group_message("/记忆 今天", group_id=361)
    await client.wait_for_send(361)
