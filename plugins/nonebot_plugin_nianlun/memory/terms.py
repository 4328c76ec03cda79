"""The terms that a text is found by: words and, in scripts without spaces, pairs of characters.

Chinese is cut into words by a dictionary, which is precise, and into overlapping pairs of
characters as well, which find what the dictionary does not know or cuts in another way. A Chinese
word ends with what it is a kind of, so a text about a 橘猫 is found by 猫 too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path
import re
from typing import Final
import unicodedata

import rjieba
from snowballstemmer.english_stemmer import EnglishStemmer

TERMS_VERSION: Final = 1
"""Raised whenever `index_terms` answers otherwise than before: an index must be written anew."""

_LONGEST_TEXT: Final = 10_000
"""Characters of a text that are read: more than anybody writes, and a bound for the time."""
_LONGEST_QUERY: Final = 500
_MOST_QUERY_TERMS: Final = 64
_LONGEST_WORD: Final = 40

_HAN: Final = "\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_UNSPACED: Final = "\u3041-\u30ff\uac00-\ud7a3\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Kana, Hangul, Thai, Lao, Myanmar, Khmer."""
_RUN: Final = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<unspaced>[{_UNSPACED}]+)"
    # 3.5 and v1.0 stay whole.
    rf"|(?P<word>[^\W_{_HAN}{_UNSPACED}]+(?:\.[0-9]+)*)"
)
_GROUPED: Final = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
# Whom a line is sent to and the stickers in it are not what it says: in a busy group whoever is
# often called would be found by the calls alone. A name ends at a blank or what is not of it; of
# one at the very end not more than a name is taken, for there may be no blank behind it.
_UNSAID: Final = re.compile(
    r"\[(?:动画)?表情(?::[^\[\]]{0,40})?\]"
    r"|(?<![a-z0-9_.])@(?:\[[^\[\]]{1,20}\])?(?:[^\s@\[\],，。!！?？;；/(]{1,30}(?=[\s@\[])"
    r"|[^\s@\[\],，。!！?？;；/(]{1,10}$)"
)
# 猫叫 is a word of the dictionary, but not in 我家猫叫年糕 and 你的猫叫什么.
_CALLED: Final = "叫"
_CALLED_WHAT: Final = re.compile(r"叫(?=什么|啥|做|作)")

# What holds a sentence together or asks, in any sentence, whatever it is about.
_STOP_WORDS: Final = frozenset(
    Path(__file__).with_name("stop_words.txt").read_text("utf-8").split()
)
# Each line has an English word and its forms that no stemmer brings back to it.
_BASES: Final = {
    form: line.split()[0]
    for line in Path(__file__).with_name("irregular_words.txt").read_text("utf-8").splitlines()
    for form in line.split()[1:]
}


def index_terms(text: str) -> list[str]:
    """All terms of `text` in order, repeats included; none is empty or holds a blank.

    Only the first 10,000 characters are read.
    """
    terms: list[str] = []
    for kind, run in _runs(text[:_LONGEST_TEXT]):
        terms += _terms_of(kind, run)
    return terms


def query_terms(text: str) -> list[str]:
    """The distinct terms of a question, at most 64: the telling ones, or all if none is."""
    head = text[:_LONGEST_QUERY]
    return telling_terms(head) or list(dict.fromkeys(index_terms(head)))[:_MOST_QUERY_TERMS]


def telling_terms(text: str) -> list[str]:
    """The distinct terms that say what a text is about, at most 64; none if it is all words that
    any sentence may hold."""
    telling: dict[str, None] = {}
    for kind, run in _runs(_CALLED_WHAT.sub(" ", text[:_LONGEST_QUERY])):
        telling |= dict.fromkeys(_telling_of(kind, run))
    return list(telling)[:_MOST_QUERY_TERMS]


def telling_parts(text: str) -> list[str]:
    """The parts of `text` that its telling terms are from, folded: 账 of 你们还记得账上有什么."""
    parts: list[str] = []
    for kind, run in _runs(_CALLED_WHAT.sub(" ", text[:_LONGEST_QUERY])):
        if kind == "han":
            parts += ("".join(words) for words in _stretches(run))
        elif run not in _STOP_WORDS:
            parts.append(run)
    return parts


def fold(text: str) -> str:
    """`text` without differences of case, width and composition."""
    return unicodedata.normalize("NFKC", text).casefold()


def is_stop_word(word: str) -> bool:
    """Whether a folded word says nothing about what a sentence is about."""
    return word in _STOP_WORDS


def _runs(text: str) -> Iterator[tuple[str, str]]:
    """Runs of one kind of script, folded so that spellings of the same word are equal."""
    folded = _GROUPED.sub("", _UNSAID.sub(" ", fold(text)[:_LONGEST_TEXT]))
    for match in _RUN.finditer(folded):
        yield match.lastgroup or "", match[0]


def _terms_of(kind: str, run: str) -> list[str]:
    if kind == "word":
        return [_word_term(run)]
    if kind == "unspaced":
        return _pairs(run)
    terms: list[str] = []
    for word in _words(run):
        if len(word) != 2:
            terms.append(word)
        if len(word) > 1 and word not in _STOP_WORDS:
            terms.append(word[-1])
        if len(word) == 2 and word[-1] == _CALLED:
            terms.append(word[0])
    return terms + (_pairs(run) if len(run) > 1 else [])


def _telling_of(kind: str, run: str) -> list[str]:
    if kind == "word":
        return [] if run in _STOP_WORDS else [_word_term(run)]
    if kind == "unspaced":
        return _pairs(run)
    terms: list[str] = []
    for words in _stretches(run):
        terms += (word for word in words if len(word) != 2)
        stretch = "".join(words)
        if len(stretch) > 1:
            terms += _pairs(stretch)
    return terms


def _stretches(run: str) -> Iterator[list[str]]:
    """The words of each stretch of Chinese between those that any sentence may hold."""
    for any_sentence, words in groupby(_words(run), _STOP_WORDS.__contains__):
        if not any_sentence:
            yield list(words)


def _words(run: str) -> list[str]:
    # Only words of the dictionary: guesses join what stands side by side, such as 我养.
    return rjieba.cut(run, hmm=False)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


@lru_cache(maxsize=50_000)
def _word_term(word: str) -> str:
    """Without accents; an English word as its stem (Porter's second algorithm)."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    term = _BASES.get(plain, plain or word)[:_LONGEST_WORD]
    # A stemmer keeps the word in hand in itself, and messages are indexed in several threads.
    return EnglishStemmer().stemWord(term) if term.isascii() and term.isalpha() else term
