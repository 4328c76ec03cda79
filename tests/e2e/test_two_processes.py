"""Two bots on one database, through a day: each piece of work is done by one of them, once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
import json
from pathlib import Path
import random
import re
from typing import Any, Literal
from zoneinfo import ZoneInfo

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.store.invariants import read_and_check
from tests.e2e.checks import asked, calls_for_notes, until
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import CLEAN_EXIT, BotProcess, Row
from tests.support.compressed_clock import PLUGIN, CompressedClock
from tests.support.model_server import Delay, ModelServer, Reply, helpful
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import Payload

SHANGHAI = ZoneInfo("Asia/Shanghai")
CALENDAR = Calendar(SHANGHAI, time(4, 0))
SPEED = 3600
"""An hour takes a second."""
START = datetime(2025, 12, 31, 2, 30, tzinfo=SHANGHAI)
DAY_END = datetime(2025, 12, 31, 4, 0, tzinfo=SHANGHAI)
YEAR_END = DAY_END + timedelta(days=1)
"""The last day of a year: with it the month and the year are over."""
PERIODS = {
    ("day", "2025-12-30"),
    ("day", "2025-12-31"),
    ("month", "2025-12"),
    ("year", "2025"),
}
ACCOUNTS = {"first": 10001, "second": 10002, "both": 10003}
HARMLESS = re.compile(r"NoneBot is initializing|closed by peer|maximum number of running instances")
"""Told when all is well: a start, the end of a connection, and a look at what is owed that was
due before the last one was over, for here they come at a pace that they never have in life."""
NEW_DATABASE = "no such table: tortoise_migrations"
"""What the database answers when it is asked for the first time."""
TOKEN = re.compile(r"暗号\d{6}")
SETTINGS = {"LOG_LEVEL": "WARNING", "NIANLUN__ROLLUP_PENDING_ACTIVITIES": "6"}

_STORED = "SELECT count(*) FROM nianlun_message WHERE message_id IS NOT NULL AND user_id <> 'me'"
_OWN = "SELECT count(*) FROM nianlun_message WHERE user_id = 'me'"
_PENDING = "SELECT count(*) FROM nianlun_message WHERE activity_id IS NULL AND skipped IS NULL"
_OPEN = (
    "SELECT (SELECT count(*) FROM nianlun_activity WHERE merged = 0 OR stale = 1)"
    " + (SELECT count(*) FROM nianlun_memory"
    " WHERE closed = 0 OR stale = 1 OR merged = 0 AND kind <> 'year')"
)
_TEXTS = "SELECT chat_id, seq, text, withdrawn_at, skipped FROM nianlun_message"
_VERSIONS = "SELECT chat_id, kind, period, version FROM nianlun_memory"
_CALLS = "SELECT sum(calls), sum(failures) FROM nianlun_usage WHERE purpose <> 'reply'"

Chat = tuple[Literal["first", "second", "both"], Literal["group", "private"], int]
BUSY: dict[Chat, int] = {
    ("first", "group", 101): 2,
    ("second", "group", 101): 3,
    ("both", "group", 102): 3,
    ("first", "private", 20001): 20,
    ("second", "private", 20001): 25,
}
"""Minutes between two messages."""
QUIET: tuple[Chat, ...] = (
    ("first", "group", 103),
    ("second", "group", 104),
    ("both", "group", 105),
)
"""Ten lines now and then, of which the third is taken back at once."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Somebody says something, or takes back what was said last in that chat."""

    at: datetime
    chat: Chat
    taken_back: bool = False


def happenings(begin: datetime, end: datetime) -> list[Happening]:
    """All that happens from one time to another, in order."""
    dice, found = random.Random(7), list[Happening]()
    for chat, minutes in BUSY.items():
        at = begin
        while (at := at + timedelta(minutes=dice.uniform(0.5, 1.5) * minutes)) < end:
            found.append(Happening(at, chat))
    for chat in QUIET:
        at = begin + timedelta(minutes=dice.uniform(0, 30))
        while at + timedelta(minutes=15) < end:
            found += (Happening(at + timedelta(minutes=line), chat) for line in range(10))
            found.append(Happening(at + timedelta(minutes=2, seconds=30), chat, taken_back=True))
            at += timedelta(minutes=dice.uniform(90, 150))
    return sorted(found, key=lambda happening: happening.at)


