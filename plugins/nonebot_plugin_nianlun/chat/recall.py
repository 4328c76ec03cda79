"""What a chat's memory says now: the layers before a reply, and the scene of a note."""

from __future__ import annotations

from collections.abc import Sequence

from ..clock import Clock
from ..config import Settings
from ..errors import PromptTooSmall
from ..memory.calendar import Calendar
from ..memory.layers import Layers, as_text, newest, sections, select
from ..memory.prompt import ReplyPrompt, build
from ..memory.render import display_names, safe_name
from ..store import chats, facts, memories, messages, speakers
from ..types import ChatKey, Message, Scene
from .persona import load_persona, reply_rules

_TALK_TOKENS = 300
"""Room that must be left for what was said last."""
_NOTE_MEMORY_TOKENS = 200
"""Of current memory, as much goes before a note: it is there to connect, not to be retold."""
_ACTIVITY_TOKENS = 12
"""The date and time of an activity alone cost more: how many at most fit into a budget."""
_WEEKDAYS = "一二三四五六日"


class Recaller:
    """Reads a chat's memory. Makes no model call."""

    def __init__(
        self, settings: Settings, character: str, clock: Clock, calendar: Calendar
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._calendar = calendar
        self.character = character
        self.persona = load_persona(settings.persona_file, character)
        self._base = f"{self.persona}\n\n{reply_rules()}"

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

    async def scene(self, chat: ChatKey, chat_id: int) -> Scene:
        """What a writer of notes may know beside its sources."""
        layers = await self.layers(chat_id, _NOTE_MEMORY_TOKENS)
        return Scene(
            chat=chat,
            place=await self.place(chat),
            character=self.character,
            persona=self.persona,
            memory=as_text(newest(sections(layers, self._calendar), _NOTE_MEMORY_TOKENS)),
            known_categories=tuple(await facts.categories(chat_id)),
        )

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
    ) -> ReplyPrompt:
        """The prompt that a reply would get now; `asked` is a line that was not really said,
        and `unrecorded` are lines of somebody who is not recorded."""
        chat_id = await chats.find(chat)
        if chat_id is None:
            layers, history = Layers(), []
        else:
            layers = await self.layers(chat_id, self._settings.prompt_budget)
            history = await messages.recent(chat_id, self._settings.history_messages)
        history += unrecorded
        if asked is not None:
            history.append(self._imagined(chat, history, asked))
        return self.build(layers, history, await self.place(chat))

    def check(self) -> None:
        """Raise PromptTooSmall when the fixed text leaves no room for a talk."""
        prompt = self.build(Layers(), [], "QQ")
        if prompt.total + _TALK_TOKENS > self._settings.prompt_budget:
            raise PromptTooSmall(
                f"人设和固定文字约 {prompt.total} 个 token，放不进 {self._settings.prompt_budget} "
                f"的预算还留下 {_TALK_TOKENS} 给聊天：请缩短人设，或调大 NIANLUN__PROMPT_BUDGET"
            )

    def bare_prompt(self, history: list[Message]) -> ReplyPrompt:
        """The prompt without any memory, for when memory cannot be read."""
        return self.build(Layers(), history, "QQ")

    def build(self, layers: Layers, history: list[Message], place: str) -> ReplyPrompt:
        """Raises PromptTooSmall when the fixed text does not fit the budget."""
        return build(
            base=self._base,
            sections=sections(layers, self._calendar),
            recalled=(),
            recall_budget=self._settings.recall_budget,
            history=history,
            tail=self._tail(place),
            budget=self._settings.prompt_budget,
            calendar=self._calendar,
            names=display_names({m.user_id: m.name for m in history}),
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
