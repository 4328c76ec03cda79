"""What is looked at and found, from the words of a command to the answer, on a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
import re
import shutil
import threading
from types import SimpleNamespace
from typing import Any, cast
from zoneinfo import ZoneInfo

from nonebot import get_driver
import pytest

from plugins.nonebot_plugin_nianlun import doctor, doctor_report
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.commands.command import Answer, Asked, NotUnderstood
from plugins.nonebot_plugin_nianlun.commands.finding import Finding
from plugins.nonebot_plugin_nianlun.commands.finding_views import found_view
from plugins.nonebot_plugin_nianlun.commands.looking import Looking
from plugins.nonebot_plugin_nianlun.commands.tree import Tree
from plugins.nonebot_plugin_nianlun.config import Config, Settings
from plugins.nonebot_plugin_nianlun.errors import ChatError, NianlunError
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.memory.query import wording
from plugins.nonebot_plugin_nianlun.memory.search import Recalled, RecallResult
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    deleting,
    editing,
    exclusions,
    facts,
    forgetting,
    links,
    provenance,
    recording,
    said,
    search,
    sql,
    usage,
    withdrawals,
)
from plugins.nonebot_plugin_nianlun.store.database import transactional
from plugins.nonebot_plugin_nianlun.store.models import Activity, Chat, Memory, NoteVersion
from plugins.nonebot_plugin_nianlun.store.models import Fact as Row
from plugins.nonebot_plugin_nianlun.types import (
    COMMAND_LINE,
    ChatKey,
    Incoming,
    SkipReason,
    Usage,
    Withdrawal,
)
from tests.support.scripted_writer import SetClock

GROUP = ChatKey("10001", "group", "123")
OTHER = ChatKey("10001", "group", "456")
NOON = datetime(2026, 11, 27, 4, tzinfo=UTC)  # a Friday, 12:00 in Shanghai
DEER, NAMESAKE, CHE = "20001", "20102", "20003"


@dataclass
class Room:
    """A product with one talkative group, and somebody who asks there."""

    nianlun: Nianlun
    tree: Tree
    chat_id: int = 0

    async def say(
        self,
        text: str,
        user_id: str = DEER,
        name: str = "小鹿",
        *,
        minutes: float = 0,
        chat: ChatKey = GROUP,
        skipped: SkipReason | None = None,
    ) -> str:
        """Returns the platform's id of the message."""
        at = NOON + timedelta(minutes=minutes)
        message_id = f"{abs(hash((text, user_id, minutes, chat)))}"
        segments = [{"type": "text", "data": {"text": text}}]
        line = Incoming(
            chat, at, user_id, name, segments, "event", message_id=message_id, skipped=skipped
        )
        await recording.record([line], readable, "小忆", at)
        found = await chats.find(GROUP)
        self.chat_id = found or 0
        return message_id

    async def ask(self, typed: str, user_id: str = CHE) -> Answer:
        request = self.tree.read(f"/记忆 {typed}")
        assert request.arguments is not None, typed
        event = SimpleNamespace(get_plaintext=lambda: f"/记忆 {typed}")
        asked = Asked(
            GROUP, GROUP, user_id, False, "member", NOON, request.arguments, None,
            cast(Any, None), cast(Any, event), "/记忆",
        )  # fmt: skip
        answer = await request.command.serve(asked)
        return Answer(answer) if isinstance(answer, str) else answer

    async def told(self, typed: str, user_id: str = CHE) -> str:
        return (await self.ask(typed, user_id)).text

    async def refused(self, typed: str) -> str:
        with pytest.raises(NianlunError) as raised:
            await self.ask(typed)
        return str(raised.value)


@pytest.fixture
async def room(prepared_database: Path, tmp_path: Path) -> AsyncIterator[Room]:
    shutil.copy(prepared_database, tmp_path / "nianlun.db")
    clock = SetClock(NOON + timedelta(hours=2))
    nianlun = Nianlun(Config(nianlun=Settings()), tmp_path, get_driver().config, clock)
    await nianlun.open()
    commands = [*Looking(nianlun).commands(), *Finding(nianlun).commands()]
    yield Room(nianlun, Tree(commands, {"/"}))
    await nianlun.close()


@transactional
async def take_back(chat_id: int, message_id: str) -> None:
    await sql.move_last_seqs({chat_id: 0})  # a transaction that reads first waits for no lock
    await withdrawals.withdraw(chat_id, Withdrawal(GROUP, message_id, DEER, NOON))


async def test_what_somebody_said_is_paged_latest_first(room: Room) -> None:
    for number in range(20):
        await room.say(f"第{number}句\n换行", minutes=number)
    first = await room.told("说过 小鹿")
    assert first.splitlines()[0] == "#20 2026-11-27 12:19 第19句 换行"
    assert first.splitlines()[-1] == "再往前：/记忆 说过 小鹿 2"
    assert len(first.splitlines()) == 16
    second = await room.told("说过 @20001 2")
    assert await room.told("说过 ＠20001 2") == second
    assert [line[:3] for line in second.splitlines()] == ["#5 ", "#4 ", "#3 ", "#2 ", "#1 "]
    assert await room.told("说过 20001 3") == "这一页没有了。"
    assert "从 1 开始" in await room.refused("说过 小鹿 0")


@transactional
async def indexed_day(chat_id: int, row_id: int) -> None:
    await search.add(chat_id, "day", [row_id])


