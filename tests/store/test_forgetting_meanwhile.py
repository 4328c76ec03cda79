"""What others do, or have read already, while words are taken back: none of it brings them back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tortoise.backends.sqlite.client import SqliteClient

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    facts,
    forgetting,
    recording,
    speakers,
    traces,
)
from plugins.nonebot_plugin_nianlun.store.importing import Importer
from plugins.nonebot_plugin_nianlun.store.matching import Line
from plugins.nonebot_plugin_nianlun.store.models import Chat, Fact, FactVersion, Speaker
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.store.records import FactText, KnownFact, Noted, Person
from plugins.nonebot_plugin_nianlun.store.restoring import Restorer
from plugins.nonebot_plugin_nianlun.types import ME, Activity, Incoming
from plugins.nonebot_plugin_nianlun.types import Fact as NewFact
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, SECRET, World, check_cover, local

SHE = "20777"


@pytest.fixture
async def world(database_file: Path) -> AsyncIterator[World]:
    found = World(database_file)
    await chats.ensure([GROUP], found.clock.now())
    yield found
    await check_cover(found)


def said(
    text: str,
    at: datetime,
    *,
    by: str = SHE,
    name: str = "小蓝",
    id_: str | None = None,
    **more: Any,
) -> Incoming:
    segments = [{"type": "text", "data": {"text": text}}]
    return Incoming(GROUP, at, by, name, segments, **{"source": "event", **more}, message_id=id_)


async def record(world: World, *lines: Incoming) -> None:
    await recording.record(lines, readable, "小忆", world.clock.now())


async def forget(world: World) -> None:
    await forgetting.forget(world.chat_id, SHE, world.clock.now())


@pytest.mark.parametrize("how", ["forgotten", "withdrawn", "opted out"])
async def test_what_is_taken_back_during_an_import_is_not_restored(world: World, how: str) -> None:
    """Another process may do so between the messages of a file and what was built on them."""
    world.clock.time = local(DAY, 12)
    importer = Importer(1, readable, "小忆")
    restorer = Restorer(importer, CALENDAR, local(DAY, 11))
    assert await restorer.store([]) == []
    lines = [
        said(SECRET, local(DAY, 9), id_="1", source="import"),
        said("别的", local(DAY, 9, 1), by="20001", name="小鹿", id_="2", source="import"),
    ]
    found = [Line(message, seq=number) for number, message in enumerate(lines, 1)]
    restorer.note_messages(await importer.store(found))
    if how == "forgotten":
        await forget(world)
    elif how == "withdrawn":
        await world.withdraw("1")
    else:
        await exclusions.opt_out(1, SHE, local(DAY, 11), world.clock.now())
    at = local(DAY, 10)
    refused = await restorer.store(
        [
            Noted(
                Activity(
                    1, f"{DAY}", f"她说{SECRET}", (), "window", at, "model", at, ranges=((1, 2),)
                )
            ),
            KnownFact("20001", "约定", "门", FactText(f"{SECRET}才开", at, 1), ()),
        ]
    )
    await importer.finish()
    assert refused == []
    assert SECRET not in world.dump()
    assert "别的" in world.dump()
    await world.run(everything=True)


async def test_an_error_that_comes_after_it_tells_nothing(world: World) -> None:
    await record(world, said(SECRET, local(DAY, 9), id_="1"))
    before = await traces.last_erasure(1)
    await chats.note_failure(1, f"模型写了：{SECRET}", world.clock.now(), before)
    assert SECRET in world.dump()
    world.clock.time = local(DAY, 12)
    await forget(world)
    await chats.note_failure(1, f"模型写了：{SECRET}", world.clock.now(), before)
    assert SECRET not in world.dump()
    chat = await Chat.get(id=1)
    assert (chat.failures, chat.last_error) == (2, traces.REPLACED)
    since = await traces.last_erasure(1)
    assert since != before
    await chats.note_failure(1, "模型没有回应", world.clock.now(), since)
    assert (await Chat.get(id=1)).last_error == "模型没有回应"


async def test_a_note_that_is_empty_already_is_not_counted_again(world: World) -> None:
    await world.talk(8, local(DAY, 10))
    await record(
        world,
        said("收回的", local(DAY, 10, 20), id_="x"),
        said("另一句", local(DAY, 10, 21), id_="y"),
    )
    await world.run(everything=True)
    await world.withdraw("x")
    world.clock.time = local(DAY, 12)
    done = await forgetting.forget(1, SHE, world.clock.now())
    assert (done.messages, done.notes) == (1, 0)


async def test_another_process_notes_the_name_of_whoever_comes_back(world: World) -> None:
    await record(world, said("在", local(DAY, 9), id_="1"))
    world.clock.time = local(DAY, 12)
    kept = dict(speakers._shown)
    await forget(world)
    speakers._shown.update(kept)  # as it is in a process that has not done it
    await record(world, said("又来了", local(DAY, 13), id_="2"))
    assert [(row.user_id, row.name) for row in await Speaker.all()] == [(SHE, "小蓝")]


async def test_an_id_of_any_length_is_forgotten(world: World) -> None:
    long = "长" * 200
    await record(world, said(SECRET, local(DAY, 9), by=long, id_="1"))
    await forgetting.forget(1, long, local(DAY, 12))
    assert SECRET not in world.dump()
    assert "小蓝" not in world.dump()


async def test_an_answer_that_was_echoed_first_leaves_no_hash_of_its_words(world: World) -> None:
    echo = said(SECRET, local(DAY, 9), by=ME, name="小忆", source="echo")
    await record(world, echo)
    (before,) = await Row.filter(user_id=ME)
    sent = said(SECRET, local(DAY, 9), by=ME, name="小忆", source="sent", skipped="opted_out")
    for line in (sent, echo):
        await record(world, line)
        (after,) = await Row.filter(user_id=ME)
        assert (after.text, after.skipped) == ("", "opted_out")
        assert after.dedup_key.partition("||")[2] == f"masked|{after.seq}"
    assert before.dedup_key != after.dedup_key


@pytest.mark.parametrize("opted_out", [False, True])
async def test_an_export_from_elsewhere_brings_no_old_name_back(
    world: World, opted_out: bool
) -> None:
    """Another database may not know of it, and have written the file only afterwards."""
    await record(world, said("在", local(DAY, 9), id_="1"))
    world.clock.time = local(DAY, 12)
    await forget(world)
    importer = Importer(1, readable, "小忆")
    restorer = Restorer(importer, CALENDAR, local(DAY, 13))
    people = [
        Person(SHE, "小蓝", ("旧名", "小蓝"), opted_out),
        Person("20001", "鹿", ("鹿",), False),
    ]
    assert await restorer.store(people) == []
    old = said("在", local(DAY, 9), id_="1", source="import")
    await importer.store([Line(old), Line(replace(old, message_id="0", name="旧名"))])
    await importer.finish()
    assert not any(name in world.dump() for name in ("小蓝", "旧名"))
    assert "鹿" in world.dump()
    assert await exclusions.opted_out(1, SHE) is opted_out


@pytest.mark.parametrize("how", ["forgotten", "opted out"])
async def test_a_file_that_knows_names_alone_brings_nothing_back(world: World, how: str) -> None:
    if how == "opted out":
        await exclusions.opt_out(1, SHE, local(DAY, 8), world.clock.now())
    await record(world, said(SECRET, local(DAY, 9), id_="1"))
    world.clock.time = local(DAY, 12)
    if how == "forgotten":
        await forget(world)
    old = said(SECRET, local(DAY, 9), by="name:小蓝", source="import")
    other = said("同一秒的", local(DAY, 9), by="name:小鹿", name="小鹿", source="import")
    later = said("后来的", local(DAY, 10), by="name:小鹿", name="小鹿", source="import")
    importer = Importer(1, readable, "小忆")
    await importer.store([Line(line, nameless=True) for line in (old, other, later)])
    await importer.finish()
    assert SECRET not in world.dump()
    assert "小蓝" not in world.dump()
    assert [row.text for row in await Row.filter(user_id="name:小鹿")] == ["同一秒的", "后来的"]


async def test_a_fact_that_goes_back_has_no_date_of_the_text_that_is_gone(world: World) -> None:
    world.writer.facts = lambda window: (
        NewFact("约定", "聚会", window.messages[0].text, window.messages[0].seq),
    )
    for number, text in enumerate(["周末聚", SECRET]):
        at = local(DAY, 9 + number)
        await record(world, said(text, at, id_=str(number)))
        await world.run(everything=True)
    await Fact.all().update(due="2026-12-01", done_at=world.clock.now())
    await world.withdraw("1")
    ((fact, earlier),) = await facts.everything(1)
    assert (fact.text, fact.due, fact.done_at, earlier) == ("周末聚", None, None, [])


async def test_much_is_taken_back_in_few_statements(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is one transaction, for which everybody else waits."""
    start = local(DAY, 9)
    times = [start + timedelta(seconds=second) for second in range(300)]
    await record(world, *[said(f"话{n}", at, id_=str(n)) for n, at in enumerate(times)])
    await world.run(everything=True)
    now = world.clock.now()
    fact = {"chat_id": 1, "category": "c", "created_at": now, "written_at": now}
    for seq in range(1, 301):
        row = await Fact.create(**fact, owner="20001", name=f"{seq}", text=SECRET, source=seq)
        if seq == 300:
            await FactVersion.create(chat_id=1, fact_id=row.id, text="从前", written_at=now)
    statements: list[str] = []
    execute = SqliteClient.execute_query

    async def counted(client: SqliteClient, query: str, values: list[Any] | None = None) -> Any:
        statements.append(query)
        return await execute(client, query, values)

    world.clock.time = local(DAY, 12)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteClient, "execute_query", counted)
        done = await forgetting.forget(1, SHE, world.clock.now())
    assert (done.messages, done.facts) == (300, 300)
    assert 10 < len(statements) < 80
    assert [(fact.text, old) for fact, old in await facts.everything(1)] == [("从前", [])]
