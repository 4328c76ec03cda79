"""Bots that start at once: each is forked from a process that has everything loaded."""

from __future__ import annotations

import asyncio
from contextlib import suppress
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

from tests.support.bot_process import BotFailed, BotProcess
from tests.support.model_server import ModelServer

_LOADER = Path(__file__).with_name("preloaded_bot.py")


class LoadedBot:
    """A process that has everything loaded, and the bot that was forked from it last."""

    def __init__(self, folder: BotProcess, model: ModelServer | None) -> None:
        self._folder = folder
        self._env = dict(folder.env)
        if model is not None:
            self._env |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": model.base_url}
        self._loader: subprocess.Popen[str] | None = None
        self._pid = 0

    async def load(self) -> None:
        self._loader = self._load()
        if await self._answer() != "ready":
            raise BotFailed(f"the bot could not be loaded:\n{self._folder.output[-4000:]}")

    def _load(self) -> subprocess.Popen[str]:
        with (self._folder.folder / "output.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(_LOADER)],
                cwd=self._folder.folder,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    async def start(self, *arguments: str, die: tuple[int, str] | None = None) -> None:
        """Start the bot, or a command; `die`: it kills itself before or after that many commits."""
        assert self._loader is not None
        assert self._loader.stdin is not None
        self._loader.stdin.write(f"{json.dumps({'arguments': arguments, 'die': die})}\n")
        self._loader.stdin.flush()
        self._pid = int(await self._answer())

    @property
    def alive(self) -> bool:
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return False
        return True

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        await self.gone(10)

    async def gone(self, within: float) -> None:
        end = time.monotonic() + within
        while self.alive:
            if time.monotonic() > end:
                os.kill(self._pid, signal.SIGKILL)
                raise BotFailed(f"still runs after {within} s:\n{self._folder.output[-4000:]}")
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        if self._loader is None:
            return
        if self._pid and self.alive:
            await self.kill()
        self._loader.kill()
        self._loader.communicate()

    async def _answer(self) -> str:
        assert self._loader is not None
        assert self._loader.stdout is not None
        return (await asyncio.to_thread(self._loader.stdout.readline)).strip()
