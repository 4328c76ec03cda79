"""Members who opted out: nothing of them is recorded, however it arrives, until they opt in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    forgetting,
    messages,
    recording,
    speakers,
)
from plugins.nonebot_plugin_nianlun.store.exclusions import Span, redact
from plugins.nonebot_plugin_nianlun.store.matching import Line, Matching
from plugins.nonebot_plugin_nianlun.store.models import (
    Activity,
    Exclusion,
    Speaker,
    SpeakerName,
)
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.store.records import Person
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    ChatKey,
    Incoming,
    Segment,
    SkipReason,
    Source,
    Withdrawal,
)

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")
OTHER = ChatKey("10001", "group", "456")
SHE = "20001"

pytestmark = pytest.mark.usefixtures("database_file")


def text(words: str) -> Segment:
    return {"type": "text", "data": {"text": words}}


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def said(
    words: str,
    second: float,
    *,
    by: str = SHE,
    name: str = "小蓝",
    chat: ChatKey = GROUP,
    source: Source = "event",
    message_id: str | None = None,
    skipped: SkipReason | None = None,
) -> Incoming:
    return Incoming(
        chat, at(second), by, name, [text(words)], source, message_id=message_id, skipped=skipped
    )


async def record(*items: Incoming | Withdrawal) -> None:
    await recording.record(items, readable, "小忆", NOON)


async def rows(chat: ChatKey = GROUP) -> list[tuple[str, str, str, str | None]]:
    chat_id = await chats.find(chat)
    found = await Row.filter(chat_id=chat_id).order_by("seq")
    assert [row.seq for row in found] == list(range(1, len(found) + 1))
    return [(row.text, row.name, row.segments, row.skipped) for row in found]


async def opt_out(second: float, chat: ChatKey = GROUP) -> bool:
    ids = await chats.ensure([chat], NOON)
    return await exclusions.opt_out(ids[chat], SHE, at(second), NOON)


async def opt_in(second: float) -> bool:
    ids = await chats.ensure([GROUP], NOON)
    return await exclusions.opt_in(ids[GROUP], SHE, at(second))


BLANK = ("", "", "[]", "opted_out")
HELLO = ("在", "小蓝", '[{"type":"text","data":{"text":"在"}}]', None)


async def test_words_are_not_recorded_from_then_on() -> None:
    await record(said("说", 1, by="20002", message_id="1"))
    assert await opt_out(10)
    await record(said("别记", 11, message_id="2"), said("在", 12, by="20002", message_id="3"))
    await record(said("别记", 13), said("/记忆 今天", 14, message_id="4", skipped="command"))
    found = await rows()
    assert [row for row in found if row[3]] == [BLANK] * 3
    assert [row[0] for row in found] == ["说", "", "在", "", ""]
    assert await SpeakerName.filter(user_id=SHE).count() == 0
    assert await opt_in(20)
    await record(said("在", 21, message_id="5"))
    assert (await rows())[-1] == HELLO


async def test_saying_it_twice_changes_nothing() -> None:
    assert not await opt_in(1)
    assert await opt_out(2)
    assert not await opt_out(3)
    assert await opt_in(4)
    assert not await opt_in(5)
    assert await Exclusion.all().count() == 1


async def test_what_is_pending_is_skipped_and_emptied() -> None:
    await record(
        said("还没写", 1, message_id="1"), said("没有号", 2), said("/记忆", 3, skipped="command")
    )
    await record(said("别人的", 2, by="20002", message_id="2"))
    await opt_out(10)
    found = await rows()
    assert sorted(row[3] or "" for row in found) == ["", "command", "opted_out", "opted_out"]
    assert [row for row in found if row[3] == "opted_out"] == [BLANK] * 2
    ids = await chats.ensure([GROUP], NOON)
    assert [m.text for m in await messages.pending(ids[GROUP], 10)] == ["别人的"]
    assert [m.text for m in await messages.recent(ids[GROUP], 10)] == ["别人的"]


async def test_lines_without_a_text_among_what_is_pending_are_emptied_too() -> None:
    picture: Segment = {"type": "keyboard", "data": {"content": "她的"}}
    wordless = replace(said("", 1, message_id="1"), segments=[picture])
    await record(wordless, said("写过", 2, message_id="2"))
    ids = await chats.ensure([GROUP], NOON)
    noted = await Activity.create(
        chat_id=ids[GROUP], number=1, date="2026-11-29", from_seq=2, to_seq=2, text="她说过话。",
        key_messages="[]", origin="window", time=at(2), writer="model", written_at=at(3),
    )  # fmt: skip
    await Row.filter(seq=2).update(activity_id=noted.id)
    others = replace(wordless, user_id="20002", message_id="3")
    await record(others, replace(wordless, message_id="4"), replace(wordless, message_id=None))
    before = await rows()
    assert [row[3] for row in before] == ["empty", None, "empty", "empty", "empty"]
    await opt_out(10)
    assert await rows() == [*before[:3], BLANK, BLANK]


async def test_it_is_about_one_chat() -> None:
    await opt_out(10)
    await record(said("在", 11, message_id="1", chat=OTHER))
    assert await rows(OTHER) == [HELLO]


async def test_lines_that_come_late_pass_through_it() -> None:
    """Between opting out and in they are not recorded, whenever they arrive; before and after
    they are."""
    await opt_out(10)
    await opt_in(20)
    await record(*(said("在", second, message_id=str(second)) for second in (9, 10, 19, 20)))
    assert await rows() == [HELLO, BLANK, BLANK, HELLO]


async def test_a_line_without_an_id_is_one_row_and_its_key_tells_nothing() -> None:
    await opt_out(10)
    for _ in range(2):
        await record(said("不记", 11), said("也不记", 11))
    assert await rows() == [BLANK] * 2
    keys = {row.dedup_key for row in await Row.all()}
    await record(said("别的话", 11, by="20001"))
    assert {row.dedup_key for row in await Row.all()} == keys


async def test_a_withdrawal_of_such_a_line_masks_it() -> None:
    await opt_out(10)
    await record(said("不记", 11, message_id="1"), Withdrawal(GROUP, "1", SHE, at(12)))
    assert [row[3] for row in await rows()] == ["withdrawn"]


async def test_the_name_is_not_learnt_from_mentions_either() -> None:
    await opt_out(10)
    mention = {"type": "at", "data": {"qq": SHE}}
    one = replace(said("", 12, by="20002", name="小鹿"), segments=[mention, text("在吗")])
    await record(said("不记", 11, name="新名字"), one)
    assert "新名字" not in repr(await rows())
    assert SHE in (await rows())[1][0]


@pytest.mark.parametrize("echo_first", [True, False])
@pytest.mark.parametrize("message_id", ["7", None])
async def test_the_answer_to_such_a_member_is_not_recorded(
    echo_first: bool, message_id: str | None
) -> None:
    """It may repeat what was asked. Both reports of it are one row, in whatever order."""
    ours = said("你问的是口令", 11, by=ME, name="小忆", source="sent", message_id=message_id)
    ours = replace(ours, skipped="opted_out", via="nianlun")
    echo = said("你问的是口令", 11, by=ME, name="小忆", source="echo", message_id="7")
    reports = [echo, ours] if echo_first else [ours, echo]
    for report in reports:
        await record(report)
    assert await rows() == [("", "小忆", "[]", "opted_out")]
    await record(echo)
    assert len(await rows()) == 1


async def test_an_export_brings_the_opt_out_along() -> None:
    ids = await chats.ensure([GROUP], NOON)
    await speakers.restore(ids[GROUP], Person(SHE, "小蓝", ("小蓝",), opted_out=True), at(10))
    assert [row.name for row in await SpeakerName.all()] == ["小蓝"]
    await record(said("在", 9, message_id="1"), said("在", 11, message_id="2"))
    assert await rows() == [HELLO, BLANK]
    assert await opt_in(20)
    assert (await Speaker.get(user_id=SHE)).opted_out_at is None


async def test_coming_back_ends_every_opt_out() -> None:
    await opt_out(10)
    ids = await chats.ensure([GROUP], NOON)
    await exclusions.begin(ids[GROUP], SHE, at(12), NOON)
    assert await opt_in(20)
    assert not await exclusions.opted_out(ids[GROUP], SHE)
    assert not await opt_in(21)


async def test_an_export_does_not_bring_names_back() -> None:
    await record(said("在", 1, message_id="1"))
    await opt_out(10)
    ids = await chats.ensure([GROUP], NOON)
    await forgetting.forget(ids[GROUP], SHE, at(15))
    for exported, names in ((12, ("旧名",)), (30, ("小蓝",))):
        await speakers.restore(
            ids[GROUP], Person(SHE, names[0], names, opted_out=False), at(exported)
        )
        await speakers.register(ids[GROUP], [(SHE, names[0], at(exported))])
        await speakers.settle_names(ids[GROUP], {SHE: (at(exported), names[0])})
    assert await SpeakerName.all().count() == 0
    assert (await Speaker.get(user_id=SHE)).name == SHE


async def test_a_file_s_line_is_the_row_that_was_emptied() -> None:
    await record(said("还没写", 1, message_id="1"))
    await opt_out(10)
    await record(said("不记", 11, message_id="2"))
    ids = await chats.ensure([GROUP], NOON)
    lines = [Line(said("还没写", 1, source="import")), Line(said("不记", 11, source="import"))]
    matching = Matching(ids[GROUP], lines, ["a", "b"], lambda index: "写了什么", {})
    await matching.run()
    assert {index: row.seq for index, row in matching.found.items()} == {0: 1, 1: 2}


@given(
    st.lists(st.integers(0, 20), max_size=8).map(sorted),
    st.one_of(st.none(), st.integers(0, 20)),
    st.integers(-1, 22),
)
def test_a_line_is_kept_exactly_outside_of_what_is_excluded(
    turns: list[int], forgotten: int | None, second: int
) -> None:
    """`turns` are the times of opting out and in by turns, as the store keeps them."""
    spans = [
        Span(at(begins), at(ends) if ends is not None else None)
        for begins, ends in zip(turns[::2], [*turns[1::2], None], strict=False)
    ]
    outs = sum(turn <= second for turn in turns[::2])
    ins = sum(turn <= second for turn in turns[1::2])
    excluded = outs > ins
    if forgotten is not None:
        spans.append(Span(None, at(forgotten)))
        excluded = excluded or second < forgotten
    line = said("话", second)
    kept = redact({(1, SHE): spans}, 1, line)
    assert (kept is not line) is excluded
    if excluded:
        assert kept == replace(line, name="", segments=[], skipped="opted_out")
    assert redact({(1, SHE): spans}, 2, line) is line
    assert redact({(1, SHE): spans}, 1, replace(line, user_id="20002")).segments
