"""What a search reads, on a plain connection and within one view of the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
import sqlite3
from typing import Any

from ..memory.calendar import Calendar
from ..memory.embedding import Near
from ..memory.search import Candidate, Search
from .keys import chunks
from .search_schema import (
    LAST_REF,
    MAY_BE_FOUND,
    document,
    kind_and_ref,
    span_of,
    sql_document,
)
from .search_scores import Field, best, newest

_ID_OF = {
    "activity": sql_document("activity", "number"),
    **{kind: sql_document(kind, "id") for kind in ("day", "month", "year")},
}
_COMPANY = 8
"""So many of the best lines are looked at with those around them: two sets of labelled chats find
the same with half as many more, and less with two less."""
_EARLIEST, _LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_COUNTERS = "SELECT last_seq, last_activity FROM nianlun_chat WHERE id = ?"
_MEMORIES = "SELECT count(*) FROM nianlun_memory WHERE chat_id = ?"
_FACTS = "SELECT count(*) FROM nianlun_fact WHERE chat_id = ?"
_SEQS = (
    "SELECT min(seq), max(seq) FROM nianlun_message WHERE chat_id = ? AND time >= ? AND time < ?"
)
_LINES = (
    "SELECT seq, time, text, user_id, name FROM nianlun_message WHERE chat_id = ?"
    f" AND {MAY_BE_FOUND.format(row='')}"
)
_NEWEST_LINES = (
    "SELECT seq FROM nianlun_message WHERE chat_id = ? AND time >= ? AND time < ?"
    f" AND {MAY_BE_FOUND.format(row='')} ORDER BY time DESC, seq DESC LIMIT ?"
)
_ACTIVITIES = "SELECT number, text, owner, date, time FROM nianlun_activity WHERE chat_id = ?"
_PERIODS = "SELECT id, text, kind, period FROM nianlun_memory WHERE chat_id = ?"
_FACTS_WITHIN = (
    f"SELECT {sql_document('fact', 'id')} AS id FROM nianlun_fact WHERE chat_id = ?"
    " AND written_at >= ? AND written_at < ?"
)
_FACT_ROWS = (
    "SELECT id, text, owner, name, category, written_at FROM nianlun_fact WHERE chat_id = ?"
)
# Notes of a time: what was noted in it, the days that it touches, months and years that are
# wholly in it.
_NOTES_WITHIN = (
    f"SELECT {_ID_OF['activity']} AS id FROM nianlun_activity WHERE chat_id = ?"
    " AND date BETWEEN ? AND ? AND time >= ? AND time < ?"
    + "".join(
        f" UNION ALL SELECT {_ID_OF[kind]} FROM nianlun_memory WHERE chat_id = ?"
        f" AND kind = '{kind}' AND period >= ? AND period < ?"
        for kind in ("day", "month", "year")
    )
)


def find(
    connection: sqlite3.Connection,
    calendar: Calendar,
    chat_id: int,
    search: Search,
    around: int,
) -> list[Candidate]:
    """See `SearchView.find`."""
    counters = connection.execute(_COUNTERS, (chat_id,)).fetchone()
    if counters is None or not (search.terms or search.said_by or search.span):
        return []
    last_seq, last_activity = counters
    where = _Where(connection, calendar, chat_id, search)
    return [
        *_messages(where, last_seq, around),
        *_notes(where, last_activity),
        *_facts(where),
    ]


def find_facts(
    connection: sqlite3.Connection,
    calendar: Calendar,
    chat_id: int,
    search: Search,
) -> list[Candidate]:
    """See `SearchView.find_facts`."""
    return _facts(_Where(connection, calendar, chat_id, search))


def look_up(
    connection: sqlite3.Connection,
    calendar: Calendar,
    chat_id: int,
    search: Search,
    wanted: Sequence[Near],
    around: int,
) -> list[Candidate]:
    """See `SearchView.look_up`."""
    where = _Where(connection, calendar, chat_id, search)
    refs: defaultdict[str, list[int]] = defaultdict(list)
    for near in wanted:
        refs[near.kind].append(near.ref)
    notes = _activities(where, refs["activity"], {})
    notes |= _memories(where, [*refs["day"], *refs["month"], *refs["year"]], {})
    if where.span is not None:
        within = connection.execute(_NOTES_WITHIN, _within(where, *where.span))
        notes = {id_: notes[id_] for (id_,) in within if id_ in notes}
    found = notes | _known_facts(where, refs["fact"], {})
    lines = _lines(connection, chat_id, refs["message"], {})
    found |= {document(chat_id, "message", seq): line for seq, line in lines.items()}
    allowed: dict[str, Candidate] = {}
    for near in wanted:
        one = found.get(document(chat_id, near.kind, near.ref))
        if one is not None and one.text not in allowed and _may_come(one, where):
            allowed[one.text] = one._replace(score=near.score)
    hits = list(allowed.values())[: search.per_kind]
    seqs = {one.ref for one in hits if one.kind == "message"}
    beside = {seq + step for seq in seqs for step in range(-around, around + 1)} - seqs
    company = _lines(connection, chat_id, beside, {}).values()
    return hits + [one for one in company if _may_come(one, where)]


def _may_come(one: Candidate, where: _Where) -> bool:
    search = where.search
    if one.kind == "message":
        before = search.before_seq
        return _allowed(one, search, where.span) and (before is None or one.ref < before)
    # Which notes are of the time that is asked about their own times do not tell.
    return _allowed(one, search, where.fact_span if one.kind == "fact" else None)


@dataclass(frozen=True, slots=True)
class _Where:
    connection: sqlite3.Connection
    calendar: Calendar
    chat_id: int
    search: Search

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """The time that is asked about, as far as a calendar reaches."""
        return _reachable(self.search.span)

    @property
    def fact_span(self) -> tuple[datetime, datetime] | None:
        return _reachable(self.search.fact_span)

    def count(self, query: str) -> int:
        return self.connection.execute(query, (self.chat_id,)).fetchone()[0]

    def best(self, field: Field, wanted: int) -> list[tuple[int, float]]:
        search = self.search
        return best(self.connection, field, search.terms, search.said_by, search.favoured, wanted)

    @property
    def few(self) -> int:
        """How many notes are wanted, and how many facts: of a few lines each says what many do."""
        return max(1, self.search.per_kind // 3)


def _reachable(
    span: tuple[datetime, datetime] | None,
) -> tuple[datetime, datetime] | None:
    if span is None:
        return None
    begin, end = (min(max(moment, _EARLIEST), _LATEST) for moment in span)
    return begin.astimezone(UTC), end.astimezone(UTC)


def _messages(where: _Where, last_seq: int, around: int) -> Iterator[Candidate]:
    search, span = where.search, where.span
    first, last = span_of(where.chat_id, "message", "message")
    lower, upper = 1, last_seq
    if span is not None:
        values = (where.chat_id, *map(_written, span))
        earliest, latest = where.connection.execute(_SEQS, values).fetchone()
        if earliest is None:
            return
        lower, upper = earliest, latest
    if search.before_seq is not None:
        upper = min(upper, search.before_seq - 1)
    if upper < lower:
        return
    field = Field(
        where.chat_id, "m", first, last, last_seq, first + lower, first + min(upper, LAST_REF)
    )
    # Where lines came in late, some between the two ends are of another time.
    scores = _message_scores(where, field, 2 * search.per_kind if span else search.per_kind)
    seqs = scores.keys() | _around(list(scores)[:_COMPANY], around)
    found = {
        seq: line
        for seq, line in _lines(where.connection, where.chat_id, seqs, scores).items()
        if lower <= seq <= upper and _allowed(line, search, span)
    }
    hits = [seq for seq in scores if seq in found][: search.per_kind]
    for seq in hits:
        yield found.pop(seq)
    for seq in sorted(_around(hits[:_COMPANY], around) & found.keys()):
        yield found[seq]


def _around(seqs: Iterable[int], around: int) -> set[int]:
    return {seq + step for seq in seqs for step in range(-around, around + 1)}


def _message_scores(where: _Where, field: Field, wanted: int) -> dict[int, float]:
    """Scores by seq, best first; of a search without terms the newest lines."""
    search = where.search
    if search.terms:
        return {id_ - field.first: score for id_, score in where.best(field, wanted)}
    if search.said_by:
        ids = newest(where.connection, field, search.said_by, wanted)
        return {id_ - field.first: 0.0 for id_ in ids}
    if where.span is None:
        return {}
    values = (where.chat_id, *map(_written, where.span), wanted)
    return {seq: 0.0 for (seq,) in where.connection.execute(_NEWEST_LINES, values)}


def _allowed(one: Candidate, search: Search, span: tuple[datetime, datetime] | None) -> bool:
    if search.said_by and one.user_id not in search.said_by:
        return False
    return span is None or span[0] <= one.time < span[1]


def _lines(
    connection: sqlite3.Connection,
    chat_id: int,
    seqs: Iterable[int],
    scores: Mapping[int, float],
) -> dict[int, Candidate]:
    """Messages by seq, in its order; one that is not in `scores` has a score of 0."""
    found: dict[int, Candidate] = {}
    for part in chunks(sorted(seq for seq in set(seqs) if 0 < seq <= LAST_REF)):
        query = f"{_LINES} AND seq IN ({_marks(part)})"
        for seq, time, text, user_id, name in connection.execute(query, (chat_id, *part)):
            moment = datetime.fromisoformat(time)
            score = scores.get(seq, 0.0)
            found[seq] = Candidate("message", seq, score, moment, text, user_id, name)
    return dict(sorted(found.items()))


def _notes(where: _Where, last_activity: int) -> list[Candidate]:
    span = where.span
    first, last = span_of(where.chat_id, "activity", "year")
    total = last_activity + where.count(_MEMORIES)
    only, values = ("", ()) if span is None else (_NOTES_WITHIN, _within(where, *span))
    field = Field(where.chat_id, "n", first, last, total, first, last, only, values)
    scores = _scores(where, field)
    by_kind: dict[str, list[int]] = {}
    for id_ in scores:
        kind, ref = kind_and_ref(id_)
        by_kind.setdefault("activity" if kind == "activity" else "memory", []).append(ref)
    found = {
        **_activities(where, by_kind.get("activity", []), scores),
        **_memories(where, by_kind.get("memory", []), scores),
    }
    return [found[id_] for id_ in scores if id_ in found]


def _scores(where: _Where, field: Field) -> dict[int, float]:
    """Scores of notes or facts by document, best first; without terms the newest."""
    search = where.search
    if not field.total:
        return {}
    if search.terms:
        return dict(where.best(field, where.few))
    if search.said_by:
        found = newest(where.connection, field, search.said_by, where.few)
    elif field.only:
        query = f"SELECT id FROM ({field.only}) ORDER BY id DESC LIMIT ?"
        rows = where.connection.execute(query, (*field.only_values, where.few))
        found = [id_ for (id_,) in rows]
    else:
        found = []
    return dict.fromkeys(found, 0.0)


def _within(where: _Where, begin: datetime, end: datetime) -> tuple[object, ...]:
    """Values for `_NOTES_WITHIN`."""
    calendar, chat_id = where.calendar, where.chat_id
    first, after = calendar.day_of(begin), calendar.day_of(end)
    whole = calendar.start_of(first) == begin
    last = calendar.day_of(end - timedelta(microseconds=1)) if end > begin else first
    a_day = timedelta(days=1)
    values: list[object] = [chat_id, (first - a_day).isoformat(), (after + a_day).isoformat()]
    values += [_written(begin), _written(end)]
    values += [chat_id, first.isoformat(), (last + a_day).isoformat()]
    for width, is_start in ((7, first.day == 1), (4, (first.month, first.day) == (1, 1))):
        begins = first.isoformat()[:width]
        # With something behind it the period itself is lower, and the next one is not.
        values += [
            chat_id,
            begins if whole and is_start else f"{begins}-",
            after.isoformat()[:width],
        ]
    return tuple(values)


def _activities(
    where: _Where, numbers: Sequence[int], scores: Mapping[int, float]
) -> dict[int, Candidate]:
    """By document; one that is not in `scores` has a score of 0."""
    found: dict[int, Candidate] = {}
    for number, text, owner, day, time in _rows(where, _ACTIVITIES, "number", numbers):
        moment = datetime.fromisoformat(time)
        id_ = document(where.chat_id, "activity", number)
        found[id_] = Candidate(
            "activity", number, scores.get(id_, 0.0), moment, text, user_id=owner, period=day
        )
    return found


def _memories(
    where: _Where, refs: Sequence[int], scores: Mapping[int, float]
) -> dict[int, Candidate]:
    found: dict[int, Candidate] = {}
    for ref, text, kind, period in _rows(where, _PERIODS, "id", refs):
        moment = last_moment(where.calendar, period)
        id_ = document(where.chat_id, kind, ref)
        found[id_] = Candidate(kind, ref, scores.get(id_, 0.0), moment, text, period=period)
    return found


def _facts(where: _Where) -> list[Candidate]:
    first, last = span_of(where.chat_id, "fact", "fact")
    span = where.fact_span
    only, values = (
        ("", ()) if span is None else (_FACTS_WITHIN, (where.chat_id, *map(_written, span)))
    )
    total = where.count(_FACTS)
    field = Field(where.chat_id, "f", first, last, total, first, last, only, values)
    scores = _scores(where, field)
    found = _known_facts(where, [id_ - first for id_ in scores], scores)
    return [found[id_] for id_ in scores if id_ in found]


def _known_facts(
    where: _Where, refs: Sequence[int], scores: Mapping[int, float]
) -> dict[int, Candidate]:
    first, _ = span_of(where.chat_id, "fact", "fact")
    found: dict[int, Candidate] = {}
    for ref, text, owner, name, category, at in _rows(where, _FACT_ROWS, "id", refs):
        moment, score = datetime.fromisoformat(at), scores.get(first + ref, 0.0)
        found[first + ref] = Candidate(
            "fact", ref, score, moment, text, owner or None, name, category
        )
    return found


def _rows(where: _Where, query: str, column: str, refs: Sequence[int]) -> Iterator[Any]:
    for part in chunks(refs):
        matching = f"{query} AND text <> '' AND {column} IN ({_marks(part)})"
        yield from where.connection.execute(matching, (where.chat_id, *part))


def last_moment(calendar: Calendar, period: str) -> datetime:
    """The last second of a day, month or year."""
    year, month, day = (int(part) for part in f"{period}-00-00".split("-")[:3])
    try:
        if day:
            after = date(year, month, day) + timedelta(days=1)
        else:
            after = date(year + month // 12, month % 12 + 1, 1) if month else date(year + 1, 1, 1)
        return calendar.start_of(after) - timedelta(seconds=1)
    except (ValueError, OverflowError):
        return _LATEST  # beyond what a calendar reaches


def _written(moment: datetime) -> str:
    """A moment as the columns of times have it."""
    return moment.isoformat(" ")


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
