"""Recall: from a text to what it brings up, with no model call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice, zip_longest
from typing import TypeAlias

from .clock import Clock
from .memory.calendar import Calendar
from .memory.embedding import Near, Nearest
from .memory.fusion import fuse
from .memory.keymarks import strip_key_marks
from .memory.people import People
from .memory.query import Question, understand
from .memory.ranking import rank
from .memory.recalled import Look, address_of, choose, shown_names
from .memory.search import Candidate, RecallResult, Search
from .memory.terms import index_terms, telling_terms
from .store.database import translated
from .store.keys import NAMELESS
from .store.search import SearchReader, SearchView
from .types import ME

AROUND = 2
"""What was said so many lines before and after a match may be what is looked for."""

_CANDIDATES = 30
"""So many lines come into question at least, and half as many again as are asked for: two sets of
labelled chats find no more among sixty."""
_MOST_TERMS = 64
"""Of a longer text so many terms are looked for, the most frequent ones."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is looked for, and how much of what it brings up is wanted."""

    text: str
    limit: int = 10
    """Hits; facts that they link to come with them."""
    budget_tokens: int = 800
    """Of all that comes back."""
    speaker: str | None = None
    """Only what this one said, by user id (`me` is the bot)."""
    time_range: tuple[datetime, datetime] | None = None
    """Only from the first moment until before the second, in place of the time in the text; a
    fact is of when it was written. Without a zone they are by the clocks of the bot's."""
    asker: str | None = None
    """Who says the text."""
    shown: Collection[str] = ()
    """Addresses of what of this chat stands in the prompt already."""
    linked: bool = False
    """Also in the chats that a superuser has linked to this one."""
    around: int = AROUND
    """So many lines before and after a message that matches come into question as well."""
    words_only: bool = False
    """What was typed is looked for (see `understand`), and where it brings nothing up, not what
    else the speaker said or what else there is of the time; the number by which a note cites a
    message is no word of it."""
    written: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Messages by seq in which the text stands as it was typed, by chat: they come first."""
    this_year: int | None = None
    """The year that messages and activities need not tell."""

    @property
    def is_for_nothing(self) -> bool:
        return self.limit <= 0 or self.budget_tokens <= 0


Nearby: TypeAlias = Mapping[int, Sequence[Near]]
"""What is near to a text by meaning, in the chats where that can be told."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query as it is looked for, wherever."""

    query: RecallQuery
    near: Nearby
    now: datetime


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

    @property
    def by_words_alone(self) -> bool:
        """Whether a search waits for nothing but the database."""
        return self._nearest is None

    async def recall(self, chat_id: int, query: RecallQuery) -> RecallResult:
        """The best of what a query brings up in a chat.

        Raises StoreError; no text makes it raise anything else.
        """
        if query.is_for_nothing:
            return RecallResult()
        near = await self._near(chat_id, query)
        return await self._reader.run(lambda view: self.search(view, chat_id, query, near))

    def search(
        self, view: SearchView, chat_id: int, query: RecallQuery, near: Nearby | None = None
    ) -> RecallResult:
        """The same, in the reader's thread."""
        if query.is_for_nothing:
            return RecallResult()
        asked = _Asked(self._settled(query), near or {}, self._clock.now())
        with translated():
            return self._recall(view, chat_id, asked)

    def _settled(self, query: RecallQuery) -> RecallQuery:
        speaker, given = query.speaker, query.time_range
        # Of whoever goes by a name alone nobody knows that it is the same person elsewhere.
        linked = query.linked and not (speaker is not None and speaker.startswith(NAMELESS))
        return replace(query, linked=linked, time_range=given and self._within(*given))

    def _within(self, begin: datetime, end: datetime) -> tuple[datetime, datetime]:
        zone = self._calendar.zone
        return (
            begin if begin.utcoffset() is not None else begin.replace(tzinfo=zone),
            end if end.utcoffset() is not None else end.replace(tzinfo=zone),
        )

    async def _near(self, chat_id: int, query: RecallQuery) -> Nearby:
        if self._nearest is None:
            return {}
        chat_ids = [chat_id]
        if self._settled(query).linked:
            chat_ids += [other.chat_id for other in await self._reader.linked(chat_id)]
        nearest = (self._nearest.nearest(id_, query.text) for id_ in chat_ids)
        found = await asyncio.gather(*nearest)
        return {id_: near for id_, near in zip(chat_ids, found, strict=True) if near is not None}

    def _recall(self, view: SearchView, chat_id: int, asked: _Asked) -> RecallResult:
        query = asked.query
        others = view.linked(chat_id) if query.linked else []
        names = view.names(chat_id)
        here, widened = self._look_in(view, chat_id, asked, names)
        found = [here]
        elsewhere = replace(asked, query=replace(query, shown=())) if others else asked
        for other in others:
            # Whom a name means here it means there, whatever they are called there.
            people = names.joined(view.names(other.chat_id))
            there, _ = self._look_in(view, other.chat_id, elsewhere, people)
            found.append([one._replace(place=other.place) for one in there[: query.limit]])
        in_turn = (one for one in chain.from_iterable(zip_longest(*found)) if one is not None)
        new = (one for one in in_turn if address_of(one) not in query.shown)
        places = {"": chat_id, **{other.place: other.chat_id for other in others}}
        result = self._choose(view, asked, places, list(islice(new, query.limit)), names)
        return replace(result, widened=widened, embedding_used=chat_id in asked.near)

    def _look_in(
        self, view: SearchView, chat_id: int, asked: _Asked, people: People
    ) -> tuple[Sequence[Candidate], bool]:
        """What there is in one chat, best first, and whether it had to leave the time that was
        asked about. `people`: whom names mean."""
        query = asked.query
        question = understand(
            query.text,
            asker=query.asker,
            people=people,
            now=asked.now,
            calendar=self._calendar,
            words_only=query.words_only,
        )
        per_kind = max(_CANDIDATES, query.limit * 3 // 2)
        search, wider = replace(question.search, per_kind=per_kind), question.wider
        if query.speaker is not None:
            search = replace(search, said_by=(query.speaker,))
        given = query.time_range
        if given is None and query.words_only and not search.terms:
            given = search.span
        if given is not None:
            search, wider = replace(search, span=given, fact_span=given), None
        found, reached, widened = _found(view, chat_id, search, question, wider, asked)
        ranked = rank(found, question)
        if chat_id in asked.near:
            meant = view.look_up(chat_id, reached, asked.near[chat_id], around=query.around)
            widened = widened and (reached is not search or not _is_new(meant, asked))
            ranked = fuse(ranked, rank(meant, question))
        if lines := query.written.get(chat_id):
            exact = [Near("message", seq, 1) for seq in lines]
            ranked = [*view.look_up(chat_id, Search((), per_kind=len(exact)), exact), *ranked]
        return ranked, widened

    def _choose(
        self,
        view: SearchView,
        asked: _Asked,
        places: Mapping[str, int],
        hits: Sequence[Candidate],
        people: People,
    ) -> RecallResult:
        """The best of it. `places`: the chats that were looked into, by what their hits are told
        to be from."""
        query = asked.query
        by_fact: dict[int, Sequence[Candidate]] = {}
        names: dict[str, str] = {}
        unresolved: list[str] = []
        for place, chat_id in places.items():
            of_there = [one for one in hits if one.place == place]
            if not of_there:
                continue
            links_there, names_there = view.company(chat_id, of_there)
            for fact, linked in links_there.by_fact.items():
                by_fact[fact] = [
                    one._replace(place=place)
                    for one in linked
                    if query.time_range is None or _is_within(one, *query.time_range)
                ]
            # Whoever is known here is called as here.
            names = {**names_there, **names}
            unresolved += links_there.unresolved
        # Who else is or was called so is told apart, whether anything of theirs came back or not.
        namesakes = {other: name for name in names.values() for other in people.bearers(name)}
        called = shown_names(namesakes | names, self._character)
        look = Look(self._calendar, called, self._character, query.asker, query.this_year)
        chosen = choose(hits, by_fact, look, query.limit, query.budget_tokens)
        return RecallResult(
            items=chosen.items,
            text="\n".join(item.text for item in chosen.items),
            budget_used=chosen.used,
            dropped=chosen.dropped,
            unresolved_links=tuple(unresolved),
        )

    async def facts_about(self, chat_id: int, text: str, budget: int) -> list[str]:
        """The facts that a longer text touches, best first, a line each; at most `budget` tokens.

        Raises StoreError.
        """
        counts = Counter(term for line in text.splitlines() for term in telling_terms(line))
        terms = tuple(term for term, _ in counts.most_common(_MOST_TERMS))

        def facts(view: SearchView) -> list[str]:
            facts = [one for one in view.find_facts(chat_id, Search(terms)) if one.score]
            _, names = view.company(chat_id, facts)
            look = Look(self._calendar, shown_names(names, self._character), self._character, None)
            return [item.text for item in choose(facts, {}, look, len(facts), budget).items]

        return await self._reader.run(facts)


def _found(
    view: SearchView,
    chat_id: int,
    search: Search,
    question: Question,
    wider: tuple[datetime, datetime] | None,
    asked: _Asked,
) -> tuple[list[Candidate], Search, bool]:
    """What there is, the search that found it, and whether it had to leave the time that was
    asked about."""
    whose = search.said_by or question.people
    anything = question.open
    if asked.query.words_only:
        anything = anything and bool(question.span or (question.people and not search.said_by))
        if not (anything or search.terms):
            return [], search, False
    found = _find(view, chat_id, search, asked)
    if wider is None:
        if whose and (anything or not (asked.query.words_only or any(one.score for one in found))):
            # 小鹿最近怎么样: what they said last.
            found += view.find(chat_id, replace(search, terms=(), said_by=whose))
        return found, search, False
    # Of that time whatever else was said is of use: 昨天我心情怎么样.
    rest: list[Candidate] = []
    if anything or not asked.query.words_only:
        rest = view.find(chat_id, replace(search, terms=(), said_by=whose))
        rest = [one for one in rest if one.kind != "fact"]
    if _is_new(found, asked) or _is_shown(found, asked) or (rest and question.open):
        return found + rest, search, False
    for span in (wider, None):
        beyond = replace(search, span=span)
        found = _find(view, chat_id, beyond, asked)
        if _is_new(found, asked):
            return found + rest, beyond, True
    return found + rest, search, not rest


def _find(view: SearchView, chat_id: int, search: Search, asked: _Asked) -> list[Candidate]:
    found = view.find(chat_id, search, around=asked.query.around)
    if not asked.query.words_only:
        return found
    terms = set(search.terms)
    return [one for one in found if not (one.score and _is_note(one)) or terms & _words(one)]


def _is_note(one: Candidate) -> bool:
    return one.kind not in ("message", "fact")


def _words(note: Candidate) -> set[str]:
    """The terms of what it says, without the numbers of the messages that it cites."""
    return set(index_terms(strip_key_marks(note.text)))


def _is_within(one: Candidate, begin: datetime, end: datetime) -> bool:
    return begin <= one.time < end


def _is_new(found: Iterable[Candidate], asked: _Asked) -> bool:
    """Whether there is something that a time can be asked of, beside what stands in the prompt."""
    return any(one.kind != "fact" and address_of(one) not in asked.query.shown for one in found)


def _is_shown(found: Iterable[Candidate], asked: _Asked) -> bool:
    """Whether something that stands there has words of the question. Not what the asker has said
    just now, nor what was answered: that always is of today, and speaks of the same."""
    talk = (asked.query.asker, ME)
    return any(one.kind != "fact" and one.score > 0 and one.user_id not in talk for one in found)
