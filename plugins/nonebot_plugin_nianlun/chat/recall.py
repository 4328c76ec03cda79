"""What a chat's memory says now: the layers before a reply, and the scene of a note."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta

from nonebot import logger

from ..clock import Clock
from ..config import Settings
from ..errors import PromptTooSmall, StoreError
from ..memory.calendar import Calendar
from ..memory.layers import Layers, as_text, newest, sections, select
from ..memory.prompt import ReplyPrompt, build, in_blocks
from ..memory.render import display_names, safe_name
from ..recalling import Recalling
from ..store import chats, facts, memories, messages, speakers
from ..types import ChatKey, Message, Scene
from .persona import Personas, reply_rules
from .reminders import reminder

_LARGEST_BLOCK = 50
"""Of messages by which the beginning of the history moves on."""
_TALK_TOKENS = 300
"""Room that must be left for what was said last."""
_NOTE_MEMORY_TOKENS = 200
"""Of current memory, as much goes before a note: it is there to connect, not to be retold."""
_NOTE_FACT_TOKENS = 60
_ACTIVITY_TOKENS = 12
"""The date and time of an activity alone cost more: how many at most fit into a budget."""
_SEARCH_SECONDS = 1.0
_RECALLED_ITEMS = 20
"""More than are asked for by default: lines are short, and the budget is what bounds them."""
_ONE_BREATH = timedelta(minutes=2)
_MOST_LINES = 4
_WEEKDAYS = "一二三四五六日"


class Recaller:
    """Reads a chat's memory. Makes no model call."""

    def __init__(
        self,
        settings: Settings,
        character: str,
        clock: Clock,
        calendar: Calendar,
        recalling: Recalling,
    ) -> None:
        self._settings = settings
        self._recalling = recalling
        self._clock = clock
        self._calendar = calendar
        self.trouble: str | None = None
        """Why the last reply went without what a search brings up; None when it works."""
        self.character = character
        self._rules = reply_rules()
        self.personas = Personas(settings.persona_file, character)

    async def layers(self, chat_id: int, budget: int) -> Layers:
        """All years, what is not folded of months and days, and activities not in a day yet:
        of these no more than `budget` tokens could hold."""
        states = await memories.memory_states(chat_id)
        chosen = select(states, self._settings.keep_days, self._settings.keep_months)
        return Layers(
            years=tuple(await memories.memories(chat_id, "year", chosen["year"])),
            months=tuple(await memories.memories(chat_id, "month", chosen["month"])),
            days=tuple(await memories.memories(chat_id, "day", chosen["day"])),
            activities=tuple(await memories.loose_activities(chat_id, budget // _ACTIVITY_TOKENS)),
        )

    async def scene(self, chat: ChatKey, chat_id: int, text: str) -> Scene:
        """What a writer of notes may know beside its sources, of which `text` is what was said."""
        layers = await self.layers(chat_id, _NOTE_MEMORY_TOKENS)
        return Scene(
            chat=chat,
            place=await self.place(chat),
            character=self.character,
            persona=await self._persona(chat),
            memory=as_text(newest(sections(layers, self._calendar), _NOTE_MEMORY_TOKENS)),
            recalled=await self._facts_about(chat_id, text),
            known_categories=tuple(await facts.categories(chat_id)),
        )

    async def _facts_about(self, chat_id: int, text: str) -> str:
        """Facts that new ones may link to. Without them a note is none the worse."""
        if not text:
            return ""
        try:
            return "\n".join(await self._recalling.facts_about(chat_id, text, _NOTE_FACT_TOKENS))
        except StoreError as error:
            logger.warning(f"写记忆时没有找到相关的词条：{error}")
            return ""

    async def place(self, chat: ChatKey) -> str:
        """Where the talk happens, as a person would say it."""
        row = await chats.row(chat)
        if chat.kind == "group":
            name = safe_name(row.name) if row is not None and row.name else chat.peer_id
            return f"QQ群「{name}」"
        names = {} if row is None else await speakers.current_names(row.id, [chat.peer_id])
        return f"与 {safe_name(names.get(chat.peer_id, chat.peer_id))} 的私聊"

    async def prompt(
        self,
        chat: ChatKey,
        asked: str | None = None,
        unrecorded: Sequence[Message] = (),
        asker: str | None = None,
    ) -> ReplyPrompt:
        """The prompt that a reply would get now; `asked` is a line that was not really said,
        and `unrecorded` are lines of somebody who is not recorded. `asker` is whom the reply is
        for, by user id; without one it is who spoke last."""
        chat_id = await chats.find(chat)
        if chat_id is None:
            layers, history = Layers(), []
        else:
            layers = await self.layers(chat_id, self._settings.prompt_budget)
            history = await self._history(chat, chat_id)
        history += unrecorded
        if asked is not None:
            history.append(self._imagined(chat, history, asked))
        recalled, remind = (), ""
        namesakes: dict[str, str] = {}
        if chat_id is not None:
            namesakes = await speakers.bearers(chat_id, {m.name for m in history if not m.is_mine})
            recalled = await self._brought_up(chat_id, layers, history, asker)
            remind = await self._reminder(chat_id, layers)
        return self.build(
            layers,
            history,
            await self.place(chat),
            recalled,
            remind,
            persona=await self._persona(chat),
            namesakes=namesakes,
        )

    async def _history(self, chat: ChatKey, chat_id: int) -> list[Message]:
        """What was said last. It begins anew when about a note's window more has been said."""
        settings = self._settings
        private = chat.kind == "private"
        window = settings.activity_messages_private if private else settings.activity_messages
        block = min(window, _LARGEST_BLOCK)
        least = settings.history_messages
        newest = await messages.recent(chat_id, least + block)
        return list(in_blocks(newest, least, block))

    async def _brought_up(
        self, chat_id: int, layers: Layers, history: Sequence[Message], asker: str | None
    ) -> tuple[str, ...]:
        """What the asker's last words bring up, beside all that stands there anyway.

        Trouble costs what a search would have found, never the reply; `trouble` tells of it.
        """
        asked, asker = last_words(history, asker)
        try:
            async with asyncio.timeout(_SEARCH_SECONDS):
                found = await self._recalling.recall(
                    chat_id,
                    asked,
                    limit=_RECALLED_ITEMS,
                    budget_tokens=self._settings.recall_budget,
                    asker=asker,
                    shown=_addresses(layers, history),
                )
        except (StoreError, TimeoutError) as error:
            self.trouble = str(error) or f"搜索记忆超过了 {_SEARCH_SECONDS:g} 秒"
            logger.error(f"这次没有想起更早的事：{self.trouble}")
            return ()
        self.trouble = None
        return tuple(item.text for item in found.items)

    async def _reminder(self, chat_id: int, layers: Layers) -> str:
        """A promise that is due, or 去年今天; nothing when the store is in trouble."""
        today = self._calendar.day_of(self._clock.now())
        try:
            async with asyncio.timeout(_SEARCH_SECONDS):
                return await reminder(chat_id, today, {day.period for day in layers.days})
        except (StoreError, TimeoutError) as error:
            self.trouble = str(error) or f"查约定超过了 {_SEARCH_SECONDS:g} 秒"
            logger.error(f"这次没有想起约定和往年今天：{self.trouble}")
            return ""

    async def _persona(self, chat: ChatKey) -> str:
        """Who the character is in this chat, as the file stands now."""
        row = await chats.row(chat)
        own = None if row is None else row.persona
        return await asyncio.to_thread(self.personas.text, chat, own, self.check)

    def check(self, persona: str | None = None) -> None:
        """Raise PromptTooSmall when the fixed text leaves no room for a talk."""
        prompt = self.build(Layers(), [], "QQ", persona=persona)
        if prompt.total + _TALK_TOKENS > self._settings.prompt_budget:
            raise PromptTooSmall(
                f"人设和固定文字约 {prompt.total} 个 token，放不进 {self._settings.prompt_budget} "
                f"的预算还留下 {_TALK_TOKENS} 给聊天：请缩短人设，或调大 NIANLUN__PROMPT_BUDGET"
            )

    def bare_prompt(self, history: list[Message]) -> ReplyPrompt:
        """The prompt without any memory, for when memory cannot be read."""
        return self.build(Layers(), history, "QQ")

    def build(
        self,
        layers: Layers,
        history: list[Message],
        place: str,
        recalled: Sequence[str] = (),
        remind: str = "",
        *,
        persona: str | None = None,
        namesakes: Mapping[str, str] | None = None,
    ) -> ReplyPrompt:
        """Without a `persona` it is that of all chats. `namesakes` bear or bore, by user id, the
        name of somebody in `history`: they are told apart whether both speak there or not.

        Raises PromptTooSmall when the fixed text does not fit the budget.
        """
        return build(
            base=f"{persona or self.personas.default}\n\n{self._rules}",
            sections=sections(layers, self._calendar),
            recalled=recalled,
            recall_budget=self._settings.recall_budget,
            history=history,
            tail="\n\n".join(part for part in (remind, self._tail(place)) if part),
            budget=self._settings.prompt_budget,
            calendar=self._calendar,
            names=display_names({**(namesakes or {}), **{m.user_id: m.name for m in history}}),
            me=self.character,
        )

    def _tail(self, place: str) -> str:
        local = self._calendar.local(self._clock.now())
        when = f"{local:%Y-%m-%d %H:%M}（周{_WEEKDAYS[local.weekday()]}）"
        return f"【此刻】现在是 {when}，你在{place}里。接着说你要说的话。"

    def _imagined(self, chat: ChatKey, history: list[Message], text: str) -> Message:
        user_id = chat.peer_id if chat.kind == "private" else "asker"
        name = next((m.name for m in reversed(history) if m.user_id == user_id), "某人")
        seq = max((m.seq for m in history), default=0) + 1
        return Message(seq=seq, time=self._clock.now(), user_id=user_id, name=name, text=text)


def last_words(history: Sequence[Message], asker: str | None) -> tuple[str, str | None]:
    """What the asker said last, with the lines sent just before it, and who that is: without
    an asker, or when nothing of theirs is there, whoever spoke last."""
    if not history:
        return "", None
    speakers = {message.user_id for message in history}
    speaker = asker if asker in speakers else history[-1].user_id
    own = [message for message in history if message.user_id == speaker][-_MOST_LINES:]
    said = [message.text for message in own if own[-1].time - message.time <= _ONE_BREATH]
    return "\n".join(said), speaker


def _addresses(layers: Layers, history: Sequence[Message]) -> set[str]:
    """What the prompt holds already, as a recall addresses it."""
    shown = {f"#{message.seq}" for message in history}
    shown |= {f"&{activity.number}" for activity in layers.activities}
    return shown | {m.period for m in (*layers.years, *layers.months, *layers.days)}
