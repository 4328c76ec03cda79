"""What stands before a reply, read as the product reads it."""

from __future__ import annotations

from datetime import time
from pathlib import Path
from zoneinfo import ZoneInfo

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.layers import Layers
from plugins.nonebot_plugin_nianlun.store.reply_view import Wanted
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.types import ChatKey


async def layers(file: Path, chat: ChatKey, activities: int = 500) -> Layers:
    reader = SearchReader(file, Calendar(ZoneInfo("Asia/Shanghai"), time(4)))
    try:
        return (await reader.reply_view(chat, Wanted(7, 2, activities, 0))).layers
    finally:
        await reader.close()
