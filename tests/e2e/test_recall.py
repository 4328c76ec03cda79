"""What was said long ago comes back in a running bot's reply, and goes when it is taken back."""

from __future__ import annotations

from tests.e2e.checks import wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.model_server import ModelServer
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import mention, text

GROUP = 742100321
CHAT = f"group:{GROUP}"
DEER, RIVER = 1620003002, 1620003003
SETTINGS = {"NIANLUN__ACTIVITY_MESSAGES": "200", "NIANLUN__ACTIVITY_MESSAGES_PRIVATE": "200"}
HEAD = "【这句话让你想起】"


async def test_an_old_line_is_brought_up_and_after_its_recall_no_more(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = await new_bot(SETTINGS, model=model).start()
    async with OneBotClient(bot.port) as client:
        secret = await client.group_message("我对花生过敏，一吃就肿", DEER, "小鹿", group_id=GROUP)
        for number in range(110):
            await client.group_message(f"闲话第 {number} 句", RIVER, "阿川", group_id=GROUP)
        await wait_stored(bot, CHAT, 111)

        async def ask(words: str) -> str:
            line = [mention(client.self_id), text(words)]
            await client.group_message(line, RIVER, "阿川", group_id=GROUP)
            await client.wait_for_send(GROUP)
            return model.requests[-1]["messages"][-1]["content"]

        end = await ask(" 谁对花生过敏来着？")
        assert HEAD in end
        brought_up = end.partition(HEAD)[2].splitlines()[1]
        assert brought_up.startswith("- #1 ")
        assert brought_up.endswith("小鹿：我对花生过敏，一吃就肿")
        assert "我对花生过敏" in await bot.cli_ok("recall", CHAT, "花生过敏")

        await client.recall(secret, operator_id=DEER)
        await client.group_message("再来一句", RIVER, "阿川", group_id=GROUP)
        await wait_stored(bot, CHAT, 114)
        assert "一吃就肿" not in await ask(" 花生过敏的是谁？")
        assert "一吃就肿" not in await bot.cli_ok("recall", CHAT, "花生过敏")
