"""What comes after an import: the memory of it is written, and before that told what it costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
import sys
from typing import Literal, TypeAlias

from ..errors import ConfigError, NianlunError
from ..lifecycle import Nianlun
from ..llm.model_writer import activity_parts, persona, rules
from ..memory.backlog import Backlog, Estimate, of_rollups, of_windows
from ..memory.rollups import Due, RollupPolicy, plan_all
from ..memory.tokens import estimate_tokens
from ..memory.windows import WindowPolicy
from ..store import chats, memories, messages
from ..store.backlog import pending_lengths
from ..types import ChatKey, Message
from .report import ImportReport

FollowUp: TypeAlias = Literal["none", "offline", "model"]
_PENDING_LIMIT = 2000
"""Messages that are looked through for the days that they keep open."""
_MEMORY_TOKENS = 260
"""What is shown beside the sources of the memory so far and of facts, at most."""


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """What is owed of a chat that no pending message leads to."""

    windows: list[list[Message]]
    """What is left of each window whose note is to be written anew."""
    due: list[Due]

    @property
    def count(self) -> int:
        return len(self.windows) + sum(bool(item.sources) for item in self.due)


def check(nianlun: Nianlun, choice: FollowUp) -> None:
    """Before anything is read: raises ConfigError when the choice cannot be followed."""
    if choice == "model" and nianlun.client is None:
        raise ConfigError("--rollup model 要用模型，请先设置 OPENAI_API_KEY（写在 .env 里）")


def imported(report: ImportReport) -> list[ChatKey]:
    """The chats of a file of which something waits to be written."""
    return [chat.chat for chat in report.chats if chat.heard and (chat.pending or chat.owed)]


async def owed(nianlun: Nianlun, key: ChatKey) -> int:
    """How many notes of a chat are to be written beside those of messages that no note covers."""
    chat_id = await chats.find(key)
    if chat_id is None:
        return 0
    pending = await messages.pending(chat_id, _PENDING_LIMIT)
    days = {nianlun.calendar.day_of(message.time).isoformat() for message in pending}
    return (await _rewriting(nianlun, chat_id, days)).count


async def _rewriting(nianlun: Nianlun, chat_id: int, waiting: Collection[str]) -> _Rewriting:
    """`waiting` are the days of pending messages: they are closed once those are noted."""
    stale = await memories.stale_activities(chat_id)
    windows = [await messages.of_activity(chat_id, activity.number) for activity in stale]
    layers = await memories.memory_states(chat_id)
    open_days = [m.period for m in layers if m.kind == "day" and (m.stale or not m.closed)]
    activities = [
        replace(one, stale=False, merged=False) if one.stale else one
        for one in await memories.activity_states(chat_id, open_days)
    ]
    today = nianlun.calendar.day_of(nianlun.clock.now())
    policy = RollupPolicy(nianlun.settings.rollup_pending_activities, nianlun.settings.keep_days)
    due = plan_all(activities, layers, today, policy, waiting)
    return _Rewriting([window for window in windows if window], due)


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
        again = await _rewriting(nianlun, chat.id, days)
        lines = [message for window in again.windows for message in window]
        characters = sum(len(message.text) for message in lines)
        total += of_windows(len(again.windows), len(lines), characters, noting)
        total += of_rollups(again.due, rolling_up)
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
