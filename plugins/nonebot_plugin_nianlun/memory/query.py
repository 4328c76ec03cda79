"""What a question is about: its terms, the people in it, and the time that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
import re
from typing import Final

from ..types import ME
from .calendar import Calendar
from .people import People, forms
from .search import Search
from .terms import fold, is_stop_word, query_terms, telling_terms
from .time_asking import is_asking
from .time_words import TimeRange, parse_time_range

_LONGEST: Final = 500
"""Characters of a question that are read."""
_MOST_NAMES: Final = 8
_TWO: Final = 2
_HIDDEN: Final = 0xE000
"""The first of the characters that stand for names: of a plane where nothing has a meaning."""
_FIRST_UNSPACED: Final = "\u2e80"
_LETTER: Final = rf"[^\W_{_FIRST_UNSPACED}-\U0010ffff]"

_CLAUSE_END: Final = re.compile(r"[,，.。!！?？;；:：\n]+")
# 你还记得 and "do you remember" ask for something; they are not about the one who is asked.
_ASKING: Final = re.compile(
    r"[你您]们?(?:还|是否|能不能|可以)?(?:记不记得|记得|知不知道|知道|告诉我?|说说|觉得)"
    r"|\b(?:do|did|can|could|would|will) you (?:still |please )?"
    r"(?:remember|recall|know|tell me|remind me)\b"
)
_PRONOUN: Final = re.compile(
    r"(?P<i>我(?!们)|俺(?!们)|\b(?:i|me|my|mine|myself)\b)"
    r"|(?P<you>[你您](?!们)|\b(?:you|your|yours|yourself)\b)"
)
_WE_TALKED: Final = re.compile(
    r"(?:我们|咱们?)[^,，。?？]{0,8}[聊谈]|\b(?:we|us|our)\b.{0,20}\b(?:talk|chat|discuss|conversation)"
)
_SILENT: Final = re.compile(r"[\W_]*")
# What these words mean stands in another line.
_REFERRING: Final = re.compile(
    r"那[次天时家个里边件位]|(?<![其吉])[他她它]|呢\W*$|\b(?:he|she|him|her|it|they|them|that|those|there)\b",
    re.IGNORECASE,
)
# Of a time or of somebody: whatever there is, not what has these words in it.
_ANYTHING_SAID: Final = re.compile(
    r"(?:[聊说讲谈]|提|发生|[干做])(?:了|过|到|起|的)?(?:是|些|点)?(?:什么|啥|哪些)(?:事情?|话题?|内容)?"
    r"|最近|近来|近况|\b(?:recently|lately)\b"
    r"|\b(?:(?:talk(?:ed|ing)?|chat(?:ted)?)(?: about)?|said|say|happen(?:ed)?)\s*(?:[?？.!]|$)"
)
# With a blank in it a text may be quoted for that alone.
_QUOTED: Final = re.compile(r"[\"'“‘「『](\S+)[\"'”’」』]")


@dataclass(frozen=True, slots=True)
class Question:
    """What a text asks for, as far as words tell."""

    terms: tuple[str, ...] = ()
    """Distinct index terms, without words of time."""
    named: tuple[str, ...] = ()
    """User ids of the people whose names are in it, all bearers of a name included."""
    subject: str | None = None
    """Whose doing it asks for when it says 我 or 你: the asker's or `me`."""
    asker: str | None = None
    """Who asks, when it is about what was between the two: it says 我, 你 or 我们聊 and names
    nobody, and others talk in this chat too."""
    span: TimeRange | None = None
    """The time that it asks for."""
    open: bool = False
    """It asks for nothing in particular of somebody or of a time: 小鹿最近怎么样."""

    @property
    def favoured(self) -> tuple[str, ...]:
        """Everybody whose lines are more likely meant than those of others."""
        people = (*self.named, self.asker, self.subject)
        return tuple(dict.fromkeys(user_id for user_id in people if user_id is not None))

    @property
    def people(self) -> tuple[str, ...]:
        """Whose lines are of use even without a term: who is named, or who asks."""
        return self.named or (() if self.asker is None else (self.asker,))

    @property
    def search(self) -> Search:
        """What to look for."""
        span = None if self.span is None else (self.span.earliest, self.span.end)
        return Search(terms=self.terms, favoured=self.favoured, span=span)

    @property
    def wider(self) -> tuple[datetime, datetime] | None:
        """A wider time, for when nothing is found in the one that was asked for."""
        wider = None if self.span is None else self.span.widened()
        return None if wider is None else (wider.begin, wider.end)


