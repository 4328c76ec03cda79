"""The first look at a whole file: what is in it, before anything of it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..errors import ImportFileError
from ..store.speakers import name_key
from .found import Found, FoundChat, FoundMessage, FoundRecord


@dataclass(slots=True)
class SurveyedChat:
    """One chat of the file: from where it is named to where the next one is."""

    found: FoundChat
    label: str
    """What a person can call it: unlike that of every other chat in the file."""
    shares_name: bool = False
    """Another chat of the file has the same name: it does not tell which is which."""
    messages: int = 0
    first: datetime | None = None
    last: datetime | None = None
    header: dict[str, Any] = field(default_factory=dict)
    """The first line of our own format; empty where the file is of another."""
    settings: FoundRecord | None = None
    edited: int = 0
    """Texts of our own vault that somebody changed after it was exported."""

    @property
    def name(self) -> str | None:
        """What the chat is called; None when the file does not tell."""
        name = self.found.name or self.header.get("chat_name")
        return name if isinstance(name, str) and name else None


class Survey:
    """Counts what a reader finds. Holds the chats and the people, not the messages."""

    def __init__(self) -> None:
        self.chats: list[SurveyedChat] = []
        self.messages = 0
        self.numbers: set[str] = set()
        """User ids of all who speak in the file."""
        self._named: dict[str, SurveyedChat] = {}
        """The first chat of each name."""
        self._labels: dict[str, int] = {}
        """How often each has been asked for."""
        self.names: dict[str, set[str | None]] = {}
        """The user ids that go with each name; None for a line that gives none."""

    def take(self, found: Found) -> None:
        """Raises ImportFileError when something stands before the first chat."""
        if isinstance(found, FoundChat):
            chat = SurveyedChat(found, self._label(found))
            if found.name:
                namesake = self._named.setdefault(found.name, chat)
                namesake.shares_name = chat.shares_name = namesake is not chat
            self.chats.append(chat)
        elif isinstance(found, FoundMessage):
            self._message(found, self._chat(found.line))
        elif isinstance(found, FoundRecord):
            chat = self._chat(found.line)
            if found.kind == "header":
                chat.header = found.data
            elif found.kind == "settings":
                chat.settings = found
            chat.edited += found.data.get("exported") is not None

    def _chat(self, line: int) -> SurveyedChat:
        if not self.chats:
            raise ImportFileError(f"第 {line} 行之前没有说是哪个会话，这个文件不完整")
        return self.chats[-1]

    def _message(self, found: FoundMessage, chat: SurveyedChat) -> None:
        self.messages += 1
        chat.messages += 1
        if chat.first is None or found.time < chat.first:
            chat.first = found.time
        if chat.last is None or found.time > chat.last:
            chat.last = found.time
        if found.system:
            return
        ids = self.names.get(found.name)
        if ids is None:
            ids = self.names[found.name] = set()
        ids.add(found.user_id)
        if found.user_id is not None:
            self.numbers.add(found.user_id)

    def _label(self, found: FoundChat) -> str:
        name = found.name or (
            f"{found.kind}:{found.peer_id}" if found.peer_id else "没有名字的会话"
        )
        count = self._labels.get(name, 0) + 1
        label = name if count == 1 else f"{name} {count}"
        while label in self._labels:
            count += 1
            label = f"{name} {count}"
        self._labels[name] = count
        self._labels[label] = max(self._labels.get(label, 0), 1)
        return label

    def whose(self, name: str) -> set[str | None]:
        """The user ids that go with a name, however it is padded or composed."""
        key = name_key(name)
        same = [ids for shown, ids in self.names.items() if name_key(shown) == key]
        return set[str | None]().union(*same)
