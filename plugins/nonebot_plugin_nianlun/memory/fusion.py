"""One order out of two that know nothing of each other's scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from .search import Candidate

_K = 60
"""Dampens the first places; the value of the paper."""


def fuse(lexical: Iterable[Candidate], nearest: Iterable[Candidate]) -> list[Candidate]:
    """Reciprocal rank fusion: an item's score is the sum of 1 / (60 + place) over the orders that
    it is in (Cormack, Clarke and Büttcher, SIGIR 2009).

    Each of the two is best first. Everything comes back once, as it stands in `lexical` where it
    is in both; of equals, first what the words found. Without a score of its own an item has no
    place either, and stands last: it is there for company.
    """
    scores: defaultdict[tuple[str, int], float] = defaultdict(float)
    found: dict[tuple[str, int], Candidate] = {}
    for order in (lexical, nearest):
        once = {(one.kind, one.ref): one for one in order}
        for place, (key, one) in enumerate(once.items(), 1):
            scores[key] += 1 / (_K + place) if one.score > 0 else 0
            found.setdefault(key, one)
    return sorted(found.values(), key=lambda one: -scores[one.kind, one.ref])
