"""Whose turn it is: lines in quick succession together, one reply at a time, few waiting."""

from __future__ import annotations

import asyncio

from nonebot.adapters.onebot.v11 import MessageEvent
import pytest

from plugins.nonebot_plugin_nianlun.chat.turns import LONGEST_QUIET, MOST_WAITING, Turn, Turns
from plugins.nonebot_plugin_nianlun.types import ChatKey
from tests.support.events import message_event

CHAT, OTHER = ChatKey("1", "group", "7"), ChatKey("1", "group", "8")
QUIET = 0.1


class Desk:
    """Answers by noting what was asked; each reply takes `seconds`."""

    def __init__(self, quiet: float = QUIET, seconds: float = 0.0, patience: float = 60) -> None:
        self.turns = Turns(quiet)
        self.seconds, self.patience = seconds, patience
        self.answered: list[list[str]] = []
        self.at_once = self.most_at_once = 0
        self.tasks: list[asyncio.Task[None]] = []

    def call(self, user: int, text: str, chat: ChatKey = CHAT) -> None:
        self.turns.heard(chat, str(user))
        self.tasks.append(asyncio.create_task(self.answer(message_event(text, user), chat)))

    async def answer(self, event: MessageEvent, chat: ChatKey) -> None:
        async with self.turns.turn(chat, event, called=True, patience=self.patience) as turn:
            if turn is not None:
                await self._reply(turn)

    async def _reply(self, turn: Turn) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.seconds)
        self.answered.append([event.get_plaintext() for event in turn.calls])
        self.at_once -= 1

    async def done(self) -> None:
        await asyncio.gather(*self.tasks)
        assert not self.turns.busy(CHAT)
        assert not self.turns.busy(OTHER)


async def test_lines_in_quick_succession_are_one_turn() -> None:
    desk = Desk()
    for text in ("在吗", "我今天", "好累"):
        desk.call(2, text)
        await asyncio.sleep(QUIET / 3)
    await desk.done()
    assert desk.answered == [["在吗", "我今天", "好累"]]


async def test_what_is_delivered_twice_is_answered_once() -> None:
    desk, event = Desk(), message_event("在吗", 2)
    for again in (event, event.model_copy(), event.model_copy(update={"message_id": 0})):
        desk.tasks.append(asyncio.create_task(desk.answer(again, CHAT)))
        await desk.done()
    assert len(desk.answered) == 2, "of a line without an id nobody knows that it came before"
    later = {"time": event.time + 1}, {"user_id": 3}, {"message_id": event.message_id + 10**6}
    for other in later:
        desk.tasks.append(asyncio.create_task(desk.answer(event.model_copy(update=other), CHAT)))
    desk.tasks.append(asyncio.create_task(desk.answer(event, OTHER)))
    await desk.done()
    assert sum(map(len, desk.answered)) == 6


async def test_a_line_that_does_not_call_is_waited_for_too() -> None:
    desk = Desk()
    desk.call(2, "小忆")
    for _ in range(3):
        await asyncio.sleep(QUIET * 0.6)
        desk.turns.heard(CHAT, "2")
        assert desk.answered == []
    await desk.done()
    assert desk.answered == [["小忆"]]


async def test_who_goes_on_and_on_is_answered_all_the_same() -> None:
    desk = Desk()
    began = asyncio.get_running_loop().time()
    desk.call(2, "听我说")
    while not desk.answered:
        await asyncio.sleep(QUIET / 4)
        desk.turns.heard(CHAT, "2")
    assert asyncio.get_running_loop().time() - began < QUIET * (LONGEST_QUIET + 3)
    await desk.done()


async def test_what_comes_while_a_reply_is_written_is_the_next_turn() -> None:
    desk = Desk(seconds=QUIET * 2)
    desk.call(2, "一")
    await asyncio.sleep(QUIET * 2)
    desk.call(2, "二")
    desk.call(2, "三")
    await desk.done()
    assert desk.answered == [["一"], ["二", "三"]]
    assert desk.most_at_once == 1


async def test_others_wait_and_chats_do_not_wait_for_each_other() -> None:
    desk = Desk(seconds=QUIET)
    desk.call(2, "她")
    desk.call(3, "他")
    desk.call(2, "那边", OTHER)
    await desk.done()
    assert sorted(desk.answered) == [["他"], ["她"], ["那边"]]
    assert desk.most_at_once == 2
    assert desk.answered.index(["她"]) < desk.answered.index(["他"])


async def test_only_so_many_wait() -> None:
    desk = Desk(quiet=0, seconds=0.05)
    for user in range(2, 30):
        desk.call(user, str(user))
    await desk.done()
    # The first may have begun before the second came, or not.
    assert MOST_WAITING <= len(desk.answered) <= MOST_WAITING + 1
    assert desk.most_at_once == 1


async def test_who_waited_too_long_is_not_answered_any_more() -> None:
    desk = Desk(quiet=0, seconds=0.2, patience=0.1)
    desk.call(2, "先")
    desk.call(3, "后")
    await desk.done()
    assert desk.answered == [["先"]]


async def test_a_failure_ends_the_turn_and_nothing_else() -> None:
    turns = Turns(0)
    with pytest.raises(RuntimeError):
        async with turns.turn(CHAT, message_event("一", 2), called=True, patience=1):
            raise RuntimeError
    assert not turns.busy(CHAT)
    async with turns.turn(CHAT, message_event("二", 2), called=True, patience=1) as turn:
        assert turn is not None
    assert not turns.busy(CHAT)


async def test_a_call_makes_a_turn_of_its_own_accord_a_wanted_one() -> None:
    turns = Turns(0.05)

    async def call() -> None:
        async with turns.turn(CHAT, message_event("小忆", 2), called=True, patience=1) as turn:
            assert turn is None

    async def chime() -> Turn | None:
        async with turns.turn(CHAT, message_event("嗯", 2), called=False, patience=1) as turn:
            return turn

    turn, _ = await asyncio.gather(chime(), call())
    assert turn is not None
    assert turn.called
