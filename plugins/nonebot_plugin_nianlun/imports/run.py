"""The import of a file: read it once to see that it can be read, then store it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
import errno
import os
from pathlib import Path
import stat
from typing import BinaryIO
from zoneinfo import ZoneInfo

from .. import owed_notes
from ..errors import ImportFileError
from ..lifecycle import Nianlun
from ..memory.vault_pages import MARK
from ..store import chats
from ..types import COMMAND_LINE, ChatKey
from .formats import AUTO, file_in
from .formats import choose as choose_reader
from .found import Found, FoundChat, FoundMessage, Reader, Unreadable
from .intake import Intake
from .places import Known, Target, choose, me
from .progress import Progress
from .qce_chunks import MANIFEST
from .report import ImportReport
from .survey import Survey
from .values import FIRST_YEAR

_LOOK_EVERY = 2000
_CLOCKS_DIFFER = timedelta(days=1)
"""A message later than this from now has a time that nobody can have said it at."""

_NO_EXPORT = (
    f"这个文件夹里没有 {MARK}（年轮导出的文件夹有），也没有 {MANIFEST}（分块导出的文件夹有）"
)
_REASONS = {
    errno.ENOENT: "没有这个文件",
    errno.ENOTDIR: "没有这个文件",
    errno.EACCES: "没有权限",
    errno.EPERM: "没有权限",
    errno.ENAMETOOLONG: "文件名太长",
    errno.EIO: "磁盘读取出错",
}

ShowProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the command line offers."""

    targets: tuple[Target, ...] = ()
    self_id: str | None = None
    me: tuple[str, ...] = ()
    format: str = AUTO
    zone: ZoneInfo | None = None
    """For formats that write local time; None: the bot's own."""
    editor: str = COMMAND_LINE
    """Whose the texts become that were changed in a vault: a QQ number."""


def _nothing(progress: Progress) -> None:
    pass


async def import_file(
    nianlun: Nianlun,
    path: Path,
    options: ImportOptions | None = None,
    progress: ShowProgress = _nothing,
) -> ImportReport:
    """Bring a chat export into the open store.

    Raises ImportFileError when the file cannot be read and ChatError when it is not clear where
    it belongs: then nothing is stored. Raises StoreError when the database stops taking it;
    what is stored by then stays, and the same import again does the rest.
    """
    options = options or ImportOptions()
    try:
        with _open(path) as file:
            return await _Run(nianlun, path, file, options, progress).run()
    except OSError as error:
        raise _unreadable(path, error) from error


async def look_into(
    nianlun: Nianlun, path: Path, options: ImportOptions
) -> tuple[str, Survey, list[ChatKey]]:
    """What an import of this file would bring where, without bringing it: the format, what is in
    it, and the chat for each one of it. Raises ImportFileError and ChatError."""
    try:
        with _open(path) as file:
            reader, survey, keys = await _Run(nianlun, path, file, options, _nothing).look()
            return reader.title, survey, keys
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ImportFileError:
    reason = _REASONS.get(error.errno or 0) or error.strerror or error
    return ImportFileError(f"读不了 {path}：{reason}")


def _open(path: Path) -> BinaryIO:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode) and (begins := file_in(path)):
        path, mode = begins, begins.stat().st_mode
    if not stat.S_ISREG(mode):
        # Opening a pipe would wait for somebody to write into it.
        what = _NO_EXPORT if stat.S_ISDIR(mode) else "这不是普通的文件"
        raise ImportFileError(f"读不了 {path}：{what}")
    return path.open("rb")


class _Run:
    """One import."""

    def __init__(
        self,
        nianlun: Nianlun,
        path: Path,
        file: BinaryIO,
        options: ImportOptions,
        progress: ShowProgress,
    ) -> None:
        self._nianlun = nianlun
        self._path = path
        self._file = file
        self._options = options
        self._progress = progress
        self._zone = options.zone or nianlun.settings.timezone
        self._size = os.fstat(file.fileno()).st_size

    async def run(self) -> ImportReport:
        reader, survey, keys = await self.look()
        mine = me(survey, self._options.me)
        report = ImportReport(reader.title)
        places = iter(zip(survey.chats, keys, strict=True))
        intake: Intake | None = None
        for found in self._read(reader, "store"):
            if isinstance(found, FoundChat):
                if intake is not None:
                    await intake.finish()
                intake = Intake(self._nianlun, *next(places), mine, report, self._options.editor)
            elif isinstance(found, Unreadable):
                report.add_unreadable(found)
            elif intake is not None:
                await intake.take(found)
        if intake is not None:
            await intake.finish()
        for told in report.chats:
            if (chat_id := await chats.find(told.chat)) is not None:
                told.owed = await owed_notes.count(self._nianlun, chat_id)
        report.unreadable.sort(key=lambda one: one.line)
        return report

    async def look(self) -> tuple[Reader, Survey, list[ChatKey]]:
        """What is in the file, and where each of its chats belongs."""
        reader = choose_reader(self._options.format, self._file)
        survey = await asyncio.to_thread(self._survey, reader)
        known = [Known(chats.key_of(row), row.name) for row in await chats.everyone()]
        return reader, survey, choose(survey, self._options.targets, self._options.self_id, known)

    def _survey(self, reader: Reader) -> Survey:
        """Read the whole file; whatever is wrong with it as a whole is raised here."""
        before = os.fstat(self._file.fileno())
        survey = Survey()
        odd: Unreadable | None = None
        for found in self._read(reader, "check"):
            survey.take(found)
            if odd is None and isinstance(found, Unreadable):
                odd = found
        if not survey.messages and odd is not None:
            raise ImportFileError(
                f"{self._path} 里没有一条读得出来的消息，例如第 {odd.line} 行：{odd.reason}"
            )
        if not survey.chats:
            raise ImportFileError(f"{self._path} 里没有聊天记录")
        after = os.fstat(self._file.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise ImportFileError(f"{self._path} 还在变，等它写完再导入")
        return survey

    def _read(self, reader: Reader, phase: str) -> Iterator[Found]:
        self._file.seek(0)
        messages = 0
        latest = self._nianlun.clock.now() + _CLOCKS_DIFFER
        for found in reader.read(self._file, self._zone):
            if isinstance(found, FoundMessage):
                if found.time.year < FIRST_YEAR or found.time > latest:
                    yield Unreadable(found.line, f"时间 {found.time:%Y-%m-%d} 不可能")
                    continue
                messages += 1
                if messages % _LOOK_EVERY == 0:
                    self._progress(Progress(phase, self._file.tell(), self._size, messages))
            yield found
        self._progress(Progress(phase, self._size, self._size, messages))
