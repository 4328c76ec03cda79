"""What a writer is told beside the rules: texts of others in marked blocks, and the task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
import secrets

from ..types import RollupTask, Scene, Window
from .calendar import Calendar
from .edits import edit_of
from .keymarks import strip_key_marks
from .render import one_line, render_messages

NOTHING_TO_DO = "没有需要整理的记忆了。"
_CLOCK_EVERY = timedelta(minutes=10)
"""A note says 八点半左右 at most, and a clock on every line is a fifth of what the lines cost."""


def block(title: str, text: str, nonce: str) -> str:
    """Text of others between marks that it cannot forge, as the nonce is new in each request."""
    return f"【{title} {nonce}】\n{text}\n【{title}完 {nonce}】"


def background(scene: Scene, nonce: str) -> list[str]:
    """What the character already remembers, as blocks; those that are empty are left out.

    Without references: only messages of the window itself may be cited.
    """
    parts = (("现有的记忆", scene.memory), ("想起来的事", scene.recalled))
    return [block(title, strip_key_marks(text), nonce) for title, text in parts if text]


def window_blocks(window: Window, scene: Scene, calendar: Calendar, nonce: str) -> list[str]:
    """Where the talk was, and what was said."""
    categories = "、".join(scene.known_categories) or "还没有"
    place = f"{one_line(scene.place)}\n已有的 category：{categories}"
    messages = render_messages(
        window.messages, calendar, scene.names, me=scene.character, clock_every=_CLOCK_EVERY
    )
    return [block("场合", place, nonce), block("聊天记录", messages, nonce)]


def window_request(window: Window, where: str) -> str:
    """The task of noting a window; `where` says on which side of it the messages stand."""
    return (
        f"把{where}聊天记录里的 {len(window.messages)} 条消息写成一条活动记录。"
        f"这一天是 {_day(window.date)}。"
    )


def window_prompt(window: Window, scene: Scene, calendar: Calendar) -> str:
    """The task of noting a window together with all that it is about."""
    blocks = window_blocks(window, scene, calendar, secrets.token_hex(4))
    return "\n\n".join([window_request(window, "下面"), *blocks])


def rollup_request(tasks: Sequence[RollupTask]) -> str:
    days = "、".join(_day(task.period) for task in tasks if task.kind == "day")
    edited = "、".join(task.period for task in tasks if edit_of(task))
    return (
        f"整理这一批 {len(tasks)} 个任务。"
        + (days and f"日期：{days}。")
        + (edited and f"{edited} 的 target.memory 是人改定的：一字不改地照抄，只在后面补充新的。")
    )


def _day(day: str) -> str:
    return f"{day}（星期{'一二三四五六日'[date.fromisoformat(day).weekday()]}）"
