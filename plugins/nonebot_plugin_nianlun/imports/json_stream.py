"""A JSON document read value by value, so that a file of any size takes little memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
import json
import re
from typing import Any, BinaryIO

from ..errors import ImportFileError

READ_BYTES = 1 << 18
VALUE_LIMIT = 1 << 26
"""Longest single value, in characters; far beyond any message."""

_SPACE = re.compile(r"[ \t\n\r]*")
_PARTIAL = 16
"""An error this near to the end of what was read may only mean that more must be read: no
literal, no escape and no piece of a number is longer."""


def _whole_number(digits: str) -> int | None:
    """Python refuses to read integers of thousands of digits; no field has a use for them."""
    return int(digits) if len(digits) < 100 else None


_decode = json.JSONDecoder().raw_decode
_decode_any_number = json.JSONDecoder(parse_int=_whole_number).raw_decode


class JsonStream:
    """Walks a document: `members` of an object, `items` of an array, `value` or `skip` of each.

    Whoever walks takes exactly one value for each key or item before going on. Raises
    ImportFileError, naming line and byte, where the document is broken or ends too early.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encoding = "utf-8"
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._bytes = 0
        self._ended = False
        self._line = 1
        self._counted = 0

    def line(self) -> int:
        """The line, from 1, of what comes next."""
        self.peek()
        return self._line_at()

    def peek(self) -> str:
        """The next character that is not white space; "" at the end of the file."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._read_on()

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next."""
        self._take("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._broken()
            self._take(":")
            yield key
            if self._closed("}"):
                return

    def items(self) -> Iterator[None]:
        """One step for each item of the array that comes next."""
        self._take("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield
            if self._closed("]"):
                return

    def value(self) -> Any:
        """Parse the value that comes next."""
        decode = _decode
        self.peek()
        while True:
            try:
                value, end = decode(self._text, self._at)
            except json.JSONDecodeError as error:
                unfinished = error.msg.startswith("Unterminated string")
                if self._ended or not (unfinished or error.pos >= len(self._text) - _PARTIAL):
                    self._at = len(self._text) if unfinished else error.pos
                    raise self._broken() from None
            except RecursionError:
                raise self._broken("括号套得太深") from None
            except ValueError:
                decode = _decode_any_number
                continue
            else:
                # A number near the end of the text may go on in what is not read yet.
                if end < len(self._text) - _PARTIAL or self._ended:
                    self._at = end
                    return value
            self._read_on()

    def skip(self) -> None:
        """Pass over the value that comes next, keeping at most one member of it."""
        first = self.peek()
        steps = self.members() if first == "{" else self.items() if first == "[" else [None]
        for _ in steps:
            self.value()

    def finish(self) -> None:
        """Check that nothing follows."""
        if self.peek():
            raise self._broken("后面还有多余的内容")

    def _closed(self, bracket: str) -> bool:
        if self.peek() == bracket:
            self._at += 1
            return True
        self._take(",")
        return False

    def _take(self, sign: str) -> None:
        if self.peek() != sign:
            raise self._broken()
        self._at += 1

    def _read_on(self) -> None:
        rest = len(self._text) - self._at
        if rest > VALUE_LIMIT:
            raise self._broken("一个值长得不像聊天记录")
        # As much again as is left over: else a long value would be parsed from its start too often.
        data = self._file.read(max(READ_BYTES, rest))
        self._ended = not data
        if not self._bytes and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self._encoding = "utf-16-le"
            self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._line_at()
        try:
            more = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            self._line += self._text.count("\n", self._at)
            self._line += error.object.count(b"\n", 0, error.start)
            place = self._bytes + len(data) - len(error.object) + error.start
            wrong = f"不是 {self._encoding[:6].rstrip('-').upper()} 编码的文字"
            raise _broken_at(self._line, place, wrong) from None
        self._bytes += len(data)
        self._text = self._text[self._at :] + more
        self._at = self._counted = 0

    def _line_at(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _broken(self, why: str = "") -> ImportFileError:
        left = len(self._text[self._at :].encode(self._encoding, "surrogatepass"))
        place = self._bytes - left - len(self._decoder.getstate()[0])
        if not why:
            cut_off = self._ended and self._at >= len(self._text)
            why = "文件到这里就断了" if cut_off else "不是合格的 JSON"
        return _broken_at(self._line_at(), place, why)


def _broken_at(line: int, place: int, why: str) -> ImportFileError:
    return ImportFileError(
        f"第 {line} 行（第 {place} 字节）读不下去：{why}。"
        "文件多半没有导出、下载或复制完整，请重新导出一份"
    )
