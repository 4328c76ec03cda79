"""The client against a real HTTP server that misbehaves the way providers do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
import time
from typing import Any

import pytest
import pytest_asyncio

from plugins.nonebot_plugin_nianlun.errors import BadAnswer, ModelRefused, ModelUnavailable
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens
from plugins.nonebot_plugin_nianlun.types import Usage
from tests.support.model_server import (
    HTML,
    Delay,
    Disconnect,
    ModelServer,
    Reply,
    calling,
    completion,
)

KEY = "sk-very-secret"
ASK = [{"role": "user", "content": "说句话"}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest_asyncio.fixture
async def client(server: ModelServer) -> AsyncIterator[ModelClient]:
    client = ModelClient(
        api_key=KEY, base_url=server.base_url, model="tiny", timeout=5, max_tries=2
    )
    yield client
    await client.close()


async def test_a_plain_answer(client: ModelClient, server: ModelServer) -> None:
    server.script(["你好"])
    answer = await client.complete(ASK)
    assert answer.text == "你好"
    assert answer.usage == Usage(prompt=100, cached=64, completion=20)
    assert server.requests == [{"model": "tiny", "messages": ASK}]
    assert server.authorizations == [f"Bearer {KEY}"]


async def test_the_model_and_extra_fields_are_sent(server: ModelServer) -> None:
    client = ModelClient(
        api_key=KEY, base_url=server.base_url, model="a", extra_body={"enable_thinking": False}
    )
    await client.complete(ASK, model="b", json=True)
    await client.close()
    assert server.requests == [
        {
            "model": "b",
            "messages": ASK,
            "enable_thinking": False,
            "response_format": {"type": "json_object"},
        }
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>他是谁？</think>\n你好", "你好"),
        ("<thought>嗯\n嗯</thought>你好", "你好"),
        ("<THINK>a</THINK><think>b</think>你好", "你好"),
        ("他是谁？\n</think>\n\n你好", "你好"),
        ("你好<think>还没想完", "你好"),
        ("<think>a</think>还在想</think>你好", "你好"),
        ("<think>a<think>b</think>c</think>你好", "你好"),
        ("<think>a</think>用 `</think>` 收尾", "用 `</think>` 收尾"),
        ([{"type": "text", "text": "你"}, {"type": "text", "text": "好"}], "你好"),
        ("  你好\n", "你好"),
    ],
)
async def test_thoughts_and_parts(
    client: ModelClient, server: ModelServer, content: object, text: str
) -> None:
    server.script([completion(content)])
    assert (await client.complete(ASK)).text == text


async def test_a_tag_quoted_inside_json_is_left_alone(
    client: ModelClient, server: ModelServer
) -> None:
    text = '{"memory": "他写了 <think> 又写了 </think>", "facts": []}'
    server.script([f"<think>{{想想}}</think>\n{text}"])
    assert (await client.complete(ASK, json=True)).text == text


@pytest.mark.parametrize(
    "reply",
    [
        completion(None),
        completion(""),
        completion(" \n"),
        completion([]),
        completion([{"type": "image_url"}]),
        completion({"text": "not a part"}),
        completion("<think>只顾着想"),
        completion("x", message=None),
        {"choices": []},
        {"choices": None},
        {"choices": ["text"]},
        {},
    ],
)
async def test_an_answer_without_text_is_bad(
    client: ModelClient, server: ModelServer, reply: Reply
) -> None:
    server.script([reply])
    with pytest.raises(BadAnswer):
        await client.complete(ASK)


@pytest.mark.parametrize(
    "reply",
    [
        HTML,
        (200, {}, "<html></html>"),
        (200, {}, '{"choices": ['),
        (200, {}, '"text"'),
        (200, {}, ""),
        {"error": {"message": "upstream is down"}, "choices": None},
        {"error": "quota"},
    ],
)
async def test_a_success_that_is_none_is_an_outage(
    client: ModelClient, server: ModelServer, reply: Reply
) -> None:
    server.script([reply])
    with pytest.raises(ModelUnavailable):
        await client.complete(ASK)


@pytest.mark.parametrize(
    ("status", "named"),
    [
        (401, "OPENAI_API_KEY"),
        (403, "OPENAI_API_KEY"),
        (404, "NIANLUN__MODEL"),
        (402, "余额"),
        (400, "too long"),
    ],
)
async def test_what_to_check_is_named_once(
    client: ModelClient, server: ModelServer, status: int, named: str
) -> None:
    server.script([(status, {}, f'{{"error": {{"message": "too long\\n for {KEY}"}}}}')])
    with pytest.raises(ModelUnavailable, match=named) as caught:
        await client.complete(ASK)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    # The SDK's error holds the request with the key in its headers.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        (400, {}, '{"error": {"code": "content_filter", "message": "filtered"}}'),
        (400, {}, '{"error": {"message": "Content Exists Risk"}}'),
        (400, {}, '{"error": {"message": "系统检测到输入可能包含敏感内容"}}'),
        (400, {}, '{"code": "data_inspection_failed"}'),
        (403, {}, '{"error": {"message": "Your input was flagged"}}'),
        (422, {}, '{"error": {"message": "输入违规"}}'),
        {"error": {"message": "output sensitive"}},
        completion("", finish_reason="content_filter"),
        completion("半句", finish_reason="sensitive"),
        completion(None, message={"content": None, "refusal": "I cannot"}),
    ],
)
async def test_refused_content(client: ModelClient, server: ModelServer, reply: Reply) -> None:
    server.script([reply])
    with pytest.raises(ModelRefused):
        await client.complete(ASK, json=True)
    assert len(server.requests) == 1


async def test_a_rate_limit_is_waited_out(client: ModelClient, server: ModelServer) -> None:
    server.script([(429, {"Retry-After": "1"}, "{}"), "好了"])
    started = time.monotonic()
    assert (await client.complete(ASK)).text == "好了"
    assert time.monotonic() - started >= 0.95


@pytest.mark.parametrize("first", [(500, {}, "oops"), (503, {}, "{}"), Disconnect()])
async def test_a_passing_failure_is_tried_again(
    client: ModelClient, server: ModelServer, first: Reply
) -> None:
    server.script([first, "好了"])
    assert (await client.complete(ASK)).text == "好了"
    assert len(server.requests) == 2


@pytest.mark.parametrize("failure", [(429, {}, "{}"), (500, {}, "oops"), Disconnect()])
async def test_tries_are_bounded(client: ModelClient, server: ModelServer, failure: Reply) -> None:
    server.script(lambda body: failure)
    with pytest.raises(ModelUnavailable):
        await client.complete(ASK)
    assert len(server.requests) == 2


async def test_the_time_limit_holds_for_the_whole_call(server: ModelServer) -> None:
    client = ModelClient(api_key=KEY, base_url=server.base_url, model="tiny", timeout=0.5)
    server.script(lambda body: Delay(30, "太晚了"))
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"0\.5 秒"):
        await client.complete(ASK)
    with pytest.raises(ModelUnavailable, match=r"0\.1 秒"):
        await client.complete(ASK, seconds=0.1)
    assert time.monotonic() - started < 3
    await client.close()


@pytest.mark.parametrize("after", ["60", "Wed, 21 Oct 2099 07:28:00 GMT"])
async def test_what_would_outlast_the_call_is_not_waited_for(
    client: ModelClient, server: ModelServer, after: str
) -> None:
    server.script([(429, {"Retry-After": after}, "{}")])
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match="429"):
        await client.complete(ASK)
    assert time.monotonic() - started < 3
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "complaint",
    [
        "This response_format type is unavailable now",
        "Json mode response is not supported when enable_thinking is true",
    ],
)
async def test_json_mode_is_dropped_where_it_is_refused(
    client: ModelClient, server: ModelServer, complaint: str
) -> None:
    def respond(body: dict[str, Any]) -> Reply:
        if "response_format" in body:
            return 400, {}, f'{{"error": {{"message": "{complaint}"}}}}'
        return "{}"

    server.script(respond)
    await client.complete(ASK, json=True)
    await client.complete(ASK, json=True)
    await client.complete(ASK, json=True, model="other")
    sent = [(body["model"], "response_format" in body) for body in server.requests]
    assert sent == [
        ("tiny", True),
        ("tiny", False),
        ("tiny", False),
        ("other", True),
        ("other", False),
    ]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
            Usage(prompt=9, cached=4, completion=2),
        ),
    ],
)
async def test_odd_usage(
    client: ModelClient, server: ModelServer, usage: object, expected: Usage
) -> None:
    server.script([completion("好") | {"usage": usage, "model": None}])
    answer = await client.complete(ASK)
    assert answer.usage == expected


@pytest.mark.parametrize(
    "usage",
    [None, {}, [], {"prompt_tokens": None, "completion_tokens": "7"}, {"prompt_tokens": -1}],
)
async def test_what_an_endpoint_does_not_count_is_estimated(
    client: ModelClient, server: ModelServer, usage: object
) -> None:
    server.script(lambda body: completion("好\ud83d" * 50) | {"usage": usage})
    asked = "说说今天的事。" * 100
    turns = [{"role": "user", "content": asked}]
    spent = (await client.complete(turns)).usage
    assert spent.prompt >= estimate_tokens(asked)
    assert spent.completion >= estimate_tokens("好" * 50)
    assert (await client.converse(turns, [{"type": "function"}])).usage.prompt > spent.prompt
    server.script([calling({"action": "get_tasks"}) | {"usage": usage}])
    assert (await client.converse(turns, [])).usage.completion > 0
    server.script([completion("", finish_reason="stop") | {"usage": usage}])
    with pytest.raises(BadAnswer) as caught:
        await client.complete(turns)
    assert caught.value.usage == Usage(spent.prompt)


async def test_lone_surrogates_pass_both_ways(client: ModelClient, server: ModelServer) -> None:
    server.script([completion("好\ud83d")])
    answer = await client.complete([{"role": "user", "content": "\udc00嗨\0{}"}])
    assert answer.text == "好?"
    assert server.requests[0]["messages"][0]["content"] == "?嗨\0{}"
    server.script([completion(" \ud83d\n")])
    with pytest.raises(BadAnswer):
        await client.complete([{"role": "user", "content": "嗨"}])


@pytest.mark.parametrize(
    ("key", "url", "named"),
    [
        ("", "", "OPENAI_API_KEY"),
        ("密钥", "", "OPENAI_API_KEY"),
        ("k", "127.0.0.1:1/v1", "OPENAI_BASE_URL"),
        ("k", "http://[::1/v1", "OPENAI_BASE_URL"),
        ("k", "http://127.0.0.1:99999/v1", "OPENAI_BASE_URL"),
        ("k", "http://me:secret@127.0.0.1:1/v1", "127.0.0.1:1"),
    ],
)
async def test_wrong_settings_surface_at_the_first_call(key: str, url: str, named: str) -> None:
    client = ModelClient(api_key=key, base_url=url, model="tiny", max_tries=1)
    with pytest.raises(ModelUnavailable, match=named) as caught:
        await client.complete(ASK)
    assert "secret" not in str(caught.value)
    await client.close()


async def test_a_closed_client_opens_again(client: ModelClient) -> None:
    await client.complete(ASK)
    await client.close()
    assert (await client.complete(ASK)).text
