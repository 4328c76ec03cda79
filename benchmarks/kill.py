"""Kill the bot at random moments and count what is lost, leaked or done twice. See README.md."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
from pathlib import Path
import random
import tempfile
import time
from typing import Any

from import_speed import load
from wire import say

SETTLE_EVERY = 25
"""Kills between two times at which all owed work is done and compared."""


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    killing_type = importlib.import_module("tests.support.killing").Killing
    began = time.monotonic()
    async with killing_type(folder, options.seed) as killing:
        for number in range(1, options.kills + 1):
            await killing.kill_once()
            if number % SETTLE_EVERY == 0 or number == options.kills:
                await killing.settle()
                say(f"{number:5} kills, {len(killing.said):6} messages, nothing lost")
    took = time.monotonic() - began
    return {
        "kills": sum(killing.kills.values()),
        "seed": options.seed,
        "during": dict(killing.kills),
        "messages": len(killing.said),
        "taken_back": sum(said.masked for said in killing.said),
        "model_calls": killing.model_calls,
        "slowest_commit": round(killing.slowest, 2),
        "seconds": round(took, 1),
        "seconds_per_kill": round(took / options.kills, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    say(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="nianlun-kill-") as folder:
        load(Path(folder, "reader"))
        report = asyncio.run(run(options, Path(folder, "bot")))
    say(json.dumps(report, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
