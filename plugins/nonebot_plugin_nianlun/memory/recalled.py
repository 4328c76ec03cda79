"""What a recall puts before the model: one line an item, whole, within a limit and a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..types import ME
from .calendar import Calendar, titled
from .render import display_names, one_line, safe_name
from .search import Candidate, Recalled
from .tokens import cut_to_tokens, estimate_tokens

_CUT = "……"
_LARGEST_SHARE = 2
"""No single item takes more than one part in so many of the budget; what is longer is cut."""
# The same long notes come back again and again.
_cut = lru_cache(256)(cut_to_tokens)
_SOMEBODY = "有人"
_NOTE = "笔记"


@dataclass(frozen=True, slots=True)
class Look:
    """How items of this chat read."""

    calendar: Calendar
    names: Mapping[str, str]
    """Today's name of each speaker, by user id; others are shown by their name at the time."""
    me: str
    """What the bot's own lines are called."""
    asker: str | None
    """Whose facts need no owner's name."""
    this_year: int | None = None
    """The year that a day and its time stand without, where whoever reads it knows it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    items: tuple[Recalled, ...]
    dropped: tuple[Recalled, ...]
    used: int
    """Estimated tokens of all lines of `items`."""


def choose(
    found: Iterable[Candidate],
    linked: Mapping[int, Sequence[Candidate]],
    look: Look,
    limit: int,
    budget: int,
) -> Chosen:
    """The best `limit` items that fit into `budget` tokens, in the order they were found.

    `linked` has the facts that a fact (by its row id) links to; they stand right behind it, once,
    and count for the budget only. An item that does not fit is dropped whole and smaller ones
    behind it still get their chance; only one larger than half of the budget is cut, at the end
    of a sentence.
    """
    items: list[Recalled] = []
    dropped: list[Recalled] = []
    seen: set[tuple[str, str, int]] = set()
    left, hits = budget, 0
    for hit in found:
        if hits == limit:
            break
        if _identity(hit) in seen:
            continue
        hits += 1
        for candidate in (hit, *(linked.get(hit.ref, ()) if hit.kind == "fact" else ())):
            if _identity(candidate) in seen:
                continue
            seen.add(_identity(candidate))
            item = _item(candidate, look, budget // _LARGEST_SHARE)
            if item.tokens > left:
                dropped.append(item)
                continue
            left -= item.tokens
            items.append(item)
    return Chosen(tuple(items), tuple(dropped), budget - left if budget > 0 else 0)


def _identity(candidate: Candidate) -> tuple[str, str, int]:
    return candidate.place, candidate.kind, candidate.ref


def _item(candidate: Candidate, look: Look, largest: int) -> Recalled:
    address = address_of(candidate)
    frame = _frame(candidate, look)
    body = one_line(candidate.text)
    line = frame + body
    if estimate_tokens(line) + 1 > largest:
        room = largest - estimate_tokens(frame) - estimate_tokens(_CUT) - 1
        line = frame + _cut(body, room) + _CUT
    return Recalled(
        kind=candidate.kind,
        address=address,
        text=line,
        content=candidate.text,
        user_id=candidate.user_id,
        time=candidate.time,
        score=candidate.score,
        tokens=estimate_tokens(line) + 1,
        ref=candidate.ref,
    )


def address_of(candidate: Candidate) -> str:
    """What a person or the model calls the item by."""
    return candidate.place + _address_there(candidate)


def _address_there(candidate: Candidate) -> str:
    if candidate.kind == "message":
        return f"#{candidate.ref}"
    if candidate.kind == "activity":
        return f"&{candidate.ref}"
    if candidate.kind != "fact":
        return candidate.period or ""
    parts = [part for part in (candidate.category, candidate.name) if part]
    return f"[{one_line(':'.join(parts)) or _NOTE}]"


def _frame(candidate: Candidate, look: Look) -> str:
    """All of the line but the stored text."""
    address = _address_there(candidate)
    if candidate.kind == "day":
        address = titled(address)
    if candidate.place:
        # Numbers are counted in each chat anew, and there is nothing to be called by this one here.
        address = f"在{candidate.place}（那里的 {address}）"
    local = look.calendar.local(candidate.time).replace(tzinfo=None)
    minute = local.isoformat(" ", "minutes")
    if local.year == look.this_year:
        minute = minute.partition("-")[2]
    if candidate.kind == "message":
        return f"- {address} {minute} {_speaker(candidate, look)}："
    if candidate.kind == "activity":
        return f"- {address} {minute} 前后："
    if candidate.kind != "fact":
        return f"- {address}："
    owner = "" if candidate.user_id in (None, look.asker) else f"（{_speaker(candidate, look)}）"
    return f"- {address}{owner} "


def _speaker(candidate: Candidate, look: Look) -> str:
    if candidate.user_id == ME:
        return look.me
    user_id = candidate.user_id or ""
    if user_id in look.names:
        return look.names[user_id]
    shown = candidate.name if candidate.kind == "message" else None
    return safe_name(shown) if shown else _SOMEBODY


def shown_names(names: Mapping[str, str], me: str) -> dict[str, str]:
    """Names to show, no two alike and none that passes for the bot's own."""
    return {
        user_id: f"{name}（别人）" if name == me else name
        for user_id, name in display_names(names).items()
        if user_id != ME
    }
