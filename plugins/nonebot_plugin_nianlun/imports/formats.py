"""Which reader a file is for: told by its content, never by its name."""

from __future__ import annotations

import re
from typing import BinaryIO

from ..errors import ImportFileError
from .found import HEAD_BYTES, Reader
from .native import Native
from .qce_json import CHUNKED, V4, QceJson
from .qq_text import QqText
from .text_lines import decoded

READERS: tuple[Reader, ...] = (Native(), QceJson(), QqText())
AUTO = "auto"
"""What `--format` takes for: see for yourself."""

# What a person may well try, by how it begins, so that the answer can say what it is.
_KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"PK\x03\x04|\x1f|7z|Rar!"), "这是压缩包或表格，请先解压，或导出成别的格式"),
    (re.compile(r"SQLite "), "这是数据库文件，还不能导入"),
    (re.compile(r"<!doctype|<html", re.I), "这是网页，还不能导入；请导出成文本或 JSON"),
    (
        re.compile(r"From: <Save by Tencent MsgMgr>"),
        "这是 QQ 电脑版导出的 MHT，还不能导入；导出时请选文本文件（*.txt）",
    ),
    (
        re.compile(r"\[QQChatExporter"),
        "这是 qq-chat-exporter 导出的文本，还不能导入；请重新导出成单个 JSON 文件",
    ),
    (
        re.compile(
            r'(?s)\{\s*"metadata"\s*:\s*\{(?:[^{}]*"QQChatExporter V4|'
            r'.*"messages"\s*:\s*\[\s*\{\s*"messageId")'
        ),
        V4,
    ),
    (re.compile(r'(?s)\{\s*"metadata"\s*:\s*\{.*"format"\s*:\s*"chunked-jsonl"'), CHUNKED),
    (re.compile(r'\{"id"\s*:\s*"\d+"\s*,\s*"seq"\s*:.*"sender"'), CHUNKED),
    (re.compile(r'\{\s*"chatlab"\s*:'), "这是 ChatLab 的 JSON，还不能导入"),
    (re.compile(r'(?:#[^\n]*\n\s*)*\{[^\n]*"_type"'), "这是 ChatLab 的 JSON Lines，还不能导入"),
    (
        re.compile(
            r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [^\n]*\n\[[^\n]*\]|\[\s*\{[^{}]*"contents"\s*:'
        ),
        "这是 QQNT_Export 导出的文件，还不能导入",
    ),
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
    for pattern, answer in _KNOWN:
        if pattern.match(text):
            raise ImportFileError(answer)
    raise ImportFileError(f"认不出这是什么文件。能导入的有：{_listed()}")


def _listed() -> str:
    return "；".join(f"{reader.title}（--format {reader.name}）" for reader in READERS)