async def hide_everything(room: Room) -> None:
    """Lines that nobody may see: of another chat, skipped, taken back, forgotten."""
    await room.say("能看的话")  # #1
    await room.say("别处的石榴", chat=OTHER)
    await room.say("不让记的石榴", skipped="opted_out", minutes=1)  # #2
    await room.say("/记忆 石榴", skipped="command", minutes=2)  # #3
    await room.say("停了的石榴", skipped="paused", minutes=3)  # #4
    await take_back(room.chat_id, await room.say("撤回的石榴", minutes=4))  # #5
    await room.say("忘掉的石榴", "20009", "阿忘", minutes=5)  # #6
    await forgetting.forget(room.chat_id, "20009", NOON + timedelta(hours=1))


@pytest.mark.parametrize(
    "typed", ["说过 小鹿", "谁", "搜索 石榴", "原文 #1 #2 #3 #4 #5 #6 #7", "预览 石榴呢", "今天"]
)
async def test_what_may_not_be_shown_is_not(room: Room, typed: str) -> None:
    await hide_everything(room)
    told = (await room.told(typed)).replace("石榴呢", "")
    assert "石榴" not in told
    assert "阿忘" not in told


async def test_the_original_says_what_became_of_it(room: Room) -> None:
    await hide_everything(room)
    lines = (await room.told("原文 #1 #2 5 ＃6 #999")).splitlines()
    assert lines == [
        "#1 2026-11-27 12:00 小鹿：",
        "能看的话",
        "#2 没有这条，或者不在记忆里。",
        "#5 已经撤回或忘记，没有留下内容。",
        "#6 已经撤回或忘记，没有留下内容。",
        "#999 没有这条，或者不在记忆里。",
    ]


async def test_a_single_original_quotes_its_message(room: Room) -> None:
    message_id = await room.say("看这里")
    gone = await room.say("不要看", minutes=1)
    await take_back(room.chat_id, gone)
    assert (await room.ask("原文 #1")).quotes == message_id
    assert (await room.ask("原文 #1 #2")).quotes is None
    assert (await room.ask("原文 #2")).quotes is None
    assert "#12" in await room.refused("原文 十二")
    assert "#12" in await room.refused("原文 " + "#1 " * 21)


async def test_everybody_is_counted_with_the_last_time(room: Room) -> None:
    for number in range(3):
        await room.say("早", minutes=number)
    await room.say("早", CHE, "阿澈", minutes=9)
    answer = await room.ask("谁")
    assert answer.text.splitlines() == [
        "1. 小鹿  3 条，最近 2026-11-27 12:02",
        "2. 阿澈  1 条，最近 2026-11-27 12:09",
    ]
    assert answer.picture is not None
    assert answer.picture.startswith(b"\x89PNG")


async def test_people_of_one_name_are_told_apart_by_their_last_digits(room: Room) -> None:
    await room.say("我是一号")
    await room.say("我是二号", NAMESAKE, minutes=1)
    refused = await room.refused("说过 小鹿")
    assert "小鹿（尾号0001）、小鹿（尾号0102）" in refused
    assert DEER not in refused
    assert "一号" in await room.told("说过 小鹿1")
    assert "一号" in await room.told("说过 小鹿（尾号0001）")
    assert "二号" in await room.told("说过 小鹿02")
    assert "没有叫 小鹿3 的人" in await room.refused("说过 小鹿3")


async def test_former_names_and_the_bots_own_do(room: Room) -> None:
    await room.say("以前的话", name="鹿鹿")
    await room.say("现在的话", minutes=1)
    await room.say("我说的话", "me", "小忆", minutes=2)
    assert "现在的话" in await room.told("说过 鹿鹿")
    assert "我说的话" in await room.told(f"说过 {room.nianlun.character}")
    assert "我说的话" in await room.told("说过 @10001")
    assert await numbers(room, "搜索 的话 @10001") == ["#3"]
    assert await numbers(room, "搜索 @10001") == ["#3"]
    await room.say("空格的名字", CHE, "阿 澈", minutes=3)
    assert "空格的名字" in await room.told('说过 "阿 澈"')


async def test_a_search_is_narrowed_by_speaker_and_time(room: Room) -> None:
    await room.say("周末去爬山吧", minutes=-60 * 24 * 5)
    await room.say("爬山好累", CHE, "阿澈", minutes=-60 * 24)
    await room.say("今天又爬山", minutes=1)
    await room.say("我也去", CHE, "阿澈", minutes=2)
    assert set(await numbers(room, "搜索 爬山")) == {"#1", "#2", "#3"}
    assert await numbers(room, "搜索 爬山 小鹿 今天") == ["#3"]
    assert await numbers(room, "搜索 爬山 今天 小鹿") == ["#3"]
    assert await numbers(room, "搜索 爬山 昨天") == ["#2"]
    assert await numbers(room, "搜索 爬山 阿澈") == ["#2"]
    assert "没有叫 阿猫 的人" in await room.refused("搜索 爬山 阿猫")
    assert await room.told("搜索 石榴") == "没有找到。"


def test_what_was_found_cites_messages_as_people_write_their_numbers() -> None:
    mark = "爬山。（关键消息：[1,3]）"
    day = Recalled("day", "2026-11-27", f"- 2026-11-27：{mark}", mark, None, NOON, 1, 9)
    typed = Recalled("message", "#4", f"- #4 小鹿：{mark}", mark, DEER, NOON, 1, 9)
    assert found_view(RecallResult((day, typed)), "爬山").splitlines() == [
        "2026-11-27：爬山。（#1 #3）",
        f"#4 小鹿：{mark}",
    ]


async def test_what_shares_no_more_than_a_character_is_not_passed_off_as_found(room: Room) -> None:
    await room.say("记在账上")
    await room.say("猫又胖了", minutes=1)
    near = "没有正好写到的，相近的有这些："
    assert (await room.told("搜索 不该记")).splitlines()[0] == near
    assert (await room.told("搜索 橘猫")).splitlines()[0] == near
    assert await numbers(room, "搜索 猫") == ["#2"]
    assert await numbers(room, "搜索 账上") == ["#1"]


