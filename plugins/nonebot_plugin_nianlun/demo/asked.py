"""What the character would be given when it is asked: shortened, with what is left out named."""

from __future__ import annotations

import re

from ..memory.keymarks import show_key_marks
from ..memory.prompt import RECALLED_HEAD
from ..memory.provenance import sentences
from .material import Material
from .telling import Teller, shown, width

_LAYERS = {
    "base": "人设与规则",
    "years": "这些年",
    "months": "最近几个月",
    "days": "最近几天",
    "activities": "还没写进日记的活动",
    "history": "最近的聊天",
    "recalled": "由这句话想起的",
    "tail": "此刻",
}
_YEARS = "【这些年】"
_FIRST_LAYER = re.compile(r"^【(?:这些年|最近几个月|最近几天|还没写进日记的事)】$", re.MULTILINE)
_ITEM_LINES = 2
_ITEMS = 3
_LAST_LINES = 4
_BROUGHT_UP = 8
_NEAR = 3


def tell_asked(it: Material, teller: Teller, number: int) -> None:
    """Show the prompt of a reply to the question, layer by layer."""
    teller.heading(number, "被问起的时候")
    teller.line(
        f"现在是 {it.now:%Y-%m-%d %H:%M}，有人在群里问：「{it.question}」"
        "回复之前不再问模型，只从数据库里取，装进这样一份提示词（太长的地方略去，略了多少都写明）："
    )
    teller.line()
    _system(it, teller)
    _history(it, teller)
    _answering(it, teller)
    _tokens(it, teller)


def _system(it: Material, teller: Teller) -> None:
    text = str(it.prompt.messages[0]["content"])
    found = _FIRST_LAYER.search(text)
    base = text if found is None else text[: found.start()]
    teller.line(f"（人设与规则，{len(base)} 字，略）", "dim", indent=2)
    if found is None:
        return
    for block in text[found.start() :].split("\n\n"):
        title, *items = block.split("\n")
        teller.line()
        teller.line(title, "title", indent=2)
        _items(teller, items, whole=title == _YEARS)


def _items(teller: Teller, items: list[str], *, whole: bool) -> None:
    """The newest items, which stand last; each cut short unless `whole`."""
    kept = items if whole else items[-_ITEMS:]
    if len(kept) < len(items):
        teller.line(f"（更早的 {len(items) - len(kept)} 条，略）", "dim", indent=2)
    for item in kept:
        _item(teller, item, whole=whole)


def _item(teller: Teller, item: str, *, whole: bool) -> None:
    text = shown(show_key_marks(item))
    cut = text if whole else _beginning(text, _ITEM_LINES * (teller.columns - 2) - 4)
    teller.line(cut if cut == text else f"{cut}……", "memory", indent=2)
    if cut != text:
        teller.line(f"（这一条还有 {len(text) - len(cut)} 字，略）", "dim", indent=4)


def _beginning(text: str, columns: int) -> str:
    end = len(text)
    while width(text[:end]) > columns:
        end -= 1
    return text[:end]


def _end(it: Material) -> tuple[list[str], list[str], str]:
    """What follows the memory: the lines of the talk, those that were brought up, and the tail."""
    text = "\n\n".join(str(turn["content"]) for turn in it.prompt.messages[1:])
    said, _, tail = text.rpartition("\n\n")
    said, _, recalled = said.partition(f"{RECALLED_HEAD}\n")
    return [line for line in said.split("\n") if line.strip()], recalled.splitlines(), tail


def _history(it: Material, teller: Teller) -> None:
    said, recalled, tail = _end(it)
    teller.line()
    teller.line("【最近的聊天】", "title", indent=2)
    if len(said) > _LAST_LINES:
        teller.line(f"（前面 {len(said) - _LAST_LINES} 行，略）", "dim", indent=2)
    for line in said[-_LAST_LINES:]:
        teller.line(line, "said", indent=2)
    if recalled:
        teller.line()
        teller.line(RECALLED_HEAD, "title", indent=2)
        for item in recalled[:_BROUGHT_UP]:
            _item(teller, item, whole=False)
        if len(recalled) > _BROUGHT_UP:
            teller.line(f"（后面还有 {len(recalled) - _BROUGHT_UP} 条，略）", "dim", indent=2)
    teller.line()
    teller.line(tail, "said", indent=2)


def _answering(it: Material, teller: Teller) -> None:
    """Which of all that speaks of what is asked, and how much that does was left behind."""
    if not it.topic:
        return
    given = str(it.prompt.messages[0]["content"])
    near = [
        part.text.strip(" -；")
        for line in given.split("\n")
        for part in sentences(line)
        if it.topic in part.text
    ]
    found = sum(it.topic in line for line in _end(it)[1])
    everywhere = sum(it.topic in note.text for note in it.held.notes)
    teller.line()
    teller.line(
        f"整份记忆里提到「{it.topic}」的有 {everywhere} 篇，更早的不会每次都带上："
        f"总带着的几层里有 {len(near)} 句，由这句话想起的有 {found} 条。"
    )
    for part in near[:_NEAR]:
        teller.line(part, "memory", indent=2, lead="· ")


def _tokens(it: Material, teller: Teller) -> None:
    teller.line()
    teller.line(f"每一层占多少（估计的 token，上限 {it.budget}）：")
    widest = max(map(width, _LAYERS.values()))
    for name, title in _LAYERS.items():
        if tokens := it.prompt.tokens.get(name, 0):
            blank = " " * (widest - width(title))
            teller.line(f"{tokens:>6}", indent=2, lead=f"{title}{blank}")
    blank = " " * (widest - width("合计"))
    teller.line(f"{it.prompt.total:>6}", indent=2, lead=f"合计{blank}")
