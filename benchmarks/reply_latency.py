"""From an event to the request for its reply, against a bot that only forwards. See README.md."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
import json
from pathlib import Path
import random
from statistics import median
import tempfile
import threading
import time
from typing import Any

from export_files import GROUP, SELF_ID, conversation, native
from recall_scale import Chatter
from wire import REPOSITORY, group_messages, say

from tests.support.bot_process import BotProcess
from tests.support.model_server import ModelServer, Reply, helpful_responder
from tests.support.onebot_client import OneBotClient

MOST_TIMES = 3.0
MOST_MS_MORE = 30.0
_FIRST_ASKER, _ASKERS = 30_001, 400
_WITHIN = 10.0
"""Seconds after which a request is given up for lost."""
_BARE = {"LOG_LEVEL": "WARNING", "DRIVER": "~fastapi", "NICKNAME": '["小忆"]'}


class Arrivals:
    """A model server that notes when the first request with a mark came."""

    def __init__(self, server: ModelServer) -> None:
        self.base_url = server.base_url
        self.tokens_of_last = 0
        self._mark = ""
        self._at: float | None = None
        self._came = threading.Event()
        server.script(self._respond)

    def expect(self, mark: str) -> None:
        self._came.clear()
        self._at, self._mark = None, mark

    async def wait(self) -> float:
        if not await asyncio.to_thread(self._came.wait, _WITHIN):
            raise SystemExit(f"no request for a reply after {_WITHIN:g} s")
        assert self._at is not None
        return self._at

    def _respond(self, body: dict[str, Any]) -> Reply:
        now = time.perf_counter()
        if self._mark and self._at is None and self._mark in body["messages"][-1]["content"]:
            self._at = now
            self._came.set()
            return "嗯，我记得。"
        return helpful_responder(body)


@dataclass
class Side:
    """One of the two bots."""

    bot: BotProcess
    client: OneBotClient
    seconds: list[float] = field(default_factory=list)

    async def ask(self, arrivals: Arrivals, question: str, mark: str, user_id: int) -> None:
        arrivals.expect(mark)
        message = [
            {"type": "at", "data": {"qq": SELF_ID}},
            {"type": "text", "data": {"text": f" {question} {mark}"}},
        ]
        began = time.perf_counter()
        await self.client.group_message(message, user_id, f"昵称{user_id}", group_id=int(GROUP))
        self.seconds.append(await arrivals.wait() - began)
        await self.client.wait_for_send()

    def report(self) -> dict[str, float]:
        ordered = sorted(self.seconds)
        return {"p50": 1000 * median(ordered), "p95": 1000 * ordered[int(len(ordered) * 0.95)]}


async def filled(folder: Path, lines: Sequence[str], model: str) -> BotProcess:
    """The product with these messages in one group, all noted and rolled up."""
    bot = BotProcess(folder / "nianlun", _BARE)
    said = zip(conversation(len(lines)), lines, strict=True)
    with (folder / "chat.jsonl").open("w", encoding="utf-8") as file:
        native(file, (replace(one, text=text) for one, text in said))
    for command in (("import", str(folder / "chat.jsonl")), ("rollup",)):
        done = await bot.cli(*command, within=900)
        if done.returncode:
            raise SystemExit(done.stderr)
    found = bot.query("SELECT count(*) FROM nianlun_message")[0][0]
    if found != len(lines):
        raise SystemExit(f"{found} of {len(lines)} messages are stored")
    bot.env |= {"NIANLUN__REPLY_WAIT": "0", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": model}
    return bot


async def talk(side: Side, lines: list[dict[str, Any]]) -> None:
    for line in lines:
        user_id = line["user_id"]
        await side.client.group_message(
            line["raw_message"], user_id, f"昵称{user_id}", group_id=int(GROUP)
        )


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    dice, chatter = random.Random(options.seed), Chatter(options.seed)
    lines = [chatter.line() for _ in range(options.messages)]
    async with AsyncExitStack() as stack:
        server = stack.enter_context(ModelServer())
        arrivals = Arrivals(server)
        nianlun = await filled(folder, lines, server.base_url)
        key = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
        root = REPOSITORY / "benchmarks" / "forwarding_bot"
        forwarding = BotProcess(folder / "forwarding", _BARE | key, root=root)
        sides: list[Side] = []
        for bot in (forwarding, nianlun):
            await stack.enter_async_context(bot)
            client = OneBotClient(bot.port, int(SELF_ID))
            sides.append(Side(bot, await stack.enter_async_context(client)))
        said = group_messages(1, options.seed)
        for number in range(options.warm_up + options.questions):
            between = [
                event | {"raw_message": chatter.line()} for event in islice(said, options.between)
            ]
            question = chatter.question(dice.choice(lines))
            # Somebody who said nothing lately: what is asked is this line alone.
            asker = _FIRST_ASKER + number % _ASKERS
            for side in dice.sample(sides, 2):
                await talk(side, between)
                await asyncio.sleep(options.pause)
                await side.ask(arrivals, question, f"问题{number:05}", asker)
            if number + 1 == options.warm_up:
                for side in sides:
                    side.seconds.clear()
        troubles = [line for line in nianlun.output.splitlines() if "| ERROR" in line]
        if troubles:
            raise SystemExit(f"a reply went without memory: {troubles[0]}")
        bare, ours = (side.report() for side in sides)
    times = {part: ours[part] / bare[part] for part in bare}
    return {
        "forwarding": bare,
        "nianlun": ours,
        "times": times,
        "ms_more": ours["p95"] - bare["p95"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="stored in the group")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--between", type=int, default=5, help="lines of others before each")
    parser.add_argument("--pause", type=float, default=0.15, help="seconds between them and it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        report = asyncio.run(run(options, Path(folder)))
    if options.json:
        say(json.dumps(report, indent=1))
    else:
        for side in ("forwarding", "nianlun"):
            say(f"{side:10} p50 {report[side]['p50']:6.1f} ms  p95 {report[side]['p95']:6.1f} ms")
        say(
            f"p95 {report['times']['p95']:.1f} times (target {MOST_TIMES:g}) and"
            f" {report['ms_more']:.1f} ms more (target {MOST_MS_MORE:g})"
        )
    if report["times"]["p95"] > MOST_TIMES or report["ms_more"] > MOST_MS_MORE:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
