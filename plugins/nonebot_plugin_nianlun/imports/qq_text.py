"""Text from QQ for Windows up to 9.7: local time, no message ids, one or many chats in a file."""

from __future__ import annotations

from collections.abc import Iterator
import re
from typing import BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import clean_name, clean_text
from .cut_off import HOURS_12, HOURS_24, begins_time, ends_in_chat_start
from .found import HEAD_BYTES, Found, FoundMessage, Unreadable
from .qq_chats import QqChat
from .qq_drafts import Draft, Drafts
from .qq_headings import (
    SYSTEM_IDS,
    ChatStart,
    Heading,
    has_twelve_hours,
    heading,
    rule_of,
    with_chat_starts,
)
from .text_lines import TextLines, decoded, encoding_of

_START = re.compile(r"\s*(?:消息记录（此消息记录为文本格式|={16,}\s*消息分组[:：])")


class QqText:
    name = "qq-text"
    title = "QQ 电脑版（9.7 及更早）导出的文本文件"

    def recognises(self, head: bytes) -> bool:
        return _START.match(decoded(head)) is not None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        head = file.read(HEAD_BYTES)
        file.seek(0)
        lines = TextLines(file, encoding_of(head))
        twelve_hours, rule = has_twelve_hours(decoded(head)), rule_of(decoded(head))
        chat = _Chat(ChatStart("", ""), zone)
        blank = True
        for number, line in with_chat_starts(
            lines, lambda line: heading(line, twelve_hours=twelve_hours) is not None
        ):
            if lines.trouble:
                yield from lines.trouble
                lines.trouble.clear()
            if isinstance(line, ChatStart):
                chat.drafts.drop_banner()
                yield from chat.end()
                chat, blank = _Chat(line, zone), True
                continue
            opens = heading(line, twelve_hours=twelve_hours) if blank else None
            if number == lines.open_end and blank and chat.may_be_cut(line, opens, twelve_hours):
                raise lines.cut_off()
            blank = not line
            if done := chat.drafts.feed(number, line, opens):
                for draft in done:
                    yield from chat.found(draft)
        if ends_in_chat_start(lines.end(), rule):
            raise lines.cut_off()
        yield from lines.trouble
        yield from chat.end()


class _Chat:
    """One chat of the file with its lines."""

    def __init__(self, start: ChatStart, zone: ZoneInfo) -> None:
        self.drafts = Drafts(zone)
        self._chat = QqChat(start)
        self._name = clean_name(start.name)

    def may_be_cut(self, line: str, opens: Heading | None, twelve_hours: bool) -> bool:
        """Whether the last line of the file is the beginning of a heading."""
        if opens is not None:
            # Between two people the name of the chat is one of theirs, and so is there as a whole.
            return opens.name != self._name and self.drafts.is_of_a_stranger(opens)
        return begins_time(line, HOURS_12 if twelve_hours else HOURS_24)

    def found(self, draft: Draft) -> Iterator[Found]:
        yield from self._chat.found(_message(draft))
        if draft.cut:
            yield Unreadable(draft.number, "这条消息太长，只读了开头")

    def end(self) -> Iterator[Found]:
        for draft in self.drafts.end():
            yield from self.found(draft)
        yield from self._chat.end()
        if orphans := self.drafts.orphans:
            yield Unreadable(orphans[0], f"到第 {orphans[-1]} 行为止，不属于任何一条消息")


def _message(draft: Draft) -> FoundMessage | Unreadable:
    user_id, name = draft.heading.user_id, draft.heading.name
    if not name:
        return Unreadable(draft.number, "没有写是谁说的")
    text = clean_text(draft.text())
    return FoundMessage(
        line=draft.number,
        time=draft.instant,
        user_id=user_id,
        name=name,
        segments=[{"type": "text", "data": {"text": text}}] if text else [],
        system=user_id in SYSTEM_IDS,
    )
