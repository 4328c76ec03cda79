"""What the model may do in the middle of a reply: look things up, and write things down.

A desk serves one turn in one chat, and nothing that a call says can change which. A call never
fails: what went wrong is its result, for the model to read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nonebot import logger

from ..clock import Clock
from ..errors import BadAnswer, NianlunError, Overtaken, StoreError
from ..llm.tool_turns import ToolCall
from ..memory.calendar import Calendar
from ..memory.diary import moment_cut, moment_of
from ..memory.fact_items import LONGEST_TURN, TURN_AGE, fact_item
from ..memory.keymarks import show_key_marks
from ..memory.periods import read_date
from ..memory.promises import PROMISE, due_day
from ..memory.recalled import shown_names
from ..memory.relative_days import settled
from ..memory.render import one_line, render_messages
from ..memory.reply_tools import (
    APPEND_DIARY,
    DATA,
    READ,
    RECALL_DAY,
    REMEMBER,
    SEARCH,
    WRITING,
    call_arguments,
    diary_content,
    message_ids,
    reply_tools,
    words,
)
from ..memory.time_words import parse_time_range
from ..memory.tokens import cut_to_tokens, estimate_tokens
from ..recalling import Recalling, RecallQuery
from ..store import chats, diary, facts, memories, messages, said, speakers, traces
from ..store.people import person
from ..types import ME, ChatKey, Message

RESULT_TOKENS = 800
"""Of what one call reads; all further ones of a turn together get as much again."""
_TURN_TOKENS = 2 * RESULT_TOKENS
_LEAST_TOKENS = 100
"""In less room nothing is looked up."""
_SECONDS = 5.0
_LIMIT = 10

Handler = Callable[[dict[str, Any]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ReplyTools:
    """What the tools need of the running product."""

    recalling: Recalling
    clock: Clock
    calendar: Calendar
    character: str

    def desk(
        self,
        chat: ChatKey,
        asker: str,
        message_ids: Sequence[str],
        *,
        writing: bool,
        read: traces.Reading | None = None,
    ) -> ToolDesk:
        """For a reply to this user, whose lines have these ids of the platform's; with `writing`
        the tools that write are there too, until something of the chat is erased after it was
        `read` for the prompt."""
        return ToolDesk(self, chat, asker, message_ids, writing=writing, read=read)


class ToolDesk:
    """The tools of one turn."""

    def __init__(
        self,
        shop: ReplyTools,
        chat: ChatKey,
        asker: str,
        message_ids: Sequence[str],
        *,
        writing: bool,
        read: traces.Reading | None,
    ) -> None:
        self.tools = reply_tools(writing=writing)
        self._shop = shop
        self._chat = chat
        self._asker = asker
        self._message_ids = message_ids
        self._read_at = read
        self._room = _TURN_TOKENS
        self._done: set[tuple[str, str]] = set()
        handlers: dict[str, Handler] = {
            SEARCH: self._search,
            READ: self._read,
            RECALL_DAY: self._recall_day,
            APPEND_DIARY: self._append_diary,
            REMEMBER: self._remember,
        }
        self._handlers = {
            name: handler for name, handler in handlers.items() if writing or name not in WRITING
        }

    async def run(self, call: ToolCall) -> str:
        """The result of a call, in words for the model; the same call twice is done once."""
        handler = self._handlers.get(call.name)
        if handler is None:
            return (
                f"没有 {one_line(call.name)[:40]!r} 这个工具，可用的有：{'、'.join(self._handlers)}"
            )
        try:
            arguments = call_arguments(call.arguments)
        except BadAnswer:
            return "没有做成：参数应为一个 JSON 对象"
        key = call.name, repr(sorted((str(name), repr(arguments[name])) for name in arguments))
        if key in self._done:
            return "这个刚刚做过，结果在上面"
        if call.name not in WRITING and self._room < _LEAST_TOKENS:
            return "没有做：这次已经看得够多了，请就这样回答"
        self._done.add(key)
        result = await self._outcome(call.name, handler, arguments)
        return result if call.name in WRITING else self._bounded(result)

    async def _outcome(self, name: str, handler: Handler, arguments: dict[str, Any]) -> str:
        try:
            async with asyncio.timeout(_SECONDS):
                return await handler(arguments)
        except Overtaken:
            return "没有做成：刚刚有话被撤回了"
        except StoreError as error:
            logger.warning(f"{self._chat} 的工具 {name} 没有做成：{error}")
            return "没有做成：现在读写不了记忆"
        except (NianlunError, ValueError) as error:
            return f"没有做成：{one_line(str(error))}"
        except TimeoutError:
            logger.warning(f"{self._chat} 的工具 {name} 超过了 {_SECONDS:g} 秒")
            # What has begun to be written is written to its end.
            return "太慢了，不知道写成了没有" if name in WRITING else "没有做成：太慢了"
        except Exception as error:
            logger.opt(exception=error).error(f"{self._chat} 的工具 {name} 出了意外")
            return "没有做成：程序出了意外"

    def _bounded(self, text: str) -> str:
        room = min(RESULT_TOKENS, self._room)
        if estimate_tokens(text) > room:
            text = cut_to_tokens(text, max(room - estimate_tokens("……"), 0)) + "……"
        self._room = max(self._room - estimate_tokens(text), 0)
        return text

    async def _search(self, arguments: dict[str, Any]) -> str:
        query = words(arguments, "query", needed=True)
        speaker, when = words(arguments, "speaker"), words(arguments, "when")
        chat_id = await self._chat_id()
        calendar = self._shop.calendar
        span = None
        if when:
            found = parse_time_range(
                when,
                now=self._shop.clock.now(),
                tz=calendar.zone,
                day_starts_at=calendar.day_starts_at,
            )
            if found is None:
                raise ValueError(f"看不懂 when {when[:40]!r}，可以写 2026-01-05 或者 上周三")
            span = found.earliest, found.end
        wanted = RecallQuery(
            query,
            limit=_LIMIT,
            budget_tokens=min(RESULT_TOKENS, self._room) - estimate_tokens(DATA),
            speaker=await self._person(chat_id, speaker) if speaker else None,
            time_range=span,
            asker=self._asker,
            linked=True,
        )
        result = await self._shop.recalling.recall(chat_id, wanted)
        if not result.items:
            return "没有找到"
        wider = "那段时间里没有，下面是别的时候的：\n" if result.widened else ""
        return f"{DATA}\n{wider}{result.text}"

    async def _person(self, chat_id: int, shown: str) -> str:
        """Whom a name means that the model read in its prompt, where it is 我 itself."""
        return ME if shown == "我" else await person(chat_id, shown, self._shop.character)

    async def _read(self, arguments: dict[str, Any]) -> str:
        wanted = message_ids(arguments.get("ids"))
        chat_id = await self._chat_id()
        found = await said.originals(chat_id, wanted)
        lines = [one.message for one in found.values() if not one.message.withdrawn]
        names = await speakers.current_names(chat_id, {line.user_id for line in lines})
        me = self._shop.character
        told = render_messages(lines, self._shop.calendar, shown_names(names, me), me)
        missing = [f"#{seq}" for seq in wanted if seq not in {line.seq for line in lines}]
        parts = [f"{DATA}\n{told}"] if lines else []
        if missing:
            parts.append(f"{'、'.join(missing)} 没有，或者已经撤回、不能看")
        return "\n".join(parts)

    async def _recall_day(self, arguments: dict[str, Any]) -> str:
        typed = words(arguments, "date", needed=True)
        period = read_date(typed, self._shop.calendar, self._shop.clock.now())
        if period is None:
            raise ValueError(f"看不懂 date {typed[:40]!r}，请写成 2026-01-05、2026-01 或 2026")
        kind, key = period
        chat_id = await self._chat_id()
        memory = await memories.memory(chat_id, kind, key)
        lines = [one_line(show_key_marks(memory.text))] if memory and memory.text else []
        today = self._shop.calendar.day_of(self._shop.clock.now()).isoformat()
        if kind == "day" and (not lines or key == today):
            for activity in await memories.activities(chat_id, key):
                if activity.text:
                    clock = f"{self._shop.calendar.local(activity.time):%H:%M}"
                    lines.append(f"{clock} {one_line(show_key_marks(activity.text))}")
        return f"{DATA}\n{key}\n" + "\n".join(lines) if lines else f"{key} 没有记下什么"

    async def _append_diary(self, arguments: dict[str, Any]) -> str:
        content = diary_content(arguments)
        now = self._shop.clock.now()
        day, at = moment_of(self._shop.calendar, now)
        text = moment_cut(settled(content, "activity", day.isoformat()))
        chat_id, asked = await self._asked()
        seen = tuple(sorted({line.seq for line in (*asked, *await self._around(chat_id, asked))}))
        moment = diary.Moment(text, day.isoformat(), at, "tool", owner=self._asker, seen=seen)
        await diary.keep_turn(chat_id, seen, (), [moment], now, self._read_at)
        return "写进日记了"

    async def _remember(self, arguments: dict[str, Any]) -> str:
        item = fact_item(arguments.get("category"), arguments.get("name"), arguments.get("content"))
        chat_id, asked = await self._asked()
        if item.category == PROMISE:
            calendar = self._shop.calendar
            days = [due_day(line.text, line.time, calendar) for line in reversed(asked)]
            due = next((day for day in days if day is not None), None)
            item = replace(item, due=None if due is None else due.isoformat())
        (change,) = await facts.remember(
            chat_id, self._asker, [item], asked[-1].seq, self._shop.clock.now(), self._read_at
        )
        return "本来就记着" if change == "same" else "记住了"

    async def _around(self, chat_id: int, asked: Sequence[Message]) -> list[Message]:
        """The talk that the asker's lines are part of: a moment may tell any line of it."""
        recent = await messages.recent(chat_id, LONGEST_TURN)
        return [line for line in recent if line.time >= asked[-1].time - TURN_AGE]

    async def _chat_id(self) -> int:
        chat_id = await chats.find(self._chat)
        if chat_id is None:
            raise ValueError("这个会话还没有记忆")
        return chat_id

    async def _asked(self) -> tuple[int, list[Message]]:
        """The lines of the asker's that are being answered, the oldest first, at least one: what
        rests on them goes with them."""
        chat_id = await self._chat_id()
        seqs = [await messages.seq_of(chat_id, message_id) for message_id in self._message_ids]
        found = await said.originals(chat_id, [seq for seq in seqs if seq is not None])
        lines = [one.message for one in found.values() if not one.message.withdrawn]
        own = sorted(
            (line for line in lines if line.user_id == self._asker), key=lambda line: line.seq
        )
        if not own:
            raise ValueError("这句话没有记录，不能由它记下什么")
        return chat_id, own
