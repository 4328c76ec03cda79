"""Questions and corrections, from the command to what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, cast
from unittest.mock import Mock, patch

from nonebot import get_driver
from nonebot.adapters.onebot.v11 import Bot, Message, MessageSegment
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.commands import correcting
from plugins.nonebot_plugin_nianlun.commands.answering import Answering
from plugins.nonebot_plugin_nianlun.commands.correcting import Correcting
from plugins.nonebot_plugin_nianlun.commands.desk import Desk
from plugins.nonebot_plugin_nianlun.commands.matcher import all_commands
from plugins.nonebot_plugin_nianlun.commands.questioning import Questioning
from plugins.nonebot_plugin_nianlun.commands.tree import PERIOD
from plugins.nonebot_plugin_nianlun.config import Config, Settings
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.memory.invariants import Inspection
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    facts,
    memories,
    provenance,
    recording,
)
from plugins.nonebot_plugin_nianlun.types import ChatKey, Fact, Incoming, Withdrawal
from tests.bot.test_commands import event_of
from tests.support.scripted_writer import ScriptedWriter, SetClock

GROUP = ChatKey("10001", "group", "123")
SELF, SHE, HE, ADMIN, BOSS = 10001, 20002, 20003, 20004, 30003
MORNING = datetime(2026, 11, 28, 1, 0, tzinfo=UTC)
NOW = datetime(2026, 11, 29, 17, 30, tzinfo=UTC)
DAY = "2026-11-28"
SECRET = "芝麻开门"
NAMES = {SHE: "小鹿", HE: "阿澈", ADMIN: "老王", BOSS: "主人"}


@dataclass
class FakeBot:
    """Takes what is sent."""

    self_id: str = str(SELF)
    sent: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def send(self, event: object, message: Any, **where: Any) -> None:
        self.sent.put_nowait(str(message))


class Group:
    """A group with its bot, whose first day is noted by a scripted writer."""

    def __init__(self, nianlun: Nianlun) -> None:
        self.nianlun = nianlun
        self.bot = FakeBot()
        commands = [*Questioning(nianlun).commands(), *Correcting(nianlun).commands()]
        self.answering = Answering(Desk(nianlun), commands, {"/"})
        self.number = 100

    async def says(
        self,
        text: str,
        by: int = ADMIN,
        *,
        role: str = "",
        kind: str = "group",
        quoting: int | None = None,
    ) -> str:
        """The answer to a command."""
        self.number += 1
        message = Message(MessageSegment.text(f"/记忆 {text}"))
        if quoting is not None:
            message = MessageSegment.reply(quoting) + message
        event = event_of(
            message,
            kind=kind,
            role=role or ("admin" if by == ADMIN else "member"),
            user_id=by,
            message_id=self.number,
        )
        event.sender.nickname = NAMES[by]
        self.nianlun.on_event(cast(Bot, self.bot), event)
        answer = await self.answering.answer(cast(Bot, self.bot), event)
        assert answer is not None
        return f"{answer.title}\n{answer.text}".strip()

    async def row(self) -> int:
        found = await chats.find(GROUP)
        assert found is not None
        return found

    async def day(self) -> tuple[str, str, int] | None:
        found = await memories.memory(await self.row(), "day", DAY)
        return None if found is None else (found.text, found.writer, found.version)

    async def sound(self) -> None:
        found = await self.nianlun.inspect(GROUP)
        assert (found.findings, found.found) == ((), 0)


@pytest.fixture
def writer() -> ScriptedWriter:
    return ScriptedWriter()


@pytest.fixture
async def group(tmp_path: Path, writer: ScriptedWriter) -> AsyncIterator[Group]:
    settings = get_driver().config.model_copy(update={"superusers": {str(BOSS)}})
    nianlun = Nianlun(Config(nianlun=Settings()), tmp_path, settings, SetClock(NOW))
    nianlun.jobs._new_writer = lambda: writer
    await nianlun.open()
    nianlun.recorder.start()
    try:
        lines = [
            Incoming(
                GROUP,
                MORNING + timedelta(minutes=number),
                str(SHE if number % 2 else HE),
                NAMES[SHE if number % 2 else HE],
                [{"type": "text", "data": {"text": text}}],
                "event",
                message_id=str(number),
            )
            for number, text in enumerate(["早", "去爬山吗", f"口令是{SECRET}", "好", "几点"], 1)
        ]
        await recording.record(lines, readable, "小忆", NOW)
        await nianlun.tidy(GROUP)
        yield Group(nianlun)
    finally:
        await nianlun.close()


async def test_an_edit_and_its_way_back(group: Group) -> None:
    before = await group.day()
    assert before is not None
    told = await group.says(f'改 {DAY} 小鹿说  "去爬山"，\n阿澈答应了。（#2）')
    assert told.startswith("改好了：2026-11-28 现在是第 2 版，第 1 版（模型）留着。")
    assert f"/记忆 还原 {DAY} 1" in told
    assert "/记忆 还原 &1 1" in await group.says("改 &1 他们约好了。")
    await group.says("还原 &1 1")
    text = '小鹿说  "去爬山"，\n阿澈答应了。（关键消息：[2]）'
    assert await group.day() == (text, str(ADMIN), 2)
    told = await group.says("还原 昨天 1", BOSS)
    assert "第 1 版还原成了第 3 版" in told
    assert await group.day() == (before[0], str(BOSS), 3)
    assert "第 1 版和现在的一样，没有改动" in await group.says("还原 昨天 1")
    await group.nianlun.tidy(GROUP)
    await group.sound()


IMPOSSIBLE = [
    ("改 " + DAY + " " + "字" * 501, "正文有 501 字，上限是 500 字"),
    ("改 &1 " + "字" * 101, "正文有 101 字，上限是 100 字"),
    ("改 2026-01-05 我改了。", "没有做成：2026-01-05 还没有写成记忆"),
    ("改 某天 我改了。", "没有 某天 这个日期或活动"),
    (f"改 {'某' * 21} 我改了。", f"没有 {'某' * 19}… 这个日期或活动"),
    ("改 the-pigeon-pictures-of-yesterday 好。", "没有 the-pigeon-pictures… 这个日期或活动"),
    (f"改 {DAY}", "没看懂这条指令，可以这样写"),
    (f"改 {DAY} 好。（#99）", "这里不能引用 #99"),
    (f"改 {DAY} 好。（#91 #92 #93 #94 #95 #96）", "#91 #92 #93 #94 #95 等 6 条：只能"),
    (f"改 {DAY} # 标题", "Markdown 标题"),
    ("改 ＆９９ 我改了。", "没有活动 &99"),
    (f"还原 {DAY} 7", "没有第 7 版，现在是第 1 版"),
    (f"还原 {DAY} 一", "没看懂这条指令，可以这样写"),
    ("还原 &99 1", "没有活动 &99"),
    ("重写 2026-01-05", "还没有写成记忆"),
    ("重写 &99", "没有活动 &99"),
    ("删 12", "消息写成 #12，活动写成 &3"),
    ("删", "写上 #12 或 &3，或者引用那条消息"),
    ("删 #99 &99", "没有 #99 &99，或者早就删掉了"),
    ("为什么 2026-01-05", "还没有写成记忆"),
    ("为什么 &99", "没有活动 &99"),
    ("为什么 天上有云", "写日期、&3 或 分类:名"),
    ("为什么 \u202e\u200b", "没看懂这条指令，可以这样写"),
    ("为什么 \u202ex", "不认识 x："),
    ("为什么 event:没有", "没有 event:没有 这个词条"),
    ("记住 咖啡 只喝美式", "请写成 分类:名"),
    ("记住 爱好:咖啡 只喝美式", "preferences（喜好）"),
    ("记住 preferences:[[咖啡]] 好", "名要 1 到 80 个字，里面不能有"),
    ("记住 preferences:咖啡 " + "字" * 301, "内容有 301 字，要有 1 到 300 字"),
    ("忘掉 preferences:咖啡", "没有这一条"),
]
"""What somebody types, and a part of what it is answered with."""


async def test_what_cannot_be_done_is_told_and_changes_nothing(group: Group) -> None:
    before = await group.day()
    for typed, told in IMPOSSIBLE:
        assert told in await group.says(typed), typed
        assert await group.day() == before, typed
    await group.sound()


async def test_why_a_day_says_what_it_says(group: Group) -> None:
    await group.says(f"改 {DAY} 小鹿说「去爬山吗」。（#2）阿澈又说了口令。（#3）大家都很开心。")
    told = await group.says(f"为什么 {DAY}", SHE)
    lines = told.splitlines()
    assert lines[0] == f"为什么这样记：{DAY}"
    assert "第 2 版 · 20004 改写" in lines[1]
    assert lines[2].startswith("这篇由 老王（20004）改写于 2026-11-30 01:30")
    assert lines[3] == "写自 1 条活动：&1"
    assert "1 句没有引用消息" in lines[-1]
    await group.says("改 &1 小鹿说「去爬山吗」。（#2）")
    told = await group.says(f"为什么 {DAY}", SHE)
    assert "  &1（老王 改写）（同一段里的其他话）\n    #3 2026-11-28 09:03 小鹿：" in told
    assert "不在了" not in told
    await group.says("改 &1 小鹿说「去爬山吗」，（#2）阿澈说了口令。（#3）")
    told = await group.says(f"为什么 {DAY}", SHE)
    assert "1. 小鹿说「去爬山吗」。" in told
    assert "  &1（老王 改写） 小鹿说「去爬山吗」" in told
    assert "    #2 2026-11-28 09:02 阿澈：「去爬山吗」" in told
    assert f"    #3 2026-11-28 09:03 小鹿：「口令是{SECRET}」" in told


async def test_why_an_activity_shows_its_lines_and_no_words_that_are_gone(group: Group) -> None:
    notice = Withdrawal(GROUP, "3", None, NOW)
    await recording.record([notice], readable, "小忆", NOW)
    assert "正等着重写" in await group.says("为什么 &1")
    await group.nianlun.tidy(GROUP)
    told = await group.says("为什么 &1", SHE)
    assert "#3 2026-11-28 09:03 [已经收回]" in told
    assert "#4 2026-11-28 09:04 阿澈：「好」" in told
    assert SECRET not in told
    await group.nianlun.forget(GROUP, str(SHE), NOW)
    await group.nianlun.tidy(GROUP)
    told = await group.says("为什么 &1", HE)
    assert "#1 2026-11-28 09:01 [已经忘记]" in told
    assert "小鹿" not in told


async def test_an_edited_text_stays_when_the_day_is_told_more(
    group: Group, writer: ScriptedWriter
) -> None:
    await group.says(f"改 {DAY} 人写的一句。")
    writer.shorten = lambda text: "模型写的别的"
    late = Incoming(
        GROUP,
        MORNING + timedelta(hours=5),
        str(SHE),
        "小鹿",
        [{"type": "text", "data": {"text": "迟到的话"}}],
        "event",
        message_id="50",
    )
    await recording.record([late], readable, "小忆", NOW)
    await group.nianlun.tidy(GROUP)
    text, by, _ = await group.day() or ("", "", 0)
    assert text.startswith("人写的一句。")
    assert by == str(ADMIN)
    told = await group.says(f"为什么 {DAY}")
    assert "改写于 2026-11-30 01:30，后来又接着写了新的事" in told
    assert "人写的一句" not in told  # what it cites came behind it
    told = await group.says(f"还原 {DAY} 2")
    assert told.splitlines()[1:] == [
        "人写的一句。",
        "那以后写进来的 1 条活动，会再接着写到后面。",
    ]
    await group.nianlun.tidy(GROUP)
    assert await group.day() == (text, str(ADMIN), 5)
    await group.sound()


async def test_what_somebody_typed_again_with_more_is_told_as_theirs(group: Group) -> None:
    since = "后来又接着写了新的事"
    await group.says(f"改 {DAY} 去爬山了。（#2）", BOSS)
    await group.says(f"改 {DAY} 去爬山了。（#2）很开心。")
    await group.says(f"改 {DAY} 去爬山了。（#2）很开心。还吃了面。")
    assert since not in await group.says(f"为什么 {DAY}")
    await group.says("改 &1 又约好了带伞。（#3）")
    await group.nianlun.tidy(GROUP)
    text, *_ = await group.day() or ("",)
    assert text.startswith("去爬山了。（关键消息：[2]）很开心。还吃了面。")
    assert "带伞" in text
    assert since in await group.says(f"为什么 {DAY}")
    await group.says(f"改 {DAY} {text}最后一句。")
    assert since not in await group.says(f"为什么 {DAY}")
    await group.sound()


async def test_what_was_added_from_the_same_activity_does_not_come_back(
    group: Group, writer: ScriptedWriter
) -> None:
    await group.says(f"改 {DAY} 人写的一句。")
    await group.says("改 &1 又约好了带伞。")
    await group.nianlun.tidy(GROUP)
    text, *_ = await group.day() or ("",)
    assert "又约好了带伞" in text
    told = await group.says(f"还原 {DAY} 2")
    assert told.splitlines()[1:] == [
        "人写的一句。",
        "后来接着写的不在这一版里，只留在第 3 版。",
    ]
    await group.nianlun.tidy(GROUP)
    assert await group.day() == ("人写的一句。", str(ADMIN), 4)


async def test_a_rewriting_answers_at_once_when_it_is_quick(group: Group) -> None:
    await group.says(f"改 {DAY} 人写的一句。")
    told = await group.says(f"重写 {DAY}")
    assert told.startswith(f"{DAY} 由模型照全部来源重写好了，原来的那一版留着。")
    text, by, version = await group.day() or ("", "", 0)
    assert ("去爬山吗" in text, by, version) == (True, "model", 3)
    told = await group.says("重写 &1")
    assert told.startswith("活动 &1 由模型照全部来源重写好了")
    await group.nianlun.tidy(GROUP)
    await group.sound()


async def test_a_long_rewriting_is_answered_when_it_is_done(
    group: Group, writer: ScriptedWriter
) -> None:
    go_on = asyncio.Event()

    async def wait() -> None:
        await go_on.wait()

    writer.while_rolling_up = wait
    with patch.object(correcting, "PATIENCE", 0.01):
        assert "正在重写" in await group.says(f"重写 {DAY}")
    assert group.bot.sent.empty()
    go_on.set()
    told = await group.bot.sent.get()
    assert told.startswith(f"{DAY} 由模型照全部来源重写好了")


async def test_a_rewriting_that_fails_leaves_the_text(group: Group, writer: ScriptedWriter) -> None:
    before = await group.day()
    writer.broken = True
    assert await group.says(f"重写 {DAY}") == "没有做成：模型没有回应"
    with patch.object(correcting, "PATIENCE", 0.0):
        await group.says(f"重写 {DAY}")
    assert await group.bot.sent.get() == f"{DAY} 没有重写成：模型没有回应"
    assert await group.day() == before


async def test_the_end_of_the_product_ends_a_rewriting(
    group: Group, writer: ScriptedWriter
) -> None:
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    writer.while_rolling_up = wait
    task = group.nianlun.jobs.rewriting(await group.row(), GROUP, ("day", DAY))
    await started.wait()
    await group.nianlun.jobs.stop()
    assert task.cancelled()


async def test_what_is_deleted_is_gone_at_once(group: Group) -> None:
    told = await group.says("删 #3 #99")
    assert told.splitlines() == [
        "删掉了消息 #3：原话已经清空，再传来或导入也不会回来。",
        "用到它们的 2 篇记忆清空了，会按剩下的重写。",
        "没有 #99，或者早就删掉了。",
    ]
    assert "里面有话收回、删掉或忘记了，正等着重写" in await group.says(f"为什么 {DAY}")
    await group.nianlun.tidy(GROUP)
    text, _, _ = await group.day() or ("", "", 0)
    assert SECRET not in text
    assert "去爬山吗" in text
    assert await group.says("核对") == "没有问题：8 条消息、1 条活动、1 篇记忆都对得上。"
    told = await group.says("删 #1 #2 #4 #5")
    assert told.splitlines()[1:] == [f"&1、{DAY} 也清空了，现在没有剩下可以写的。"]


async def test_the_quoted_message_is_deleted(group: Group) -> None:
    assert "删掉了消息 #3" in await group.says("删", quoting=3)
    assert "没有记下，或者早就收回了" in await group.says("删", quoting=3)
    await group.sound()


async def test_a_deleted_activity_stays_away(group: Group, writer: ScriptedWriter) -> None:
    await group.says(f"改 {DAY} 人写的一句。")
    told = await group.says("删 &1")
    assert "删掉了活动 &1：不会再从那些话写出来" in told
    assert (await group.nianlun.status(GROUP)).owed == 0
    assert told.splitlines()[1:] == [
        f"{DAY} 也清空了，现在没有剩下可以写的。",
        f"其中 {DAY} 是人写过的，也清空了。",
    ]
    calls = writer.calls
    nothing_left = f"没有做成：{DAY} 里记下的都删掉或清空了，没有剩下可以写的"
    ways = (f"改 {DAY} 又来了。", f"还原 {DAY} 1", f"重写 {DAY}", f"为什么 {DAY}")
    for way in ways:
        assert await group.says(way) == nothing_left
    assert await group.says("整理") == "没有欠着的，都写好了。"
    assert writer.calls == calls
    assert await group.day() is None
    for way in ways:
        assert await group.says(way) == nothing_left
    for way in ("为什么 &1", "改 &1 又来了。", "还原 &1 1", "重写 &1"):
        assert await group.says(way) == "没有做成：活动 &1 已经删掉了"
    await group.sound()


async def test_a_day_is_not_gone_while_something_said_in_it_is_to_be_noted(group: Group) -> None:
    later = Incoming(
        GROUP,
        MORNING + timedelta(hours=2),
        str(HE),
        NAMES[HE],
        [{"type": "text", "data": {"text": "下山了"}}],
        "event",
        message_id="7",
    )
    await recording.record([later], readable, "小忆", NOW)
    with patch.object(group.nianlun.jobs, "soon"):  # nobody writes it meanwhile
        told = await group.says("删 &1")
        assert told.splitlines()[1:] == ["用到它们的 1 篇记忆清空了，会按剩下的重写。"]
        assert (await group.nianlun.status(GROUP)).owed == 1
        waits = f"没有做成：{DAY} 里面有话收回、删掉或忘记了，正等着重写，写好了再来"
        for way in (f"改 {DAY} 又来了。", f"还原 {DAY} 1", f"为什么 {DAY}"):
            assert await group.says(way) == waits, way
    row, calendar = await group.row(), group.nianlun.calendar
    assert await provenance.nothing_left(row, DAY)
    for period, awaits in ((DAY, True), ("2026-11", True), ("2026", True), ("2026-11-27", False)):
        assert await provenance.awaits_note(row, period, calendar) is awaits, period
    assert not await provenance.awaits_note(row, "2026-11-29", calendar)
    await group.nianlun.tidy(GROUP)
    assert "下山了" in (await group.day() or ("",))[0]
    await group.sound()


async def test_the_one_try_of_a_resting_model_is_not_offered_before_its_turn(group: Group) -> None:
    jobs, row, queues = group.nianlun.jobs, await group.row(), asyncio.Event()

    class Turn(asyncio.Lock):
        async def acquire(self) -> Literal[True]:
            queues.set()
            return await super().acquire()

    client = Mock()
    jobs._client, jobs._locks[row] = client, Turn()
    with patch.object(jobs, "soon"):
        await group.says("删 #3")
    async with jobs.alone_with(row):
        queues.clear()
        tidying = asyncio.create_task(group.nianlun.tidy(GROUP))
        await queues.wait()
        client.try_now.assert_not_called()
    await tidying
    client.try_now.assert_called_once_with()


async def test_what_was_emptied_is_written_again_from_what_is_left(
    group: Group, writer: ScriptedWriter
) -> None:
    writer.declines = lambda window: True
    told = await group.says("重写 &1")
    assert told == "活动 &1 没有重写：照剩下的话重新看过，没有值得记的，原来怎样还是怎样。"
    assert "去爬山吗" in (await group.day() or ("",))[0]
    await group.says("删 #3")
    await group.nianlun.tidy(GROUP)
    emptied = "活动 &1 已经清空：里面有话收回、删掉或忘记了，没有剩下值得记的"
    for way in ("改 &1 又来了。", "还原 &1 1", "为什么 &1"):
        assert await group.says(way) == f"没有做成：{emptied}", way
    gone = f"没有做成：{DAY} 里记下的都删掉或清空了，没有剩下可以写的"
    for way in (f"改 {DAY} 又来了。", f"还原 {DAY} 1", f"重写 {DAY}", f"为什么 {DAY}"):
        assert await group.says(way) == gone, way
    versions = await provenance.texts(
        await group.row(), "activity", "1", await memories.activity(await group.row(), 1)
    )
    assert [(text.text, text.writer) for text, _ in versions] == [("", "model"), ("", "model")]
    assert "没有值得记的" in await group.says("重写 &1")
    writer.declines = lambda window: False
    told = await group.says("重写 &1")
    assert told.startswith("活动 &1 由模型照全部来源重写好了")
    assert "去爬山吗" in told
    assert SECRET not in told
    await group.nianlun.tidy(GROUP)
    text, _, version = await group.day() or ("", "", 0)
    assert ("去爬山吗" in text, version) == (True, 2)
    older = await memories.versions(await group.row(), "day", DAY)
    assert [(old.version, old.text, old.blanked) for old in older] == [(1, "", True)]
    await group.says("删 #1 #2 #4 #5")
    await group.nianlun.tidy(GROUP)
    assert await group.says("重写 &1") == f"没有做成：{emptied}"
    await group.sound()


async def test_a_fact_is_whose_it_is_said_by(group: Group) -> None:
    told = await group.says("记住 preferences:咖啡 只喝  美式，见 [[event:爬山]]", SHE)
    assert told.splitlines() == [
        "记住了，你的 preferences:咖啡：只喝 美式，见 [[event:爬山]]",
        "这些链接现在找不到对应的词条：event:爬山",
    ]
    assert (await group.says("记住 preferences：咖啡 只喝拿铁", SHE)).startswith("改好了")
    assert (await group.says("记住 preferences:咖啡 只喝拿铁", SHE)).startswith("本来就是")
    await group.says("记住 preferences:咖啡 不喝", HE)
    found = {row.owner: row for row in await facts.listed(await group.row())}
    assert {owner: row.text for owner, row in found.items()} == {
        str(SHE): "只喝拿铁",
        str(HE): "不喝",
    }
    told = await group.says("为什么 preferences:咖啡", SHE)
    assert "小鹿的 preferences:咖啡：只喝拿铁" in told
    assert "小鹿：「/记忆 记住 preferences：咖啡 只喝拿铁」" in told
    assert "只喝 美式" in told
    assert "不喝" not in told  # others' facts are for those who govern
    assert "不喝" in await group.says("为什么 preferences:咖啡")
    await group.sound()


async def test_a_promise_has_its_day_and_a_secret_is_not_kept(group: Group) -> None:
    told = await group.says("记住 promise:交稿 我周五前交稿，密码是hunter2233", SHE)
    assert "到期：2026-12-04" in told
    assert "没有记下" in told
    [row] = await facts.listed(await group.row())
    assert (row.due, "hunter2233" in row.text) == ("2026-12-04", False)


async def test_a_fact_of_the_chat_wants_somebody_who_governs(group: Group) -> None:
    refused = await group.says("记住 --群 knowledge:群规 不许发广告", SHE)
    assert "只有群主、管理员和机器人的主人可以" in refused
    told = await group.says("记住 --群 knowledge:群规 不许 发广告")
    assert told == "记住了，这个会话的 knowledge:群规：不许 发广告"
    [row] = await facts.listed(await group.row())
    assert (row.owner, row.text) == ("", "不许 发广告")
    assert "你没有这一条" in await group.says("忘掉 knowledge:群规", SHE)
    assert "拿掉了这个会话的 knowledge:群规" in await group.says("忘掉 knowledge:群规 群")
    assert await facts.listed(await group.row()) == []


async def test_a_fact_that_was_taken_away_does_not_come_back_by_itself(
    group: Group, writer: ScriptedWriter
) -> None:
    writer.facts = lambda window: (Fact("event", "口令", f"口令是{SECRET}", 3),)
    await group.says("重写 &1")
    [row] = await facts.listed(await group.row())
    assert row.owner == str(SHE)
    assert "拿掉了你的" in await group.says("忘掉 event:口令", SHE)
    assert "重写好了" in await group.says("重写 &1")
    assert await facts.listed(await group.row()) == []
    assert "记住了" in await group.says("记住 event:口令 改了", SHE)
    await exclusions.opt_out(await group.row(), str(SHE), NOW, NOW)
    told = await group.says("记住 event:口令 又改", SHE)
    assert told == "没有做成：你说过别记你，没有保存。要我再记，请发送：/记忆 可以记我"
    await group.sound()


async def test_everybody_takes_away_their_own_and_admins_anybodys(group: Group) -> None:
    for by in (SHE, HE):
        await group.says("记住 preferences:冰 咖啡 要多加", by)
        await group.says("记住 preferences:茶 都行", by)
    row = await group.row()
    told = await group.says("忘掉 preferences:茶 阿澈", SHE)
    assert "拿掉别人的，只有群主" in told
    assert "没有这一条" not in told  # she has it
    assert await group.says("忘掉 preferences:茶", SHE) == (
        "拿掉了你的 preferences:茶，它以前的写法也清掉了；到现在为止说过的话不会再让它回来。"
    )
    assert "拿掉了阿澈的 preferences:茶" in await group.says("忘掉 preferences:茶")
    told = await group.says("忘掉 preferences:冰")
    assert "有几个人都有 preferences:冰" in told
    assert "小鹿（20002）" in told
    assert "阿澈（20003）" in told
    assert "拿掉了小鹿的" in await group.says("忘掉 preferences:冰 @20002")
    assert [fact.owner for fact in await facts.listed(row)] == [str(HE)]
    assert "没有叫 没这个人 的人" in await group.says("忘掉 preferences:冰 没这个人")
    await group.sound()


async def test_members_are_not_told_what_there_is_of_others(group: Group) -> None:
    await group.says("记住 profile:病 花粉 过敏", HE)
    for there, not_there in (
        ("profile:病", "profile:伤"),
        ("profile:病 花粉", "profile:病 药粉"),
        ("profile:病 阿澈", "profile:伤 阿澈"),
    ):
        await group.says(f"记住 {there.split()[0]} 有", HE)
        answers = [
            await group.says(f"{verb} {one}", SHE)
            for verb in ("忘掉", "为什么")
            for one in (there, not_there)
        ]
        told = [answer.replace("病", "伤").replace("药", "花") for answer in answers]
        assert told[0] == told[1], there
        assert told[2] == told[3], there
        await group.says(f"忘掉 {there.split()[0]}", HE)


async def test_members_correct_nothing(group: Group) -> None:
    before = await group.day()
    for typed in (f"改 {DAY} 我改了。", f"还原 {DAY} 1", f"重写 {DAY}", "删 #1", "整理", "核对"):
        told = await group.says(typed, SHE)
        assert told == "只有群主、管理员和机器人的主人可以用这条指令。"
    assert await group.day() == before


async def test_numbers_of_another_chat_lead_nowhere(group: Group) -> None:
    for typed in ("为什么 &1", f"为什么 {DAY}", "改 &1 我改了。", f"还原 {DAY} 1", "删 #3 &1"):
        told = await group.says(typed, SHE, kind="private")
        assert "没有" in told
        assert SECRET not in told
    assert await group.day() is not None
    found: Inspection = await group.nianlun.inspect(GROUP)
    assert found.found == 0


HOSTILE = [
    "改 今天 \u202e\u2028\x00（#1",
    "为什么 " + "&" * 5000,
    "为什么 &999999999999999",
    "为什么 \ud83d\ude00:{0}%s[[a:b]]",
    "记住 a:" + "名" * 5000 + " x",
    "记住 a:b [[a:b]]" * 50,
    "忘掉 a:b [CQ:at,qq=all]",
    "删 " + "#1 " * 51,
    "还原 今天 99999999999999999999999999",
]


FREE = {"指令", "话", "词", "名", "新文", "内容", "文件"}
"""Arguments that may be any sign."""
PEOPLE = {"名字", "说话人"}
"""Those that may be any sign but an @ of nobody."""


async def test_an_argument_of_nothing_is_answered_with_the_right_usage(group: Group) -> None:
    group.answering = Answering(Desk(group.nianlun), all_commands(group.nianlun), {"/"})
    wrong: list[tuple[str, str]] = []
    for command in group.answering.tree.commands.values():
        if command.verb == PERIOD:
            continue  # what is no date there is no command either
        names = [one for args in command.arguments for one in args.argument]
        usual = [*command.example.split(), *("小鹿" if n.name in PEOPLE else "1" for n in names)]
        for index, argument in enumerate(names):
            nothing = ["@"]
            if argument.name not in FREE | PEOPLE:
                nothing += ["#", "&", "分类:", ":名", "：", *([] if argument.optional else ['""'])]
            if not argument.optional:
                nothing += ["", "\u3000", "\u200b\u2060"]
            for typed in nothing:
                said = f"{command.verb} {' '.join([*usual[:index], typed])}"
                told = await group.says(said, BOSS)
                right = typed == "@" and argument.name in FREE
                if "出了意外" in told or not (right or group.answering.tree.usage(command) in told):
                    wrong.append((said, told))
    assert wrong == []
    for typed in ("-g @", "今天 -u @", "-g \u200b 今天", "-g # 今天"):
        assert "-g 后面写群号，-u 后面写QQ号" in await group.says(typed, BOSS), typed
    assert "没有记录过 private:20009" in await group.says("今天 -u @20009", BOSS)


async def test_hostile_words_are_answered(group: Group) -> None:
    for typed in HOSTILE:
        told = await group.says(typed)
        assert told, typed
        assert "程序出了意外" not in told, typed
        assert len(told) < 2000, typed
    await group.sound()


async def test_a_name_with_a_blank_may_be_quoted_behind_what_is_forgotten(group: Group) -> None:
    NAMES[20005] = "阿 宁"
    for typed in ("忘掉 喜好:菜 “阿 宁”", '忘掉 喜好:菜 "阿 宁"', "忘掉 喜好:菜 “阿宁”"):
        await group.says("记住 喜好:菜 爱吃辣", 20005)
        told = await group.says(typed)
        right = "没有叫 阿宁 的人" if "阿宁" in typed else "拿掉了阿 宁的 preferences:菜"
        assert right in told, typed


async def test_of_whom_nothing_is_to_forget_is_said(group: Group) -> None:
    await group.says("记住 喜好:茶 都行")
    for whom, not_theirs in (("小鹿", "小鹿没有 preferences:茶"), ("群", "这个会话没有")):
        assert not_theirs in await group.says(f"忘掉 喜好:茶 {whom}")
    await group.says("记住 喜好:茶 都行", SHE)
    told = await group.says("忘掉 喜好:茶 群", SHE)
    assert told == "没有做成：这个会话没有这一条"


async def test_an_at_of_the_bot_behind_what_is_forgotten_is_an_address(group: Group) -> None:
    for by, typed in ((SHE, ""), (ADMIN, " 小鹿"), (ADMIN, " @20002")):
        await group.says("记住 喜好:茶 都行", SHE)
        told = await group.says(f"忘掉 喜好:茶{typed} @{SELF}", by)
        assert "拿掉了" in told, typed
    await facts.remember(await group.row(), "me", [FactItem("event", "伞", "带着")], None, NOW)
    await group.says("记住 event:伞 有")
    assert "拿掉了我的 event:伞" in await group.says(f"忘掉 event:伞 @{SELF}")


async def test_a_date_may_be_typed_with_blanks_in_it(group: Group) -> None:
    assert f"改好了：{DAY} " in await group.says("改 昨天 上午 我们吃了火锅。")
    written = await group.day()
    assert written is not None
    assert written[0] == "上午 我们吃了火锅。"
    assert f"改好了：{DAY} " in await group.says("改 “11 月 28 日” 上午 我们吃了饺子。")
    assert f"{DAY} 的第 1 版还原成了" in await group.says("还原 11 月 28 日 1")
    assert "可以这样写" in await group.says("还原 11 月 1")  # the 1st, or version 1 of the month
    assert "2026-11 还没有写成" in await group.says("改 2026 年 11 月 大家去了北京。")
    assert "：2026 还没有写成" in await group.says("改 今年 十一月 大家去了北京。")
    assert "：2025 还没有写成" in await group.says("改 去年 夏天 大家去了北京。")
    assert f"{DAY} 由" in await group.says("重写 昨天 上午")


def line(number: int, text: str, at: datetime) -> Incoming:
    said = [{"type": "text", "data": {"text": text}}]
    return Incoming(GROUP, at, str(HE), NAMES[HE], said, "event", message_id=str(number))


@pytest.mark.parametrize("together", [False, True], ids=["one after the other", "together"])
async def test_a_restoring_names_all_that_is_left_out(group: Group, together: bool) -> None:
    await group.says(f"改 {DAY} 人写的一句。")
    with patch.object(group.nianlun.jobs, "soon"):
        await group.says("改 &1 又约好了带伞（#3）")
    if not together:
        await group.nianlun.tidy(GROUP)
    await recording.record([line(50, "迟到的话", MORNING + timedelta(hours=5))], readable, "", NOW)
    await group.nianlun.tidy(GROUP)
    text, _, version = await group.day() or ("", "", 0)
    assert ("带伞" in text, "迟到的话" in text) == (True, True)
    told = await group.says(f"还原 {DAY} 2")
    assert told.splitlines()[1:] == [
        "人写的一句。",
        "那以后写进来的 1 条活动，会再接着写到后面。",
        f"别的后来接着写的不在这一版里，只留在第 {version} 版。",
    ]
    await group.nianlun.tidy(GROUP)
    text, *_ = await group.day() or ("",)
    assert ("带伞" in text, "迟到的话" in text) == (False, True)
    await group.sound()


async def test_an_activity_that_waits_is_written_anew_when_it_is_asked_for(
    group: Group, writer: ScriptedWriter
) -> None:
    writer.broken = True
    await group.says("删 #3")
    await group.nianlun.tidy(GROUP)
    assert await group.says("重写 &1") == "没有做成：模型没有回应；活动 &1 还等着重写"
    with patch.object(correcting, "PATIENCE", 0.0):
        await group.says("重写 &1")
    told = (await group.bot.sent.get()).replace("&amp;", "&")
    assert told == "活动 &1 没有重写成：模型没有回应；活动 &1 还等着重写"
    writer.broken = False
    told = await group.says("重写 &1")
    assert told.startswith("活动 &1 由模型照全部来源重写好了。")  # nothing was there before
    assert ("去爬山吗" in told, SECRET in told) == (True, False)
    running = group.nianlun.jobs._running
    assert running is not None
    await running  # and the day follows, without waiting for the time of the next try
    assert "去爬山吗" in (await group.day() or ("",))[0]
    await group.sound()


async def test_an_activity_that_waits_does_so_no_longer_when_nothing_is_worth_noting(
    group: Group, writer: ScriptedWriter
) -> None:
    with patch.object(group.nianlun.jobs, "soon"):
        await group.says("删 #3")
        writer.declines = lambda window: True
        assert "没有值得记的，所以空着" in await group.says("重写 &1")
    emptied = await provenance.emptied(await group.row(), 1)
    assert emptied is not None
    assert emptied.state == "left"
    await group.nianlun.tidy(GROUP)
    await group.sound()


async def test_a_year_without_a_source_is_written_again_when_a_month_is(group: Group) -> None:
    clock = cast(SetClock, group.nianlun.clock)
    clock.time = december = datetime(2026, 12, 3, 4, 0, tzinfo=UTC)
    await recording.record([line(60, "下雪了", december)], readable, "", december)
    await group.nianlun.tidy(GROUP)
    commands = all_commands(group.nianlun)
    group.answering = Answering(Desk(group.nianlun), commands, {"/"})
    assert "早" in await group.says("2026")
    emptied = "2026 已经清空：它的来源都删掉或清空了，等那段时间里别的内容写好了再写"
    with patch.object(group.nianlun.jobs, "soon"):
        told = await group.says("删 &1")
        assert told.splitlines()[1:] == [
            "2026-11、2026-11-28 也清空了，现在没有剩下可以写的。",
            f"{emptied}。",
        ]
        assert await group.says("2026") == f"{emptied}。"
    await group.nianlun.tidy(GROUP)
    assert await group.says("2026") == f"{emptied}。"
    for way in ("版本 2026", "为什么 2026", "重写 2026", "还原 2026 1", "改 2026 又来了。"):
        assert await group.says(way) == f"没有做成：{emptied}", way
    clock.time = datetime(2027, 1, 2, 4, 0, tzinfo=UTC)
    await group.nianlun.tidy(GROUP)
    assert "下雪了" in await group.says("2026")
    await group.sound()


async def test_a_month_with_a_day_left_waits_with_its_year(group: Group) -> None:
    clock = cast(SetClock, group.nianlun.clock)
    earlier = MORNING - timedelta(days=3)
    await recording.record([line(60, "下雨了", earlier)], readable, "", NOW)
    clock.time = datetime(2026, 12, 3, 4, 0, tzinfo=UTC)
    await group.nianlun.tidy(GROUP)
    with patch.object(group.nianlun.jobs, "soon"):
        told = await group.says("删 &1")
        assert told.splitlines()[1:] == [
            "用到它们的 2 篇记忆清空了，会按剩下的重写。",
            f"{DAY} 也清空了，现在没有剩下可以写的。",
        ]
        assert "正等着重写" in await group.says("为什么 2026")
    await group.sound()
