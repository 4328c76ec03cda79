"""When the bot is spoken to: decided on the event alone, before anything costs time."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from nonebot.adapters.onebot.v11 import MessageEvent
from nonebot.permission import Permission

from ..capture.events import has_reply
from ..commands.gate import has_command

if TYPE_CHECKING:
    from nonebot.adapters import Bot, Event
    from nonebot.typing import T_DependencyCache


class ReplyGate(Permission):
    """Lets through private messages, mentions, the nickname, and replies that may be to the bot.

    A command is answered by its own matcher. Whether a reply is to one of the bot's own lines
    is often known only to our own record, for the other side forgets old messages; the handler
    asks there.
    """

    __slots__ = ("starts",)

    def __init__(self, starts: Collection[str]) -> None:
        super().__init__()
        self.starts = frozenset(starts)

    async def __call__(
        self,
        bot: Bot,
        event: Event,
        stack: AsyncExitStack | None = None,
        dependency_cache: T_DependencyCache | None = None,
    ) -> bool:
        if not isinstance(event, MessageEvent) or str(event.user_id) == bot.self_id:
            return False
        called = event.is_tome() or has_reply(event)
        return called and not has_command(event.message, bot.self_id, self.starts)
