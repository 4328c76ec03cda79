"""Forgetting the one with whom a private chat is: all of it goes, and no old file brings it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import chats, exclusions, forgetting, recording
from plugins.nonebot_plugin_nianlun.store.importing import SYSTEM, Importer
from plugins.nonebot_plugin_nianlun.store.matching import Line
from plugins.nonebot_plugin_nianlun.store.models import (
    Activity,
    Exclusion,
    Fact,
    Memory,
    NoteVersion,
    Speaker,
)
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.store.records import FactText, KnownFact, Person
from plugins.nonebot_plugin_nianlun.store.restoring import Restorer
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Forgotten, Incoming
from tests.store.test_upkeep import CALENDAR, World, local

SHE = "20777"
NAME = "小蓝"
CHAT = ChatKey("10001", "private", SHE)
DAY = date(2026, 10, 28)
SECRET = "口令"


@pytest.fixture
async def world(database_file: Path) -> World:
    found = World(database_file)
    await chats.ensure([CHAT], found.clock.now())
    found.clock.time = local(DAY, 12)
    return found


def line(text: str, hour: int, by: str = SHE, name: str = NAME, id_: str | None = None) -> Line:
    segments = [{"type": "text", "data": {"text": text}}]
    at = local(DAY, hour)
    message = Incoming(CHAT, at, by, name, segments, "import", id_, chat_name=NAME)
    return Line(message, nameless=by.startswith("name:"), told_as=by)


OLD = [
    line(f"{SECRET}一", 8, id_="1"),
    line(f"{SECRET}二", 9, by=f"name:{NAME}"),
    line(f"{SECRET}三", 9, by=f"name:{NAME}", id_="3"),
    line(f"{SECRET}四", 9, by=ME, name="小忆"),
    line(f"{NAME}已添加你为好友，{SECRET}五", 7, by=SYSTEM, name="系统消息"),
]


async def import_(lines: list[Line]) -> Importer:
    importer = Importer(1, readable, "小忆")
    await importer.store(sorted(lines, key=lambda one: one.message.time))
    await importer.finish()
    return importer


def traces_of_her(world: World) -> list[str]:
    """Words and names of hers in the database, as values and as bytes of its files."""
    whole = world.dump()
    files = b"".join(path.read_bytes() for path in world.file.parent.rglob("*") if path.is_file())
    return [word for word in (SECRET, NAME) if word in whole or word.encode() in files]


async def fill(world: World) -> None:
    """Words and a name in each place of the chat, some of them nobody's."""
    await import_(OLD)
    now = world.clock.now()
    note = {"chat_id": 1, "writer": "model", "written_at": now, "text": f"{NAME}的{SECRET}"}
    moment = {**note, "date": "2026-10-28", "origin": "tool", "time": now}
    await Activity.create(**moment, number=1, owner=f"name:{NAME}")
    await Activity.create(**moment, number=2)
    await Memory.create(**note, kind="day", period="2026-10-27")
    await NoteVersion.create(**note, kind="day", ref="2026-10-27", version=0)
    fact = {"chat_id": 1, "category": "约定", "created_at": now, "written_at": now}
    await Fact.create(**fact, name="聚会", text=SECRET)
    await Fact.create(**fact, owner=f"name:{NAME}", name="称呼", text=SECRET)


async def test_all_of_it_goes(world: World) -> None:
    await fill(world)
    assert traces_of_her(world) == [SECRET, NAME]
    done = await forgetting.forget(1, SHE, world.clock.now())
    assert done == Forgotten(messages=5, notes=3, facts=2, names=2, opted_out=False)
    assert await Traces(world.file).remove()
    assert traces_of_her(world) == []
    assert {row.user_id for row in await Row.all()} == {SHE, ME, SYSTEM}
    assert {row.user_id for row in await Exclusion.all()} == {SHE, ME}
    assert (await world.run()).errors == ()
    assert await Memory.all().count() == 0


async def test_no_old_file_brings_it_back(world: World) -> None:
    await fill(world)
    await forgetting.forget(1, SHE, world.clock.now())
    messages = await Row.all().count()
    more = [line(f"{SECRET}六", 10, by=f"name:{NAME}"), line(f"{SECRET}七", 10, by=SYSTEM)]
    for _ in range(2):
        importer = await import_([*OLD, *more])
        restorer = Restorer(importer, CALENDAR, local(DAY, 11))
        text = FactText(SECRET, local(DAY, 11))
        refused = await restorer.store(
            [
                Person(f"name:{NAME}", NAME, (NAME,), opted_out=False),
                KnownFact("", "约定", "聚会", text, ()),
            ]
        )
        assert refused == []
        assert await Row.all().count() == messages + len(more)
    assert await Traces(world.file).remove()
    assert traces_of_her(world) == []


async def test_what_is_said_afterwards_is_recorded_with_the_name(world: World) -> None:
    await fill(world)
    await forgetting.forget(1, SHE, world.clock.now())
    later = line("又来了", 13, id_="9").message
    await recording.record([later], readable, "小忆", world.clock.now())
    assert [row.text for row in await Row.all() if row.text] == ["又来了"]
    assert [(row.user_id, row.name) for row in await Speaker.filter(user_id=SHE)] == [(SHE, NAME)]


async def test_nobody_else_is_there_when_one_is_not_recorded(world: World) -> None:
    await exclusions.opt_out(1, SHE, local(DAY, 8), world.clock.now())
    await import_(OLD)
    assert sorted(row.text for row in await Row.all()) == [
        "",
        "",
        "",
        f"{SECRET}四",
        f"{NAME}已添加你为好友，{SECRET}五",
    ]
    assert [row.user_id for row in await Row.filter(text="")] == [SHE] * 3
