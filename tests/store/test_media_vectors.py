"""A message that shows more than when it was recorded is found by what that means, too."""

from __future__ import annotations

from pathlib import Path

from plugins.nonebot_plugin_nianlun.capture.pictures import with_captions
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import captions, recording
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.types import Incoming
from tests.store.test_embedding import World, in_earnest
from tests.store.test_recalling import CALENDAR, DEER, GROUP, NOW
from tests.support.model_server import ModelServer
from tests.support.scripted_writer import SetClock

IMAGE = {"type": "image", "data": {"url": "https://example.com/a.jpg"}}
SEEN = "[图片：一碗坚果]"


async def test_a_text_that_changed_gets_another_vector(database_file: Path) -> None:
    with ModelServer() as server:
        server.script(in_earnest)
        world = World(database_file, server, SetClock(NOW), SearchReader(database_file, CALENDAR))
        said = Incoming(GROUP, NOW, DEER, "小鹿", [IMAGE], "event", message_id="1")
        await recording.record([said], readable, "小忆", NOW)
        made = await world.caught_up()
        assert world.asked == ["[图片]"]
        before = await captions.standing(1, 1)
        assert before is not None
        after = with_captions(before.segments, {0: "一碗坚果"})
        assert await captions.show(1, before, after, SEEN, {"a": "一碗坚果"})
        made._upkeep.look_again(1, 1)
        await made._upkeep.catch_up()
        assert world.asked == ["[图片]", SEEN]
        await made.stop()
        await world.reader.close()
