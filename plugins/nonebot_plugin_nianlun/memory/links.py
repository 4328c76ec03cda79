"""Links between facts: `[[category:name]]` in the text of one leads to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import re
from typing import NamedTuple

from ..errors import NoteRejected
from .fact_items import fact_category, fact_name
from .search import Candidate

MOST_LINKS = 20
"""So many of one text are followed."""
_LINK = re.compile(r"\[\[([^\[\]:|#]{1,80}):([^\[\]:|#]{1,200})\]\]")


class Link(NamedTuple):
    category: str
    name: str

    def __str__(self) -> str:
        return f"{self.category}:{self.name}"


@dataclass(frozen=True, slots=True)
class Linked:
    """Where the links of some facts lead, one step far."""

    by_fact: Mapping[int, tuple[Candidate, ...]]
    """By the row id of the fact that links: the facts it leads to, in the order of its text."""
    unresolved: tuple[str, ...]
    """`category:name` of each link that leads to no one fact, once, in order."""


def parse_links(text: str) -> tuple[Link, ...]:
    """The links in a text, each once, in order; what only looks like one stays text."""
    found: dict[Link, None] = {}
    for match in _LINK.finditer(text):
        try:
            found[Link(fact_category(match[1].strip()), fact_name(match[2]))] = None
        except NoteRejected:
            continue
        if len(found) == MOST_LINKS:
            break
    return tuple(found)


def wanted(hits: Sequence[Candidate]) -> tuple[Link, ...]:
    """All that the facts among the hits link to, each once."""
    facts = (hit for hit in hits if hit.kind == "fact")
    return tuple(dict.fromkeys(link for hit in facts for link in parse_links(hit.text)))


def resolve(hits: Sequence[Candidate], named: Sequence[Candidate]) -> Linked:
    """Where the links of the hits lead, given all facts of the chat that bear such a name.

    A link leads to the same owner's fact first, then to the chat's own, then to the only one
    there is; where several people have one and none of these holds, it stays unresolved.
    """
    by_link: dict[Link, list[Candidate]] = {}
    for candidate in named:
        link = Link(candidate.category or "", candidate.name or "")
        by_link.setdefault(link, []).append(candidate)
    by_fact: dict[int, tuple[Candidate, ...]] = {}
    unresolved: dict[str, None] = {}
    for hit in hits:
        targets: list[Candidate] = []
        for link in parse_links(hit.text) if hit.kind == "fact" else ():
            target = _target(hit, by_link.get(link, []))
            if target is None:
                unresolved[str(link)] = None
            elif target.ref != hit.ref:
                targets.append(target)
        if targets:
            by_fact[hit.ref] = tuple(targets)
    return Linked(by_fact, tuple(unresolved))


def _target(hit: Candidate, bearers: Sequence[Candidate]) -> Candidate | None:
    for owner in (hit.user_id, None):
        for candidate in bearers:
            if candidate.user_id == owner:
                return candidate
    return bearers[0] if len(bearers) == 1 else None
