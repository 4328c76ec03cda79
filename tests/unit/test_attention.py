"""When the bot speaks: always when called, and unasked only as the owner has set it."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.chat import attention
from plugins.nonebot_plugin_nianlun.chat.attention import Attention, within
from plugins.nonebot_plugin_nianlun.chat.triggers import ReplyGate, is_called
from plugins.nonebot_plugin_nianlun.config import Config
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.types import ChatKey
from tests.support.events import SELF, message_event

GROUP, OTHER = ChatKey("1", "group", "7"), ChatKey("1", "group", "8")
PRIVATE = ChatKey("1", "private", "2")
ZONE = ZoneInfo("Asia/Shanghai")


class Clocks:
    """A wall clock and a steady one that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = datetime(2026, 11, 30, 12, tzinfo=ZONE)
        self.seconds = 0.0
        monkeypatch.setattr(attention, "_now", lambda: self.seconds)

    def now(self) -> datetime:
        return self.at.astimezone(UTC)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def new(clocks: Clocks, dice: float = 0.5, **settings: Any) -> Attention:
    found = Config.model_validate({"nianlun": settings}).nianlun
    return Attention(found, clocks, Calendar(ZONE, time(4)), lambda: dice)


def test_nothing_set_is_silence(clocks: Clocks) -> None:
    quiet = new(clocks, dice=0.0)
    assert not quiet.chimes
    assert not quiet.joins_in(GROUP, message_event("年轮在吗"))


def test_a_keyword_is_heard_in_groups_whatever_its_case(clocks: Clocks) -> None:
    keen = new(clocks, keywords=["爬山", "NoneBot"], chime_in_minutes=0)
    assert keen.chimes
    assert keen.joins_in(GROUP, message_event("周末去爬山吗"))
    assert keen.joins_in(GROUP, message_event("nonebot 怎么装"))
    assert not keen.joins_in(GROUP, message_event("周末去看海吗"))
    assert not keen.joins_in(PRIVATE, message_event("爬山", group_id=None))
    image = [{"type": "image", "data": {"file": "爬山.jpg"}}]
    assert not keen.joins_in(GROUP, message_event(image))


def test_a_single_word_needs_no_list(clocks: Clocks) -> None:
    assert new(clocks, keywords="爬山").joins_in(GROUP, message_event("爬山去"))


@pytest.mark.parametrize(("dice", "joins"), [(0.19, True), (0.2, False), (0.99, False)])
def test_chance_decides_about_the_rest(clocks: Clocks, dice: float, joins: bool) -> None:
    assert new(clocks, dice, chime_in=0.2).joins_in(GROUP, message_event("今天好热")) is joins


def test_each_group_cools_down_by_itself(clocks: Clocks) -> None:
    keen = new(clocks, keywords=["山"], chime_in_minutes=5)
    assert keen.joins_in(GROUP, message_event("山"))
    clocks.seconds = 299
    assert not keen.joins_in(GROUP, message_event("山"))
    assert keen.joins_in(OTHER, message_event("山"))
    clocks.seconds = 300
    assert keen.joins_in(GROUP, message_event("山"))


def test_at_night_the_bot_does_not_join_in_but_hears_calls(clocks: Clocks) -> None:
    keen = new(clocks, keywords=["山"], quiet_hours="23:30-07:00", chime_in_minutes=0)
    for hour, minute, joins in [(23, 29, True), (23, 30, False), (6, 59, False), (7, 0, True)]:
        clocks.at = clocks.at.replace(hour=hour, minute=minute)
        assert keen.joins_in(GROUP, message_event("山")) is joins
        assert keen.admits(GROUP, "2")


def test_other_bots_are_not_joined_and_answered_within_bounds(clocks: Clocks) -> None:
    keen = new(clocks, keywords=["山"], bots=[300], bot_replies=1, chime_in_minutes=0)
    assert not keen.joins_in(GROUP, message_event("山", 300))
    assert keen.admits(GROUP, "300")
    keen.answered(GROUP, "300")
    assert not keen.admits(GROUP, "300")
    keen.heard(GROUP, "2")
    assert keen.admits(GROUP, "300")


@given(st.times(), st.times(), st.times())
def test_hours_and_the_rest_of_the_day_are_each_others_opposite(
    moment: time, one: time, other: time
) -> None:
    if one != other:
        assert within(moment, (one, other)) is not within(moment, (other, one))


def test_an_at_counts_wherever_it_stands() -> None:
    def at(number: object) -> dict[str, Any]:
        return {"type": "at", "data": {"qq": str(number)}}

    words = [{"type": "text", "data": {"text": "这个 "}}, at(SELF)]
    words.append({"type": "text", "data": {"text": " 怎么看"}})
    assert is_called(message_event(words))
    assert is_called(message_event("在吗", to_me=True))
    assert is_called(message_event("在吗", group_id=None))
    assert not is_called(message_event([at("all")]))
    assert not is_called(message_event([at(20003)]))
    assert not is_called(message_event(f"[CQ:at,qq={SELF}] @小忆"))


def test_the_gate_opens_for_the_talk_of_a_group_only_if_the_bot_joins_in() -> None:
    shut, open_ = ReplyGate({"/"}), ReplyGate({"/"}, joins_in=True)
    said = message_event("今天好热")
    assert (shut.opens_for(said), open_.opens_for(said)) == (False, True)
    for gate in (shut, open_):
        assert gate.opens_for(message_event("在吗", to_me=True))
        assert gate.opens_for(message_event([{"type": "reply", "data": {"id": "5"}}]))
        assert not gate.opens_for(message_event("/记忆 今天"))
        assert not gate.opens_for(message_event("/记忆 今天", group_id=None))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("quiet_hours", "23:30"),
        ("quiet_hours", "23:30-24:00"),
        ("quiet_hours", "7:00-7:00"),
        ("quiet_hours", "晚上"),
        ("quiet_hours", "２３:30-07:00"),
        ("chime_in", "1.5"),
        ("chime_in", "-0.1"),
        ("chime_in", "有时"),
        ("chime_in_minutes", "-1"),
        ("keywords", ["爬山", " "]),
        ("bot_replies", "-1"),
        ("fast_replies", "很多"),
        ("reply_wait", "31"),
        ("reply_characters", "10"),
        ("typing_speed", "-1"),
    ],
)
def test_a_wrong_setting_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=key):
        Config.model_validate({"nianlun": {key: value}})


def test_quiet_hours_and_numbers_are_read() -> None:
    found = Config.model_validate({"nianlun": {"quiet_hours": " 23:30 - 7:05 "}}).nianlun
    assert found.quiet_hours == (time(23, 30), time(7, 5))
    assert Config.model_validate({"nianlun": {"bots": 300}}).nianlun.bots == {"300"}
