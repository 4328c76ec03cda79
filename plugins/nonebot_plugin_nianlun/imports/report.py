"""What an import did, and how that is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from ..capture.cleaning import one_line
from ..memory.calendar import Calendar
from ..types import ChatKey
from .found import Unreadable

LINES_SHOWN = 20
"""Of lines that could not be read, edits aside."""


@dataclass(slots=True)
class ChatReport:
    """What became of one chat of the file, in messages unless said otherwise."""

    chat: ChatKey
    label: str
    """What the file calls it."""
    messages: int
    first: datetime | None
    last: datetime | None
    new: int = 0
    known: int = 0
    """Stored already, or twice in the file."""
    withdrawn: int = 0
    """Of the new ones: stored without their words."""
    empty: int = 0
    """Of the new ones: nothing in it can be read."""
    system: int = 0
    """Of all: said by nobody."""
    mine: int = 0
    """Of all: the bot's own."""
    people: int = 0
    """Who speak, the bot among them."""
    notes: int = 0
    """Activities, days, months, years and facts that are new here."""
    edited: int = 0
    """Texts of our own vault that somebody had changed, and that are so here now."""
    pending: int = 0
    """Messages of the chat that no note covers yet."""
    owed: int = 0
    """Notes of the chat that are to be written beside those of such messages."""
    nameless: bool = False
    """The file gives no number and no recorded chat has its name."""
    heard: bool = True
    """The settings let this chat be recorded and noted."""

    def count(self, new: int, known: int, withdrawn: int, empty: int) -> None:
        """Add a batch."""
        self.new += new
        self.known += known
        self.withdrawn += withdrawn
        self.empty += empty


@dataclass(slots=True)
class ImportReport:
    """What an import did."""

    title: str
    """The format, as a person calls it."""
    chats: list[ChatReport] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    """Every edit that was not followed, and the first of all else, in order of line."""
    left_out: int = 0
    """How many lines, or parts of one, could not be read."""
    _others: int = 0
    """How many of `unreadable` are no edits."""

    def add_unreadable(self, found: Unreadable) -> None:
        self.left_out += 1
        if found.edit or self._others < LINES_SHOWN:
            self._others += not found.edit
            self.unreadable.append(found)

    @property
    def new(self) -> int:
        return sum(chat.new for chat in self.chats)


def shown(found: Iterable[Unreadable], others: int = LINES_SHOWN) -> list[Unreadable]:
    """All edits that were not followed, and so many of all else, in their order."""
    place = count()
    return [one for one in found if one.edit or next(place) < others]


def describe(report: ImportReport, calendar: Calendar) -> Iterator[str]:
    """The report for a person, a line each."""
    yield f"格式：{report.title}"
    for chat in report.chats:
        yield from _chat(chat, calendar)
    if report.left_out:
        yield f"有 {report.left_out} 处没有导入，或没有照原样读进来："
        for one in report.unreadable:
            yield f"  第 {one.line} 行：{one_line(one.reason)}"
        if report.left_out > len(report.unreadable):
            yield f"  ……还有 {report.left_out - len(report.unreadable)} 处"
    yield from _next(report)


def _chat(chat: ChatReport, calendar: Calendar) -> Iterator[str]:
    yield one_line(f"{chat.label} → {chat.chat.full}")
    system = f"（其中 {chat.system} 条系统消息）" if chat.system else ""
    span = ""
    if chat.first is not None and chat.last is not None:
        first, last = (calendar.local(at).date() for at in (chat.first, chat.last))
        span = f"，{first} 到 {last}" if first != last else f"，{first}"
    yield f"  {chat.messages} 条消息{system}，{chat.people} 人{span}"
    parts = [f"新存 {chat.new} 条", f"早已有 {chat.known} 条"]
    if chat.withdrawn:
        parts.append(f"已撤回而只留空位 {chat.withdrawn} 条")
    if chat.empty:
        parts.append(f"没有内容 {chat.empty} 条")
    if chat.notes:
        parts.append(f"带来记忆 {chat.notes} 篇")
    if chat.edited:
        parts.append(f"照改 {chat.edited} 篇")
    yield f"  {'，'.join(parts)}"
    if chat.mine:
        yield f"  其中 {chat.mine} 条是机器人自己（{chat.chat.self_id}）说的"
    elif chat.messages:
        yield ("  没有机器人自己说的；如果里面有，请加上 --me 名字或QQ号 再导入一次，消息不会重复")
    if chat.nameless:
        yield (
            "  文件里没有这个会话的号码，先按名字存放；要归到真正的会话，"
            f"请加上 --chat {chat.chat.kind}:号码 再导入"
        )
    if not chat.heard:
        yield "  设置里没有启用这个会话，它的记忆不会被整理"


def _next(report: ImportReport) -> Iterator[str]:
    if waiting := what_waits(report):
        yield f"还有{waiting}：运行 bot.py rollup 现在就写，或者等正在运行的机器人自己来写"
    elif report.chats:
        yield "没有欠着的整理。"


def what_waits(report: ImportReport) -> str:
    """What is still to be written, for a person, with a blank before it; empty when nothing is."""
    heard = [chat for chat in report.chats if chat.heard]
    parts = []
    if pending := sum(chat.pending for chat in heard):
        parts.append(f"{pending} 条消息没有写成记忆")
    if owed := sum(chat.owed for chat in heard):
        parts.append(f"{owed} 篇记忆要更新")
    return f" {'，'.join(parts)}" if parts else ""
