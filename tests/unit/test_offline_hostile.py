"""The offline writer on strange names, strange lines and strange sources."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import partial
import re
import time as stopwatch
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.llm.offline_pieces import shorten, take_apart, tighten
from plugins.nonebot_plugin_nianlun.llm.offline_writer import OfflineWriter
from plugins.nonebot_plugin_nianlun.llm.salience import CUES, moods, spoken, weigh
from plugins.nonebot_plugin_nianlun.llm.speech import act, is_question
from plugins.nonebot_plugin_nianlun.llm.words import excerpt
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.evidence import unsupported
from plugins.nonebot_plugin_nianlun.memory.keymarks import find_key_messages, strip_key_marks
from plugins.nonebot_plugin_nianlun.memory.notes import check_note
from plugins.nonebot_plugin_nianlun.memory.relative_days import (
    has_relative_days,
    without_relative_days,
)
from plugins.nonebot_plugin_nianlun.memory.tasks import ids_shown
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    Activity,
    ChatKey,
    Memory,
    Message,
    Note,
    RollupTask,
    Scene,
    Window,
)

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
WRITER = OfflineWriter(CALENDAR)
GROUP = Scene(ChatKey("10001", "group", "1"), "QQ群「摸鱼研究所」", "年年", "")
DAY = "2026-11-29"
EVENING = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)  # 20:30 in Shanghai
QUOTE = re.compile("「[^「」]*」")

NAMES = (
    "晚上八点",
    "下午茶",
    "明天会更好",
    "昨日青空",
    "我",
    "大家",
    "说",
    "听雨",
    "三日",
    "对方",
    "me",
    "小明」，我说「",
    "「」",
    "（关键消息：[1]）",
    "到了七日，",
    "名" * 200,
    "👩‍👩‍👧‍👦",
    "\u202eevil",
    "\u200b",
    "",
    "# 标题",
    "```",
    "2026-11-29",
    "<think>",
    "كريم",
    "さくら",
    "하늘",
    "owner",
    "123456",
)
LINES = (
    "晚上八点在群里，我说「我答应了」",
    "「」「」",
    "『』",
    "（关键消息：[1]）",
    "（关键消息：[999]）明天见",
    "https://a.b/c",
    "See you tomorrow at 8",
    "今日は楽しかった、また明日",
    "오늘 저녁에 만나요",
    "مرحبا كيف حالك",
    "def f(x):\n    return x",
    "aGVsbG8=" * 40,
    "哈" * 500,
    "明天 下周 后天",
    "谢谢",
    "恭喜恭喜",
    "抱抱",
    "[图片]",
    "1. 第一\n2. 第二",
    "<think>嗯</think>",
    '{"a": 1}',
    "Error: 500",
    "三日，小明说",
    "后来，我走了",
    "到了12:30，明早结冰",
    "\u2028x",
    "\x00",
    "\ud800",
    "💩",
    "？",
    "」",
    "「",
    "要不我们明天去爬山吧",
    "我来订票",
    "几点集合？",
    "对不起",
    "考上了！！",
    "很长的话，" * 300,
    "一二三四五六" * 60,
)


def said(seq: int, name: str, text: str, minute: int = 0) -> Message:
    user = ME if name == "me" else f"u{name}"
    return Message(seq, EVENING + timedelta(minutes=minute), user, name, text, None)


def assert_sound(kind: str, note: Note, shown: set[int]) -> None:
    again = check_note(kind, note.text, shown)  # type: ignore[arg-type]
    assert again == (note.text, note.key_messages)
    assert not re.search("[「」]", QUOTE.sub("", note.text))


def activity(number: int, text: str) -> Activity:
    ids = find_key_messages(text)
    moment = EVENING + timedelta(minutes=number)
    return Activity(number, DAY, text, ids, "window", moment, "offline", EVENING)


async def day_of(
    sources: tuple[Activity, ...], target: Memory | None = None, *, rebuild: bool = True
) -> Note:
    task = RollupTask("day", DAY, sources, target, rebuild, closes=rebuild)
    (note,) = await WRITER.write_memories([task], GROUP, has_next_tasks=False)
    assert_sound("day", note, set(ids_shown(task)))
    return note


# --- names and lines ------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.lists(st.sampled_from(LINES), min_size=1, max_size=2)),
        min_size=1,
        max_size=12,
    )
)
async def test_whatever_is_said_by_whomever_is_quoted_to_the_letter_and_cited(
    talk: list[tuple[str, list[str]]],
) -> None:
    messages = tuple(
        said(seq, name, "".join(parts), minute=7 * seq) for seq, (name, parts) in enumerate(talk, 1)
    )
    note = await WRITER.write_activity(Window(DAY, messages), GROUP)
    if note is None:
        return
    assert_sound("activity", note, {message.seq for message in messages})
    cited = [message for message in messages if message.seq in note.key_messages]
    spans = "".join(QUOTE.findall(note.text))
    assert unsupported(spans, cited, CALENDAR) == []
    day = await day_of((activity(1, note.text),))
    assert set(QUOTE.findall(day.text)) <= set(QUOTE.findall(note.text))


@pytest.mark.parametrize("name", ["晚上八点", "下午茶", "明天会更好", "昨日青空", "大家", "听雨"])
async def test_a_name_that_reads_as_part_of_the_sentence_survives_up_to_the_day(name: str) -> None:
    messages = (said(1, name, "我考研的学校定了"), said(2, "小鹿", "哪个学校呀"))
    note = await WRITER.write_activity(Window(DAY, messages), GROUP)
    assert note is not None
    assert f"网名叫{name}的人" in note.text
    day = await day_of((activity(1, note.text),))
    assert f"网名叫{name}的人" in day.text
    assert not has_relative_days(
        re.sub(f"网名叫{name}的人", "", QUOTE.sub("", strip_key_marks(day.text)))
    )


def test_only_the_name_is_left_alone() -> None:
    text = "网名叫明天会更好的人昨晚没睡，明天要考试。"
    done = without_relative_days(text, date(2026, 11, 29))
    assert done == "网名叫明天会更好的人十一月二十八日晚上没睡，十一月三十日要考试。"


async def test_a_group_whose_name_is_a_time_is_just_the_group() -> None:
    scene = Scene(GROUP.chat, "QQ群「明天会更好」", "年年", "")
    message = Message(4, EVENING, "u", "小鹿", "我考研的学校定了")
    note = await WRITER.write_activity(Window(DAY, (message,)), scene)
    assert note is not None
    assert "会更好" not in note.text


# --- no more than was said ------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "统计第三章的作业还没交给我",
        "我来这里以后第一次给你过生日",
        "司机问我来旅游的还是来打工的",
        "我去接了个电话",
        "我请了两杯",
        "我请了一天假",
        "你胃会谢谢你",
        "同事说谢谢",
        "开了四十分钟会 讲了三十九分钟感谢",
        "这不是我的错",
        "芝麻在家我对不起它",
        "要是考上了再买",
        "如果转正了就请客",
        "我说过了！",
        "没考上了",
        "不用担心 没事的",
        "别紧张",
        "睡得真舒服了",
        "帮我看看这个报错",
        "给我看猫片",
        "没人记得了",
        "她捏了个兔子，舍不得下锅",
        "九点前到家的感觉真陌生",
        "不一定了",
    ],
)
def test_a_verb_is_not_taken_from_words_that_only_look_like_it(words: str) -> None:
    assert set(act(words)) <= {"说", "提到", "问"}


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        ("我来订票", "应下"),
        ("面我请，你们来", "许下"),
        ("交给我", "答应"),
        ("对不起，我忘了", "道歉说"),
        ("谢谢老周", "道谢说"),
        ("终于考上了！！", "报喜"),
        ("别忘带伞", "提醒"),
        ("那就周五", "拍板"),
        ("有点担心她", "担心地说"),
        ("今天累死了", "抱怨"),
    ],
)
def test_a_verb_is_taken_from_words_that_bear_it_out(words: str, verb: str) -> None:
    assert verb in act(words)


@pytest.mark.parametrize(
    "words",
    [
        "两个空位，碗都摆着呢",
        "三味书屋看着呢",
        "没有办法嘛",
        "妈妈打电话来问我什么时候找对象",
        "不知道怎么办",
        "有没有空都没用",
        "每天不知道干嘛",
        "豆豆问年轮会不会写作业",
        "没什么",
    ],
)
def test_what_only_looks_like_a_question_is_none(words: str) -> None:
    assert not is_question(words)


@pytest.mark.parametrize(
    "words", ["兔子呢", "然后呢", "谁看到我学生证了", "最喜欢哪一段", "吃了吗", "要不要去医院"]
)
def test_a_question_needs_no_question_mark(words: str) -> None:
    assert is_question(words)


async def test_one_who_laughs_alone_is_not_everybody() -> None:
    lines = ["我把咖啡倒进键盘里了", "哈哈哈哈", "哈哈哈哈哈哈"]
    messages = (
        said(1, "小鹿", lines[0]),
        *(said(seq, "阿哲", text) for seq, text in enumerate(lines[1:] * 3, 2)),
    )
    note = await WRITER.write_activity(Window(DAY, messages), GROUP)
    assert note is not None
    assert not re.search("大家|笑成|直笑|说说笑笑", note.text)
    assert moods(messages, least=2) == {}


def test_a_quote_does_not_break_off_where_an_inner_quote_begins() -> None:
    assert spoken("阿禾去年一个人投，怪可怜的，我还跟阿禾「投了」") == "阿禾去年一个人投，怪可怜的"


def test_a_clock_is_not_cut_in_two() -> None:
    assert excerpt("我们坐12:30的船回去，" + "路上慢慢走" * 9, 12) == "我们坐12:30的船回去"


# --- roll-ups -------------------------------------------------------------------------------


async def test_an_update_does_not_say_again_what_a_person_kept() -> None:
    text = "我自己改过的一天。小鹿说「周六去西山」（关键消息：[1]）。"
    target = Memory("day", DAY, text, (1,), ("1",), 2, "20002", EVENING)
    source = activity(2, "晚上八点左右在群里，小鹿说「周六去西山」。（关键消息：[1]）")
    note = await day_of((source,), target, rebuild=False)
    assert note.text == text


async def test_many_updates_of_a_day_neither_repeat_nor_lose_their_sources() -> None:
    target: Memory | None = None
    for number in range(1, 9):
        source = activity(
            number, f"晚上八点左右在群里，小鹿说「第{number}件事办好了」。（关键消息：[{number}]）"
        )
        note = await day_of((source,), target, rebuild=False)
        target = Memory("day", DAY, note.text, note.key_messages, (), 1, "offline", EVENING)
    assert target is not None
    assert target.key_messages == tuple(range(1, 9))
    spans = QUOTE.findall(target.text)
    assert len(spans) == len(set(spans)) == 8


async def test_a_mood_does_not_stand_where_nobody_speaks() -> None:
    text = "晚上八点左右在群里，小鹿说「我考研被录取了」。说说笑笑的。（关键消息：[1]）"
    note = await day_of((activity(1, text),))
    assert note.text == "晚上八点左右在群里，小鹿说「我考研被录取了」（关键消息：[1]）。"


async def test_a_topic_is_not_made_a_speaker() -> None:
    sources = tuple(
        activity(n, f"{part}八点左右在群里，小鹿说「海哥的{what}真好」。（关键消息：[{n}]）")
        for n, (part, what) in enumerate((("上午", "船"), ("下午", "面"), ("晚上", "牌")), 1)
    )
    for day in range(1, 11):
        task = RollupTask("day", f"2026-11-{day:02d}", sources, None, True, closes=True)
        (note,) = await WRITER.write_memories([task], GROUP, has_next_tasks=False)
        assert not re.search("从.{1,4}说到", note.text)


async def test_who_speaks_first_on_a_date_takes_nothing_up() -> None:
    text = (
        "三日，小鹿说「嗯嗯好的呀我们就这样子好了吧」，老王跟着说「我考研被录取了！！下周搬家」"
        "（关键消息：[1,2]）。"
    )
    (piece,) = take_apart(text)
    short = shorten(piece, 20, afar=True)
    assert short.text.startswith("老王说「")
    assert short.ids == (2,)


async def test_an_english_sentence_has_one_full_stop() -> None:
    note = await day_of((activity(1, "We talked about the trip to Norway."),))
    assert note.text == "We talked about the trip to Norway。"


# --- time -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seed",
    ["一", "如果", "1:", "「", "（", "[a", "@a", "明天", "晚上八点", "，", "。」", "关键消息："],
)
def test_long_lines_of_one_sign_are_read_in_time(seed: str) -> None:
    text = seed * (100_000 // len(seed))
    begun = stopwatch.process_time()
    for read in (
        spoken,
        weigh,
        act,
        partial(excerpt, units=26, cues=CUES),
        partial(without_relative_days, day=date(2026, 11, 29)),
    ):
        read(text)
    for piece in take_apart(text):
        tighten(shorten(piece, 36, afar=True), 18)
    assert stopwatch.process_time() - begun < 6