async def test_a_word_that_brings_nothing_up_is_not_found_whoever_or_whenever_it_was(
    room: Room,
) -> None:
    await room.say("花店的花篮到了", minutes=-60 * 24 * 7)
    await room.say("面试过了", CHE, "阿澈", minutes=-60 * 24)
    await room.say("今天下雨", minutes=1)
    await facts.remember(room.chat_id, DEER, [FactItem("event", "花店", "花店开业")], 1, NOON)
    for typed in (
        "飞船 小鹿",
        "飞船 小鹿 今天",
        "飞船 上周五",
        "上周五的飞船",
        "我飞船",
        "？！ 小鹿",
    ):
        assert await room.told(f"搜索 {typed}", DEER) == "没有找到。"
    assert await room.told("搜索 开业 小鹿 去年") == "没有找到。"
    assert await room.told("搜索 前年") == "没有找到。"
    assert await room.told("搜索 小鹿 阿澈") == "没有找到。"


async def test_a_search_is_of_the_typed_words_whoever_they_mean(room: Room) -> None:
    own = room.nianlun.character
    await room.say("下雨了", CHE, "阿澈")
    await room.say(f"{own}真厉害", minutes=1)
    await room.say("带上伞吧", "me", own, minutes=2)
    for typed in ("我", "你", "我们", "@你"):
        assert await room.told(f"搜索 {typed}") == "没有找到。", typed
    await room.say("昨天没下", CHE, "阿澈", minutes=-60 * 24)
    assert set(await numbers(room, f"搜索 {own}")) == {"#2", "#3"}
    assert await numbers(room, f"搜索 {own} 小鹿") == ["#2"]
    await room.say("我们走", minutes=3)
    await room.say("我走了", minutes=4)
    assert await numbers(room, "搜索 我们") == ["#5"]
    assert await numbers(room, "搜索 我") == ["#6"]
    assert await numbers(room, "搜索 昨天我说了什么") == ["#4"]


async def test_a_search_finds_whom_a_line_was_sent_to(room: Room) -> None:
    own = room.nianlun.character
    await room.say("早上好呀@川子 起床了")
    await room.say("起床了", "20005", "川子", minutes=1)
    await room.say(f"你好呀@{own}", minutes=2)
    await room.say(f"@{own} 手打的", minutes=3)
    await room.say(f"{own}真厉害", minutes=4)
    for typed in ("@川子", '"@川子"', "“呀@川子 起”", "川子", "@20005"):
        assert (await numbers(room, f"搜索 {typed}"))[0] == "#1", typed
    assert await numbers(room, "搜索 @川子 小鹿") == ["#1"]
    assert await numbers(room, '搜索 "@川子 起床了"') == ["#1", "#2"]
    assert set(await numbers(room, f"搜索 @{own}")) == {"#3", "#4"}
    assert set(await numbers(room, f"搜索 {own}")) == {"#3", "#4", "#5"}
    assert set(await numbers(room, f"搜索 {own} 小鹿 今天")) == {"#3", "#4", "#5"}
    assert await room.told(f"搜索 @{own} 川子") == "没有找到。"
    assert await room.told(f"搜索 @{own} 昨天") == "没有找到。"
    near = "没有正好写到的，相近的有这些："
    for typed in ('"@石榴 起床"', "@川子_"):
        assert (await room.told(f"搜索 {typed}")).splitlines()[0] == near, typed


async def test_what_is_written_in_a_linked_chat_is_found_there(room: Room) -> None:
    await room.say("早")
    await room.say("晚安@川子", minutes=1, chat=OTHER)
    assert await room.told("搜索 @川子") == "没有找到。"
    other = await chats.find(OTHER)
    assert other is not None
    await links.link(room.chat_id, other, "90001", NOON)
    assert "那里的 #1" in await room.told("搜索 @川子")


async def test_that_nothing_says_it_is_not_said_before_the_lines_were_read(room: Room) -> None:
    await room.say("打开 xbox 100%")
    await room.say("[表情:微笑]", minutes=1)
    assert await numbers(room, "搜索 BOX") == ["#1"]
    assert await numbers(room, "搜索 %") == ["#1"]
    assert await numbers(room, "搜索 微笑") == ["#2"]
    await room.say("昨天的石头", minutes=2)
    assert await room.told("搜索 昨天") == "没有找到。"
    assert await numbers(room, "搜索 的石") == ["#3"]
    for beyond in ("1969年", "2000年前"):
        assert await room.told(f"搜索 的石 {beyond}") == "没有找到。"


async def test_no_line_that_may_not_be_seen_is_found_by_what_is_written_in_it(room: Room) -> None:
    await hide_everything(room)
    assert await room.told("搜索 的石") == "没有找到。"


async def test_the_number_of_a_message_finds_it_and_nothing_that_cites_it(room: Room) -> None:
    await room.say("下雨了")
    await room.say("买 56 把伞", minutes=1)
    await write_day(room, "下了雨。（关键消息：[1,57]）")
    day = await Memory.get(chat_id=room.chat_id)
    await indexed_day(room.chat_id, day.id)
    assert len(await numbers(room, "搜索 雨")) == 2
    for typed in ("57", "#57", "关键消息", "57 今天"):
        assert await room.told(f"搜索 {typed}") == "没有找到。", typed
    assert await numbers(room, "搜索 #1") == ["#1"]
    assert await numbers(room, "搜索 #56") == ["#2"]
    await room.say("第 1 次", minutes=2)
    assert await numbers(room, "搜索 ＃1") == ["#1", "#3"]
    assert await numbers(room, "搜索 56") == ["#2"]


