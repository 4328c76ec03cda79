"""Words of time: each form with the window it opens, and what opens none."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from time import process_time
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.periods import names_time, read_date
from plugins.nonebot_plugin_nianlun.memory.time_words import TimeRange, parse_time_range

SHANGHAI = ZoneInfo("Asia/Shanghai")
NEW_YORK = ZoneInfo("America/New_York")
FRIDAY = "2026-07-24 15:00"


def read(text: str, now: str = FRIDAY, zone: ZoneInfo = SHANGHAI) -> TimeRange | None:
    return parse_time_range(text, now=datetime.fromisoformat(now).replace(tzinfo=zone), tz=zone)


def days(text: str, now: str = FRIDAY, zone: ZoneInfo = SHANGHAI) -> str | None:
    """First and last day; one when they are the same."""
    window = read(text, now, zone)
    if window is None:
        return None
    first, last = window.first_day.isoformat(), window.last_day.isoformat()
    return first if first == last else f"{first}..{last}"


def clock(text: str, now: str = FRIDAY, zone: ZoneInfo = SHANGHAI) -> str | None:
    window = read(text, now, zone)
    if window is None:
        return None
    return "..".join(f"{at.astimezone(zone):%d %H:%M}" for at in (window.begin, window.end))


ON_FRIDAY = """
2024年7月21日 | 2024-07-21
2024年07月21号 | 2024-07-21
2024-07-21 | 2024-07-21
2024/7/21 | 2024-07-21
2024.7.21 | 2024-07-21
在2024-03-14那天聊了什么 | 2024-03-14
2024-03-14T12:00 发生了什么 | 2024-03-14
二〇二四年三月十四日 | 2024-03-14
二○二四年三月十四日 | 2024-03-14
二零二四年 | 2024-01-01..2024-12-31
２０２４年７月２１日 | 2024-07-21
5月1日 | 2026-05-01
5月 1日聊了什么 | 2026-05-01
12 月 4 日聊了什么 | 2025-12-04
2025 年 12 月 4 日 | 2025-12-04
2025年 12月 4日晚上 | 2025-12-04
25 年 3 月 | 2025-03-01..2025-03-31
2025 年我们去了哪 | 2025-01-01..2025-12-31
2025　年　12　月 | 2025-12-01..2025-12-31
去年 12 月 4 号 | 2025-12-04
上个月 3 号聊了什么 | 2026-06-03
3 号到 5 号 | 2026-07-03..2026-07-05
7 月 21 日到 23 日聊了什么 | 2026-07-21..2026-07-23
7 月 21 - 23 日 | 2026-07-21..2026-07-23
５月１日 | 2026-05-01
5月1日我们聊了什么 | 2026-05-01
在4月30号我们聊了很多，我们聊了哪些话题？ | 2026-04-30
4月30号的天气如何？我去干什么了？ | 2026-04-30
七月二十一日 | 2026-07-21
十二月三十一号 | 2025-12-31
7月24日 | 2026-07-24
7月25日 | 2025-07-25
2月29日 | 2024-02-29
去年7月21日 | 2025-07-21
去年的7月21号 | 2025-07-21
前年5月1日 | 2024-05-01
今年12月1日 | 2026-12-01
上个月3号 | 2026-06-03
上月3日 | 2026-06-03
上个月的3号 | 2026-06-03
这个月5号 | 2026-07-05
下个月1号 | 2026-08-01
上上个月10号 | 2026-05-10
7月21日到23日 | 2026-07-21..2026-07-23
7月21-23日 | 2026-07-21..2026-07-23
7月21日~23日 | 2026-07-21..2026-07-23
7月21号至8月2号 | 2026-07-21..2026-08-02
7月21日晚上到23日聊了什么 | 2026-07-21..2026-07-23
7月21日和23日聊了什么 | 2026-07-21..2026-07-23
12月30日到1月2日去了哪 | 2025-12-30..2026-01-02
3号到5号 | 2026-07-03..2026-07-05
上个月3号到5号 | 2026-06-03..2026-06-05
我3号说过什么 | 2026-07-03
25号 | 2026-06-25
2024年3月5日到4月2日 | 2024-03-05..2024-04-02
3/14 | 2026-03-14
3-14 | 2026-03-14
03/05 | 2026-03-05
5/1我们聊了什么 | 2026-05-01
2024-03 | 2024-03-01..2024-03-31
2024年3月 | 2024-03-01..2024-03-31
24年的3月 | 2024-03-01..2024-03-31
24年3月 | 2024-03-01..2024-03-31
98年7月 | 1998-07-01..1998-07-31
1月 | 2026-01-01..2026-01-31
十二月 | 2025-12-01..2025-12-31
7月 | 2026-07-01..2026-07-31
3月份聊了什么 | 2026-03-01..2026-03-31
今年三月 | 2026-03-01..2026-03-31
3月到5月 | 2026-03-01..2026-05-31
2023年3月到2024年5月我去了哪 | 2023-03-01..2024-05-31
3月初 | 2026-03-01..2026-03-10
3月中旬 | 2026-03-11..2026-03-20
去年2月底 | 2025-02-21..2025-02-28
上月底 | 2026-06-21..2026-06-30
上个月下旬 | 2026-06-21..2026-06-30
月初 | 2026-07-01..2026-07-10
月底 | 2026-07-21..2026-07-31
年初 | 2026-01-01..2026-02-28
去年年底 | 2025-11-01..2025-12-31
2024年底 | 2024-11-01..2024-12-31
上个月 | 2026-06-01..2026-06-30
上月 | 2026-06-01..2026-06-30
上上个月 | 2026-05-01..2026-05-31
下个月 | 2026-08-01..2026-08-31
2024年 | 2024-01-01..2024-12-31
2023年到2024年 | 2023-01-01..2024-12-31
去年 | 2025-01-01..2025-12-31
前年 | 2024-01-01..2024-12-31
大前年 | 2023-01-01..2023-12-31
去年今天我们聊了什么 | 2025-07-24
去年夏天 | 2025-06-01..2025-08-31
去年春天 | 2025-03-01..2025-05-31
去年冬天 | 2025-12-01..2026-02-28
上半年 | 2026-01-01..2026-06-30
去年下半年 | 2025-07-01..2025-12-31
上个季度 | 2026-04-01..2026-06-30
去年第三季度 | 2025-07-01..2025-09-30
国庆 | 2025-10-01..2025-10-07
国庆期间去了哪 | 2025-10-01..2025-10-07
十一假期去了哪 | 2025-10-01..2025-10-07
去年国庆 | 2025-10-01..2025-10-07
明年国庆 | 2027-10-01..2027-10-07
春节 | 2026-02-16..2026-02-23
24年春节 | 2024-02-09..2024-02-16
大年三十 | 2026-02-16
元宵节 | 2026-03-03
清明节 | 2026-04-05
端午节 | 2026-06-19
七夕 | 2025-08-29
中秋 | 2025-10-06
去年中秋 | 2025-10-06
24年中秋 | 2024-09-17
去年年中 | 2025-06-01..2025-07-31
重阳节 | 2025-10-29
元旦 | 2026-01-01
五一 | 2026-05-01..2026-05-05
劳动节 | 2026-05-01..2026-05-05
儿童节 | 2026-06-01
教师节 | 2025-09-10
圣诞节 | 2025-12-25
双十一 | 2025-11-11
母亲节 | 2026-05-10
父亲节 | 2026-06-21
感恩节 | 2025-11-27
今天 | 2026-07-24
昨天 | 2026-07-23
昨日 | 2026-07-23
昨儿 | 2026-07-23
前天 | 2026-07-22
大前天 | 2026-07-21
大大前天 | 2026-07-20
明天 | 2026-07-25
后天 | 2026-07-26
大后天 | 2026-07-27
今天不是昨天 | 2026-07-24
不是昨天，是前天 | 2026-07-22
除了昨天，前天聊了什么 | 2026-07-22
昨天和前天 | 2026-07-22..2026-07-23
昨天、前天聊了什么 | 2026-07-22..2026-07-23
昨天你说的上周的事 | 2026-07-23
从昨天到现在聊了什么 | 2026-07-23..2026-07-24
三天前 | 2026-07-21
三天以前 | 2026-07-21
3天之前 | 2026-07-21
３天前 | 2026-07-21
两天前 | 2026-07-22
十天前 | 2026-07-14
十二天前 | 2026-07-12
二十天前 | 2026-07-04
二十一天前 | 2026-07-03
一百天前 | 2026-04-15
一百零五天前 | 2026-04-10
两三天前 | 2026-07-21..2026-07-22
三四天前 | 2026-07-20..2026-07-21
十几天前 | 2026-07-05..2026-07-13
二十多天前 | 2026-06-25..2026-07-04
几天前 | 2026-07-17..2026-07-22
前几天 | 2026-07-17..2026-07-23
前两天 | 2026-07-21..2026-07-23
三天后 | 2026-07-27
两周前 | 2026-07-06..2026-07-12
3个星期前 | 2026-06-29..2026-07-05
两个礼拜前 | 2026-07-06..2026-07-12
三个月前 | 2026-04-01..2026-04-30
半年前 | 2026-01-01..2026-01-31
两年半前 | 2024-01-01..2024-01-31
半个月前 | 2026-07-06..2026-07-12
一个半月前 | 2026-06-05..2026-06-13
三年前 | 2023-01-01..2023-12-31
十年前 | 2016-01-01..2016-12-31
最近三天 | 2026-07-21..2026-07-24
近7天 | 2026-07-17..2026-07-24
过去一周 | 2026-07-17..2026-07-24
过去一周我有什么烦恼？ | 2026-07-17..2026-07-24
最近一个月 | 2026-06-24..2026-07-24
近半年 | 2026-01-24..2026-07-24
这几天 | 2026-07-19..2026-07-24
这两天 | 2026-07-22..2026-07-24
上周 | 2026-07-13..2026-07-19
上个星期 | 2026-07-13..2026-07-19
上一周 | 2026-07-13..2026-07-19
这周 | 2026-07-20..2026-07-26
本周 | 2026-07-20..2026-07-26
下周 | 2026-07-27..2026-08-02
上上周 | 2026-07-06..2026-07-12
上上上周五 | 2026-07-03
上周三 | 2026-07-15
上个礼拜三 | 2026-07-15
上周日 | 2026-07-19
上星期天 | 2026-07-19
上周末 | 2026-07-18..2026-07-19
这周五 | 2026-07-24
本周日 | 2026-07-26
下周三 | 2026-07-29
下下周 | 2026-08-03..2026-08-09
上上周二 | 2026-07-07
周三 | 2026-07-22
周五 | 2026-07-24
周六 | 2026-07-18
星期天 | 2026-07-19
礼拜一 | 2026-07-20
周末去了哪 | 2026-07-18..2026-07-19
周一到周三 | 2026-07-20..2026-07-22
周三和周一聊了什么 | 2026-07-20..2026-07-22
上周一到周三聊了什么 | 2026-07-13..2026-07-15
上周三次会议说了什么 | 2026-07-13..2026-07-19
上周以来聊了什么 | 2026-07-13..2026-07-24
去年以来我去了哪些地方 | 2025-01-01..2026-07-24
上周去的那家店 | 2026-07-13..2026-07-19
我们上周聊的那本书 | 2026-07-13..2026-07-19
昨天买了什么？ | 2026-07-23
今天吃了什么？ | 2026-07-24
今天的会议 | 2026-07-24
昨天的生日会 | 2026-07-23
是不是昨天说的 | 2026-07-23
last week我说了什么 | 2026-07-13..2026-07-19
我last Monday说了什么 | 2026-07-20
昨天开会的内容 | 2026-07-23
明天有什么安排？ | 2026-07-25
我昨天去了医院。前天吃了什么？ | 2026-07-22
today | 2026-07-24
yesterday | 2026-07-23
the day before yesterday | 2026-07-22
tomorrow | 2026-07-25
the day after tomorrow | 2026-07-26
3 days ago | 2026-07-21
three days ago | 2026-07-21
a few days ago we discussed what? | 2026-07-17..2026-07-22
a couple of days ago | 2026-07-22
two weeks ago | 2026-07-06..2026-07-12
a month ago | 2026-06-01..2026-06-30
three years ago | 2023-01-01..2023-12-31
half a year ago | 2026-01-01..2026-01-31
last week | 2026-07-13..2026-07-19
the week before last | 2026-07-06..2026-07-12
this week | 2026-07-20..2026-07-26
next week | 2026-07-27..2026-08-02
last weekend | 2026-07-18..2026-07-19
last month | 2026-06-01..2026-06-30
last year | 2025-01-01..2025-12-31
last summer | 2025-06-01..2025-08-31
last two weeks | 2026-07-10..2026-07-24
the past week | 2026-07-17..2026-07-24
in the past 3 days | 2026-07-21..2026-07-24
What did Jon do in the last week of June 2023? | 2023-06-01..2023-06-30
What happened last Monday, not on Friday? | 2026-07-20
last Monday | 2026-07-20
last Friday | 2026-07-17
What did I say last Monday? | 2026-07-20
this Monday | 2026-07-20
next Friday | 2026-07-31
what happened on Tuesday | 2026-07-21
what happened Friday | 2026-07-24
in March | 2026-03-01..2026-03-31
What did June say in June? | 2026-06-01..2026-06-30
When did we meet in May? | 2026-05-01..2026-05-31
last March | 2026-03-01..2026-03-31
What did I say in mid March? | 2026-03-01..2026-03-31
March 2024 | 2024-03-01..2024-03-31
March 3rd | 2026-03-03
on May 5 | 2026-05-05
on the 5th of May | 2026-05-05
who did I meet on the 5th? | 2026-07-05
3 March 2024 | 2024-03-03
March 3, 2024 | 2024-03-03
What did Caroline do on 17 August, 2023? | 2023-08-17
What did she do in the week of 8 June 2023? | 2023-06-05..2023-06-11
Dec 25 | 2025-12-25
March 3-5, 2024 | 2024-03-03..2024-03-05
between March 3 and March 5 | 2026-03-03..2026-03-05
March 3 and 5? | 2026-03-03..2026-03-05
from March 3 to April 2 | 2026-03-03..2026-04-02
from Monday to Wednesday | 2026-07-20..2026-07-22
since last Monday what did we discuss? | 2026-07-20..2026-07-24
in 2023 | 2023-01-01..2023-12-31
the summer of 2023 | 2023-06-01..2023-08-31
Christmas 2023 | 2023-12-25
last Christmas | 2025-12-25
New Year’s Eve | 2025-12-31
Chinese New Year 2024 | 2024-02-09..2024-02-16
on 3/14/2024 | 2024-03-14
on 14/3/2024 | 2024-03-14
"""

NO_TIME = """
今天天气
今天天气怎么样？
明天天气如何
what's today's weather
今天吃什么
今天好累
今天真热啊
今天我要加班
今天几号
周五有什么安排？
我昨天买了猫粮
我昨天去医院
昨天跟他聊了很久
上周太忙了！
周三见
3月14日是我的生日
我是1998年出生的
记住，下周三要开会
下周三提醒我开会
早上好
好几天前
几年前
I went to the zoo yesterday.
Last week we had dinner at home.
最近我在尝试哪些健身的方法？
Alex前阵子哪里不舒服？
前段时间聊了什么
以前我们聊了什么
99999999999天前
99999999999999999999天前
999999天前
九千九百九十九年前
零天前
0天前
二三十天前
几周前
三天打鱼
三天打鱼两天晒网
一天一个苹果
三天两头
一年到头
七月流火
八月十五
农历八月十五
农历五月五日
五月天
五月天的演唱会好看吗
周杰伦
周杰伦的歌
周六福珠宝
周一次健身
一周三次健身
每周三
每个周末去哪
每月3号
每年春节
每天聊什么
小明天天迟到
以后天天见
先天后天
三年前端经验
目前年轻人喜欢什么
明日方舟好玩吗
今日头条说了什么
中秋月饼好吃吗
国庆路怎么走
王国庆是谁
清明上河图是谁画的
圣诞树多高
上周以前
昨天之前聊了什么
3月5日之前
国庆后聊了什么
不是昨天
2024年2月30日
2月30日
13月5日
4月31日
0月1日
3月0日
3号楼在哪
3号线怎么走
第3号选手
3 号楼在哪
3 号线怎么走
第 3 月聊了什么
唯一 月票怎么买
我账号12号
三个月
3个月
3年
24年
半年
3.14
3.14晚上
1/2
2/3
24/7
50/50
3-5
3-14岁
10-20个
比分3-14
010-3-14
version 2024.1
v2024.3.14
192.168.1.12
12:30
13812345678
138-1234-5678
20240314
http://a.com/2024/03/14/x
order 2024-03-14-77
《昨天》是谁写的
他说“昨天”是谁写的
May I ask?
you may go
may 5 people come
I march every day
June said she liked tea
March on
every Monday
Black Friday
Mondays
before last week
by Friday
on 3/4/2024
in 2000 words
the last 5 pages
week
monthly
Christmas tree

