"""The search index: what is written is found, and what is taken back is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
import sqlite3
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import StoreError
from plugins.nonebot_plugin_nianlun.memory.search import Candidate, Search
from plugins.nonebot_plugin_nianlun.memory.terms import query_terms
from plugins.nonebot_plugin_nianlun.store import (
    exclusions,
    facts,
    forgetting,
    recording,
    search,
    search_check,
    search_schema,
)
from plugins.nonebot_plugin_nianlun.store.models import Fact, Memory
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Incoming, Withdrawal
from plugins.nonebot_plugin_nianlun.types import Fact as NewFact
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, World, close_days, local
from tests.support.finder import Finder

OTHER = ChatKey("10001", "group", "999")


@pytest.fixture
async def world(database_file: Path) -> World:
    return World(database_file)


@pytest.fixture
async def reader(database_file: Path) -> AsyncIterator[Finder]:
    found = Finder(database_file, CALENDAR)
    yield found
    await found.close()


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def faults(path: Path, chat_id: int = 1) -> list[str]:
    with reading(path) as connection:
        missing = list(search_check.missing(connection, chat_id))
        return missing + list(search_check.left_over(connection, chat_id))


def entries(path: Path) -> list[tuple[int, str]]:
    with reading(path) as connection:
        return connection.execute("SELECT * FROM nianlun_search_terms ORDER BY id").fetchall()


def index_terms_of(path: Path) -> set[str]:
    """The terms that FTS5 itself has."""
    with reading(path) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, nianlun_search, row)"
        )
        return {term for (term,) in connection.execute("SELECT term FROM temp.vocabulary")}


def about(text: str, **options: Any) -> Search:
    return Search(tuple(query_terms(text)), **options)


def said(
    number: int,
    text: str,
    *,
    user_id: str = "20001",
    chat: ChatKey = GROUP,
    at: datetime | None = None,
    **options: Any,
) -> Incoming:
    moment = at or local(DAY, 9) + timedelta(seconds=number)
    segments = [{"type": "text", "data": {"text": text}}]
    options = {"source": "event", "message_id": f"{chat.peer_id}-{number}"} | options
    return Incoming(chat, moment, user_id, f"名{user_id}", segments, **options)


async def record(*messages: Incoming | Withdrawal) -> None:
    await recording.record(messages, readable, "小忆", local(DAY, 12))


async def found(reader: Finder, text: str, chat_id: int = 1, **options: Any) -> list[str]:
    return [one.text for one in await reader.find(chat_id, about(text, **options))]


async def test_what_is_said_is_found_with_who_said_it_and_when(reader: Finder) -> None:
    await record(said(1, "我明天去医院看牙"), said(2, "晚饭吃面"), said(3, "看牙疼吗", user_id=ME))
    hits = await reader.find(1, about("看牙"))
    assert {hit.text for hit in hits} == {"我明天去医院看牙", "看牙疼吗"}
    first = next(hit for hit in hits if hit.ref == 1)
    assert first.score > 0
    assert first == Candidate(
        "message",
        1,
        first.score,
        local(DAY, 9).astimezone(UTC) + timedelta(seconds=1),
        "我明天去医院看牙",
        "20001",
        "名20001",
    )


async def test_nothing_of_another_chat_is_found_or_counts(reader: Finder) -> None:
    await record(said(1, "口令是海棠"), said(2, "没有别的"))
    alone = await reader.find(1, about("海棠"))
    await record(*(said(n, "海棠海棠", chat=OTHER) for n in range(1, 40)))
    found_beside = await reader.find(1, about("海棠"), around=3)
    assert found_beside[:1] == alone
    assert [(one.text, one.score) for one in found_beside[1:]] == [("没有别的", 0.0)]
    assert {hit.text for hit in await reader.find(2, about("口令海棠"), around=9)} == {"海棠海棠"}
    assert await reader.find(3, about("海棠")) == []


async def test_lines_around_a_hit_come_behind_the_hits(reader: Finder) -> None:
    await record(*(said(n, "海棠花开了" if n == 5 else f"第{n}句") for n in range(1, 10)))
    hits = await reader.find(1, about("海棠"), around=2)
    assert [(hit.ref, hit.score > 0) for hit in hits] == [
        (5, True), (3, False), (4, False), (6, False), (7, False)
    ]  # fmt: skip
    hits = await reader.find(1, about("海棠", before_seq=6), around=2)
    assert [hit.ref for hit in hits] == [5, 3, 4]
    assert await reader.find(1, about("海棠", before_seq=5), around=2) == []


@pytest.mark.parametrize("skipped", ["command", "paused"])
async def test_what_is_no_part_of_the_talk_is_not_found(reader: Finder, skipped: Any) -> None:
    await record(said(1, "海棠", skipped=skipped), said(2, "  "), said(3, "海棠"))
    assert [hit.ref for hit in await reader.find(1, about("海棠"), around=2)] == [3]


async def test_only_what_one_said(reader: Finder) -> None:
    await record(said(1, "喜欢海棠"), said(2, "喜欢海棠", user_id="20002"), said(3, "别的"))
    assert [h.ref for h in await reader.find(1, about("海棠", said_by=("20002",)))] == [2]
    assert [h.ref for h in await reader.find(1, Search((), said_by=("20001",)))] == [3, 1]
    everyone = about("海棠", said_by=("20001", "20002"))
    assert [h.ref for h in await reader.find(1, everyone, around=1)] == [2, 1, 3]
    namesakes = tuple(map(str, range(20001, 20701)))
    assert len(await reader.find(1, about("海棠", favoured=namesakes))) == 2
    first, second = await reader.find(1, about("海棠", favoured=("20001",)))
    assert (first.ref, second.ref) == (1, 2)
    assert first.score > second.score


@pytest.mark.parametrize("speaker", ['小明" OR "x', "name:小 明", "ME", "a\u2028b", "*", "^x", ""])
async def test_a_speaker_of_any_id_is_found_by_it(reader: Finder, speaker: str) -> None:
    await record(said(1, "海棠", user_id=speaker), said(2, "海棠", user_id=ME))
    wanted = [1] if speaker else []
    hits = await reader.find(1, about("海棠", said_by=(speaker, "nobody")))
    assert [hit.ref for hit in hits] == wanted


async def test_a_time(world: World, reader: Finder) -> None:
    days = [DAY + timedelta(days=n) for n in range(3)]
    await record(*(said(n, f"海棠{n}", at=local(day, 9)) for n, day in enumerate(days)))
    await record(said(9, "海棠来晚了", at=local(days[0], 10)))
    span = (CALENDAR.start_of(days[0]), CALENDAR.end_of(days[0]))
    assert set(await found(reader, "海棠", span=span)) == {"海棠0", "海棠来晚了"}
    later = (span[0] + timedelta(days=1), span[1] + timedelta(days=1))
    assert await found(reader, "海棠", span=later) == ["海棠1"]
    assert await found(reader, "", span=later) == ["海棠1"]
    empty = (span[0] - timedelta(days=9), span[0] - timedelta(days=8))
    assert await found(reader, "海棠", span=empty) == []
    assert await found(reader, "海棠", span=(span[1], span[0])) == []
    everything = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    assert len(await found(reader, "海棠", span=everything)) == 4


async def test_notes_of_a_time(world: World, reader: Finder) -> None:
    await close_days(world, 12)
    await world.run()
    first = CALENDAR.start_of(DAY)
    everything = await reader.find(1, Search((), span=(first, first + timedelta(days=400))))
    kinds = {hit.kind for hit in everything}
    assert {"message", "activity", "day"} <= kinds
    one = await reader.find(1, Search((), span=(first, CALENDAR.end_of(DAY))))
    assert {hit.period for hit in one if hit.kind in ("activity", "day")} == {DAY.isoformat()}
    assert not [hit for hit in one if hit.kind in ("month", "year")]
    month = date(DAY.year, DAY.month, 1)
    span = (
        CALENDAR.start_of(month),
        CALENDAR.start_of((month + timedelta(days=32)).replace(day=1)),
    )
    months = {
        hit.period for hit in await reader.find(1, Search((), span=span)) if hit.kind == "month"
    }
    stored = {row.period for row in await Memory.filter(kind="month")}
    assert months == stored & {DAY.isoformat()[:7]}


async def test_every_kind_of_note_is_found_and_leaves_with_its_text(
    world: World, reader: Finder
) -> None:
    ids = await close_days(world, 40)
    await world.run()
    assert faults(world.file) == []
    assert {row.kind for row in await Memory.all()} == {"day", "month", "year"}
    row = await Memory.filter(kind="month").order_by("period").first()
    assert row is not None
    await Memory.filter(id=row.id).update(text="海棠开过")
    assert not await found(reader, "海棠")
    await search.add(1, "month", [row.id])
    (hit,) = await reader.find(1, about("海棠"))
    assert (hit.kind, hit.period, hit.ref) == ("month", row.period, row.id)
    assert CALENDAR.day_of(hit.time).isoformat()[:7] == row.period
    await world.withdraw(ids[0][0])
    assert faults(world.file) == []
    await world.run()
    assert faults(world.file) == []


async def test_facts(reader: Finder) -> None:
    await record(said(1, "我对花生过敏"))
    await facts.store(1, [NewFact("preferences", "peanut", "对花生过敏", 1)], local(DAY, 10))
    facts_found = [hit for hit in await reader.find(1, about("花生")) if hit.kind == "fact"]
    (hit,) = facts_found
    assert (hit.text, hit.user_id, hit.name, hit.category) == (
        "对花生过敏", "20001", "peanut", "preferences"
    )  # fmt: skip
    assert [h.kind for h in await reader.find(1, about("peanut"))] == ["fact"]
    await facts.store(1, [NewFact("preferences", "peanut", "不吃坚果", 1)], local(DAY, 11))
    assert [h.text for h in await reader.find(1, about("坚果"))] == ["不吃坚果"]
    assert [h.kind for h in await reader.find(1, about("花生"))] == ["message"]
    await Fact.all().delete()
    assert await found(reader, "坚果") == []


async def test_what_is_taken_back_is_not_found_whichever_way(world: World, reader: Finder) -> None:
    await record(
        said(1, "海棠一"),
        said(2, "海棠二", user_id="20002"),
        said(3, "海棠三", user_id="20003"),
        said(4, "海棠四", user_id="20004"),
    )
    await record(Withdrawal(GROUP, f"{GROUP.peer_id}-1", None, local(DAY, 10)))
    await forgetting.forget(1, "20002", local(DAY, 10))
    await exclusions.opt_out(1, "20003", local(DAY, 8), local(DAY, 10))
    assert await found(reader, "海棠") == ["海棠四"]
    await Row.filter(seq=4).update(user_id="20009")
    assert await found(reader, "海棠") == []
    await search.add(1, "message", [4])
    assert await found(reader, "海棠", said_by=("20009",)) == ["海棠四"]
    await Row.filter(seq=4).update(skipped="command")
    assert entries(world.file) == []
    assert await found(reader, "海棠") == []


async def test_a_rolled_back_write_leaves_no_entry(
    world: World, reader: Finder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await record(said(1, "海棠"))
    before = entries(world.file)

    async def break_down(rows: Any) -> None:
        await write(rows)
        raise StoreError("the disk is full")

    write = search.write
    monkeypatch.setattr(search, "write", break_down)
    with pytest.raises(StoreError):
        await record(said(2, "海棠"))
    monkeypatch.undo()
    assert entries(world.file) == before
    assert await Row.all().count() == 1
    assert await found(reader, "海棠") == ["海棠"]


HOSTILE = [
    '"', '""" OR *', "a NOT b", "NEAR(a b)", "terms : x", "^a", "a*", "-", "(", "{a b}:c", "\0",
    "\ud800", "\u202e反", "'; DROP TABLE nianlun_message; --", "a" * 5000, "海" * 5000, "@20001",
    "1m海棠", "🎉", "𠮷𠮷", "e\u0301",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_data(world: World, reader: Finder, text: str) -> None:
    clean = text.replace("\0", "").encode("utf-8", "replace").decode()
    await record(said(1, clean or "x"), said(2, "玉兰"))
    hits = await reader.find(1, Search(tuple(query_terms(text)), said_by=(), favoured=(text,)))
    assert {hit.ref for hit in hits} <= {1}
    await reader.find(1, Search((), said_by=(text,)))
    assert faults(world.file) == []
    assert await found(reader, "玉兰", favoured=(text,)) == ["玉兰"]


