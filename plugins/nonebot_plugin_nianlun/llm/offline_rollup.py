"""Days, months and years without a model: the most telling sentences of the layer below."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
import re

from ..errors import NoteRejected
from ..memory.calendar import Calendar
from ..memory.keymarks import find_key_messages, key_mark, strip_key_marks
from ..memory.notes import check_note
from ..memory.tasks import ids_shown
from ..memory.units import count_units
from ..types import KEY_MESSAGE_LIMITS, UNIT_LIMITS, Activity, Memory, MemoryKind, Note, RollupTask
from .offline_pieces import Piece, shorten, take_apart
from .relative_days import without_relative_days, without_relative_days_in

_PARTS = "凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|深夜|半夜"
_PART = re.compile(_PARTS)
_CLOCK_LEAD = re.compile(rf"^从?({_PARTS})[^，。「」]{{0,14}}，")
_DAY_LEAD = re.compile(rf"^(\d{{1,2}})日(?:{_PARTS})?")
_MONTH_LEAD = re.compile(r"^(\d{1,2})月")
_MOST_OF_ONE_SOURCE: dict[MemoryKind, int] = {"day": 4, "month": 2, "year": 3}
_ITEMS_A_SENTENCE = 3
_FEW_SOURCES = 4
_INTRODUCTION = 5.0
_INTRODUCING = 1_000_000
"""A group of its own: the introduction takes no turn from the activity that it opens."""
_WAITING = 2.0


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
    fresh = _citing(_fresh_pieces(task, calendar), shown)
    units, keys = UNIT_LIMITS[task.kind], KEY_MESSAGE_LIMITS[task.kind]
    target = None if task.rebuild else task.target
    if target is not None and target.edited and target.text.strip():
        units_left = units - count_units(strip_key_marks(target.text))
        added = _select(fresh, task.kind, units_left, keys - len(find_key_messages(target.text)))
        yield from (target.text.rstrip() + text for text in _shrinking(added, task.kind, place))
        yield target.text
    kept = _citing(_kept_pieces(target), shown) if target else []
    yield from _shrinking(_select([*kept, *fresh], task.kind, units, keys), task.kind, place)
    source = {"day": "段往来", "month": "天", "year": "个月"}[task.kind]
    yield f"有{len(task.sources)}{source}没有留下可以摘录的话。"


def _citing(pieces: Iterable[Piece], shown: Collection[int]) -> list[Piece]:
    return [replace(p, ids=tuple(number for number in p.ids if number in shown)) for p in pieces]


def _shrinking(pieces: Sequence[Piece], kind: MemoryKind, place: str) -> Iterator[str]:
    """The pieces put together, then with ever fewer of them, the least telling gone first."""
    left = list(pieces)
    while left:
        yield _put_together(left, kind, place)
        left.remove(min(left, key=lambda piece: piece.weight))


def _kept_pieces(target: Memory) -> Iterator[Piece]:
    """What an incremental update continues; each sentence is a group of its own."""
    text = target.text if target.edited else _settled(target.text, target.kind, target.period)
    lead = {"day": None, "month": _DAY_LEAD, "year": _MONTH_LEAD}[target.kind]
    place = 0
    for index, piece in enumerate(take_apart(text, target.key_messages)):
        if lead and (found := lead.match(piece.text)):
            place = int(found[1])
        yield replace(piece, order=(place, index), group=-1 - index)


def _fresh_pieces(task: RollupTask, calendar: Calendar) -> Iterator[Piece]:
    cap = max(24, UNIT_LIMITS[task.kind] // max(1, len(task.sources)))
    for index, source in enumerate(task.sources):
        if isinstance(source, Activity):
            pieces = _introduced(_of_activity(source, index, calendar), index)
            cap = 120
        else:
            pieces = _of_memory(source)
        for number, piece in enumerate(pieces):
            place = piece.order[0]
            # Past the sentences that are kept of the same day or month.
            yield replace(shorten(piece, cap), order=(place, 1000 + number))


def _introduced(pieces: list[Piece], index: int) -> list[Piece]:
    """Only the first activity of a day says at length where and among whom it was."""
    if index == 0 and pieces:
        weight = max(pieces[0].weight, _INTRODUCTION)
        pieces[0] = replace(pieces[0], weight=weight, group=_INTRODUCING)
    return pieces


def _of_activity(activity: Activity, index: int, calendar: Calendar) -> list[Piece]:
    text = without_relative_days(activity.text, date.fromisoformat(activity.date))
    found = _PART.search(strip_key_marks(text).split("「", 1)[0])
    lead = found[0] if found else calendar.clock_words(activity.time)[:2]
    pieces = take_apart(text, activity.key_messages)
    return [replace(piece, lead=lead, order=(index + 1, 0), group=index) for piece in pieces]


def _of_memory(memory: Memory) -> list[Piece]:
    text = _settled(memory.text, memory.kind, memory.period)
    numbers = [int(part) for part in memory.period.split("-")]
    pieces, day = [], ""
    for piece in take_apart(text, memory.key_messages):
        if memory.kind == "day":
            clock = _CLOCK_LEAD.match(piece.text)
            lead = f"{numbers[2]}日{clock[1] if clock else ''}"
            rest = piece.text[clock.end() :] if clock else piece.text
        else:
            found = _DAY_LEAD.match(piece.text)
            day = found[0] if found else day
            lead = f"{numbers[1]}月{day}"
            rest = piece.text[found.end() :].lstrip("，") if found else piece.text
        if count_units(rest):
            group = numbers[-1]
            pieces.append(replace(piece, text=rest, lead=lead, order=(group, 0), group=group))
    return pieces


def _settled(text: str, kind: MemoryKind, period: str) -> str:
    if kind == "day":
        return without_relative_days(text, date.fromisoformat(period))
    year, _, month = period.partition("-")
    return without_relative_days_in(text, date(int(year), int(month or 1), 1))


def _select(pieces: Sequence[Piece], kind: MemoryKind, units: int, keys: int) -> list[Piece]:
    """The most telling pieces that fit, as far as units and key messages go, in their order."""
    chosen: list[Piece] = []
    used: set[int] = set()
    crowded = len({piece.group for piece in pieces}) > _FEW_SOURCES
    for piece in _by_turns(pieces, _MOST_OF_ONE_SOURCE[kind]):
        ids = tuple(dict.fromkeys(piece.ids))
        heard = any(piece.group == other.group for other in chosen)
        if piece.units > units or any(piece.gist == other.gist for other in chosen):
            continue
        if crowded and heard and piece.weight <= 0:
            continue
        if len(used.union(ids)) > keys:
            # A quote is not kept without the message that it can be checked against.
            if piece.quotes:
                continue
            ids = tuple(number for number in ids if number in used)
        units -= piece.units
        used.update(ids)
        chosen.append(replace(piece, ids=ids))
    return sorted(chosen, key=lambda piece: piece.order)


def _by_turns(pieces: Sequence[Piece], most: int) -> list[Piece]:
    """The best first; each further piece of one source waits behind better ones of others."""
    groups: dict[int, list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.group, []).append(piece)
    turns: list[tuple[float, Piece]] = []
    for group in groups.values():
        ranked = sorted(group, key=lambda piece: -piece.weight)[:most]
        turns += [(turn * _WAITING - piece.weight, piece) for turn, piece in enumerate(ranked)]
    return [piece for _, piece in sorted(turns, key=lambda turn: turn[0])]


def _put_together(pieces: Iterable[Piece], kind: MemoryKind, place: str) -> str:
    text, lead, items, cited = "", "", 0, set[int]()
    for piece in pieces:
        words = piece.text.replace(f"在{place}", "") if f"在{place}" in text else piece.text
        known = piece.lead == lead or piece.lead in words.split("「", 1)[0]
        lead = piece.lead
        front = "" if known else f"{lead}，"
        mark = key_mark([number for number in piece.ids if number not in cited])
        cited.update(piece.ids)
        if kind == "day":
            text += front + _closed(words) + mark
            continue
        # A time line: a few items to a sentence, none of which begins without its date.
        ends = items >= _ITEMS_A_SENTENCE and bool(front)
        items = 1 if ends else items + 1
        text += ("。" if ends else "；" if text else "") + front + words.rstrip("。！？!?；") + mark
    return text if kind == "day" else text + "。"


def _closed(sentence: str) -> str:
    return sentence if sentence[-1:] in "！？!?…" else sentence + "。"
