"""Facts that people have kept, and have taken away again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nonebot_plugin_alconna import Args

from ..errors import CorrectionError, NoteRejected, NotRecorded
from ..memory.fact_items import (
    FACT_NAME_CHARACTERS,
    FACT_UNITS,
    FactItem,
    fact_category,
    fact_item,
    fact_name,
)
from ..memory.promises import PROMISE, due_day
from ..memory.render import display_names, one_line
from ..memory.secrets import mask_secrets
from ..memory.units import count_units
from ..store import facts, messages
from ..store.exclusions import opted_out
from ..store.speakers import current_names
from ..types import ME
from .command import Asked, Command, WrongUsage, rest_of_line
from .correcting_views import (
    categories_hint,
    owner_words,
    remembered_view,
    several_owners_view,
)
from .subjects import find_person, read_fact
from .typed import last_word
from .views import echo

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_FOR_THE_CHAT = ("--群", "--group")
_OF_THE_CHAT = "群"
_ONLY_GOVERNORS = "替整个会话记、或者拿掉别人的，只有群主、管理员和机器人的主人可以。"
_NOT_OF_THE_CHAT = "这个会话没有这一条"


class Remembering:
    """Keeps what somebody says of themselves, or of the whole chat where they govern it."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun

    def commands(self) -> tuple[Command, ...]:
        return (
            Command(
                "记住",
                "own",
                "记下一件关于你的事；前面加 --群 就是关于这个会话的，要有管理权",
                self._remember,
                (Args["分类", str], rest_of_line("内容")),
                example="preferences:咖啡 只喝美式",
                usage="[--群] 分类:名 内容",
            ),
            Command(
                "忘掉",
                "own",
                "拿掉记下的一件事；拿掉别人的要有管理权，写上是谁",
                self._forget,
                (rest_of_line("分类"),),
                example="preferences:咖啡",
                usage="分类:名 [谁]",
                names_person=True,
            ),
        )

    async def _remember(self, asked: Asked) -> str:
        named, content = asked.arguments["分类"], asked.arguments["内容"]
        owner = asked.user_id
        if named in _FOR_THE_CHAT:
            if not asked.governs:
                raise CorrectionError(_ONLY_GOVERNORS)
            named, content = (*content.split(maxsplit=1), "")[:2]
            owner = ""
        chat_id = await self._nianlun.settled(asked.chat)
        item = self._item(asked, named, content)
        source = await self._source(asked, chat_id)
        now = self._nianlun.clock.now()
        try:
            [change] = await facts.remember(chat_id, owner, [item], source, now)
        except NotRecorded:
            if owner and await opted_out(chat_id, owner):
                told = f"你说过别记你，没有保存。要我再记，请发送：{asked.head} 可以记我"
                raise CorrectionError(told) from None
            raise
        names = await self._names(chat_id, [owner])
        return remembered_view(
            item,
            change,
            "你" if owner == asked.user_id else owner_words(owner, names),
            masked=mask_secrets(one_line(content)) != one_line(content),
            unresolved=await facts.unresolved_links(chat_id, owner, item),
        )

    def _item(self, asked: Asked, named: str, content: str) -> FactItem:
        category, name = _named(named)
        try:
            item = fact_item(category, name, content)
        except NoteRejected as error:
            units = count_units(content)
            raise WrongUsage(f"内容有 {units} 字，要有 1 到 {FACT_UNITS} 字。") from error
        if category != PROMISE:
            return item
        day = due_day(item.content, asked.at, self._nianlun.calendar)
        return replace(item, due=None if day is None else day.isoformat())

    async def _source(self, asked: Asked, chat_id: int) -> int | None:
        """The command itself: who takes it back takes the fact back."""
        if asked.chat != asked.here:
            return None
        return await messages.seq_of(chat_id, str(asked.event.message_id))

    async def _forget(self, asked: Asked) -> str:
        chat_id = await self._nianlun.settled(asked.chat)
        category, name, whom = await self._meant(asked, chat_id)
        owners = await self._owners(asked, chat_id, category, name)
        owner = await self._owner(asked, chat_id, owners, whom)
        if owner is None:
            names = await self._names(chat_id, owners)
            return several_owners_view(category, name, owners, names, asked.head)
        names = await self._names(chat_id, {*owners, owner})
        whose = "你" if owner == asked.user_id else owner_words(owner, names)
        now = self._nianlun.clock.now()
        if not await facts.erase(chat_id, owner, category, name, asked.at, now):
            raise CorrectionError(f"{whose}没有 {category}:{name} 这一条")
        self._nianlun.traces.soon()
        return (
            f"拿掉了{whose}的 {category}:{name}，它以前的写法也清掉了；"
            "到现在为止说过的话不会再让它回来。"
        )

    async def _owners(self, asked: Asked, chat_id: int, category: str, name: str) -> list[str]:
        """Who has a fact of that name; whether others do, only those who govern are told."""
        owners = [row.owner for row in await facts.named(chat_id, category, name)]
        return [one for one in owners if asked.governs or one in ("", asked.user_id)]

    async def _meant(self, asked: Asked, chat_id: int) -> tuple[str, str, str]:
        """Category, name, and whose: names may have blanks, so the whole is tried first."""
        category, name = _named(asked.arguments["分类"])
        while not await self._owners(asked, chat_id, category, name):
            front, last = last_word(name)
            if not front:
                break
            address = last == f"@{asked.here.self_id}"
            if not address or ME in await self._owners(asked, chat_id, category, front):
                return category, front, last
            name = front
        return category, name, ""

    async def _owner(
        self, asked: Asked, chat_id: int, owners: Sequence[str], whom: str
    ) -> str | None:
        """Whose fact is meant; None when that has to be said."""
        if whom:
            meant = "" if whom == _OF_THE_CHAT else await self._person(asked, chat_id, whom)
            if meant != asked.user_id and not asked.governs:
                raise CorrectionError(
                    _ONLY_GOVERNORS if meant or "" in owners else _NOT_OF_THE_CHAT
                )
            return meant
        if asked.user_id in owners:
            return asked.user_id
        if not owners:
            raise CorrectionError("没有这一条")
        if not asked.governs:
            raise CorrectionError(f"你没有这一条。{_ONLY_GOVERNORS}")
        return owners[0] if len(owners) == 1 else None

    async def _person(self, asked: Asked, chat_id: int, whom: str) -> str:
        return await find_person(chat_id, whom, asked.here.self_id, self._nianlun.character)

    async def _names(self, chat_id: int, owners: Collection[str]) -> dict[str, str]:
        return display_names(await current_names(chat_id, [one for one in owners if one]))


def _named(typed: str) -> tuple[str, str]:
    found = read_fact(typed)
    if found is None:
        raise WrongUsage(f"请写成 分类:名。{categories_hint()}")
    try:
        category = fact_category(found[0])
    except NoteRejected as error:
        raise WrongUsage(f"没有 {echo(found[0])} 这样的分类。{categories_hint()}") from error
    try:
        return category, fact_name(found[1])
    except NoteRejected as error:
        raise WrongUsage(
            f"名要 1 到 {FACT_NAME_CHARACTERS} 个字，里面不能有 : | # [[ ]]。"
        ) from error
