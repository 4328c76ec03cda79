"""Kills a bot at random moments of whatever it does, and looks at what it left behind.

What was seen in the database must be there ever after; what was taken back must be nowhere; the
invariants hold after every kill; and in the end no work is left undone, and none is done again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
import json
from pathlib import Path
import random
import re
import sqlite3
import time as stopwatch
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

from websockets.exceptions import ConnectionClosed, InvalidHandshake

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.store.invariants import read_and_check
from tests.support.bot_process import REPOSITORY, BotProcess
from tests.support.loaded_bot import LoadedBot
from tests.support.model_server import Delay, ModelServer, Reply, helpful
from tests.support.onebot_client import SELF_ID, OneBotClient
from tests.support.onebot_platform import Payload

_PATIENCE = 10
"""Seconds after which a message that was read must be on disk, however busy the machine is."""
_CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
_SETTINGS = {
    "LOG_LEVEL": "WARNING",
    "NIANLUN__ACTIVITY_MESSAGES": "8",
    "NIANLUN__ACTIVITY_MESSAGES_PRIVATE": "8",
    "NIANLUN__ACTIVITY_MIN_MESSAGES": "4",
}
_GROUPS = (101, 102)
_MEMBERS = (20002, 20003, 20004)
_FRIEND = 20001
_IMPORTED = 103
_TOKEN = re.compile(r"暗号\d{6}")
_WRITTEN = (
    "SELECT 'activity ' || number, text FROM nianlun_activity"
    " UNION ALL SELECT kind || ' ' || period, text FROM nianlun_memory"
    " UNION ALL SELECT 'version ' || version || ' of ' || ref, text FROM nianlun_note_version"
    " UNION ALL SELECT 'fact from ' || source, text FROM nianlun_fact"
    " UNION ALL SELECT 'earlier fact from ' || source, text FROM nianlun_fact_version"
    " UNION ALL SELECT 'message ' || seq, text || segments FROM nianlun_message"
    " WHERE withdrawn_at IS NOT NULL"
)
_STATE = (
    "SELECT 'activity', chat_id, number, version, date FROM nianlun_activity"
    " UNION ALL SELECT kind, chat_id, period, version, sources FROM nianlun_memory"
)
_FORGOTTEN = (
    "SELECT c.peer_id, e.user_id, e.ends FROM nianlun_exclusion e"
    " JOIN nianlun_chat c ON c.id = e.chat_id WHERE e.reason = 'forgotten'"
)
_PENDING = "SELECT count(*) FROM nianlun_message WHERE activity_id IS NULL AND skipped IS NULL"


class Violation(AssertionError):
    """Something that must never be was found after a kill."""


@dataclass(slots=True)
class Said:
    """A message of ours, and what is known of it."""

    token: str
    event: Payload
    sent_at: float
    seen: bool = False
    """It was in the database once."""
    taken_back_at: float | None = None
    masked: bool = False
    """Its withdrawal was in the database once."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A member's wish to be forgotten, and what it is about."""

    group: int
    user: int
    at: datetime
    said: list[Said]


