"""qq-chat-exporter's text: blocks of 名字 / 时间 / 内容 in local time, without ids."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime
import re
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import clean_name, clean_text
from ..capture.segments import to_segments
from ..errors import ImportFileError
from ..types import Segment
from .found import HEAD_BYTES, Found, FoundChat, FoundMessage, Unreadable
from .qce_elements import mapped
from .qce_flat import flat_segments
from .qq_drafts import Draft, Drafts
from .qq_headings import Heading
from .text_lines import TextLines, decoded, encoding_of

_START = re.compile(r"\s*\[QQChatExporter")
_KIND = {"群聊": "group", "私聊": "private", "临时会话": "private"}
_TIME = re.compile(
    r"时间: (\d{4})[-/](\d\d?)[-/](\d\d?)[ T](\d\d?):(\d\d):(\d\d)(?:\.\d+)?\s*", re.ASCII
)
_TITLE = re.compile(r"\[[^\[\]]{1,20}\] (?=\S)")
_TOTAL = re.compile(r"总计导出 (\d+) 条消息", re.ASCII)
_FOOTER = (
    re.compile("={10,}"),
    re.compile(r"\s+导出完成\s*"),
    re.compile("={10,}"),
    _TOTAL,
    re.compile("导出时间: .*"),
)
_RESOURCES = re.compile(r"资源: (\d+) 个文件", re.ASCII)
_SPARE = 8
"""As many blank lines may follow the last one."""
_NOTHING = "[无文本内容]"
_SYSTEM = "系统消息"
"""Whose name stands above what nobody has said."""
_ANSWER = "[回复消息]"
_FORWARD = re.compile(r"\[转发消息(?:: \d+条)?\]((?:\n  .*)*)", re.ASCII)

Element = dict[str, Any]

_Line = tuple[int, str]


class QceText:
    name = "qce-text"
    title = "qq-chat-exporter 导出的文本文件"

    def recognises(self, head: bytes) -> bool:
        return _START.match(decoded(head)) is not None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        head = file.read(HEAD_BYTES)
        file.seek(0)
        lines = TextLines(file, encoding_of(head))
        reading = _Reading(lines)
        drafts = Drafts(zone)
        chat, count = None, 0
        for number, line, opens in reading:
            if chat is None:
                if opens is None:
                    continue
                chat = reading.chat()
                yield chat
            yield from lines.trouble
            lines.trouble.clear()
            for draft in drafts.feed(number, line, opens):
                count += 1
                yield _message(draft)
        if chat is None:
            yield reading.chat()
        for draft in drafts.end():
            count += 1
            yield _message(draft)
        yield from lines.trouble
        if reading.total != count:
            told = f"文件说有 {reading.total} 条消息，读出来 {count} 条：可能有一条的内容写得像开头"
            yield Unreadable(reading.last, told)


class _Reading:
    """Iterates over `(number, line, heading)`, the heading None for what is none.

    A heading is a line after two blank ones that ends with a colon and is followed by a time.
    """

    def __init__(self, lines: TextLines) -> None:
        self.total = 0
        """What the last lines of the file say that it has."""
        self.last = 0
        self._lines = lines
        self._blanks = 0
        self._above: dict[str, str] = {}

    def __iter__(self) -> Iterator[tuple[int, str, Heading | None]]:
        held: deque[_Line] = deque()
        for item in self._lines:
            held.append(item)
            if len(held) > len(_FOOTER) + _SPARE:
                yield self._next(held)
        while held and not held[-1][1].strip():
            held.pop()
        footer = [held.pop() for _ in range(min(len(held), len(_FOOTER)))][::-1]
        while held:
            yield self._next(held)
        self._end(footer)

    def _next(self, held: deque[_Line]) -> tuple[int, str, Heading | None]:
        number, line = held.popleft()
        opens = _heading(line, held[0][1]) if self._blanks >= 2 and held else None
        self._blanks = 0 if line else self._blanks + 1
        self._note(line)
        return number, line, opens

    def _end(self, footer: list[_Line]) -> None:
        if len(footer) != len(_FOOTER) or not all(
            shape.fullmatch(line) for shape, (_, line) in zip(_FOOTER, footer, strict=True)
        ):
            raise ImportFileError(
                "文件末尾没有「导出完成」：没有导出、下载或复制完整，请重新导出一份"
            )
        found = _TOTAL.fullmatch(footer[3][1])
        self.total, self.last = int(found[1]) if found else 0, footer[-1][0]

    def _note(self, line: str) -> None:
        key, colon, value = line.partition(": ")
        if colon and len(self._above) < 10:
            self._above.setdefault(key, value)

    def chat(self) -> FoundChat:
        """Raises ImportFileError where it is not said which chat it is."""
        kind = _KIND.get(self._above.get("聊天类型", ""))
        if kind is None:
            raise ImportFileError("文件开头没有写聊天类型，不知道是哪种会话")
        name = clean_name(self._above.get("聊天名称")) or None
        return FoundChat("group" if kind == "group" else "private", name)


def _heading(line: str, after: str) -> Heading | None:
    time = _TIME.fullmatch(after) if line.endswith(":") else None
    if time is None:
        return None
    who = line[:-1]
    title = _TITLE.match(who)
    name = clean_name(who[title.end() :] if title else who) or clean_name(who)
    try:
        year, month, day, hour, minute, second = map(int, time.groups())
        local = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001
    except ValueError:
        return None
    return Heading(local, None, name)


def _message(draft: Draft) -> FoundMessage | Unreadable:
    if draft.cut:
        return Unreadable(draft.number, "这条消息太长，没有读")
    if not draft.heading.name:
        return Unreadable(draft.number, "没有写是谁说的")
    return FoundMessage(
        line=draft.number,
        time=draft.instant,
        user_id=None,
        name=draft.heading.name,
        segments=_segments(draft.lines[1:]),
        system=draft.heading.name == _SYSTEM,
    )


def _segments(lines: list[str]) -> list[Segment]:
    """What was said, without what the exporter adds below it."""
    lines = list(lines)
    while lines and not lines[-1]:
        lines.pop()
    if not lines or not lines[0].startswith("内容: "):
        return []
    lines[0] = lines[0].removeprefix("内容: ")
    _drop_quotation(lines)
    if lines[1:] and lines[-1].startswith("提及: ") and "@" in "\n".join(lines[:-1]):
        lines.pop()
    media = _take_media(lines)
    text = clean_text("\n".join(lines))
    if text == _NOTHING:
        return []
    if forward := _FORWARD.fullmatch(text):
        return to_segments(mapped([_forwarded(forward[1])]))
    return flat_segments(text, media)


def _drop_quotation(lines: list[str]) -> None:
    """Take away what somebody answers to: a mark before it, and who had said what below it."""
    places = [place for place, line in enumerate(lines) if line.startswith("回复: ")]
    below = "\n".join(lines[places[-1] :]).removeprefix("回复: ") if places else ""
    if lines[0].startswith(_ANSWER):
        lines[0] = lines[0].removeprefix(_ANSWER)
    elif places and lines[0].startswith("[回复 "):
        text = _without_quoted("\n".join(lines[: places[-1]]), below)
        if text is None:
            return
        lines[: places[-1]] = text.split("\n")
        places = [len(lines) - below.count("\n") - 1]
    else:
        return
    del lines[places[-1] if places else len(lines) :]


def _without_quoted(text: str, below: str) -> str | None:
    """Versions before the sixth have the quoted words in the text as well."""
    for dash in re.finditer(" - ", below):
        whole = f"[回复 {below[: dash.start()]}: {below[dash.end() :]}]"
        if text.startswith(whole):
            return text.removeprefix(whole).removeprefix("\n")
    return None


def _take_media(lines: list[str]) -> list[Element]:
    """The files that a message has, which are told in lines of their own after it."""
    for place in range(len(lines) - 1, 0, -1):
        found = _RESOURCES.fullmatch(lines[place])
        if found and len(lines) - 1 - place == int(found[1]):
            listed = [line.removeprefix("  - ").partition(": ") for line in lines[place + 1 :]]
            del lines[place:]
            return [{"type": kind, "data": {"filename": name}} for kind, _, name in listed]
        if not lines[place].startswith("  - "):
            break
    return []


def _forwarded(preview: str) -> Element:
    lines = [line.removeprefix("  ") for line in preview.split("\n") if line]
    return {"type": "forward", "data": {"preview": lines}}
