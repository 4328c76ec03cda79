"""MHT from QQ for Windows up to 9.7: one page with a table row for each message, then pictures."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
import os
import re
from typing import BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import clean_text
from ..capture.segments import to_segments
from ..errors import ImportFileError
from ..types import Segment
from .found import HEAD_BYTES, Found, FoundMessage, Unreadable
from .qq_chats import QqChat
from .qq_headings import SYSTEM_IDS, ChatStart, speaker
from .text_lines import decoded, encoding_of
from .wall_clock import WallClock

ROW_LIMIT = 1 << 22
"""Longest row that is read, in characters; its pictures stand elsewhere."""

_READ_BYTES = 1 << 18
_TAIL_BYTES = 1 << 12
_MOST_UNKNOWN = 8
"""Characters of a row that may be unreadable; with more it is in another encoding."""
_START = re.compile(r"\s*From: <Save by Tencent MsgMgr>")
_BOUNDARY = re.compile(r'boundary="([^"\n]{1,200})"')
_ENCODED = re.compile(r"content-transfer-encoding:\s*(quoted-printable|base64)", re.I)
_ROW_END = re.compile(r"</tr\s*>", re.I)
_DAY = re.compile("日期[:：]")
_DATE = re.compile(r"日期[:：]\s*(\d{4})[-/.](\d\d?)[-/.](\d\d?)", re.ASCII)
_TIME = re.compile(
    r"(?P<before>[AaPp][Mm]|上午|下午)?\s*(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d)"
    r"\s*(?P<after>[AaPp][Mm]|上午|下午)?",
    re.ASCII,
)
_MORNING = frozenset({"am", "上午"})
_FOLDER, _CHAT = re.compile("消息分组[:：]"), re.compile("消息对象[:：]")


class QqMht:
    name = "qq-mht"
    title = "QQ 电脑版（9.7 及更早）导出的 MHT 文件"

    def recognises(self, head: bytes) -> bool:
        return _START.match(decoded(head)) is not None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        page = _Page(file, zone)
        for line, row in _rows(file):
            yield from page.take(line, row)
        yield from page.end()


class _Page:
    """The rows in their order: which chat, which day, who said what."""

    def __init__(self, file: BinaryIO, zone: ZoneInfo) -> None:
        self._zone = zone
        self._folder = ""
        self._date: tuple[int, int, int] | None = None
        self._clock = WallClock(zone)
        self._chat = QqChat(ChatStart("", ""))

    def take(self, line: int, text: str | None) -> Iterator[Found]:
        if text is None:
            yield Unreadable(line, "这一行太长，不像聊天记录，没有读")
            return
        if text.count("\ufffd") > _MOST_UNKNOWN:
            raise ImportFileError(
                f"第 {line} 行换了文字编码：文件多半是拼起来的，或者存坏了，请重新导出一份"
            )
        row = _Row(text)
        if row.who is not None:
            yield from self._chat.found(self._message(line, row))
        elif _DAY.match(row.outside.strip()):
            # After a day that cannot be read nothing is known to be of the one before.
            date = _DATE.fullmatch(row.outside.strip())
            self._date = (int(date[1]), int(date[2]), int(date[3])) if date else None
        elif found := _FOLDER.match(row.heading):
            self._folder = row.heading[found.end() :].strip()
        elif found := _CHAT.match(row.heading):
            yield from self._chat.end()
            self._chat = QqChat(ChatStart(self._folder, row.heading[found.end() :].strip()))
            self._date, self._clock = None, WallClock(self._zone)

    def end(self) -> Iterator[Found]:
        yield from self._chat.end()

    def _message(self, line: int, row: _Row) -> FoundMessage | Unreadable:
        at = self._instant(row.time)
        if at is None:
            return Unreadable(line, "没有能用的时间")
        who = (row.who or "").strip()
        # A row without a name is one of QQ's own.
        user_id, name = speaker(who) if who else (None, "系统消息")
        if not name:
            return Unreadable(line, "没有写是谁说的")
        return FoundMessage(
            line=line,
            time=at,
            user_id=user_id,
            name=name,
            segments=to_segments(row.segments()),
            system=not who or user_id in SYSTEM_IDS,
        )

    def _instant(self, text: str) -> datetime | None:
        found = _TIME.fullmatch(text.strip())
        if found is None or self._date is None:
            return None
        hour, half = int(found["hour"]), found["before"] or found["after"]
        if half is not None:
            hour = hour % 12 + (0 if half.lower() in _MORNING else 12)
        try:
            local = datetime(*self._date, hour, int(found["minute"]), int(found["second"]))  # noqa: DTZ001
        except ValueError:
            return None
        if not 1999 <= local.year < 2100:
            return None
        # A message may have come late: the page keeps the order in which they arrived.
        instant = self._clock.read(local) or local.replace(tzinfo=self._zone).astimezone(UTC)
        self._clock = self._clock.at(local, instant)
        return instant


class _Row(HTMLParser):
    """One row of the table: a date, a heading, or a message with its speaker."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.outside = ""
        """What stands in the cell itself."""
        self.time = ""
        self.who: str | None = None
        """Whoever said it; None where the row is no message."""
        self._depth = self._blocks = 0
        self._said: list[Segment] = []
        self.feed(text)
        self.close()

    @property
    def heading(self) -> str:
        """What a row says that is no message."""
        return self.time.strip()

    def segments(self) -> list[Segment]:
        """What was said, trimmed as QQ's own text export has it."""
        said = self._said
        while said and said[-1]["type"] == "text" and not said[-1]["data"]["text"].strip("\n"):
            said.pop()
        return said

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div":
            self._depth += 1
            if self._depth == 1:
                self._blocks += 1
            elif self._blocks == 1 and self.who is None:
                self.who = ""
        elif tag == "br" and self._blocks > 1:
            self._add("\n")
        elif tag == "img" and self._blocks > 1:
            source = dict(attrs).get("src") or ""
            self._said.append({"type": "image", "data": {"file": clean_text(source)}})

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            self._depth = max(0, self._depth - 1)

    def handle_data(self, data: str) -> None:
        text = data.replace("\r", "").replace("\n", "").replace("\xa0", " ")
        if not self._depth:
            self.outside += text
        elif self._blocks > 1:
            self._add(text)
        elif self._depth > 1 and self.who is not None:
            self.who += text
        else:
            self.time += text

    def _add(self, text: str) -> None:
        if self._said and self._said[-1]["type"] == "text":
            self._said[-1]["data"]["text"] += text
        elif text:
            self._said.append({"type": "text", "data": {"text": text}})


