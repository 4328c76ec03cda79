"""Search by meaning in the running product: from the first tick until it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
import time
from typing import Any

from nonebot import get_driver
import pytest

from plugins.nonebot_plugin_nianlun import embedding
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.config import Config
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.store import recording
from plugins.nonebot_plugin_nianlun.store.models import Vector
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming
from tests.support.model_server import ModelServer, Reply, embeddings
from tests.support.scripted_writer import SetClock

GROUP = ChatKey("10001", "group", "123")
NOON = datetime(2026, 11, 27, 4, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    def by_length(body: dict[str, Any]) -> Reply:
        return embeddings([[1.0, len(text)] for text in body["input"]])

    with ModelServer() as server:
        server.script(by_length)
        yield server


async def test_from_the_first_tick_to_the_end(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_DEADLINE", 20.0)
    values = {"embedding_model": "tiny", "embedding_base_url": server.base_url}
    config = Config.model_validate({"nianlun": values})
    nianlun = Nianlun(config, tmp_path, get_driver().config, SetClock(NOON))
    await nianlun.open()
    try:
        for text in ("晚上一起去吃火锅吧", "我在图书馆里复习高数，七点之后才有空"):
            segments = [{"type": "text", "data": {"text": text}}]
            line = Incoming(GROUP, NOON, "20001", "小鹿", segments, "event")
            await recording.record([line], readable, "小忆", NOON)
        before = await nianlun.recall(GROUP, "xyz")
        assert (before.items, before.embedding_used) == ((), False)
        await nianlun.tick()
        end = time.monotonic() + 10
        while await Vector.all().count() < 2:
            assert time.monotonic() < end, "it took too long"
            await asyncio.sleep(0.02)
        found = await nianlun.recall(GROUP, "x" * 18)
        assert found.embedding_used
        assert found.items[0].content == "我在图书馆里复习高数，七点之后才有空"
        assert nianlun.embedding.trouble is None
    finally:
        await nianlun.close()
    assert {task.get_name() for task in asyncio.all_tasks()}.isdisjoint({"nianlun-embedding"})
