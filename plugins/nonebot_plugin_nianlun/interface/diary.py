"""The diary of one chat for other programs: written by hand, by extraction, or by a tool call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from datetime import date, datetime
import inspect
from threading import Thread
from typing import Any, Protocol

from nonebot.log import logger

from ..clock import Clock
from ..errors import BadAnswer, NotRecorded
from ..memory.calendar import Calendar
from ..memory.diary import (
    MAX_MOMENTS,
    day_key,
    diary_system,
    moment_cut,
    moment_of,
    moment_source,
    moment_text,
    read_entries,
    tool_content,
)
from ..memory.owners import owner_id
from ..outcomes import Outcomes
from ..store import chats, usage
from ..store import diary as moments
from ..types import Activity, ChatKey, Usage

PURPOSE = "diary"


class Host(Protocol):
    """What is needed of the running `nianlun`."""

    @property
    def clock(self) -> Clock: ...
    @property
    def calendar(self) -> Calendar: ...
    @property
    def outcomes(self) -> Outcomes: ...


class LLM(Protocol):
    """A model of the caller's: its client, its key, its retries."""

    def chat(self, messages: list[dict[str, str]]) -> str | Awaitable[str]:
        """The text of one chat completion; may block, or be a coroutine function."""
        ...


@dataclass(frozen=True, slots=True)
class DiaryEntry:
    """A moment as it is stored."""

    number: int
    """Shown to people as `&3`."""
    date: str
    """The logical day, `YYYY-MM-DD`."""
    time: str
    """`HH:MM` in the chat's zone."""
    content: str
    owner: str | None
    source_conv: str | None
    ts: datetime
    """The same moment, aware and in UTC."""


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What the host says of a moment, and no model."""

    date: str
    time: datetime
    owner: str | None
    source_conv: str | None


class Diary:
    """The diary of one chat. Entries are activities, and go into its days, months and years."""

    def __init__(self, nianlun: Host, chat: ChatKey) -> None:
        """Opens nothing; a chat that is not there yet begins with its first entry."""
        self.chat = chat
        self._host = nianlun

    async def append(
        self,
        content: str,
        *,
        owner: str | None = None,
        source_conv: str | None = None,
        date: str | date | None = None,
        time: str | None = None,
        ts: str | datetime | None = None,
    ) -> DiaryEntry:
        """Add a moment of at most 300 units, as of now.

        `owner` is whom it is about, by user id: it goes when they are forgotten. `source_conv`
        names the conversation that it is from, in the words of the caller. `ts` (ISO 8601,
        in UTC when it names no zone) is when it happened; `date` (a logical day) and `time`
        (`HH:MM`, in the chat's zone) overrule its parts. Raises ValueError for anything that is
        none of these, NotRecorded when it may not be kept, StoreError.
        """
        stamp = self._stamp(owner, source_conv, date, time, ts)
        (entry,) = await self._store([moment_text(content)], stamp, "tool")
        return entry

    async def day(self, date: str | date) -> list[DiaryEntry]:
        """The entries of a logical day in order of time, those of one minute as they came."""
        return await self.window(date, date)

    async def window(self, first: str | date, last: str | date) -> list[DiaryEntry]:
        """The entries from one logical day to another, both included, in whichever order."""
        early, late = sorted((day_key(first), day_key(last)))
        chat_id = await chats.find(self.chat)
        if chat_id is None:
            return []
        found = await moments.between(chat_id, early.isoformat(), late.isoformat())
        return [self._entry(activity) for activity in found]

    async def dates(self) -> list[str]:
        """The logical days that have an entry, oldest first."""
        chat_id = await chats.find(self.chat)
        return [] if chat_id is None else await moments.dates(chat_id)

    def _stamp(
        self,
        owner: str | None,
        source_conv: str | None,
        day: str | date | None = None,
        time: str | None = None,
        ts: str | datetime | None = None,
    ) -> _Stamp:
        """Raises ValueError for what cannot be."""
        owner = None if owner is None else owner_id(owner)
        calendar, now = self._host.calendar, self._host.clock.now()
        on, at = moment_of(calendar, now, day=day, at=time, ts=ts)
        return _Stamp(on.isoformat(), at, owner, moment_source(source_conv))

    async def _store(
        self, texts: Sequence[str], stamp: _Stamp, origin: moments.MomentOrigin
    ) -> list[DiaryEntry]:
        now = self._host.clock.now()
        chat_id = (await chats.ensure([self.chat], now))[self.chat]
        new = [
            moments.Moment(text, stamp.date, stamp.time, origin, stamp.owner, stamp.source_conv)
            for text in texts
        ]
        numbers = await moments.append(chat_id, new, now)
        clock = f"{self._host.calendar.local(stamp.time):%H:%M}"
        return [
            DiaryEntry(number, stamp.date, clock, text, stamp.owner, stamp.source_conv, stamp.time)
            for number, text in zip(numbers, texts, strict=True)
        ]

    def _entry(self, activity: Activity) -> DiaryEntry:
        return DiaryEntry(
            number=activity.number,
            date=activity.date,
            time=f"{self._host.calendar.local(activity.time):%H:%M}",
            content=activity.text,
            owner=activity.owner,
            source_conv=activity.source_conv,
            ts=activity.time,
        )

    async def _report(self, llm: LLM, problem: str | None) -> None:
        """Nobody is told of a failure, so it is counted where it is looked for."""
        outcomes = self._host.outcomes
        if problem is None:
            outcomes.succeeded(self.chat)
        else:
            logger.warning(f"{self.chat} 的日记没有写成：{problem}")
            outcomes.failed(self.chat, f"日记没有写成：{problem}")
        now = self._host.clock.now()
        day = self._host.calendar.day_of(now).isoformat()
        chat_id = (await chats.ensure([self.chat], now))[self.chat]
        await usage.count(chat_id, day, PURPOSE, type(llm).__name__, Usage(), problem is None)


async def memorize(
    diary: Diary,
    turn: str,
    *,
    llm: LLM,
    character: str = "the assistant",
    prompt: str | None = None,
    owner: str | None = None,
    source_conv: str | None = None,
    date: str | date | None = None,
    time: str | None = None,
    ts: str | datetime | None = None,
) -> list[DiaryEntry]:
    """Have a model write down what of a turn is worth keeping: one call, then all of it stored.

    Nothing worth keeping gives []. So does a call that fails, an answer that cannot be read and
    a store that cannot serve: these are logged and show in the chat's status. Only what is
    wrong before the call is raised: ValueError as `append` does, and what `str.format` raises of
    a prompt that it cannot fill in (KeyError, IndexError, ValueError).
    """
    system = diary_system(prompt, character)
    stamp = diary._stamp(owner, source_conv, date, time, ts)
    talk = [{"role": "system", "content": system}, {"role": "user", "content": turn}]
    entries: list[DiaryEntry] = []
    problem = None
    try:
        contents = read_entries(await _chat(llm, talk))[:MAX_MOMENTS]
        texts = [text for text in map(moment_cut, contents) if text]
        if texts:
            entries = await diary._store(texts, stamp, "turn")
    except NotRecorded as error:
        logger.info(f"{diary.chat} 的日记没有写：{error}")
    except BadAnswer as error:
        problem = str(error)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    try:
        await diary._report(llm, problem)
    except Exception as error:
        logger.opt(exception=error).error(f"{diary.chat} 这次写日记的用量没有记上")
    return entries


async def _chat(llm: LLM, messages: list[dict[str, str]]) -> object:
    """The model's answer; a method that blocks does so in a thread."""
    if inspect.iscoroutinefunction(llm.chat):
        return await llm.chat(messages)
    answer = await _in_a_thread(llm, messages)
    return await answer if inspect.isawaitable(answer) else answer


async def _in_a_thread(llm: LLM, messages: list[dict[str, str]]) -> Any:
    """The thread is its own: a model that never answers must take none of those that the rest
    of the process works with, nor keep it from ending."""
    answer: Future[Any] = Future()
    answer.set_running_or_notify_cancel()

    def ask() -> None:
        try:
            answer.set_result(llm.chat(messages))
        except StopIteration as error:  # which no future can bear
            answer.set_exception(RuntimeError(repr(error)))
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=copy_context().run, args=(ask,), name="nianlun-diary", daemon=True).start()
    return await asyncio.wrap_future(answer)


async def handle_diary_tool(
    diary: Diary,
    arguments: str | dict[str, Any],
    *,
    owner: str | None = None,
    source_conv: str | None = None,
    date: str | date | None = None,
    time: str | None = None,
    ts: str | datetime | None = None,
) -> DiaryEntry:
    """Store what a model wrote in a call of `append_diary`; makes no model call itself.

    `arguments` are the call's, as JSON text or as the object. Raises ValueError with a sentence
    that the model is to be given as the result: nothing was written then. StoreError is raised
    as it is.
    """
    content = tool_content(arguments)
    try:
        return await diary.append(
            content, owner=owner, source_conv=source_conv, date=date, time=time, ts=ts
        )
    except NotRecorded as error:
        raise ValueError(f"the diary entry was not written: {error}") from error
