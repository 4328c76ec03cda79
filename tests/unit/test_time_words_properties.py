"""Any text at any moment is safe to read, and every way to write a date reads back as that date."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.time_lexicon import count, whole_number
from plugins.nonebot_plugin_nianlun.memory.time_words import TimeRange, parse_time_range

ZONES = st.sampled_from(
    ["Asia/Shanghai", "UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]
).map(ZoneInfo)
STARTS = st.builds(time, st.integers(0, 11), st.sampled_from([0, 1, 30, 59]))
CALENDARS = st.builds(Calendar, ZONES, STARTS)
# Any moment of the years that a datetime can hold, and mostly those of our time.
MOMENTS = st.one_of(
    st.datetimes(datetime(2001, 1, 1), datetime(2049, 12, 31)),  # noqa: DTZ001
    st.datetimes(),
).map(lambda moment: moment.replace(tzinfo=UTC))
PIECES = """
昨 今 明 前 后 大 天 晚 早 上 下 周 个 月 年 日 号 初 底 一 二 十 百 两 三 几 半 多 0 1 2 31 12 ９ ○
2024 24 99999 - / . 到 至 和 、 去年 前年 春节 国庆 国庆节 周三 星期天 礼拜 最近 过去 这 刚才
天前 小时前 以前 以来 不是 每 凌晨 晚上 夏天 上半年 季度 什么 吗 ？ 。 了 的 我 last
this next week month year Monday March may 3rd ago two a few days in on 2023
yesterday night since between and to the of
"""
WORDS = st.sampled_from([*PIECES.split(), " ", "\n", "\u200b", "\ud800", "\x00"])
TEXTS = st.one_of(st.text(), st.lists(WORDS, max_size=12).map("".join))
RECENT = st.dates(date(2001, 1, 1), date(2049, 12, 31))
DIGITS = "〇一二三四五六七八九"
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def numeral(number: int) -> str:
    tens, ones = divmod(number, 10)
    head = "" if tens == 0 else "十" if tens == 1 else f"{DIGITS[tens]}十"
    return head + (DIGITS[ones] if ones else "")


def hundreds(number: int) -> str:
    head, rest = divmod(number, 100)
    if head == 0:
        return numeral(number)
    tens, ones = divmod(rest, 10)
    middle = f"{DIGITS[tens]}十" if tens else "零" if ones else ""
    return f"{DIGITS[head]}百{middle}{DIGITS[ones] if ones else ''}"


def wide(text: str) -> str:
    return text.translate({ord(digit): chr(ord(digit) + 0xFEE0) for digit in "0123456789"})


FULL: dict[str, Callable[[date], str]] = {
    "iso": lambda d: d.isoformat(),
    "slashes": lambda d: f"{d.year}/{d.month}/{d.day}",
    "dots": lambda d: f"{d.year}.{d.month}.{d.day}",
    "figures": lambda d: f"{d.year}年{d.month}月{d.day}日",
    "hao": lambda d: f"{d.year}年{d.month:02}月{d.day:02}号",
    "wide": lambda d: wide(f"{d.year}年{d.month}月{d.day}日"),
    "short year": lambda d: f"{d.year % 100:02}年{d.month}月{d.day}日",
    "numerals": lambda d: (
        "".join(DIGITS[int(digit)] for digit in str(d.year))
        + f"年{numeral(d.month)}月{numeral(d.day)}日"
    ),
    "month first": lambda d: f"{MONTHS[d.month - 1]} {d.day}, {d.year}",
    "day first": lambda d: f"{d.day} {MONTHS[d.month - 1]} {d.year}",
    "short": lambda d: f"{MONTHS[d.month - 1][:3]} {d.day} {d.year}",
    "ordinal": lambda d: f"on the {d.day}th of {MONTHS[d.month - 1]} {d.year}",
}
YEARLESS: dict[str, Callable[[date], str]] = {
    "figures": lambda d: f"{d.month}月{d.day}日",
    "hao": lambda d: f"{d.month}月{d.day}号聊了什么",
    "numerals": lambda d: f"{numeral(d.month)}月{numeral(d.day)}日",
    "slash": lambda d: f"{d.month}/{d.day}聊了什么",
    "month first": lambda d: f"what did I say on {MONTHS[d.month - 1]} {d.day}?",
    "day first": lambda d: f"{d.day} {MONTHS[d.month - 1]}",
}


def read(text: str, calendar: Calendar, now: datetime) -> TimeRange | None:
    return parse_time_range(text, now=now, tz=calendar.zone, day_starts_at=calendar.day_starts_at)


def noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)


@given(TEXTS, MOMENTS, CALENDARS)
def test_any_text_at_any_moment_opens_a_window_forwards_or_none(
    text: str, now: datetime, calendar: Calendar
) -> None:
    window = read(text, calendar, now)
    if window is not None:
        assert window.begin < window.end
        assert window.begin.tzinfo is UTC
        assert window.end.tzinfo is UTC
        assert window.words
        assert window.first_day <= window.last_day
        wider = window.widened()
        assert wider.begin <= window.begin
        assert wider.end >= window.end
        assert wider.widened().begin <= wider.begin


@given(st.text(st.characters(exclude_categories=[]), max_size=60), MOMENTS)
def test_text_around_a_time_never_raises(text: str, now: datetime) -> None:
    calendar = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
    for whole in (text + "昨天" + text, "7月21日" + text, text + "天前", "last " + text):
        window = read(whole, calendar, now)
        assert window is None or window.begin < window.end


@pytest.mark.parametrize("form", FULL)
@given(day=RECENT, now=RECENT.map(noon), calendar=CALENDARS)
def test_a_whole_date_reads_back(form: str, day: date, now: datetime, calendar: Calendar) -> None:
    window = read(FULL[form](day), calendar, now)
    assert window
    assert (window.begin, window.end) == (calendar.start_of(day), calendar.end_of(day))


@pytest.mark.parametrize("form", YEARLESS)
@given(today=RECENT, back=st.integers(0, 364))
def test_a_date_without_its_year_is_the_last_one(form: str, today: date, back: int) -> None:
    calendar = Calendar(ZoneInfo("UTC"), time(4))
    day = today - timedelta(days=back)
    window = read(YEARLESS[form](day), calendar, noon(today))
    assert window
    assert window.first_day == window.last_day == day


@given(RECENT, st.integers(1, 999))
def test_days_ago_in_figures_and_numerals(today: date, number: int) -> None:
    calendar = Calendar(ZoneInfo("UTC"), time(4))
    for words in (str(number), wide(str(number)), hundreds(number)):
        window = read(f"{words}天前", calendar, noon(today))
        assert window
        assert window.first_day == window.last_day == today - timedelta(days=number)


@given(RECENT, st.integers(-60, 60))
def test_weekdays_of_weeks_away(today: date, shift: int) -> None:
    calendar = Calendar(ZoneInfo("UTC"), time(4))
    day = today + timedelta(days=shift)
    weeks = (
        day - timedelta(days=day.weekday()) - today + timedelta(days=today.weekday())
    ).days // 7
    prefix = "上" * -weeks or "下" * weeks or "这"
    window = read(f"{prefix}周{'一二三四五六日'[day.weekday()]}", calendar, noon(today))
    assert window
    assert window.first_day == window.last_day == day


@given(st.integers(1, 999))
def test_numerals_read_back(number: int) -> None:
    assert whole_number(hundreds(number)) == number
    assert count(str(number)) == (number, number)
