"""What the days of a chat are for its pictures: counted by logical day, for this chat alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.commands.drawing import (
    Drawing,
    speakers_picture,
    usage_picture,
)
from plugins.nonebot_plugin_nianlun.errors import NianlunError, StoreError
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.moods import DayGrowth
from plugins.nonebot_plugin_nianlun.store import chats, recording, usage
from plugins.nonebot_plugin_nianlun.store import said as said_by
from plugins.nonebot_plugin_nianlun.store.growth import growth, tokens_by_day
from plugins.nonebot_plugin_nianlun.store.models import Activity, Memory
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, Usage

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
NOW = datetime(2026, 7, 20, 4, tzinfo=UTC)
TODAY = date(2026, 7, 20)
GROUP, OTHER = ChatKey("10001", "group", "123"), ChatKey("10001", "group", "456")
PNG = b"\x89PNG\r\n"

pytestmark = pytest.mark.usefixtures("database_file")


async def said(chat: ChatKey, *times: str) -> int:
    """Record lines said then, by the clocks of the chat; returns its row id."""
    lines = [
        Incoming(
            chat,
            datetime.fromisoformat(when).replace(tzinfo=CALENDAR.zone).astimezone(UTC),
            "20001",
            "小鹿",
            [{"type": "text", "data": {"text": "早"}}],
            "event",
            message_id=when,
        )
        for when in times
    ]
    await recording.record(lines, readable, "小忆", NOW)
    chat_id = await chats.find(chat)
    assert chat_id is not None
    return chat_id


async def noted(chat_id: int, number: int, day: str, text: str) -> None:
    await Activity.create(
        chat_id=chat_id,
        number=number,
        date=day,
        text=text,
        origin="tool",
        time=NOW,
        writer="model",
        written_at=NOW,
    )


async def remembered(chat_id: int, day: str, text: str) -> None:
    await Memory.create(
        chat_id=chat_id, kind="day", period=day, text=text, writer="model", written_at=NOW
    )


async def grown(path: Path, chat_id: int, first: date = date(2000, 1, 1)) -> dict[str, DayGrowth]:
    days = await growth(path, chat_id, CALENDAR, first, TODAY)
    return {day.isoformat(): one for day, one in days.items()}


async def test_a_message_counts_for_its_logical_day(database_file: Path) -> None:
    chat_id = await said(
        GROUP,
        "2026-07-18 04:00:00",
        "2026-07-19 03:59:59.999",
        "2026-07-19 04:00:00",
        "2026-07-19 04:00:00.5",
        "2026-07-20 01:30:00",
    )
    await said(OTHER, "2026-07-17 12:00:00", "2026-07-18 12:00:00")
    assert await grown(database_file, chat_id) == {
        "2026-07-18": DayGrowth(2),
        "2026-07-19": DayGrowth(3),
    }


async def test_what_is_no_part_of_the_talk_does_not_count(database_file: Path) -> None:
    when = [f"2026-07-1{day} 1{hour}:00" for day in (7, 8) for hour in range(7)]
    chat_id = await said(GROUP, *when)
    rows = Row.filter(chat_id=chat_id, message_id__in=when[:5])
    reasons = ["command", "withdrawn", "opted_out", "paused", "empty"]
    for row, reason in zip(await rows.order_by("seq"), reasons, strict=True):
        await Row.filter(id=row.id).update(skipped=reason)
    await Row.filter(chat_id=chat_id, message_id=when[5]).update(withdrawn_at=NOW)
    await Row.filter(chat_id=chat_id, message_id=when[6]).update(text="")
    await Row.filter(chat_id=chat_id, message_id=when[7]).update(skipped="command")
    await Row.filter(chat_id=chat_id, message_id=when[8]).update(skipped="declined")
    await noted(chat_id, 1, "2026-07-17", "")
    assert await grown(database_file, chat_id) == {"2026-07-18": DayGrowth(6)}
    heard = await said_by.heard(database_file, chat_id)
    assert [one.messages for one in heard] == [6]


async def test_only_the_days_that_are_asked_for(database_file: Path) -> None:
    chat_id = await said(GROUP, "1999-05-01 12:00", "2026-07-01 12:00", "2026-07-22 12:00")
    assert set(await grown(database_file, chat_id)) == {"2026-07-01"}
    assert await grown(database_file, chat_id, TODAY) == {}
    assert set(await grown(database_file, chat_id, date(1, 1, 1))) == {"1999-05-01", "2026-07-01"}


async def test_the_mood_is_that_of_the_day_memory_or_else_of_its_activities(
    database_file: Path,
) -> None:
    chat_id = await said(GROUP, "2026-07-18 12:00")
    await noted(chat_id, 1, "2026-07-18", "大家都很难过")
    await noted(chat_id, 2, "2026-07-19", "小鹿很开心")
    await noted(chat_id, 3, "2026-07-19", "阿岚也高兴")
    await remembered(chat_id, "2026-07-18", "后来大家都开心了")
    await remembered(chat_id, "2026-07-19", "")
    days = await grown(database_file, chat_id)
    assert days["2026-07-18"] == DayGrowth(1, 1, 1 / 3)
    assert days["2026-07-19"] == DayGrowth(0, 2, 1 / 2)


async def test_a_chat_without_anything(database_file: Path) -> None:
    assert await grown(database_file, 99) == {}
    assert await tokens_by_day(99, 2026) == {}


async def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database" * 500)
    with pytest.raises(StoreError):
        await growth(broken, 1, CALENDAR, TODAY, TODAY)


async def test_tokens_of_a_year_by_day() -> None:
    chat_id, other = await said(GROUP, "2026-07-18 12:00"), await said(OTHER, "2026-07-18 12:00")
    for chat, day, purpose in (
        (chat_id, "2026-01-01", "reply"),
        (chat_id, "2026-01-01", "activity"),
        (chat_id, "2026-12-31", "reply"),
        (chat_id, "2025-12-31", "reply"),
        (chat_id, "2027-01-01", "reply"),
        (other, "2026-03-01", "reply"),
    ):
        await usage.count(chat, day, purpose, "m", Usage(100, 50, 20), True)
    assert await tokens_by_day(chat_id, 2026) == {date(2026, 1, 1): 240, date(2026, 12, 31): 120}
    assert (await usage_picture(chat_id, TODAY) or b"").startswith(PNG)
    assert await usage_picture(chat_id, TODAY) != await usage_picture(other, TODAY)
    assert await usage_picture(chat_id, date(2024, 1, 1)) is None


async def test_who_spoke_as_a_picture() -> None:
    assert await speakers_picture([]) is None
    assert (await speakers_picture([3, 2, 1]) or b"").startswith(PNG)


async def asked(path: Path, *words: str) -> Any:
    async def settled(chat: ChatKey) -> int:
        chat_id = await chats.find(chat)
        assert chat_id is not None
        return chat_id

    clock = SimpleNamespace(now=lambda: NOW)
    nianlun = SimpleNamespace(path=path, clock=clock, calendar=CALENDAR, settled=settled)
    (command,) = Drawing(cast("Any", nianlun)).commands()
    arguments = dict(zip(["年份"], words, strict=False))
    return await command.serve(cast("Any", SimpleNamespace(chat=GROUP, arguments=arguments)))


async def test_rings_and_years_are_answered(database_file: Path) -> None:
    await said(GROUP, "2025-03-01 12:00", "2026-07-18 12:00", "2026-07-18 13:00")
    rings = await asked(database_file)
    assert rings.picture.startswith(PNG)
    assert "从 2025-03-01 到今天，2 圈，有 2 天" in rings.text
    assert "2026-07-18，2 条消息" in rings.text
    year = await asked(database_file, "2025年")
    assert year.picture.startswith(PNG)
    assert year.text.startswith("2025 年有 1 天说过话；最热闹的是 2025-03-01，1 条消息")


@pytest.mark.parametrize("year", ["2024", "2027", "25", "二〇二五", "0000", "２０２５", "-123"])
async def test_a_year_that_cannot_be_shown(database_file: Path, year: str) -> None:
    await said(GROUP, "2026-07-18 12:00")
    with pytest.raises(NianlunError):
        await asked(database_file, year)
