"""What people write in place of a writer: as it is typed, and that it stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import NoteRejected
from plugins.nonebot_plugin_nianlun.llm.offline_rollup import describe_task
from plugins.nonebot_plugin_nianlun.memory.asking import rollup_request
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.edits import (
    checked_edit,
    edit_of,
    keeps_edit,
    news,
    typed_key_marks,
)
from plugins.nonebot_plugin_nianlun.memory.keymarks import (
    find_key_messages,
    show_key_marks,
    strip_key_marks,
)
from plugins.nonebot_plugin_nianlun.memory.submissions import TooLong, read_memories
from plugins.nonebot_plugin_nianlun.types import Activity, Memory, RollupTask

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
AT = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
EDIT = "小鹿不爱吃草莓。（关键消息：[1]）"
SOURCE = Activity(2, "2026-11-29", "他们约了周末。", (7,), "window", AT, "model", AT)
TARGET = Memory("day", "2026-11-29", EDIT, (1,), ("1",), 3, "20002", AT)
TASK = RollupTask("day", "2026-11-29", (SOURCE,), TARGET, rebuild=False, closes=True)


def answer(text: str) -> dict[str, object]:
    action = {"action": "update_memory", "task_id": 1, "kind": "day", "date": "2026-11-29"}
    return {"actions": [{**action, "memory": text}]}


def test_references_are_typed_as_they_are_shown() -> None:
    assert typed_key_marks("爬山。（#12 #15）") == "爬山。（关键消息：[12,15]）"
    assert typed_key_marks("爬山。（#12、＃15）") == "爬山。（关键消息：[12,15]）"
    assert typed_key_marks("爬山(关键消息：[3])") == "爬山（关键消息：[3]）"
    assert typed_key_marks("第（一）条 #12") == "第（一）条 #12"


@given(st.lists(st.integers(1, 10**15), min_size=1, max_size=10, unique=True))
def test_what_is_shown_and_typed_again_is_the_same(ids: list[int]) -> None:
    stored = f"一句。（关键消息：[{','.join(map(str, ids))}]）"
    assert typed_key_marks(show_key_marks(stored)) == stored


@given(st.text(max_size=200))
def test_any_text_is_accepted_or_refused_in_a_sentence(text: str) -> None:
    try:
        clean, keys = checked_edit("day", text, {1, 2})
    except NoteRejected as error:
        told = str(error)
    else:
        told = ""
        assert set(keys) <= {1, 2}
        assert checked_edit("day", clean, {1, 2}) == (clean, keys)
    assert not told or told.endswith("。")


def test_a_text_that_is_too_long_is_told_by_how_much() -> None:
    with pytest.raises(NoteRejected, match=r"正文有 501 字，上限是 500 字"):
        checked_edit("day", "字" * 501, ())
    assert checked_edit("day", "字" * 500, ()) == ("字" * 500, ())


def test_only_messages_that_it_may_cite() -> None:
    with pytest.raises(NoteRejected, match=r"#9"):
        checked_edit("day", "爬山。（#1 #9）", {1})
    assert checked_edit("day", "爬山。（#1）", {1}) == ("爬山。（关键消息：[1]）", (1,))


def test_a_model_has_to_keep_what_a_person_wrote() -> None:
    kept = EDIT + "他们约了周末。（关键消息：[7]）"
    [note] = read_memories(answer(kept), [TASK])
    assert (note.text, note.key_messages) == (kept, (1, 7))
    for lost in ("小鹿爱吃草莓，他们约了周末。", "小鹿不爱吃草莓，他们约了周末。（关键消息：[1]）"):
        with pytest.raises(NoteRejected, match="人改定的"):
            read_memories(answer(lost), [TASK])
    [anew] = read_memories(answer("他们约了周末。"), [replace(TASK, rebuild=True)])
    assert anew.text == "他们约了周末。"


@pytest.mark.parametrize(
    ("edit", "more", "text"),
    [
        ("小鹿爱吃草莓", "他们约了周末。", "小鹿爱吃草莓\n他们约了周末。"),
        ("爬山（关键消息：[1]）", "他们约了周末。", "爬山（关键消息：[1]）\n他们约了周末。"),
        ("爬山", "（关键消息：[7]）他们约了周末。", "爬山\n（关键消息：[7]）他们约了周末。"),
        ("泰山（关键消息：[1]），", "他们约了周末。", "泰山（关键消息：[1]），\n他们约了周末。"),
        ("今天的事：", "他们约了周末。", "今天的事：\n他们约了周末。"),
        ("小鹿爱吃草莓！", "他们约了周末。", "小鹿爱吃草莓！他们约了周末。"),
        ("她说“爱吃草莓。”", "他们约了周末。", "她说“爱吃草莓。”他们约了周末。"),
        ("小鹿爱吃草莓", "，他们约了周末。", "小鹿爱吃草莓，他们约了周末。"),
        ("小鹿爱吃草莓", "\n他们约了周末。", "小鹿爱吃草莓\n他们约了周末。"),
        ("小鹿爱吃草莓", "", "小鹿爱吃草莓"),
        ("小鹿爱吃草莓", "（关键消息：[7]）", "小鹿爱吃草莓（关键消息：[7]）"),
    ],
)
def test_what_a_model_adds_does_not_run_on_in_a_persons_words(
    edit: str, more: str, text: str
) -> None:
    task = replace(TASK, target=replace(TARGET, text=edit, key_messages=find_key_messages(edit)))
    [note] = read_memories(answer(edit + more), [task])
    assert note.text == text


def test_a_cut_never_takes_a_persons_words() -> None:
    words = "字" * 400 + "。" + "字" * 99 + "，"  # a cut prefers the end of a sentence
    task = replace(TASK, target=replace(TARGET, text=words, key_messages=()))
    with pytest.raises(TooLong) as caught:
        read_memories(answer(words + "又添了几句。"), [task])
    [note] = caught.value.shortened
    assert note.text == words


def test_the_model_is_told_which_texts_stay() -> None:
    assert "2026-11-29 的 target.memory 是人改定的" in rollup_request([TASK])
    assert "人改定的" not in rollup_request([replace(TASK, rebuild=True)])
    assert "人改定的" not in rollup_request([replace(TASK, target=replace(TARGET, writer="model"))])


def test_what_nobody_edited_need_not_stay() -> None:
    for task in (replace(TASK, target=None), replace(TASK, rebuild=True)):
        assert edit_of(task) == ""
        assert keeps_edit(task, "")


def test_of_what_changed_below_only_the_news_is_added() -> None:
    held = "他们爬山。（关键消息：[1]）天很冷。"
    retold = replace(
        SOURCE, text="他们去爬了山。（关键消息：[1]）天很冷。他们约了周末。", key_messages=(1,)
    )
    assert news(retold, [held], "") == replace(retold, text="他们约了周末。", key_messages=())
    corrected = replace(retold, writer="20002", text="他们没爬山。（关键消息：[1]）天很冷。")
    found = news(corrected, [held], "")
    assert found is not None
    assert (found.text, found.key_messages) == ("他们没爬山。（关键消息：[1]）", (1,))
    assert news(corrected, [held], "听说他们没爬山。") is None
    assert news(corrected, [], "") == corrected
    assert news(replace(SOURCE, text=held, key_messages=(1,)), [held], "") is None


def test_the_same_words_of_another_message_are_news() -> None:
    pay = "阿澈说「今天发工资了」（关键消息：[16]）"
    october = replace(TARGET, kind="month", period="2026-10", text=pay, key_messages=(16,))
    september = "九月，阿澈说「今天发工资了」（关键消息：[1]）"
    assert news(october, ["别的。（关键消息：[16]）"], september) == october
    assert news(october, ["阿澈说「今天发工资了」。（关键消息：[1]）"], "") == october
    assert news(october, [], september.replace("[1]", "[1,16]")) is None
    assert news(october, [], strip_key_marks(september)) is None
    year = replace(TARGET, kind="year", period="2026", text=september, key_messages=(1,))
    task = RollupTask("year", "2026", (october,), year, rebuild=False, closes=False)
    at_first = describe_task(task, "群里", CALENDAR)
    assert at_first.key_messages == (1, 16)
    assert at_first.text.startswith(f"{september}\n")
    assert at_first.text.count("今天发工资了") == 2
    again = replace(task, target=replace(year, text=at_first.text, key_messages=(1, 16)))
    assert describe_task(again, "群里", CALENDAR).text == at_first.text


def test_what_is_added_cites_what_it_rests_on_and_no_more() -> None:
    said = "大家聊豆包。小鹿说「一起看海」，老板娘问「猫叫什么」。川子说「我考过了！太开心了」。"
    source = replace(SOURCE, text=f"{said}散了。（关键消息：[1,2,5]）", key_messages=(1, 2, 5))
    restored = replace(source, writer="20002")
    found = news(restored, ["短"], "小鹿说起看海。（关键消息：[1]）")
    assert found is not None
    marked = (
        "大家聊豆包。小鹿说「一起看海」，老板娘问「猫叫什么」。（关键消息：[1,2]）"
        "川子说「我考过了！太开心了」。散了。（关键消息：[5]）"
    )
    assert (found.text, found.key_messages) == (marked, (1, 2, 5))
    some = news(restored, ["小鹿说「一起看海」，老板娘问「猫叫什么」。大家聊豆包。散了"], "")
    assert some is not None
    assert some.text == "川子说「我考过了！太开心了」。（关键消息：[5]）"
    retold = news(source, ["别的。（关键消息：[1,2]）"], "")
    assert retold is not None
    assert retold.text == "大家聊豆包。川子说「我考过了！太开心了」。散了。（关键消息：[5]）"
    talk = "他们聊天。川子说「好」。（关键消息：[1,2]）"
    unshared = replace(restored, text=talk, key_messages=(1, 2))
    kept = news(unshared, ["短"], "")
    assert kept is not None
    assert kept.text == talk
    lead = news(restored, [said.removeprefix("大家聊豆包。")], "散了")
    assert lead is not None
    assert lead.text == "大家聊豆包。（关键消息：[1,2,5]）"


@given(st.text(max_size=80), st.text(max_size=80))
def test_what_was_said_is_never_news(now: str, held: str) -> None:
    source = replace(SOURCE, text=now, key_messages=())
    assert news(source, [now], held) is None
    assert news(source, [held], now) is None
    assert (found := news(source, [held], "")) is None or len(found.text) <= len(now) + 20