def understand(
    text: str,
    *,
    asker: str | None,
    people: People,
    now: datetime,
    calendar: Calendar,
    words_only: bool = False,
) -> Question:
    """Read a question.

    `words_only`: it is typed for what is written there, and to nobody. 我 and 你 are words in it
    unless it asks for a time, the bot's name is one like any other, and a quoted word is no time.
    Any text is understood somehow: at worst as the terms in it, or as nothing.
    """
    head = text[:_LONGEST] if words_only else _without_calls(text[:_LONGEST], people)
    if head != text[:_LONGEST] and _SILENT.fullmatch(head):
        return Question()
    quoted = words_only and _QUOTED.fullmatch(head)
    span, rest = (None, head) if quoted else _read_time(head, people, now, calendar)
    words = fold(rest)
    named, without = _read_names(words, people, to_bot=not words_only)
    speakers = people.user_ids | {asker} - {None}
    others = speakers - {ME}
    of_us = _PRONOUN.search(without) or _WE_TALKED.search(without)
    to_us = span is not None or not words_only
    who = asker if to_us and of_us and not named and len(others) >= _TWO else None
    # Between two people a name tells nothing: every line is to or from its bearer.
    if span or named:
        words, without = (_ANYTHING_SAID.sub(" ", part) for part in (words, without))
    terms = (len(speakers) <= _TWO and telling_terms(without)) or telling_terms(words)
    if not (terms or span or named or who):
        terms = query_terms(words)
    return Question(
        terms=tuple(terms),
        named=named,
        subject=_subject(without, asker) if to_us and not named else None,
        asker=who,
        span=span,
        open=not telling_terms(without),
    )


def question_of(lines: Sequence[str], called: str) -> str:
    """What is looked for of lines that one person sent in one breath: from the last that asks on,
    and all of them where none asks or that one says too little by itself (那次呢).

    `called`: the name of whom they may be said to; it says nothing.
    """
    last = next((i for i in reversed(range(len(lines))) if is_asking(lines[i])), 0)
    if last:
        asked = lines[last].replace(called, "")
        if _REFERRING.search(asked) or len(telling_terms(asked)) < _TWO:
            last = 0
    return "\n".join(lines[last:])


def wording(text: str, now: datetime, calendar: Calendar) -> str:
    """What a text wants to see written, folded: without its words of time and those that ask
    for whatever there is; empty when it is of a time and nothing else."""
    if quoted := _QUOTED.fullmatch(text):
        return fold(quoted[1])
    span, rest = _read_time(text[:_LONGEST], People(), now, calendar)
    words = _ANYTHING_SAID.sub(" ", fold(rest))
    if telling_terms(words):
        return words
    return fold(text) if span is None else ""


def _read_time(
    text: str, people: People, now: datetime, calendar: Calendar
) -> tuple[TimeRange | None, str]:
    """The time that a text asks for, and the text without its words.

    Words of time within a longer name are none: 今天也要努力 may be somebody.
    """
    hidden: list[str] = []
    while True:
        span = parse_time_range(
            text, now=now, tz=calendar.zone, day_starts_at=calendar.day_starts_at
        )
        if span is None or span.begin > now:
            span = None  # of a time to come nothing was said in it
            break
        inside = [name for name in people.names if name != span.words and span.words in name]
        name = max((name for name in inside if name in text), key=len, default=None)
        if name is None or len(hidden) == _MOST_NAMES:
            text = text.replace(span.words, " ", 1)
            break
        text = text.replace(name, chr(_HIDDEN + len(hidden)))
        hidden.append(name)
    for place, name in enumerate(hidden):
        text = text.replace(chr(_HIDDEN + place), name)
    return span, text


