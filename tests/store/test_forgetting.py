"""Forgetting a member: every layer, every version, every byte; and what comes in afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
import sqlite3

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.chat.recall import Recaller
from plugins.nonebot_plugin_nianlun.config import Settings
from plugins.nonebot_plugin_nianlun.errors import StoreError
from plugins.nonebot_plugin_nianlun.recalling import Recalling
from plugins.nonebot_plugin_nianlun.store import (
    about_one,
    chats,
    database,
    deleting,
    editing,
    exclusions,
    facts,
    forgetting,
    invariants,
    memories,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.models import (
    Activity,
    Chat,
    Exclusion,
    Fact,
    FactVersion,
    Memory,
    NoteVersion,
    Property,
    Speaker,
    SpeakerName,
)
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    ChatKey,
    Forgotten,
    Incoming,
    SkipReason,
    Source,
)
from plugins.nonebot_plugin_nianlun.types import Fact as NewFact
from tests.store.test_upkeep import CALENDAR, GROUP, World, check_cover, close_days, local

SHE = "20777"
START = date(2026, 10, 28)
PRIVATE = ChatKey("10001", "private", SHE)


@pytest.fixture
async def world(database_file: Path) -> AsyncIterator[World]:
    found = World(database_file)
    assert await chats.ensure([GROUP], found.clock.now()) == {GROUP: found.chat_id}
    yield found
    await check_cover(found)


def said(
    text: str,
    at: datetime,
    *,
    by: str = SHE,
    name: str = "小蓝",
    chat: ChatKey = GROUP,
    source: Source = "event",
    message_id: str | None = None,
    skipped: SkipReason | None = None,
) -> Incoming:
    segments = [{"type": "text", "data": {"text": text}}]
    return Incoming(chat, at, by, name, segments, source, message_id=message_id, skipped=skipped)


async def record(world: World, *lines: Incoming) -> None:
    await recording.record(lines, readable, "小忆", world.clock.now())


async def forget(world: World, chat: ChatKey = GROUP) -> Forgotten:
    chat_id = await chats.find(chat)
    assert chat_id is not None
    return await forgetting.forget(chat_id, SHE, world.clock.now())


def files_with(world: World, text: str) -> set[str]:
    """The files of the database's folder in which these bytes are."""
    files = (path for path in world.file.parent.rglob("*") if path.is_file())
    return {path.name for path in files if text.encode() in path.read_bytes()}


async def prompt(world: World) -> str:
    """All that a reply would be shown now."""
    reader = SearchReader(world.file, CALENDAR)
    recalling = Recalling(reader, "小忆", world.clock, CALENDAR)
    recaller = Recaller(Settings(), "小忆", world.clock, CALENDAR, recalling)
    try:
        return repr((await recaller.prompt(GROUP)).messages) + repr(
            await recaller.scene(GROUP, world.chat_id, "暗号")
        )
    finally:
        await reader.close()


async def plant(world: World) -> dict[str, str]:
    """A string of its own in each place where something of a member may be; by place."""
    planted = {
        place: f"暗号{place}"
        for place in (
            "正文", "没写的", "没有号的", "指令", "旧名", "新名", "段", "事实", "旧事实",
            "别人的事实", "别人的旧事实", "时刻", "旧活动", "旧日", "年", "旧年", "错误",
        )
    }  # fmt: skip
    chat, secret = world.chat_id, planted
    await world.talk(5, local(START, 10, 30), "前")
    world.writer.facts = lambda window: tuple(
        NewFact("preferences", "口味", text, line.seq)
        for text, line in zip(
            [secret["旧事实"], secret["事实"]],
            [line for line in window.messages if line.user_id == SHE],
            strict=False,
        )
    )
    body = {"type": "image", "data": {"file": "1.png", "summary": secret["段"]}}
    lines = [
        said(secret["正文"], local(START, 10, 40), name=secret["旧名"], message_id="a"),
        said(secret["没有号的"], local(START, 10, 41), name=secret["新名"]),
        said(
            "/记忆 今天 " + secret["指令"],
            local(START, 10, 42),
            name=secret["新名"],
            skipped="command",
        ),
    ]
    lines[0].segments.append(body)
    await record(world, *lines)
    await world.talk(4, local(START, 10, 43), "后")
    await close_days(world, 5, start=START)
    world.writer.facts = lambda window: ()
    now = world.clock.now()
    her = await Row.filter(chat_id=chat, user_id=SHE).order_by("seq").first()
    assert her is not None
    assert her.activity_id is not None
    where = {"chat_id": chat, "category": "约定", "created_at": now, "written_at": now}
    fact = await Fact.create(
        **where, owner="20001", name="聚会", text=secret["别人的事实"], source=her.seq
    )
    await FactVersion.create(chat_id=chat, fact_id=fact.id, text="先说定周六", written_at=now)
    await FactVersion.create(
        chat_id=chat, fact_id=fact.id, text=secret["别人的旧事实"], source=her.seq, written_at=now
    )
    note = {"chat_id": chat, "writer": "model", "written_at": now}
    await Activity.create(
        **note,
        number=99,
        date="2026-10-30",
        text=secret["时刻"],
        origin="tool",
        owner=SHE,
        time=now,
    )
    await Chat.filter(id=chat).update(last_activity=99, last_error=secret["错误"])
    window = await Activity.get(id=her.activity_id)
    for kind, ref, source, place in (
        ("activity", str(window.number), "[]", "旧活动"),
        ("day", "2026-10-28", f'["{window.number}"]', "旧日"),
        ("year", "2026", '["2026-10"]', "旧年"),
    ):
        await NoteVersion.create(
            **note, kind=kind, ref=ref, version=0, sources=source, text=secret[place]
        )
    year = await Memory.get(chat_id=chat, kind="year")
    await Memory.filter(id=year.id).update(text=year.text + secret["年"])
    await record(world, said(secret["没写的"], now, name=secret["新名"], message_id="b"))
    return planted


