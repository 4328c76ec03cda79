"""What members ask about themselves: what is known of them, not to be recorded, to be forgotten."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from nonebot_plugin_alconna import Args, Option

from ..errors import ChatError
from ..store import about_one, chats, exclusions, leaving_out, messages
from ..types import ChatKey
from .about_me_views import ask_before_forgetting_all, forgotten_all_view, left_out_view, mine_view
from .codes import Codes, wrong_code
from .command import Answer, Asked, Command
from .views import ask_before_forgetting, forgotten_view, opted_in_view, opted_out_view

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_A_WHILE = timedelta(minutes=30)
_LONGEST = timedelta(days=1)


class AboutMe:
    """Serves the speaker of a command, about nobody else."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun
        self._codes = Codes()

    def commands(self) -> tuple[Command, ...]:
        return (
            Command("我的记忆", "own", "这里记了你什么，私下告诉你", self._mine, group="自己"),
            Command("别记我", "own", "从现在起不记你说的话", self._opt_out),
            Command("可以记我", "own", "又开始记你说的话", self._opt_in),
            Command(
                "别记这段", "own", "不记你最近 30 分钟的话；引用一条就从那条起", self._leave_out
            ),
            Command(
                "忘记我",
                "own",
                "清掉你说过的话和关于你的记忆，先要确认",
                self._forget,
                (Args["确认码;?", "re:[0-9]{6}"],),
                (Option("-a"),),
                usage="[确认码]",
            ),
        )

    async def _mine(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        known = await about_one.known(chat_id, asked.user_id)
        text = mine_view(known, self._nianlun.calendar, asked.head)
        return Answer(text, "这里记着你的", privately=True)

    async def _opt_out(self, asked: Asked) -> str:
        changed = await self._nianlun.opt_out(asked.chat, asked.user_id, asked.at)
        return opted_out_view(changed, asked.head)

    async def _opt_in(self, asked: Asked) -> str:
        return opted_in_view(await self._nianlun.opt_in(asked.chat, asked.user_id, asked.at))

    async def _leave_out(self, asked: Asked) -> str:
        chat_id = await self._nianlun.settled(asked.chat)
        begins, first_seq = asked.at - _A_WHILE, None
        if asked.quoted is not None:
            quoted = await messages.newest(chat_id, asked.quoted)
            if quoted is None:
                raise ChatError("这里没有记过引用的那条")
            if asked.at - quoted.time > _LONGEST:
                raise ChatError("引用的那条太早了，最多从一天前起；全部清掉用「忘记我」")
            begins, first_seq = min(quoted.time, asked.at), quoted.seq
        count = await leaving_out.leave_out(
            chat_id,
            asked.user_id,
            begins,
            asked.at + exclusions.THAT_SECOND,
            self._nianlun.clock.now(),
            first_seq,
        )
        self._nianlun.traces.soon()
        self._nianlun.jobs.soon()
        return left_out_view(count, begins, self._nianlun.calendar)

    async def _forget(self, asked: Asked) -> str:
        everywhere = bool(asked.arguments.get("a"))
        if everywhere and not asked.is_superuser:
            raise ChatError("-a 只有机器人的主人可以用")
        now = self._nianlun.clock.now()
        chat, user_id = asked.chat, asked.user_id
        again = f"{asked.head} 忘记我" + (" -a" if everywhere else "")
        purpose = "everywhere" if everywhere else ""
        code = asked.arguments.get("确认码")
        if code is None:
            code = self._codes.give(chat, user_id, now, purpose)
            if everywhere:
                places = await self._places(user_id)
                return ask_before_forgetting_all(len(places), f"{again} {code}")
            return ask_before_forgetting(f"{again} {code}")
        if not self._codes.take(chat, user_id, code, now, purpose):
            return wrong_code("什么都没有清掉", again)
        if everywhere:
            places = await self._places(user_id)
            done = [await self._nianlun.forget(place, user_id, asked.at) for place in places]
            return forgotten_all_view(done, asked.head)
        forgotten = await self._nianlun.forget(chat, user_id, asked.at)
        return forgotten_view(forgotten, chat.kind, asked.head)

    async def _places(self, user_id: str) -> list[ChatKey]:
        """The groups in which somebody is known, and their private chats."""
        ids = await about_one.chats_of(user_id)
        return [
            chats.key_of(chat)
            for chat in await chats.everyone()
            if (chat.kind == "group" and chat.id in ids)
            or (chat.kind == "private" and chat.peer_id == user_id)
        ]
