"""Getting a picture from the address that came with it, without being led anywhere else.

The address comes from the OneBot end, yet nobody promises that no member can ever put one in. So
only http and https are spoken, never to an address of this machine or its networks, except the
one from which the OneBot end itself connects, for some serve their pictures themselves. A name is
looked up once and the connection goes to what was looked up; after a redirection all of it is
checked again, and nobody but the OneBot end leads to the OneBot end.
"""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
import socket
import ssl
from string import punctuation
import time
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from .pictures import LARGEST

SECONDS = 20.0
_CHUNK = 65_536
_REDIRECTIONS = (301, 302, 303, 307, 308)
_MOST_REDIRECTIONS = 3
_QQ = (".qpic.cn", ".qq.com.cn", ".qq.com")
# Where a proxy answers for all names with addresses of its own, these are from here (RFC 2544).
_MADE_UP = ip_network("198.18.0.0/15")
_TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("::ffff:0:0:0/96"))
"""Stand for the IPv4 address at their end (RFC 6052, RFC 7915)."""
_NOT_USED = ip_network("::/96")
"""IPv4 addresses as they were once embedded (RFC 4291), the machine itself among them."""


class NotFetched(Exception):
    """There is no picture to be had. Its text is one line for the log, without the address."""

    def __init__(self, reason: str, *, may_pass: bool = False) -> None:
        super().__init__(reason)
        self.may_pass = may_pass
        """Another try later makes sense."""


class _Target(NamedTuple):
    tls: bool
    host: str
    port: int
    path: str


async def download(
    url: str, peer: str | None, *, largest: int = LARGEST, seconds: float = SECONDS
) -> bytes:
    """The bytes behind an address. `peer` is the address that the OneBot end connects from.

    Raises NotFetched; it takes no longer than so many `seconds` and no more than `largest` bytes.
    """
    try:
        async with asyncio.timeout(seconds):
            for _ in range(_MOST_REDIRECTIONS + 1):
                target = _target(url)
                address = await _address(target, peer)
                found = await _get(target, address, largest, seconds)
                if isinstance(found, bytes):
                    return found
                peer = peer if address == peer else None
                url = _joined(url, found)
    except TimeoutError:
        raise NotFetched(f"{seconds:g} 秒内没有下载完", may_pass=True) from None
    raise NotFetched("一直在转到别的地址")


def _joined(url: str, place: str) -> str:
    try:
        return urljoin(url, place)
    except ValueError:
        raise NotFetched("地址写得不对") from None


def _target(url: str) -> _Target:
    """Take an address apart. Raises NotFetched for one that is not taken."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host.encode("idna").decode()
    except ValueError:
        raise NotFetched("地址写得不对") from None
    # A user name in front of the host is there to make people take it for the host.
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        raise NotFetched("不是 http(s) 地址")
    tls = parts.scheme == "https"
    path = parts.path or "/"
    path += f"?{parts.query}" if parts.query else ""
    return _Target(tls, host, port or (443 if tls else 80), quote(path, safe=punctuation))


def is_allowed(address: str, host: str, peer: str | None) -> bool:
    """Whether this address, which the host's name stands for, may be connected to."""
    try:
        found = ip_address(address.partition("%")[0])
        if isinstance(found, IPv6Address):
            found = _embedded(found)
    except ValueError:
        return False
    if peer is not None and str(found) == peer:
        return True
    if found in _MADE_UP:
        return host.endswith(_QQ)
    if isinstance(found, IPv6Address) and (found.is_site_local or found in _NOT_USED):
        return False
    return found.is_global and not found.is_multicast


def _embedded(address: IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address is translated to on the way, else itself."""
    if any(address in network for network in _TRANSLATED):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


async def _address(target: _Target, peer: str | None) -> str:
    """Where the host of an address is. Raises NotFetched when it is not to be asked."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        raise NotFetched(f"找不到 {target.host}", may_pass=True) from error
    addresses = [str(info[4][0]) for info in found]
    allowed = [one for one in addresses if is_allowed(one, target.host, peer)]
    if not allowed:
        raise NotFetched("地址在本机或内网，不去下载")
    return allowed[0]


async def _get(target: _Target, address: str, largest: int, seconds: float) -> bytes | str:
    """What a host answers with: the bytes, or where else to look."""
    request = _Request(target, address, largest, seconds)
    try:
        return await asyncio.to_thread(request.run)
    except asyncio.CancelledError:
        request.abort()
        raise


class _Request:
    """One request in a thread; `abort` ends it from another one."""

    def __init__(self, target: _Target, address: str, largest: int, seconds: float) -> None:
        self._target = target
        self._address = address
        self._socket: socket.socket | None = None
        self._largest = largest
        self._deadline = time.monotonic() + seconds

    def abort(self) -> None:
        self._deadline = 0.0
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> bytes | str:
        """Raises NotFetched."""
        target = self._target
        try:
            self._socket = socket.create_connection((self._address, target.port), SECONDS)
            with closing(self._socket):
                if target.tls:
                    # The old socket gives its descriptor to the new one, and that is what can be
                    # aborted while a host draws out the handshake.
                    self._socket = _tls().wrap_socket(
                        self._socket, server_hostname=target.host, do_handshake_on_connect=False
                    )
                with closing(self._socket):
                    return self._exchange(self._socket)
        except (OSError, HTTPException, ValueError) as error:
            raise NotFetched(f"下载失败：{type(error).__name__}", may_pass=True) from error

    def _exchange(self, connected: socket.socket) -> bytes | str:
        if time.monotonic() > self._deadline:  # it was aborted before there was a socket
            raise NotFetched("下载得太慢", may_pass=True)
        if isinstance(connected, ssl.SSLSocket):
            connected.do_handshake()
        connection = HTTPConnection(self._target.host, self._target.port)
        connection.sock = connected
        with closing(connection):
            connection.request("GET", self._target.path, headers={"Connection": "close"})
            with connection.getresponse() as response:
                if response.status in _REDIRECTIONS and (place := response.getheader("Location")):
                    return place
                if response.status != 200:
                    passing = response.status >= 500 or response.status == 429
                    raise NotFetched(f"状态码 {response.status}", may_pass=passing)
                return self._body(response)

    def _body(self, response: HTTPResponse) -> bytes:
        if (response.length or 0) > self._largest:
            raise NotFetched("太大了")
        body = bytearray()
        while chunk := response.read1(_CHUNK):
            body += chunk
            if len(body) > self._largest:
                raise NotFetched("太大了")
            if time.monotonic() > self._deadline:
                raise NotFetched("下载得太慢", may_pass=True)
        if response.length:
            raise NotFetched("没有下载完", may_pass=True)
        return bytes(body)


@cache
def _tls() -> ssl.SSLContext:
    """Verifies certificates as usual, with OpenSSL's own list of ciphers.

    Python's shorter one has none in common with QQ's picture server (multimedia.nt.qq.com.cn).
    """
    context = ssl.create_default_context()
    context.set_ciphers("DEFAULT")
    return context
