"""The sample chat: the same for a seed, believable as a calendar, and true to its own story."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
import json
from pathlib import Path
from random import Random
import re
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.demo import chatter, story
from plugins.nonebot_plugin_nianlun.demo.chatter import Grammar, load_grammar
from plugins.nonebot_plugin_nianlun.demo.markup import segments
from plugins.nonebot_plugin_nianlun.demo.people import PEOPLE
from plugins.nonebot_plugin_nianlun.demo.sample import (
    SAMPLE_CHAT,
    SAMPLE_NOW,
    TRIP_QUESTION,
    sample_lines,
)
from plugins.nonebot_plugin_nianlun.demo.story import Scene, Story, load_story

ZONE = ZoneInfo("Asia/Shanghai")
LINES = list(sample_lines())
MESSAGES: list[dict[str, Any]] = [line for line in LINES if line["type"] == "message"]
STORY = load_story()
GRAMMAR = load_grammar()
SCRIPTED = {saying.words for scene in STORY.scenes for saying in scene.sayings}


def time_of(message: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(message["time"])


def day_of(message: dict[str, Any]) -> date:
    return (time_of(message).astimezone(ZONE) - timedelta(hours=4)).date()


def said_on(day: str) -> str:
    return "\n".join(f"{m['name']}：{m['text']}" for m in MESSAGES if day_of(m).isoformat() == day)


def said_in(scene: Scene) -> str:
    return "\n".join(f"{saying.who}：{saying.words}" for saying in scene.sayings)


def test_a_seed_always_makes_the_same_chat() -> None:
    again = json.dumps(list(sample_lines()), ensure_ascii=False)
    assert again == json.dumps(LINES, ensure_ascii=False)


def test_another_seed_changes_the_talk_but_not_the_story() -> None:
    other = [line for line in sample_lines(7) if line["type"] == "message"]
    texts, others = Counter(m["text"] for m in MESSAGES), Counter(m["text"] for m in other)
    assert others != texts
    plain = Counter(
        saying.words
        for scene in STORY.scenes
        for saying in scene.sayings
        if not re.search(r"[@<\[\\]", saying.words)
    )
    assert len(plain) > 1900
    assert plain <= texts
    assert plain <= others


def test_it_is_as_long_as_promised() -> None:
    days = Counter(day_of(m) for m in MESSAGES)
    span = max(days) - min(days)
    assert 5500 <= len(MESSAGES) <= 6500
    assert len({f"{day:%Y-%m}" for day in days}) == 16
    assert span > timedelta(days=455)
    assert sum(len(scene.sayings) for scene in STORY.scenes) >= 2200
    assert 10 < span.days - len(days) < 150, "some days are silent, most are not"
    assert sum(count >= 80 for count in days.values()) >= 3
    weekend = sum(count for day, count in days.items() if not STORY.is_workday(day))
    assert weekend / len(MESSAGES) > 0.36, "livelier than two days of seven"


def test_the_shape_is_that_of_an_export() -> None:
    header, *rest = LINES
    assert header["type"] == "header"
    assert (header["format"], header["version"]) == ("nianlun", 1)
    assert header["chat"] == str(SAMPLE_CHAT)
    assert header["self_id"] == SAMPLE_CHAT.self_id
    kinds = [line["type"] for line in rest]
    assert kinds == ["speaker"] * len(PEOPLE) + ["message"] * len(MESSAGES)
    speakers = {line["user_id"]: line for line in rest if line["type"] == "speaker"}
    assert all(line["names"][0] == line["name"] for line in speakers.values())
    for message in MESSAGES:
        assert message["name"] in speakers[message["user_id"]]["names"]


def test_order_ids_and_times() -> None:
    assert [m["seq"] for m in MESSAGES] == list(range(1, len(MESSAGES) + 1))
    assert len({m["message_id"] for m in MESSAGES}) == len(MESSAGES)
    times = [m["time"] for m in MESSAGES]
    assert times == sorted(times)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time) for time in times)
    assert timedelta(hours=1) < SAMPLE_NOW - time_of(MESSAGES[-1]) < timedelta(hours=24)
    assert SAMPLE_NOW.tzinfo is UTC
    assert day_of({"time": SAMPLE_NOW.isoformat()}) > day_of(MESSAGES[-1])


def test_the_text_is_what_the_segments_say() -> None:
    for message in MESSAGES:
        assert message["text"] == readable(message["segments"], lambda _: None)
        assert message["withdrawn"] == (message["text"] == "")
    assert 1 <= sum(m["withdrawn"] for m in MESSAGES) <= 4
    kinds = Counter(s["type"] for m in MESSAGES for s in m["segments"])
    assert {"text", "at", "face", "image", "reply", "record", "file"} <= set(kinds)


def test_replies_quote_an_earlier_line() -> None:
    ids = {m["message_id"]: m["seq"] for m in MESSAGES}
    replies = [m for m in MESSAGES if m["reply_to"] is not None]
    assert len(replies) >= 20
    for message in replies:
        assert message["reply_to"] < message["seq"]
        assert ids[message["segments"][0]["data"]["id"]] == message["reply_to"]
        assert MESSAGES[message["reply_to"] - 1]["text"]
    assert not any(
        s["type"] == "reply" for m in MESSAGES if not m["reply_to"] for s in m["segments"]
    )


def test_nothing_is_said_too_often() -> None:
    laughter = re.compile(r"[哈！嗯啊呜]+")
    counts = Counter(m["text"] for m in MESSAGES if len(m["text"]) >= 8)
    often = {text: n for text, n in counts.items() if n > 4 and not laughter.fullmatch(text)}
    assert often == {}
    chatted = {text: n for text, n in counts.items() if text not in SCRIPTED}
    assert len(chatted) > 1200


def test_everybody_speaks_and_has_a_voice() -> None:
    said: dict[str, list[str]] = {}
    for message in MESSAGES:
        said.setdefault(message["user_id"], []).append(message["text"])
    assert set(said) == {person.user_id for person in PEOPLE.values()}
    assert all(len(texts) > 250 for texts in said.values())

    def share(name: str, ending: str) -> float:
        texts = said[PEOPLE[name].user_id]
        return sum(text.endswith(ending) for text in texts) / len(texts)

    assert share("陈默", "。") > 0.5 > 0.01 > share("川子", "。")
    assert share("小满", "！") > 0.25 > share("陈默", "！")


def test_one_person_changes_the_card_once() -> None:
    cards = [m["name"] for m in MESSAGES if m["user_id"] == PEOPLE["川子"].user_id]
    changes = [pair for pair in pairwise(cards) if pair[0] != pair[1]]
    assert changes == [("林川-后端", "川子")]


WEEKDAY = re.compile(r"(?:(\d{1,2})月)?(\d{1,2})[日号](?:是)?(?:周|星期)([一二三四五六日])")
NEAR = re.compile(r"(今天|昨天|明天|后天)(?:是|又?(?=周))*周([一二三四五六日])(?!前|后)")
OFFSETS = {"今天": 0, "昨天": -1, "明天": 1, "后天": 2}


def test_dates_and_weekdays_agree_with_the_calendar() -> None:
    checked = 0
    for message in MESSAGES:
        day = day_of(message)
        for month, number, weekday in WEEKDAY.findall(message["text"]):
            around = [day + timedelta(days=offset) for offset in range(-40, 60)]
            meant = [d for d in around if d.day == int(number) and d.month == int(month or d.month)]
            assert weekday in {story.WEEKDAYS[d.weekday()] for d in meant}, message
            checked += 1
        for word, weekday in NEAR.findall(message["text"]):
            meant_day = day + timedelta(days=OFFSETS[word])
            assert story.WEEKDAYS[meant_day.weekday()] == weekday, message
            checked += 1
    assert checked >= 20


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("2025-01-28", "新年快乐"),
        ("2025-02-12", "元宵快乐"),
        ("2025-04-04", "青团"),
        ("2025-05-31", "端午"),
        ("2025-10-06", "中秋快乐"),
        ("2025-12-31", "2026！"),
        ("2026-02-16", "马年快乐"),
        ("2026-04-04", "青团"),
    ],
)
def test_festivals_are_on_their_days(day: str, words: str) -> None:
    assert words in said_on(day)


@pytest.mark.parametrize(
    ("made", "promise", "kept", "sign"),
    [
        ("2025-01-30", "初八提醒你", "2025-02-05", "双份腰花"),
        ("2025-02-27", "周五前还你", "2025-02-28", "转了"),
        ("2025-03-10", "4月8日", "2025-04-08", "出发前三天我来看天气"),
        ("2025-04-16", "27号前修完发群里", "2025-04-29", "对不起，我忘了"),
        ("2025-05-09", "买一台显微镜", "2026-03-31", "显微镜下单了"),
        ("2025-06-27", "每月1号", "2025-08-01", "给你列七月的大事"),
        ("2025-06-27", "明年春天我回来", "2026-03-07", "我回来了"),
        ("2025-07-04", "18号前上线", "2025-07-18", "还没开始写"),
        ("2025-07-22", "会提前三天说", "2026-03-29", "提前两天"),
        ("2025-11-16", "请大家吃一顿好的", "2025-12-21", "今天请了"),
        ("2026-01-03", "3月底前做完", "2026-03-29", "第二版网页做完了"),
        ("2026-01-11", "欠蔓蔓一碗腰花面", "2026-02-24", "还你的"),
        ("2026-03-29", "4月15号给你", "2026-04-15", "没过期"),
    ],
)
def test_promises_come_due(made: str, promise: str, kept: str, sign: str) -> None:
    assert promise in said_on(made)
    assert sign in said_on(kept)
    assert made < kept


@pytest.mark.parametrize("joke", ["五分钟", "微笑", "洞洞鞋", "伞", "周五打球", "馄饨", "老周的腰"])
def test_running_jokes_run_on(joke: str) -> None:
    words = joke.split("的")
    told = [s for s in STORY.scenes if all(word in said_in(s) for word in words)]
    assert len({f"{scene.start:%Y-%m}" for scene in told}) >= 5


def test_the_trip_of_last_spring_can_be_asked_about() -> None:
    assert "去年春天" in TRIP_QUESTION
    trip = [m for m in MESSAGES if date(2025, 4, 11) <= day_of(m) <= date(2025, 4, 13)]
    assert len(trip) > 200
    assert "枸杞岛" in TRIP_QUESTION
    assert sum("枸杞岛" in m["text"] for m in MESSAGES) > 30
    assert any("贻贝面" in m["text"] or "面要出锅" in m["text"] for m in trip)


def test_the_character_never_claims_a_body() -> None:
    mine = [m["text"] for m in MESSAGES if m["user_id"] == "me"]
    claims = re.compile(r"我(?:刚|在|也)?(?:吃了|喝了|睡着|睡醒|到家|下班|走路|跑步|闻到)")
    assert [text for text in mine if claims.search(text)] == []
    assert mine[0].startswith("大家好，我是年轮")
    assert any("我没有身体" in text for text in mine)


def test_who_is_away_takes_no_part_in_everyday_talk() -> None:
    quarrel = [m for m in MESSAGES if date(2025, 7, 19) <= day_of(m) <= date(2025, 7, 21)]
    names = {m["name"] for m in quarrel if m["text"] not in SCRIPTED}
    assert names.isdisjoint({"阿禾", "川子"})


def test_a_false_weekday_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.txt").write_text("## 2025-01-04 周五 19:52 建群\n", "utf-8")
    monkeypatch.setattr(story, "_FOLDER", tmp_path)
    with pytest.raises(story.ScriptError, match=r"x\.txt:1: .*周六"):
        load_story()


@pytest.mark.parametrize(
    "lines",
    ["谁：你好", "阿禾：", "阿禾: 你好", "## 2025-01-04 19:52 建群", "~ 2025-01-04", "-- 25:00"],
)
def test_a_broken_script_names_its_line(
    lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "## 2025-01-04 周六 19:52 建群\n"
    (tmp_path / "x.txt").write_text(head + lines, "utf-8")
    monkeypatch.setattr(story, "_FOLDER", tmp_path)
    with pytest.raises(story.ScriptError, match=r"x\.txt:2: "):
        load_story()


def grammar_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> Grammar:
    (tmp_path / "words.txt").write_text("菜：面|粥\n", "utf-8")
    (tmp_path / "x.txt").write_text(lines, "utf-8")
    monkeypatch.setattr(chatter, "_FOLDER", tmp_path)
    return load_grammar()


def test_slots_agree_within_a_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "= t8-9\n阿禾：{菜}{菜2}{1:甲|乙}{价:1-9}\n川子：{菜}{菜2}{1:甲|乙}{价}"
    grammar = grammar_of(tmp_path, monkeypatch, lines)
    for seed in range(30):
        (_, first), (_, second) = grammar.tell(grammar.conversations[0], Random(seed))
        assert first == second
        assert {"面", "粥"} <= set(first)


@pytest.mark.parametrize("line", ["= t8-9\n阿禾：{汤}", "= wann\n阿禾：好", "= t8-9\n谁：好"])
def test_a_broken_grammar_names_its_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(story.ScriptError, match=r"x\.txt:\d: "):
        grammar_of(tmp_path, monkeypatch, line)


@given(st.integers(), st.sampled_from(range(len(GRAMMAR.conversations))))
def test_whatever_is_chosen_leaves_no_slot_open(seed: int, number: int) -> None:
    told = GRAMMAR.tell(GRAMMAR.conversations[number], Random(seed))
    assert told
    assert not [words for _, words in told if re.search(r"[{}|]", words)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("@小满 早", "@小满 早"),
        ("@小满早", "@小满 早"),
        ("看[图片][动画表情]", "看[图片][动画表情]"),
        ("好[表情:doge]", "好[表情:doge]"),
        ('[语音 12"]', '[语音 12"]'),
        ("[文件: 表.xlsx]", "[文件: 表.xlsx]"),
        ("a\\nb", "a\nb"),
        ("@某人 [没有]", "@某人 [没有]"),
    ],
)
def test_markup_reads_as_it_is_written(words: str, text: str) -> None:
    made = segments(words, lambda name: name, "10001", Random(0))
    assert readable(made, lambda _: None) == text


def test_spans_rule_over_everyday_talk() -> None:
    span = story.Span(date(2025, 1, 1), date(2025, 1, 2), "0.5")
    away = story.Span(date(2025, 1, 2), date(2025, 1, 2), "without 阿禾 川子")
    free = story.Span(date(2025, 1, 1), date(2025, 1, 1), "holiday")
    made = Story((), (span, away, free))
    assert [made.amount(date(2025, 1, day)) for day in (1, 3)] == [0.5, 1.0]
    assert made.absent(date(2025, 1, 2)) == {"阿禾", "川子"}
    assert [made.is_workday(date(2025, 1, day)) for day in (1, 2)] == [False, True]
