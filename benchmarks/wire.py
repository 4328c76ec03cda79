"""What the benchmarks share: a bot in a process of its own, and messages over a real WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
import json
from pathlib import Path
import random
import sys
import time
from types import TracebackType
from typing import Any, Self

import psutil
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.support.bot_process import BotProcess

SELF_ID = 3889001234
FIRST_GROUP = 742100100
FIRST_SPEAKER = 10001
SPEAKERS_PER_GROUP = 60
WINDOW = 50
"""Messages that close a window of a group, unless configured."""

_PHRASES = (
    *(
        "今天",
        "明天",
        "周末一起",
        "吃火锅",
        "开会",
        "打游戏",
        "考试",
        "下雨了",
        "地铁又迟到",
        "加班",
    ),
    *(
        "好的",
        "哈哈哈",
        "真的吗",
        "我觉得不行",
        "可以",
        "等等",
        "收到",
        "晚安",
        "ok",
        "lol",
        "Python",
    ),
    *(
        "那个",
        "为什么",
        "没事",
        "走吧",
        "在吗",
        "来了",
        "笑死",
        "2.5",
        "？",
        "！",
        "，",
        "。",
        "…",
        "😂",
    ),
)


def say(line: str = "") -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def group_messages(groups: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Endless ordinary text messages as NapCat pushes them, without time; every id is new."""
    dice = random.Random(seed)
    number = 0
    while True:
        number += 1
        group = dice.randrange(groups)
        # A few people say most of what is said.
        person = min(int(dice.expovariate(5 / SPEAKERS_PER_GROUP)), SPEAKERS_PER_GROUP - 1)
        user_id = FIRST_SPEAKER + group * SPEAKERS_PER_GROUP + person
        text = "".join(dice.choices(_PHRASES, k=1 + int(dice.expovariate(0.15))))
        # An odd factor makes of each number another one of 31 bits, as scattered as real ids.
        message_id = number * 0x9E3779B1 % (1 << 31)
        sender = {
            "user_id": user_id,
            "nickname": f"昵称{user_id}",
            "card": "" if person % 3 else f"名片{person}",
            "role": "member",
        }
        yield {
            "self_id": SELF_ID,
            "user_id": user_id,
            "message_id": message_id,
            "message_seq": message_id,
            "real_id": message_id,
            "real_seq": str(40_000 + number),
            "message_type": "group",
            "sender": sender,
            "raw_message": text,
            "font": 14,
            "sub_type": "normal",
            "message": [{"type": "text", "data": {"text": text}}],
            "message_format": "array",
            "post_type": "message",
            "group_id": FIRST_GROUP + group,
            "group_name": f"摸鱼研究所{group}群",
        }


class Wire:
    """A bot process and the connection that feeds it."""

    def __init__(self, folder: Path, root: Path, env: Mapping[str, str], groups: int) -> None:
        settings = {"LOG_LEVEL": "WARNING", "DRIVER": "~fastapi", "NICKNAME": '["小忆"]'}
        self.bot = BotProcess(folder, settings | dict(env), root=root)
        self.sent = 0
        self._messages = group_messages(groups)
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.bot.start()
        headers = {"X-Self-ID": str(SELF_ID), "X-Client-Role": "Universal"}
        url = f"ws://127.0.0.1:{self.bot.port}/onebot/v11/ws"
        self._socket = await connect(
            url, additional_headers=headers, max_size=None, proxy=None, compression=None
        )
        self._reader = asyncio.create_task(self._refuse_calls(self._socket))
        self._process = psutil.Process(self.bot.pid)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._socket is not None:
                await self._socket.close()
            if self._reader is not None:
                await self._reader
            await self.bot.terminate()
        finally:
            self.bot.kill()

    async def feed(self, count: int, rate: float) -> float:
        """Send messages at `rate` a second; returns the rate that was really reached."""
        assert self._socket is not None
        now = int(time.time())
        frames = [
            json.dumps({**message, "time": now + int(number / rate)}, ensure_ascii=False)
            for number, message in enumerate(islice(self._messages, count))
        ]
        began = time.perf_counter()
        for number, frame in enumerate(frames):
            wait = began + number / rate - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            await self._socket.send(frame)
        self.sent += count
        return count / (time.perf_counter() - began)

    async def until_handled(self, within: float = 60) -> None:
        """Return when the bot is done with everything that was sent."""
        until = time.monotonic() + within
        while (done := self.handled()) < self.sent:
            if time.monotonic() > until:
                raise TimeoutError(f"{done} of {self.sent} messages after {within} s")
            await asyncio.sleep(0.05)

    def handled(self) -> int:
        """How many messages the bot is done with."""
        raise NotImplementedError

    def cpu_seconds(self) -> float:
        """CPU time that the process has used so far, in and out of the kernel."""
        times = self._process.cpu_times()
        return times.user + times.system

    def resident_mb(self) -> float:
        return self._process.memory_info().rss / 1e6

    async def until_quiet(self, within: float = 120) -> None:
        """Return once the process has done next to nothing for a second."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            before = self.cpu_seconds()
            await asyncio.sleep(1)
            if self.cpu_seconds() - before < 0.05:
                return
        raise TimeoutError(f"the bot was still busy after {within} s")

    async def _refuse_calls(self, socket: ClientConnection) -> None:
        answer = {"status": "failed", "retcode": 1404, "data": None, "message": ""}
        with suppress(ConnectionClosed):
            async for frame in socket:
                await socket.send(json.dumps(answer | {"echo": json.loads(frame).get("echo")}))


class BareWire(Wire):
    """A bot with one `on_message` matcher and nothing else."""

    def __init__(self, folder: Path, groups: int) -> None:
        super().__init__(folder, REPOSITORY / "benchmarks" / "bare_bot", {}, groups)

    def handled(self) -> int:
        file = self.bot.folder / "handled"
        return int((file.exists() and file.read_text(encoding="ascii")) or 0)


class NianlunWire(Wire):
    """The product as its owner starts it."""

    def __init__(self, folder: Path, groups: int, env: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, REPOSITORY, env or {}, groups)

    def handled(self) -> int:
        return self.bot.query("SELECT coalesce(sum(last_seq), 0) FROM nianlun_chat")[0][0]

    def notes(self) -> int:
        """How many activity notes are written so far."""
        return self.bot.query("SELECT count(*) FROM nianlun_activity")[0][0]

    async def until_noted(self) -> None:
        """Return once no window is closed and unwritten: the clock's last run was a moment ago."""
        query = (
            "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM nianlun_message"
            " WHERE activity_id IS NULL AND skipped IS NULL GROUP BY chat_id)"
        )
        until = time.monotonic() + 120
        while (pending := self.bot.query(query)[0][0]) >= WINDOW:
            if time.monotonic() > until:
                raise TimeoutError(f"{pending} messages of a chat still wait for a note")
            await asyncio.sleep(0.2)
        await self.until_quiet()

    def check_stored(self) -> None:
        """Fail unless every message that was sent is one row, with its text."""
        rows, ids, texts = self.bot.query(
            "SELECT count(*), count(DISTINCT chat_id || '/' || message_id), sum(text <> '')"
            " FROM nianlun_message"
        )[0]
        if not rows == ids == texts == self.sent:
            raise RuntimeError(f"sent {self.sent}, found {rows} rows, {ids} ids, {texts} texts")
