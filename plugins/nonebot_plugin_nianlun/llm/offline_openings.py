"""The first clause of a note without a model: who was together, when, where and about what.

Every form holds the time words once and `在<place>` once, so that a day can take both out of
the clause when it has said them before, and what is left is still a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
import re

from ..memory.calendar import Calendar
from ..types import ChatKind, Message, Scene
from .offline_names import peer, person, place_words, short_place
from .salience import is_media_only, theme_counts
from .words import distinct, is_known

_LONG = timedelta(minutes=60)
_PLANS = re.compile(
    "几点|几号|哪天|周[一二三四五六日末]|订|买票|集合|路线|名额|报名|方案|要不|投票|怎么去"
)
_SPARSE = timedelta(minutes=8)
"""Between two lines on average; from here on nobody would call it a conversation."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """Messages of one window with the words for their time, place, people and topics."""

    kind: ChatKind
    place: str
    when: str
    messages: Sequence[Message]
    names: dict[str, str]
    """Name of each speaker but me, the most talkative first."""
    topics: tuple[str, ...]
    """At most two words that several lines share."""

    @classmethod
    def of(cls, messages: Sequence[Message], scene: Scene, calendar: Calendar) -> Gathering:
        counts = Counter(message.user_id for message in messages if not message.is_mine)
        given = {m.user_id: scene.names.get(m.user_id, m.name) for m in messages}
        names = {user_id: person(given[user_id], scene) for user_id, _ in counts.most_common()}
        return cls(
            scene.chat.kind,
            # Its full name now and then is enough: the memory belongs to this place anyway.
            place_words(scene) if messages[0].seq % 4 == 0 else short_place(scene),
            _time_words(messages, calendar),
            messages,
            names or {"": peer(scene)},
            _topics(messages, [*given.values(), scene.character]),
        )

    @property
    def is_long(self) -> bool:
        return self.messages[-1].time - self.messages[0].time >= _LONG

    @property
    def mine(self) -> int:
        return sum(message.is_mine for message in self.messages)

    @property
    def variant(self) -> int:
        """Differs from window to window; no clock and no chance."""
        return self.messages[0].seq

    def name_of(self, message: Message) -> str:
        return "我" if message.is_mine else self.names[message.user_id]

    def who(self, *, with_me: bool = False) -> str:
        names = [*(["我"] if with_me else []), *self.names.values()]
        if len(names) > 4:
            return ("我和" if with_me else "") + "、".join([*self.names.values()][:3]) + "他们几个"
        return "和".join(["、".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

    @property
    def about(self) -> str:
        return "和".join(self.topics)


def opening(it: Gathering) -> str:
    """One clause without a full stop; its form follows from the company and the content."""
    at = f"在{it.place}"
    if all(is_media_only(message.text) for message in it.messages):
        who = "我" if it.mine == len(it.messages) else it.who()
        return f"{it.when}，{who}{at}只发了些图片或表情，没有写字"
    forms = _private_forms(it, at) if it.kind == "private" else _group_forms(it, at)
    return forms[it.variant % len(forms)]


def direct(it: Gathering) -> str:
    """Time and place as they stand before the first quote, when the note begins with it."""
    return f"{it.when}在{it.place}，" if it.variant % 2 else f"{it.when}，在{it.place}，"


def _private_forms(it: Gathering, at: str) -> tuple[str, ...]:
    when, who, mine, about = it.when, it.who(), it.mine, it.about
    if mine == len(it.messages):
        return (
            f"{when}，我{at}找{who}，没有等到回话",
            f"{when}我{at}对{who}说了几句，那边没有回",
        )
    if mine == 0:
        return (
            f"{when}，{who}{at}找我，我没有回",
            f"{who}{when}{at}给我留了话",
        )
    if about:
        return (
            f"{when}，我{at}和{who}说起{about}",
            f"{who}{when}{at}和我聊{about}",
            f"{when}我和{who}{at}聊到了{about}",
            f"{who}{at}说起{about}，那是{when}的事",
        )
    if it.messages[0].is_mine:
        return (f"{when}我{at}先叫了{who}", f"{when}，我{at}找{who}说话")
    return (
        f"{when}，{who}{at}来找我说话",
        f"{who}{when}{at}找我聊了一会儿",
        f"{when}我{at}陪{who}说了会儿话",
    )


def _group_forms(it: Gathering, at: str) -> tuple[str, ...]:
    when, who, about = it.when, it.who(), it.about
    if it.mine == len(it.messages):
        return (f"{when}，我{at}开了口，没有人接话", f"{when}我一个人{at}说话")
    ours = it.who(with_me=True) if it.mine else who
    if len(it.names) == 1 and not it.mine:
        return (
            f"{when}，{who}一个人{at}自言自语",
            f"{who}{when}{at}念叨了几句，没有人接话",
        )
    if about and sum(bool(_PLANS.search(m.text)) for m in it.messages) > 2:
        return (
            f"{when}，{ours}{at}商量{about}",
            f"{ours}{when}{at}合计起{about}",
            f"{when}大家{at}为{about}出主意",
        )
    if about:
        return (
            f"{when}，{ours}{at}说起{about}",
            f"{ours}{when}{at}聊{about}",
            f"{when}大家{at}聊到了{about}",
            f"{it.name_of(it.messages[0])}{when}{at}开了个头，说到了{about}",
            f"{when}，{at}说到了{about}，{ours}都在",
        )
    if _is_sparse(it):
        return (
            f"{when}，{who}{at}断断续续地说话",
            f"{ours}{when}{at}有一句没一句地聊着",
        )
    return (
        f"{when}，{ours}{at}闲聊",
        f"{ours}{when}{at}碰到一起",
        f"{when}{it.name_of(it.messages[0])}{at}先开了口",
        f"{who}{when}{at}你一言我一语",
    )


def _is_sparse(it: Gathering) -> bool:
    span = it.messages[-1].time - it.messages[0].time
    return span / len(it.messages) >= _SPARSE


def _topics(messages: Sequence[Message], names: Sequence[str]) -> tuple[str, ...]:
    counts = theme_counts(messages)
    shared = {
        word: count
        for word, count in counts.items()
        if count >= (2 if is_known(word) else 3)
        and not any(word in name or name in word for name in names if name)
    }
    return tuple(distinct(shared)[:2])


def _time_words(messages: Sequence[Message], calendar: Calendar) -> str:
    first, last = messages[0].time, messages[-1].time
    begin, end = (calendar.clock_words(t).removesuffix("左右") for t in (first, last))
    if last - first < _LONG or begin == end:
        return begin + ("左右", "前后", "那会儿")[messages[0].seq % 3]
    # 晚上八点到十点: the part of the day is said once.
    return f"{begin}到{end[2:] if begin[:2] == end[:2] else end}"
