"""Dates, months, years and holidays in figures and in Chinese. Each rule is a pattern and what
it means."""

from __future__ import annotations

import re

from .time_holidays import HOLIDAYS
from .time_lexicon import NOT_NUMERAL, NUMERALS, number, year_number
from .time_spans import (
    SEASONS,
    Frame,
    Rule,
    Span,
    days_of,
    holiday,
    months,
    one_day,
    season,
    third,
    whole_year,
)

# No figure begins inside another one, an address, a version or a name.
_START = r"(?<![0-9A-Za-z_./:：\-比分])"
_BLANK = r"[ \u00a0\u3000]"
_GAP = f"{_BLANK}?"
# As some set it off from figures: 12 月 4 日. Beside a numeral it parts two words: 周一 月考.
_BEHIND_FIGURE = f"(?:(?<=[0-9]){_BLANK})?"
_YEAR4 = r"(?:19|20)[0-9]{2}"
_MONTH = "(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_DAY = "(?:[12][0-9]|3[01]|0?[1-9]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
# What may stand behind a bare 5号 or 3/14: the end, a mark, or words that go on about a day.
_THEN = (
    r"(?=$|[\s，。？！、,?!;；:：)）~]|的|那|这|我|你|您|他|她|它|咱|大家|在|聊|说|有|是|发|"
    r"[早晚]|上午|中午|下午|傍晚|夜里|深夜|半夜|凌晨|到|至|和)"
)
_AFTER_SLASH = r"(?=那|我|你|您|他|她|咱|大家|聊|说|发生|早上|晚上|上午|中午|下午|凌晨)"
_TO = r"\s*(?:到|至|[~\-—–～－])+\s*"
_IS_DAY = f"{_BEHIND_FIGURE}[日号]"
_UNTIL = rf"(?:{_IS_DAY}(?![楼店线门])|(?={_TO}{_DAY}{_IS_DAY}))(?:{_TO}(?P<to>{_DAY}){_IS_DAY})?"
_YEAR_SHIFTS = {"大前": -3, "前": -2, "去": -1, "今": 0, "本": 0, "明": 1, "后": 2}
_YEAR_PARTS = {"初": 1, "中": 6, "底": 11, "末": 11}  # of two months each
_YEAR = (
    rf"(?P<year>(?:大前|(?<![之以目年])前|去|今|本|(?<!小)明|(?<![以之然])后)年(?![轻级龄])|"
    rf"{_START}{_YEAR4}{_GAP}年|(?<![{NUMERALS}])[一二][零〇一二三四五六七八九]{{3}}年|"
    rf"{_START}[0-9]{{2}}{_GAP}年(?=的?{_GAP}{_MONTH}{_BEHIND_FIGURE}月|"
    r"的?(?:春|夏|秋|冬|上半|下半|年?[初中底末]|国庆|五一|元旦|端午)))"
)
_FIGURES = re.compile(
    rf"{_START}(?P<y>{_YEAR4})(?P<mark>[-/.])(?P<m>[0-9]{{1,2}})(?P=mark)(?P<d>[0-9]{{1,2}})"
    r"(?![0-9A-SU-Za-z_]|[-/.][0-9])"
)
_YEAR_AND_MONTH = re.compile(
    rf"{_START}(?P<y>{_YEAR4})(?:-(?P<m>0[1-9]|1[0-2])|/(?P<n>0?[1-9]|1[0-2]))"
    r"(?![0-9A-Za-z_年./\-])"
)
_SLASHED = re.compile(
    rf"{_START}(?:(?P<m>0?[1-9]|1[0-2])[-/](?P<d>1[3-9]|2[0-9]|3[01]|0[1-9]){_THEN}|"
    rf"(?P<a>0?[1-9]|1[0-2])[-/](?P<b>1[0-2]|[1-9]){_AFTER_SLASH})"
)
_DATE = re.compile(
    rf"(?:{_YEAR}的?{_GAP})?{NOT_NUMERAL}(?<!第{_BLANK})(?P<m>{_MONTH}){_BEHIND_FIGURE}月"
    rf"(?:份?的?{_GAP}(?P<d>{_DAY}){_UNTIL}"
    r"|份?(?P<third>上旬|中旬|下旬|[底末]|初(?![一二三四五六七八九十]))"
    rf"|份?(?![{NUMERALS}0-9初]|流火|[天饼亮光球薪嫂飞]|不见))"
)
_OF_YEAR = re.compile(
    rf"{_YEAR}(?:的?(?:(?P<season>[春夏秋冬])[天季]|(?P<half>上|下)半年|年?(?P<part>[初底末]|中(?!秋))"
    r"|第?(?P<quarter>[一二三四1-4])季度|(?P<same>今[天日])"
    r"|(?P<holiday>元旦|情人节|妇女节|愚人节|清明|五一|劳动节|青年节|六一|儿童节|教师节|国庆|"
    r"双十一|双11|万圣节|平安夜|圣诞|除夕|年三十|春节|元宵|端午|七夕|中秋|重阳|母亲节|父亲节|"
    r"感恩节)(?:节|假期|长假|期间)*))?"
)
_HOLIDAY = re.compile(
    r"(?P<holiday>元旦(?!旦)|情人节|妇女节|愚人节|清明(?!上河|的?[眼心目])|劳动节|青年节|儿童节|"
    rf"教师节|{NOT_NUMERAL}(?:五一|六一)(?![{NUMERALS}])|"
    rf"(?<![{NUMERALS}])十一(?=假期|长假|黄金周|期间)|"
    r"(?<![王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗建])国庆(?![路街])|双十一|双11|万圣节|平安夜|"
    r"圣诞(?![老树帽歌])|除夕|年三十|春节(?!联欢)|元宵(?!馅)|端午|七夕|中秋|重阳|"
    r"母亲节|父亲节|感恩节)(?![月饼粽])(?:节|假期|长假|黄金周|期间)*"
)
_HOLIDAY_SIGNS = tuple(name for name in HOLIDAYS if not name.isascii())
_HALF = re.compile(r"(?P<half>上|下)半年")
_QUARTER = re.compile(r"(?P<shift>上|这|本)个?季度")
_MONTH_AWAY = re.compile(
    r"(?:(?<!上)(?P<up>上{1,9})一?个?|(?<!下)(?P<down>下{1,9})个?|(?P<this>这个|本))月(?![亮光饼台薪])(?:份?的?(?:"
    rf"{_GAP}(?P<d>{_DAY}){_UNTIL}"
    r"|(?P<third>上旬|中旬|下旬|[初中底末])))?"
)
_BARE_THIRD = re.compile(
    r"(?<![个年岁满每几数0-9一二三四五六七八九十])月(?P<third>[初中底末])(?!旬|[一二三四五六七八九十])"
    r"|(?<![新大过每少成拜个几多0-9一二三四五六七八九十])年(?P<year_part>[初底末])(?![一二三四五六七八九十])"
)
_BARE_DAY = re.compile(
    rf"{_START}{NOT_NUMERAL}(?<!月)(?P<d>{_DAY}){_BEHIND_FIGURE}"
    rf"(?:号|日(?=那天|晚上|上午|下午|{_TO}{_DAY}{_IS_DAY}))(?:{_TO}(?P<to>{_DAY}){_IS_DAY})?{_THEN}"
)
_END_DAY = re.compile(rf"{_START}{NOT_NUMERAL}(?P<d>{_DAY})(?P<to>){_IS_DAY}")


def _figures(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    return one_day(int(match["y"]), int(match["m"]), int(match["d"]))


def _year_and_month(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    return months(int(match["y"]), int(match["m"] or match["n"]))


def _slashed(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    month, day = int(match["m"] or match["a"]), int(match["d"] or match["b"])
    return frame.recent(lambda year: one_day(year, month, day), after)


def _year(words: str, frame: Frame) -> int:
    name = words.removesuffix("年").rstrip()
    shift = _YEAR_SHIFTS.get(name)
    return year_number(name) if shift is None else frame.today.year + shift


def _date(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    month = number(match["m"])

    def in_year(year: int) -> Span:
        if match["d"]:
            return _dates(year, month, match)
        if match["third"]:
            return third(year, month, match["third"])
        return months(year, month)

    if match["year"]:
        return in_year(_year(match["year"], frame))
    return frame.recent(in_year, after)


def _dates(year: int, month: int, match: re.Match[str]) -> Span:
    if match["to"]:
        return days_of(year, month, number(match["d"]), number(match["to"]))
    return one_day(year, month, number(match["d"]))


def _of_year(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    words = match["year"]
    year = _year(words, frame)
    if match["season"]:
        # In January and February this year's winter is the one that is not over.
        spoken = words[:-1] in _YEAR_SHIFTS and match["season"] == "冬"
        return season(year - (spoken and frame.today.month < 3), SEASONS[match["season"]])
    if match["half"]:
        return months(year, 1 if match["half"] == "上" else 7, 6)
    if match["part"]:
        return months(year, _YEAR_PARTS[match["part"]], 2)
    if match["quarter"]:
        return months(year, number(match["quarter"]) * 3 - 2, 3)
    if match["same"]:
        return one_day(year, frame.today.month, frame.today.day)
    return holiday(year, match["holiday"]) if match["holiday"] else whole_year(year)


def _holiday(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    return frame.recent(lambda year: holiday(year, match["holiday"]), after)


def _half(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    span = months(frame.today.year, 1 if match["half"] == "上" else 7, 6)
    return span if span.first <= frame.today else None


def _quarter(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    year, month = frame.month(-3 if match["shift"] == "上" else 0)
    return months(year, (month - 1) // 3 * 3 + 1, 3)


def _month_away(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    year, month = frame.month(len(match["down"] or "") - len(match["up"] or ""))
    if match["d"]:
        return _dates(year, month, match)
    return third(year, month, match["third"]) if match["third"] else months(year, month)


def _bare_third(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    year, month = frame.today.year, frame.today.month
    part = match["year_part"]
    span = months(year, _YEAR_PARTS[part], 2) if part else third(year, month, match["third"])
    return span if span.first <= frame.today else None


def _bare_day(match: re.Match[str], frame: Frame, after: Span | None) -> Span:
    return frame.recent_day(lambda year, month: _dates(year, month, match), after)


def _end_day(match: re.Match[str], frame: Frame, after: Span | None) -> Span | None:
    """The 23日 of 3号晚上到23日: alone it means nothing."""
    return _bare_day(match, frame, after) if after else None


DATE_RULES: tuple[Rule, ...] = (
    Rule(("19", "20"), _FIGURES, _figures),
    Rule(("19", "20"), _YEAR_AND_MONTH, _year_and_month),
    Rule(("/", "-"), _SLASHED, _slashed),
    Rule(("月",), _DATE, _date),
    Rule(("年",), _OF_YEAR, _of_year),
    Rule(_HOLIDAY_SIGNS, _HOLIDAY, _holiday),
    Rule(("半年",), _HALF, _half),
    Rule(("季度",), _QUARTER, _quarter),
    Rule(("月",), _MONTH_AWAY, _month_away),
    Rule(("月", "年"), _BARE_THIRD, _bare_third),
    Rule(("号", "日"), _BARE_DAY, _bare_day),
    Rule(("号", "日"), _END_DAY, _end_day),
)
