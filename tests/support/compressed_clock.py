"""One clock for a test and for the bots it starts, that a day goes by on in a few seconds.

The clock is a small file: the test moves it, and a bot reads it through `PLUGIN`, which is put
into the bot's folder like any other plugin.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
import mmap
from pathlib import Path
import struct
import time
from types import TracebackType
from typing import Self

PLUGIN = Path(__file__).with_name("compressed_bot.py").read_text("utf-8")
VARIABLE = "COMPRESSED_CLOCK"
"""Environment variable of a bot: the path of the clock's file."""

_LAYOUT = struct.Struct("=dd")
_STEP = 0.005
_LONGEST_STEP = 0.05
"""A test that was held up for longer must not make time leap for the bots."""


class CompressedClock:
    """Stands still until it is told to go on."""

    def __init__(self, path: Path, start: datetime, speed: float) -> None:
        self.env = {VARIABLE: str(path)}
        self._speed = speed
        self._now = start.timestamp()
        self._moved = 0.0
        path.write_bytes(_LAYOUT.pack(self._now, speed))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _LAYOUT.size)

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._now, UTC)

    async def go_on_until(self, moment: datetime) -> None:
        """Let time pass, `speed` times as fast as it does."""
        while self._now < moment.timestamp():
            await asyncio.sleep(_STEP)
            passed, self._moved = time.monotonic() - self._moved, time.monotonic()
            self._now += min(passed, _LONGEST_STEP) * self._speed
            _LAYOUT.pack_into(self._shared, 0, self._now, self._speed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shared.close()
