"""A database of the first version, with rows: nothing is lost, and everything is found again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path
import sqlite3

import pytest

from plugins.nonebot_plugin_nianlun.memory.search import Search
from plugins.nonebot_plugin_nianlun.memory.terms import query_terms
from plugins.nonebot_plugin_nianlun.store import chats, database, speakers
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.reindexing import Reindexing
from tests.store.test_search import faults
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, local
from tests.support.finder import Finder

AT = "2026-11-27 01:00:00+00:00"
ROWS = f"""
INSERT INTO nianlun_chat (id, self_id, kind, peer_id, last_seq, last_activity, created_at)
 VALUES (1, '10001', 'group', '123', 1, 1, '{AT}');
INSERT INTO nianlun_message (chat_id, seq, dedup_key, time, user_id, name, text, source)
 VALUES (1, 1, 'k1', '{AT}', '20001', '小鹿', '海棠开了', 'event');
INSERT INTO nianlun_activity
 (chat_id, number, date, text, key_messages, origin, owner, time, version, writer, written_at,
  merged, stale)
 VALUES (1, 1, '2026-11-27', '她说起海棠', '[]', 'tool', '20001', '{AT}', 1, 'model', '{AT}', 0, 0);
INSERT INTO nianlun_fact (id, chat_id, owner, category, name, text, source, due, created_at,
  written_at)
 VALUES (1, 1, '20001', 'event', '花', '要去看海棠', 1, '2026-12-01', '{AT}', '{AT}');
INSERT INTO nianlun_fact_version (chat_id, fact_id, text, source, written_at)
 VALUES (1, 1, '要去看樱花', 1, '{AT}');
"""


@pytest.fixture
async def upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    path = tmp_path / "nianlun.db"
    with monkeypatch.context() as first:
        migrate = partial(database.migrate, target="nianlun.0001_initial")
        first.setattr(database, "migrate", migrate)
        assert await database._migrate(path) is None
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(ROWS)
    await database.prepare(path)
    await database.open_store(path)
    yield path
    await database.close_store()
    chats.forget_cached_ids()
    speakers.forget_cached_names()


async def test_its_rows_are_exported_and_found(upgraded: Path) -> None:
    rows = [row async for row in lines(GROUP, "Asia/Shanghai", local(DAY, 12))]
    texts = {row["type"]: row["text"] for row in rows if "text" in row}
    assert texts == {"message": "海棠开了", "activity": "她说起海棠", "fact": "要去看海棠"}
    (fact,) = (row for row in rows if row["type"] == "fact")
    (earlier,) = fact["journal"]
    assert (fact["due"], earlier["text"]) == ("2026-12-01", "要去看樱花")
    assert not {"due", "done_at", "writer"} & earlier.keys()

    reader = Finder(upgraded, CALENDAR)
    search = Search(tuple(query_terms("海棠")))
    assert await reader.find(1, search) == []
    work = Reindexing(upgraded)
    work.start()
    assert work._task is not None
    await work._task
    assert {one.kind for one in await reader.find(1, search)} == {"message", "activity", "fact"}
    await reader.close()
    assert faults(upgraded) == []
