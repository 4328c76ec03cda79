"""Recall: from a text to what it brings up, with no model call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, zip_longest

from .clock import Clock
from .memory.calendar import Calendar
from .memory.embedding import Near, Nearest
from .memory.fusion import fuse
from .memory.query import Question, understand
from .memory.ranking import rank
from .memory.recalled import Look, address_of, choose, shown_names
from .memory.search import Candidate, RecallResult, Search
from .memory.terms import telling_terms
from .store import links
from .store.keys import NAMELESS
from .store.search import SearchReader

AROUND = 2
"""So many lines before and after a message that matches are looked at with it."""

_MOST_TERMS = 64
"""Of a longer text so many terms are looked for, the most frequent ones."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is looked for, wherever."""

    text: str
    speaker: str | None
    time_range: tuple[datetime, datetime] | None
    asker: str | None
    people: Mapping[str, set[str]]
    """Whom names mean beside those of the chat that is looked at."""
    limit: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What one chat has to say to it."""

    hits: Sequence[Candidate]
    people: Mapping[str, set[str]]
    widened: bool
    embedding_used: bool


class Recalling:
    """Finds what is stored; scope is one chat, and where it is asked for those linked to it."""

    def __init__(
        self,
        reader: SearchReader,
        character: str,
        clock: Clock,
        calendar: Calendar,
        nearest: Nearest | None = None,
    ) -> None:
        """`nearest`: a search by meaning beside the one by words."""
        self._reader = reader
        self._character = character
        self._clock = clock
        self._calendar = calendar
        self._nearest = nearest

    @property
    def reader(self) -> SearchReader:
        return self._reader

    async def recall(
        self,
        chat_id: int,
        text: str,
        *,
        limit: int = 10,
        budget_tokens: int = 800,
        speaker: str | None = None,
        time_range: tuple[datetime, datetime] | None = None,
        asker: str | None = None,
        shown: Collection[str] = (),
        linked: bool = False,
    ) -> RecallResult:
        """What `text` brings up, best first.

        `speaker`: only what this one said, by user id (`me` is the bot). `time_range`: only from
        the first moment until before the second, in place of the time that the text names.
        `asker`: who says the text. `shown`: addresses of what stands in the prompt already.
        `linked`: also from the chats that a superuser has linked to this one; limit and budget
        are for all of it together. Raises StoreError; no text makes it raise anything else.
        """
        if limit <= 0 or budget_tokens <= 0:
            return RecallResult()
        if time_range is not None:
            time_range = self._within(*time_range)
        asked = _Asked(text, speaker, time_range, asker, {}, limit)
        # Of whoever goes by a name alone nobody knows that it is the same person elsewhere.
        nameless = speaker is not None and speaker.startswith(NAMELESS)
        here, others = await asyncio.gather(
            self._look_in(chat_id, asked),
            _nowhere() if nameless or not linked else links.linked(chat_id),
        )
        asked = replace(asked, people=here.people)
        found = [
            here,
            *[await self._look_in(there.chat_id, asked, there.place) for there in others],
        ]
        in_turn = chain.from_iterable(zip_longest(*(place.hits for place in found)))
        hits = [one for one in in_turn if one is not None and address_of(one) not in shown]
        result = await self._chosen(
            chat_id, {p.place: p.chat_id for p in others}, hits, asked, budget_tokens
        )
        return replace(result, widened=here.widened, embedding_used=here.embedding_used)

    async def _look_in(self, chat_id: int, asked: _Asked, place: str = "") -> _Found:
        """What there is in one chat, best first."""
        people = dict(await self._reader.names(chat_id))
        for name, user_ids in asked.people.items():
            # Whom a name means here it means there, whatever they are called there.
            people[name] = people.get(name, set()) | user_ids
        question = understand(
            asked.text,
            asker=asked.asker,
            people=people,
            now=self._clock.now(),
            calendar=self._calendar,
        )
        search, wider = question.search, question.wider
        if asked.speaker is not None:
            search = replace(search, said_by=(asked.speaker,))
        if asked.time_range is not None:
            search, wider = replace(search, span=asked.time_range), None
        (found, search, widened), near = await asyncio.gather(
            self._found(chat_id, search, question, wider), self._near(chat_id, asked.text)
        )
        ranked = rank(found, question)
        if near is not None:
            meant = await self._reader.look_up(chat_id, search, near, around=AROUND)
            ranked = fuse(ranked, rank(meant, question))
        if place:
            ranked = [replace(one, place=place) for one in ranked[: asked.limit]]
        return _Found(ranked, people, widened, near is not None)

    def _within(self, begin: datetime, end: datetime) -> tuple[datetime, datetime]:
        """A span without a zone is by the clocks of the bot's."""
        zone = self._calendar.zone
        return (
            begin if begin.utcoffset() is not None else begin.replace(tzinfo=zone),
            end if end.utcoffset() is not None else end.replace(tzinfo=zone),
        )

    async def _found(
        self,
        chat_id: int,
        search: Search,
        question: Question,
        wider: tuple[datetime, datetime] | None,
    ) -> tuple[list[Candidate], Search, bool]:
        """What there is, the search that found it, and whether it had to leave the time that
        was asked about."""
        found = await self._reader.find(chat_id, search, around=AROUND)
        whose = search.said_by or question.people
        if wider is None:
            if whose and (question.open or not any(one.score for one in found)):
                # 小鹿最近怎么样: what they said last.
                found += await self._reader.find(chat_id, replace(search, terms=(), said_by=whose))
            return found, search, False
        # Of that time whatever else was said is of use: 昨天我心情怎么样.
        rest = await self._reader.find(chat_id, replace(search, terms=(), said_by=whose))
        rest = [one for one in rest if one.kind != "fact"]
        if _in_time(found) or (rest and question.open):
            return found + rest, search, False
        for span in (wider, None):
            beyond = replace(search, span=span)
            found = await self._reader.find(chat_id, beyond, around=AROUND)
            if _in_time(found):
                return found + rest, beyond, True
        return found + rest, search, not rest

    async def facts_about(self, chat_id: int, text: str, budget: int) -> list[str]:
        """The facts that a longer text touches, best first, a line each; at most `budget` tokens.

        Raises StoreError.
        """
        counts = Counter(term for line in text.splitlines() for term in telling_terms(line))
        terms = tuple(term for term, _ in counts.most_common(_MOST_TERMS))
        found = await self._reader.find(chat_id, Search(terms))
        facts = [one for one in found if one.kind == "fact" and one.score]
        _, names = await self._reader.company(chat_id, facts)
        look = Look(self._calendar, shown_names(names, self._character), self._character, None)
        return [item.text for item in choose(facts, {}, look, len(facts), budget).items]

    async def _near(self, chat_id: int, text: str) -> Sequence[Near] | None:
        return None if self._nearest is None else await self._nearest.nearest(chat_id, text)

    async def _chosen(
        self,
        here: int,
        others: Mapping[str, int],
        ranked: Sequence[Candidate],
        asked: _Asked,
        budget: int,
    ) -> RecallResult:
        """`others` are the chats of those that have a place."""
        by_fact: dict[int, Sequence[Candidate]] = {}
        names: dict[str, str] = {}
        unresolved: list[str] = []
        for place, chat_id in {"": here, **others}.items():
            hits = [one for one in ranked[: asked.limit] if one.place == place]
            if not hits:
                continue
            links_there, names_there = await self._reader.company(chat_id, hits)
            for fact, linked in links_there.by_fact.items():
                by_fact[fact] = [replace(one, place=place) for one in linked]
            # Whoever is known here is called as here.
            names = {**names_there, **names}
            unresolved += links_there.unresolved
        # Who else is or was called so is told apart, whether anything of theirs came back or not.
        namesakes = {other: name for name in names.values() for other in asked.people.get(name, ())}
        shown = shown_names(namesakes | names, self._character)
        look = Look(self._calendar, shown, self._character, asked.asker)
        chosen = choose(ranked[: asked.limit], by_fact, look, asked.limit, budget)
        return RecallResult(
            items=chosen.items,
            text="\n".join(item.text for item in chosen.items),
            budget_used=chosen.used,
            dropped=chosen.dropped,
            unresolved_links=tuple(unresolved),
        )


async def _nowhere() -> list[links.Linked]:
    return []


def _in_time(found: Iterable[Candidate]) -> bool:
    """Whether there is something that a time can be asked of."""
    return any(one.kind != "fact" for one in found)
