"""The command line: works beside a running bot, on the same database."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import datetime
import errno
import io
import json
import os
from pathlib import Path
import sys
import time
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nonebot import get_driver, get_plugin_config

from .commands.views import limit_line
from .config import Config
from .demo.tour import FOLDER, Tour
from .errors import ConfigError, NianlunError
from .imports import formats, places
from .imports.progress import Progress, ProgressLine
from .imports.report import describe
from .imports.run import ImportOptions, import_file
from .lifecycle import Nianlun
from .memory.render import one_line
from .store import chats, reindexing
from .store.endpoints import Endpoints
from .store.export import lines

Command = Callable[[Nianlun, argparse.Namespace], Awaitable[int]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 done, 1 failed, 2 wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        # What is piped or redirected is a file of ours, whatever the console speaks.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    arguments = _parser().parse_args(argv)
    # The package is wiring and cannot be imported before NoneBot is initialised.
    from . import nianlun

    try:
        if arguments.command is _demo:
            return _demo(nianlun, arguments)
        status = asyncio.run(_run(nianlun, arguments))
        # What is left would be written at exit, where nobody can say what went wrong.
        sys.stdout.flush()
        return status
    except NianlunError as error:
        sys.stderr.write(f"{one_line(str(error))}\n")
        return 1
    except BrokenPipeError:
        _drop_output()
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _drop_output()
        sys.stderr.write("写不下去了：磁盘满了\n")
        return 1
    except KeyboardInterrupt:
        return 1


def _drop_output() -> None:
    """Nobody takes it any more, so nothing must try once more at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


async def _run(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    await nianlun.open()
    try:
        return await arguments.command(nianlun, arguments)
    finally:
        await nianlun.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bot.py", description="不带参数启动机器人；带参数时是命令行工具。"
    )
    verbs = parser.add_subparsers(required=True, metavar="命令")

    demo = verbs.add_parser("demo", help="用一份样本聊天看看年轮会记住什么，不碰你的数据")
    demo.add_argument("--model", action="store_true", help="让模型来写，先说要花多少")
    demo.add_argument("--yes", action="store_true", help="花费不用再问")
    demo.add_argument("--color", choices=["auto", "always", "never"], default="auto", help="颜色")
    demo.set_defaults(command=_demo)

    _add_import(verbs.add_parser("import", help="把以前的聊天记录导入进来"))

    export = verbs.add_parser("export", help="把一个会话的全部记忆导出")
    export.add_argument("chat", help="group:群号 或 private:QQ号，必要时写成 账号/group:群号")
    export.add_argument("--format", choices=["jsonl"], default="jsonl", help="导出格式")
    export.add_argument("-o", "--output", type=Path, help="写到这个文件；不写就输出到屏幕")
    export.set_defaults(command=_export)

    rollup = verbs.add_parser("rollup", help="现在就做完所有该做的整理")
    rollup.add_argument("--chat", help="只整理这个会话")
    how = rollup.add_mutually_exclusive_group()
    how.add_argument("--offline", action="store_true", help="用离线写手写，不调用模型")
    how.add_argument("--rewrite", action="store_true", help="离线写手写过的也让模型重写")
    rollup.set_defaults(command=_rollup)

    recall = verbs.add_parser("recall", help="看看回复一句话时会想起什么，各占多少 token")
    recall.add_argument("chat", help="会话")
    recall.add_argument("text", help="那句话")
    recall.set_defaults(command=_recall)

    reindex = verbs.add_parser("reindex", help="重新建立检索，平时用不着")
    reindex.add_argument("--chat", help="只为这个会话")
    reindex.set_defaults(command=_reindex)

    doctor = verbs.add_parser("doctor", help="检查数据库和每个会话的健康")
    doctor.add_argument("--json", action="store_true", help="输出 JSON")
    doctor.set_defaults(command=_doctor)
    return parser


