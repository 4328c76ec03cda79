"""Recall: from a text to what it brings up, with no model call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from .clock import Clock
from .memory.calendar import Calendar
from .memory.embedding import Near, Nearest
from .memory.fusion import fuse
from .memory.query import Question, understand
from .memory.ranking import rank
from .memory.recalled import Look, address_of, choose, shown_names
from .memory.search import Candidate, RecallResult, Search
from .memory.terms import telling_terms
from .store.search import SearchReader

AROUND = 2
"""So many lines before and after a message that matches are looked at with it."""

_MOST_TERMS = 64
"""Of a longer text so many terms are looked for, the most frequent ones."""


class Recalling:
    """Finds what is stored; scope is always one chat."""

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
    ) -> RecallResult:
        """What `text` brings up, best first.

        `speaker`: only what this one said, by user id (`me` is the bot). `time_range`: only from
        the first moment until before the second, in place of the time that the text names.
        `asker`: who says the text. `shown`: addresses of what stands in the prompt already.
        Raises StoreError; no text makes it raise anything else.
        """
        if limit <= 0 or budget_tokens <= 0:
            return RecallResult()
        question = understand(
            text,
            asker=asker,
            people=await self._reader.names(chat_id),
            now=self._clock.now(),
            calendar=self._calendar,
        )
        search = question.search
        if speaker is not None:
            search = replace(search, said_by=(speaker,))
        if time_range is not None:
            search = replace(search, span=self._within(*time_range))
        wider = question.wider if time_range is None else None
        (found, search, widened), near = await asyncio.gather(
            self._found(chat_id, search, question, wider), self._near(chat_id, text)
        )
        ranked = rank(found, question)
        if near is not None:
            meant = await self._reader.look_up(chat_id, search, near, around=AROUND)
            ranked = fuse(ranked, rank(meant, question))
        ranked = [one for one in ranked if address_of(one) not in shown]
        result = await self._chosen(chat_id, ranked, asker, limit, budget_tokens)
        return replace(result, widened=widened, embedding_used=near is not None)

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
        chat_id: int,
        ranked: Sequence[Candidate],
        asker: str | None,
        limit: int,
        budget: int,
    ) -> RecallResult:
        hits = ranked[:limit]
        links, names = await self._reader.company(chat_id, hits)
        shown = shown_names(names, self._character)
        look = Look(self._calendar, shown, self._character, asker)
        chosen = choose(hits, links.by_fact, look, limit, budget)
        return RecallResult(
            items=chosen.items,
            text="\n".join(item.text for item in chosen.items),
            budget_used=chosen.used,
            dropped=chosen.dropped,
            unresolved_links=links.unresolved,
        )


def _in_time(found: Iterable[Candidate]) -> bool:
    """Whether there is something that a time can be asked of."""
    return any(one.kind != "fact" for one in found)
