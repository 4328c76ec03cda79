"""To govern: recording, replying, the persona, limits, who may read, links, clearing."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING
import unicodedata

from nonebot_plugin_alconna import Args

from ..errors import ChatError
from ..memory.render import one_line
from ..store import chat_settings, chats, links, pauses
from ..store.clearing import contents
from ..types import ChatKey, ChatKind
from . import governing_views as views
from .codes import Codes, wrong_code
from .command import Answer, Asked, Command, WrongUsage, rest_of_line
from .views import echo

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_KINDS: dict[str, ChatKind] = {
    "群": "group",
    "group:": "group",
    "人": "private",
    "private:": "private",
}
_PLACE = re.compile(r"(群|人|group:|private:)?\s*@?([0-9]{1,20})")
_CODE = "re:[0-9]{6}"
_HIGHEST = 10**12
_USUAL = "默认"
_NONE = "无"


class Governing:
    """Serves those who govern a chat."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun
        self._codes = Codes()

    def commands(self) -> tuple[Command, ...]:
        return (
            Command("暂停", "govern", "不再记这里说的话，指令照样可用", self._pause, group="管理"),
            Command("继续", "govern", "又开始记这里说的话", self._resume),
            Command("静音", "govern", "只记不说，除了指令的回答", self._mute),
            Command("开口", "govern", "又开始回话", self._unmute),
            Command(
                "人设",
                "govern",
                f"这里用哪个人设；写 {_USUAL} 就换回原来的",
                self._persona,
                (rest_of_line("名", optional=True),),
                usage="[名]",
            ),
            Command(
                "限额",
                "govern",
                f"一天写记忆最多用多少 token；写 {_NONE} 就照设置来",
                self._limit,
                (Args["数量;?", str],),
                example="20000",
                usage=f"[数量|{_NONE}]",
            ),
            Command("公开", "govern", "群里每个人都能看这个群的记忆", self._open),
            Command("不公开", "govern", "群里只有管理能看这个群的记忆", self._close),
            Command(
                "连通",
                "owner",
                "让两个会话互相想得起对方；不写就列出连着的",
                self._link,
                (Args["会话;?", str]["确认码;?", _CODE],),
                example="群123456",
                usage="[群|人的号码] [确认码]",
            ),
            Command(
                "断开",
                "owner",
                "两个会话不再互相想起",
                self._unlink,
                (Args["会话", str],),
                example="群123456",
                usage="群|人的号码",
            ),
            Command(
                "清空",
                "govern",
                "清掉这个会话的全部记忆，先要确认",
                self._clear,
                (Args["确认码;?", _CODE],),
                usage="[确认码]",
            ),
        )

    async def _pause(self, asked: Asked) -> str:
        chat_id = await self._nianlun.settled(asked.chat)
        changed = await pauses.pause(chat_id, asked.at, self._nianlun.clock.now())
        self._nianlun.traces.soon()
        return views.paused(changed, asked.head)

    async def _resume(self, asked: Asked) -> str:
        changed = await pauses.resume(await self._nianlun.settled(asked.chat), asked.at)
        return views.resumed(changed)

    async def _mute(self, asked: Asked) -> str:
        return views.muted(await self._set_muted(asked, True), asked.head)

    async def _unmute(self, asked: Asked) -> str:
        return views.unmuted(await self._set_muted(asked, False))

    async def _set_muted(self, asked: Asked, muted: bool) -> bool:
        chat_id = await self._nianlun.settled(asked.chat)
        changed = await chat_settings.change(chat_id, muted=muted)
        await self._nianlun.mutes.look()
        return changed

    async def _persona(self, asked: Asked) -> str:
        chat_id = await self._nianlun.settled(asked.chat)
        personas, recaller = self._nianlun.recaller.personas, self._nianlun.recaller
        names = await asyncio.to_thread(personas.names)
        wanted = asked.arguments.get("名")
        if wanted is None:
            row = await chats.row(asked.chat)
            return views.personas(names, row.persona if row else None, asked.head, _USUAL)
        if wanted == _USUAL:
            await chat_settings.change(chat_id, persona=None)
            return "好，换回原来的人设。"
        name = wanted.removesuffix(".md")
        if name not in names:
            shown = "、".join(map(one_line, names))
            others = f"能用的有：{shown}" if names else "除了原来的还没有别的"
            raise ChatError(f"没有 {echo(wanted, 40)} 这个人设，{others}")
        await asyncio.to_thread(personas.try_out, name, recaller.check)
        await chat_settings.change(chat_id, persona=name)
        return f"好，从下一句起用人设 {one_line(name)}。"

    async def _limit(self, asked: Asked) -> str:
        chat_id = await self._nianlun.settled(asked.chat)
        usual = self._nianlun.settings.daily_token_limit
        typed = asked.arguments.get("数量")
        if typed is None:
            return views.limit(await self._nianlun.jobs.limit_of(asked.chat), asked.head)
        limit = None if typed == _NONE else _whole(typed)
        if limit is not None and usual is not None and limit > usual and not asked.is_superuser:
            raise ChatError(f"机器人的主人定了每天最多 {usual} token，只能比它少")
        await chat_settings.change(chat_id, daily_token_limit=limit)
        return views.limit_set(await self._nianlun.jobs.limit_of(asked.chat))

    async def _open(self, asked: Asked) -> str:
        return views.opened(await self._set_readable(asked, True))

    async def _close(self, asked: Asked) -> str:
        return views.closed(await self._set_readable(asked, False))

    async def _set_readable(self, asked: Asked, readable: bool) -> bool:
        if asked.chat.kind != "group":
            raise ChatError("只有群的记忆可以公开或不公开，私聊的本来就只有两个人能看")
        chat_id = await self._nianlun.settled(asked.chat)
        return await chat_settings.change(chat_id, members_read=readable)

    async def _link(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        typed = asked.arguments.get("会话")
        if typed is None:
            return Answer(
                views.links(await self._nianlun.recalling.reader.linked(chat_id)), privately=True
            )
        other, now = await self._other(asked, typed), self._nianlun.clock.now()
        other_id = await self._nianlun.settled(other)
        standing = {one.key for one in await self._nianlun.recalling.reader.linked(chat_id)}
        # A private chat lies open to others then, so somebody has to have read that.
        if other not in standing and "private" in (asked.chat.kind, other.kind):
            code, purpose = asked.arguments.get("确认码"), f"连通 {other}"
            if code is None:
                code = self._codes.give(asked.chat, asked.user_id, now, purpose)
                again = f"{asked.head} 连通 {_typed(other)} {code}"
                again += views.about(asked.chat, asked.here)
                return Answer(views.ask_before_linking(asked.chat, other, again), privately=True)
            if not self._codes.take(asked.chat, asked.user_id, code, now, purpose):
                again = f"{asked.head} 连通 {_typed(other)}{views.about(asked.chat, asked.here)}"
                return Answer(wrong_code("没有连通", again), privately=True)
        changed = await links.link(chat_id, other_id, asked.user_id, now)
        return Answer(views.linked(changed, asked.head, _typed(other)), privately=True)

    async def _unlink(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        other = await self._other(asked, asked.arguments["会话"])
        changed = await links.unlink(chat_id, await self._nianlun.settled(other))
        return Answer(views.unlinked(changed), privately=True)

    async def _other(self, asked: Asked, typed: str) -> ChatKey:
        """The chat of the same account that somebody means by `群123`, `人456` or a number."""
        named = _PLACE.fullmatch(typed)
        if named is None:
            raise WrongUsage("写成 群123456 或 人20001。")
        self_id, number = asked.chat.self_id, named[2]
        kinds: tuple[ChatKind, ...] = ("group", "private")
        if named[1] is not None:
            kinds = (_KINDS[named[1]],)
        meant = [ChatKey(self_id, kind, number) for kind in kinds]
        found = [chat for chat in meant if await chats.find(chat) is not None]
        if not found:
            raise ChatError(f"这个机器人账号没有和 {number} 的会话")
        if len(found) > 1:
            raise ChatError(f"{number} 既是群又是人，请写明：群{number} 或 人{number}")
        return found[0]

    async def _clear(self, asked: Asked) -> str:
        chat_id, now = await self._nianlun.settled(asked.chat), self._nianlun.clock.now()
        code = asked.arguments.get("确认码")
        if code is None:
            code = self._codes.give(asked.chat, asked.user_id, now, "清空")
            again = f"{asked.head} 清空 {code}{views.about(asked.chat, asked.here)}"
            return views.ask_before_clearing(await contents(chat_id), again)
        if not self._codes.take(asked.chat, asked.user_id, code, now, "清空"):
            about = views.about(asked.chat, asked.here)
            return wrong_code("什么都没有清掉", f"{asked.head} 清空{about}")
        gone = await self._nianlun.clearings.clear(asked.chat, asked.at)
        return views.cleared(gone, asked.chat.kind)


def _whole(typed: str) -> int:
    typed = unicodedata.normalize("NFKC", typed)  # phones type full-width digits
    if not (typed.isascii() and typed.isdecimal()) or len(typed) > 13 or int(typed) > _HIGHEST:
        raise WrongUsage(f"限额写成一个数，例如 20000；0 是不用模型，{_NONE} 是照设置来。")
    return int(typed)


def _typed(chat: ChatKey) -> str:
    return f"{'群' if chat.kind == 'group' else '人'}{chat.peer_id}"