async def test_a_quoted_word_is_no_time(room: Room) -> None:
    await room.say("下雨了")
    await room.say("说好的今天呢", minutes=-60 * 24)
    assert await numbers(room, "搜索 今天") == ["#1"]
    for typed in ('"今天"', "'今天'", "“今天”", "「今天」"):
        assert await numbers(room, f"搜索 {typed}") == ["#2"], typed
    assert await numbers(room, '搜索 "今天 聊了什么"') == ["#1"]


async def test_a_search_of_a_time_or_of_a_person_alone_lists_what_there_is(room: Room) -> None:
    await room.say("花店的花篮到了", minutes=-60 * 24 * 7)
    await room.say("爬山去", CHE, "阿澈", minutes=-60 * 24 * 7 + 1)
    await room.say("今天下雨", minutes=1)
    await facts.remember(room.chat_id, DEER, [FactItem("event", "花店", "花店开业")], 1, NOON)
    lines = {"#1", "#2"}
    assert set(await numbers(room, "搜索 上周五")) == lines
    assert set(await numbers(room, "搜索 上周五大家聊了什么")) == lines
    assert await numbers(room, "搜索 上周五 小鹿") == ["#1"]
    assert set(await numbers(room, "搜索 小鹿最近怎么样")) == {"#1", "#3", "[event:花店]（小鹿）"}
    assert await numbers(room, "搜索 小鹿 上周五") == ["#1"]
    told = await room.told("搜索 上个月的花篮")
    assert told.startswith("那段时间里没有，别的时候有这些：\n#1 ")
    assert len(told.splitlines()) == 2


async def test_of_a_given_time_come_facts_that_were_written_in_it(room: Room) -> None:
    await room.say("早")
    last_year = NOON - timedelta(days=365)
    for days in range(15):
        item = FactItem("event", f"第{days}家店", "开业")
        await facts.remember(room.chat_id, DEER, [item], None, NOON - timedelta(minutes=days))
    links = FactItem("event", "花店", "开业，见 [[event:第3家店]]")
    await facts.remember(room.chat_id, DEER, [links], None, last_year)
    found = ["[event:花店]（小鹿）"]
    assert await numbers(room, "搜索 开业 去年") == found
    assert await numbers(room, "搜索 开业 小鹿 去年") == found
    assert await numbers(room, "搜索 去年 小鹿") == [*found, "[event:第3家店]（小鹿）"]
    assert len(await numbers(room, "搜索 开业 今天")) > 1
    assert await room.told("搜索 开业 前年") == "没有找到。"


@pytest.mark.parametrize(
    ("typed", "text", "there"),
    [
        ("臭豆腐", "买了冻豆腐", False),
        ("冻豆腐", "后1 冻豆腐", True),
        ("豆腐", "买了冻豆腐", True),
        ("豆包 老板娘", "豆包是一只猫", False),
        ("豆包 老板娘", "老板娘说豆包胖了", True),
        ("你们还记得账上有什么", "记在账上", True),
        ("你们还记得账上有什么", "猫又胖了", False),
        ("不该记", "记在账上", False),
        ("我的猫", "你的猫又胖了", True),
        ("有什么", "有人吗", False),
        ("有什么", "还有什么", True),
        ("Cats", "a cat sat there", True),
        ("cats dogs", "a cat sat there", False),
        ("昨天的火锅", "在吃火锅", True),
        ("上周五", "随便什么", True),
        ("最近", "最近很忙", True),
    ],
)
def test_what_was_typed_is_there_or_only_something_like_it(
    typed: str, text: str, there: bool
) -> None:
    wanted = wording(typed, NOON, Calendar(ZoneInfo("Asia/Shanghai"), time(4)))
    item = Recalled("message", "#4", f"- #4 小鹿：{text}", text, DEER, NOON, 1, 9)
    told = found_view(RecallResult((item,)), wanted)
    assert told.startswith("没有正好写到的，相近的有这些：\n") is not there


async def numbers(room: Room, typed: str) -> list[str]:
    """The messages that are found, without those beside them."""
    return [line.split()[0] for line in (await room.told(typed)).splitlines()]


async def test_facts_by_category_and_one_with_all_that_is_known_of_it(room: Room) -> None:
    await room.say("我爱喝咖啡")
    before = FactItem("preferences", "咖啡", "爱喝咖啡", None, False)
    now = FactItem("preferences", "咖啡", "爱喝 [[preferences:拿铁]]", None, False)
    await facts.remember(room.chat_id, DEER, [before], 1, NOON)
    await facts.remember(room.chat_id, DEER, [now], None, NOON + timedelta(hours=1))
    group = FactItem("promise", "周报", "周五交", "2026-12-04", False)
    await facts.remember(room.chat_id, "", [group], None, NOON)
    assert (await room.told("词条")).splitlines() == ["preferences  1 条", "promise  1 条"]
    assert await room.told("词条 preferences") == "咖啡（小鹿）  爱喝 [[preferences:拿铁]]"
    assert (await room.told("词条 preferences：咖啡")).splitlines() == [
        "[preferences:咖啡]（小鹿）",
        "爱喝 [[preferences:拿铁]]",
        "写于 2026-11-27 13:00",
        "连到：preferences:拿铁",
        "从前：",
        "　2026-11-27 12:00，来自 #1  爱喝咖啡",
    ]
    by_hand = Row.filter(name="咖啡")
    await by_hand.update(source=1, writer=COMMAND_LINE)
    told = await room.told("词条 喜好:咖啡")
    assert "命令行导入的改写，写于 2026-11-27 13:00，起初来自 #1" in told
    await by_hand.update(writer=DEER)
    told = await room.told("词条 喜好:咖啡")
    assert f"由 小鹿（{DEER}）改写于 2026-11-27 13:00，起初来自 #1" in told
    assert "约在 2026-12-04" in await room.told("词条 promise:周报")
    assert "约在 2026-12-04" in await room.told("词条 约定:周报")
    assert "－爱喝咖啡" in await room.told("对比 喜好:咖啡")
    assert "没有 preferences:茶 这个词条" in await room.refused("词条 preferences:茶")
    assert "没有 关系 这一类的词条" in await room.refused("词条 关系")


