"""What a killed process has left half made beside what it was making.

Several processes may be at work in one folder, so nothing is removed that was touched of late.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
import shutil
import time

UNTOUCHED = 3600.0
"""Seconds after which nobody is at work on a thing any more: whoever is writes all the time."""


def remove(found: Iterable[Path], untouched: float = UNTOUCHED) -> None:
    """Remove the files and folders that nobody has touched for so many seconds."""
    for path in found:
        with suppress(OSError):  # somebody else removes it, or it is removed the next time
            if time.time() - _touched(path) < untouched:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _touched(path: Path) -> float:
    """When the thing, or anything within it, was written to last."""
    within = path.rglob("*") if path.is_dir() else ()
    return max(each.lstat().st_mtime for each in (path, *within))
