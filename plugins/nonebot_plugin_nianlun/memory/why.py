"""Why a note says what it says: its most telling passages, each with what it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ..types import Activity, Memory, Message, is_edited
from .edits import brought_back
from .evidence import quoted_spans
from .keymarks import find_key_messages
from .provenance import Held, Trace, passages, trace

MOST_PASSAGES = 5


class Text(NamedTuple):
    """One version of a note."""

    text: str
    writer: str
    written_at: datetime
    version: int


class Edit(NamedTuple):
    """That a person wrote a note."""

    by: str
    """Their user id."""
    at: datetime
    continued: bool
    """Something was added to it since."""
    again: int | None = None
    """The earlier version that they brought back."""


@dataclass(frozen=True, slots=True)
class Why:
    """What a note rests on."""

    told: tuple[Trace, ...]
    """The most telling passages, at most `MOST_PASSAGES`, as they follow each other."""
    more: int
    """Passages that cite something beyond these."""
    uncited: int
    """Sentences that cite no message."""


@dataclass(frozen=True, slots=True)
class FactWhy:
    """What a fact rests on."""

    owner: str
    """A user id, `me`, or empty for the chat."""
    category: str
    name: str
    text: str
    written_at: datetime
    due: str | None
    source: Message | None
    """None where a program wrote it."""
    journal: tuple[tuple[str, datetime], ...]
    """What it said before, and since when, newest first; empty while it was removed."""


def explain(held: Held, note: Memory | Activity, theirs: str = "") -> Why:
    """Follow the sentences of a note down to messages. `held`: at least what it was made of.

    `theirs`: what in its text a person wrote, which a mark behind other words does not support.
    """
    *before, last = _pieces(note.text, theirs.strip())
    named = find_key_messages("".join(before))
    left = [seq for seq in note.key_messages if seq not in named]
    parts = [part for piece in before for part in passages(piece)] + passages(last, left)
    traces = [trace(held, note, part) for part in parts if part.key_messages]
    ranked = sorted(range(len(traces)), key=lambda place: _telling(traces[place]), reverse=True)
    told = tuple(traces[place] for place in sorted(ranked[:MOST_PASSAGES]))
    return Why(told, len(traces) - len(told), len(parts) - len(traces))


def _pieces(text: str, theirs: str) -> list[str]:
    """What stands before a person's words, these, and what stands behind them; at least one."""
    if not theirs or theirs not in text:
        return [text]
    before, own, after = text.partition(theirs)
    # A full stop behind the words was put there to end them.
    return [piece for piece in (before, own, after.lstrip("。 \n")) if piece.strip()]


def _telling(found: Trace) -> tuple[bool, bool, int]:
    """Those that lead all the way down come first, and of these the ones that quote somebody."""
    text = found.sentence.text
    return found.complete, bool(quoted_spans(text)), len(found.reached)


def edit_of(now: Text, earlier: Sequence[Text], *, grows: bool = True) -> Edit | None:
    """Who wrote a note and when, if it was a person. `earlier`: its versions, oldest first.

    What was added since by a writer stands in a version of the same person's that holds their
    words; to a note that does not grow, as an activity, nothing is added.
    """
    if not is_edited(now.writer):
        return None
    first = written_first(now, earlier if grows else ())
    before = [(old.version, old.text) for old in earlier if old.version < first.version]
    again = brought_back(first.text, first.writer, before)
    return Edit(now.writer, first.written_at, first.text.strip() != now.text.strip(), again)


def written_first(now: Text, earlier: Sequence[Text]) -> Text:
    """The version of a person's note that holds their words alone. `earlier`: oldest first."""
    first = now
    for old in reversed(earlier):
        if old.writer != now.writer or not old.text or old.text.strip() not in first.text:
            break
        first = old
    return first
