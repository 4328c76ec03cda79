"""Promises and 去年今天 over a real file: from what was said to what stands before a reply."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
import sqlite3
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.chat.recall import Recaller
from plugins.nonebot_plugin_nianlun.chat.reminders import reminder
from plugins.nonebot_plugin_nianlun.config import Settings
from plugins.nonebot_plugin_nianlun.exports import write_vault
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions
from plugins.nonebot_plugin_nianlun.imports.vault import import_any
from plugins.nonebot_plugin_nianlun.llm.turn_writer import TurnWriter, TurnYield
from plugins.nonebot_plugin_nianlun.memory.anniversaries import same_dates
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.memory.promises import Promise, dated
from plugins.nonebot_plugin_nianlun.outcomes import Outcomes
from plugins.nonebot_plugin_nianlun.recalling import Recalling
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    diary,
    facts,
    forgetting,
    memories,
    messages,
    recording,
    reply_view,
)
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import Fact as Row
from plugins.nonebot_plugin_nianlun.store.models import Memory as MemoryRow
from plugins.nonebot_plugin_nianlun.store.models import Message as MessageRow
from plugins.nonebot_plugin_nianlun.store.reply_view import DayView, Wanted
from plugins.nonebot_plugin_nianlun.store.search import SearchReader
from plugins.nonebot_plugin_nianlun.turn_memory import TurnMemory
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    ChatKey,
    Fact,
    Incoming,
    Message,
    Scene,
    Withdrawal,
)
from tests.store.test_restoring import bring, exported, write
from tests.store.test_upkeep import DAY, local
from tests.store.test_upkeep import World as Upkept
from tests.support.scripted_writer import SetClock

ZONE = ZoneInfo("Asia/Shanghai")
CALENDAR = Calendar(ZONE, time(4))
WEDNESDAY, FRIDAY = date(2026, 11, 4), date(2026, 11, 6)
NOON = datetime(2026, 11, 4, 12, tzinfo=ZONE).astimezone(UTC)
GROUP = ChatKey("10001", "group", "123")
OTHER = ChatKey("10001", "group", "456")
DEER, RIVER = "20001", "20002"
NAMES = {DEER: "小鹿", RIVER: "阿川", ME: "小忆"}


async def day_of(reader: SearchReader, today: date, chat: ChatKey = GROUP) -> DayView:
    day = (await reader.reply_view(chat, Wanted(0, 0, 0, 0, today=today))).day
    assert isinstance(day, DayView)
    return day


@dataclass
class World:
    clock: SetClock
    recaller: Recaller
    reader: SearchReader

    async def say(self, text: str, by: str = DEER, chat: ChatKey = GROUP) -> int:
        """Record a line now; returns its short id."""
        at = self.clock.time = self.clock.time + timedelta(minutes=1)
        segments = [{"type": "text", "data": {"text": text}}]
        line = Incoming(
            chat, at, by, NAMES[by], segments, "event", message_id=f"m{at.timestamp():.0f}"
        )
        await recording.record([line], readable, "小忆", at)
        return (await messages.recent(await self.id_of(chat), 1))[0].seq

    async def learn(
        self, content: str, source: int, *, done: bool = False, chat: ChatKey = GROUP
    ) -> None:
        """Store the promise 报告 as a turn does."""
        chat_id = await self.id_of(chat)
        lines = [line for line in await messages.recent(chat_id, 12) if line.seq == source]
        fact = Fact("promise", "报告", content, source, done=done)
        learnt = dated([fact], lines, CALENDAR)
        await diary.keep_turn(chat_id, [source], learnt, [], self.clock.now())

    async def id_of(self, chat: ChatKey = GROUP) -> int:
        return (await chats.ensure([chat], self.clock.now()))[chat]

    async def due(self, today: date, chat: ChatKey = GROUP) -> list[Promise]:
        await self.id_of(chat)
        return list((await day_of(self.reader, today, chat)).promises)

    async def reminder(self, shown: Collection[str] = ()) -> str:
        return reminder(await day_of(self.reader, WEDNESDAY), WEDNESDAY, shown)

    async def day(self, period: str, text: str, chat: ChatKey = GROUP) -> None:
        await MemoryRow.create(
            chat_id=await self.id_of(chat),
            kind="day",
            period=period,
            text=text,
            writer="model",
            written_at=NOON,
            closed=True,
            merged=True,
        )

    async def last(self) -> str:
        return (await self.recaller.prompt(GROUP)).messages[-1]["content"]


@pytest.fixture
async def world(database_file: Path) -> AsyncIterator[World]:
    clock = SetClock(NOON)
    reader = SearchReader(database_file, CALENDAR)
    settings = Settings(keep_days=1)
    recalling = Recalling(reader, "小忆", clock, CALENDAR)
    try:
        found = World(clock, Recaller(settings, "小忆", clock, CALENDAR, recalling), reader)
        await found.id_of()
        yield found
    finally:
        await reader.close()


async def test_a_promise_is_due_from_the_day_before_until_three_days_after(world: World) -> None:
    seq = await world.say("我答应周五前把报告给你")
    await world.learn("小鹿答应 11 月 6 日前把报告交给小忆", seq)
    promise = Promise(DEER, "小鹿答应 11 月 6 日前把报告交给小忆", FRIDAY)
    seen = [await world.due(FRIDAY + timedelta(days=days)) for days in range(-2, 5)]
    assert seen == [[], [promise], [promise], [promise], [promise], [promise], []]


async def test_it_is_closed_when_its_owner_says_so(world: World) -> None:
    await world.learn("答应周五前交报告", await world.say("周五前把报告给你"))
    await world.learn("小鹿的报告已经交了", await world.say("他交了", RIVER))
    assert len(await world.due(FRIDAY)) == 1  # somebody else's word closes nothing
    await world.learn("小鹿的报告已经交了", await world.say("报告交了"))
    assert await world.due(FRIDAY) == []
    assert (await Row.get(owner=DEER)).done_at == world.clock.now()


async def test_a_note_of_a_window_dates_it_and_roll_ups_leave_it(database_file: Path) -> None:
    world = Upkept(database_file)
    await chats.ensure([GROUP], world.clock.now())
    world.writer.facts = lambda window: (Fact("promise", "报告", "交报告", 1),)
    await world.say("周五前把报告给你", local(DAY, 8))  # a Friday
    await world.say("下周一再说", local(DAY, 8, 1))
    await world.run(everything=True)
    world.clock.time += timedelta(days=2)
    await world.run(everything=True)
    assert await world.memory("day", DAY.isoformat())
    reader = SearchReader(database_file, CALENDAR)
    try:
        due = (await day_of(reader, DAY + timedelta(days=2))).promises
    finally:
        await reader.close()
    assert due == (Promise(DEER, "交报告", DAY),)


class _Told(TurnWriter):
    """Finds a promise in the first line."""

    def __init__(self) -> None:
        """Needs no model."""

    async def write(self, lines: Sequence[Message], scene: Scene) -> TurnYield:
        return TurnYield((Fact("promise", "报告", "交报告", lines[0].seq),), (), ())


async def test_a_turn_dates_it(world: World) -> None:
    async def settle() -> None:
        return None

    async def scene(chat: ChatKey, chat_id: int, text: str) -> Scene:
        return Scene(chat, "QQ群", "小忆", "温柔")

    async def affordable(chat_id: int, chat: ChatKey) -> bool:
        return True

    await world.say("周五前把报告给你")
    await world.say("好，我等着", ME)
    turns = TurnMemory(
        _Told(),
        world.clock,
        CALENDAR,
        Outcomes(world.clock),
        settle=settle,
        scene=scene,
        affordable=affordable,
    )
    turns.after(GROUP, DEER)
    await turns.flush()
    assert await world.due(FRIDAY) == [Promise(DEER, "交报告", FRIDAY)]


async def test_a_mark_closes_it_and_a_new_day_opens_it_again(world: World) -> None:
    await world.learn("交报告", await world.say("周五前把报告给你"))
    await world.learn("交报告", await world.say("喏"), done=True)
    assert await world.due(FRIDAY) == []
    await world.learn("交报告", await world.say("下周一再给你一份"))
    monday = date(2026, 11, 9)
    assert [promise.due for promise in await world.due(monday)] == [monday]
    row = await Row.get(owner=DEER)
    assert row.done_at is None
    assert len(await facts.journal(row.id)) == 2


async def test_the_day_stays_when_only_the_text_changes_and_moves_when_put_off(
    world: World,
) -> None:
    await world.learn("交报告", await world.say("周五前把报告给你"))
    await world.learn("报告写了一半", await world.say("写了一半"))
    assert [(p.content, p.due) for p in await world.due(FRIDAY)] == [("报告写了一半", FRIDAY)]
    await world.learn("报告写了一半", await world.say("得周六前了"))
    assert [p.due for p in await world.due(FRIDAY)] == [FRIDAY + timedelta(days=1)]


async def test_the_text_that_stands_again_has_its_own_day_again(world: World) -> None:
    chat_id = await world.id_of()

    async def typed(content: str, due: date | None = None) -> tuple[str, int]:
        """Have the promise 看海 remembered for the group; the message's id, and its short id."""
        seq = await world.say(f"/记忆 记住 约定:看海 {content}", RIVER)
        await MessageRow.filter(seq=seq).update(skipped="command")
        item = FactItem("promise", "看海", content, due and due.isoformat())
        await facts.remember(chat_id, "", [item], seq, world.clock.now())
        return f"m{world.clock.now().timestamp():.0f}", seq

    async def recalled(message_id: str) -> tuple[str, str | None, bool]:
        notice = Withdrawal(GROUP, message_id, RIVER, world.clock.now())
        await recording.record([notice], readable, "小忆", world.clock.now())
        row = await Row.get(name="看海")
        return row.text, row.due, row.done_at is not None

    day = date(2026, 12, 5)
    await typed("12月5日去看海", day)
    moved, _ = await typed("12月9日去看海", date(2026, 12, 9))
    assert await recalled(moved) == ("12月5日去看海", "2026-12-05", False)
    packed, _ = await typed("带上相机")
    done, _ = await typed("海已经看完了，做到了")
    again, _ = await typed("后天再去看海", date(2026, 11, 6))
    assert await recalled(again) == ("海已经看完了，做到了", None, True)
    assert await recalled(done) == ("带上相机", "2026-12-05", False)  # as it was put then
    assert await recalled(packed) == ("12月5日去看海", "2026-12-05", False)
    # What a model noted is due by the line that it noted, also once another's change goes.
    await world.learn("交报告，12月1日前", await world.say("周五前把报告给你"))
    report = await Row.get(name="报告")
    await facts.remember(
        chat_id, DEER, [FactItem("promise", "报告", "不急", "2026-11-20")], None, world.clock.now()
    )
    await Row.filter(id=report.id).update(writer=RIVER)
    await forgetting.forget(chat_id, RIVER, world.clock.now())
    assert [p.due for p in await world.due(FRIDAY)] == [FRIDAY]


