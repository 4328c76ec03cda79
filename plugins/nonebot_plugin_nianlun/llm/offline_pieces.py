"""Finished texts taken apart into sentences that can be chosen, led by a date and put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
import re

from ..memory.keymarks import find_key_messages, key_mark_spans, normalise_key_marks
from ..memory.units import count_units, cut_to_units
from .salience import weigh

# Quotes and brackets are taken whole; a bracket that is never closed counts as a plain character.
_SENTENCE = re.compile(r"(?:「[^「」]*」|“[^“”]*”|（[^（）]*）|[^。！？!?；\n])+[。！？!?；…]*")
_CLAUSE = re.compile(r"(?:「[^「」]*」|“[^“”]*”|（[^（）]*）|[^，])+，?")
_QUOTE = re.compile(r"「[^「」]*」")
_COUNTED = re.compile(r"\d+(?:句|条)")
_EDGES = " ，。；、\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of a source or of the current text."""

    text: str
    """Without key marks and without the closing full stop."""
    ids: tuple[int, ...]
    weight: float
    order: tuple[int, int] = (0, 0)
    lead: str = ""
    """Date or time of day that belongs in front, unless the piece before has the same."""
    group: int = 0
    """Pieces of one source share a group."""

    @property
    def quotes(self) -> int:
        return len(_QUOTE.findall(self.text))

    @property
    def gist(self) -> str:
        """The same for two pieces that say the same."""
        return "".join(_QUOTE.findall(self.text)) or self.text

    @property
    def units(self) -> int:
        return count_units(self.text) + count_units(self.lead)


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


def shorten(piece: Piece, units: int) -> Piece:
    """The piece with the most telling of its clauses, as many as fit, at least a part of one."""
    if count_units(piece.text) <= units:
        return piece
    clauses = _CLAUSE.findall(piece.text)
    start = max(_beginnings(clauses), key=lambda index: _weight(clauses[index]))
    end = start + 1
    while end < len(clauses) and count_units("".join(clauses[start : end + 1])) <= units:
        end += 1
    text = "".join(clauses[start:end]).strip(_EDGES)
    if count_units(text) > units * 3 // 2:
        text = _close_quote(cut_to_units(text, units).rstrip(_EDGES))
    ids = piece.ids
    if len(ids) == piece.quotes:
        before = len(_QUOTE.findall("".join(clauses[:start])))
        ids = ids[before : before + len(_QUOTE.findall(text))]
    return replace(piece, text=text, ids=ids)


def _beginnings(clauses: Sequence[str]) -> list[int]:
    """Where a sentence may begin: its own beginning, or a quote with its speaker."""
    rest = range(1, len(clauses))
    return [0, *(i for i in rest if "「" in clauses[i] and clauses[i][0] not in "「又")]


def _close_quote(text: str) -> str:
    return text + "……」" if text.count("「") > text.count("」") else text


def _share_ids(sentences: Sequence[str], ids: Sequence[int]) -> list[Piece]:
    """One key message per quote where the numbers agree, else all to the last sentence."""
    quotes = [len(_QUOTE.findall(sentence)) for sentence in sentences]
    if sum(quotes) != len(ids):
        quotes = [0] * (len(sentences) - 1) + [len(ids)]
    pieces, used = [], 0
    for sentence, count in zip(sentences, quotes, strict=False):
        pieces.append(Piece(sentence, tuple(ids[used : used + count]), _weight(sentence)))
        used += count
    return pieces


def _weight(sentence: str) -> float:
    quotes = len(_QUOTE.findall(sentence))
    counted = 9.0 if not quotes and _COUNTED.search(sentence) else 0.0
    return weigh(sentence) + 1.2 * min(quotes, 2) - counted
