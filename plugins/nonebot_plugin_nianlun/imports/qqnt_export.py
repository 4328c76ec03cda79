"""What QQNT_Export writes, as text or as JSON: local time, no message ids, one chat a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
import os
from pathlib import Path
import re
from typing import BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import NAME_LIMIT, clean_name, clean_text
from ..capture.events import id_text
from ..capture.segments import to_segments
from ..errors import ImportFileError
from ..types import ME, Segment
from .cut_off import PADDED, begins_time
from .found import HEAD_BYTES, Found, FoundChat, FoundMessage, Unreadable
from .json_stream import JsonStream
from .qq_drafts import Draft, Drafts
from .qq_headings import Heading
from .qqnt_elements import (
    CARD,
    CUT_CARD,
    CUT_CARD_TEXT,
    NOTICE,
    QUOTED,
    begins_label,
    is_label,
    labelled,
)
from .text_lines import TextLines, decoded, encoding_of
from .wall_clock import WallClock

_TIME = r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
_HEADING = re.compile(f"{_TIME} (.+)", re.ASCII | re.DOTALL)
_TEXT = re.compile(rf"\s*{_TIME} [^\n]*\n([^\n]*)\n([^\n]*)", re.ASCII)
_JSON = re.compile(
    rf'\s*\[\s*\{{\s*"time"\s*:\s*"{_TIME}"\s*,\s*"(?:direction|sender)"\s*:', re.ASCII
)
_FORMAT = "%Y-%m-%d %H:%M:%S"
_SENT, _RECEIVED = frozenset({"发", "转发"}), frozenset({"收", "未知"})
_SIDES = _SENT | _RECEIVED
_ME, _PEER = "我", "对方"
_KNOWN = 10_000
"""Most names that are kept in mind."""


class QqntText:
    name = "qqnt-text"
    title = "QQNT_Export 导出的文本文件"

    def recognises(self, head: bytes) -> bool:
        found = _TEXT.match(decoded(head))
        return found is not None and is_label(found[2].rstrip("\r"), found[3].rstrip("\r"))

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        head = file.read(HEAD_BYTES)
        file.seek(0)
        lines = TextLines(file, encoding_of(head))
        drafts = Drafts(zone)
        people: _People | None = None
        for number, line, opens in _with_headings(lines):
            if people is None and opens is not None:
                people = _People(file, private=opens.name in _SIDES)
                yield people.chat
            yield from lines.trouble
            lines.trouble.clear()
            if people is not None and opens is not None and not people.may_be(opens.name):
                opens = None
            for draft in drafts.feed(number, line, opens):
                yield _drafted(draft, people)
        *_, last = lines.end()
        if begins_label(last) or _ends_in_heading(lines.end(), drafts):
            raise lines.cut_off()
        yield from lines.trouble
        for draft in drafts.end():
            yield _drafted(draft, people)


class QqntJson:
    name = "qqnt-json"
    title = "QQNT_Export 导出的 JSON 文件"

    def recognises(self, head: bytes) -> bool:
        return _JSON.match(decoded(head)) is not None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        stream = JsonStream(file)
        people: _People | None = None
        clock = WallClock(zone)
        if stream.peek() != "[":
            raise ImportFileError("这个 JSON 文件不是 QQNT_Export 的聊天记录")
        for number, _ in enumerate(stream.items(), 1):
            line, raw = stream.line(), stream.value()
            place = f"第 {number} 条"
            if not isinstance(raw, dict):
                yield Unreadable(line, f"{place}不是一条消息")
                continue
            if people is None:
                people = _People(file, private="direction" in raw)
                yield people.chat
            local = _local(raw.get("time"))
            if local is None:
                yield Unreadable(line, f"{place}没有能用的时间（time）")
                continue
            instant = clock.read(local) or WallClock(zone).read(local)
            assert instant is not None  # a clock that shows nothing yet takes any time
            clock = clock.at(local, instant)
            who = people.of(raw.get("direction") or raw.get("sender"), raw.get("sender_qq"))
            if who is None:
                yield Unreadable(line, f"{place}没有写是谁说的")
                continue
            yield _message(line, instant, who, _pairs(raw.get("contents")))
        stream.finish()


class _People:
    """Whose chat it is and who says what; the exporter names the file by the other one."""

    def __init__(self, file: BinaryIO, *, private: bool) -> None:
        self._private = private
        name = getattr(file, "name", None)
        stem = Path(os.fspath(name)).stem if isinstance(name, str | Path) else ""
        self._name = clean_name(stem)
        self.chat = FoundChat("private" if private else "group", self._name or None)

    def may_be(self, name: str) -> bool:
        """Between two people nobody but these speaks."""
        return not self._private or name in _SIDES

    def of(self, who: object, number: object = None) -> tuple[str | None, str] | None:
        """The user id and the name of whoever a message is by."""
        name, user_id = clean_name(who), id_text(number)
        if self._private and name in _SENT:
            return ME, _ME
        if self._private and name in _RECEIVED:
            return None, self._name or _PEER
        if (user_id or "").lower() == ME:
            return None
        return (user_id, name or user_id or "") if name or user_id else None


def _with_headings(lines: TextLines) -> Iterator[tuple[int, str, Heading | None]]:
    """A heading has a blank line before it, and after it the label of an element.

    One without elements is followed by nothing: that can only be told by whoever spoke before.
    """
    held: deque[tuple[int, str]] = deque()
    known: dict[str, None] = {}
    blank = True
    for item in chain(lines, [(0, ""), (0, "")]):
        held.append(item)
        if len(held) < 3:
            continue
        number, line = held.popleft()
        opens = _heading(line) if blank else None
        if opens is not None:
            if is_label(held[0][1], held[1][1]):
                if len(known) < _KNOWN:
                    known[opens.name] = None
            elif held[0][1] not in ("", "None") or opens.name not in (known.keys() | _SIDES):
                opens = None
        blank = not line
        yield number, line, opens


def _ends_in_heading(lines: Sequence[str], drafts: Drafts) -> bool:
    """Whether the file ends before what stands between a heading and somebody's words."""
    above, before, last = ["", "", *lines][-3:]
    if not before:
        opens = _heading(last)
        return begins_time(last, PADDED) if opens is None else drafts.is_of_a_stranger(opens)
    opens = None if above else _heading(before)
    if opens is None:
        return False
    if not last:
        return drafts.is_of_a_stranger(opens)
    return drafts.may_follow(opens) and (last.startswith("[") or "None".startswith(last))


