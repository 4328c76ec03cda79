"""Words of a Chinese text: what it is about, and where it may be cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
import re

import rjieba

from ..memory.units import count_units


def _lexicon(name: str) -> frozenset[str]:
    path = Path(__file__).with_name("lexicon") / f"{name}.txt"
    return frozenset(path.read_text("utf-8").split())


_NOUNS = ("n", "vn", "j", "eng", "l")
_JOINING = ("n", "vn", "j")
# 川子 你到哪了: somebody is called, not talked about.
_CALLED = re.compile(r"(?:^|[\s，。！？])([\u4e00-\u9fff]{2,3})(?=[\s，,]|你)")
_WHEN = re.compile(
    "[今明昨后前]天|[今明昨][早晚]|[上下这本]个?(?:周|星期|礼拜|月)|周[一二三四五六日末]|[去今明]年"
)
_LATIN = re.compile(r"[A-Za-z][A-Za-z+#.-]{2,}")
_CLAUSE = re.compile(
    # A colon between two digits is no end: 12:30.
    r"[^，。！？!?；;…～~：:\s]+"
    r"(?:(?<=\d)[:：](?=\d)[^，。！？!?；;…～~：:\s]*|[，。！？!?；;…～~：:\s]+)*"
)
_MOST_CLAUSES = 60
_END = " ，。、：；…～~,;:"
LEADING_ON = re.compile(
    r"[：:]\s*$|一句$|说$|(?:如果|要是|虽然|除了)[^，。]{0,40}$|(?:^|\s)\d+\s*$"
)
# Words that say what kind of talk it is, never what it is about.
_VAGUE = _lexicon("vague")
# Verbs that name an event by themselves.
_EVENTS = _lexicon("events")


def topic_words(text: str) -> list[str]:
    """What a text speaks of, each once: nouns, events, and two words that make one (五分钟)."""
    found: dict[str, None] = {}
    called = {match[1] for match in _CALLED.finditer(text)}
    before, joins = "", False
    for word, tag in rjieba.tag(text):
        if joins and tag.startswith(_JOINING) and 3 <= len(before + word) <= 5:
            found[before + word] = None
            if len(word) == 1:
                found.pop(before, None)  # 枸杞岛 is no kind of 枸杞
        joins = tag.startswith(_JOINING) and word.isalpha() and word not in _VAGUE
        before = word
        if _is_topic(word, tag):
            found[word] = None
    return [word for word in found if word not in called and not _WHEN.search(word)]


def _is_topic(word: str, tag: str) -> bool:
    if len(word) < 2 or word in _VAGUE or tag.startswith("nr"):
        return False
    if tag == "eng":
        return _LATIN.fullmatch(word) is not None
    return tag.startswith(_NOUNS) or (tag == "v" and word in _EVENTS)


def is_known(word: str) -> bool:
    """Whether the dictionary has the word; else it was put together or guessed."""
    return bool(rjieba.has_word(word))


def _specific(word: str) -> float:
    # What no dictionary has is a name here: of a place, a cat, a plan.
    return min(len(word), 4) * (1.0 if word.isascii() or is_known(word) else 1.5)


def distinct(counts: Mapping[str, int]) -> list[str]:
    """Topic words, the most telling first; of 枸杞 and 枸杞岛 the longer, if nearly as frequent."""
    ranked = sorted(counts, key=lambda word: (-counts[word] * _specific(word), word))
    found: list[str] = []
    for word in ranked:
        longer = [w for w in ranked if word in w and w != word and counts[w] * 2 >= counts[word]]
        name = max(longer, key=lambda w: (counts[w], w), default=word)
        if not any(name in other or other in name for other in found):
            found.append(name)
    return found


def excerpt(words: str, units: int, cues: Collection[re.Pattern[str]] = ()) -> str:
    """A verbatim run of whole clauses of `words`, at most `units` long, the one that says most.

    A first clause that is too long is cut between two words. Clauses in which one of `cues` is
    found count for more than others.
    """
    if count_units(words) <= units:
        return words.strip(_END)
    clauses = _CLAUSE.findall(words)[:_MOST_CLAUSES]
    sizes = [count_units(clause) for clause in clauses]
    worths = [6.0 * sum(cue.search(clause) is not None for cue in cues) for clause in clauses]
    best, best_worth = "", -9.0
    for first, last in _runs(sizes, units):
        worth = sum(sizes[first:last]) + sum(worths[first:last])
        worth += 4.0 * (first == 0) + 3.0 * (last == len(clauses))
        # What only announces the next clause says nothing without it.
        worth -= 12.0 * (LEADING_ON.search(clauses[last - 1]) is not None)
        if worth > best_worth:
            best, best_worth = "".join(clauses[first:last]), worth
    return best.strip(_END) or _cut_between_words(words, units)


def _runs(sizes: Sequence[int], units: int) -> Iterator[tuple[int, int]]:
    """Every run of clauses that fits: the index of its first and that past its last."""
    for start in range(len(sizes)):
        size, end = 0, start
        while end < len(sizes) and size + sizes[end] <= units:
            size += sizes[end]
            end += 1
            if size > 1:
                yield start, end


def _cut_between_words(words: str, units: int) -> str:
    kept, left = "", units
    for word in rjieba.cut(words[: units * 8]):
        left -= count_units(word)
        if left < 0 or len(kept) + len(word) > units * 8:
            break
        kept += word
    return kept.strip(_END)
