"""What an export says of itself: the name of its chat, which comes back, and that it is whole."""

from __future__ import annotations

from datetime import UTC, datetime
import json
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file, look_into
from plugins.nonebot_plugin_nianlun.store import chats, recording
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import Chat
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


def said(text: str, at: int) -> Incoming:
    segments = [{"type": "text", "data": {"text": text}}]
    return Incoming(GROUP, NOW, "20001", "小鹿", segments, "event", message_id=str(at))


async def exported(chat: ChatKey = GROUP) -> list[str]:
    rows = [row async for row in lines(chat, "Asia/Shanghai", NOW)]
    return [f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows]


async def test_an_export_that_is_not_all_there_changes_nothing(tmp_path: Path) -> None:
    await recording.record([said(f"第{n}句", n) for n in range(9)], readable, "小忆", NOW)
    whole = await exported()
    assert json.loads(whole[-1]) == {"type": "end", "records": len(whole) - 1}
    text = "".join(whole)
    data, file = text.encode(), tmp_path / "cut.jsonl"
    options = ImportOptions(targets=(target(OTHER.full),))
    cuts = [data[:place] for place in range(len(whole[0].encode()), len(data) - 2, 97)]
    cuts += ["".join(whole[:count]).encode() for count in range(1, len(whole))]
    for cut in (*cuts, data + data[: len(data) // 2]):
        file.write_bytes(cut)
        with pytest.raises(ImportFileError, match=r"\A文件像是没有写完[^\n]*请重新导出"):
            await look_into(nianlun, file, options)
    for lost in (3, slice(4, 6)):
        rows = list(whole)
        del rows[lost]
        file.write_text("".join(rows), "utf-8")
        with pytest.raises(ImportFileError, match=r"\A文件像是缺了一部分[^\n]*请重新导出"):
            await import_file(nianlun, file, options)
    assert await Chat.all().count() == 1
    # What is wrong with one line alone is told, as ever.
    torn = [*whole[:4], "{坏\n", *whole[5:]]
    file.write_text("".join(torn), "utf-8")
    report = await import_file(nianlun, file, options)
    assert [one.line for one in report.unreadable] == [5]
    file.write_bytes(data.rstrip() + b"\r\n\r\n")
    report = await import_file(nianlun, file, options)
    assert (report.new, report.left_out) == (1, 0)


async def test_an_export_of_before_has_no_end(tmp_path: Path) -> None:
    await recording.record([said(f"第{n}句", n) for n in range(9)], readable, "小忆", NOW)
    whole = await exported()
    header = json.loads(whole[0])
    assert header.pop("ends_with") == "end"
    file, options = tmp_path / "old.jsonl", ImportOptions(targets=(target(OTHER.full),))
    file.write_text("".join([f"{json.dumps(header)}\n", *whole[1:-1]]), "utf-8")
    report = await import_file(nianlun, file, options)
    assert (report.new, report.left_out) == (9, 0)
    assert (await exported(OTHER))[1:] == whole[1:]
