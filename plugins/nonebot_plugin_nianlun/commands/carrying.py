"""Carrying a chat's memory away as a file, and bringing one in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
import time
from typing import TYPE_CHECKING
from uuid import uuid4

from nonebot_plugin_alconna import Args

from ..capture.cleaning import one_line
from ..capture.downloading import NotFetched
from ..capture.sent_files import LARGEST, fetch
from ..errors import NianlunError
from ..exports import write_json_lines, write_zip
from ..imports.places import Target
from ..imports.report import ImportReport
from ..imports.run import ImportOptions
from ..imports.vault import import_any, look_into_any
from ..memory.vault import file_name
from ..store import chats, sent_files
from ..store.export import lines
from ..types import ChatKey
from .codes import Codes
from .command import Answer, Asked, Command, WrongUsage

if TYPE_CHECKING:
    from ..imports.survey import Survey
    from ..lifecycle import Nianlun

_FORMATS = {"jsonl": "jsonl", "json": "jsonl", "markdown": "zip", "md": "zip", "zip": "zip"}
_RECENT = timedelta(minutes=10)
_FORGOTTEN_AFTER = 24 * 3600
"""Seconds until a file that was left over by a process that ended is removed."""
_NO_FILE = (
    "没有看到文件：请先把文件发到这里，10 分钟内再发一次 {head} 导入；"
    "或者引用那条文件消息来发。太大的文件请在命令行导入。"
)
_WRONG_CODE = "确认码不对，或者已经过了 10 分钟，什么都没有导入。要重新来，请发送：{head} 导入"


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A file that was looked through and waits for a yes."""

    path: Path
    chat: ChatKey


