"""What comes after an import: the memory of it is written, and before that told what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
import sys
from typing import Literal, TypeAlias

from ..errors import ConfigError, NianlunError
from ..lifecycle import Nianlun
from ..llm.model_writer import activity_parts, persona, rules
from ..memory.backlog import Backlog, Estimate, of_rollups, of_windows
from ..memory.tokens import estimate_tokens
from ..memory.windows import WindowPolicy
from ..owed_notes import rollups
from ..store import chats, memories, messages
from ..store.backlog import pending_lengths
from ..types import ChatKey
from .report import ImportReport

FollowUp: TypeAlias = Literal["none", "offline", "model"]
_MEMORY_TOKENS = 260
"""What is shown beside the sources of the memory so far and of facts, at most."""


def check(nianlun: Nianlun, choice: FollowUp) -> None:
    """Before anything is read: raises ConfigError when the choice cannot be followed."""
    if choice == "model" and nianlun.client is None:
        raise ConfigError("--rollup model 要用模型，请先设置 OPENAI_API_KEY（写在 .env 里）")


def imported(report: ImportReport) -> list[ChatKey]:
    """The chats of a file of which something waits to be written."""
    return [chat.chat for chat in report.chats if chat.heard and (chat.pending or chat.owed)]


async def estimated(nianlun: Nianlun, keys: Sequence[ChatKey]) -> Estimate:
    """What a model would be asked to write all that waits in these chats."""
    total = Estimate()
    settings = nianlun.settings
    for key in keys:
        chat = await chats.row(key)
        if chat is None:
            continue
        private = key.kind == "private"
        policy = WindowPolicy(
            settings.activity_messages_private if private else settings.activity_messages,
            settings.activity_min_messages,
            timedelta(minutes=settings.activity_idle_minutes),
        )
        backlog = Backlog(nianlun.calendar, policy)
        days: set[str] = set()
        async for time, length in pending_lengths(chat.id):
            backlog.take(time, length)
            days.add(nianlun.calendar.day_of(time).isoformat())
        scene = await nianlun.recaller.scene(key, chat.id, "")
        always = estimate_tokens(persona(scene)) + _MEMORY_TOKENS
        noting = estimate_tokens(rules("rules", *activity_parts(True), "answer")) + always
        rolling_up = estimate_tokens(rules("rules", "rollup", "answer")) + always
        total += backlog.estimate(noting, rolling_up)
        stale = await memories.stale_activities(chat.id)
        left = [await messages.of_activity(chat.id, activity.number) for activity in stale]
        windows = [window for window in left if window]
        lines = [message for window in windows for message in window]
        characters = sum(len(message.text) for message in lines)
        total += of_windows(len(windows), len(lines), characters, noting)
        again = await memories.rewritable(chat.id)
        total += of_rollups(await rollups(nianlun, chat.id, days, again), rolling_up)
    return total


def describe(estimate: Estimate, model: str) -> str:
    """The estimate for a person, in one line."""
    return (
        f"用模型 {model} 来写，估计要调用 {_about(estimate.calls)} 次，"
        f"输入约 {_about(estimate.prompt)} token，输出不超过 {_about(estimate.completion)} token"
    )


def agreed(say: Callable[[str], None]) -> bool:
    """Ask whoever sits at the terminal. Raises NianlunError when nobody does."""
    if not sys.stdin.isatty():
        raise NianlunError(
            "没有终端可以问，没有用模型写；聊天记录已经导入了。确定要用模型，"
            "请加上 --yes 再导入一次，消息不会重复"
        )
    say("现在就用模型写吗？[y/N]")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _about(count: int) -> str:
    """To two digits that count; what is beyond them is not known."""
    return f"{round(count, 2 - len(str(count))):,}"
