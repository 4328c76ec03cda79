"""Histories as the implementations hand them out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
import itertools
import json
from pathlib import Path
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.history import (
    NoAnswer,
    NotHistory,
    Reach,
    merged,
    read_page,
    walk_back,
)
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey
from tests.support.onebot_history import History, Kind
from tests.support.onebot_platform import Payload, Platform

FIXTURES = Path(__file__).parents[1] / "fixtures" / "onebot"
BOT = "3889001234"
GROUP = ChatKey(BOT, "group", "742100123")
FRIEND = ChatKey(BOT, "private", "10010")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOON = datetime(2026, 11, 29, 4, tzinfo=UTC)
KINDS: list[Kind] = ["napcat", "llbot", "lagrange", "gocq"]


def item(second: int = 0, **changes: Any) -> dict[str, Any]:
    made = {
        "time": int(NOON.timestamp()) + second,
        "user_id": 10010,
        "message_id": 500 + second,
        "message": [{"type": "text", "data": {"text": f"第{second}句"}}],
        "sender": {"user_id": 10010, "nickname": "阿澈", "card": ""},
        "group_id": 742100123,
    } | changes
    return {key: value for key, value in made.items() if value is not ...}


def texts(reach: Reach) -> list[str]:
    return [readable(line.message.segments, str) for line in reach.lines]


@pytest.mark.parametrize(
    ("name", "chat", "count"),
    [
        ("napcat_api_get_group_msg_history.json", GROUP, 3),
        ("napcat_api_get_friend_msg_history.json", FRIEND, 2),
    ],
)
def test_a_recorded_answer(name: str, chat: ChatKey, count: int) -> None:
    data = json.loads((FIXTURES / name).read_text("utf-8"))["data"]
    page = read_page(data, chat, NOW)
    assert len(page) == count
    assert {line.message.source for line in page} == {"history"}
    assert {line.message.chat for line in page} == {chat}
    assert all(line.message.message_id and line.message.order for line in page)
    assert page[0].cursor["message_seq"] == data["messages"][0]["message_seq"]


@pytest.mark.parametrize("data", [None, [], {}, "好", 7, {"messages": None}, {"messages": "x"}])
def test_what_is_no_list_is_no_history(data: object) -> None:
    if data == []:
        assert read_page(data, GROUP, NOW) == []
        return
    with pytest.raises(NotHistory):
        read_page(data, GROUP, NOW)


def test_what_is_no_message_of_the_chat_is_left_out() -> None:
    odd = [
        None,
        "好",
        [],
        item(1, group_id=5),
        item(2, user_id=...),
        item(3, time="昨天"),
        item(4, time=...),
        item(5, time=-1),
        item(6),
    ]
    assert [line.message.message_id for line in read_page(odd, GROUP, NOW)] == ["506"]


def test_own_lines_of_both_kinds_of_chat() -> None:
    mine = item(user_id=int(BOT), group_id=...)
    (private,) = read_page([mine], FRIEND, NOW)
    (group,) = read_page([mine], GROUP, NOW)
    for line in (private, group):
        assert (line.message.user_id, line.message.source) == (ME, "history")


def test_somebody_elses_private_chat_is_not_this_one() -> None:
    assert read_page([item(user_id=10099, group_id=...)], FRIEND, NOW) == []


@pytest.mark.parametrize(
    "flag", [{"status": "deleted"}, {"recalled": True}, {"recall_time": 1795973112}]
)
def test_a_message_that_was_taken_back_is_told_apart(flag: dict[str, Any]) -> None:
    first, second = read_page([item(1, **flag), item(2, recall_time="0")], GROUP, NOW)
    assert (first.withdrawn, second.withdrawn) == (True, False)


def test_milliseconds_and_codes() -> None:
    at = (int(NOON.timestamp()) + 3) * 1000
    (line,) = read_page([item(time=at, message="好[CQ:face,id=14]")], GROUP, NOW)
    assert line.message.time == NOON + timedelta(seconds=3)
    assert [part["type"] for part in line.message.segments] == ["text", "face"]


def test_ids_that_say_nothing_are_not_believed() -> None:
    page = read_page([item(n, message_id=1) for n in range(3)], GROUP, NOW)
    assert [line.message.message_id for line in merged([page])] == [None, None, None]


def test_an_image_has_another_address_on_each_page() -> None:
    pages = [
        read_page(
            [item(message=[{"type": "image", "data": {"file": "a", "url": url}}])], GROUP, NOW
        )
        for url in ("https://example.com/1", "https://example.com/2")
    ]
    (line,) = merged(pages)
    assert line.message.message_id == "500"


def test_equal_lines_of_a_second_without_ids_stay_as_many_as_one_page_has() -> None:
    same = item(message_id=0)
    twice = read_page([same, same], GROUP, NOW)
    assert len(merged([twice, twice])) == 2


class Account:
    """What one implementation has of a chat of `count` messages, one a second."""

    def __init__(self, kind: Kind, count: int, chat: ChatKey = GROUP, **options: Any) -> None:
        self.history = History(kind, **options)
        self.asked: list[Mapping[str, Any]] = []
        platform = Platform(int(BOT), "小忆")
        sender = {"user_id": 10010, "nickname": "阿澈", "card": ""}
        write = platform.group_message if chat.kind == "group" else platform.private_message
        self.events: list[Payload] = [
            write(f"第{n}句", sender, int(chat.peer_id), NOON.timestamp() + n) for n in range(count)
        ]

    async def __call__(self, name: str, params: Mapping[str, Any]) -> object:
        self.asked.append(params)
        return self.history.page(dict(params), self.events)


async def walk(
    account: Any, since: float, chat: ChatKey = GROUP, *, pages: int = 20, messages: int = 1000
) -> Reach:
    at = NOON + timedelta(seconds=since)
    return await walk_back(account, chat, at, lambda: NOW, pages=pages, messages=messages)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 3, 49, 50, 51, 130])
async def test_every_implementation_is_walked_back(kind: Kind, count: int) -> None:
    reach = await walk(Account(kind, count), 0)
    assert reach.complete
    assert texts(reach) == [f"第{n}句" for n in range(count)]


@pytest.mark.parametrize("kind", ["napcat", "llbot", "lagrange"])
async def test_private_chats_as_well(kind: Kind) -> None:
    reach = await walk(Account(kind, 120, FRIEND), 0, FRIEND)
    assert (reach.complete, len(reach.lines)) == (True, 120)


async def test_a_walk_ends_where_it_was_to_end() -> None:
    account = Account("napcat", 500)
    reach = await walk(account, 480)
    assert (reach.complete, len(account.asked)) == (True, 1)


@pytest.mark.parametrize(("pages", "messages"), [(2, 1000), (20, 60)])
async def test_limits_end_a_walk(pages: int, messages: int) -> None:
    reach = await walk(Account("napcat", 500), 0, pages=pages, messages=messages)
    assert (reach.complete, reach.pages, len(reach.lines)) == (False, 2, 99)
    assert reach.oldest == reach.lines[0].message.time


@pytest.mark.parametrize("kind", KINDS)
async def test_a_history_that_ends_earlier_is_not_complete(kind: Kind) -> None:
    account = Account(kind, 100, kept=30)
    reach = await walk(account, 0)
    assert (reach.complete, len(reach.lines)) == (False, 30)
    assert len(account.asked) <= 4


async def test_the_way_round_that_brings_nothing_is_tried_the_other_way() -> None:
    account = Account("napcat", 120)

    async def contrary(name: str, params: Mapping[str, Any]) -> object:
        turned = not params.get("reverse_order")
        return await account(name, {**params, "reverse_order": turned})

    reach = await walk(contrary, 0)
    assert (reach.complete, len(reach.lines)) == (True, 120)


async def test_a_failure_later_keeps_what_came_before() -> None:
    account = Account("napcat", 120)

    async def failing(name: str, params: Mapping[str, Any]) -> object:
        if account.asked:
            raise NoAnswer("没有")
        return await account(name, params)

    reach = await walk(failing, 0)
    assert (reach.complete, len(reach.lines)) == (False, 50)
    with pytest.raises(NoAnswer):
        await walk(failing, 0)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = ["messages", "time", "user_id", "message", "message_id", "sender"]
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(names), inner, max_size=4)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), containers, max_leaves=12))
def test_anything_at_all_can_be_read(data: Any) -> None:
    try:
        page = read_page(data, GROUP, NOW)
    except NotHistory:
        return
    assert all(line.message.chat == GROUP for line in merged([page, page]))


async def test_pages_that_are_numbered_anew_each_time_are_not_counted_twice() -> None:
    account, numbers = Account("napcat", 130), itertools.count(10_000)
    known: dict[object, int] = {}

    async def numbering(name: str, params: Mapping[str, Any]) -> object:
        asked = {**params, "message_seq": known.get(params.get("message_seq"))}
        page = account.history.page(asked, account.events)["messages"]
        items = [{**line, "message_id": next(numbers)} for line in page]
        for new, old in zip(items, page, strict=True):
            known[new["message_id"]] = old["message_seq"]
        return [{**line, "message_seq": line["message_id"]} for line in items]

    reach = await walk(numbering, 0)
    assert reach.complete
    assert texts(reach) == [f"第{n}句" for n in range(130)]
    assert {line.message.message_id for line in reach.lines} == {None}


async def test_a_pager_without_end_that_numbers_anew_brings_each_line_once() -> None:
    numbers = itertools.count(10_000)

    async def endless(name: str, params: Mapping[str, Any]) -> object:
        return [item(second, message_id=next(numbers)) for second in range(50)]

    reach = await walk(endless, -60)
    assert (len(reach.lines), reach.complete) == (50, False)
    assert reach.pages <= 4


@pytest.mark.parametrize("place", [0, 25, 49])
async def test_one_line_with_an_impossible_time_does_not_end_a_walk(place: int) -> None:
    account = Account("lagrange", 200)
    account.events[150 + place]["time"] = 1_500_000_000
    reach = await walk(account, 0)
    assert reach.complete
    assert sorted(texts(reach)) == sorted(f"第{n}句" for n in range(200))


async def test_what_such_a_line_claims_is_not_believed_when_the_walk_is_cut_short() -> None:
    account = Account("napcat", 200)
    account.events[170]["time"] = 1_500_000_000
    reach = await walk(account, 0, pages=1)
    assert (reach.complete, reach.oldest) == (False, NOON + timedelta(seconds=150))


async def test_pages_in_no_order_are_walked_back_too() -> None:
    account, dice = Account("llbot", 200), random.Random(1)

    async def shuffling(name: str, params: Mapping[str, Any]) -> object:
        account.asked.append(params)
        page = account.history.page(dict(params), account.events)["messages"]
        return dice.sample(page, len(page))

    reach = await walk(shuffling, 0)
    assert (reach.complete, len(reach.lines)) == (True, 200)


async def test_of_an_endless_page_the_newest_lines_are_taken() -> None:
    async def everything(name: str, params: Mapping[str, Any]) -> object:
        return [item(second) for second in range(5000)]

    reach = await walk(everything, 0)
    assert (len(reach.lines), reach.complete) == (1000, False)
    assert reach.oldest == NOON + timedelta(seconds=4000)


@pytest.mark.parametrize("flags", [({}, {"status": "deleted"}), ({"status": "deleted"}, {})])
def test_who_says_once_that_a_line_was_taken_back_is_believed(
    flags: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    one, two = (read_page([item(1, **flag)], GROUP, NOW) for flag in flags)
    assert [line.withdrawn for line in merged([one, two])] == [True]
    assert [line.withdrawn for line in merged([[*one, *two]])] == [True]
