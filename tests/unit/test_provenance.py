"""Where sentences come from, and whether they say more than that."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.evidence import quoted_spans, unsupported
from plugins.nonebot_plugin_nianlun.memory.keymarks import (
    find_key_messages,
    key_mark,
    strip_key_marks,
)
from plugins.nonebot_plugin_nianlun.memory.provenance import (
    Held,
    Sentence,
    Trace,
    check,
    passages,
    sentences,
    trace,
)
from plugins.nonebot_plugin_nianlun.types import Activity, Memory, MemoryKind, Message

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
NOW = datetime(2026, 5, 1, tzinfo=UTC)
SPOKEN = datetime(2025, 5, 3, 12, 30, tzinfo=UTC)
"""20:30 of 3 May in the chat's zone."""


def said(text: str, seq: int = 1, *, name: str = "阿禾", at: datetime = SPOKEN) -> Message:
    return Message(seq, at, "20001", name, text)


def cut(text: str, key_messages: tuple[int, ...] = ()) -> list[tuple[str, tuple[int, ...]]]:
    return [(part.text, part.key_messages) for part in sentences(text, key_messages)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("早上好。", [("早上好。", ())]),
        ("早上好。下雨了！（关键消息：[1,2]）", [("早上好。", (1, 2)), ("下雨了！", (1, 2))]),
        ("早（关键消息：[1]）。晚（关键消息：[2]）。", [("早。", (1,)), ("晚。", (2,))]),
        ("3日去（关键消息：[1]）；5日回（关键消息：[2]）", [("3日去；", (1,)), ("5日回", (2,))]),
        ("去（关键消息：[1]）（关键消息：[2]）。", [("去。", (1, 2))]),
        ("去。（关键消息：[1]）然后睡了。", [("去。", (1,)), ("然后睡了。", ())]),
        ("（关键消息：[7]）去了。", [("去了。", (7,))]),
        ("他说「好。走吧！」就走了。", [("他说「好。走吧！」就走了。", ())]),
        ("她说「他讲『好。』了。」没错。", [("她说「他讲『好。』了。」没错。", ())]),
        ("他说「好。走吧", [("他说「好。", ()), ("走吧", ())]),
        (
            "他写「看（关键消息：[9]）。」（关键消息：[1]）",
            [("他写「看（关键消息：[9]）。」", (1,))],
        ),
        ("去了。\n\n回来了。\n", [("去了。\n\n", ()), ("回来了。\n", ())]),
        ("……。好。", [("……。好。", ())]),
        ("好。！？", [("好。！？", ())]),
        ("好。（关键消息：[3]） ？", [("好。 ？", (3,))]),
    ],
)
def test_sentences(text: str, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    assert cut(text) == expected


def test_key_messages_without_a_mark_go_to_the_end() -> None:
    text = "去了。（关键消息：[1]）回来了。"
    assert cut(text, (1, 5)) == [("去了。", (1,)), ("回来了。", (5,))]
    assert cut("去了。（关键消息：[1]）", (1, 5)) == [("去了。", (1, 5))]
    assert cut("去了。", (5, 6)) == [("去了。", (5, 6))]


PIECES = st.sampled_from(
    ["去爬山", "12", "。", "！", "；", "，", "\n", " ", "……", "「", "」", "『", "』", "“", "”",
     "（", "）", "（关键消息：[3]）", "(关键消息:4)", "关键消息", "😀", "\x1b", "ok.", "？"]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.characters(), max_size=30).map("".join)


@given(TEXTS)
def test_no_character_is_lost(text: str) -> None:
    without_quotes = text.translate(dict.fromkeys(map(ord, "「」『』“”")))
    parts = cut(without_quotes)
    marks = find_key_messages(without_quotes)
    assert {number for _, ids in parts for number in ids} <= set(marks)
    assert "".join(words for words, _ in parts) == strip_key_marks(without_quotes)
    # With quotes a mark may be somebody's words; nothing else may be missing.
    joined = "".join(words for words, _ in cut(text))
    assert strip_key_marks(joined) == strip_key_marks(text)


WORDS = st.text("去看海吃鱼下雨12，、", min_size=1, max_size=12).filter(
    # A sign at the beginning would belong to the sentence before it.
    lambda words: words[0].isalnum()
)
QUOTES = st.builds(
    lambda a, inner, b: f"「{a}{inner}{b}」",
    st.text("好走。！？；\n“”（关键消息：[1]）", max_size=8),
    st.just("") | st.text("嗯。！", max_size=4).map(lambda inner: f"『{inner}』"),
    st.text("好走。！？；", max_size=8),
)
SENTENCES = st.builds(
    lambda before, quote, end: f"{before}{quote}{end}",
    WORDS,
    st.just("") | QUOTES,
    st.sampled_from("。！？；"),
)


@given(
    st.lists(
        st.tuples(
            st.lists(SENTENCES, min_size=1, max_size=3),
            st.sets(st.integers(1, 99), min_size=1, max_size=3),
        ),
        max_size=4,
    )
)
def test_groups_keep_their_marks(groups: list[tuple[list[str], set[int]]]) -> None:
    text = "".join("".join(words) + key_mark(sorted(ids)) for words, ids in groups)
    expected = [(words, tuple(sorted(ids))) for group, ids in groups for words in group]
    assert cut(text) == expected


@given(st.lists(QUOTES, max_size=4))
def test_quotes_are_found_whole(quotes: list[str]) -> None:
    assert quoted_spans("说".join(quotes)) == [quote[1:-1] for quote in quotes]


@pytest.mark.parametrize(
    "text",
    ["「" * 40_000, "「『" * 20_000, "『" * 40_000, "“" * 40_000, "（" * 40_000,
     "「" + "『』" * 20_000, "「a" * 20_000, "。「" * 20_000],
    ids=range(8),
)  # fmt: skip
def test_brackets_that_never_close_are_read_through(text: str) -> None:
    assert "".join(words for words, _ in cut(text)) == text


# —— tracing ——


def memory(kind: MemoryKind, period: str, text: str, sources: tuple[str, ...]) -> Memory:
    keys = find_key_messages(text)
    return Memory(kind, period, text, keys, sources, 1, "offline", NOW)


def activity(number: int, text: str, first: int, last: int) -> Activity:
    return Activity(
        number=number,
        date="2025-05-03",
        text=text,
        key_messages=find_key_messages(text),
        origin="window",
        time=SPOKEN,
        writer="offline",
        written_at=NOW,
        ranges=((first, last),),
    )


YEAR = memory(
    "year",
    "2025",
    "5月去了海边（关键消息：[2,7]）。9月搬家（关键消息：[30]）。",
    ("2025-05", "2025-09"),
)


def held() -> Held:
    memories = [
        YEAR,
        memory(
            "month",
            "2025-05",
            "3日出海（关键消息：[2]）；4日回来（关键消息：[7,9]）。",
            ("2025-05-03", "2025-05-04"),
        ),
        memory("month", "2025-09", "搬家。（关键消息：[30]）", ("2025-09-01",)),
        memory("day", "2025-05-03", "船开了。（关键消息：[2]）吐了。（关键消息：[3]）", ("1", "2")),
        memory("day", "2025-05-04", "到家。（关键消息：[7,9]）", ("3",)),
    ]
    activities = [
        activity(1, "在码头。（关键消息：[2]）", 1, 4),
        activity(2, "在船上。（关键消息：[3]）", 3, 4),
        activity(3, "下船。（关键消息：[7,9]）", 5, 9),
    ]
    messages = {seq: said(f"第{seq}句", seq) for seq in range(1, 10)}
    return Held(
        {(m.kind, m.period): m for m in memories}, {a.number: a for a in activities}, messages
    )


def shape(found: Trace) -> tuple[object, ...]:
    return (found.kind, found.ref, *map(shape, found.below), *(m.seq for m in found.messages))


def test_a_sentence_is_followed_down_to_its_messages() -> None:
    first, second = sentences(YEAR.text)
    found = trace(held(), YEAR, first)
    assert shape(found) == (
        "year", "2025",
        ("month", "2025-05", ("day", "2025-05-03", ("activity", "1", 2))),
        ("month", "2025-05", ("day", "2025-05-04", ("activity", "3", 7))),
    )  # fmt: skip
    assert found.reached == {2, 7}
    assert found.complete
    broken = trace(held(), YEAR, second)
    assert (broken.reached, broken.complete) == (frozenset(), False)


def test_of_a_group_the_sentence_nearest_in_wording_is_shown() -> None:
    note = activity(5, "大家在闲聊。阿禾说「船票买好了」。川子没说话。（关键消息：[2]）", 1, 4)
    day = memory("day", "2025-05-03", "阿禾说「船票买好了」。（关键消息：[2]）", ("5",))
    held = Held({}, {5: note}, {2: said("船票买好了", 2)})
    (part,) = sentences(day.text)
    (found,) = trace(held, day, part).below
    assert found.sentence.text == "阿禾说「船票买好了」。"


OPENING = "阿澈、小鹿、川子和老板娘中午十二点前后在群里聊面馆。"


def beneath(day_text: str, activity_text: str, messages: dict[int, str]) -> list[str]:
    """What the sentence, or sentences of one mark, of a day lead to in its only activity."""
    note = activity(4, activity_text, 1, 99)
    day = memory("day", "2025-05-03", day_text, ("4",))
    lines = {seq: said(text, seq) for seq, text in messages.items()}
    held = Held({}, {4: note}, lines)
    return [
        below.sentence.text for part in passages(day.text) for below in trace(held, day, part).below
    ]


def test_of_a_group_the_sentence_that_tells_the_cited_words_is_shown() -> None:
    quote = "老板娘告诉大家「真的，想开一家面馆」。"
    rest = "阿澈说「那我要第一个来吃」，川子说「我要加两个蛋，再来一碗汤，就在店里坐一下午」。" * 3
    said_33 = {33: "真的，想开一家面馆，就在学校门口"}
    mark = "（关键消息：[33,35,36]）"
    day = f"{OPENING}{quote}（关键消息：[33]）"
    assert beneath(day, f"{OPENING}{quote}{rest}{mark}", said_33) == [OPENING + quote]
    far = f"{OPENING}{rest}{quote}{mark}"
    assert beneath(day, far, said_33) == [quote]
    own = "大家聊面馆，聊得很开心，阿澈、小鹿和川子都在群里。（关键消息：[33]）"
    assert beneath(own, f"{OPENING}{rest}{quote}{mark}", said_33) == [quote]


def test_two_marks_of_the_same_message_lead_to_the_one_that_tells_its_words() -> None:
    text = "川子考过了科目三（关键消息：[5,1]）；又说了一遍看海（关键消息：[1]）。"
    words = {1: "去年说好的：明年一起去看海", 5: "我今天考过了科目三！太开心了"}
    assert beneath("看海！（关键消息：[1]）", text, words) == ["又说了一遍看海。"]
    assert beneath("考过了。（关键消息：[5]）", text, words) == ["川子考过了科目三；"]
    assert beneath("嗯！（关键消息：[2]）", "没人说话。又静了。（关键消息：[2]）", {}) == [
        "没人说话。"
    ]


def test_every_sentence_is_checked() -> None:
    notes = held()
    (lie,) = [activity(6, "阿禾说「没人听见」，花了80块。（关键消息：[5]）没有出处。", 5, 9)]
    found = check(Held(notes.memories, {**notes.activities, 6: lie}, notes.messages), CALENDAR)
    assert (found.sentences, found.uncited, found.traced) == (13, 1, 10)
    assert (found.quotes, found.verbatim) == (1, 0)
    assert "「没人听见」" in found.claims
    assert "80" in found.claims
    named = check(Held({}, {6: lie}, notes.messages), CALENDAR, ["80后", "「没人听见」"])
    assert named.claims == ()


def test_what_cites_nothing_is_not_complete() -> None:
    assert not trace(held(), YEAR, Sentence("没有出处。", ())).complete


def test_an_activity_reaches_only_its_own_window() -> None:
    note = activity(4, "乱引。（关键消息：[2,8]）", 8, 9)
    (part,) = sentences(note.text)
    assert trace(held(), note, part).reached == {8}
    assert not trace(held(), note, part).complete


# —— evidence ——


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("阿禾说「明早六点码头见」。", "那就明早六点码头见哈"),
        ("她说「海好蓝……想哭」。", "海好蓝啊，我都想哭了"),
        ("他说「那条『禁止钓鱼』的牌子」。", "那条「禁止钓鱼」的牌子"),
        ("他说「那条『禁止钓鱼』的牌子」。", "那条“禁止钓鱼”的牌子"),
        ("人均600块。", "算下来人均６００块"),
        ("3日晚上去了海边。", "去海边"),
        ("2025年5月3日去了。", "去"),
        ("5月10日要出发。", "下周六出发"),
        ("20:15左右，大家到了。", "到了"),
        ("约好8点。", "好"),
        ("阿禾2号说好。", "好"),
        ("涨到3.5倍。", "涨到3.5倍"),
        ("什么都没有引。", "好"),
    ],
)
def test_supported(sentence: str, message: str) -> None:
    name = "阿禾2号" if "2号" in sentence else "阿禾"
    assert unsupported(sentence, [said(message, name=name)], CALENDAR) == []


