"""Entry: `bot.py` runs the bot, `bot.py COMMAND …` is the command line."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
import socket
import sys
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.schedulers.asyncio import AsyncIOScheduler
import nonebot
from nonebot.adapters.onebot.v11 import Adapter
from nonebot.config import Config, Env, SettingsError
from nonebot.drivers import combine_driver
import nonebot.log
from nonebot.utils import resolve_dot_notation
from pydantic import BaseModel, ValidationError

_OBJECTS = 10_000
"""New objects between two collections of garbage; a reply makes some thousands."""
PLUGIN = "plugins.nonebot_plugin_nianlun"

# The data belongs beside the bot, where its owner finds it and backs it up.
os.environ.setdefault("LOCALSTORE_USE_CWD", "true")


class SchedulerConfig(BaseModel):
    """What the plugin that runs the jobs reads."""

    apscheduler_autostart: bool = True
    apscheduler_log_level: int = 30
    apscheduler_config: dict[str, Any] = {"apscheduler.timezone": "Asia/Shanghai"}


def fail(reason: object) -> int:
    sys.stderr.write(f"年轮不能启动：{' '.join(str(reason).splitlines())}\n")
    return 1


def initialise(**settings: str) -> None:
    """Start NoneBot with what the environment says, but for `settings`."""
    try:
        ZoneInfo("Asia/Shanghai")
    except ZoneInfoNotFoundError:
        sys.exit(fail("这里没有时区数据，请装上：uv pip install tzdata，或系统的 tzdata 包"))
    try:
        config = Config(_env_file=(".env", f".env.{Env().environment}"))
        driver = settings.get("driver", config.driver)
        if wrong := log_level_trouble(config.log_level) or driver_trouble(driver):
            sys.exit(fail(wrong))
        nonebot.init(**settings)
        scheduling = nonebot.get_plugin_config(SchedulerConfig).apscheduler_config
    except ValidationError as error:
        details = "；".join(
            f"{'__'.join(map(str, e['loc'])).upper()}={e['input']!r} 不对" for e in error.errors()
        )
        sys.exit(fail(f"{details}，请改对，或删去这一项"))
    except UnicodeDecodeError:
        sys.exit(fail(".env 不是 UTF-8 编码，请另存为 UTF-8"))
    except SettingsError as error:
        name = str(error).partition('"')[2].rstrip('"').upper()
        sys.exit(fail(f'{name} 不对：要写成 JSON，例如 ["甲", "乙"] 或 {{"项": "值"}}'))
    if wrong := scheduler_trouble(scheduling):
        sys.exit(fail(wrong))
    nonebot.get_driver().register_adapter(Adapter)


def log_level_trouble(level: int | str) -> str | None:
    """NoneBot takes any word for one, and then writes a traceback for every line of the log."""
    try:
        if isinstance(level, str):
            nonebot.logger.level(level)
    except ValueError:
        return f"LOG_LEVEL={level!r} 不对：请写成 DEBUG、INFO、WARNING 或 ERROR"
    return None


def driver_trouble(driver: str) -> str | None:
    """Why NoneBot could not make a driver of these modules."""
    try:
        base, *mixins = (
            resolve_dot_notation(name, "Mixin" if place else "Driver", "nonebot.drivers.")
            for place, name in enumerate(driver.split("+"))
        )
        combine_driver(base, *mixins)
    except Exception as error:  # whatever a module that is imported raises
        return f"DRIVER 不对（{error}）：请写成 ~fastapi，或删去这一项"
    return None


def scheduler_trouble(config: dict[str, Any]) -> str | None:
    """Why its plugin could not be loaded, of which NoneBot would tell by a traceback."""
    try:
        scheduler = AsyncIOScheduler()
    except Exception as error:
        zone = os.environ.get("TZ")
        return f"系统的时区（{f'TZ={zone}' if zone else error}）用不了：请把 TZ 设为 Asia/Shanghai"
    try:
        scheduler.configure(config)
    except Exception as error:
        return f"APSCHEDULER_CONFIG 不对（{error}）：请改对，或删去这一项"
    return None


def run_bot() -> int:
    initialise()
    if not Path("pyproject.toml").is_file():
        return fail("请在 bot.py 所在的文件夹里运行")
    nonebot.load_from_toml("pyproject.toml")
    if nonebot.get_plugin("nonebot_plugin_nianlun") is None:
        return fail("插件没有加载成功，原因见上面的日志")
    from plugins.nonebot_plugin_nianlun import nianlun
    from plugins.nonebot_plugin_nianlun.errors import NianlunError

    try:
        asyncio.run(nianlun.check())
    except NianlunError as error:
        return fail(error)
    if taken := port_taken():
        return fail(taken)
    # What is loaded by now stays. Looked through again and again, it would hold up replies: all of
    # it for a tenth of a second.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS)
    nonebot.run()
    return 0


def port_taken() -> str | None:
    """Why the address cannot be listened on; the server itself would say so after all else."""
    config = nonebot.get_driver().config
    family = socket.AF_INET6 if ":" in str(config.host) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # By its full address: a pair has no place for the zone of `fe80::1%eth0`.
            probe.bind(socket.getaddrinfo(str(config.host), config.port, family)[0][4])
        except OSError as error:
            reason = error.strerror or error
            return f"用不了 {config.host}:{config.port}（{reason}），请换一个 HOST 或 PORT"
    return None


def run_command() -> int:
    # To standard error only, so that output stays clean.
    nonebot.logger.remove(nonebot.log.logger_id)
    # Without the values of variables, among which keys may be.
    nonebot.logger.add(sys.stderr, level="ERROR", format="{level} {message}", diagnose=False)
    # No command is a server or calls one of OneBot's: what the bot needs for that stays unread.
    initialise(driver="~none")
    if nonebot.load_plugin(PLUGIN) is None:
        return fail("插件没有加载成功，原因见上面的日志")
    from plugins.nonebot_plugin_nianlun.cli import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    try:
        sys.exit(run_command() if len(sys.argv) > 1 else run_bot())
    except KeyboardInterrupt:
        sys.exit(1)
