"""The writing rules of notes."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import NoteRejected
from plugins.nonebot_plugin_nianlun.memory.keymarks import key_mark
from plugins.nonebot_plugin_nianlun.memory.notes import check_note
from plugins.nonebot_plugin_nianlun.memory.units import count_units
from plugins.nonebot_plugin_nianlun.types import KEY_MESSAGE_LIMITS, UNIT_LIMITS, NoteKind

GOOD = "上午九点左右，小明在群里问我是不是机器人，我才不承认呢。"
KINDS = st.sampled_from(sorted(UNIT_LIMITS))


def complaint(text: str, kind: NoteKind = "day", shown: tuple[int, ...] = ()) -> str:
    with pytest.raises(NoteRejected) as caught:
        check_note(kind, text, shown)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize(
    "wrapped",
    [
        GOOD,
        f"  \n{GOOD}\n",
        f"```\n{GOOD}\n```",
        f"```text\n{GOOD}\n```",
        f"“{GOOD}”",
        f'"{GOOD}"',
        f"「{GOOD}」",
        f"```\n“{GOOD}”\n```",
        f"{GOOD}\x00\ud800",
    ],
)
def test_wrapping_is_taken_off(wrapped: str) -> None:
    assert check_note("activity", wrapped, ()) == (GOOD, ())


def test_quotes_inside_a_text_stay() -> None:
    text = "“早”小明说，我回了一句“早”"
    assert check_note("activity", text, ()) == (text, ())


@pytest.mark.parametrize("filler", ["！", "…", "🙂", "~", " ，"])
def test_what_counts_as_no_unit_cannot_make_a_note_endless(filler: str) -> None:
    assert "太多" in complaint("我很高兴" + filler * 30_000, "activity")


def test_line_breaks_become_plain_ones() -> None:
    assert check_note("day", "早上好。\r\n晚上\u2028也好。", ())[0] == "早上好。\n晚上\n也好。"


def test_references_are_stored_in_one_form() -> None:
    clean, ids = check_note(
        "day", "早(关键消息: #3、1)晚（关键消息：[3,2])安（关键消息：[]）", {1, 2, 3}
    )
    assert clean == "早（关键消息：[3,1]）晚（关键消息：[3,2]）安"
    assert ids == (3, 1, 2)


@pytest.mark.parametrize("text", ["", " \n", "……", "“”", "😀", "（关键消息：[1]）", "```\n\n```"])
def test_nothing_is_not_a_note(text: str) -> None:
    assert "空的" in complaint(text, shown=(1,))


@pytest.mark.parametrize(
    "text",
    [
        "<think>他们在聊天</think>今天很热闹。",
        "</think>今天很热闹。",
        "<thought>今天很热闹。",
        "今天很热闹。<|im_end|>",
    ],
)
def test_remnants_of_thinking(text: str) -> None:
    assert "思考" in complaint(text)


@pytest.mark.parametrize(
    "text",
    [
        "Error code: 401 - {'error': 'invalid key'}",
        "请求失败: 401",
        "请求失败：429，请稍后再试",
        "<!DOCTYPE html><html><head><title>502</title></head></html>",
        "upstream said <html>no</html>",
        "502 Bad Gateway",
        "openai.APIConnectionError: Connection error.",
        "HTTP/1.1 503 Service Unavailable",
    ],
)
def test_error_messages(text: str) -> None:
    assert "报错" in complaint(text)


@pytest.mark.parametrize("text", ['{"action":"decline"}', '[{"memory":"今天很好"}]', '["今天"]'])
def test_json(text: str) -> None:
    assert "JSON" in complaint(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("## 今天\n很热闹。", "标题"),
        ("很热闹。\n# 晚上\n也热闹。", "标题"),
        ("- 早上聊天\n- 晚上聊天", "列表"),
        ("1. 早上聊天", "列表"),
        ("1、早上聊天", "列表"),
        ("（1）早上聊天", "列表"),
        ("很热闹。\n* 晚上聊天", "列表"),
        ("一、早上聊天\n二、晚上聊天", "列表"),
        ("今天写了代码：\n```\nprint()\n```", "代码块"),
    ],
)
def test_markdown(text: str, what: str) -> None:
    assert what in complaint(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-29：今天很热闹。",
        "2026-11-29\n今天很热闹。",
        "2026-11-29 今天很热闹。",
        "[2026-11-29 10:32] 今天很热闹。",
        "2026年11月29日 周日 晴\n今天很热闹。",
        "11月29日（周日）：今天很热闹。",
        "2026-11：这个月很热闹。",
        "2026年：这一年很热闹。",
        "（关键消息：[1]）2026-11-29：今天很热闹。",
    ],
)
def test_a_date_in_front(text: str) -> None:
    assert "日期" in complaint(text, shown=(1,))


@pytest.mark.parametrize(
    "text",
    ["日记\n今天很热闹。", "今日总结：很热闹。", "【日记】\n很热闹。", "《热闹的一天》\n很热闹。"],
)
def test_a_title_in_front(text: str) -> None:
    assert "标题" in complaint(text)


def test_a_preamble() -> None:
    assert "说明" in complaint("好的，以下是整理好的日记：今天很热闹。")


@pytest.mark.parametrize(
    "text",
    [
        "owner：今天很热闹",
        "今天owner夸了我。",
        "今天 owner 夸了我。",
        "other 在群里说早安。",
        "我是self，今天很好。",
        "Self: 今天很好",
        "self",
    ],
)
def test_identity_labels(text: str) -> None:
    assert "身份标签" in complaint(text)


@pytest.mark.parametrize(
    "text",
    [
        "我用 update_short_term_memory 记下了今天。",
        "我先 get_tasks 再写。",
        "完成了 task_id 1。",
        'speaker="me" 今天很热闹。',
    ],
)
def test_system_words(text: str) -> None:
    assert "系统用语" in complaint(text)


@pytest.mark.parametrize(
    "text",
    [
        "小明唱了一句“be myself”，小红接“each other”。",
        "小明说 the other day 的事，还提到 self-care 和 brother。",
        "小红问代码里的 self.name 是什么，我说“self”就是自己。",
        "昨晚服务器又 502 Bad Gateway 了，小明很生气。",
        "2026年我认识了小明。",
        "11月29日，小明生日。",
        "3.14是小明的生日，2、3个人一起去。",
        "12点以后大家还在聊#12号楼。",
        "#摸鱼# 是今天的话题。",
        "日记里要写的事很多。",
        "他说：[图片]很好看[表情]",
        "小明说 ValueError: 又来了。",
        "第一段。\n\n第二段。",
    ],
)
def test_ordinary_words_pass(text: str) -> None:
    assert check_note("day", text, ()) == (text, ())


@pytest.mark.parametrize(
    "text", ["好（关键消息：[a]）", "好。关键消息：[1]", "好（关键消息：[-1]）"]
)
def test_a_reference_in_no_known_form(text: str) -> None:
    assert "写法" in complaint(text, shown=(1,))


def test_only_what_was_shown_may_be_cited() -> None:
    told = complaint("好（关键消息：[1,7,99]）", shown=(1,))
    assert "#7、#99" in told
    assert "#1、" not in told
    many = ",".join(map(str, range(1, 500)))
    assert len(complaint(f"好（关键消息：[{many}]）")) < 150
    assert len(complaint(f"好（关键消息：[{'9' * 9000}]）")) < 150


@given(KINDS, st.integers(min_value=1, max_value=40))
def test_the_number_of_references(kind: NoteKind, count: int) -> None:
    ids = range(1, count + 1)
    text = "好" + key_mark(ids)
    if count <= KEY_MESSAGE_LIMITS[kind]:
        assert check_note(kind, text, ids) == (text, tuple(ids))
    else:
        told = complaint(text, kind, tuple(ids))
        assert f"{count} 条" in told
        assert f"{KEY_MESSAGE_LIMITS[kind]} 条" in told


@given(KINDS, st.integers(min_value=-2, max_value=2))
def test_the_length(kind: NoteKind, over: int) -> None:
    limit = UNIT_LIMITS[kind]
    text = "好" * (limit + over) + "（关键消息：[1]）"
    if over <= 0:
        assert check_note(kind, text, (1,)) == (text, (1,))
    else:
        told = complaint(text, kind, (1,))
        assert f"{limit + over} 字" in told
        assert f"{limit} 字" in told


@given(
    KINDS,
    st.lists(
        st.sampled_from(
            ["今天", "。", "\n", "（关键消息：[1]）", "(关键消息:[2,9])", "“", "”", "```", "#"]
        )
        | st.text(st.characters(codec=None), max_size=5),
        max_size=20,
    ).map("".join),
)
def test_what_passes_keeps_every_promise(kind: NoteKind, text: str) -> None:
    try:
        clean, ids = check_note(kind, text, {1, 2})
    except NoteRejected:
        return
    assert clean == clean.strip()
    assert 0 < count_units(clean) <= UNIT_LIMITS[kind]
    assert len(ids) <= KEY_MESSAGE_LIMITS[kind]
    assert set(ids) <= {1, 2}
    clean.encode()
    assert check_note(kind, clean, {1, 2}) == (clean, ids)


@pytest.mark.parametrize(
    "text",
    [
        "```" + " " * 100_000 + "x",
        "2026" + " " * 100_000 + "x",
        "（关键" * 30_000,
        "[" + " " * 100_000,
    ],
)
def test_hostile_text_is_refused_in_time(text: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(NoteRejected):
        check_note("day", text + "好" * 600, ())
    assert time.perf_counter() - begun < 1
