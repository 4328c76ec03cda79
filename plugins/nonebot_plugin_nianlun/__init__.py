"""Nianlun: a memory with growth rings for a QQ character.

Annotations stay objects here: evaluating the text of one makes Python 3.13 warn in NoneBot.
"""

import sys
from typing import Any

from nonebot import (
    get_driver,
    get_plugin_config,
    logger,
    on_message,
    require,
)
from nonebot.adapters import Bot
from nonebot.config import SettingsError
from nonebot.plugin import PluginMetadata
from pydantic import ValidationError

require("nonebot_plugin_localstore")
require("nonebot_plugin_apscheduler")
require("nonebot_plugin_alconna")

from nonebot.adapters.onebot.v11 import Bot as OneBot
from nonebot.adapters.onebot.v11 import MessageEvent
from nonebot_plugin_apscheduler import scheduler
from nonebot_plugin_localstore import get_plugin_data_dir

from .capture.listening import listen
from .chat.triggers import ReplyGate
from .commands.matcher import register
from .config import Config, explain
from .errors import NianlunError
from .lifecycle import Nianlun
from .types import ChatKey

__all__ = ["ChatKey", "__plugin_meta__", "nianlun"]

__plugin_meta__ = PluginMetadata(
    name="年轮",
    description="给 QQ 角色一份会生长的记忆：记录、随手记、按日月年沉淀，回复前想起来",
    usage="发送 /记忆 帮助 查看全部指令",
    type="application",
    config=Config,
    supported_adapters={"~onebot.v11"},
)

driver = get_driver()
try:
    nianlun = Nianlun(
        get_plugin_config(Config),
        get_plugin_data_dir(),
        driver.config,
    )
except (ValidationError, SettingsError, NianlunError) as error:
    # A bot that runs without its memory would be worse than one that does not start.
    problem = error if isinstance(error, NianlunError) else explain(error)
    logger.critical(f"年轮不能启动：{problem}")
    sys.exit(1)

OWED_EVERY_SECONDS = 30


@driver.on_startup
async def _start() -> None:
    await nianlun.open()
    nianlun.recorder.start()
    scheduler.add_job(
        nianlun.tick,
        "interval",
        id="nianlun-owed",
        seconds=OWED_EVERY_SECONDS,
        misfire_grace_time=None,
        coalesce=True,
        max_instances=1,
        replace_existing=True,
        timezone=nianlun.settings.timezone,
    )
    nianlun.jobs.soon()
    nianlun.announce(str(driver.config.host), driver.config.port)


@driver.on_bot_connect
async def _connected(bot: OneBot) -> None:
    nianlun.presence.connected(bot)
    nianlun.jobs.soon()


@driver.on_bot_disconnect
async def _disconnected(bot: OneBot) -> None:
    await nianlun.presence.disconnected(bot)


@driver.on_shutdown
async def _stop() -> None:
    if scheduler.get_job("nianlun-owed"):
        scheduler.remove_job("nianlun-owed")
    await nianlun.close()


listen(nianlun.on_event)


@OneBot.on_calling_api
async def _note_sending(bot: Bot, api: str, data: dict[str, Any]) -> None:
    nianlun.on_sending(api, data)


@OneBot.on_called_api
async def _record_sent(
    bot: Bot, exception: Exception | None, api: str, data: dict[str, Any], result: Any
) -> None:
    try:
        nianlun.on_sent(bot, exception, api, data, result)
    except Exception as error:
        logger.opt(exception=error).error("机器人发的一句话没有记录下来")


register(nianlun, nianlun.character)

_replies = on_message(priority=1, block=False)
_replies.permission = ReplyGate(driver.config.command_start)


@_replies.handle()
async def _reply(bot: OneBot, event: MessageEvent) -> None:
    await nianlun.answer(bot, event)
