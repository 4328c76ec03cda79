"""The messages of qq-chat-exporter's JSON exports, of its versions 4 to 6."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
import re
from typing import Any, cast

from ..capture.cleaning import NAME_LIMIT, clean_name
from ..capture.events import id_text, replied_id
from ..errors import ImportFileError
from ..types import ME, ChatKind, Segment
from .found import FoundChat, FoundMessage, Unreadable
from .qce_elements import segments_of
from .qce_flat import flat_segments, is_flat, segments_of_v4

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = 915_148_800_000, 4_102_444_800_000
"""From 1999, when QQ began, to 2100, in milliseconds: outside of it a time is none."""
_NOBODY = frozenset({"未知", "unknown"})
"""What the exporter writes for a uid that it does not know."""
_KINDS = {"group": "group", "private": "private", "temp": "private"}
_PICTURES = {
    "group": re.compile(r"https?://p\.qlogo\.cn/gh/(\d+)/", re.ASCII),
    "private": re.compile(r"https?://q\d?\.qlogo\.cn/g\?[^#]*\bnk=(\d+)", re.ASCII),
}
"""The address of a chat's picture has its number in it."""

_Fields = Mapping[str, Any]


def chat_of(info: object) -> FoundChat:
    """The chat as `chatInfo` tells it. Raises ImportFileError when it does not."""
    if not isinstance(info, dict):
        raise ImportFileError("chatInfo 不是一个对象，不知道是哪个会话")
    kind = _KINDS.get(str(info.get("type")))
    if kind is None:
        raise ImportFileError("chatInfo 里的 type 不是 group、private 或 temp，不知道是哪种会话")
    peer = _number(info.get("peerUin"))
    if kind == "group":
        peer = peer or _number(info.get("peerUid"))
    if peer is None and (found := _PICTURES[kind].match(str(info.get("avatar"))[:300])):
        peer = found[1]
    name = clean_name(info.get("name")) or None
    return FoundChat(cast("ChatKind", kind), name, peer, _number(info.get("selfUin")))


def _number(value: object) -> str | None:
    text = id_text(value)
    return text if text and text.isascii() and text.isdigit() else None


def with_peer(chat: FoundChat, raw: object) -> FoundChat:
    """The chat with its number, which earlier versions have in the messages alone."""
    if chat.peer_id is not None or not isinstance(raw, dict):
        return chat
    peer = _number(_fields(raw, "rawMessage").get("peerUin"))
    if peer is None and chat.kind == "group":
        peer = _number(_fields(raw, "receiver").get("uid"))
    return replace(chat, peer_id=peer)


def _fields(raw: _Fields, key: str) -> _Fields:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def message(raw: object, line: int, place: str = "") -> FoundMessage | Unreadable:
    """Read one message of any version; `place` says which it is, where the line does not."""
    if not isinstance(raw, dict):
        return Unreadable(line, f"{place}不是一条消息")
    found = _message(_like_v6(raw) if "messageSeq" in raw and "seq" not in raw else raw, line)
    if isinstance(found, Unreadable):
        return replace(found, reason=f"{place}{found.reason}")
    return found


def _like_v6(raw: _Fields) -> _Fields:
    """A message of the fourth version, and the first ones of the fifth, in the sixth's names."""
    inner, sender, content = _fields(raw, "rawMessage"), raw.get("sender"), raw.get("content")
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


def _message(raw: _Fields, line: int) -> FoundMessage | Unreadable:
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
    withdrawn = raw.get("recalled") is True
    return FoundMessage(
        line=line,
        time=time,
        user_id=user_id,
        name=name[:NAME_LIMIT],
        segments=segments,
        message_id=id_text(raw.get("id")),
        order=_order(raw.get("seq")),
        reply_to_id=replied_id(segments),
        withdrawn=withdrawn,
        # Of what was taken back the client keeps a grey line, under the id and the name of whoever
        # had said it: that is how the message is known that an earlier export still has whole.
        system=raw.get("system") is True and not (withdrawn and user_id is not None),
    )


def _segments(content: _Fields) -> list[Segment]:
    if "segments" in content:
        return content["segments"]
    elements, text = content.get("elements"), content.get("text")
    segments = flat_segments(text, elements) if is_flat(content) else segments_of(elements)
    if not segments and isinstance(text, str) and text:
        segments = segments_of([{"type": "text", "data": {"text": text}}])
    return segments


def _name(sender: _Fields) -> str | None:
    # The last of these may be what the owner of the account calls a friend, which others never see.
    for key in ("groupCard", "nickname", "name"):
        if name := clean_name(sender.get(key)):
            return name
    return None


def _time(raw: _Fields) -> datetime | None:
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
