"""Every event is heard before anything can delay, edit or drop it."""

from __future__ import annotations

import asyncio
from typing import cast

from nonebot.adapters.onebot.v11 import Bot, Event
import pytest

from plugins.nonebot_plugin_nianlun.capture.listening import listen

BOT = cast("Bot", None)


def event_at(second: int) -> Event:
    return Event(time=second, self_id=10001, post_type="notice")


@pytest.fixture
def dispatched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The adapter's dispatch as far as it matters: it waits, longest for the first event."""
    seen: list[int] = []

    async def dispatch(self: Bot, event: Event) -> None:
        await asyncio.sleep(0.02 / event.time)
        seen.append(event.time)

    monkeypatch.setattr(Bot, "handle_event", dispatch)
    return seen


async def test_events_are_heard_in_the_order_of_arrival(dispatched: list[int]) -> None:
    heard: list[int] = []
    listen(lambda bot, event: heard.append(event.time))
    await asyncio.gather(*(Bot.handle_event(BOT, event_at(second)) for second in (1, 2, 3)))
    assert heard == [1, 2, 3]
    assert dispatched == [3, 2, 1]


async def test_a_listener_that_fails_costs_nobody_their_event(dispatched: list[int]) -> None:
    def broken(bot: Bot, event: Event) -> None:
        raise ValueError("no")

    listen(broken)
    await Bot.handle_event(BOT, event_at(1))
    assert dispatched == [1]
