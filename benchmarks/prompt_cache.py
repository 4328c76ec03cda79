"""How much of a reply's prompt the provider has seen before. See README.md."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise, repeat, takewhile
import json
from multiprocessing import get_context
from pathlib import Path
import random
from statistics import median
import tempfile
from typing import Any

from note_cost import Bot, lines
from wire import say

TARGET = 0.9
_TODAY = datetime(2026, 11, 27).astimezone()
_DAYS_BEFORE = 21
"""So many days with talk are remembered: seven as days, those before them as a month."""
_WARM = timedelta(hours=1)
_PEER = "20001"
_TURN = 4
"""What a chat message costs a provider beside its text."""


@dataclass
class Asked:
    """A reply's prompt, and when it was asked."""

    time: datetime
    messages: Sequence[Mapping[str, Any]]
    tokens: Mapping[str, int]


@dataclass
class Measured:
    replies: int = 0
    budget: int = 0
    largest: int = 0
    shares: list[float] = field(default_factory=list)
    prompt: int = 0
    shared: int = 0
    tail: int = 0
    new_talk: int = 0
    same_system: int = 0

    @property
    def share(self) -> float:
        return self.shared / self.prompt

    def report(self) -> dict[str, Any]:
        pairs = len(self.shares)
        return {
            "replies": self.replies,
            "pairs": pairs,
            "largest_prompt": self.largest,
            "budget": self.budget,
            "prompt_tokens": round(self.prompt / pairs),
            "tail_tokens": round(self.tail / pairs),
            "new_talk_tokens": round(self.new_talk / pairs),
            "share": self.share,
            "median_share": median(self.shares),
            "share_without_tail": self.shared / (self.prompt - self.tail),
            "possible_share": 1 - (self.tail + self.new_talk) / self.prompt,
            "memory_unchanged": self.same_system / pairs,
        }


class Talk(Bot):
    """A chat that lives through days; before each line of the bot its prompt is asked for."""

    def __init__(self, folder: Path, kind: str, budget: int | None) -> None:
        super().__init__(folder)
        if kind == "private":
            self.chat = self.types.ChatKey("10001", "private", _PEER)
        if budget is not None:
            recaller: Any = self.nianlun.recaller
            recaller._settings = recaller._settings.model_copy(update={"prompt_budget": budget})
        self.asked: list[Asked] = []

    async def hear(self, said: Sequence[dict[str, Any]], *, replies: bool) -> None:
        batch: list[dict[str, Any]] = []
        for line in said:
            if line["user_id"] == "me" and replies:
                await self._record(batch)
                batch = []
                await self._ask(line["time"])
            batch.append(line)
        await self._record(batch)

    async def _record(self, said: Sequence[dict[str, Any]]) -> None:
        batch = [self.types.Incoming(chat=self.chat, **line) for line in said]
        if batch:
            await self.recording.record(batch, self.readable, "小忆", self.now())

    async def _ask(self, at: datetime) -> None:
        self.time, minute = at, self.time
        prompt = await self.nianlun.recaller.prompt(self.chat)
        self.time = minute
        self.asked.append(Asked(at, prompt.messages, prompt.tokens))

    async def pass_until(self, until: datetime, said: list[dict[str, Any]], step: int) -> None:
        """Let time pass in steps of minutes; `step` 1 is a day on which replies are looked at."""
        while self.time < until:
            self.time += timedelta(minutes=step)
            due = [line for line in said if line["time"] <= self.time]
            said = said[len(due) :]
            await self.hear(due, replies=step == 1)
            await self.nianlun.jobs.do_owed()


def group_day(
    count: int, day: datetime, first: int, dice: random.Random, replies: float, follow: float
) -> list[dict[str, Any]]:
    """A group's day in which this part of the lines is the bot's. After one of them somebody
    answers it with this probability, so that the next one comes after one to three lines."""
    said = list(lines(count, day, first, dice))
    calm, due = replies * (1 - follow), 0
    for line in said:
        due -= 1
        own = due == 0 or (due < 0 and dice.random() < calm / (1 - replies * follow))
        name = line["name"] if line["user_id"] != "me" else "阿禾"
        user_id = "me" if own else line["user_id"].replace("me", "20001")
        line |= {"user_id": user_id, "name": "小忆" if own else name}
        line |= {"via": "nianlun" if own else None, "source": "sent" if own else "event"}
        if own:
            due = 1 + dice.randint(1, 3) if dice.random() < follow else 0
    return said


