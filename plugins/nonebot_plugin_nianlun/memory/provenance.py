"""Where each sentence of a memory comes from: down through the layers to the messages it cites.

A mark stands behind the sentence, or the group of sentences, that it supports. What a quote
holds is what somebody said: nothing in it ends a sentence, and no mark in it cites anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
import re
from typing import Literal, TypeAlias

from ..types import Activity, Memory, MemoryKind, Message, NoteKind
from .calendar import Calendar
from .evidence import QUOTE, quoted_spans, unsupported
from .keymarks import find_key_messages, key_mark_spans

_Sort: TypeAlias = Literal["words", "end", "mark"]

_TOKEN = re.compile(
    rf"(?P<end>[。！？!?；\n]+…*)|{QUOTE}|『[^『』]*+』|“[^“”]*+”|[^。！？!?；\n「『“（(]+|.",
    re.DOTALL,
)
UNTOLD = "（同一段里的其他话）"
"""What stands for an activity whose text cites no message that a sentence above it does."""
_RUN = 2
"""Characters: a word of most scripts without blanks."""
_LONGEST_PIECE = 120
"""Characters of sentences of one mark that are taken together."""
_CLOSING = re.compile(r"[ \t]*[。！？!?；，、…\n]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it stands, with the blanks around it and without its mark."""

    text: str
    key_messages: tuple[int, ...]
    """What it cites, or the group of sentences that it is in; empty where there is no mark."""


@dataclass(frozen=True, slots=True)
class Held:
    """What one chat's memory holds, as far as a trace may need it."""

    memories: Mapping[tuple[MemoryKind, str], Memory]
    activities: Mapping[int, Activity]
    messages: Mapping[int, Message]
    """By `seq`; withdrawn ones are not among them."""
    theirs: Mapping[tuple[MemoryKind, str], str] = field(default_factory=dict)
    """What a person wrote in the text of a memory, which a mark behind other words does not
    support; of those that no person wrote nothing."""

    @property
    def notes(self) -> list[Memory | Activity]:
        return [*self.memories.values(), *self.activities.values()]


@dataclass(frozen=True, slots=True)
class Trace:
    """A sentence of one note, and what it was made of."""

    kind: NoteKind
    ref: str
    """The period, or the number of an activity."""
    sentence: Sentence
    below: tuple[Trace, ...]
    """What one layer down shares a cited message with it, of each group of sentences those that
    tell the words of these messages; none of an activity. A cited message that no sentence there
    shares is in one whose text is empty: of the note that was made from it."""
    messages: tuple[Message, ...]
    """Of an activity: the cited messages, which lie in its window."""
    apart: tuple[Message, ...] = ()
    """Cited messages that are there, but that nothing below was made from."""

    @property
    def reached(self) -> frozenset[int]:
        """The `seq` of every message in which the trace ends."""
        own = frozenset(message.seq for message in self.messages)
        return own.union(*(trace.reached for trace in self.below))

    @property
    def shown(self) -> frozenset[int]:
        """The `seq` of every message anywhere in the trace, those in which none ends as well."""
        apart = frozenset(message.seq for message in self.apart)
        return self.reached.union(apart, *(trace.shown for trace in self.below))

    @property
    def gone(self) -> tuple[int, ...]:
        """What the sentence cites that is not there any more."""
        shown = self.shown
        return tuple(seq for seq in self.sentence.key_messages if seq not in shown)

    @property
    def complete(self) -> bool:
        """Whether the sentence cites something, and all of it was found layer by layer."""
        cited = frozenset(self.sentence.key_messages)
        return bool(cited) and cited <= self.reached


@dataclass(frozen=True, slots=True)
class Check:
    """How far all notes of a chat are borne out by its messages."""

    sentences: int = 0
    uncited: int = 0
    """Sentences that cite no message."""
    traced: int = 0
    """Sentences all of whose cited messages were found layer by layer."""
    quotes: int = 0
    verbatim: int = 0
    """Quotes that stand in a message in which the trace of their sentence ends."""
    claims: tuple[str, ...] = ()
    """Quotes and numbers that stand in none, as they read."""


def check(held: Held, calendar: Calendar, known: Sequence[str] = ()) -> Check:
    """Follow every sentence of every note; `known` are names that no message need hold."""
    found = [
        _check_one(trace(held, note, part), held, calendar, known)
        for note in held.notes
        for part in sentences(note.text, note.key_messages)
    ]
    return Check(
        sentences=len(found),
        uncited=sum(one.uncited for one in found),
        traced=sum(one.traced for one in found),
        quotes=sum(one.quotes for one in found),
        verbatim=sum(one.verbatim for one in found),
        claims=tuple(claim for one in found for claim in one.claims),
    )


