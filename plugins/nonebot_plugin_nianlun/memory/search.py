"""What a search asks for and finds: plain values between the store, the ranking and the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

SearchKind: TypeAlias = Literal["message", "activity", "day", "month", "year", "fact"]


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for in one chat."""

    terms: tuple[str, ...]
    """Distinct index terms (see `terms.query_terms`); any of them may match."""
    said_by: tuple[str, ...] = ()
    """Only what these speakers said, by user id; empty means anybody."""
    favoured: tuple[str, ...] = ()
    """Speakers that count like a matching term: who asks, and who is named in the question."""
    span: tuple[datetime, datetime] | None = None
    """Only from the first moment until before the second, in UTC; of facts see `fact_span`."""
    fact_span: tuple[datetime, datetime] | None = None
    """The same of facts, by when they were written: what is true now has no other time."""
    before_seq: int | None = None
    """Only messages with a lower seq: the later ones stand in the history already."""
    per_kind: int = 60
    """Candidates wanted of messages, and of notes and of facts at most as many."""


class Candidate(NamedTuple):
    """Something stored that a search found. A tuple: hundreds are made for each reply."""

    kind: SearchKind
    ref: int
    """A message's seq, an activity's number, else the row's id."""
    score: float
    """BM25 within its kind in this chat; higher is better, 0 for a neighbour without a match."""
    time: datetime
    """A message's or an activity's own time, the last moment of a day, month or year; for a fact,
    when it was written."""
    text: str
    user_id: str | None = None
    """Who said it, or whose fact it is (`me`, a user id); None for notes and the chat's facts."""
    name: str | None = None
    """The name that was shown with a message; a fact's own name."""
    category: str | None = None
    """Of a fact."""
    period: str | None = None
    """`YYYY-MM-DD`, `YYYY-MM` or `YYYY` of an activity, day, month or year."""
    place: str = ""
    """Where it is from, when that is not the chat that asks: `群「摸鱼研究所」`."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One item of what came back."""

    kind: SearchKind
    address: str
    """`[category:name]` of a fact, `#12` of a message, `&3` of an activity, else its period;
    behind the place where it is from, when that is another chat: `群「摸鱼研究所」#12`."""
    text: str
    """The line as it stands before the model, address included."""
    content: str
    """The stored text alone."""
    user_id: str | None
    time: datetime
    score: float
    tokens: int
    """Estimated size of `text` with its line end."""
    ref: int = 0
    """As in `Candidate`."""


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What one text brought up, within limit and budget."""

    items: tuple[Recalled, ...] = ()
    """Best first; a fact reached by a link stands right after the fact that links to it."""
    text: str = ""
    """The lines of `items`."""
    budget_used: int = 0
    """Estimated tokens of `text`; never above the budget."""
    dropped: tuple[Recalled, ...] = ()
    """What was found and wanted but did not fit the budget, best first."""
    embedding_used: bool = False
    unresolved_links: tuple[str, ...] = ()
    """`category:name` of links in `items` to facts that do not exist."""
    widened: bool = False
    """Nothing was found in the time that was asked about, so a wider one was searched."""