async def write_day(room: Room, *texts: str, day: str = "2026-11-26") -> None:
    """A day with these versions, an empty one being blank."""
    common = {"chat_id": room.chat_id, "kind": "day", "written_at": NOON}
    for number, text in enumerate(texts[:-1], 1):
        await NoteVersion.create(
            **common, ref=day, version=number, text=text, writer="offline", blanked=not text
        )
    await Memory.create(
        **common, period=day, text=texts[-1], version=len(texts), writer="20003", sources="[]"
    )


async def test_versions_are_listed_shown_and_compared(room: Room) -> None:
    await room.say("早")
    await write_day(room, "", "我去爬山。我很累。", "我去爬山。我不累。然后吃了面。")
    listed = (await room.told("版本 2026-11-26")).splitlines()
    assert listed[0] == "第 3 版 · 20003 改写 · 2026-11-27 12:00 · 12 字"
    assert listed[2] == "第 1 版 · 离线写手 · 2026-11-27 12:00 · 已清空"
    assert (await room.told("版本 昨天 2")).startswith("我去爬山。我很累。\n第 2 版")
    assert "已经清空" in await room.told("版本 昨天 1")
    assert "没有第 9 版" in await room.refused("版本 昨天 9")
    assert (await room.told("对比 昨天")).splitlines() == [
        "第 2 版 → 第 3 版",
        "　……1 句没有变",
        "－我很累。",
        "＋我不累。",
        "＋然后吃了面。",
    ]
    assert (await room.told("对比 昨天 3 3")) == "两版的文字一样。"
    assert "要比哪两版" in await room.refused("对比 昨天 1")
    assert "还没有写成记忆" in await room.refused("对比 2026-01-05")
    assert "这个日期、活动或词条" in await room.refused("版本 胡说")


async def test_what_was_brought_back_and_what_is_gone_are_told(room: Room) -> None:
    await room.say("早")
    await write_day(room, "我去爬山。", "改过的。", "又改的。", "再改的。", "我去爬山。")
    await NoteVersion.filter(chat_id=room.chat_id, version__in=[2, 3]).delete()
    back = "第 5 版 · 20003 还原自第 1 版 · 2026-11-27 12:00"
    assert (await room.told("版本 昨天")).splitlines() == [
        f"{back} · 4 字",
        "第 4 版 · 离线写手 · 2026-11-27 12:00 · 3 字",
        "第 2–3 版 · 导入的文件里没有它的文字",
        "第 1 版 · 离线写手 · 2026-11-27 12:00 · 4 字",
    ]
    assert await room.told("版本 昨天 5") == f"我去爬山。\n{back}"
    assert await room.told("昨天") == f"我去爬山。\n{back}"
    assert "第 2 版看不到，导入的文件里没有" in await room.refused("版本 昨天 2")
    assert "第 3 版看不到，导入的文件里没有" in await room.refused("对比 昨天 3 4")
    with pytest.raises(NianlunError, match="第 2 版不能还原，导入的文件里没有"):
        await editing.restore(room.chat_id, "day", "2026-11-26", 2, CHE, NOON)


async def test_what_a_writer_added_is_not_told_as_the_persons_edit(room: Room) -> None:
    await room.say("早")
    await write_day(room, "我去爬山。", "我去看海。", "我去看海。然后吃了面。")
    await NoteVersion.filter(chat_id=room.chat_id, version=2).update(writer=CHE)
    typed = "第 3 版 · 20003 改写 · 2026-11-27 12:00"
    assert await room.told("昨天") == f"我去看海。然后吃了面。\n{typed}"
    await Memory.filter(chat_id=room.chat_id).update(usage="{}")
    by = "20003 改写，后来又接着写了新的事 · 2026-11-27 12:00"
    assert (await room.told("版本 昨天")).splitlines() == [
        f"第 3 版 · {by} · 9 字",
        "第 2 版 · 20003 改写 · 2026-11-27 12:00 · 4 字",
        "第 1 版 · 离线写手 · 2026-11-27 12:00 · 4 字",
    ]
    assert await room.told("昨天") == f"我去看海。然后吃了面。\n第 3 版 · {by}"


async def test_a_deleted_activity_has_its_versions_by_whom_they_are(room: Room) -> None:
    await room.say("早", skipped="command")
    common = {"chat_id": room.chat_id, "writer": "model", "written_at": NOON}
    where = {"number": 3, "date": "2026-11-26", "origin": "window", "time": NOON}
    await Activity(**common, **where, text="早上好。", version=1).save()
    await editing.edit(room.chat_id, "activity", "3", "早上好。道了早安。", CHE, NOON)
    await write_day(room, "早上好。")
    await Memory.filter(chat_id=room.chat_id).update(sources='["3"]')
    await deleting.delete(room.chat_id, [], [3], NOON + timedelta(minutes=5))
    listed = [
        "第 3 版 · 2026-11-27 12:05 · 已删",
        "第 2 版 · 20003 改过的 · 2026-11-27 12:00 · 已清空",
        "第 1 版 · 模型 · 2026-11-27 12:00 · 已清空",
    ]
    assert (await room.told("版本 &3")).splitlines() == listed
    assert await room.told("版本 &3 3") == "这时候删掉了。\n第 3 版 · 2026-11-27 12:05"
    assert "这一版已经清空" in await room.told("版本 &3 2")
    assert "第 2 版已清空，没有文字可以比" in await room.told("对比 &3")
    assert "第 3 版已删，没有文字可以比" in await room.told("对比 &3 3 3")
    assert await room.told("昨天") == "2026-11-26 里记下的都删掉或清空了，没有剩下可以写的。"
    await room.nianlun.tidy(GROUP)
    gone = "2026-11-26 里记下的都删掉或清空了，没有剩下可以写的"
    assert await room.refused("版本 昨天") == gone
    assert await room.told("昨天") == f"{gone}。"
    assert await room.told("日期 2026") == f"{gone.replace('-11-26', '')}。"
    assert "还没有写成记忆" in await room.refused("版本 前天")


