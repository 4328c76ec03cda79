"""Recall and recording at a million messages, against bare FTS5 and bare rows. See README.md."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
import importlib
from itertools import accumulate
import json
from pathlib import Path
import random
import re
import sqlite3
from statistics import median
import tempfile
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from import_speed import load
from wire import REPOSITORY, say

TARGET = 2.0
"""Times as long as the anchor that recall, and recording, may take."""
_PLUGIN = "plugins.nonebot_plugin_nianlun"
_BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
_BATCH = 500
_LONG_TAIL = 30_000
"""Words of two characters that hardly anybody says."""
_ACTIVITY = 50
_ASKING = ("什么时候", "你还记得", "谁说过", "为什么", "吗", "怎么样")
_ANCHOR = "SELECT rowid FROM anchor WHERE anchor MATCH ? ORDER BY rank LIMIT 60"


@dataclass(frozen=True)
class Timing:
    """Milliseconds of the middle and of the slowest twentieth."""

    p50: float
    p95: float

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        ordered = sorted(seconds)
        return cls(1000 * median(ordered), 1000 * ordered[int(len(ordered) * 0.95)])

    def __str__(self) -> str:
        return f"{self.p50:6.2f} / {self.p95:6.2f} ms"


class Chatter:
    """Short lines of words as frequent as words are (Zipf): the sample's own, and a long tail."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        rjieba = importlib.import_module("rjieba")
        folder = REPOSITORY / "plugins" / "nonebot_plugin_nianlun" / "demo"
        source = "".join(file.read_text("utf-8") for file in sorted(folder.glob("*.py")))
        runs = re.findall("[\u4e00-\u9fff]+", source)
        words = list(dict.fromkeys(word for run in runs for word in rjieba.cut(run)))
        characters = sorted({character for word in words for character in word})
        words += ["".join(self.random.choices(characters, k=2)) for _ in range(_LONG_TAIL)]
        self._words = words
        self._weights = list(accumulate(1 / rank for rank in range(2, len(words) + 2)))

    def line(self) -> str:
        count = self.random.randint(1, 9)
        return "".join(self.random.choices(self._words, cum_weights=self._weights, k=count))

    def question(self, line: str) -> str:
        """Something about a line that was said."""
        begin = self.random.randrange(max(1, len(line) - 4))
        return line[begin : begin + 6] + self.random.choice(_ASKING)


def module(name: str) -> Any:
    return importlib.import_module(f"{_PLUGIN}.{name}")


def message(chat_id: int, seq: int, text: str) -> list[Any]:
    """A row as `sql.insert_messages` takes it."""
    at = _BEGAN + timedelta(seconds=30 * seq)
    key = f"{int(at.timestamp())}|{seq}|2000{seq % 40}"
    segments = json.dumps([{"type": "text", "data": {"text": text}}], ensure_ascii=False)
    head = [chat_id, seq, key, str(seq), None, at.isoformat(" "), f"2000{seq % 40}", "某人"]
    return [*head, text, segments, None, None, "event", None, "ok", None, None]


