"""A Markdown vault of ours, a folder or a zip of one: read as the export that it was made from."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
import codecs
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
import heapq
import json
from pathlib import Path
import shutil
import tempfile
from typing import BinaryIO, NamedTuple
from zipfile import ZipFile

from ..errors import ImportFileError
from ..lifecycle import Nianlun
from ..memory.vault import Complaint
from ..memory.vault_pages import (
    END,
    FOLDERS,
    HISTORY,
    MARK,
    OURS,
    Placed,
    Row,
    rows_of,
    texts_there,
)
from ..types import ChatKey
from .found import Unreadable
from .native import LINE_LIMIT
from .report import ImportReport, shown
from .run import ImportOptions, ShowProgress, import_file, look_into
from .survey import Survey
from .vault_files import BROKEN_ZIP, Files, Folder, Zip, is_vault

TITLE = "年轮的 Markdown 文件夹"
LARGEST_PAGE = 1 << 26
"""Bytes of a file that is read whole."""
LARGEST_PAGES = 1 << 28
"""Bytes of all of them together: they are held in memory."""
_MOST_MESSAGE_FILES = 2_000
"""One a month: they are open together."""
_BEFORE_MESSAGES = frozenset({"header", "settings", "speaker"})
_ELSEWHERE = Complaint(1, "不在原来的位置，没有读入")
_TORN = "这个文件夹没有导出完（{}），请重新导出一次"


async def import_any(
    nianlun: Nianlun, path: Path, options: ImportOptions, progress: ShowProgress
) -> ImportReport:
    """`import_file` for whatever may be brought in: a file, or a vault of ours."""
    async with _readable(path) as (file, origins):
        if origins is None:
            return await import_file(nianlun, file, options, progress)
        options = replace(options, format="nianlun")
        return origins.tell(await import_file(nianlun, file, options, progress))


async def look_into_any(
    nianlun: Nianlun, path: Path, options: ImportOptions
) -> tuple[str, Survey, list[ChatKey]]:
    """`look_into` for whatever may be brought in."""
    async with _readable(path) as (file, origins):
        title, survey, keys = await look_into(nianlun, file, options)
        return title if origins is None else TITLE, survey, keys


@asynccontextmanager
async def _readable(path: Path) -> AsyncIterator[tuple[Path, _Origins | None]]:
    """The file to read; for a vault the export that it was made from, with its origins."""
    if not await asyncio.to_thread(is_vault, path):
        yield path, None
        return
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="nianlun-"))
    try:
        whole = folder / "whole.jsonl"
        yield whole, await asyncio.to_thread(_as_json_lines, path, whole)
    except ImportFileError as error:
        raise ImportFileError(str(error).replace(str(folder / "whole.jsonl"), str(path))) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class _Origin(NamedTuple):
    number: int
    """Of the first line of the export, from 1."""
    file: str
    line: int
    """Of that file; those that follow in the export follow here too, in a file of lines."""
    follows: bool


class _Origins:
    """Where each line of the export came from, and what could not become one."""

    def __init__(self) -> None:
        self._runs: list[_Origin] = []
        self._complaints: list[tuple[str, Complaint]] = []

    def add(self, run: _Origin) -> None:
        if self._runs and run.follows:
            last = self._runs[-1]
            if (last.file, last.line - last.number) == (run.file, run.line - run.number):
                return
        self._runs.append(run)

    def complain(self, complaints: list[tuple[str, Complaint]]) -> None:
        self._complaints += complaints

    def tell(self, report: ImportReport) -> ImportReport:
        report.title = TITLE
        told = [self._of(one) for one in report.unreadable]
        torn = [Unreadable(one.line, f"{file}：{one.text}") for file, one in self._complaints]
        report.left_out += len(torn)
        report.unreadable = shown([*torn, *told])
        return report

    def _of(self, one: Unreadable) -> Unreadable:
        at = bisect_right(self._runs, one.line, key=lambda run: run.number) - 1
        run = self._runs[at]
        line = run.line + (one.line - run.number if run.follows else 0)
        return replace(one, line=line, reason=f"{run.file}：{one.reason}")


def _as_json_lines(path: Path, whole: Path) -> _Origins:
    """Write the export that the vault was made from. Raises ImportFileError."""
    try:
        if path.is_dir():
            return _Writer(Folder(path), whole).write()
        with ZipFile(path) as archive:
            return _Writer(Zip(archive, path.stat().st_size), whole).write()
    except BROKEN_ZIP as error:
        raise ImportFileError(f"读不了 {path}：压缩包坏了，或者用了不认识的压缩方式") from error
    except OSError as error:
        raise ImportFileError(f"读不了 {path}：{error.strerror or error}") from error


class _Writer:
    def __init__(self, files: Files, whole: Path) -> None:
        self._files = files
        self._whole = whole
        self._origins = _Origins()
        self._number = 0

    def write(self) -> _Origins:
        # The mark first, and a page before copies of it that were made under longer names.
        names = sorted(self._files.names(), key=lambda name: (name != MARK, len(name), name))
        self._origins.complain(
            [(name, _ELSEWHERE) for name in names if not OURS.fullmatch(name) and _is_page(name)]
        )
        names = [name for name in names if OURS.fullmatch(name)]
        if MARK not in names:
            raise ImportFileError(_TORN.format(f"没有 {MARK}"))
        sources = [name for name in names if name.startswith("messages/")]
        pages = [name for name in names if not name.startswith("messages/")]
        if len(sources) > _MOST_MESSAGE_FILES:
            raise ImportFileError("messages 里的文件太多，不像是年轮导出的")
        if sum(map(self._files.size, pages)) > LARGEST_PAGES:
            raise ImportFileError("除了消息，文件夹里的东西太多，读不下")
        rows, complaints = rows_of((name, self._page(name)) for name in pages)
        self._origins.complain(complaints)
        end = _end(rows, [one.line for name, one in complaints if name == MARK])
        counts = _counts(end)
        if missing := sorted(counts.keys() - {*names}):
            raise ImportFileError(_TORN.format(f"没有 {missing[0]}"))
        if HISTORY in counts:
            there = sum(bool(line.strip()) for line in self._page(HISTORY).split("\n"))
            _check_count(HISTORY, there, counts[HISTORY])
        self._origins.complain(list(_lacking(rows, end, pages)))
        rows = [placed for placed in rows if placed.row["type"] != END]
        before = [placed for placed in rows if placed.row["type"] in _BEFORE_MESSAGES]
        with ExitStack() as stack, self._whole.open("w", encoding="utf-8", newline="\n") as out:
            for placed in before:
                self._put(out.write, placed)
            streams = [
                self._messages(
                    name, stack.enter_context(self._files.open(name)), counts.get(name, 0)
                )
                for name in sources
            ]
            for _, name, line, text in heapq.merge(*streams):
                self._add(name, line, follows=True)
                out.write(f"{text}\n")
            for placed in rows[len(before) :]:
                self._put(out.write, placed)
        return self._origins

    def _page(self, name: str) -> str:
        if self._files.size(name) > LARGEST_PAGE:
            raise ImportFileError(f"{name} 太大了")
        with self._files.open(name) as file:
            return _text(file.read(LARGEST_PAGE), name)

    def _put(self, write: Callable[[str], object], placed: Placed) -> None:
        try:
            # In ASCII: what is no text comes to the one place that cleans it.
            line = json.dumps(placed.row)
        except RecursionError:
            complaint = Complaint(placed.line, "括号套得太深，没有读入")
            self._origins.complain([(placed.file, complaint)])
        else:
            self._add(placed.file, placed.line, follows=False)
            write(f"{line}\n")

    def _add(self, file: str, line: int, *, follows: bool) -> None:
        self._number += 1
        self._origins.add(_Origin(self._number, file, line, follows))

    def _messages(
        self, name: str, file: BinaryIO, expected: int
    ) -> Iterator[tuple[int, str, int, str]]:
        """The lines of a file with the numbers of their messages, which ascend. Raises
        ImportFileError where they are fewer than expected."""
        number, last, count = 0, 0, 0
        while raw := file.readline(LINE_LIMIT):
            number += 1
            text = _text(raw, name).strip(" \t\r\n")
            if text:
                last = max(last, _seq(text) or last)
                count += 1
                yield last, name, number, text
        _check_count(name, count, expected)


def _check_count(name: str, lines: int, expected: int) -> None:
    if lines < expected:
        raise ImportFileError(_TORN.format(f"{name} 应有 {expected} 行，只有 {lines} 行"))


def _end(rows: list[Placed], unread: list[int]) -> Row:
    """The last line of the mark; nothing where its header announces none. `unread` are the lines of
    the mark that could not be read.

    Raises ImportFileError when not all of the mark is there.
    """
    mark = [placed for placed in rows if placed.file == MARK]
    header = next((placed.row for placed in mark if placed.row["type"] == "header"), {})
    if header.pop("ends_with", None) != END:
        return {}
    for end in (placed for placed in mark if placed.row["type"] == END):
        before = sum(line < end.line for line in (*(one.line for one in mark), *unread))
        if end.row.get("records") == before and isinstance(end.row.get("messages"), dict):
            return end.row
    raise ImportFileError(_TORN.format(f"{MARK} 缺了一部分"))


def _counts(end: Row) -> dict[str, int]:
    """How many lines each file of messages, and that of earlier texts, should have at least."""
    counts = _numbers(end.get("messages"))
    if isinstance(history := end.get("history"), int) and history:
        counts[HISTORY] = history
    return counts


def _numbers(counts: object) -> dict[str, int]:
    """By file, as the last line of the mark tells them."""
    told = counts.items() if isinstance(counts, dict) else ()
    return {name: n for name, n in told if OURS.fullmatch(name) and isinstance(n, int)}


def _lacking(
    rows: list[Placed], end: Row, pages: Collection[str]
) -> Iterator[tuple[str, Complaint]]:
    """Pages of which fewer texts are left than were exported: somebody may have meant to delete
    those. One that was moved to another page is there."""
    there = texts_there(rows)
    for name, count in _numbers(end.get("pages")).items():
        if there[name] < count:
            gone = f"少了 {count - there[name]} 段" if name in pages else "整页都没有了"
            kept = "这里原有的记忆不会因此删掉，要删请用指令"
            yield name, Complaint(1, f"和导出时比，{gone}，没有读入；{kept}")


def _is_page(name: str) -> bool:
    """Whether it stands, in another place than ours, where somebody may take it for a page."""
    folder, _, rest = name.partition("/")
    hidden = rest.rstrip("/").rpartition("/")[2].startswith(".")
    return folder in FOLDERS and not hidden and name.lower().endswith((".md", "/"))


def _text(raw: bytes, name: str) -> str:
    """The text without a mark of its byte order. A guess at another encoding would make an edit of
    every text in it."""
    encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise ImportFileError(f"{name} 不是 UTF-8 编码的文字，请另存成 UTF-8 再导入") from None


def _seq(text: str) -> int | None:
    """The number of a message; what else is wrong with its line is told when it is read."""
    try:
        seq = json.loads(text).get("seq")
    except (ValueError, AttributeError, RecursionError):
        return None
    return seq if isinstance(seq, int) else None
