"""The commands that carry a memory away and bring it back: export, backup, restore."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
import sys

from .errors import NianlunError
from .exports import write_json_lines, write_vault, write_zip
from .file_sizes import file_size
from .lifecycle import Nianlun
from .memory.vault_pages import as_line
from .store import backup, chats
from .store.export import lines


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chat", help="group:群号 或 private:QQ号，必要时写成 账号/group:群号")
    parser.add_argument(
        "--format",
        choices=["jsonl", "markdown"],
        default="jsonl",
        help="jsonl 一行一个对象；markdown 是一个给人看的文件夹，写到 .zip 就是压缩包",
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="写到这里；jsonl 不写就输出到屏幕，markdown 必须写"
    )
    parser.set_defaults(command=export)


def add_backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=Path, help="备份文件；不写就放进 backups 文件夹")
    parser.set_defaults(command=back_up)


def add_restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="备份文件")
    parser.set_defaults(command=restore)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


async def export(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    chat = await chats.resolve(arguments.chat)
    rows = lines(chat, nianlun.settings.timezone.key, nianlun.clock.now())
    output: Path | None = arguments.output
    if output is None:
        if arguments.format == "markdown":
            sys.stderr.write("导出成 markdown 要用 -o 写上放进哪个文件夹，或哪个 .zip 文件\n")
            return 2
        async for row in rows:
            sys.stdout.write(as_line(row))
        return 0
    await asyncio.to_thread(_look_at, output, nianlun.path)
    if arguments.format == "jsonl":
        await write_json_lines(output, rows)
    elif output.suffix.lower() == ".zip":
        await write_zip(output, rows)
    else:
        await write_vault(output, rows)
    _say(f"导出好了：{output}")
    return 0


def _look_at(output: Path, database: Path) -> None:
    try:
        backup.may_replace(output, database)
    except OSError as error:
        raise NianlunError(f"写不了 {output}：{error.strerror or error}") from error


async def back_up(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    target = arguments.output or backup.default_place(nianlun.path)
    size = await backup.back_up_to(nianlun.path, target)
    _say(f"备份好了：{target}，{file_size(size)}")
    _say("以后有人撤回或要求忘记，这份备份不会跟着改，不用了请自己删掉。")
    return 0


async def restore(nianlun: Nianlun, arguments: argparse.Namespace) -> int:
    """Runs with the store closed: it is about to become another."""
    done = await backup.restore(arguments.file, nianlun.path)
    _say(f"恢复好了：{done.chats} 个会话，{done.messages} 条消息。开着的机器人不用重启。")
    if done.taken_back:
        _say(
            f"备份之后撤回、删掉或要求忘记的 {done.taken_back} 处没有跟着回来，记忆会按剩下的重写。"
        )
    if done.kept is not None:
        kept = await asyncio.to_thread(done.kept.resolve)
        _say(f"恢复之前的样子存在 {kept}，要退回去就 restore 它。")
    return 0
