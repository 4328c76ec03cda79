"""去年今天: the right day, one line, and never too much."""

from __future__ import annotations

from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.anniversaries import (
    YearlyFact,
    anniversary_line,
    same_dates,
    yearly_line,
)
from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens
from plugins.nonebot_plugin_nianlun.types import ME, Memory

TODAY = date(2026, 11, 30)
WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)


def day(period: str, text: str = "一起吃了火锅。") -> Memory:
    return Memory("day", period, text, (), (), 1, "model", WRITTEN)


def test_the_same_date_of_the_years_before() -> None:
    dates = same_dates(TODAY)
    assert dates[:2] == ["2025-11-30", "2024-11-30"]
    assert len(dates) == 30
    assert same_dates(date(1, 1, 1)) == []


def test_29_february_comes_round_every_year() -> None:
    assert "2024-02-29" in same_dates(date(2026, 2, 28))
    assert "2020-02-29" not in same_dates(date(2024, 2, 28))
    leap = [day("2023-02-28", "旧的。"), day("2020-02-29", "闰日。")]
    assert anniversary_line(leap, date(2024, 2, 29)) == "四年前的今天：闰日。"
    assert anniversary_line(leap[:1], date(2024, 2, 29)) == "去年今天：旧的。"
    both = [day("2024-02-29", "闰日。"), day("2025-02-28", "平日。")]
    assert anniversary_line(both, date(2026, 2, 28)) == "去年今天：平日。"
    assert anniversary_line(both[:1], date(2026, 2, 28)) == "两年前的今天：闰日。"


def test_the_latest_year_that_has_one_and_is_not_there_anyway() -> None:
    days = [
        day("2023-11-30", "三年前。"),
        day("2025-11-30", "一年前。"),
        day("2025-11-29", "差一天。"),
    ]
    assert anniversary_line(days, TODAY) == "去年今天：一年前。"
    assert anniversary_line(days, TODAY, {"2025-11-30"}) == "三年前的今天：三年前。"
    assert anniversary_line([day("2025-11-30", ""), days[0]], TODAY) == "三年前的今天：三年前。"
    assert anniversary_line(days[2:], TODAY) == ""
    assert anniversary_line([day("2006-11-30")], TODAY).startswith("20年前的今天：")


def test_references_go_and_a_long_text_ends_with_a_sentence() -> None:
    first = "小鹿第一次带我去看海，风很大，她笑得停不下来（关键消息：[3,5]）。"
    line = anniversary_line([day("2025-11-30", first + "后来我们又聊了很久很久的天，" * 9)], TODAY)
    assert line == "去年今天：小鹿第一次带我去看海，风很大，她笑得停不下来。"


@given(st.text(max_size=400) | st.text(alphabet="。，a \n字\u2028(:[1]", max_size=400))
def test_any_text_makes_at_most_one_short_line(text: str) -> None:
    line = anniversary_line([day("2025-11-30", text)], TODAY)
    assert len(line.splitlines()) <= 1
    assert estimate_tokens(line) <= 60
    assert line == "" or line.startswith("去年今天：")


def fact(text: str, name: str = "生日", owner: str = "20001") -> YearlyFact:
    return YearlyFact(owner, "birthday", name, text)


@pytest.mark.parametrize(
    "text",
    ["11月30日", "生日是 11 月 30 号", "1998-11-30", "1998年11月30日", "2001.11.30", "11/30"],
)
def test_a_yearly_day_however_it_is_written(text: str) -> None:
    line = yearly_line([fact("3月5日"), fact(text)], {"20001": "小鹿"}, TODAY)
    assert line == f"今天这个日子你记得：小鹿的 生日 {text}"


@pytest.mark.parametrize(
    "told",
    [
        fact("3月5日"),
        fact("11月3日"),
        fact("1月30日"),
        fact("11月300"),
        fact("农历11月30日"),
        fact("11-30-7"),
        fact("11月30日交报告", name="报告"),
    ],
)
def test_of_other_days_nothing_is_said(told: YearlyFact) -> None:
    assert yearly_line([told], {}, TODAY) == ""


def test_whose_day_it_is() -> None:
    wedding = fact("老周和阿宁2020年11月30日结婚", name="纪念日", owner="")
    line = yearly_line([wedding], {}, TODAY)
    assert line == "今天这个日子你记得：纪念日 老周和阿宁2020年11月30日结婚"
    assert (
        yearly_line([fact("11-30", owner=ME)], {}, TODAY) == "今天这个日子你记得：你的 生日 11-30"
    )
    leap = [fact("2月29日")]
    assert yearly_line(leap, {}, date(2026, 2, 28))
    assert not yearly_line(leap, {}, date(2024, 2, 28))


@given(st.text(), st.text(), st.text())
def test_a_yearly_day_is_one_short_line(text: str, name: str, shown: str) -> None:
    line = yearly_line([fact(f"{text}11月30日{text}", f"生日{name}")], {"20001": shown}, TODAY)
    assert len(line.splitlines()) <= 1
    assert estimate_tokens(line) <= 60
