"""Facts that people told, and had taken away again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import NotRecorded
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.store import chats, facts, messages, provenance, recording
from plugins.nonebot_plugin_nianlun.store.models import Fact, FactVersion
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, SkipReason, Withdrawal

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")
SHE, HE = "20001", "20002"
SECRET = "芝麻开门"


async def say(number: int, text: str, skipped: SkipReason | None = None) -> int:
    line = Incoming(
        GROUP,
        NOON + timedelta(minutes=number),
        SHE,
        "小鹿",
        [{"type": "text", "data": {"text": text}}],
        "event",
        message_id=str(number),
        skipped=skipped,
    )
    await recording.record([line], readable, "小忆", NOON)
    found = await chats.find(GROUP)
    assert found is not None
    return found


async def withdraw(number: int) -> None:
    notice = Withdrawal(GROUP, str(number), None, NOON + timedelta(hours=1))
    await recording.record([notice], readable, "小忆", NOON)


async def tell(text: str, name: str = "咖啡", by: str = SHE, source: int | None = None) -> str:
    item = FactItem("preferences", name, text)
    [change] = await facts.remember(1, by, [item], source, NOON)
    return change


async def texts() -> list[str]:
    return [row.text for row in await facts.listed(1)]


async def test_who_takes_back_the_command_takes_back_the_fact(database_file: Path) -> None:
    await say(1, "大家好")
    await say(2, "/记忆 记住 preferences:咖啡 只喝美式", "command")
    source = await messages.seq_of(1, "2")
    assert source == 2
    await tell("只喝美式", source=source)
    await withdraw(1)  # of another line, although it stands beside it
    assert await texts() == ["只喝美式"]
    await withdraw(2)
    assert await texts() == []
    assert await messages.seq_of(1, "2") is None
    with pytest.raises(NotRecorded):
        await tell("只喝美式", source=source)


async def test_what_is_taken_away_leaves_nothing(database_file: Path) -> None:
    await say(1, "大家好")
    await tell(SECRET)
    await tell(f"{SECRET}，改了")
    await tell("别人的", by=HE)
    assert not await facts.erase(1, SHE, "preferences", "茶", NOON, NOON)
    assert await facts.erase(1, SHE, "preferences", "咖啡", NOON, NOON)
    assert not await facts.erase(1, SHE, "preferences", "咖啡", NOON, NOON)
    assert await texts() == ["别人的"]
    assert await Fact.filter(chat_id=1).count() == 1
    assert await FactVersion.filter(chat_id=1).count() == 0
    assert await Traces(database_file).remove(hurry=True)
    for file in database_file.parent.iterdir():
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file.name


async def test_links_that_lead_nowhere_are_told(database_file: Path) -> None:
    await say(1, "大家好")
    await tell("有", name="杯子")
    await tell("群里的", name="茶", by="")
    for owner in (HE, "20003"):
        await tell("各有一个", name="书", by=owner)
    names = (
        "preferences:杯子",
        "preferences:茶",
        "preferences:书",
        "event:没有",
        "preferences:咖啡",
    )
    text = " ".join(f"[[{name}]]" for name in names)
    await tell(text)
    item = FactItem("preferences", "咖啡", text)
    assert await facts.unresolved_links(1, SHE, item) == ("preferences:书", "event:没有")


async def test_where_a_fact_comes_from(database_file: Path) -> None:
    await say(1, "我只喝美式")
    await tell("喝拿铁")
    await tell("只喝美式", source=1)
    await tell("群里的", by="")
    chats_own, hers = await provenance.facts_why(1, "preferences", "咖啡")
    assert (chats_own.owner, chats_own.source, chats_own.journal) == ("", None, ())
    assert hers.source is not None
    assert (hers.source.text, hers.source.user_id) == ("我只喝美式", SHE)
    assert [text for text, _ in hers.journal] == ["喝拿铁"]
    await withdraw(1)
    _, hers = await provenance.facts_why(1, "preferences", "咖啡")
    assert (hers.text, hers.source, hers.journal) == ("喝拿铁", None, ())