async def test_every_place_is_emptied_and_no_byte_is_left(world: World) -> None:
    planted = await plant(world)
    with closing(database.connect(world.file, 5)) as connection:
        database.back_up(connection, world.file, "0002")
    for place, text in planted.items():
        assert text in world.dump(), place
        assert any(name.endswith(".db") for name in files_with(world, text)), place
    assert planted["正文"] in await prompt(world)
    assert planted["年"] in await prompt(world)
    assert planted["正文"] in repr(await world.export())

    done = await forget(world)
    assert done == Forgotten(messages=4, notes=5, facts=2, names=2, opted_out=False)
    for place, text in planted.items():
        assert text not in world.dump(), place
        assert text not in repr(await world.export()), place
        assert text not in await prompt(world), place
    assert await Traces(world.file).remove()
    for place, text in planted.items():
        assert files_with(world, text) == set(), place
    assert len(database.backups(world.file)) == 1

    report = await world.run(everything=True)
    assert report.errors == ()
    assert await world.run() == type(report)()
    day = await world.memory("day", "2026-10-28")
    month = await world.memory("month", "2026-10")
    assert day is not None
    assert month is not None
    assert "前4" in day
    assert "后0" in month
    assert not any(text in world.dump() for text in planted.values())
    ((fact, earlier),) = await facts.everything(world.chat_id)
    assert (fact.text, earlier) == ("先说定周六", [])
    assert await forget(world) == Forgotten(0, 0, 0, 0, opted_out=False)


async def test_others_keep_what_they_said(world: World) -> None:
    await world.talk(8, local(START, 10), "小蓝说过的")
    await record(world, said("我自己说的", local(START, 10, 20), message_id="x"))
    await world.run(everything=True)
    before = await Row.filter(chat_id=world.chat_id).exclude(user_id=SHE).values("text", "name")
    names = await SpeakerName.filter(chat_id=world.chat_id).count()
    world.clock.time = local(START, 12)
    await forget(world)
    after = await Row.filter(chat_id=world.chat_id).exclude(user_id=SHE).values("text", "name")
    assert after == before
    assert await SpeakerName.filter(chat_id=world.chat_id).count() == names - 1
    assert await Speaker.filter(chat_id=world.chat_id, user_id=SHE).count() == 0
    (hers,) = await Row.filter(chat_id=world.chat_id, user_id=SHE)
    assert (hers.text, hers.name, hers.segments, hers.seq) == ("", "", "[]", 9)
    assert hers.withdrawn_at is not None
    await world.run(everything=True)
    checked = await invariants.check(world.file, world.chat_id, CALENDAR, world.clock.now())
    assert checked.findings == ()


async def test_a_private_talk_is_forgotten_on_both_sides(world: World) -> None:
    at = local(START, 10)
    await record(
        world,
        said("我住在花园路", at, chat=PRIVATE, message_id="1"),
        said("花园路很好呀", at, chat=PRIVATE, by=ME, name="小忆", source="sent", message_id="2"),
        said("群里的话", at, message_id="3"),
    )
    assert (await forget(world, PRIVATE)).messages == 2
    again = said("花园路很好呀", at, chat=PRIVATE, by=ME, name="小忆", source="import")
    await record(world, replace(again, time=at - timedelta(days=1)))
    assert "花园路" not in world.dump()
    assert "群里的话" in world.dump()


async def test_it_is_done_wholly_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = await plant(world)
    before = world.dump()

    async def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(forgetting, "_keep_away", fail)
        with pytest.raises(StoreError):
            await forget(world)
    assert world.dump() == before
    await forget(world)
    assert not any(text in world.dump() for text in planted.values())


async def test_what_is_owed_outlives_the_process(world: World) -> None:
    planted = await plant(world)
    await forget(world)
    await database.close_store()
    await database.prepare(world.file)
    await database.open_store(world.file)
    assert await Property.filter(key="erasing").exists()
    assert await Traces(world.file).remove()
    assert not await Property.filter(key="erasing").exists()
    assert all(files_with(world, text) == set() for text in planted.values())
    assert (await world.run()).activities >= 1


