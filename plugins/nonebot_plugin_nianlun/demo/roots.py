"""Where sentences come from, as a tree down to quoted lines; and the same count for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..memory.evidence import quoted_spans
from ..memory.provenance import UNTOLD, Check, Trace, sentences, trace
from ..memory.render import text_of
from ..types import MemoryKind, Message
from .material import Material
from .telling import Teller

_TREES = 3
_LARGEST = 4
"""Messages that a sentence cites at most to be shown as a tree."""
_CLAIMS = 5
_LABELS = {"year": "年", "month": "月", "day": "日", "activity": "活动"}
_LAYERS: tuple[MemoryKind, ...] = ("year", "month", "day")


def tell_roots(it: Material, teller: Teller, number: int) -> None:
    """Follow a few sentences of the years down to messages."""
    teller.heading(number, "每一句从哪里来")
    teller.line(
        "年里的一句，写自哪个月的哪一句，又写自哪天、哪条活动，最后是谁在什么时候说的哪句话："
    )
    for root in _chosen(it):
        teller.line()
        _branch(it, teller, root, 0)


def _chosen(it: Material) -> list[Trace]:
    """What is asked about first, from the highest layer that tells of it, then others of the
    years, from different parts of them."""
    asked = [root for kind in _LAYERS for root in _small(it, kind) if it.topic in _tidy(root)]
    others = [root for root in _small(it, "year") if root not in asked[:1]]
    step = max(1, len(others) // (_TREES - 1))
    return [*asked[:1], *others[step // 2 :: step]][:_TREES]


def _small(it: Material, kind: MemoryKind) -> list[Trace]:
    """The quoting sentences of a layer whose trees are not too large to be read."""
    found = [
        trace(it.held, note, part)
        for note in it.layer(kind)
        for part in sentences(note.text, note.key_messages)
        if quoted_spans(part.text) and len(part.key_messages) <= _LARGEST
    ]
    return [root for root in found if root.complete]


def _branch(it: Material, teller: Teller, node: Trace, depth: int) -> None:
    ref = f"&{node.ref}" if node.kind == "activity" else node.ref
    label = f"{_LABELS[node.kind]} {ref} "
    words = _tidy(node)
    if not words and node.kind == "activity":
        words = UNTOLD
    teller.line(words, "memory", indent=2 * depth, lead=label)
    for below in node.below:
        _branch(it, teller, below, depth + 1)
    for message in node.messages:
        _leaf(it, teller, message, depth + 1)


def _leaf(it: Material, teller: Teller, message: Message, depth: int) -> None:
    local = it.calendar.local(message.time)
    lead = f"#{message.seq} {local:%Y-%m-%d %H:%M} {it.speaker(message)}："
    teller.line(f"「{text_of(message)}」", "said", indent=2 * depth, lead=lead)


def _tidy(node: Trace) -> str:
    return node.sentence.text.strip().rstrip("；，")


def tell_check(check: Check, teller: Teller) -> None:
    """How far this holds for every sentence of every layer."""
    teller.line()
    teller.line("不只这几句。刚才把四层记忆的每一句都这样追了一遍：")
    for line in _sums(check):
        teller.line(line, indent=2, lead="· ")
    for claim in _first(check.claims):
        teller.line(claim, indent=4)


def _sums(check: Check) -> Iterator[str]:
    broken = check.sentences - check.uncited - check.traced
    yield f"一共 {check.sentences} 句，{check.traced} 句一层不断地追到了它引用的每一条消息"
    if check.uncited:
        yield f"{check.uncited} 句没有引用消息（例如只说有谁、什么时候的句子）"
    if broken:
        yield f"{broken} 句有引用，却没有全部追到"
    yield (
        f"「」里的引文有 {check.quotes} 处，{check.verbatim} 处一字不差地在它引用的消息里"
        "（省略号处略去了字）"
    )
    yield f"引文和数字里，找不到出处的有 {len(check.claims)} 处"


def _first(claims: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(claims))[:_CLAIMS]
