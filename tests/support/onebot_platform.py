"""What a OneBot v11 implementation knows and does, in NapCat's manner, without any connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
import time
from typing import Any
import zlib

from tests.support.onebot_history import ACTIONS, History

Payload = dict[str, Any]
Segments = list[Payload]

GROUP_NAME = "摸鱼研究所①群"

_SENDS = ("send_msg", "send_group_msg", "send_private_msg")
_FORWARDS = ("send_forward_msg", "send_group_forward_msg", "send_private_forward_msg")


class ApiFailure(Exception):
    """An API call is answered with `status: failed`."""

    def __init__(self, retcode: int, message: str) -> None:
        super().__init__(message)
        self.retcode = retcode
        self.message = message


@dataclass(frozen=True)
class Sent:
    """A message that the bot has sent."""

    action: str
    message_id: int
    segments: Segments
    group_id: int | None = None
    user_id: int | None = None
    nodes: Segments = field(default_factory=list)
    """For a forward: its nodes."""
    time: float = 0
    """Unix time at which it was sent."""

    @property
    def is_forward(self) -> bool:
        return self.action in _FORWARDS

    @property
    def text(self) -> str:
        """All text, that of a forward's nodes included."""
        parts = [*self.segments]
        for node in self.nodes:
            parts += as_segments(node.get("data", {}).get("content", ""))
        return "\n".join(part["data"]["text"] for part in parts if part["type"] == "text")


