"""Search by meaning over a real file and a real endpoint: a help, and never a hindrance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
import random
import sys
import time
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun import embedding
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.config import Config
from plugins.nonebot_plugin_nianlun.embedding import Embedding
from plugins.nonebot_plugin_nianlun.errors import BadAnswer, ConfigError, ModelUnavailable
from plugins.nonebot_plugin_nianlun.memory.search import RecallResult
from plugins.nonebot_plugin_nianlun.recalling import Recalling, RecallQuery
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    facts,
    forgetting,
    recording,
    usage,
    vector_index,
)
from plugins.nonebot_plugin_nianlun.store.database import transactional
from plugins.nonebot_plugin_nianlun.store.models import Chat, Vector
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from plugins.nonebot_plugin_nianlun.store.vector_index import VectorIndex
from plugins.nonebot_plugin_nianlun.types import ChatKey, Fact, Incoming
from tests.store.test_recalling import CALENDAR, DEER, GROUP, NAMES, NOW, OTHER, RIVER
from tests.support.model_server import HTML, Delay, Disconnect, ModelServer, Reply, embeddings
from tests.support.scripted_writer import SetClock

TODAY = "2026-11-29"
ALLERGY = "我一吃坚果就浑身起疹子"
QUESTION = "谁对花生过敏"
_TOPICS = (("坚果", "花生", "疹", "过敏"), ("船", "渡轮", "枸杞岛"), ("密码", "口令", "钥匙"))


def meaning(text: str, size: int = 24) -> list[float]:
    """Near to that of texts of the same topic, and to no others."""
    noise = random.Random(sha256(text.encode()).digest())
    vector = [noise.gauss(0, 0.05) for _ in range(size)]
    for axis, words in enumerate(_TOPICS):
        vector[axis] += any(word in text for word in words)
    return vector


def in_earnest(body: dict[str, Any]) -> Reply:
    return embeddings([meaning(text) for text in body["input"]])


@dataclass
class World:
    file: Path
    server: ModelServer
    clock: SetClock
    reader: SearchReader
    opened: list[Embedding] = field(default_factory=list)

    def embedding(self, **values: Any) -> Embedding:
        """As after a restart."""
        values = {
            "embedding_model": "tiny",
            "embedding_base_url": self.server.base_url,
            **values,
        }
        config = Config.model_validate({"nianlun": values})
        self.opened.append(
            Embedding(config, self.file, self.clock, CALENDAR, lambda key: key != UNHEARD)
        )
        return self.opened[-1]

    async def caught_up(self, **values: Any) -> Embedding:
        made = self.embedding(**values)
        await made._upkeep.catch_up()
        return made

    async def recall(
        self, by: Embedding, text: str = QUESTION, chat: ChatKey = GROUP, **options: Any
    ) -> RecallResult:
        recalling = Recalling(self.reader, "小忆", self.clock, CALENDAR, by)
        return await recalling.recall(await self.id_of(chat), RecallQuery(text, **options))

    async def say(
        self, *texts: str, by: str = DEER, days: float = 1, chat: ChatKey = GROUP
    ) -> None:
        lines = [
            Incoming(
                chat,
                (NOW - timedelta(days=days) + timedelta(seconds=number)).replace(microsecond=0),
                by,
                NAMES[by],
                [{"type": "text", "data": {"text": text}}],
                "event",
            )
            for number, text in enumerate(texts)
        ]
        await recording.record(lines, readable, "小忆", NOW)

    async def chatter(self, lines: int = 40, chat: ChatKey = GROUP) -> None:
        await self.say(
            *(f"第 {number} 句闲话，天气还行" for number in range(lines)),
            by=RIVER,
            days=2,
            chat=chat,
        )

    async def id_of(self, chat: ChatKey = GROUP) -> int:
        found = await chats.find(chat)
        assert found is not None
        return found

    @property
    def asked(self) -> list[str]:
        """All texts that were sent, without the one that asks how long a vector is."""
        return [text for body in self.server.requests for text in body["input"] if text != "年轮"]


UNHEARD = ChatKey("10001", "group", "742100999")


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast the machine is must not decide what is found."""
    monkeypatch.setattr(embedding, "_DEADLINE", 20.0)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        server.script(in_earnest)
        yield server


