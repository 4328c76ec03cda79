"""The package without its wiring, for processes that need its store and no bot."""

from __future__ import annotations

import os
from pathlib import Path
import shutil
import subprocess
import sys

PACKAGE = Path(__file__).resolve().parents[2] / "plugins" / "nonebot_plugin_nianlun"


def put_package(folder: Path) -> Path:
    """Copy the package to `folder/nianlun`, with an empty `__init__`; returns the copy."""
    copy = folder / "nianlun"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__init__.py").write_text("", "utf-8")
    return copy


def start(folder: Path, script: str, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    """Run a script in `folder`, with none of the developer's own settings."""
    file = folder / f"script-{abs(hash(script))}.py"
    file.write_text(script, "utf-8")
    mine = ("NIANLUN", "OPENAI_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(mine)}
    return subprocess.Popen(
        [sys.executable, str(file), *map(str, arguments)],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(folder)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], timeout: float = 60) -> tuple[int, str, str]:
    """Status, output and complaints; a process that does not end is ended and is an error."""
    try:
        output, complaints = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, output, complaints
