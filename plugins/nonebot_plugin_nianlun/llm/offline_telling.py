"""How chosen sentences become a day, a month or a year: leads, transitions and a first sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
import re

from ..memory.relative_days import NICKNAMED, numeral
from ..memory.units import count_units
from ..types import MemoryKind
from .offline_pieces import TAKEN_UP, Piece, themes
from .words import distinct

_PARTS = "凌晨|清晨|早上|上午|中午|下午|傍晚|晚上|夜里|深夜"
_PART = re.compile(_PARTS)
_CLOCK = rf"(?:{_PARTS})?[零一二两三四五六七八九十]{{1,2}}点半?"
_TIME = re.compile(
    rf"从?(?:{_PARTS})[零一二两三四五六七八九十]{{1,2}}点半?(?:左右|前后|那会儿)?(?:到{_CLOCK})?"
)
_NICKNAMED = re.compile(NICKNAMED)
_TOPICAL = re.compile(
    "说起|聊到|聊[^着天]|说到|话题|商量|合计|主意|话头|没有接话|没有人接话|没有回|留了话"
)
# How the company was; away from what was said there it tells nothing.
_MOOD = re.compile(
    "^(?:大家(?:笑个不停|一个劲地叫好|互相打气)|说说笑笑的|到处是叫好声|安慰的话说了不少)$"
)
_NUMBER = "[一二三四五六七八九十]{1,3}"
_GREAT_DAY = 0.8
_NEXT_PART = ("{}，", "到了{}，", "{}，", "等到{}，")
_SAME_PART = ("接着，", "后来，", "随后，", "再往后，", "过后，")
_DATE_LEAD = re.compile(rf"^(?:到了)?{_NUMBER}日(?:那天)?，|^第二天，")
_LED = re.compile(
    rf"^(?:到了|等到)?(?:{_PARTS})，|^(?:接着|后来|随后|再往后|过后)，"
    rf"|^{_TIME.pattern}，?(?:在[^，。「]{{1,30}}里)?，"
)
_NOT_ALONE = "初底末中上下间半的游以之前后起至到和与、"
"""What follows a date that is a part of more: of `十月底`, `九日游`, `十月到十一月`."""
_SUMMARY = re.compile(
    "^(?:这天|这一天|这个月|这一年|说得最多的是|月里总在说)[^「」]*$"
    "|^[^「」]*月里总要说起$|^从[^「」，]{1,4}到[^「」，]{1,4}都在说[^「」]*$"
)


def part_of_day(text: str) -> str:
    """The first part of the day that a text names outside quotes; empty when it names none."""
    found = _PART.search(_unnamed(text.split("「", 1)[0]))
    return found[0] if found else ""


def _unnamed(text: str) -> str:
    """`text` with the names that may hold any word blanked out, as long as before."""
    return _NICKNAMED.sub(lambda name: "某" * len(name[0]), text)


def led_in(pieces: list[Piece], place: str) -> list[Piece]:
    """The sentences of one activity, its opening turned into the intro of what follows.

    An opening that only says that people talked is dropped when something was said.
    """
    pieces = [piece for piece in pieces if not _MOOD.match(piece.text)] or pieces
    if not pieces:
        return []
    first = pieces[0]
    found = _TIME.search(_unnamed(first.text.split("「", 1)[0]))
    if found is None:
        return pieces
    plain = _bare(first.text, place)
    if first.quotes or len(pieces) == 1:
        return [replace(first, text=plain, opening=first.text), *pieces[1:]]
    intro = plain if _TOPICAL.search(plain) else ""
    second = replace(pieces[1], intro=intro, opening=first.text)
    return [second, *pieces[2:]]


def _bare(sentence: str, place: str) -> str:
    """Without its time and place, which stand before the first quote."""
    head, quote, rest = sentence.partition("「")
    if time := _TIME.search(_unnamed(head)):
        head = head[: time.start()] + head[time.end() :]
    for where in (f"在{place}", "在群里", "在私聊里"):
        if where in head:
            head = head.replace(where, "", 1)
            break
    return head.replace("，，", "，").lstrip("，") + quote + rest


def _naming(numbers: Sequence[int]) -> re.Pattern[str]:
    """How a sentence begins that names the month of these numbers, or its day, as a lead does;
    `十月底` and `九日游` say something else."""
    month, day = numbers[1], numbers[2:]
    forms = rf"(?:{numeral(month)}|{month})月"
    if day:
        forms = rf"(?:{forms})?(?:{numeral(day[0])}|{day[0]})日"
    return re.compile(rf"^(?:到了)?{forms}(?:份|里|那天)*+(?:，|(?![{_NOT_ALONE}])(?=.))")


def dated(pieces: Iterable[Piece], kind: MemoryKind, period: str) -> list[Piece]:
    """The sentences of a day or month without their own leads, led by the date instead."""
    numbers = [int(part) for part in period.split("-")]
    lead = f"{numeral(numbers[-1])}{'日' if kind == 'day' else '月'}"
    named = _naming(numbers)
    found: list[Piece] = []
    same_day: list[int] = []
    for piece in pieces:
        text = (_LED if kind == "day" else _DATE_LEAD).sub("", piece.text)
        if text != piece.text or not same_day:
            same_day.append(0)
        # Nobody is left whom it could answer.
        text = TAKEN_UP.sub(r"\1\2说", named.sub("", text))
        if count_units(text) and not _SUMMARY.match(text):
            same_day[-1] += 1
            group = len(same_day) - 1
            found.append(replace(piece, text=text, lead=lead, number=numbers[-1], order=(group, 0)))
    if kind == "month":
        # A day that the month tells much of was a great day.
        found = [replace(p, extra=_GREAT_DAY * (same_day[p.order[0]] - 1)) for p in found]
    telling = [piece for piece in found if piece.quotes or not _TOPICAL.search(piece.text)]
    return telling or found


def front(kind: MemoryKind, period: str, pieces: Sequence[Piece]) -> str:
    """A first sentence about the whole period, for some periods; else nothing."""
    least = {"day": 2, "month": 3, "year": 3}[kind]
    counts = themes(pieces)
    # 枸杞岛 is as frequent as 枸杞, which is the same in other words.
    often = [word for word in counts if counts[word] >= least]
    words = [name for name in distinct(counts) if any(word in name for word in often)][:3]
    if not words or len({piece.group for piece in pieces}) <= least:
        return ""
    told = "、".join(words[:-1]) + "和" + words[-1] if len(words) > 1 else words[0]
    ends = (pieces[0].lead, pieces[-1].lead)
    forms = {
        "day": (
            f"这天绕不开的是{words[0]}。",
            "",
            f"这天说来说去都是{words[0]}。",
            f"从{ends[0]}到{ends[1]}都在说{words[0]}。" if ends[0] != ends[1] else "",
            "",
        ),
        "month": (
            f"说得最多的是{told}。",
            "",
            f"月里总在说{words[0]}。",
            "",
            f"{told}，月里总要说起。",
        ),
        "year": (f"这一年反复说起的是{told}。",),
    }[kind]
    return forms[int(period[-2:]) % len(forms)]


def tell(kind: MemoryKind, pieces: Sequence[Piece]) -> str:
    """The pieces as running text, each followed by its own key messages."""
    kept = "".join(piece.sentence for piece in pieces if piece.kept)
    fresh = [piece for piece in pieces if not piece.kept]
    return kept + (_day(fresh, continued=bool(kept)) if kind == "day" else _timeline(fresh, kind))


def _day(pieces: Sequence[Piece], *, continued: bool) -> str:
    text, part = "", ""
    for index, (_, group) in enumerate(groupby(pieces, key=lambda piece: piece.group)):
        first, *rest = group
        if index == 0 and not continued:
            text += _opened(first)
        else:
            intro = f"{first.intro}。" if first.intro else ""
            text += f"{_day_lead(first, part, index)}{intro}{first.sentence}"
        part = first.lead
        text += "".join(piece.sentence for piece in rest)
    return text


def _opened(first: Piece) -> str:
    """The first talk of a day keeps its hour and its place."""
    if first.intro:
        return f"{first.opening}。{first.sentence}"
    whole = first.opening if "「" in first.opening else first.text
    return replace(first, text=whole).sentence


def _day_lead(piece: Piece, before: str, index: int) -> str:
    if part_of_day(piece.intro or piece.text):
        return ""
    if piece.lead == before:
        return _SAME_PART[index % len(_SAME_PART)]
    return _NEXT_PART[index % len(_NEXT_PART)].format(piece.lead)


def _timeline(pieces: Sequence[Piece], kind: MemoryKind) -> str:
    text, before, lead = "", 0, ""
    for index, (number, group) in enumerate(groupby(pieces, key=lambda piece: piece.number)):
        told = list(group)
        if kind == "month" and number == before + 1 and lead != "第二天，" and before:
            lead = "第二天，"
        else:
            forms = ("{}，", "到了{}，", "{}那天，" if kind == "month" else "{}里，")
            lead = forms[index % 3].format(told[0].lead)
        text += lead + "；".join(piece.marked for piece in told[:-1])
        text += ("；" if told[1:] else "") + told[-1].sentence
        before = number
    return text
