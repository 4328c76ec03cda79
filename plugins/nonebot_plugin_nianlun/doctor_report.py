"""The command that says whether all is well: for a person, or as JSON for a program."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime
import json
import sys
from typing import Any

from .commands.views import limit_line, owed_words
from .doctor import Check, examine, unopened, without_database
from .lifecycle import Nianlun
from .memory.render import one_line
from .store.database import trouble_of

_NAMES = {
    "database": "数据库",
    "migrations": "升级",
    "index": "检索",
    "model": "模型",
    "vision": "看图",
    "timezone": "时区",
    "fonts": "字体",
    "disk": "磁盘",
    "peers": "OneBot",
}
_SIGNS = {"ok": "✓", "look": "·", "wrong": "⚠"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="输出 JSON")
    parser.add_argument("--ask-model", action="store_true", help="让模型真答一句，要花几个 token")
    parser.set_defaults(command=doctor)


async def doctor(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    """A database that gives out midway is reported like one that cannot be opened."""
    try:
        checks, chats = await examine(nianlun, ask_model=arguments.ask_model)
    except Exception as error:
        trouble = trouble_of(error)
        if trouble is None:
            raise
        checks, chats = unopened(nianlun, trouble), []
    return report(nianlun, checks, chats, as_json=arguments.json)


async def doctor_without_database(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    checks = await without_database(nianlun, ask_model=arguments.ask_model)
    return report(nianlun, checks, [], as_json=arguments.json)


def report(
    nianlun: Nianlun, checks: list[Check], chats: list[dict[str, Any]], *, as_json: bool
) -> int:
    """Write it out; returns the exit status."""
    if as_json:
        found = {
            "database": str(nianlun.path.resolve()),
            "writer": nianlun.writer.name,
            "model": nianlun.notes_model if nianlun.client else None,
            "model_trouble": next((c.told for c in checks if _is_wrong(c, "model")), None),
            "timezone": nianlun.settings.timezone.key,
            "now": nianlun.clock.now(),
            "next_rollup": nianlun.jobs.next_rollup(),
            "checks": [asdict(check) for check in checks],
            "chats": chats,
        }
        text = json.dumps(found, ensure_ascii=False, default=_json, indent=2)
    else:
        text = "\n".join(_lines(nianlun, checks, chats))
    sys.stdout.write(f"{text}\n")
    wrong = any(check.state == "wrong" for check in checks)
    return 1 if wrong or any(chat["last_error"] for chat in chats) else 0


def _is_wrong(check: Check, name: str) -> bool:
    return check.name == name and check.state == "wrong"


def _json(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return str(value)


def _lines(nianlun: Nianlun, checks: list[Check], chats: list[dict[str, Any]]) -> Iterator[str]:
    for check in checks:
        yield f"{_SIGNS[check.state]} {_NAMES[check.name]}：{one_line(check.told)}"
        if check.todo and check.state != "ok":
            yield f"  → {check.todo}"

    def local(value: datetime | None) -> str:
        return "还没有" if value is None else f"{nianlun.calendar.local(value):%m-%d %H:%M}"

    yield f"下一次整理：{local(nianlun.jobs.next_rollup())}"
    if not chats and all(check.state == "ok" for check in checks if check.name == "database"):
        yield "还没有记录过任何会话。请确认 OneBot 一端已经连上机器人。"
    for chat in chats:
        yield from _chat(chat, local)


def _chat(chat: dict[str, Any], local: Callable[[datetime | None], str]) -> Iterator[str]:
    gap = ""
    if chat["last_gap"] is not None:
        begins, ends = chat["last_gap"]
        gap = f"（最近 {local(begins)} 到 {local(ends)}）"
    yield (
        f"{chat['chat']}：{chat['messages']} 条消息，{chat['pending']} 条待记，"
        f"{chat['skipped']} 条跳过，"
        f"{chat['activities']} 条活动，{chat['days']} 天 {chat['months']} 月"
        f" {chat['years']} 年{owed_words(chat['owed'])}；最近一次记 {local(chat['last_note_at'])}，"
        f"整理 {local(chat['last_rollup_at'])}，缺口 {chat['gaps']}{gap}，"
        f"今天 {chat['tokens_today']} token"
    )
    if chat["limit_reached"]:
        yield f"  {limit_line(chat['token_limit'])}"
    if chat["last_error"]:
        yield f"  ⚠ {local(chat['last_error_at'])} {one_line(chat['last_error'])}"
