"""A decrypted message database of QQ's new client (QQNT): every chat that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
import os
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import NAME_LIMIT, clean_name, one_line, tag
from ..capture.segments import to_segments
from ..errors import ImportFileError
from ..store.qqnt_database import QqntDatabase, QqntPeople, QqntRow
from ..types import ME, Segment
from .found import Found, FoundChat, FoundMessage, Unreadable
from .protobuf import BrokenMessage, fields
from .qqnt_elements import face, notice, picture, text_segment

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = 915_148_800, 4_102_444_800
_ELEMENT = 40800
_TYPE, _TEXT, _FILE, _SECONDS, _VIDEO_SECONDS = 45002, 45101, 45402, 45906, 45410
_FACE, _FACE_NAME, _CARD, _PICTURE_WORDS = 47601, 47602, 47901, 45815
_NOTICE, _NOTICE_JSON, _CALL, _WALLET, _WALLET_TITLE = 48214, 48271, 48157, 48403, 48443
_QUOTE, _TIP = 7, 8
_REMEMBERED = 5_000
"""Messages of a chat to which an answer may point back."""
_LOOK_EVERY = 500

_Element = Mapping[int, int | bytes]


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
                    chat = _Chat(row, people)
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

    def __init__(self, first: QqntRow, people: QqntPeople) -> None:
        self._people = people
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
            elements = [_element(part) for part in _parts(row.body)]
        except BrokenMessage:
            return Unreadable(place, "这条消息的内容（40800）读不懂")
        number = self._number(row)
        user_id = str(number) if number else row.uid or None
        name = self._speaker(row) or user_id
        system = bool(elements) and all(one.get(_TYPE) == _TIP for one in elements)
        if (name is None and not system) or (user_id or "").lower() == ME:
            return Unreadable(place, "这条消息没有写是谁说的")
        replied = self._ids.get(row.quoted) if row.quoted else None
        self._note(row)
        return FoundMessage(
            line=place,
            time=_EPOCH + timedelta(seconds=row.second),
            user_id=user_id,
            name=(name or "系统消息")[:NAME_LIMIT],
            segments=_segments(elements, replied),
            message_id=str(row.message_id) if row.message_id else None,
            order=row.seq or None,
            reply_to_id=str(replied) if replied else None,
            system=system,
        )

    def _note(self, row: QqntRow) -> None:
        self._ids[row.seq] = row.message_id
        if len(self._ids) > _REMEMBERED:
            del self._ids[next(iter(self._ids))]

    def _number(self, row: QqntRow) -> int:
        own = self._people.self_number if row.sent else 0
        return row.number or own or self._people.numbers.get(row.uid, 0)

    def _speaker(self, row: QqntRow) -> str:
        people = self._people
        keys = row.uid, str(self._number(row))
        known = [told.get(key) for told in (people.names, people.remarks) for key in keys]
        return next(filter(None, map(clean_name, (row.card, row.nickname, *known))), "")

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


def _parts(body: bytes) -> Iterator[bytes]:
    for number, value in fields(body):
        if number == _ELEMENT and isinstance(value, bytes):
            yield value


def _element(part: bytes) -> _Element:
    found: dict[int, int | bytes] = {}
    for number, value in fields(part):
        found.setdefault(number, value)
    return found


def _segments(elements: list[_Element], replied: int | None) -> list[Segment]:
    segments: list[Segment] = []
    if replied:
        segments.append({"type": "reply", "data": {"id": str(replied)}})
    for element in elements:
        kind = element.get(_TYPE)
        if kind != _QUOTE and isinstance(kind, int):
            segments.append(_WRITERS.get(kind, _unknown)(element))
    return to_segments(segments)


def _string(element: _Element, field: int) -> str:
    value = element.get(field)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _typed(element: _Element) -> Segment:
    return text_segment(_string(element, _TEXT))


def _picture(element: _Element) -> Segment:
    return picture(_string(element, _FILE), _string(element, _PICTURE_WORDS))


def _file(element: _Element) -> Segment:
    return {"type": "file", "data": {"name": _string(element, _FILE)}}


def _voice(element: _Element) -> Segment:
    return {"type": "record", "data": {"duration": element.get(_SECONDS, 0)}}


def _video(element: _Element) -> Segment:
    return {"type": "video", "data": {"duration": element.get(_VIDEO_SECONDS, 0)}}


def _face(element: _Element) -> Segment:
    number = element.get(_FACE)
    return face(_string(element, _FACE_NAME), number if isinstance(number, int) else None)


def _tip(element: _Element) -> Segment:
    words = notice(_string(element, _NOTICE)) or notice(_string(element, _NOTICE_JSON))
    return text_segment(words or tag("提示"))


def _wallet(element: _Element) -> Segment:
    inner = element.get(_WALLET)
    title = ""
    if isinstance(inner, bytes):
        try:
            title = _string(_element(inner), _WALLET_TITLE)
        except BrokenMessage:
            title = ""
    return {"type": "redbag", "data": {"title": title}}


def _card(element: _Element) -> Segment:
    return {"type": "json", "data": {"data": _string(element, _CARD)}}


def _call(element: _Element) -> Segment:
    return text_segment(tag("通话", one_line(_string(element, _CALL))))


def _feed(element: _Element) -> Segment:
    return text_segment(tag("动态消息"))


def _forward(element: _Element) -> Segment:
    return {"type": "forward", "data": {"content": []}}


def _unknown(element: _Element) -> Segment:
    return text_segment(tag("消息"))


_WRITERS: dict[int, Callable[[_Element], Segment]] = {
    1: _typed,
    2: _picture,
    3: _file,
    4: _voice,
    5: _video,
    6: _face,
    8: _tip,
    9: _wallet,
    10: _card,
    16: _forward,
    21: _call,
    26: _feed,
}
