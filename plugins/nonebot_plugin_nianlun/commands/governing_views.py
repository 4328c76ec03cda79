"""What governing commands answer. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from ..memory.render import one_line
from ..store.clearing import Contents
from ..store.links import Linked
from ..types import ChatKey, ChatKind


def paused(changed: bool, head: str) -> str:
    if not changed:
        return f"本来就停着。要接着记，请发送：{head} 继续"
    return (
        "好，从现在起不记这里说的话，之后补来或导入的这段时间的话也不记；叫我时照样回答，答完就忘。\n"
        f"要接着记，请发送：{head} 继续"
    )


def resumed(changed: bool) -> str:
    return "好，从现在起又会记这里说的话了。" if changed else "本来就在记。"


def muted(changed: bool, head: str) -> str:
    state = "好，我只听不说了" if changed else "我本来就没在说话"
    return f"{state}，记忆照写，指令照答。要我开口，请发送：{head} 开口"


def unmuted(changed: bool) -> str:
    return "好，我又会回话了。" if changed else "我本来就会回话。"


def personas(names: Sequence[str], own: str | None, head: str, usual: str) -> str:
    now = f"现在用的人设：{one_line(own)}" if own else "现在用的是原来的人设"
    if not names:
        return f"{now}。还没有别的：主人可以在 NIANLUN__PERSONA_FILE 的文件夹里放 .md 文件。"
    listed = "、".join(map(one_line, names))
    return f"{now}。\n能用的：{listed}\n要换请发送：{head} 人设 名；换回来：{head} 人设 {usual}"


def limit(current: int | None, head: str) -> str:
    told = "没有限额" if current is None else f"每天最多 {current} token"
    return f"现在{told}（不算回复）。要改请发送：{head} 限额 数量"


def limit_set(current: int | None) -> str:
    if current is None:
        return "好，写记忆不限额了。"
    if current == 0:
        return "好，这里写记忆不用模型，由离线写手来写。"
    return f"好，这里每天写记忆最多用 {current} token，用完由离线写手来写。"


def opened(changed: bool) -> str:
    return "好，群里每个人都能看这个群的记忆了。" if changed else "本来就每个人都能看。"


def closed(changed: bool) -> str:
    told = "好，群里只有群主、管理员和主人能看这个群的记忆了" if changed else "本来就只有管理能看"
    return f"{told}；每个人关于自己的指令照样能用。"


def links(linked: Sequence[Linked]) -> str:
    if not linked:
        return "没有和别的会话连通。"
    return "连着这些会话，互相想得起来：\n" + "\n".join(
        f"{one.place}（{one.key.peer_id}）" for one in linked
    )


def ask_before_linking(here: ChatKey, other: ChatKey, again: str) -> str:
    if here.kind == other.kind:
        who = "两边的人都可能从我的话里听到对方私下说的"
    else:
        who = "群里的人可能从我的话里、从「搜索」里看到私聊里说过的事"
    return (
        f"其中有私聊。连通之后，{who}。请先问过私聊里的人。\n确定的话，请在 10 分钟内发送：{again}"
    )


def linked(changed: bool, head: str, typed: str) -> str:
    if not changed:
        return "本来就连着。"
    return (
        "连通了：两边回话前的回想和「搜索」都会看另一边的记忆，写明来自哪里；别的不通。\n"
        f"要断开，请发送：{head} 断开 {typed}"
    )


def unlinked(changed: bool) -> str:
    return "断开了，从现在起互不相通。" if changed else "本来就没有连着。"


def about(chat: ChatKey, here: ChatKey) -> str:
    """How a command says again which other chat it is about."""
    if chat == here:
        return ""
    return f" {'-g' if chat.kind == 'group' else '-u'} {chat.full}"


def ask_before_clearing(there: Contents, again: str) -> str:
    return (
        f"真的要清空吗？会清掉这里的全部记忆：{_listed(there)}，连同旧版本、词条的从前和索引。"
        "清掉就找不回来了，以后补来或导入的、现在以前的话也不再记。"
        "设置、别记我的成员和用量数字留着。\n"
        f"要留一份，先用「导出」。确定的话，请在 10 分钟内发送：{again}"
    )


def cleared(gone: Contents, kind: ChatKind) -> str:
    whose = "我们之间的" if kind == "private" else "这个群的"
    return (
        f"清空了{whose}记忆：{_listed(gone)}。从现在起重新记起，编号接着往下数。\n"
        "清不到的：机器人主人自己另存的备份和导出。"
    )


def _listed(there: Contents) -> str:
    return (
        f"消息 {there.messages} 条，活动 {there.activities} 条，日 {there.days} 篇，"
        f"月 {there.months} 篇，年 {there.years} 篇，词条 {there.facts} 条，{there.people} 个人"
    )
