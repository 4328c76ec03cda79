"""The tour for newcomers: a sample chat is imported, remembered, and told about.

It uses a database of its own, which each run makes anew, and none of the owner's settings but
those of the model, when a model is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
import json
import os
from pathlib import Path
import shutil
import sys
from typing import Literal, TextIO, TypeAlias

from nonebot.config import Config as NoneBotConfig

from ..config import Config, Settings
from ..errors import ConfigError, ModelUnavailable, NianlunError
from ..imports.run import import_file
from ..jobs import Jobs
from ..lifecycle import Nianlun
from ..store import chats, health, usage
from ..types import TidyReport
from .chapters import tell, tell_next
from .cost import Cost, MeasuringWriter
from .material import Material, gather
from .progress import Progress, watched
from .sample import SAMPLE_CHAT, SAMPLE_NOW, TRIP_QUESTION, sample_lines
from .telling import NARROWEST, WIDEST, Teller
from .workspace import SAMPLE, Workspace, workspace

Color: TypeAlias = Literal["auto", "always", "never"]
FOLDER = "demo"
_CHARACTER = "年轮"


@dataclass(frozen=True, slots=True)
class _StandingClock:
    """The time of the story, which does not go on while it is told."""

    time: datetime

    def now(self) -> datetime:
        return self.time


@dataclass(frozen=True, slots=True)
class Tour:
    """One run of it."""

    config: Config
    """The owner's; of it only what concerns the model is used."""
    nonebot: NoneBotConfig
    home: Path
    model: bool = False

    def run(self, *, yes: bool, color: Color) -> int:
        """Go through all of it; returns the exit status. Raises NianlunError."""
        if self.model and not self.config.openai_api_key:
            raise ConfigError("--model 要用模型，请先设置 OPENAI_API_KEY（写在 .env 里）")
        progress = Progress(sys.stderr)
        try:
            with workspace(self.home) as place:
                self._write_sample(place, progress)
                if self.model:
                    self._agree(place, progress, yes=yes)
                material = asyncio.run(self._remember(place, progress))
                place.keep()
        except KeyboardInterrupt:
            progress.clear()
            sys.stderr.write("停下了，这一次的演示文件已经删掉。\n")
            return 1
        teller = Teller(sys.stdout.write, _columns(sys.stdout), _coloured(sys.stdout, color))
        tell(material, teller, self._writer())
        tell_next(teller, self.home)
        return 0

    def _writer(self) -> str:
        if self.model:
            return f"记忆由模型 {_notes_model(self.config)} 写成"
        return "没有用网络和密钥，记忆由内置的离线写手写成，它只会摘录和连接，不会编"

    def _write_sample(self, place: Workspace, progress: Progress) -> None:
        progress.step("正在编样本聊天")
        count = 0
        with (place.run / SAMPLE).open("w", encoding="utf-8", newline="\n") as file:
            for line in sample_lines():
                file.write(f"{json.dumps(line, ensure_ascii=False)}\n")
                count += line["type"] == "message"
        progress.done(f"编好样本聊天，{count} 条消息")

    def _agree(self, place: Workspace, progress: Progress, *, yes: bool) -> None:
        """Say what the model will cost, and ask, unless that was answered before.

        Raises NianlunError when the answer is no.
        """
        cost = asyncio.run(self._estimate(place, progress))
        for line in describe(cost, _notes_model(self.config)):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        if yes:
            return
        if not sys.stdin.isatty():
            raise NianlunError("没有终端可以问：确定要用模型，请加上 --yes")
        sys.stdout.write("继续吗？[y/N] ")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise NianlunError("没有问模型，什么也没有花")

    async def _estimate(self, place: Workspace, progress: Progress) -> Cost:
        """Do all of the work offline in a database that is thrown away, measuring prompts."""
        folder = place.run / "estimate"
        async with self._open(folder, Config()) as nianlun:
            await _import(nianlun, place, progress)
            writer = MeasuringWriter(nianlun.calendar)
            jobs = Jobs(
                nianlun.settings,
                nianlun.clock,
                nianlun.calendar,
                lambda: writer,
                nianlun.recaller,
                nianlun.hears,
            )
            await watched(jobs.tidy([SAMPLE_CHAT]), lambda: _look(nianlun), progress)
        progress.done("量完了要发给模型的文字")
        return writer.cost

    async def _remember(self, place: Workspace, progress: Progress) -> Material:
        async with self._open(place.run, self.config if self.model else Config()) as nianlun:
            await _import(nianlun, place, progress)
            report = await watched(nianlun.tidy(SAMPLE_CHAT), lambda: _look(nianlun), progress)
            if report.errors:
                raise ModelUnavailable(_unfinished(report))
            progress.done(f"做完欠着的整理：{report.activities} 条活动，{report.memories} 篇日月年")
            return await gather(nianlun, SAMPLE_CHAT, TRIP_QUESTION)

    @asynccontextmanager
    async def _open(self, folder: Path, config: Config) -> AsyncIterator[Nianlun]:
        model = config.nianlun
        settings = Settings(
            character=_CHARACTER,
            model=model.model,
            notes_model=model.notes_model,
            extra_body=model.extra_body,
        )
        ours = Config(
            nianlun=settings,
            openai_api_key=config.openai_api_key,
            openai_base_url=config.openai_base_url,
        )
        nianlun = Nianlun(ours, folder, self.nonebot, _StandingClock(SAMPLE_NOW))
        await nianlun.open()
        try:
            yield nianlun
        finally:
            await nianlun.close()