class Killing:
    """One bot folder with its database, everything that was said to it, and the dice."""

    def __init__(self, folder: Path, seed: int, root: Path = REPOSITORY) -> None:
        self._dice = random.Random(seed)
        self._bot = BotProcess(folder, _SETTINGS, root=root)
        self._database = folder / "data" / "nonebot_plugin_nianlun" / "nianlun.db"
        self._model = ModelServer()
        self._model.script(self._note)
        self._bots = [LoadedBot(self._bot, None), LoadedBot(self._bot, self._model)]
        self.said: list[Said] = []
        self._by_id: dict[str, Said] = {}
        self._wishes: list[Wish] = []
        self._read_to = [0, 0]
        self._clock = datetime.now(UTC) - timedelta(days=500)
        self._imports: list[tuple[Path, list[str]]] = []
        self._unfinished: Path | None = None
        self.kills: Counter[str] = Counter()
        self.slowest = 0.0
        """Seconds from when the bot had read messages until the last of them was on disk."""

    async def __aenter__(self) -> Self:
        self._model.start()
        for bot in self._bots:
            await bot.load()
        # What only looks makes no database, but brings one up to date that has nothing in it yet.
        self._database.parent.mkdir(parents=True, exist_ok=True)
        self._database.touch()
        await self._command(self._bots[0], "doctor")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for bot in self._bots:
            await bot.close()
        self._model.stop()
        if error is not None:
            error.add_note(f"--- output of the bots ---\n{self._bot.output[-6000:]}")

    @property
    def model_calls(self) -> int:
        return len(self._model.requests)

    # One kill

    async def kill_once(self) -> None:
        """Start something, kill it, and check what is left."""
        kinds: dict[str, tuple[int, Callable[[LoadedBot], Awaitable[None]]]] = {
            "start": (1, self._while_starting),
            "talk": (4, self._while_talking),
            "withdrawals": (4, self._while_taking_back),
            "forgetting": (3, self._while_forgetting),
            "rollup": (4, self._while_rolling_up),
            "import": (3, self._while_importing),
        }
        weights = [weight for weight, _ in kinds.values()]
        (kind,) = self._dice.choices(list(kinds), weights)
        bot = self._dice.choice(self._bots)
        await kinds[kind][1](bot)
        self.kills[kind] += 1
        self.check()

    def _die(self, most: int) -> tuple[int, str] | None:
        """Half of the processes die at a commit, the others by the clock."""
        if self._dice.random() < 0.5:
            return None
        return self._dice.randint(1, most), self._dice.choice(["before", "after"])

    async def _while_starting(self, bot: LoadedBot) -> None:
        await bot.start()
        await asyncio.sleep(self._dice.uniform(0, 0.25))
        await bot.kill()

    async def _while_talking(self, bot: LoadedBot) -> None:
        await self._live(bot, taking_back=0)

    async def _while_taking_back(self, bot: LoadedBot) -> None:
        await self._live(bot, taking_back=0.4)

    async def _live(self, bot: LoadedBot, taking_back: float) -> None:
        die = self._die(25)
        waits, first = die is None and self._dice.random() < 0.3, len(self.said)
        await bot.start(die=die)
        client = OneBotClient(self._bot.port)
        try:
            await self._connect(bot, client)
            end = stopwatch.monotonic() + self._dice.uniform(0.02, 0.6)
            while stopwatch.monotonic() < end and bot.alive:
                if self.said and self._dice.random() < taking_back:
                    await self._take_back(client)
                else:
                    await self._say(client)
                if self._dice.random() < 0.2:
                    self._look()
                await asyncio.sleep(0.002)
            if waits:
                await client.settle()
                await self._until_seen(self.said[first:])
        except (ConnectionClosed, ConnectionError, InvalidHandshake):
            pass  # it died by itself
        self._look()
        await bot.kill()
        await client.close()

    async def _until_seen(self, said: Sequence[Said]) -> None:
        """Wait until all of it is in the database, and note how long that took."""
        began = stopwatch.monotonic()
        while not all(one.seen for one in said):
            if stopwatch.monotonic() - began > _PATIENCE:
                raise Violation(f"some of {len(said)} messages are not stored after {_PATIENCE} s")
            await asyncio.sleep(0.01)
            self._look()
        self.slowest = max(self.slowest, stopwatch.monotonic() - began)

    async def _while_forgetting(self, bot: LoadedBot) -> None:
        await bot.start(die=self._die(12))
        client = OneBotClient(self._bot.port)
        try:
            await self._connect(bot, client)
            for _ in range(self._dice.randint(3, 20)):
                await self._say(client)
            await self._ask_to_be_forgotten(client)
            end = stopwatch.monotonic() + self._dice.uniform(0, 0.3)
            while stopwatch.monotonic() < end and bot.alive:
                self._look()
                await asyncio.sleep(0.01)
        except (ConnectionClosed, ConnectionError, InvalidHandshake, TimeoutError):
            pass  # it died by itself
        self._look()
        await bot.kill()
        await client.close()

    async def _ask_to_be_forgotten(self, client: OneBotClient) -> None:
        group, user = self._dice.choice(_GROUPS), self._dice.choice(_MEMBERS)
        self._clock += timedelta(minutes=1)
        command = "/记忆 忘记我"
        told: dict[str, Any] = {"group_id": group, "at": self._clock.timestamp()}
        await client.group_message(command, user, **told)
        answer = await client.wait_for_send(group, within=2)
        code = re.search(rf"{command} (\d{{6}})", answer.text)
        if code is None:
            raise Violation(f"no code to be forgotten with: {answer.text}")
        wish = Wish(group, user, self._clock.replace(microsecond=0), [])
        for said in self.said:
            if (said.event.get("group_id"), said.event["user_id"]) == (group, user):
                said.taken_back_at = said.taken_back_at or stopwatch.monotonic()
                wish.said.append(said)
        self._wishes.append(wish)
        await client.group_message(f"{command} {code[1]}", user, **told)

    async def _connect(self, bot: LoadedBot, client: OneBotClient) -> None:
        end = stopwatch.monotonic() + 20
        while bot.alive:
            try:
                await client.connect(within=0)
            except (ConnectionError, InvalidHandshake):
                if stopwatch.monotonic() > end:
                    raise
                await asyncio.sleep(0.01)
            else:
                return
        raise ConnectionError

    async def _say(self, client: OneBotClient) -> None:
        self._clock += timedelta(seconds=self._dice.randint(20, 3600))
        self._clock = min(self._clock, datetime.now(UTC))
        number = len(self.said) + 1
        token = f"暗号{number:06}"
        chat = self._dice.choice([*_GROUPS, None])
        told: dict[str, Any] = {"at": self._clock.timestamp(), "message_id": 7_000_000 + number}
        text = f"{token}，周末一起去爬山吧"
        if chat is None:
            event = await client.private_message(text, _FRIEND, **told)
        else:
            user = self._dice.choice(_MEMBERS)
            event = await client.group_message(text, user, group_id=chat, **told)
        said = Said(token, event, stopwatch.monotonic())
        self.said.append(said)
        self._by_id[str(event["message_id"])] = said

    async def _take_back(self, client: OneBotClient) -> None:
        recent = self.said[-60:] if self._dice.random() < 0.7 else self.said
        said = self._dice.choice(recent)
        if said.taken_back_at is None:
            said.taken_back_at = stopwatch.monotonic()
            await client.recall(said.event)

    async def _while_rolling_up(self, bot: LoadedBot) -> None:
        await self._run_and_kill(bot, "rollup")

    async def _while_importing(self, bot: LoadedBot) -> None:
        if self._unfinished is None:
            self._unfinished = self._new_import()
        if await self._run_and_kill(bot, *self._import_arguments(self._unfinished)):
            self._unfinished = None

    async def _run_and_kill(self, bot: LoadedBot, *arguments: str) -> bool:
        """Kill a command in the middle; True where it was faster and did its work."""
        status = self._bot.folder / "status"
        status.unlink(missing_ok=True)
        await bot.start(*arguments, die=self._die(12))
        end = stopwatch.monotonic() + self._dice.uniform(0.05, 0.7)
        while bot.alive and stopwatch.monotonic() < end:
            self._look()
            await asyncio.sleep(0.02)
        await bot.kill()
        return status.exists() and status.read_text("ascii") == "0"

    def _new_import(self) -> Path:
        number = len(self._imports) + 1
        path = self._bot.folder / f"import-{number}.txt"
        at = datetime(2023, 1, 1, 12, 0, tzinfo=UTC) + timedelta(days=10 * number)
        tokens, lines = [], ["消息记录（此消息记录为文本格式，不支持重新导入）", ""]
        for line in range(self._dice.randint(40, 200)):
            at += timedelta(minutes=self._dice.randint(1, 60))
            tokens.append(f"存货{number:03}-{line:03}")
            lines += [f"{at:%Y-%m-%d %H:%M:%S} 小鹿(20001)", f"{tokens[-1]}，晚安", ""]
        path.write_text("\r\n".join(lines), "utf-8")
        self._imports.append((path, tokens))
        return path

    def _import_arguments(self, path: Path) -> Sequence[str]:
        chat = f"group:{_IMPORTED}"
        return ("import", path.name, "--chat", chat, "--self-id", str(SELF_ID))

    def _note(self, request: dict[str, Any]) -> Reply:
        """Notes that quote what they are made of, so that nothing taken back can hide."""
        asked = "\n".join(turn["content"] for turn in request["messages"])
        tokens = dict.fromkeys(_TOKEN.findall(asked))
        said = str(helpful(*list(tokens)[:6])(request))
        if not said.startswith("{"):
            return said  # a reply to somebody, no note
        answer = json.loads(said)
        for fact in answer.get("facts", ()):
            # Of the message that it names and of no other, or it would outlive what it tells.
            line = re.search(rf"^#{fact['from']} .*$", asked, re.MULTILINE)
            fact["content"] = " ".join(_TOKEN.findall(line[0] if line else "")) or "没有"
        return Delay(random.uniform(0, 0.05), json.dumps(answer, ensure_ascii=False))

    # What is left

    def _query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._database, timeout=5)) as connection:
            return connection.execute(sql, values).fetchall()

    def _look(self) -> None:
        """See what is in the database by now: from here on it must stay."""
        found = self._query(
            "SELECT id, message_id FROM nianlun_message WHERE id > ? ORDER BY id", self._read_to[0]
        )
        for self._read_to[0], message_id in found:
            if message_id in self._by_id:
                self._by_id[message_id].seen = True
        notices = self._query(
            "SELECT id, message_id FROM nianlun_exclusion WHERE id > ? ORDER BY id",
            self._read_to[1],
        )
        for self._read_to[1], message_id in notices:
            if message_id in self._by_id:
                self._by_id[message_id].masked = True
        forgotten = {(peer, user): ends for peer, user, ends in self._query(_FORGOTTEN)}
        for wish in self._wishes:
            ends = forgotten.get((str(wish.group), str(wish.user)))
            if ends is not None and datetime.fromisoformat(ends) >= wish.at:
                for said in wish.said:
                    said.masked = said.seen

    def check(self) -> None:
        """Raise Violation unless everything is as it was promised."""
        self._look()
        self._check_messages()
        gone = {said.token for said in self.said if said.masked}
        for where, text in self._query(_WRITTEN):
            if leaked := sorted(gone.intersection(_TOKEN.findall(text))):
                raise Violation(f"taken back and still in {where}: {leaked[:5]}")
        now = datetime.now(UTC)
        for (chat_id,) in self._query("SELECT id FROM nianlun_chat"):
            found = read_and_check(self._database, chat_id, _CALENDAR, now)
            if found.found:
                raise Violation(f"{found.found} in chat {chat_id}: {found.findings}")

    def _check_messages(self) -> None:
        rows = self._query("SELECT message_id, text, withdrawn_at FROM nianlun_message")
        texts: dict[str, tuple[str, str | None]] = {}
        for message_id, text, withdrawn_at in rows:
            if message_id in texts:
                raise Violation(f"message {message_id} is stored twice")
            if message_id in self._by_id:  # others' numbers begin anew with each connection
                texts[message_id] = text, withdrawn_at
        for message_id, said in self._by_id.items():
            if not said.seen:
                continue
            text, withdrawn_at = texts.get(message_id, ("", None))
            kept = said.token in text
            if not kept and said.taken_back_at is None:
                raise Violation(f"{said.token} was stored and is lost")
            if said.masked and (kept or withdrawn_at is None):
                raise Violation(f"{said.token} was taken back and is there again")

    async def settle(self) -> None:
        """Finish all that is owed, and see that then nothing is left, nor done again."""
        if self._unfinished is not None:
            await self._command(self._bots[0], *self._import_arguments(self._unfinished))
            self._unfinished = None
        # The one with the model: what the kills left may have been done by the other one alone.
        await self._command(self._bots[1], "rollup")
        self.check()
        if pending := self._query(_PENDING)[0][0]:
            raise Violation(f"{pending} messages are still owed a note")
        self._check_imports()
        before, calls = sorted(map(repr, self._query(_STATE))), self.model_calls
        await self._command(self._dice.choice(self._bots), "rollup")
        if before != sorted(map(repr, self._query(_STATE))):
            raise Violation("work that was done is done again")
        if calls != self.model_calls:
            raise Violation(f"{self.model_calls - calls} model calls for nothing new")

    def _check_imports(self) -> None:
        stored = Counter(
            text.partition("，")[0]
            for (text,) in self._query("SELECT text FROM nianlun_message WHERE text LIKE '存货%'")
        )
        wanted = Counter(token for _, tokens in self._imports for token in tokens)
        if stored != wanted:
            raise Violation(f"imported: {list((stored - wanted) + (wanted - stored))[:5]} differ")

    async def _command(self, bot: LoadedBot, *arguments: str) -> None:
        status = self._bot.folder / "status"
        status.unlink(missing_ok=True)
        await bot.start(*arguments)
        await bot.gone(120)
        if not status.exists() or status.read_text("ascii") != "0":
            raise Violation(f"{arguments} failed:\n{self._bot.output[-3000:]}")
