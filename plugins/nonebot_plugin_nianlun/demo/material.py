"""What the tour tells about, read from its database in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from ..errors import ChatError
from ..lifecycle import Nianlun
from ..memory.calendar import Calendar
from ..memory.prompt import ReplyPrompt
from ..memory.provenance import Check, Held, check
from ..memory.render import display_names
from ..store import chats, facts, messages, provenance
from ..store.provenance import Person
from ..types import ME, Activity, ChatKey, Memory, MemoryKind, Message

_SHORT_DAY = range(14, 37)
"""So many messages of a day can be shown line by line."""
_FEW = range(2, 4)
"""Activities of such a day."""
_TOPIC = 3
"""Characters of the question's words that are looked for in notes."""


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact as it is told: whose it is, what it says, and the message it was taken from."""

    owner: str
    text: str
    source: int | None


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that the chapters need; they read nothing themselves."""

    place: str
    character: str
    calendar: Calendar
    people: tuple[Person, ...]
    """The most talkative first."""
    names: dict[str, str]
    """Display name by user id."""
    held: Held
    check: Check
    day: tuple[tuple[Activity, tuple[Message, ...]], ...]
    """Activities of one day, each with the messages of its window."""
    facts: tuple[KnownFact, ...]
    question: str
    topic: str
    """What the question is about: those of its words that the notes hold most often, if any."""
    now: datetime
    """When it is asked, local."""
    prompt: ReplyPrompt
    budget: int

    def speaker(self, message: Message) -> str:
        if message.is_mine:
            return self.character
        return self.names.get(message.user_id, message.name)

    def layer(self, kind: MemoryKind) -> list[Memory]:
        """The memories of a layer by period."""
        found = self.held.memories
        return [found[key] for key in sorted(found) if key[0] == kind]

    def week(self) -> list[Memory]:
        """The days from Monday to Sunday in which most was said about what is asked."""
        weeks: dict[date, list[Memory]] = {}
        for memory in self.layer("day"):
            day = date.fromisoformat(memory.period)
            weeks.setdefault(day - timedelta(days=day.weekday()), []).append(memory)
        if not weeks:
            return []
        return max(weeks.values(), key=lambda week: _mentions(week, self.topic))


async def gather(nianlun: Nianlun, chat: ChatKey, question: str) -> Material:
    """Read it all. Raises StoreError, and ChatError when the chat is empty."""
    chat_id = await chats.find(chat)
    if chat_id is None:
        raise ChatError(f"没有记录过 {chat.full} 这个会话")
    held = await provenance.held(chat_id)
    people = await provenance.people(chat_id)
    topic = topic_of(question, [note.text for note in held.notes])
    place = await nianlun.recaller.place(chat)
    names = display_names({person.user_id: person.name for person in people})
    owners = {**names, ME: nianlun.character, "": place}
    return Material(
        place=place,
        character=nianlun.character,
        calendar=nianlun.calendar,
        people=tuple(people),
        names=names,
        held=held,
        check=check(held, nianlun.calendar, [place]),
        day=tuple(
            [
                (activity, tuple(await messages.of_activity(chat_id, activity.number)))
                for activity in short_day(held, topic)
            ]
        ),
        facts=tuple(
            [
                KnownFact(owners.get(row.owner, row.owner), row.text, row.source)
                for row, _ in await facts.everything(chat_id)
            ]
        ),
        question=question,
        topic=topic,
        now=nianlun.calendar.local(nianlun.clock.now()),
        prompt=await nianlun.recaller.prompt(chat, question),
        budget=nianlun.settings.prompt_budget,
    )


def topic_of(question: str, texts: Sequence[str]) -> str:
    """The run of characters of a question that most texts hold; empty when none does."""
    runs = [question[i : i + _TOPIC] for i in range(len(question) - _TOPIC + 1)]
    counts = {run: sum(run in text for text in texts) for run in runs}
    best = max(counts, key=lambda run: counts[run], default="")
    return best if counts.get(best) else ""


def short_day(held: Held, topic: str) -> list[Activity]:
    """The activities of a day that can be shown whole, about the topic if there is such a day."""
    days: dict[str, list[Activity]] = {}
    for activity in held.activities.values():
        if activity.ranges:
            days.setdefault(activity.date, []).append(activity)
    fitting = {
        day: found
        for day, found in days.items()
        if len(found) in _FEW and sum(map(_size, found)) in _SHORT_DAY
    }
    if not days:
        return []
    chosen = days[min(fitting or days, key=lambda day: (-_mentions(days[day], topic), day))]
    return sorted(chosen, key=lambda activity: (activity.time, activity.number))


def _mentions(notes: Sequence[Activity | Memory], topic: str) -> int:
    return sum(note.text.count(topic) for note in notes) if topic else 0


def _size(activity: Activity) -> int:
    return sum(last - first + 1 for first, last in activity.ranges)