class Store:
    """A database of the product in a folder of its own."""

    def __init__(self, path: Path, chatter: Chatter) -> None:
        self.path = path
        self.lines: dict[int, list[str]] = {}
        self._chatter = chatter
        self._recording = module("store.recording")
        self._sql = module("store.sql")
        self._search = module("store.search")
        self._models = module("store.models")
        transactional = module("store.database").transactional
        self.rows_alone = transactional(self._rows_alone)
        self.rows_with_entries = transactional(self._rows_with_entries)
        self._notes = transactional(self._write_notes)

    async def _rows_alone(self, rows: list[list[Any]]) -> None:
        await self._sql.insert_messages(rows)

    async def _rows_with_entries(self, rows: list[list[Any]]) -> None:
        await self._recording.store_rows(rows)

    async def _write_notes(self, chat_id: int, texts: list[str], first: int) -> None:
        activities = [
            self._models.Activity(
                chat_id=chat_id,
                number=number,
                date=(_BEGAN + timedelta(days=number // 10)).date().isoformat(),
                text=text,
                origin="window",
                time=_BEGAN + timedelta(minutes=25 * number),
                writer="model",
                written_at=_BEGAN,
            )
            for number, text in enumerate(texts, first)
        ]
        await self._models.Activity.bulk_create(activities)
        await self._search.add(chat_id, "activity", [row.number for row in activities])

    async def fill(self, chat_id: int, count: int) -> None:
        """A chat with so many messages, and a note over each fifty of them."""
        chat = {"id": chat_id, "self_id": "1", "kind": "group", "peer_id": str(chat_id)}
        counters = {"last_seq": count, "last_activity": count // _ACTIVITY}
        await self._models.Chat.create(**chat, **counters, created_at=_BEGAN)
        lines = self.lines[chat_id] = [self._chatter.line() for _ in range(count)]
        for first in range(0, count, _BATCH):
            part = lines[first : first + _BATCH]
            rows = [message(chat_id, seq, text) for seq, text in enumerate(part, first + 1)]
            await self.rows_with_entries(rows)
        notes = ["".join(lines[n : n + 3]) for n in range(0, count - _ACTIVITY + 1, _ACTIVITY)]
        for first in range(0, len(notes), _BATCH):
            await self._notes(chat_id, notes[first : first + _BATCH], first + 1)

    def anchor(self) -> sqlite3.Connection:
        """The same terms of all messages in a plain FTS5 table, with a file of its own."""
        connection = sqlite3.connect(self.path.with_name("anchor.db"), isolation_level=None)
        connection.execute(
            "CREATE VIRTUAL TABLE anchor USING fts5(terms, tokenize=\"ascii tokenchars '.@'\")"
        )
        connection.execute("ATTACH ? AS product", (str(self.path),))
        connection.execute(
            "INSERT INTO anchor (rowid, terms) SELECT id, terms FROM product.nianlun_search_terms"
            " WHERE (id >> 36) & 7 = 0 ORDER BY id"
        )
        connection.execute("DETACH product")
        return connection


@asynccontextmanager
async def opened(path: Path, chatter: Chatter) -> AsyncIterator[Store]:
    database = module("store.database")
    path.parent.mkdir()
    await database.prepare(path)
    await database.open_store(path)
    try:
        yield Store(path, chatter)
    finally:
        await database.close_store()


@dataclass(frozen=True)
class Recalled:
    """Recall in one chat against the bare ranked query for the same terms."""

    messages: int
    chats: int
    recall: Timing
    bare: Timing
    ratio: float
    """Median over the questions of recall's time by that of the bare query."""

    def __str__(self) -> str:
        return (
            f"{self.messages:>9} messages in {self.chats:2} chats: recall {self.recall},"
            f" bare query {self.bare}, ratio {self.ratio:.2f}"
        )


class Recall:
    """The product's recall over one database."""

    def __init__(self, path: Path) -> None:
        self._calendar = module("memory.calendar").Calendar(ZoneInfo("Asia/Shanghai"), time(4))
        clock = module("clock").SystemClock()
        self.reader = module("store.search").SearchReader(path, self._calendar)
        self._recalling = module("recalling").Recalling(self.reader, "年轮", clock, self._calendar)
        self._query = module("recalling").RecallQuery
        self._understand = module("memory.query").understand
        self._nobody = module("memory.people").People()

    def terms(self, text: str) -> tuple[str, ...]:
        """What a question is searched by; nothing where it is about a time."""
        now = datetime.now(UTC)
        question = self._understand(
            text, asker=None, people=self._nobody, now=now, calendar=self._calendar
        )
        return () if question.search.span else question.search.terms

    async def seconds(self, chat_id: int, text: str) -> float:
        began = perf_counter()
        result = await self._recalling.recall(chat_id, self._query(text, asker="20001"))
        if not result.items:
            raise SystemExit(f"nothing was found for {text!r}")
        return perf_counter() - began


def bare_seconds(anchor: sqlite3.Connection, chat_id: int, terms: tuple[str, ...]) -> float:
    match = " OR ".join(f'"{chat_id}m{term}"' for term in terms)
    began = perf_counter()
    anchor.execute(_ANCHOR, (match,)).fetchall()
    return perf_counter() - began


async def recall(store: Store, chat_id: int, chatter: Chatter, count: int) -> Recalled:
    """Ask about lines of one chat; both ways in turn, the second time that each is asked counts."""
    product = Recall(store.path)
    ours: list[float] = []
    bare: list[float] = []
    with closing(store.anchor()) as anchor:
        while len(ours) < count:
            text = chatter.question(chatter.random.choice(store.lines[chat_id]))
            if not (terms := product.terms(text)):
                continue
            await product.seconds(chat_id, text)
            bare_seconds(anchor, chat_id, terms)
            ours.append(await product.seconds(chat_id, text))
            bare.append(bare_seconds(anchor, chat_id, terms))
    await product.reader.close()
    total = sum(map(len, store.lines.values()))
    ratios = [mine / theirs for mine, theirs in zip(ours, bare, strict=True)]
    return Recalled(total, len(store.lines), Timing.of(ours), Timing.of(bare), median(ratios))


@dataclass(frozen=True)
class Recorded:
    """Recording in batches of one size, microseconds a message."""

    batch: int
    rows: float
    with_entries: float

    @property
    def ratio(self) -> float:
        return self.with_entries / self.rows

    def __str__(self) -> str:
        return (
            f"recording {self.batch:3} a commit: rows {self.rows:6.1f} us, with their entries"
            f" {self.with_entries:6.1f} us a message, ratio {self.ratio:.2f}"
        )


async def record(store: Store, chatter: Chatter, batch: int, rounds: int) -> Recorded:
    """Batches with and without entries in turn, each into a chat of its own."""
    chats = [900_000 + 10 * batch, 900_001 + 10 * batch]
    ways: list[Callable[[list[list[Any]]], Awaitable[None]]]
    ways = [store.rows_alone, store.rows_with_entries]
    seconds: list[list[float]] = [[], []]
    for chat_id in chats:
        row = {"self_id": "1", "kind": "group", "peer_id": str(chat_id)}
        await module("store.models").Chat.create(id=chat_id, **row, created_at=_BEGAN)
    for number in range(rounds):
        lines = [chatter.line() for _ in range(batch)]
        for way, chat_id, taken in zip(ways, chats, seconds, strict=True):
            numbered = enumerate(lines, number * batch + 1)
            rows = [message(chat_id, seq, text) for seq, text in numbered]
            began = perf_counter()
            await way(rows)
            taken.append(perf_counter() - began)
    rows_alone, with_entries = (1e6 * sum(taken) / rounds / batch for taken in seconds)
    return Recorded(batch, rows_alone, with_entries)


def shares(total: int, chats: int) -> Iterator[tuple[int, int]]:
    for chat_id in range(1, chats + 1):
        yield chat_id, total // chats


async def run(options: argparse.Namespace) -> tuple[list[Recalled], list[Recorded]]:
    chatter = Chatter(options.seed)
    recalls: list[Recalled] = []
    records: list[Recorded] = []
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        load(Path(folder, "unused"))
        total, chats = options.messages, options.chats
        for number, (messages, among) in enumerate(
            ((total // chats, 1), (total, chats), (total, 1))
        ):
            async with opened(Path(folder, str(number), "nianlun.db"), chatter) as store:
                for chat_id, count in shares(messages, among):
                    await store.fill(chat_id, count)
                recalls.append(await recall(store, 1, chatter, options.questions))
                if not options.json:
                    say(str(recalls[-1]))
                if among > 1:
                    records += [
                        await record(store, chatter, 200, 50),
                        await record(store, chatter, 1, 1000),
                    ]
    return recalls, records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    recalls, records = asyncio.run(run(options))
    alone, among, _ = recalls
    growth = among.recall.p50 / alone.recall.p50
    if options.json:
        report = {
            "recall": [asdict(one) for one in recalls],
            "growth_with_other_chats": growth,
            "recording": [asdict(one) | {"ratio": one.ratio} for one in records],
            "target": TARGET,
        }
        say(json.dumps(report, indent=1))
    else:
        say(f"{options.chats - 1} other chats beside it: {growth:.2f} times as long")
        for one in records:
            say(str(one))
        say(f"target for each ratio: {TARGET:.0f} at most")


if __name__ == "__main__":
    main()
