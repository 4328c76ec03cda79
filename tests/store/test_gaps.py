"""Gaps: noted, joined, shrunk and closed; and which fetched lines are new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
import json

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import chats, exclusions, fetched, gaps, recording
from plugins.nonebot_plugin_nianlun.store.matching import Line
from plugins.nonebot_plugin_nianlun.store.models import Chat, Gap
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    ChatKey,
    Delivery,
    Incoming,
    Source,
    Withdrawal,
)

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")

pytestmark = pytest.mark.usefixtures("database_file")


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def said(
    text: str,
    second: float = 0,
    message_id: str | None = None,
    *,
    by: str = "20001",
    source: Source = "history",
    chat: ChatKey = GROUP,
    delivery: Delivery = "ok",
) -> Incoming:
    segments = [{"type": "text", "data": {"text": text}}] if text else []
    when = NOON + timedelta(seconds=second)
    return Incoming(
        chat, when, by, "小鹿", segments, source, message_id=message_id, delivery=delivery
    )


async def record(*items: Incoming | Withdrawal) -> int:
    await recording.record(items, readable, "小忆", NOON)
    chat_id = await chats.find(items[0].chat)
    assert chat_id is not None
    return chat_id


async def new_of(chat_id: int, messages: Sequence[Incoming]) -> list[Incoming]:
    lines = [Line(message) for message in messages]
    found = await fetched.sort_out(chat_id, lines, readable, "小忆")
    return [line.message for line in found.new]


async def spans(chat_id: int) -> list[tuple[float, float]]:
    minute = timedelta(minutes=1)
    rows = await Gap.filter(chat_id=chat_id).order_by("begins")
    return [((row.begins - NOON) / minute, (row.ends - NOON) / minute) for row in rows]


async def test_gaps_that_touch_become_one() -> None:
    chat_id = await record(said("在", source="event"))
    for begins, ends in ((0, 10), (30, 40), (10, 20), (15, 35), (50, 60)):
        await gaps.note({chat_id: (at(begins), at(ends))})
    assert await spans(chat_id) == [(0, 40), (50, 60)]
    assert await gaps.newest(chat_id) == (at(50), at(60))


async def test_what_is_on_record_is_taken_out_of_a_gap() -> None:
    chat_id = await record(said("在", source="event"))
    other = await record(said("在", source="event", chat=replace(GROUP, peer_id="9")))
    for id_ in (chat_id, other):
        await gaps.note({id_: (at(0), at(60))})
    await gaps.close({chat_id: (at(20), at(30))})
    assert await spans(chat_id) == [(0, 20), (30, 60)]
    await gaps.close({chat_id: (at(-5), at(45))})
    assert await spans(chat_id) == [(45, 60)]
    await gaps.close({chat_id: (at(45), at(99))})
    assert (await spans(chat_id), await spans(other)) == ([], [(0, 60)])


@given(*[st.integers(0, 20)] * 4)
def test_a_span_without_another(a: int, b: int, c: int, d: int) -> None:
    span, hole = (at(min(a, b)), at(max(a, b))), (at(min(c, d)), at(max(c, d)))
    left = gaps.without(span, hole)
    for minute in range(20):
        middle = at(minute + 0.5)
        inside = span[0] < middle < span[1] and not hole[0] < middle < hole[1]
        assert any(begins < middle < ends for begins, ends in left) is inside


async def test_marks_are_kept_by_account_and_long_ids_are_no_matter() -> None:
    long = "9" * 300
    assert await gaps.alive_until("1") is None
    await gaps.set_alive({"1": at(1), long: at(2)})
    await gaps.set_alive({"1": at(3)})
    await gaps.set_behind("1", at(4))
    assert (await gaps.alive_until("1"), await gaps.alive_until(long)) == (at(3), at(2))
    assert await gaps.behind_since("1") == at(4)
    await gaps.set_behind("1", None)
    assert await gaps.behind_since("1") is None


async def test_only_chats_that_the_account_heard_before_can_have_missed_something() -> None:
    chat_id = await record(said("早", 10, source="event"), said("晚", 20, source="event"))
    await record(said("以后", 3600, source="event", chat=replace(GROUP, peer_id="2")))
    await record(said("导入", source="import", chat=replace(GROUP, peer_id="3")))
    await record(said("别人", source="event", chat=replace(GROUP, self_id="10002")))
    paused = await record(said("停", source="event", chat=replace(GROUP, peer_id="4")))
    await Chat.filter(id=paused).update(paused=True)
    found = await gaps.recorded_before("10001", at(30))
    assert found == [(chat_id, GROUP, NOON + timedelta(seconds=20))]


async def test_the_earliest_gap_that_is_not_over() -> None:
    chat_id = await record(said("在", source="event"))
    for begins, ends in ((0, 5), (10, 20), (30, 40)):
        await gaps.note({chat_id: (at(begins), at(ends))})
    assert await gaps.reaching([chat_id], at(20)) == {chat_id: at(10)}
    assert await gaps.reaching([], at(20)) == {}


async def test_the_same_id_is_the_same_message() -> None:
    chat_id = await record(said("甲", 1, "7", source="event"))
    lines = [said("甲", 1, "7"), said("甲", 2, "7"), said("乙", 1, "8")]
    assert await new_of(chat_id, lines) == lines[1:]


async def test_with_new_ids_second_speaker_and_words_tell() -> None:
    chat_id = await record(
        said("哈", 1, "1", source="event"), said("哈", 1, "2", by="20002", source="event")
    )
    lines = [said("哈", 1, "91"), said("哈", 1, "92"), said("哈", 1, "93", by="20002")]
    assert await new_of(chat_id, lines) == [lines[1]]


async def test_lines_without_ids_come_in_as_often_as_they_were_said() -> None:
    chat_id = await record(said("哈", 1, source="event"))
    lines = [said("哈", 1), said("哈", 1), said("哈", 1)]
    for _ in range(2):
        await record(*await new_of(chat_id, lines))
    assert [row.text for row in await Row.all()] == ["哈"] * 3


@pytest.mark.parametrize("apart", [-7200, -90, 0, 90, 7200])
async def test_our_own_lines_need_no_agreeing_clocks(apart: int) -> None:
    own = said("好", 0, "55", by=ME, source="sent", delivery="unknown")
    chat_id = await record(own)
    lines = [Line(said("好", apart, "55", by=ME))]
    found = await fetched.sort_out(chat_id, lines, readable, "小忆")
    assert (found.new, found.delivered) == ([], [1])
    await fetched.settle(chat_id, found, NOON)
    assert (await Row.get(chat_id=chat_id)).delivery == "ok"


async def test_a_known_withdrawal_holds_under_another_id() -> None:
    chat_id = await record(said("秘密", 1, "7", source="event"))
    await record(Withdrawal(GROUP, "7", "20001", at(1)))
    assert await new_of(chat_id, [said("秘密", 1, "97")]) == []


@pytest.mark.parametrize("message_id", ["7", "97", None])
@pytest.mark.parametrize("told", ["秘密", ""])
async def test_what_the_other_side_took_back_is_masked_here(
    message_id: str | None, told: str
) -> None:
    chat_id = await record(said("秘密", 1, "7", source="event"), said("别的", 2, "8"))
    lines = [Line(said(told, 1, message_id), withdrawn=True), Line(said("别的", 2, "8"))]
    found = await fetched.sort_out(chat_id, lines, readable, "小忆")
    assert (found.new, found.taken_back) == ([], [1])
    await fetched.settle(chat_id, found, NOON)
    masked, kept = await Row.filter(chat_id=chat_id).order_by("seq")
    assert (masked.text, json.loads(masked.segments), kept.text) == ("", [], "别的")
    assert masked.withdrawn_at is not None


@pytest.mark.parametrize(("flagged", "masked"), [(3, True), (2, False)])
async def test_all_of_a_second_that_was_taken_back_is_masked_under_any_ids(
    flagged: int, masked: bool
) -> None:
    secrets = [said(f"秘密{n}", 1, f"{n}", source="event") for n in range(3)]
    chat_id = await record(*secrets, said("别的", 1, "8", source="event"))
    lines = [Line(said("", 1, f"9{n}"), withdrawn=True) for n in range(flagged)]
    lines.append(Line(said("别的", 1, "98")))
    found = await fetched.sort_out(chat_id, lines, readable, "小忆")
    assert found.taken_back == ([1, 2, 3] if masked else [])
    await fetched.settle(chat_id, found, NOON)
    rows = await Row.filter(chat_id=chat_id).order_by("seq")
    words = ["", "", ""] if masked else ["秘密0", "秘密1", "秘密2"]
    assert [row.text for row in rows] == [*words, "别的"]


async def test_what_a_member_does_not_want_recorded_has_one_row_under_any_id() -> None:
    chat_id = await record(said("在", source="event"))
    await exclusions.opt_out(chat_id, "20001", NOON, NOON)
    await record(said("私事", 5, "7", source="event"))
    lines = [said("私事", 5, "97"), said("又一句", 6, "98")]
    new = await new_of(chat_id, lines)
    assert new == [lines[1]]
    await record(*new)
    rows = await Row.filter(chat_id=chat_id).order_by("seq")
    assert [(row.text, row.skipped) for row in rows][1:] == [("", "opted_out")] * 2