@pytest.mark.parametrize(
    ("sentence", "message", "missing"),
    [
        ("阿禾说「后天见」。", "明天见", ["「后天见」"]),
        ("她说「想哭……海好蓝」。", "海好蓝啊，我都想哭了", ["「想哭……海好蓝」"]),
        ("她说「」。", "好", ["「」"]),
        ("她说「……」。", "好", ["「……」"]),
        ("人均600块。", "人均1600块", ["600"]),
        ("人均600块，共3人。", "人均600块", ["3"]),
        ("12日去了海边。", "去海边", ["12"]),
        ("2024年5月3日去了。", "去", ["2024", "5", "3"]),
        ("07:00到的。", "到了", ["07", "00"]),
        ("约好11点。", "好", ["11"]),
    ],
)
def test_not_supported(sentence: str, message: str, missing: list[str]) -> None:
    assert unsupported(sentence, [said(message)], CALENDAR) == missing


def test_a_quote_is_not_put_together_from_two_messages() -> None:
    messages = [said("海好蓝"), said("我想哭", 2, at=SPOKEN + timedelta(minutes=1))]
    assert unsupported("「海好蓝……想哭」", messages, CALENDAR) == ["「海好蓝……想哭」"]
    assert unsupported("「海好蓝」「想哭」", messages, CALENDAR) == []


def test_nothing_is_supported_by_nothing() -> None:
    assert unsupported("「好」3日8点5个", [], CALENDAR) == ["「好」", "3", "8", "5"]


@given(TEXTS, TEXTS)
def test_hostile_text_is_judged_too(sentence: str, message: str) -> None:
    missing = unsupported(sentence, [said(message)], CALENDAR)
    assert unsupported(sentence, [said(message), said(sentence, 2)], CALENDAR) <= missing
