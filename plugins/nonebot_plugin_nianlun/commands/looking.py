"""To look: how the memory is doing, days, months and years, their versions, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
import re
from typing import TYPE_CHECKING

from nonebot_plugin_alconna import Args, MultiVar

from ..errors import ChatError
from ..memory.anniversaries import same_dates
from ..memory.calendar import titled
from ..memory.edits import NOT_BROUGHT
from ..memory.keymarks import show_key_marks
from ..memory.periods import PERIOD_HINT, PERIOD_SHAPE, read_date, read_time
from ..memory.render import display_names, one_line
from ..memory.units import shortened
from ..store import chats, facts, memories, provenance, usage
from ..store.database import trouble_of
from ..store.speakers import current_names
from ..types import Activity, Memory, MemoryKind, is_edited
from .command import Answer, Asked, Command, NotUnderstood, WrongUsage, rest_of_line
from .correcting_views import owner_words
from .drawing import usage_picture
from .looking_views import (
    Version,
    comparison,
    earlier_years_view,
    last_change,
    prompt_view,
    usage_view,
    version_view,
    versions_view,
)
from .subjects import Subject, read_fact, read_subject
from .views import (
    activities_view,
    echo,
    memory_view,
    status_view,
    troubles_view,
)

if TYPE_CHECKING:
    from ..lifecycle import Nianlun

_MONTH = timedelta(days=29)
_LONGEST_NUMBER = 12
"""Digits of a number that is told back."""
_PATIENCE = 3.0
"""Seconds: whoever asks for the status may do so because the database is stuck."""


class Looking:
    """Shows what is remembered, as it is stored."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun
        self._calendar = nianlun.calendar

    def commands(self) -> tuple[Command, ...]:
        dated = Args["日期", str]
        return (
            Command("状态", "govern", "记了多少、还欠多少、哪里不好", self._status, group="看"),
            Command("今天", "read", "今天记下的事", lambda asked: self._days_ago(asked, 0)),
            Command("昨天", "read", "昨天记下的事", lambda asked: self._days_ago(asked, 1)),
            Command("前天", "read", "前天记下的事", lambda asked: self._days_ago(asked, 2)),
            Command(
                "日期",
                "read",
                "那一天的记忆；2026-01 是那个月的，2026 是那一年的",
                self._period,
                (Args["日期", MultiVar(str)],),
                usage="2026-01-05",
            ),
            Command("去年今天", "read", "往年的今天", self._earlier_years),
            Command(
                "预览",
                "govern",
                "现在回一句话时，模型会看到的全部",
                self._preview,
                (rest_of_line("话", optional=True),),
                example="上次爬山是什么时候",
                usage="[话]",
            ),
            Command("用量", "govern", "近 30 天用了多少 token", self._usage),
            Command(
                "版本",
                "govern",
                "一篇记忆、一条活动或一个词条改过几版；带上版本号就看那一版",
                self._versions,
                (dated, Args["版本;?", int]),
                example="2026-01-05",
                usage="日期|&活动|分类:名 [版本号]",
            ),
            Command(
                "对比",
                "govern",
                "两版之间改了哪些句子，默认是最近两版",
                self._compare,
                (dated, Args["旧版;?", int]["新版;?", int]),
                example="2026-01-05 1 2",
                usage="日期|&活动|分类:名 [旧版 新版]",
            ),
        )

    async def _status(self, asked: Asked) -> Answer:
        nianlun = self._nianlun
        troubles = {
            "接口": nianlun.client.trouble if nianlun.client else None,
            "最近一次回复没有记忆": nianlun.replier.trouble,
            "最近一次回复没想起旧事": nianlun.recaller.trouble,
            "没在这里说话": nianlun.replier.silence(asked.chat),
        }
        try:
            async with asyncio.timeout(_PATIENCE):
                counted = status_view(await nianlun.status(asked.chat), self._calendar)
        except Exception as error:
            slow = isinstance(error, TimeoutError)
            trouble = f"等了 {_PATIENCE:g} 秒也没有读到" if slow else trouble_of(error)
            if trouble is None:
                raise
            troubles = {"记了多少": str(trouble), "存新消息": nianlun.recorder.trouble} | troubles
            counted = "数据库现在不好用："
        return Answer("\n".join([counted, *troubles_view(troubles)]), "年轮的状态")

    def _today(self) -> date:
        return self._calendar.day_of(self._nianlun.clock.now())

    async def _days_ago(self, asked: Asked, days: int) -> Answer:
        return await self._day(asked, self._today() - timedelta(days=days))

    async def _day(self, asked: Asked, day: date) -> Answer:
        """A finished day shows its memory, today and a day without one (also) its activities."""
        key = day.isoformat()
        memory = await self._nianlun.memory(asked.chat, "day", key)
        parts = [await self._memory_view(asked, memory)] if memory else []
        missing = None
        if memory is None or day == self._today():
            activities = await self._nianlun.activities(asked.chat, key)
            if activities:
                parts.append(activities_view(activities, self._calendar))
            missing = await self._missing(asked, "day", key)
        if not parts:
            return Answer(missing or f"{titled(key)}我还没有记下什么。")
        return Answer("\n\n".join([*parts, *([missing] if missing else [])]), titled(key))

    async def _period(self, asked: Asked) -> Answer:
        typed = " ".join(asked.arguments["日期"])
        if not re.fullmatch(PERIOD_SHAPE, typed) and self._date(typed) is None:
            if read_time(typed, self._calendar, self._nianlun.clock.now()) is not None:
                raise WrongUsage(f"{one_line(typed)} 不是一天、一月或一年。{PERIOD_HINT}")
            raise NotUnderstood(asked.arguments["日期"][0])
        kind, key = self._read(typed)
        if kind == "day":
            return await self._day(asked, date.fromisoformat(key))
        memory = await self._nianlun.memory(asked.chat, kind, key)
        if memory is None:
            missing = await self._missing(asked, kind, key)
            return Answer(missing or f"{key} 还没有写成记忆。可以先看其中的某一天。")
        return Answer(await self._memory_view(asked, memory), key)

    async def _memory_view(self, asked: Asked, memory: Memory) -> str:
        edit = None
        if is_edited(memory.writer) and (chat_id := await chats.find(asked.chat)) is not None:
            _, edit = (await provenance.texts(chat_id, memory.kind, memory.period, memory))[-1]
        return memory_view(memory, self._calendar, edit)

    async def _missing(self, asked: Asked, kind: MemoryKind, period: str) -> str | None:
        """Why what was noted of a period cannot be shown; None where nothing is missing."""
        chat_id = await chats.find(asked.chat)
        if chat_id is None:
            return None
        why = await provenance.missing(chat_id, kind, period, self._calendar)
        return None if why == "unwritten" else f"{period} {provenance.WHY_MISSING[why]}。"

    def _date(self, typed: str) -> tuple[MemoryKind, str] | None:
        return read_date(typed, self._calendar, self._nianlun.clock.now())

    def _read(self, typed: str) -> tuple[MemoryKind, str]:
        period = self._date(typed)
        if period is None:
            raise WrongUsage(f"没有 {echo(typed)} 这个日期。{PERIOD_HINT}")
        return period

    async def _earlier_years(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        dates = same_dates(self._today())
        days = await memories.memories(chat_id, "day", dates)
        texts = {day.period: show_key_marks(day.text) for day in days}
        for day in await memories.rewriting(chat_id, "day", set(dates) - texts.keys()):
            if (missing := await self._missing(asked, "day", day)) is not None:
                texts[day] = missing
        if not texts:
            return Answer("往年的今天我还没有记下什么。")
        shown = [(day, texts[day]) for day in dates if day in texts]
        return Answer(earlier_years_view(shown), "往年的今天")

    async def _preview(self, asked: Asked) -> Answer:
        await self._nianlun.settled(asked.chat)
        said = asked.arguments.get("话")
        prompt = await self._nianlun.recaller.prompt(asked.chat, said, asked.user_id)
        return Answer(prompt_view(prompt, self._nianlun.settings.prompt_budget), "回复之前会看到的")

    async def _usage(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        today = self._today()
        counts = await usage.since(chat_id, (today - _MONTH).isoformat())
        if not counts:
            return Answer("近 30 天没有用过模型，也就没有花 token。")
        picture = await usage_picture(chat_id, today)
        return Answer(usage_view(counts, today), "近 30 天的用量", picture=picture)

    async def _versions(self, asked: Asked) -> Answer:
        called, found = await self._all_versions(asked)
        number = asked.arguments.get("版本")
        if number is None:
            return _in_one(
                found, lambda all_: versions_view(all_, self._calendar), f"{called} 的版本"
            )
        return _in_one(
            found,
            lambda all_: version_view(_of(all_, number), self._calendar),
            f"{called} 第 {number} 版",
        )

    async def _compare(self, asked: Asked) -> Answer:
        called, found = await self._all_versions(asked)
        old, new = (asked.arguments.get(name) for name in ("旧版", "新版"))
        if old is None:
            return _in_one(found, last_change, f"{called} 最近两版")
        if new is None:
            raise WrongUsage("要比哪两版？")
        return _in_one(
            found,
            lambda all_: comparison(_of(all_, old), _of(all_, new)),
            f"{called} 第 {old} 版 → 第 {new} 版",
        )

    async def _all_versions(self, asked: Asked) -> tuple[str, dict[str, list[Version]]]:
        """What was asked for, and every version of it, oldest first; of a fact that several
        have, those of each, by whose it is."""
        typed: str = asked.arguments["日期"]
        subject = read_subject(typed, self._calendar, self._nianlun.clock.now())
        chat_id = await self._nianlun.settled(asked.chat)
        if subject is not None:
            called = str(subject)
            return called, {called: await self._note_versions(chat_id, subject)}
        if (named := read_fact(typed)) is None:
            raise WrongUsage(f"没有 {echo(typed)} 这个日期、活动或词条。{PERIOD_HINT}")
        found = await self._fact_versions(chat_id, *named)
        called = one_line(":".join(named))
        return (called if len(found) > 1 else next(iter(found))), found

    async def _note_versions(self, chat_id: int, subject: Subject) -> list[Version]:
        now: Memory | Activity | None
        if subject.kind == "activity":
            now = await memories.activity(chat_id, int(subject.ref))
        else:
            now = await memories.target(chat_id, subject.kind, subject.ref)
        versions = [
            Version(one.version, one.text, one.writer, one.written_at, edit)
            for one, edit in await provenance.texts(chat_id, subject.kind, subject.ref, now)
        ]
        if now is None:
            if subject.kind == "activity":
                raise ChatError(f"没有{subject}")
            why = await provenance.missing(chat_id, subject.kind, subject.ref, self._calendar)
            raise ChatError(f"{subject.ref} {provenance.WHY_MISSING[why]}")
        if subject.kind == "activity":
            emptied = await provenance.emptied(chat_id, int(subject.ref))
            if emptied is not None and emptied.state == "deleted":
                number = versions.pop().number
                versions.append(Version(number, "", None, emptied.at, gone="已删"))
        return versions

    async def _fact_versions(
        self, chat_id: int, category: str, name: str
    ) -> dict[str, list[Version]]:
        rows = await facts.named(chat_id, category, name)
        if not rows:
            raise ChatError(f"没有 {echo(f'{category}:{name}', 60)} 这个词条")
        owners = display_names(await current_names(chat_id, {row.owner for row in rows} - {""}))
        found: dict[str, list[Version]] = {}
        for row in rows:
            texts = [*await facts.journal(row.id), row]
            key = f"{owner_words(row.owner, owners)}的 {one_line(f'{category}:{name}')}"
            found[key] = [
                Version(number, text.text, None, text.written_at, gone="拿掉了")
                for number, text in enumerate(texts, 1)
            ]
        return found


def _in_one(
    found: Mapping[str, list[Version]], view: Callable[[list[Version]], str], title: str
) -> Answer:
    """One answer about all that bear the name."""
    if len(found) == 1:
        [versions] = found.values()
        return Answer(view(versions), title)
    parts = [f"{called}：\n{_view_of(versions, view)}" for called, versions in found.items()]
    return Answer("\n\n".join(parts), title)


def _view_of(versions: list[Version], view: Callable[[list[Version]], str]) -> str:
    try:
        return view(versions)
    except WrongUsage as error:
        return str(error)


def _of(versions: Sequence[Version], number: int) -> Version:
    for version in versions:
        if version.number == number:
            return version
    last = versions[-1].number
    if 0 < number < last:
        raise WrongUsage(f"第 {number} 版看不到，{NOT_BROUGHT}；现在到第 {last} 版。")
    raise WrongUsage(f"没有第 {shortened(str(number), _LONGEST_NUMBER)} 版，现在到第 {last} 版。")
