"""No secret reaches the file as a note or a fact; the message in which it was said keeps it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
import sqlite3

from plugins.nonebot_plugin_nianlun.interface.facts import Facts
from plugins.nonebot_plugin_nianlun.interface.requests import content_of
from plugins.nonebot_plugin_nianlun.llm.offline_writer import OfflineWriter
from plugins.nonebot_plugin_nianlun.memory.upkeep import Upkeep
from plugins.nonebot_plugin_nianlun.store import chats, messages
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, World, local
from tests.support.scripted_writer import SetClock

PHONE, KEY = "13812345678", "sk-abcDEF1234567890abcd"


@dataclass
class Host:
    clock: SetClock


def kept(file: Path) -> str:
    """All that the file has of notes and facts, as text."""
    tables = ("activity", "memory", "note_version", "fact", "fact_version")
    with closing(sqlite3.connect(file)) as database:
        rows = [database.execute(f"SELECT * FROM nianlun_{table}").fetchall() for table in tables]
    return repr(rows)


def offline(world: World) -> Upkeep:
    writer = OfflineWriter(CALENDAR)
    return replace(world.upkeep(), writer=writer, fallback=writer)


async def test_the_offline_writer_quotes_none(database_file: Path) -> None:
    world = World(database_file)
    await chats.ensure([GROUP], world.clock.now())
    await world.say(f"我的手机号换成了{PHONE}，大家记一下！", local(DAY, 9))
    await world.say(f"新的 key 是 {KEY}，别外传", local(DAY, 9, 1))
    world.clock.time = local(DAY, 23)
    await offline(world).run(world.chat_id, everything=True)
    stored = kept(database_file)
    assert "[手机号]" in stored or "[密钥]" in stored
    assert PHONE not in stored
    assert KEY not in stored
    said = [message.text for message in await messages.recent(world.chat_id, 2)]
    assert PHONE in said[0]
    assert KEY in said[1]


async def test_facts_from_python_hold_none(database_file: Path) -> None:
    world = World(database_file)
    await chats.ensure([GROUP], world.clock.now())
    known = Facts(Host(world.clock), GROUP)
    entry = await known.add("profile", "手机", f"手机是{PHONE}", owner="20001")
    assert entry.content == "手机是[手机号]"
    await known.learn([{"category": "profile", "name": "key", "content": f"用 {KEY}"}])
    await known.add("profile", f"号码{PHONE}", "常用", owner="20001")
    assert await known.get("profile", f"号码{PHONE}", owner="20001") is not None
    stored = kept(database_file)
    assert PHONE not in stored
    assert KEY not in stored


def test_a_named_store_keeps_none_and_finds_what_it_masked() -> None:
    assert content_of(f"手机 {PHONE}") == content_of("手机 [手机号]", "query") == "手机 [手机号]"