async def test_what_somebody_did_is_not_told_of_a_version_that_is_gone(room: Room) -> None:
    await room.say("早")
    await write_day(room, "我去爬山。", "", "", "我吃了面。")
    await NoteVersion.filter(chat_id=room.chat_id, version__in=[2, 3]).update(writer=CHE)
    listed = (await room.told("版本 昨天")).splitlines()
    assert listed[1:3] == [
        f"第 {number} 版 · 20003 改过的 · 2026-11-27 12:00 · 已清空" for number in (3, 2)
    ]


async def test_a_comparison_cuts_no_quote(room: Room) -> None:
    await room.say("早")
    marked = "小鹿说起看海（关键消息：[1]）。"
    more = "川子说「考过了！太开心了」（关键消息：[1,2]）她说“真的？好。”（关键消息：[2]）。晚安……"
    await write_day(room, marked, marked + more)
    assert (await room.told("对比 昨天")).splitlines()[1:] == [
        "　……1 句没有变",
        "＋川子说「考过了！太开心了」（#1 #2）",
        "＋她说“真的？好。”（#2）。",
        "＋晚安……",
    ]


async def test_activities_and_facts_have_versions_too(room: Room) -> None:
    await room.say("早")
    common = {"chat_id": room.chat_id, "text": "早上好。", "writer": "model", "written_at": NOON}
    where = {"number": 3, "date": "2026-11-26", "origin": "window", "time": NOON}
    await Activity(**common, **where, version=1).save()
    await editing.edit(room.chat_id, "activity", "3", "她道了早安。", "20003", NOON)
    assert (await room.told("版本 &3")).splitlines() == [
        "第 2 版 · 20003 改写 · 2026-11-27 12:00 · 5 字",
        "第 1 版 · 模型 · 2026-11-27 12:00 · 3 字",
    ]
    assert (await room.told("版本 ＆3 1")).startswith("早上好。\n")
    assert "－早上好。\n＋她道了早安。" in await room.told("对比 &3")
    for owner, texts in (("20001", ("美式", "拿铁")), ("", ("随便",))):
        for minutes, text in enumerate(texts):
            item = FactItem("preferences", "冰 咖啡", text)
            at = NOON + timedelta(minutes=minutes)
            await facts.remember(room.chat_id, owner, [item], None, at)
    told = await room.told('版本 "preferences：冰 咖啡"')
    assert "这个会话的 preferences:冰 咖啡：\n第 1 版 · 2026-11-27 12:00 · 2 字" in told
    assert "第 2 版 · 2026-11-27 12:01 · 2 字\n第 1 版" in told
    for typed, title in (("版本", "的版本"), ("对比", "最近两版")):
        answer = await room.ask(f'{typed} "喜好：冰 咖啡"')
        assert answer.title == f"preferences:冰 咖啡 {title}"
    assert (await room.ask("版本 &3")).title == "活动 &3 的版本"
    told = await room.told('对比 "preferences:冰 咖啡" 1 2')
    assert "－美式\n＋拿铁" in told
    assert "没有第 2 版" in told
    await facts.remove(room.chat_id, "", "preferences", "冰 咖啡", NOON)
    assert "－美式\n＋拿铁" in await room.told('对比 "preferences:冰 咖啡"')
    other = (await chats.ensure([OTHER], NOON))[OTHER]
    await Activity(**{**common, **where, "chat_id": other, "number": 4}, version=1).save()
    await facts.remember(other, "20001", [FactItem("event", "伞", "别处")], None, NOON)
    for typed in ("&4", "&999999999999999", "event:伞", f"a:{'长' * 999}"):
        assert "没有" in await room.refused(f"版本 {typed}")
        assert "没有" in await room.refused(f"对比 {typed} 1 2")
    for number in ("0", "-1", "9" * 30):
        assert "没有第" in await room.refused(f"版本 &3 {number}")


async def test_this_day_of_earlier_years(room: Room) -> None:
    await room.say("早")
    assert await room.told("去年今天") == "往年的今天我还没有记下什么。"
    await write_day(room, "前年下了雪。", day="2024-11-27")
    await write_day(room, "去年放了晴。", day="2025-11-27")
    assert (await room.told("去年今天")).split("\n\n") == [
        "2025-11-27（周四）\n去年放了晴。",
        "2024-11-27（周三）\n前年下了雪。",
    ]


YEAR_AGO = -60.0 * 24 * 365


