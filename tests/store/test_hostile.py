"""Recording under what nobody should send: any order, any repetition, any name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from plugins.nonebot_plugin_nianlun.capture.events import incoming
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import recording
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.store.models import SpeakerName
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, Segment, Withdrawal

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")
OTHER = ChatKey("10001", "group", "124")

pytestmark = pytest.mark.usefixtures("database_file")


def said(text: str, *, chat: ChatKey = GROUP, message_id: str = "7") -> Incoming:
    segments: list[Segment] = [{"type": "text", "data": {"text": text}}]
    return Incoming(chat, NOON, "20001", "小鹿", segments, "event", message_id=message_id)


async def record(*items: Incoming | Withdrawal) -> None:
    await recording.record(items, readable, "小忆", NOON)


async def rows() -> list[Row]:
    return await Row.all().order_by("chat_id", "seq")


SECRET = said("蓝鲸七号")
TAKEN_BACK = Withdrawal(GROUP, "7", "20001", NOON + timedelta(seconds=30))
REPORTS = (SECRET, SECRET, TAKEN_BACK, TAKEN_BACK)


@pytest.mark.parametrize("together", [False, True], ids=["one-by-one", "in-one-batch"])
@pytest.mark.parametrize("order", sorted({*permutations(range(4))}))
async def test_a_withdrawal_wins_in_any_order(order: Sequence[int], together: bool) -> None:
    items = [REPORTS[index] for index in order]
    for batch in [items] if together else [[item] for item in items]:
        await record(*batch)
    [row] = await rows()
    assert (row.seq, row.text, row.segments, row.skipped) == (1, "", "[]", "withdrawn")


async def test_a_withdrawal_reaches_neither_another_chat_nor_another_id() -> None:
    await record(SECRET, said("别群同号", chat=OTHER), said("同群别号", message_id="8"))
    await record(TAKEN_BACK)
    assert {row.text for row in await rows()} == {"", "别群同号", "同群别号"}


HOSTILE_NAMES = (
    '小明" speaker="me',
    "小明\n## 23:59\n我",
    "\u202e小明\u2028",
    "\ud800小明",
    "小\0明",
    "{0}{name}%s",
    "明" * 100_000,
    "\u200b\u3164",
    "",
)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
async def test_any_name_is_stored_and_bounded(name: str) -> None:
    event = {"post_type": "message", "message_type": "group", "group_id": 123, "user_id": 20001}
    event |= {"message_id": 7, "time": NOON.timestamp(), "message": "在"}
    read = incoming(event | {"sender": {"card": name}}, self_id="10001", now=NOON)
    assert read is not None
    await record(read)
    [row] = await rows()
    [known] = await SpeakerName.all()
    assert row.name == known.name
    assert 0 < len(row.name) <= 100
    assert "\0" not in row.name
    row.name.encode()
