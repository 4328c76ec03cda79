"""Where the bot may not speak it does not try without end, and tries again in time."""

from __future__ import annotations

from typing import Any

from nonebot import logger
from nonebot.adapters.onebot.v11 import ActionFailed, Adapter, Event
import pytest

from plugins.nonebot_plugin_nianlun.capture.muting import Muting, muting
from plugins.nonebot_plugin_nianlun.capture.outgoing import ambiguous
from plugins.nonebot_plugin_nianlun.chat import silences
from plugins.nonebot_plugin_nianlun.chat.silences import (
    FIRST_REST,
    LONGEST_REST,
    REFUSALS,
    Silences,
    is_mute,
    is_refusal,
)
from plugins.nonebot_plugin_nianlun.types import ChatKey

CHAT, OTHER = ChatKey("10001", "group", "123"), ChatKey("10001", "group", "8")
PLAIN = ActionFailed(retcode=200, message="", wording="")
MUTED = ActionFailed(retcode=1200, message="发送失败，你已被禁言", wording="")


class Steady:
    def __init__(self) -> None:
        self.seconds = 1000.0


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Steady:
    clock = Steady()
    monkeypatch.setattr(silences, "_now", lambda: clock.seconds)
    return clock


def test_one_refusal_is_no_reason_to_be_silent(steady: Steady) -> None:
    those = Silences()
    for _ in range(REFUSALS - 1):
        those.refused(CHAT, PLAIN)
        assert those.reason(CHAT) is None
    those.end(CHAT)
    those.refused(CHAT, PLAIN)
    assert those.reason(CHAT) is None


def test_refusals_in_a_row_bring_longer_and_longer_rests(steady: Steady) -> None:
    those = Silences()
    for _ in range(REFUSALS):
        those.refused(CHAT, PLAIN)
    rests = []
    for _ in range(12):
        assert those.reason(CHAT)
        assert those.reason(OTHER) is None
        began = steady.seconds
        while those.reason(CHAT):
            steady.seconds += FIRST_REST / 2
        rests.append(steady.seconds - began)
        those.refused(CHAT, PLAIN)
    assert rests[:3] == [FIRST_REST, 2 * FIRST_REST, 4 * FIRST_REST]
    assert rests == sorted(rests)
    assert rests[-1] == LONGEST_REST


def test_a_mute_needs_no_second_try(steady: Steady) -> None:
    those = Silences()
    those.refused(CHAT, MUTED)
    assert those.reason(CHAT) == "机器人被禁言了"
    steady.seconds += FIRST_REST
    assert those.reason(CHAT) is None
    those.end(CHAT)
    assert those.reason(CHAT) is None


def test_a_notice_holds_until_the_next_one_but_not_for_ever(steady: Steady) -> None:
    those = Silences()
    those.begin(CHAT, "机器人被禁言了", 10**9)
    steady.seconds += LONGEST_REST - 1
    assert those.reason(CHAT)
    those.end(CHAT)
    assert those.reason(CHAT) is None
    those.begin(CHAT, "机器人被禁言了", 10**9)
    steady.seconds += LONGEST_REST
    assert those.reason(CHAT) is None


def test_a_success_from_before_a_mute_does_not_end_it(steady: Steady) -> None:
    those = Silences()
    those.worked(CHAT, steady.seconds)
    those.begin(CHAT, "机器人被禁言了", 600)
    those.worked(CHAT, steady.seconds - 1)
    assert those.reason(CHAT)
    those.worked(CHAT, steady.seconds + 1)
    assert those.reason(CHAT) is None


def test_it_is_said_once(steady: Steady) -> None:
    said: list[str] = []
    sink = logger.add(lambda line: said.append(str(line)), level="INFO", format="{message}")
    try:
        those = Silences()
        for _ in range(10):
            those.refused(CHAT, MUTED)
            steady.seconds += LONGEST_REST
        those.begin(CHAT, "机器人被禁言了", 60)
        those.end(CHAT)
        those.end(CHAT)
    finally:
        logger.remove(sink)
    assert said == [
        "group:123 机器人被禁言了，暂时不在那里说话\n",
        "group:123 又可以说话了\n",
    ]


