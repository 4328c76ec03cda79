"""Whether a model's endpoint answers and takes the key, found out without spending a token.

Only the list of models is asked for, never a completion. Where that is shown to anybody, or to
nobody, it tells nothing of the key, and what cannot be told is not called well.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..memory.units import shortened
from .failures import in_success, of_surroundings

if TYPE_CHECKING:
    import openai

_SECONDS = 10.0
_NO_LIST = frozenset({400, 404, 405, 501})
"""Answers of endpoints that have no list of models."""
_ODD = (AttributeError, LookupError, TypeError, ValueError)
"""What reading a list raises that is none."""
_MOST_TOLD = 200
"""Characters of what an endpoint says that are shown."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What asking for the list of models told."""

    wrong: str = ""
    """What is wrong, in one line; empty for nothing."""
    unsure: str = ""
    """Why nothing is known of the key; empty where it is known to be taken."""
    models: frozenset[str] | None = None
    """None where the endpoint gives no list."""


async def probe(base_url: str | None, api_key: str) -> Probe:
    """Ask an endpoint for its models. Never raises for what the endpoint does."""
    import openai

    if not api_key.isascii():
        return Probe("密钥里有密钥不会有的字符")
    try:
        client = openai.AsyncOpenAI(
            base_url=base_url or None,
            api_key=api_key,
            timeout=_SECONDS,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(),
        )
    except Exception as error:
        return Probe(of_surroundings(error))
    try:
        # The client's own limit begins anew with every byte that comes.
        async with asyncio.timeout(_SECONDS):
            return await _ask(client, api_key)
    except (openai.APITimeoutError, TimeoutError):
        return Probe(f"接口 {_SECONDS:.0f} 秒没有回答")
    except openai.APIConnectionError as error:
        return Probe(f"连不上接口：{error.__cause__ or error}")
    except (openai.OpenAIError, RecursionError, *_ODD) as error:
        return Probe(shortened(f"接口的回答看不懂：{error!r}", _MOST_TOLD))
    finally:
        await client.close()


async def _ask(client: openai.AsyncOpenAI, api_key: str) -> Probe:
    import openai

    try:
        answer = await client.get("/models", cast_to=object)
    except openai.APIStatusError as error:
        body = error.body if isinstance(error.body, dict) else {}
        return _refused(error.status_code, str(body.get("message") or ""), api_key)
    if not isinstance(answer, dict):
        return Probe("接口的回答看不懂：不是模型的列表")
    if failure := in_success(answer):
        return _refused(failure.status, failure.reason, api_key)
    # Google's list has `models/` before the names that requests give.
    models = frozenset(model["id"].removeprefix("models/") for model in answer["data"] or ())
    if await _is_open(client):
        return Probe(unsure="不带密钥也列得出模型，密钥对不对这里看不出来", models=models)
    return Probe(models=models)


async def _is_open(client: openai.AsyncOpenAI) -> bool:
    """Whether anybody may see the list."""
    import openai

    try:
        answer = await client.get(
            "/models", cast_to=object, options={"headers": {"Authorization": openai.Omit()}}
        )
    except openai.APIStatusError:
        return False
    return isinstance(answer, dict) and in_success(answer) is None


def _refused(status: int, said: str, api_key: str) -> Probe:
    told = shortened(" ".join(said.replace(api_key, "***").split()), _MOST_TOLD)
    answered = f"HTTP {status}：{told}" if told else f"HTTP {status}"
    if status == 401:
        return Probe(f"密钥不对或没有权限（{answered}）")
    if status == 403:
        only = "只是不许列出模型的话，--ask-model 能看出来"
        return Probe(f"密钥不对或没有权限（{answered}）；{only}")
    if status in _NO_LIST:
        return Probe(unsure=f"接口不给模型的列表（{answered}），密钥和模型对不对这里看不出来")
    return Probe(f"接口回答了 {answered}")
