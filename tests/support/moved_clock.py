"""A time of day for a bot that a test moves while the bot runs, as an owner sets the clock."""

from __future__ import annotations

from pathlib import Path
import shutil
import struct
import subprocess
import sys
import time

_SOURCE = Path(__file__).with_name("moved_clock.c")
_COMPILER = shutil.which("cc") or shutil.which("gcc")

AVAILABLE = sys.platform == "linux" and _COMPILER is not None


class MovedClock:
    """The machine's time of day, moved by `shift` seconds for processes that run with `env`."""

    def __init__(self, folder: Path) -> None:
        assert _COMPILER is not None
        library = folder / "moved_clock.so"
        build = [_COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"]
        subprocess.run(build, check=True)
        self._file = folder / "moved_clock"
        self._file.write_bytes(struct.pack("=q", 0))
        self._shift = 0
        self.env = {"LD_PRELOAD": str(library), "MOVED_CLOCK": str(self._file)}

    @property
    def now(self) -> float:
        """The time of day as those processes read it, as a Unix time."""
        return time.time() + self._shift

    def set(self, now: float) -> None:
        """Set it to this Unix time, from where it goes on."""
        self._shift = round(now - time.time())
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", self._shift))
