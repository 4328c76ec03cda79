"""How much of what answers a question is found again, against plain searches. See README.md."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
import importlib
import json
from pathlib import Path
import random
import tempfile
from typing import Any, TypeAlias

from import_speed import load
from labelled_talks import Asked, Line, Talk, read
from plain_search import Bm25, Fts5, PlainSearch
from wire import say

PLACES = (5, 10, 20)
BUDGET = 800
METRICS = (*(f"R@{k}" for k in PLACES), f"R@{BUDGET}t")
BASELINES: dict[str, Callable[[Sequence[Sequence[str]]], PlainSearch]]
BASELINES = {"FTS5": Fts5, "BM25": Bm25}
_PLUGIN = "plugins.nonebot_plugin_nianlun"
_SELF_ID = 10_001
_CHARACTER = "小忆"
_MOST = 60
"""Items that are asked for when only the budget is to end them."""
_RESAMPLES = 2000
_BATCH = 500


Found: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""Ids of the best lines, and of the best ones that fit the budget together."""


class Product:
    """The product's own path: lines are recorded into a database file and recalled from it."""

    def __init__(self, folder: Path) -> None:
        load(folder)
        names = ("lifecycle", "config", "types", "store.recording", "store.messages")
        lifecycle, config, self.types, self.recording, self.messages = (
            importlib.import_module(f"{_PLUGIN}.{name}") for name in names
        )
        self.readable = importlib.import_module(f"{_PLUGIN}.capture.readable").readable
        self.terms = importlib.import_module(f"{_PLUGIN}.memory.terms")
        self.recalled = importlib.import_module(f"{_PLUGIN}.memory.recalled")
        self.candidate = importlib.import_module(f"{_PLUGIN}.memory.search").Candidate
        self.time = datetime.now(UTC)
        driver = importlib.import_module("nonebot").get_driver()
        settings = config.Config.model_validate({})
        self.nianlun = lifecycle.Nianlun(settings, folder, driver.config, clock=self)
        self.chats = 0

    def now(self) -> datetime:
        return self.time

    async def store(self, talk: Talk) -> Stored:
        """Record a talk in a chat of its own; the clock stands an hour after its last line."""
        self.chats += 1
        self.time = talk.end
        speakers = sorted({line.speaker for line in talk.lines} - {"me"})
        people = {name: str(100_001 + n) for n, name in enumerate(speakers)} | {"me": "me"}
        peer = people[speakers[0]] if talk.private and speakers else str(700_000 + self.chats)
        chat = self.types.ChatKey(
            str(_SELF_ID + self.chats), "private" if talk.private else "group", peer
        )
        # What is recorded together is put into order of time.
        batch: list[Any] = []
        for number, line in enumerate(talk.lines):
            if batch and (len(batch) == _BATCH or line.time < batch[-1].time):
                await self.recording.record(batch, self.readable, _CHARACTER, self.now())
                batch = []
            batch.append(self._incoming(chat, line, people[line.speaker], number))
        await self.recording.record(batch, self.readable, _CHARACTER, self.now())
        return Stored(self, talk, chat, people)

    def _incoming(self, chat: Any, line: Line, user_id: str, number: int) -> Any:
        return self.types.Incoming(
            chat=chat,
            time=line.time,
            user_id=user_id,
            name=_CHARACTER if user_id == "me" else line.speaker,
            segments=[{"type": "text", "data": {"text": line.text}}],
            source="sent" if user_id == "me" else "event",
            message_id=str(number + 1),
        )


@dataclass
class Stored:
    """A talk in the product's database."""

    product: Product
    talk: Talk
    chat: Any
    people: dict[str, str]

    async def best(self, question: Asked) -> Found:
        ranked = await self._recall(question, PLACES[-1], 1_000_000)
        return ranked, await self._recall(question, _MOST, BUDGET)

    async def _recall(self, question: Asked, limit: int, budget: int) -> list[str]:
        asker = self.people.get(question.asker) if question.asker else None
        result = await self.product.nianlun.recall(
            self.chat, question.text, limit=limit, budget_tokens=budget, asker=asker
        )
        return [self.talk.lines[int(item.address[1:]) - 1].id for item in result.items]

    async def check(self) -> None:
        """Fail unless each line has the number that its place gives it."""
        status = await self.product.nianlun.status(self.chat)
        if status.messages != len(self.talk.lines):
            raise SystemExit(f"{status.messages} of {len(self.talk.lines)} lines were stored")


