"""Hearing every event as it comes in, before anything can delay, edit or drop it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

from nonebot import logger
from nonebot.adapters.onebot.v11 import Bot, Event

Listener: TypeAlias = Callable[[Bot, Event], None]


def listen(listener: Listener) -> None:
    """Call `listener` with each event of each OneBot account, in the order of arrival.

    It stands before the adapter's dispatch, because a preprocessor comes too late: for a
    reply, the adapter first asks the other side for the quoted message and later messages
    overtake it meanwhile; and preprocessors run side by side, so that one of another plugin
    which ignores the event may end ours before its first line.
    """
    dispatch = Bot.handle_event

    @wraps(dispatch)
    async def handle_event(self: Bot, event: Event) -> None:
        try:
            listener(self, event)
        except Exception as error:
            # Whatever is wrong with the memory, the other plugins still get their event.
            logger.opt(exception=error).error("一条事件没有记录下来")
        await dispatch(self, event)

    Bot.handle_event = handle_event