def private_day(count: int, day: datetime, first: int, dice: random.Random) -> list[dict[str, Any]]:
    """Spells of talk between two: one to three lines, then an answer some seconds later."""
    texts = [line["segments"] for line in lines(count, day, first, dice)]
    spells = sorted(_spells(count, dice))
    said: list[dict[str, Any]] = []
    at, left = day, 0
    for number, segments in enumerate(texts, first):
        own = left == 0 and bool(said)
        left = dice.randint(1, 3) if own else max(0, left - 1)
        spell = day + timedelta(minutes=spells[(number - first) * len(spells) // count])
        at = max(at + timedelta(seconds=dice.randint(5, 60)), spell)
        said.append({
            "time": at,
            "user_id": "me" if own else _PEER,
            "name": "小忆" if own else "阿禾",
            "segments": segments,
            "source": "sent" if own else "event",
            "message_id": str(number),
            "via": "nianlun" if own else None,
        })  # fmt: skip
    return said


def _spells(count: int, dice: random.Random) -> Iterator[int]:
    """When spells of talk of about twenty lines begin, in minutes of the day."""
    for _ in range(max(1, count // 20)):
        yield dice.randrange(8 * 60, 24 * 60)


def compare(estimate: Any, asked: Sequence[Asked], budget: int) -> Measured:
    found = Measured(replies=len(asked), budget=budget)
    totals = [sum(estimate(turn["content"]) + _TURN for turn in one.messages) for one in asked]
    found.largest = max(totals)
    for (before, now), total in zip(pairwise(asked), totals[1:], strict=True):
        if now.time - before.time > _WARM:
            continue
        shared = _shared(estimate, before.messages, now.messages)
        found.shares.append(shared / total)
        found.prompt += total
        found.shared += shared
        found.tail += now.tokens["recalled"] + now.tokens["tail"]
        found.same_system += before.messages[0] == now.messages[0]
        found.new_talk += _new_talk(estimate, before, now)
    return found


def _shared(
    estimate: Any, before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]
) -> int:
    """Tokens of the messages that are the same from the first on, and of the beginning that the
    next one shares."""
    shared = 0
    for one, other in zip(before, now, strict=False):
        if one == other:
            shared += estimate(other["content"]) + _TURN
            continue
        if one["role"] == other["role"]:
            shared += estimate(_beginning(one["content"], other["content"]))
        break
    return shared


def _beginning(one: str, other: str) -> str:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(char for char, _ in same)


def _new_talk(estimate: Any, before: Asked, now: Asked) -> int:
    """What was said since the last prompt: nobody can have seen that before."""
    known = {line for turn in before.messages for line in turn["content"].splitlines()}
    fresh = [
        line
        for turn in now.messages[1:]
        for line in turn["content"].splitlines()
        if line not in known and (line.startswith("#") or turn["role"] == "assistant")
    ]
    return sum(map(estimate, fresh))


async def run(options: argparse.Namespace, kind: str, folder: Path) -> dict[str, Any]:
    talk = Talk(folder, kind, options.budget)
    await talk.nianlun.open()
    dice = random.Random(options.seed)
    count = options.private if kind == "private" else options.messages
    first = 1

    def a_day(day: datetime, lines_of_day: int) -> list[dict[str, Any]]:
        if kind == "private":
            return private_day(lines_of_day, day, first, dice)
        return group_day(lines_of_day, day, first, dice, options.replies, options.follow)

    try:
        for ago in range(_DAYS_BEFORE, 0, -1):
            day = _TODAY - timedelta(days=ago)
            talk.time = day
            said = a_day(day, 120)
            first += len(said)
            await talk.pass_until(day + timedelta(days=1), said, 60)
        talk.time = _TODAY
        await talk.pass_until(_TODAY + timedelta(hours=27), a_day(_TODAY, count), 1)
        budget = talk.nianlun.recaller._settings.prompt_budget
        status = await talk.nianlun.status(talk.chat)
        if status.last_error or status.days != _DAYS_BEFORE + 1 or not status.months:
            raise SystemExit(f"not everything was remembered: {status}")
        found = compare(talk.tape.estimate, talk.asked, budget)
    finally:
        await talk.nianlun.close()
    return found.report()


def measure(options: argparse.Namespace, kind: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        return asyncio.run(run(options, kind, Path(folder)))


def show(kind: str, found: Mapping[str, Any]) -> None:
    say(f"{kind}: {found['replies']} replies, {found['pairs']} within an hour of the last")
    say(
        f"  prompt {found['prompt_tokens']} tokens, at most {found['largest_prompt']} of"
        f" {found['budget']}; recall and clock {found['tail_tokens']}, newly said"
        f" {found['new_talk_tokens']}"
    )
    say(
        f"  unchanged prefix {found['share']:.1%} (median {found['median_share']:.1%}; target"
        f" {TARGET:.0%}), without recall and clock {found['share_without_tail']:.1%}"
    )
    say(
        f"  at most possible {found['possible_share']:.1%}; memory unchanged in"
        f" {found['memory_unchanged']:.0%} of the pairs"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2000, help="of the group's day")
    parser.add_argument("--private", type=int, default=200, help="messages of the private day")
    parser.add_argument("--replies", type=float, default=0.06, help="part of the group's lines")
    parser.add_argument("--follow", type=float, default=0.5, help="part that is answered at once")
    parser.add_argument("--budget", type=int, help="instead of NIANLUN__PROMPT_BUDGET's default")
    parser.add_argument("--kind", choices=("group", "private"), help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else ["group", "private"]
    # A process each: the plugin can be loaded only once.
    with ProcessPoolExecutor(
        len(kinds), mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        report = dict(zip(kinds, pool.map(measure, repeat(options), kinds), strict=True))
    if options.json:
        say(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        for kind, found in report.items():
            show(kind, found)
    if any(f["share"] < TARGET or f["largest_prompt"] > f["budget"] for f in report.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