@pytest.fixture
async def world(database_file: Path, server: ModelServer) -> AsyncIterator[World]:
    world = World(database_file, server, SetClock(NOW), SearchReader(database_file, CALENDAR))
    try:
        yield world
    finally:
        for one in world.opened:
            await one.stop()
        await world.reader.close()


def contents(found: RecallResult) -> list[str]:
    return [item.content for item in found.items]


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        await asyncio.sleep(0.02)


async def test_other_words_for_the_same_thing(world: World) -> None:
    await world.say(ALLERGY, days=200)
    await world.chatter()
    made = await world.caught_up()
    found = await world.recall(made)
    assert found.items[0].content == ALLERGY
    assert found.embedding_used
    assert made.trouble is None
    only_words = await world.recall(world.embedding(embedding_model=""))
    assert ALLERGY not in contents(only_words)
    assert not only_words.embedding_used


async def test_off_means_that_nothing_is_sent_or_stored(world: World) -> None:
    await world.say(ALLERGY)
    off = world.embedding(embedding_model="")
    off.soon()
    await asyncio.sleep(0.05)
    assert await off.nearest(await world.id_of(), QUESTION) is None
    assert world.server.requests == []
    assert await Vector.all().count() == 0


async def test_all_kinds_of_texts_and_none_that_may_not_be_found(world: World) -> None:
    await world.say(ALLERGY, "好的")
    await world.say("/记忆 帮助", by=RIVER)
    await world.say("不听这个群", chat=UNHEARD)
    chat_id = await world.id_of()
    await transactional(facts.store)(chat_id, [Fact("preferences", "tea", "只喝龙井", 1)], NOW)
    await recording.record(
        [
            Incoming(GROUP, NOW, DEER, "小鹿", [{"type": "text", "data": {"text": "秘密的指令"}}],
                     "event", skipped="command")
        ],
        readable,
        "小忆",
        NOW,
    )  # fmt: skip
    await world.caught_up()
    assert sorted(world.asked) == sorted([ALLERGY, "/记忆 帮助", "tea preferences 只喝龙井"])


async def test_the_same_words_are_asked_about_once_also_after_a_restart(world: World) -> None:
    await world.say(ALLERGY, "明天老地方见", "明天老地方见")
    first = await world.caught_up()
    assert sorted(world.asked) == sorted([ALLERGY, "明天老地方见"])
    assert await Vector.all().count() == 3
    await first.stop()
    await world.say("明天老地方见", "又是新的一句", days=0.5)
    second = await world.caught_up()
    assert sorted(world.asked) == sorted([ALLERGY, "明天老地方见", "又是新的一句"])
    await second._upkeep.catch_up()
    assert len(world.asked) == 3
    assert await Vector.all().count() == 5


async def test_the_newest_come_first_and_chats_take_turns(world: World) -> None:
    await world.say(*(f"这边的第 {number} 句" for number in range(30)))
    await world.say(*(f"那边的第 {number} 句" for number in range(15)), chat=OTHER)
    await world.caught_up()
    assert world.asked[0] == "这边的第 29 句"
    assert world.asked[10] == "那边的第 14 句"
    assert world.asked[20] == "这边的第 19 句"
    assert {len(body["input"]) for body in world.server.requests} <= {1, 5, 10}


async def test_two_chats_never_mix(world: World) -> None:
    await world.say("群里的口令在抽屉", days=3)
    await world.say("另一个群的口令在柜子", days=3, chat=OTHER)
    for chat in (GROUP, OTHER):
        await world.chatter(chat=chat)
    made = await world.caught_up()
    here, there = [await world.recall(made, "密码是什么", chat=chat) for chat in (GROUP, OTHER)]
    assert here.embedding_used
    assert there.embedding_used
    assert contents(here)[0] == "群里的口令在抽屉"
    assert contents(there)[0] == "另一个群的口令在柜子"
    assert "另一个群的口令在柜子" not in contents(here)
    assert "群里的口令在抽屉" not in contents(there)


