"""The lines of a text file of a few possible encodings, numbered, with what is wrong in them."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator
from functools import partial
import re
from typing import BinaryIO

from ..errors import ImportFileError
from .found import Unreadable

LINE_LIMIT = 1 << 20
"""Longest line that is read, in bytes; QQ's own messages have a few thousand characters."""

_LAST = 6
"""The lines with which a chat begins in old QQ's exports, and the one before."""
_READ_BYTES = 1 << 18
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNMARKED = ("gb18030", "utf-16-le", "utf-16-be")
_TELLING = "消息"
_BEGINNING = 256
"""Where that word stands in most exports that come in several encodings. Its bytes in these
are never part of UTF-8."""
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_ASCII = bytes(range(128))
_FOUR_OF_UTF8 = re.compile(rb"(?:[\xe1-\xef][\x80-\xbf]{2}[\x00-\x7f]*){4,}")


def encoding_of(head: bytes) -> str:
    """Tell by the byte order mark, by the encoding of the telling word, else by the bytes."""
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    for encoding in _UNMARKED:
        if _TELLING.encode(encoding) in head[:_BEGINNING]:
            return encoding
    if head.startswith(codecs.BOM_UTF8) or _TELLING.encode() in head[:_BEGINNING]:
        return "utf-8"
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 8 > len(head) and min(even, odd) * 8 < max(even, odd):
        return "utf-16-le" if odd > even else "utf-16-be"
    return "gb18030" if _is_gbk(head) else "utf-8"


def decoded(head: bytes) -> str:
    """The beginning of a file as text without its byte order mark."""
    return head.decode(encoding_of(head), "replace").removeprefix("\ufeff")


def _is_gbk(raw: bytes) -> bool:
    """Whether bytes are text in GBK or GB18030, and most of what is not ASCII no UTF-8."""
    foreign = sum(map(len, _NOT_ASCII.findall(raw)))
    if foreign < 4 or raw.decode("utf-8", "replace").count("\ufffd") * 4 <= foreign:
        return False
    try:
        codecs.getincrementaldecoder("gb18030")().decode(raw)
    except UnicodeDecodeError:
        return False
    return True


class TextLines:
    """Iterates over `(number, line)` without line ends; `trouble` gathers what was wrong.

    Raises ImportFileError where the encoding changes, and where the file ends inside a character:
    it is not one file then, or not all of it.
    """

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self.trouble: list[Unreadable] = []
        self.open_end: int | None = None
        """The last line, once it is there, where no line break is behind it."""
        self._last: deque[str] = deque(maxlen=_LAST)
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
                    text = self._text(raw, encoding)
                    self._last.append(text)
                    if not ended:
                        self.open_end = self._number
                    yield self._number, text
                else:
                    self._note("这一行太长，不像聊天记录，没有读")
            whole = ended

    def end(self) -> list[str]:
        """The last lines of the file; an empty one behind its last line break."""
        return [*self._last, *([""] if self.open_end is None else [])]

    def cut_off(self) -> ImportFileError:
        """For a file whose end is not one."""
        return ImportFileError(
            f"文件像是没有写完，到第 {self._number} 行就断了：请重新导出一份，或重新下载、复制"
        )

    def _note(self, reason: str) -> None:
        self.trouble.append(Unreadable(self._number, reason))

    def _text(self, raw: bytes, encoding: str) -> str:
        ended = raw.endswith(b"\n")
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        if encoding == "utf-8":
            try:
                # Half an emoji is not valid, but some exporters write it.
                return raw.decode(encoding, "surrogatepass")
            except UnicodeDecodeError as error:
                if not ended and error.reason == "unexpected end of data":
                    raise self._ends_early() from None
            if _is_gbk(raw) or raw.count(0) * 4 > len(raw):
                raise self._changes()
        else:
            if _FOUR_OF_UTF8.fullmatch(raw.lstrip(_ASCII)):
                raise self._changes()
            try:
                return raw.decode(encoding)
            except UnicodeDecodeError as error:
                if not ended and error.reason == "incomplete multibyte sequence":
                    raise self._ends_early() from None
        self._note("有认不出的字节，读成了 �")
        return raw.decode(encoding, "replace")

    def _changes(self) -> ImportFileError:
        return ImportFileError(
            f"第 {self._number} 行换了文字编码，前面是 {self._encoding.upper()}："
            "文件多半是拼起来的，或者另存的时候弄坏了，请重新导出一份"
        )

    def _ends_early(self) -> ImportFileError:
        return ImportFileError(
            f"第 {self._number} 行在一个字的中间断了：文件没有导出、下载或复制完整，请重新导出一份"
        )

    def _recoded(self) -> Iterator[bytes]:
        """UTF-16 as lines of UTF-8, or as long parts of a line that never seems to end."""
        decoder = codecs.getincrementaldecoder(self._encoding)("replace")
        rest = ""
        while data := self._file.read(_READ_BYTES):
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            for line in lines:
                yield f"{line}\n".encode("utf-8", "surrogatepass")
            if len(rest) >= LINE_LIMIT:
                yield rest.encode("utf-8", "surrogatepass")
                rest = ""
        if decoder.getstate()[0]:
            self._number += 1
            raise self._ends_early()
        if rest:
            yield rest.encode("utf-8", "surrogatepass")