async def test_no_other_chat_and_no_taken_back_or_forgotten_promise(world: World) -> None:
    await world.learn("交报告", await world.say("周五前把报告给你"))
    await world.learn("别处的", await world.say("周五前给", RIVER, OTHER), chat=OTHER)
    assert [p.content for p in await world.due(FRIDAY)] == ["交报告"]
    assert [p.content for p in await world.due(FRIDAY, OTHER)] == ["别处的"]
    message_id = f"m{(NOON + timedelta(minutes=1)).timestamp():.0f}"
    notice = Withdrawal(GROUP, message_id, DEER, world.clock.now())
    await recording.record([notice], readable, "小忆", world.clock.now())
    assert await world.due(FRIDAY) == []
    await forgetting.forget(await world.id_of(OTHER), RIVER, world.clock.now())
    assert await world.due(FRIDAY, OTHER) == []


async def test_the_reply_is_reminded_and_of_a_promise_rather_than_of_a_year_ago(
    world: World,
) -> None:
    await world.day("2025-11-06", "去年一起看了初雪。")
    await world.day("2025-11-07", "去年一起包了饺子。")
    await world.day("2026-11-03", "昨天很闲。")
    await world.learn("小鹿答应周五前交报告", await world.say("周五前把报告给你"))
    assert "答应过的事" not in await world.last()
    world.clock.time = NOON + timedelta(days=2)
    shown = await world.last()
    assert "- 小鹿：小鹿答应周五前交报告（今天到期）" in shown
    assert "去年今天" not in shown
    assert shown.index("答应过的事") < shown.index("【此刻】")
    await world.learn("报告已经交了", await world.say("报告交了"))
    assert "去年今天：去年一起看了初雪。" in await world.last()
    assert (await world.last()).count("去年今天：") == 1


