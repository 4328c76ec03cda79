"""When the bot speaks, to whom, and how its answers go out, over a real connection."""

from __future__ import annotations

import asyncio
from itertools import pairwise
import time

from tests.e2e.checks import asked, calls_for_notes, until, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess
from tests.support.model_server import Delay, ModelServer
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import ApiFailure, Payload, mention, reply, text

GROUP = 742100123
CHAT = f"group:{GROUP}"
SHE, HE, BOT = 10010, 10020, 10030
NOTES = {"NIANLUN__ACTIVITY_MESSAGES": "500"}
FAST = NOTES | {"NIANLUN__REPLY_WAIT": "0.3", "NIANLUN__TYPING_SPEED": "0"}
MUTED = ApiFailure(1200, "发送失败，你已被禁言")
TIMEOUT = ApiFailure(1200, "Timeout: NTEvent EventChecker Failed")
LONG = "".join(f"第{number}件事我都记得清清楚楚呢。" for number in range(10))


def at_bot(client: OneBotClient, words: str) -> list[Payload]:
    return [mention(client.self_id), text(f" {words}")]


def replies(model: ModelServer) -> list[str]:
    return [asked(request) for request in model.requests if not calls_for_notes(request)]


def own_lines(bot: BotProcess) -> list[tuple[str, str]]:
    return bot.query("SELECT text, delivery FROM nianlun_message WHERE user_id = 'me' ORDER BY seq")


