"""Bots do not keep each other talking; people are never taken for one by chance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.chat.chains import FAST_SECONDS, REST_SECONDS, Chains
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey

GROUP, OTHER = ChatKey("1", "group", "7"), ChatKey("1", "group", "8")
BOT, BOT2, SHE = "300", "301", "200"


def chains(most_to_bots: int = 3, most_fast: int = 5) -> Chains:
    return Chains(frozenset({BOT, BOT2}), most_to_bots, most_fast)


def turn(those: Chains, user_id: str, at: float, chat: ChatKey = GROUP) -> bool:
    """Somebody calls; whether they are answered, a second later."""
    those.heard(chat, user_id, at)
    if not those.admits(chat, user_id, at):
        return False
    those.answered(chat, user_id, at + 1)
    return True


def test_bots_get_a_few_replies_until_a_person_speaks() -> None:
    those = chains()
    assert [turn(those, user, 10.0 * n) for n, user in enumerate([BOT, BOT2, BOT, BOT, BOT2])] == [
        True,
        True,
        True,
        False,
        False,
    ]
    those.heard(GROUP, ME, 60)
    assert not turn(those, BOT, 61)
    assert turn(those, BOT, 62, OTHER)
    those.heard(OTHER, SHE, 63)
    assert not turn(those, BOT, 64)
    those.heard(GROUP, SHE, 65)
    assert turn(those, BOT, 66)


def test_no_reply_at_all_to_bots_on_request() -> None:
    assert not turn(chains(most_to_bots=0), BOT, 0)


def test_who_is_always_faster_than_a_person_is_left_alone_for_a_while() -> None:
    those = chains()
    at = 0.0
    for _ in range(5):
        assert turn(those, SHE, at)
        at += 1 + FAST_SECONDS / 2
    assert not turn(those, SHE, at)
    assert turn(those, "201", at)
    assert turn(those, SHE, at + 1)  # somebody else was answered in between


def test_the_rest_ends() -> None:
    those = chains()
    for n in range(5):
        assert turn(those, SHE, n * 2.0)
    assert not turn(those, SHE, 10)
    assert not turn(those, SHE, 8 + REST_SECONDS)
    assert turn(those, SHE, 10 + REST_SECONDS)
    assert turn(those, SHE, 12 + REST_SECONDS)


def test_one_slow_line_shows_a_person() -> None:
    those = chains()
    at = 0.0
    for n in range(40):
        assert turn(those, SHE, at)
        at += 1 + (FAST_SECONDS + 1 if n % 4 == 3 else 0.5)


def test_without_bound() -> None:
    those = chains(most_fast=0)
    assert all(turn(those, SHE, n * 1.5) for n in range(100))


@given(st.lists(st.tuples(st.sampled_from([BOT, BOT2, SHE, ME]), st.booleans()), max_size=60))
def test_bots_never_get_more_in_a_row(events: list[tuple[str, bool]]) -> None:
    those = chains(most_fast=0)
    row = 0
    for at, (user, calls) in enumerate(events):
        if calls and user != ME:
            answered = turn(those, user, at * 10.0)
        else:
            those.heard(GROUP, user, at * 10.0)
            answered = False
        if user == SHE:
            row = 0
        elif answered:
            row += 1
        assert row <= 3