def _rows(file: BinaryIO) -> Iterator[tuple[int, str | None]]:
    """The rows of the page with the lines where they begin; None for one that has no end."""
    head = file.read(HEAD_BYTES)
    encoding = encoding_of(head)
    boundary = _boundary(file, decoded(head))
    file.seek(0)
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    text = _after_headers(decoder.decode(file.read(HEAD_BYTES)), boundary)
    end, line, lost = f"\n--{boundary}", 1 + decoded(head).count("\n") - text.count("\n"), False
    while True:
        at = text.find(end)
        *rows, rest = _ROW_END.split(text if at < 0 else text[:at])
        for row in rows:
            yield line, None if lost else row
            line, lost = line + row.count("\n"), False
        if at >= 0:
            return
        if len(rest) > ROW_LIMIT:
            line, rest, lost = line + rest.count("\n"), rest[-len(end) :], True
        data = file.read(_READ_BYTES)
        if not data:
            raise ImportFileError("这个 MHT 文件里的网页没有结束：没有复制完整，请重新导出一份")
        text = rest + decoder.decode(data)


def _boundary(file: BinaryIO, head: str) -> str:
    """What parts the file, checked to stand at its end as well."""
    found = _BOUNDARY.search(head)
    if found is None:
        raise ImportFileError("这个 MHT 文件的开头不完整，没有写各部分怎样分开")
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    tail, end = file.read(), f"--{found[1]}--"
    if not any(end.encode(one) in tail for one in ("utf-8", "utf-16-le", "utf-16-be")):
        raise ImportFileError("这个 MHT 文件没有结尾：没有导出、下载或复制完整，请重新导出一份")
    return found[1]


def _after_headers(text: str, boundary: str) -> str:
    """What follows the headers of the first part, which is the page."""
    text = text.replace("\r\n", "\n")
    headers, _, page = text.partition(f"\n--{boundary}\n")[2].partition("\n\n")
    if _ENCODED.search(headers):
        raise ImportFileError("这个 MHT 文件被别的程序改写过（不是 7bit），请用 QQ 重新导出一份")
    return page
