"""What the commands show, as text for people. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
import unicodedata

from ..memory.calendar import Calendar
from ..memory.invariants import Inspection
from ..memory.keymarks import show_key_marks
from ..memory.render import one_line
from ..memory.units import shortened
from ..memory.why import Edit
from ..types import (
    COMMAND_LINE,
    Activity,
    ChatKind,
    ChatStatus,
    Forgotten,
    Memory,
    MemoryKind,
    TidyReport,
)

WRITERS = {"model": "模型", "offline": "离线写手", COMMAND_LINE: "命令行导入的改写"}
SINCE = "，后来又接着写了新的事"
"""Behind the name of a person to whose text a writer added something."""
SOURCES: Mapping[MemoryKind, str] = {"day": "条活动", "month": "天", "year": "个月"}
"""What a memory is written from, with the word that counts it."""
_NAMELESS: Mapping[str, str] = {}


def echo(typed: str, most: int = 20) -> str:
    """What somebody typed, as it is told back to them: on one line, and nothing in it hides or
    turns the direction of what follows."""
    seen = "".join(char for char in one_line(typed) if unicodedata.category(char) != "Cf")
    return shortened(seen.strip(), most) or "（看不见的字）"


def memory_view(memory: Memory, calendar: Calendar, edit: Edit | None = None) -> str:
    """A day, month or year, with who wrote it and when; `edit`: that a person did."""
    frame = version_line(memory.version, memory.writer, memory.written_at, calendar, edit)
    return f"{show_key_marks(memory.text)}\n{frame}"


def version_line(
    version: int,
    writer: str,
    written_at: datetime,
    calendar: Calendar,
    edit: Edit | None = None,
) -> str:
    """`第 2 版 · 模型 · 2026-11-30 01:30`; `edit`: that a person wrote it."""
    who = writer_words(writer, edit)
    return f"第 {version} 版 · {who} · {moment(written_at, calendar)}"


def writer_words(
    writer: str, edit: Edit | None = None, names: Mapping[str, str] = _NAMELESS
) -> str:
    """Who wrote a text; a person by the name in `names`, or by number. Without an `edit` it is not
    known what they did."""
    since = SINCE if edit and edit.continued else ""
    if writer in WRITERS:
        return f"{WRITERS[writer]}{since}"
    who = one_line(names.get(writer, writer))
    if edit is None:
        return f"{who} 改过的"
    return f"{who} {f'还原自第 {edit.again} 版' if edit.again else '改写'}{since}"


def fact_written(
    at: datetime, writer: str | None, names: Mapping[str, str], calendar: Calendar
) -> str:
    """When a fact got its text, and by whom where somebody changed it by hand."""
    when = moment(at, calendar)
    if writer is None:
        return f"写于 {when}"
    if writer == COMMAND_LINE:
        return f"{WRITERS[COMMAND_LINE]}，写于 {when}"
    return f"由 {one_line(names.get(writer, writer))}（{writer}）改写于 {when}"


def activities_view(activities: Sequence[Activity], calendar: Calendar) -> str:
    """One line each: `&3 10:32 text（#12 #15）`."""
    return "\n".join(_activity_line(activity, calendar) for activity in activities)


def status_view(status: ChatStatus, calendar: Calendar) -> str:
    recording = "已暂停记录" if status.paused else "记录进行中"
    lines = [
        f"{recording}，由{WRITERS.get(status.writer, status.writer)}来写",
        *(["静音中：只记录，不回复"] if status.muted else []),
        *([limit_line(status.token_limit)] if status.limit_reached else []),
        f"消息：{status.messages} 条，待写 {status.pending} 条，跳过 {status.skipped} 条，"
        f"缺口 {gaps_view(status, calendar)}",
        f"记忆：活动 {status.activities} 条，日 {status.days} 篇，"
        f"月 {status.months} 篇，年 {status.years} 篇" + owed_words(status.owed),
        f"最近一条活动：{moment(status.last_note_at, calendar)}",
        f"最近一次汇总：{moment(status.last_rollup_at, calendar)}，"
        f"下一次：{moment(status.next_rollup_at, calendar)}",
        f"今天用量（不算回复）：{status.tokens_today} token" + _of_limit(status.token_limit),
        *_turns_line(status, calendar),
        f"最近的错误：{_last_error(status, calendar)}",
    ]
    return "\n".join(lines)


def troubles_view(troubles: Mapping[str, str | None]) -> list[str]:
    """What keeps the bot from replying, or its replies from remembering: a line for each that is
    in trouble, by what it is called."""
    return [f"{what}：{one_line(told)}" for what, told in troubles.items() if told]


def _turns_line(status: ChatStatus, calendar: Calendar) -> list[str]:
    """How facts and diary after replies went; nothing where they are not asked for."""
    if not status.turns_today and status.last_turn_at is None:
        return []
    return [
        f"回复之后的事实和日记：今天 {status.turns_today} 次，没写成 {status.turns_failed} 次，"
        f"最近一次写成：{moment(status.last_turn_at, calendar)}"
    ]


def gaps_view(status: ChatStatus, calendar: Calendar) -> str:
    """How many gaps there are, and from when to when the newest is."""
    if status.last_gap is None:
        return f"{status.gaps} 处"
    begins, ends = (moment(when, calendar) for when in status.last_gap)
    return f"{status.gaps} 处，最近一处 {begins} 到 {ends}"


def limit_line(limit: int | None) -> str:
    """Why the offline writer writes although there is a model."""
    return "额度是 0，由离线写手来写" if limit == 0 else "今天的额度用完了，由离线写手代写"


def owed_words(count: int) -> str:
    """Behind how many notes there are; nothing where none is to be written."""
    return f"，待写 {count} 篇" if count else ""


def _of_limit(limit: int | None) -> str:
    return "" if limit is None else f"，额度 {limit}"


def tidy_view(report: TidyReport) -> str:
    done = []
    if report.activities:
        done.append(f"写了 {report.activities} 条活动")
    if report.memories:
        done.append(f"更新了 {report.memories} 篇记忆")
    if report.declined:
        done.append(f"有 {report.declined} 段没有值得记的")
    if report.errors:
        first = one_line(report.errors[0])
        done.append(f"有 {len(report.errors)} 处没写成，留着下次再写：{first}")
    return f"整理过了：{'，'.join(done)}。" if done else "没有欠着的，都写好了。"


def opted_out_view(changed: bool, head: str) -> str:
    if not changed:
        return f"本来就没有在记你说的话。想让我再记，请发送：{head} 可以记我"
    return (
        "好，从现在起不记你在这里说的话，还没写成日记的那些也不记了。叫我的时候我照样回答，答完就忘。\n"
        f"以前写下的还在，要清掉请发送：{head} 忘记我\n想让我再记，请发送：{head} 可以记我"
    )


def opted_in_view(changed: bool) -> str:
    return "好，从现在起又会记你说的话了。" if changed else "你说的话本来就在记。"


def ask_before_forgetting(answer: str) -> str:
    """`answer` is what to send to confirm."""
    return (
        "真的要我忘记你吗？你在这里说过的话、你的名字、我记下的关于你的事都会清掉，旧版本也一样；"
        "用到它们的日记会按剩下的重写。清掉就找不回来了。\n"
        f"确定的话，请在 10 分钟内发送：{answer}"
    )


def forgotten_view(forgotten: Forgotten, kind: ChatKind, head: str) -> str:
    others = "" if kind == "private" else "别人的话和我自己的话里提到你的地方，"
    if forgotten.opted_out:
        from_now_on = "以后你说的话仍然不记。"
    else:
        from_now_on = f"以后你说的话还会记；不想再被记，请发送：{head} 别记我"
    return (
        f"已经忘记：{forgotten.messages} 条消息，{forgotten.names} 个名字，"
        f"{forgotten.facts} 条关于你的事；"
        f"{forgotten.notes} 篇记忆清空了，会按剩下的重写，没有剩下的就不再写。\n"
        f"清不到的：{others}机器人主人自己另存的备份和导出。"
        f"你的QQ号留着，好让旧消息不再记回来。\n{from_now_on}"
    )


def inspection_view(inspection: Inspection) -> str:
    if not inspection.found:
        return (
            f"没有问题：{inspection.messages} 条消息、{inspection.activities} 条活动、"
            f"{inspection.memories} 篇记忆都对得上。"
        )
    lines = [f"找到 {inspection.found} 处问题：", *map(one_line, inspection.findings)]
    if more := inspection.found - len(inspection.findings):
        lines.append(f"……还有 {more} 处。")
    return "\n".join(lines)


def _activity_line(activity: Activity, calendar: Calendar) -> str:
    local = calendar.local(activity.time)
    late = "次日 " if local.date().isoformat() > activity.date else ""
    text = one_line(show_key_marks(activity.text))
    return f"&{activity.number} {late}{local:%H:%M} {text}"


def _last_error(status: ChatStatus, calendar: Calendar) -> str:
    if not status.last_error:
        return "没有"
    return f"{moment(status.last_error_at, calendar)} {one_line(status.last_error)}"


def moment(when: datetime | None, calendar: Calendar) -> str:
    """In local time, to the minute."""
    return f"{calendar.local(when):%Y-%m-%d %H:%M}" if when else "还没有"
