"""What doctor finds, and what it says to do."""

from __future__ import annotations

import argparse
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import os
from pathlib import Path
import shutil
import sqlite3
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plugins.nonebot_plugin_nianlun import doctor, doctor_report, nianlun
from plugins.nonebot_plugin_nianlun.doctor import Check
from plugins.nonebot_plugin_nianlun.errors import ModelUnavailable
from plugins.nonebot_plugin_nianlun.file_sizes import file_size
from plugins.nonebot_plugin_nianlun.llm.captions import Captioner, trouble_name
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.probe import Probe, probe
from plugins.nonebot_plugin_nianlun.processes import this_process
from plugins.nonebot_plugin_nianlun.store import connections, database, diagnosis, gaps
from plugins.nonebot_plugin_nianlun.store.connections import Connection
from plugins.nonebot_plugin_nianlun.store.endpoints import Endpoints
from plugins.nonebot_plugin_nianlun.store.models import Property
from plugins.nonebot_plugin_nianlun.store.search_schema import STATE
from tests.support.bot_process import free_port
from tests.support.model_server import ModelServer


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


GONE = f"2147483647/{this_process().partition('/')[2]}"
"""No system gives out so high a number."""


@pytest.mark.parametrize(
    ("process", "ago", "state", "told"),
    [
        (this_process(), 0, "ok", "10001 连着"),
        (this_process(), 3600, "look", "10001 最近一次在线"),
        (GONE, 0, "look", "10001 最近一次在线"),
        (f"{os.getpid()}/another-machine", 0, "ok", "时连着"),
    ],
    ids=["connected", "silent", "killed", "elsewhere"],
)
async def test_who_is_connected_is_told(
    product: Any, process: str, ago: float, state: str, told: str
) -> None:
    now = product.clock.now()
    await gaps.set_alive({"10001": now, "10002": now})
    assert (await checks(product))["peers"].state == "look"
    await connections.tell(process, {"10001": now - timedelta(seconds=ago)})
    found = (await checks(product))["peers"]
    assert (found.state, bool(found.todo)) == (state, state == "look")
    assert told in found.told
    assert "10002 最近一次在线" in found.told


async def test_a_process_speaks_for_itself_alone(product: Any) -> None:
    now = product.clock.now()
    await connections.tell("1/a_b", {"10001": now, "10002": now})
    await connections.tell("1/axb", {"10002": now, "10003": now})
    await connections.tell("1/a_b", {})
    found = await diagnosis.examine(product.path)
    assert found.connections == {
        "10002": Connection("1/axb", now),
        "10003": Connection("1/axb", now),
    }


async def test_what_is_wrong_with_looking_at_pictures_is_told_apart(
    product: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "vision" not in await checks(product)
    eyes = Captioner("http://127.0.0.1:9/v1", "", "see", own=True, memory=Endpoints())
    monkeypatch.setattr(doctor, "new_captioner", lambda config: eyes)
    assert (await checks(product))["vision"].state == "ok"
    await Endpoints().set_trouble(trouble_name(eyes.endpoint), "连不上", product.clock.now())
    found = await checks(product)
    told = found["vision"]
    assert (told.state, "连不上" in told.told) == ("wrong", True)
    assert "VISION" in told.todo
    assert found["model"].state == "ok"
    assert doctor_report.report(nianlun, [*found.values()], [], as_json=False) == 1
    assert f"⚠ 看图：{told.told}\n  → {told.todo}\n" in capsys.readouterr().out


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
    told = (await checks(product))["disk"]
    assert (told.state, told.told, bool(told.todo)) == ("wrong", "还剩 1 MB", True)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 字节"),
        (1023, "1023 字节"),
        (1024, "1 kB"),
        (39_117, "38.2 kB"),
        (102_400, "100 kB"),
        ((1 << 20) - 1, "1 MB"),
        (64 << 20, "64 MB"),
        (76_571_000_000, "71.3 GB"),
        (1 << 60, "1.04858e+06 TB"),
    ],
)
def test_a_size_is_told_in_the_unit_that_reads_well(size: int, shown: str) -> None:
    assert file_size(size) == shown


