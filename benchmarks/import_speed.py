"""Imports against parsing the file and inserting bare rows, and their memory. See README.md."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import closing
import importlib
from itertools import islice
import json
import os
from pathlib import Path
import resource
import sqlite3
from statistics import median
import subprocess
import sys
import tempfile
import time
from typing import Any
from zoneinfo import ZoneInfo

from export_files import FORMATS, SELF_ID, write
from wire import REPOSITORY, say

TARGET = 5.0
"""Times as long as the anchor that an import may take."""
_PLUGIN = "plugins.nonebot_plugin_nianlun"
_BATCH = 2000
_COLUMNS = (
    *("chat_id", "seq", "dedup_key", "message_id", "platform_order", "time", "user_id", "name"),
    *("text", "segments", "reply_to_id", "reply_to", "source", "via", "delivery"),
    *("withdrawn_at", "skipped"),
)


def load(folder: Path) -> Any:
    """The package in this process, with its data in `folder`; not running."""
    import nonebot
    from nonebot.adapters.onebot.v11 import Adapter
    from nonebot.log import logger, logger_id

    # Its own greeting would stand before the figures, whatever the level.
    logger.remove(logger_id)
    logger.add(sys.stderr, level="ERROR")
    for key in [key for key in os.environ if key.startswith(("NIANLUN", "OPENAI_"))]:
        del os.environ[key]
    nonebot.init(driver="~fastapi", log_level="ERROR", localstore_data_dir=folder)
    nonebot.get_driver().register_adapter(Adapter)
    nonebot.load_plugin(_PLUGIN)
    return importlib.import_module(_PLUGIN).nianlun


def bare_rows(path: Path, folder: Path) -> int:
    """The anchor: read the file once and insert every message, with as many columns."""
    load(folder)
    formats = importlib.import_module(f"{_PLUGIN}.imports.formats")
    message_type = importlib.import_module(f"{_PLUGIN}.imports.found").FoundMessage
    columns, marks = ",".join(_COLUMNS), ",".join("?" * len(_COLUMNS))
    began = time.perf_counter(), time.process_time()
    count = 0
    with path.open("rb") as file, closing(sqlite3.connect(folder / "bare.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"CREATE TABLE message (id INTEGER PRIMARY KEY, {columns})")
        found = formats.choose(formats.AUTO, file).read(file, ZoneInfo("Asia/Shanghai"))
        messages = (one for one in found if isinstance(one, message_type))
        while part := list(islice(messages, _BATCH)):
            rows = [bare_row(number, one) for number, one in enumerate(part, count + 1)]
            count += len(part)
            with database:
                query = f"INSERT INTO message ({columns}) VALUES ({marks})"
                database.executemany(query, rows)
    report(began, count)
    return count


def bare_row(number: int, found: Any) -> tuple[Any, ...]:
    segments = json.dumps(found.segments, ensure_ascii=False)
    time_text, who = found.time.isoformat(" "), (found.user_id, found.name)
    ids = (found.message_id, found.order)
    rest = (found.reply_to_id, found.reply_to, "import", None, "ok", None, None)
    return (
        1,
        number,
        f"{time_text}|{found.message_id}",
        *ids,
        time_text,
        *who,
        "",
        segments,
        *rest,
    )


async def whole_import(path: Path, folder: Path) -> int:
    nianlun = load(folder)
    run = importlib.import_module(f"{_PLUGIN}.imports.run")
    await nianlun.open()
    try:
        began = time.perf_counter(), time.process_time()
        done = await run.import_file(nianlun, path, run.ImportOptions(self_id=SELF_ID))
        if done.left_out:
            raise SystemExit(f"{done.left_out} lines could not be read: {done.unreadable[0]}")
        report(began, done.new)
        return done.new
    finally:
        await nianlun.close()


def report(began: tuple[float, float], count: int) -> None:
    wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    # Linux counts in KiB, macOS in bytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if _MAC else 10))
    say(json.dumps({"messages": count, "wall": wall, "cpu": cpu, "peak_mb": peak}))


_MAC = sys.platform == "darwin"


def measured(what: str, path: Path, count: int, script: str = __file__) -> dict[str, float]:
    """Run one side in a process of its own, on an empty folder."""
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        command = [sys.executable, script, "--side", what, str(path), folder]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    result = json.loads(done.stdout.splitlines()[-1])  # after NoneBot greets
    if result["messages"] != count:
        raise SystemExit(f"{what} stored {result['messages']} of {count} messages")
    return result


def measure(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Both sides in turn, and the peak memory of a smaller import beside that of the large one."""
    large, small = folder / f"large-{name}", folder / f"small-{name}"
    write(large, name, options.messages)
    write(small, name, options.messages // 4)
    rounds: list[dict[str, Any]] = []
    for number in range(1, options.rounds + 1):
        bare = measured("bare", large, options.messages)
        whole = measured("import", large, options.messages)
        ratio = whole["wall"] / bare["wall"]
        rounds.append({"bare": bare, "import": whole, "ratio": ratio})
        if not options.json:
            rate = options.messages / whole["wall"]
            say(
                f"{name:9} {number}  bare {bare['wall']:6.2f} s  import {whole['wall']:6.2f} s"
                f"  ratio {ratio:.2f} (CPU {whole['cpu'] / bare['cpu']:.2f})  {rate:.0f} a second"
            )
    peak_small = measured("import", small, options.messages // 4)["peak_mb"]
    peak = median(one["import"]["peak_mb"] for one in rounds)
    ratio = median(one["ratio"] for one in rounds)
    if not options.json:
        say(
            f"{name:9} median ratio {ratio:.2f}, target {TARGET:.0f}; peak memory"
            f" {peak_small:.1f} MB with a quarter of the messages, {peak:.1f} MB with all"
        )
    return {"rounds": rounds, "median_ratio": ratio, "peak_mb": [peak_small, peak]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--format", action="append", choices=list(FORMATS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--side", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side, path, folder = options.side
        sys.path.insert(0, str(REPOSITORY))
        if side == "bare":
            bare_rows(Path(path), Path(folder))
        else:
            asyncio.run(whole_import(Path(path), Path(folder)))
        return
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        names = options.format or list(FORMATS)
        results = {name: measure(name, Path(folder), options) for name in names}
    if options.json:
        say(json.dumps({"target": TARGET, "formats": results}, indent=1))


if __name__ == "__main__":
    main()