@dataclass
class Plain:
    """A plain search over the same lines as `speaker: text`, and over the product's own terms."""

    stored: Stored
    search: PlainSearch

    async def best(self, question: Asked) -> Found:
        terms = self.stored.product.terms.query_terms(question.text)
        places = self.search.ranked(terms, _MOST)
        lines = self.stored.talk.lines
        shown = self._within_budget(places)
        return [lines[place].id for place in places], [lines[place].id for place in shown]

    def _within_budget(self, places: Sequence[int]) -> list[int]:
        """Rendered, weighed and cut as the product does it."""
        product, people = self.stored.product, self.stored.people
        found = []
        for place in places:
            line = self.stored.talk.lines[place]
            who = people[line.speaker], line.speaker
            found.append(product.candidate("message", place + 1, 0, line.time, line.text, *who))
        look = product.recalled.Look(product.nianlun.calendar, {}, _CHARACTER, None)
        chosen = product.recalled.choose(found, {}, look, _MOST, BUDGET)
        return [int(item.address[1:]) - 1 for item in chosen.items]


def recalls(found: Found, evidence: frozenset[str]) -> list[float]:
    """The share of the evidence within each number of places, and within the budget."""
    ranked, fitting = found
    parts = [*(ranked[:places] for places in PLACES), fitting]
    return [len(evidence.intersection(part)) / len(evidence) for part in parts]


async def measure(product: Product, path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Every question of a file, by the product and by each baseline."""
    scores: dict[str, list[list[float]]] = {"Nianlun": [], **{name: [] for name in BASELINES}}
    kinds: list[str] = []
    for talk in _talks(path, options).values():
        stored = await product.store(talk)
        await stored.check()
        documents = [product.terms.index_terms(f"{one.speaker}: {one.text}") for one in talk.lines]
        plain = {name: make(documents) for name, make in BASELINES.items()}
        searchers = {name: Plain(stored, search) for name, search in plain.items()}
        for question in talk.questions:
            kinds.append(question.kind)
            for name, searcher in {"Nianlun": stored, **searchers}.items():
                found = await searcher.best(question)
                scores[name].append(recalls(found, question.evidence))
        for search in plain.values():
            search.close()
    return report(path.name, kinds, scores)


def _talks(path: Path, options: argparse.Namespace) -> dict[str, Talk]:
    try:
        return read(path, options.pooled, options.split)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{path} does not hold labelled talks: {error!r}") from error


async def run(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    product = Product(folder)
    await product.nianlun.open()
    try:
        return [await measure(product, path, options) for path in options.files]
    finally:
        await product.nianlun.close()


def report(name: str, kinds: list[str], scores: dict[str, list[list[float]]]) -> dict[str, Any]:
    by_kind = {
        kind: means([row for row, of in zip(scores["Nianlun"], kinds, strict=True) if of == kind])
        | {"questions": kinds.count(kind)}
        for kind in sorted(set(kinds))
    }
    return {
        "file": name,
        "questions": len(kinds),
        "recall": {searcher: means(rows) for searcher, rows in scores.items() if rows},
        "gain": {
            baseline: gains(scores["Nianlun"], scores[baseline]) for baseline in BASELINES if kinds
        },
        "kinds": by_kind,
    }


def means(rows: Sequence[Sequence[float]]) -> dict[str, float]:
    columns = zip(METRICS, zip(*rows, strict=True), strict=True)
    return {metric: sum(column) / len(column) for metric, column in columns}


def gains(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> dict[str, Any]:
    """For each metric the mean paired difference and the ends of its 95 % bootstrap interval."""
    dice = random.Random(0)
    found: dict[str, Any] = {}
    for index, metric in enumerate(METRICS):
        differences = [a[index] - b[index] for a, b in zip(ours, theirs, strict=True)]
        count = len(differences)
        drawn = sorted(sum(dice.choices(differences, k=count)) / count for _ in range(_RESAMPLES))
        low, high = drawn[_RESAMPLES // 40], drawn[-_RESAMPLES // 40 - 1]
        found[metric] = [sum(differences) / count, low, high]
    return found


def show(result: dict[str, Any]) -> None:
    say(f"{result['file']}: {result['questions']} questions")
    say(f"{'':16}" + "".join(f"{metric:>9}" for metric in METRICS))
    for searcher, row in result["recall"].items():
        say(f"{searcher:16}" + "".join(f"{row[metric]:9.3f}" for metric in METRICS))
    for baseline, row in result["gain"].items():
        parts = (
            f"{metric} {row[metric][0]:+.3f} [{row[metric][1]:+.3f}, {row[metric][2]:+.3f}]"
            for metric in METRICS
        )
        say(f"over {baseline}:  " + "  ".join(parts))
    for kind, row in result["kinds"].items():
        label = f"  {kind} ({row['questions']})"
        say(f"{label:16}" + "".join(f"{row[metric]:9.3f}" for metric in METRICS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    parser.add_argument("--pooled", action="store_true", help="all chats of a file as one group")
    parser.add_argument("--split", type=int, metavar="SEED", help="the held-out half alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        results = asyncio.run(run(options, Path(folder)))
    if options.json:
        say(json.dumps(results, ensure_ascii=False, indent=1))
    else:
        for result in results:
            show(result)


if __name__ == "__main__":
    main()