def _check_one(found: Trace, held: Held, calendar: Calendar, known: Sequence[str]) -> Check:
    text = found.sentence.text
    quotes = len(quoted_spans(text))
    messages = [held.messages[seq] for seq in sorted(found.reached)]
    claims = unsupported(text, messages, calendar, known)
    return Check(
        sentences=1,
        uncited=not found.sentence.key_messages,
        traced=found.complete,
        quotes=quotes,
        verbatim=quotes - sum(claim.startswith("「") for claim in claims),
        claims=tuple(claims),
    )


def sentences(text: str, key_messages: Sequence[int] = ()) -> list[Sentence]:
    """`text` cut into sentences; joined they are `text` without its marks.

    Key messages that no mark names go to what stands behind the last mark.
    """
    cut = _Cut()
    for sort, part in _tokens(text):
        if sort == "mark":
            cut.mark(find_key_messages(part))
        else:
            cut.add(part, ends=sort == "end")
    return cut.finish(key_messages)


def passages(text: str, key_messages: Sequence[int] = ()) -> list[Sentence]:
    """The same with sentences in a row that cite the same messages in one piece."""
    joined: list[Sentence] = []
    for part in sentences(text, key_messages):
        if part.key_messages and joined and joined[-1].key_messages == part.key_messages:
            part = replace(part, text=joined.pop().text + part.text)
        joined.append(part)
    return joined


def parted(held: Held, note: Memory | Activity) -> list[tuple[str, tuple[int, ...]]]:
    """A note's text in the pieces before, in and behind what a person wrote, at least one; the
    last with the key messages that those before do not name."""
    theirs = "" if isinstance(note, Activity) else held.theirs.get((note.kind, note.period), "")
    *before, last = _pieces(note.text, theirs.strip())
    named = find_key_messages("".join(before))
    left = tuple(seq for seq in note.key_messages if seq not in named)
    return [*((piece, ()) for piece in before), (last, left)]


def _pieces(text: str, theirs: str) -> list[str]:
    if not theirs or theirs not in text:
        return [text]
    before, own, after = text.partition(theirs)
    # A line break behind the words, or a full stop, was put there with what was added.
    return [piece for piece in (before, own, after.lstrip("。 \n")) if piece.strip()]


def trace(held: Held, note: Memory | Activity, sentence: Sentence) -> Trace:
    """Follow a sentence of `note` down to messages."""
    wanted = frozenset(sentence.key_messages)
    if isinstance(note, Activity):
        window = (held.messages[n] for n in sorted(wanted & held.messages.keys()))
        inside = tuple(m for m in window if _covers(note, m.seq))
        return Trace("activity", str(note.number), sentence, (), inside)
    below = [
        [trace(held, source, part) for part in _sharing(held, source, sentence)]
        for source in _sources(held, note)
    ]
    shown = frozenset[int]().union(*(part.shown for parts in below for part in parts))
    left = sorted((wanted & held.messages.keys()) - shown)
    for source, parts in zip(_sources(held, note), below, strict=True):
        if inside := [seq for seq in left if _made_from(held, source, seq)]:
            parts.append(trace(held, source, Sentence("", tuple(inside))))
            left = [seq for seq in left if seq not in inside]
    apart = tuple(held.messages[seq] for seq in left)
    leading = tuple(part for parts in below for part in parts)
    return Trace(note.kind, note.period, sentence, leading, (), apart)


def _made_from(held: Held, note: Memory | Activity, seq: int) -> bool:
    """Whether a note was made from a message, cited or not."""
    if isinstance(note, Activity):
        return _covers(note, seq)
    return any(_made_from(held, source, seq) for source in _sources(held, note))


def _sources(held: Held, note: Memory) -> list[Activity] | list[Memory]:
    """In order of time, however they came in."""
    if note.kind == "day":
        activities = (held.activities.get(int(ref)) for ref in note.sources)
        return sorted(filter(None, activities), key=lambda one: (one.time, one.number))
    kind: MemoryKind = "day" if note.kind == "month" else "month"
    memories = (held.memories.get((kind, ref)) for ref in note.sources)
    return sorted(filter(None, memories), key=lambda one: one.period)


def kinship(text: str, other: str) -> int:
    """How near two texts are in wording: how many runs of two letters both have."""
    return len(_runs(text) & _runs(other))


