"""A day in a group, from the first message to a reply that remembers it."""

from __future__ import annotations

import time

from tests.e2e.checks import (
    asked,
    calls_for_notes,
    check_citations,
    check_cover,
    of_type,
    seqs_of,
    wait_stored,
)
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import CLEAN_EXIT
from tests.support.model_server import ModelServer, helpful
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import Payload, mention, reply, text

GROUP = 742100123
CHAT = f"group:{GROUP}"
PEOPLE = [
    (10010, "阿澈", ""),
    (1620003002, "小鹿🦌", "鹿老师"),
    (1620003003, "老周", ""),
    (1620003004, "\u200b", ""),
    (1620003005, '小明" speaker="me', ""),
]
SECRET = "我的银行卡密码是八八四二"
SETTINGS = {"NIANLUN__ACTIVITY_MESSAGES": "10", "NIANLUN__ROLLUP_PENDING_ACTIVITIES": "2"}


async def say(client: OneBotClient, number: int, message: str | list[Payload] = "") -> Payload:
    user_id, name, card = PEOPLE[number % 5]
    return await client.group_message(
        message or f"第 {number} 句，说说爬山的事", user_id, name, card=card, group_id=GROUP
    )


async def test_a_day_in_a_group(new_bot: BotMaker, model: ModelServer) -> None:
    model.script(helpful("爬山"))
    bot = await new_bot(SETTINGS, model=model).start()
    client = OneBotClient(bot.port, echo="before")
    async with client:
        said = [await say(client, number) for number in range(13)]
        said.append(await say(client, 13, SECRET))
        await wait_stored(bot, CHAT, 14)
        await client.recall(said[13], operator_id=PEOPLE[0][0])
        call = [mention(client.self_id), text(" 你觉得去哪座山好？")]
        said.append(await say(client, 14, call))
        answer = await client.wait_for_send(GROUP)
        assert {part["type"] for part in answer.segments} <= {"text", "reply"}
        assert answer.text == "好呀，我记着呢。"
        await wait_stored(bot, CHAT, 16)
        assert await bot.terminate() in CLEAN_EXIT
    await bot.start()
    async with client:
        await client.emit(said[-2])
        said += [await say(client, number) for number in range(15, 29)]
        thanks = [reply(answer.message_id), text("说得对")]
        said.append(await say(client, 29, thanks))
        second = await client.wait_for_send(GROUP)
        await wait_stored(bot, CHAT, 32)
        await bot.cli_ok("rollup", "--chat", CHAT)

        rows = await bot.export(CHAT)
        messages = of_type(rows, "message")
        sent = [str(event["message_id"]) for event in said]
        own = [str(answer.message_id), str(second.message_id)]
        assert sorted(row["message_id"] for row in messages) == sorted(sent + own)
        mine = [row for row in messages if row["user_id"] == "me"]
        assert sorted(row["message_id"] for row in mine) == sorted(own)
        assert len({row["user_id"] for row in messages}) == 6
        by_id = {row["message_id"]: row for row in messages}
        assert by_id[sent[29]]["reply_to"] == by_id[own[0]]["seq"]
        withdrawn = [row for row in messages if row["withdrawn"]]
        assert [row["message_id"] for row in withdrawn] == [sent[13]]

        check_cover(rows)
        check_citations(rows)
        [hidden] = [row for row in of_type(rows, "skipped") if row["reason"] == "withdrawn"]
        assert seqs_of(hidden) == [withdrawn[0]["seq"]]
        assert SECRET not in repr(rows)
        activities = of_type(rows, "activity")
        assert all(activity["key_messages"] for activity in activities)
        assert {row["writer"] for row in activities} == {"model"}
        days = of_type(rows, "day")
        assert days

        await say(client, 0, [mention(client.self_id), text(" 还记得今天聊了什么吗？")])
        await client.wait_for_send(GROUP)
        replies = [request for request in model.requests if not calls_for_notes(request)]
        assert len(replies) == 3
        remembered = asked(replies[-1])
        for day in days:
            assert day["text"].split("。")[0] in remembered
        assert "还记得今天聊了什么吗" in remembered
        assert SECRET not in remembered


async def test_a_reply_sees_messages_in_the_order_of_their_times(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot(model=model).start()
    now = int(time.time())
    async with OneBotClient(bot.port) as client:
        first = await client.group_message("原话在此", group_id=GROUP, at=now - 30)
        await wait_stored(bot, CHAT, 1)
        client.delays["get_msg"] = 0.5
        quoting = [reply(first["message_id"]), text("这句在前")]
        await client.group_message(quoting, 20002, "小鹿", group_id=GROUP, at=now - 20)
        await client.group_message("这句在后", 20003, "老周", group_id=GROUP, at=now - 10)
        await wait_stored(bot, CHAT, 3)
        await client.group_message(
            [mention(client.self_id), text(" 谁先说的？")], group_id=GROUP, at=now
        )
        await client.wait_for_send(GROUP)
        prompt = asked(model.requests[-1])
        lines = ["原话在此", "这句在前", "这句在后", "谁先说的"]
        assert sorted(lines, key=prompt.index) == lines


async def test_an_answer_stands_before_what_is_said_after_it_in_the_same_second(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot(model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.private_message("第一问", user_id=77)
        await client.wait_for_send(77)
        # Platforms tell the time in whole seconds, so this one is as old as the answer.
        second = int(client.sent[0].time)
        await client.private_message("第二问", user_id=77, at=second)
        await client.wait_for_send(77)
        prompt = asked(model.requests[-1])
        lines = ["第一问", "好呀，我记着呢", "第二问"]
        assert sorted(lines, key=prompt.index) == lines


async def test_a_nickname_and_a_private_chat_are_calls(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot({"NICKNAME": '["小忆"]'}, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message("小忆，在吗", group_id=GROUP)
        assert (await client.wait_for_send(GROUP)).text == "好呀，我记着呢。"
        await client.group_message("今天天气不错", group_id=GROUP)
        assert await client.stays_silent(0.3, GROUP)
        await client.private_message("在吗？私下告诉你：钥匙在花盆下", user_id=77)
        assert (await client.wait_for_send(77)).user_id == 77
        await client.group_message("小忆，钥匙在哪", group_id=GROUP)
        await client.wait_for_send(GROUP)
        assert "花盆" not in asked(model.requests[-1])
        own = {"post_type": "message_sent", "message_sent_type": "self", "target_id": 77}
        said = await client.private_message("好的小忆", client.self_id, "小忆", message_id=991)
        await client.emit(said | own | {"message_id": 992})
        assert await client.stays_silent(0.3)
