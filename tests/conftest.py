"""NoneBot as the tests need it: initialised once, with nothing of the developer's own settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
import os
from pathlib import Path
import shutil
import sys
import tempfile

from hypothesis import HealthCheck, settings
import nonebot
from nonebot.adapters.onebot.v11 import Adapter
import nonebot.log
from nonebug import NONEBOT_START_LIFESPAN
import pytest

# How fast a machine is at the moment says nothing about the product.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

DATA_DIR = Path(tempfile.mkdtemp(prefix="nianlun-tests-"))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two for each core: what talks to a real bot mostly waits for it."""
    return 2 * (os.cpu_count() or 1)


def pytest_configure(config: pytest.Config) -> None:
    """The plugin's package is wiring, so NoneBot must stand before a test imports any of it."""
    for key in [key for key in os.environ if key.startswith(("NIANLUN", "OPENAI_"))]:
        del os.environ[key]
    config.stash[NONEBOT_START_LIFESPAN] = False
    # NoneBot's greeting would come out behind the summary of the tests.
    nonebot.logger.remove(nonebot.log.logger_id)
    nonebot.logger.add(sys.stderr, level="WARNING")
    nonebot.init(
        driver="~fastapi",
        log_level="WARNING",
        superusers={"10000"},
        nickname={"小忆"},
        command_start={"/"},
        localstore_data_dir=DATA_DIR,
        openai_api_key="",
        openai_base_url="",
        nianlun={},
    )
    nonebot.get_driver().register_adapter(Adapter)
    assert nonebot.load_plugin("plugins.nonebot_plugin_nianlun") is not None


def pytest_unconfigure() -> None:
    shutil.rmtree(DATA_DIR, ignore_errors=True)


@pytest.fixture(scope="session")
async def prepared_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file of this version without rows, to be copied."""
    from plugins.nonebot_plugin_nianlun.store import database

    path = tmp_path_factory.mktemp("template") / "nianlun.db"
    await database.prepare(path)
    return path


@pytest.fixture
async def database_file(prepared_database: Path, tmp_path: Path) -> AsyncIterator[Path]:
    """An open store on a real file of its own, which the product of this process reads too."""
    from tests.support.product_store import ProductStore

    path = tmp_path / "nianlun.db"
    shutil.copy(prepared_database, path)
    async with ProductStore(path):
        yield path
