"""A chat's whole memory as a file or a folder that people take away.

Whatever is written is put together beside its place first, so that a broken export never
replaces a whole one; nothing here keeps the event loop waiting.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
import json
from pathlib import Path
import shutil
import tempfile
from typing import Any, Self
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from .errors import NianlunError
from .memory.vault import front_matter
from .memory.vault_pages import FOLDERS, MARK, OURS, as_line, files, message_file
from .store import leftovers

Rows = AsyncIterator[dict[str, Any]]

_AT_ONCE = 1000
"""Lines that are written together."""
_LONGEST_LINE = 1000
"""Bytes of the first lines of a page; a chat is called shorter."""
_UNFINISHED = f"{MARK}.part"
"""In place of the mark while the files are replaced."""


async def write_json_lines(path: Path, rows: Rows) -> None:
    """One object a line. Raises NianlunError when it cannot be written."""
    partial = path.with_name(f"{path.name}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            async for part in _parts(rows):
                text = "".join(map(as_line, part))
                await asyncio.to_thread(file.write, text)
        partial.replace(path)
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        with suppress(OSError):  # a name that is too long cannot even be removed
            partial.unlink(missing_ok=True)


async def write_vault(folder: Path, rows: Rows) -> None:
    """The files of `memory/vault_pages.py` in a folder, which is made where there is none.

    One that holds a vault of the same chat is brought up to date: what did not change is left
    alone, and so is every file that was not written here. Raises NianlunError when there is
    something else, or something of another's in the place of a page, or when it cannot be written.
    """
    folder = await asyncio.to_thread(folder.resolve)
    try:
        with _Stage(folder) as stage:
            header = await stage.fill(rows)
            await asyncio.to_thread(_publish, stage.path, folder, header)
    except OSError as error:
        raise _cannot(folder, error) from error


async def write_zip(path: Path, rows: Rows) -> None:
    """The same files in a zip file. Raises NianlunError when it cannot be written."""
    try:
        with _Stage(path) as stage:
            await stage.fill(rows)
            await asyncio.to_thread(_zip, stage.path, path)
    except OSError as error:
        raise _cannot(path, error) from error


def _cannot(path: Path, error: OSError) -> NianlunError:
    return NianlunError(f"写不了 {path}：{error.strerror or error}")


async def _parts(rows: Rows) -> AsyncIterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    async for row in rows:
        part.append(row)
        if len(part) == _AT_ONCE:
            yield part
            part = []
    if part:
        yield part


class _Stage:
    """A folder beside the place of what is written, gone when it is left."""

    def __init__(self, place: Path) -> None:
        prefix = f".{place.name}.nianlun-"
        leftovers.remove(path for path in place.parent.iterdir() if path.name.startswith(prefix))
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place.parent))
        self._counts: Counter[str] = Counter()
        """How many lines each file of messages has."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    async def fill(self, rows: Rows) -> dict[str, Any]:
        """Write all files of the vault; returns the header."""
        others: list[dict[str, Any]] = []
        async for part in _parts(rows):
            others += [row for row in part if row["type"] != "message"]
            await asyncio.to_thread(
                self._messages, [row for row in part if row["type"] == "message"]
            )
        others[-1]["messages"] = self._counts
        await asyncio.to_thread(self._pages, others)
        return others[0]

    def _messages(self, rows: list[dict[str, Any]]) -> None:
        by_file: dict[str, list[str]] = {}
        for row in rows:
            by_file.setdefault(message_file(row), []).append(as_line(row))
        for name, lines in by_file.items():
            self._counts[name] += len(lines)
            path = self.path / name
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)

    def _pages(self, rows: list[dict[str, Any]]) -> None:
        for name, text in files(rows).items():
            path = self.path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")


def _names(folder: Path) -> list[str]:
    """The files of a vault in a folder, the mark last."""
    # Not deeper: what else an owner keeps there may be large, or nested without end.
    found = [*folder.iterdir(), *(page for name in FOLDERS for page in (folder / name).glob("*"))]
    names = (path.relative_to(folder).as_posix() for path in found if not path.is_dir())
    return sorted((name for name in names if OURS.fullmatch(name)), key=lambda name: name == MARK)


def _publish(stage: Path, folder: Path, header: dict[str, Any]) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        folder.mkdir(parents=True, exist_ok=True)
    else:
        _look_whose(folder, header)
    names, there = _names(stage), _names(folder)
    foreign = {name for name in there if not _is_ours(folder / name, header)}
    if taken := sorted(foreign.intersection(names)):
        raise NianlunError(f"{folder / taken[0]} 不是年轮写的，没有盖掉它：请先改名或移开")
    mark, unfinished = folder / MARK, folder / _UNFINISHED
    # From the first file on it is known whose this is, also when it is not finished.
    shutil.copyfile(stage / MARK, stage / _UNFINISHED)
    (stage / _UNFINISHED).replace(unfinished)
    mark.unlink(missing_ok=True)
    for name in names:
        new, old = stage / name, folder / name
        old.parent.mkdir(exist_ok=True)
        if old.is_symlink() or not old.is_file() or old.read_bytes() != new.read_bytes():
            new.replace(old)
    for name in set(there) - foreign - set(names):
        (folder / name).unlink(missing_ok=True)
    unfinished.unlink(missing_ok=True)


def _is_ours(path: Path, header: dict[str, Any]) -> bool:
    """Whether a file of a vault was written here: pages say of which chat they are."""
    if path.suffix != ".md":
        return True
    if path.is_symlink():
        return False
    begins = front_matter({"chat": header["chat"]}).split("\n")[:2]
    with path.open("rb") as file:
        found = [file.readline(_LONGEST_LINE) for _ in begins]
    return [line.decode("utf-8-sig", "replace").strip() for line in found] == begins


def _look_whose(folder: Path, header: dict[str, Any]) -> None:
    """Raise NianlunError unless the folder holds a vault of the same chat."""
    if folder.is_dir() and not any(path.is_symlink() for path in folder.iterdir()):
        marks = (folder / name for name in (MARK, _UNFINISHED))
        if any(mark.is_file() and _is_of(mark, header) for mark in marks):
            return
    raise NianlunError(f"{folder} 里有别的东西：请换一个空的文件夹，或这个会话以前导出的那个")


def _is_of(mark: Path, header: dict[str, Any]) -> bool:
    with mark.open(encoding="utf-8", errors="replace") as file:
        try:
            theirs = json.loads(file.readline())
        except ValueError:
            return False
    return isinstance(theirs, dict) and all(
        theirs.get(key) == header[key] for key in ("format", "chat", "self_id")
    )


def _zip(stage: Path, path: Path) -> None:
    partial = path.with_name(f"{path.name}.part")
    try:
        with ZipFile(partial, "w", ZIP_DEFLATED) as archive:
            for name in _names(stage):
                # Of equal memories the files are equal too, so no time of the clock.
                info = ZipInfo(name)
                info.compress_type = ZIP_DEFLATED
                with (stage / name).open("rb") as source, archive.open(info, "w") as target:
                    shutil.copyfileobj(source, target)
        partial.replace(path)
    finally:
        with suppress(OSError):  # a name that is too long cannot even be removed
            partial.unlink(missing_ok=True)
