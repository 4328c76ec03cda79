"""To ask why: from what is remembered down to who said it, and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import CorrectionError
from ..memory.provenance import Held
from ..memory.render import display_names
from ..memory.why import Edit, FactWhy, explain
from ..store import memories, provenance
from ..store.speakers import current_names
from ..types import Message, NoteKind
from .command import Answer, Asked, Command, WrongUsage, rest_of_line
from .questioning_views import Showing, activity_why, fact_why, memory_why
from .subjects import Subject, read_fact, read_subject
from .views import echo

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_MOST_OWNERS = 3


class Questioning:
    """Tells where memories come from."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun

    def commands(self) -> tuple[Command, ...]:
        return (
            Command(
                "为什么",
                "read",
                "一篇记忆、一条活动或一个词条是从谁的哪句话来的",
                self._why,
                (rest_of_line("什么"),),
                example="2026-01-05",
                usage="日期|&活动|分类:名",
                group="问",
            ),
        )

    async def _why(self, asked: Asked) -> Answer:
        typed: str = asked.arguments["什么"]
        chat_id = await self._nianlun.settled(asked.chat)
        subject = read_subject(typed, self._nianlun.calendar, self._nianlun.clock.now())
        if subject is not None:
            return await self._note(chat_id, subject)
        if (named := read_fact(typed)) is not None:
            return await self._facts(asked, chat_id, *named)
        raise WrongUsage(f"不认识 {echo(typed)}：写日期、&3 或 分类:名。")

    async def _note(self, chat_id: int, subject: Subject) -> Answer:
        if subject.kind == "activity":
            return await self._activity(chat_id, int(subject.ref))
        memory = await memories.memory(chat_id, subject.kind, subject.ref)
        if memory is None:
            calendar = self._nianlun.calendar
            why = await provenance.missing(chat_id, subject.kind, subject.ref, calendar)
            raise CorrectionError(f"{subject.ref} {provenance.WHY_MISSING[why]}")
        held = await provenance.beneath(chat_id, memory)
        showing = await self._showing(chat_id, held.messages.values(), held)
        why = explain(held, memory)
        text = memory_why(memory, why, showing)
        return Answer(text, f"为什么这样记：{subject}")

    async def _activity(self, chat_id: int, number: int) -> Answer:
        activity = await memories.activity(chat_id, number)
        if activity is None:
            raise CorrectionError(f"没有活动 &{number}")
        if (emptied := await provenance.emptied(chat_id, number)) is not None:
            raise CorrectionError(f"活动 &{number} {provenance.WHY_EMPTY[emptied.state]}")
        window = await provenance.window(chat_id, activity)
        held = await provenance.beneath(chat_id, activity)
        why = explain(held, held.activities[number])
        showing = await self._showing(chat_id, window, held)
        return Answer(activity_why(activity, why, window, showing), f"为什么这样记：活动 &{number}")

    async def _facts(self, asked: Asked, chat_id: int, category: str, name: str) -> Answer:
        """Members are told of their own and of the chat's: others' are for those who govern."""
        found = await provenance.facts_why(chat_id, category, name)
        if not asked.governs:
            found = [fact for fact in found if fact.owner in ("", asked.user_id)]
        if not found:
            raise CorrectionError(f"没有 {echo(f'{category}:{name}', 60)} 这个词条")
        shown = found[:_MOST_OWNERS]
        said = [fact.source for fact in shown if fact.source is not None]
        showing = await self._showing(chat_id, said, owners=shown)
        parts = [fact_why(fact, showing) for fact in shown]
        if len(found) > _MOST_OWNERS:
            parts.append(f"还有 {len(found) - _MOST_OWNERS} 个人的同名词条没有列出。")
        return Answer("\n\n".join(parts), f"为什么这样记：{category}:{name}")

    async def _showing(
        self,
        chat_id: int,
        said: Iterable[Message],
        held: Held | None = None,
        *,
        owners: Iterable[FactWhy] = (),
    ) -> Showing:
        edits: dict[tuple[NoteKind, str], Edit] = {}
        if held is not None:
            edits = await provenance.edits(chat_id, held)
        people = {message.user_id for message in said} | {fact.owner for fact in owners}
        people |= {fact.writer for fact in owners if fact.writer is not None}
        people |= {edit.by for edit in edits.values()}
        names = await current_names(chat_id, people - {""})
        return Showing(self._nianlun.calendar, display_names(names), edits)
