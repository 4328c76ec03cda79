"""Carrying a chat's memory away as a file, and bringing one in."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from nonebot import logger
from nonebot_plugin_alconna import Args

from ..capture.cleaning import one_line
from ..capture.downloading import NotFetched
from ..capture.sent_files import LARGEST, fetch, name_of
from ..errors import ChatError, NianlunError
from ..exports import write_json_lines, write_zip
from ..file_sizes import file_size
from ..imports.found import Unreadable
from ..imports.places import Target
from ..imports.report import ImportReport, shown, what_waits
from ..imports.run import ImportOptions
from ..imports.vault import import_any, look_into_any
from ..memory.vault import file_name
from ..store import chats, leftovers, sent_files
from ..store.export import lines
from ..types import ChatKey
from .codes import Codes, wrong_code
from .command import Answer, Asked, Command, WrongUsage, rest_of_line
from .sending import deliver

if TYPE_CHECKING:
    from ..imports.survey import Survey
    from ..lifecycle import Nianlun

_FORMATS = {"jsonl": "jsonl", "json": "jsonl", "markdown": "zip", "md": "zip", "zip": "zip"}
_RECENT = timedelta(minutes=10)
_NAMED = timedelta(days=1)
"""So far back a file is looked for that is named."""
_FORGOTTEN_AFTER = 24 * 3600
"""Seconds until a file that was left over by a process that ended is removed."""
_SETTLED = 1.0
"""Seconds in which all that is told of a new file has come in."""
_SHOWN = 3
_LONGEST = 4000
"""Characters of all that was not taken in: some plain messages."""
_CODE = re.compile(r"[0-9]{6}")
_NO_FILE = (
    "没有看到你刚发的文件：10 分钟内把它发到这里，我会接着看；或者引用那条文件消息来发，"
    "或者说出名字：{head} 导入 文件名。太大的文件请在命令行导入。"
)
_NOT_NAMED = "这里一天之内没有叫这个名字的文件。"
_NOT_QUOTED = "引用的那条消息里没有文件，或者没有记下来。"
_SEVERAL = "这个文件里有几个会话，请机器人的主人在命令行导入，那里可以一一指明"


class _NoFile(NianlunError):
    """There is none yet."""


class _Told(NamedTuple):
    """What is told of a file."""

    data: Mapping[str, Any]
    """As the platform has it."""
    by_another: bool = False

    @property
    def called(self) -> str:
        name = one_line(name_of(self.data)) or "这个文件"
        return f"{name}（别人发的）" if self.by_another else name


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
        self._looking: set[asyncio.Task[None]] = set()
        self._asked: dict[tuple[ChatKey, str], Asked] = {}
        """What each asked last."""

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
                "把你刚发的、引用的或说出名字的聊天记录或导出文件收进来，先看再确认",
                self._import,
                (rest_of_line("文件", optional=True),),
                example="记录.txt",
                usage="[文件名|确认码]",
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
        return Answer(f"这里的全部记忆，{file_size(size)}：{name}", file=path, privately=True)

    async def _import(self, asked: Asked) -> str:
        named = asked.arguments.get("文件", "")
        if not _CODE.fullmatch(named):
            self._asked[asked.here, asked.user_id] = asked
            try:
                return await self._look(asked, named)
            except _NoFile:
                self._await(asked)
                return _NO_FILE.format(head=asked.head)
        place = (asked.here, asked.user_id)
        waiting = self._waiting.get(place)
        wrong = wrong_code("什么都没有导入", f"{asked.head} 导入")
        if waiting is None or waiting.chat != asked.chat:
            return wrong
        if not self._codes.take(*place, named, self._nianlun.clock.now()):
            return wrong
        del self._waiting[place]
        try:
            options = _into(waiting.chat, asked.user_id)
            report = await import_any(self._nianlun, waiting.path, options, lambda _: None)
        finally:
            await asyncio.to_thread(waiting.path.unlink, missing_ok=True)
        self._nianlun.jobs.soon()
        return summary(report)

    def _await(self, asked: Asked) -> None:
        """Look at the file that they send next."""

        def begin() -> None:
            task = asyncio.create_task(self._look_later(asked))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

        until = self._nianlun.clock.now() + _RECENT
        self._nianlun.sent_files.expect(asked.here, asked.user_id, until, begin)

    async def _look_later(self, asked: Asked) -> None:
        await asyncio.sleep(_SETTLED)
        if self._asked[asked.here, asked.user_id] is not asked:
            return  # they have asked once more
        try:
            text = await self._look(asked, "")
        except _NoFile:
            return  # it was taken back at once
        except NianlunError as error:
            logger.warning(f"{asked.here} 发来的文件没有看成：{error}")
            text = f"没有做成：{error}"
        except Exception as error:
            logger.opt(exception=error).error(f"{asked.here} 发来的文件出了意外")
            text = "没有做成：程序出了意外，详情在机器人的日志里。"
        elsewhere = asked.chat != asked.here
        answer = Answer(text, privately=elsewhere)
        await deliver(asked.bot, asked.event, answer, character=self._nianlun.character)

    async def _look(self, asked: Asked, named: str) -> str:
        """Get the file, tell what is in it, and ask."""
        told, *others = await self._told(asked, named)
        group_id = asked.here.peer_id if asked.here.kind == "group" else None
        try:
            content = await fetch(asked.bot, told.data, group_id=group_id, user_id=asked.user_id)
        except NotFetched as error:
            raise NianlunError(
                f"拿不到那个文件：{error}；可以请机器人的主人在命令行导入"
            ) from error
        path = await asyncio.to_thread(self._folder, "imports") / uuid4().hex
        await asyncio.to_thread(path.write_bytes, content)
        try:
            options = _into(asked.chat, asked.user_id)
            title, survey, keys = await look_into_any(self._nianlun, path, options)
        except NianlunError as error:
            await asyncio.to_thread(path.unlink, missing_ok=True)
            several = isinstance(error, ChatError)  # which of them belongs here, nobody can say
            why = _SEVERAL if several else str(error).replace(str(path), "这个文件")
            raise NianlunError(why) from error
        place = (asked.here, asked.user_id)
        if before := self._waiting.pop(place, None):
            await asyncio.to_thread(before.path.unlink, missing_ok=True)
        self._waiting[place] = _Waiting(path, keys[0])
        code = self._codes.give(*place, self._nianlun.clock.now())
        asks = f"{asked.head} 导入 {code}"
        text = self._preview(told.called, title, survey, keys[0], asks)
        if others:
            names = "、".join(one.called for one in others[:_SHOWN])
            text += f"\n你刚才还发了 {names}：要看那个，请发送：{asked.head} 导入 文件名"
        return text

    async def _told(self, asked: Asked, named: str) -> list[_Told]:
        """What is told of the file that is meant, and of others that may be. Raises _NoFile."""
        if self._nianlun.recorder.waiting:
            await self._nianlun.recorder.flush()
        chat_id, here = await chats.find(asked.here), self._nianlun.sent_files
        if asked.quoted is not None:
            heard = here.quoted(asked.here, asked.quoted)
            told = None if heard is None else heard.data
            if told is None and chat_id is not None:
                told = await sent_files.quoted(chat_id, asked.quoted)
            if told is None:
                raise ChatError(_NOT_QUOTED)
            return [_Told(told)]
        since = asked.at - (_NAMED if named else _RECENT)
        found = [one.data for one in here.of(asked.here, asked.user_id, since)]
        if chat_id is not None and (named or not found):
            found += await sent_files.since(chat_id, since, asked.user_id)
        if not named:
            if not found:
                raise _NoFile
            return [_Told(one) for one in found]
        if own := _of_name(found, named):
            return [_Told(one) for one in own]
        # Another's only where they sent none of that name themselves, and not unsaid.
        others = [] if chat_id is None else await sent_files.since(chat_id, since)
        if not (theirs := _of_name(others, named)):
            raise ChatError(_NOT_NAMED)
        return [_Told(one, by_another=True) for one in theirs]

    def _preview(self, name: str, title: str, survey: Survey, chat: ChatKey, answer: str) -> str:
        (found,) = survey.chats
        span = ""
        if found.first is not None and found.last is not None:
            days = [self._nianlun.calendar.local(at).date() for at in (found.first, found.last)]
            span = f"，{days[0]} 到 {days[1]}" if days[0] != days[1] else f"，{days[0]}"
        edited = (
            f"，{found.edited} 处导出以后改过的正文，能照改的会记在你名下" if found.edited else ""
        )
        return (
            f"{name} 是{title}：{one_line(found.label)}，{found.messages} 条消息，"
            f"{len(survey.names)} 个名字{span}{edited}\n"
            f"会收进 {chat}，已经有的不会重复，撤回过和要求忘记的不会回来；"
            f"收进来之后不能一下子退回去。\n"
            f"确定的话，请在 10 分钟内发送：{answer}"
        )

    def _folder(self, name: str) -> Path:
        """A folder for files that are soon gone."""
        folder = self._nianlun.data_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        leftovers.remove(folder.iterdir(), _FORGOTTEN_AFTER)
        return folder


def _into(chat: ChatKey, editor: str) -> ImportOptions:
    target = Target(chat.kind, chat.peer_id, chat.self_id)
    return ImportOptions(targets=(target,), editor=editor)


def _of_name(files: Sequence[Mapping[str, Any]], named: str) -> list[Mapping[str, Any]]:
    """The newest file of this name, else the newest that has it in its name."""
    named = named.casefold()
    same = [one for one in files if name_of(one).casefold() == named]
    return (same or [one for one in files if named in name_of(one).casefold()])[:1]


def summary(report: ImportReport) -> str:
    """What an import into one chat did, for that chat."""
    (chat,) = report.chats
    parts = [f"新存 {chat.new} 条消息", f"早已有 {chat.known} 条", f"带来记忆 {chat.notes} 篇"]
    if chat.edited:
        parts.append(f"照改 {chat.edited} 篇")
    if chat.withdrawn:
        parts.append(f"其中 {chat.withdrawn} 条已撤回，只留空位")
    lines = [f"收进来了：{'，'.join(parts)}。"]
    if report.left_out:
        told = _fitting(shown(report.unreadable, _SHOWN))
        lines.append(f"有 {report.left_out} 处没有照原样读进来：")
        lines += told
        if report.left_out > len(told):
            lines.append(f"……还有 {report.left_out - len(told)} 处")
    if waiting := what_waits(report):
        # What was said just now, the file itself among it, has not come to the end of its window.
        later = "；刚说的话要攒够一段或过完这一天才写" if chat.pending else ""
        lines.append(f"还有{waiting}，会在后台写{later}。")
    return "\n".join(lines)


def _fitting(found: Sequence[Unreadable]) -> list[str]:
    """A line for each, as many as go out even where a chat takes no bundles."""
    told = [f"第 {one.line} 行：{one_line(one.reason)}" for one in found]
    lengths = accumulate(len(line) + 1 for line in told)
    return [line for line, length in zip(told, lengths, strict=True) if length <= _LONGEST]
