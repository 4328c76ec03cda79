"""An activity note without a model: who spoke when and where, and the lines worth quoting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
import re

from ..errors import NoteRejected
from ..memory.calendar import Calendar
from ..memory.keymarks import key_mark
from ..memory.notes import check_note
from ..memory.units import count_units, cut_to_units
from ..types import Message, Note, Scene, Window
from .offline_names import is_allowed
from .offline_openings import Gathering, opening
from .relative_days import dates_ahead
from .salience import Line, count_moods, is_media_only, rank_lines

_RICHNESS = ((3, 26), (3, 19), (3, 14), (2, 26), (2, 16), (1, 40), (1, 24), (1, 12), (0, 0))
"""How many lines to quote and how many units of each, from the best note to the shortest."""
_LATER = timedelta(minutes=40)
_MANY = 3
_WORTH_QUOTING = 1.0
_REMINDING = re.compile("别忘|(?<![我你还])记得(?![，。！的吗])")
_TOLD = re.compile(r"\d|[点号月]|早上|下午|晚上")


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
    when, count = calendar.clock_words(messages[0].time), len(messages)
    if not told:
        yield f"{when}只有{count}句话，都是我的账号替别的功能发的。"
        return
    lines = [line for line in rank_lines(told, scene.character) if _is_quotable(line)]
    yield from _Draft(Gathering.of(told, scene, calendar), lines, calendar, scene.character).texts()
    yield f"{when}，{'私聊' if scene.chat.kind == 'private' else '群'}里有{count}句话。"


@dataclass(frozen=True, slots=True)
class _Draft:
    """Everything that the sentences of one note are made from."""

    gathering: Gathering
    lines: list[Line]
    calendar: Calendar
    me: str

    def texts(self) -> Iterator[str]:
        """Whole notes, the richest first."""
        for wanted, units in _RICHNESS:
            chosen = _choose(self.lines, wanted)
            mark = key_mark([line.message.seq for line in chosen])
            text = f"{opening(self.gathering)}。{self._quotes(chosen, units)}"
            yield f"{text}{self._aside()}{mark}"
            yield f"{text}{mark}"

    def _quotes(self, chosen: Sequence[Line], units: int) -> str:
        text, previous = "", None
        for line in chosen:
            linked = previous is not None and self._linked(previous, line)
            joint = "" if previous is None else "，" if linked else "。"
            text += joint + self._clause(previous, line, linked, units)
            previous = line
        return text + "。" if text else ""

    def _linked(self, previous: Line, line: Line) -> bool:
        """Whether the line belongs in one sentence with the one quoted before it."""
        before, message = previous.message, line.message
        if message.reply_to == before.seq:
            return True
        if before.user_id == message.user_id:
            return not self._is_later(previous, line)
        return (
            previous.asks
            and self.gathering.messages.index(message) - self.gathering.messages.index(before) == 1
        )

    def _is_later(self, previous: Line | None, line: Line) -> bool:
        since = previous.message if previous else self.gathering.messages[0]
        return self.gathering.is_long and line.message.time - since.time >= _LATER

    def _clause(self, previous: Line | None, line: Line, linked: bool, units: int) -> str:
        message = line.message
        same = previous is not None and previous.message.user_id == message.user_id
        when = (
            f"{self.calendar.clock_words(message.time)}，" if self._is_later(previous, line) else ""
        )
        subject = "" if same and linked else self.gathering.name_of(message)
        answers = previous is not None and message.reply_to == previous.message.seq
        verb = self._verb(line, same and linked, answers)
        day = self.calendar.day_of(message.time)
        words = _shorten(line.words, units)
        dates = dates_ahead(words, day)
        return f"{when}{subject}{verb}「{words}」" + (f"（{'、'.join(dates)}）" if dates else "")

    def _verb(self, line: Line, again: bool, answers: bool) -> str:
        if again:
            return "又问" if line.asks else "又说"
        if line.asks:
            return "问"
        if answers:
            return "回"
        if to := self._answered(line):
            return f"回{to}"
        if not line.message.is_mine and self.me and f"@{self.me}" in line.message.text:
            return "对我说"
        if _REMINDING.search(line.words):
            return "提醒"
        if not line.message.is_mine and _TOLD.search(line.words):
            return "提到"
        return "说"

    def _answered(self, line: Line) -> str:
        target = line.message.reply_to
        for message in self.gathering.messages:
            if message.seq == target and message.user_id != line.message.user_id:
                return self.gathering.name_of(message)
        return ""

    def _aside(self) -> str:
        media = sum(is_media_only(message.text) for message in self.gathering.messages)
        if media == len(self.gathering.messages):
            return ""
        moods = [
            f"{n}句{mood}" for mood, n in count_moods(self.gathering.messages).items() if n >= _MANY
        ]
        pictures = [f"{media}条只有图片或表情"] if media >= _MANY else []
        return f"其中{'，'.join(moods + pictures)}。" if moods or pictures else ""


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
    return bool(count_units(line.words)) and is_allowed(f"有人说「{_shorten(line.words, 40)}」。")


def _shorten(words: str, units: int) -> str:
    whole = words.translate({ord("「"): "『", ord("」"): "』"})
    if count_units(whole) <= units and len(whole) <= units * 8:
        return whole
    return cut_to_units(whole[: units * 8], units).rstrip(" ，。、：；…") + "……"
