"""How long the pictures take and how large their files are. See README.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from datetime import date, timedelta
import importlib
from io import BytesIO
import json
from pathlib import Path
import random
from statistics import median
import tempfile
from time import process_time
from typing import Any

from import_speed import load
from PIL import Image
from wire import say

_SECONDS, _BYTES = 1.0, 300_000
"""Targets."""
_PLUGIN = "plugins.nonebot_plugin_nianlun"
_TODAY = date(2026, 11, 20)
_AGES = {"a week": 7, "a year": 365, "five years": 1826, "fifteen years": 5479, "30 years": 10_957}


def chat(days: int, seed: int = 1) -> Mapping[date, Any]:
    """Days of a chat that is now livelier and now quieter, in moods that last."""
    moods = importlib.import_module(f"{_PLUGIN}.memory.moods")
    dice = random.Random(seed)
    grown: dict[date, Any] = {}
    rate = mood = 0.0
    for number in range(days - 1, -1, -1):
        rate = 0.97 * rate + dice.gauss(0, 0.2)
        mood = 0.96 * mood + dice.gauss(0, 0.1)
        messages = int(60 * 2.7**rate * dice.gammavariate(1.5, 0.6))
        today = max(-1.0, min(1.0, mood))
        grown[_TODAY - timedelta(number)] = moods.DayGrowth(messages, messages // 50, today)
    return grown


def empty() -> bytes:
    """The anchor: a plain image of the same size as a file."""
    file = BytesIO()
    Image.new("RGB", (1080, 1080)).save(file, "PNG")
    return file.getvalue()


def pictures() -> dict[str, Callable[[], bytes]]:
    draw_rings = importlib.import_module(f"{_PLUGIN}.pictures.rings").draw_rings
    draw_heat_map = importlib.import_module(f"{_PLUGIN}.pictures.heat_map").draw_heat_map
    draw_bars = importlib.import_module(f"{_PLUGIN}.pictures.bars").draw_bars
    chats = {name: chat(days) for name, days in _AGES.items()}
    amounts = {day: grown.amount for day, grown in chats["a year"].items()}
    return {
        **{
            f"rings of {name}": lambda d=days: draw_rings(d, _TODAY) for name, days in chats.items()
        },
        "calendar of a year": lambda: draw_heat_map(2026, amounts, _TODAY),
        "bars of 40 people": lambda: draw_bars([9000 // n for n in range(1, 41)]),
    }


def measure(draw: Callable[[], bytes], rounds: int) -> dict[str, float]:
    """CPU seconds (median), the same in those of the anchor beside it, and bytes."""
    seconds: list[float] = []
    ratios: list[float] = []
    size = 0
    for _ in range(rounds):
        begin = process_time()
        empty()
        middle = process_time()
        size = len(draw())
        seconds.append(process_time() - middle)
        ratios.append(seconds[-1] / (middle - begin))
    return {"seconds": median(seconds), "ratio": median(ratios), "bytes": size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load(Path(folder))
        found = {name: measure(draw, options.rounds) for name, draw in pictures().items()}
    if options.json:
        say(json.dumps({"pictures": found, "target": {"seconds": _SECONDS, "bytes": _BYTES}}))
        return
    for name, one in found.items():
        say(
            f"{name:22} {1000 * one['seconds']:5.0f} ms  {one['ratio']:5.1f} × an empty image"
            f"  {one['bytes'] / 1000:5.0f} kB"
        )
    say(f"target for each: less than {_SECONDS:.0f} s and {_BYTES / 1000:.0f} kB")


if __name__ == "__main__":
    main()
