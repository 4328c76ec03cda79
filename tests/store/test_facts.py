"""Facts: one text a name, what it was before, whose it is, and where its links lead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun.errors import NoteRejected, NotRecorded
from plugins.nonebot_plugin_nianlun.interface.facts import Facts
from plugins.nonebot_plugin_nianlun.memory.links import Linked
from plugins.nonebot_plugin_nianlun.memory.search import Candidate
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    facts,
    forgetting,
)
from plugins.nonebot_plugin_nianlun.store.models import Fact as Row
from plugins.nonebot_plugin_nianlun.store.models import FactVersion
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Fact
from tests.store.test_restoring import bring, exported, write
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, World, local
from tests.support.scripted_writer import SetClock

OTHER = ChatKey("10001", "group", "456")
SHE, HE = "20001", "20002"


@dataclass
class Host:
    clock: SetClock


@pytest.fixture
async def world(database_file: Path) -> World:
    found = World(database_file)
    await chats.ensure([GROUP], found.clock.now())
    return found


@pytest.fixture
def known(world: World) -> Facts:
    return Facts(Host(world.clock), GROUP)


async def texts(fact_id: int = 1) -> list[str]:
    return [version.text for version in await facts.journal(fact_id)]


async def test_the_same_name_is_an_update_and_the_old_text_is_kept(
    world: World, known: Facts
) -> None:
    first = await known.add("preferences", "咖啡", "只喝美式", owner=SHE)
    assert (first.address, first.content, first.owner) == ("preferences:咖啡", "只喝美式", SHE)
    world.clock.time += timedelta(hours=1)
    await known.add("preferences", " 咖啡 ", "只喝美式", owner=SHE)
    assert await texts() == []
    assert (await known.items())[0].written_at == first.written_at
    await known.add("preferences", "咖啡", "改喝拿铁了", owner=SHE)
    assert await texts() == ["只喝美式"]
    (entry,) = await known.items()
    assert (entry.content, entry.written_at) == ("改喝拿铁了", world.clock.now())


async def test_owners_categories_and_chats_are_apart(world: World, known: Facts) -> None:
    await known.add("preferences", "茶", "她的", owner=SHE)
    await known.add("preferences", "茶", "他的", owner=HE)
    await known.add("preferences", "茶", "我的", owner=ME)
    await known.add("preferences", "茶", "群里的")
    await known.add("event", "茶", "另一类", owner=SHE)
    other = Facts(Host(world.clock), OTHER)
    assert await other.items() == []
    await other.add("preferences", "茶", "别处的", owner=SHE)
    assert await known.categories() == ["event", "preferences"]
    assert len(await known.items()) == 5
    assert [f.content for f in await known.items(owner="")] == ["群里的"]
    assert [f.content for f in await known.items(owner=SHE, category="event")] == ["另一类"]
    found = await known.get("preferences", "茶", owner=HE)
    assert found is not None
    assert found.content == "他的"
    assert await known.get("preferences", "茶", owner="20003") is None


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"category": "../x"}, NoteRejected),
        ({"name": "a:b"}, NoteRejected),
        ({"content": " "}, NoteRejected),
        ({"owner": "Me"}, ValueError),
        ({"owner": " "}, ValueError),
        ({"owner": 20001}, ValueError),
        ({"owner": "20001\0"}, ValueError),
        ({"owner": "\ud800"}, ValueError),
        ({"source": 99}, NotRecorded),
        ({"source": 1 << 70}, ValueError),
        ({"source": True}, ValueError),
        ({"source": "1"}, ValueError),
    ],
)
async def test_what_cannot_be_leaves_nothing(
    known: Facts, given: dict[str, Any], error: type[Exception]
) -> None:
    fields: dict[str, Any] = {"category": "event", "name": "甲", "content": "乙"}
    with pytest.raises(error):
        await known.add(**(fields | given))
    assert await Row.all().count() == 0


async def test_a_list_is_judged_item_by_item(known: Facts) -> None:
    items = [
        {"category": "event", "name": "甲", "content": "一"},
        {"category": "不行", "name": "乙", "content": "二"},
        "三",
        *({"category": "event", "name": f"第{n}", "content": "x"} for n in range(7)),
    ]
    kept, refused = await known.learn(items, owner=SHE)
    assert [entry.name for entry in kept] == ["甲", "第0", "第1", "第2", "第3", "第4"]
    assert len(refused) == 3
    for no_list in (None, {"category": "event"}, "三", 5):
        assert await known.learn(no_list, owner=SHE) == ([], ["facts 应为一个列表"])  # pyright: ignore[reportArgumentType]


async def test_blanks_around_an_owner_are_no_part_of_it(world: World, known: Facts) -> None:
    await known.add("event", "旅行", "要去大理", owner=f" {SHE}\n")
    found = await known.get("event", "旅行", owner=f"{SHE} ")
    assert found is not None
    assert found.owner == SHE
    assert await known.items(owner=f" {SHE}") == [found]
    await forgetting.forget(1, SHE, world.clock.now())
    assert await Row.all().count() == 0


async def test_removed_and_back_again(world: World, known: Facts) -> None:
    await known.add("event", "旅行", "要去大理", owner=SHE)
    assert await known.remove("event", "旅行", owner=SHE)
    assert not await known.remove("event", "旅行", owner=SHE)
    assert not await known.remove("event", "旅行")
    assert await known.items() == []
    assert await known.categories() == []
    assert await known.get("event", "旅行", owner=SHE) is None
    assert await texts() == ["要去大理"]
    await known.add("event", "旅行", "要去腾冲", owner=SHE)
    assert await texts() == ["要去大理", ""]
    assert [f.content for f in await known.items()] == ["要去腾冲"]


async def test_what_was_removed_stays_so_through_a_file(
    world: World, known: Facts, tmp_path: Path
) -> None:
    await known.add("event", "旅行", "要去大理", owner=SHE)
    world.clock.time += timedelta(hours=1)
    await known.remove("event", "旅行", owner=SHE)
    file = write(tmp_path / "facts.jsonl", await exported())
    await Row.all().delete()
    await FactVersion.all().delete()
    await bring(file)
    assert await known.items() == []
    assert await texts((await Row.get()).id) == ["要去大理"]


async def test_a_withdrawn_message_takes_its_text_back_also_a_removed_one(
    world: World, known: Facts
) -> None:
    message_id = await world.say("我要去大理", local(DAY, 8), by=SHE)
    await facts.store(1, [Fact("event", "旅行", "要去大理", 1)], world.clock.now())
    await known.remove("event", "旅行", owner=SHE)
    assert await texts() == ["要去大理"]
    await world.withdraw(message_id)
    assert await Row.all().count() == await FactVersion.all().count() == 0


async def test_an_earlier_text_comes_back_also_when_it_was_a_removal(
    world: World, known: Facts
) -> None:
    await known.add("event", "旅行", "要去大理", owner=SHE)
    await known.remove("event", "旅行", owner=SHE)
    message_id = await world.say("还是去腾冲", local(DAY, 8), by=SHE)
    await facts.store(1, [Fact("event", "旅行", "要去腾冲", 1)], world.clock.now())
    await world.withdraw(message_id)
    assert await known.items() == []
    assert await texts() == ["要去大理"]


async def test_lines_beside_a_withdrawn_one_that_no_window_covers(
    world: World, known: Facts
) -> None:
    ids = [await world.say(f"话{n}", local(DAY, 8, n), by=SHE) for n in range(40)]
    for seq in (1, 20, 32, 33):
        await facts.store(1, [Fact("event", f"第{seq}", "x", seq)], world.clock.now())
    await world.withdraw(ids[20])
    assert [f.name for f in await known.items()] == ["第1", "第33"]
    await world.run(everything=True)
    await world.withdraw(ids[0])
    assert await known.items() == []


async def test_nobody_who_opted_out_or_was_forgotten_owns_a_fact(
    world: World, known: Facts
) -> None:
    now = world.clock.now()
    await world.say("我叫小蓝", local(DAY, 8), by=SHE)
    await exclusions.opt_out(1, SHE, now, now)
    with pytest.raises(NotRecorded):
        await known.add("profile", "名字", "小蓝", owner=SHE)
    await exclusions.opt_in(1, SHE, now)
    await known.add("profile", "名字", "小蓝", owner=SHE)
    await known.remove("profile", "名字", owner=SHE)
    await known.add("profile", "住处", "北京", owner=SHE)
    await forgetting.forget(1, SHE, now)
    assert await Row.all().count() == await FactVersion.all().count() == 0


async def test_a_source_that_may_not_be_recorded_makes_no_fact(world: World) -> None:
    await world.say("我叫小蓝", local(DAY, 8), by=SHE)
    await exclusions.begin(1, SHE, local(DAY, 7), world.clock.now())
    await facts.store(1, [Fact("profile", "名字", "小蓝", 1)], world.clock.now())
    assert await Row.all().count() == 0


async def test_whoever_said_it_owns_it(world: World, known: Facts) -> None:
    await world.say("我只喝美式", local(DAY, 8), by=SHE)
    await world.say("我答应明天叫你起床", local(DAY, 8, 1), by=ME)
    learnt = [Fact("preferences", "咖啡", "美式", 1), Fact("promise", "起床", "叫她起床", 2)]
    await facts.store(1, learnt, world.clock.now())
    assert {f.name: (f.owner, f.source) for f in await known.items()} == {
        "咖啡": (SHE, 1),
        "起床": (ME, 2),
    }


def hit(row: Row) -> Candidate:
    return Candidate(
        "fact", row.id, 2.5, row.written_at, row.text, row.owner or None, row.name, row.category
    )


async def linked(world: World, hits: list[Candidate]) -> Linked:
    reader = SearchReader(world.file, CALENDAR)
    try:
        return (await reader.run(lambda view: view.company(1, hits)))[0]
    finally:
        await reader.close()


async def test_links_lead_one_step_within_the_chat(world: World, known: Facts) -> None:
    await known.add("profile", "家", "住北京，见 [[profile:猫]] [[event:旅行]]", owner=SHE)
    await known.add("profile", "猫", "叫煤球，爱 [[profile:鱼]]", owner=SHE)
    await known.add("profile", "猫", "他的猫", owner=HE)
    await known.add("profile", "鱼", "三文鱼")
    await Facts(Host(world.clock), OTHER).add("event", "旅行", "别处的")
    row = await Row.get(chat_id=1, name="家")
    found = await linked(world, [hit(row)])
    ((target,),) = found.by_fact.values()
    assert (target.text, target.user_id, target.score) == ("叫煤球，爱 [[profile:鱼]]", SHE, 0.0)
    assert target.time == world.clock.now()
    assert found.unresolved == ("event:旅行",)
    await known.remove("profile", "猫", owner=SHE)
    again = await linked(world, [hit(row)])
    assert [c.text for c in again.by_fact[row.id]] == ["他的猫"]


async def test_without_links_nothing_is_asked(world: World, known: Facts) -> None:
    await known.add("profile", "家", "住北京", owner=SHE)
    found = await linked(world, [hit(await Row.get())])
    assert (found.by_fact, found.unresolved) == ({}, ())


async def test_very_many_links_are_followed_in_one_go(world: World, known: Facts) -> None:
    for n in range(30):
        await known.add("profile", f"从{n}", "".join(f"[[profile:到{n}-{m}]]" for m in range(15)))
    last = await known.add("profile", "到29-14", "最后一个")
    found = await linked(world, [hit(row) for row in await Row.all()])
    assert [c.text for links in found.by_fact.values() for c in links] == [last.content]
    assert len(found.unresolved) == 449