async def test_older_lines_do_not_come_back_and_new_ones_are_recorded(world: World) -> None:
    world.clock.time = local(START, 12)
    line = said("说过的", local(START, 10), message_id="1")
    await record(world, line, said("没有号", local(START, 10)))
    await forget(world)
    late = said("迟到的", local(START, 11), message_id="2", name="新起的名字")
    await record(world, line, late, said("同一秒的", local(START, 12), message_id="3"))
    await record(world, said("后来说的", local(START, 12, 1), message_id="4"))
    rows = await Row.filter(chat_id=world.chat_id).order_by("seq")
    assert [(row.text, row.name, row.skipped) for row in rows] == [
        ("", "", "withdrawn"),
        ("", "", "withdrawn"),
        ("", "", "opted_out"),
        ("", "", "opted_out"),
        ("后来说的", "小蓝", None),
    ]
    assert [row.name for row in await SpeakerName.all()] == ["小蓝"]


async def test_a_later_wish_reaches_further(world: World) -> None:
    await record(world, said("在", local(START, 9), message_id="1"))
    for hour in (14, 12):
        world.clock.time = local(START, hour)
        await forget(world)
    (one,) = await Exclusion.filter(reason="forgotten")
    assert one.ends == local(START, 14) + timedelta(seconds=1)


async def test_whoever_opted_out_stays_so(world: World) -> None:
    await record(world, said("在", local(START, 9), message_id="1"))
    await exclusions.opt_out(world.chat_id, SHE, local(START, 10), world.clock.now())
    world.clock.time = local(START, 12)
    assert (await forget(world)).opted_out
    await record(world, said("还说", local(START, 13), message_id="2"))
    assert "还说" not in world.dump()
    assert "小蓝" not in world.dump()
    (speaker,) = [row for row in await world.export() if row["type"] == "speaker"]
    assert (speaker["name"], speaker["names"], speaker["opted_out"]) == (SHE, [SHE], True)


async def test_what_has_nothing_of_an_editor_any_more_stands(world: World) -> None:
    """Who had written what was emptied since is still told by blank versions."""
    await world.talk(8, local(START, 10))
    world.clock.time = local(START + timedelta(days=1), 5)
    await world.run(everything=True)
    now = world.clock.now()
    await editing.edit(1, "activity", "1", "她写的一段。", SHE, now)
    await editing.edit(1, "day", f"{START}", "她写的一天。", SHE, now)
    await deleting.delete(1, [], [1], now)
    await world.run(everything=True)
    assert await world.memory("day", f"{START}") is None
    await world.talk(8, local(START, 15), "后来")
    await world.run(everything=True)
    notes = [await model.all().values() for model in (Activity, Memory)]
    assert "后来" in repr(notes)
    assert await forget(world) == Forgotten(0, 0, 0, 0, opted_out=False)
    assert [await model.all().values() for model in (Activity, Memory)] == notes


async def test_chats_where_somebody_only_wrote_by_hand_are_theirs_too(world: World) -> None:
    now = world.clock.now()
    note = {"date": f"{START}", "origin": "tool", "time": now, "number": 1}
    fact = {"category": "c", "name": "n", "created_at": now}
    texts = {
        Fact: fact,
        FactVersion: {"fact_id": 1},
        Activity: note,
        Memory: {"kind": "year", "period": "2026"},
        NoteVersion: {"kind": "year", "ref": "2026", "version": 1},
    }
    theirs: set[int] = set()
    for blank in (False, True):
        places = [ChatKey("10001", "group", f"{blank}{number}") for number in range(len(texts))]
        ids = await chats.ensure(places, now)
        for place, (model, values) in zip(places, texts.items(), strict=True):
            written = {"writer": SHE, "written_at": now, "text": "" if blank else "词"}
            await model.create(chat_id=ids[place], **values, **written)
        theirs |= set() if blank else {*ids.values()}
    assert await about_one.chats_of(SHE) == theirs
    assert await about_one.chats_of("9" * 40) == set()


@pytest.mark.parametrize("moment", ["noting", "rolling up"])
async def test_forgetting_during_the_model_call_is_not_undone(world: World, moment: str) -> None:
    await record(world, said("口令是芝麻开门", local(START, 9), message_id="1"))
    await world.talk(8, local(START, 9, 1))
    world.clock.time = local(START + timedelta(days=1), 5)

    async def strike() -> None:
        await forget(world)

    if moment == "noting":
        world.writer.while_noting = strike
    else:
        world.writer.while_rolling_up = strike
    await world.run()
    await world.run()
    assert "芝麻开门" not in world.dump()
    day = await memories.memory(world.chat_id, "day", "2026-10-28")
    assert day is not None
    assert "话0" in day.text
