"""Whatever keeps the bot from its memory ends it at once, with a line that says why."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
import socket
import sqlite3

import pytest

from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess

FAILING_PLUGIN = """
import nonebot

@nonebot.get_driver().on_startup
async def _() -> None:
    raise RuntimeError("the other plugin is broken")
"""


def place(bot: BotProcess) -> None:
    bot.folder.joinpath("data", "nonebot_plugin_nianlun").mkdir(parents=True)


def garbage(bot: BotProcess) -> str:
    place(bot)
    path = bot.folder / "data" / "nonebot_plugin_nianlun" / "nianlun.db"
    path.write_bytes(bytes(range(256)) * 32)
    return path.name


def folder(bot: BotProcess) -> str:
    place(bot)
    path = bot.folder / "data" / "nonebot_plugin_nianlun" / "nianlun.db"
    path.mkdir()
    return path.name


def unreachable(bot: BotProcess) -> str:
    path = bot.folder / "bot.py" / "inside.db"
    bot.env["NIANLUN__DATABASE_URL"] = f"sqlite://{path}"
    return path.name


def large_persona(bot: BotProcess) -> str:
    path = bot.folder / "persona.txt"
    path.write_text("我是一只很啰嗦的猫。" * 2000, encoding="utf-8")
    bot.env |= {"NIANLUN__PERSONA_FILE": str(path), "NIANLUN__PROMPT_BUDGET": "600"}
    return "600"


def setting(name: str, value: str) -> Callable[[BotProcess], str]:
    def put(bot: BotProcess) -> str:
        bot.env[name] = value
        return name

    return put


def line_of_env_file(bot: BotProcess) -> str:
    bot.folder.joinpath(".env").write_text("DRIVER=~fastapi+~nothing\n", encoding="utf-8")
    return "DRIVER"


def without_zones(bot: BotProcess) -> str:
    bot.env["PYTHONTZPATH"] = str(bot.folder / "none")
    return "tzdata"


ONLY_SYSTEM_ZONES = pytest.mark.skipif(
    find_spec("tzdata") is not None, reason="the package brings the zones"
)


def check_one_line(output: str, about: str) -> None:
    assert "Traceback" not in output
    assert '  File "' not in output
    telling = [line for line in output.splitlines() if about in line]
    assert len(telling) == 1, output


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(setting("NIANLUN__KEEP_DAYS", "abc"), id="not-a-number"),
        pytest.param(setting("NIANLUN__TYPO", "1"), id="unknown-setting"),
        pytest.param(setting("NIANLUN__TIMEZONE", "Mars/X"), id="no-such-zone"),
        pytest.param(setting("PORT", "abc"), id="port"),
        pytest.param(setting("LOG_LEVEL", "x"), id="log-level"),
        pytest.param(setting("TZ", "CST-8"), id="time-zone-of-the-system"),
        pytest.param(line_of_env_file, id="driver"),
        pytest.param(setting("APSCHEDULER_CONFIG", "abc"), id="scheduler-is-no-json"),
        pytest.param(large_persona, id="large-persona"),
        pytest.param(garbage, id="not-a-database"),
        pytest.param(folder, id="database-is-a-folder"),
        pytest.param(unreachable, id="database-cannot-be-created"),
        pytest.param(without_zones, id="no-time-zones", marks=ONLY_SYSTEM_ZONES),
    ],
)
async def test_one_clear_line(new_bot: BotMaker, spoil: Callable[[BotProcess], str]) -> None:
    bot = new_bot(fresh=True)
    about = spoil(bot)
    assert await bot.run_to_end() > 0
    check_one_line(bot.output, about)


NO_ZONE = setting("APSCHEDULER_CONFIG", '{"apscheduler.timezone": "Mars/X"}')


@pytest.mark.parametrize("spoil", [setting("NIANLUN__KEEP_DAYS", "abc"), garbage, NO_ZONE])
async def test_a_command_fails_with_the_same_line(
    new_bot: BotMaker, spoil: Callable[[BotProcess], str]
) -> None:
    bot = new_bot(fresh=True)
    about = spoil(bot)
    done = await bot.cli("rollup")
    assert (done.returncode, done.stdout) == (1, "")
    check_one_line(done.stderr, about)


async def test_what_only_looks_makes_no_database(new_bot: BotMaker) -> None:
    bot = new_bot(fresh=True)
    done = await bot.cli("backup", "-o", "copy.db")
    assert (done.returncode, done.stdout) == (1, "")
    check_one_line(done.stderr, "没有数据库")
    shown = await bot.cli_ok("doctor")
    check_one_line(shown, "还没有数据库")
    assert "没有记录过" not in shown
    assert done.stderr.strip().partition("：")[2] in shown
    assert list(bot.folder.rglob("*.db*")) == []


def take_table(bot: BotProcess) -> str:
    with closing(sqlite3.connect(bot.database)) as connection, connection:
        connection.execute("DROP TABLE nianlun_exclusion")
    return "没有表 nianlun_exclusion"


def take_column(bot: BotProcess) -> str:
    with closing(sqlite3.connect(bot.database)) as connection, connection:
        connection.execute("ALTER TABLE nianlun_activity DROP COLUMN source_conv")
    return "nianlun_activity 没有列 source_conv"


def tear(bot: BotProcess) -> str:
    with bot.database.open("rb+") as file:
        file.truncate(bot.database.stat().st_size // 2 + 77)
    return "malformed"


@pytest.mark.parametrize("spoil", [take_table, take_column, tear])
async def test_doctor_says_what_to_do_with_a_broken_database(
    new_bot: BotMaker, spoil: Callable[[BotProcess], str]
) -> None:
    bot = new_bot()
    about = spoil(bot)
    done = await bot.cli("doctor")
    assert (done.returncode, done.stderr) == (1, "")
    check_one_line(done.stdout, about)
    assert "⚠ 数据库：" in done.stdout
    assert "restore" in done.stdout


async def test_a_command_that_meets_a_broken_page(new_bot: BotMaker) -> None:
    bot = new_bot()
    with closing(sqlite3.connect(bot.database)) as connection:
        table = "SELECT rootpage FROM sqlite_master WHERE name = 'nianlun_chat'"
        (page,) = connection.execute(table).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with bot.database.open("rb+") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    done = await bot.cli("export", "group:1")
    assert (done.returncode, done.stdout) == (1, "")
    check_one_line(done.stderr, "malformed")


async def test_a_database_from_the_future(new_bot: BotMaker) -> None:
    bot = new_bot()
    with closing(sqlite3.connect(bot.database)) as connection, connection:
        connection.execute(
            "INSERT INTO tortoise_migrations (app, name, applied_at)"
            " VALUES ('nianlun', '9999_from_the_future', '2030-01-01 00:00:00+00:00')"
        )
    assert await bot.run_to_end() > 0
    check_one_line(bot.output, "9999_from_the_future")


async def test_a_locked_database(new_bot: BotMaker) -> None:
    bot = new_bot()
    with closing(sqlite3.connect(bot.database, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert await bot.run_to_end() > 0
        connection.execute("ROLLBACK")
    check_one_line(bot.output, bot.database.name)


async def test_a_port_that_is_taken_does_not_hang(new_bot: BotMaker) -> None:
    bot = new_bot()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", bot.port))
        taken.listen()
        assert await bot.run_to_end() != 0
    assert "Traceback" not in bot.output


async def test_another_plugins_failure_does_not_hang(new_bot: BotMaker) -> None:
    bot = new_bot(plugins={"broken": FAILING_PLUGIN})
    assert await bot.run_to_end() != 0
    assert "the other plugin is broken" in bot.output
