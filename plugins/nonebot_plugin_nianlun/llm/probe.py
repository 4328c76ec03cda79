"""Whether a model's endpoint answers and takes the key, found out without spending a token."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from .failures import of_surroundings

_SECONDS = 10.0
_NO_LIST = frozenset({400, 403, 404, 405, 501})
"""Answers of endpoints that have no list of models, or show it to nobody."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What asking for the list of models told."""

    wrong: str = ""
    """What is wrong, in one line; empty for nothing."""
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
            page = await client.models.list()
        return Probe(models=frozenset(model.id for model in page.data or ()))
    except openai.AuthenticationError:
        return Probe("密钥不对，或者不是这个接口的")
    except openai.APIStatusError as error:
        if error.status_code in _NO_LIST:
            return Probe()
        return Probe(f"接口回答了 HTTP {error.status_code}")
    except (openai.APITimeoutError, TimeoutError):
        return Probe(f"接口 {_SECONDS:.0f} 秒没有回答")
    except openai.APIConnectionError as error:
        return Probe(f"连不上接口：{error.__cause__ or error}")
    except (openai.OpenAIError, RecursionError, AttributeError, TypeError, ValueError) as error:
        return Probe(f"接口的回答看不懂：{error!r}"[:200])
    finally:
        await client.close()
