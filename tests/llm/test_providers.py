"""The client against servers that refuse what this or that provider refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
import json
from typing import Any, NamedTuple, NoReturn

from hypothesis import given
from hypothesis import strategies as st
import pytest
import pytest_asyncio

from plugins.nonebot_plugin_nianlun.config import Settings
from plugins.nonebot_plugin_nianlun.errors import (
    BadAnswer,
    ModelRefused,
    ModelUnavailable,
    StoreUnavailable,
)
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.model_writer import ModelWriter
from plugins.nonebot_plugin_nianlun.llm.providers import change_for, changed
from plugins.nonebot_plugin_nianlun.llm.tool_writer import ToolWriter
from plugins.nonebot_plugin_nianlun.llm.traits import KEPT
from plugins.nonebot_plugin_nianlun.llm.writers import new_writer
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar as Days
from tests.support.model_server import ModelServer, Reply, Responder, calling, delta, events

SYSTEM = {"role": "system", "content": "你是小忆"}
ASK = [SYSTEM, {"role": "user", "content": "说句话"}]
TOOLS = [{"type": "function", "function": {"name": "update_short_term_memory"}}]
Body = dict[str, Any]


class Rule(NamedTuple):
    """What a provider refuses, and how it says so."""

    refuses: Callable[[Body], object]
    message: str
    status: int = 400
    param: str | None = None
    bare: bool = False
    """The message is the whole body."""

    def reply(self) -> Reply:
        if self.bare:
            return self.status, {}, self.message
        error = {"message": self.message, "type": "invalid_request_error", "param": self.param}
        return self.status, {}, json.dumps({"error": error})


def provider(*rules: Rule) -> Responder:
    """A server that refuses by these rules, and streams when it is asked to."""

    def respond(body: Body) -> Reply:
        for rule in rules:
            if rule.refuses(body):
                return rule.reply()
        if body.get("stream"):
            return events(delta(content="好"), delta("stop", content="呀"))
        return "好呀"

    return respond


def has(field: str) -> Callable[[Body], bool]:
    return lambda body: field in body


def not_streamed(body: Body) -> bool:
    return not body.get("stream")


def thinks(body: Body) -> bool:
    return body.get("enable_thinking", True)


class Remembered:
    """A memory of traits that outlives its clients."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], tuple[frozenset[str], datetime]] = {}
        self.broken = False

    async def load(self, endpoint: str, model: str) -> tuple[frozenset[str], datetime] | None:
        if self.broken:
            raise StoreUnavailable("数据库出错")
        return self.kept.get((endpoint, model))

    async def save(self, endpoint: str, model: str, changes: frozenset[str], at: datetime) -> None:
        if self.broken:
            raise StoreUnavailable("数据库出错")
        self.kept[endpoint, model] = changes, at

    async def set_trouble(self, endpoint: str, trouble: str | None, at: datetime) -> None:
        if self.broken:
            raise StoreUnavailable("数据库出错")


class Calendar:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 29, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def memory() -> Remembered:
    return Remembered()


@pytest.fixture
def clock() -> Calendar:
    return Calendar()


@pytest_asyncio.fixture
async def new_client(
    server: ModelServer, memory: Remembered, clock: Calendar
) -> AsyncIterator[Callable[..., ModelClient]]:
    made: list[ModelClient] = []

    def new(**extra: object) -> ModelClient:
        made.append(
            ModelClient(
                api_key="sk-secret",
                base_url=server.base_url,
                model="m",
                extra_body=extra,
                timeout=10,
                memory=memory,
                clock=clock,
            )
        )
        return made[-1]

    yield new
    for client in made:
        await client.close()


NewClient = Callable[..., ModelClient]
TEMPERATURE = Rule(
    has("temperature"),
    "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1)"
    " value is supported.",
    param="temperature",
)
MAX_TOKENS = Rule(
    has("max_tokens"),
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
    " 'max_completion_tokens' instead.",
    param="max_tokens",
)
ONLY_STREAMS = Rule(
    not_streamed,
    "This model only support stream mode, please enable the stream parameter to access the model. ",
)
NO_THINKING_UNSTREAMED = Rule(
    lambda body: not_streamed(body) and thinks(body),
    "parameter.enable_thinking must be set to false for non-streaming calls",
)