async def test_speaker_time_and_what_is_shown_hold_for_meaning_too(world: World) -> None:
    await world.say(ALLERGY, by=DEER, days=20)
    await world.say("河边的坚果树结果了", by=RIVER, days=5)
    await world.chatter()
    made = await world.caught_up()
    assert {ALLERGY, "河边的坚果树结果了"} <= set(contents(await world.recall(made))[:2])
    theirs = await world.recall(made, speaker=RIVER)
    assert contents(theirs)[0] == "河边的坚果树结果了"
    assert {item.user_id for item in theirs.items} == {RIVER}
    span = (NOW - timedelta(days=30), NOW - timedelta(days=10))
    assert contents(await world.recall(made, time_range=span)) == [ALLERGY]
    typed = await world.recall(made, f"20天前{QUESTION}", words_only=True)
    assert (contents(typed), typed.widened) == ([ALLERGY], False)
    address = (await world.recall(made)).items[0].address
    again = await world.recall(made, shown=[address])
    assert address not in [item.address for item in again.items]
    assert len((await world.recall(made, limit=1)).items) == 1
    assert (await world.recall(made, budget_tokens=30)).budget_used <= 30


@pytest.mark.parametrize(
    "reply",
    [
        Disconnect(),
        HTML,
        (503, {}, "down"),
        embeddings([]),
        embeddings([[float("nan")] * 24]),
        embeddings([[0.5] * 7]),
        embeddings([[0.5] * 24] * 2),
    ],
    ids=["gone", "html", "down", "none", "nan", "another size", "too many"],
)
async def test_trouble_with_a_question_leaves_the_search_by_words(
    world: World, reply: Reply
) -> None:
    await world.say(ALLERGY, "花生糖真好吃")
    await world.chatter()
    made = await world.caught_up()
    world.server.script([reply])
    found = await world.recall(made)
    assert contents(found)[0] == "花生糖真好吃"
    assert not found.embedding_used
    assert made.trouble is not None
    assert made.trouble.startswith("向量检索没用上")
    sent = len(world.server.requests)
    world.server.script(in_earnest)
    assert not (await world.recall(made)).embedding_used  # and it is left alone for a while
    assert len(world.server.requests) == sent


async def test_a_slow_answer_is_not_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.say(ALLERGY, "花生糖真好吃")
    await world.chatter()
    made = await world.caught_up()
    world.server.script([Delay(30, embeddings([meaning(QUESTION)]))])
    with monkeypatch.context() as hurry:
        hurry.setattr(embedding, "_DEADLINE", 0.3)
        began = time.monotonic()
        found = await world.recall(made)
        assert time.monotonic() - began < 10
    assert contents(found)[0] == "花生糖真好吃"
    assert not found.embedding_used
    assert made.trouble is not None
    assert (await world.recall(made)).embedding_used
    assert made.trouble is None


async def test_without_vectors_yet_it_is_the_search_by_words(world: World) -> None:
    await world.say(ALLERGY, "花生糖真好吃")
    made = world.embedding()
    found = await world.recall(made)
    assert contents(found)[0] == "花生糖真好吃"
    assert not found.embedding_used
    assert made.trouble is None


