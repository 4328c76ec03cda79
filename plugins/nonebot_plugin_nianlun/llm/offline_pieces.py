"""Finished texts taken apart into sentences that can be chosen and put together again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
import re

from ..memory.keymarks import find_key_messages, key_mark, key_mark_spans, normalise_key_marks
from ..memory.units import count_units, cut_to_units
from .salience import CUES, weigh
from .speech import act
from .words import excerpt, topic_words

# Quotes and brackets are taken whole; a bracket that is never closed counts as a plain character.
_SENTENCE = re.compile(r"(?:「[^「」]*」|“[^“”]*”|（[^（）]*）|[^。！？!?；\n])+[。！？!?；…]*")
_CLAUSE = re.compile(r"(?:「[^「」]*」|“[^“”]*”|（[^（）]*）|[^，])+，?")
_QUOTE = re.compile(r"「([^「」]*)」")
_LEAST_UNITS = 7
_HABIT = 2.0
_ALIKE = 0.4
"""Share of three-character runs in common that makes two lines nearly the same."""
# A date behind a quote explains a word inside it, so that quote stays whole.
_LONG_QUOTE = re.compile(r"「([^「」]{8,})」(?!（)")
_EDGES = " ，。；、.\n"
_SHORT_LEAD = re.compile("^[^，「]{1,6}，")
_UNLED = re.compile("^(?:「|[又还][问说提担])")
TAKEN_UP = re.compile("^(听)?([^，「」]{1,30}?)(?:跟着说|接话说|答|回|又说|还说)(?=「)")
"""How a line begins that was said to another; alone it is only said."""
_ECHO = re.compile("大家都笑|笑成一片|惹得大家|叫好|高兴$|宽慰|打气|安慰$")
# What the character itself said it would keep.
_NOTED = re.compile("我[^，。「」]{0,4}「[^「」]{0,12}(?:记下|记住|记一|记着|说定|答应|说好)")
_MINE = re.compile(r"(?:^|[，。])我(?![们的])[^，。「」]{0,6}「")


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of a source or of the current text."""

    text: str
    """Without key marks and without the closing full stop."""
    ids: tuple[int, ...]
    order: tuple[int, int] = (0, 0)
    lead: str = ""
    """Date or time of day that belongs in front, unless the piece before has the same."""
    group: int = 0
    """Pieces of one source share a group."""
    extra: float = 0.0
    """What it is worth beside its words."""
    intro: str = ""
    """A sentence that leads in: what the talk was about. Goes first when there is no room."""
    opening: str = ""
    """The sentence with hour and place that opened its activity."""
    number: int = 0
    """Day of the month, or month of the year, that it belongs to."""
    kept: bool = False
    """Stands in the current text and is told as it is."""

    @property
    def quotes(self) -> tuple[str, ...]:
        return tuple(_QUOTE.findall(self.text))

    @property
    def gist(self) -> str:
        """The same for two pieces that say the same."""
        return "".join(self.quotes) or _SHORT_LEAD.sub("", self.text)

    @property
    def units(self) -> int:
        return count_units(self.text) + count_units(self.lead)

    @property
    def speakers(self) -> str:
        """The words that stand before its quotes: names and how they spoke."""
        return "，".join(c.split("「", 1)[0] for c in _CLAUSE.findall(self.text) if "「" in c)

    @property
    def marked(self) -> str:
        return self.text + key_mark(self.ids)

    @property
    def sentence(self) -> str:
        return self.marked if self.text[-1:] in "！？!?…" else f"{self.marked}。"

    def weight(self, *, afar: bool) -> float:
        """What it is worth to keep; a sentence that quotes is worth more than one that sums up."""
        said = len(self.quotes)
        if afar:
            score = max(weigh(quote, afar=True) for quote in self.quotes or (self.text,))
            score += 1.2 * bool(said) + 0.3 * (said > 1) + (1.5 if _NOTED.search(self.text) else 0)
        else:
            score = weigh("，".join(self.quotes) or self.text) + 1.2 * min(said, 2)
        score += 0.8 if _ECHO.search(self.text) else 0.0
        return score + self.extra + (0.5 if _MINE.search(self.text) else 0.0)


