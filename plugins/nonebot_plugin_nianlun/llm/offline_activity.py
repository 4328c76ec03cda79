"""An activity note without a model: who spoke when and where, and the lines worth quoting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from ..errors import NoteRejected
from ..memory.calendar import Calendar
from ..memory.keymarks import key_mark
from ..memory.notes import check_note
from ..memory.relative_days import dates_ahead
from ..memory.units import count_units
from ..types import Message, Note, Scene, Window
from .offline_names import is_allowed
from .offline_openings import Gathering, direct, opening
from .salience import CUES, Line, moods, rank_lines
from .speech import verb
from .words import excerpt

_RICHNESS = (
    (3, 26),
    (3, 20),
    (3, 15),
    (2, 26),
    (3, 11),
    (2, 16),
    (1, 40),
    (1, 24),
    (1, 12),
    (0, 0),
)
"""How many lines to quote and how many units of each, from the best note to the shortest."""
_LATER = timedelta(minutes=40)
_SOON = timedelta(minutes=3)
_MANY = 4
_WORDS_FIRST = "{1}，{0}说"
_FRAMES = ("{0}说{1}", "听{0}说{1}", "{0}说{1}", "{0}告诉大家{1}", _WORDS_FIRST, "{0}说{1}")
"""How a plain line is told: by its speaker, as heard, or words first."""
_KEPT = "{0}那句{1}我记下了"
_MEMORABLE = 4.5
_WORTH_QUOTING = 1.0
_ECHOES = {
    "笑": ("，大家都笑了", "，群里笑成一片", "，惹得大家直笑"),
    "贺": ("，大家都替他高兴", "，群里一片叫好", "，大家都叫好"),
    "慰": ("，大家都在宽慰", "，大家忙着打气", "，好几个人来安慰"),
}
_MOODS = {
    "笑": ("大家笑个不停。", "说说笑笑的。"),
    "贺": ("大家一个劲地叫好。", "到处是叫好声。"),
    "慰": ("大家互相打气。", "安慰的话说了不少。"),
}


def describe_window(window: Window, scene: Scene, calendar: Calendar) -> Note | None:
    """The note of a window; None when nothing in it can be read."""
    messages = [
        m for m in window.messages if m.skipped is None and not m.withdrawn and m.text.strip()
    ]
    if not messages:
        return None
    shown = {message.seq for message in messages}
    for text in _drafts(messages, scene, calendar):
        try:
            clean, keys = check_note("activity", text, shown)
        except NoteRejected:
            continue
        return Note(clean, keys, "offline")
    raise AssertionError("the plainest note always passes")


def _drafts(messages: Sequence[Message], scene: Scene, calendar: Calendar) -> Iterator[str]:
    told = [message for message in messages if not (message.is_mine and message.via == "other")]
    when = calendar.clock_words(messages[0].time)
    if not told:
        yield f"{when}只有我的账号替别的功能说话。"
        return
    lines = [line for line in rank_lines(told, scene.character) if _is_quotable(line)]
    yield from _Draft(Gathering.of(told, scene, calendar), lines, calendar, scene.character).texts()
    yield f"{when}，{'私聊' if scene.chat.kind == 'private' else '群'}里有人说话。"


@dataclass(frozen=True, slots=True)
class _Draft:
    """Everything that the sentences of one note are made from."""

    gathering: Gathering
    lines: list[Line]
    calendar: Calendar
    me: str
    chosen: Sequence[Line] = ()

    def texts(self) -> Iterator[str]:
        """Whole notes, the richest first."""
        for wanted, units in _RICHNESS:
            draft = replace(self, chosen=_choose(self.lines, wanted))
            yield from draft._with(units)

    def _with(self, units: int) -> Iterator[str]:
        it = self.gathering
        if self.lines and not self.chosen:
            return
        mark = key_mark([line.message.seq for line in self.chosen])
        plain = self._quotes(units)
        # A note of a few lines begins with them; one of many first says what it was about.
        if self.chosen and not it.topics and it.variant % 3 and it.kind != "private":
            yield f"{direct(it)}{plain}{self._mood()}{mark}"
            yield f"{direct(it)}{plain}{mark}"
        yield f"{opening(it)}。{plain}{self._mood()}{mark}"
        yield f"{opening(it)}。{plain}{mark}"

    def _quotes(self, units: int) -> str:
        text, linked = "", False
        for index, line in enumerate(self.chosen):
            previous = self.chosen[index - 1] if index else None
            goes_on = index + 1 < len(self.chosen) and self._linked(line, self.chosen[index + 1])
            text += self._clause(previous if linked else None, line, units, goes_on=goes_on)
            if not goes_on and index + 1 < len(self.chosen):
                text += "。" + self._later(line, self.chosen[index + 1])
            elif goes_on:
                text += "，"
            linked = goes_on
        return f"{text}{self._echo()}。" if text else ""

    def _echo(self) -> str:
        line = self.chosen[-1]
        if not line.echo:
            return ""
        words = _ECHOES[line.echo][line.message.seq % 3]
        # Whether others are glad for him or for her cannot be seen.
        return words.replace("替他", "替我" if line.message.is_mine else "跟着")

    def _linked(self, previous: Line, line: Line) -> bool:
        """Whether the line belongs in one sentence with the one quoted before it."""
        before, message = previous.message, line.message
        if message.reply_to == before.seq:
            return True
        if before.user_id == message.user_id:
            return not self._is_later(previous, line)
        return self._distance(before, message) <= 2 and message.time - before.time <= _SOON

    def _distance(self, before: Message, message: Message) -> int:
        messages = self.gathering.messages
        return messages.index(message) - messages.index(before)

    def _is_later(self, before: Line, line: Line) -> bool:
        return self.gathering.is_long and line.message.time - before.message.time >= _LATER

    def _later(self, before: Line, line: Line) -> str:
        later = self._is_later(before, line)
        return f"{self.calendar.clock_words(line.message.time)}，" if later else ""

    def _clause(self, before: Line | None, line: Line, units: int, *, goes_on: bool) -> str:
        """One quote with who said it and how; `before` is the one in the same sentence."""
        message = line.message
        again = before is not None and before.message.user_id == message.user_id
        subject = "" if again else self.gathering.name_of(message)
        quote = excerpt(line.words, units, CUES)
        said = self._verb(before, line, quote)
        dates = dates_ahead(quote, self.calendar.day_of(message.time))
        told = f"「{quote}」" + (f"（{'、'.join(dates)}）" if dates else "")
        if said == "说" and before is None and not message.is_mine:
            return self._frame(line, goes_on=goes_on).format(subject, told)
        return f"{subject}{said}{told}"

    def _frame(self, line: Line, *, goes_on: bool) -> str:
        seq = line.message.seq
        if not goes_on and line.score >= _MEMORABLE and seq % 3 == 0:
            return _KEPT
        frame = _FRAMES[seq % len(_FRAMES)]
        # Words first only where nobody takes them up in the same sentence, nor right after 在群里.
        if frame == _WORDS_FIRST and (goes_on or line is self.chosen[0]):
            return _FRAMES[0]
        return frame.replace("大家", "我") if self.gathering.kind == "private" else frame

    def _verb(self, before: Line | None, line: Line, quote: str) -> str:
        message = line.message
        own = verb(quote, message.seq, mine=message.is_mine)
        plain = own in ("说", "提到")
        if before is not None:
            if before.message.user_id == message.user_id:
                return f"又{own}" if own in ("问", "说", "提醒") else f"还{own}"
            if not plain:
                return own
            return "答" if before.asks else ("接话说", "回", "跟着说")[message.seq % 3]
        if plain and (to := self._answered(line)):
            return f"回{to}"
        if plain and not message.is_mine and self.me and f"@{self.me}" in message.text:
            return "对我说"
        return own

    def _answered(self, line: Line) -> str:
        target = line.message.reply_to
        for message in self.gathering.messages:
            if message.seq == target and message.user_id != line.message.user_id:
                return self.gathering.name_of(message)
        return ""

    def _mood(self) -> str:
        if self.chosen and self.chosen[-1].echo:
            return ""
        found = moods(self.gathering.messages, least=2).most_common(1)
        if not found or found[0][1] < _MANY or len(self.gathering.names) < 2:
            return ""
        return _MOODS[found[0][0]][self.gathering.variant % 2]


def _choose(lines: Sequence[Line], wanted: int) -> list[Line]:
    """The best lines in time order; a question and its answer pull each other in."""
    chosen: list[Line] = []
    while len(chosen) < wanted:
        rest = [
            line
            for line in lines
            if line not in chosen and (line.score >= _WORTH_QUOTING or not chosen)
        ]
        if not rest:
            break
        chosen.append(max(rest, key=lambda line: _appeal(line, chosen)))
    _let_me_in(chosen, lines, wanted)
    return sorted(chosen, key=lines.index)


def _appeal(line: Line, chosen: Sequence[Line]) -> float:
    score = line.score
    for other in chosen:
        a, b = line.message, other.message
        if a.reply_to == b.seq or b.reply_to == a.seq:
            score += 2.5
        elif a.user_id == b.user_id:
            score -= 1.5
    return score


def _let_me_in(chosen: list[Line], lines: Sequence[Line], wanted: int) -> None:
    mine = [line for line in lines if line.message.is_mine and line.score >= _WORTH_QUOTING]
    if wanted < 2 or not mine or any(line.message.is_mine for line in chosen):
        return
    del chosen[wanted - 1 :]
    chosen.append(max(mine, key=lambda line: _appeal(line, chosen)))


def _is_quotable(line: Line) -> bool:
    return bool(count_units(line.words)) and is_allowed(
        f"有人说「{excerpt(line.words, 40, CUES)}」。"
    )
