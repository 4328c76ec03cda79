"""One-time codes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.commands.codes import Codes
from plugins.nonebot_plugin_nianlun.types import ChatKey

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
HERE = ChatKey("10001", "group", "123")
ELSEWHERE = ChatKey("10001", "group", "456")


def test_a_code_serves_once() -> None:
    codes = Codes()
    code = codes.give(HERE, "20001", NOON)
    assert codes.take(HERE, "20001", code, NOON)
    assert not codes.take(HERE, "20001", code, NOON)


def test_a_code_serves_its_person_in_its_chat() -> None:
    codes = Codes()
    code = codes.give(HERE, "20001", NOON)
    assert not codes.take(HERE, "20002", code, NOON)
    assert not codes.take(ELSEWHERE, "20001", code, NOON)
    assert not codes.take(HERE, "20001", "", NOON)
    assert codes.take(HERE, "20001", code, NOON)


def test_a_new_code_replaces_the_last() -> None:
    codes = Codes()
    old, new = codes.give(HERE, "20001", NOON), codes.give(HERE, "20001", NOON)
    assert codes.take(HERE, "20001", old, NOON) is (old == new)
    assert codes.take(HERE, "20001", new, NOON) is (old != new)


@given(st.integers(0, 1200), st.integers(0, 5))
def test_a_code_serves_for_ten_minutes(seconds: int, others: int) -> None:
    codes = Codes()
    code = codes.give(HERE, "20001", NOON)
    later = NOON + timedelta(seconds=seconds)
    for number in range(others):
        codes.give(HERE, f"3000{number}", later)
    assert len(code) == 6
    assert code.isdecimal()
    assert codes.take(HERE, "20001", code, later) is (seconds < 600)
