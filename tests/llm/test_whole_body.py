"""Answers without an end, and such as unpack into more than there is room for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
import tracemalloc
import zlib

import pytest

from plugins.nonebot_plugin_nianlun.errors import BadAnswer, ModelUnavailable
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.embeddings import EndpointEmbedder

_MANY = 1 << 27
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Send = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(_HEAD + b"\r\n" + b'{"choices": "')
    for _ in range(_MANY // 65_536):
        writer.write(b"x" * 65_536)
        await writer.drain()


async def bomb(writer: asyncio.StreamWriter) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    writer.write(_HEAD + b"Content-Encoding: gzip\r\n\r\n")
    for _ in range(_MANY // 1_000_000):
        writer.write(packer.compress(b"x" * 1_000_000))
        await writer.drain()


async def torn(writer: asyncio.StreamWriter) -> None:
    writer.write(_HEAD + b"Content-Length: 1000\r\n\r\n" + b'{"choices": [')
    await writer.drain()


@asynccontextmanager
async def answering(send: Send) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            await send(writer)
        except (ConnectionError, TimeoutError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def complete(url: str) -> object:
    client = ModelClient(api_key="k", base_url=url, model="m", max_tries=1)
    try:
        return await client.complete([{"role": "user", "content": "在吗"}])
    finally:
        await client.close()


async def embed(url: str) -> object:
    embedder = EndpointEmbedder(url, "k", "m", own=True)
    try:
        return await embedder.embed(["在吗"], query=True)
    finally:
        await embedder.close()


@pytest.mark.parametrize("ask", [complete, embed])
@pytest.mark.parametrize("send", [endless, bomb])
async def test_no_answer_takes_more_room_than_it_may(
    ask: Callable[[str], Awaitable[object]], send: Send
) -> None:
    async with answering(send) as url:
        tracemalloc.start()
        try:
            with pytest.raises(BadAnswer, match="没有读完"):
                await ask(url)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 120_000_000


@pytest.mark.parametrize("ask", [complete, embed])
async def test_an_answer_that_breaks_off_is_none(ask: Callable[[str], Awaitable[object]]) -> None:
    async with answering(torn) as url:
        with pytest.raises(ModelUnavailable):
            await ask(url)
