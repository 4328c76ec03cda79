"""A plugin for a bot under test: it goes by the test's clock, and writes down what it does.

Only the time of the chats is compressed. What is about machines keeps its real length: how long
a lease lasts, and how long a question may wait for its turn. A reply waits longer for its memory
than in life, since the database has to take in a second what is else the work of an hour.

`jobs.jsonl` in the bot's folder has a line for each note that is handed to the store, also for
one that the store refuses; `figures.json` at the end what the database had to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
import json
import mmap
import os
from pathlib import Path
import struct
import time
from typing import Any

from nonebot import get_driver, require
from nonebot.adapters.onebot.v11 import MessageEvent

require("nonebot_plugin_nianlun")

from tortoise.backends.sqlite.client import SqliteTransactionWrapper
from tortoise.exceptions import BaseORMException, OperationalError, TransactionManagementError

import plugins.nonebot_plugin_nianlun as package
from plugins.nonebot_plugin_nianlun import jobs
from plugins.nonebot_plugin_nianlun.chat import chains, reply
from plugins.nonebot_plugin_nianlun.chat.turns import Turn, Turns
from plugins.nonebot_plugin_nianlun.clock import SystemClock
from plugins.nonebot_plugin_nianlun.store import chats, notes
from plugins.nonebot_plugin_nianlun.types import Activity, ChatKey, Note, RollupTask, Window

_LAYOUT = struct.Struct("=dd")
_TICK = 0.4
"""Real seconds between two looks at what is owed."""

with Path(os.environ["COMPRESSED_CLOCK"]).open("rb") as file:
    _shared = mmap.mmap(file.fileno(), _LAYOUT.size, access=mmap.ACCESS_READ)
_speed: float = _LAYOUT.unpack_from(_shared)[1]


def _now(self: SystemClock) -> datetime:
    # Packing clears the place before it is written: a look in between sees the year 1970.
    while not (seconds := _LAYOUT.unpack_from(_shared)[0]):
        pass
    return datetime.fromtimestamp(seconds, UTC)


SystemClock.now = _now
package.OWED_EVERY_SECONDS = _TICK  # type: ignore[assignment]
jobs._LEASE *= _speed
chats.LONGEST_LEASE *= _speed
reply._STALE_SECONDS *= _speed
reply._RECALL_SECONDS = 30.0


def _alone(self: Turns, chat: ChatKey, event: MessageEvent, called: bool) -> Turn:
    """What comes within a moment is hours apart for those who talk: each line is a turn."""
    now = asyncio.get_running_loop().time()
    long_ago = float("-inf")
    self._open[chat].append(turn := Turn(str(event.user_id), [event], called, long_ago, now, now))
    return turn


Turns._join = _alone
chains.FAST_SECONDS = -1.0  # nor is anybody a bot for answering within a second


# What is handed to the store


def _write_down(
    chat_id: int, kind: str, period: str, sources: Sequence[object], **more: bool
) -> None:
    line = {"at": time.time(), "chat": chat_id, "kind": kind, "period": period, **more}
    with Path("jobs.jsonl").open("a", encoding="utf-8") as log:
        log.write(f"{json.dumps(line | {'sources': sources})}\n")


_store_activity = notes.store_activity
_replace_activity = notes.replace_activity
_store_memories = notes.store_memories


async def store_activity(chat_id: int, window: Window, note: Note, now: datetime) -> int:
    _write_down(chat_id, "window", window.date, [message.seq for message in window.messages])
    return await _store_activity(chat_id, window, note, now)


async def replace_activity(chat_id: int, activity: Activity, *rest: Any) -> None:
    _write_down(chat_id, "rewritten", activity.date, [activity.number])
    await _replace_activity(chat_id, activity, *rest)


async def store_memories(chat_id: int, tasks: Sequence[RollupTask], *rest: Any) -> None:
    for task in tasks:
        sources = [s.number if isinstance(s, Activity) else s.period for s in task.sources]
        _write_down(chat_id, task.kind, task.period, sources, closes=task.closes)
    await _store_memories(chat_id, tasks, *rest)


notes.store_activity = store_activity
notes.replace_activity = replace_activity
notes.store_memories = store_memories


# What the database had to do

_durations: list[float] = []
_failures: list[str] = []
_begin, _commit = SqliteTransactionWrapper.begin, SqliteTransactionWrapper.commit
_made = BaseORMException.__init__
_began = 0.0
"""A process has one connection, so one transaction at a time."""


async def begin(self: SqliteTransactionWrapper) -> None:
    global _began
    _began = time.monotonic()
    await _begin(self)


async def commit(self: SqliteTransactionWrapper) -> None:
    await _commit(self)
    _durations.append(time.monotonic() - _began)


def made(self: BaseORMException, *args: object) -> None:
    _made(self, *args)
    if type(self) in (OperationalError, TransactionManagementError):
        _failures.append(repr(args))


SqliteTransactionWrapper.begin = begin
SqliteTransactionWrapper.commit = commit
BaseORMException.__init__ = made


@get_driver().on_shutdown
def _tell() -> None:
    told = {"transactions": len(_durations), "longest": max(_durations), "failures": _failures}
    Path("figures.json").write_text(json.dumps(told), "utf-8")