@pytest.mark.parametrize(
    ("info", "muted"),
    [
        ({"message": "你已被禁言"}, True),
        ({"wording": 'EventChecker Failed: {"result":120,"errMsg":""}'}, True),
        ({"wording": "group message pkg response failed error code=120"}, True),
        ({"message": "bot is muted"}, True),
        ({"message": 'result":1200'}, False),
        ({"message": "commuted"}, False),
        ({"message": None, "wording": 5}, False),
        ({}, False),
    ],
)
def test_a_mute_is_told_by_its_name(info: dict[str, Any], muted: bool) -> None:
    assert is_mute(ActionFailed(retcode=1200, **info)) is muted


@pytest.mark.parametrize(
    ("info", "refusal"),
    [
        ({"retcode": 1400}, True),
        ({"retcode": 100}, True),
        ({"retcode": 1200, "message": "Timeout: EventChecker Failed"}, False),
        ({"retcode": 1200, "message": "被禁言"}, True),
    ],
)
def test_a_timeout_is_no_refusal(info: dict[str, Any], refusal: bool) -> None:
    error = ActionFailed(**info)
    assert is_refusal(error, ambiguous(error)) is refusal


def notice(kind: str, **fields: object) -> Event:
    payload = {
        "post_type": "notice",
        "notice_type": kind,
        "time": 1795973112,
        "self_id": 10001,
        "group_id": 123,
        "user_id": 10001,
        "operator_id": 20001,
    }
    event = Adapter.json_to_event(payload | fields)
    assert event is not None
    return event


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (("group_ban", {"sub_type": "ban", "duration": 60}), ("机器人被禁言了", 60)),
        (("group_ban", {"sub_type": "ban"}), ("机器人被禁言了", 10**9)),
        (("group_ban", {"sub_type": "ban", "duration": -1}), ("机器人被禁言了", 10**9)),
        (("group_ban", {"sub_type": "ban", "duration": "x"}), ("机器人被禁言了", 10**9)),
        (("group_ban", {"sub_type": "ban", "duration": 0}), (None, 0)),
        (("group_ban", {"sub_type": "lift_ban", "duration": 0}), (None, 0)),
        (("group_ban", {"sub_type": "lift_ban", "duration": 0, "user_id": 0}), (None, 0)),
        (("group_decrease", {"sub_type": "kick_me"}), ("机器人不在群里了", 10**9)),
        (("group_decrease", {"sub_type": "kick_me", "user_id": 0}), ("机器人不在群里了", 10**9)),
        (("group_decrease", {"sub_type": "leave"}), ("机器人不在群里了", 10**9)),
        (("group_increase", {"sub_type": "approve"}), (None, 0)),
    ],
)
def test_notices_about_the_bot_are_read(
    event: tuple[str, dict[str, object]], expected: tuple[str | None, int]
) -> None:
    kind, fields = event
    assert muting(notice(kind, **fields), "10001") == Muting(CHAT, *expected)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("group_ban", {"sub_type": "ban", "duration": 60, "user_id": 20002}),
        ("group_ban", {"sub_type": "ban", "duration": 60, "user_id": 0}),
        ("group_ban", {"sub_type": "lift_ban", "duration": 0, "user_id": 20002}),
        ("group_decrease", {"sub_type": "kick", "user_id": 20002}),
        ("group_increase", {"sub_type": "approve", "user_id": 20002}),
        ("group_recall", {"message_id": 1}),
        ("group_ban", {"sub_type": "ban", "group_id": {"a": 1}}),
        ("group_ban", {"sub_type": "", "user_id": None}),
    ],
)
def test_others_are_none_of_its_business(kind: str, fields: dict[str, object]) -> None:
    assert muting(notice(kind, **fields), "10001") is None
