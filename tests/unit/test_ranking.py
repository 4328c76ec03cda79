"""The order of what was found: surroundings, speakers, repeats, and turns for each kind."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.query import Question
from plugins.nonebot_plugin_nianlun.memory.ranking import rank
from plugins.nonebot_plugin_nianlun.memory.search import Candidate, SearchKind
from plugins.nonebot_plugin_nianlun.memory.time_words import TimeRange
from plugins.nonebot_plugin_nianlun.types import ME

NOON = datetime(2026, 11, 29, 4, tzinfo=UTC)
CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
NOBODY = Question(terms=("猫",))


def line(
    seq: int, score: float = 0.0, user_id: str = "1", text: str = "", hours: float = 0
) -> Candidate:
    time = NOON + timedelta(minutes=seq, hours=hours)
    return Candidate("message", seq, score, time, text or f"第{seq}行", user_id)


def fact(ref: int, score: float, text: str) -> Candidate:
    return Candidate("fact", ref, score, NOON, text, "1", f"名{ref}", "类")


def note(ref: int, score: float, kind: SearchKind = "day") -> Candidate:
    return Candidate(kind, ref, score, NOON, f"记{ref}", period="2026-11-29")


def refs(found: list[Candidate]) -> list[int]:
    return [one.ref for one in found]


def test_the_line_behind_a_match_comes_before_a_poor_match() -> None:
    assert refs(rank([line(10, 5), line(30, 2), line(11)], NOBODY)) == [10, 11, 30]


def test_what_follows_a_match_is_nearer_to_it_than_what_precedes_it() -> None:
    assert refs(rank([line(9), line(10, 5), line(11)], NOBODY)) == [10, 11, 9]


def test_matches_side_by_side_lift_each_other() -> None:
    assert refs(rank([line(50, 5.5), line(10, 5), line(11, 5)], NOBODY)) == [11, 10, 50]


def test_a_line_hours_later_belongs_to_another_talk() -> None:
    found = rank([line(10, 5), line(11, hours=8), line(30, 0.1)], NOBODY)
    assert refs(found) == [10, 30, 11]
    assert found[-1].score == 0


def test_lines_of_somebody_who_is_named_come_first_but_others_stay() -> None:
    question = Question(terms=("猫",), named=("2",))
    found = rank([line(10, 5, "1"), line(20, 4, "2"), line(30, 2, "2")], question)
    assert refs(found) == [20, 10, 30]


def test_who_asks_comes_first_and_so_do_our_lines_to_them() -> None:
    question = Question(terms=("猫",), asker="1")
    ours, to_others = line(11, 3, ME), line(31, 6, ME)
    found = rank([line(20, 5, "2"), to_others, line(10, 1, "1"), ours], question)
    assert refs(found) == [11, 10, 31, 20]


def test_whom_the_question_speaks_of_goes_before() -> None:
    question = Question(terms=("猫",), subject=ME)
    assert refs(rank([line(10, 5, "1"), line(20, 4, ME)], question)) == [20, 10]


def test_the_time_that_is_asked_for_goes_first_then_the_day_after_it() -> None:
    noon = NOON.replace(hour=4)
    span = TimeRange.of_days(CALENDAR, noon.date(), noon.date())
    found = [line(10, 5, hours=-30), line(20, 4, hours=24), line(30, 3), line(40)]
    assert refs(rank(found, Question(terms=("猫",), span=span))) == [30, 20, 10, 40]
    assert refs(rank([line(10, 1, hours=-30), line(40)], Question(span=span))) == [40, 10]


def test_the_newest_of_equals_goes_first() -> None:
    assert refs(rank([line(10, 5), line(50, 5), line(30, 5)], NOBODY)) == [50, 30, 10]


def test_repeats_of_a_line_stand_behind_everything_else() -> None:
    found = [line(10, 5, text="OK "), line(30, 4, text="ok"), line(50, 1)]
    assert refs(rank(found, NOBODY)) == [10, 50, 30]


def test_each_is_there_once_with_its_better_score() -> None:
    assert refs(rank([line(10, 5), line(30, 4), line(10)], NOBODY)) == [10, 30]


def test_a_fact_that_matches_well_goes_first_and_another_waits_its_turn() -> None:
    question = Question(terms=("猫", "名字"))
    found = rank([*(line(n * 10, 9) for n in range(1, 6)), fact(1, 3, "有猫"), fact(2, 2, "有狗")],
                 question)  # fmt: skip
    assert [one.kind for one in found[:4]] == ["fact", "message", "message", "fact"]


def test_facts_of_whom_it_is_about_go_before_those_of_others() -> None:
    theirs = Candidate("fact", 2, 4, NOON, "有狗", "2", "名", "类")
    question = Question(terms=("猫",), named=("2",))
    assert refs(rank([fact(1, 5, "有狗"), theirs], question)) == [2, 1]


def test_no_kind_crowds_out_another() -> None:
    messages = [line(n * 10, 1) for n in range(1, 40)]
    facts = [fact(n, 50, "有狗") for n in range(40)]
    notes = [note(n, 90) for n in range(40)]
    kinds = [one.kind for one in rank([*notes, *facts, *messages], NOBODY)[:10]]
    assert kinds.count("message") >= 5
    assert kinds.count("fact") >= 2
    assert kinds.count("day") >= 2


def test_notes_alone_fill_all_places() -> None:
    assert refs(rank([note(1, 2), note(2, 3, "month")], NOBODY)) == [2, 1]


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.sampled_from(["message", "activity", "day", "month", "year", "fact"]),
        st.integers(1, 40),
        st.floats(0, 100),
        st.datetimes(timezones=st.just(UTC)),
        st.text(max_size=8),
        st.sampled_from([None, ME, "1", "2"]),
    )
)
QUESTIONS = st.builds(
    Question,
    terms=st.lists(st.text(max_size=3)).map(tuple),
    named=st.sampled_from([(), ("1",), ("1", "2")]),
    subject=st.sampled_from([None, ME, "1"]),
    asker=st.sampled_from([None, "1", "2"]),
)


@given(CANDIDATES, QUESTIONS)
def test_nothing_is_lost_or_added(candidates: list[Candidate], question: Question) -> None:
    keys = [(one.kind, one.ref) for one in rank(candidates, question)]
    assert sorted(keys) == sorted({(one.kind, one.ref) for one in candidates})


@given(CANDIDATES, QUESTIONS)
def test_messages_are_in_order_of_score(candidates: list[Candidate], question: Question) -> None:
    found = [one for one in rank(candidates, question) if one.kind == "message"]
    said = [one.text.strip().casefold() for one in found]
    scores = [one.score for one, words in zip(found, said, strict=True) if said.count(words) == 1]
    assert scores == sorted(scores, reverse=True)


def test_of_an_open_question_about_somebody_their_own_words_take_turns() -> None:
    question = Question(terms=("小鹿",), named=("2",), open=True)
    of_them = [line(10, 5, "1", "小鹿换工作了"), line(20, 4, "3", "小鹿来了")]
    own = [line(50, 0, "2", "草"), line(40, 0, "2", "下周一我去米哈游入职做策划")]
    assert refs(rank([*of_them, *own], question)) == [40, 10, 50, 20]


def test_of_lines_that_are_there_for_their_time_those_that_say_something_go_first() -> None:
    span = TimeRange.of_days(CALENDAR, NOON.date(), NOON.date())
    found = [line(10, text="手术很顺利，谢谢大家关心"), line(20, text="哈哈"), line(30, text="？")]
    assert refs(rank(found, Question(span=span, open=True))) == [10, 20, 30]
