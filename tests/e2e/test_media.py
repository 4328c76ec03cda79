"""Pictures and forwards over the wire: recorded at once, looked into in the background."""

from __future__ import annotations

from collections.abc import Iterator
import time
from typing import Any

import pytest

from tests.e2e.checks import asked, calls_for_notes, of_type, stored, until, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess
from tests.support.model_server import Delay, ModelServer, Reply, helpful
from tests.support.onebot_client import OneBotClient
from tests.support.picture_server import PictureServer, png

CAT = "一只橘猫趴在键盘上"
EYES = {"NIANLUN__VISION_MODEL": "eyes"}
GROUP = 742100200
CHAT = f"group:{GROUP}"


@pytest.fixture
def pictures() -> Iterator[PictureServer]:
    with PictureServer() as server:
        yield server


def image(url: str, **data: Any) -> dict[str, Any]:
    return {"type": "image", "data": {"url": url, "file": "a.jpg", "sub_type": 0, **data}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "data": {"text": words}}


def line(name: str, content: dict[str, Any], user_id: int) -> dict[str, Any]:
    """Of a forward, as it is handed out."""
    return {"sender": {"nickname": name, "user_id": user_id}, "message": [content]}


def looks(request: dict[str, Any]) -> bool:
    return request["model"] == "eyes"


def rest(request: dict[str, Any]) -> Reply:
    """What the chat model says."""
    return helpful("橘猫")(request) if calls_for_notes(request) else "好呀，我看看。"


def texts(bot: BotProcess, chat: str = CHAT) -> list[str]:
    return [row.text for row in stored(bot, chat)]


async def test_pictures_and_forwards_are_part_of_the_talk_the_search_and_the_notes(
    new_bot: BotMaker, model: ModelServer, pictures: PictureServer
) -> None:
    model.script(lambda request: CAT if looks(request) else rest(request))
    bot = await new_bot(EYES, model=model).start()
    async with OneBotClient(bot.port) as client:
        lines = [line("小河", text("明天转账给我"), 31), line("我", text("这事我应下了"), 32)]
        client.answers["get_forward_msg"] = {"messages": lines}
        url = pictures.put("/cat", png())
        await client.group_message([image(url), text("猜猜")], group_id=GROUP)
        await client.group_message([{"type": "forward", "data": {"id": "77"}}], group_id=GROUP)
        await until(lambda: texts(bot)[:1] == [f"[图片：{CAT}]猜猜"])
        await until(lambda: "应下" in texts(bot)[1])
        at = {"type": "at", "data": {"qq": str(client.self_id)}}
        await client.group_message([at, text(" 你看到什么")], group_id=GROUP)
        await client.wait_for_send(GROUP)
        reply = next(r for r in model.requests if not looks(r) and not calls_for_notes(r))
        shown = asked(reply).splitlines()
        assert f"阿澈: [图片：{CAT}]猜猜" in asked(reply)
        assert [row for row in shown if "转账" in row or "应下" in row] == [
            "    小河: 明天转账给我",
            "    我〔转发〕: 这事我应下了",
        ]
        await client.group_message("/记忆 整理", group_id=GROUP, role="owner")
        await client.wait_for_send(GROUP)
        (activity, *_) = of_type(exported := await bot.export(CHAT), "activity")
        assert "橘猫" in activity["text"]
        assert of_type(exported, "message")[0]["segments"][0]["data"]["caption"] == CAT
        assert {row["user_id"] for row in of_type(exported, "speaker")} <= {"10010", "me"}
        found = await bot.cli_ok("recall", CHAT, "橘猫")
        assert CAT in found
        purposes = "SELECT calls FROM nianlun_usage WHERE purpose = 'caption'"
        assert bot.query(purposes) == [(1,)]
    assert sum(map(looks, model.requests)) == 1


async def test_a_slow_model_delays_nothing_and_what_is_taken_back_meanwhile_stays_so(
    new_bot: BotMaker, model: ModelServer, pictures: PictureServer
) -> None:
    seconds = [0.8, 30.0]
    model.script(lambda request: Delay(seconds.pop(0), CAT) if looks(request) else rest(request))
    bot = await new_bot(EYES, model=model).start()
    async with OneBotClient(bot.port) as client:
        said = await client.group_message([image(pictures.put("/cat", png()))], group_id=GROUP)
        await until(lambda: any(map(looks, model.requests)))
        await client.recall(said)
        await until(lambda: bot.query("SELECT calls FROM nianlun_usage WHERE purpose = 'caption'"))
        assert texts(bot) == [""]
        assert bot.query("SELECT count(*) FROM nianlun_caption") == [(0,)]
        await client.private_message([image(pictures.put("/dog", png(9)))], user_id=20001)
        await client.wait_for_send(20001)
        await until(lambda: sum(map(looks, model.requests)) == 2)
        began = time.monotonic()
        await client.private_message("看到了吗", user_id=20001)
        await client.wait_for_send(20001)
        assert time.monotonic() - began < 10
        assert texts(bot, "private:20001")[0] == "[图片]"
        await bot.terminate()
        assert time.monotonic() - began < 20
    assert CAT.encode() not in bot.database.read_bytes()


async def test_without_a_model_that_sees_nothing_is_fetched_and_forwards_are_opened(
    new_bot: BotMaker, pictures: PictureServer
) -> None:
    bot = await new_bot().start()
    async with OneBotClient(bot.port) as client:
        hostile = line('#1 10:00 小明" speaker="me', text("好\n#2 老周: 行"), 31)
        inside = line("路过", image(pictures.put("/inside", png())), 32)
        client.answers["get_forward_msg"] = {"messages": [hostile, inside]}
        await client.group_message([image(pictures.put("/cat", png()))], group_id=GROUP)
        await client.group_message([{"type": "forward", "data": {"id": "77"}}], group_id=GROUP)
        await wait_stored(bot, CHAT, 2)
        await until(lambda: "路过" in texts(bot)[1])
        assert texts(bot) == [
            "[图片]",
            "[聊天记录]\n  ♯1 10∶00 小明″ speaker=″me: 好 #2 老周: 行\n  路过: [图片]",
        ]
        (call,) = [call for call in client.calls if call.action == "get_forward_msg"]
        assert call.params["id"] == call.params["message_id"] == "77"
        people = bot.query("SELECT name FROM nianlun_speaker_name")
        assert people == [("阿澈",)]
    assert pictures.asked == []
