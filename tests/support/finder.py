"""A reader of which each single search is one call."""

from __future__ import annotations

from plugins.nonebot_plugin_nianlun.memory.search import Candidate, Search
from plugins.nonebot_plugin_nianlun.store.search import SearchReader


class Finder(SearchReader):
    async def find(self, chat_id: int, search: Search, *, around: int = 0) -> list[Candidate]:
        return await self.run(lambda view: view.find(chat_id, search, around=around))

    async def names(self, chat_id: int) -> dict[str, set[str]]:
        people = await self.run(lambda view: view.names(chat_id))
        return {name: people.bearers(name) for name in people.names}