async def test_lines_in_quick_succession_get_one_reply(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot(FAST | {"NIANLUN__REPLY_WAIT": "1"}, model=model).start()
    async with OneBotClient(bot.port) as client:
        for words in ("在吗", "我今天去爬山了", "累坏了"):
            await client.private_message(words, SHE)
            await asyncio.sleep(0.2)
        await client.wait_for_send(SHE)
        await client.group_message(at_bot(client, "听我说"), SHE)
        await client.group_message("我捡到一只猫", SHE)
        await client.wait_for_send(GROUP)
        assert await client.stays_silent(1.5)
        first, second = replies(model)
        assert all(words in first for words in ("在吗", "我今天去爬山了", "累坏了"))
        assert "我捡到一只猫" in second


async def test_a_busy_group_gets_one_reply_at_a_time_each_quoting_its_question(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(lambda request: Delay(0.3, "好呀。"))
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        calls = [await client.group_message(at_bot(client, "我呢"), user) for user in (SHE, HE)]
        answers = [await client.wait_for_send(GROUP) for _ in calls]
        assert [answer.text for answer in answers] == ["好呀。"] * 2
        assert answers[1].time - answers[0].time >= 0.3
        assert answers[0].segments[0] == reply(calls[0]["message_id"])
        assert [part["type"] for part in answers[1].segments] == ["text"]
        await client.group_message(at_bot(client, "只有我"), SHE)
        answer = await client.wait_for_send(GROUP)
        assert [part["type"] for part in answer.segments] == ["text"]
        await client.group_message(at_bot(client, "还有一句"), SHE)
        gone = await client.group_message(at_bot(client, "说错了"), SHE)
        await client.group_message("嗯？", HE)
        await client.recall(gone)
        answer = await client.wait_for_send(GROUP)
        assert [part["type"] for part in answer.segments] == ["text"]


async def test_a_long_answer_is_several_messages_each_on_record(
    new_bot: BotMaker, model: ModelServer
) -> None:
    model.script(lambda request: LONG)
    settings = FAST | {"NIANLUN__REPLY_CHARACTERS": "50", "NIANLUN__TYPING_SPEED": "100"}
    bot = await new_bot(settings, model=model).start()
    async with OneBotClient(bot.port, echo="after") as client:
        await client.private_message("都说说", SHE)
        await until(lambda: len(client.sent) >= 4, within=15)
        assert await client.stays_silent(0.1, HE)
        said = [answer.text for answer in client.sent]
        assert "".join(said) == LONG
        assert all(len(part) <= 50 and part.endswith("。") for part in said)
        times = [answer.time for answer in client.sent]
        assert all(later - earlier >= 0.3 for earlier, later in pairwise(times))
        await wait_stored(bot, f"private:{SHE}", 1 + len(said))
        assert own_lines(bot) == [(part, "ok") for part in said]


async def test_a_message_that_may_have_arrived_is_sent_once_and_kept_as_unknown(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        client.failures["send_msg"] = TIMEOUT
        await client.private_message("在吗", SHE)
        await wait_stored(bot, f"private:{SHE}", 2)
        await asyncio.sleep(1)
        assert len([call for call in client.calls if call.action == "send_msg"]) == 1
        assert own_lines(bot) == [("好呀，我记着呢。", "unknown")]
        client.failures.clear()
        await client.private_message("在吗", SHE)
        await client.wait_for_send(SHE)


async def test_a_muted_bot_neither_asks_the_model_nor_tries_to_send(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        client.failures["send_msg"] = MUTED
        await client.group_message(at_bot(client, "在吗"), SHE)
        await until(lambda: "机器人被禁言了" in bot.output)
        for _ in range(4):
            await client.group_message(at_bot(client, "怎么不理我"), SHE)
            await asyncio.sleep(0.4)
        assert len(replies(model)) == 1
        assert bot.output.count("暂时不在那里说话") == 1
        assert own_lines(bot) == []
        client.failures.clear()
        await client.group_message("/记忆 状态", SHE, role="owner")
        assert "机器人被禁言了" in (await client.wait_for_send(GROUP)).text
        await client.private_message("私下在吗", SHE)
        await client.wait_for_send(SHE)
        lifted = {"post_type": "notice", "notice_type": "group_ban", "sub_type": "lift_ban"}
        them = {"group_id": GROUP, "operator_id": HE, "user_id": client.self_id}
        await client.emit(lifted | them | {"duration": 0})
        await client.group_message(at_bot(client, "现在呢"), SHE)
        assert (await client.wait_for_send(GROUP)).text == "好呀，我记着呢。"
        await client.emit(lifted | them | {"sub_type": "ban", "duration": 600})
        await client.group_message(at_bot(client, "又不理我"), SHE)
        assert await client.stays_silent(1, GROUP)


async def test_what_is_old_is_recorded_and_not_answered(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.private_message("一小时前的", SHE, at=time.time() - 3600)
        await wait_stored(bot, f"private:{SHE}", 1)
        assert await client.stays_silent(1, SHE)
        assert replies(model) == []
        await client.private_message("钟慢了五分钟", SHE, at=time.time() - 300)
        await client.wait_for_send(SHE)


async def test_unasked_it_speaks_only_as_set_and_to_bots_within_bounds(
    new_bot: BotMaker, model: ModelServer
) -> None:
    more = {
        "NIANLUN__KEYWORDS": '["爬山"]',
        "NIANLUN__BOTS": f"[{BOT}]",
        "NIANLUN__BOT_REPLIES": "2",
        "NIANLUN__CHIME_IN_MINUTES": "5",
    }
    bot = await new_bot(FAST | more, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message("今天好热", SHE)
        await client.group_message("爬山吗各位", BOT, "别的机器人")
        assert await client.stays_silent(0.8, GROUP)
        await client.group_message("周末去爬山吗", SHE)
        await client.wait_for_send(GROUP)
        await client.group_message("爬山太累", HE)
        assert await client.stays_silent(0.8, GROUP)
        for answered in (True, True, False):
            await client.group_message(at_bot(client, "你好"), BOT, "别的机器人")
            assert await client.stays_silent(1.5, GROUP) is not answered
        await client.group_message("你们聊得真开心", HE)
        await client.group_message(at_bot(client, "你好"), BOT, "别的机器人")
        await client.wait_for_send(GROUP)


async def test_an_at_in_the_middle_of_a_line_calls(new_bot: BotMaker, model: ModelServer) -> None:
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        await client.group_message([text("这个 "), *at_bot(client, "怎么看")], SHE)
        await client.wait_for_send(GROUP)
        await client.group_message([text("大家好 "), mention("all"), text(" 开会")], SHE)
        assert await client.stays_silent(0.8, GROUP)


async def test_what_is_taken_back_while_the_model_thinks_is_not_quoted(
    new_bot: BotMaker, model: ModelServer
) -> None:
    def quoting(request: Payload) -> Delay:
        return Delay(1, "你刚说了搬家。" if "我要搬家" in asked(request) else "你什么也没说呀。")

    model.script(quoting)
    bot = await new_bot(FAST, model=model).start()
    async with OneBotClient(bot.port) as client:
        secret = await client.group_message("我要搬家", HE)
        await client.group_message(at_bot(client, "他说什么了"), SHE)
        await until(lambda: len(replies(model)) == 1)
        await client.recall(secret)
        assert (await client.wait_for_send(GROUP)).text == "你什么也没说呀。"
        first, second = replies(model)
        assert "我要搬家" in first
        assert "我要搬家" not in second
        taken_back = await client.group_message(at_bot(client, "那我呢"), SHE)
        await until(lambda: len(replies(model)) == 3)
        second = int(time.time())
        await client.group_message("哈哈", HE, at=second)
        waiting = await client.group_message(at_bot(client, "还有我"), HE, at=second)
        await client.recall(waiting)
        await client.recall(taken_back)
        assert await client.stays_silent(2, GROUP)
        assert len(replies(model)) == 3
