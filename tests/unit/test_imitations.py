"""What a model imitates from its prompt is taken off; what people say is left alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from pathlib import Path
from time import monotonic
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.chat import persona
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.imitations import clean_reply
from plugins.nonebot_plugin_nianlun.memory.layers import Layers, sections
from plugins.nonebot_plugin_nianlun.memory.promises import Promise, due_lines
from plugins.nonebot_plugin_nianlun.memory.prompt import Talk, build
from plugins.nonebot_plugin_nianlun.memory.recalled import Look, choose
from plugins.nonebot_plugin_nianlun.memory.reply_tools import DATA
from plugins.nonebot_plugin_nianlun.memory.search import Candidate
from plugins.nonebot_plugin_nianlun.types import ME, Activity, Memory, Message

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
AT = datetime(2026, 11, 29, 2, 0, tzinfo=UTC)
STORY = Path(persona.__file__).parents[1] / "demo" / "story"


@pytest.mark.parametrize(
    "text",
    [
        "#13 10:33 小忆: 好呀",
        "#13 10:33 小忆： 好呀",
        "#13 10:33 小忆（回复 #12）: 好呀",
        "#13 10:33 Old Wang: 好呀",
        "10:33 我: 好呀",
        "我：好呀",
        "assistant: 好呀",
        "#13 我：好呀",
        "好呀（关键消息：[12,13]）",
        "  好呀\n",
        "—— 2026-11-29 周日 ——\n#13 10:33 小忆: 好呀",
    ],
)
def test_imitations_are_taken_off(text: str) -> None:
    assert clean_reply(text) == "好呀"


IN_EACH_HAND = [
    "[#12 10:32] 小忆：好呀",
    "【#12 10:32 小忆】好呀",
    "(#12 10:32) 小忆: 好呀",
    "＃12 10：32 小忆：好呀",
    "**#12 10:32 小忆:** 好呀",
    "#12 10:32 小忆\n好呀",
    "#12 10:32\n好呀",
    "#12 10:32 好呀",
    "#12 2026-11-29 10:32 小忆（回复 #11）: 好呀",
    "#12 10:32 小忆: #13 10:33 小忆: 好呀",
    "小忆（10:32）：好呀",
    "小忆（其他功能）: 好呀",
    "【小忆】好呀",
    "我：好呀",
    "（回复 #12）好呀",
    "> #12 10:32 小鹿: 在吗\n    快出来\n好呀",
    "- #12 11-26 12:00 小鹿：我对花生过敏\n好呀",
    "好呀（&3）",
    "好呀（#12 #15）",
    "好呀（活动 &3）",
    "好呀【关键消息：[12]】",
    "好呀[关键消息：12]",
    "<|start_header_id|>assistant<|end_header_id|>\n\n好呀<|eot_id|>",
    "好呀 &3",
    "好呀 关键消息：[12,13]",
    "好呀[表情:微笑]",
    "[图片：一只猫]\n好呀",
    "【此刻】好呀",
    "好呀\n\n【此刻】2026-11-29 12:00 周日",
    "--- 11-29 周日 ---\n好呀",
    "【最近几天】\n- 2026-11-28（周六）：去爬山了\n好呀",
    "<memory>\n小鹿对花生过敏\n</memory>\n好呀",
    "<reply>好呀</reply>",
    "<|im_start|>assistant\n好呀<|im_end|>",
    "好呀<｜end▁of▁sentence｜>",
    "<memory>\n```py\n小鹿\n```\n</memory>\n好呀",
]


@pytest.mark.parametrize("text", IN_EACH_HAND)
def test_so_they_are_in_each_hand(text: str) -> None:
    assert clean_reply(text, "小忆") == "好呀"


def test_what_others_are_made_to_say_is_left_out() -> None:
    talk = "好呀\n#14 10:34 小鹿: 那明天见\n    八点\n#15 10:35 小忆: 明天见"
    assert clean_reply(talk, "小忆") == "好呀\n明天见"


def test_what_is_quoted_stays_as_people_quote() -> None:
    quoted = "她是这么说的：\n#12 10:32 小鹿: 我来了\n    带了蛋糕\n#13 10:33 阿川: 好\n就这些"
    assert clean_reply(quoted, "小忆") == (
        "她是这么说的：\n小鹿：我来了\n带了蛋糕\n阿川：好\n就这些"
    )
    assert clean_reply("#12 10:32 小鹿: 我来了\n#13 10:33 阿川: 好", "小忆") == (
        "小鹿：我来了\n阿川：好"
    )
    assert clean_reply("在群「摸鱼」（那里的 #2）他说过") == "在群「摸鱼」他说过"


def test_a_tail_goes_and_the_name_stays() -> None:
    assert clean_reply("小鹿（尾号1234）说得对") == "小鹿说得对"


def of_prompt(names: list[str], texts: list[str]) -> list[str]:
    """All that a prompt and the results of tools say of these, as they are really written."""
    lines = [
        Message(n + 10, AT, str(20_000 + n), name, text, reply_to=n or None)
        for n, (name, text) in enumerate(zip(names, texts, strict=True))
    ]
    told = [text.replace("\n", " ") for text in texts]
    layers = Layers(
        days=tuple(Memory("day", "2026-11-28", t, (1,), (), 1, "model", AT) for t in told),
        activities=(Activity(3, "2026-11-29", told[0], (12,), "turn", AT, "model", AT),),
    )
    called = dict(zip(map(str, range(20_000, 20_009)), names, strict=False))
    look = Look(CALENDAR, called, "小忆", None, this_year=AT.year)
    found = [
        Candidate(kind=kind, ref=n + 10, score=1, text=text, user_id="20000", time=AT,
                  period="2026-11-28", category="preferences", name="咖啡", place=place)
        for n, text in enumerate(told)
        for kind in ("message", "activity", "day", "fact")
        for place in ("", "群「摸鱼」")
    ]  # fmt: skip
    recalled = [item.text for item in choose(found, {}, look, 99, 10**6).items]
    due = due_lines([Promise(ME, told[0], date(2026, 11, 29))], {}, date(2026, 11, 29))
    prompt = build(
        base="", sections=sections(layers, CALENDAR), recalled=recalled, recall_budget=10**5,
        talk=Talk(lines, CALENDAR, {}, "小忆"), budget=10**6,
        tail=f"{due}\n\n【此刻】2026-11-29 12:00 周日",
    )  # fmt: skip
    return [*(turn["content"] for turn in prompt.messages), f"{DATA}\n#12 10:00 小鹿: 话"]


TALK = [line.partition("：")[2].strip() for file in sorted(STORY.glob("*.txt"))
        for line in file.read_text("utf-8").splitlines()]  # fmt: skip
HONEST = [said for said in TALK if said and "[" not in said]


def test_what_people_say_is_never_changed() -> None:
    assert len(HONEST) > 2000
    assert [said for said in HONEST if clean_reply(said, "年轮") != said] == []


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(HONEST),
    st.lists(st.sampled_from(["小鹿", "Old Wang", "阿川（尾号0009）"]), min_size=3, max_size=3),
    st.lists(st.sampled_from(HONEST), min_size=3, max_size=3),
    st.booleans(),
)
def test_whatever_of_the_prompt_stands_beside_an_answer_is_taken_off(
    answer: str, names: list[str], texts: list[str], before: bool
) -> None:
    for part in of_prompt(names, texts):
        blocks = [block for block in part.split("\n\n") if not block.startswith("你叫")]
        for block in [part, *blocks]:
            both = f"{block}\n{answer}" if before else f"{answer}\n{block}"
            assert clean_reply(both, "小忆") == answer


ORDINARY = [
    "10:30 见",
    "那就 10:30 见吧：老地方",
    "他说：「我：不去」",
    "我觉得：都行",
    "我们：一二三",
    "比分 3:2，厉害",
    "#话题# 今天吃什么",
    "#1 先洗菜",
    "记得看 #12 那条",
    "C# 和 F# 都行",
    "第一行\n\n第二行",
    "  缩进\n    也在".strip(),
    "关键是：消息太多",
    "—— 这句是破折号",
    "【通知】明天停水",
    "【最近几天】我都在想你",
    "【此处有掌声】",
    "排在（#1），厉害",
    "#1 10:30 集合\n#2 11:00 出发",
    "- 2026-11-29：出发\n- 2026-11-30：回来",
    "他：走吗\n我：不走",
    "我：去吗\n他：不去",
    "银行卡（尾号1234）扣了 100",
    "看 https://a.b/?x=1&3=y 和 R&2",
    "x = a&1; 用 <memory> 这个标签",
    "你发的[图片]我没看清",
    "- [x] 洗碗\n- [ ] 扫地",
    "工行（尾号1234）的余额不多了",
    "这样写：\n```xml\n<message>\n  <user>a</user>\n</message>\n- [a:b]\n```\n就好",
    "```python\nx = a &1\nprint('[表情:微笑]（#12）')\n```\n\n```c\n&12 x;\n```",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_untouched(text: str) -> None:
    assert clean_reply(text, "小忆") == text


UNSEEN = st.text(
    st.one_of(
        st.sampled_from("\x00\x07\x7f\u00ad\u034f\u061c\u2060\u2800\u3164\ufeff\ufff9"),
        st.characters(min_codepoint=0x200B, max_codepoint=0x200F),
        st.characters(min_codepoint=0x202A, max_codepoint=0x202E),
        st.characters(min_codepoint=0xFE00, max_codepoint=0xFE0F),
        st.characters(min_codepoint=0xE0000, max_codepoint=0xE01EF),
    ),
    max_size=3,
)


@st.composite
def riddled(draw: st.DrawFn, texts: list[str]) -> tuple[str, str]:
    """One of these, and the same with characters that show nothing anywhere in it."""
    text = draw(st.sampled_from(texts))
    places = draw(st.dictionaries(st.integers(0, len(text)), UNSEEN, max_size=6))
    return text, "".join(
        places.get(index, "") + text[index : index + 1] for index in range(len(text) + 1)
    )


@settings(max_examples=300)
@given(riddled(IN_EACH_HAND))
def test_marks_are_seen_through_what_shows_nothing(texts: tuple[str, str]) -> None:
    assert clean_reply(texts[1], "小忆") == "好呀"


@given(riddled([*ORDINARY, *HONEST]))
def test_what_shows_nothing_stays_where_people_put_it(texts: tuple[str, str]) -> None:
    assert clean_reply(texts[1], "小忆") == texts[1].replace("\x00", "").strip()


@pytest.mark.parametrize(
    "text",
    [
        "❤️‍🔥 给你 👨‍👩‍👧 和 🏴\U000e0067\U000e0062\U000e0065\U000e007f",
        "1️⃣ 洗菜\n#️⃣ 别忘了",
        "می‌خواهم بخوابم",
        "ᠰᠠᠶ\u180bᠨ",
    ],
)
def test_what_joins_pictures_and_letters_stays_behind_a_mark(text: str) -> None:
    assert clean_reply(f"\u2060#\u200b12 10:32 小\ufeff忆: {text}", "小忆") == text


def test_what_shows_nothing_says_nothing() -> None:
    assert clean_reply("\u200b\ufeff \u2060\n\ufe0f\u3164\U000e0041") == ""
    assert clean_reply("\u200b#12 10:32 小忆: \u2060", "小忆") == ""
    assert clean_reply("小忆\ufe0f：好呀", "小\u200b忆") == "好呀"


def test_every_line_is_looked_at() -> None:
    assert clean_reply("#3 10:00 小忆: 一\n#4 10:01 小忆: 二") == "一\n二"


def test_nothing_but_marks_is_nothing_to_say() -> None:
    assert clean_reply("（关键消息：[1]）") == ""
    assert clean_reply("我：") == ""
    assert clean_reply("【此刻】2026-11-29 12:00 周日") == ""
    assert clean_reply("【这句话让你想起】\n- #12 11-26 12:00 小鹿：去爬山\n\n<|im_end|>") == ""
    assert clean_reply("[已撤回]") == ""
    assert clean_reply(" \n ") == ""


@given(st.text())
def test_nothing_is_added_and_no_id_stands_at_the_front(text: str) -> None:
    cleaned = clean_reply(text)
    assert len(cleaned) <= len(text)
    assert cleaned == cleaned.strip()


@given(st.text(alphabet="#&0123456789: ：我（）回复一好a\n", max_size=60))
def test_hostile_mixtures_end_quickly(text: str) -> None:
    assert len(clean_reply(text)) <= len(text)


@pytest.mark.parametrize(
    "unit",
    [
        "<memory>",
        "<memory x",
        "```a\n",
        "```a\n\n```\n",
        "```a ",
        "#12 10:00 ",
        "小忆: ",
        "（#12 #13",
        "[图片]",
        " -",
        "(a)",
        "&1",
    ],
)
def test_what_goes_on_and_on_ends_quickly(unit: str) -> None:
    began = monotonic()
    clean_reply(unit * 20_000, "小忆")
    assert monotonic() - began < 3


def test_huge_lines_end_quickly() -> None:
    assert clean_reply("#" + "1" * 50_000) == "#" + "1" * 50_000
    assert clean_reply("#1 10:00 " + "啊" * 50_000) == "#1 10:00 " + "啊" * 50_000


def test_its_own_name_before_a_line_is_taken_off() -> None:
    assert clean_reply("小忆: 好呀\n小忆：走吧", "小忆") == "好呀\n走吧"
    assert clean_reply("小忆说：好呀", "小忆") == "小忆说：好呀"
