"""A server of pictures on a real socket, which also misbehaves where a test asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import struct
import threading
from types import TracebackType
from typing import Self
import zlib


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check


def png(shade: int = 0, *, moving: bool = False) -> bytes:
    """A PNG of one grey pixel; `moving` announces an animation (APNG)."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    control = _chunk(b"acTL", struct.pack(">II", 2, 0)) if moving else b""
    pixels = _chunk(b"IDAT", zlib.compress(bytes([0, shade])))
    return b"\x89PNG\r\n\x1a\n" + header + control + pixels + _chunk(b"IEND", b"")


class PictureServer:
    """Serves `pictures` by path; `/to/…` redirects to what `redirections` has for the rest."""

    def __init__(self) -> None:
        self.pictures: dict[str, bytes] = {}
        self.statuses: dict[str, int] = {}
        """What a path answers with instead."""
        self.redirections: dict[str, str] = {}
        self.promised: dict[str, int] = {}
        """Another length than the true one, by path."""
        self.hold = threading.Event()
        """Answers to `/held…` begin once this is set."""
        self.asked: list[str] = []
        """Every path that was asked for, in order."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def put(self, path: str, content: bytes) -> str:
        self.pictures[path] = content
        return self.url(path)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hold.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path
                server.asked.append(path)
                if path.startswith("/held"):
                    server.hold.wait(10)
                if path in server.redirections:
                    self._answer(302, b"", {"Location": server.redirections[path]})
                elif path in server.statuses:
                    self._answer(server.statuses[path], b"no", {})
                else:
                    found = server.pictures.get(path)
                    self._answer(200 if found else 404, found or b"", {})

            def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
                length = server.promised.get(self.path, len(body))
                try:
                    self.send_response(status)
                    for name, value in {"Content-Length": str(length), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    pass  # the client gave up first, which some tests want

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
