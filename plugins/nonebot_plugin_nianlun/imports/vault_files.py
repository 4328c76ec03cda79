"""Where the files of a vault are: a folder, or a zip of one."""

from __future__ import annotations

from contextlib import suppress
from lzma import LZMAError
import os
from pathlib import Path
from typing import BinaryIO, Protocol, cast
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile
import zlib

from ..errors import ImportFileError
from ..memory.vault_pages import FOLDERS, MARK

LARGEST_ZIP = 1 << 32
"""Bytes of all that a zip file may unpack to."""
_MOST_FILES = 200_000
_MOST_TIMES = 100
"""So many times its own size a zip file of ours unpacks to at most."""
_ALWAYS_FITS = 1 << 26
"""Bytes that any may unpack to."""
_ZIP = b"PK\x03\x04"
BROKEN_ZIP = (BadZipFile, NotImplementedError, EOFError, RuntimeError, zlib.error, LZMAError)
"""What reading a zip file that is no whole one ends in; RuntimeError where it wants a password."""


class Files(Protocol):
    """The files of a vault, wherever they are."""

    def names(self) -> list[str]:
        """What it holds, also in places where none of ours is; a folder there ends in `/`."""
        ...

    def size(self, name: str) -> int: ...

    def open(self, name: str) -> BinaryIO: ...


class Folder:
    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self) -> list[str]:
        # Not deeper: what else is in the folder may be large, or nested without end.
        with os.scandir(self._root) as entries:
            top = [one for one in entries if not one.is_symlink()]
        found = [one.name for one in top if one.is_file(follow_symlinks=False)]
        for folder in (one for one in top if one.is_dir(follow_symlinks=False)):
            if folder.name in FOLDERS:
                with os.scandir(folder.path) as entries:
                    found += [
                        f"{folder.name}/{one.name}{'/' if one.is_dir() else ''}"
                        for one in entries
                        if not one.is_symlink()
                    ]
        return found

    def size(self, name: str) -> int:
        return (self._root / name).stat().st_size

    def open(self, name: str) -> BinaryIO:
        return (self._root / name).open("rb")


class Zip:
    """Also one whose files are all in one folder, as they are when a folder is packed."""

    def __init__(self, archive: ZipFile, size: int) -> None:
        """`size` is that of the archive, in bytes."""
        self._archive = archive
        infos = archive.infolist()
        whole = sum(info.file_size for info in infos)
        fits = min(LARGEST_ZIP, max(_ALWAYS_FITS, size * _MOST_TIMES))
        if len(infos) > _MOST_FILES or whole > fits:
            raise ImportFileError("压缩包里的东西太多，请先解压，再导入那个文件夹")
        named = {_shown(info): info for info in infos}
        marks = [name for name in named if name.rpartition("/")[2] == MARK]
        prefix = min(marks, key=len, default="").removesuffix(MARK)
        self._infos = {
            name.removeprefix(prefix): info
            for name, info in named.items()
            if name.startswith(prefix)
        }

    def names(self) -> list[str]:
        return [name for name, info in self._infos.items() if not info.is_dir()]

    def size(self, name: str) -> int:
        return self._infos[name].file_size

    def open(self, name: str) -> BinaryIO:
        info = self._infos[name]
        if info.flag_bits & 1:
            raise ImportFileError("压缩包有密码，请先解压，再导入那个文件夹")
        return cast("BinaryIO", self._archive.open(info))


def _shown(info: ZipInfo) -> str:
    """A name with `/` between its parts, also of tools that write `\\` there. Where a name is in
    an old encoding, that sign is half of a character in it."""
    folder, slash, name = info.filename.rpartition("/")
    if not slash:
        return name.replace("\\", "/")
    name = name.replace("\\", "_")
    return f"{folder}/{name}"


def is_vault(path: Path) -> bool:
    """Whether it is a folder or a zip file with a vault in it, also one that is torn.

    Raises ImportFileError for a zip file that ends too early.
    """
    if path.is_dir():
        return (path / MARK).is_file() or (path / f"{MARK}.part").is_file()
    if not path.is_file():
        return False
    if not is_zipfile(path):
        with suppress(OSError), path.open("rb") as file:
            if file.read(len(_ZIP)) == _ZIP:
                raise ImportFileError(f"读不了 {path}：压缩包不完整，请重新下载或重新打包")
        return False
    with suppress(OSError, *BROKEN_ZIP), ZipFile(path) as archive:
        return any(_shown(info).rpartition("/")[2] == MARK for info in archive.infolist())
    return False
