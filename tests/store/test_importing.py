"""Importing: what an export and the store both have is one message, and nothing comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
import random
import time

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.store import chats, recording
from plugins.nonebot_plugin_nianlun.store.importing import SYSTEM, Importer, Stored
from plugins.nonebot_plugin_nianlun.store.matching import Line, words
from plugins.nonebot_plugin_nianlun.store.models import Chat, Speaker, SpeakerName
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
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

pytestmark = pytest.mark.usefixtures("database_file")


def text(said: str) -> list[Segment]:
    return [{"type": "text", "data": {"text": said}}]


def message(
    said: str,
    at: float = 0,
    by: str = "20001",
    name: str = "小鹿",
    *,
    id: str | None = None,
    reply_to_id: str | None = None,
    source: Source = "import",
    segments: list[Segment] | None = None,
    chat_name: str | None = None,
    skipped: SkipReason | None = None,
) -> Incoming:
    return Incoming(
        chat=GROUP,
        time=NOON + timedelta(seconds=at),
        user_id=by,
        name=name,
        segments=text(said) if segments is None else segments,
        source=source,
        message_id=id,
        reply_to_id=reply_to_id,
        chat_name=chat_name,
        skipped=skipped,
        via="nianlun" if source == "sent" else None,
    )


def line(said: str, at: float = 0, by: str = "20001", name: str = "小鹿", **more: object) -> Line:
    names = ("withdrawn", "nameless", "seq", "told_as")
    flags = {key: more.pop(key) for key in names if key in more}
    return Line(message(said, at, by, name, **more), **flags)  # type: ignore[arg-type]


async def importer() -> Importer:
    ids = await chats.ensure([GROUP], NOON)
    return Importer(ids[GROUP], readable, "小忆")


async def bring(*batches: Sequence[Line]) -> Stored:
    """Import a file of these batches; returns what became of all of them."""
    file, total = await importer(), Stored()
    for batch in batches:
        stored = await file.store(batch)
        total.new += stored.new
        total.known += stored.known
        total.withdrawn += stored.withdrawn
        total.empty += stored.empty
        total.taken_back += stored.taken_back
    await file.finish()
    return total


async def record(*items: Incoming | Withdrawal) -> None:
    await recording.record(items, readable, "小忆", NOON)


async def rows() -> list[Row]:
    return await Row.all().order_by("seq")


async def texts() -> list[str]:
    return [row.text for row in await rows()]


async def test_lines_keep_their_time_and_the_order_of_the_file() -> None:
    stored = await bring([line("后", 9, id="2"), line("先", 1.25, id="1")], [line("末", 20)])
    found = await rows()
    assert [(row.seq, row.text, row.source) for row in found] == [
        (1, "后", "import"),
        (2, "先", "import"),
        (3, "末", "import"),
    ]
    assert found[1].time == NOON + timedelta(seconds=1.25)
    assert (stored.new, stored.known) == (3, 0)
    assert (await Chat.get(peer_id="123")).last_seq == 3


async def test_the_same_file_again_adds_nothing() -> None:
    file = [line("甲", 1, id="1"), line("乙", 2), line("乙", 2), line("乙", 2, by="20002")]
    await bring(file)
    stored = await bring(file)
    assert (stored.new, stored.known) == (0, 4)
    assert await texts() == ["甲", "乙", "乙", "乙"]


async def test_equal_lines_without_ids_are_counted_over_the_whole_file() -> None:
    file = [[line("哈", 1), line("哈", 1)], [line("哈", 1), line("呵", 1)]]
    await bring(*file)
    assert (await bring(*file)).new == 0
    assert await texts() == ["哈", "哈", "哈", "呵"]


async def test_an_id_twice_in_the_file_is_one_message() -> None:
    stored = await bring([line("甲", id="1"), line("甲", id="1")], [line("甲", id="1")])
    assert (stored.new, stored.known) == (1, 2)


@pytest.mark.parametrize("file_id", [None, "7520000000000000001"])
async def test_what_the_bot_heard_is_known_whatever_the_export_calls_it(
    file_id: str | None,
) -> None:
    picture = [*text("看 这个"), {"type": "image", "data": {"file": "a.jpg"}}]
    await record(message("", id="-5", source="event", segments=picture))
    stored = await bring([line("看  这个[图片:8D5F.jpg]", 0.4, id=file_id)])
    assert (stored.new, stored.known) == (0, 1)


async def test_other_words_speakers_and_seconds_are_other_messages() -> None:
    await record(message("好", id="-5", source="event"))
    stored = await bring([line("好", 1), line("好的"), line("好", by="20002")])
    assert stored.new == 3


async def test_both_sides_are_multisets() -> None:
    await record(message("哈", id="-5", source="event"), message("哈", id="-6", source="event"))
    stored = await bring([line("哈", id=str(number)) for number in range(5)])
    assert (stored.new, stored.known) == (3, 2)
    assert (await bring([line("哈") for _ in range(7)])).new == 2


async def test_a_line_with_only_a_name_is_the_message_of_whoever_has_it() -> None:
    await record(message("在吗", id="-5", source="event", name="鹿老师"))
    same = line("在吗", by="name:鹿老师", name=" 鹿老师 ", nameless=True)
    other = line("在吗", by="name:阿澈", name="阿澈", nameless=True)
    stored = await bring([same, other])
    assert (stored.new, stored.known) == (1, 1)


async def speakers_of() -> list[str]:
    return [row.user_id for row in await rows()]


async def test_who_is_the_bot_may_be_said_later_and_need_not_be_said_again() -> None:
    file = [line("在吗", id="1"), line("在的", 5, "20009", "小忆", id="2"), line("在的", 5)]
    await bring(file)
    declared = line("在的", 5, ME, "小忆", id="2", told_as="20009")
    for again in (declared, file[1], declared):
        stored = await bring([file[0], again, file[2]])
        assert (stored.new, stored.known) == (0, 3)
        assert await speakers_of() == ["20001", ME, "20001"]
    known = await Speaker.all().order_by("user_id").values_list("user_id", flat=True)
    assert known == ["20001", ME]
    assert await SpeakerName.filter(user_id="20009").count() == 0


async def test_a_number_that_is_told_later_takes_the_place_of_the_name() -> None:
    named = line("在吗", by="name:鹿老师", name="鹿老师", nameless=True, told_as="name:鹿老师")
    await bring([named, named._replace(message=message("早", 9, "name:鹿老师", "鹿老师"))])
    stored = await bring([line("在吗", by="20001", name="鹿老师", id="75")])
    assert (stored.new, stored.known) == (0, 1)
    assert await speakers_of() == ["20001", "name:鹿老师"]
    assert await Speaker.filter(user_id="name:鹿老师").count() == 1, "they still say something"
    assert (await bring([named])).new == 0
    assert await speakers_of() == ["20001", "name:鹿老师"]


@pytest.mark.parametrize("nameless_first", [True, False])
async def test_between_two_people_names_need_not_agree(nameless_first: bool) -> None:
    chat = ChatKey("10001", "private", "456")

    def said(who: str, name: str, words: str, at: float) -> Line:
        told = message(words, at, who, name)
        nameless = who.startswith("name:")
        return Line(replace(told, chat=chat), nameless=nameless, told_as=who)

    by_name = [said("name:备注", "备注", "嗯", 0), said("name:小忆", "小忆", "嗯", 0)]
    by_number = [said("456", "昵称", "嗯", 0), said(ME, "小忆", "嗯", 0)]
    ids = await chats.ensure([chat], NOON)
    for lines in (by_name, by_number) if nameless_first else (by_number, by_name):
        file = Importer(ids[chat], readable, "小忆")
        await file.store(lines)
        await file.finish()
    assert await speakers_of() == ["456", ME]


async def test_withdrawn_words_do_not_come_back_under_another_name() -> None:
    chat = ChatKey("10001", "private", "456")
    await record(replace(message("hunter2", by="456", id="-5", source="event"), chat=chat))
    await record(Withdrawal(chat, "-5", "456", NOON + timedelta(seconds=9)))
    told = replace(message("hunter2", by="name:备注", name="备注"), chat=chat)
    ids = await chats.ensure([chat], NOON)
    stored = await Importer(ids[chat], readable, "小忆").store([Line(told, nameless=True)])
    assert (stored.new, stored.taken_back) == (0, [1])


async def test_a_second_with_very_many_lines_takes_no_time() -> None:
    count = 4000
    await bring([line(f"{number}", id=f"a{number}") for number in range(count)])
    began = time.process_time()
    stored = await bring([line(f"{number}", id=f"b{number}") for number in range(count)])
    assert (stored.new, stored.known) == (0, count)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("skew", [-90, 0, 2])
async def test_our_own_line_is_known_though_its_time_is_of_our_clock(skew: int) -> None:
    await record(message("好的", 0.7, by=ME, source="sent"))
    stored = await bring([line("好的", skew, by=ME, id="75")])
    assert (stored.new, stored.known) == (0, 1)
    assert (await bring([line("好的", 7200, by=ME, id="76")])).new == 1


async def test_own_lines_that_are_equal_find_each_its_own() -> None:
    await record(*(message("好的", at, by=ME, source="sent") for at in (0, 30, 60)))
    stored = await bring([line("好的", at + 1, by=ME, id=str(at)) for at in (0, 30, 60, 90)])
    assert (stored.new, stored.known) == (1, 3)


@pytest.mark.parametrize("known", ["sent", "echo"])
@pytest.mark.parametrize("source", ["sent", "echo"])
async def test_own_lines_of_two_platform_ids_are_two_within_a_second(
    source: Source, known: Source
) -> None:
    """Wherever the first is: heard here, or in another file; the words alone tell of others."""
    await record(message("好的", 0.2, by=ME, id="-5", source=known))
    assert (await bring([line("好的", 0.6, by=ME, id="-6", source=source)])).new == 1
    assert (await bring([line("好的", by=ME, id="-7", source=source)])).new == 1
    for ids in (["-5", "-6", "-7"], ["-7", "-6", "-5"]):
        file = [line("好的", 0.9, by=ME, id=id, source=source) for id in ids]
        assert (await bring(file)).new == 0
    for ids in (["752001", "752002", "752003"], ["9", "8", "7"], [None] * 3):
        file = [line("好的", by=ME, id=id) for id in ids]
        assert (await bring(file)).new == 0
    assert await Row.filter().count() == 3


async def test_two_ids_of_a_second_in_one_file_are_two_messages() -> None:
    file = [line("好的", by=ME, id="752001"), line("好的", by=ME, id="752002")]
    assert (await bring(file)).new == 2
    # Again, in two parts, by another exporter, and by one that gives no ids.
    for again in ([file], [file[:1], file[1:]]):
        assert (await bring(*again)).new == 0
    for ids in (["a", "b"], [None, None]):
        assert (await bring([line("好的", by=ME, id=id) for id in ids])).new == 0


@pytest.mark.parametrize("source", ["sent", "echo"])
async def test_own_lines_of_two_platform_ids_are_two(source: Source) -> None:
    await record(message("只有管理员可以用", 3, by=ME, id="-5", source="sent"))
    file = [line("只有管理员可以用", at, by=ME, id=id, source=source) for at, id in FROM_ELSEWHERE]
    assert (await bring(file)).new == 2
    # One that came without an id, or under an export's own number, is still the one nearby.
    for more in ({}, {"id": "-5", "source": source}, {"id": "7520000000000000001"}):
        assert (await bring([line("只有管理员可以用", 4, by=ME, **more)])).new == 0
    assert (await bring(file)).new == 0


FROM_ELSEWHERE = [(0, "-6"), (5, "-7")]


async def test_withdrawn_words_do_not_come_back() -> None:
    await record(message("hunter2", id="-5", source="event"))
    await record(Withdrawal(GROUP, "-5", "20001", NOON + timedelta(seconds=9)))
    for file_id in ("-5", "7520000000000000001", None):
        stored = await bring([line("hunter2", id=file_id), line("别的", 1)])
        assert stored.taken_back == [1]
    assert await texts() == ["", "别的"]


async def test_a_masked_message_swallows_one_line_only() -> None:
    await record(
        message("hunter2", id="-5", source="event"), message("在", id="-6", source="event")
    )
    await record(Withdrawal(GROUP, "-5", "20001", NOON + timedelta(seconds=9)))
    stored = await bring([line("hunter2"), line("在"), line("真的在")])
    assert (stored.new, stored.known) == (1, 2)
    assert await texts() == ["", "在", "真的在"]


async def test_a_withdrawal_that_is_known_masks_the_line() -> None:
    await record(Withdrawal(GROUP, "5", "20001", NOON + timedelta(seconds=9)))
    stored = await bring([line("hunter2", id="5")])
    (row,) = await rows()
    assert (row.text, row.segments, row.skipped) == ("", "[]", "withdrawn")
    assert (stored.withdrawn, stored.taken_back) == (1, [1])


async def test_a_line_that_the_file_calls_withdrawn_is_masked_on_both_sides() -> None:
    await record(message("hunter2", id="5", source="event"))
    await bring([line("hunter2", id="5", withdrawn=True), line("秘密", 1, id="6", withdrawn=True)])
    assert [(row.text, row.skipped) for row in await rows()] == [("", "withdrawn")] * 2
    assert (await bring([line("秘密", 1)])).new == 0


async def test_an_old_name_does_not_come_back_and_a_newer_one_is_shown() -> None:
    await record(message("一", 100, id="-1", source="event", name="鹿老师"))
    await record(message("二", 900, id="-2", source="event", name="鹿老师"))
    await bring([line("旧", 0, name="小鹿"), line("中", 500, name="鹿鹿")])
    assert (await Speaker.get(user_id="20001")).name == "鹿老师"
    names = await SpeakerName.filter(user_id="20001").values_list("name", flat=True)
    assert set(names) == {"小鹿", "鹿鹿", "鹿老师"}
    await bring([line("新", 2000, name="鹿")])
    assert (await Speaker.get(user_id="20001")).name == "鹿"


async def test_nobody_says_system_lines() -> None:
    join = line("阿澈 加入了群", by=SYSTEM, name="系统消息", skipped="empty")
    stored = await bring([join, line(" \u200b", 1)])
    assert [(row.user_id, row.skipped) for row in await rows()] == [
        (SYSTEM, "empty"),
        ("20001", "empty"),
    ]
    assert stored.empty == 1
    assert await Speaker.all().values_list("user_id", flat=True) == ["20001"]


async def test_replies_find_what_they_answer_in_the_file_and_in_the_store() -> None:
    await record(message("原话", id="-5", source="event"))
    await bring(
        [line("原话", id="75"), line("答", 1, id="76", reply_to_id="75")],
        [line("再答", 2, id="77", reply_to_id="76"), line("？", 3, reply_to_id="404")],
    )
    found = await rows()
    assert [row.reply_to for row in found] == [None, 1, 2, None]
    assert found[3].reply_to_id == "404"


async def test_the_chat_gets_the_name_of_the_file_only_when_it_has_none() -> None:
    await bring([line("甲", chat_name="摸鱼研究所")])
    assert (await Chat.get(peer_id="123")).name == "摸鱼研究所"
    await bring([line("乙", chat_name="旧名字")])
    assert (await Chat.get(peer_id="123")).name == "摸鱼研究所"


async def test_mentions_are_read_with_the_names_of_the_chat() -> None:
    at = [{"type": "at", "data": {"qq": "20002"}}, {"type": "at", "data": {"qq": "10001"}}]
    await bring([line("我来了", by="20002", name="阿澈"), line("", 1, segments=at)])
    assert (await texts())[1].split() == ["@阿澈", "@小忆"]


async def test_the_bot_may_record_meanwhile() -> None:
    file = await importer()
    for number in range(5):
        await file.store([line(f"旧 {number}", number, id=f"7{number}")])
        await record(message(f"新 {number}", 9000 + number, id=f"-{number}", source="event"))
    found = await rows()
    assert [row.seq for row in found] == list(range(1, 11))
    assert (await Chat.get(peer_id="123")).last_seq == 10
    assert (
        await bring([line(f"旧 {number}", number, id=f"7{number}") for number in range(5)])
    ).new == 0


@pytest.mark.parametrize("seed", range(6))
async def test_interrupted_anywhere_and_begun_again_it_ends_the_same(seed: int) -> None:
    dice = random.Random(seed)
    for number in range(20):
        said = message(dice.choice("好哈？"), dice.randint(0, 9), id=f"-{number}", source="event")
        await record(said)
    await record(Withdrawal(GROUP, "-3", None, NOON + timedelta(seconds=9)))
    before = await rows()
    batches: list[list[Line]] = []
    for second in range(10):
        batch = [
            line(
                dice.choice("好哈？"),
                second,
                dice.choice(["20001", "20002"]),
                dice.choice(["小鹿", "鹿老师"]),
                id=dice.choice([None, str(second * 10 + number)]),
            )
            for number in range(dice.randint(1, 6))
        ]
        batches.append(batch)
    await bring(*batches)
    whole = [(row.seq, row.dedup_key, row.text, row.name) for row in await rows()]
    name = (await Speaker.get(user_id="20001")).name
    for cut in range(1, 10, 3):
        await Row.filter(seq__gt=len(before)).delete()
        await Chat.all().update(last_seq=len(before))
        file = await importer()
        for batch in batches[:cut]:
            await file.store(batch)
        await bring(*batches)
        assert [(row.seq, row.dedup_key, row.text, row.name) for row in await rows()] == whole
        assert (await Speaker.get(user_id="20001")).name == name


async def test_words_are_compared_without_what_formats_write_differently() -> None:
    assert words("看 [图片]") == words(" 看\u3000[图片:8D5F.jpg]\n")
    assert words("看[图片]") != words("看 [图片]")
    assert words("[图片][图片]") != words("[图片]")
