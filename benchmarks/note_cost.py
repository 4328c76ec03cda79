"""What a model costs for the notes of a busy group's day. See README.md."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
import importlib
import json
from pathlib import Path
import random
import re
import tempfile
from typing import Any
from zoneinfo import ZoneInfo

from import_speed import load
from wire import say

MOST_CALLS = 25
MOST_PROMPT_TOKENS = 50_000
_PLUGIN = "plugins.nonebot_plugin_nianlun"
_ZONE = ZoneInfo("Asia/Shanghai")
_YESTERDAY = datetime(2026, 11, 26, tzinfo=_ZONE)
_BEFORE = 100
"""Lines of the day before, so that the chat remembers something when the day begins."""
_BUSY = (
    # How much is said in each hour from 07:00 on, the last two being past midnight.
    *(2, 4, 6, 6, 6, 9, 9, 6, 5, 5, 5, 6, 8, 9, 10, 10, 8, 5, 2),
)
_NAMES = (
    *("阿禾", "林川-后端", "蔓蔓", "老周", "小满今天也没早睡"),
    *("陈默", "阿宁", "kk", "Mr.Lee", "大橘"),
    *("三分糖", "【产品】唐唐", "鱼丸粗面", "leaf", "不吃香菜"),
    *("二筒", "阿北|上海", "momo", "周一见", "果果"),
)
_REPLIES, _MENTIONS, _PICTURES, _OWN = 0.06, 0.04, 0.05, 0.04


@dataclass
class Spent:
    calls: int = 0
    prompt: int = 0
    completion: int = 0


@dataclass
class Tape:
    """Answers each request with a text as long as it may be, and weighs both."""

    estimate: Any
    units: Any
    completion_type: Any
    usage_type: Any
    spent: dict[str, Spent] = field(default_factory=dict)
    trouble: None = None

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        json: bool = False,
        model: str | None = None,
        seconds: float | None = None,
    ) -> Any:
        asked = messages[-1]["content"]
        batch = _block(asked, "任务")
        answer = self._activity(asked) if batch is None else self._memories(batch)
        spent = self.spent.setdefault("notes" if batch is None else "roll-ups", Spent())
        prompt = sum(self.estimate(turn["content"]) for turn in messages)
        spent.calls += 1
        spent.prompt += prompt
        spent.completion += self.estimate(answer)
        usage = self.usage_type(prompt, 0, self.estimate(answer))
        return self.completion_type(answer, usage, model or "tape")

    async def close(self) -> None:
        """There is no connection."""

    def _activity(self, asked: str) -> str:
        shown = _block(asked, "聊天记录") or ""
        lines = re.findall(r"^#(\d+) (?:\d\d:\d\d )?(.*)$", shown, re.MULTILINE)
        told = "，".join(re.sub(r"（回复 #\d+）|: ", "说", said) for _, said in lines[::3])
        cited = ",".join(number for number, _ in lines[:3])
        facts = [
            {
                "category": category,
                "name": f"说过的事{number}",
                "content": f"有人在群里说过：{self.units.cut_to_units(_plain(said), 25)}",
                "from": int(number),
            }
            for category, (number, said) in zip(("event", "daily_life"), lines[3:5], strict=False)
        ]
        memory = f"{self.units.cut_to_units(_plain(told), 95)}。（关键消息：[{cited}]）"
        return _dump({"action": "add_activity", "memory": memory, "facts": facts})

    def _memories(self, batch: str) -> str:
        return _dump({"actions": [self._memory(task) for task in json.loads(batch)["tasks"]]})

    def _memory(self, task: dict[str, Any]) -> dict[str, Any]:
        target, source = task["target"], task["source"]["memory"]
        told = target["memory"] + re.sub(r"^- \[.*?\] ", "", source, flags=re.MULTILINE)
        cited = list(dict.fromkeys(re.findall(r"\d+", "".join(re.findall(r"\[[\d,]+\]", told)))))
        words = self.units.cut_to_units(_plain(re.sub(r"（关键消息：.*?）", "", told)), 480)
        return {
            "action": "update_memory",
            "task_id": task["task_id"],
            "kind": target["kind"],
            "date": target["date"],
            "memory": f"{words}。（关键消息：[{','.join(cited[:10])}]）",
        }


def _block(asked: str, title: str) -> str | None:
    found = re.search(rf"【{title} (\w+)】\n(.*?)\n【{title}完 \1】", asked, re.DOTALL)
    return found[2] if found else None


def _plain(text: str) -> str:
    """Without what a note may not hold: line breaks, marks of other things, relative days."""
    return re.sub(r"\s+|[#*|【】\[\]@]|[今明后昨前]天|上周|下周", " ", text).strip()


def _dump(answer: object) -> str:
    return json.dumps(answer, ensure_ascii=False)


def lines(count: int, day: datetime, first: int, dice: random.Random) -> Iterator[dict[str, Any]]:
    """One day of a group of twenty, a few of whom say most: fields of `Incoming`."""
    said = _talk(dice)
    for number, time in enumerate(sorted(_times(count, day, dice)), first):
        who, text = next(said)
        own = dice.random() < _OWN
        segments = [{"type": "text", "data": {"text": text}}]
        if dice.random() < _MENTIONS:
            segments.insert(0, {"type": "at", "data": {"qq": str(20001 + dice.randrange(20))}})
        if dice.random() < _PICTURES:
            segments = [{"type": "image", "data": {"file": f"{number:032X}.jpg"}}]
        yield {
            "time": time,
            "user_id": "me" if own else str(20001 + who),
            "name": "小忆" if own else _NAMES[who],
            "segments": segments,
            "source": "sent" if own else "event",
            "message_id": str(number),
            "via": "nianlun" if own else None,
            "reply_to_id": str(number - dice.randint(1, 9)) if dice.random() < _REPLIES else None,
        }


def _times(count: int, day: datetime, dice: random.Random) -> list[datetime]:
    hours = dice.choices(range(7, 7 + len(_BUSY)), _BUSY, k=count)
    return [
        (day + timedelta(hours=hour, seconds=dice.randrange(3600))).astimezone(UTC)
        for hour in hours
    ]


def _talk(dice: random.Random) -> Iterator[tuple[int, str]]:
    """Endless everyday talk as in the sample chat, its parts given to people at random."""
    grammar = importlib.import_module(f"{_PLUGIN}.demo.chatter").load_grammar()
    while True:
        conversation = dice.choice(grammar.conversations)
        parts: dict[str, int] = {}
        for who, text in grammar.tell(conversation, dice):
            speaker = min(int(dice.expovariate(1 / 6)), len(_NAMES) - 1)
            yield parts.setdefault(who, speaker), text


class Bot:
    """The product on a file of its own, with the tape for a model and a clock that is set."""

    def __init__(self, folder: Path) -> None:
        load(folder)
        modules = ("lifecycle", "config", "types", "store.recording", "capture.readable")
        lifecycle, config, self.types, self.recording, readable = (
            importlib.import_module(f"{_PLUGIN}.{name}") for name in modules
        )
        self.readable = readable.readable
        self.time = _YESTERDAY
        settings = config.Config.model_validate({"openai_api_key": "tape"})
        driver = importlib.import_module("nonebot").get_driver()
        self.nianlun = lifecycle.Nianlun(settings, folder, driver.config, clock=self)
        client = importlib.import_module(f"{_PLUGIN}.llm.client")
        self.tape = Tape(
            importlib.import_module(f"{_PLUGIN}.memory.tokens").estimate_tokens,
            importlib.import_module(f"{_PLUGIN}.memory.units"),
            client.Completion,
            self.types.Usage,
        )
        self.nianlun.client = self.tape
        self.chat = self.types.ChatKey("10001", "group", "742100123")

    def now(self) -> datetime:
        return self.time.astimezone(UTC)

    async def live(self, said: list[dict[str, Any]], until: datetime) -> dict[str, Spent]:
        """Let time pass minute by minute while this is said; returns what it cost."""
        self.tape.spent = {"notes": Spent(), "roll-ups": Spent()}
        while self.time < until:
            self.time += timedelta(minutes=1)
            due = [line for line in said if line["time"] <= self.time]
            said = said[len(due) :]
            if due:
                batch = [self.types.Incoming(chat=self.chat, **line) for line in due]
                await self.recording.record(batch, self.readable, "小忆", self.now())
            await self.nianlun.jobs.do_owed()
        return self.tape.spent


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    bot = Bot(folder)
    await bot.nianlun.open()
    dice = random.Random(options.seed)
    day = _YESTERDAY + timedelta(days=1)
    try:
        await bot.live(list(lines(_BEFORE, _YESTERDAY, 1, dice)), day + timedelta(hours=6))
        talk = list(lines(options.messages, day, 1 + _BEFORE, dice))
        spent = await bot.live(talk, day + timedelta(days=1, hours=6))
        status = await bot.nianlun.status(bot.chat)
        if status.pending or status.last_error or status.days != 2:
            raise SystemExit(f"not everything was noted: {status}")
        idle = await bot.live([], day + timedelta(days=3))
        await bot.nianlun.jobs.tidy()
        again = sum(one.calls for one in idle.values())
    finally:
        await bot.nianlun.close()
    return {
        "messages": options.messages,
        "characters": sum(len(s["data"].get("text", "")) for t in talk for s in t["segments"]),
        "spent": {purpose: vars(one) for purpose, one in spent.items()},
        "calls": sum(one.calls for one in spent.values()),
        "prompt_tokens": sum(one.prompt for one in spent.values()),
        "completion_tokens": sum(one.completion for one in spent.values()),
        "calls_with_nothing_new": again,
    }


def show(report: dict[str, Any]) -> None:
    say(f"{report['messages']} messages, {report['characters']} characters")
    for purpose, one in report["spent"].items():
        say(
            f"{purpose:9} {one['calls']:3} calls  {one['prompt']:6} prompt tokens"
            f"  {one['completion']:6} completion tokens"
        )
    say(
        f"together  {report['calls']:3} calls  {report['prompt_tokens']:6} prompt tokens"
        f"  {report['completion_tokens']:6} completion tokens"
    )
    say(f"target    {MOST_CALLS:3} calls  {MOST_PROMPT_TOKENS:6} prompt tokens at most")
    say(f"two more days with nothing new: {report['calls_with_nothing_new']} calls")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        report = asyncio.run(run(options, Path(folder)))
    if options.json:
        say(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        show(report)
    if (
        report["calls"] > MOST_CALLS
        or report["prompt_tokens"] > MOST_PROMPT_TOKENS
        or report["calls_with_nothing_new"]
    ):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
