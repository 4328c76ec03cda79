"""The order of what a search found: by what it says, what is said around it, and by whom.

A line of a chat is rarely understood alone: the answer stands behind the question, and a topic
goes on for some lines. So a line's score includes parts of those of the lines near it (smoothing
of scores over a document's surroundings, as in passage retrieval).

The numbers are round ones from the middle of a plateau: around each of them, on two Chinese and two
English sets of labelled chats, Recall@10 moves by about a point (see `benchmarks/recall.py`). Those
of the turns that kinds take are a choice: there is no labelled set with facts and notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import zip_longest
from typing import Final

from ..types import ME
from .query import Question
from .search import Candidate
from .terms import index_terms, telling_terms

_AROUND: Final = {1: 0.6, 2: 0.3, -1: 0.4, -2: 0.2}
"""What the lines behind and before a match get of its score: those behind it answer more often."""
_TOGETHER: Final = timedelta(hours=6)
"""Lines further apart are not of one talk."""
_SHARPNESS: Final = 1.25
"""The power of a score: what matches most of a question counts for more than parts of it."""
_A_DAY: Final = timedelta(days=1)
_NAMED: Final = 1.5
"""Lines of those whose names are in the question, and of whom it says 我 or 你."""
_BETWEEN: Final = 4.0
"""Lines of who asks, and of ours to them, if the question is about the two of us."""
_IN_TIME: Final = 4.0
"""What was said in the time that the question names."""
_SOON_AFTER: Final = 2.0
"""What was said on the day after it, when people tell how it was."""
_ANYTHING: Final = 1.0
"""The score of a line that is there for its time or its speaker alone, if it says something."""
_SAYING: Final = 3
"""A line with so many terms says something; one with less the less."""
_FEW_FACTS: Final = 3
"""Facts that may stand before everything else."""
_WELL: Final = 0.5
"""Of the terms of a question, how many must be in a fact that stands there."""
_PLACE: Final = {"message": (1.0, 0.0), "fact": (3.0, 1.5), "note": (3.0, 2.2)}
"""The place of the n-th of a kind is n times the first number plus the second: of ten items that
are found about six are messages, two facts and two notes."""


def rank(candidates: Iterable[Candidate], question: Question) -> list[Candidate]:
    """Everything that was found, best first, each once.

    `candidates` have the scores of the search within their kind; those that come back have the
    scores they were ordered by. Facts that match well stand first; then messages, facts and notes
    take turns, so that no kind crowds out another. Of equals the newest stands first.
    """
    found = {(one.kind, one.ref): one for one in reversed(list(candidates))}
    messages = [one for one in found.values() if one.kind == "message"]
    facts = _sorted(
        one._replace(score=one.score * _favour(one, question, {}))
        for one in found.values()
        if one.kind == "fact"
    )
    notes = _sorted(
        one._replace(score=_timely(one, one.score, question))
        for one in found.values()
        if one.kind not in ("message", "fact")
    )
    lines = _repeats_last(_taking_turns(_sorted(_scored(messages, question)), question))
    first = [one for one in facts[:_FEW_FACTS] if _matches_well(one, question)]
    rest = [one for one in facts if one not in first]
    placed = [
        (number * step + start, one)
        for kind, ranked in (("message", lines), ("fact", rest), ("note", notes))
        for step, start in (_PLACE[kind],)
        for number, one in enumerate(ranked)
    ]
    return first + [one for _, one in sorted(placed, key=lambda pair: pair[0])]


def _sorted(found: Iterable[Candidate]) -> list[Candidate]:
    return sorted(found, key=lambda one: (one.score, one.time, one.ref), reverse=True)


def _scored(messages: Sequence[Candidate], question: Question) -> list[Candidate]:
    """The messages with what their surroundings and their speakers add to their scores."""
    by_seq = {one.ref: one for one in messages}
    scores = dict.fromkeys(by_seq, 0.0)
    unasked = question.open or not any(one.score for one in messages)
    for seq, one in by_seq.items():
        if not one.score:
            continue
        score = one.score**_SHARPNESS
        scores[seq] += score
        for step, share in _AROUND.items():
            near = by_seq.get(seq + step)
            if near is not None and abs(near.time - one.time) <= _TOGETHER:
                scores[near.ref] += share * score
    for seq, one in by_seq.items():
        if unasked and not scores[seq] and question.span is None and _is_whose(one, question):
            scores[seq] = _ANYTHING * _saying(one)
    return [
        one._replace(score=_timely(one, scores[seq], question) * _favour(one, question, by_seq))
        for seq, one in by_seq.items()
    ]


def _saying(one: Candidate) -> float:
    return min(1.0, len(telling_terms(one.text)) / _SAYING)


def _is_whose(one: Candidate, question: Question) -> bool:
    return one.user_id is not None and one.user_id in question.people


def _timely(one: Candidate, score: float, question: Question) -> float:
    """The score with what the time of the question adds to it."""
    span = question.span
    if span is None:
        return score
    if span.begin <= one.time < span.end:
        says = 1.0 if score or one.kind != "message" else _saying(one)
        return _IN_TIME * (score + _ANYTHING * says)
    return _SOON_AFTER * score if span.end <= one.time < span.end + _A_DAY else score


def _favour(one: Candidate, question: Question, by_seq: Mapping[int, Candidate]) -> float:
    favour = 1.0
    if one.user_id in question.named or (one.user_id and one.user_id == question.subject):
        favour *= _NAMED
    if question.asker is not None and _is_between(one, question.asker, by_seq):
        favour *= _BETWEEN
    return favour


def _is_between(one: Candidate, asker: str, by_seq: Mapping[int, Candidate]) -> bool:
    """Whether a line is the asker's, or ours beside one of theirs."""
    if one.user_id != ME:
        return one.user_id == asker
    near = (one.ref + step for step in (-2, -1, 1))
    return any(seq in by_seq and by_seq[seq].user_id == asker for seq in near)


def _taking_turns(ranked: Sequence[Candidate], question: Question) -> Sequence[Candidate]:
    """Of an open question about somebody: what they said, and in turn what was said of them."""
    if not (question.open and question.named):
        return ranked
    own = [one for one in ranked if one.user_id in question.named]
    of_them = [one for one in ranked if one.user_id not in question.named]
    turns = zip_longest(own, of_them)
    return [one for turn in turns for one in turn if one is not None]


def _repeats_last(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Lines that repeat the words of a better one stand behind all others."""
    said: set[str] = set()
    once: list[Candidate] = []
    again: list[Candidate] = []
    for one in ranked:
        words = one.text.strip().casefold()
        (again if words in said else once).append(one)
        said.add(words)
    return once + again


def _matches_well(fact: Candidate, question: Question) -> bool:
    if not question.terms:
        return False
    held = set(index_terms(f"{fact.category} {fact.name} {fact.text}"))
    return len(held.intersection(question.terms)) >= _WELL * len(question.terms)
