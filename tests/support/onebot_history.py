"""Histories of chats as four OneBot implementations hand them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Payload = dict[str, Any]
Kind = Literal["napcat", "llbot", "lagrange", "gocq"]

ACTIONS = ("get_group_msg_history", "get_friend_msg_history")
_GOCQ_PAGE = 20


@dataclass
class History:
    """Answers history calls from a chat's events, which are in the order of their numbers."""

    kind: Kind = "napcat"
    renumbered: bool = False
    """After a restart of the other side its messages have other ids than before."""
    deleted: set[int | str] = field(default_factory=set)
    """Ids, as in the events, of messages that were taken back and are told all the same."""
    kept: int | None = None
    """How many of the newest messages of a chat it still has; None: all."""

    def offers(self, action: str) -> bool:
        return self.kind != "gocq" or action == "get_group_msg_history"

    def page(self, params: Payload, events: Sequence[Payload]) -> Payload:
        events = events[-self.kept :] if self.kept is not None else events
        count = _GOCQ_PAGE if self.kind == "gocq" else int(params.get("count", 20))
        place = self._place(params, events)
        if place is None:
            found = events[-count:]
        elif self.kind == "napcat" and not params.get("reverse_order"):
            found = events[place : place + count]
        else:
            found = events[max(0, place + 1 - count) : place + 1]
        if self.kind == "llbot" and params.get("reverseOrder"):
            found = found[::-1]
        return {"messages": [self._item(event) for event in found]}

    def _place(self, params: Payload, events: Sequence[Payload]) -> int | None:
        start = params.get("message_id" if self.kind == "lagrange" else "message_seq")
        if not start:
            return None
        for place, event in enumerate(events):
            item = self._item(event)
            if start == item.get("message_seq", item["message_id"]):
                return place
        return -1

    def _item(self, event: Payload) -> Payload:
        number = int(event["real_seq"])
        item = event | {"message_id": self._id(event["message_id"])}
        item["message_seq"] = item["message_id"] if self.kind == "napcat" else number
        if event["message_id"] in self.deleted:
            item["status"] = "deleted"
        if self.kind != "napcat":
            del item["real_seq"], item["real_id"]
        if self.kind == "lagrange":
            item = {key: item[key] for key in item if key not in ("message_seq", "target_id")}
        if self.kind == "gocq":
            item |= {"message": item["raw_message"], "message_format": "string"}
        return item

    def _id(self, known: int | str) -> int | str:
        return known + 7 if self.renumbered and isinstance(known, int) else known
