"""Which texts of one group match the terms of a question best.

A text scores the sum of its terms' inverse document frequencies in this chat: BM25 (Robertson and
Walker 1994) without the length of texts, which misleads among chat messages, and with each term
counted once. The work is bounded whatever the size of the chat: rare terms are followed
everywhere, frequent ones among the newest texts; the best are then scored by all terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log
import sqlite3

from .keys import chunks
from .search_terms import Group, askable, quoted, speaker_term, term

_COUNTED = 300
"""Texts with a term that are counted; how many more there are is estimated."""
_AT_ONCE = 100
"""Terms that one statement counts: far fewer than SQLite joins in one."""
_FOLLOWED = 2_500
"""Texts that are looked at for the rare terms together."""
_FREQUENT = 500
"""The same for the frequent ones, as long as whichever has them may be found: five times as many
find no more."""
_WIDER = 2
"""So many times as many as are wanted are scored by all terms."""

_COUNT = (
    "SELECT {place}, count(*), max(id) FROM (SELECT rowid AS id FROM nianlun_search"
    " WHERE nianlun_search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid LIMIT ?)"
)
_HOLDING = (
    "SELECT rowid AS id, ? AS weight FROM nianlun_search"
    " WHERE nianlun_search MATCH ? AND rowid BETWEEN ? AND ?"
)
_BEST = (
    "SELECT id, sum(weight) AS score FROM ({parts}){only} GROUP BY id"
    " ORDER BY score DESC, id DESC LIMIT ?"
)
_TERMS = "SELECT id, terms FROM nianlun_search_terms WHERE id IN ({marks})"
_NEWEST = (
    "SELECT rowid FROM nianlun_search WHERE nianlun_search MATCH ? AND rowid BETWEEN ? AND ?{only}"
    " ORDER BY rowid DESC LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Field:
    """The texts of one group of a chat, and which of them may be found."""

    chat_id: int
    group: Group
    first: int
    last: int
    """Document ids between which all texts of the group lie."""
    total: int
    """How many there are, or were: a little too many does no harm."""
    lower: int
    upper: int
    """Document ids between which a text may be found."""
    only: str = ""
    """A query for the document ids that may be found, if not all may."""
    only_values: tuple[object, ...] = ()


def best(
    connection: sqlite3.Connection,
    field: Field,
    terms: Sequence[str],
    said_by: Sequence[str],
    favoured: Sequence[str],
    wanted: int,
) -> list[tuple[int, float]]:
    """Ids and scores of the best texts, best first."""
    words = [term(field.chat_id, field.group, plain) for plain in askable(terms)]
    people = [speaker_term(field.chat_id, field.group, user_id) for user_id in favoured]
    counts = _frequencies(connection, field, [*words, *people])
    frequencies = {one: counts[one] for one in words if one in counts}
    asked = [
        _Asked(found, _weight(field.total, count), lower)
        for found, count, lower in _reach(field, frequencies, few=not (said_by or field.only))
    ]
    speakers = [speaker_term(field.chat_id, field.group, user_id) for user_id in said_by]
    scores = _followed(connection, field, asked, speakers, wanted * _WIDER)
    bonus = {one: _weight(field.total, counts[one]) for one in people if one in counts}
    unfollowed = [one for one in asked if one.lower > field.lower]
    if unfollowed or bonus:
        _complete(connection, scores, unfollowed, bonus)
    return sorted(scores.items(), key=lambda one: (-one[1], -one[0]))[:wanted]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A term of the question that is there."""

    term: str
    weight: float
    lower: int
    """Texts with a lower id are not followed for it."""


def _reach(
    field: Field, frequencies: dict[str, int], *, few: bool
) -> Iterator[tuple[str, int, int]]:
    """Each term with its frequency, rarest first, and from where on it is followed. `few`: of
    what has the frequent ones few need to be looked at."""
    order = sorted(frequencies.items(), key=lambda one: (one[1], one[0]))
    left = _FOLLOWED
    for place, (found, count) in enumerate(order):
        if count < _COUNTED and count <= left:
            left -= count
            yield found, count, field.lower
            continue
        share = (_FREQUENT if few else _FOLLOWED) // (len(order) - place)
        for other, frequency in order[place:]:
            newest = field.upper - share * field.total // frequency
            yield other, frequency, max(field.lower, newest)
        return


def _complete(
    connection: sqlite3.Connection,
    scores: dict[int, float],
    unfollowed: Sequence[_Asked],
    bonus: dict[str, float],
) -> None:
    """Add what terms count that were not followed as far, and who said it."""
    wanted = [(one.lower, f" {one.term} ", one.weight) for one in unfollowed]
    for part in chunks(list(scores)):
        marks = ",".join("?" * len(part))
        for id_, held in connection.execute(_TERMS.format(marks=marks), part):
            padded = f" {held} "
            for lower, word, weight in wanted:
                if id_ < lower and word in padded:
                    scores[id_] += weight
            scores[id_] += bonus.get(held.rpartition(" ")[2], 0.0)


def newest(
    connection: sqlite3.Connection, field: Field, said_by: Sequence[str], wanted: int
) -> list[int]:
    """The ids of the newest texts of these speakers."""
    speakers = [speaker_term(field.chat_id, field.group, user_id) for user_id in said_by]
    # With a plus the index is read once, not once for every id that may be found.
    query = _NEWEST.format(only=f" AND +rowid IN ({field.only})" if field.only else "")
    asked = (" OR ".join(map(quoted, speakers)), field.lower, field.upper)
    values = (*asked, *field.only_values, wanted)
    return [id_ for (id_,) in connection.execute(query, values)]


def _weight(total: int, frequency: int) -> float:
    return log(1 + (max(total - frequency, 0) + 0.5) / (frequency + 0.5))


def _frequencies(
    connection: sqlite3.Connection, field: Field, terms: Sequence[str]
) -> dict[str, int]:
    """How many texts of the group have each of these terms, those that any has; of a frequent
    one an estimate."""
    rows: list[tuple[str, int, int]] = []
    for start in range(0, len(terms), _AT_ONCE):
        part = list(terms[start : start + _AT_ONCE])
        values = [(quoted(one), field.first, field.last, _COUNTED) for one in part]
        query = " UNION ALL ".join(_COUNT.format(place=place) for place in range(len(part)))
        counted = connection.execute(query, list(chain.from_iterable(values)))
        rows += [(part[place], count, last) for place, count, last in counted]
    return {
        one: count if count < _COUNTED else _estimated(field, count, last)
        for one, count, last in rows
        if count
    }


def _estimated(field: Field, count: int, last: int) -> int:
    """How many texts have a term of which so many are up to the document id `last`."""
    read = max(last - field.first, 1)
    return max(count, min(field.total, count * field.total // read))


def _followed(
    connection: sqlite3.Connection,
    field: Field,
    asked: Sequence[_Asked],
    speakers: Sequence[str],
    wanted: int,
) -> dict[int, float]:
    """The texts that score best as far as they are looked at, by id."""
    if not asked:
        return {}
    said = f" AND ({' OR '.join(map(quoted, speakers))})" if speakers else ""
    values: list[object] = []
    for one in asked:
        values += [one.weight, quoted(one.term) + said, one.lower, field.upper]
    only = f" WHERE id IN ({field.only})" if field.only else ""
    query = _BEST.format(parts=" UNION ALL ".join([_HOLDING] * len(asked)), only=only)
    return dict(connection.execute(query, (*values, *field.only_values, wanted)).fetchall())
