"""Answering: one reply at a time in a chat, from memory, within a hard time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from nonebot import logger
from nonebot.adapters.onebot.v11 import Bot, Event, MessageEvent

from ..capture.events import id_text, incoming, reply_target, time_of
from ..capture.muting import muting
from ..capture.readable import readable
from ..capture.recorder import Recorder
from ..clock import Clock
from ..config import Settings
from ..errors import ModelError
from ..llm.client import ModelClient
from ..memory.calendar import Calendar
from ..memory.imitations import clean_reply
from ..memory.prompt import ReplyPrompt
from ..store import chats, messages, traces, usage
from ..types import ChatKey, Incoming, Message, Usage
from .attention import Attention
from .delivery import Purpose
from .messenger import Messenger
from .recall import Recaller
from .silences import Silences
from .standing import Standing, Verdict
from .tool_talk import ToolTalk
from .tools import ReplyTools, ToolDesk
from .triggers import is_called
from .turns import Turn, Turns

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_RECALL_SECONDS = 3.0
_REPLY_SECONDS = 90.0
_STALE_SECONDS = 60.0
"""A question that waited longer for its turn is not answered any more."""
_LATE = 10
"""Nor one that arrives so many times later, as after a reconnect; less may be a wrong clock."""
_EXCUSE_EVERY = timedelta(minutes=10)
_EXCUSE = "唔……我刚刚走神了，等会儿再和我说好吗？"
_MISSING_EVERY = timedelta(hours=1)
_MISSING = "我还不会说话：主人还没有设置 OPENAI_API_KEY。设好并重启之后我就能回答了。"
_RECORDING = "在这之前我也在听，都记着。"


@dataclass(frozen=True, slots=True)
class _Spent:
    """What a reply has cost, also one that was not written."""

    model: str
    usage: Usage
    ok: bool


@dataclass(frozen=True, slots=True)
class _Ready:
    """What a model is to answer."""

    prompt: ReplyPrompt
    purpose: Purpose
    standing: Standing | None = None
    desk: ToolDesk | None = None
    asked: bool = True
    """Not all of it was taken back while it waited for its turn."""


class Replier:
    """Replies for all chats. Without a model it only says, now and then, what is missing."""

    def __init__(
        self,
        client: ModelClient | None,
        recorder: Recorder,
        recaller: Recaller,
        clock: Clock,
        calendar: Calendar,
        settings: Settings,
        after_turn: Callable[[ChatKey, str], None] | None = None,
        tools: ReplyTools | None = None,
        mutes: Container[ChatKey] = (),
    ) -> None:
        """`after_turn` is told where and to whom a reply has gone out, and returns at once. In
        `mutes` nothing is said."""
        self._client = client
        self._recorder = recorder
        self._recaller = recaller
        self._clock = clock
        self._calendar = calendar
        self._after_turn = after_turn
        self._tools = tools
        self._mutes = mutes
        self._turns = Turns(settings.reply_wait)
        self._silences = Silences()
        self._messenger = Messenger(
            settings.reply_characters, settings.typing_speed, self._silences
        )
        self.attention = Attention(settings, clock, calendar)
        self._said_missing: dict[ChatKey, datetime] = {}
        self._said_excuse: dict[ChatKey, datetime] = {}
        self.trouble: str | None = None
        """Why the last reply went without memory; None when memory works."""

    def silence(self, chat: ChatKey) -> str | None:
        """Why the bot says nothing in this chat for the time being; None when it does."""
        return self._silences.reason(chat)

    def heard(self, message: Incoming) -> None:
        """Take notice of a line of a chat as it arrives, whether it calls or not."""
        if message.skipped is None:
            self._turns.heard(message.chat, message.user_id)
        self.attention.heard(message.chat, message.user_id)

    def noticed(self, event: Event, self_id: str) -> None:
        """Take notice that the bot may no longer speak in a group, or may again."""
        notice = muting(event, self_id)
        if notice is None:
            return
        if notice.reason is None:
            self._silences.end(notice.chat)
        else:
            self._silences.begin(notice.chat, notice.reason, notice.seconds)

    async def answer(self, chat: ChatKey, bot: Bot, event: MessageEvent) -> None:
        """Reply to a message that the gate let through, if it wants one after all."""
        called = await self._is_called(chat, event)
        if not await self._is_wanted(chat, event, called):
            return
        if self._client is None:
            if called and self._is_due(_MISSING_EVERY, self._said_missing, chat):
                text = _MISSING + await self._recording(chat, event)
                await self._notify(chat, bot, event, text)
            return
        spent: _Spent | None = None
        async with self._turns.turn(chat, event, called=called, patience=_STALE_SECONDS) as turn:
            if turn is not None and not self._is_silent(chat):
                spent = await self._reply(self._client, chat, bot, turn)
        if spent is not None:
            # Nobody's turn waits for that: a database in trouble takes its time.
            await self._count(chat, spent)

    async def _is_wanted(self, chat: ChatKey, event: MessageEvent, called: bool) -> bool:
        now = self._clock.now()
        if (now - time_of(event, now)).total_seconds() > _LATE * _STALE_SECONDS:
            logger.info(f"{chat} 收到一句很久以前的话，不再回答；如果它是刚说的，请校准时钟")
            return False
        if self._is_silent(chat):
            return False
        if called:
            return self.attention.admits(chat, str(event.user_id))
        return (
            self.attention.chimes
            and not self._turns.busy(chat)
            and self.attention.joins_in(chat, event)
            and not await self._is_unrecorded(chat, event)
        )

    def _is_silent(self, chat: ChatKey) -> bool:
        return chat in self._mutes or self._silences.reason(chat) is not None

    async def _is_called(self, chat: ChatKey, event: MessageEvent) -> bool:
        if is_called(event):
            return True
        target = reply_target(event)
        if target is None:
            return False
        try:
            async with asyncio.timeout(_RECALL_SECONDS):
                chat_id = await chats.find(chat)
                return chat_id is not None and await messages.is_mine(chat_id, target)
        except Exception as error:
            logger.warning(f"{chat} 不知道引用的是不是自己的话，这次不回答：{error!r}")
            return False

    async def _reply(
        self, client: ModelClient, chat: ChatKey, bot: Bot, turn: Turn
    ) -> _Spent | None:
        ready = await self._ready(chat, bot, turn)
        if not ready.asked:
            logger.info(f"{chat} 有话还没轮到回答就被收回了，这次不回答")
            return None
        event = turn.calls[-1]
        talk = ToolTalk(client, ready.desk)
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                completion = await talk.answer(ready.prompt.messages)
                verdict = await self._verdict(chat, ready.standing)
                if verdict == "overtaken":
                    ready = await self._ready(chat, bot, turn)
                    # Without memory nobody knows which of the lines that called is gone.
                    if ready.standing is not None:
                        completion = await talk.answer_anew(ready.prompt.messages)
                        verdict = await self._verdict(chat, ready.standing)
        except (ModelError, TimeoutError) as error:
            logger.warning(f"{chat} 的回复没有写成：{error or '超时'}")
            if turn.called:
                await self._excuse(chat, bot, event)
            return _Spent(client.model, talk.spent, ok=False)
        text = clean_reply(completion.text, self._recaller.character)
        if verdict == "unasked":
            logger.info(f"{chat} 有话在写回复时被收回了，这次不回答")
        elif (verdict == "overtaken" or not text) and turn.called:
            # Overtaken once more, or nothing but what it was shown: marks and others' lines.
            await self._excuse(chat, bot, event)
        elif verdict == "stands" and text and chat not in self._mutes:
            quote = await self._is_to_quote(chat, event)
            if await self._messenger.say(chat, bot, event, text, ready.purpose, quote=quote):
                self.attention.answered(chat, turn.asker)
                if self._after_turn is not None and ready.purpose == "reply":
                    self._after_turn(chat, turn.asker)
        return _Spent(client.model, completion.usage, ok=True)

    async def _verdict(self, chat: ChatKey, standing: Standing | None) -> Verdict:
        if standing is None:
            return "stands"
        try:
            async with asyncio.timeout(_RECALL_SECONDS):
                await self._recorder.flush()
                return await standing.verdict()
        except Exception as error:
            logger.warning(f"{chat} 不知道有没有话被收回，照样回答：{error!r}")
            return "stands"

    async def _is_to_quote(self, chat: ChatKey, event: MessageEvent) -> bool:
        """Where others have spoken since, it would not be clear what the answer is to."""
        message_id = id_text(event.message_id)
        if chat.kind != "group" or message_id is None or self.trouble is not None:
            return False
        try:
            async with asyncio.timeout(_RECALL_SECONDS):
                await self._recorder.flush()
                chat_id = await chats.find(chat)
                return chat_id is not None and await messages.is_buried(chat_id, message_id)
        except Exception as error:
            logger.warning(f"{chat} 不知道要不要引用所答的话，这次不引用：{error!r}")
            return False

    async def _ready(self, chat: ChatKey, bot: Bot, turn: Turn) -> _Ready:
        """With memory if that can be had in time; trouble costs the memory, not the reply."""
        purpose: Purpose = "reply"
        said = self._said(bot, turn)
        try:
            async with asyncio.timeout(_RECALL_SECONDS):
                await self._recorder.flush()
                memory = await self._recaller.remember(chat, turn.asker, said)
                view = memory.view
                if view.unrecorded:
                    purpose = "opted_out"
                prompt = self._recaller.prompt_of(chat, memory)
                standing = None
                if view.chat_id is not None and view.read is not None:
                    standing = Standing(view.chat_id, view.read, _ids(turn))
                # In whole seconds: another line of theirs may be of the same.
                told = {(line.user_id, line.time, line.text) for line in view.history}
                is_asked = any((line.user_id, line.time, line.text) in told for line in said)
                if standing is not None and not is_asked:
                    is_asked = await standing.is_asked()
        except Exception as error:
            self.trouble = str(error) or f"读记忆超过了 {_RECALL_SECONDS:g} 秒"
            logger.opt(exception=error).error(f"{chat} 的这次回复没有记忆可用：{self.trouble}")
            return _Ready(self._recaller.bare_prompt(said, chat), purpose)
        self.trouble = None
        desk = self._desk(chat, turn, purpose, view.read)
        return _Ready(prompt, purpose, standing, desk, is_asked)

    def _desk(
        self, chat: ChatKey, turn: Turn, purpose: Purpose, read: traces.Reading | None
    ) -> ToolDesk | None:
        """Of whom nothing is recorded, nothing is written down either."""
        if self._tools is None:
            return None
        writing = purpose == "reply"
        return self._tools.desk(chat, turn.asker, _ids(turn), writing=writing, read=read)

    async def _is_unrecorded(self, chat: ChatKey, event: MessageEvent) -> bool:
        return (await self._recaller.view(chat, str(event.user_id))).unrecorded

    async def _recording(self, chat: ChatKey, event: MessageEvent) -> str:
        """That what this person says is recorded; nothing where it is not, or nobody knows."""
        try:
            async with asyncio.timeout(_RECALL_SECONDS):
                return "" if await self._is_unrecorded(chat, event) else _RECORDING
        except Exception as error:
            logger.warning(f"{chat} 不知道这位说的话记不记：{error!r}")
            return ""

    def _said(self, bot: Bot, turn: Turn) -> list[Message]:
        """The calls themselves, as they came."""
        mine = {bot.self_id: self._recaller.character}
        said: list[Message] = []
        for event in turn.calls:
            message = incoming(event, self_id=bot.self_id, now=self._clock.now())
            if message is not None:
                text = readable(message.segments, mine.get)
                number = len(said) + 1
                said.append(Message(number, message.time, message.user_id, message.name, text))
        return said

    async def _count(self, chat: ChatKey, spent: _Spent) -> None:
        try:
            chat_id = await chats.find(chat)
            if chat_id is not None:
                date = self._calendar.day_of(self._clock.now()).isoformat()
                await usage.count(chat_id, date, "reply", spent.model, spent.usage, spent.ok)
        except Exception as error:
            logger.warning(f"{chat} 这次回复的用量没有记上：{error!r}")

    async def _excuse(self, chat: ChatKey, bot: Bot, event: MessageEvent) -> None:
        if self._is_due(_EXCUSE_EVERY, self._said_excuse, chat):
            await self._notify(chat, bot, event, _EXCUSE)

    def _is_due(self, interval: timedelta, said: dict[ChatKey, datetime], chat: ChatKey) -> bool:
        """Whether a notice may be said again in this chat, which then counts as said."""
        now = self._clock.now()
        if chat in said and now - said[chat] < interval:
            return False
        said[chat] = now
        return True

    async def _notify(self, chat: ChatKey, bot: Bot, event: MessageEvent, text: str) -> None:
        # It is the program that speaks here, not the character: nothing to be remembered.
        await self._messenger.say(chat, bot, event, text, "command")


def _ids(turn: Turn) -> list[str]:
    """The platform's, of the lines that called."""
    return [id_ for call in turn.calls if (id_ := id_text(call.message_id)) is not None]


def new_replier(nianlun: Nianlun) -> Replier:
    """As the settings ask for it."""
    return Replier(
        nianlun.client,
        nianlun.recorder,
        nianlun.recaller,
        nianlun.clock,
        nianlun.calendar,
        nianlun.settings,
        None if nianlun.turns is None else nianlun.turns.after,
        _tools(nianlun),
        nianlun.mutes,
    )


def _tools(nianlun: Nianlun) -> ReplyTools | None:
    if not nianlun.settings.reply_tools:
        return None
    return ReplyTools(nianlun.recalling, nianlun.clock, nianlun.calendar, nianlun.character)