@pytest.mark.parametrize(
    ("rules", "extra", "sent"),
    [
        pytest.param([TEMPERATURE], {"temperature": 0.3}, {}, id="openai-temperature"),
        pytest.param(
            [TEMPERATURE, MAX_TOKENS],
            {"temperature": 0.3, "max_tokens": 500},
            {"max_completion_tokens": 500},
            id="openai-reasoning",
        ),
        pytest.param(
            [Rule(has("max_completion_tokens"), "Unrecognized request argument supplied:"
                  " max_completion_tokens")],
            {"max_completion_tokens": 500},
            {"max_tokens": 500},
            id="older-server",
        ),
        pytest.param(
            [Rule(has("temperature"), "invalid temperature: only 1 is allowed for this model")],
            {"temperature": 0.3, "top_p": 0.9},
            {"top_p": 0.9},
            id="kimi-temperature",
        ),
        pytest.param([NO_THINKING_UNSTREAMED], {}, {"enable_thinking": False}, id="qwen-hybrid"),
        pytest.param(
            [NO_THINKING_UNSTREAMED],
            {"enable_thinking": True},
            {"enable_thinking": True, "stream": True, "stream_options": {"include_usage": True}},
            id="qwen-asked-to-think",
        ),
        pytest.param(
            [ONLY_STREAMS],
            {},
            {"stream": True, "stream_options": {"include_usage": True}},
            id="qwq-only-streams",
        ),
        pytest.param(
            [
                Rule(
                    lambda body: body.get("enable_thinking") is False,
                    "The value of the enable_thinking parameter is restricted to True.",
                ),
                NO_THINKING_UNSTREAMED,
            ],
            {},
            {"stream": True, "stream_options": {"include_usage": True}},
            id="qwen-only-thinks",
        ),
        pytest.param(
            [
                Rule(not_streamed, '{"detail":"Stream must be set to true"}', bare=True),
                Rule(has("stream_options"), '{"detail":"Unknown field stream_options"}', 422,
                     bare=True),
            ],
            {},
            {"stream": True},
            id="relay-only-streams",
        ),
        pytest.param(
            [
                Rule(
                    has("enable_thinking"),
                    json.dumps({"object": "error", "code": 400, "message":
                        "[{'type': 'extra_forbidden', 'loc': ('body', 'enable_thinking'), 'msg':"
                        " 'Extra inputs are not permitted', 'input': False}]"}),
                    bare=True,
                )
            ],
            {"enable_thinking": False, "top_k": 20},
            {"top_k": 20},
            id="vllm-strict",
        ),
        pytest.param(
            [
                Rule(
                    has("thinking"),
                    '{"detail":[{"loc":["body","thinking"],"msg":"extra fields not permitted"}]}',
                    422,
                    bare=True,
                )
            ],
            {"thinking": {"type": "disabled"}},
            {},
            id="gateway-without-thinking",
        ),
        pytest.param(
            [Rule(has("seed"), "API 调用参数有误：不支持参数 `seed`")],
            {"seed": 1},
            {},
            id="glm-parameter",
        ),
    ],
)  # fmt: skip
async def test_what_is_refused_is_left_out_once_and_for_all(
    server: ModelServer, new_client: NewClient, rules: list[Rule], extra: Body, sent: Body
) -> None:
    server.script(provider(*rules))
    client = new_client(**extra)
    assert (await client.complete(ASK)).text == "好呀"
    assert 2 <= len(server.requests) <= 4
    assert (await client.complete(ASK)).text == "好呀"
    tried = len(server.requests)
    assert server.requests[-1] == {"model": "m", "messages": ASK, **sent}
    # So it is for the next process.
    assert (await new_client(**extra).complete(ASK)).text == "好呀"
    assert len(server.requests) == tried + 1
    assert server.requests[-1] == server.requests[-2]


