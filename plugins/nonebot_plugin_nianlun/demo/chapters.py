"""The story that the tour tells: from raw lines to a year, and back from a year to raw lines."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from ..memory.keymarks import show_key_marks
from ..memory.render import text_of
from ..types import ME, Activity, Memory, Message
from .asked import tell_asked
from .material import Material
from .roots import tell_check, tell_roots
from .telling import Teller, shown, width

_WEEKDAYS = "一二三四五六日"
_LINES = 16
"""Raw lines of one window that are shown."""
_FACTS = 12
_LEAD_COLUMNS = 10
_NEXT = {
    "启动": "uv run bot.py，它会说出监听的地址",
    "连上": "在 NapCat、LLBot 等里加一个反向 WebSocket，填上那个地址，群里的话就开始被记下",
    "旧记录": "uv run bot.py import 文件名，把从前的聊天带进来，每条都保留原来的时间",
    "用模型": "在 .env 里设置 OPENAI_API_KEY，日记由模型来写，角色也能聊天",
    "看一看": "在群里发 /记忆 帮助",
}


def tell(it: Material, teller: Teller, writer: str) -> None:
    """Tell everything but what to do next; `writer` says who wrote the memory."""
    _opening(it, teller, writer)
    _day(it, teller)
    _week(it, teller)
    _months(it, teller)
    _years(it, teller)
    _facts(it, teller)
    tell_asked(it, teller, 7)
    tell_roots(it, teller, 8)
    tell_check(it.check, teller)


def _opening(it: Material, teller: Teller, writer: str) -> None:
    people = [it.names[person.user_id] for person in it.people if person.user_id != ME]
    total = sum(person.messages for person in it.people)
    first = min(it.calendar.local(p.first) for p in it.people)
    last = max(it.calendar.local(p.last) for p in it.people)
    teller.heading(1, "年轮：一份会生长的记忆")
    teller.line(
        "群里和私聊里的话，它逐句记下；聊完一段，随手写一条短短的活动；再按日、月、年往上收，"
        "像树长出年轮。回复之前，把该想起来的放到模型面前。"
    )
    teller.line(
        f"下面是一个虚构的{it.place}，有{'、'.join(people)}这 {len(people)} 个人，"
        f"和角色{it.character}。"
        f"{first:%Y-%m-%d} 到 {last:%Y-%m-%d}，{total} 条消息，刚刚当作一份旧记录导入。"
    )
    layers = [
        f"{len(it.held.activities)} 条活动",
        f"{len(it.layer('day'))} 天",
        f"{len(it.layer('month'))} 个月",
        f"{len(it.layer('year'))} 年",
    ]
    teller.line(f"{writer}：{'、'.join(layers)}。")


def _day(it: Material, teller: Teller) -> None:
    teller.heading(2, "一天是怎么记下来的")
    if not it.day:
        return
    teller.line(
        f"{_dated(it.day[0][0].date)}，群里的原话，以及随手写下的活动。"
        "# 后面是消息的编号，& 后面是活动的编号，以后都靠它们找回原话。"
    )
    for activity, messages in it.day:
        teller.line()
        for message in messages[:_LINES]:
            _said(it, teller, message)
        if len(messages) > _LINES:
            teller.line(f"……这一段还有 {len(messages) - _LINES} 条", "dim", indent=2)
        _noted(teller, activity)


def _said(it: Material, teller: Teller, message: Message) -> None:
    clock = it.calendar.local(message.time)
    lead = f"#{message.seq} {clock:%H:%M} {it.speaker(message)}："
    teller.line(text_of(message), "said", indent=2, lead=lead)


def _noted(teller: Teller, activity: Activity) -> None:
    teller.line(show_key_marks(activity.text), "memory", lead=f"=> &{activity.number} ")


def _week(it: Material, teller: Teller) -> None:
    teller.heading(3, "一个星期")
    teller.line("一天过完，这天的活动写成一篇日记。凌晨四点以前的话，算在前一天。")
    for memory in it.week():
        _told(teller, memory, _dated(memory.period))


def _months(it: Material, teller: Teller) -> None:
    teller.heading(4, "一个月一个月")
    teller.line("一个月过完，从日记里收成一段。写的时候看的是全部日记，不是上一版的月记。")
    for memory in it.layer("month"):
        _told(teller, memory, memory.period)


def _years(it: Material, teller: Teller) -> None:
    teller.heading(5, "一年")
    years = it.layer("year")
    open_year = any(memory.period == f"{it.now.year}" for memory in years)
    teller.line("年从月来。" + ("今年还没有过完，先写到已经过完的月份。" if open_year else ""))
    for memory in years:
        _told(teller, memory, memory.period)


def _facts(it: Material, teller: Teller) -> None:
    teller.heading(6, "记住的事实")
    if not it.facts:
        teller.line(
            "发生过的事写进日记，一直成立的事（谁不吃香菜、谁答应了什么）另外记成事实。"
            "离线写手不收事实，这里没有；用模型来写才会有。"
        )
        return
    teller.line("一直成立的事不写进日记，另外记成事实，每条都记着是谁在哪条消息里说的。")
    teller.line()
    for fact in it.facts[:_FACTS]:
        source = "" if fact.source is None else f"（#{fact.source}）"
        teller.line(f"{fact.text}{source}", "memory", indent=2, lead=f"{fact.owner}：")
    if len(it.facts) > _FACTS:
        teller.line(f"……还有 {len(it.facts) - _FACTS} 条", "dim", indent=2)


def _told(teller: Teller, memory: Memory, label: str) -> None:
    teller.line()
    teller.line(label, "dim")
    teller.line(show_key_marks(memory.text), "memory", indent=2)


def _dated(day: str) -> str:
    return f"{day} 周{_WEEKDAYS[date.fromisoformat(day).weekday()]}"


def tell_next(teller: Teller, home: Path) -> None:
    """What a newcomer does now, and what the tour leaves behind."""
    teller.heading(9, "接下来")
    for lead, text in _NEXT.items():
        blank = " " * (_LEAD_COLUMNS - width(lead))
        teller.line(text, indent=2, lead=f"{lead}{blank}")
    teller.line()
    teller.line("这次演示的文件在下面的文件夹里，和真正的记忆无关，随时可以整个删掉：")
    # A path is not wrapped, so that it can be copied.
    teller.write(f"  {shown(str(home.resolve()))}\n")
