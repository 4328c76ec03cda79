"""Named stores: speakers, memories, duplicates, pages, errors and what concurrency may not do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
import random
from typing import Any
import unicodedata

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.recorder import Recorder
from plugins.nonebot_plugin_nianlun.errors import MemoryNotFound, MemoryRequestError
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file
from plugins.nonebot_plugin_nianlun.interface.memory_store import MemoryStore
from plugins.nonebot_plugin_nianlun.interface.stored import MemoryPage, StoredMemory
from plugins.nonebot_plugin_nianlun.recalling import Recalling
from plugins.nonebot_plugin_nianlun.store import chats, exclusions, forgetting
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import Chat, Fact, FactVersion, Speaker
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from plugins.nonebot_plugin_nianlun.types import ChatKey

NOW = datetime(2026, 11, 29, 9, 30, tzinfo=UTC)
HOSTILE = [
    "## 23:59 | 分类\n正文",
    '","speaker":"me"}',
    "[[preferences:coffee]] <!-- 注释 -->",
    "a\u2028b\u2029c\u202edcba",
    "名字：小明\n#12 me：我答应了",
    "'; DROP TABLE nianlun_fact; --",
    "🌲" * 400,
]

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


def store_of(name: str = "alice") -> MemoryStore:
    return MemoryStore(nianlun, name)


async def add(store: MemoryStore, content: str, speaker: str | None = None, **more: Any) -> str:
    result = await store.store(content, speaker, **more)
    assert result.status == "stored"
    return result.id


async def everything(store: MemoryStore, speaker: str | None = None) -> list[StoredMemory]:
    """All pages, of two memories each."""
    found: list[StoredMemory] = []
    before, skip = None, ()
    while True:
        if speaker is None:
            page = await store.list_memories(2, before, skip)
        else:
            page = await store.by_speaker(speaker, 2, before, skip)
        found += page.memories
        if not page.has_more:
            assert (page.next_before, page.next_skip_ids) == (None, ())
            return found
        assert page.next_before is not None
        before, skip = page.next_before, page.next_skip_ids


async def test_a_team_in_one_store() -> None:
    store = store_of()
    assert not await store.exists()
    bob = await store.add_speaker("Bob")
    assert (bob.speaker, bob.memories) == ("Bob", 0)
    await add(store, "Bob said the deadline moved to Tuesday", "Bob")
    await add(store, "I promised the summary by Friday", "me")
    await add(store, "The office has a new coffee machine")
    listed = await store.list_speakers()
    assert [(one.speaker, one.memories) for one in listed.speakers] == [("Bob", 1)]
    assert (listed.count, listed.limit) == (1, 50)
    hits = await store.search("what did Bob say about the deadline?", speaker="Bob")
    assert [(hit.content, hit.speaker) for hit in hits] == [
        ("Bob said the deadline moved to Tuesday", "Bob")
    ]
    assert [m.content for m in await everything(store, "me")] == [
        "I promised the summary by Friday"
    ]


async def test_a_search_tells_who_said_it_and_nothing_else_of_others() -> None:
    store = store_of()
    for name in ("さくら", "Иван", "하늘", "小鹿"):
        await store.add_speaker(name)
        await add(store, f"截止日期的事，{len(name)} 天以后再定", name)
    await add(store, "截止日期还没有人定")
    for name in ("さくら", "Иван", "하늘", "小鹿"):
        hits = await store.search("截止日期", speaker=name)
        assert [hit.speaker for hit in hits] == [name]
    labels = [hit.speaker for hit in await store.search("截止日期")]
    assert sorted(labels, key=str) == sorted(["さくら", "Иван", "하늘", "小鹿", None], key=str)
    assert await store.search("截止日期", speaker="me") == []
    assert await store.search("量子色动力学") == []


async def test_a_search_is_bounded() -> None:
    store = store_of()
    assert await store.search("什么都没有") == []
    for number in range(12):
        await add(store, f"第{number}次去爬山，看到了云海")
    assert len(await store.search("爬山", limit=1)) == 1
    assert len(await store.search("爬山")) == 10
    assert len(await store.search("爬山", limit=100)) == 12
    for limit in (0, -1, 101, True, 2.0, "5"):
        with pytest.raises(MemoryRequestError) as error:
            await store.search("爬山", limit=limit)  # pyright: ignore[reportArgumentType]
        assert error.value.details == {"field": "limit"}
    with pytest.raises(MemoryRequestError):
        await store.search(" \n")


async def test_another_store_sees_nothing() -> None:
    alice, bob = store_of("alice"), store_of("bob")
    memory_id = await add(alice, "保险箱的密码是零七")
    await bob.add_speaker("Bob")
    assert await bob.search("保险箱密码") == []
    assert await everything(bob) == []
    for call in (bob.get(memory_id), bob.forget(memory_id), bob.supersede(memory_id, "没有")):
        with pytest.raises(MemoryNotFound) as error:
            await call
        assert error.value.details == {"memory_id": memory_id}
    assert await bob.clear() == 0
    assert (await alice.get(memory_id)).content == "保险箱的密码是零七"


async def test_the_51st_is_refused_with_the_limit() -> None:
    store = store_of()
    for number in range(50):
        await store.add_speaker(f"第{number}位")
    with pytest.raises(MemoryRequestError) as error:
        await store.add_speaker("Bob")
    answer = error.value.as_dict()
    assert (error.value.status, answer["type"]) == (400, "error")
    assert answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["speaker_limit"] == 50
    assert answer["error"]["message"]
    assert (await store.add_speaker(" 第7位 ")).speaker == "第7位"
    for limit in (-1, 1_000_001, True, "50"):
        with pytest.raises(MemoryRequestError):
            await store.set_speaker_limit(limit)  # pyright: ignore[reportArgumentType]
    assert (await store.list_speakers()).count == 50
    await add(store, "me 不算在内", "me")
    await store.set_speaker_limit(51)
    await store.add_speaker("Bob")
    await store.set_speaker_limit(3)
    listed = await store.list_speakers()
    assert (listed.count, listed.limit) == (51, 3)
    await store.remove_speaker("Bob")
    with pytest.raises(MemoryRequestError) as error:
        await store.add_speaker("Bob")
    assert error.value.details == {"speaker_limit": 3}


async def test_an_unregistered_name_stores_nothing() -> None:
    store = store_of()
    for known in (False, True):
        with pytest.raises(MemoryRequestError) as error:
            await store.store("截止日期推迟了", "Bob")
        assert (error.value.status, error.value.type) == (400, "invalid_request_error")
        assert error.value.details == {"speaker": "Bob"}
        assert await Fact.all().count() == 0
        assert await store.exists() is known
        await store.create()


async def test_an_unregistered_name_finds_nothing() -> None:
    store = store_of()
    for _ in range(2):
        for call in (
            store.search("截止日期", speaker="Bob"),
            store.by_speaker("Bob"),
            store.remove_speaker("Bob"),
        ):
            with pytest.raises(MemoryNotFound) as error:
                await call
            answer = error.value.as_dict()["error"]
            assert (error.value.status, answer["type"]) == (404, "not_found_error")
            assert answer["speaker"] == "Bob"
        await store.create()


async def test_me_is_reserved_and_lower_case() -> None:
    store = store_of()
    await add(store, "我答应周五前交摘要", "me")
    assert (await store.list_speakers()).count == 0
    assert await store.by_speaker("me", 1) != MemoryPage((), False, None, (), 0)
    for name in ("Me", "ME", "mE", " ME "):
        for call in (
            store.add_speaker(name),
            store.store("别的", name),
            store.search("摘要", speaker=name),
            store.by_speaker(name),
            store.remove_speaker(name),
        ):
            with pytest.raises(MemoryRequestError) as error:
                await call
            assert error.value.status == 400
            assert error.value.details == {"speaker": name.strip()}
    for call in (store.add_speaker("me"), store.remove_speaker("me")):
        with pytest.raises(MemoryRequestError) as error:
            await call
        assert error.value.status == 400
    assert await Speaker.all().count() == 0


async def test_names_compare_trimmed_and_composed_with_case() -> None:
    store = store_of()
    await store.add_speaker(" Zoë\u3000")
    await store.add_speaker("Bob")
    await store.add_speaker("bob")
    await store.add_speaker(unicodedata.normalize("NFD", "하늘"))
    listed = await store.list_speakers()
    assert [one.speaker for one in listed.speakers] == ["Zoë", "Bob", "bob", "하늘"]
    await add(store, "去了柏林", unicodedata.normalize("NFD", "Zoë"))
    assert [m.speaker for m in await everything(store, "Zoë ")] == ["Zoë"]
    assert await everything(store, "bob") == []
    assert (await store.add_speaker("名" * 80)).speaker == "名" * 80
    # 80 are counted after normalising.
    assert (await store.add_speaker(unicodedata.normalize("NFD", "é" * 80))).speaker == "é" * 80


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        "\u200b\u2060",
        "a\nb",
        "a\0b",
        "a\u2028b",
        "a\u202eb",
        "\ud800",
        "名" * 81,
        5,
        None,
    ],
)
async def test_names_that_cannot_be(name: Any) -> None:
    store = store_of()
    with pytest.raises(MemoryRequestError) as error:
        await store.add_speaker(name)
    assert (error.value.status, list(error.value.details)) == (400, ["speaker"])
    json.dumps(error.value.as_dict(), ensure_ascii=False).encode()
    assert not await store.exists()


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\0", "名" * 129, 5, None])
async def test_store_names_that_cannot_be(name: Any) -> None:
    with pytest.raises(MemoryRequestError) as error:
        store_of(name)
    assert list(error.value.details) == ["user_id"]


async def test_a_store_is_a_chat_of_its_exact_name() -> None:
    names = ["../../etc/passwd", "a/b", "A/b", "group:123", "me", "0", "名" * 128]
    for name in names:
        await add(store_of(name), f"这是 {name[:20]} 的")
    for name in names:
        store = store_of(name)
        assert len(await everything(store)) == 1
        assert await chats.resolve(str(store.chat)) == store.chat
        assert await chats.resolve(store.chat.full) == store.chat


async def test_what_says_the_same_is_not_saved() -> None:
    store = store_of()
    await store.add_speaker("Bob")
    await store.add_speaker("Carol")
    first = await add(store, "我对花生过敏", "Bob")
    again = await store.store(" 我对花生过敏！", "Bob", category="health")
    assert (again.id, again.status, again.duplicate_of) == ("", "duplicate", first)
    assert again.note
    await add(store, "我对甲壳类过敏", "Bob")
    await add(store, "我对花生过敏", "Carol")
    await add(store, "我对花生过敏", "me")
    await add(store, "我对花生过敏")
    assert (await store.store("我对花生过敏。")).status == "duplicate"
    await add(store, "跑了5公里", event_date="2026-11-01")
    await add(store, "跑了5公里", event_date="2026-11-02")
    assert (await store.store("跑了5公里", event_date="2026-11-02")).status == "duplicate"
    assert await Fact.all().count() == 7
    assert [m.content for m in await everything(store, "Bob")] == [
        "我对甲壳类过敏",
        "我对花生过敏",
    ]


async def test_what_a_member_wants_of_a_chat_is_none_of_a_stores() -> None:
    group = ChatKey("10001", "group", "123")
    (chat_id,) = (await chats.ensure([group], NOW)).values()
    await exclusions.opt_out(chat_id, "20001", NOW - timedelta(days=1), NOW)
    await forgetting.forget(chat_id, "20001", NOW)
    store = store_of()
    await store.add_speaker("20001")
    await add(store, "截止日期推迟到周二", "20001")
    assert [m.speaker for m in await everything(store, "20001")] == ["20001"]


async def test_unlabelled_memories_are_nobodys() -> None:
    store = store_of()
    await store.add_speaker("Bob")
    await add(store, "Bob 说截止日期推迟到周二")
    assert await everything(store, "Bob") == await everything(store, "me") == []
    assert await store.search("截止日期", speaker="Bob") == []
    assert await store.search("截止日期", speaker="me") == []
    assert [hit.speaker for hit in await store.search("截止日期")] == [None]


async def test_who_is_removed_leaves_memories_without_a_name() -> None:
    store = store_of()
    await store.add_speaker("Bob")
    memory_id = await add(store, "截止日期推迟到周二", "Bob")
    assert (await store.add_speaker("Bob")).memories == 1
    assert await store.remove_speaker("Bob") == 1
    assert (await store.get(memory_id)).speaker is None
    assert [hit.id for hit in await store.search("截止日期")] == [memory_id]
    await store.add_speaker("Bob")
    assert await everything(store, "Bob") == []
    assert await store.search("截止日期", speaker="Bob") == []
    assert (await store.list_speakers()).speakers[0].memories == 0
    await add(store, "截止日期推迟到周二", "Bob")


async def test_a_removed_persons_facts_never_clash_with_nobodys() -> None:
    store = store_of()
    await store.add_speaker("Bob")
    chat_id = await chats.find(store.chat)
    for owner in ("", "Bob"):
        await Fact.create(
            chat_id=chat_id,
            owner=owner,
            category="preferences",
            name="coffee",
            text=f"拿铁{owner}",
            created_at=NOW,
            written_at=NOW,
        )
    assert await store.remove_speaker("Bob") == 1
    assert {m.content for m in await everything(store)} == {"拿铁", "拿铁Bob"}


async def test_superseding_keeps_the_speaker_and_the_old_text() -> None:
    store = store_of()
    await store.add_speaker("Bob")
    memory_id = await add(store, "截止日期是周二", "Bob", category="work", event_date="2026-11-01")
    other = await add(store, "地点在三楼", "Bob", event_date="2026-11-01")
    result = await store.supersede(memory_id, "截止日期是周五")
    assert (result.status, result.id) == ("stored", memory_id)
    memory = await store.get(memory_id)
    assert (memory.content, memory.speaker) == ("截止日期是周五", "Bob")
    assert (memory.category, memory.event_date) == ("work", "2026-11-01")
    assert [hit.id for hit in await store.search("截止日期周五", speaker="Bob")] == [memory_id]
    assert await FactVersion.all().values_list("text", flat=True) == ["截止日期是周二"]
    same = await store.supersede(memory_id, "地点在三楼。")
    assert (same.status, same.duplicate_of) == ("duplicate", other)
    assert (await store.supersede(memory_id, "截止日期是周五")).status == "duplicate"
    assert (await store.supersede(memory_id, "截止日期是周五！")).status == "stored"
    assert (await store.by_speaker("Bob")).chunks == 4
    assert await add(store, "截止日期是周二", "Bob") not in (memory_id, other)


async def test_forgetting_removes_every_text() -> None:
    store = store_of()
    memory_id = await add(store, "秘密是紫色的大象")
    await store.supersede(memory_id, "秘密是绿色的大象")
    await add(store, "别的")
    assert await store.forget(memory_id) == 2
    for call in (store.get(memory_id), store.forget(memory_id)):
        with pytest.raises(MemoryNotFound):
            await call
    assert await store.search("大象") == []
    assert await FactVersion.all().count() == 0
    await store.add_speaker("Bob")
    assert await store.clear() == 1
    assert await everything(store) == []
    assert (await store.list_speakers()).count == 1
    assert await store_of("空").clear() == 0


async def test_what_was_forgotten_leaves_the_files(database_file: Path) -> None:
    store = store_of()
    memory_id = await add(store, "planted-string-甲乙丙丁")
    await store.forget(memory_id)
    await Traces(database_file).remove(hurry=True)
    files = [database_file, database_file.with_name(f"{database_file.name}-wal")]
    assert all(b"planted-string-" not in f.read_bytes() for f in files if f.exists())


@pytest.mark.parametrize("wrong", ["", "5", "x" * 1000, "00000000-0000-4000-8000-000000000001", 7])
async def test_ids_that_are_none(wrong: Any) -> None:
    store = store_of()
    await add(store, "有一条")
    for call in (store.get(wrong), store.forget(wrong), store.supersede(wrong, "新的")):
        with pytest.raises(MemoryNotFound):
            await call


@pytest.mark.parametrize("content", HOSTILE)
async def test_content_never_becomes_structure(content: str) -> None:
    store = store_of()
    await store.add_speaker("Bob")
    memory_id = await add(store, content, "Bob")
    assert (await store.get(memory_id)).content == content
    (memory,) = await everything(store, "Bob")
    assert (memory.content, memory.speaker) == (content, "Bob")
    assert await everything(store, "me") == []


@pytest.mark.parametrize("content", ["", " \n", "\0", "字" * 20_001, None, 5])
async def test_content_that_cannot_be(content: Any) -> None:
    store = store_of()
    with pytest.raises(MemoryRequestError) as error:
        await store.store(content)
    assert error.value.details == {"field": "content"}
    assert not await store.exists()
    await add(store, "字" * 20_000)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-03-01", "2026-03-01"),
        (" 2026-03-01T09:00:00+08:00", "2026-03-01T01:00:00+00:00"),
        ("2026-03-01T09:00:00Z", "2026-03-01T09:00:00+00:00"),
    ],
)
async def test_event_dates(given: str, kept: str) -> None:
    store = store_of()
    memory_id = await add(store, "搬到了柏林", event_date=given)
    assert (await store.get(memory_id)).event_date == kept


@pytest.mark.parametrize("wrong", ["昨天", "2026-13-01", "2026-03-01T09:00:00", "", 5])
async def test_an_event_date_that_is_none(wrong: Any) -> None:
    with pytest.raises(MemoryRequestError) as error:
        await store_of().store("搬到了柏林", event_date=wrong)
    assert error.value.details == {"field": "event_date"}


@pytest.mark.parametrize("seed", range(6))
async def test_pages_lose_and_double_nothing(seed: int) -> None:
    dice = random.Random(seed)
    store = store_of()
    await store.add_speaker("Bob")
    told: list[tuple[datetime, str]] = []
    moments = [NOW + timedelta(microseconds=dice.choice([0, 0, 1, 10**6])) for _ in range(3)]
    for number in range(dice.randint(0, 25)):
        speaker = dice.choice(["Bob", "Bob", "me", None])
        at = dice.choice(moments)
        memory_id = await add(store, f"第{number}件事", speaker, told_at=at)
        if speaker == "Bob":
            told.append((at, memory_id))
    expected = [memory_id for _, memory_id in sorted(told, reverse=True)]
    for limit in (1, 2, 7, 100):
        seen: list[str] = []
        before, skip = None, ()
        while True:
            page = await store.by_speaker("Bob", limit, before, skip)
            assert len(page.memories) <= limit
            assert page.chunks == page.records_to_delete == page.points_to_delete == len(told)
            seen += [memory.id for memory in page.memories]
            if page.next_before is None:
                break
            assert page.memories
            before, skip = page.next_before, page.next_skip_ids
        assert seen == expected


async def test_what_comes_in_between_pages_moves_none_of_them() -> None:
    store = store_of()
    for number in range(6):
        await add(store, f"第{number}件事", "me", told_at=NOW)
    first = await store.by_speaker("me", 2)
    await add(store, "后来的事", "me", told_at=NOW + timedelta(seconds=1))
    await store.forget(first.memories[0].id)
    await store.forget(first.memories[1].id)
    rest = await store.by_speaker("me", 100, first.next_before, first.next_skip_ids)
    assert [m.content for m in rest.memories] == ["第3件事", "第2件事", "第1件事", "第0件事"]
    assert not rest.has_more


async def test_a_page_that_cannot_be() -> None:
    store = store_of()
    for limit in (0, 101, None):
        with pytest.raises(MemoryRequestError):
            await store.by_speaker("me", limit)  # pyright: ignore[reportArgumentType]
    for before in ("昨天", "2026-03-01", 5):
        with pytest.raises(MemoryRequestError) as error:
            await store.by_speaker("me", before=before)  # pyright: ignore[reportArgumentType]
        assert error.value.details == {"field": "before"}
    for skip_ids in (5, "不是编号", b"x"):
        with pytest.raises(MemoryRequestError) as error:
            await store.by_speaker("me", skip_ids=skip_ids)  # pyright: ignore[reportArgumentType]
        assert error.value.details == {"field": "skip_ids"}
    for skip_ids in (None, ["不是编号"], [None]):
        page = await store.by_speaker("me", skip_ids=skip_ids)  # pyright: ignore[reportArgumentType]
        assert page.memories == ()


@pytest.mark.parametrize("wrong", [datetime(2026, 3, 1), "2026-03-01T09:00:00Z", 5])  # noqa: DTZ001
async def test_a_moment_of_telling_that_is_none(wrong: Any) -> None:
    with pytest.raises(MemoryRequestError) as error:
        await store_of().store("搬到了柏林", told_at=wrong)
    assert error.value.details == {"field": "told_at"}


async def test_fifty_at_once_never_pass_the_limit() -> None:
    store = store_of()
    await store.set_speaker_limit(7)
    calls = [store.add_speaker(f"第{number}位") for number in range(50)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    refused = [one for one in results if isinstance(one, MemoryRequestError)]
    assert len(refused) == 43
    assert {one.details["speaker_limit"] for one in refused} == {7}
    assert (await store.list_speakers()).count == 7


async def test_everything_that_is_stored_at_once_is_kept_once() -> None:
    store = store_of()
    calls = [store.store(f"第{number % 40}件事", "me") for number in range(120)]
    results = await asyncio.gather(*calls)
    assert sum(one.status == "stored" for one in results) == 40
    assert len({m.content for m in await everything(store, "me")}) == 40
    assert await Chat.all().count() == 1


async def test_an_export_comes_back_as_it_was(tmp_path: Path) -> None:
    store = store_of()
    await store.set_speaker_limit(5)
    # A name that is the account of the store, or looks like one, is nobody's but the person's.
    for name in ("Bob", "0", "さくら"):
        await store.add_speaker(name)
    for number, content in enumerate(HOSTILE):
        await add(store, content, ("Bob", "0", "me", None)[number % 4], category="杂 记")
    memory_id = await add(store, "截止日期是周二", "Bob", event_date="2026-03-01")
    await store.supersede(memory_id, "截止日期是周五")
    rows = [row async for row in lines(store.chat, "Asia/Shanghai", NOW)]
    file = tmp_path / "alice.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    before = [(m.content, m.speaker, m.category, m.event_date) for m in await everything(store)]

    file.write_text(file.read_text("utf-8").replace("store:alice", "store:carol"), "utf-8")
    for _ in range(2):
        assert (await import_file(nianlun, file, ImportOptions())).left_out == 0
    carol = store_of("carol")
    again = [(m.content, m.speaker, m.category, m.event_date) for m in await everything(carol)]
    assert again == before
    assert [row async for row in lines(carol.chat, "Asia/Shanghai", NOW)][1:] == rows[1:]
    listed = await carol.list_speakers()
    assert [one.speaker for one in listed.speakers] == ["Bob", "0", "さくら"]
    assert listed.limit == 5
    assert (await carol.store("截止日期是周五", "Bob", event_date="2026-03-01")).status == (
        "duplicate"
    )
    assert [hit.speaker for hit in await carol.search("截止日期", speaker="Bob")] == ["Bob"]


async def test_an_import_into_the_store_itself_changes_nothing(tmp_path: Path) -> None:
    store = store_of()
    await store.add_speaker("Bob")
    memory_id = await add(store, "截止日期是周二", "Bob")
    rows = [row async for row in lines(store.chat, "Asia/Shanghai", NOW)]
    file = tmp_path / "alice.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    await store.supersede(memory_id, "截止日期是周五")
    assert (await import_file(nianlun, file, ImportOptions())).left_out == 0
    assert [m.content for m in await everything(store)] == ["截止日期是周五"]
    assert await FactVersion.all().count() == 1


async def test_a_group_is_nobodys_store(tmp_path: Path) -> None:
    """A store does not make it doubtful which account a file belongs to, nor takes a file's."""
    await add(store_of("g"), "有一条")
    header = {
        "type": "header",
        "format": "nianlun",
        "version": 1,
        "chat": "store:g",
        "self_id": "10001",
        "timezone": "Asia/Shanghai",
        "exported_at": "2026-11-29T09:30:00Z",
    }
    fact = {
        "type": "fact",
        "owner": None,
        "category": "",
        "name": None,
        "text": "另一条",
        "source": None,
        "due": None,
        "written_at": "2026-11-29T09:30:00Z",
        "journal": [],
    }
    file = tmp_path / "g.jsonl"
    file.write_text(f"{json.dumps(header)}\n{json.dumps(fact)}\n", "utf-8")
    await import_file(nianlun, file, ImportOptions())
    assert await Chat.all().count() == 1
    assert {m.content for m in await everything(store_of("g"))} == {"有一条", "另一条"}
