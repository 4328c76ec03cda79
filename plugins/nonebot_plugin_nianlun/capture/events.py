"""OneBot events as values. The only place that knows what implementations really send.

An event that does not fit the adapter's strict models arrives as a bare `Event` whose fields are
pydantic extras and whose nested objects are mappings, so everything is read by field name, never
by class. Plain mappings, such as the items of a fetched history, are read the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nonebot.adapters.onebot.v11 import Message
from nonebot.log import logger

from ..types import ME, ChatKey, Incoming, Segment, Withdrawal
from .cleaning import clean_name, clean_text
from .segments import to_segments

_FIRST_SECOND = 915_148_800
"""1999-01-01, when QQ began; what claims to be older has no usable time."""
_AHEAD = 86_400
"""In seconds; what claims to come from later than tomorrow has no usable time either."""
_MILLISECONDS = 100_000_000_000
"""A larger number of seconds would be after the year 5000: it counts milliseconds."""
_ID_LIMIT = 4_096


def incoming(event: object, *, self_id: str, now: datetime) -> Incoming | None:
    """Read a message event as it was sent, before the adapter edited it.

    Returns None for any other event, and for a message whose chat or speaker cannot be told.
    The bot's own lines, however they are reported, come back as `me` with source `echo`.
    """
    fields = _fields(event)
    if fields.get("post_type") not in ("message", "message_sent"):
        return None
    chat = _chat(fields, self_id)
    speaker = id_text(fields.get("user_id"))
    if chat is None or speaker is None or speaker == ME:
        logger.debug(f"收到一条看不出会话或发言人的消息，没有记录：{fields.get('message_id')!r}")
        return None
    mine = speaker == self_id
    segments = to_segments(_original(fields))
    return Incoming(
        chat=chat,
        time=_time(fields.get("time"), now),
        user_id=ME if mine else speaker,
        name=_speaker_name(fields) or speaker,
        segments=segments,
        source="echo" if mine else "event",
        message_id=id_text(fields.get("message_id")),
        order=_order(fields),
        heard_at=now,
        chat_name=clean_name(fields.get("group_name")) or None,
        reply_to_id=replied_id(segments),
        via="other" if mine else None,
        # Grey tips such as a poke come as messages without any content.
        skipped=None if segments else "empty",
    )


def withdrawal(event: object, *, self_id: str, now: datetime) -> Withdrawal | None:
    """Read a notice that a message was taken back; None for any other event.

    In a private chat the notice names the peer and not whose message it was.
    """
    fields = _fields(event)
    kind = fields.get("notice_type")
    if kind not in ("group_recall", "friend_recall"):
        return None
    chat = _chat(fields, self_id)
    message_id = id_text(fields.get("message_id"))
    if chat is None or message_id is None:
        logger.warning(
            f"收到一条看不出是哪条消息的撤回通知，没有处理：{fields.get('message_id')!r}"
        )
        return None
    author = id_text(fields.get("user_id"))
    if author == self_id:
        author = ME
    elif kind == "friend_recall":
        author = None
    return Withdrawal(chat, message_id, author, _time(fields.get("time"), now))


def uploaded(
    event: object, *, self_id: str, now: datetime
) -> tuple[ChatKey, str, datetime, Mapping[str, Any]] | None:
    """Read a notice that somebody sent a file: where, who, when, and what is told of the file.

    None for any other event, and for the bot's own files. Some ends tell of a file in no other way.
    """
    fields = _fields(event)
    if fields.get("notice_type") not in ("group_upload", "offline_file"):
        return None
    chat, sender = _chat(fields, self_id), id_text(fields.get("user_id"))
    file = to_segments({"type": "file", "data": _fields(fields.get("file"))})[0]["data"]
    if chat is None or sender in (None, self_id, ME) or not file:
        return None
    return chat, str(sender), _time(fields.get("time"), now), file


def chat_of(event: object, self_id: str) -> ChatKey | None:
    """Return the chat that an event happened in, or None when it names none."""
    return _chat(_fields(event), self_id)


def time_of(event: object, now: datetime) -> datetime:
    """Return when a message was sent, in whole seconds; `now` where the event does not tell."""
    return _time(_fields(event).get("time"), now)


def reply_target(event: object) -> str | None:
    """Return the platform id of the message that a message event replies to."""
    return replied_id(to_segments(_original(_fields(event))))


def has_reply(event: object) -> bool:
    """Tell cheaply whether a typed message event quotes another message."""
    message = getattr(event, "original_message", None)
    return message is not None and any(segment.type == "reply" for segment in message)


def sender_role(event: object) -> str:
    """Return `owner`, `admin` or `member` in a group, and "" where there is no such thing."""
    role = _fields(_fields(event).get("sender")).get("role")
    return role if role in ("owner", "admin", "member") else ""


def decoded(message: object) -> object:
    """Turn a string of CQ codes into the adapter's message; leave anything else as it is."""
    return Message(message) if isinstance(message, str) else message


def id_text(value: object) -> str | None:
    """Return an id as text; None for a missing one, for which 0 is sent as well."""
    if isinstance(value, str):
        value = clean_text(value.strip()[:_ID_LIMIT])
        return None if value in ("", "0") else value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if value and value.bit_length() < 256 else None
    return None


def replied_id(segments: list[Segment]) -> str | None:
    """Return the platform id of the first message that is replied to."""
    for segment in segments:
        if segment["type"] == "reply":
            return id_text(segment["data"].get("id"))
    return None


def _fields(thing: object) -> Mapping[str, Any]:
    if isinstance(thing, Mapping):
        return thing
    own: dict[str, Any] = getattr(thing, "__dict__", None) or {}
    extra = getattr(thing, "__pydantic_extra__", None)
    return {**own, **extra} if extra else own


def _original(fields: Mapping[str, Any]) -> object:
    original = fields.get("original_message")
    return decoded(fields.get("message") if original is None else original)


def _chat(fields: Mapping[str, Any], self_id: str) -> ChatKey | None:
    group = id_text(fields.get("group_id"))
    kind = fields.get("message_type") or ("group" if group else "private")
    if kind == "group":
        return ChatKey(self_id, "group", group) if group else None
    if kind != "private":
        return None
    peer = id_text(fields.get("user_id"))
    if peer == self_id:
        peer = id_text(fields.get("target_id"))
    return ChatKey(self_id, "private", peer) if peer else None


def _speaker_name(fields: Mapping[str, Any]) -> str:
    anonymous = fields.get("anonymous")
    if anonymous and (name := clean_name(_fields(anonymous).get("name"))):
        return name
    sender = _fields(fields.get("sender"))
    return clean_name(sender.get("card")) or clean_name(sender.get("nickname"))


def _time(value: object, now: datetime) -> datetime:
    seconds = _whole(value)
    if seconds is not None and seconds > _MILLISECONDS:
        seconds //= 1000
    if seconds is None or not _FIRST_SECOND <= seconds < now.timestamp() + _AHEAD:
        return now
    return datetime.fromtimestamp(seconds, UTC)


def _order(fields: Mapping[str, Any]) -> int | None:
    number = _whole(fields.get("real_seq"))
    if number is None:
        sequence = fields.get("message_seq")
        # Some put the id, a hash, where the sequence number belongs.
        if id_text(sequence) != id_text(fields.get("message_id")):
            number = _whole(sequence)
    return number if number and -(1 << 63) <= number < 1 << 63 else None


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        digits = value.strip()
        if len(digits) > 20 or not digits.isascii() or not digits.removeprefix("-").isdigit():
            return None
        return int(digits)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