async def test_of_the_years_before_only_this_chats_days_that_stand(world: World) -> None:
    await world.day("2025-11-04", "别的群的事。", OTHER)
    assert await world.reminder() == ""
    await world.day("2025-11-04", "去年的事。")
    assert await world.reminder() == "去年今天：去年的事。"
    assert await world.reminder({"2025-11-04"}) == ""
    await MemoryRow.filter(text="去年的事。").update(stale=True)
    assert await world.reminder() == ""


async def test_a_birthday_that_a_fact_tells_comes_before_a_year_ago(world: World) -> None:
    await world.day("2025-11-04", "去年的事。")
    seq = await world.say("我生日是11月4日，你别忘了")
    birthday = [FactItem("birthday", "生日", "11月4日"), FactItem("event", "聚餐", "11月4日聚过餐")]
    await facts.remember(await world.id_of(), DEER, birthday, seq, world.clock.now())
    line = "今天这个日子你记得：小鹿的 生日 11月4日"
    assert await world.reminder() == line
    assert (await world.last()).count(line) == 1
    assert "去年今天" not in await world.last()
    now = world.clock.now()
    await facts.erase(await world.id_of(), DEER, "birthday", "生日", now, now)
    assert await world.reminder() == "去年今天：去年的事。"


async def test_both_are_found_by_an_index(world: World, database_file: Path) -> None:
    await world.learn("交报告", await world.say("周五前把报告给你"))
    dates = ", ".join(f"'{period}'" for period in same_dates(WEDNESDAY))
    queries = (
        f"SELECT * FROM nianlun_memory WHERE chat_id = 1 AND kind = 'day' AND period IN ({dates})",
        "SELECT * FROM nianlun_fact WHERE chat_id = 1 AND category = 'promise' "
        "AND done_at IS NULL AND due >= '2026-11-03' AND due <= '2026-11-07'",
    )
    with closing(sqlite3.connect(database_file)) as database:
        plans = [database.execute(f"EXPLAIN QUERY PLAN {query}").fetchall() for query in queries]
    assert "chat_id=? AND kind=? AND period=?" in plans[0][0][3]
    assert "chat_id=? AND category=?" in plans[1][0][3]
    assert await memories.memories(1, "day", same_dates(WEDNESDAY)) == []


