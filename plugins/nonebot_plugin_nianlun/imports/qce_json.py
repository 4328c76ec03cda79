"""qq-chat-exporter's single JSON file, as its versions 5 and 6 write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
import re
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from ..capture.cleaning import NAME_LIMIT, clean_name
from ..capture.events import id_text, replied_id
from ..errors import ImportFileError
from ..types import ME
from .found import Found, FoundChat, FoundMessage, Unreadable
from .json_stream import JsonStream
from .qce_elements import segments_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = 915_148_800_000, 4_102_444_800_000
"""From 1999, when QQ began, to 2100, in milliseconds: outside of it a time is none."""
_NOBODY = frozenset({"未知", "unknown"})
"""What the exporter writes for a uid that it does not know."""
_HEAD = re.compile(r'\s*\{\s*"(?:metadata"\s*:\s*\{[^{}]*"QQChatExporter|chatInfo"\s*:\s*\{)')
_OTHER = re.compile(
    r'"metadata"\s*:\s*\{[^{}]*"QQChatExporter V4|"messages"\s*:\s*\[\s*\{\s*"messageId"'
    r'|"format"\s*:\s*"chunked-jsonl"'
)
_KINDS = {"group": "group", "private": "private", "temp": "private"}
V4 = "这是 qq-chat-exporter 4.x 导出的 JSON，还不能导入；请用它的 6.x 版重新导出成单个 JSON 文件"
CHUNKED = "这是 qq-chat-exporter 的分块导出，还不能导入；请重新导出成单个 JSON 文件"


class QceJson:
    name = "qce-json"
    title = "qq-chat-exporter（5.x、6.x）导出的单个 JSON 文件"

    def recognises(self, head: bytes) -> bool:
        text = head.decode("utf-8", "replace").removeprefix("\ufeff")
        return _HEAD.match(text) is not None and _OTHER.search(text) is None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        stream = JsonStream(file)
        chat: FoundChat | None = None
        complete = False
        for key in stream.members():
            if key == "metadata":
                _check_version(stream.value())
            elif key == "chatInfo":
                chat = _chat(stream.value())
                yield chat
            elif key == "chunked":
                raise ImportFileError(CHUNKED)
            elif key == "messages":
                if chat is None:
                    raise ImportFileError("messages 之前没有 chatInfo，不知道是哪个会话")
                yield from _messages(stream)
                complete = True
            else:
                stream.skip()
        stream.finish()
        if not complete:
            raise ImportFileError("这个 JSON 文件里没有 messages，不是 qq-chat-exporter 的聊天记录")


def _check_version(metadata: object) -> None:
    version = metadata.get("version") if isinstance(metadata, dict) else None
    if isinstance(version, str) and version.startswith("4."):
        raise ImportFileError(V4)


def _chat(info: object) -> FoundChat:
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


def _messages(stream: JsonStream) -> Iterator[Found]:
    for number, _ in enumerate(stream.items(), 1):
        line = stream.line()
        raw = stream.value()
        if isinstance(raw, dict) and "messageSeq" in raw and "seq" not in raw:
            raise ImportFileError(V4)
        found = _message(raw, line) if isinstance(raw, dict) else Unreadable(line, "不是一条消息")
        if isinstance(found, Unreadable):
            # A whole file may be one line.
            found = Unreadable(line, f"第 {number} 条{found.reason}")
        yield found


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
    segments = segments_of(content.get("elements"))
    if not segments and isinstance(text := content.get("text"), str) and text:
        segments = segments_of([{"type": "text", "data": {"text": text}}])
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