@pytest.mark.parametrize("broken", [HTML, (500, {}, "down"), embeddings([[1.0]] * 3)])
async def test_a_broken_endpoint_stores_nothing_and_is_asked_again_later(
    world: World, broken: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_FIRST_RETRY", 0.05)
    await world.say(ALLERGY)
    world.server.script(lambda body: broken)
    made = world.embedding()
    made.soon()
    await until(lambda: made.trouble is not None)
    assert made.trouble is not None
    assert made.trouble.startswith("给记忆算向量失败")
    assert await Vector.all().count() == 0
    world.server.script(in_earnest)
    await until(lambda: made.trouble is None)
    assert await Vector.all().count() == 1


async def test_what_was_stored_before_the_trouble_stays(world: World) -> None:
    await world.say(*(f"这是第 {number} 句话" for number in range(25)))
    world.server.script([in_earnest, in_earnest, in_earnest, (500, {}, "down")])
    with pytest.raises(ModelUnavailable):
        await world.caught_up()
    assert await Vector.all().count() == 20
    sent = len(world.asked)
    await world.caught_up()
    assert world.asked[sent:] == [f"这是第 {number} 句话" for number in range(4, -1, -1)]


async def test_one_text_that_the_model_does_not_take_stops_no_other(world: World) -> None:
    bad = "这句它不收"

    def picky(body: dict[str, Any]) -> Reply:
        if bad in body["input"]:
            return (400, {}, '{"error": "content_filter"}')
        return in_earnest(body)

    await world.say("第一句普通的话", bad, "第二句普通的话")
    world.server.script(picky)
    made = await world.caught_up()
    assert await Vector.all().count() == 2
    sent = len(world.server.requests)
    await made._upkeep.catch_up()
    assert len(world.server.requests) == sent


async def test_vectors_of_another_model_are_never_compared_and_go(world: World) -> None:
    await world.say(ALLERGY)
    await world.chatter()
    old = await world.caught_up()
    assert (await world.recall(old)).embedding_used
    turned = lambda body: embeddings([meaning(text)[::-1] for text in body["input"]])  # noqa: E731
    world.server.script(turned)
    new = world.embedding(embedding_model="other")
    assert not (await world.recall(new)).embedding_used
    await new._upkeep.catch_up()
    assert set(await Vector.all().values_list("model", flat=True)) == {"other/24"}
    found = await world.recall(new)
    assert found.embedding_used
    assert found.items[0].content == ALLERGY


async def test_another_model_behind_the_same_name_is_another_model(world: World) -> None:
    await world.say(ALLERGY)
    await world.chatter()
    made = await world.caught_up()
    world.server.script(lambda body: embeddings([meaning(one, 32) for one in body["input"]]))
    assert not (await world.recall(made)).embedding_used
    await world.say("又说了一句新的")
    with pytest.raises(BadAnswer):
        await made._upkeep.catch_up()
    await made._upkeep.catch_up()
    assert set(await Vector.all().values_list("model", flat=True)) == {"tiny/32"}
    assert await Vector.all().count() == 42


def bytes_of(world: World) -> bytes:
    return b"".join(path.read_bytes() for path in world.file.parent.glob("nianlun.db*"))


async def test_forgetting_removes_vectors_from_table_memory_and_file(world: World) -> None:
    await world.say(ALLERGY)
    await world.chatter()
    made = await world.caught_up()
    chat_id = await world.id_of()
    near = await made.nearest(chat_id, QUESTION)
    assert near is not None
    assert near[0].ref == 1
    (row,) = await Vector.filter(ref=1)
    assert row.vector in bytes_of(world)
    await forgetting.forget(chat_id, DEER, NOW)
    assert await Vector.filter(ref=1).count() == 0
    held = made._index._held[chat_id]
    unit = vector_index._unit(meaning(ALLERGY))
    assert (held._matrix @ unit).max() > 0.99
    await made._index.refresh()
    assert (held._matrix @ unit).max() < 0.9
    assert await Traces(world.file).remove(hurry=True)
    assert row.vector not in bytes_of(world)
    found = await world.recall(made)
    assert ALLERGY not in contents(found)


async def test_a_vector_that_comes_after_its_text_was_taken_back_is_not_stored(
    world: World,
) -> None:
    await world.say(ALLERGY, "没有人收回这句")
    chat_id = await world.id_of()
    loop = asyncio.get_running_loop()

    def meanwhile(body: dict[str, Any]) -> Reply:
        if ALLERGY in body["input"]:
            asyncio.run_coroutine_threadsafe(forgetting.forget(chat_id, DEER, NOW), loop).result()
        return in_earnest(body)

    world.server.script(meanwhile)
    await world.caught_up()
    assert await Vector.all().count() == 0


async def test_a_vector_of_what_has_changed_meanwhile_is_not_stored(world: World) -> None:
    await world.say("我以后不喝咖啡了")
    chat_id = await world.id_of()
    loop = asyncio.get_running_loop()
    put = transactional(facts.store)
    await put(chat_id, [Fact("preferences", "drink", "爱喝咖啡", 1)], NOW)

    def meanwhile(body: dict[str, Any]) -> Reply:
        if "drink preferences 爱喝咖啡" in body["input"]:
            changed = [Fact("preferences", "drink", "改喝龙井", 1)]
            asyncio.run_coroutine_threadsafe(put(chat_id, changed, NOW), loop).result()
        return in_earnest(body)

    world.server.script(meanwhile)
    await world.caught_up()
    assert await Vector.filter(kind="fact").count() == 0
    await world.caught_up()
    assert await Vector.filter(kind="fact").count() == 1


async def test_a_changed_fact_gets_another_vector(world: World) -> None:
    await world.say("我以后不喝咖啡了")
    chat_id = await world.id_of()
    put = transactional(facts.store)
    await put(chat_id, [Fact("preferences", "drink", "爱喝咖啡", 1)], NOW)
    made = await world.caught_up()
    await put(chat_id, [Fact("preferences", "drink", "改喝龙井", 1)], NOW)
    await made._upkeep.catch_up()
    assert world.asked.count("drink preferences 改喝龙井") == 1
    assert await Vector.filter(kind="fact").count() == 1


async def test_it_costs_and_never_more_than_the_limit_of_the_day(world: World) -> None:
    await world.say(*(f"这是今天的第 {number} 句话" for number in range(60)))
    chat_id = await world.id_of()
    await Chat.filter(id=chat_id).update(daily_token_limit=305)
    made = await world.caught_up()
    await made._calls.count()  # type: ignore[union-attr]
    spent = await usage.tokens(chat_id, TODAY, replies=False)
    assert 0 < spent <= 305
    assert 0 < await Vector.all().count() < 60
    await world.recall(made)
    await made._calls.count()  # type: ignore[union-attr]
    assert await usage.tokens(chat_id, TODAY, replies=False) == spent
    assert await usage.tokens(chat_id, TODAY, replies=True) == spent + 10
    world.clock.time += timedelta(days=1)
    await Chat.filter(id=chat_id).update(daily_token_limit=None)
    await made._upkeep.catch_up()
    assert await Vector.all().count() == 60


async def test_memory_is_bounded_and_keeps_the_newest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "_MOST_BYTES", 24 * 4 * 40)
    await world.say(*(f"这是第 {number} 句话" for number in range(100)))
    made = await world.caught_up()
    assert await Vector.all().count() == 30
    assert "这是第 70 句话" in world.asked
    assert "这是第 69 句话" not in world.asked
    chat_id = await world.id_of()
    await made.nearest(chat_id, QUESTION)
    for day in (0.9, 0.8, 0.7):
        await world.say(*(f"后来的第 {day} {number} 句" for number in range(9)), days=day)
        await made._upkeep.catch_up()
        near = await made.nearest(chat_id, "后来的第 0.7 8 句")
    assert near is not None
    assert near[0].ref == 127
    assert made._index._held[chat_id].bytes <= 24 * 4 * 40


async def test_any_text_is_asked_about_without_an_error(world: World) -> None:
    await world.say(ALLERGY, "\u3000\u3000\u3000\u3000\u3000", "带\0的一个字", "长" * 5000)
    await world.chatter()
    made = await world.caught_up()
    assert max(map(len, world.asked)) == 480
    assert all(text.strip() for text in world.asked)
    for text in ("", " \n", "\0", "\ud83d", "'\"--", "长" * 10_000):
        await world.recall(made, text)
    assert made.trouble is None


async def test_numpy_is_asked_for_at_the_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = vector_index.__name__
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("plugins.nonebot_plugin_nianlun.store.vector_index", raising=False)
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ConfigError, match="numpy"):
        world.embedding()


def test_a_stored_vector_has_length_one_whatever_it_was() -> None:
    for scale in (1e-300, 1.0, 1e299):
        (near,) = {VectorIndex.pack([scale * 3, scale * -4])}
        assert near == VectorIndex.pack([0.6, -0.8])