def take_apart(text: str, key_messages: Sequence[int] = ()) -> list[Piece]:
    """The sentences of `text`, each with the key messages that its mark gives it.

    Key messages that no mark in the text names go to the last sentence.
    """
    marked = normalise_key_marks(text)
    pieces: list[Piece] = []
    start = 0
    for mark, end in [*key_mark_spans(marked), (len(marked), len(marked))]:
        ids = find_key_messages(marked[mark:end])
        sentences = [found.strip(_EDGES) for found in _SENTENCE.findall(marked[start:mark])]
        fresh = _share_ids([sentence for sentence in sentences if count_units(sentence)], ids)
        if not fresh and pieces:
            pieces[-1] = replace(pieces[-1], ids=(*pieces[-1].ids, *ids))
        pieces += fresh
        start = end
    named = {number for piece in pieces for number in piece.ids}
    left = tuple(number for number in key_messages if number not in named)
    if left and pieces:
        pieces[-1] = replace(pieces[-1], ids=(*pieces[-1].ids, *left))
    return pieces


def themes(pieces: Sequence[Piece]) -> Counter[str]:
    """In how many sources each topic word is quoted or named, from two on; people do not count."""
    groups: dict[str, set[int]] = {}
    people = "，".join(piece.speakers for piece in pieces)
    for piece in pieces:
        for word in topic_words("。".join((*piece.quotes, piece.intro))):
            if word not in people:
                groups.setdefault(word, set()).add(piece.group)
    return Counter({word: len(found) for word, found in groups.items() if len(found) > 1})


def told_apart(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces without what is said again and again.

    What stands in nearly the same words in several sources is habit: told once, and for less.
    """
    days: dict[str, set[int]] = {}
    for piece in pieces:
        for gram in _grams(piece):
            days.setdefault(gram, set()).add(piece.group)
    found: list[Piece] = []
    told: set[str] = set()
    for piece in pieces:
        grams = _grams(piece)
        usual = sum(len(days[gram]) > 2 for gram in grams) > _ALIKE * len(grams)
        if usual and len(grams & told) > _ALIKE * len(grams):
            continue
        told |= grams
        found.append(replace(piece, extra=piece.extra - _HABIT) if usual else piece)
    return found


def _grams(piece: Piece) -> set[str]:
    return {q[i : i + 3] for q in piece.quotes for i in range(len(q) - 2)}


def shorten(piece: Piece, units: int, *, afar: bool = False) -> Piece:
    """The piece with the most telling of its clauses, as many as fit, at least a part of one."""
    if count_units(piece.text) <= units:
        return piece
    clauses = _CLAUSE.findall(piece.text)
    start = max(_beginnings(clauses), key=lambda i: Piece(clauses[i], ()).weight(afar=afar))
    end = start + 1
    while end < len(clauses) and count_units("".join(clauses[start : end + 1])) <= units:
        end += 1
    text = "".join(clauses[start:end]).strip(_EDGES)
    if start:
        text = TAKEN_UP.sub(r"\1\2说", text)
    if not _QUOTE.search(text) and count_units(text) > units:
        text = cut_to_units(text, units).rstrip(_EDGES)
    ids = piece.ids
    if len(ids) == len(piece.quotes):
        before = len(_QUOTE.findall("".join(clauses[:start])))
        ids = ids[before : before + len(_QUOTE.findall(text))]
    return replace(piece, text=text, ids=ids)


def tighten(piece: Piece, units: int) -> Piece:
    """The piece with every long quote cut to the clauses that say most; worth what it was worth."""
    short = replace(piece, text=_LONG_QUOTE.sub(lambda q: f"「{_gist(q[1], units)}」", piece.text))
    lost = piece.weight(afar=True) - short.weight(afar=True)
    return replace(short, extra=short.extra + lost)


def _gist(quote: str, units: int) -> str:
    short = excerpt(quote, units, CUES)
    # The verb before it was chosen for the whole quote and must still fit.
    fits = count_units(short) >= _LEAST_UNITS and act(short) == act(quote)
    return short if fits else quote


def _beginnings(clauses: Sequence[str]) -> list[int]:
    """Where a sentence may begin: its own beginning, or a quote with its speaker."""
    rest = range(1, len(clauses))
    return [0, *(i for i in rest if "「" in clauses[i] and not _UNLED.match(clauses[i]))]


def _share_ids(sentences: Sequence[str], ids: Sequence[int]) -> list[Piece]:
    """One key message per quote where the numbers agree, else all to the last sentence."""
    quotes = [len(_QUOTE.findall(sentence)) for sentence in sentences]
    if sum(quotes) != len(ids):
        quotes = [0] * (len(sentences) - 1) + [len(ids)]
    pieces, used = [], 0
    for sentence, count in zip(sentences, quotes, strict=False):
        pieces.append(Piece(sentence, tuple(ids[used : used + count])))
        used += count
    return pieces
