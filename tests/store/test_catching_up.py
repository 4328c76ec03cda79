"""Catching up: what one connection asks for, and when it stops asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from nonebot.adapters.onebot.v11 import ActionFailed, ApiNotAvailable, Bot, NetworkError
import pytest

from plugins.nonebot_plugin_nianlun.capture import catching_up as module
from plugins.nonebot_plugin_nianlun.capture.catching_up import CatchingUp
from plugins.nonebot_plugin_nianlun.capture.presence import Presence
from plugins.nonebot_plugin_nianlun.capture.recorder import Recorder
from plugins.nonebot_plugin_nianlun.processes import this_process
from plugins.nonebot_plugin_nianlun.store import connections, diagnosis, gaps
from plugins.nonebot_plugin_nianlun.store.models import Chat, Gap
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming
from tests.support.onebot_history import History
from tests.support.onebot_platform import Payload, Platform

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
SELF = "10001"
GROUPS = [ChatKey(SELF, "group", str(number)) for number in (101, 102, 103)]
SENDER = {"user_id": 20001, "nickname": "小鹿", "card": ""}


class StoppedClock:
    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time


class Account:
    """A connected account whose groups talk while the bot is away, a line a second."""

    def __init__(self) -> None:
        self.self_id = SELF
        self.calls: list[tuple[str, Payload]] = []
        self.trouble: Callable[[], object] | None = None
        self.history = History()
        self.platform = Platform(int(SELF), "小忆")
        self.events: dict[int, list[Payload]] = {}

    def say(self, group: int, at: datetime, count: int, text: str = "句") -> None:
        write = self.platform.group_message
        self.events.setdefault(group, []).extend(
            write(f"{text}{n}", SENDER, group, at.timestamp() + n) for n in range(count)
        )

    async def call_api(self, name: str, **params: Any) -> object:
        self.calls.append((name, params))
        if self.trouble is not None:
            return self.trouble()
        return self.history.page(params, self.events.get(params["group_id"], []))


def fails(error: Exception) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
async def recorder(database_file: object, clock: StoppedClock) -> AsyncIterator[Recorder]:
    found = Recorder(clock, "小忆")
    found.start()
    try:
        yield found
    finally:
        await found.stop()


@pytest.fixture
async def catching_up(
    recorder: Recorder, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[CatchingUp]:
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    monkeypatch.setattr(module, "_SETTLING", 0.0)
    found = CatchingUp(clock, recorder, "小忆", lambda chat: chat.peer_id != "666", lambda _: False)
    yield found
    await found.stop()


def heard(chat: ChatKey, at: datetime) -> Incoming:
    segments = [{"type": "text", "data": {"text": "之前0"}}]
    return Incoming(chat, at, "20001", "小鹿", segments, "event", message_id="1")


async def run(catching_up: CatchingUp, account: Account, until: datetime | None) -> None:
    """Catch up to the end."""
    catching_up.begin(cast("Bot", account), until)
    await asyncio.gather(*catching_up._tasks.values())


async def talked(recorder: Recorder, at: datetime, chats: list[ChatKey] = GROUPS) -> None:
    for chat in chats:
        recorder.accept(heard(chat, at))
    await recorder.flush()


async def count(group: str) -> int:
    (chat,) = await Chat.filter(peer_id=group)
    return await Row.filter(chat_id=chat.id).count()


async def spans() -> list[tuple[float, float]]:
    rows = await Gap.all().order_by("chat_id", "begins")
    return [
        ((row.begins - NOON).total_seconds(), (row.ends - NOON).total_seconds()) for row in rows
    ]


async def test_every_chat_is_brought_up_to_date(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON)
    account = Account()
    clock.time = NOON + timedelta(hours=1)
    for group in (101, 102, 103):
        account.say(group, NOON + timedelta(minutes=5), 70)
    await run(catching_up, account, NOON + timedelta(minutes=2))
    assert [await count(group) for group in ("101", "102", "103")] == [71, 71, 71]
    assert await gaps.behind_since(SELF) is None


async def test_an_action_that_is_not_there_is_asked_for_once(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON)
    account = Account()
    account.trouble = fails(ActionFailed(status="failed", retcode=1404, message="不支持的Api"))
    clock.time = NOON + timedelta(hours=1)
    await run(catching_up, account, NOON + timedelta(minutes=2))
    assert len(account.calls) == 1
    assert await spans() == [(120, 3600)] * 3
    assert await gaps.behind_since(SELF) is None


@pytest.mark.parametrize(
    ("trouble", "calls"),
    [
        (fails(NetworkError("WebSocket call api timeout")), 2),
        (lambda: "<html>", 2),
        (fails(ActionFailed(status="failed", retcode=200, message="")), 3),
    ],
)
async def test_silence_and_nonsense_are_believed_after_two_chats(
    catching_up: CatchingUp,
    recorder: Recorder,
    clock: StoppedClock,
    trouble: Callable[[], object],
    calls: int,
) -> None:
    await talked(recorder, NOON)
    account = Account()
    account.trouble = trouble
    clock.time = NOON + timedelta(hours=1)
    await run(catching_up, account, NOON)
    assert len(account.calls) == calls
    assert await spans() == [(0, 3600)] * 3


async def test_an_answer_that_does_not_come_is_not_waited_for(
    catching_up: CatchingUp,
    recorder: Recorder,
    clock: StoppedClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_ANSWER", 0.02)
    await talked(recorder, NOON)
    account = Account()

    async def never(name: str, **params: Any) -> object:
        account.calls.append((name, params))
        return await asyncio.Event().wait()

    monkeypatch.setattr(account, "call_api", never)
    clock.time = NOON + timedelta(hours=1)
    await run(catching_up, account, NOON)
    assert len(account.calls) == 2


async def test_a_short_absence_is_no_gap_but_is_fetched(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON)
    account = Account()
    account.say(101, NOON + timedelta(seconds=10), 3)
    account.history.kept = 2
    clock.time = NOON + timedelta(seconds=50)
    await run(catching_up, account, NOON)
    assert (await count("101"), await spans()) == (3, [])


async def test_three_days_are_the_furthest(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON, GROUPS[:1])
    account = Account()
    account.say(101, NOON + timedelta(days=1), 20, "早")
    account.say(101, NOON + timedelta(days=9), 20, "晚")
    clock.time = NOON + timedelta(days=10)
    await run(catching_up, account, NOON)
    texts = [row.text for row in await Row.all().order_by("seq")]
    assert texts == ["之前0", *(f"晚{n}" for n in range(20))]
    assert await spans() == [(0, 7 * 86400)]


async def test_more_than_the_limit_leaves_the_older_part_as_a_gap(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON, GROUPS[:1])
    account = Account()
    account.say(101, NOON + timedelta(seconds=200), 1500)
    clock.time = NOON + timedelta(seconds=1800)
    await run(catching_up, account, NOON)
    assert len(account.calls) <= 20
    ((begins, ends),) = await spans()
    stored = await count("101") - 1
    assert 900 < stored <= 1000
    assert (begins, ends) == (0, 200 + 1500 - stored)


@pytest.mark.parametrize(("bound", "value"), [("_ALL_PAGES", 3), ("_LONGEST", -1.0)])
async def test_all_chats_together_have_a_limit_too(
    catching_up: CatchingUp,
    recorder: Recorder,
    clock: StoppedClock,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    value: float,
) -> None:
    monkeypatch.setattr(module, bound, value)
    await talked(recorder, NOON)
    account = Account()
    for group in (101, 102, 103):
        account.say(group, NOON + timedelta(minutes=5), 500)
    clock.time = NOON + timedelta(hours=1)
    await run(catching_up, account, NOON)
    assert len(account.calls) == max(0, value)
    assert len(await spans()) == 3


async def test_what_was_cut_short_is_taken_up_by_the_next_connection(
    catching_up: CatchingUp,
    recorder: Recorder,
    clock: StoppedClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await talked(recorder, NOON, GROUPS[:1])
    account = Account()
    account.say(101, NOON, 1, "之前")
    account.say(101, NOON + timedelta(seconds=5), 20)
    clock.time = NOON + timedelta(seconds=40)
    monkeypatch.setattr(module, "_SETTLING", 60.0)
    catching_up.begin(cast("Bot", account), NOON)
    await asyncio.sleep(0.1)
    await catching_up.stop()
    assert account.calls == []
    await talked(recorder, clock.time, GROUPS[:1])
    monkeypatch.setattr(module, "_SETTLING", 0.0)
    clock.time = NOON + timedelta(seconds=600)
    await run(catching_up, account, NOON + timedelta(seconds=590))
    assert (await count("101"), await spans()) == (22, [])


async def test_what_was_held_back_and_delivered_first_hides_no_hole(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON, GROUPS[:1])
    recorder.accept(heard(GROUPS[0], NOON + timedelta(seconds=900)))
    await recorder.flush()
    account = Account()
    account.say(101, NOON, 1, "之前")
    account.say(101, NOON + timedelta(seconds=300), 20)
    clock.time = NOON + timedelta(seconds=1000)
    await run(catching_up, account, NOON + timedelta(seconds=10))
    assert (await count("101"), await spans()) == (22, [])


async def test_a_chat_that_is_not_served_is_left_alone(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON, [ChatKey(SELF, "group", "666")])
    clock.time = NOON + timedelta(hours=1)
    account = Account()
    await run(catching_up, account, NOON)
    assert (account.calls, await spans()) == ([], [])


@pytest.mark.parametrize("written", [True, False])
async def test_a_mark_from_before_the_clock_was_put_back_hides_no_gap(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock, written: bool
) -> None:
    await talked(recorder, NOON, GROUPS[:1])
    later = NOON + timedelta(hours=8)
    if written:
        await gaps.set_alive({SELF: later})
    clock.time = NOON + timedelta(hours=1)
    account = Account()
    account.trouble = fails(NetworkError())
    await run(catching_up, account, None if written else later)
    assert await spans() == [(0, 3600)]


async def test_connections_that_follow_each_other_at_once_bring_each_line_once(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON)
    account = Account()
    clock.time = NOON + timedelta(hours=1)
    for group in (101, 102, 103):
        account.say(group, NOON, 1, "之前")
        account.say(group, NOON + timedelta(minutes=5), 120)
    for number in range(6):
        catching_up.begin(cast("Bot", account), NOON if number == 0 else None)
        await asyncio.sleep(0.01 * number)
    await asyncio.gather(*catching_up._tasks.values())
    assert [await count(group) for group in ("101", "102", "103")] == [121, 121, 121]
    assert (await spans(), await gaps.behind_since(SELF)) == ([], None)


async def test_a_disconnection_in_the_middle_leaves_a_gap_that_the_next_one_closes(
    catching_up: CatchingUp, recorder: Recorder, clock: StoppedClock
) -> None:
    await talked(recorder, NOON)
    account = Account()
    clock.time = NOON + timedelta(hours=1)
    for group in (101, 102, 103):
        account.say(group, NOON, 1, "之前")
        account.say(group, NOON + timedelta(minutes=5), 120)
    answering = account.call_api

    async def leaving(name: str, **params: Any) -> object:
        if len(account.calls) == 7:
            raise ApiNotAvailable
        return await answering(name, **params)

    account.call_api = leaving
    await run(catching_up, account, NOON)
    done = [await count(group) for group in ("101", "102", "103")]
    assert sorted(done) == [1, 1, 121]
    assert await spans() == [(0, 3600), (0, 3600)]
    assert await gaps.behind_since(SELF) == clock.time
    account.call_api = answering
    clock.time += timedelta(minutes=1)
    await run(catching_up, account, clock.time)
    assert [await count(group) for group in ("101", "102", "103")] == [121, 121, 121]
    assert (await spans(), await gaps.behind_since(SELF)) == ([], None)


class Begun:
    """Stands for catching up: which accounts it was started for, and since when."""

    def __init__(self) -> None:
        self.since: list[datetime | None] = []
        self.cancelled = 0

    def begin(self, bot: object, until: datetime | None) -> None:
        self.since.append(until)

    def cancel(self, self_id: str) -> None:
        self.cancelled += 1


@pytest.fixture
def begun() -> Begun:
    return Begun()


@pytest.fixture
def presence(recorder: Recorder, clock: StoppedClock, begun: Begun) -> Presence:
    return Presence(clock, recorder, cast("CatchingUp", begun))


def beat(*, online: bool = True) -> Any:
    return SimpleNamespace(meta_event_type="heartbeat", status=SimpleNamespace(online=online))


BOT = cast("Bot", SimpleNamespace(self_id=SELF))
MESSAGE: Any = SimpleNamespace(post_type="message")


def after(clock: StoppedClock, seconds: float) -> None:
    clock.time = NOON + timedelta(seconds=seconds)


async def test_with_heartbeats_the_last_one_counts(presence: Presence, clock: StoppedClock) -> None:
    presence.connected(BOT)
    presence.heard(BOT, beat())
    after(clock, 500)
    await presence.keep()
    assert await gaps.alive_until(SELF) == NOON
    presence.heard(BOT, MESSAGE)
    await presence.keep()
    assert await gaps.alive_until(SELF) == clock.time


async def test_without_heartbeats_an_open_connection_counts(
    presence: Presence, clock: StoppedClock
) -> None:
    presence.connected(BOT)
    after(clock, 500)
    await presence.keep()
    assert await gaps.alive_until(SELF) == NOON + timedelta(seconds=460)


@pytest.mark.parametrize("beats", [True, False])
async def test_what_was_heard_before_the_clock_was_put_back_is_no_mark(
    presence: Presence, clock: StoppedClock, beats: bool
) -> None:
    presence.connected(BOT)
    presence.heard(BOT, beat() if beats else MESSAGE)
    after(clock, -3600)
    await presence.keep()
    assert await gaps.alive_until(SELF) == clock.time


async def test_a_return_begins_where_it_left(
    presence: Presence, clock: StoppedClock, begun: Begun
) -> None:
    presence.connected(BOT)
    presence.heard(BOT, MESSAGE)
    after(clock, 30)
    await presence.disconnected(BOT)
    assert begun.cancelled == 1
    after(clock, 900)
    await presence.keep()
    assert await gaps.alive_until(SELF) == NOON
    presence.connected(BOT)
    assert begun.since == [None, NOON]


async def test_an_account_that_lost_qq_and_found_it_again_catches_up(
    presence: Presence, clock: StoppedClock, begun: Begun
) -> None:
    presence.connected(BOT)
    presence.heard(BOT, beat())
    for seconds in (30, 600):
        after(clock, seconds)
        presence.heard(BOT, beat(online=False))
    await presence.keep()
    assert await gaps.alive_until(SELF) == NOON
    after(clock, 630)
    presence.heard(BOT, beat())
    assert begun.since == [None, NOON]


async def connected(path: Path) -> set[str]:
    return set((await diagnosis.examine(path)).connections)


async def test_others_are_told_who_is_connected_as_soon_as_it_changes(
    presence: Presence, recorder: Recorder, database_file: Path
) -> None:
    await connections.tell(this_process(), {"10009": NOON})
    await presence.start()
    assert await connected(database_file) == set()
    presence.connected(BOT)
    await presence.tell()
    assert await connected(database_file) == {SELF}
    presence.heard(BOT, beat(online=False))
    await presence.keep()
    assert await connected(database_file) == set()
    presence.heard(BOT, beat())
    await presence.keep()
    assert await connected(database_file) == {SELF}
    recorder.trouble = "磁盘满了"
    presence.heard(BOT, beat(online=False))
    await presence.keep()
    assert await connected(database_file) == set()
    presence.heard(BOT, beat())
    await presence.keep()
    assert await connected(database_file) == {SELF}
    await presence.disconnected(BOT)
    assert await connected(database_file) == set()
    presence.connected(BOT)
    await presence.tell()
    await presence.stop()
    assert await connected(database_file) == set()
    presence.connected(BOT)
    await presence.tell()
    assert await connected(database_file) == set()


async def test_what_is_not_on_disk_yet_is_not_vouched_for(
    presence: Presence, recorder: Recorder
) -> None:
    presence.connected(BOT)
    recorder.trouble = "磁盘满了"
    await presence.keep()
    assert await gaps.alive_until(SELF) is None
    recorder.trouble = None
    await presence.stop()
    assert await gaps.alive_until(SELF) == NOON