def _heading(line: str) -> Heading | None:
    found = _HEADING.fullmatch(line)
    local = _local(found[1]) if found else None
    return None if found is None or local is None else Heading(local, None, clean_name(found[2]))


def _local(written: object) -> datetime | None:
    try:
        return datetime.strptime(written, _FORMAT) if isinstance(written, str) else None  # noqa: DTZ007
    except ValueError:
        return None


def _drafted(draft: Draft, people: _People | None) -> FoundMessage | Unreadable:
    who = None if people is None else people.of(draft.heading.name)
    if who is None:
        return Unreadable(draft.number, "没有写是谁说的")
    if draft.cut:
        return Unreadable(draft.number, "这条消息太长，没有读")
    return _message(draft.number, draft.instant, who, _elements(draft.text().split("\n")))


def _elements(lines: Sequence[str]) -> list[tuple[str, str]]:
    """The labels with the text below each; what stands above the first is passed over.

    An element that the exporter does not know is `None` twice, and a card two cut characters.
    """
    found: list[tuple[str, list[str]]] = []
    pairs = zip(lines, (*lines[1:], ""), strict=True)
    for line, after in pairs:
        if after == "None" and line in ("None", QUOTED):
            next(pairs)
        elif after == CUT_CARD_TEXT and line.endswith(CUT_CARD) and is_label(line, after):
            next(pairs)
            found.append((line.removesuffix(CUT_CARD) + CARD, []))
        elif is_label(line, after):
            found.append((line, []))
        elif found:
            found[-1][1].append(line)
    return [(label, "\n".join(text)) for label, text in found]


def _pairs(contents: object) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for pair in contents if isinstance(contents, list) else ():
        if isinstance(pair, str) and pair.startswith(CARD):
            pairs.append((CARD, pair.removeprefix(CARD)))
        elif isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str):
            pairs.append((pair[0], pair[1] if isinstance(pair[1], str) else ""))
    return pairs


def _message(
    line: int, at: datetime, who: tuple[str | None, str], elements: list[tuple[str, str]]
) -> FoundMessage:
    own = [(label, text) for label, text in elements if not label.startswith(QUOTED)]
    segments: list[Segment] = [one for pair in own if (one := labelled(*map(clean_text, pair)))]
    return FoundMessage(
        line=line,
        time=at,
        user_id=who[0],
        name=who[1][:NAME_LIMIT],
        segments=to_segments(segments),
        system=bool(own) and all(label == NOTICE for label, _ in own),
    )
