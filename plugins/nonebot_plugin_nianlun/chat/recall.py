"""What a chat's memory says now: the layers before a reply, and the scene of a note."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from nonebot import logger

from ..clock import Clock
from ..config import Settings
from ..errors import PromptTooSmall, StoreError
from ..memory.calendar import Calendar, weekday
from ..memory.layers import Layers, as_text, beside, newest, sections
from ..memory.prompt import ReplyPrompt, Talk, build, in_blocks
from ..memory.query import question_of
from ..memory.render import display_names, safe_name
from ..memory.search import RecallResult
from ..recalling import Recalling, RecallQuery
from ..store import facts
from ..store.reply_view import ReplyView, Wanted
from ..store.search import SearchView
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


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a reply is made of."""

    view: ReplyView
    lines: list[Message]
    """Those that stand in the prompt, the last ones stored or not."""
    recalled: RecallResult | StoreError | TimeoutError = field(default_factory=RecallResult)
    """What is searched for; or why that is not known."""


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

    async def remember(
        self, chat: ChatKey, asker: str | None = None, said: Sequence[Message] = ()
    ) -> Remembered:
        """What a reply to `asker` (by user id; without one it is who spoke last) is made of.

        `said` are the lines that it answers: where those are not recorded, they stand behind the
        history all the same. Trouble with the search costs what that would have found, never the
        reply. Raises StoreError when nothing can be read.
        """

        def lines_of(view: ReplyView) -> list[Message]:
            return self._lines(chat, view, said if view.unrecorded else ())

        if not self._recalling.by_words_alone:
            view = await self.view(chat, asker)
            return await self._recalled(view, lines_of(view), asker)
        wanted = self._wanted_of(chat, asker)
        read: list[Remembered] = []

        def at_once(search: SearchView) -> Remembered:
            view = search.reply_view(chat, wanted)
            self._look_at_persona(chat, view)
            lines = lines_of(view)
            if view.chat_id is None:
                return Remembered(view, lines)
            if isinstance(view.day, StoreError):
                # The index has trouble, or nobody waits any more.
                return Remembered(view, lines, view.day)
            read.append(Remembered(view, lines, TimeoutError()))
            try:
                query = self._query(view, lines, asker)
                return Remembered(view, lines, self._recalling.search(search, view.chat_id, query))
            except StoreError as error:
                return Remembered(view, lines, error)

        try:
            async with asyncio.timeout(_SEARCH_SECONDS):
                return await self._recalling.reader.run(at_once)
        except (StoreError, TimeoutError) as error:
            if read:
                return read[0]
            view = await self.view(chat, asker)
            return Remembered(view, lines_of(view), error)

    async def _recalled(
        self, view: ReplyView, lines: list[Message], asker: str | None
    ) -> Remembered:
        """The same, one after the other."""
        if view.chat_id is None:
            return Remembered(view, lines)
        query = self._query(view, lines, asker)
        try:
            async with asyncio.timeout(_SEARCH_SECONDS):
                return Remembered(view, lines, await self._recalling.recall(view.chat_id, query))
        except (StoreError, TimeoutError) as error:
            return Remembered(view, lines, error)

    def _lines(self, chat: ChatKey, view: ReplyView, beside: Sequence[Message]) -> list[Message]:
        """The history with lines behind it that are not stored."""
        history = in_blocks(view.history, self._settings.history_messages, self._block(chat))
        return [*history, *_numbered_behind(history, beside)]

    def _query(self, view: ReplyView, lines: Sequence[Message], asker: str | None) -> RecallQuery:
        """For what the asker's last words bring up, beside all that stands there anyway."""
        asked, asker = last_words(lines, asker, self.character)
        return RecallQuery(
            asked,
            limit=_RECALLED_ITEMS,
            budget_tokens=self._settings.recall_budget,
            asker=asker,
            shown=_addresses(view.layers, lines),
            linked=True,
            # The end of the prompt names it.
            this_year=self._calendar.local(self._clock.now()).year,
        )

    async def view(self, chat: ChatKey, asker: str | None = None) -> ReplyView:
        """All that a reply to `asker` needs beside what is searched for."""
        return await self._view(chat, self._wanted_of(chat, asker))

    def _wanted_of(self, chat: ChatKey, asker: str | None) -> Wanted:
        history = self._settings.history_messages + self._block(chat)
        return self._wanted(self._settings.prompt_budget, history, asker, self._today())

    def _wanted(
        self,
        budget: int,
        history: int = 0,
        asker: str | None = None,
        today: date | None = None,
    ) -> Wanted:
        """All years, what is not folded of months and days, and activities not in a day yet: of
        these no more than `budget` tokens could hold; and so many of the newest messages."""
        return Wanted(
            keep_days=self._settings.keep_days,
            keep_months=self._settings.keep_months,
            activities=budget // _ACTIVITY_TOKENS,
            history=history,
            asker=asker,
            today=today,
        )

    async def _view(self, chat: ChatKey, wanted: Wanted) -> ReplyView:
        return await self._recalling.reader.reply_view(
            chat, wanted, lambda view: self._look_at_persona(chat, view)
        )

    def _look_at_persona(self, chat: ChatKey, view: ReplyView) -> None:
        """As its file stands now."""
        self.personas.text(chat, view.persona, self.check)

    async def scene(self, chat: ChatKey, chat_id: int, text: str) -> Scene:
        """What a writer of notes may know beside its sources, of which `text` is what was said."""
        view = await self._view(chat, self._wanted(_NOTE_MEMORY_TOKENS))
        return Scene(
            chat=chat,
            place=_place(chat, view),
            character=self.character,
            persona=self.personas.last(chat),
            memory=as_text(newest(sections(view.layers, self._calendar), _NOTE_MEMORY_TOKENS)),
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
        return _place(chat, await self._view(chat, self._wanted(0)))

    async def prompt(
        self, chat: ChatKey, asked: str | None = None, asker: str | None = None
    ) -> ReplyPrompt:
        """The prompt that a reply would get now; `asked` is a line that was not really said, and
        `asker` who would say it, by user id."""
        view = await self.view(chat)
        imagined = [] if asked is None else [self._imagined(chat, view.history, asked, asker)]
        lines = self._lines(chat, view, imagined)
        return self.prompt_of(chat, await self._recalled(view, lines, None))

    def prompt_of(self, chat: ChatKey, memory: Remembered) -> ReplyPrompt:
        """The prompt of a reply that is made of this."""
        view = memory.view
        self.trouble = None
        return self.build(
            view.layers,
            memory.lines,
            _place(chat, view),
            self._brought_up(memory.recalled),
            self._reminder(view),
            persona=self.personas.last(chat),
            namesakes=view.namesakes,
        )

    def _block(self, chat: ChatKey) -> int:
        """By so many numbers the beginning of the history moves on: about a note's window."""
        settings = self._settings
        private = chat.kind == "private"
        window = settings.activity_messages_private if private else settings.activity_messages
        return min(window, _LARGEST_BLOCK)

    def _brought_up(self, found: RecallResult | StoreError | TimeoutError) -> Sequence[str]:
        if isinstance(found, RecallResult):
            return [item.text for item in found.items]
        self.trouble = str(found) or f"搜索记忆超过了 {_SEARCH_SECONDS:g} 秒"
        logger.error(f"这次没有想起更早的事：{self.trouble}")
        return ()

    def _reminder(self, view: ReplyView) -> str:
        """A promise that is due, or a day come round; nothing where that could not be read."""
        if isinstance(view.day, StoreError):
            self.trouble = str(view.day)
            logger.error(f"这次没有想起约定和往年今天：{self.trouble}")
            return ""
        shown = {day.period for day in view.layers.days}
        return "" if view.day is None else reminder(view.day, self._today(), shown)

    def _today(self) -> date:
        return self._calendar.day_of(self._clock.now())

    def check(self, persona: str | None = None) -> None:
        """Raise PromptTooSmall when the fixed text leaves no room for a talk."""
        prompt = self.build(Layers(), [], "QQ", persona=persona)
        if prompt.total + _TALK_TOKENS > self._settings.prompt_budget:
            raise PromptTooSmall(
                f"人设和固定文字约 {prompt.total} 个 token，放不进 {self._settings.prompt_budget} "
                f"的预算还留下 {_TALK_TOKENS} 给聊天：请缩短人设，或调大 NIANLUN__PROMPT_BUDGET"
            )

    def bare_prompt(self, history: list[Message], chat: ChatKey | None = None) -> ReplyPrompt:
        """The prompt without any memory, for when memory cannot be read; with the persona that
        the chat had when it could."""
        persona = None if chat is None else self.personas.last(chat)
        return self.build(Layers(), history, "QQ", persona=persona)

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
        names = display_names({**(namesakes or {}), **{m.user_id: m.name for m in history}})
        talk = Talk(history, self._calendar, names, self.character)
        shown: Sequence[Message] = history
        while True:
            told = beside(layers, shown)
            prompt = build(
                base=f"{persona or self.personas.default}\n\n{self._rules}\n\n你在{place}里。",
                sections=sections(told, self._calendar),
                recalled=recalled,
                recall_budget=self._settings.recall_budget,
                talk=talk,
                tail="\n\n".join(part for part in (remind, self._now()) if part),
                budget=self._settings.prompt_budget,
            )
            if prompt.kept >= len(shown):
                return prompt
            # Of what there was no room for as it was said, its notes are to tell.
            shown = history[len(history) - prompt.kept :]

    def _now(self) -> str:
        local = self._calendar.local(self._clock.now())
        return f"【此刻】{local:%Y-%m-%d %H:%M} {weekday(local)}"

    def _imagined(
        self, chat: ChatKey, history: Sequence[Message], text: str, asker: str | None
    ) -> Message:
        user_id = chat.peer_id if chat.kind == "private" else asker or "asker"
        name = next((m.name for m in reversed(history) if m.user_id == user_id), "某人")
        return Message(seq=1, time=self._clock.now(), user_id=user_id, name=name, text=text)


def _numbered_behind(history: Sequence[Message], said: Sequence[Message]) -> Iterator[Message]:
    """With numbers that no line of the chat's history has: by these all else finds its place."""
    last = max((message.seq for message in history), default=0)
    for number, message in enumerate(said, last + 1):
        yield replace(message, seq=number)


def _place(chat: ChatKey, view: ReplyView) -> str:
    if chat.kind == "group":
        return f"QQ群「{safe_name(view.name) if view.name else chat.peer_id}」"
    return f"与 {safe_name(view.peer or chat.peer_id)} 的私聊"


def last_words(
    history: Sequence[Message], asker: str | None, called: str
) -> tuple[str, str | None]:
    """What the asker asked last, with the lines sent just before it where it needs them, and who
    that is: without an asker, or when nothing of theirs is there, whoever spoke last. `called`:
    the character's name."""
    if not history:
        return "", None
    speakers = {message.user_id for message in history}
    speaker = asker if asker in speakers else history[-1].user_id
    own = [message for message in history if message.user_id == speaker][-_MOST_LINES:]
    said = [message.text for message in own if own[-1].time - message.time <= _ONE_BREATH]
    return question_of(said, called), speaker


def _addresses(layers: Layers, history: Sequence[Message]) -> set[str]:
    """What the prompt holds already, as a recall addresses it."""
    shown = {f"#{message.seq}" for message in history}
    shown |= {f"&{activity.number}" for activity in layers.activities}
    return shown | {m.period for m in (*layers.years, *layers.months, *layers.days)}
