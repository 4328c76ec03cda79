"""When the bot is spoken to: decided on the event alone, before anything costs time."""

from __future__ import annotations

from nonebot.adapters.onebot.v11 import MessageEvent

from ..capture.events import has_reply
from ..commands.gate import MessageGate, has_command


class ReplyGate(MessageGate):
    """Lets through private messages, mentions, the nickname, and replies that may be to the bot.

    A command is answered by its own matcher. Whether a reply is to one of the bot's own lines
    is often known only to our own record, for the other side forgets old messages; the handler
    asks there.
    """

    __slots__ = ()

    def opens_for(self, event: MessageEvent) -> bool:
        called = event.is_tome() or has_reply(event)
        return called and not has_command(event.message, str(event.self_id), self.starts)