def _subject(words: str, asker: str | None) -> str | None:
    """Who does what the last clause with 我 or 你 speaks of: the first of the two in it."""
    for clause in reversed(_CLAUSE_END.split(_ASKING.sub("", words))):
        if found := _PRONOUN.search(clause):
            return asker if found["i"] else ME
    return None


def _without_calls(words: str, people: People) -> str:
    """`words` without the bot's name where it only calls: behind an @, or apart from the sentence
    (小忆，去年谁欠火锅). That tells nothing about what is asked."""
    names = (name for name in people.own if name.strip())
    for name in sorted(names, key=lambda name: (-len(name), name)):
        escaped = rf"(?:{re.escape(name)})+"
        if not re.search(escaped, words, re.IGNORECASE):
            continue
        # @小忆同学 may be somebody else.
        longer = "|".join(
            re.escape(one) for one in people.names if one != name and one.startswith(name)
        )
        another = f"(?!{longer})" if longer else ""
        behind = rf"(?!{_LETTER})" if name[-1] < _FIRST_UNSPACED else ""
        # Between blanks a name of letters is a word of its sentence like any other.
        apart = (
            rf"(?<!\w){escaped}(?!\w)"
            if name[0] >= _FIRST_UNSPACED
            else rf"(?:^|(?<=[^\w\s])) *{escaped} *(?=$|[^\w\s'’])"
        )
        called = rf"[@＠]{another}{escaped}{behind}|{apart}"
        words = re.sub(called, "，", words, flags=re.IGNORECASE | re.MULTILINE)
    return words


def _read_names(words: str, people: People, *, to_bot: bool) -> tuple[tuple[str, ...], str]:
    """The bearers of names in folded `words`, and what is left of these without the names.

    `to_bot`: whoever says the bot's own name speaks to it, so there it reads 你.
    """
    found: dict[str, None] = {}
    bearers = _bearers(words, people)
    # 小鹿子 is not 小鹿: the longest name that is there takes its place.
    for name in sorted(bearers, key=lambda name: (-len(name), name))[:_MOST_NAMES]:
        user_ids = bearers[name]
        without = re.sub(_whole(name), "你" if to_bot and ME in user_ids else "，", words)
        if without != words:
            found |= dict.fromkeys(sorted(user_ids - {ME} if to_bot else user_ids))
            words = without
    return tuple(found), words


def _bearers(words: str, people: People) -> dict[str, set[str]]:
    """User ids by each name in `words`, and by each part that only one person or one name has."""
    whole: dict[str, set[str]] = {}
    parts: dict[str, dict[str, set[str]]] = {}
    for name in people.within(words):
        folded, pieces = forms(name)
        if folded in words and len(folded) > 1 and not _is_filler(folded):
            whole.setdefault(folded, set()).update(people.bearers(name))
        for part in pieces:
            if part in words:
                parts.setdefault(part, {}).setdefault(folded, set()).update(people.bearers(name))
    for part, names in parts.items():
        ids = set().union(*names.values())
        if part not in whole and (len(ids) == 1 or len(names) == 1):
            whole[part] = ids
    return whole


def _is_filler(name: str) -> bool:
    """Whether it is a word like 什么, which means its bearer hardly ever, unlike Will or May."""
    return name[0] >= _FIRST_UNSPACED and is_stop_word(name)


def _whole(name: str) -> str:
    """A pattern for the name, and not within a longer word of an alphabet."""
    before = rf"(?<!{_LETTER})" if name[0] < _FIRST_UNSPACED else ""
    after = rf"(?!{_LETTER})" if name[-1] < _FIRST_UNSPACED else ""
    return f"{before}{re.escape(name)}{after}"
