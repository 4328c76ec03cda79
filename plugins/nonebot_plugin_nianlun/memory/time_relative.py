"""Chinese words for a time counted from now: days, weeks, 三天前, 最近三天, 刚才. Each rule is a
pattern and what it means."""

from __future__ import annotations

from datetime import timedelta
import re

from .time_lexicon import DAY_SHIFTS, NOT_NUMERAL, NUMERALS, WEEKDAYS, count
from .time_spans import Frame, Rule, Span, months, whole_year

_NO_COUNT = "[次个种场回遍顿位条件项年月口气记报志常程]"
_WEEK_AWAY = re.compile(
    r"(?:(?P<up>(?<![早晚马线以上])上{1,9})(?:一?个|一(?=周))?|(?P<down>(?<![一楼地线下])下{1,9})个?|"
    r"(?:这一?个?|本|今(?=周)))(?:周|星期|礼拜)"
    rf"(?:的?(?:周|星期|礼拜)?(?:(?P<weekday>[一二三四五六日天])(?!{_NO_COUNT})|(?P<end>末)))?"
)
_WEEKDAY = re.compile(
    rf"(?<![{NUMERALS}0-9半多])(?:周|星期|礼拜)"
    rf"(?:(?P<weekday>[一二三四五六日天])(?!{_NO_COUNT}|[福鸣围边])|(?P<end>末))"
)
_AGO = re.compile(
    rf"{NOT_NUMERAL}(?P<n>[0-9]{{1,6}}|[{NUMERALS}]{{1,7}}|半)(?P<more>[多来])?个?"
    r"(?P<unit>天|日|周|星期|礼拜|(?P<half>半)?月|年(?P<year_half>半)?|小时|钟头|分钟)(?:左右)?"
    r"(?:(?:[以之]前|前(?![端台锋面线景提排沿妻任列途]))|(?P<later>[以之]后|后(?![来悔面端续])))"
)
_FEW_AGO = re.compile(rf"{NOT_NUMERAL}(?<!好)[几数](?P<unit>天|个?小时)(?:[以之]前|前)")
_DAYS = re.compile(
    r"(?<!大)(?P<far>大{1,9})(?P<side>[前后])天(?![性气天])"
    r"|(?P<near>(?<![之以目])前|(?<![先今以然最之背])后)天(?![性气天])"
    r"|(?P<name>昨|今|(?<![小文发聪声黎光清透证])明)"
    r"(?:天(?!天)|日(?!方舟|之后|头条)|儿个?(?!童|子)|个(?=[早晚儿])|(?=[早晚夜晨]))"
    r"|(?P<eve>(?<![之以目])前)(?=晚)"
)
_LATELY = re.compile(
    r"(?:最近|过去|(?<![附最])近|这)的?(?:(?P<few>几|些)天|"
    rf"(?P<n>[0-9]{{1,4}}|[{NUMERALS}]{{1,4}}|半)个?(?P<unit>天|日|周|星期|礼拜|月|年))"
    r"(?![前后内半级])"
)
_DAYS_BEFORE = re.compile(r"(?<![之以目])前(?P<few>[几两])天")
_JUST_NOW = re.compile(r"刚刚|刚才|方才")

_WEEK = ("周", "星期", "礼拜")
_MOST = 36_600
_FEW_AWAY = (-7, -2)