@pytest.mark.parametrize(
    "message",
    [
        "This response_format type is unavailable now",
        "Json mode response is not supported when enable_thinking is true",
        "'response_format.type' must be 'json_schema' or 'text'",
    ],
)
async def test_json_mode_is_left_out_where_it_is_refused(
    server: ModelServer, new_client: NewClient, message: str
) -> None:
    server.script(provider(Rule(has("response_format"), message)))
    client = new_client(enable_thinking=True)
    for _ in range(2):
        await client.complete(ASK, json=True)
    assert ["response_format" in body for body in server.requests] == [True, False, False]
    assert all(body["enable_thinking"] for body in server.requests)


async def test_a_refusal_may_come_as_a_success(server: ModelServer, new_client: NewClient) -> None:
    error = {"error": {"message": "response_format is not supported", "code": "1210"}}
    server.script(lambda body: error if "response_format" in body else "{}")
    assert (await new_client().complete(ASK, json=True)).text == "{}"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
        (
            400,
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser',
        ),
        (404, "No endpoints found that support tool use. To learn more about provider routing"),
        (400, "Function calling is not available: tools are not supported by this model"),
    ],
)
async def test_without_tools_it_answers_in_words_where_they_will_do(
    server: ModelServer, new_client: NewClient, status: int, message: str
) -> None:
    server.script(provider(Rule(has("tools"), message, status)))
    client = new_client()
    assert client.takes_tools()
    turn = await client.converse(ASK, TOOLS, words_will_do=True)
    assert (turn.text, turn.calls) == ("好呀", ())
    assert not client.takes_tools()
    assert client.takes_tools("other")
    await client.converse(ASK, TOOLS, words_will_do=True)
    assert ["tools" in body for body in server.requests] == [True, False, False]
    # Where they will not, nobody pays for words.
    for one in (client, new_client()):
        with pytest.raises(ModelUnavailable, match="工具"):
            await one.converse(ASK, TOOLS)
    assert len(server.requests) == 3


async def test_notes_are_asked_for_without_tools_once_they_are_refused(
    server: ModelServer, new_client: NewClient
) -> None:
    server.script(provider(Rule(has("tools"), "m does not support tools")))
    client = new_client()

    async def anything(*args: object) -> NoReturn:
        raise AssertionError

    settings = Settings(model="m", notes_tools=True)
    calendar = Days(settings.timezone, settings.day_starts_at)
    assert isinstance(new_writer(settings, client, calendar, anything, anything), ToolWriter)
    with pytest.raises(ModelUnavailable) as caught:
        await client.converse(ASK, TOOLS)
    assert caught.value.usage is not None
    assert isinstance(new_writer(settings, client, calendar, anything, anything), ModelWriter)


@pytest.mark.parametrize(
    ("message", "roles"),
    [
        ("System role not supported", ["user"]),
        ("Conversation roles must alternate user/assistant/user/assistant/...", ["user"]),
        ("Only user and assistant roles are supported!", ["user"]),
    ],
)
async def test_templates_without_a_system_role(
    server: ModelServer, new_client: NewClient, message: str, roles: list[str]
) -> None:
    def too_many(body: Body) -> bool:
        turns = [turn["role"] for turn in body["messages"]]
        return "system" in turns or any(a == b for a, b in pairwise(turns))

    server.script(provider(Rule(too_many, message)))
    asked = [*ASK, {"role": "user", "content": "再说一句"}]
    await new_client().complete(asked)
    assert [turn["role"] for turn in server.requests[-1]["messages"]] == roles
    assert server.requests[-1]["messages"][0]["content"] == "你是小忆\n\n说句话\n\n再说一句"
    assert len(server.requests) == 2


