"""Words like 明天, 昨晚 or 下周三: which date they mean, and a text without them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
import re

from ..types import NoteKind
from .time_lexicon import DAY_SHIFTS, DIGITS, WEEKDAYS

_NEAR_DAYS = {-3: "大前一天", -2: "前两天", -1: "前一天", 0: "那天", 1: "第二天", 2: "两天后"}
_SHIFTS = {"上上": -2, "上": -1, "去": -1, "这": 0, "本": 0, "今": 0, "下": 1, "明": 1, "下下": 2}
_PART = {"晚": "晚上", "夜": "夜里", "早": "早上"}

# The guards keep 小明早上, 说明天气, 以后天天, 先后天, 明日方舟, 晚上周五 and 晚上月亮 whole.
_RELATIVE = re.compile(
    r"(?P<day>大前|(?<![之以目])前|大后|(?<![先今以然最之背])后)天(?![天气性])"
    r"|(?P<near>[昨今]|(?<![小文发聪声黎光清透证])明)"
    r"(?:天(?![天气])|日(?!方舟|之后|头条)|儿(?![子童])"
    r"|(?P<part>晚上?|夜里?|早(?![就已])上?))"
    r"|(?P<week>上上|下下|(?<![早晚马线以])上|(?<![一楼地线])下|这|本)个?(?:周|星期|礼拜)"
    r"(?P<weekday>[一二三四五六日末天](?!气))?"
    r"|(?P<month>(?<![早晚马])上|下|这(?=个)|本)个?月(?![亮光饼台])"
    r"|(?P<year>[去今]|(?<!小)明)年(?![轻级龄])"
)
_TODAY_PART = re.compile(
    r"今[天日](?=的?(?:凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|深夜|夜里))"
)
_JUST_NOW = re.compile(r"刚刚|刚才|方才")
NICKNAMED = "网名叫[^，。「」]{1,24}?的人"
"""A name that would read as a part of the sentence; nothing in it means what it says."""
_VERBATIM = re.compile(rf"(「[^「」]*」|『[^『』]*』|“[^“”]*”|《[^《》]*》|{NICKNAMED})")


def date_words(day: date, beside: date) -> str:
    """`十一月三十日`; with the year where it is not that of `beside`."""
    year = "" if day.year == beside.year else year_words(day.year)
    return f"{year}{numeral(day.month)}月{numeral(day.day)}日"


def year_words(year: int) -> str:
    """`二〇二六年`."""
    return "".join(DIGITS[int(digit)] for digit in str(year)) + "年"


def numeral(number: int) -> str:
    """A whole number from 1 to 99 as it is written in running Chinese text: 三十一."""
    tens, ones = divmod(number, 10)
    head = "" if tens == 0 else "十" if tens == 1 else f"{DIGITS[tens]}十"
    return head + (DIGITS[ones] if ones else "")


def dates_ahead(words: str, day: date) -> list[str]:
    """The dates that future words in `words`, said on `day`, mean; in order, each once."""
    found = [_absolute(match, day) for match in _RELATIVE.finditer(words) if _shift_of(match) > 0]
    return list(dict.fromkeys(found))


def has_relative_days(text: str) -> bool:
    """Whether `without_relative_days` would change the plain words in `text`."""
    return any(sign.search(text) for sign in (_RELATIVE, _TODAY_PART, _JUST_NOW))


def settled(text: str, kind: NoteKind, period: str) -> str:
    """`text` as it may stand for good: of an activity the words for days to come have their
    dates, of a day, month or year no relative word is left. Quotes and titles stay as they are."""
    year, _, rest = period.partition("-")
    if kind in ("month", "year"):
        return without_relative_days_in(text, date(int(year), int(rest or 1), 1))
    day = date.fromisoformat(period)
    if kind == "day":
        return without_relative_days(text, day)
    return _replaced(text, lambda m: _absolute(m, day) if _shift_of(m) > 0 else m[0])


def without_relative_days(text: str, day: date) -> str:
    """`text`, written on `day`, with every relative word outside quotes made absolute."""
    return _rewrite(text, lambda match: _absolute(match, day))


def without_relative_days_in(text: str, month: date) -> str:
    """The same for a text about a whole month, where 昨天 can only mean the day before."""
    return _rewrite(text, lambda match: _within(match, month))


def _rewrite(text: str, replace: Callable[[re.Match[str]], str]) -> str:
    return _replaced(_outside_quotes(text, _without_now), replace)


def _without_now(plain: str) -> str:
    return _JUST_NOW.sub("那会儿", _TODAY_PART.sub("", plain))


def _replaced(text: str, replace: Callable[[re.Match[str]], str]) -> str:
    return _outside_quotes(text, lambda plain: _RELATIVE.sub(replace, plain))


def _outside_quotes(text: str, change: Callable[[str], str]) -> str:
    parts = _VERBATIM.split(text)
    parts[::2] = [change(plain) for plain in parts[::2]]
    return "".join(parts)


def _shift_of(match: re.Match[str]) -> int:
    if name := match["day"] or match["near"]:
        return DAY_SHIFTS[name]
    return _SHIFTS[match["week"] or match["month"] or match["year"]]


def _part_of(match: re.Match[str]) -> str:
    return _PART[match["part"][0]] if match["part"] else ""


def _absolute(match: re.Match[str], day: date) -> str:
    shift = _shift_of(match)
    if match["day"] or match["near"]:
        if shift == 0:
            return _part_of(match) or "这天"
        return date_words(day + timedelta(days=shift), day) + _part_of(match)
    if match["week"]:
        return _week_words(match, day, shift)
    return _month_or_year(match, day, shift)


def _within(match: re.Match[str], month: date) -> str:
    shift = _shift_of(match)
    if match["day"] or match["near"]:
        return _NEAR_DAYS.get(shift, "几天后") + _part_of(match)
    if match["week"]:
        return {-1: "前一周", 0: "那周", 1: "后一周"}.get(shift, "那阵子")
    return _month_or_year(match, month, shift)


def _week_words(match: re.Match[str], day: date, shift: int) -> str:
    monday = day + timedelta(days=7 * shift - day.weekday())
    name = match["weekday"]
    if name is None:
        return f"{date_words(monday, day)}那周"
    words = date_words(monday + timedelta(days=WEEKDAYS[name]), day)
    return f"{words}那个周末" if name == "末" else words


def _month_or_year(match: re.Match[str], day: date, shift: int) -> str:
    if match["year"]:
        return year_words(day.year + shift)
    year, month = divmod(day.year * 12 + day.month - 1 + shift, 12)
    words = f"{numeral(month + 1)}月"
    return words if year == day.year else year_words(year) + words
