"""Days of memory: by the chat's own clock, whatever clock the machine goes by."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.e2e.checks import check_citations, check_cover, of_type, seqs_of, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.onebot_client import OneBotClient

SHANGHAI = ZoneInfo("Asia/Shanghai")
PEOPLE = {10010: "阿澈", 20002: "小鹿", 20003: "老周"}
HOURS = (time(4, 0), time(9, 30), time(15, 10), time(23, 50))


def today() -> date:
    """The logical day that is running now."""
    return (datetime.now(SHANGHAI) - timedelta(hours=4)).date()


def moments(day: date) -> list[datetime]:
    """Times of one logical day, the last of them after midnight."""
    night = datetime.combine(day + timedelta(days=1), time(1, 30), SHANGHAI)
    return [datetime.combine(day, hour, SHANGHAI) for hour in HOURS] + [night]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
async def test_three_days_become_three_memories(new_bot: BotMaker, zone: str) -> None:
    bot = await new_bot({"TZ": zone}).start()
    days = [today() - timedelta(days=back) for back in (3, 2, 1)]
    said: dict[str, str] = {}
    async with OneBotClient(bot.port) as client:
        for day in days:
            for index, moment in enumerate(moments(day)):
                user_id = list(PEOPLE)[index % 3]
                line = f"{day} 的第 {index} 件事"
                said[line] = day.isoformat()
                await client.group_message(
                    line, user_id, PEOPLE[user_id], at=moment.timestamp(), group_id=1
                )
        await wait_stored(bot, "group:1", len(said))
    await bot.cli_ok("rollup")
    rows = await bot.export("group:1")
    check_cover(rows)
    check_citations(rows)
    assert [row["date"] for row in of_type(rows, "day")] == [day.isoformat() for day in days]
    by_seq = {row["seq"]: said[row["text"]] for row in of_type(rows, "message")}
    for activity in of_type(rows, "activity"):
        assert {by_seq[seq] for seq in seqs_of(activity)} == {activity["date"]}
    dates = {row["id"]: row["date"] for row in of_type(rows, "activity")}
    for memory in of_type(rows, "day"):
        assert {dates[source] for source in memory["sources"]} == {memory["date"]}
    nights = [row for row in of_type(rows, "message") if "第 4 件事" in row["text"]]
    for row in nights:
        assert datetime.fromisoformat(row["time"]).astimezone(UTC).time() == time(17, 30)


async def test_the_day_can_start_elsewhere(new_bot: BotMaker) -> None:
    bot = new_bot({"NIANLUN__TIMEZONE": "America/New_York", "NIANLUN__DAY_STARTS_AT": "00:00"})
    await bot.start()
    zone = ZoneInfo("America/New_York")
    yesterday = datetime.now(zone).date() - timedelta(days=1)
    before = datetime.combine(yesterday, time(0, 0), zone) - timedelta(seconds=1)
    async with OneBotClient(bot.port) as client:
        await client.group_message("前一天", at=before.timestamp(), group_id=1)
        await client.group_message("后一天", at=before.timestamp() + 1, group_id=1)
        await wait_stored(bot, "group:1", 2)
    await bot.cli_ok("rollup")
    rows = await bot.export("group:1")
    expected = [(yesterday - timedelta(days=1)).isoformat(), yesterday.isoformat()]
    assert [row["date"] for row in of_type(rows, "day")] == expected
