"""How far the work has come, on standard error: one line that changes, or a few that stay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
import os
import time
from typing import TextIO, TypeVar

from .telling import width, wrap

T = TypeVar("T")

_EVERY_SECONDS = 0.3
_QUIET_SECONDS = 15.0
"""Where lines stay, in a file or a log, one so often is enough."""
_USUAL_COLUMNS = 80


class Progress:
    """Steps are shown while they last; what is done stays, with the time since its first step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_place = stream.isatty()
        self._drawn = 0
        self._began: float | None = None
        self._said = time.monotonic()

    def step(self, text: str) -> None:
        if self._began is None:
            self._began = self._said = time.monotonic()
        if self._in_place:
            self._draw(text)
        elif time.monotonic() - self._said > _QUIET_SECONDS:
            self._said = time.monotonic()
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def done(self, text: str) -> None:
        """End the line that changes with one that stays."""
        now = time.monotonic()
        self.clear()
        self._stream.write(f"{text}（{now - (self._began or now):.1f} 秒）\n")
        self._stream.flush()
        self._began = None

    def clear(self) -> None:
        if self._drawn:
            self._draw("")
            self._stream.write("\r")
            self._drawn = 0

    def _draw(self, text: str) -> None:
        # A line that runs over cannot be drawn over any more.
        text = next(iter(wrap(text, self._room())), "")
        columns = width(text)
        self._stream.write(f"\r{text}{' ' * max(0, self._drawn - columns)}")
        self._drawn = columns

    def _room(self) -> int:
        """Columns of the terminal but the last, which some terminals end the line after."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return max(2, (columns or _USUAL_COLUMNS) - 1)


async def watched(work: Awaitable[T], look: Callable[[], Awaitable[str]], progress: Progress) -> T:
    """Wait for `work`, telling meanwhile what `look` sees."""

    async def tell() -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            progress.step(await look())

    progress.step(await look())
    telling = asyncio.create_task(tell(), name="nianlun-demo-progress")
    try:
        return await work
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling
        progress.clear()
