"""Bots as processes: one that many tests share, and a maker of others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.bot_process import BotProcess
from tests.support.model_server import ModelServer
from tests.support.onebot_client import OneBotClient

_SHOWN_OF_OUTPUT = 8000
_AT_ONCE = {"NIANLUN__REPLY_WAIT": "0"}
"""Unless a test is about the wait for a further line, no reply waits for one."""


class BotMaker:
    """Makes bots, each in a folder of its own, and ends whatever is left of them.

    A bot finds a database of this version without rows, unless it is to be a `fresh` one:
    creating one takes as long as a fourth of a start.
    """

    def __init__(self, folder: Path, database: Path) -> None:
        self._folder = folder
        self._database = database
        self.made: list[BotProcess] = []

    def __call__(
        self,
        env: Mapping[str, str] | None = None,
        *,
        plugins: Mapping[str, str] | None = None,
        model: ModelServer | None = None,
        fresh: bool = False,
    ) -> BotProcess:
        folder = self._folder / f"bot{len(self.made) + 1}"
        env = _AT_ONCE | dict(env or {})
        if model is not None:
            env |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": model.base_url}
        database = None if fresh or "NIANLUN__DATABASE_URL" in env else self._database
        self.made.append(BotProcess(folder, env, plugins=plugins, database=database))
        return self.made[-1]


@pytest.fixture
def new_bot(tmp_path: Path, prepared_database: Path) -> Iterator[BotMaker]:
    maker = BotMaker(tmp_path, prepared_database)
    yield maker
    for bot in maker.made:
        bot.kill()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model that writes valid notes and answers calls, until a test scripts it otherwise."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
async def shared_bot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BotProcess]:
    """A running bot without settings and without a key; each test talks in its own chats."""
    async with BotProcess(tmp_path_factory.mktemp("shared")) as bot:
        yield bot


@pytest.fixture(scope="session")
async def shared_client(shared_bot: BotProcess) -> AsyncIterator[OneBotClient]:
    async with OneBotClient(shared_bot.port) as client:
        yield client


@pytest.fixture
def client(shared_client: OneBotClient) -> Iterator[OneBotClient]:
    """The shared connection, with whatever a test sets on it undone."""
    yield shared_client
    shared_client.delays.clear()
    shared_client.failures.clear()
    shared_client.echo = "none"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the bots of a failed test printed."""
    report = yield
    if report.failed:
        for bot in _bots_of(getattr(item, "funcargs", {})):
            report.sections.append((f"bot in {bot.folder}", bot.output[-_SHOWN_OF_OUTPUT:]))
    return report


def _bots_of(fixtures: Mapping[str, Any]) -> Iterator[BotProcess]:
    for value in fixtures.values():
        if isinstance(value, BotProcess):
            yield value
        elif isinstance(value, BotMaker):
            yield from value.made