@pytest.mark.parametrize("term", ['a"b', "a b", "", "*", "a\0b", "\ud800", "😀", ".", "A"])
async def test_no_term_is_an_operator(reader: Finder, term: str) -> None:
    await record(said(1, "海棠"))
    assert await reader.find(1, Search((term,))) == []


async def test_many_and_frequent_terms_are_bounded(
    reader: Finder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plugins.nonebot_plugin_nianlun.store import search_scores

    monkeypatch.setattr(search_scores, "_COUNTED", 20)
    monkeypatch.setattr(search_scores, "_FOLLOWED", 60)
    lines = [said(n, "海棠" if n % 2 else "玉兰") for n in range(1, 300)]
    lines[9] = said(10, "海棠和茉莉")
    await record(*lines)
    hits = await reader.find(1, about("海棠茉莉", per_kind=5))
    assert hits[0].ref == 10
    assert hits[0].score > hits[1].score
    # Of what is everywhere the newest are found.
    assert {hit.ref for hit in hits[1:]} == {299, 297, 295, 293}
    terms = tuple(f"词{n}" for n in range(2000))
    assert await reader.find(1, Search(("海棠", *terms), per_kind=1)) != []


async def test_a_search_waits_for_no_writer_and_ends_when_cancelled(
    world: World, reader: Finder
) -> None:
    await record(said(1, "海棠"))
    with closing(sqlite3.connect(world.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert await found(reader, "海棠") == ["海棠"]
        other.execute("ROLLBACK")

    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await reader.run(lambda view: view.connection.execute(endless).fetchone())
    async with asyncio.timeout(2):
        assert await found(reader, "海棠") == ["海棠"]


async def test_a_reader_that_was_closed_opens_again(reader: Finder) -> None:
    await record(said(1, "海棠"))
    await reader.close()
    await reader.close()
    assert await found(reader, "海棠") == ["海棠"]


async def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    file.write_bytes(b"no database " * 100)
    broken = Finder(file, CALENDAR)
    with pytest.raises(StoreError):
        await broken.find(1, about("海棠"))
    await broken.close()


async def test_the_index_stays_in_few_parts(world: World, database_file: Path) -> None:
    """Each is looked into by every search."""
    for number in range(15):
        await record(said(number + 1, f"第{number}句"))
    with reading(database_file) as connection:
        parts = "SELECT count(DISTINCT segid) FROM nianlun_search_idx"
        assert connection.execute(parts).fetchone()[0] <= 6
        search_schema.start_over(connection)
        search_schema.keep_few_parts(connection)
        kept = "SELECT v FROM nianlun_search_config WHERE k = 'crisismerge'"
        assert connection.execute(kept).fetchall() == [(4,)]


async def test_names_are_all_that_people_have_had(world: World, reader: Finder) -> None:
    await record(said(1, "a"), said(2, "b", user_id="20002"))
    assert await reader.names(1) == {"名20001": {"20001"}, "名20002": {"20002"}}
    await record(said(3, "c", user_id="20003"))
    assert (await reader.names(1))["名20003"] == {"20003"}
    # One comes and one goes between two looks: as many as before.
    await forgetting.forget(1, "20002", local(DAY, 10))
    await record(said(4, "d", user_id="20004"))
    assert sorted(await reader.names(1)) == ["名20001", "名20003", "名20004"]
    await forgetting.forget(1, "20003", local(DAY, 10))
    await forgetting.forget(1, "20004", local(DAY, 10))
    assert await reader.names(1) == {"名20001": {"20001"}}
    assert await reader.names(7) == {}


async def test_an_unknown_kind_of_row_breaks_nothing(world: World) -> None:
    """Removal hangs on triggers, which must hold for whatever a row says."""
    await record(said(1, "海棠"))
    with closing(sqlite3.connect(world.file)) as connection, connection:
        connection.execute("DELETE FROM nianlun_message")
    assert entries(world.file) == []
    assert index_terms_of(world.file) == set()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from(["", "海棠", "玉兰 and more", "花\u2028"])),
        max_size=12,
    )
)
def test_the_index_follows_whatever_happens_to_a_row(
    prepared_database: Path, tmp_path: Path, changes: list[tuple[int, str]]
) -> None:
    path = tmp_path / f"{abs(hash(str(changes)))}.db"
    path.write_bytes(prepared_database.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO nianlun_chat (self_id, kind, peer_id, created_at)"
            " VALUES ('1', 'group', '2', '2026-11-29 00:00:00+00:00')"
        )
        for seq, text in changes:
            connection.execute("DELETE FROM nianlun_message WHERE seq = ? AND text = ''", (seq,))
            connection.execute(
                "INSERT INTO nianlun_message"
                " (chat_id, seq, dedup_key, time, user_id, name, text, source)"
                " VALUES (1, ?1, ?1, '2026-11-29 01:00:00+00:00', '20001', 'A', ?2, 'event')"
                " ON CONFLICT (chat_id, seq) DO UPDATE SET text = excluded.text",
                (seq, text),
            )
            entry = search.Entry(1, "message", seq, text, "20001").row()
            if entry[1]:
                connection.execute(search.DROP, entry[:1])
                for statement in search.WRITE:
                    connection.execute(statement, entry)
    assert faults(path) == []
    indexed = {term for _, terms in entries(path) for term in terms.split()}
    assert index_terms_of(path) == indexed
