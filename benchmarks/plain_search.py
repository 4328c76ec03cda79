"""Plain full-text searches to measure the product's recall against: each ranks by one formula."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log
import sqlite3
from typing import Protocol


class PlainSearch(Protocol):
    """A search among documents that are given as terms, repeats included."""

    def ranked(self, terms: Sequence[str], most: int) -> list[int]:
        """Places of the documents with any of these distinct terms, best first."""
        ...

    def close(self) -> None: ...


class Fts5:
    """SQLite's full text search with its own bm25(), as it is without any setting."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._database = sqlite3.connect(":memory:")
        # The terms are made already: it only splits them at the blanks.
        self._database.execute(
            "CREATE VIRTUAL TABLE line USING fts5(terms, tokenize=\"ascii tokenchars '.'\")"
        )
        rows = ((place, " ".join(terms)) for place, terms in enumerate(documents))
        self._database.executemany("INSERT INTO line (rowid, terms) VALUES (?, ?)", rows)

    def ranked(self, terms: Sequence[str], most: int) -> list[int]:
        if not terms:
            return []
        wanted = " OR ".join(f'"{term}"' for term in terms)
        query = "SELECT rowid FROM line WHERE line MATCH ? ORDER BY bm25(line), rowid LIMIT ?"
        return [place for (place,) in self._database.execute(query, (wanted, most))]

    def close(self) -> None:
        self._database.close()


class Bm25:
    """BM25 with k1 = 1.5 and b = 0.75, the defaults of rank_bm25 and bm25s."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._lengths = [len(terms) for terms in documents]
        self._average = sum(self._lengths) / len(documents)
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, terms in enumerate(documents):
            for term, count in Counter(terms).items():
                self._postings[term].append((place, count))

    def ranked(self, terms: Sequence[str], most: int) -> list[int]:
        scores: defaultdict[int, float] = defaultdict(float)
        for term in terms:
            postings = self._postings.get(term, [])
            rarity = log(1 + (len(self._lengths) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, count in postings:
                length = 0.25 + 0.75 * self._lengths[place] / self._average
                scores[place] += rarity * count * 2.5 / (count + 1.5 * length)
        return sorted(scores, key=lambda place: (-scores[place], place))[:most]

    def close(self) -> None:
        """Nothing is open."""