async def _import(nianlun: Nianlun, place: Workspace, progress: Progress) -> None:
    progress.step("正在导入")
    report = await import_file(nianlun, place.run / SAMPLE)
    progress.done(f"导入 {report.new} 条消息")


async def _look(nianlun: Nianlun) -> str:
    """How far the work is, in one line."""
    chat_id = await chats.find(SAMPLE_CHAT)
    if chat_id is None:
        return "正在整理"
    counts = await health.counts(chat_id)
    line = (
        f"正在写：{counts.activities} 条活动，{counts.days} 天，{counts.months} 个月，"
        f"{counts.years} 年；还有 {counts.pending} 条消息没有读"
    )
    if nianlun.client is None:
        return line
    today = nianlun.calendar.day_of(nianlun.clock.now()).isoformat()
    calls, tokens = await usage.spent(chat_id, today)
    return f"{line}；调用 {calls} 次，{tokens} token"


def describe(cost: Cost, model: str) -> list[str]:
    """The estimate for a person."""
    return [
        f"用模型 {model} 写完这一年多的记忆，估计要：",
        f"  一次接一次调用 {cost.calls} 次：{cost.activities} 条活动，{cost.batches} 批整理",
        f"  输入约 {about(cost.prompt)} token，输出约 {about(cost.completion)} token",
        "  输入是用真正的提示词量的，其中引到的旧记忆按离线写手的篇幅；输出按每篇都写满算。",
        "  出错重试要另加。乘上这个模型的单价，就是要花的钱。",
    ]


def about(count: int) -> str:
    """A number to two digits that count; what is beyond them is not known."""
    return f"{round(count, 2 - len(str(count))):,}"


def _notes_model(config: Config) -> str:
    return config.nianlun.notes_model or config.nianlun.model


def _unfinished(report: TidyReport) -> str:
    return f"模型没有把记忆写完，有 {len(report.errors)} 处，例如：{report.errors[0]}"


def _columns(stream: TextIO) -> int:
    if not stream.isatty():
        return NARROWEST + 20
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))


def _coloured(stream: TextIO, color: Color) -> bool:
    """Whether to colour: as told, else on a terminal that is known to understand it."""
    if color != "auto":
        return color == "always"
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.platform != "win32" or "WT_SESSION" in os.environ
