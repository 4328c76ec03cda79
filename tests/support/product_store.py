"""The store of the product of this process, on a file that a test has chosen."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.store import chats, database, speakers
from plugins.nonebot_plugin_nianlun.store.search import SearchReader


class ProductStore:
    """What the product writes to and reads from; opened and closed as it does itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = SearchReader(path, nianlun.calendar)
        self._patch = patch.object(nianlun.recalling, "_reader", self._reader)

    async def __aenter__(self) -> Path:
        await self.open()
        return self.path

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        await database.open_store(self.path)
        self._patch.start()

    async def close(self) -> None:
        self._patch.stop()
        await self._reader.close()
        await database.close_store()
        chats.forget_cached_ids()
        speakers.forget_cached_names()
