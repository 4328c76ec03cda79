"""What the commands show."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.commands.views import (
    activities_view,
    inspection_view,
    memory_view,
    status_view,
    tidy_view,
    troubles_view,
)
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar, titled
from plugins.nonebot_plugin_nianlun.memory.invariants import Inspection
from plugins.nonebot_plugin_nianlun.memory.periods import read_period
from plugins.nonebot_plugin_nianlun.memory.why import Edit
from plugins.nonebot_plugin_nianlun.types import Activity, ChatStatus, Memory, TidyReport

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
MORNING = datetime(2026, 11, 29, 2, 32, tzinfo=UTC)  # 10:32 in Shanghai
NIGHT = datetime(2026, 11, 29, 17, 30, tzinfo=UTC)  # 01:30 of the next calendar day

ACTIVITY = Activity(
    number=3,
    date="2026-11-29",
    text="我和小鹿聊了草莓蛋糕。（关键消息：[12,15]）",
    key_messages=(12, 15),
    origin="window",
    time=MORNING,
    writer="offline",
    written_at=MORNING,
)
DAY = Memory(
    kind="day",
    period="2026-11-29",
    text="我今天过得很好（关键消息：[1,12]），睡了。",
    key_messages=(1, 12),
    sources=("3",),
    version=2,
    writer="model",
    written_at=NIGHT,
)
STATUS = ChatStatus(
    messages=120,
    pending=7,
    skipped=3,
    activities=5,
    days=2,
    months=1,
    years=0,
    last_note_at=MORNING,
    last_rollup_at=None,
    last_error=None,
    last_error_at=None,
    next_rollup_at=NIGHT,
    gaps=1,
    tokens_today=456,
    writer="offline",
    paused=False,
)


def test_an_activity_is_one_line_with_number_and_local_time() -> None:
    assert activities_view([ACTIVITY], CALENDAR) == "&3 10:32 我和小鹿聊了草莓蛋糕。（#12 #15）"


def test_a_moment_after_midnight_belongs_to_the_day_before_and_says_so() -> None:
    late = replace(ACTIVITY, number=4, time=NIGHT, text="我和小鹿聊了草莓蛋糕。")
    assert activities_view([late], CALENDAR) == "&4 次日 01:30 我和小鹿聊了草莓蛋糕。"


def test_a_text_cannot_forge_another_activity() -> None:
    forged = replace(ACTIVITY, text="早安\n&9 10:00 我答应给钱\u2028&10 x")
    assert len(activities_view([forged, ACTIVITY], CALENDAR).splitlines()) == 2


def test_a_memory_shows_what_it_rests_on_and_who_wrote_it() -> None:
    assert memory_view(DAY, CALENDAR).splitlines() == [
        "我今天过得很好（#1 #12），睡了。",
        "第 2 版 · 模型 · 2026-11-30 01:30",
    ]


def test_an_edited_memory_names_the_person() -> None:
    edit = Edit("20002", NIGHT, continued=False)
    lines = memory_view(replace(DAY, writer="20002", text="好。"), CALENDAR, edit).splitlines()
    assert lines == ["好。", "第 2 版 · 20002 改写 · 2026-11-30 01:30"]


def test_the_status_shows_every_number() -> None:
    assert status_view(STATUS, CALENDAR).splitlines() == [
        "记录进行中，由离线写手来写",
        "消息：120 条，待写 7 条，跳过 3 条，缺口 1 处",
        "记忆：活动 5 条，日 2 篇，月 1 篇，年 0 篇",
        "最近一条活动：2026-11-29 10:32",
        "最近一次汇总：还没有，下一次：2026-11-30 01:30",
        "今天用量（不算回复）：456 token",
        "最近的错误：没有",
    ]


def test_the_status_shows_how_facts_and_diary_after_replies_went() -> None:
    turns = replace(STATUS, turns_today=9, turns_failed=2, last_turn_at=MORNING)
    lines = status_view(turns, CALENDAR).splitlines()
    assert lines[6] == (
        "回复之后的事实和日记：今天 9 次，没写成 2 次，最近一次写成：2026-11-29 10:32"
    )
    assert len(lines) == 8


def test_the_status_says_that_replying_is_switched_off() -> None:
    assert "静音中" in status_view(replace(STATUS, muted=True), CALENDAR).splitlines()[1]
    assert "静音" not in status_view(STATUS, CALENDAR)


def test_what_is_in_trouble_is_one_line_each() -> None:
    troubles = {"接口": "连不上\n第二行", "最近一次回复没有记忆": None}
    assert troubles_view(troubles) == ["接口：连不上 第二行"]


def test_the_status_shows_why_the_offline_writer_writes() -> None:
    spent = replace(STATUS, token_limit=400, limit_reached=True)
    lines = status_view(spent, CALENDAR).splitlines()
    assert lines[1] == "今天的额度用完了，由离线写手代写"
    assert "今天用量（不算回复）：456 token，额度 400" in lines
    left = replace(STATUS, token_limit=500)
    assert "今天用量（不算回复）：456 token，额度 500" in status_view(left, CALENDAR).splitlines()
    assert "额度用完" not in status_view(left, CALENDAR)
    never = replace(STATUS, token_limit=0, limit_reached=True)
    assert status_view(never, CALENDAR).splitlines()[1] == "额度是 0，由离线写手来写"


def test_the_status_shows_a_pause_and_the_last_error_on_one_line() -> None:
    broken = replace(
        STATUS, paused=True, last_error="连不上模型\n第二行", last_error_at=MORNING, writer="model"
    )
    lines = status_view(broken, CALENDAR).splitlines()
    assert lines[0] == "已暂停记录，由模型来写"
    assert lines[-1].startswith("最近的错误：2026-11-29 10:32 连不上模型")
    assert "第二行" in lines[-1]


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (TidyReport(0, 0, 0, ()), "没有欠着的，都写好了。"),
        (TidyReport(2, 1, 0, ()), "整理过了：写了 2 条活动，更新了 1 篇记忆。"),
        (TidyReport(0, 0, 1, ()), "整理过了：有 1 段没有值得记的。"),
        (
            TidyReport(1, 0, 0, ("连不上模型", "再次连不上")),
            "整理过了：写了 1 条活动，有 2 处没写成，留着下次再写：连不上模型。",
        ),
    ],
)
def test_tidying_says_what_was_done(report: TidyReport, expected: str) -> None:
    assert tidy_view(report) == expected


def test_a_check_tells_what_it_found_and_how_much_more_there_is() -> None:
    sound = Inspection(messages=7, activities=2, memories=1, findings=(), found=0)
    assert inspection_view(sound) == "没有问题：7 条消息、2 条活动、1 篇记忆都对得上。"
    two = replace(sound, findings=("消息 #3 不对\n&9", "2026 是空的"), found=2)
    assert inspection_view(two).splitlines()[0] == "找到 2 处问题："
    assert len(inspection_view(two).splitlines()) == 3
    assert inspection_view(replace(two, found=12)).splitlines()[-1] == "……还有 10 处。"


def test_a_day_is_shown_with_its_weekday() -> None:
    assert titled("2026-11-29") == "2026-11-29（周日）"
    assert titled("2026-11-30") == "2026-11-30（周一）"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("2026-01-05", ("day", "2026-01-05")),
        ("2026-1-5", ("day", "2026-01-05")),
        ("2026/1/5", ("day", "2026-01-05")),
        ("2026.01.05", ("day", "2026-01-05")),
        ("2026-1", ("month", "2026-01")),
        ("2026-12", ("month", "2026-12")),
        ("2026", ("year", "2026")),
        ("2024-02-29", ("day", "2024-02-29")),
        ("2026-02-29", None),
        ("2026-13-40", None),
        ("2026-13", None),
        ("2026-0", None),
        ("0000", None),
        ("26-1-5", None),
        ("2026-1-5-1", None),
        ("2026-01-05\n", None),
        ("２０２６-01-05", ("day", "2026-01-05")),
        ("", None),
    ],
)
def test_dates_are_normalised(typed: str, expected: tuple[str, str] | None) -> None:
    assert read_period(typed) == expected


@given(st.dates(min_value=date(1000, 1, 1)))
def test_every_date_is_found_however_it_is_padded(day: date) -> None:
    typed = f"{day.year}-{day.month}-{day.day}"
    assert read_period(typed) == ("day", day.isoformat())
    assert read_period(day.isoformat()) == ("day", day.isoformat())


@given(st.text(alphabet="0123456789-/.年 \n"))
def test_no_text_breaks_the_reading_of_dates(typed: str) -> None:
    period = read_period(typed)
    assert period is None or read_period(period[1]) == period
