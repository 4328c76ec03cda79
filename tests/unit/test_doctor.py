"""What doctor finds, and what it says to do."""

from __future__ import annotations

from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
import shutil
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plugins.nonebot_plugin_nianlun import doctor, nianlun
from plugins.nonebot_plugin_nianlun.doctor import Check
from plugins.nonebot_plugin_nianlun.errors import ModelUnavailable
from plugins.nonebot_plugin_nianlun.llm.captions import Captioner, trouble_name
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.probe import Probe, probe
from plugins.nonebot_plugin_nianlun.store import diagnosis, gaps
from plugins.nonebot_plugin_nianlun.store.endpoints import Endpoints
from plugins.nonebot_plugin_nianlun.store.models import Property
from plugins.nonebot_plugin_nianlun.store.search_schema import STATE
from tests.support.bot_process import free_port


@pytest.fixture
async def product(database_file: Path) -> Any:
    """The product, on a database of its own."""
    return _on(database_file)


def _on(path: Path, **values: Any) -> Any:
    real = {
        key: getattr(nianlun, key)
        for key in ("clock", "calendar", "settings", "client", "notes_model", "status")
    }
    return SimpleNamespace(**(real | {"path": path} | values))


async def checks(product: Any) -> dict[str, Check]:
    found, _ = await doctor.examine(cast("Any", product), ask_model=False)
    return {check.name: check for check in found}


async def test_a_fresh_database_is_well(product: Any) -> None:
    await Property.create(key=STATE, value="[0]")
    found = await checks(product)
    assert {check.state for name, check in found.items() if name not in ("peers", "index")} == {
        "ok"
    }
    assert found["peers"].state == "look"
    assert found["index"].state == "look"
    assert "reindex" in found["index"].todo


async def test_who_is_connected_is_told(product: Any) -> None:
    now = product.clock.now()
    await gaps.set_alive({"10001": now, "10002": now - timedelta(days=2)})
    told = (await checks(product))["peers"]
    assert told.state == "ok"
    assert "10001 连着" in told.told
    assert "10002 最近一次在线" in told.told
    await gaps.set_alive({"10001": now - timedelta(hours=1)})
    assert (await checks(product))["peers"].state == "look"


async def test_what_is_wrong_with_looking_at_pictures_is_told_apart(
    product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "vision" not in await checks(product)
    eyes = Captioner("http://127.0.0.1:9/v1", "", "see", own=True, memory=Endpoints())
    monkeypatch.setattr(doctor, "new_captioner", lambda config: eyes)
    assert (await checks(product))["vision"].state == "ok"
    await Endpoints().set_trouble(trouble_name(eyes.endpoint), "连不上", product.clock.now())
    told = (await checks(product))["vision"]
    assert (told.state, "连不上" in told.told) == ("wrong", True)
    assert "VISION" in told.todo
    assert (await checks(product))["model"].state == "ok"


async def test_a_damaged_file_is_told(product: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await diagnosis.examine(product.path)
    broken = found._replace(damage="row 3 missing from index", index_sound=False)

    async def examine(path: Path) -> diagnosis.Diagnosis:
        return broken

    monkeypatch.setattr(diagnosis, "examine", examine)
    told = await checks(product)
    assert (told["database"].state, told["index"].state) == ("wrong", "wrong")
    assert "restore" in told["database"].todo


async def test_a_full_disk_is_told(product: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(product.path.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    assert (await checks(product))["disk"].state == "wrong"


class Endpoint:
    """Answers every request with one status and body."""

    def __init__(self, status: int, body: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "answer"),
    [
        (200, '{"object":"list","data":[{"id":"a","object":"model"}]}', Probe("", frozenset("a"))),
        (404, "{}", Probe()),
        (401, "{}", Probe("密钥不对，或者不是这个接口的")),
        (500, "", Probe("接口回答了 HTTP 500")),
    ],
)
async def test_what_an_endpoint_answers(status: int, body: str, answer: Probe) -> None:
    with Endpoint(status, body) as url:
        assert await probe(url, "sk-test") == answer


async def test_an_answer_that_is_nested_too_deep() -> None:
    with Endpoint(200, "[" * 100_000) as url:
        assert "看不懂" in (await probe(url, "sk-test")).wrong


async def test_an_endpoint_that_is_not_there() -> None:
    assert "连不上" in (await probe(f"http://127.0.0.1:{free_port()}/v1", "sk-test")).wrong


@pytest.mark.parametrize(
    ("variable", "value", "about"),
    [
        ("ALL_PROXY", "foo://127.0.0.1:1", "ALL_PROXY"),
        ("HTTP_PROXY", "http://[::1", "HTTP_PROXY"),
        ("SSL_CERT_FILE", "/none/such", "SSL_CERT_FILE"),
    ],
)
async def test_surroundings_in_which_nothing_can_be_asked(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, about: str
) -> None:
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv(variable, value)
    assert about in (await probe("http://127.0.0.1:9/v1", "sk-test")).wrong
    client = ModelClient(api_key="k", base_url="http://127.0.0.1:9/v1", model="m")
    with pytest.raises(ModelUnavailable, match=about):
        await client.complete([{"role": "user", "content": "在吗"}])