def _runs(text: str) -> set[str]:
    runs = (text[i : i + _RUN] for i in range(len(text) - _RUN + 1))
    return {run for run in runs if run.isalnum()}


def _sharing(held: Held, note: Memory | Activity, sentence: Sentence) -> Iterator[Sentence]:
    """What `note` says that cites any message of `sentence`, each with only these."""
    groups: dict[tuple[int, ...], list[list[str]]] = {}
    for text, left in parted(held, note):
        for cited, run in groupby(sentences(text, left), key=lambda part: part.key_messages):
            shared = tuple(n for n in cited if n in sentence.key_messages)
            if shared:
                groups.setdefault(shared, []).append([part.text for part in run])
    for shared, runs in groups.items():
        words = [held.messages[n].text for n in shared if n in held.messages]
        yield Sentence(_telling(runs, sentence.text, words), shared)


def _telling(runs: Sequence[Sequence[str]], above: str, words: Sequence[str]) -> str:
    """Of runs of sentences, each of one mark, what tells these words and stands behind `above`.

    That is the one sentence nearest to them, or a piece of its run that holds for each message and
    each sentence of `above` the one nearest to it, when that piece is short.
    """
    for run in runs:
        if (whole := "".join(run)).strip() == above.strip():
            return whole

    def worth(text: str) -> tuple[int, int]:
        told = sum(kinship(word, text) + (word in text) for word in words)
        return told, kinship(above, text)

    run = max(runs, key=lambda run: max(map(worth, run)))
    best = max(range(len(run)), key=lambda place: worth(run[place]))
    places = {best}
    for sought in (*words, *(part.text for part in sentences(above))):
        near = [kinship(sought, text) for text in run]
        if max(near):
            places.add(near.index(max(near)))
    piece = "".join(run[min(places) : max(places) + 1])
    return piece if len(piece.strip()) <= _LONGEST_PIECE else run[best]


def _covers(activity: Activity, seq: int) -> bool:
    return any(first <= seq <= last for first, last in activity.ranges)


def _tokens(text: str) -> Iterator[tuple[_Sort, str]]:
    marks = dict(key_mark_spans(text))
    place = 0
    while place < len(text):
        sort: _Sort = "words"
        if place in marks:
            sort, end = "mark", marks[place]
        else:
            found = _TOKEN.match(text, place)
            end = found.end() if found else place + 1
            if found and found["end"]:
                sort = "end"
        yield sort, text[place:end]
        place = end


@dataclass(slots=True)
class _Group:
    """Sentences that one mark supports."""

    texts: list[str] = field(default_factory=list)
    ids: tuple[int, ...] = ()


@dataclass(slots=True)
class _Cut:
    """Puts tokens together into sentences, and sentences into groups."""

    closed: list[_Group] = field(default_factory=list)
    group: _Group = field(default_factory=_Group)
    words: str = ""
    tells: bool = False
    """Whether the words are more than blanks and signs, which are no sentence of their own."""

    def add(self, words: str, *, ends: bool) -> None:
        fresh = not self.words and not self.group.texts
        if fresh and self.closed and (found := _CLOSING.match(words)):
            # The full stop behind a mark belongs to what stands before it.
            self.closed[-1].texts[-1] += found[0]
            words = words[found.end() :]
        self.words += words
        self.tells = self.tells or any(char.isalnum() for char in words)
        if ends:
            self._end()

    def mark(self, ids: tuple[int, ...]) -> None:
        self._end()
        if self.group.texts:
            self.closed.append(_Group(self.group.texts, (*self.group.ids, *ids)))
            self.group = _Group()
        elif self.closed:
            self.closed[-1].ids += ids
        else:
            self.group.ids += ids

    def finish(self, key_messages: Sequence[int]) -> list[Sentence]:
        self._end()
        last = self.group
        named = {number for group in (*self.closed, last) for number in group.ids}
        last.ids += tuple(number for number in key_messages if number not in named)
        if self.words:
            owner = last if last.texts or not self.closed else self.closed[-1]
            owner.texts = [*owner.texts[:-1], "".join(owner.texts[-1:]) + self.words]
        if not last.texts and self.closed:
            self.closed[-1].ids += last.ids
        return [
            Sentence(text, tuple(dict.fromkeys(group.ids)))
            for group in (*self.closed, last)
            for text in group.texts
        ]

    def _end(self) -> None:
        if self.tells:
            self.group.texts.append(self.words)
            self.words, self.tells = "", False
