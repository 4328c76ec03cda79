"""Which reader a file is for: told by its content, never by its name."""

from __future__ import annotations

from pathlib import Path
import re
from typing import BinaryIO

from ..errors import ImportFileError
from .chatlab import ChatLab
from .found import HEAD_BYTES, Reader
from .mht import QqMht
from .native import Native
from .qce_chunks import MANIFEST, QceChunks, is_chunk
from .qce_json import QceJson
from .qce_text import QceText
from .qq_text import QqText
from .qqnt_database import QqntDb
from .qqnt_export import QqntJson, QqntText
from .text_lines import decoded

READERS: tuple[Reader, ...] = (
    Native(),
    QceJson(),
    QceChunks(),
    QceText(),
    QqText(),
    QqMht(),
    QqntDb(),
    QqntText(),
    QqntJson(),
    ChatLab(),
)
AUTO = "auto"
"""What `--format` takes for: see for yourself."""

# What a person may well try, by how it begins, so that the answer can say what it is.
_KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"PK\x03\x04|\x1f|7z|Rar!"), "这是压缩包或表格，请先解压，或导出成别的格式"),
    (re.compile(r"SQLite header 3\0"), "这个数据库还没有解密，请先解密再导入"),
    (re.compile(r"<!doctype|<html", re.I), "这是网页，不能导入；请导出成文本或 JSON"),
)


def choose(name: str, file: BinaryIO) -> Reader:
    """The reader of that name, or for `auto` the one that recognises the file's beginning.

    Leaves the file at its start. Raises ImportFileError when there is no such reader, or when the
    file is in none of the formats; then it says what can be read.
    """
    if name == AUTO:
        head = file.read(HEAD_BYTES)
        file.seek(0)
        return detect(head)
    for reader in READERS:
        if reader.name == name:
            return reader
    raise ImportFileError(f"没有叫 {name} 的格式。能导入的有：{_listed()}")


def detect(head: bytes) -> Reader:
    """The reader that recognises a file which begins so. Raises ImportFileError for none."""
    for reader in READERS:
        if reader.recognises(head):
            return reader
    text = decoded(head).lstrip(" \t\r\n")
    if not text:
        raise ImportFileError("文件是空的")
    if is_chunk(text):
        raise ImportFileError(
            f"这是 qq-chat-exporter 分块导出里的一块，请导入它上一层的 {MANIFEST} 或那个文件夹"
        )
    for pattern, answer in _KNOWN:
        if pattern.match(text):
            raise ImportFileError(answer)
    raise ImportFileError(f"认不出这是什么文件。能导入的有：{_listed()}")


def file_in(folder: Path) -> Path | None:
    """The file with which an export begins that is a folder; None where there is none."""
    manifest = folder / MANIFEST
    return manifest if manifest.is_file() else None


def _listed() -> str:
    return "；".join(f"{reader.title}（--format {reader.name}）" for reader in READERS)
