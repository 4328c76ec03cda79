"""What a model may do in the middle of a reply, over a real file and a model behind HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest
from tortoise import Tortoise

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.chat.tool_talk import ROUNDS, ToolTalk
from plugins.nonebot_plugin_nianlun.chat.tools import RESULT_TOKENS, ReplyTools, ToolDesk
from plugins.nonebot_plugin_nianlun.errors import BadAnswer, ModelUnavailable
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.tool_turns import ToolCall
from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens
from plugins.nonebot_plugin_nianlun.recalling import Recalling
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    facts,
    invariants,
    links,
    memories,
    recording,
    said,
)
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, Withdrawal
from tests.store.test_upkeep import CALENDAR, DAY, GROUP, local
from tests.support.model_server import ModelServer, calling, completion
from tests.support.scripted_writer import SetClock

OTHER = ChatKey("10001", "group", "456")
THIRD = ChatKey("10001", "group", "789")
DEER, RIVER = "20001", "20002"
NAMES = {DEER: "小鹿", RIVER: "阿川"}
TODAY = DAY.isoformat()
ASKED = [{"role": "system", "content": "你是小忆"}, {"role": "user", "content": "记得吗"}]


@dataclass
class World:
    file: Path
    clock: SetClock
    tools: ReplyTools
    said: int = 0

    async def say(
        self, text: str, by: str = DEER, *, chat: ChatKey = GROUP, days: float = 0
    ) -> str:
        """Record a line that was said so many days ago; returns its platform id."""
        self.said += 1
        at = self.clock.now() - timedelta(days=days) + timedelta(seconds=self.said)
        segments = [{"type": "text", "data": {"text": text}}]
        line = Incoming(chat, at, by, NAMES[by], segments, "event", message_id=str(self.said))
        await recording.record([line], readable, "小忆", self.clock.now())
        return str(self.said)

    async def withdraw(self, message_id: str) -> None:
        notice = Withdrawal(GROUP, message_id, None, self.clock.now() + timedelta(days=400))
        await recording.record([notice], readable, "小忆", self.clock.now())

    def desk(self, *asked: str, asker: str = DEER, writing: bool = True) -> ToolDesk:
        return self.tools.desk(GROUP, asker, asked, writing=writing)


@pytest.fixture
async def world(database_file: Path) -> AsyncIterator[World]:
    clock = SetClock(local(DAY, 20))
    reader = SearchReader(database_file, CALENDAR)
    recalling = Recalling(reader, "小忆", clock, CALENDAR)
    await chats.ensure([GROUP, OTHER, THIRD], clock.now())
    yield World(database_file, clock, ReplyTools(recalling, clock, CALENDAR, "小忆"))
    await reader.close()
    for chat_id in (1, 2):
        check = await invariants.check(database_file, chat_id, CALENDAR, clock.now())
        assert check.findings == ()


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall("1", name, arguments)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as found:
        yield found


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[ModelClient]:
    found = ModelClient(api_key="k", base_url=server.base_url, model="m", timeout=10, max_tries=1)
    yield found
    await found.close()


# —— looking things up ——


async def test_a_search_brings_up_this_chat_alone(world: World) -> None:
    await world.say("我把钥匙藏在花盆底下", days=3)
    await world.say("钥匙在对面群的柜子里", chat=OTHER, days=3)
    told = await world.desk().run(call("search_memory", '{"query": "钥匙藏在哪"}'))
    assert "#1" in told
    assert "小鹿：我把钥匙藏在花盆底下" in told
    assert "柜子" not in told


async def test_a_search_looks_into_a_linked_chat_and_names_it(world: World) -> None:
    await world.say("钥匙在对面群的柜子里", RIVER, chat=OTHER, days=3)
    await world.say("钥匙在第三个群的鞋柜里", chat=THIRD, days=3)
    await world.say("早", days=3)
    await world.say("我知道")
    asked = call("search_memory", '{"query": "钥匙在哪"}')
    await links.link(1, 2, "90001", world.clock.now())
    told = await world.desk().run(asked)
    assert "- 在群「456」（那里的 #1） " in told
    assert "阿川：钥匙在对面群的柜子里" in told
    assert "鞋柜" not in told
    for other in (
        call("read_messages", '{"ids": [1, 2]}'),
        call("recall_day", f'{{"date": "{(DAY - timedelta(days=3)).isoformat()}"}}'),
    ):
        assert "柜" not in await world.desk().run(other)
    assert "钥匙在对面" in await world.desk().run(
        call("search_memory", '{"query": "钥匙", "when": "三天前"}')
    )
    await links.unlink(2, 1)
    assert "柜" not in await world.desk().run(asked)


async def test_a_search_by_speaker_and_time(world: World) -> None:
    await world.say("想去爬山", days=2)
    await world.say("我也想爬山", RIVER, days=1)
    desk = world.desk()
    theirs = await desk.run(call("search_memory", '{"query": "爬山", "speaker": "阿川"}'))
    assert "我也想爬山" in theirs
    assert "想去爬山" not in theirs
    before = await desk.run(call("search_memory", '{"query": "爬山", "when": "前天"}'))
    assert "想去爬山" in before
    assert "我也想爬山" not in before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"query": "爬山", "speaker": "没有的人"}', "没有叫 没有的人 的人"),
        ('{"query": "爬山", "when": "哪天来着"}', "看不懂 when"),
        ('{"query": "  "}', "缺少 query"),
        ('{"query": ["爬山"]}', "query 应为文字"),
        ('{"query": "' + "爬" * 500 + '"}', "太长"),
        ('{"query": "\ud800\\ud800 \\u0000"}', "没有找到"),
        ("[1, 2]", "JSON 对象"),
        ("爬山", "JSON 对象"),
        ('{"query": "爬', "JSON 对象"),
    ],
)
async def test_what_is_wrong_with_a_call_is_told(world: World, arguments: str, told: str) -> None:
    await world.say("想去爬山")
    assert told in await world.desk().run(call("search_memory", arguments))


async def test_people_of_one_name_are_found_by_the_tail_that_the_model_sees(world: World) -> None:
    NAMES["20009"] = "小鹿"
    await world.say("我养猫")
    await world.say("我养狗", "20009")
    found = await world.desk().run(
        call("search_memory", '{"query": "养", "speaker": "小鹿（尾号0009）"}')
    )
    assert "我养狗" in found
    assert "我养猫" not in found


async def test_messages_are_read_by_id_but_none_that_is_gone_or_elsewhere(world: World) -> None:
    await world.say("第一句")
    gone = await world.say("说错了")
    await world.say("对面的话", chat=OTHER)
    await world.withdraw(gone)
    told = await world.desk().run(call("read_messages", '{"ids": ["#1", 2, "3", 1]}'))
    assert f"#1 {CALENDAR.local(world.clock.now()):%H:%M} 小鹿: 第一句" in told
    assert "#2、#3 没有" in told
    assert "说错了" not in told
    assert "对面" not in told


@pytest.mark.parametrize("ids", ['"abc"', "[]", "[true]", "[1.5]", "{}", str(list(range(1, 40)))])
async def test_ids_that_cannot_be(world: World, ids: str) -> None:
    assert "没有做成：" in await world.desk().run(call("read_messages", f'{{"ids": {ids}}}'))


async def test_a_day_is_recalled_from_its_activities(world: World) -> None:
    desk = world.desk(await world.say("考过驾照了"))
    await desk.run(call("append_diary", '{"content": "小鹿考过驾照了，我替她高兴。"}'))
    assert "小鹿考过驾照了" in await desk.run(call("recall_day", f'{{"date": "{TODAY}"}}'))
    assert "小鹿考过驾照了" in await desk.run(call("recall_day", '{"date": "今天"}'))
    assert "没有记下什么" in await desk.run(call("recall_day", '{"date": "2020-01-05"}'))
    assert "看不懂" in await desk.run(call("recall_day", '{"date": "2020-13-45"}'))


async def test_no_result_is_larger_than_its_room(world: World) -> None:
    for number in range(30):
        await world.say(f"爬山的第{number}段路，" + "又长又陡，石头很多。" * 20, days=1)
    desk = world.desk()
    first = await desk.run(call("search_memory", '{"query": "爬山 石头"}'))
    assert 0 < estimate_tokens(first) <= RESULT_TOKENS
    rest = [
        await desk.run(call("read_messages", f'{{"ids": [{number}, {number + 1}]}}'))
        for number in range(1, 8)
    ]
    read = [told for told in (first, *rest) if not told.startswith("没有做：")]
    assert sum(map(estimate_tokens, read)) <= 2 * RESULT_TOKENS
    assert "看得够多了" in rest[-1]
    fact = '{"category": "profile", "name": "a", "content": "b"}'
    assert "没有记录" in await desk.run(call("remember", fact))


# —— writing things down ——


async def test_a_fact_is_the_askers_and_goes_with_the_line(world: World) -> None:
    asked = await world.say("我不吃香菜，记住哦")
    told = await world.desk(asked).run(
        call(
            "remember",
            '{"category": "preferences", "name": "香菜", "content": "不吃香菜", "owner": "20002"}',
        )
    )
    assert told == "记住了"
    (row,) = await facts.listed(1)
    assert (row.owner, row.text, row.source) == (DEER, "不吃香菜", 1)
    await world.withdraw(asked)
    assert await facts.listed(1) == []


async def test_nobody_changes_what_is_anothers(world: World) -> None:
    fact = '{"category": "profile", "name": "生日", "content": "%s"}'
    await world.desk(await world.say("我三月五日生")).run(call("remember", fact % "三月五日"))
    await world.desk(await world.say("他其实是九月的", RIVER), asker=RIVER).run(
        call("remember", fact % "九月")
    )
    stored = {row.owner: row.text for row in await facts.listed(1)}
    assert stored == {DEER: "三月五日", RIVER: "九月"}


async def test_a_promise_has_the_day_that_the_line_names(world: World) -> None:
    asked = await world.say("我明天把书还你")
    await world.desk(asked).run(
        call("remember", '{"category": "promise", "name": "还书", "content": "把书还我"}')
    )
    (row,) = await facts.listed(1)
    assert row.due == (DAY + timedelta(days=1)).isoformat()


async def test_secrets_are_masked(world: World) -> None:
    key = "sk-" + "a1B2" * 12
    desk = world.desk(await world.say("记一下"))
    content = f"密钥是 {key}"
    await desk.run(
        call("remember", f'{{"category": "profile", "name": "k", "content": "{content}"}}')
    )
    await desk.run(call("append_diary", f'{{"content": "她说{content}"}}'))
    (row,) = await facts.listed(1)
    (moment,) = await memories.activities(1, TODAY)
    assert key not in row.text
    assert key not in moment.text


async def test_a_moment_goes_with_the_line(world: World) -> None:
    asked = await world.say("我升职了")
    told = await world.desk(asked).run(call("append_diary", '{"content": "她升职了，真好。"}'))
    assert told == "写进日记了"
    (moment,) = await memories.activities(1, TODAY)
    assert (moment.origin, moment.owner, moment.key_messages) == ("tool", DEER, (1,))
    await world.withdraw(asked)
    assert [one for one in await memories.activities(1, TODAY) if one.text] == []


async def test_all_lines_of_a_turn_are_what_it_rests_on(world: World) -> None:
    calls = [await world.say("我后天把书还你"), await world.say("记住哦", RIVER)]
    calls.append(await world.say("记住哦"))
    desk = world.desk(*calls)
    promise = '{"category": "promise", "name": "还书", "content": "小鹿要还书"}'
    assert await desk.run(call("remember", promise)) == "记住了"
    await desk.run(call("append_diary", '{"content": "她明天来还书。"}'))
    (row,) = await facts.listed(1)
    (moment,) = await memories.activities(1, TODAY)
    assert (row.due, row.source) == ((DAY + timedelta(days=2)).isoformat(), 3)
    assert moment.key_messages == (1, 2, 3)
    assert "明天" not in moment.text
    await world.withdraw(calls[0])
    assert await facts.listed(1) == []
    assert [one for one in await memories.activities(1, TODAY) if one.text] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"content": "一件事。", "date": "2020-01-05"}', "只有 content"),
        ('{"content": "   "}', "1 到 300 字"),
        ('{"content": 5}', "1 到 300 字"),
        ("", "1 到 300 字"),
        ('{"content": "' + "长" * 301 + '"}', "1 到 300 字"),
    ],
)
async def test_a_moment_that_cannot_be(world: World, arguments: str, told: str) -> None:
    assert told in await world.desk(await world.say("话")).run(call("append_diary", arguments))
    assert await memories.activities(1, TODAY) == []


@pytest.mark.parametrize(
    "arguments",
    [
        '{"category": "喜好", "name": "a", "content": "b"}',
        '{"category": "profile", "name": "a:b", "content": "c"}',
        '{"category": "profile", "name": "a"}',
        "{}",
    ],
)
async def test_a_fact_that_cannot_be(world: World, arguments: str) -> None:
    told = await world.desk(await world.say("话")).run(call("remember", arguments))
    assert told.startswith("没有做成：")
    assert "\n" not in told
    assert await facts.listed(1) == []


async def test_a_line_that_goes_meanwhile_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await world.say("我升职了")
    originals = said.originals

    async def and_gone(chat_id: int, seqs: list[int]) -> dict[int, said.Original]:
        found = await originals(chat_id, seqs)
        await world.withdraw(asked)
        return found

    monkeypatch.setattr(said, "originals", and_gone)
    desk = world.desk(asked)
    assert "撤回" in await desk.run(call("append_diary", '{"content": "她升职了。"}'))
    assert await memories.activities(1, TODAY) == []
    asked = await world.say("我又升职了")
    fact = call("remember", '{"category": "profile", "name": "a", "content": "b"}')
    assert "撤回" in await world.desk(asked).run(fact)
    assert await facts.listed(1) == []


async def test_a_store_that_takes_nothing_is_told(world: World) -> None:
    desk = world.desk(await world.say("话"))
    store = Tortoise.get_connection("default")
    await store.execute_query("PRAGMA query_only = ON")
    fact = '{"category": "profile", "name": "a", "content": "b"}'
    for one in (call("remember", fact), call("append_diary", '{"content": "一件事。"}')):
        assert await desk.run(one) == "没有做成：现在读写不了记忆"
    assert "话" in await desk.run(call("read_messages", '{"ids": [1]}'))
    await store.execute_query("PRAGMA query_only = OFF")


async def test_what_is_not_on_record_makes_no_memory(world: World) -> None:
    theirs = await world.say("阿川的话", RIVER)
    fact = call("remember", '{"category": "profile", "name": "a", "content": "b"}')
    assert "没有记录" in await world.desk("999").run(fact)
    assert "没有记录" in await world.desk(theirs).run(fact)
    mine = await world.say("我的话")
    await exclusions.opt_out(1, DEER, world.clock.now(), world.clock.now())
    assert "没有做成" in await world.desk(mine).run(fact)
    assert await facts.listed(1) == []


async def test_without_writing_there_is_nothing_to_write_with(world: World) -> None:
    desk = world.desk(await world.say("话"), writing=False)
    names = [tool["function"]["name"] for tool in desk.tools]
    assert names == ["search_memory", "read_messages", "recall_day"]
    told = await desk.run(call("remember", '{"category": "a", "name": "b", "content": "c"}'))
    assert told.startswith("没有 'remember' 这个工具")
    assert await facts.listed(1) == []


async def test_the_same_call_is_done_once(world: World) -> None:
    desk = world.desk(await world.say("话"))
    moment = call("append_diary", '{"content": "一件事。"}')
    assert await desk.run(moment) == "写进日记了"
    assert "刚刚做过" in await desk.run(moment)
    assert len(await memories.activities(1, TODAY)) == 1


@given(st.text(max_size=30), st.text(max_size=60))
async def test_no_call_raises(name: str, arguments: str) -> None:
    clock = SetClock(local(DAY, 20))
    tools: Any = ReplyTools(None, clock, CALENDAR, "小忆")  # type: ignore[arg-type]
    told = await tools.desk(GROUP, DEER, [], writing=True).run(ToolCall("1", name, arguments))
    assert told


# —— the talk ——


async def test_a_model_looks_up_and_answers(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    await world.say("我把钥匙藏在花盆底下", days=3)
    server.script([calling({"query": "钥匙"}, name="search_memory"), "在花盆底下呀"])
    talk = ToolTalk(client, world.desk())
    said = await talk.answer(ASKED)
    assert said.text == "在花盆底下呀"
    first, second = server.requests
    assert first["tools"] == second["tools"] == world.desk().tools
    assert first["messages"] == second["messages"][:2] == ASKED
    asked, told = second["messages"][2:]
    assert asked["tool_calls"][0]["id"] == told["tool_call_id"]
    assert "花盆底下" in told["content"]
    assert talk.spent.prompt == 200


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "search_memory", "arguments": {"query": "钥匙"}}',
        '```json\n{"name": "search_memory", "parameters": {"query": "钥匙"}}\n```',
        '[{"name": "search_memory", "arguments": "{\\"query\\": \\"钥匙\\"}"}]',
        '<tool_call>{"name": "search_memory", "arguments": {"query": "钥匙"}}</tool_call>',
        '我找找看。\n```json\n{"name": "search_memory", "arguments": {"query": "钥匙"}}\n```',
    ],
)
async def test_a_call_in_words_is_a_call(
    world: World, client: ModelClient, server: ModelServer, text: str
) -> None:
    await world.say("我把钥匙藏在花盆底下", days=3)
    server.script([text, "在花盆底下呀"])
    assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == "在花盆底下呀"
    assert "花盆底下" in server.requests[1]["messages"][-1]["content"]


async def test_arguments_in_a_string_are_arguments(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    await world.say("我把钥匙藏在花盆底下", days=3)
    server.script([calling('"{\\"query\\": \\"钥匙\\"}"', name="search_memory"), "在花盆底下呀"])
    assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == "在花盆底下呀"
    assert "花盆底下" in server.requests[1]["messages"][-1]["content"]


async def test_json_that_is_no_call_is_words(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    server.script(['{"name": "小鹿", "age": 3}'])
    assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == '{"name": "小鹿", "age": 3}'


async def test_a_model_that_only_calls_is_asked_for_words(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    await world.say("我把钥匙藏在花盆底下", days=3)

    def respond(body: dict[str, Any]) -> Any:
        if body.get("tool_choice") == "none":
            return "在花盆底下呀"
        query = f"钥匙{len(body['messages'])}"
        return calling({"query": query}, name="search_memory")

    server.script(respond)
    talk = ToolTalk(client, world.desk())
    assert (await talk.answer(ASKED)).text == "在花盆底下呀"
    assert len(server.requests) == ROUNDS + 1
    first, *_, last = server.requests
    assert first["tools"] == last["tools"]
    assert "花盆底下" in str(last["messages"][-1]["content"])
    assert talk.spent.prompt == 100 * (ROUNDS + 1)


async def test_a_model_that_calls_on_is_asked_without_tools(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    await world.say("我把钥匙藏在花盆底下", days=3)

    def respond(body: dict[str, Any]) -> Any:
        if not body.get("tools"):
            return "在花盆底下呀"
        query = f"钥匙{len(body['messages'])}"
        return calling({"query": query}, name="search_memory")

    server.script(respond)
    talk = ToolTalk(client, world.desk())
    assert (await talk.answer(ASKED)).text == "在花盆底下呀"
    assert len(server.requests) == ROUNDS + 2
    last = server.requests[-1]["messages"]
    assert [turn["role"] for turn in last] == ["system", "user", "user"]
    assert "花盆底下" in last[-1]["content"]
    assert talk.spent.prompt == 100 * (ROUNDS + 2)


async def test_an_endpoint_that_knows_no_tool_choice_answers_too(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    await world.say("话")

    def respond(body: dict[str, Any]) -> Any:
        if "tool_choice" in body:
            return 400, {}, '{"error": {"message": "tool_choice: only auto is supported"}}'
        ids = [len(body["messages"])]
        return calling({"ids": ids}, name="read_messages") if "tools" in body else "好呀"

    server.script(respond)
    for _ in range(2):
        assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == "好呀"
    assert client.takes_tools()
    assert sum("tool_choice" in body for body in server.requests) == 1


async def test_silence_behind_a_result_is_asked_again(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    asked = await world.say("我升职了")
    server.script([calling({"content": "她升职了。"}, name="append_diary"), completion(""), "恭喜"])
    talk = ToolTalk(client, world.desk(asked))
    assert (await talk.answer(ASKED)).text == "恭喜"
    assert "写进日记了" in server.requests[2]["messages"][-1]["content"]
    assert talk.spent.prompt == 300


async def test_silence_alone_is_no_answer(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    server.script([completion("")])
    talk = ToolTalk(client, world.desk())
    with pytest.raises(BadAnswer):
        await talk.answer(ASKED)
    assert talk.spent.prompt == 100


async def test_a_model_without_tools_answers_all_the_same(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    refusal = (400, {}, '{"error": {"message": "this model does not support tools"}}')
    server.script(lambda body: refusal if "tools" in body else "好呀")
    assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == "好呀"
    assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == "好呀"
    assert ["tools" in request for request in server.requests] == [True, False, False]


async def test_a_refusal_that_says_nothing_of_tools_costs_them_last(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    refusal = (400, {}, '{"error": {"message": "Bad request"}}')
    server.script(lambda body: refusal if "tools" in body else "好呀")
    assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == "好呀"
    assert not client.takes_tools()


async def test_a_request_that_is_refused_both_ways_says_nothing_of_tools(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    server.script(lambda body: (400, {}, '{"error": {"message": "Bad request"}}'))
    with pytest.raises(ModelUnavailable):
        await ToolTalk(client, world.desk()).answer(ASKED)
    assert client.takes_tools()


async def test_calls_without_ids_and_too_many_of_them(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    await world.say("话")
    many = calling(*[{"ids": [number]} for number in range(1, 9)], name="read_messages")
    for one in many["choices"][0]["message"]["tool_calls"]:
        del one["id"]
    server.script([many, "好"])
    assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == "好"
    results = [turn for turn in server.requests[1]["messages"] if turn["role"] == "tool"]
    assert len({turn["tool_call_id"] for turn in results}) == len(results) == 8
    assert [("最多调用" in turn["content"]) for turn in results] == [False] * 5 + [True] * 3


async def test_what_a_failed_talk_has_cost_is_known(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    server.script([calling({"ids": [1]}, name="read_messages"), (500, {}, "down")])
    talk = ToolTalk(client, world.desk())
    with pytest.raises(ModelUnavailable):
        await talk.answer(ASKED)
    assert talk.spent.prompt == 100


async def test_the_thoughts_of_a_model_are_no_words(
    world: World, client: ModelClient, server: ModelServer
) -> None:
    server.script([completion("我想想 <think>要不要查</think>好呀")])
    assert (await ToolTalk(client, world.desk()).answer(ASKED)).text == "我想想 好呀"