def _add_import(parser: argparse.ArgumentParser) -> None:
    formats_known = [formats.AUTO, *(reader.name for reader in formats.READERS)]
    parser.add_argument("file", type=Path, help="聊天记录文件")
    parser.add_argument(
        "--chat",
        action="append",
        default=[],
        type=_target,
        metavar="会话",
        help="导入到哪个会话：group:群号 或 private:QQ号；文件里有几个会话时写成 名字=group:群号，"
        "可以写多次",
    )
    parser.add_argument("--self-id", type=_number, metavar="QQ号", help="机器人的QQ号")
    parser.add_argument(
        "--me",
        action="append",
        default=[],
        metavar="名字",
        help="谁是机器人自己：名字或QQ号，可以写多次",
    )
    parser.add_argument("--format", choices=formats_known, default=formats.AUTO, help="文件格式")
    parser.add_argument(
        "--timezone",
        type=_zone,
        metavar="时区",
        help="文件里的时间是哪个时区的，例如 Asia/Shanghai",
    )
    parser.set_defaults(command=_import)


def _target(text: str) -> places.Target:
    try:
        return places.target(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} 不是会话：请写成 group:群号、private:QQ号 或 名字=group:群号"
        ) from None


def _number(text: str) -> str:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} 不是QQ号")
    return text


def _zone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(f"没有名为 {text!r} 的时区") from error


def _say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")