async def test_a_database_that_gives_out_midway_is_one_of_the_checks(
    product: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def examine(*_: object, **__: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(doctor_report, "examine", examine)
    asked = argparse.Namespace(ask_model=False, json=False)
    assert await doctor_report.doctor(nianlun, asked) == 1
    shown = capsys.readouterr().out
    assert "⚠ 数据库" in shown
    assert "malformed" in shown
    assert "restore" in shown
    assert "没有记录过" not in shown


class Endpoint:
    """Answers every request for the list with one status and body; it may want a key for that.
    A completion would be refused."""

    def __init__(self, status: int, body: str, key: str = "") -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = not key or self.headers.get("Authorization") == f"Bearer {key}"
                self.send_response(status if known else 401)
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


LIST = '{"object":"list","data":[{"id":"a","object":"model"},{"id":"models/b"}]}'
NO_KEY = '{"error":{"message":"Incorrect API key provided: sk-test"}}'


@pytest.mark.parametrize(
    ("status", "body", "wrong", "unsure"),
    [
        (200, LIST, "", "不带密钥也列得出"),
        (200, '{"code":401,"msg":"no such key"}', "密钥不对或没有权限（HTTP 401：", ""),
        (200, "{}", "看不懂", ""),
        (200, '{"data":[{"name":"a"}]}', "看不懂", ""),
        (404, "{}", "", "（HTTP 404），密钥"),
        (404, NO_KEY, "", "（HTTP 404：Incorrect API key provided: ***），密钥"),
        (401, "{}", "密钥不对或没有权限（HTTP 401）", ""),
        (403, NO_KEY, "密钥不对或没有权限（HTTP 403：Incorrect API key provided: ***）", ""),
        (500, "", "接口回答了 HTTP 500", ""),
    ],
)
async def test_what_an_endpoint_answers(status: int, body: str, wrong: str, unsure: str) -> None:
    with Endpoint(status, body) as url:
        answer = await probe(url, "sk-test")
    assert (wrong in answer.wrong, unsure in answer.unsure) == (True, True)
    assert (bool(answer.wrong), bool(answer.unsure)) == (bool(wrong), bool(unsure))
    assert answer.models == (frozenset("ab") if body == LIST else None)


async def test_a_list_that_is_shown_for_the_key_alone() -> None:
    with Endpoint(200, LIST, "sk-test") as url:
        assert await probe(url, "sk-test") == Probe(models=frozenset("ab"))
        assert "密钥不对" in (await probe(url, "sk-other")).wrong


@pytest.mark.parametrize(
    ("answer", "state", "told", "todo"),
    [
        (Probe("密钥不对"), "wrong", "：密钥不对", "OPENAI_API_KEY"),
        (Probe(models=frozenset({"m", "n"})), "ok", "连得上", ""),
        (Probe(models=frozenset({"m"})), "look", "没有 n", "NIANLUN__NOTES_MODEL"),
        (Probe(models=frozenset()), "look", "没有 m、n", "NIANLUN__MODEL"),
        (Probe(unsure="看不出来"), "look", "看不出来", "--ask-model"),
        (Probe(unsure="看不出来", models=frozenset({"m", "n"})), "look", "看", "--ask-model"),
    ],
)
async def test_what_is_said_of_the_model(
    product: Any,
    monkeypatch: pytest.MonkeyPatch,
    answer: Probe,
    state: str,
    told: str,
    todo: str,
) -> None:
    async def answered(base_url: str | None, api_key: str) -> Probe:
        return answer

    client = ModelClient(api_key="k", base_url="http://127.0.0.1:9/v1", model="m")
    monkeypatch.setattr(doctor, "new_client", lambda *_: client)
    monkeypatch.setattr(doctor, "probe", answered)
    product.settings = product.settings.model_copy(update={"model": "m"})
    product.notes_model = "n"
    found = (await checks(product))["model"]
    assert (found.state, bool(found.todo)) == (state, bool(todo))
    assert told in found.told
    assert todo in found.todo


async def test_a_model_that_is_asked_and_refuses(
    product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as server:
        server.script(lambda _: (401, {}, NO_KEY))
        client = ModelClient(api_key="sk-test", base_url=server.base_url, model="m")
        monkeypatch.setattr(doctor, "new_client", lambda *_: client)
        for found in (
            await doctor.without_database(product, ask_model=True),
            (await doctor.examine(product, ask_model=True))[0],
        ):
            (told,) = [check for check in found if check.name == "model"]
            assert (told.state, told.todo) == ("wrong", "检查 OPENAI_API_KEY")
            assert "不接受密钥（401）" in told.told
        assert len(server.requests) == 2


async def test_without_a_database_none_is_made(tmp_path: Path) -> None:
    path = tmp_path / "data" / "nianlun.db"
    found = await doctor.without_database(_on(path), ask_model=False)
    assert (found[0].name, found[0].state) == ("database", "look")
    assert str(path) in found[0].told
    assert not path.parent.exists()
    path.parent.joinpath("backups").mkdir(parents=True)
    path.parent.joinpath("backups", "a.db").touch()
    found = await doctor.without_database(_on(path), ask_model=False)
    assert (found[0].state, "restore" in found[0].todo) == ("wrong", True)
    assert not path.exists()


@pytest.mark.parametrize(
    ("reason", "todo", "not_said"),
    [
        ("database is locked", "文件没有坏，不要移开它", "备份"),
        ("database disk image is malformed", "自动备份在旁边", "权限"),
        ("file is not a database", "移开这个文件", "restore"),
        ("unable to open database file", "权限", "移开"),
    ],
)
def test_what_to_do_is_said_once_and_fits(reason: str, todo: str, not_said: str) -> None:
    path = Path("/somewhere/nianlun.db")
    found = doctor.unopened(_on(path), database.explain(sqlite3.DatabaseError(reason), path))[0]
    assert str(path) in found.told
    assert "请" not in found.told
    assert todo in found.todo
    assert not_said not in found.todo


async def test_an_answer_that_is_nested_too_deep() -> None:
    with Endpoint(200, "[" * 100_000) as url:
        assert "看不懂" in (await probe(url, "sk-test")).wrong


async def test_a_key_that_can_be_none() -> None:
    assert "密钥" in (await probe("http://127.0.0.1:9/v1", "密钥")).wrong


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
