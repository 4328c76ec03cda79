"""Pictures are fetched from where they are said to be, and from nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plugins.nonebot_plugin_nianlun.capture import downloading
from plugins.nonebot_plugin_nianlun.capture.downloading import NotFetched, download, is_allowed
from plugins.nonebot_plugin_nianlun.capture.other_side import peer_address
from plugins.nonebot_plugin_nianlun.capture.pictures import LARGEST
from tests.e2e.checks import until
from tests.support.picture_server import PictureServer, png

HERE = "127.0.0.1"


@pytest.fixture
def server() -> Iterator[PictureServer]:
    with PictureServer() as found:
        yield found


async def refusal(url: str, peer: str | None = HERE) -> NotFetched:
    with pytest.raises(NotFetched) as caught:
        await download(url, peer)
    return caught.value


async def test_a_picture_is_fetched(server: PictureServer) -> None:
    url = server.put("/a?x=1&rkey=%20b", png())
    assert await download(url, HERE) == png()


async def test_this_machine_is_asked_only_where_the_onebot_end_is_on_it(
    server: PictureServer,
) -> None:
    url = server.put("/a", png())
    assert not (await refusal(url, peer=None)).may_pass
    assert not (await refusal(url, peer="10.0.0.8")).may_pass
    assert not (await refusal(url.replace(HERE, "localhost"), peer=None)).may_pass
    assert server.asked == []


async def test_a_redirection_is_checked_again(server: PictureServer) -> None:
    server.put("/there", png(7))
    server.redirections |= {
        "/near": "/there",
        "/inside": "http://10.1.2.3/secret",
        "/file": "file:///etc/passwd",
        "/round": "/round",
    }
    assert await download(server.url("/near"), HERE) == png(7)
    assert "内网" in str(await refusal(server.url("/inside")))
    assert "http(s)" in str(await refusal(server.url("/file")))
    assert "转到" in str(await refusal(server.url("/round")))
    assert server.asked.count("/round") == 4


async def test_a_name_is_looked_up_once(
    server: PictureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers the look-up cannot give a public address first and another one then."""
    port = int(server.put("/a", png()).split(":")[2].split("/")[0])
    looked_up: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (HERE, port))]

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    assert await download(f"http://pictures.invalid:{port}/a", HERE) == png()
    assert looked_up == ["pictures.invalid"]
    assert "内网" in str(await refusal(f"http://pictures.invalid:{port}/a", peer=None))


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/a.png",
        "base64://aGk=",
        "http://",
        "http://qpic.cn@127.0.0.1/a",
        "http://127.0.0.1:99999/a",
        "http://[::1/a",
        "https:///a",
        "",
    ],
)
async def test_other_addresses_are_not_taken(url: str) -> None:
    assert not (await refusal(url)).may_pass


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.5.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.5",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "2002:7f00:1::",
        "nonsense",
    ],
)
def test_addresses_of_ones_own_networks(address: str) -> None:
    assert not is_allowed(address, "example.com", None)


def test_addresses_of_the_world() -> None:
    assert is_allowed("8.8.8.8", "example.com", None)
    assert is_allowed("2001:4860:4860::8888", "example.com", None)
    assert is_allowed("::ffff:8.8.8.8", "example.com", None)
    assert is_allowed("192.168.1.7", "example.com", "192.168.1.7")
    assert not is_allowed("192.168.1.8", "example.com", "192.168.1.7")


def test_a_proxy_that_makes_addresses_up_is_believed_for_the_hosts_of_qq_alone() -> None:
    assert is_allowed("198.18.0.5", "multimedia.nt.qq.com.cn", None)
    assert not is_allowed("198.18.0.5", "notqq.com.cn", None)
    assert not is_allowed("127.0.0.1", "multimedia.nt.qq.com.cn", None)


async def test_what_is_too_large_is_not_read(server: PictureServer) -> None:
    server.put("/large", png() + bytes(LARGEST))
    assert "太大" in str(await refusal(server.url("/large")))
    server.put("/lying", png())
    server.promised["/lying"] = LARGEST + 1
    assert "太大" in str(await refusal(server.url("/lying")))


async def test_what_breaks_off_is_no_picture(server: PictureServer) -> None:
    server.put("/half", png())
    server.promised["/half"] = len(png()) + 10
    assert (await refusal(server.url("/half"))).may_pass


async def test_statuses(server: PictureServer) -> None:
    server.statuses |= {"/gone": 410, "/busy": 503, "/limited": 429}
    assert not (await refusal(server.url("/gone"))).may_pass
    assert (await refusal(server.url("/busy"))).may_pass
    assert (await refusal(server.url("/limited"))).may_pass


async def test_a_slow_server_is_given_up_and_the_thread_with_it(
    server: PictureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloading, "SECONDS", 0.3)
    server.put("/held", png())
    began = time.monotonic()
    assert (await refusal(server.url("/held"))).may_pass
    assert time.monotonic() - began < 3


