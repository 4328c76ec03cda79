"""Text from QQ for Windows up to 9.7: local time, no message ids, one or many chats in a file."""

from __future__ import annotations

from collections.abc import Iterator
import re
from typing import BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import clean_text
from ..types import ChatKind
from .found import HEAD_BYTES, Found, FoundChat, FoundMessage, Unreadable
from .qq_drafts import Draft, Drafts
from .qq_headings import SYSTEM_IDS, ChatStart, has_twelve_hours, with_chat_starts
from .text_lines import TextLines, decoded, encoding_of

HELD = 50
"""Most lines of the system that wait for a person's, which tells what kind of chat it is."""

_START = re.compile(r"\s*(?:消息记录（此消息记录为文本格式|={16,}\s*消息分组[:：])")
_PRIVATE_FOLDERS = frozenset({"我的好友", "陌生人", "临时会话"})
_GROUP_FOLDER = re.compile("群|讨论组")


class QqText:
    name = "qq-text"
    title = "QQ 电脑版（9.7 及更早）导出的文本文件"

    def recognises(self, head: bytes) -> bool:
        return _START.match(decoded(head)) is not None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        head = file.read(HEAD_BYTES)
        file.seek(0)
        lines = TextLines(file, encoding_of(head))
        twelve_hours = has_twelve_hours(decoded(head))
        chat = _Chat(ChatStart("", ""), Drafts(zone, twelve_hours=twelve_hours))
        for number, line in with_chat_starts(lines):
            if lines.trouble:
                yield from lines.trouble
                lines.trouble.clear()
            if isinstance(line, ChatStart):
                chat.drafts.drop_banner()
                yield from chat.end()
                chat = _Chat(line, Drafts(zone, twelve_hours=twelve_hours))
            elif done := chat.drafts.feed(number, line):
                for draft in done:
                    yield from chat.found(draft)
        yield from lines.trouble
        yield from chat.end()


class _Chat:
    """One chat of the file; says what kind it is before the first message comes out."""

    def __init__(self, start: ChatStart, drafts: Drafts) -> None:
        self.drafts = drafts
        self._start = start
        self._held: list[Found] | None = []

    def found(self, draft: Draft) -> Iterator[Found]:
        message = _message(draft)
        if self._held is None:
            yield message
        else:
            self._held.append(message)
            if isinstance(message, FoundMessage) and not message.system:
                yield from self._settle(has_ids=message.user_id is not None)
            elif len(self._held) == HELD:
                yield from self._settle(has_ids=False)
        if draft.cut:
            yield Unreadable(draft.number, "这条消息太长，只读了开头")

    def end(self) -> Iterator[Found]:
        for draft in self.drafts.end():
            yield from self.found(draft)
        if self._held:
            yield from self._settle(has_ids=False)
        if orphans := self.drafts.orphans:
            yield Unreadable(orphans[0], f"到第 {orphans[-1]} 行为止，不属于任何一条消息")

    def _settle(self, *, has_ids: bool) -> Iterator[Found]:
        yield FoundChat(self._kind(has_ids), self._start.name or None)
        yield from self._held or ()
        self._held = None

    def _kind(self, has_ids: bool) -> ChatKind:
        folder = self._start.folder
        if folder in _PRIVATE_FOLDERS:
            return "private"
        return "group" if has_ids or _GROUP_FOLDER.search(folder) else "private"


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