async def test_trouble_costs_the_reminder_and_not_the_reply(world: World) -> None:
    await world.say("在吗")

    def broken(*_: object) -> DayView:
        raise sqlite3.DatabaseError("database disk image is malformed")

    with patch.object(reply_view, "_yearly", broken):
        assert "在吗" in await world.last()
    assert "坏了（database disk image is malformed）" in (world.recaller.trouble or "")
    assert "在吗" in await world.last()
    assert world.recaller.trouble is None


async def test_an_export_brings_back_what_is_open_and_what_is_not(
    world: World, tmp_path: Path
) -> None:
    await world.learn("交报告", await world.say("周五前把报告给你"))
    file = write(tmp_path / "open.jsonl", await exported(GROUP))
    await bring(file, replace(GROUP, peer_id="789"))
    copy = ChatKey("10001", "group", "789")
    assert [p.content for p in await world.due(FRIDAY, copy)] == ["交报告"]
    await world.learn("报告已经交了", await world.say("交了"))
    file = write(tmp_path / "closed.jsonl", await exported(GROUP))
    again = ChatKey("10001", "group", "790")
    await bring(file, again)
    assert await world.due(FRIDAY, again) == []


async def test_an_export_brings_the_days_of_the_texts_before(world: World, tmp_path: Path) -> None:
    await world.learn("交报告", await world.say("周五前把报告给你"))
    await world.learn("报告写了一半", await world.say("写了一半"))
    await world.learn("报告已经交了", await world.say("交了"))
    said = [world.clock.now()]
    await world.learn("再交一份", await world.say("下周一再给你一份"))
    said.append(world.clock.now())
    await MessageRow.all().update(skipped="command")  # each tells its own fact alone
    rows = await exported(GROUP)
    (fact,) = (row for row in rows if row["type"] == "fact")
    days = [(old.get("due"), old.get("done_at")) for old in fact["journal"]]
    done = f"{said[0].replace(tzinfo=None).isoformat()}Z"
    assert days == [("2026-11-06", None), ("2026-11-06", None), (None, done)]

    await write_vault(tmp_path / "vault", lines(GROUP, "Asia/Shanghai", NOON))
    old = [{key: fact[key] for key in fact if key != "journal"} | {"journal": []}]
    for text in fact["journal"]:
        old[0]["journal"].append({key: text[key] for key in ("text", "written_at", "source")})
    others = [row for row in rows if row["type"] != "fact"]
    files = (
        (write(tmp_path / "new.jsonl", rows), FRIDAY.isoformat(), True),
        (tmp_path / "vault", FRIDAY.isoformat(), True),
        (write(tmp_path / "before.jsonl", [*others, *old]), None, False),
    )
    for number, (file, day, is_done) in enumerate(files):
        copy = replace(GROUP, peer_id=f"80{number}")
        options = ImportOptions(targets=(target(copy.full),))
        assert (await import_any(nianlun, file, options, lambda _: None)).unreadable == []
        row = await Row.get(chat_id=await world.id_of(copy))
        assert (row.due, row.done_at) == ("2026-11-09", None)
        states = []
        for at in reversed(said):
            notice = Withdrawal(copy, f"m{at.timestamp():.0f}", DEER, at)
            await recording.record([notice], readable, "小忆", at)
            await row.refresh_from_db()
            states.append((row.text, row.due, row.done_at is not None))
        assert states == [("报告已经交了", None, is_done), ("报告写了一半", day, False)]
    # Taken back before the fact comes in, it comes in as the text before.
    bare = ChatKey("10001", "group", "804")
    await bring(write(tmp_path / "bare.jsonl", others), bare)
    notices = [Withdrawal(bare, f"m{at.timestamp():.0f}", DEER, at) for at in said]
    await recording.record(notices, readable, "小忆", said[-1])
    await bring(tmp_path / "new.jsonl", bare)
    row = await Row.get(chat_id=await world.id_of(bare))
    assert (row.text, row.due, row.done_at) == ("报告写了一半", "2026-11-06", None)
