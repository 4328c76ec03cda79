"""What models and providers really send, each ending in an answer or in one kind of error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
import json
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest
import pytest_asyncio

from plugins.nonebot_plugin_nianlun.errors import (
    BadAnswer,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from plugins.nonebot_plugin_nianlun.llm.answer_body import answer_object
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.event_stream import is_stream, put_together
from tests.support.model_server import (
    HTML,
    Delay,
    Disconnect,
    ModelServer,
    Reply,
    calling,
    completion,
    delta,
    events,
)

ASK = [{"role": "user", "content": "说句话"}]
NAME = "update_short_term_memory"
TOOLS = [{"type": "function", "function": {"name": NAME}}]
TEXT_JSON = {"Content-Type": "text/html; charset=gbk"}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest_asyncio.fixture
async def client(server: ModelServer) -> AsyncIterator[ModelClient]:
    client = ModelClient(api_key="k", base_url=server.base_url, model="m", timeout=5)
    yield client
    await client.close()


def body(reply: dict[str, Any], **headers: str) -> Reply:
    return 200, headers, json.dumps(reply, ensure_ascii=False)


@pytest.mark.parametrize(
    ("reply", "text", "requests"),
    [
        pytest.param(body(completion("好"), **TEXT_JSON), "好", 1, id="wrong-content-type"),
        pytest.param((200, {}, "\ufeff" + json.dumps(completion("好"))), "好", 1, id="bom"),
        pytest.param((200, {}, "\n\n \n" + json.dumps(completion("好"))), "好", 1, id="keep-alive"),
        pytest.param(completion("好") | {"usage": None, "model": None}, "好", 1, id="no-usage"),
        pytest.param(completion("<think>嗯</think>好"), "好", 1, id="thoughts"),
        pytest.param(completion("<think>没关"), BadAnswer, 1, id="unclosed-thoughts"),
        pytest.param(completion("说到一半", finish_reason="length"), "说到一半", 1, id="cut-short"),
        pytest.param(completion("", finish_reason="length"), BadAnswer, 1, id="all-thoughts"),
        pytest.param(completion(None), BadAnswer, 1, id="null-content"),
        pytest.param({"choices": [], "usage": {}}, BadAnswer, 1, id="no-choices"),
        pytest.param(completion("好", finish_reason="content_filter"), ModelRefused, 1, id="filt"),
        pytest.param(completion("好", finish_reason="sensitive"), ModelRefused, 1, id="sensitive"),
        pytest.param(completion("", finish_reason="network_error"), "好呀", 2, id="glm-network"),
        pytest.param(
            {"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "up"}}]},
            "好呀",
            2,
            id="error-in-the-choice",
        ),
        pytest.param(
            (400, {}, '{"error":{"message":"\\u5185\\u5bb9\\u654f\\u611f"}}'),
            ModelRefused,
            1,
            id="escaped-refusal",
        ),
        pytest.param({"error": {"message": "x", "code": 429}}, "好呀", 2, id="busy-as-success"),
        pytest.param({"error": {"message": "x", "code": "503"}}, "好呀", 2, id="down-as-success"),
        pytest.param({"code": 500, "msg": "系统异常", "success": False}, "好呀", 2, id="no-error"),
        pytest.param({"error": "model not loaded"}, ModelUnavailable, 1, id="error-as-text"),
        pytest.param({"detail": "Not Found"}, ModelUnavailable, 1, id="detail"),
        pytest.param({"error": {"code": 401, "message": "k"}}, ModelUnavailable, 1, id="key"),
        pytest.param(
            (429, {}, '{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}'),
            ModelUnavailable,
            1,
            id="glm-balance",
        ),
        pytest.param(
            (429, {}, '{"error":{"type":"exceeded_current_quota_error","message":"x"}}'),
            ModelUnavailable,
            1,
            id="kimi-quota",
        ),
        pytest.param(HTML, ModelUnavailable, 1, id="html"),
        pytest.param((502, {}, "<html>Bad Gateway</html>"), "好呀", 2, id="html-gateway"),
        pytest.param((200, {}, '{"choices": [{"mess'), ModelUnavailable, 1, id="cut-json"),
        pytest.param((200, {}, "[" * 100_000), ModelUnavailable, 1, id="deep-json"),
        pytest.param(completion("好" * 500_000), BadAnswer, 1, id="huge"),
        pytest.param((200, {}, "好" * 2_000_000), ModelUnavailable, 1, id="huge-and-no-json"),
        pytest.param(
            events(*[delta(content="好")] * 5000, delta("stop")), "好" * 5000, 1, id="sse-long"
        ),
        pytest.param((200, {}, ""), ModelUnavailable, 1, id="nothing"),
        pytest.param(Disconnect(), "好呀", 2, id="disconnect"),
        pytest.param((529, {}, "overloaded"), "好呀", 2, id="odd-status"),
        pytest.param((200, {"Content-Length": "9999"}, "{}"), ModelUnavailable, 3, id="short-body"),
        pytest.param(events(delta(content="好"), delta("stop")), "好", 1, id="sse-unasked"),
        pytest.param(
            events(delta(content="好"), delta("stop", content="呀"), end=""), "好呀", 1, id="open"
        ),
        pytest.param(events(delta(content="好")), "好", 1, id="sse-no-finish"),
        pytest.param(events(delta(content="说到一"), end=""), "好呀", 2, id="sse-cut"),
        pytest.param(
            events(delta(content="说到"), {"error": {"code": 503, "message": "x"}}),
            "好呀",
            2,
            id="sse-error",
        ),
        pytest.param((200, {}, "data: {no\n\ndata: [DONE]\n"), ModelUnavailable, 1, id="sse-bad"),
        pytest.param(events(completion("好")), "好", 1, id="sse-whole-message"),
        pytest.param(events(delta("content_filter", content="半")), ModelRefused, 1, id="sse-bar"),
    ],
)  # fmt: skip
async def test_each_form(
    client: ModelClient,
    server: ModelServer,
    reply: Reply,
    text: str | type[ModelError],
    requests: int,
) -> None:
    truncated = isinstance(reply, tuple) and "Content-Length" in reply[1]
    server.script([reply] * (3 if truncated else 1) + ["好呀"])
    started = time.monotonic()
    if isinstance(text, str):
        answer = await client.complete(ASK)
        assert (answer.text, answer.usage.prompt > 0) == (text, True)
        assert answer.whole is (text != "说到一半")
    else:
        with pytest.raises(text) as caught:
            await client.complete(ASK)
        assert type(caught.value) is text
        assert "\n" not in str(caught.value)
    assert len(server.requests) == requests
    assert time.monotonic() - started < 5


CALL = {"name": NAME, "arguments": '{"action": "get_tasks"}'}


def with_calls(*calls: object, content: object = None) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    return completion(None, message=message, finish_reason="tool_calls")


def parts(*pieces: object) -> Reply:
    return events(*(delta(tool_calls=[piece]) for piece in pieces), delta("tool_calls"))


@pytest.mark.parametrize(
    ("reply", "arguments"),
    [
        pytest.param(calling({"action": "get_tasks"}), ['{"action": "get_tasks"}'], id="plain"),
        pytest.param(with_calls({"function": CALL}), [CALL["arguments"]], id="no-id"),
        pytest.param(
            with_calls({"id": "", "function": CALL}, {"id": "", "function": CALL}),
            [CALL["arguments"]] * 2,
            id="empty-ids",
        ),
        pytest.param(
            with_calls({"id": "a", "function": CALL}, {"id": "a", "function": CALL}),
            [CALL["arguments"]] * 2,
            id="one-id-twice",
        ),
        pytest.param(
            with_calls({"id": "a", "function": {"name": NAME, "arguments": {"action": "x"}}}),
            ['{"action": "x"}'],
            id="arguments-as-object",
        ),
        pytest.param(with_calls({"id": "a", "function": {"name": NAME}}), ["{}"], id="none"),
        pytest.param(
            with_calls({"id": "a", "function": {"name": NAME, "arguments": "{'action': 'x'}"}}),
            ["{'action': 'x'}"],
            id="single-quotes",
        ),
        pytest.param(with_calls("no call", {"function": CALL}), [CALL["arguments"]], id="junk"),
        pytest.param(
            completion(f"先看看。\n<tool_call>\n{json.dumps(CALL)}\n</tool_call>"),
            [CALL["arguments"]],
            id="written",
        ),
        pytest.param(
            completion('<tool_call>{"name": "x", "arguments": {"action": "y"}}'),
            ['{"action": "y"}'],
            id="written-and-unclosed",
        ),
        pytest.param(
            parts(
                {"index": 0, "id": "a", "function": {"name": NAME, "arguments": ""}},
                {"index": 0, "function": {"arguments": '{"action":'}},
                {"index": 1, "id": "b", "function": {"name": NAME, "arguments": "{}"}},
                {"index": 0, "function": {"arguments": ' "x"}'}},
            ),
            ['{"action": "x"}', "{}"],
            id="in-pieces",
        ),
        pytest.param(
            parts(
                {"id": "a", "function": {"name": NAME, "arguments": '{"a"'}},
                {"function": {"arguments": ": 1}"}},
                {"id": "b", "function": {"name": NAME, "arguments": "{}"}},
            ),
            ['{"a": 1}', "{}"],
            id="in-pieces-without-index",
        ),
    ],
)
async def test_calls_in_each_form(
    client: ModelClient, server: ModelServer, reply: Reply, arguments: list[str]
) -> None:
    server.script([reply, "好呀"])
    turn = await client.converse(ASK, TOOLS)
    assert [call.arguments for call in turn.calls] == arguments
    ids = [call.id for call in turn.calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    back = turn.message["tool_calls"]
    assert [call["id"] for call in back] == ids
    assert {call["type"] for call in back} == {"function"}
    assert all("index" not in call for call in back)
    # Servers read back what the model called with, and fail where it is no JSON.
    assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in back)
    assert "<tool_call>" not in turn.text
    results = [{"role": "tool", "tool_call_id": call_id, "content": "{}"} for call_id in ids]
    assert (await client.converse([*ASK, turn.message, *results], TOOLS)).text == "好呀"
    assert len(server.requests) == 2


async def test_what_is_quoted_or_null_stays_out(client: ModelClient, server: ModelServer) -> None:
    quoted = f"他写了 <tool_call>{json.dumps(CALL)}</tool_call> 这样一句"
    null = with_calls({"id": "a", "function": CALL})
    null["choices"][0]["message"] |= {"reasoning_content": None, "refusal": None}
    server.script([quoted, null])
    turn = await client.converse(ASK, TOOLS)
    assert (turn.text, turn.calls) == (quoted, ())
    assert (await client.converse(ASK, TOOLS)).message.keys() == {"role", "content", "tool_calls"}


async def test_a_stream_is_whole_with_its_thoughts_and_its_price(
    client: ModelClient, server: ModelServer
) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    server.script(
        [
            events(
                delta(role="assistant", content=None, reasoning_content="想"),
                delta(reasoning_content="好了"),
                delta(content="我来查。"),
                delta(tool_calls=[{"index": 0, "id": "a", "function": CALL}]),
                delta("tool_calls"),
                usage,
            )
        ]
    )
    turn = await client.converse(ASK, TOOLS)
    assert (turn.text, turn.usage.prompt, turn.usage.completion) == ("我来查。", 7, 3)
    assert turn.message["reasoning_content"] == "想好了"
    assert turn.whole


async def test_a_cancelled_call_leaves_nothing_behind(
    client: ModelClient, server: ModelServer
) -> None:
    server.script(lambda _: Delay(30, "太晚了"))
    calls = [asyncio.create_task(client.complete(ASK)) for _ in range(5)]
    await asyncio.sleep(0.3)
    for call in calls:
        call.cancel()
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in done)
    server.script(lambda _: "好呀")
    assert (await client.complete(ASK)).text == "好呀"
    assert client.trouble is None


WORDS = st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace").decode())


@given(
    st.lists(WORDS, min_size=1, max_size=8), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans()
)
def test_pieces_make_the_whole(pieces: list[str], end: str, comments: bool) -> None:
    lines = [f"data: {json.dumps(delta(content=piece), ensure_ascii=False)}" for piece in pieces]
    if comments:
        lines = [line for piece in lines for line in (": keep-alive", "event: message", piece)]
    body = (end * 2).join([*lines, "data: [DONE]", ""])
    assert is_stream(body)
    answer = answer_object(body)
    assert answer is not None
    assert answer["choices"][0]["message"]["content"] == "".join(pieces)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "message", "tool_calls", "function", "name", "arguments", "index",
             "id", "content", "error", "finish_reason", "usage", "reasoning_details"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(JSON, max_size=5))
def test_any_events_are_an_answer_or_none(chunks: list[Any]) -> None:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    answer = put_together(body + "data: [DONE]\n\n")
    assert answer is None or isinstance(answer.get("choices"), list) or answer["error"]
