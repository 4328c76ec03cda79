"""What the bot says itself, read from the API calls that send it, whoever made them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
import re
from typing import Any

from nonebot.adapters.onebot.v11 import ActionFailed, MessageSegment, NetworkError

from ..types import ME, ChatKey, Delivery, Incoming, SkipReason, Via
from .events import decoded, id_text, replied_id
from .segments import to_segments

SEND_APIS: frozenset[str] = frozenset(
    {
        "send_msg",
        "send_group_msg",
        "send_private_msg",
        "send_forward_msg",
        "send_group_forward_msg",
        "send_private_forward_msg",
    }
)
"""The API calls by which a message leaves."""

_GOCQ_SEND_ERROR = 100
_NAPCAT_ERROR = 1200
_QQ_RESULT = re.compile(r"\"?result\"?\s*[:=]\s*(-?\d{1,9})\b")


def sent(
    api: str,
    data: Mapping[str, Any],
    result: object,
    *,
    self_id: str,
    name: str,
    now: datetime,
    via: Via,
    delivery: Delivery,
    skipped: SkipReason | None,
) -> Incoming | None:
    """Read a call to one of `SEND_APIS` and its result as the bot's own line, said at `now`.

    Returns None when the call names no chat or says nothing. `name` is the bot's own name.
    """
    chat = _chat(api, data, self_id)
    segments = to_segments(_message(api, data))
    if chat is None or not segments:
        return None
    return Incoming(
        chat=chat,
        # Whole seconds like the platform's, or what is said next would seem to come before.
        time=now.replace(microsecond=0),
        heard_at=now,
        user_id=ME,
        name=name,
        segments=segments,
        source="sent",
        message_id=id_text(result.get("message_id")) if isinstance(result, Mapping) else None,
        reply_to_id=replied_id(segments),
        via=via,
        delivery=delivery,
        skipped=skipped,
    )


def ambiguous(exception: Exception) -> bool:
    """Tell whether a message may have been delivered although sending it failed.

    That is so when no answer came in time, when NapCat waited in vain for QQ's own echo, and for
    go-cqhttp's one code for every failure, under which messages held by risk control get through.
    """
    if isinstance(exception, NetworkError | TimeoutError):
        return True
    if not isinstance(exception, ActionFailed):
        return False
    code = exception.info.get("retcode")
    if code == _NAPCAT_ERROR:
        said = f"{exception.info.get('message')} {exception.info.get('wording')}".lower()
        # QQ's own answer stands in it: anything but 0 is a refusal, 120 for instance a mute.
        refused = any(int(code) for code in _QQ_RESULT.findall(said))
        return not refused and ("timeout" in said or "eventchecker" in said)
    return code == _GOCQ_SEND_ERROR


def _chat(api: str, data: Mapping[str, Any], self_id: str) -> ChatKey | None:
    group, user = id_text(data.get("group_id")), id_text(data.get("user_id"))
    if api.startswith("send_group_"):
        kind = "group"
    elif api.startswith("send_private_"):
        kind = "private"
    else:
        kind = data.get("message_type") or ("group" if group else "private")
    if kind == "group":
        return ChatKey(self_id, "group", group) if group else None
    return ChatKey(self_id, "private", user) if user else None


def _message(api: str, data: Mapping[str, Any]) -> object:
    if api.endswith("_forward_msg"):
        nodes = data.get("messages") or data.get("message")
        return MessageSegment("forward", {"content": _nodes(nodes)}) if nodes else None
    message = data.get("message")
    if isinstance(message, str) and str(data.get("auto_escape")).lower() not in ("true", "1"):
        return decoded(message)
    return message


def _nodes(nodes: object) -> list[object]:
    """Decode the CQ codes of nodes whose content is a string."""
    items = nodes if isinstance(nodes, list | tuple) else [nodes]
    return [_node(item) for item in items]


def _node(node: object) -> object:
    data = node.get("data") if isinstance(node, Mapping) else getattr(node, "data", None)
    if isinstance(data, Mapping) and isinstance(content := data.get("content"), str):
        return {"type": "node", "data": {**data, "content": decoded(content)}}
    return node
