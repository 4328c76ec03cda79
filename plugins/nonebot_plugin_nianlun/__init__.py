"""Nianlun: a memory with growth rings for a QQ character.

Annotations stay objects here: evaluating the text of one makes Python 3.13 warn in NoneBot.
"""

from pathlib import Path
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
from nonebot_plugin_localstore import BASE_DATA_DIR, get_plugin_data_dir, plugin_config

from .announcement import announcement
from .capture.listening import listen
from .chat.triggers import ReplyGate
from .commands.matcher import register
from .config import Config, explain
from .errors import (
    MemoryNotFound,
    MemoryRequestError,
    NianlunError,
    NotRecorded,
    PromptTooSmall,
    SpeakerError,
)
from .interface.diary import Diary, DiaryEntry, handle_diary_tool, memorize
from .interface.facts import FactEntry, Facts
from .interface.long_term import LongTermMemory
from .interface.memory_store import MemoryStore
from .interface.stored import MemoryPage, SpeakerInfo, SpeakerList, StoredMemory, StoreResult
from .lifecycle import Nianlun
from .memory.diary import (
    DIARY_PROMPT,
    DIARY_PROMPT_ZH,
    DIARY_TOOL_DESCRIPTION,
    diary_tool,
    parse_entries,
)
from .memory.prompt_builder import SystemPromptBuilder
from .memory.search import Recalled, RecallResult
from .memory.short_term import ShortTermMemory
from .memory.time_words import TimeRange, parse_time_range
from .memory.tokenizers import counter_for
from .memory.tokens import estimate_tokens
from .types import ME, ChatKey

__all__ = [
    "DIARY_PROMPT",
    "DIARY_PROMPT_ZH",
    "DIARY_TOOL_DESCRIPTION",
    "ME",
    "ChatKey",
    "Diary",
    "DiaryEntry",
    "FactEntry",
    "Facts",
    "LongTermMemory",
    "MemoryNotFound",
    "MemoryPage",
    "MemoryRequestError",
    "MemoryStore",
    "NianlunError",
    "NotRecorded",
    "PromptTooSmall",
    "RecallResult",
    "Recalled",
    "ShortTermMemory",
    "SpeakerError",
    "SpeakerInfo",
    "SpeakerList",
    "StoreResult",
    "StoredMemory",
    "SystemPromptBuilder",
    "TimeRange",
    "__plugin_meta__",
    "counter_for",
    "diary_tool",
    "estimate_tokens",
    "handle_diary_tool",
    "memorize",
    "nianlun",
    "parse_entries",
    "parse_time_range",
]

__plugin_meta__ = PluginMetadata(
    name="年轮",
    description="给 QQ 角色一份会生长的记忆：记录、随手记、按日月年沉淀，回复前想起来",
    usage="发送 /记忆 帮助 查看全部指令",
    type="application",
    config=Config,
    supported_adapters={"~onebot.v11"},
)


def _data_dir() -> Path:
    try:
        return get_plugin_data_dir()
    except (OSError, RuntimeError):
        # It cannot be made, and whoever opens the database there says why.
        name = __name__.rpartition(".")[2]
        return plugin_config.localstore_plugin_data_dir.get(name, BASE_DATA_DIR / name)


driver = get_driver()
try:
    nianlun = Nianlun(
        get_plugin_config(Config),
        _data_dir(),
        driver.config,
    )
except (ValidationError, SettingsError, RecursionError, NianlunError) as error:
    # A bot that runs without its memory would be worse than one that does not start.
    problem = error if isinstance(error, NianlunError) else explain(error)
    logger.critical(f"年轮不能启动：{problem}")
    sys.exit(1)

OWED_EVERY_SECONDS = 30


@driver.on_startup
async def _start() -> None:
    await nianlun.open()
    nianlun.recorder.start()
    await nianlun.presence.start()
    nianlun.start_ticking(OWED_EVERY_SECONDS)
    # On time to the second; what it misses, the ticking does.
    at = nianlun.calendar.local(nianlun.jobs.next_rollup())
    scheduler.add_job(
        nianlun.tick,
        "cron",
        id="nianlun-rollup",
        hour=at.hour,
        minute=at.minute,
        second=at.second,
        misfire_grace_time=None,
        coalesce=True,
        max_instances=1,
        replace_existing=True,
        timezone=nianlun.settings.timezone,
    )
    nianlun.jobs.soon()
    for line in announcement(nianlun, str(driver.config.host), driver.config.port):
        logger.success(line)


@driver.on_bot_connect
async def _connected(bot: OneBot) -> None:
    nianlun.presence.connected(bot)
    nianlun.jobs.soon()
    await nianlun.presence.tell()


@driver.on_bot_disconnect
async def _disconnected(bot: OneBot) -> None:
    await nianlun.presence.disconnected(bot)


@driver.on_shutdown
async def _stop() -> None:
    if scheduler.get_job("nianlun-rollup"):
        scheduler.remove_job("nianlun-rollup")
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


register(nianlun)

_replies = on_message(priority=1, block=False)
_replies.permission = ReplyGate(
    driver.config.command_start, joins_in=nianlun.replier.attention.chimes
)


@_replies.handle()
async def _reply(bot: OneBot, event: MessageEvent) -> None:
    await nianlun.answer(bot, event)
