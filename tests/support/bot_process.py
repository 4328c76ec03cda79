"""The bot as a user starts it: `python bot.py` in a folder of its own, as a real process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
import compileall
from contextlib import closing
from functools import cache
import json
import os
from pathlib import Path
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Self

REPOSITORY = Path(__file__).resolve().parents[2]
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP", "TMP")
_PACKAGE_DATA = Path("data") / "nonebot_plugin_nianlun"

CLEAN_EXIT = (0, -signal.SIGTERM)
"""Exit statuses of an orderly end: the server repeats the signal once it has shut down."""

Row = dict[str, Any]


class BotFailed(AssertionError):
    """The process did not do what a test relies on; its output is in the message."""


def free_port() -> int:
    """A TCP port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@cache
def _compile(sources: Path) -> None:
    """Compile what every bot folder gets a copy of once, and not in each folder again."""
    compileall.compile_dir(sources, quiet=2)


class BotProcess:
    """One bot folder and the processes that run in it.

    The folder holds copies of `bot.py`, `pyproject.toml` and `plugins/`, so that data, `.env`
    and further plugins of a test stay in it. `root` is where those files are copied from;
    `database`, if given, is copied as its database, else the first process creates one.
    """

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        plugins: Mapping[str, str] | None = None,
        root: Path = REPOSITORY,
        database: Path | None = None,
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.env = {key: os.environ[key] for key in _KEPT_VARIABLES if key in os.environ}
        self.env |= {"HOME": str(folder), "HOST": "127.0.0.1", "PORT": str(self.port)}
        self.env |= dict(env or {})
        self.ready_after: float | None = None
        """Seconds from the start of the process to its first accepted connection."""
        self._log = folder / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._copy(root, dict(plugins or {}))
        if database is not None:
            folder.joinpath(_PACKAGE_DATA).mkdir(parents=True, exist_ok=True)
            shutil.copy(database, folder / _PACKAGE_DATA / "nianlun.db")

    def _copy(self, root: Path, plugins: dict[str, str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("bot.py", "pyproject.toml"):
            if (root / name).is_file():
                shutil.copy2(root / name, self.folder / name)
        if (root / "plugins").is_dir():
            _compile(root / "plugins")
            # Modification times are kept, so the compiled files beside the sources stay valid.
            shutil.copytree(root / "plugins", self.folder / "plugins", dirs_exist_ok=True)
        for name, source in plugins.items():
            target = self.folder / "plugins" / f"{name}.py"
            target.parent.mkdir(exist_ok=True)
            target.write_text(source, encoding="utf-8")

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise BotFailed("the bot was not started")
        return self._process.pid

    @property
    def output(self) -> str:
        """Everything that the bot processes of this folder have printed so far."""
        if not self._log.exists():
            return ""
        return self._log.read_bytes().decode("utf-8", "backslashreplace")

    async def start(self, within: float = 20) -> Self:
        """Start the bot and return once its port accepts connections."""
        began = self._spawn()
        while not self._accepts():
            if not self.running:
                raise BotFailed(f"the bot ended while starting:\n{self.output}")
            if time.monotonic() - began > within:
                self.kill()
                raise BotFailed(f"the bot was not ready after {within} s:\n{self.output}")
            await asyncio.sleep(0.02)
        self.ready_after = time.monotonic() - began
        return self

    async def run_to_end(self, within: float = 15) -> int:
        """Start a bot that is expected to give up by itself; returns its exit status."""
        self._spawn()
        return await self._wait(within)

    async def terminate(self, within: float = 10) -> int:
        """Ask the process to end, as a service manager does; returns its exit status."""
        if self._process is None:
            raise BotFailed("the bot was not started")
        self._process.terminate()
        return await self._wait(within)

    def kill(self) -> None:
        """End the process without any chance to clean up."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    async def restart(self) -> Self:
        await self.terminate()
        return await self.start()

    async def cli(self, *args: str, within: float = 60) -> subprocess.CompletedProcess[str]:
        """Run `bot.py ARGS…` beside whatever runs in this folder.

        Works in a thread, so that servers of the test's own event loop go on answering.
        """
        finished = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "bot.py", *args],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=within,
            check=False,
        )
        return subprocess.CompletedProcess(
            finished.args,
            finished.returncode,
            finished.stdout.decode("utf-8"),
            finished.stderr.decode("utf-8", "backslashreplace"),
        )

    async def cli_ok(self, *args: str) -> str:
        """Run a command that has to succeed; returns its standard output."""
        done = await self.cli(*args)
        if done.returncode != 0:
            raise BotFailed(f"bot.py {' '.join(args)} gave {done.returncode}:\n{done.stderr}")
        return done.stdout

    async def export(self, chat: str) -> list[Row]:
        """The objects of `bot.py export CHAT`, in order."""
        # Only "\n" ends a line: a text may hold U+2028 and the like.
        lines = (await self.cli_ok("export", chat)).removesuffix("\n").split("\n")
        return [json.loads(line) for line in lines]

    async def export_rows(self, chat: str, kind: str) -> list[Row]:
        return [row for row in await self.export(chat) if row["type"] == kind]

    @property
    def database(self) -> Path:
        """The only SQLite file of the bot's data folder."""
        found = sorted((self.folder / _PACKAGE_DATA).glob("*.db"))
        if len(found) != 1:
            raise BotFailed(f"expected one database, found {found}:\n{self.output}")
        return found[0]

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the database with a connection that the bot knows nothing of."""
        uri = f"{self.database.as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            return connection.execute(sql, values).fetchall()

    def _spawn(self) -> float:
        if self.running:
            raise BotFailed("the bot is already running")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "bot.py"],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return time.monotonic()

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=0.2).close()
        except OSError:
            return False
        return True

    async def _wait(self, within: float) -> int:
        process = self._process
        if process is None:
            raise BotFailed("the bot was not started")
        try:
            return await asyncio.to_thread(process.wait, within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BotFailed(f"the bot still ran after {within} s:\n{self.output}") from None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        if error is not None:
            error.add_note(f"--- output of the bot ---\n{self.output[-6000:]}")
