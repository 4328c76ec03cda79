"""Why a note says what it says: its most telling passages, each with what it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ..types import Activity, Memory, Message, is_edited
from .edits import brought_back
from .evidence import quoted_spans
from .provenance import Held, Trace, parted, passages, trace

MOST_PASSAGES = 5


class Text(NamedTuple):
    """One version of a note."""

    text: str
    writer: str
    written_at: datetime
    version: int
    sources: frozenset[str] = frozenset()
    written: bool = False
    """What it cost to be written is on record, which it is not of what a person typed."""


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
    writer: str | None
    """Who has changed by hand what it was at first, if somebody did."""
    journal: tuple[tuple[str, datetime], ...]
    """What it said before, and since when, newest first; empty while it was removed."""


def explain(held: Held, note: Memory | Activity) -> Why:
    """Follow the sentences of a note down to messages. `held`: at least what it was made of."""
    parts = [part for text, left in parted(held, note) for part in passages(text, left)]
    traces = [trace(held, note, part) for part in parts if part.key_messages]
    ranked = sorted(range(len(traces)), key=lambda place: _telling(traces[place]), reverse=True)
    told = tuple(traces[place] for place in sorted(ranked[:MOST_PASSAGES]))
    return Why(told, len(traces) - len(told), len(parts) - len(traces))


def _telling(found: Trace) -> tuple[bool, bool, int]:
    """Those that lead all the way down come first, and of these the ones that quote somebody."""
    text = found.sentence.text
    return found.complete, bool(quoted_spans(text)), len(found.reached)


def edit_of(now: Text, earlier: Sequence[Text], *, grows: bool = True) -> Edit | None:
    """Who wrote a note and when, if it was a person; None of a text that is gone as well, which
    would tell what they did. `earlier`: its versions, oldest first.

    To a note that does not grow, as an activity, no writer adds anything.
    """
    if not (now.text and is_edited(now.writer)):
        return None
    first = written_first(now, earlier if grows else ())
    before = [(old.version, old.text) for old in earlier if old.version < first.version]
    again = brought_back(first.text, first.writer, before)
    return Edit(now.writer, first.written_at, first.text.strip() != now.text.strip(), again)


def written_first(now: Text, earlier: Sequence[Text]) -> Text:
    """The version of a person's note that holds their words alone. `earlier`: oldest first."""
    first = now
    for old in reversed(earlier):
        if not _added_to(old, first):
            break
        first = old
    return first


def _added_to(old: Text, new: Text) -> bool:
    """Whether a writer made a text by adding to a person's, which stays that person's.

    Somebody may as well type their earlier words and more: that takes no source in, and costs
    nothing.
    """
    if old.writer != new.writer or not old.text or old.text.strip() not in new.text:
        return False
    return new.written or not new.sources <= old.sources
