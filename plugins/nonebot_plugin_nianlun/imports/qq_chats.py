"""What old QQ's exports tell of a chat: its name and folder, and by its lines its kind."""

from __future__ import annotations

from collections.abc import Iterator
import re

from ..types import ChatKind
from .found import Found, FoundChat, FoundMessage, Unreadable
from .qq_headings import ChatStart

HELD = 50
"""Most lines of the system that wait for a person's, which tells what kind of chat it is."""

_PRIVATE_FOLDERS = frozenset({"我的好友", "陌生人", "临时会话"})
_GROUP_FOLDER = re.compile("群|讨论组")


class QqChat:
    """One chat of the file; says what kind it is before the first message comes out."""

    def __init__(self, start: ChatStart) -> None:
        self._start = start
        self._held: list[Found] | None = []

    def found(self, message: FoundMessage | Unreadable) -> Iterator[Found]:
        """Take the next message; yields what can be told by then."""
        if self._held is None:
            yield message
            return
        self._held.append(message)
        if isinstance(message, FoundMessage) and not message.system:
            yield from self._settle(has_ids=message.user_id is not None)
        elif len(self._held) == HELD:
            yield from self._settle(has_ids=False)

    def end(self) -> Iterator[Found]:
        if self._held:
            yield from self._settle(has_ids=False)

    def _settle(self, *, has_ids: bool) -> Iterator[Found]:
        yield FoundChat(self._kind(has_ids), self._start.name or None)
        yield from self._held or ()
        self._held = None

    def _kind(self, has_ids: bool) -> ChatKind:
        folder = self._start.folder
        if folder in _PRIVATE_FOLDERS:
            return "private"
        return "group" if has_ids or _GROUP_FOLDER.search(folder) else "private"
