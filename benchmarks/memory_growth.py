"""Resident memory of the bot while messages keep coming. See README.md."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from statistics import linear_regression
import tempfile

from wire import NianlunWire, say

TARGET = 1.0
"""MB a hundred thousand messages."""


async def run(options: argparse.Namespace) -> list[tuple[int, float]]:
    """Messages so far and resident MB, at quiet points after the warm-up."""
    samples: list[tuple[int, float]] = []
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        wire = NianlunWire(Path(folder, "nianlun"), options.groups)
        async with wire:
            while wire.sent < options.warm_up + options.messages:
                await wire.feed(options.step, options.rate)
                await wire.until_handled()
                await wire.until_noted()
                sample = (wire.sent, wire.resident_mb())
                if not options.json:
                    say(f"{sample[0]:8} messages  {sample[1]:7.2f} MB")
                if wire.sent >= options.warm_up:
                    samples.append(sample)
            wire.check_stored()
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=900, help="messages a second")
    parser.add_argument("--warm-up", type=int, default=40_000)
    parser.add_argument("--messages", type=int, default=120_000, help="after the warm-up")
    parser.add_argument("--step", type=int, default=20_000, help="messages between two samples")
    parser.add_argument("--groups", type=int, default=20, help="chats that the messages come from")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    samples = asyncio.run(run(options))
    slope = linear_regression(*zip(*samples, strict=True)).slope * 100_000
    if options.json:
        report = {"samples": samples, "mb_per_100000": slope, "target": TARGET}
        say(json.dumps(report, indent=1))
    else:
        say(f"{slope:+.2f} MB per 100,000 messages (least squares), target below {TARGET:.0f}")


if __name__ == "__main__":
    main()