def missing_reasoning(body: Body) -> bool:
    turns = [turn for turn in body["messages"] if turn["role"] == "assistant"]
    return any(turn.get("tool_calls") and "reasoning_content" not in turn for turn in turns)


@pytest.mark.parametrize(
    "message",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at"
        " index 2",
    ],
)
async def test_reasoning_goes_back_with_the_calls(
    server: ModelServer, new_client: NewClient, message: str
) -> None:
    client = new_client()
    thought = calling({"action": "get_tasks"})
    thought["choices"][0]["message"]["reasoning_content"] = ""
    server.script(provider(Rule(missing_reasoning, message)))
    server.script([thought])
    turn = await client.converse(ASK, TOOLS)
    result = {"role": "tool", "tool_call_id": turn.calls[0].id, "content": "{}"}
    assert (await client.converse([*ASK, turn.message, result], TOOLS)).text == "好呀"
    assert len(server.requests) == 2
    assert server.requests[1]["messages"][2]["reasoning_content"] == ""
    # A turn that another model made, or that was kept without it.
    del turn.message["reasoning_content"]
    assert (await client.converse([*ASK, turn.message, result], TOOLS)).text == "好呀"
    assert len(server.requests) == 4
    assert server.requests[-1]["messages"][2]["reasoning_content"] == "."


async def test_reasoning_is_kept_from_who_refuses_it(
    server: ModelServer, new_client: NewClient
) -> None:
    def given(body: Body) -> bool:
        return any("reasoning_content" in turn for turn in body["messages"])

    message = "'messages.2' : property 'reasoning_content' is unsupported"
    server.script(provider(Rule(given, message)))
    before = {"role": "assistant", "content": "嗯", "reasoning_content": "想一想"}
    await new_client().complete([*ASK, before, ASK[1]])
    assert server.requests[-1]["messages"][2] == {"role": "assistant", "content": "嗯"}
    assert len(server.requests) == 2


async def test_each_model_has_its_own_traits(server: ModelServer, new_client: NewClient) -> None:
    server.script(
        provider(Rule(lambda b: b["model"] == "m" and "temperature" in b, "temperature: no"))
    )
    client = new_client(temperature=0.3)
    await client.complete(ASK)
    await client.complete(ASK, model="notes")
    await client.complete(ASK)
    sent = [(body["model"], "temperature" in body) for body in server.requests]
    assert sent == [("m", True), ("m", False), ("notes", True), ("m", False)]


async def test_what_helped_nothing_is_not_remembered(
    server: ModelServer, new_client: NewClient, memory: Remembered
) -> None:
    server.script(provider(Rule(lambda body: True, "temperature, top_p: the context is full")))
    client = new_client(temperature=0.3, top_p=1, top_k=3, min_p=4)
    with pytest.raises(ModelUnavailable, match="400"):
        await client.complete(ASK)
    assert len(server.requests) == 3
    assert memory.kept == {}


async def test_the_search_for_what_helps_is_bounded(
    server: ModelServer, new_client: NewClient
) -> None:
    fields = {f"field_{number}": 1 for number in range(20)}
    server.script(
        lambda body: (400, {}, f"unknown {next((f for f in body if f in fields), 'everything')}")
    )
    with pytest.raises(ModelUnavailable):
        await new_client(**fields).complete(ASK)
    assert len(server.requests) == 5


async def test_a_provider_that_mended_is_found_out(
    server: ModelServer, new_client: NewClient, clock: Calendar
) -> None:
    server.script(provider(TEMPERATURE))
    client = new_client(temperature=0.3)
    await client.complete(ASK)
    server.script(provider())
    clock.time += KEPT - timedelta(hours=1)
    await client.complete(ASK)
    assert "temperature" not in server.requests[-1]
    clock.time += timedelta(hours=2)
    await client.complete(ASK)
    await new_client(temperature=0.3).complete(ASK)
    assert ["temperature" in body for body in server.requests[-2:]] == [True, True]
    # As little as a clock that was put back is believed.
    clock.time -= timedelta(days=400)
    await client.complete(ASK)
    assert "temperature" in server.requests[-1]


