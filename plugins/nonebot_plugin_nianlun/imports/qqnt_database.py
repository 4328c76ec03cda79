"""A decrypted message database of QQ's new client (QQNT): every chat that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
import os
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import NAME_LIMIT, clean_name
from ..errors import ImportFileError
from ..store.qqnt_database import QqntDatabase, QqntMember, QqntPeople, QqntRow
from ..types import ME
from .found import Found, FoundChat, FoundMessage, Unreadable
from .protobuf import BrokenMessage
from .qq_headings import speaker
from .qqnt_body import elements_of, is_notice, is_withdrawal, quoted_seq, segments_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = 915_148_800, 4_102_444_800
_REMEMBERED = 5_000
"""Messages of a chat to which an answer may point back."""
_LOOK_EVERY = 500


class QqntDb:
    name = "qqnt-db"
    title = "解密后的 QQNT 消息库（nt_msg.db）"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"SQLite format 3\0")

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        path = Path(os.fspath(file.name))
        size = os.fstat(file.fileno()).st_size
        _check_size(file.read(100), size)
        with QqntDatabase(path) as database:
            people, total = database.people(), database.count()
            chat: _Chat | None = None
            for count, row in enumerate(database.messages(), 1):
                if count % _LOOK_EVERY == 0:
                    # Whoever shows progress looks at how far the file is read.
                    file.seek(size * count // total)
                if chat is None or not chat.has(row):
                    members = database.members(row.peer) if row.kind == "group" else {}
                    chat = _Chat(row, people, members)
                    yield chat.found
                yield chat.message(row, count)


def _check_size(head: bytes, size: int) -> None:
    """The header says how many pages there are; SQLite looks at it only when it needs them."""
    page = int.from_bytes(head[16:18], "big")
    pages, version, changes = (int.from_bytes(head[n : n + 4], "big") for n in (28, 92, 24))
    if len(head) < 100 or (version == changes and pages * (65536 if page == 1 else page) > size):
        raise ImportFileError("这个数据库文件到一半就断了：没有复制完整，请重新复制一份")


class _Chat:
    """One chat of the database, whose messages follow each other."""

    def __init__(
        self, first: QqntRow, people: QqntPeople, members: Mapping[str, QqntMember]
    ) -> None:
        self._people = people
        self._members = members
        self._place = (first.kind, first.peer)
        self._ids: dict[int, int] = {}
        own = people.self_number
        self.found = FoundChat(
            first.kind, self._name(first) or None, self._peer(first), str(own) if own else None
        )

    def has(self, row: QqntRow) -> bool:
        return (row.kind, row.peer) == self._place

    def message(self, row: QqntRow, place: int) -> FoundMessage | Unreadable:
        """Its `line` is the place among all messages of the database: there are no lines."""
        if not _FIRST <= row.second < _LAST:
            return Unreadable(place, "这条消息没有能用的时间（40050）")
        try:
            elements = elements_of(row.body)
        except BrokenMessage:
            return Unreadable(place, "这条消息的内容（40800）读不懂")
        number = self._number(row)
        user_id = str(number) if number else row.uid or None
        name = self._speaker(row) or user_id
        system = is_notice(elements)
        if (name is None and not system) or (user_id or "").lower() == ME:
            return Unreadable(place, "这条消息没有写是谁说的")
        withdrawn = is_withdrawal(elements)
        replied = self._ids.get(row.quoted or quoted_seq(elements))
        self._note(row)
        return FoundMessage(
            line=place,
            time=_EPOCH + timedelta(seconds=row.second),
            user_id=user_id,
            name=(name or "系统消息")[:NAME_LIMIT],
            segments=segments_of(elements, replied),
            message_id=str(row.message_id) if row.message_id else None,
            order=row.seq or None,
            reply_to_id=str(replied) if replied else None,
            withdrawn=withdrawn,
            # The grey line that is left of a message stands under the name of whoever had said it.
            system=system and not (withdrawn and user_id is not None),
        )

    def _note(self, row: QqntRow) -> None:
        self._ids[row.seq] = row.message_id
        if len(self._ids) > _REMEMBERED:
            del self._ids[next(iter(self._ids))]

    def _number(self, row: QqntRow) -> int:
        own = self._people.self_number if row.sent else 0
        peer = row.peer_number if row.uid and row.uid == row.peer else 0
        known = row.number or own or self._people.numbers.get(row.uid, 0) or peer
        if known:
            return known
        member = self._members.get(row.uid)
        told = member.number if member else 0
        return told or (0 if row.uid else _whole(speaker(row.card)[0]))

    def _speaker(self, row: QqntRow) -> str:
        people, member = self._people, self._members.get(row.uid)
        number = str(self._number(row))
        keys = row.uid, number
        known = [told.get(key) for told in (people.names, people.remarks) for key in keys]
        own = (member.card, member.nickname) if member else ()
        said = (_card_name(row.card, number), row.nickname, *own, *known)
        return next(filter(None, map(clean_name, said)), "")

    def _peer(self, row: QqntRow) -> str | None:
        if row.kind == "group":
            return row.peer if row.peer.isascii() and row.peer.isdigit() else None
        number = row.peer_number or self._people.numbers.get(row.peer, 0)
        return str(number) if number else None

    def _name(self, row: QqntRow) -> str:
        people = self._people
        if row.kind == "group":
            return clean_name(people.groups.get(row.peer))
        named = people.remarks.get(row.peer), people.names.get(row.peer)
        return next(filter(None, map(clean_name, named)), "") or row.peer


def _card_name(card: str, number: str) -> str:
    """What was taken over from the old client has the id behind the name: `名字(12345)`."""
    user_id, name = speaker(card)
    return name if user_id is not None and (user_id == number or "@" in user_id) else card


def _whole(number: str | None) -> int:
    return int(number) if number and number.isascii() and number.isdigit() else 0