async def test_what_waits_to_be_written_anew_is_not_denied(
    room: Room, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, text in enumerate(("周末去爬山吧", "我带上相机", "几点集合呢", "八点在车站")):
        await room.say(text, minutes=number + YEAR_AGO)
        await room.say(f"今天也{text}", minutes=number)
        if number % 2:
            await room.nianlun.tidy(GROUP)
    before = await room.told("今天")
    assert len(before.splitlines()) == 2
    all_there = "活动 4 条，日 1 篇，月 1 篇，年 1 篇"
    assert all_there in await room.told("状态")
    await deleting.delete(room.chat_id, [1, 2], [], NOON)
    for typed in ("2025-11-27", "2025-11", "2025"):
        waits = f"{typed} 里面有话收回、删掉或忘记了，正等着重写，写好了再来。"
        assert (await room.told(f"日期 {typed}")).splitlines()[-1] == waits
    assert await room.told("去年今天") == (
        "2025-11-27（周四）\n2025-11-27 里面有话收回、删掉或忘记了，正等着重写，写好了再来。"
    )
    assert (await room.told("今天")).splitlines() == [
        before.splitlines()[1],
        "",
        "2026-11-27 里面有话收回、删掉或忘记了，正等着重写，写好了再来。",
    ]
    status = await room.told("状态")
    assert "待写 0 条" in status
    assert "活动 2 条，日 0 篇，月 0 篇，年 0 篇，待写 5 篇" in status
    doctor_report.report(room.nianlun, [], await doctor._chats(room.nianlun), as_json=False)
    assert "2 条活动，0 天 0 月 0 年，待写 5 篇；" in capsys.readouterr().out
    inspected = await room.nianlun.inspect(GROUP)
    assert (inspected.activities, inspected.memories, inspected.found) == (2, 0, 0)

    await room.nianlun.tidy(GROUP)
    for typed in ("日期 2025-11-27", "日期 2025-11", "日期 2025", "去年今天", "今天"):
        assert "重写" not in await room.told(typed)
    assert f"{all_there}\n" in await room.told("状态")
    await deleting.delete(room.chat_id, [], [2], NOON)
    assert "活动 3 条" in await room.told("状态")
    assert (await room.nianlun.inspect(GROUP)).activities == 3


async def test_the_preview_is_the_prompt_with_what_each_layer_costs(room: Room) -> None:
    await room.say("周末去爬山吧")
    told = await room.told('预览 他问："去哪"', DEER)
    assert re.search(r'#2 \d\d:\d\d 小鹿: 他问："去哪"', told)
    first = told.splitlines()[0]
    assert first.startswith("约 ")
    assert "人设 " in first
    assert "聊天 " in first
    assert "周末去爬山吧" in told
    assert '他问："去哪"' in told


async def test_usage_is_told_by_purpose_model_and_day(room: Room) -> None:
    await room.say("早")
    assert "没有用过模型" in await room.told("用量")
    for day, purpose, ok in (("2026-11-27", "reply", True), ("2026-11-01", "activity", False)):
        await usage.count(room.chat_id, day, purpose, "m\n1", Usage(100, 60, 20), ok)
    await usage.count(room.chat_id, "2026-10-01", "reply", "old", Usage(9, 9, 9), True)
    answer = await room.ask("用量")
    lines = answer.text.splitlines()
    assert lines[0] == "近 7 天 120 token：1 次调用，读 100（其中缓存 60），写 20"
    assert lines[1] == "近 30 天 240 token：2 次调用，1 次没成，读 200（其中缓存 120），写 40"
    assert "回复  120 token，1 次" in lines
    assert "m 1  240 token，2 次" in lines
    assert "old" not in answer.text
    assert answer.picture is not None


async def test_the_status_says_why_a_reply_had_no_memory(room: Room) -> None:
    await room.say("早")
    assert "没有记忆" not in await room.told("状态")
    room.nianlun.replier.trouble = "读记忆超过了 2 秒"
    room.nianlun.recaller.trouble = "搜索坏了"
    told = await room.told("状态")
    assert "最近一次回复没有记忆：读记忆超过了 2 秒" in told
    assert "最近一次回复没想起旧事：搜索坏了" in told


async def test_a_member_who_opted_out_is_not_told_of(room: Room) -> None:
    await room.say("先前的话")
    await exclusions.opt_out(room.chat_id, DEER, NOON + timedelta(minutes=1), NOON)
    await room.say("后来的话", minutes=2, skipped="opted_out")
    told = [await room.told(typed) for typed in ("谁", "说过 小鹿", "原文 #2")]
    assert [text for text in told if "后来的话" in text or "不记" in text] == []


@pytest.mark.parametrize("typed", ["谁", "说过 小鹿", "搜索 山", "原文 #1", "词条", "状态", "用量"])
async def test_a_chat_without_any_record_says_so(room: Room, typed: str) -> None:
    with pytest.raises(ChatError, match="还没有记录过"):
        await room.ask(typed)


@pytest.mark.parametrize("word", ["x" * 200, f"x:{'长' * 200}", f"{'x' * 200}:名"])
async def test_a_fact_of_a_name_too_long_for_any_is_not_there(room: Room, word: str) -> None:
    await room.say("早")
    assert "没有" in await room.refused(f"词条 {word}")
    category, _, name = word.partition(":")
    assert await provenance.facts_why(room.chat_id, category, name) == []


async def test_a_chat_of_a_number_too_long_for_any_is_not_there(room: Room) -> None:
    number = "9" * 3000
    assert await chats.find(ChatKey("10001", "group", number)) is None
    for named in (f"group:{number}", f"{number}/group:5", f"group:\u2028{number}"):
        with pytest.raises(ChatError) as raised:
            await chats.resolve(named)
        assert len(str(raised.value)) < 120


@pytest.mark.parametrize("typed", ["\u2028一", "\x85 \x1f一", "一万年前", "２０２６-０２-３０"])
async def test_what_is_no_date_is_not_understood(room: Room, typed: str) -> None:
    await room.say("早")
    with pytest.raises(NotUnderstood):
        await room.ask(typed)


async def test_several_days_are_no_date(room: Room) -> None:
    await room.say("早")
    told = await room.refused("去年12月30日到今年1月2日")
    assert told.startswith("去年12月30日到今年1月2日 不是一天、一月或一年。请写成")


async def test_a_date_may_be_typed_in_wide_digits(room: Room) -> None:
    await room.say("早")
    assert (await room.told("２０２６－１１－２７")).startswith("2026-11-27（周五）")


@pytest.mark.parametrize(
    ("typed", "day"),
    [
        ("昨天凌晨", "2026-11-25（周三）"),
        ("今天凌晨", "2026-11-26（周四）"),
        ("今天下午", "2026-11-27（周五）"),
        ("昨天 晚上", "2026-11-26（周四）"),
        ("上周三 下午", "2026-11-18（周三）"),
    ],
)
async def test_a_part_of_a_day_shows_its_day(room: Room, typed: str, day: str) -> None:
    await room.say("早")
    await write_day(room, "我去爬山。", day=day[:10])
    answer = await room.ask(typed)
    assert (answer.title, answer.text.splitlines()[0]) == (day, "我去爬山。")


@transactional
async def write_slowly(chat_id: int, begun: threading.Event, end: threading.Event) -> None:
    await Chat.filter(id=chat_id).update(name="慢")
    begun.set()
    end.wait(5)


async def test_who_spoke_is_read_while_something_is_written(room: Room) -> None:
    await room.say("早")
    begun, end = threading.Event(), threading.Event()
    writing = asyncio.create_task(write_slowly(room.chat_id, begun, end))
    await asyncio.to_thread(begun.wait, 5)
    try:
        [one] = await asyncio.wait_for(said.heard(room.nianlun.path, room.chat_id), 5)
    finally:
        end.set()
        await writing
    assert (one.user_id, one.messages, one.last_at) == (DEER, 1, NOON)


async def test_a_name_may_have_quotation_marks_and_be_typed_as_it_is_shown(room: Room) -> None:
    cards = {"30001": "「摸鱼」", "30002": "“小美”", "30003": '"铁柱"', "30004": "「同名」"}
    for number, (user_id, card) in enumerate(cards.items()):
        await room.say(f"我是{card}，吃火锅", user_id, card, minutes=number)
    await room.say("我也是同名，吃火锅", "30104", "「同名」", minutes=5)
    await room.say("我也吃火锅", minutes=6)
    shown = re.findall(r"^\d+\. (.+?)  ", await room.told("谁"), re.MULTILINE)
    assert "〔摸鱼〕" in shown
    for typed in (*list(cards.values())[:3], *shown):
        for command in (f"说过 {typed}", f"搜索 火锅 {typed}"):
            assert "火锅" in await room.told(command), command
    assert "我也吃火锅" in await room.told("说过 “小鹿”")
    assert "不止一人" in await room.refused("说过 「同名」")
    assert "不止一人" in await room.refused("说过 〔同名〕")
    assert "没有叫 没这人 的人" in await room.refused("说过 「没这人」")


async def test_the_next_page_names_a_person_as_typed(room: Room) -> None:
    for number in range(16):
        await room.say(f"第{number}句", "30001", "「摸鱼」", minutes=number)
        await room.say(f"第{number}句", "30002", "阿 宁", minutes=number)
    for typed in ("「摸鱼」", "〔摸鱼〕", '"阿 宁"', "“阿 宁”", "@30002"):
        last = (await room.told(f"说过 {typed}")).splitlines()[-1]
        assert last == f"再往前：/记忆 说过 {typed} 2"
        assert "第0句" in await room.told(last.partition("/记忆 ")[2])


async def test_an_at_of_the_bot_behind_a_whole_search_is_an_address(room: Room) -> None:
    await room.say("周末吃火锅", CHE, "阿澈")
    for typed in (f"火锅 @{CHE}", f"火锅 {CHE} @10001", "火锅 阿澈 @10001"):
        assert "周末吃火锅" in await room.told(f"搜索 {typed}")
    assert "没看懂要找哪段时间" in await room.refused(f"搜索 火锅 阿澈 @{DEER}")


async def test_an_at_and_a_tag_are_found_in_either_width(room: Room) -> None:
    for number, text in enumerate(("@小鹿 你看", "＠全体 看这里", "＃周末 去哪", "#今天 下雨")):
        await room.say(text, CHE, "阿澈", minutes=number)
    await room.say("周末去爬山，今天休息", minutes=9)
    # An old line that was brought in later stands behind the new ones, whatever its number.
    await room.say("＠全体 以前的", CHE, "阿澈", minutes=-9000)
    told = await room.told("搜索 @全体")
    assert told.index("看这里") < told.index("以前的")
    for sign, word in (("@＠", "小鹿"), ("@＠", "全体"), ("#＃", "周末"), ("#＃", "今天")):
        for one in sign:
            told = (await room.told(f"搜索 {one}{word}")).splitlines()
            assert "相近" not in told[0], one + word
            assert any(f"{other}{word}" in told[0] for other in sign), one + word


async def test_a_time_may_be_typed_with_blanks_in_it(room: Room) -> None:
    await room.say("豆包早上好", minutes=-48 * 60 - 120)
    await room.say("豆包下午好", minutes=-48 * 60 + 120)
    for typed in ("豆包 前天 上午", "豆包 小鹿 前天 上午", "豆包 11 月 25 日 上午"):
        told = await room.told(f"搜索 {typed}")
        assert "豆包早上好" in told, typed
        assert "豆包下午好" not in told, typed
    await write_day(room, "我们吃了豆包。", day="2026-11-25")
    assert (await room.ask("版本 11 月 25 日")).title == "2026-11-25 的版本"
    assert (await room.ask("版本 前天 上午 1")).title == "2026-11-25 第 1 版"
