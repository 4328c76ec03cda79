"""qq-chat-exporter's single JSON file, as its versions 4 to 6 write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
import re
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import NAME_LIMIT, clean_name
from ..capture.events import id_text, replied_id
from ..errors import ImportFileError
from ..types import ME, Segment
from .found import Found, FoundChat, FoundMessage, Unreadable
from .json_stream import JsonStream
from .qce_elements import segments_of, segments_of_v4
from .text_lines import decoded

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = 915_148_800_000, 4_102_444_800_000
"""From 1999, when QQ began, to 2100, in milliseconds: outside of it a time is none."""
_NOBODY = frozenset({"未知", "unknown"})
"""What the exporter writes for a uid that it does not know."""
_HEAD = re.compile(r'\s*\{\s*"(?:metadata"\s*:\s*\{[^{}]*"QQChatExporter|chatInfo"\s*:\s*\{)')
_CHUNKED = re.compile(r'"format"\s*:\s*"chunked-jsonl"')
_KINDS = {"group": "group", "private": "private", "temp": "private"}
_NO_CHAT = "messages 之前没有 chatInfo，不知道是哪个会话"


class QceJson:
    name = "qce-json"
    title = "qq-chat-exporter（4.x 到 6.x）导出的单个 JSON 文件"

    def recognises(self, head: bytes) -> bool:
        text = decoded(head)
        return _HEAD.match(text) is not None and _CHUNKED.search(text) is None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        stream = JsonStream(file)
        chat: FoundChat | None = None
        complete = False
        for key in stream.members():
            if key == "chatInfo":
                chat = chat_of(stream.value())
            elif key == "chunked":
                raise ImportFileError(
                    "这是 qq-chat-exporter 的分块导出，请加上 --format qce-chunks"
                )
            elif key == "messages":
                if chat is None:
                    raise ImportFileError(_NO_CHAT)
                yield from _messages(stream, chat)
                complete = True
            else:
                stream.skip()
        stream.finish()
        if not complete:
            raise ImportFileError("这个 JSON 文件里没有 messages，不是 qq-chat-exporter 的聊天记录")


def chat_of(info: object) -> FoundChat:
    if not isinstance(info, dict):
        raise ImportFileError("chatInfo 不是一个对象，不知道是哪个会话")
    kind = _KINDS.get(str(info.get("type")))
    if kind is None:
        raise ImportFileError("chatInfo 里的 type 不是 group、private 或 temp，不知道是哪种会话")
    name = clean_name(info.get("name")) or None
    me = _number(info.get("selfUin"))
    if kind == "group":
        peer = _number(info.get("peerUin")) or _number(info.get("peerUid"))
        return FoundChat("group", name, peer, me)
    return FoundChat("private", name, _number(info.get("peerUin")), me)


def _number(value: object) -> str | None:
    text = id_text(value)
    return text if text and text.isascii() and text.isdigit() else None


def _messages(stream: JsonStream, chat: FoundChat) -> Iterator[Found]:
    told = False
    for number, _ in enumerate(stream.items(), 1):
        line = stream.line()
        raw = stream.value()
        if not told:
            # The fourth version has the number of a group in its messages alone.
            yield _with_peer(chat, raw)
            told = True
        # A whole file may be one line.
        yield message(raw, line, f"第 {number} 条")
    if not told:
        yield chat


def _with_peer(chat: FoundChat, raw: object) -> FoundChat:
    inner = raw.get("rawMessage") if isinstance(raw, dict) else None
    if chat.peer_id is not None or not isinstance(inner, dict):
        return chat
    return replace(chat, peer_id=_number(inner.get("peerUin")))


def message(raw: object, line: int, place: str = "") -> FoundMessage | Unreadable:
    """Read one message of any version; `place` says which it is, where the line does not."""
    if not isinstance(raw, dict):
        return Unreadable(line, f"{place}不是一条消息")
    found = _message(_like_v6(raw) if "messageSeq" in raw and "seq" not in raw else raw, line)
    if isinstance(found, Unreadable):
        return replace(found, reason=f"{place}{found.reason}")
    return found


def _like_v6(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of the fourth version under the names of the sixth."""
    inner, sender, content = (raw.get(key) for key in ("rawMessage", "sender", "content"))
    inner = inner if isinstance(inner, dict) else {}
    if isinstance(sender, dict):
        names = {"groupCard": inner.get("sendMemberName"), "nickname": inner.get("sendNickName")}
        sender = names | sender
    if isinstance(content, dict):
        content = {"segments": segments_of_v4(content)}
    return {
        "id": raw.get("messageId"),
        "seq": raw.get("messageSeq"),
        "time": raw.get("timestamp"),
        "sender": sender,
        "content": content,
        "recalled": raw.get("isRecalled"),
        "system": raw.get("isSystemMessage"),
    }


def _message(raw: Mapping[str, Any], line: int) -> FoundMessage | Unreadable:
    time = _time(raw)
    if time is None:
        return Unreadable(line, "没有能用的时间（timestamp）")
    sender, content = raw.get("sender"), raw.get("content")
    if not isinstance(sender, dict):
        return Unreadable(line, "没有写是谁说的（sender）")
    if not isinstance(content, dict):
        return Unreadable(line, "没有内容（content）")
    user_id = id_text(sender.get("uin")) or id_text(sender.get("uid"))
    if user_id in _NOBODY:
        user_id = None
    name = _name(sender) or user_id
    if name is None or (user_id or "").lower() == ME:
        return Unreadable(line, "没有写是谁说的（sender）")
    segments = _segments(content)
    return FoundMessage(
        line=line,
        time=time,
        user_id=user_id,
        name=name[:NAME_LIMIT],
        segments=segments,
        message_id=id_text(raw.get("id")),
        order=_order(raw.get("seq")),
        reply_to_id=replied_id(segments),
        withdrawn=raw.get("recalled") is True,
        system=raw.get("system") is True,
    )


def _segments(content: Mapping[str, Any]) -> list[Segment]:
    if "segments" in content:
        return content["segments"]
    segments = segments_of(content.get("elements"))
    if not segments and isinstance(text := content.get("text"), str) and text:
        segments = segments_of([{"type": "text", "data": {"text": text}}])
    return segments


def _name(sender: Mapping[str, Any]) -> str | None:
    for key in ("groupCard", "name", "nickname"):
        if name := clean_name(sender.get(key)):
            return name
    return None


def _time(raw: Mapping[str, Any]) -> datetime | None:
    stamp = raw.get("timestamp")
    if isinstance(stamp, int | float) and not isinstance(stamp, bool) and _FIRST <= stamp < _LAST:
        return _EPOCH + timedelta(milliseconds=int(stamp))
    written = raw.get("time")
    try:
        time = datetime.fromisoformat(written) if isinstance(written, str) else None
    except ValueError:
        return None
    if time is None or time.tzinfo is None or not 1999 <= time.year < 2100:
        return None
    return time.astimezone(UTC)


def _order(value: object) -> int | None:
    text = _number(value)
    return int(text) if text and len(text) <= 18 else None
