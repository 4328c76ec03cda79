"""Who is called what, and which of those names may be in what somebody says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
import re
from typing import Final

import rjieba

from ..types import ME
from .terms import fold, is_stop_word

_IN_BRACKETS: Final = re.compile(r"【[^】]*】|\[[^\]]*\]|\([^)]*\)|「[^」]*」|《[^》]*》")
_PART: Final = re.compile(r"[^\W_]+")


class People:
    """The people of a chat, by all names that they bear or bore.

    Groups have thousands of names, and a question has none of most: names are found by the first
    character of what may stand for them.
    """

    def __init__(self, bearers: Mapping[str, Iterable[str]] | None = None) -> None:
        """`bearers`: user ids by name."""
        self._bearers: dict[str, set[str]] = {}
        self._user_ids: set[str] = set()
        self._own: set[str] = set()
        self._by_first: dict[str, set[str]] = {}
        self._parts: tuple[People, ...] = (self,)
        for name, user_ids in (bearers or {}).items():
            self.add(name, user_ids)

    def add(self, name: str, user_ids: Iterable[str]) -> None:
        """Note that these people bear or bore a name."""
        if name not in self._bearers:
            self._bearers[name] = set()
            folded, parts = forms(name)
            for form in (folded, *parts):
                self._by_first.setdefault(form[:1], set()).add(name)
        self._bearers[name].update(user_ids)
        self._user_ids.update(user_ids)
        if ME in self._bearers[name]:
            self._own.add(name)

    def joined(self, others: People) -> People:
        """These and those of another chat. Nothing is copied: what is added to either is there."""
        both = People()
        both._parts = (*self._parts, *others._parts)
        return both

    @property
    def names(self) -> Iterator[str]:
        """All of them; one that is borne in two chats comes twice."""
        return chain.from_iterable(part._bearers for part in self._parts)

    @property
    def user_ids(self) -> set[str]:
        return set().union(*(part._user_ids for part in self._parts))

    @property
    def own(self) -> set[str]:
        """The bot's names."""
        return set().union(*(part._own for part in self._parts))

    def bearers(self, name: str) -> set[str]:
        """The user ids of all who bear or bore it."""
        return set().union(*(part._bearers.get(name, ()) for part in self._parts))

    def within(self, words: str) -> set[str]:
        """All names that stand in folded `words`, whole or by a part of them, and some others."""
        firsts = set(words)
        return set().union(
            *(part._by_first.get(first, ()) for part in self._parts for first in firsts)
        )


@lru_cache(maxsize=20_000)
def forms(name: str) -> tuple[str, tuple[str, ...]]:
    """A name folded, and what may stand for it: 小鹿 for 【群主】小鹿-上海.

    That is what stands first outside brackets, and what else there no dictionary has.
    """
    folded = fold(name).strip()
    pieces = _PART.findall(_IN_BRACKETS.sub(" ", folded))
    telling = [
        piece
        for place, piece in enumerate(pieces)
        if len(piece) > 1
        and not (piece.isdecimal() or is_stop_word(piece))
        and (place == 0 or not rjieba.has_word(piece))
    ]
    return folded, tuple(telling)
