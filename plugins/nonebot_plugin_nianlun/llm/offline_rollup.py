"""Days, months and years without a model: the most telling sentences of the layer below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from ..errors import NoteRejected
from ..memory.calendar import Calendar
from ..memory.keymarks import find_key_messages, strip_key_marks
from ..memory.notes import check_note
from ..memory.relative_days import settled, without_relative_days
from ..memory.submissions import with_more
from ..memory.tasks import ids_shown
from ..memory.units import count_units
from ..types import KEY_MESSAGE_LIMITS, UNIT_LIMITS, Activity, Memory, MemoryKind, Note, RollupTask
from . import offline_telling as telling
from .offline_pieces import Piece, shorten, take_apart, themes, tighten, told_apart
from .words import distinct

_MOST_OF_ONE_SOURCE: dict[MemoryKind, int] = {"day": 4, "month": 3, "year": 4}
_LONGEST: dict[MemoryKind, int] = {"day": 100, "month": 36, "year": 28}
"""Units of a sentence that is taken over whole."""
_LONGEST_QUOTE: dict[MemoryKind, int] = {"month": 24, "year": 18}
_FEW_SOURCES = 4
_BUSY = 0.4
"""What a sentence of a day is worth more for each activity of that day."""
_VERY_BUSY = 8
_WAITING: dict[MemoryKind, float] = {"day": 2.0, "month": 1.0, "year": 3.0}
"""What each further piece of one source is worth less than the one before."""
_THEME = 0.7
"""What a piece is worth more for each word that runs through the whole period."""


def describe_task(task: RollupTask, place: str, calendar: Calendar) -> Note:
    """The complete new text of the task's target."""
    shown = ids_shown(task)
    for text in _drafts(task, shown, place, calendar):
        try:
            clean, keys = check_note(task.kind, text, shown)
        except NoteRejected:
            continue
        return Note(clean, keys, "offline")
    raise AssertionError("the plainest text always passes")


def _drafts(
    task: RollupTask, shown: Collection[int], place: str, calendar: Calendar
) -> Iterator[str]:
    kind = task.kind
    fresh = _citing(_fresh_pieces(task, place, calendar), shown)
    if kind != "day" and len(task.sources) > _FEW_SOURCES:
        fresh = told_apart(fresh)
    common = distinct(themes(fresh))[:5]
    fresh = [replace(p, extra=p.extra + _THEME * _shared(p, common)) for p in fresh]
    units, keys = UNIT_LIMITS[kind], KEY_MESSAGE_LIMITS[kind]
    target = None if task.rebuild else task.target
    kept: list[Piece] = []
    before = ""
    if target is not None and target.edited and target.text.strip():
        before = target.text.rstrip()
        units -= count_units(strip_key_marks(before))
        keys -= len(find_key_messages(before))
    elif target is not None:
        kept = _citing(_kept_pieces(target), shown)
    told = take_apart(before)
    fresh = [piece for piece in fresh if not _is_told(piece, told)]
    chosen = _select([*kept, *fresh], kind, units, keys)
    front = "" if kept or before else telling.front(kind, task.period, fresh)
    for pieces in _shrinking(chosen, kind):
        yield with_more(before, front + telling.tell(kind, pieces))
        yield with_more(before, telling.tell(kind, pieces))
    if before:
        yield before
    span = {"day": "这一天", "month": "这个月", "year": "这一年"}[kind]
    yield f"{span}没有留下可以摘录的话。"


def _is_told(piece: Piece, told: Sequence[Piece]) -> bool:
    """Whether a person's text says it already; the same words of other messages are more."""
    return any(
        piece.gist == old.gist and (not (piece.ids and old.ids) or set(piece.ids) & set(old.ids))
        for old in told
    )


def _citing(pieces: Iterable[Piece], shown: Collection[int]) -> list[Piece]:
    return [replace(p, ids=tuple(number for number in p.ids if number in shown)) for p in pieces]


def _shared(piece: Piece, common: Sequence[str]) -> int:
    return min(2, sum(word in piece.text for word in common))


