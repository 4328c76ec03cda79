"""The name of a chat goes out with it and comes back."""

from __future__ import annotations

from datetime import UTC, datetime
import json
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file
from plugins.nonebot_plugin_nianlun.store import chats, recording
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming

NOW = datetime(2026, 11, 29, 9, 30, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")
OTHER = ChatKey("10009", "group", "999")

pytestmark = pytest.mark.usefixtures("database_file")


@pytest.mark.parametrize("name", ["摸鱼研究所①群", None])
async def test_the_name_of_a_group_comes_back(name: str | None, tmp_path: Path) -> None:
    said = [{"type": "text", "data": {"text": "在吗"}}]
    line = Incoming(GROUP, NOW, "20001", "小鹿", said, "event", message_id="1", chat_name=name)
    await recording.record([line], readable, "小忆", NOW)
    rows = [row async for row in lines(GROUP, "Asia/Shanghai", NOW)]
    assert rows[0].get("chat_name") == name
    file = tmp_path / "whole.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    await import_file(nianlun, file, ImportOptions(targets=(target(OTHER.full),)))
    chat = await chats.row(OTHER)
    assert chat is not None
    assert chat.name == name
