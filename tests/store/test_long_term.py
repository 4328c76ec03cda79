"""Long-term memories by user, and their Markdown file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.recorder import Recorder
from plugins.nonebot_plugin_nianlun.errors import MemoryRequestError
from plugins.nonebot_plugin_nianlun.interface.long_term import LongTermMemory
from plugins.nonebot_plugin_nianlun.interface.memory_store import MemoryStore
from plugins.nonebot_plugin_nianlun.recalling import Recalling
from plugins.nonebot_plugin_nianlun.store.models import Chat
from plugins.nonebot_plugin_nianlun.store.search import SearchReader

SEEDED = """## 2025-01-15 14:30:00 | 用户偏好
用户喜欢简洁的回答风格

## 2025-01-15 15:00:00 | 项目信息
用户在做 Python 电商项目
"""

pytestmark = pytest.mark.usefixtures("searching")


@pytest.fixture
async def searching(
    database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SearchReader]:
    """Recall looks into the file of the test."""
    reader = SearchReader(database_file, nianlun.calendar)
    recalling = Recalling(reader, nianlun.character, nianlun.clock, nianlun.calendar)
    monkeypatch.setattr(nianlun, "recalling", recalling)
    # What other tests had it take in is not for this file.
    monkeypatch.setattr(nianlun, "recorder", Recorder(nianlun.clock, nianlun.character))
    yield reader
    await reader.close()


@pytest.fixture
def memory() -> LongTermMemory:
    return LongTermMemory(nianlun)


async def test_a_user_is_remembered_and_cleared(memory: LongTermMemory) -> None:
    await memory.store("alice", "用户喜欢简洁的回答风格", "用户偏好")
    await memory.store("alice", "用户在做 Python 电商项目", "项目信息")
    await memory.store("bob", "用户在做 Python 数据分析", "项目信息")
    assert await memory.recall("alice", "python 项目", 3) == ["用户在做 Python 电商项目"]
    assert len(await memory.recall("alice", "用户", 1)) == 1
    assert await memory.recall("carol", "python", 3) == []
    await memory.clear("alice")
    assert await memory.recall("alice", "python 项目", 3) == []
    assert await memory.recall("bob", "python 项目", 1000) == ["用户在做 Python 数据分析"]


async def test_what_is_known_is_not_stored_twice(memory: LongTermMemory) -> None:
    assert (await memory.store("alice", "花生过敏", "健康")).status == "stored"
    assert (await memory.store("alice", "花生过敏。", "饮食")).status == "duplicate"
    assert (await memory.store("alice", "甲壳类过敏", "健康")).status == "stored"


@pytest.mark.parametrize("top_k", [0, -1])
async def test_nothing_is_asked_for(memory: LongTermMemory, top_k: int) -> None:
    await memory.store("alice", "花生过敏", "健康")
    assert await memory.recall("alice", "花生", top_k) == []
    for blank in ("", " \n", "\0", "\u3000"):
        assert await memory.recall("alice", blank, 5) == []


async def test_a_query_of_any_length(memory: LongTermMemory) -> None:
    await memory.store("alice", "花生过敏", "健康")
    assert await memory.recall("alice", "花生" + "啊" * 30_000, 5) == ["花生过敏"]


@pytest.mark.parametrize("wrong", [{"query": None}, {"query": 5}, {"top_k": "3"}, {"top_k": None}])
async def test_what_cannot_be_asked(memory: LongTermMemory, wrong: dict[str, Any]) -> None:
    with pytest.raises(MemoryRequestError):
        await memory.recall(**({"user_id": "alice", "query": "花生", "top_k": 3} | wrong))


@pytest.mark.parametrize("user_id", ["../../etc/passwd", "a/b\\c", "..", "C:\\x", "用户 1", "me"])
async def test_any_user_id_is_only_a_name(memory: LongTermMemory, user_id: str) -> None:
    await memory.store(user_id, "花生过敏", "健康")
    assert await memory.recall(user_id, "花生", 5) == ["花生过敏"]
    assert await Chat.all().values_list("kind", "peer_id") == [("store", user_id)]


@pytest.mark.parametrize("user_id", ["", " ", "\n", "a\0b", "x" * 129, "x" * 100_000, None, 7])
async def test_user_ids_that_cannot_be(memory: LongTermMemory, user_id: Any) -> None:
    for call in (
        memory.store(user_id, "花生过敏", "健康"),
        memory.recall(user_id, "花生", 5),
        memory.clear(user_id),
        memory.export_markdown(user_id),
        memory.import_markdown(user_id, SEEDED),
    ):
        with pytest.raises(MemoryRequestError):
            await call
    assert await Chat.all().count() == 0


async def test_the_file_comes_back_as_it_was(memory: LongTermMemory) -> None:
    report = await memory.import_markdown("alice", SEEDED)
    assert (report.stored, report.duplicates, report.refused, report.complaints) == (2, 0, (), ())
    assert await memory.export_markdown("alice") == SEEDED
    assert (await memory.import_markdown("alice", SEEDED)).duplicates == 2
    stored = await MemoryStore(nianlun, "alice").everything()
    assert stored[0].created_at == datetime(2025, 1, 15, 6, 30, tzinfo=UTC)
    assert stored[0].category == "用户偏好"
    assert await memory.export_markdown("bob") == ""


async def test_content_stays_content_in_the_file(memory: LongTermMemory) -> None:
    contents = [
        "## 2026-01-01 10:00:00 | 别的\n花生",
        "第一行\n\n\n第二行",
        "## 23:59",
        "&#13; | x",
    ]
    for content in contents:
        await memory.store("alice", content, "杂 | 记")
    file = await memory.export_markdown("alice")
    assert (await memory.import_markdown("bob", file)).stored == len(contents)
    assert await memory.export_markdown("bob") == file
    stored = await MemoryStore(nianlun, "bob").everything()
    assert [(m.content, m.category) for m in stored] == [(c, "杂 | 记") for c in contents]


async def test_entries_that_cannot_be_stored_are_told(memory: LongTermMemory) -> None:
    file = (
        f"前言\n## 2025-01-15 14:30:00 | {'类' * 81}\n太长\n"
        "## 0001-01-01 00:00:00 | 健康\n太早\n"
        "## 2025-01-15 14:30:00 | 健康\n\n"
        "## 2025-01-15 14:30:00 | 健康\n花生过敏\n"
        "## 2025-01-15 14:30:00 | 健康\n花生过敏！\n"
    )
    report = await memory.import_markdown("alice", file)
    assert (report.stored, report.duplicates, len(report.refused)) == (1, 1, 3)
    assert [complaint.line for complaint in report.complaints] == [1]
