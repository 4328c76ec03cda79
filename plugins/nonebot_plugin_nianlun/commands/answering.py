"""From a command to its answer: who asks about what, whether they may, and what comes of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

from nonebot import logger
from nonebot.adapters.onebot.v11 import Bot, MessageEvent
from nonebot_plugin_alconna import Args

from ..capture.events import chat_of, reply_target, sender_role, time_of
from ..errors import (
    ChatError,
    CorrectionError,
    NianlunError,
    NoteRejected,
    NotRecorded,
    SpeakerError,
)
from ..store.database import trouble_of
from ..types import ChatKey
from .command import Answer, Asked, Command, NotUnderstood, WrongUsage
from .desk import Desk
from .permissions import Right, Role, may, refusal
from .tree import HELP, Request, Tree
from .typed import mention_behind, typed_text

_ONLY_SUPERUSERS = "-g 和 -u 只有机器人的主人可以用。"
_ONE_CHAT = "一次只能说一个会话，请只写一个 -g 或 -u。"
_NOBODY = "匿名的人共用一个号码，我分不清是谁，请用自己的身份来说。"
_HELP_TITLE = "年轮：我的记忆"
_UNFORESEEN = "没有做成：程序出了意外，详情在机器人的日志里。"


class Answering:
    """Answers all commands."""

    def __init__(self, desk: Desk, commands: Sequence[Command], starts: Collection[str]) -> None:
        """`starts` are NoneBot's command starts."""
        self._desk = desk
        help_ = Command(
            verb=HELP,
            right="all",
            note="这份说明；写上一条指令的名字，就只说那一条",
            serve=self._help,
            arguments=(Args["指令;?", str],),
            example="搜索",
            usage="[指令]",
        )
        self.tree = Tree([help_, *commands], starts)

    async def answer(self, bot: Bot, event: MessageEvent) -> Answer | None:
        """The answer to a command; None in a chat that is not served."""
        here = chat_of(event, bot.self_id)
        if here is None or not self._desk.hears(here):
            return None
        text = typed_text(event.message, bot.self_id)
        request = self.tree.read(text)
        if request.command.names_person:
            # NoneBot takes the @ of the bot off the end.
            mention = mention_behind(event.original_message, bot.self_id)
            named = self.tree.read(text + mention)
            request = request if named.arguments is None else named
        user_id = str(event.user_id)
        asked = Asked(
            chat=here,
            here=here,
            user_id=user_id,
            is_superuser=user_id in self._desk.superusers,
            role=cast(Role, sender_role(event)),
            at=time_of(event, self._desk.clock.now()),
            arguments=request.arguments or {},
            quoted=reply_target(event),
            bot=bot,
            event=event,
            head=self.tree.head,
        )
        verb = request.command.verb
        try:
            return await self._serve(asked, request)
        except (ChatError, CorrectionError, NoteRejected, NotRecorded, SpeakerError) as error:
            return Answer(f"没有做成：{error}")
        except NianlunError as error:
            logger.warning(f"{here} 的「{verb}」没有做成：{error}")
            return Answer(f"没有做成：{error}")
        except Exception as error:
            # Silence would look like a dead bot, and the log is all that can name a fault of ours.
            logger.opt(exception=error).error(f"{here} 的「{verb}」出了意外")
            trouble = trouble_of(error)
            return Answer(_UNFORESEEN if trouble is None else f"没有做成：{trouble}")

    async def _serve(self, asked: Asked, request: Request) -> Answer:
        if request.about:
            if not asked.is_superuser:
                return Answer(_ONLY_SUPERUSERS)
            if len(request.about) > 1:
                return Answer(_ONE_CHAT)
            for kind, typed in request.about:
                asked = replace(asked, chat=await self._desk.meant(kind, typed, asked.here))
        command = request.command
        if not may(
            command.right,
            is_superuser=asked.is_superuser,
            role=asked.role,
            kind=asked.chat.kind,
            members_read=await self._members_read(asked.chat),
        ):
            return Answer(refusal(command.right))
        if command.right == "own" and asked.event.sub_type == "anonymous":
            return Answer(_NOBODY)
        if request.arguments is None:
            return Answer(self.tree.wrong_usage(command))
        try:
            answer = await command.serve(asked)
        except NotUnderstood as error:
            return Answer(self.tree.unknown(str(error)))
        except WrongUsage as error:
            return Answer(f"{error}\n{self.tree.usage(command)}")
        if isinstance(answer, str):
            answer = Answer(answer)
        # What is remembered of another chat is not for the ears of this one.
        elsewhere = asked.chat != asked.here
        return replace(answer, privately=True) if elsewhere else answer

    async def _members_read(self, chat: ChatKey) -> bool:
        return chat.kind == "group" and await self._desk.members_read(chat)

    async def _help(self, asked: Asked) -> Answer:
        if (verb := asked.arguments.get("指令")) is not None:
            if verb not in self.tree.commands:
                raise NotUnderstood(verb)
            return Answer(self.tree.help_on(self.tree.commands[verb]))
        open_to: set[Right] = {"all", "own"}
        if asked.here.kind == "private":
            open_to |= {"read", "govern"}
        elif await self._members_read(asked.here):
            open_to.add("read")
        elif not asked.governs:
            return Answer(f"{refusal('read')}\n{self.tree.own_help()}", title=_HELP_TITLE)
        return Answer(self.tree.help_text(open_to), title=_HELP_TITLE)
