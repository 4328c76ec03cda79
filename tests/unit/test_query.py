"""What a question is about: whose words are meant, which time, and which terms are left."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.people import People
from plugins.nonebot_plugin_nianlun.memory.query import Question, question_of, understand
from plugins.nonebot_plugin_nianlun.memory.terms import query_terms
from plugins.nonebot_plugin_nianlun.types import ME

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
GROUP = {
    "小忆": {ME},
    "【群主】小鹿-上海": {"1"},
    "小鹿鹿": {"2"},
    "林川-后端": {"3"},
    "阿宁": {"4", "5"},
    "Fahim Khan": {"6"},
    "Will": {"7"},
    "旧名字": {"3"},
}
PAIR = {"小忆": {ME}, "小明": {"1"}}


def ask(text: str, people: Mapping[str, set[str]] = GROUP, asker: str | None = "4") -> Question:
    return understand(text, asker=asker, people=People(people), now=NOW, calendar=CALENDAR)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("小鹿养了什么猫", ("1",)),
        ("小鹿鹿养了什么猫", ("2",)),
        ("【群主】小鹿-上海养了什么猫", ("1",)),
        ("上海的天气", ()),
        ("群主是谁", ()),
        ("林川和阿宁去哪了", ("3", "4", "5")),
        ("旧名字说过什么", ("3",)),
        ("后端挂了", ()),
        ("What does FAHIM like", ("6",)),
        ("what will happen", ("7",)),
        ("the willow", ()),
        ("小忆喜欢什么", ()),
        ("猫", ()),
    ],
)
def test_people_are_known_by_their_names(text: str, named: tuple[str, ...]) -> None:
    assert sorted(ask(text).named) == list(named)


def test_a_part_that_two_people_bear_names_nobody() -> None:
    people = {"小鹿-上海": {"1"}, "小鹿-北京": {"2"}, "阿宁": {"3"}}
    assert ask("小鹿养了什么猫", people).named == ()


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("我喜欢哪些菜系？", "4"),
        ("你给我推荐过什么书？", ME),
        ("我咨询过编程，你给过我哪些意见？", ME),
        ("你还记得我喜欢吃什么吗", "4"),
        ("小忆推荐过什么书", ME),
        ("我们去哪玩", None),
        ("谁养猫", None),
        ("What did I say about cats?", "4"),
        ("Do you remember what I like?", "4"),
        ("what did you recommend to me", ME),
        ("小鹿给我推荐过什么", None),
    ],
)
def test_pronouns_mean_who_asks_and_who_is_asked(text: str, subject: str | None) -> None:
    assert ask(text).subject == subject


def test_in_a_group_a_question_about_oneself_is_between_the_two() -> None:
    assert ask("我喜欢吃什么").asker == "4"
    assert ask("谁喜欢猫").asker is None
    assert ask("小鹿给我推荐过什么").asker is None
    assert ask("我喜欢吃什么", asker=None).asker is None


def test_what_we_talked_about_is_between_the_two() -> None:
    assert ask("我们昨天聊了什么").asker == "4"
    assert ask("What did we talk about yesterday?").asker == "4"
    assert ask("我们什么时候去爬山").asker is None


def test_whose_lines_are_of_use_without_a_term() -> None:
    assert ask("林川最近怎么样").people == ("3",)
    assert ask("我昨天心情怎么样").people == ("4",)
    assert ask("谁养猫").people == ()


def test_between_two_people_everything_is_between_them() -> None:
    question = ask("小明喜欢吃什么，我记不清了", PAIR, "1")
    assert question.asker is None
    assert "小明" not in question.terms
    assert "喜欢" in question.terms


@pytest.mark.parametrize(
    "call",
    [
        "@小忆 {}",
        "@小忆{}",
        "小忆，{}",
        "小忆 {}",
        "{}，小忆？",
        "{} 小忆",
        "早\n小忆，{}",
        "小忆小忆，{}",
    ],
)
@pytest.mark.parametrize("text", ["上个月大家去哪玩了", "大家最近怎么样", "小鹿上周说什么了"])
def test_a_call_says_nothing_of_what_is_asked(text: str, call: str) -> None:
    called, plain = ask(call.format(text)), ask(text)
    assert (called.asker, called.subject, called.named) == (None, None, plain.named)
    assert (called.span, called.people) == (plain.span, plain.people)


def test_a_longer_name_that_begins_like_its_own_is_somebody_else() -> None:
    names = {"小忆": {ME, "9"}, "小忆酱": {ME}, "小忆同学": {"2"}, "Bot": {ME}, "Botany": {"4"}}
    assert ask("@小忆同学 去年说了什么", people=names).named == ("2",)
    assert ask("@Botany said what last year", people=names).named == ("4",)
    assert "酱" not in "".join(ask("@小忆酱 去年谁欠火锅", people=names).terms)


def test_within_a_sentence_its_name_is_whom_it_is_about() -> None:
    names = {"Nian": {ME}, "Ann": {"1"}, "Bob": {"2"}, "Cy": {"3"}}
    assert ask("what did Nian recommend to me", people=names).subject == ME
    assert ask("Nian, where did Bob go last month", people=names).subject is None
    assert ask("小忆上个月推荐过什么书").subject == ME


@pytest.mark.parametrize("text", ["@小忆", "@小忆 ？", "@小忆 @小忆！", "小忆？", "小忆，小忆"])
def test_a_call_alone_asks_for_nothing(text: str) -> None:
    assert ask(text) == ask(text, PAIR, "1") == Question()
    assert ask(f"{text} 我呢").people == ("4",)


def test_a_name_alone_is_looked_for_even_between_two() -> None:
    assert "小明" in ask("小明", PAIR, "1").terms


def test_in_a_group_a_name_is_a_term_too() -> None:
    assert "小鹿" in ask("小鹿住院了吗").terms


def test_words_of_any_sentence_are_terms_only_where_there_is_nothing_else() -> None:
    assert ask("怎么样了").terms == tuple(query_terms("怎么样了"))
    assert ask("昨天怎么样了").terms == ()
    assert ask("我怎么样了").terms == ()


def test_words_of_time_are_a_time_and_no_terms() -> None:
    question = ask("4月30号我做了一道什么菜？")
    assert question.span is not None
    assert (question.span.first_day, question.span.last_day) == (date(2026, 4, 30),) * 2
    assert question.search.span == (question.span.earliest, question.span.end)
    assert question.wider is not None
    assert "30" not in question.terms


def test_without_words_of_time_all_times_are_searched() -> None:
    question = ask("谁养猫")
    assert question.search.span is None
    assert question.wider is None


def test_whom_the_search_favours() -> None:
    assert ask("你给我推荐过什么书").search.favoured == ("4", ME)
    assert set(ask("阿宁的猫").search.favoured) == {"4", "5"}
    assert ask("谁养猫").search.favoured == ()


TEXTS = st.text(st.characters(), max_size=80) | st.lists(
    st.sampled_from(["我", "你", "小鹿", "Will", "昨天", "5月1日", "\ud800", "\x00", "(", "*", " "])
).map("".join)


@given(TEXTS, st.dictionaries(TEXTS, st.sets(st.sampled_from([ME, "1", "2"])), max_size=4))
def test_no_text_and_no_name_is_too_much(text: str, people: dict[str, set[str]]) -> None:
    question = ask(text, people)
    assert set(question.favoured) <= {"4"}.union({ME}, *people.values())
    assert len(question.terms) <= 64


@given(st.text(max_size=40))
def test_without_people_and_times_the_terms_are_those_of_the_text(text: str) -> None:
    question = ask(text, {}, None)
    if question.span is None:
        assert list(question.terms) == query_terms(text)


def test_a_huge_question_takes_a_moment() -> None:
    people = {f"群友{number}": {str(number)} for number in range(1, 2_000)}
    question = ask("群友1234 你记得我吗？" + "猫" * 1_000_000, people)
    assert question.named == ("1234",)


def test_words_of_time_within_a_name_are_none() -> None:
    people = {"今天也要努力": {"1"}, "昨天": {"2"}, "阿宁": {"3"}}
    found = ask("今天也要努力减了多少斤？", people)
    assert (found.span, found.named) == (None, ("1",))
    found = ask("昨天今天也要努力减了多少斤？", people)
    assert found.span is not None
    assert (found.span.words, found.named) == ("昨天", ("1",))
    assert ask("昨天吃了什么", people).span is not None


def test_a_part_of_a_name_that_two_people_have_is_both_of_them() -> None:
    people = {"小鹿🦌": {"1", "2"}, "阿宁": {"3"}}
    assert sorted(ask("小鹿养了什么猫", people).named) == ["1", "2"]


def test_nobody_is_meant_by_a_word_that_asks() -> None:
    people = {"什么": {"1"}, "大家": {"2"}, "阿宁": {"3"}}
    found = ask("我跟大家说过我喜欢什么", people, asker="3")
    assert (found.named, found.asker) == ((), "3")


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("小鹿最近怎么样", True),
        ("小鹿怎么样了", True),
        ("小鹿说过什么", True),
        ("昨天大家聊了什么", True),
        ("昨天发生了什么事", True),
        ("what happened yesterday?", True),
        ("小鹿昨天吃了什么", False),
        ("谁养了猫", False),
    ],
)
def test_a_question_for_whatever_there_is_is_told_from_others(text: str, is_open: bool) -> None:
    assert ask(text).open is is_open


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("今天聊得好开心\n去年川子欠谁火锅", "去年"),
        ("今天聊得好开心，去年川子欠谁火锅", "去年"),
        ("今天聊得好开心 去年川子欠谁火锅", "去年"),
        ("今天聊得好开心～去年川子欠谁火锅", "去年"),
        ("去年川子欠谁火锅，今天聊得好开心", "去年"),
        ("去年川子欠谁火锅，现在还记得吗", "去年"),
        ("刚才见到川子了，他去年欠谁火锅", "去年"),
        ("今天过得怎么样，去年川子欠谁火锅", "去年"),
        ("昨天说过什么，前天呢", "前天"),
        ("前年我们去了哪，去年去了三亚", "前年"),
        ("去年我们去了三亚，前年我们去了哪", "前年"),
        ("昨天吃了什么？今天吃了什么？", "昨天"),
        ("今天的作业，去年的火锅", "去年"),
        ("今天你说的上周的事是什么", "今天"),
        ("今天小鹿提到的去年的火锅是谁欠的", "今天"),
        ("今天能告诉我去年谁欠火锅吗", "去年"),
        ("今天你还记得昨天谁说过要来吗", "昨天"),
        ("今天想知道昨天谁来过", "昨天"),
        ("我今天想问问去年谁欠谁火锅", "去年"),
        ("今天想问的是去年谁欠谁火锅", "去年"),
        ("这几天你还记得去年谁欠火锅吗", "去年"),
        ("What did you say today about last week?", "today"),
        ("在4月30号我们聊了很多，我们聊了哪些话题？", "4月30号"),
        ("I had fun today, who did he owe a dinner last year?", "last year"),
        ("今天早上，你说了什么", "今天早上"),
        ("大家今天 聊了什么", "今天"),
        ("今天聊得怎么样", "今天"),
    ],
)
def test_of_several_times_that_of_the_clause_that_asks_counts(text: str, words: str) -> None:
    span = ask(text).span
    assert span is not None
    assert span.words == words


@pytest.mark.parametrize(
    "text",
    [
        "今天聊得好开心",
        "昨天聊得好开心",
        "今天聊天真有意思",
        "今天见到川子了，他欠谁火锅来着",
        "刚才下楼了，川子欠谁火锅",
        "我今天好累，聊点别的",
        "明天要去爬山，川子欠谁火锅",
        "I had fun today, who did he owe a dinner?",
    ],
)
def test_a_passing_word_of_time_is_not_asked_about(text: str) -> None:
    assert ask(text).span is None


@pytest.mark.parametrize(
    ("lines", "looked_for"),
    [
        ([], ""),
        (["在吗"], "在吗"),
        (["今天好开心", "今天吃了什么？", "去年川子欠谁火锅"], "去年川子欠谁火锅"),
        (["去年川子欠谁火锅", "急", "今天真冷"], "去年川子欠谁火锅\n急\n今天真冷"),
        (["去年国庆去了三亚", "那次呢"], "去年国庆去了三亚\n那次呢"),
        (["阿川来过了", "他欠谁一顿火锅"], "阿川来过了\n他欠谁一顿火锅"),
        (["枸杞岛的船票", "多少钱"], "枸杞岛的船票\n多少钱"),
        (["今天好累", "去年川子欠谁火锅", "小忆？"], "今天好累\n去年川子欠谁火锅\n小忆？"),
        (["今天好累", "吉他多少钱买的来着"], "吉他多少钱买的来着"),
        (["我去了枸杞岛", "海鲜面真好吃"], "我去了枸杞岛\n海鲜面真好吃"),
    ],
)
def test_of_lines_in_one_breath_the_question_is_looked_for(
    lines: list[str], looked_for: str
) -> None:
    assert question_of(lines, "小忆") == looked_for
