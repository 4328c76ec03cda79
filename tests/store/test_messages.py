"""Recording: one message, one row, in event order, and masked when it is taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import chats, messages, recording
from plugins.nonebot_plugin_nianlun.store.models import Chat, Speaker, SpeakerName
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    ChatKey,
    Delivery,
    Incoming,
    SkipReason,
    Source,
    Via,
    Withdrawal,
)

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")

pytestmark = pytest.mark.usefixtures("database_file")


def said(
    text: str,
    *,
    at: float = 0,
    by: str = "20001",
    name: str = "小鹿",
    message_id: str | None = None,
    chat: ChatKey = GROUP,
    source: Source = "event",
    order: int | None = None,
    reply_to_id: str | None = None,
    via: Via | None = None,
    delivery: Delivery = "ok",
    skipped: SkipReason | None = None,
) -> Incoming:
    return Incoming(
        chat=chat,
        time=NOON + timedelta(seconds=at),
        user_id=by,
        name=name,
        segments=[{"type": "text", "data": {"text": text}}],
        source=source,
        message_id=message_id,
        order=order,
        reply_to_id=reply_to_id,
        via=via,
        delivery=delivery,
        skipped=skipped,
    )


async def record(*items: Incoming | Withdrawal) -> None:
    await recording.record(items, readable, "小忆", NOON)


async def rows(chat: ChatKey = GROUP) -> list[Row]:
    chat_id = await chats.find(chat)
    assert chat_id is not None
    return await Row.filter(chat_id=chat_id).order_by("seq")


async def texts(chat: ChatKey = GROUP) -> list[str]:
    return [row.text for row in await rows(chat)]


async def test_rows_are_numbered_without_holes_in_event_order() -> None:
    await record(said("乙", at=2, message_id="2"), said("甲", at=1, message_id="1"))
    await record(said("甲", at=1, message_id="1"), said("丙", at=3, message_id="3"))
    found = await rows()
    assert [(row.seq, row.text) for row in found] == [(1, "甲"), (2, "乙"), (3, "丙")]
    assert (await Chat.get(id=found[0].chat_id)).last_seq == 3


async def test_platform_order_decides_within_a_second() -> None:
    own = said("中", by=ME, source="sent", via="nianlun")
    await record(said("后", message_id="9", order=8), own, said("先", message_id="5", order=7))
    assert await texts() == ["先", "中", "后"]


async def test_an_own_line_stands_where_it_was_said_and_not_where_its_result_came() -> None:
    question = replace(said("答了吗", message_id="1"), heard_at=NOON + timedelta(seconds=0.6))
    own = said("答", by=ME, source="sent", via="nianlun")
    await record(question, replace(own, heard_at=NOON + timedelta(seconds=0.5)))
    assert await texts() == ["答", "答了吗"]


async def test_redelivery_is_one_row_however_often_and_in_whichever_batch() -> None:
    line = said("你好", message_id="-12345")
    await record(line, line)
    await record(line)
    assert await texts() == ["你好"]


async def test_an_id_that_is_used_again_is_another_message() -> None:
    await record(said("一", message_id="5"), said("二", at=60, message_id="5"))
    await record(said("三", message_id="5", by="20002"))
    other = ChatKey("10001", "group", "456")
    await record(said("四", message_id="5", chat=other))
    assert await texts() == ["一", "二", "三"]
    assert await texts(other) == ["四"]


@pytest.mark.parametrize("message_id", ["-294283545", "7336105950764948274", "abc-1", "9" * 400])
async def test_every_kind_of_id_is_normal(message_id: str) -> None:
    await record(said("在", message_id=message_id))
    await record(said("在", message_id=message_id))
    await record(Withdrawal(GROUP, message_id, "20001", NOON + timedelta(seconds=5)))
    (row,) = await rows()
    assert row.withdrawn_at is not None


async def test_lines_without_ids_are_told_apart_by_occurrence() -> None:
    first, second = said("哈"), said("哈")
    await record(first, second, said("哈", by="20002"))
    await record(first, second)
    assert await texts() == ["哈", "哈", "哈"]


async def test_a_withdrawn_message_is_masked_and_skipped() -> None:
    await record(said("秘密", message_id="7"), said("别的", at=1, message_id="8"))
    await record(Withdrawal(GROUP, "7", "20001", NOON + timedelta(seconds=9)))
    gone, kept = await rows()
    assert (gone.text, gone.segments, gone.skipped) == ("", "[]", "withdrawn")
    assert gone.withdrawn_at is not None
    assert (kept.text, kept.skipped) == ("别的", None)


async def test_a_message_that_arrives_after_its_withdrawal_is_never_stored() -> None:
    await record(Withdrawal(GROUP, "7", "20001", NOON + timedelta(seconds=9)))
    await record(said("秘密", message_id="7"))
    (row,) = await rows()
    assert (row.text, row.segments, row.skipped) == ("", "[]", "withdrawn")


async def test_a_withdrawal_spares_an_older_and_a_later_use_of_the_id() -> None:
    await record(said("旧", at=-3600, message_id="7"), said("新", message_id="7"))
    await record(Withdrawal(GROUP, "7", None, NOON + timedelta(seconds=9)))
    await record(said("再用", at=3600, message_id="7"))
    assert await texts() == ["旧", "", "再用"]


@pytest.mark.parametrize("skew", [-7200, -180, 0, 180, 7200])
async def test_a_withdrawal_needs_no_agreeing_clocks(skew: int) -> None:
    await record(said("秘密", message_id="7"))
    await record(Withdrawal(GROUP, "7", "20001", NOON + timedelta(seconds=skew)))
    assert await texts() == [""]


async def test_a_notice_that_is_reported_twice_masks_nothing_more() -> None:
    await record(said("旧", at=-3600, message_id="7"), said("新", message_id="7"))
    for seconds in (5, 6):
        await record(Withdrawal(GROUP, "7", "20001", NOON + timedelta(seconds=seconds)))
    assert await texts() == ["旧", ""]


async def test_a_withdrawal_of_somebody_elses_message_masks_nothing() -> None:
    await record(said("我的", message_id="7"))
    await record(Withdrawal(GROUP, "7", "20099", NOON + timedelta(seconds=9)))
    assert await texts() == ["我的"]


@pytest.mark.parametrize("echo_first", [True, False])
@pytest.mark.parametrize("ids", [("55", "55"), (None, "55"), ("55", None), (None, None)])
async def test_an_own_line_and_its_echo_are_one_row(
    echo_first: bool, ids: tuple[str | None, str | None]
) -> None:
    sent = said("好", at=0.7, by=ME, message_id=ids[0], source="sent", via="nianlun")
    echo = said("好", at=1, by=ME, message_id=ids[1], source="echo", via="other")
    for line in [echo, sent] if echo_first else [sent, echo]:
        await record(line)
    (row,) = await rows()
    assert row.via == "nianlun"
    assert row.message_id == (ids[0] or ids[1])


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("skew", [-200, 200, 7200])
async def test_an_echo_by_another_clock_is_the_same_line(skew: int, together: bool) -> None:
    sent = said("好", by=ME, message_id="55", source="sent", via="nianlun")
    echo = said("好", at=skew, by=ME, message_id="55", source="echo", via="other")
    other = said("别的", at=skew, by=ME, message_id="55", source="echo", via="other")
    for batch in [[sent, echo]] if together else [[sent], [echo]]:
        await record(*batch)
    await record(other)
    assert sorted(await texts()) == ["别的", "好"]


async def test_an_own_line_and_its_echo_in_one_batch_are_one_row() -> None:
    sent = said("好", by=ME, message_id="55", source="sent", via="nianlun", skipped="command")
    echo = said("好", at=1, by=ME, message_id="55", source="echo", via="other")
    await record(echo, sent)
    (row,) = await rows()
    assert (row.via, row.skipped) == ("nianlun", "command")


async def test_equal_own_lines_with_two_ids_stay_two() -> None:
    for message_id in ("55", "56"):
        await record(said("好", by=ME, message_id=message_id, source="sent", via="nianlun"))
        await record(said("好", by=ME, message_id=message_id, source="echo", via="other"))
    assert await texts() == ["好", "好"]


async def test_an_unknown_delivery_is_settled_by_the_echo() -> None:
    await record(said("到没", by=ME, source="sent", via="nianlun", delivery="unknown"))
    await record(said("到没", at=3, by=ME, message_id="9", source="echo", via="other"))
    (row,) = await rows()
    assert (row.delivery, row.message_id) == ("ok", "9")


async def test_replies_find_their_target_and_the_newest_use_of_an_id() -> None:
    await record(said("旧", at=-60, message_id="1"), said("新", message_id="1"))
    await record(said("答", at=1, message_id="2", reply_to_id="1"))
    await record(said("？", at=2, message_id="3", reply_to_id="404"))
    found = await rows()
    assert found[2].reply_to == found[1].seq
    assert (found[3].reply_to, found[3].reply_to_id) == (None, "404")


async def test_mentions_are_read_with_the_names_of_the_chat() -> None:
    await record(said("我来了", by="20002", name="阿澈", message_id="1"))
    line = said("", message_id="2")
    line.segments[:] = [
        {"type": "at", "data": {"qq": "20002"}},
        {"type": "at", "data": {"qq": "10001"}},
        {"type": "at", "data": {"qq": "404"}},
    ]
    await record(line)
    assert (await texts())[1].split() == ["@阿澈", "@小忆", "@404"]


async def test_speakers_keep_every_name_and_show_the_newest() -> None:
    await record(said("一", name="小鹿", message_id="1"))
    await record(said("二", at=60, name="鹿老师", message_id="2"))
    await record(said("迟到", at=30, name="小鹿", message_id="3"))
    speaker = await Speaker.get(user_id="20001")
    names = await SpeakerName.filter(user_id="20001").order_by("id").values_list("name", flat=True)
    assert speaker.name == "鹿老师"
    assert names == ["小鹿", "鹿老师"]


async def test_invisible_text_is_kept_and_skipped_as_empty() -> None:
    await record(said("\u200b\u200d", message_id="1"))
    (row,) = await rows()
    assert (row.text, row.skipped) == ("\u200b\u200d", "empty")


async def test_what_is_skipped_is_not_pending_and_pending_is_in_event_order() -> None:
    await record(said("晚", at=9, message_id="1"), said("/记忆 状态", skipped="command"))
    await record(said("早", at=1, message_id="2"))
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    assert [m.text for m in await messages.pending(chat_id, 10)] == ["早", "晚"]
    await messages.skip(chat_id, [m.seq for m in await messages.pending(chat_id, 10)], "declined")
    assert await messages.pending(chat_id, 10) == []


async def test_a_batch_that_fails_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(segments: Sequence[object], name_of: Callable[[str], str | None]) -> str:
        raise ValueError("no text")

    with pytest.raises(ValueError, match="no text"):
        await recording.record([said("甲", message_id="1")], broken, "小忆", NOON)
    await record(said("甲", message_id="1", name="小鹿"))
    assert await texts() == ["甲"]
    assert await Speaker.filter(user_id="20001").count() == 1


async def test_two_accounts_in_one_group_are_two_chats(database_file: Path) -> None:
    other = ChatKey("10002", "group", "123")
    await record(said("同一句", message_id="1"), said("同一句", message_id="2", chat=other))
    assert await texts() == await texts(other) == ["同一句"]
    with pytest.raises(chats.ChatError, match="10001/group:123、10002/group:123"):
        await chats.resolve("group:123")
    assert await chats.resolve("10002/group:123") == other
