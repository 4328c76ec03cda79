"""The command line: works beside a running bot, on the same database."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
import errno
import io
import os
from pathlib import Path
import sys
import time
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nonebot import get_driver, get_plugin_config

from . import doctor_report
from .cli_carrying import add_backup, add_export, add_restore, restore
from .config import Config
from .demo.tour import FOLDER, Tour
from .doctor import GET_DATABASE, unopened
from .errors import ConfigError, NianlunError, NotAChat, StoreUnavailable
from .imports import follow_up, formats, places
from .imports.progress import Progress, ProgressLine
from .imports.report import describe
from .imports.run import ImportOptions
from .imports.vault import import_any
from .lifecycle import Nianlun
from .memory.layers import ROLES, cost_line
from .memory.render import one_line
from .store import chats, diagnosis, reindexing
from .store.database import trouble_of
from .types import ChatKey

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
        return 2 if isinstance(error, NotAChat) else 1
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
    except Exception as error:
        trouble = trouble_of(error)
        if trouble is None:
            raise
        sys.stderr.write(f"{one_line(str(trouble))}\n")
        return 1


def _drop_output() -> None:
    """Nobody takes it any more, so nothing must try once more at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


async def _run(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    if arguments.command is restore:
        return await restore(nianlun, arguments)
    # Opening creates it, which is for what brings something in alone.
    if arguments.command is not _import and diagnosis.is_missing(nianlun.path):
        if arguments.command is doctor_report.doctor:
            return await doctor_report.doctor_without_database(nianlun, arguments)
        raise StoreUnavailable(f"没有数据库 {nianlun.path.resolve()}：{GET_DATABASE}")
    try:
        await nianlun.open()
    except Exception as error:
        trouble = trouble_of(error)
        if trouble is None:
            raise
        if arguments.command is not doctor_report.doctor:
            raise trouble from error
        return doctor_report.report(nianlun, unopened(nianlun, trouble), [], as_json=arguments.json)
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

    add_export(verbs.add_parser("export", help="把一个会话的全部记忆导出"))
    add_backup(verbs.add_parser("backup", help="备份整个数据库，机器人不用停"))
    add_restore(verbs.add_parser("restore", help="用一份备份换下现在的数据库，机器人不用停"))

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

    doctor_report.add_arguments(verbs.add_parser("doctor", help="检查哪里不对，该怎么办"))
    return parser


def _add_import(parser: argparse.ArgumentParser) -> None:
    formats_known = [formats.AUTO, *(reader.name for reader in formats.READERS)]
    parser.add_argument("file", type=Path, help="聊天记录文件，或年轮导出的文件夹")
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
    parser.add_argument(
        "--rollup",
        choices=["none", "offline", "model"],
        default="none",
        help="导完就写记忆：offline 用离线写手，model 用模型（先说大约要花多少）",
    )
    parser.add_argument("--yes", action="store_true", help="花费不用再问")
    parser.set_defaults(command=_import)


def _target(text: str) -> places.Target:
    try:
        return places.target(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} 不是会话：请写成 group:群号、private:QQ号 或 名字=group:群号"
        ) from None


def _number(text: str) -> str:
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise argparse.ArgumentTypeError(f"{text[:60]!r} 不是QQ号")
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
    follow_up.check(nianlun, arguments.rollup)
    progress = ProgressLine(sys.stderr, time.monotonic)
    try:
        report = await import_any(nianlun, arguments.file, options, progress)
    finally:
        progress.end()
    for line in describe(report, nianlun.calendar):
        _say(line)
    waiting = follow_up.imported(report)
    if waiting and nianlun.client is not None and arguments.rollup != "offline":
        estimate = await follow_up.estimated(nianlun, waiting)
        _say(follow_up.describe(estimate, nianlun.notes_model))
    if not waiting or arguments.rollup == "none":
        return 0
    if arguments.rollup == "model" and not (arguments.yes or follow_up.agreed(_say)):
        _say("没有问模型，什么也没有花；记忆还欠着。")
        return 0
    return await _tidy(nianlun, waiting, offline=arguments.rollup == "offline")


def _demo(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    """Runs in its own database: the real one is not even opened."""
    home = nianlun.data_dir / FOLDER
    tour = Tour(get_plugin_config(Config), get_driver().config, home, model=arguments.model)
    return tour.run(yes=arguments.yes, color=arguments.color)


async def _rollup(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    only = None if arguments.chat is None else [await chats.resolve(arguments.chat)]
    if arguments.rewrite:
        if nianlun.client is None:
            raise ConfigError("--rewrite 要用模型，请先设置 OPENAI_API_KEY（写在 .env 里）")
        await nianlun.jobs.ask_again(only)
    return await _tidy(nianlun, only, offline=arguments.offline)


async def _tidy(nianlun: Nianlun, only: Sequence[ChatKey] | None, *, offline: bool) -> int:
    reports = await nianlun.jobs.tidy(only, offline=offline)
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
        _say(f"—— {ROLES[message['role']]} ——")
        _say(str(message["content"]))
        _say()
    _say(cost_line(prompt.tokens, nianlun.settings.prompt_budget))
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
