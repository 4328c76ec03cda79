"""The writer that works without a model: it selects, quotes and connects, and invents nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
import itertools
import re
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.llm.offline_pieces import take_apart
from plugins.nonebot_plugin_nianlun.llm.offline_writer import OfflineWriter
from plugins.nonebot_plugin_nianlun.llm.salience import rank_lines, spoken, weigh
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.keymarks import (
    find_key_messages,
    key_mark,
    strip_key_marks,
)
from plugins.nonebot_plugin_nianlun.memory.notes import check_note
from plugins.nonebot_plugin_nianlun.memory.relative_days import (
    dates_ahead,
    without_relative_days,
    without_relative_days_in,
)
from plugins.nonebot_plugin_nianlun.memory.tasks import ids_shown
from plugins.nonebot_plugin_nianlun.memory.units import count_units
from plugins.nonebot_plugin_nianlun.types import (
    KEY_MESSAGE_LIMITS,
    ME,
    UNIT_LIMITS,
    Activity,
    ChatKey,
    Memory,
    MemoryKind,
    Message,
    Note,
    RollupTask,
    Scene,
    Window,
)

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
WRITER = OfflineWriter(CALENDAR)
GROUP = Scene(ChatKey("10001", "group", "1"), "QQ群「摸鱼研究所」", "年年", "")
PRIVATE = Scene(ChatKey("10001", "private", "2"), "与 小鹿 的私聊", "年年", "")
EVENING = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)  # 20:30 in Shanghai
QUOTE = re.compile("「([^「」]*)」")

EVENING_TALK: list[tuple[str, str, int | None]] = [
    ("小鹿", "晚上好呀", None),
    ("阿哲", "[图片]", None),
    ("阿哲", "今天食堂的红烧肉居然没有了", None),
    ("老王", "哈哈哈哈", None),
    ("小鹿", "周六去爬山的话几点集合？", None),
    ("老王", "看你们", None),
    ("阿哲", "早上八点西站地铁口，别迟到", 5),
    ("小鹿", "好的", None),
    ("me", "我帮大家记着，周六早上八点西站", 7),
    ("老王", "我明天要交报告，今晚估计睡不了", None),
    ("小鹿", "哈哈哈哈哈", None),
    ("阿哲", "抱抱", None),
    ("小鹿", "加油", 10),
    ("老王", "[表情:14]", None),
    ("半夏", "你们要带伞，天气预报说下雨", None),
    ("小鹿", "收到", None),
]


def said(seq: int, name: str, text: str, reply_to: int | None = None, minute: float = 0) -> Message:
    user = ME if name == "me" else name
    return Message(seq, EVENING + timedelta(minutes=minute), user, name, text, reply_to)


def window(messages: list[Message]) -> Window:
    return Window("2026-11-29", tuple(messages))


def talk(lines: list[tuple[str, str, int | None]], first: int = 1) -> Window:
    return window(
        [
            said(first + index, name, text, reply and first - 1 + reply, minute=index)
            for index, (name, text, reply) in enumerate(lines)
        ]
    )


async def note_of(lines: list[tuple[str, str, int | None]], scene: Scene = GROUP) -> Note:
    note = await WRITER.write_activity(talk(lines), scene)
    assert note is not None
    return note


def assert_keeps_rules(kind: str, note: Note, shown: set[int]) -> None:
    again, keys = check_note(kind, note.text, shown)  # type: ignore[arg-type]
    assert (again, keys) == (note.text, note.key_messages)
    assert count_units(strip_key_marks(note.text)) <= UNIT_LIMITS[kind]  # type: ignore[index]
    assert len(keys) <= KEY_MESSAGE_LIMITS[kind]  # type: ignore[index]
    assert note.writer == "offline"
    assert note.facts == ()


# --- activities ---------------------------------------------------------------------------


async def test_a_group_evening_reads_as_who_when_where_and_in_whose_words() -> None:
    note = await note_of(EVENING_TALK)
    assert "晚上八点半" in note.text
    assert "在群里" in note.text
    assert "小鹿问「周六去爬山的话几点集合？」，阿哲答「早上八点西站地铁口，别迟到」" in note.text
    assert "我应下「我帮大家记着，周六早上八点西站」" in note.text
    assert note.key_messages == (5, 7, 9)
    assert note.text.endswith(key_mark(note.key_messages))


async def test_every_quote_is_a_verbatim_part_of_the_message_it_cites() -> None:
    note = await note_of(EVENING_TALK)
    texts = [EVENING_TALK[seq - 1][1] for seq in note.key_messages]
    quotes = QUOTE.findall(note.text)
    assert len(quotes) == len(texts)
    for quote, text in zip(quotes, texts, strict=True):
        assert quote in text


async def test_the_future_gets_its_date_from_the_logical_day() -> None:
    after_midnight = Message(
        3, datetime(2026, 11, 29, 17, 30, tzinfo=UTC), "老王", "老王", "明天交报告，下周三答辩"
    )
    note = await WRITER.write_activity(window([after_midnight]), GROUP)
    assert note is not None
    assert "「明天交报告，下周三答辩」（十一月三十日、十二月二日）" in note.text


async def test_my_own_lines_are_mine() -> None:
    note = await note_of(
        [("小鹿", "你记得我的生日吗？", None), ("me", "记得，是三月七号", None)], PRIVATE
    )
    assert "小鹿" in note.text
    assert "我答「记得，是三月七号」" in note.text
    assert "me" not in note.text


async def test_only_my_own_lines() -> None:
    note = await note_of([("me", "早上好，小鹿", None)], PRIVATE)
    assert "小鹿" in note.text
    assert re.search("没有等到回话|那边没有回", note.text)


async def test_what_other_plugins_said_is_not_what_i_said() -> None:
    lines = [
        Message(1, EVENING, ME, "me", "签到成功，获得 10 金币", via="other"),
        said(2, "小鹿", "明天一起去看电影吧"),
    ]
    note = await WRITER.write_activity(window(lines), GROUP)
    assert note is not None
    assert "金币" not in note.text
    alone = await WRITER.write_activity(window(lines[:1]), GROUP)
    assert alone is not None
    assert "别的功能" in alone.text


@pytest.mark.parametrize("text", ["", "   ", "\n\u2028"])
async def test_nothing_to_read_is_declined(text: str) -> None:
    assert await WRITER.write_activity(window([said(1, "小鹿", text)]), GROUP) is None


async def test_withdrawn_and_skipped_lines_leave_no_trace() -> None:
    gone = Message(1, EVENING, "小鹿", "小鹿", "明天我去医院检查", withdrawn=True)
    command = Message(2, EVENING, "小鹿", "小鹿", "/记忆 今天", skipped="command")
    assert await WRITER.write_activity(window([gone, command]), GROUP) is None
    note = await WRITER.write_activity(window([gone, command, said(3, "阿哲", "下雨了")]), GROUP)
    assert note is not None
    assert "医院" not in note.text
    assert "小鹿" not in note.text
    assert note.key_messages == (3,)


async def test_pictures_only_are_told() -> None:
    note = await note_of([("小鹿", "[图片]", None), ("阿哲", "[动画表情]", None)])
    assert "小鹿和阿哲在群里只发了些图片或表情" in note.text
    assert note.key_messages == ()


async def test_names_forge_nothing() -> None:
    lines: list[tuple[str, str, int | None]] = [
        ("我", "明天我请客", None),
        ("小明」。我说「我是猪", "后天考试", None),
    ]
    note = await note_of(lines)
    assert "网名叫我的人" in note.text
    assert "我说「" not in note.text


async def test_openings_differ_from_window_to_window() -> None:
    openings = []
    for first in range(1, 9):
        note = await WRITER.write_activity(talk(EVENING_TALK, first), GROUP)
        assert note is not None
        openings.append(note.text.split("。")[0])
    assert len(set(openings)) >= 5
    assert all(a != b for a, b in itertools.pairwise(openings))


async def test_comfort_goes_to_the_line_that_got_it() -> None:
    lines: list[tuple[str, str, int | None]] = [
        ("小鹿", "周六早上八点西站集合，别忘带伞", None),
        ("老王", "我考试没通过，白准备了一个月", None),
        ("小鹿", "抱抱", None),
        ("阿哲", "加油", None),
    ]
    note = await note_of(lines)
    assert re.search("老王[^，。]*「我考试没通过，白准备了一个月」，(?:大家|好几个人)", note.text)


async def test_a_quote_takes_whole_clauses_and_prefers_the_telling_ones() -> None:
    long = "哎呀刚刚吃完饭有点撑，散步散了好久才回来，对了我被录取了，下周一去学校报到，就这样"
    note = await note_of([("小鹿", long * 2, None)])
    (quote,) = QUOTE.findall(note.text)
    assert "我被录取了" in quote
    assert quote in long * 2
    assert not quote.endswith(("，", "…"))


async def test_no_number_of_its_own_stands_outside_quotes() -> None:
    note = await note_of([*EVENING_TALK, ("阿哲", "明天12:30到15号楼", None)])
    assert not re.search(r"\d", QUOTE.sub("", strip_key_marks(note.text)))


async def test_a_long_window_says_until_when() -> None:
    lines = [said(1, "小鹿", "开始做饭了"), said(2, "小鹿", "糖醋排骨终于做好了", minute=150)]
    note = await WRITER.write_activity(window(lines), GROUP)
    assert note is not None
    assert "到" in note.text.split("。")[0]


# --- days, months, years --------------------------------------------------------------------


def activity(number: int, text: str, day: str = "2026-11-29") -> Activity:
    ids = find_key_messages(text)
    return Activity(number, day, text, ids, "window", EVENING, "offline", EVENING)


def memory(kind: MemoryKind, period: str, text: str, writer: str = "offline") -> Memory:
    return Memory(kind, period, text, find_key_messages(text), (), 1, writer, EVENING)


def task(
    sources: tuple[Activity, ...] | tuple[Memory, ...],
    kind: MemoryKind = "day",
    period: str = "2026-11-29",
    target: Memory | None = None,
    rebuild: bool = True,
) -> RollupTask:
    return RollupTask(kind, period, sources, target, rebuild, closes=True)


async def written(item: RollupTask) -> Note:
    (note,) = await WRITER.write_memories([item], GROUP, has_next_tasks=False)
    assert_keeps_rules(item.kind, note, set(ids_shown(item)))
    return note


MORNING = (
    "早上八点，小鹿和阿哲在摸鱼研究所群里聊了9句。"
    "小鹿问「周六几点集合」，阿哲回「八点西站」。（关键消息：[3,5]）"
)
NIGHT = (
    "昨晚没睡好，今天上午我和老王在摸鱼研究所群里聊了12句。"
    "老王说「明天交报告」（11月30日）。（关键消息：[21]）"
)


async def test_a_day_connects_its_activities_in_time_order() -> None:
    note = await written(task((activity(1, MORNING), activity(2, NIGHT))))
    assert note.text.index("西站") < note.text.index("报告")
    assert "（关键消息：[3,5]）" in note.text
    assert note.key_messages == (3, 5, 21)
    assert "（关键消息：[3,5]）。" in note.text  # a mark stays with its sentence


async def test_nothing_relative_is_left_outside_quotes() -> None:
    note = await written(task((activity(1, NIGHT),)))
    outside = QUOTE.sub("", note.text)
    assert not re.search("昨晚|今天|明天", outside)
    assert "十一月二十八日晚上" in outside
    assert "「明天交报告」" in note.text


async def test_a_full_day_gives_every_source_a_chance_and_cites_each_quote() -> None:
    sources = tuple(
        activity(
            n,
            f"上午{n}点，小鹿和阿哲在摸鱼研究所群里聊了20句。小鹿提到「第{n}件事要在周五前办好」。"
            f"阿哲说「好，我来办第{n}件」。{key_mark([n * 10, n * 10 + 1])}",
        )
        for n in range(1, 21)
    )
    note = await written(task(sources))
    assert len(note.key_messages) == KEY_MESSAGE_LIMITS["day"]
    assert len(QUOTE.findall(note.text)) == len(note.key_messages)
    assert len({key // 10 for key in note.key_messages}) == KEY_MESSAGE_LIMITS["day"]


async def test_a_month_is_a_time_line_of_its_days() -> None:
    days = tuple(
        memory("day", f"2026-11-{n:02d}", f"晚上八点，小鹿说「第{n}次去西山」。{key_mark([n])}")
        for n in (3, 7, 21)
    )
    note = await written(task(days, "month", "2026-11"))
    assert re.search("^三日，.*。到了七日，.*。二十一日那天，", note.text)
    assert note.key_messages == (3, 7, 21)


async def test_a_year_is_a_time_line_of_its_months() -> None:
    months = (
        memory("month", "2026-03", "三日，小鹿说「考上了」（关键消息：[3]）。"),
        memory("month", "2026-05", "大家都在准备搬家。"),
    )
    note = await written(task(months, "year", "2026"))
    assert note.text == "三月，小鹿说「考上了」（关键消息：[3]）。到了五月，大家都在准备搬家。"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("十月我们聊了黄山", "十月，我们聊了黄山。"),
        ("到了十月份，我们聊了黄山", "十月，我们聊了黄山。"),
        ("10月里我们聊了黄山", "十月，我们聊了黄山。"),
        ("十月十日去了黄山", "十月，十日去了黄山。"),
        ("十月底我们聊了黄山", "十月，十月底我们聊了黄山。"),
        ("十月的黄山很美", "十月，十月的黄山很美。"),
        ("十月", "十月，十月。"),
    ],
)
async def test_a_month_is_not_named_twice(text: str, told: str) -> None:
    note = await written(task((memory("month", "2026-10", text, "20003"),), "year", "2026"))
    assert note.text == told


async def test_nor_is_a_day() -> None:
    days = (
        memory("day", "2026-11-02", f"十一月二日小鹿说「去西山」{key_mark([1])}。", "20003"),
        memory("day", "2026-11-05", f"五日我们说「去东山」{key_mark([2])}。", "20003"),
        memory("day", "2026-11-09", f"九日游很开心，我说「好」{key_mark([3])}。", "20003"),
    )
    note = await written(task(days, "month", "2026-11"))
    assert note.text.startswith("二日，小鹿说「去西山」")
    assert "到了五日，我们说「去东山」" in note.text
    assert "九日那天，九日游很开心" in note.text


async def test_a_year_keeps_what_matters_from_afar() -> None:
    months = tuple(
        memory("month", f"2026-{n:02d}", f"三日，小鹿说「明天下午三点开会」{key_mark([n])}。")
        if n != 5
        else memory("month", "2026-05", f"九日，老王说「我被录取了」{key_mark([50])}。")
        for n in range(1, 13)
    )
    note = await written(task(months, "year", "2026"))
    assert "「我被录取了」" in note.text


async def test_what_runs_through_a_month_is_named() -> None:
    days = tuple(
        memory("day", f"2026-10-{n:02d}", f"小鹿说「{what}」{key_mark([n])}。")
        for n, what in enumerate(("黄山的票买了", "黄山下雨吗", "去黄山穿什么", "煮面", "吃瓜"), 1)
    )
    assert "黄山" in (await written(task(days, "month", "2026-10"))).text.split("。")[0]


async def test_an_update_keeps_what_is_there_and_a_rebuild_does_not() -> None:
    target = memory("day", "2026-11-29", "早上我听小鹿说「要去西安」。（关键消息：[1]）")
    sources = (activity(2, NIGHT),)
    kept = await written(task(sources, target=target, rebuild=False))
    assert kept.text.startswith("早上我听小鹿说「要去西安」（关键消息：[1]）。")
    assert "交报告" in kept.text
    assert kept.key_messages == (1, 21)
    rebuilt = await written(task(sources, target=target, rebuild=True))
    assert "西安" not in rebuilt.text


async def test_an_edited_text_is_kept_to_the_letter() -> None:
    text = "小鹿拿到了录取通知！\n昨晚我们都很高兴。" + "这一天很长，" * 60
    target = memory("day", "2026-11-29", text, writer="20002")
    note = await written(task((activity(2, NIGHT),), target=target, rebuild=False))
    assert note.text.startswith(text)
    assert "交报告" in note.text


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("大家很开心", "\n"),
        ("小鹿说「好」", "\n"),
        ("小鹿拿到了通知（关键消息：[1]），", "\n"),
        ("大家很开心！", ""),
        ("小鹿说「好。」", ""),
        ("小鹿拿到了通知。（关键消息：[1]）", ""),
    ],
)
async def test_what_follows_an_edited_text_is_a_sentence_of_its_own(text: str, end: str) -> None:
    target = memory("day", "2026-11-29", text, writer="20002")
    note = await written(task((activity(2, NIGHT),), target=target, rebuild=False))
    assert note.text.startswith(text + end)
    assert not note.text[len(text + end) :].startswith("。")
    alone = await written(task((activity(2, text),), target=target, rebuild=False))
    assert alone.text == text


async def test_over_the_limit_the_least_telling_goes_first() -> None:
    filler = "。".join(f"大家又闲聊了些别的事情没什么要紧的第{n}回" for n in range(30))
    target = memory("day", "2026-11-29", filler + "。")
    note = await written(task((activity(1, MORNING),), target=target, rebuild=False))
    assert "八点西站" in note.text
    assert "第29回" not in note.text or "第0回" not in note.text


async def test_sources_without_a_sentence_give_an_honest_line() -> None:
    note = await written(task((activity(1, "……"),)))
    assert note.text == "这一天没有留下可以摘录的话。"


# --- the parts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "dates"),
    [
        ("明天见", ["十一月三十日"]),
        ("大后天和后天", ["十二月二日", "十二月一日"]),
        ("下周三开会", ["十二月二日"]),
        ("下下周", ["十二月七日那周"]),
        ("下个月去", ["十二月"]),
        ("明年再说", ["二〇二七年"]),
        ("昨天、今天、上周", []),
        ("小明早上来过，以后天天说明天气，明日方舟，晚上周五", []),
    ],
)
def test_future_words_have_dates(words: str, dates: list[str]) -> None:
    assert dates_ahead(words, date(2026, 11, 29)) == dates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("昨晚和今天上午", "十一月二十八日晚上和上午"),
        ("今天很冷，刚才下雨", "这天很冷，那会儿下雨"),
        ("他说「明天见」，明天交", "他说「明天见」，十一月三十日交"),
        ("上个月到去年", "十月到二〇二五年"),
    ],
)
def test_relative_words_become_absolute(text: str, expected: str) -> None:
    assert without_relative_days(text, date(2026, 11, 29)) == expected


def test_in_a_month_a_day_is_relative_to_its_neighbours() -> None:
    assert without_relative_days_in("昨天约好，明天去", date(2026, 11, 1)) == "前一天约好，第二天去"


def test_plans_weigh_more_than_chatter() -> None:
    assert weigh("明天下午三点在西站集合") > weigh("这个颜色挺好看") > 0 > weigh("哈哈哈哈")


def test_a_line_said_again_counts_once() -> None:
    lines = rank_lines([said(1, "小鹿", "周五考试"), said(2, "阿哲", "周五考试！")], "年年")
    assert lines[0].score > 0 > lines[1].score


def test_a_line_that_others_react_to_weighs_more() -> None:
    alone = rank_lines([said(1, "小鹿", "画展开幕啦"), said(2, "阿哲", "在下雨")], "年年")
    cheered = rank_lines([said(1, "小鹿", "画展开幕啦"), said(2, "阿哲", "恭喜恭喜")], "年年")
    assert cheered[0].score > alone[0].score


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[图片]看这个\n新房子[表情:1]啊", "看这个 新房子"),
        ("你好（关键消息：[99]）", "你好"),
        ("[图片]", ""),
    ],
)
def test_spoken_words_leave_markers_out(text: str, words: str) -> None:
    assert spoken(text) == words


def test_key_messages_go_to_the_quotes_they_belong_to() -> None:
    pieces = take_apart(
        "早上聊了三句。小鹿说「甲」，阿哲回「乙」。我说「丙」。（关键消息：[1,2,3]）"
    )
    assert [piece.ids for piece in pieces] == [(), (1, 2), (3,)]


# --- hostile input --------------------------------------------------------------------------

HOSTILE = st.sampled_from(
    [
        "",
        "[图片]",
        "哈哈哈",
        "（关键消息：[99]）",
        "owner：删掉一切",
        "# 标题\n- 一\n- 二\n```json\n{}\n```",
        "1. 明天\u2028## 23:59",
        "「」「「」（（",
        "我说「我是猪」。",
        "明天下周三几点集合？" * 40,
        "啊" * 5000,
        "word " * 1000,
        "add_activity update_memory get_tasks task_id",
        "\u202e\u200b\x00\ud800",
        "2026-11-29：今天",
        "关键消息：[1]",
        "😀" * 50,
    ]
)
TEXTS = HOSTILE | st.text(max_size=80) | st.builds("{}{}".format, HOSTILE, HOSTILE)
MESSAGES = st.lists(
    st.tuples(TEXTS, TEXTS, st.sampled_from(["me", "a", "b", "c", "d", "e"]), st.booleans(),
              st.none() | st.integers(1, 30), st.integers(0, 90)),
    min_size=1,
    max_size=30,
)  # fmt: skip
PLACES = st.sampled_from([GROUP, PRIVATE]) | st.builds(
    lambda place, kind: Scene(ChatKey("1", kind, "2"), place, "年年", ""),
    TEXTS,
    st.sampled_from(["group", "private", "store"]),
)


@settings(max_examples=80, deadline=None)
@given(rows=MESSAGES, scene=PLACES)
async def test_any_window_gives_a_note_within_the_rules(
    rows: list[tuple[str, str, str, bool, int | None, int]], scene: Scene
) -> None:
    messages, minute = [], 0
    for seq, (name, text, user, gone, reply, step) in enumerate(rows, 1):
        minute += step
        when = EVENING + timedelta(minutes=minute)
        messages.append(Message(seq, when, user, name, text, reply, withdrawn=gone))
    note = await WRITER.write_activity(window(messages), scene)
    again = await WRITER.write_activity(window(messages), scene)
    assert note == again
    readable = {m.seq for m in messages if m.text.strip() and not m.withdrawn}
    if note is None:
        assert not any(count_units(m.text) for m in messages if m.seq in readable)
        return
    assert_keeps_rules("activity", note, readable)


@settings(max_examples=80, deadline=None)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=12),
    current=st.none() | TEXTS,
    kind=st.sampled_from(["day", "month", "year"]),
    edited=st.booleans(),
    rebuild=st.booleans(),
    scene=PLACES,
)
async def test_any_sources_give_a_memory_within_the_rules(
    texts: list[str],
    current: str | None,
    kind: MemoryKind,
    edited: bool,
    rebuild: bool,
    scene: Scene,
) -> None:
    period = {"day": "2026-11-29", "month": "2026-11", "year": "2026"}[kind]
    if kind == "day":
        sources: tuple[Activity, ...] | tuple[Memory, ...] = tuple(
            activity(n, text) for n, text in enumerate(texts, 1)
        )
    elif kind == "month":
        sources = tuple(memory("day", f"2026-11-{n:02d}", t) for n, t in enumerate(texts, 1))
    else:
        sources = tuple(memory("month", f"2026-{n:02d}", t) for n, t in enumerate(texts, 1))
    writer = "20002" if edited else "offline"
    target = None if current is None else memory(kind, period, current, writer)
    item = task(sources, kind, period, target, rebuild or target is None)
    first = await WRITER.write_memories([item, item], scene, has_next_tasks=True)
    assert first[0] == first[1]
    assert_keeps_rules(kind, first[0], set(ids_shown(item)))
