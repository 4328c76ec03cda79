"""When the bot is spoken to: decided on the event alone, before anything costs time."""

from __future__ import annotations

from collections.abc import Collection

from nonebot.adapters.onebot.v11 import MessageEvent

from ..capture.events import has_reply
from ..commands.gate import MessageGate, has_command


class ReplyGate(MessageGate):
    """Lets through private messages, mentions, the nickname, and replies that may be to the bot.

    A command is answered by its own matcher. Whether a reply is to one of the bot's own lines
    is often known only to our own record, for the other side forgets old messages; the handler
    asks there.
    """

    __slots__ = ("_joins_in",)

    def __init__(self, starts: Collection[str], *, joins_in: bool = False) -> None:
        """With `joins_in`, everything that is said in groups comes through too."""
        super().__init__(starts)
        self._joins_in = joins_in

    def opens_for(self, event: MessageEvent) -> bool:
        wanted = is_called(event) or has_reply(event)
        wanted = wanted or (self._joins_in and event.message_type == "group")
        return wanted and not has_command(event.message, str(event.self_id), self.starts)


def is_called(event: MessageEvent) -> bool:
    """Whether the bot is spoken to: in private, by an @ or by its nickname.

    The adapter sees an @ at the ends of a message only.
    """
    if event.is_tome():
        return True
    message, self_id = getattr(event, "original_message", None), str(event.self_id)
    return message is not None and any(
        segment.type == "at" and str(segment.data.get("qq")) == self_id for segment in message
    )