@dataclass(slots=True)
class Talk:
    """The platform's side: what is said, in every chat, to the bots that are told of it."""

    clock: CompressedClock
    clients: dict[str, list[OneBotClient]]
    said: list[str] = field(default_factory=list)
    taken_back: set[str] = field(default_factory=set)
    private: int = 0
    _last: dict[Chat, tuple[str, Payload]] = field(default_factory=dict)

    async def go_on(self, begin: datetime, end: datetime) -> None:
        for happening in happenings(begin, end):
            await self.clock.go_on_until(happening.at)
            if happening.taken_back:
                await self._take_back(happening)
            else:
                await self._say(happening)

    async def _say(self, happening: Happening) -> None:
        account, kind, peer = happening.chat
        token = f"暗号{len(self.said) + 1:06}"
        client, *others = self.clients[account]
        text, at = f"{token}，周末一起去爬山吧", happening.at.timestamp()
        if kind == "group":
            user = 20001 + len(self.said) % 5
            event = await client.group_message(text, user, at=at, group_id=peer)
        else:
            event = await client.private_message(text, peer, at=at)
            self.private += 1
        for other in others:
            await other.emit(event)
        self.said.append(token)
        self._last[happening.chat] = token, event

    async def _take_back(self, happening: Happening) -> None:
        token, event = self._last[happening.chat]
        notice = {key: event[key] for key in ("group_id", "user_id", "message_id")}
        notice |= {"post_type": "notice", "notice_type": "group_recall"}
        notice |= {"operator_id": event["user_id"], "time": int(happening.at.timestamp())}
        for client in self.clients[happening.chat[0]]:
            await client.emit(notice)
        self.taken_back.add(token)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two bots on the database of the first, and what they wrote down."""

    bots: tuple[BotProcess, BotProcess]

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return self.bots[0].query(sql)

    def count(self, sql: str) -> int:
        return self.query(sql)[0][0]

    def jobs(self) -> list[Row]:
        """All notes that were handed to the store, by either, in order."""
        rows = [row for bot in self.bots for row in jobs_of(bot)]
        return sorted(rows, key=lambda row: row["at"])

    def figures(self) -> list[Row]:
        return [json.loads((bot.folder / "figures.json").read_text("utf-8")) for bot in self.bots]


def jobs_of(bot: BotProcess) -> list[Row]:
    lines = (bot.folder / "jobs.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


async def a_day(
    new_bot: BotMaker, folder: Path, model: ModelServer | None
) -> tuple[Pair, Talk, datetime]:
    """Two bots through the last day of a year, until they have nothing to do and have ended."""
    with CompressedClock(folder / "clock", START, SPEED) as clock:
        pair = await two_bots(new_bot, clock, model)
        first, second = pair.bots
        async with AsyncExitStack() as stack:
            clients = {
                name: [
                    await stack.enter_async_context(OneBotClient(bot.port, ACCOUNTS[name]))
                    for bot in ((first,), (second,), (first, second))[number]
                ]
                for number, name in enumerate(ACCOUNTS)
            }
            talk = Talk(clock, clients)
            await talk.go_on(START, DAY_END - timedelta(minutes=20))
            await all_stored(pair, talk, model)
            await talk.go_on(DAY_END, YEAR_END - timedelta(minutes=20))
            await all_stored(pair, talk, model)
            await clock.go_on_until(YEAR_END + timedelta(minutes=5))
            await until(lambda: pair.count(_PENDING) + pair.count(_OPEN) == 0, within=30)
            done = len(pair.jobs())
            await clock.go_on_until(YEAR_END + timedelta(hours=1))
            assert len(pair.jobs()) == done, "there was nothing to do"
            for bot in pair.bots:
                assert await bot.terminate() in CLEAN_EXIT
        return pair, talk, clock.now


async def all_stored(pair: Pair, talk: Talk, model: ModelServer | None) -> None:
    """While the clock stands: nothing may be on its way when a day ends."""
    await until(lambda: pair.count(_STORED) == len(talk.said), within=30)
    if model is not None:
        await until(lambda: pair.count(_OWN) == talk.private, within=30)


async def two_bots(new_bot: BotMaker, clock: CompressedClock, model: ModelServer | None) -> Pair:
    plugins = {"compressed_bot": PLUGIN}
    first = await new_bot(SETTINGS | clock.env, plugins=plugins, model=model).start()
    shared = {"NIANLUN__DATABASE_URL": f"sqlite:///{first.database}"}
    second = new_bot(SETTINGS | clock.env | shared, plugins=plugins, model=model)
    return Pair((first, await second.start()))


# What is checked


def check_work(pair: Pair, talk: Talk) -> None:
    """No message twice in a window, no source twice in a text, each period closed once."""
    jobs = pair.jobs()
    kinds = Counter(job["kind"] for job in jobs)
    assert set(kinds) == {"window", "day", "month", "year"}, kinds
    sizes = {len(job["sources"]) for job in jobs if job["kind"] == "window"}
    assert sizes >= {9, 50}, "some were closed by silence, some by their number"
    rows = {(chat, seq): row for chat, seq, *row in pair.query(_TEXTS)}
    noted = Counter(
        (job["chat"], seq) for job in jobs if job["kind"] == "window" for seq in job["sources"]
    )
    assert noted == Counter(key for key, (_, _, skipped) in rows.items() if skipped is None)
    stored = Counter(token for text, _, _ in rows.values() for token in TOKEN.findall(text))
    assert stored == Counter(set(talk.said) - talk.taken_back)
    masked = [key for key, (_, withdrawn_at, _) in rows.items() if withdrawn_at is not None]
    assert len(masked) == len(talk.taken_back) > 0
    rollups = [job for job in jobs if job["kind"] != "window"]
    chats = len(BUSY) + len(QUIET)
    by_period = grouped(rollups, lambda job: (job["chat"], job["kind"], job["period"]))
    assert Counter(key[1:] for key in by_period) == Counter(dict.fromkeys(PERIODS, chats))
    for written in by_period.values():
        check_period(written)
    versions = {(chat, kind, period): n for chat, kind, period, n in pair.query(_VERSIONS)}
    assert versions == {key: len(written) for key, written in by_period.items()}


def check_period(written: Sequence[Row]) -> None:
    """Each source is added once, and once the text is made of all of them: when it is over."""
    *added, whole = written
    assert [job["closes"] for job in written] == [False] * len(added) + [True]
    once = Counter(source for job in added for source in job["sources"])
    assert once <= Counter(whole["sources"]) == Counter(set(whole["sources"]))


def grouped(rows: Sequence[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def check_peace(pair: Pair, now: datetime) -> None:
    """Both did some of it, nobody was refused a lock, and the memory is sound."""
    for bot in pair.bots:
        told = [line for line in bot.output.splitlines() if not HARMLESS.search(line)]
        assert told == []
        assert jobs_of(bot)
    failures = [one for figures in pair.figures() for one in figures["failures"]]
    assert [one for one in failures if NEW_DATABASE not in one] == []
    assert pair.count("SELECT count(*) FROM nianlun_lease") == 0
    assert pair.count("SELECT sum(failures) FROM nianlun_chat") == 0
    for (chat_id,) in pair.query("SELECT id FROM nianlun_chat"):
        found = read_and_check(pair.bots[0].database, chat_id, CALENDAR, now)
        assert found.found == 0, found.findings


def block(request: Row, title: str) -> str | None:
    found = re.search(rf"【{title} (\w+)】\n(.*?)\n【{title}完 \1】", asked(request), re.DOTALL)
    return found[2] if found else None


def check_requests(requests: Sequence[Row], jobs: Sequence[Row], talk: Talk) -> None:
    """The model was asked for each note once, and for nothing that was not kept."""
    for_notes = [request for request in requests if calls_for_notes(request)]
    windows = [lines for request in for_notes if (lines := block(request, "聊天记录"))]
    assert len(windows) == sum(job["kind"] == "window" for job in jobs)
    shown = Counter(token for lines in windows for token in TOKEN.findall(lines))
    assert shown == Counter(set(talk.said) - talk.taken_back)
    rollups = Counter((job["kind"], job["period"]) for job in jobs if job["kind"] != "window")
    assert Counter(targets_of(for_notes)) == rollups


def targets_of(requests: Sequence[Row]) -> Iterator[tuple[str, str]]:
    for request in requests:
        for task in json.loads(block(request, "任务") or '{"tasks": []}')["tasks"]:
            yield task["target"]["kind"], task["target"]["date"]


def note(request: dict[str, Any]) -> Reply:
    """Quotes the first of what it is shown, after a while in which the other bot might ask."""
    if (batch := block(request, "任务")) is None:
        shown = [block(request, "聊天记录") or ""]
    else:
        shown = [task["source"]["memory"] for task in json.loads(batch)["tasks"]]
    tokens = [token for text in shown for token in TOKEN.findall(text)[:2]]
    return Delay(random.uniform(0.02, 0.1), helpful(*tokens)(request))


async def test_a_day_with_a_model(new_bot: BotMaker, model: ModelServer, tmp_path: Path) -> None:
    model.script(note)
    pair, talk, now = await a_day(new_bot, tmp_path, model)
    check_work(pair, talk)
    check_peace(pair, now)
    check_requests(model.requests, pair.jobs(), talk)
    notes = sum(calls_for_notes(request) for request in model.requests)
    assert pair.query(_CALLS) == [(notes, 0)]
    assert len(model.requests) - notes == talk.private


async def test_a_day_offline(new_bot: BotMaker, tmp_path: Path) -> None:
    pair, talk, now = await a_day(new_bot, tmp_path, None)
    check_work(pair, talk)
    check_peace(pair, now)
