"""The lines of a text file of a few possible encodings, numbered, with what is wrong in them."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from .found import Unreadable

LINE_LIMIT = 1 << 20
"""Longest line that is read, in bytes; QQ's own messages have a few thousand characters."""

_READ_BYTES = 1 << 18
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNMARKED = ("gb18030", "utf-16-le", "utf-16-be")
_TELLING = "消息"
_BEGINNING = 256
"""Where that word stands in every export that comes in several encodings. Its bytes in these
are never part of UTF-8."""


def encoding_of(head: bytes) -> str:
    """Tell by the byte order mark, else by the encoding in which the telling word is there."""
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    for encoding in _UNMARKED:
        if _TELLING.encode(encoding) in head[:_BEGINNING]:
            return encoding
    return "utf-8"


def decoded(head: bytes) -> str:
    """The beginning of a file as text without its byte order mark."""
    return head.decode(encoding_of(head), "replace").removeprefix("\ufeff")


class TextLines:
    """Iterates over `(number, line)` without line ends; `trouble` gathers what was wrong."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self.trouble: list[Unreadable] = []
        self._file = file
        self._encoding = encoding
        self._number = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        wide = self._encoding.startswith("utf-16")
        encoding = "utf-8" if wide else self._encoding
        whole = True
        for raw in self._recoded() if wide else iter(partial(self._file.readline, LINE_LIMIT), b""):
            ended = raw.endswith(b"\n")
            if whole:
                self._number += 1
                if self._number == 1:
                    raw = raw.removeprefix(codecs.BOM_UTF8)
                if ended or len(raw) < LINE_LIMIT:
                    yield self._number, self._text(raw, encoding)
                else:
                    self._note("这一行太长，不像聊天记录，没有读")
            whole = ended

    def _note(self, reason: str) -> None:
        self.trouble.append(Unreadable(self._number, reason))

    def _text(self, raw: bytes, encoding: str) -> str:
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            self._note("有认不出的字节，读成了 �")
            return raw.decode(encoding, "replace")

    def _recoded(self) -> Iterator[bytes]:
        """UTF-16 as lines of UTF-8, or as long parts of a line that never seems to end."""
        decoder = codecs.getincrementaldecoder(self._encoding)("replace")
        rest = ""
        while data := self._file.read(_READ_BYTES):
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            for line in lines:
                yield f"{line}\n".encode()
            if len(rest) >= LINE_LIMIT:
                yield rest.encode()
                rest = ""
        cut = decoder.getstate()[0]
        if rest := rest + decoder.decode(b"", final=True):
            yield rest.encode()
        if cut:
            self._note("文件在一个字的中间断了")
