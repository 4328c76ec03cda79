"""Where the tour keeps its files: a folder of its own beside the real data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
import shutil
import tempfile
import time

from ..errors import NianlunError

SAMPLE = "sample.jsonl"
DATABASE = "nianlun.db"
_PREFIX = "run-"
_LEFTOVER_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Workspace:
    """One run works in a folder that no other run knows, so that two may run at once."""

    home: Path
    run: Path

    def keep(self) -> None:
        """Put what was made in the place of what an earlier run left."""
        for name in (SAMPLE, DATABASE):
            (self.run / name).replace(self.home / name)


@contextmanager
def workspace(home: Path) -> Iterator[Workspace]:
    """A fresh working folder in `home`, gone afterwards. Raises NianlunError."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(home)
        run = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))
        try:
            yield Workspace(home, run)
        finally:
            shutil.rmtree(run, ignore_errors=True)
    except OSError as error:
        raise NianlunError(f"演示用的文件夹 {home} 不能用：{error.strerror or error}") from error


def _remove_leftovers(home: Path) -> None:
    """What a run that was killed could not take away itself."""
    for folder in home.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):  # another run may be tidying too
            if time.time() - folder.stat().st_mtime > _LEFTOVER_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
