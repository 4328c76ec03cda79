"""ChatLab's standard format 0.0.2, as one JSON document or as JSON Lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
import re
from typing import Any, BinaryIO, cast
from zoneinfo import ZoneInfo

from ..capture.cleaning import NAME_LIMIT, clean_name, one_line, tag
from ..capture.events import id_text, replied_id
from ..capture.segments import to_segments
from ..errors import ImportFileError
from ..types import ME, ChatKind, Segment
from .found import HEAD_BYTES, Found, FoundChat, FoundMessage, Unreadable
from .json_lines import objects
from .json_stream import JsonStream
from .text_lines import decoded, encoding_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 4_102_444_800
_QQ = frozenset({"qq", "", "unknown", "mixed"})
"""Platforms whose numbers may be those of QQ."""
_ANSWER = "[回复消息]"
"""What qq-chat-exporter begins the text of an answer with."""
_MOST_MEMBERS = 100_000
_JSON = re.compile(r'\s*\{\s*"(?:chatlab"\s*:|[^{}"]+"\s*:\s*[\[{])')
_OWN = re.compile(r'"chatlab"\s*:\s*\{')
"""Inside a text its quotes would be escaped."""
_LINES = re.compile(r'(?:#[^\n]*\n|\s)*+\{\s*(?:"[^"\n]*"\s*:[^{}\n]*,\s*)?"_type"\s*:\s*"header"')
_NO_META = "这份 ChatLab 记录里没有 meta，不知道是哪个会话"
_SYSTEM = frozenset({80, 81})
_REPLY = 25
_MEDIA = frozenset({1, 2, 3})

_Message = Mapping[str, Any]


def _nothing(_: str) -> dict[str, Any]:
    return {}


# What stands for a message of each type, and what its content is to that.
_SEGMENTS: dict[int, tuple[str, Callable[[str], dict[str, Any]]]] = {
    1: ("image", _nothing),
    2: ("record", _nothing),
    3: ("video", _nothing),
    4: ("file", lambda content: {"name": content}),
    7: ("share", lambda content: {"title": content}),
    8: ("location", lambda content: {"title": content}),
    20: ("redbag", lambda content: {"title": content}),
    24: ("share", lambda content: {"title": content}),
}
_LABELS = {5: "表情", 21: "转账", 22: "戳一戳", 23: "通话", 26: "聊天记录", 27: "名片"}


class ChatLab:
    name = "chatlab"
    title = "ChatLab 标准格式 0.0.2（JSON 或 JSON Lines）"

    def recognises(self, head: bytes) -> bool:
        text = decoded(head)
        if _LINES.match(text) is not None:
            return True
        return _JSON.match(text) is not None and _OWN.search(text) is not None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        head = file.read(HEAD_BYTES)
        file.seek(0)
        if not _LINES.match(decoded(head)):
            return _document(file)
        if (encoding := encoding_of(head)) != "utf-8":
            raise ImportFileError(f"这个文件是 {encoding.upper()} 编码的，请另存为 UTF-8 再导入")
        return _lines(file)


def _document(file: BinaryIO) -> Iterator[Found]:
    stream = JsonStream(file)
    names: dict[str, str] = {}
    chat: FoundChat | None = None
    complete = False
    for key in stream.members():
        if key == "meta":
            chat = _chat(stream.value())
        elif key == "members":
            for _ in stream.items():
                _note_member(names, stream.value())
        elif key == "messages":
            if chat is None:
                raise ImportFileError(f"messages 之前没有 meta；{_NO_META}")
            yield _with_peer(chat, names)
            for number, _ in enumerate(stream.items(), 1):
                line = stream.line()
                yield _message(stream.value(), line, names, f"第 {number} 条")
            complete = True
        else:
            stream.skip()
    stream.finish()
    if not complete:
        raise ImportFileError("这个 JSON 文件里没有 messages，不是 ChatLab 的聊天记录")


def _lines(file: BinaryIO) -> Iterator[Found]:
    names: dict[str, str] = {}
    chat: FoundChat | None = None
    told = False
    for number, value in objects(file):
        if isinstance(value, Unreadable):
            yield value
            continue
        kind = value.get("_type")
        if kind == "header":
            chat, told = _chat(value.get("meta")), False
        elif chat is None:
            raise ImportFileError(f"第 {number} 行之前没有 header 行；{_NO_META}")
        elif kind == "member":
            _note_member(names, value)
        elif kind == "message":
            if not told:
                yield _with_peer(chat, names)
                told = True
            yield _message(value, number, names, "")
        else:
            yield Unreadable(number, f"不认识 {one_line(kind, 40) or '没有写 _type 的'} 这种行")
    if chat is None:
        raise ImportFileError(_NO_META)
    if not told:
        yield _with_peer(chat, names)


def _chat(meta: object) -> FoundChat:
    if not isinstance(meta, dict):
        raise ImportFileError(_NO_META)
    kind = meta.get("type")
    if kind not in ("group", "private"):
        raise ImportFileError("meta 里的 type 不是 group 或 private，不知道是哪种会话")
    qq = one_line(meta.get("platform")).lower() in _QQ
    return FoundChat(
        cast("ChatKind", kind),
        clean_name(meta.get("name")) or None,
        _number(meta.get("groupId")) if qq and kind == "group" else None,
        _number(meta.get("ownerId")) if qq else None,
    )


def _with_peer(chat: FoundChat, members: Mapping[str, str]) -> FoundChat:
    """Of two people whoever has not exported the chat is the other one."""
    if chat.kind == "group" or chat.self_id not in members or len(members) != 2:
        return chat
    return replace(chat, peer_id=next(_number(one) for one in members if one != chat.self_id))


def _number(value: object) -> str | None:
    """QQ's numbers; what other platforms have for one names no chat of a bot's."""
    text = id_text(value)
    return text if text and text.isascii() and text.isdigit() else None


def _note_member(names: dict[str, str], member: object) -> None:
    if isinstance(member, dict) and len(names) < _MOST_MEMBERS:
        user_id, name = id_text(member.get("platformId")), _name(member)
        if user_id and name:
            names[user_id] = name


def _name(who: _Message) -> str:
    return clean_name(who.get("groupNickname")) or clean_name(who.get("accountName"))


def _message(
    raw: object, line: int, names: Mapping[str, str], place: str
) -> FoundMessage | Unreadable:
    if not isinstance(raw, dict):
        return Unreadable(line, f"{place}不是一条消息")
    stamp = raw.get("timestamp")
    if not isinstance(stamp, int | float) or isinstance(stamp, bool) or not 0 < stamp < _LAST:
        return Unreadable(line, f"{place}没有能用的时间（timestamp，以秒为单位）")
    system = _kind(raw) in _SYSTEM
    user_id = id_text(raw.get("sender"))
    name = _name(raw) or names.get(user_id or "") or user_id
    if (name is None and not system) or (user_id or "").lower() == ME:
        return Unreadable(line, f"{place}没有写是谁说的（sender）")
    segments = to_segments(list(_segments(raw)))
    return FoundMessage(
        line=line,
        time=_EPOCH + timedelta(seconds=int(stamp)),
        user_id=user_id,
        name=(name or "系统消息")[:NAME_LIMIT],
        segments=segments,
        message_id=id_text(raw.get("platformMessageId")),
        reply_to_id=replied_id(segments),
        system=system,
    )


def _kind(raw: _Message) -> int:
    kind = raw.get("type")
    return kind if isinstance(kind, int) else 0


def _segments(raw: _Message) -> Iterator[Segment]:
    if replied := id_text(raw.get("replyToMessageId")):
        yield {"type": "reply", "data": {"id": replied}}
    kind, content = _kind(raw), raw.get("content")
    content = content if isinstance(content, str) else ""
    if replied or kind == _REPLY:
        content = content.removeprefix(_ANSWER)
    # A label that is there already, such as `[文件: 计划.xlsx]`, is not put into another one.
    if kind in _SEGMENTS and (kind in _MEDIA or not content.startswith("[")):
        name, data = _SEGMENTS[kind]
        yield {"type": name, "data": data(content)}
    elif kind in _LABELS and not content:
        yield {"type": "text", "data": {"text": tag(_LABELS[kind])}}
    elif content:
        yield {"type": "text", "data": {"text": content}}
