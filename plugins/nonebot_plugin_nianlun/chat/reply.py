"""Answering: one reply at a time in a chat, from memory, within a hard time limit."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import datetime, timedelta
import re

from nonebot import logger
from nonebot.adapters.onebot.v11 import ActionFailed, Bot, MessageEvent, NetworkError

from ..capture.events import incoming, reply_target
from ..capture.outgoing import ambiguous
from ..capture.recorder import Recorder
from ..clock import Clock
from ..errors import ModelError, StoreError
from ..llm.client import ModelClient
from ..memory.calendar import Calendar
from ..memory.keymarks import strip_key_marks
from ..memory.prompt import ReplyPrompt
from ..store import chats, exclusions, messages, usage
from ..types import ChatKey, Message, Usage
from .delivery import Purpose, send_text
from .recall import Recaller

_RECALL_SECONDS = 3.0
_REPLY_SECONDS = 90.0
_STALE_SECONDS = 60.0
"""A question that waited longer for its turn is not answered any more."""
_EXCUSE_EVERY = timedelta(minutes=10)
_EXCUSE = "唔……我刚刚走神了，等会儿再和我说好吗？"
_MISSING_EVERY = timedelta(hours=1)
_MISSING = (
    "我在听，也都记着，只是还不会说话：主人还没有设置 OPENAI_API_KEY。设好并重启之后我就能回答了。"
)
_IMITATED = re.compile(r"^(?:[#&]\d+\s*)?(?:\d{1,2}:\d{2}\s+)?(?:我|assistant)\s*[:：]\s*")
_NUMBERED = re.compile(r"^#\d+\s+\d{1,2}:\d{2}\s+[^\n:：]{1,80}[:：]\s*")
_DAY_LINE = re.compile(r"^—— \d{4}-\d{2}-\d{2} 周. ——$")


class Replier:
    """Replies for all chats. Without a model it only says, now and then, what is missing."""

    def __init__(
        self,
        client: ModelClient | None,
        recorder: Recorder,
        recaller: Recaller,
        clock: Clock,
        calendar: Calendar,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._recaller = recaller
        self._clock = clock
        self._calendar = calendar
        self._turns: defaultdict[ChatKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._said_missing: dict[ChatKey, datetime] = {}
        self._said_excuse: dict[ChatKey, datetime] = {}
        self.trouble: str | None = None
        """Why the last reply went without memory; None when memory works."""

    async def answer(self, chat: ChatKey, bot: Bot, event: MessageEvent) -> None:
        """Reply to a message that the gate let through, if it is to the bot after all."""
        if not await self._is_called(chat, event):
            return
        if self._client is None:
            await self._once_in(_MISSING_EVERY, self._said_missing, chat, bot, event, _MISSING)
            return
        asked_at = self._clock.now()
        async with self._turns[chat]:
            if (self._clock.now() - asked_at).total_seconds() > _STALE_SECONDS:
                logger.info(f"{chat} 排队太久的一句话不再回答")
                return
            await self._reply(self._client, chat, bot, event)

    async def _is_called(self, chat: ChatKey, event: MessageEvent) -> bool:
        if event.is_tome():
            return True
        target = reply_target(event)
        chat_id = await chats.find(chat)
        if target is None or chat_id is None:
            return False
        return await messages.is_mine(chat_id, target)

    async def _reply(
        self, client: ModelClient, chat: ChatKey, bot: Bot, event: MessageEvent
    ) -> None:
        prompt, purpose = await self._prompt(chat, bot, event)
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                completion = await client.complete(prompt.messages)
        except (ModelError, TimeoutError) as error:
            logger.warning(f"{chat} 的回复没有写成：{error or '超时'}")
            await self._count(chat, client.model, Usage(), ok=False)
            await self._once_in(_EXCUSE_EVERY, self._said_excuse, chat, bot, event, _EXCUSE)
            return
        text = clean_reply(completion.text, self._recaller.character)
        if text:
            await self._send(bot, event, text, purpose)
        await self._count(chat, completion.model, completion.usage, ok=True)

    async def _prompt(
        self, chat: ChatKey, bot: Bot, event: MessageEvent
    ) -> tuple[ReplyPrompt, Purpose]:
        """With memory if that can be had in time; trouble costs the memory, not the reply."""
        purpose: Purpose = "reply"
        try:
            async with asyncio.timeout(_RECALL_SECONDS):
                await self._recorder.flush()
                unrecorded: list[Message] = []
                if await self._is_unrecorded(chat, event):
                    purpose, unrecorded = "opted_out", self._only(bot, event)
                prompt = await self._recaller.prompt(chat, unrecorded=unrecorded)
        except Exception as error:
            self.trouble = str(error) or f"读记忆超过了 {_RECALL_SECONDS:g} 秒"
            logger.opt(exception=error).error(f"{chat} 的这次回复没有记忆可用：{self.trouble}")
            return self._recaller.bare_prompt(self._only(bot, event)), purpose
        self.trouble = None
        return prompt, purpose

    async def _is_unrecorded(self, chat: ChatKey, event: MessageEvent) -> bool:
        chat_id = await chats.find(chat)
        return chat_id is not None and await exclusions.opted_out(chat_id, str(event.user_id))

    def _only(self, bot: Bot, event: MessageEvent) -> list[Message]:
        message = incoming(event, self_id=bot.self_id, now=self._clock.now())
        if message is None:
            return []
        text = event.get_plaintext()
        return [Message(1, message.time, message.user_id, message.name, text)]

    async def _count(self, chat: ChatKey, model: str, cost: Usage, *, ok: bool) -> None:
        try:
            chat_id = await chats.find(chat)
            if chat_id is not None:
                date = self._calendar.day_of(self._clock.now()).isoformat()
                await usage.count(chat_id, date, "reply", model, cost, ok)
        except StoreError as error:
            logger.warning(f"{chat} 这次回复的用量没有记上：{error}")

    async def _once_in(
        self,
        interval: timedelta,
        said: dict[ChatKey, datetime],
        chat: ChatKey,
        bot: Bot,
        event: MessageEvent,
        text: str,
    ) -> None:
        now = self._clock.now()
        if chat in said and now - said[chat] < interval:
            return
        said[chat] = now
        await self._send(bot, event, text)

    async def _send(
        self, bot: Bot, event: MessageEvent, text: str, purpose: Purpose = "reply"
    ) -> None:
        try:
            await send_text(bot, event, text, purpose=purpose)
        except (ActionFailed, NetworkError) as error:
            # Never sent again blindly: it may have arrived all the same.
            state = "不确定有没有发出去" if ambiguous(error) else "没有发出去"
            logger.warning(f"一条回复{state}：{error!r}")


def clean_reply(text: str, me: str = "我") -> str:
    """Take off what models imitate from the prompt: ids, times, speaker prefixes, key marks.

    `me` is what the bot's own lines are called there.
    """
    lines = []
    for line in strip_key_marks(text).replace("\x00", "").strip().splitlines():
        if not _DAY_LINE.match(line):
            said = _NUMBERED.sub("", _IMITATED.sub("", line))
            lines.append(re.sub(rf"^{re.escape(me)}\s*[:：]\s*", "", said))
    return "\n".join(lines).strip()