async def test_a_broken_database_costs_no_answer(
    server: ModelServer, new_client: NewClient, memory: Remembered
) -> None:
    memory.broken = True
    server.script(provider(TEMPERATURE))
    client = new_client(temperature=0.3)
    for _ in range(2):
        assert (await client.complete(ASK)).text == "好呀"
    assert ["temperature" in body for body in server.requests] == [True, False, False]


async def test_content_is_refused_and_not_its_parameter(
    server: ModelServer, new_client: NewClient
) -> None:
    reply = (400, {}, json.dumps({"error": {"message": "temperature 里有敏感内容"}}))
    server.script([reply])
    with pytest.raises(ModelRefused):
        await new_client(temperature=0.3).complete(ASK)
    assert len(server.requests) == 1


async def test_the_key_is_in_no_trait(
    server: ModelServer, memory: Remembered, clock: Calendar
) -> None:
    server.script(provider(TEMPERATURE))
    url = server.base_url.replace("http://", "http://me:sk-inside@")
    client = ModelClient(
        api_key="sk-secret",
        base_url=url,
        model="m",
        extra_body={"temperature": 1},
        memory=memory,
        clock=clock,
    )
    await client.complete(ASK)
    await client.close()
    [(endpoint, model)] = memory.kept
    assert endpoint == server.base_url.removeprefix("http://")
    assert model == "m"


def test_a_change_always_changes_something() -> None:
    body = {"model": "m", "messages": ASK, "tools": TOOLS, "n": 1}
    for complaint in ("temperature", "n is for nothing", "model", "messages", "reasoning_content"):
        assert change_for(complaint, None, body, frozenset()) is None
    assert change_for("unknown 'n'", None, body, frozenset()) == "without:n"
    assert change_for("unknown field", "n", body, frozenset()) == "without:n"
    assert changed(body, frozenset()) == body
    assert changed(body, {"of a later version"}) == body


async def test_an_answer_without_words_says_why(server: ModelServer, new_client: NewClient) -> None:
    server.script([events(delta("length", reasoning_content="想了很久很久"))])
    with pytest.raises(BadAnswer, match="长度上限"):
        await new_client().complete(ASK)


COMPLAINTS = st.lists(
    st.sampled_from([
        "enable_thinking", " must be set to false ", "stream", " only support ", "response_format",
        "reasoning_content", " is missing ", "must be passed", "max_tokens", "tools",
        " does not support ", "system role not supported", "roles must alternate", "temperature",
        "'n'", "unknown field ", "true", "json mode", "不支持", "仅支持流式",
    ])
    | st.text(max_size=5),
    max_size=12,
).map("".join)  # fmt: skip


@given(st.lists(COMPLAINTS, max_size=30), st.none() | st.sampled_from(["tools", "n", "messages"]))
def test_whatever_is_complained_of_the_request_stays_one(
    complaints: list[str], param: str | None
) -> None:
    body = {
        "model": "m",
        "messages": [
            *ASK,
            {"role": "assistant", "content": None, "reasoning": "嗯", "tool_calls": [{"id": "a"}]},
            {"role": "tool", "tool_call_id": "a", "content": "{}"},
            {"role": "user", "content": [{"type": "text", "text": "图"}]},
            {"role": "user", "content": "好"},
        ],
        "tools": TOOLS,
        "response_format": {"type": "json_object"},
        "temperature": 1,
        "max_tokens": 9,
        "n": 1,
    }
    before = json.dumps(body)
    made: frozenset[str] = frozenset()
    for complaint in complaints:
        change = change_for(complaint, param, body, made)
        if change is not None:
            assert change not in made
            made = made | {change}
    sent = changed(body, made)
    assert json.dumps(body) == before
    assert sent["model"] == "m"
    said = json.dumps(sent["messages"], ensure_ascii=False)
    assert all(word in said for word in ("你是小忆", "说句话", "图", "好", "tool_call_id"))
