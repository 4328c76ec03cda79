"""When the holidays of a year are that people date their memories by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

_FIRST_YEAR = 2000
# Gregorian month and day, for each year from 2000 to 2050, of the Chinese calendar's new year,
# 5/5, 7/7, 8/15 and 9/9. Two independent calendar libraries gave the same table.
_LUNAR = (
    (205, 606, 806, 912, 1006),  (124, 625, 825, 1001, 1025), (212, 615, 815, 921, 1014),
    (201, 604, 804, 911, 1004),  (122, 622, 822, 928, 1022),  (209, 611, 811, 918, 1011),
    (129, 531, 731, 1006, 1030), (218, 619, 819, 925, 1019),  (207, 608, 807, 914, 1007),
    (126, 528, 826, 1003, 1026), (214, 616, 816, 922, 1016),  (203, 606, 806, 912, 1005),
    (123, 623, 823, 930, 1023),  (210, 612, 813, 919, 1013),  (131, 602, 802, 908, 1002),
    (219, 620, 820, 927, 1021),  (208, 609, 809, 915, 1009),  (128, 530, 828, 1004, 1028),
    (216, 618, 817, 924, 1017),  (205, 607, 807, 913, 1007),  (125, 625, 825, 1001, 1025),
    (212, 614, 814, 921, 1014),  (201, 603, 804, 910, 1004),  (122, 622, 822, 929, 1023),
    (210, 610, 810, 917, 1011),  (129, 531, 829, 1006, 1029), (217, 619, 819, 925, 1018),
    (206, 609, 808, 915, 1008),  (126, 528, 826, 1003, 1026), (213, 616, 816, 922, 1016),
    (203, 605, 805, 912, 1005),  (123, 624, 824, 1001, 1024), (211, 612, 812, 919, 1012),
    (131, 601, 801, 908, 1001),  (219, 620, 820, 927, 1020),  (208, 610, 810, 916, 1009),
    (128, 530, 828, 1004, 1027), (215, 618, 817, 924, 1017),  (204, 607, 807, 913, 1007),
    (124, 527, 826, 1002, 1026), (212, 614, 814, 920, 1014),  (201, 603, 803, 910, 1003),
    (122, 622, 822, 928, 1022),  (210, 611, 811, 917, 1011),  (130, 531, 731, 1005, 1029),
    (217, 619, 819, 925, 1018),  (206, 608, 808, 915, 1008),  (126, 529, 827, 1004, 1027),
    (214, 615, 816, 922, 1016),  (202, 604, 805, 911, 1005),  (123, 623, 823, 930, 1024),
)  # fmt: skip

Holiday = Callable[[int], tuple[date, date]]
"""First and last day in the year. Raises ValueError where that is not known."""


def _fixed(month: int, day: int, days: int = 1) -> Holiday:
    def dates(year: int) -> tuple[date, date]:
        first = date(year, month, day)
        return first, first + timedelta(days=days - 1)

    return dates


def _lunar(column: int, shift: int = 0, days: int = 1) -> Holiday:
    def dates(year: int) -> tuple[date, date]:
        if not 0 <= year - _FIRST_YEAR < len(_LUNAR):
            raise ValueError("the Chinese calendar of this year is not in the table")
        month, day = divmod(_LUNAR[year - _FIRST_YEAR][column], 100)
        first = date(year, month, day) + timedelta(days=shift)
        return first, first + timedelta(days=days - 1)

    return dates


def _nth(month: int, weekday: int, nth: int) -> Holiday:
    def dates(year: int) -> tuple[date, date]:
        first = date(year, month, 1)
        day = first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))
        return day, day

    return dates


def _qingming(year: int) -> tuple[date, date]:
    # The usual formula for the solar term; good for this century.
    if not 2000 <= year < 2100:
        raise ValueError("the formula holds from 2000 to 2099")
    short = year % 100
    day = date(year, 4, int(0.2422 * short + 4.81) - short // 4)
    return day, day


_NEW_YEAR_EVE = _lunar(0, shift=-1)
_SPRING_FESTIVAL = _lunar(0, shift=-1, days=8)  # new year's eve to the seventh
_MID_AUTUMN = _lunar(3)
_CHRISTMAS = _fixed(12, 25)
_NATIONAL_DAY = _fixed(10, 1, days=7)

HOLIDAYS: dict[str, Holiday] = {
    "元旦": _fixed(1, 1), "情人节": _fixed(2, 14), "妇女节": _fixed(3, 8), "愚人节": _fixed(4, 1),
    "清明": _qingming, "五一": _fixed(5, 1, days=5), "劳动节": _fixed(5, 1, days=5),
    "青年节": _fixed(5, 4), "六一": _fixed(6, 1), "儿童节": _fixed(6, 1), "教师节": _fixed(9, 10),
    "国庆": _NATIONAL_DAY, "十一": _NATIONAL_DAY, "万圣节": _fixed(10, 31),
    "双十一": _fixed(11, 11), "双11": _fixed(11, 11), "平安夜": _fixed(12, 24),
    "圣诞": _CHRISTMAS, "除夕": _NEW_YEAR_EVE, "年三十": _NEW_YEAR_EVE,
    "春节": _SPRING_FESTIVAL, "元宵": _lunar(0, shift=14), "端午": _lunar(1), "七夕": _lunar(2),
    "中秋": _MID_AUTUMN, "重阳": _lunar(4), "母亲节": _nth(5, 6, 2), "父亲节": _nth(6, 6, 3),
    "感恩节": _nth(11, 3, 4),
    "new year's day": _fixed(1, 1), "new year's eve": _fixed(12, 31),
    "valentine's day": _fixed(2, 14), "halloween": _fixed(10, 31),
    "thanksgiving": _nth(11, 3, 4), "christmas eve": _fixed(12, 24), "christmas": _CHRISTMAS,
    "chinese new year": _SPRING_FESTIVAL, "lunar new year": _SPRING_FESTIVAL,
    "spring festival": _SPRING_FESTIVAL, "mid-autumn festival": _MID_AUTUMN,
    "dragon boat festival": _lunar(1),
}  # fmt: skip
