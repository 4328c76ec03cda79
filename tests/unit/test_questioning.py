"""Why something is remembered: chosen, walked and shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.commands.questioning_views import (
    Showing,
    activity_why,
    fact_why,
    memory_why,
)
from plugins.nonebot_plugin_nianlun.commands.subjects import (
    Subject,
    read_fact,
    read_message,
    read_subject,
)
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.keymarks import key_mark
from plugins.nonebot_plugin_nianlun.memory.provenance import Held
from plugins.nonebot_plugin_nianlun.memory.why import (
    MOST_PASSAGES,
    Edit,
    FactWhy,
    Text,
    edit_of,
    explain,
)
from plugins.nonebot_plugin_nianlun.types import (
    COMMAND_LINE,
    Activity,
    Memory,
    MemoryKind,
    Message,
    NoteKind,
)

AT = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
DAY: tuple[MemoryKind, str] = ("day", "2026-11-29")
CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
SHOWING = Showing(CALENDAR, {"20001": "小鹿", "20002": "阿澈"}, {})
SECRET = "芝麻开门"
LONGEST_ANSWER = 5_000


def message(
    seq: int, text: str = "去爬山吗", *, name: str = "小鹿", by: str = "20001", gone: bool = False
) -> Message:
    return Message(seq, AT + timedelta(minutes=seq), by, name, text, withdrawn=gone)


def activity(number: int, *seqs: int, text: str = "") -> Activity:
    return Activity(
        number=number,
        date="2026-11-29",
        text=text or f"第{number}段。{key_mark(seqs)}",
        key_messages=seqs,
        origin="window",
        time=AT,
        writer="model",
        written_at=AT,
        ranges=tuple((seq, seq) for seq in seqs),
    )


def day(text: str, *seqs: int, sources: tuple[str, ...] = ("1",)) -> Memory:
    return Memory("day", "2026-11-29", text, seqs, sources, 2, "model", AT)


def test_all_the_way_down() -> None:
    note = day("小鹿说「去爬山吗」。（关键消息：[1]）他们很开心。", 1)
    noted = activity(1, 1, text=f"小鹿说「去爬山吗」。{key_mark([1])}")
    held = Held({("day", "2026-11-29"): note}, {1: noted}, {1: message(1)})
    assert memory_why(note, explain(held, note), SHOWING).splitlines() == [
        "第 2 版 · 模型 · 2026-11-29 12:00",
        "写自 1 条活动：&1",
        "",
        "1. 小鹿说「去爬山吗」。",
        "  &1 同上",
        "    #1 2026-11-29 12:01 小鹿：「去爬山吗」",
        "",
        "1 句没有引用消息。",
    ]


def test_each_line_stands_once_under_all_that_cites_it() -> None:
    text = (
        "大家在聊天。小鹿说「一」，阿澈说「三」。（关键消息：[1,3]）又说「二」。（关键消息：[2,3]）"
    )
    note = activity(1, 1, 2, 3, text=f"{text}散了。")
    window = [message(seq, words) for seq, words in ((1, "一"), (2, "二"), (3, "三"), (4, "四"))]
    told = activity_why(
        note, explain(Held({}, {1: note}, {m.seq: m for m in window}), note), window, SHOWING
    )
    assert told.splitlines()[1:] == [
        "",
        "1. 大家在聊天。小鹿说「一」，阿澈说「三」。",
        "  #1 2026-11-29 12:01 小鹿：「一」",
        "  #3 2026-11-29 12:03 小鹿：「三」",
        "",
        "2. 又说「二」。",
        "  #2 2026-11-29 12:02 小鹿：「二」",
        "  #3 见上面",
        "",
        "同一段里的其他话：",
        "#4 2026-11-29 12:04 小鹿：「四」",
    ]


def test_what_several_sentences_say_is_found_whole_beneath() -> None:
    text = f"小鹿说「一」。阿澈没说话。{key_mark([1])}"
    note, noted = day(text, 1), activity(1, 1, text=text)
    held = Held({("day", "2026-11-29"): note}, {1: noted}, {1: message(1, "一")})
    assert memory_why(note, explain(held, note), SHOWING).splitlines()[3:] == [
        "1. 小鹿说「一」。阿澈没说话。",
        "  &1 同上",
        "    #1 2026-11-29 12:01 小鹿：「一」",
        "",
        "每一句都列在这里了。",
    ]


def test_a_year_leads_through_month_and_day() -> None:
    mark = key_mark([1])
    year = Memory("year", "2026", f"这年爬山。{mark}", (1,), ("2026-11",), 1, "model", AT)
    month = Memory("month", "2026-11", f"这月爬山。{mark}", (1,), ("2026-11-29",), 1, "20002", AT)
    note = day(f"这天爬山。{mark}", 1)
    held = Held(
        {("year", "2026"): year, ("month", "2026-11"): month, ("day", "2026-11-29"): note},
        {1: activity(1, 1)},
        {1: message(1)},
    )
    edits: dict[tuple[NoteKind, str], Edit] = {
        ("month", "2026-11"): Edit("20002", AT, continued=False)
    }
    told = memory_why(year, explain(held, year), replace(SHOWING, edits=edits)).splitlines()
    assert told[3:] == [
        "1. 这年爬山。",
        "  2026-11（阿澈 改写） 这月爬山。",
        "    2026-11-29 这天爬山。",
        "      &1 第1段。",
        "        #1 2026-11-29 12:01 小鹿：「去爬山吗」",
        "",
        "每一句都列在这里了。",
    ]


def test_what_no_sentence_below_cites_is_reached_through_what_was_made_from_it() -> None:
    """A person may cite every line that a note was made from."""
    noted = replace(activity(4, 33), ranges=((33, 40),))
    last = "    #34 2026-11-29 12:34 小鹿：「还没名字」"
    other = "  &4（同一段里的其他话）"
    theirs = f"面馆还没名字。{key_mark([34])}他说真的。{key_mark([33])}"
    note = day(theirs, 34, 33, sources=("4",))
    bare = day(f"有面馆。{key_mark([33])}", 33, sources=("4",))
    month = Memory("month", "2026-11", theirs, (34, 33), ("2026-11-29",), 1, "20002", AT)
    year = Memory("year", "2026", theirs, (34, 33), ("2026-11",), 1, "20002", AT)

    def told(asked: Memory, *beneath: Memory) -> list[str]:
        held = Held(
            {(one.kind, one.period): one for one in (asked, *beneath)},
            {4: noted},
            {33: message(33, "真的"), 34: message(34, "还没名字")},
        )
        lines = memory_why(asked, explain(held, asked), SHOWING).splitlines()
        start = lines.index("1. 面馆还没名字。")
        return lines[start + 1 : lines.index("", start)]

    assert told(note) == [other, last]
    assert told(month, note) == ["  2026-11-29 同上", f"  {other}", f"  {last}"]
    assert told(month, bare) == ["  2026-11-29", f"  {other}", f"  {last}"]
    assert told(year, month, note) == [
        "  2026-11 同上",
        "    2026-11-29 同上",
        f"    {other}",
        f"    {last}",
    ]
    machine = replace(month, text=f"有面馆。{key_mark([33])}", key_messages=(33,))
    deep = ["  2026-11", "    2026-11-29 面馆还没名字。", f"    {other}", f"    {last}"]
    assert told(year, machine, note) == deep
    deep[1] = "    2026-11-29"
    assert told(year, machine, bare) == deep
    # Its activity is being written anew: the line is there all the same.
    assert told(replace(note, sources=())) == [last[2:]]


def test_what_leads_down_stands_in_the_order_of_time() -> None:
    text = f"先爬山，后吃面。{key_mark([1, 3, 5])}"
    later = replace(activity(2, 3, 4), ranges=((3, 4),), time=AT + timedelta(hours=1))
    noted = {
        1: replace(activity(1, 2), ranges=((1, 2),)),
        2: later,
        3: replace(activity(3, 5), time=AT + timedelta(minutes=30)),
    }
    said = {n: message(n) for n in range(1, 6)}
    asked = day(text, 1, 3, 5, sources=("2", "1", "3"))
    lines = memory_why(asked, explain(Held({DAY: asked}, noted, said), asked), SHOWING).splitlines()
    heads = [line for line in lines if line.startswith("  &")]
    assert heads == ["  &1（同一段里的其他话）", "  &3 第3段。", "  &2 第2段。"]
    before = replace(day("先爬山。", sources=("1",)), period="2026-11-28")
    after = day(f"后吃面。{key_mark([3])}", 3, sources=("2",))
    month = Memory("month", "2026-11", text, (1, 3), ("2026-11-29", "2026-11-28"), 1, "model", AT)
    held = Held({DAY: after, ("day", "2026-11-28"): before}, noted, said)
    lines = memory_why(month, explain(held, month), SHOWING).splitlines()
    heads = [line.split()[0] for line in lines if line.startswith("  2026")]
    assert heads == ["2026-11-28", "2026-11-29"]


def test_of_what_a_passage_cites_only_what_is_gone_is_said_to_be() -> None:
    note = day(f"小鹿说「去爬山吗」，又说了别的。{key_mark([1, 2, 3, 9])}", 1, 2, 3, 9)
    noted = replace(activity(1, 1, 2), ranges=((1, 3),))
    held = Held({("day", "2026-11-29"): note}, {1: noted}, {1: message(1), 3: message(3, "好")})
    assert memory_why(note, explain(held, note), SHOWING).splitlines()[4:9] == [
        "  &1 第1段。",
        "    #1 2026-11-29 12:01 小鹿：「去爬山吗」",
        "  &1（同一段里的其他话）",
        "    #3 2026-11-29 12:03 小鹿：「好」",
        "  #2 #9 已经不在了。",
    ]
    many = day(f"去了。{key_mark(range(1, 20))}", *range(1, 20))
    empty = Held({("day", "2026-11-29"): many}, {}, {})
    gone = memory_why(many, explain(empty, many), SHOWING).splitlines()[4]
    assert gone == f"  {' '.join(f'#{n}' for n in range(1, 13))} 等 19 条 已经不在了。"


def test_a_persons_words_do_not_take_the_mark_of_what_was_added_behind_them() -> None:
    ways = [("那天大家都很开心。", ""), ("那天大家都很开心", ""), ("那天大家都很开心", "。")]
    for theirs, end in ways:
        note = day(f"{theirs}{end}晚上小鹿说「去爬山吗」。{key_mark([1])}", 1)
        held = Held({DAY: note}, {1: activity(1, 1)}, {1: message(1)}, {DAY: theirs})
        why = explain(held, note)
        assert [found.sentence.text for found in why.told] == ["晚上小鹿说「去爬山吗」。"]
        assert (why.more, why.uncited) == (0, 1)
    note = day(f"早安。{key_mark([2])}很开心。{key_mark([1])}都散了。", 2, 1)
    held = Held({DAY: note}, {1: activity(1, 1, 2)}, {1: message(1)})
    why = explain(replace(held, theirs={DAY: f"很开心。{key_mark([1])}"}), note)
    told = [(found.sentence.text, found.sentence.key_messages) for found in why.told]
    assert told == [("早安。", (2,)), ("很开心。", (1,))]
    assert explain(held, note) == explain(replace(held, theirs={DAY: "别的。"}), note) == why
    assert explain(held, replace(note, text="", key_messages=())).told == ()


def test_nor_do_they_where_a_month_leads_into_their_day() -> None:
    note = day(f"那天大家都很开心。晚上小鹿说「去爬山吗」。{key_mark([1])}", 1)
    month = Memory(
        "month", "2026-11", f"这月爬山。{key_mark([1])}", (1,), ("2026-11-29",), 1, "model", AT
    )
    held = Held(
        {("month", "2026-11"): month, DAY: note},
        {1: activity(1, 1)},
        {1: message(1)},
        {DAY: "那天大家都很开心。"},
    )
    lines = memory_why(month, explain(held, month), SHOWING).splitlines()
    assert lines[4] == "  2026-11-29 晚上小鹿说「去爬山吗」。"


def test_the_most_telling_are_shown_as_they_stand_and_the_rest_is_counted() -> None:
    sentences = [f"第{n}句。{key_mark([n])}" for n in range(1, 10)]
    sentences[7] = f"小鹿说「去爬山吗」。{key_mark([8])}"
    note = day("".join(sentences), *range(1, 10), sources=("1", "2"))
    held = Held(
        {("day", "2026-11-29"): note},
        {1: activity(1, 1, 2, 3, 4), 2: activity(2, 5, 6, 7, 8)},
        {n: message(n) for n in range(1, 9)},
    )
    why = explain(held, note)
    assert [found.sentence.key_messages for found in why.told] == [(1,), (2,), (3,), (4,), (8,)]
    assert (len(why.told), why.more, why.uncited) == (MOST_PASSAGES, 4, 0)
    assert "另有 4 段有出处，没有列出" in memory_why(note, why, SHOWING)


def test_what_is_gone_is_shown_as_such() -> None:
    note = activity(1, 1)
    window = [
        message(1),
        message(2, SECRET, gone=True),
        message(3, SECRET, gone=True, name=""),
    ]
    held = Held({}, {1: note}, {1: window[0]})
    told = activity_why(note, explain(held, note), window, SHOWING)
    assert "#2 2026-11-29 12:02 [已经收回]" in told
    assert "#3 2026-11-29 12:03 [已经忘记]" in told
    assert SECRET not in told


def test_who_edited_it_and_when() -> None:
    def at(hours: int) -> datetime:
        return AT + timedelta(hours=hours)

    model, theirs = Text("模型写的", "model", at(0), 1), Text("人写的。", "20002", at(1), 2)
    more = Text("人写的。又添的", "20002", at(2), 3, written=True)
    assert edit_of(model, []) is None
    assert edit_of(theirs, [model]) == Edit("20002", at(1), continued=False)
    assert edit_of(more, [model, theirs]) == Edit("20002", at(1), continued=True)
    again = Text("重新写的", "20002", at(3), 4)
    assert edit_of(again, [model, theirs, more]) == Edit("20002", at(3), continued=False)
    assert edit_of(more, [model, theirs], grows=False) == Edit("20002", at(2), continued=False)
    typed = more._replace(written=False)
    assert edit_of(typed, [model, theirs]) == Edit("20002", at(2), continued=False)
    from_more = typed._replace(sources=frozenset("2"))
    assert edit_of(from_more, [model, theirs]) == Edit("20002", at(1), continued=True)
    longer = Text("人写的。又添的。再改的。", "20002", at(3), 4)
    assert edit_of(longer, [model, theirs, more]) == Edit("20002", at(3), continued=False)
    grown = Text("人写的。又添的。再改的。晚上", "20002", at(4), 5, written=True)
    so_far = [model, theirs, more, longer]
    assert edit_of(grown, so_far) == Edit("20002", at(3), continued=True)
    others = typed._replace(writer="20003")
    assert edit_of(others, [model, theirs]) == Edit("20003", at(2), continued=False)
    blank = Text("", "20002", at(1), 1)
    assert edit_of(theirs, [blank]) == Edit("20002", at(1), continued=False)


def test_who_brought_an_earlier_version_back() -> None:
    texts = [("模型写的", "model"), ("人写的。", "20002"), ("模型写的", "20003")]
    versions = [Text(text, by, AT, number) for number, (text, by) in enumerate(texts, 1)]
    back = Edit("20003", AT, continued=False, again=1)
    assert edit_of(versions[2], versions[:2]) == back
    more = Text("模型写的又添的", "20003", AT, 4, written=True)
    assert edit_of(more, versions) == back._replace(continued=True)
    assert edit_of(versions[2]._replace(writer="model"), versions[:2]) is None
    note = replace(day(f"去爬山。{key_mark([1])}", 1), writer="20002")
    held = Held({("day", "2026-11-29"): note}, {1: activity(1, 1)}, {1: message(1)})
    edits: dict[tuple[NoteKind, str], Edit] = {
        ("day", "2026-11-29"): Edit("20002", AT, continued=False, again=1)
    }
    told = memory_why(note, explain(held, note), replace(SHOWING, edits=edits)).splitlines()
    assert told[:2] == [
        "第 2 版 · 20002 还原自第 1 版 · 2026-11-29 12:00",
        "这篇由 阿澈（20002）还原自第 1 版，于 2026-11-29 12:00",
    ]
    edits = {key: edit._replace(continued=True) for key, edit in edits.items()}
    told = memory_why(note, explain(held, note), replace(SHOWING, edits=edits)).splitlines()
    since = "，后来又接着写了新的事"
    assert told[:2] == [
        f"第 2 版 · 20002 还原自第 1 版{since} · 2026-11-29 12:00",
        f"这篇由 阿澈（20002）还原自第 1 版，于 2026-11-29 12:00{since}",
    ]


def test_what_a_file_brought_over_the_command_line_names_nobody() -> None:
    note, noted = day(f"去爬山。{key_mark([1])}", 1), activity(1, 1)
    held = Held({("day", "2026-11-29"): note}, {1: noted}, {1: message(1)})
    edit = Edit(COMMAND_LINE, AT, continued=False)
    showing = replace(SHOWING, edits={("day", "2026-11-29"): edit, ("activity", "1"): edit})
    lines = memory_why(note, explain(held, note), showing).splitlines()
    assert lines[1] == "这篇是命令行导入的改写，写于 2026-11-29 12:00"
    assert "  &1（命令行导入的改写） 第1段。" in lines


def test_a_fact_with_its_line_and_its_journal() -> None:
    journal = tuple((f"第{n}种写法" if n else "", AT - timedelta(days=n)) for n in range(8))
    fact = FactWhy(
        "20001", "promise", "交稿", "周五前交", AT, "2026-12-04", message(1), None, journal
    )
    lines = fact_why(fact, SHOWING).splitlines()
    assert lines[:3] == [
        "小鹿的 promise:交稿：周五前交",
        "写于 2026-11-29 12:00 · 到期 2026-12-04",
        "出自 #1 2026-11-29 12:01 小鹿：「去爬山吗」",
    ]
    assert lines[4:6] == ["  2026-11-29 12:00 （拿掉了）", "  2026-11-28 12:00 第1种写法"]
    assert lines[-1] == "  ……还有更早的 3 版。"
    by_hand = fact_why(replace(fact, writer="20001"), SHOWING).splitlines()
    assert by_hand[1] == "由 小鹿（20001）改写于 2026-11-29 12:00 · 到期 2026-12-04"
    assert by_hand[2] == "起初出自 #1 2026-11-29 12:01 小鹿：「去爬山吗」"
    brought = fact_why(replace(fact, writer=COMMAND_LINE, source=None), SHOWING).splitlines()
    assert brought[1:3] == ["命令行导入的改写，写于 2026-11-29 12:00 · 到期 2026-12-04", "以前："]
    bare = replace(fact, owner="", source=None, journal=(), due=None)
    assert fact_why(bare, SHOWING).splitlines() == [
        "这个会话的 promise:交稿：周五前交",
        "写于 2026-11-29 12:00",
        "没有来源消息：是程序，或者别处的指令写下的。",
    ]


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=60), st.text(max_size=60))
def test_whatever_was_said_the_answer_is_bounded_and_each_line_its_own(
    text: str, said: list[str], name: str
) -> None:
    seqs = range(1, len(said) + 1)
    note = activity(1, *seqs, text=text + key_mark(seqs))
    window = [message(seq, words, name=name, by="9") for seq, words in zip(seqs, said, strict=True)]
    held = Held({}, {1: note}, {line.seq: line for line in window})
    told = activity_why(note, explain(held, note), window, SHOWING)
    assert len(told) < LONGEST_ANSWER
    heads = tuple(f"  #{line.seq} {CALENDAR.local(line.time):%Y-%m-%d %H:%M} " for line in window)
    lines = [line for line in told.split("\n") if line.startswith(" ")]
    assert [line for line in lines if not line.startswith((*heads, "  ……还有 "))] == []


def test_what_is_asked_about() -> None:
    assert read_subject("&3", CALENDAR, AT) == Subject("activity", "3")
    assert read_subject("＆3", CALENDAR, AT) == Subject("activity", "3")
    assert read_subject("2026-1-5", CALENDAR, AT) == Subject("day", "2026-01-05")
    assert read_subject("2026-01", CALENDAR, AT) == Subject("month", "2026-01")
    assert read_subject("昨天", CALENDAR, AT) == Subject("day", "2026-11-28")
    assert read_subject("&0x3", CALENDAR, AT) is None
    assert read_subject("2026-13", CALENDAR, AT) is None
    assert read_fact("preferences：咖啡 和茶") == ("preferences", "咖啡 和茶")
    assert read_fact("喜好:咖啡") == ("preferences", "咖啡")
    assert read_fact("咖啡") is None
    assert read_message("#12") == 12
    assert read_message("12") is None
