"""To correct: notes are edited, brought back, written anew; messages and activities removed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from nonebot import logger
from nonebot_plugin_alconna import Args, MultiVar

from ..errors import CorrectionError, ModelError, NianlunError, Overtaken
from ..memory.periods import PERIOD_HINT
from ..store import deleting, editing, memories, messages, provenance
from ..types import Activity, MemoryKind, Note
from .command import Answer, Asked, Command, WrongUsage, rest_of_line
from .correcting_views import (
    deleted_view,
    edited_view,
    restored_view,
    rewriting_view,
    rewritten_view,
)
from .remembering import Remembering
from .sending import deliver
from .subjects import Subject, read_activity, read_message, read_subject
from .views import echo, inspection_view, tidy_view

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

PATIENCE = 20.0
"""Seconds that a rewriting is waited for; what takes longer is answered when it is done."""
_MOST_AT_ONCE = 50


class Correcting:
    """Changes what is remembered, as somebody who governs the chat says."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun
        self._answering: set[asyncio.Task[None]] = set()

    def commands(self) -> tuple[Command, ...]:
        dated = Args["日期", str]
        return (
            Command(
                "改",
                "govern",
                "把一天、一月、一年或一条活动改成你写的话，旧版留着",
                self._edit,
                (dated, rest_of_line("新文")),
                example="2026-01-05 我和小鹿去爬了山。（#12）",
                usage="日期|&活动 新文",
                group="改",
            ),
            Command(
                "还原",
                "govern",
                "换回以前的一版",
                self._restore,
                (dated, Args["版本", int]),
                example="2026-01-05 1",
                usage="日期|&活动 版本号",
            ),
            Command(
                "重写",
                "govern",
                "照全部来源重新写一遍，人改过的也会换掉",
                self._rewrite,
                (dated,),
                example="2026-01-05",
                usage="日期|&活动",
            ),
            Command(
                "删",
                "govern",
                "删掉消息或活动，可以一次几个，也可以引用那条消息",
                self._delete,
                (Args["什么;?", MultiVar(str, "*")],),
                example="#12 #13 &3",
                usage="#消息|&活动 …",
            ),
            *Remembering(self._nianlun).commands(),
            Command("整理", "govern", "把欠着的记录现在写完", self._tidy),
            Command("核对", "govern", "看看有没有漏记、重记或对不上的地方", self._inspect),
        )

    def _subject(self, asked: Asked) -> Subject:
        typed: str = asked.arguments["日期"]
        now = self._nianlun.clock.now()
        subject = read_subject(typed, self._nianlun.calendar, now)
        if subject is None:
            raise WrongUsage(f"没有 {echo(typed)} 这个日期或活动。{PERIOD_HINT}")
        return subject

    async def _edit(self, asked: Asked) -> str:
        subject, now = self._subject(asked), self._nianlun.clock.now()
        chat_id = await self._nianlun.settled(asked.chat)
        await self._has_text(chat_id, subject)
        edited = await editing.edit(
            chat_id, subject.kind, subject.ref, asked.arguments["新文"], asked.user_id, now
        )
        self._nianlun.jobs.soon()
        return edited_view(subject, edited.version, edited.before, edited.text, asked.head)

    async def _restore(self, asked: Asked) -> str:
        subject, now = self._subject(asked), self._nianlun.clock.now()
        old: int = asked.arguments["版本"]
        chat_id = await self._nianlun.settled(asked.chat)
        await self._has_text(chat_id, subject)
        restored = await editing.restore(
            chat_id, subject.kind, subject.ref, old, asked.user_id, now
        )
        self._nianlun.jobs.soon()
        return restored_view(subject, restored, old)

    async def _rewrite(self, asked: Asked) -> str:
        subject = self._subject(asked)
        chat_id = await self._nianlun.settled(asked.chat)
        of = await self._standing(chat_id, subject)
        task = self._nianlun.jobs.rewriting(chat_id, asked.chat, of)
        await asyncio.wait({task}, timeout=PATIENCE)
        if task.done():
            return await self._rewritten(chat_id, subject, task)
        later = asyncio.create_task(
            self._tell_later(asked, chat_id, subject, task), name="nianlun-later"
        )
        self._answering.add(later)
        later.add_done_callback(self._answering.discard)
        return rewriting_view(subject)

    async def _has_text(self, chat_id: int, subject: Subject, *, or_waits: bool = False) -> None:
        """Raises CorrectionError when there is no such memory; one that waits to be written anew
        counts with `or_waits`. Activities are not looked at."""
        kind, ref = subject.kind, subject.ref
        if kind == "activity" or await memories.memory(chat_id, kind, ref) is not None:
            return
        why = await provenance.missing(chat_id, kind, ref, self._nianlun.calendar)
        if not (or_waits and why == "waiting"):
            raise CorrectionError(f"{ref} {provenance.WHY_MISSING[why]}")

    async def _standing(self, chat_id: int, subject: Subject) -> Activity | tuple[MemoryKind, str]:
        if subject.kind != "activity":
            await self._has_text(chat_id, subject, or_waits=True)
            return subject.kind, subject.ref
        activity = await memories.activity(chat_id, int(subject.ref))
        if activity is None:
            raise CorrectionError(f"没有{subject}")
        emptied = await provenance.emptied(chat_id, activity.number)
        if (
            emptied is not None
            and emptied.state != "waiting"
            and not await messages.of_activity(chat_id, activity.number)
        ):
            raise CorrectionError(f"{subject} {provenance.WHY_EMPTY[emptied.state]}")
        if not activity.ranges:
            raise CorrectionError(f"{subject} 是随手写的日记，没有可以照着重写的消息")
        return activity

    async def _rewritten(
        self, chat_id: int, subject: Subject, task: asyncio.Task[Note | None]
    ) -> str:
        try:
            note = task.result()
        except Overtaken as error:
            told = str(error) or f"{subject} 正在被别处改动，这次没有重写，过一会儿再试"
            raise CorrectionError(told) from error
        except ModelError as error:
            if subject.kind != "activity":
                raise
            emptied = await provenance.emptied(chat_id, int(subject.ref))
            if emptied is None or emptied.state != "waiting":
                raise
            raise CorrectionError(f"{error}；{subject} 还等着重写") from error
        self._nianlun.jobs.soon()
        if note is None and subject.kind == "activity":
            before = await provenance.emptied(chat_id, int(subject.ref)) is None
        else:
            versions = await memories.versions(chat_id, subject.kind, subject.ref)
            before = any(old.text for old in versions[-1:])
        return rewritten_view(subject, note, before=before)

    async def _tell_later(
        self, asked: Asked, chat_id: int, subject: Subject, task: asyncio.Task[Note | None]
    ) -> None:
        await asyncio.wait({task})
        if task.cancelled():
            return  # the product stops
        try:
            text = await self._rewritten(chat_id, subject, task)
        except NianlunError as error:
            text = f"{subject} 没有重写成：{error}"
        except Exception as error:
            logger.opt(exception=error).error(f"{asked.chat} 的「重写」出了意外")
            text = f"{subject} 没有重写成：程序出了意外，详情在机器人的日志里。"
        answer = Answer(text, privately=asked.chat != asked.here)
        await deliver(asked.bot, asked.event, answer, character=self._nianlun.character)

    async def _delete(self, asked: Asked) -> str:
        chat_id = await self._nianlun.settled(asked.chat)
        typed: tuple[str, ...] = asked.arguments.get("什么", ())
        seqs: list[int] = []
        numbers: list[int] = []
        for one in typed:
            if (seq := read_message(one)) is not None:
                seqs.append(seq)
            elif (number := read_activity(one)) is not None:
                numbers.append(number)
            else:
                raise WrongUsage(f"不认识 {echo(one)}：消息写成 #12，活动写成 &3。")
        if not typed:
            seqs = [await self._quoted(asked, chat_id)]
        if len(typed) > _MOST_AT_ONCE:
            raise WrongUsage(f"一次最多删 {_MOST_AT_ONCE} 个。")
        deleted = await deleting.delete(chat_id, seqs, numbers, self._nianlun.clock.now())
        self._nianlun.traces.soon()
        self._nianlun.jobs.soon()
        return await self._deleted(chat_id, deleted)

    async def _deleted(self, chat_id: int, deleted: deleting.Deleted) -> str:
        """What was removed; of a period also by what else in it is there, or still to be noted."""
        why = {
            period: await provenance.missing(chat_id, kind, period, self._nianlun.calendar)
            for kind, period in deleted.periods
        }
        gone = [note for note in deleted.gone if why.get(note, "gone") == "gone"]
        later = [period for period, state in why.items() if state == "emptied"]
        return deleted_view(
            deleted.messages,
            deleted.activities,
            deleted.missing,
            deleted.rewritten + len(deleted.gone) - len(gone) - len(later),
            gone,
            later,
            deleted.edited,
        )

    async def _quoted(self, asked: Asked, chat_id: int) -> int:
        if asked.quoted is None or asked.chat != asked.here:
            raise WrongUsage("要删哪条？写上 #12 或 &3，或者引用那条消息。")
        seq = await messages.seq_of(chat_id, asked.quoted)
        if seq is None:
            raise CorrectionError("引用的那条消息没有记下，或者早就收回了")
        return seq

    async def _tidy(self, asked: Asked) -> str:
        return tidy_view(await self._nianlun.tidy(asked.chat))

    async def _inspect(self, asked: Asked) -> str:
        return inspection_view(await self._nianlun.inspect(asked.chat))