async def test_a_download_can_be_ended(server: PictureServer) -> None:
    server.put("/held", png())
    task = asyncio.create_task(download(server.url("/held"), HERE))
    await until(lambda: server.asked)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nobody_there() -> None:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port = probe.getsockname()[1]
    assert (await refusal(f"http://127.0.0.1:{port}/a")).may_pass


def test_ciphers_are_those_of_openssl_and_certificates_are_verified() -> None:
    context = downloading._tls()
    assert "AES128-GCM-SHA256" in {cipher["name"] for cipher in context.get_ciphers()}
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"


@pytest.mark.parametrize(
    ("inner", "address"),
    [
        (SimpleNamespace(client=("127.0.0.1", 5000)), "127.0.0.1"),
        (SimpleNamespace(client=("::ffff:172.17.0.2", 5000)), "172.17.0.2"),
        (SimpleNamespace(remote_address=("fe80::1%eth0", 3001, 0, 2)), "fe80::1"),
        (SimpleNamespace(client=None), None),
        (SimpleNamespace(client=("unix", 0)), None),
        (None, None),
    ],
)
def test_where_the_onebot_end_is(inner: object, address: str | None) -> None:
    link = SimpleNamespace(websocket=inner)
    adapter = SimpleNamespace(connections={"10001": link})
    assert peer_address(cast("Any", SimpleNamespace(adapter=adapter, self_id="10001"))) == address
    other = SimpleNamespace(adapter=SimpleNamespace(), self_id="10001")
    assert peer_address(cast("Any", other)) is None


@pytest.mark.parametrize(
    "address",
    ["64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "::ffff:0:7f00:1", "::7f00:1", "fec0::1"],
)
def test_addresses_that_stand_for_inner_ones(address: str) -> None:
    assert not is_allowed(address, "example.com", None)


async def test_a_place_that_is_no_address_is_not_fetched() -> None:
    with PictureServer() as server:
        server.redirections["/bad"] = "http://["
        for url in (server.url("/bad"), "http://a\x00b/"):
            with pytest.raises(NotFetched):
                await download(url, "127.0.0.1")


async def test_the_onebot_end_opens_no_other_inner_place() -> None:
    with PictureServer() as elsewhere, PictureServer() as here:
        elsewhere.redirections["/away"] = here.url("/picture").replace("127.0.0.1", "127.0.0.2")
        with pytest.raises(NotFetched):
            await download(elsewhere.url("/away"), "127.0.0.1")


OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def endless(head: bytes, again: bytes, pause: float = 0.0) -> Iterator[int]:
    """A host that answers with `head` and then goes on and on; its port."""
    over = threading.Event()

    def answer(taken: socket.socket) -> None:
        with taken, suppress(OSError):
            taken.recv(65_536)
            taken.sendall(head)
            while not over.wait(pause) and again:
                taken.sendall(again)

    def listen(host: socket.socket) -> None:
        with suppress(OSError):
            answer(host.accept()[0])

    with socket.socket() as host:
        host.bind((HERE, 0))
        host.listen()
        host.settimeout(5)
        thread = threading.Thread(target=listen, args=(host,))
        thread.start()
        try:
            yield host.getsockname()[1]
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize(
    ("scheme", "head", "again", "pause"),
    [
        pytest.param("http", OK, b"X: y\r\n", 0, id="headers"),
        pytest.param("http", OK, b"x", 0.05, id="slow-headers"),
        pytest.param("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0, id="not-yet"),
        pytest.param("http", OK + b"\r\n", b"x" * 65_536, 0, id="body"),
        pytest.param("http", OK + b"Content-Length: 9000\r\n\r\n", b"x", 0.05, id="slow-body"),
        pytest.param("http", OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 9000, 0,
                     id="chunks"),
        pytest.param("https", b"", b"\x16\x03\x01", 0.05, id="handshake"),
    ],
)  # fmt: skip
async def test_what_never_ends_is_given_up(
    scheme: str, head: bytes, again: bytes, pause: float
) -> None:
    threads = threading.active_count()
    with endless(head, again, pause) as port:
        began = time.monotonic()
        with pytest.raises(NotFetched):
            await download(f"{scheme}://{HERE}:{port}/a", HERE, largest=200_000, seconds=0.3)
        assert time.monotonic() - began < 2
    assert threading.active_count() <= threads + 1  # of the loop's own pool


async def test_an_outer_host_does_not_lead_to_the_onebot_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def get(target: Any, address: str, *_: Any) -> str:
        asked.append(address)
        return f"http://{HERE}:3000/send_group_msg?group_id=1"

    monkeypatch.setattr(downloading, "_get", get)
    assert "内网" in str(await refusal("http://8.8.8.8/a.png", HERE))
    assert asked == ["8.8.8.8"]
