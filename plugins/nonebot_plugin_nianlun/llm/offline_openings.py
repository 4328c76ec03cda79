"""The first sentence of a note without a model: who spoke, when, where and how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from ..memory.calendar import Calendar
from ..types import ChatKind, Message, Scene
from .offline_names import peer, person, place_words
from .salience import is_media_only

_LONG = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class Gathering:
    """Messages of one window with the words for their time, place and people."""

    kind: ChatKind
    place: str
    when: str
    messages: Sequence[Message]
    names: dict[str, str]
    """Name of each speaker but me, the most talkative first."""

    @classmethod
    def of(cls, messages: Sequence[Message], scene: Scene, calendar: Calendar) -> Gathering:
        counts = Counter(message.user_id for message in messages if not message.is_mine)
        given = {m.user_id: scene.names.get(m.user_id, m.name) for m in messages}
        names = {user_id: person(given[user_id], scene) for user_id, _ in counts.most_common()}
        when = _time_words(messages, calendar)
        return cls(scene.chat.kind, place_words(scene), when, messages, names or {"": peer(scene)})

    @property
    def is_long(self) -> bool:
        return self.messages[-1].time - self.messages[0].time >= _LONG

    @property
    def mine(self) -> int:
        return sum(message.is_mine for message in self.messages)

    def name_of(self, message: Message) -> str:
        return "我" if message.is_mine else self.names[message.user_id]

    def who(self, last: str = "和") -> str:
        names = list(self.names.values())
        if len(names) > 4:
            return "、".join(names[:3]) + f"等{len(names)}人"
        return last.join(["、".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def opening(gathering: Gathering) -> str:
    """One clause without a full stop; its form follows from the company and the content."""
    if all(is_media_only(message.text) for message in gathering.messages):
        who = "我" if gathering.mine == len(gathering.messages) else gathering.who()
        count = len(gathering.messages)
        return f"{gathering.when}，{who}在{gathering.place}发了{count}条图片或表情之类，没有写字"
    forms = _private_forms(gathering) if gathering.kind == "private" else _group_forms(gathering)
    # Any number that differs from window to window will do; no clock and no chance.
    return forms[(gathering.messages[0].seq + len(gathering.messages)) % len(forms)]


def _private_forms(it: Gathering) -> tuple[str, ...]:
    when, who, mine, count = it.when, it.who(), it.mine, len(it.messages)
    if mine == count:
        return (f"{when}，我在私聊里对{who}说了{mine}句，没有等到回话",)
    if mine == 0:
        return (
            f"{when}，{who}在私聊里对我说了{count}句，我没有回",
            f"{who}{when}来私聊里找我，说了{count}句，我没有回话",
        )
    if it.messages[0].is_mine:
        return (
            f"{when}我先在私聊里叫了{who}，两个人一共说了{count}句",
            f"{when}，我在私聊里找{who}说话，来回{count}句",
        )
    return (
        f"{when}，{who}来私聊里找我，来回{count}句",
        f"{when}我和{who}在私聊里说话，{who}{count - mine}句，我{mine}句",
        f"{who}{when}在私聊里找我，我们说了{count}句",
    )


def _group_forms(it: Gathering) -> tuple[str, ...]:
    when, where, who, mine, count = it.when, f"在{it.place}", it.who(), it.mine, len(it.messages)
    if mine == count:
        return (f"{when}，我{where}说了{mine}句，没有人接话",)
    if mine:
        return (
            f"{when}，我和{it.who(last='、')}{where}聊了{count}句",
            f"{who}{when}{where}说话，我也说了{mine}句，前后一共{count}句",
            f"{when}{who}{where}聊天，{count}句里有{mine}句是我的",
        )
    if len(it.names) == 1:
        return (
            f"{when}，{who}{where}说了{count}句，没有别人接话",
            f"{who}{when}一个人{where}说了{count}句",
        )
    return (
        f"{when}，{who}{where}聊了{count}句",
        f"{who}{when}{where}说话，前后{count}句，我没有插嘴",
        f"{when}{it.name_of(it.messages[0])}{where}先开了口，{len(it.names)}个人说了{count}句",
        *_led_forms(it, where),
    )


def _led_forms(it: Gathering, where: str) -> tuple[str, ...]:
    count = len(it.messages)
    top, said = Counter(message.user_id for message in it.messages).most_common(1)[0]
    if said * 2 <= count or len(it.names) > 4:
        return ()
    return (f"{it.when}，{it.who()}{where}聊了{count}句，{said}句是{it.names[top]}说的",)


def _time_words(messages: Sequence[Message], calendar: Calendar) -> str:
    first, last = messages[0].time, messages[-1].time
    begin, end = calendar.clock_words(first), calendar.clock_words(last)
    if last - first < _LONG:
        return begin
    # 晚上八点到十点左右: the part of the day is said once.
    return f"{begin.removesuffix('左右')}到{end[2:] if begin[:2] == end[:2] else end}"
