"""Entry: `bot.py` runs the bot, `bot.py COMMAND …` is the command line."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
import socket
import sys
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import nonebot
from nonebot.adapters.onebot.v11 import Adapter
from nonebot.config import SettingsError
import nonebot.log
from pydantic import ValidationError

PLUGIN = "plugins.nonebot_plugin_nianlun"

# The data belongs beside the bot, where its owner finds it and backs it up.
os.environ.setdefault("LOCALSTORE_USE_CWD", "true")


def fail(reason: object) -> int:
    sys.stderr.write(f"年轮不能启动：{reason}\n")
    return 1


def initialise(**settings: str) -> None:
    """Start NoneBot with what the environment says, but for `settings`."""
    try:
        ZoneInfo("Asia/Shanghai")
    except ZoneInfoNotFoundError:
        sys.exit(fail("这里没有时区数据，请装上：uv pip install tzdata，或系统的 tzdata 包"))
    try:
        nonebot.init(**settings)
    except ValidationError as error:
        details = "；".join(
            f"{'__'.join(map(str, e['loc'])).upper()}={e['input']!r} 不对" for e in error.errors()
        )
        sys.exit(fail(details))
    except UnicodeDecodeError:
        sys.exit(fail(".env 不是 UTF-8 编码，请另存为 UTF-8"))
    except SettingsError as error:
        name = str(error).partition('"')[2].rstrip('"').upper()
        sys.exit(fail(f'{name} 不对：要写成 JSON，例如 ["甲", "乙"]'))
    nonebot.get_driver().register_adapter(Adapter)


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
            probe.bind((str(config.host), config.port))
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