def _week_away(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    shift = len(match["down"] or "") - len(match["up"] or "")
    if match["end"]:
        return frame.weekend(shift)
    if match["weekday"]:
        return frame.weekday(shift, WEEKDAYS[match["weekday"]])
    return frame.week(shift)


def _weekday(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    if match["end"]:
        return frame.weekend(0 if frame.today.weekday() >= 5 else -1)
    return frame.recent_weekday(WEEKDAYS[match["weekday"]], after)


def _ago(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    sign = 1 if match["later"] else -1
    low_high = (0, 0) if match["n"] == "半" else count(match["n"])
    if low_high is None:
        return None
    low, high = low_high
    if match["n"] == "半" or match["half"] or match["year_half"]:
        return _half_ago(match, frame, low, sign)
    if match["more"]:
        if low == 0 or low % 10:
            return None
        high = low + 9
    if not 0 < high <= _MOST:
        return None
    first, last = sorted((sign * low, sign * high))
    return _counted(frame, first, last, match["unit"])


def _counted(frame: Frame, first: int, last: int, unit: str) -> Span | None:
    """The days, whole weeks, months or years that lie that many units away."""
    if unit in ("天", "日"):
        return frame.day(first) if first == last else frame.days(first, last)
    if unit in _WEEK:
        return Span(frame.week(first).first, frame.week(last).last, "week")
    if unit == "月":
        first_month, last_month = months(*frame.month(first)), months(*frame.month(last))
        return Span(first_month.first, last_month.last, "month")
    if unit == "年":
        year = frame.today.year
        return Span(whole_year(year + first).first, whole_year(year + last).last, "year")
    minutes = 1 if unit == "分钟" else 60
    return around(frame, first * minutes, last * minutes)


def _half_ago(match: re.Match[str], frame: Frame, number: int, sign: int) -> Span | None:
    """半年前, 两年半前, 半个月前, 一个半月前, 半小时前: the half and the `number` before it."""
    unit = match["unit"]
    if unit.startswith("年"):
        return months(*frame.month(sign * (number * 12 + 6)))
    if unit.endswith("月") and number < 3:
        middle = sign * (number * 30 + 15)
        return frame.days(middle - 3 - number, middle + 3 + number, "week")
    return around(frame, sign * 30, sign * 30) if unit in ("小时", "钟头") else None


def around(frame: Frame, first: int, last: int) -> Span:
    """`first` to `last` minutes away, with room for a guess; what is past ends now."""
    room = max(10, min(60, abs(last) // 2))
    begin = frame.now + timedelta(minutes=first - room)
    end = frame.now + timedelta(minutes=last + room)
    return frame.between(begin, min(end, frame.now) if last < 0 else end)


def _few_ago(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    if match["unit"] == "天":
        return frame.days(*_FEW_AWAY)
    return around(frame, _FEW_AWAY[0] * 60, _FEW_AWAY[1] * 60)


def _days(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    if match["far"]:
        steps = 2 + len(match["far"])
        return frame.day(-steps if match["side"] == "前" else steps)
    return frame.day(DAY_SHIFTS[match["near"] or match["name"] or match["eve"]])


def _lately(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    if match["few"]:
        return frame.days(-7 if match["few"] == "些" else -5, 0)
    this = match[0].startswith("这")
    if match["n"] == "半":
        halves = {"年": (6, "月"), "月": (15, "天")}
        return until_today(frame, *halves[match["unit"]]) if match["unit"] in halves else None
    low_high = count(match["n"])
    if low_high is None or (this and low_high[1] == 1):
        return None
    return until_today(frame, low_high[1], match["unit"])


def until_today(frame: Frame, number: int, unit: str) -> Span | None:
    """From the day that lies `number` units back, through today: both ways to count are in it."""
    if not 0 < number <= _MOST:
        return None
    if unit in ("天", "日"):
        return frame.days(-number, 0)
    if unit in _WEEK:
        return frame.days(-7 * number, 0, "week")
    back = number * (12 if unit == "年" else 1)
    month = months(*frame.month(-back))
    first = month.first.replace(day=min(frame.today.day, month.last.day))
    return Span(first, frame.today, "month")


def _days_before(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    return frame.days(-7 if match["few"] == "几" else -3, -1)


def _just_now(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    return frame.between(frame.now - timedelta(hours=1), frame.now)


RELATIVE_RULES: tuple[Rule, ...] = (
    Rule(_WEEK, _WEEK_AWAY, _week_away),
    Rule(_WEEK, _WEEKDAY, _weekday),
    Rule(("几", "数"), _FEW_AGO, _few_ago),
    Rule(("前", "后"), _AGO, _ago),
    Rule(("昨", "今", "明", "前", "后"), _DAYS, _days),
    Rule(("近", "过去", "这"), _LATELY, _lately),
    Rule(("前",), _DAYS_BEFORE, _days_before),
    Rule(("刚刚", "刚才", "方才"), _JUST_NOW, _just_now),
)