class Carrying:
    """Serves 导出 and 导入."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun
        self._codes = Codes()
        self._waiting: dict[tuple[ChatKey, str], _Waiting] = {}

    def commands(self) -> tuple[Command, ...]:
        return (
            Command(
                "导出",
                "govern",
                "全部记忆做成一个文件发给你：jsonl，或给人看的 markdown（压缩包）",
                self._export,
                (Args["格式;?", str],),
                example="markdown",
                usage="[jsonl|markdown]",
                group="搬运",
            ),
            Command(
                "导入",
                "govern",
                "把你刚发的、或引用的那个聊天记录或导出文件收进来，先看再确认",
                self._import,
                (Args["确认码;?", "re:[0-9]{6}"],),
                usage="[确认码]",
            ),
        )

    async def _export(self, asked: Asked) -> Answer:
        kind = _FORMATS.get(asked.arguments.get("格式", "jsonl").lower())
        if kind is None:
            raise WrongUsage("只有 jsonl 和 markdown 两种格式。")
        await self._nianlun.settled(asked.chat)
        now = self._nianlun.clock.now()
        stamp = f"{self._nianlun.calendar.local(now):%Y%m%d-%H%M%S}-{uuid4().hex[:4]}"
        name = f"{asked.chat.kind}-{file_name(asked.chat.peer_id)}-{stamp}.{kind}"
        path = await asyncio.to_thread(self._folder, "exports") / name
        rows = lines(asked.chat, self._nianlun.settings.timezone.key, now)
        await (write_zip if kind == "zip" else write_json_lines)(path, rows)
        size = (await asyncio.to_thread(path.stat)).st_size
        if size > LARGEST:
            await asyncio.to_thread(path.unlink)
            raise NianlunError("记忆太大，发不过来，请机器人的主人在命令行用 export 导出")
        return Answer(f"这里的全部记忆，{size / 1024:.0f} KB：{name}", file=path, privately=True)

    async def _import(self, asked: Asked) -> str:
        now = self._nianlun.clock.now()
        place = (asked.here, asked.user_id)
        code = asked.arguments.get("确认码")
        if code is None:
            return await self._look(asked)
        waiting = self._waiting.get(place)
        if waiting is None or waiting.chat != asked.chat:
            return _WRONG_CODE.format(head=asked.head)
        if not self._codes.take(*place, code, now):
            return _WRONG_CODE.format(head=asked.head)
        del self._waiting[place]
        try:
            options = _into(waiting.chat)
            report = await import_any(self._nianlun, waiting.path, options, lambda _: None)
        finally:
            await asyncio.to_thread(waiting.path.unlink, missing_ok=True)
        self._nianlun.jobs.soon()
        return _done(report)

    async def _look(self, asked: Asked) -> str:
        """Get the file, tell what is in it, and ask."""
        told = await self._told(asked)
        if told is None:
            return _NO_FILE.format(head=asked.head)
        group_id = asked.here.peer_id if asked.here.kind == "group" else None
        try:
            content = await fetch(asked.bot, told, group_id=group_id, user_id=asked.user_id)
        except NotFetched as error:
            raise NianlunError(f"拿不到那个文件：{error}") from error
        path = await asyncio.to_thread(self._folder, "imports") / uuid4().hex
        await asyncio.to_thread(path.write_bytes, content)
        try:
            title, survey, keys = await look_into_any(self._nianlun, path, _into(asked.chat))
        except NianlunError as error:
            await asyncio.to_thread(path.unlink, missing_ok=True)
            raise NianlunError(str(error).replace(str(path), "这个文件")) from error
        place = (asked.here, asked.user_id)
        if before := self._waiting.pop(place, None):
            await asyncio.to_thread(before.path.unlink, missing_ok=True)
        self._waiting[place] = _Waiting(path, keys[0])
        code = self._codes.give(*place, self._nianlun.clock.now())
        return self._preview(title, survey, keys[0], f"{asked.head} 导入 {code}")

    async def _told(self, asked: Asked) -> dict[str, object] | None:
        if self._nianlun.recorder.waiting:
            await self._nianlun.recorder.flush()
        chat_id = await chats.find(asked.here)
        if chat_id is None:
            return None
        if asked.quoted is not None:
            return await sent_files.quoted(chat_id, asked.quoted)
        return await sent_files.last(chat_id, asked.user_id, asked.at - _RECENT)

    def _preview(self, title: str, survey: Survey, chat: ChatKey, answer: str) -> str:
        (found,) = survey.chats
        span = ""
        if found.first is not None and found.last is not None:
            days = [self._nianlun.calendar.local(at).date() for at in (found.first, found.last)]
            span = f"，{days[0]} 到 {days[1]}" if days[0] != days[1] else f"，{days[0]}"
        return (
            f"{title}：{one_line(found.label)}，{found.messages} 条消息，"
            f"{len(survey.names)} 个名字{span}\n"
            f"会收进 {chat}，已经有的不会重复，撤回过和要求忘记的不会回来；"
            f"收进来之后不能一下子退回去。\n"
            f"确定的话，请在 10 分钟内发送：{answer}"
        )

    def _folder(self, name: str) -> Path:
        """A folder for files that are soon gone."""
        folder = self._nianlun.data_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.is_file() and time.time() - path.stat().st_mtime > _FORGOTTEN_AFTER:
                path.unlink(missing_ok=True)
        return folder


def _into(chat: ChatKey) -> ImportOptions:
    return ImportOptions(targets=(Target(chat.kind, chat.peer_id, chat.self_id),))


def _done(report: ImportReport) -> str:
    (chat,) = report.chats
    parts = [f"新存 {chat.new} 条消息", f"早已有 {chat.known} 条", f"带来记忆 {chat.notes} 篇"]
    if chat.withdrawn:
        parts.append(f"其中 {chat.withdrawn} 条已撤回，只留空位")
    lines = [f"收进来了：{'，'.join(parts)}。"]
    if report.left_out:
        first = report.unreadable[0]
        reason = f"第 {first.line} 行：{one_line(first.reason)}"
        lines.append(f"有 {report.left_out} 处没有照原样读进来，例如{reason}")
    if chat.pending:
        lines.append(f"还有 {chat.pending} 条消息没有写成记忆，正在后台写。")
    return "\n".join(lines)