def _shrinking(pieces: Sequence[Piece], kind: MemoryKind) -> Iterator[list[Piece]]:
    """The pieces, then without what leads in, then ever fewer, the least telling gone first."""
    left = list(pieces)
    for index in reversed([i for i, piece in enumerate(left) if piece.intro]):
        yield left
        left = [*left[:index], replace(left[index], intro=""), *left[index + 1 :]]
    while left:
        yield left
        left = left[:]
        left.remove(min(left, key=lambda piece: piece.weight(afar=kind != "day")))


def _kept_pieces(target: Memory) -> Iterator[Piece]:
    """What an incremental update continues; each sentence is a group of its own."""
    text = settled(target.text, target.kind, target.period)
    for index, piece in enumerate(take_apart(text, target.key_messages)):
        yield replace(piece, order=(0, index), group=-1 - index, kept=True)


def _fresh_pieces(task: RollupTask, place: str, calendar: Calendar) -> Iterator[Piece]:
    longest = _LONGEST[task.kind]
    for index, source in enumerate(task.sources, 1):
        if isinstance(source, Activity):
            pieces = _of_activity(source, place, calendar)
        else:
            pieces = _of_memory(source)
        for number, piece in enumerate(pieces):
            short = shorten(piece, longest, afar=task.kind != "day")
            if task.kind != "day":
                short = tighten(short, _LONGEST_QUOTE[task.kind])
            yield replace(short, order=(index, number), group=index)


def _of_activity(activity: Activity, place: str, calendar: Calendar) -> list[Piece]:
    text = without_relative_days(activity.text, date.fromisoformat(activity.date))
    pieces = take_apart(text, activity.key_messages)
    part = telling.part_of_day(text) or calendar.clock_words(activity.time)[:2]
    return telling.led_in([replace(piece, lead=part) for piece in pieces], place)


def _of_memory(memory: Memory) -> list[Piece]:
    text = settled(memory.text, memory.kind, memory.period)
    pieces = telling.dated(take_apart(text, memory.key_messages), memory.kind, memory.period)
    if memory.kind == "month":
        return pieces
    # A day of many talks matters more from afar.
    busy = _BUSY * min(len(memory.sources), _VERY_BUSY)
    return [replace(piece, extra=piece.extra + busy) for piece in pieces]


def _select(pieces: Sequence[Piece], kind: MemoryKind, units: int, keys: int) -> list[Piece]:
    """The most telling pieces that fit, as far as units and key messages go, in their order."""
    chosen: list[Piece] = []
    used: set[int] = set()
    said: Counter[str] = Counter()
    crowded = len({piece.group for piece in pieces}) > _FEW_SOURCES
    for piece in _by_turns(pieces, kind):
        ids = tuple(dict.fromkeys(piece.ids))
        heard = any(piece.group == other.group for other in chosen)
        if piece.units > units or said[piece.gist]:
            continue
        if crowded and heard and piece.weight(afar=kind != "day") <= 0:
            continue
        if len(used.union(ids)) > keys:
            # A quote is not kept without the message that it can be checked against.
            if piece.quotes:
                continue
            ids = tuple(number for number in ids if number in used)
        units -= piece.units
        used.update(ids)
        said[piece.gist] += 1
        chosen.append(replace(piece, ids=ids))
    return sorted(chosen, key=lambda piece: piece.order)


def _by_turns(pieces: Sequence[Piece], kind: MemoryKind) -> list[Piece]:
    """The best first; each further piece of one source waits behind better ones of others."""
    groups: dict[int, list[tuple[float, Piece]]] = {}
    for piece in pieces:
        groups.setdefault(piece.group, []).append((piece.weight(afar=kind != "day"), piece))
    turns: list[tuple[float, Piece]] = []
    for group in groups.values():
        ranked = sorted(group, key=lambda item: -item[0])[: _MOST_OF_ONE_SOURCE[kind]]
        turns += [
            (turn * _WAITING[kind] - weight, piece) for turn, (weight, piece) in enumerate(ranked)
        ]
    return [piece for _, piece in sorted(turns, key=lambda turn: turn[0])]