class Platform:
    """One account's view of its groups and friends: messages, members, and the actions on them."""

    def __init__(self, self_id: int, name: str) -> None:
        self.self_id = self_id
        self.name = name
        self._members: dict[tuple[int, int], Payload] = {}
        self._messages: dict[str, Payload] = {}
        self._numbers: dict[str, int] = {}
        self._said: dict[tuple[str, str], list[Payload]] = {}
        self.history: History | None = None
        """How it hands out what was said; None: it has no such actions."""

    def group_message(
        self,
        message: str | Segments,
        sender: Payload,
        group_id: int,
        at: float | None = None,
        message_id: int | str | None = None,
    ) -> Payload:
        """The body of a group message, without `post_type` and `self_id`."""
        event = self._message(message, sender, f"group:{group_id}", at, message_id)
        event |= {"message_type": "group", "sub_type": "normal"}
        return event | {"group_id": group_id, "group_name": GROUP_NAME}

    def private_message(
        self,
        message: str | Segments,
        sender: Payload,
        peer_id: int,
        at: float | None = None,
        message_id: int | str | None = None,
    ) -> Payload:
        """The body of a private message, without `post_type` and `self_id`."""
        event = self._message(message, sender, f"private:{peer_id}", at, message_id)
        return event | {"message_type": "private", "sub_type": "friend", "target_id": peer_id}

    def remember(self, event: Payload) -> None:
        """Keep a message, so that `get_msg` and `get_group_member_info` know of it."""
        self._messages[str(event["message_id"])] = event
        scene = self._said.setdefault(_scene_of(event), [])
        if event not in scene:
            scene.append(event)
        if "group_id" in event:
            self._members[event["group_id"], event["user_id"]] = event["sender"]

    def perform(self, action: str, params: Payload) -> tuple[Any, Sent | None, Payload | None]:
        """Carry out an action: its data, what was sent, and the event that reports it.

        Raises ApiFailure.
        """
        if action in _SENDS or action in _FORWARDS:
            sent, own = self._send(action, params)
            return {"message_id": sent.message_id}, sent, own
        if self.history is not None and action in ACTIONS and self.history.offers(action):
            peer = params.get("group_id") or params.get("user_id")
            scene = ("group" if "group_id" in params else "private", str(peer))
            return self.history.page(params, self._said.get(scene, [])), None, None
        answers: dict[str, Callable[[Payload], Any]] = {
            "get_msg": self._get_msg,
            "get_group_member_info": self._get_member,
            "get_login_info": lambda _: {"user_id": self.self_id, "nickname": self.name},
            "get_group_info": lambda asked: {
                "group_id": asked["group_id"],
                "group_name": GROUP_NAME,
                "member_count": 5,
                "max_member_count": 200,
            },
            "get_status": lambda _: {"online": True, "good": True, "stat": {}},
            "get_version_info": lambda _: {
                "app_name": "NapCat.Onebot",
                "protocol_version": "v11",
                "app_version": "4.18.1",
            },
        }
        if action not in answers:
            raise ApiFailure(1404, f"不支持的Api {action}")
        return answers[action](params), None, None

    def _message(
        self,
        message: str | Segments,
        sender: Payload,
        scene: str,
        at: float | None,
        message_id: int | str | None,
    ) -> Payload:
        number = self._numbers[scene] = self._numbers.get(scene, 40000) + 1
        if message_id is None:
            key = f"{self.self_id}|{scene}|{number}"
            message_id = zlib.crc32(key.encode()) & 0x7FFFFFFF
        event: Payload = {"time": int(time.time() if at is None else at)}
        event |= {"user_id": sender["user_id"], "sender": sender, "message": as_segments(message)}
        event |= {"message_id": message_id, "message_seq": message_id, "real_id": message_id}
        event |= {"real_seq": str(number), "message_format": "array", "font": 14}
        return event | {"raw_message": as_cq(event["message"])}

    def _send(self, action: str, params: Payload) -> tuple[Sent, Payload]:
        group_id, user_id = params.get("group_id"), params.get("user_id")
        if not group_id and not user_id:
            raise ApiFailure(1400, "消息体无法解析, 请检查是否发送了不支持的消息类型")
        nodes = params.get("messages", []) if action in _FORWARDS else []
        segments = [] if nodes else as_segments(params.get("message", ""))
        shown = segments or [{"type": "forward", "data": {"id": "7520000000000565270"}}]
        sender = {"user_id": self.self_id, "nickname": self.name, "card": "", "role": "member"}
        if group_id and params.get("message_type") != "private":
            own = self.group_message(shown, sender, int(group_id))
            target, peer = int(group_id), {"group_id": int(group_id)}
        else:
            target, peer = int(user_id or 0), {"user_id": int(user_id or 0)}
            own = self.private_message(shown, sender, target)
        own |= {"post_type": "message_sent", "message_sent_type": "self", "target_id": target}
        self.remember(own)
        return Sent(action, own["message_id"], segments, nodes=nodes, time=time.time(), **peer), own

    def _get_msg(self, params: Payload) -> Payload:
        found = self._messages.get(str(params.get("message_id")))
        if found is None:
            raise ApiFailure(1200, "消息不存在")
        return found | {"post_type": "message", "emoji_likes_list": []}

    def _get_member(self, params: Payload) -> Payload:
        key = int(params["group_id"]), int(params["user_id"])
        if key not in self._members:
            raise ApiFailure(1200, f"群({key[0]})成员{key[1]}不存在")
        return self._members[key] | {"group_id": key[0], "is_robot": False, "title": ""}


def _scene_of(event: Payload) -> tuple[str, str]:
    if "group_id" in event:
        return "group", str(event["group_id"])
    return "private", str(event.get("target_id") or event["user_id"])


def text(value: str) -> Payload:
    return {"type": "text", "data": {"text": value}}


def mention(user_id: int | str) -> Payload:
    return {"type": "at", "data": {"qq": str(user_id)}}


def reply(message_id: int | str) -> Payload:
    return {"type": "reply", "data": {"id": str(message_id)}}


def as_segments(message: str | Payload | Sequence[Payload]) -> Segments:
    if isinstance(message, str):
        return [text(message)] if message else []
    return [message] if isinstance(message, dict) else [*message]


def as_cq(segments: Segments) -> str:
    """The CQ-code string of a message, as events carry it in `raw_message`."""
    parts = []
    for segment in segments:
        if segment["type"] == "text":
            plain = segment["data"]["text"].replace("&", "&amp;")
            parts.append(plain.replace("[", "&#91;").replace("]", "&#93;"))
        else:
            values = "".join(f",{key}={value}" for key, value in segment["data"].items())
            parts.append(f"[CQ:{segment['type']}{values}]")
    return "".join(parts)
