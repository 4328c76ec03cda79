"""What the commands show, as text for people. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from ..memory.calendar import Calendar
from ..memory.keymarks import show_key_marks
from ..memory.render import one_line
from ..types import Activity, ChatStatus, Memory, TidyReport

_WRITERS = {"model": "模型", "offline": "离线写手"}


def day_title(day: str) -> str:
    """`2026-11-29（周日）`."""
    return f"{day}（周{'一二三四五六日'[date.fromisoformat(day).weekday()]}）"


def memory_view(memory: Memory, calendar: Calendar) -> str:
    """A day, month or year, with who wrote it and when."""
    writer = _WRITERS.get(memory.writer, f"{one_line(memory.writer)} 改写")
    written = _moment(memory.written_at, calendar)
    return f"{show_key_marks(memory.text)}\n第 {memory.version} 版 · {writer} · {written}"


def activities_view(activities: Sequence[Activity], calendar: Calendar) -> str:
    """One line each: `&3 10:32 text（#12 #15）`."""
    return "\n".join(_activity_line(activity, calendar) for activity in activities)


def status_view(status: ChatStatus, calendar: Calendar) -> str:
    recording = "已暂停记录" if status.paused else "记录进行中"
    lines = [
        f"{recording}，由{_WRITERS.get(status.writer, status.writer)}来写",
        f"消息：{status.messages} 条，待写 {status.pending} 条，跳过 {status.skipped} 条，"
        f"缺口 {status.gaps} 处",
        f"记忆：活动 {status.activities} 条，日 {status.days} 篇，"
        f"月 {status.months} 篇，年 {status.years} 篇",
        f"最近一条活动：{_moment(status.last_note_at, calendar)}",
        f"最近一次汇总：{_moment(status.last_rollup_at, calendar)}，"
        f"下一次：{_moment(status.next_rollup_at, calendar)}",
        f"今天用量：{status.tokens_today} token",
        f"最近的错误：{_last_error(status, calendar)}",
    ]
    return "\n".join(lines)


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


def _activity_line(activity: Activity, calendar: Calendar) -> str:
    local = calendar.local(activity.time)
    late = "次日 " if local.date().isoformat() > activity.date else ""
    text = one_line(show_key_marks(activity.text))
    return f"&{activity.number} {late}{local:%H:%M} {text}"


def _last_error(status: ChatStatus, calendar: Calendar) -> str:
    if not status.last_error:
        return "没有"
    return f"{_moment(status.last_error_at, calendar)} {one_line(status.last_error)}"


def _moment(moment: datetime | None, calendar: Calendar) -> str:
    return f"{calendar.local(moment):%Y-%m-%d %H:%M}" if moment else "还没有"