。。。
\u200b
\x00
"""


def rows(table: str) -> list[tuple[str, str]]:
    pairs = (line.rsplit(" | ", 1) for line in table.strip().splitlines())
    return [(text, expected) for text, expected in pairs]


@pytest.mark.parametrize(("text", "expected"), rows(ON_FRIDAY))
def test_the_days_that_words_mean(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.parametrize("text", NO_TIME.splitlines())
def test_what_is_no_question_about_a_time_opens_no_window(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("昨晚", "23 17:00..24 04:00"),
        ("昨晚 火锅", "23 17:00..24 04:00"),
        ("昨夜", "23 17:00..24 04:00"),
        ("昨天下午", "23 12:00..23 19:00"),
        ("昨天上午", "23 06:00..23 12:00"),
        ("昨天中午", "23 11:00..23 14:00"),
        ("昨天傍晚", "23 16:00..23 20:00"),
        ("昨天深夜", "23 21:00..24 04:00"),
        ("昨天凌晨", "23 00:00..23 06:00"),
        ("今早", "24 04:00..24 12:00"),
        ("今晨", "24 04:00..24 10:00"),
        ("今晚", "24 17:00..25 04:00"),
        ("前天晚上", "22 17:00..23 04:00"),
        ("前晚", "22 17:00..23 04:00"),
        ("明早", "25 04:00..25 12:00"),
        ("上周三晚上吃了什么", "15 17:00..16 04:00"),
        ("5月1日的晚上", "01 17:00..02 04:00"),
        ("昨天早就", "23 04:00..24 04:00"),
        ("刚才你说什么", "24 14:00..24 15:00"),
        ("半小时前", "24 14:15..24 14:45"),
        ("三小时前说了什么", "24 11:00..24 13:00"),
        ("五分钟前", "24 14:45..24 15:00"),
        ("last night", "23 17:00..24 04:00"),
        ("yesterday evening", "23 17:00..24 04:00"),
        ("this morning", "24 04:00..24 12:00"),
        ("tonight", "24 17:00..25 04:00"),
        ("an hour ago", "24 13:30..24 14:30"),
    ],
)
def test_parts_of_days_and_moments(text: str, expected: str) -> None:
    assert clock(text) == expected


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        # In the small hours the day that began the morning before is not over.
        ("今天", "2026-07-24 01:30", "2026-07-23"),
        ("昨天", "2026-07-24 01:30", "2026-07-22"),
        ("昨天", "2026-07-24 03:59", "2026-07-22"),
        ("昨天", "2026-07-24 04:00", "2026-07-23"),
        ("周四", "2026-07-24 01:30", "2026-07-23"),
        ("周五", "2026-07-24 01:30", "2026-07-17"),
        ("7月24日", "2026-07-24 01:30", "2025-07-24"),
        ("这周", "2026-07-27 01:30", "2026-07-20..2026-07-26"),
        ("上个月", "2026-08-01 01:30", "2026-06-01..2026-06-30"),
        ("去年", "2026-01-01 01:30", "2024-01-01..2024-12-31"),
        # The ends of weeks, months and years.
        ("上周", "2026-07-20 09:00", "2026-07-13..2026-07-19"),
        ("上周", "2026-07-26 23:00", "2026-07-13..2026-07-19"),
        ("上周日", "2026-07-20 09:00", "2026-07-19"),
        ("周末去了哪", "2026-07-25 20:00", "2026-07-25..2026-07-26"),
        ("上周三", "2026-01-05 12:00", "2025-12-31"),
        ("这周一", "2026-01-01 12:00", "2025-12-29"),
        ("昨天", "2026-01-01 12:00", "2025-12-31"),
        ("上个月", "2026-01-15 12:00", "2025-12-01..2025-12-31"),
        ("上上个月", "2026-01-15 12:00", "2025-11-01..2025-11-30"),
        ("下个月", "2025-12-15 12:00", "2026-01-01..2026-01-31"),
        ("最近一个月", "2026-03-31 12:00", "2026-02-28..2026-03-31"),
        ("上个月31号", "2026-07-15 12:00", None),
        ("31号", "2026-07-15 12:00", "2026-05-31"),
        ("12月31日", "2026-12-30 12:00", "2025-12-31"),
        ("12月31日", "2026-12-31 12:00", "2026-12-31"),
        ("上个季度", "2026-01-15 12:00", "2025-10-01..2025-12-31"),
        ("下半年", "2026-03-01 12:00", None),
        ("月底", "2026-07-03 12:00", None),
        # A leap day.
        ("昨天", "2024-03-01 12:00", "2024-02-29"),
        ("去年今天", "2024-02-29 12:00", None),
        ("一年前", "2024-02-29 12:00", "2023-01-01..2023-12-31"),
        ("2月29日", "2024-02-29 12:00", "2024-02-29"),
        ("2月29日", "2026-07-24 12:00", "2024-02-29"),
        ("2月29日", "2102-07-24 12:00", "2096-02-29"),
        ("2月", "2024-03-15 12:00", "2024-02-01..2024-02-29"),
        # Winter is named after the year that it begins in.
        ("今年冬天", "2026-01-20 12:00", "2025-12-01..2026-02-28"),
        ("去年冬天", "2026-01-20 12:00", "2024-12-01..2025-02-28"),
        ("last winter", "2026-01-20 12:00", "2024-12-01..2025-02-28"),
        ("last summer", "2026-11-20 12:00", "2026-06-01..2026-08-31"),
        ("last March", "2026-03-20 12:00", "2025-03-01..2025-03-31"),
        # Holidays by the Chinese calendar: as far as the table goes.
        ("春节", "2027-02-05 12:00", "2027-02-05..2027-02-12"),
        ("春节", "2027-02-04 12:00", "2026-02-16..2026-02-23"),
        ("2050年中秋", "2026-07-24 12:00", "2050-09-30"),
        ("2051年中秋", "2026-07-24 12:00", None),
        ("1999年春节", "2026-07-24 12:00", None),
    ],
)
def test_the_edges_of_days_weeks_and_years(text: str, now: str, expected: str | None) -> None:
    assert days(text, now) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("昨晚", "22 17:00..23 04:00"),
        ("今晚聊了什么", "23 17:00..24 04:00"),
        ("今天凌晨聊了什么", "24 00:00..24 06:00"),
        ("昨天凌晨聊了什么", "23 00:00..23 06:00"),
        ("7月22日凌晨", "22 00:00..22 06:00"),
    ],
)
def test_nights_as_they_are_named_at_half_past_one(text: str, expected: str) -> None:
    assert clock(text, "2026-07-24 01:30") == expected


def test_a_day_is_as_long_as_the_clocks_make_it() -> None:
    spring = read("昨天", "2026-03-08 12:00", NEW_YORK)
    fall = read("11月1日", "2026-11-05 12:00", NEW_YORK)
    assert spring
    assert fall
    # The clocks change at 02:00, before the logical day begins: it is the day before that differs.
    assert spring.end - spring.begin == timedelta(hours=23)
    assert fall.end - fall.begin == timedelta(hours=24)
    before = read("10月31日", "2026-11-05 12:00", NEW_YORK)
    assert before
    assert before.end - before.begin == timedelta(hours=25)


def test_the_zone_decides_what_today_is() -> None:
    now = datetime(2026, 7, 24, 2, 0, tzinfo=UTC)
    found = {
        name: window.first_day
        for name in ("Asia/Shanghai", "UTC", "America/New_York")
        if (window := parse_time_range("昨天", now=now, tz=ZoneInfo(name)))
    }
    assert found == {
        "Asia/Shanghai": date(2026, 7, 23),
        "UTC": date(2026, 7, 22),
        "America/New_York": date(2026, 7, 22),
    }


def test_the_day_may_begin_at_another_hour() -> None:
    window = parse_time_range(
        "昨晚",
        now=datetime(2026, 7, 24, 0, 30, tzinfo=SHANGHAI),
        tz=SHANGHAI,
        day_starts_at=time(0, 0),
    )
    assert window
    assert window.begin == datetime(2026, 7, 23, 17, tzinfo=SHANGHAI)
    assert window.end == datetime(2026, 7, 24, 0, tzinfo=SHANGHAI)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("昨晚", (date(2026, 7, 23), date(2026, 7, 23))),
        ("刚才", (date(2026, 7, 24), date(2026, 7, 24))),
        ("昨天", (date(2026, 7, 22), date(2026, 7, 24))),
        ("5月1日到3日", (date(2026, 4, 30), date(2026, 5, 4))),
        ("上周", (date(2026, 7, 6), date(2026, 7, 26))),
        ("上周末", (date(2026, 7, 11), date(2026, 7, 26))),
        ("上个月", (date(2026, 5, 1), date(2026, 7, 31))),
        ("1月", (date(2025, 12, 1), date(2026, 2, 28))),
        ("去年", (date(2024, 1, 1), date(2026, 12, 31))),
    ],
)
def test_a_window_widens_by_what_was_named(text: str, expected: tuple[date, date]) -> None:
    window = read(text)
    assert window
    wider = window.widened()
    assert (wider.first_day, wider.last_day) == expected
    assert wider.begin <= window.begin < window.end <= wider.end


def test_widening_goes_on_until_there_are_no_more_dates() -> None:
    window = TimeRange.of_days(Calendar(ZoneInfo("UTC"), time(4)), date(2, 6, 1), date(2, 6, 2))
    assert window.widened().widened().first_day == date(2, 5, 30)
    year = TimeRange(window.begin, window.end, "year", "", window.calendar)
    assert year.widened().widened() == year.widened()


def test_the_words_that_were_read_are_told() -> None:
    window = read("我们上周三晚上吃了什么？")
    assert window
    assert (window.words, window.unit) == ("上周三晚上", "part")


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        parse_time_range("昨天", now=datetime(2026, 7, 24), tz=SHANGHAI)  # noqa: DTZ001


@pytest.mark.parametrize(
    "text",
    [
        "昨天", "上", "大", "十", "1", "3-", "7月21日到", "last ", "a couple of ", "《", " ", "。",
        "昨天。", "不是昨天", "到至-", "~", "\ud800", "\u202e", "9" * 50 + "天前", "个半月前",
        "2024年", "年", "Monday to ", "March 3-",
    ],
)  # fmt: skip
def test_a_megabyte_of_anything_is_read_in_no_time(text: str) -> None:
    long = text * (1_000_000 // len(text))
    begun = process_time()
    read(long)
    read("7月21日" + long)
    assert process_time() - begun < 1


@pytest.mark.parametrize(
    ("text", "earliest"),
    [
        ("5月1日我们聊了什么", "2026-05-01 00:00"),
        ("5月1日到3日我们聊了什么", "2026-05-01 00:00"),
        ("昨天我们聊了什么", "2026-07-23 04:00"),
        ("5月1日晚上我们聊了什么", "2026-05-01 17:00"),
        ("上周我们聊了什么", "2026-07-13 04:00"),
    ],
)
def test_a_date_has_the_hours_before_its_logical_day_too(text: str, earliest: str) -> None:
    window = read(text)
    assert window is not None
    assert f"{window.earliest.astimezone(SHANGHAI):%Y-%m-%d %H:%M}" == earliest


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("昨晚", FRIDAY, "2026-07-23"),
        ("昨夜", FRIDAY, "2026-07-23"),
        ("前晚", FRIDAY, "2026-07-22"),
        ("今晚", FRIDAY, "2026-07-24"),
        ("今早", FRIDAY, "2026-07-24"),
        ("上周三晚上", FRIDAY, "2026-07-15"),
        ("刚才", FRIDAY, "2026-07-24"),
        ("last night", FRIDAY, "2026-07-23"),
        ("昨晚", "2026-07-24 01:30", "2026-07-22"),
        ("今晚", "2026-07-24 01:30", "2026-07-23"),
        ("上个月", FRIDAY, "2026-06"),
        ("去年", FRIDAY, "2025"),
        # The small hours are the end of one logical day and the beginning of the next.
        ("昨天凌晨", FRIDAY, "2026-07-22"),
        ("今天凌晨", FRIDAY, "2026-07-23"),
        ("7月23日凌晨", FRIDAY, "2026-07-22"),
        ("今天凌晨", "2026-07-24 01:30", "2026-07-23"),
        ("昨天 凌晨", "2026-07-24 01:30", "2026-07-22"),
        ("5小时前", "2026-07-24 08:00", "2026-07-23"),
        ("昨天 下午", FRIDAY, "2026-07-23"),
        ("2026-07-21 晚上", FRIDAY, "2026-07-21"),
        ("21号傍晚", FRIDAY, "2026-07-21"),
        ("昨天下午到今天下午", FRIDAY, None),
        ("昨晚到今早", FRIDAY, None),
        ("昨晚火锅", FRIDAY, None),
        ("上周", FRIDAY, None),
    ],
)
def test_where_a_date_is_asked_for_a_part_of_a_day_is_its_day(
    text: str, now: str, expected: str | None
) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=SHANGHAI)
    found = read_date(text, Calendar(SHANGHAI, time(4)), at)
    assert (None if found is None else found[1]) == expected


@pytest.mark.parametrize("line", ON_FRIDAY.splitlines())
def test_whatever_is_a_time_today_is_one_on_any_day(line: str) -> None:
    text = line.split(" | ")[0].strip()
    at = datetime.fromisoformat(FRIDAY).replace(tzinfo=SHANGHAI)
    named = read_date(text, Calendar(SHANGHAI, time(4)), at) is not None
    assert names_time(text) or not named
