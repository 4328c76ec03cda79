"""Two processes write into one memory: limits hold, nothing is lost, nothing is there twice."""

from __future__ import annotations

from collections import Counter
import json
from pathlib import Path

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.interface.diary import Diary
from plugins.nonebot_plugin_nianlun.interface.facts import Facts
from plugins.nonebot_plugin_nianlun.interface.memory_store import MemoryStore
from plugins.nonebot_plugin_nianlun.store import chats, invariants
from plugins.nonebot_plugin_nianlun.store.models import FactVersion
from plugins.nonebot_plugin_nianlun.types import ChatKey
from tests.support.standalone import finish, put_package, start

GROUP = ChatKey("10001", "group", "123")
WRITE = """
import asyncio, json, sys
from datetime import time
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo
from nianlun.clock import SystemClock
from nianlun.errors import MemoryRequestError
from nianlun.interface.diary import Diary
from nianlun.interface.facts import Facts
from nianlun.interface.memory_store import MemoryStore
from nianlun.memory.calendar import Calendar
from nianlun.outcomes import Outcomes
from nianlun.store import database
from nianlun.types import ChatKey

me, clock = sys.argv[2], SystemClock()
calendar = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
host = SimpleNamespace(clock=clock, calendar=calendar, outcomes=Outcomes(clock))
chat, limits = ChatKey("10001", "group", "123"), []

async def register(number):
    try:
        await MemoryStore(host, "alice").add_speaker(f"{me}-{number}")
    except MemoryRequestError as error:
        limits.append(error.details)

async def main():
    await database.open_store(Path(sys.argv[1]))
    try:
        work = [register(n) for n in range(40)]
        work += [MemoryStore(host, "alice").store(f"第{n}件事", "me") for n in range(30)]
        work += [Diary(host, chat).append(f"{me}-{n}", time="14:30") for n in range(50)]
        work += [Facts(host, chat).add("event", "甲", f"{me}-{n}") for n in range(20)]
        await asyncio.gather(*work)
    finally:
        await database.close_store()
    print(json.dumps(limits))

asyncio.run(main())
"""


async def test_two_processes_write_at_once(database_file: Path, tmp_path: Path) -> None:
    put_package(tmp_path)
    processes = [start(tmp_path, WRITE, database_file, name) for name in ("甲", "乙")]
    results = [finish(process) for process in processes]
    assert [status for status, _, _ in results] == [0, 0], results
    refused = [details for _, output, _ in results for details in json.loads(output)]
    assert refused == [{"speaker_limit": 50}] * 30

    store, diary = MemoryStore(nianlun, "alice"), Diary(nianlun, GROUP)
    assert (await store.list_speakers()).count == 50
    assert len((await store.list_memories()).memories) == 30
    (day,) = await diary.dates()
    entries = await diary.day(day)
    assert Counter(e.content for e in entries) == Counter(
        f"{name}-{n}" for name in "甲乙" for n in range(50)
    )
    assert sorted(e.number for e in entries) == list(range(1, 101))
    (fact,) = await Facts(nianlun, GROUP).items()
    journal = await FactVersion.all().values_list("text", flat=True)
    assert Counter([*journal, fact.content]) == Counter(
        f"{name}-{n}" for name in "甲乙" for n in range(20)
    )
    for chat in (store.chat, GROUP):
        chat_id = await chats.find(chat)
        assert chat_id is not None
        check = await invariants.check(database_file, chat_id, nianlun.calendar, fact.written_at)
        assert check.findings == ()
