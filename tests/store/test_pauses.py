"""While recording is paused nothing that is said leaves a text, however and whenever it arrives."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
import sqlite3
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import NotRecorded
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    facts,
    fetched,
    invariants,
    leaving_out,
    pauses,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.database import transactional
from plugins.nonebot_plugin_nianlun.store.importing import Importer
from plugins.nonebot_plugin_nianlun.store.matching import Line
from plugins.nonebot_plugin_nianlun.store.models import Activity, Chat, Exclusion, SpeakerName
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import Fact
from tests.store.test_exclusions import GROUP, NOON, OTHER, SHE, at, record, rows, said
from tests.store.test_upkeep import CALENDAR

pytestmark = pytest.mark.usefixtures("database_file")
BLANK = ("", "", "[]", "paused")


async def here() -> int:
    return (await chats.ensure([GROUP], NOON))[GROUP]


async def texts() -> list[tuple[str, str | None]]:
    return [(text, skipped) for text, _, _, skipped in await rows()]


async def test_nothing_is_recorded_between_pausing_and_going_on(database_file: Path) -> None:
    await record(said("之前", 1, message_id="1"))
    assert await pauses.pause(await here(), at(10), NOON)
    await record(said("停", 11, message_id="2"), said("/记忆", 12, skipped="command"))
    await record(said("我的话", 13, by="me", source="sent"))
    await record(said("我的话", 13, by="me", source="echo", message_id="3"))
    assert await pauses.resume(await here(), at(20))
    await record(said("之后", 20, message_id="4"))
    assert await texts() == [("之前", None), *[("", "paused")] * 3, ("之后", None)]
    assert (await rows())[1:4] == [BLANK] * 3
    stored = await asyncio.to_thread(database_file.read_bytes)
    assert not [word for word in ("停", "我的话") if word.encode() in stored]
    found = await invariants.check(database_file, await here(), CALENDAR, NOON)
    assert found.findings == ()


async def test_saying_it_twice_changes_nothing() -> None:
    assert not await pauses.resume(await here(), at(1))
    assert await pauses.pause(await here(), at(2), NOON)
    assert not await pauses.pause(await here(), at(3), NOON)
    assert (await Chat.get(id=await here())).paused
    assert await pauses.resume(await here(), at(4))
    assert not await pauses.resume(await here(), at(5))
    assert not (await Chat.get(id=await here())).paused
    assert [(e.begins, e.ends) for e in await Exclusion.all()] == [(at(2), at(4))]


async def test_what_came_in_before_it_was_carried_out_goes_and_its_second_stays() -> None:
    await record(said("同一秒", 10, message_id="1"), said("之后", 11, message_id="2"))
    await pauses.pause(await here(), at(10), NOON)
    assert await texts() == [("同一秒", None), ("", "paused")]


async def test_it_is_about_one_chat_and_everybody_in_it(database_file: Path) -> None:
    await pauses.pause(await here(), at(10), NOON)
    await record(said("别处", 11, message_id="1", chat=OTHER))
    assert [row[0] for row in await rows(OTHER)] == ["别处"]
    with closing(sqlite3.connect(database_file)) as connection:
        assert exclusions.unrecorded(connection, await here(), "20002")
        there = (await chats.ensure([OTHER], NOON))[OTHER]
        assert not exclusions.unrecorded(connection, there, SHE)
    with pytest.raises(NotRecorded, match="暂停"):
        await facts.remember(await here(), SHE, [FactItem("a", "b", "c")], None, at(12))


async def test_history_that_comes_later_passes_through_it_and_is_not_doubled() -> None:
    await pauses.pause(await here(), at(10), NOON)
    await record(said("甲", 11, message_id="1"), said("乙", 12, message_id="2"))
    await pauses.resume(await here(), at(20))
    # The other side has numbered its lines anew, and one of them was missed.
    lines = [said("甲", 11, message_id="91"), said("乙", 12, message_id="92")]
    lines += [said("丙", 13, message_id="93"), said("丁", 21, message_id="94")]
    found = await fetched.sort_out(await here(), list(map(Line, lines)), readable, "小忆")
    assert [line.message.message_id for line in found.new] == ["93", "94"]
    await record(*[line.message for line in found.new])
    assert await texts() == [("", "paused")] * 3 + [("丁", None)]


async def test_an_imported_file_passes_through_it() -> None:
    await pauses.pause(await here(), at(10), NOON)
    await record(said("甲", 11, message_id="1"))
    await pauses.resume(await here(), at(20))
    lines = [said(word, second, source="import") for word, second in (("甲", 11), ("乙", 12))]
    importer = Importer(await here(), readable, "小忆")
    stored = await importer.store([Line(said("早", 1, source="import")), *map(Line, lines)])
    await importer.finish()
    assert (stored.new, stored.known) == (2, 1)
    assert sorted(await texts()) == [("", "paused"), ("", "paused"), ("早", None)]
    assert [row.name for row in await SpeakerName.all()] == ["小蓝"]


async def test_a_file_that_says_paused_and_not_since_when_is_believed() -> None:
    await Chat.filter(id=await here()).update(paused=True)
    await pauses.settle(await here(), at(5))
    await pauses.settle(await here(), at(6))
    await record(said("停", 7, message_id="1"))
    assert await texts() == [("", "paused")]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=6), st.data())
async def test_whatever_order_everything_comes_in(
    orders: list[tuple[bool, int]], data: st.DataObject
) -> None:
    """Only what was said outside of every pause ever has a text."""
    await Exclusion.all().delete()
    await Row.all().delete()
    await Chat.all().update(last_seq=0, paused=False)
    pausing, spans = False, []
    for pause, second in sorted(orders, key=lambda order: order[1]):
        if pause:
            await pauses.pause(await here(), at(second), NOON)
            spans += [] if pausing else [(second, 99)]
        else:
            await pauses.resume(await here(), at(second))
            if pausing:
                spans[-1] = (spans[-1][0], second)
        pausing = pause
    seconds = data.draw(st.lists(st.integers(0, 50), unique=True, max_size=8))
    await record(*[said(f"第{s}秒", s, message_id=f"{s}") for s in seconds])
    told = {row.text for row in await Row.all()} - {""}
    free = [s for s in seconds if not any(first <= s < end for first, end in spans)]
    assert told == {f"第{s}秒" for s in free}


async def test_a_stretch_is_taken_out_of_the_record(database_file: Path) -> None:
    her = [said(f"她的{n}", n, message_id=f"{n}") for n in range(1, 5)]
    await record(*her, said("别人的", 3, by="20002", name="阿川", message_id="9"))
    await record(said("/记忆 别记这段", 5, message_id="10", skipped="command"))
    chat_id = await here()
    note = await Activity.create(
        chat_id=chat_id, number=1, date="2026-11-29", from_seq=1, to_seq=2, text="她说了她的1",
        origin="window", time=NOON, writer="model", written_at=NOON,
    )  # fmt: skip
    await Chat.filter(id=chat_id).update(last_activity=1)
    await Row.filter(chat_id=chat_id, seq__lte=2).update(activity_id=note.id)
    await transactional(facts.store)(chat_id, [Fact("a", "b", "她的3", 3)], NOON)
    assert await leaving_out.leave_out(chat_id, SHE, at(2), at(6), at(5)) == 3
    assert await leaving_out.leave_out(chat_id, SHE, at(2), at(6), at(5)) == 0
    found = {row.seq: (row.text, row.skipped) for row in await Row.filter(chat_id=chat_id)}
    by_words = sorted(text for text, _ in found.values())
    assert by_words == ["", "", "", "", "别人的", "她的1"]
    assert (await Activity.get(id=note.id)).stale
    assert (await Activity.get(id=note.id)).text == ""
    assert await facts.listed(chat_id) == []
    again = [said("她的3", 3, message_id="77"), said("她的0", 0, message_id="78")]
    await record(*again)
    assert {row.text for row in await Row.filter(message_id__in=["77", "78"])} == {"", "她的0"}
    check = await invariants.check(database_file, chat_id, CALENDAR, NOON)
    assert check.findings == ()
    with sqlite3.connect(database_file) as connection:
        (left,) = connection.execute("SELECT count(*) FROM nianlun_search_terms").fetchone()
    connection.close()
    assert left == 3


async def test_no_query_more_for_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    await pauses.pause(await here(), at(1), NOON)
    await pauses.resume(await here(), at(2))
    await record(said("一", 3, message_id="1"))
    asked = 0
    note_name = recording.sql.note_name

    async def counted(*arguments: Any) -> None:
        nonlocal asked
        asked += 1
        await note_name(*arguments)

    monkeypatch.setattr(recording.sql, "note_name", counted)
    await record(said("二", 4, message_id="2"), said("三", 5, message_id="3"))
    assert asked == 0
    await record(said("四", 6, by="20002", name="阿川", message_id="4"))
    assert asked == 1
