"""CPU per ordinary group message: the whole plugin against a bare bot. See README.md."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import asdict, dataclass
import json
from pathlib import Path
from statistics import median
import tempfile

from wire import BareWire, NianlunWire, Wire, say

TARGET = 1.25


@dataclass(frozen=True)
class Round:
    """CPU milliseconds a message, and the messages a second that were reached."""

    bare_ms: float
    nianlun_ms: float
    notes_ms: float
    """What the notes about these messages cost later, a message."""
    bare_rate: float
    nianlun_rate: float

    @property
    def ratio(self) -> float:
        return self.nianlun_ms / self.bare_ms

    def __str__(self) -> str:
        return (
            f"bare {self.bare_ms:.3f} ms  nianlun {self.nianlun_ms:.3f} ms"
            f"  ratio {self.ratio:.3f}  ({self.bare_rate:.0f} and {self.nianlun_rate:.0f} a second;"
            f" notes afterwards {self.notes_ms:.3f} ms)"
        )


async def measure(wire: Wire, count: int, rate: float) -> tuple[float, float]:
    """CPU milliseconds a message until the bot is done with all of them, and the rate reached."""
    before = wire.cpu_seconds()
    reached = await wire.feed(count, rate)
    await wire.until_handled()
    return (wire.cpu_seconds() - before) / count * 1000, reached


async def one_round(bare: BareWire, nianlun: NianlunWire, count: int, rate: float) -> Round:
    """Both bots in turn, between two runs of the clock that writes notes."""
    while True:
        await bare.until_quiet()
        bare_ms, bare_rate = await measure(bare, count, rate)
        notes = nianlun.notes()
        nianlun_ms, nianlun_rate = await measure(nianlun, count, rate)
        undisturbed = nianlun.notes() == notes
        before = nianlun.cpu_seconds()
        await nianlun.until_noted()
        notes_ms = (nianlun.cpu_seconds() - before) / count * 1000
        if undisturbed:
            return Round(bare_ms, nianlun_ms, notes_ms, bare_rate, nianlun_rate)


async def run(options: argparse.Namespace) -> list[Round]:
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        bare = BareWire(Path(folder, "bare"), options.groups)
        nianlun = NianlunWire(Path(folder, "nianlun"), options.groups)
        async with bare, nianlun:
            for wire in (bare, nianlun):
                await measure(wire, options.warm_up, options.rate)
            await nianlun.until_noted()
            for number in range(1, options.rounds + 1):
                rounds.append(await one_round(bare, nianlun, options.messages, options.rate))
                if not options.json:
                    say(f"{number:3}  {rounds[-1]}")
            nianlun.check_stored()
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=700, help="messages a second")
    parser.add_argument("--messages", type=int, default=5000, help="a round, in steps of 500")
    parser.add_argument("--warm-up", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--groups", type=int, default=5, help="chats that the messages come from")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds = asyncio.run(run(options))
    ratios = [one.ratio for one in rounds]
    if options.json:
        report = {"rounds": [asdict(one) | {"ratio": one.ratio} for one in rounds]}
        say(json.dumps(report | {"median_ratio": median(ratios), "target": TARGET}, indent=1))
    else:
        say(
            f"median ratio {median(ratios):.3f} (from {min(ratios):.3f} to {max(ratios):.3f}),"
            f" target {TARGET}; bare {median(one.bare_ms for one in rounds):.3f} ms,"
            f" nianlun {median(one.nianlun_ms for one in rounds):.3f} ms a message"
        )


if __name__ == "__main__":
    main()
