"""The import of one very large file, its memory and a plain parse of it. See README.md."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
import json
from pathlib import Path
import sys
import tempfile
import time

from export_files import Said, conversation, qce_json
from import_speed import measured, report, whole_import
from wire import REPOSITORY, say

TARGET_MB = 300.0
"""Resident memory that the process may ever have."""
_SAMPLE = 2000
_EARLIER = timedelta(days=4 * 365)


def talk(count: int) -> Iterator[Said]:
    """The same conversation, early enough that years of it are over by now."""
    return (replace(said, time=said.time - _EARLIER) for said in conversation(count))


def write(path: Path, count: int) -> int:
    """A qq-chat-exporter file of so many messages; returns its size in bytes."""
    with path.open("w", encoding="utf-8", newline="") as file:
        qce_json(file, talk(count))
    return path.stat().st_size


def plain_parse(path: Path) -> int:
    """The anchor: the file has a message on each line, so that a line can be parsed alone."""
    began = time.perf_counter(), time.process_time()
    count = 0
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith('    {"id"'):
                count += json.loads(line.rstrip().removesuffix(","))["id"] is not None
    report(began, count)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--side", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side, path, folder = options.side
        sys.path.insert(0, str(REPOSITORY))
        if side == "parse":
            plain_parse(Path(path))
        else:
            asyncio.run(whole_import(Path(path), Path(folder)))
        return
    with tempfile.TemporaryDirectory(prefix="nianlun-bench-") as folder:
        path = Path(folder) / "large.json"
        count = round(_SAMPLE * options.megabytes * 1_000_000 / write(path, _SAMPLE))
        size = write(path, count)
        parse = measured("parse", path, count, __file__)
        whole = measured("import", path, count, __file__)
    ratio, rate = whole["wall"] / parse["wall"], count / whole["wall"]
    if options.json:
        figures = {"target_mb": TARGET_MB, "bytes": size, "parse": parse, "import": whole}
        say(json.dumps(figures | {"ratio": ratio}, indent=1))
        return
    say(
        f"{size / 1e6:.0f} MB, {count} messages: parse {parse['wall']:.1f} s, import"
        f" {whole['wall']:.1f} s, ratio {ratio:.1f}, {rate:.0f} lines a second;"
        f" peak memory {whole['peak_mb']:.1f} MB, target {TARGET_MB:.0f}"
    )


if __name__ == "__main__":
    main()
