"""JSON Lines of other programs: one object a line, each read alone."""

from __future__ import annotations

from collections.abc import Iterator
import json
from typing import Any, BinaryIO

from ..errors import ImportFileError
from .found import Unreadable

LINE_LIMIT = 1 << 26
"""Longest line that is read, in bytes; a merged forward can fill some megabytes."""


def objects(
    file: BinaryIO, where: str = "", *, whole_file: bool = False
) -> Iterator[tuple[int, dict[str, Any] | Unreadable]]:
    """The numbered lines that are neither blank nor comments.

    `where` goes before what is told about a line. `whole_file`: raises ImportFileError when the
    file ends inside of one, since then it is not all of it.
    """
    number, whole = 0, True
    while raw := file.readline(LINE_LIMIT):
        ended = raw.endswith(b"\n")
        if whole:
            number += 1
            text = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if text.strip() and not text.lstrip().startswith(b"#"):
                yield number, _read(text, number, where, cut=whole_file and not ended)
        whole = ended


def _read(raw: bytes, number: int, where: str, *, cut: bool) -> dict[str, Any] | Unreadable:
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        reason = "不是 UTF-8 编码的文字"
    except (ValueError, RecursionError):
        reason = "不是合格的 JSON"
    else:
        if isinstance(value, dict):
            return value
        reason = "不是一个 JSON 对象"
    if cut:
        raise ImportFileError(
            f"{where}第 {number} 行读不下去：文件到这里就断了。"
            "文件多半没有导出、下载或复制完整，请重新导出一份"
        )
    return Unreadable(number, f"{where}{reason}")