async def _import(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    options = ImportOptions(
        targets=tuple(arguments.chat),
        self_id=arguments.self_id,
        me=tuple(arguments.me),
        format=arguments.format,
        zone=arguments.timezone,
    )
    progress = ProgressLine(sys.stderr, time.monotonic)
    try:
        report = await import_file(nianlun, arguments.file, options, progress)
    finally:
        progress.end()
    for line in describe(report, nianlun.calendar):
        _say(line)
    return 0


def _demo(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    """Runs in its own database: the real one is not even opened."""
    home = nianlun.data_dir / FOLDER
    tour = Tour(get_plugin_config(Config), get_driver().config, home, model=arguments.model)
    return tour.run(yes=arguments.yes, color=arguments.color)


async def _export(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    chat = await chats.resolve(arguments.chat)
    rows = lines(chat, nianlun.settings.timezone.key, nianlun.clock.now())
    if arguments.output is None:
        async for row in rows:
            _say(json.dumps(row, ensure_ascii=False))
    else:
        await _write_file(arguments.output, rows)
    return 0


async def _write_file(path: Path, rows: AsyncIterator[dict[str, Any]]) -> None:
    """Into a file beside it first, so that a broken export never replaces a whole one."""
    partial = path.with_name(f"{path.name}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            async for row in rows:
                file.write(f"{json.dumps(row, ensure_ascii=False)}\n")
        partial.replace(path)
    except OSError as error:
        raise NianlunError(f"写不了 {path}：{error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


async def _rollup(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    only = None if arguments.chat is None else [await chats.resolve(arguments.chat)]
    if arguments.rewrite:
        if nianlun.client is None:
            raise ConfigError("--rewrite 要用模型，请先设置 OPENAI_API_KEY（写在 .env 里）")
        await nianlun.jobs.ask_again(only)
    reports = await nianlun.jobs.tidy(only, offline=arguments.offline)
    for chat, report in reports.items():
        counts = f"写了 {report.activities} 条活动、{report.memories} 篇记忆"
        declined = f"，{report.declined} 段没有值得记的" if report.declined else ""
        _say(f"{chat.full}：{counts}{declined}")
    if not reports:
        _say("没有欠着的整理。")
    failed = [(chat, error) for chat, report in reports.items() for error in report.errors]
    if not failed:
        return 0
    chat, error = failed[0]
    sys.stderr.write(f"有 {len(failed)} 处没有做完，例如 {chat.full}：{one_line(error)}\n")
    return 1


async def _recall(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    chat = await chats.resolve(arguments.chat)
    prompt = await nianlun.recaller.prompt(chat, arguments.text)
    for message in prompt.messages:
        _say(f"—— {message['role']} ——")
        _say(str(message["content"]))
        _say()
    parts = "，".join(f"{name} {count}" for name, count in prompt.tokens.items())
    _say(f"约 {prompt.total} / {nianlun.settings.prompt_budget} token（{parts}）")
    return 0


async def _reindex(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    rows = await chats.everyone()
    if arguments.chat is not None:
        chat = await chats.resolve(arguments.chat)
        rows = [row for row in rows if chats.key_of(row) == chat]
    total = sum(row.last_seq for row in rows)
    progress = ProgressLine(sys.stderr, time.monotonic)
    done = 0

    def told(count: int) -> None:
        nonlocal done
        done = count
        progress(Progress("index", min(count, total), total, count))

    try:
        await reindexing.rebuild(nianlun.path, [row.id for row in rows], told)
    finally:
        progress.end()
    _say(f"检索已经重新建好：{len(rows)} 个会话，{done} 条。")
    return 0


async def _doctor(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    report: dict[str, Any] = {
        "database": str(nianlun.path.resolve()),
        "writer": nianlun.writer.name,
        "model": nianlun.notes_model if nianlun.client else None,
        "model_trouble": await _model_trouble(nianlun),
        "timezone": nianlun.settings.timezone.key,
        "now": nianlun.clock.now(),
        "next_rollup": nianlun.jobs.next_rollup(),
        "chats": [],
    }
    for row in await chats.everyone():
        key = chats.key_of(row)
        report["chats"].append(
            {"chat": key.full, "name": row.name, **asdict(await nianlun.status(key))}
        )
    if arguments.json:
        _say(json.dumps(report, ensure_ascii=False, default=_json, indent=2))
    else:
        _print_report(nianlun, report)
    wrong = report["model_trouble"] or any(chat["last_error"] for chat in report["chats"])
    return 1 if wrong else 0


async def _model_trouble(nianlun: Nianlun) -> str | None:
    """What the running bot found wrong with the model's endpoint, and when."""
    told = nianlun.client and await Endpoints().trouble(nianlun.client.endpoint)
    return f"{nianlun.calendar.local(told[1]):%m-%d %H:%M} {told[0]}" if told else None


def _json(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return str(value)


def _print_report(nianlun: Nianlun, report: dict[str, Any]) -> None:
    def local(value: datetime | None) -> str:
        return "还没有" if value is None else f"{nianlun.calendar.local(value):%m-%d %H:%M}"

    def newest_gap(chat: dict[str, Any]) -> str:
        if chat["last_gap"] is None:
            return ""
        begins, ends = chat["last_gap"]
        return f"（最近 {local(begins)} 到 {local(ends)}）"

    _say(f"数据库：{report['database']}（可以读写）")
    _say(f"写手：{'模型 ' + report['model'] if report['model'] else '离线写手，没有设置密钥'}")
    if report["model_trouble"]:
        _say(f"  ⚠ {one_line(report['model_trouble'])}")
    _say(f"时区：{report['timezone']}，下一次整理 {local(report['next_rollup'])}")
    if not report["chats"]:
        _say("还没有记录过任何会话。请确认 OneBot 一端已经连上机器人。")
    for chat in report["chats"]:
        _say(
            f"{chat['chat']}：{chat['messages']} 条消息，{chat['pending']} 条待记，"
            f"{chat['activities']} 条活动，{chat['days']} 天 {chat['months']} 月"
            f" {chat['years']} 年；最近一次记 {local(chat['last_note_at'])}，"
            f"整理 {local(chat['last_rollup_at'])}，缺口 {chat['gaps']}{newest_gap(chat)}，"
            f"今天 {chat['tokens_today']} token"
        )
        if chat["limit_reached"]:
            _say(f"  {limit_line(chat['token_limit'])}")
        if chat["last_error"]:
            _say(f"  ⚠ {local(chat['last_error_at'])} {one_line(chat['last_error'])}")
