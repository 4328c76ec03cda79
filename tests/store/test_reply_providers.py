"""A whole reply with tools behind servers that are particular in the way of each provider."""

from __future__ import annotations

from collections.abc import Callable
import json
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun.chat.tool_talk import ToolTalk
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from tests.store.test_reply_tools import ASKED, World, client, server, world
from tests.support.model_server import ModelServer, Reply, calling, completion, delta, events

__all__ = ["client", "server", "world"]

Body = dict[str, Any]
QUERY = {"query": "钥匙"}
SAID = "在花盆底下呀"
CALL = {"name": "search_memory", "arguments": json.dumps(QUERY)}


def refusal(message: str, status: int = 400) -> Reply:
    return status, {}, json.dumps({"error": {"message": message}}, ensure_ascii=False)


def found(body: Body) -> bool:
    """Whether the model was told what is in the memory."""
    return "花盆底下" in json.dumps(body["messages"], ensure_ascii=False)


def plain(body: Body) -> Reply:
    return SAID if found(body) else calling(QUERY, name="search_memory")


def deepseek(body: Body) -> Reply:
    """Thinks, and wants its thoughts back beside the calls that they led to."""
    turns = [turn for turn in body["messages"] if turn.get("tool_calls")]
    if any(turn.get("reasoning_content") != "想想在哪" for turn in turns):
        return refusal("The `reasoning_content` in the thinking mode must be passed back")
    reply = plain(body)
    if isinstance(reply, dict):
        reply["choices"][0]["message"] |= {"content": "", "reasoning_content": "想想在哪"}
    return reply


def qwen(body: Body) -> Reply:
    if body.get("enable_thinking", True) and not body.get("stream"):
        return refusal("parameter.enable_thinking must be set to false for non-streaming calls")
    return plain(body)


def qwen_that_only_streams(body: Body) -> Reply:
    if not body.get("stream"):
        return refusal("This model only support stream mode, please enable the stream parameter")
    if found(body):
        return events(delta(reasoning_content="嗯"), delta(content=SAID), delta("stop"))
    begun = {"index": 0, "id": "", "function": CALL | {"arguments": '{"query":'}}
    rest = {"index": 0, "id": "", "function": {"arguments": ' "钥匙"}'}}
    return events(delta(tool_calls=[begun]), delta(tool_calls=[rest]), delta("tool_calls"))


def glm(body: Body) -> Reply:
    """Gives arguments twice wrapped."""
    wrapped = json.dumps(json.dumps(QUERY))
    return SAID if found(body) else calling(wrapped, name="search_memory")


def kimi(body: Body) -> Reply:
    if body.get("temperature", 1) != 1:
        return refusal("invalid temperature: only 1 is allowed for this model")
    return plain(body)


def ollama(body: Body) -> Reply:
    """Gives arguments as an object and no ids, and thoughts of its own beside the words."""
    if found(body):
        return completion(f"<think>在花盆</think>{SAID}")
    call = {"function": {"name": "search_memory", "arguments": QUERY}}
    reply = completion("", finish_reason="tool_calls")
    reply["choices"][0]["message"] |= {"tool_calls": [call], "thinking": "想想"}
    return reply


def ollama_without_tools(body: Body) -> Reply:
    if "tools" in body:
        return refusal("registry.ollama.ai/library/gemma3:4b does not support tools")
    return SAID


def vllm(body: Body) -> Reply:
    """Started without a parser for calls, and with a template that knows no system role."""
    if "tool_choice" in body:
        return refusal('"auto" tool choice requires --enable-auto-tool-choice')
    if any(turn["role"] == "system" for turn in body["messages"]):
        return refusal("System role not supported")
    written = f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>"
    return SAID if found(body) else completion(written)


@pytest.mark.parametrize(
    ("provider", "looks_up"),
    [
        (plain, True),
        (deepseek, True),
        (qwen, True),
        (qwen_that_only_streams, True),
        (glm, True),
        (kimi, True),
        (ollama, True),
        (ollama_without_tools, False),
        (vllm, True),
    ],
)
async def test_a_reply_is_right_and_what_helped_is_remembered(
    world: World, server: ModelServer, provider: Callable[[Body], Reply], looks_up: bool
) -> None:
    await world.say("我把钥匙藏在花盆底下", days=3)
    extra = {"temperature": 0.5} if provider is kimi else {}
    talker = ModelClient(
        api_key="k", base_url=server.base_url, model="m", timeout=10, extra_body=extra
    )
    server.script(provider)
    try:
        sent = []
        for _ in range(2):
            before = len(server.requests)
            talk = ToolTalk(talker, world.desk())
            assert (await talk.answer(ASKED)).text == SAID
            assert talk.spent.prompt > 0
            sent.append(len(server.requests) - before)
    finally:
        await talker.close()
    assert sent[0] <= 4
    assert sent[1] == (2 if looks_up else 1)
    assert found(server.requests[-1]) == looks_up
