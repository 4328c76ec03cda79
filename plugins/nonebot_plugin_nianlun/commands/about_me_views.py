"""What members are told about themselves. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..memory.calendar import Calendar
from ..memory.render import one_line
from ..store.about_one import Mine
from ..types import Forgotten
from .views import moment

_MOST_NAMES = 10


def mine_view(known: Mine, calendar: Calendar, head: str) -> str:
    if known.messages:
        span = f"，从 {moment(known.first_at, calendar)} 到 {moment(known.last_at, calendar)}"
    else:
        span = ""
    lines = [f"你说的话：{known.messages} 条{span}"]
    names = [one_line(name) for name in known.names[:_MOST_NAMES]]
    if names:
        more = f" 等 {len(known.names)} 个" if len(known.names) > _MOST_NAMES else ""
        lines.append(f"你的名字：{'、'.join(names)}{more}")
    lines.append(f"写到你的日记片段：{known.moments} 条")
    lines.append(f"关于你的词条：{known.facts} 条" + ("：" if known.shown else ""))
    lines += [f"  {one_line(name)}：{one_line(text)}" for name, text in known.shown]
    if (more := known.facts - len(known.shown)) and known.shown:
        lines.append(f"  ……还有 {more} 条")
    state = "现在不记你说的话" if known.opted_out else "现在在记你说的话"
    lines.append(f"{state}。可以发送：{head} 别记我、可以记我、别记这段、忘记我")
    return "\n".join(lines)


def left_out_view(count: int, begins: datetime, calendar: Calendar) -> str:
    since = moment(begins, calendar)
    if not count:
        return f"从 {since} 起没有记着你的话。之后补来或导入的这段也不会记。"
    return (
        f"好，从 {since} 起你说的 {count} 条不记了，用到它们的记忆会按剩下的重写，"
        "再补来或导入也不会回来。别人和我的话里提到的还在。"
    )


def ask_before_forgetting_all(places: int, again: str) -> str:
    return (
        f"真的要我在全部会话里忘记你吗？一共 {places} 个：你说过的话、名字、关于你的事都会清掉，"
        "和我的私聊整个清掉；用到它们的日记会按剩下的重写。清掉就找不回来了。\n"
        f"确定的话，请在 10 分钟内发送：{again}"
    )


def forgotten_all_view(done: Sequence[Forgotten], head: str) -> str:
    return (
        f"在 {len(done)} 个会话里忘记了你：{sum(one.messages for one in done)} 条消息，"
        f"{sum(one.names for one in done)} 个名字，{sum(one.facts for one in done)} 条关于你的事；"
        f"{sum(one.notes for one in done)} 篇记忆清空了，会按剩下的重写，没有剩下的就不再写。\n"
        f"以后你说的话还会记；哪里不想被记，在那里发送：{head} 别记我"
    )
