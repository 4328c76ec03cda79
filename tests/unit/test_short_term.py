"""The window over a session's messages: how many, which, and that a model accepts them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
import doctest
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory import short_term
from plugins.nonebot_plugin_nianlun.memory.short_term import ShortTermMemory

trim = ShortTermMemory.trim


@dataclass
class Session:
    messages: list[dict[str, Any]] | None


def said(role: str, content: str = "", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def calls(*ids: str) -> dict[str, Any]:
    return said("assistant", tool_calls=[{"id": i, "type": "function"} for i in ids])


def result(of: str) -> dict[str, Any]:
    return said("tool", tool_call_id=of)


SYSTEM, LATER = said("system", "人设"), said("system", "后来的")
U1, A1, U2, A2 = said("user", "1"), said("assistant", "1"), said("user", "2"), said("assistant")


def test_the_example_of_the_class() -> None:
    results = doctest.testmod(short_term)
    assert (results.failed, results.attempted > 2) == (0, True)


@pytest.mark.parametrize(
    ("messages", "limit", "kept"),
    [
        ([], 5, []),
        (None, 5, []),
        ([U1, A1, U2], None, [U1, A1, U2]),
        ([U1, A1, U2], 3, [U1, A1, U2]),
        ([U1, A1, U2], 2, [A1, U2]),
        ([U1, A1, U2], 1, [U2]),
        ([U1, A1, U2], 0, []),
        ([SYSTEM, U1, A1, U2], 0, [SYSTEM]),
        ([SYSTEM, said("developer"), U1, U2], 1, [SYSTEM, said("developer"), U2]),
        ([SYSTEM], 5, [SYSTEM]),
        ([U1, LATER, U2], 2, [LATER, U2]),
        ([U1, LATER, U2], 1, [U2]),
        # The last turn of the user stays, however much came after it.
        ([U1, A1, A1, A1], 2, [U1, A1]),
        ([U1, A1, U2, A2, A2, A2], 2, [U2, A2]),
        ([U1, A1, U2, A2, A2, A2], 4, [U2, A2, A2, A2]),
        ([U1, A1, U2, A2, A2, A2], 5, [A1, U2, A2, A2, A2]),
        ([U1, calls("a"), result("a"), calls("b"), result("b")], 4, [U1, calls("b"), result("b")]),
        # Calls and results only together.
        ([U1, calls("a"), result("a"), A1], 4, [U1, calls("a"), result("a"), A1]),
        ([U1, calls("a"), result("a"), A1], 3, [U1, A1]),
        ([U1, calls("a", "b"), result("b"), result("a"), U2], 3, [U2]),
        (
            [U1, calls("a", "b"), result("b"), result("a"), U2],
            4,
            [calls("a", "b"), result("b"), result("a"), U2],
        ),
        ([U1, calls("a", "b"), result("b"), U2], None, [U1, U2]),
        ([U1, calls("a"), U2, result("a")], None, [U1, U2]),
        ([U1, calls("a")], None, [U1]),
        ([result("a"), U1, result("b")], None, [U1]),
        ([U1, calls("a"), result("a"), result("a"), result("x")], 9, [U1, calls("a"), result("a")]),
        ([U1, said("assistant", tool_calls=[])], 2, [U1, said("assistant", tool_calls=[])]),
        ([U1, said("assistant", "好", tool_calls=None)], 1, [U1]),
    ],
)  # fmt: skip
def test_what_is_kept(
    messages: list[dict[str, Any]] | None, limit: int | None, kept: list[dict[str, Any]]
) -> None:
    assert trim(messages, limit) == kept


def test_a_session_is_seen_through_the_window_of_its_memory() -> None:
    session = Session([said("user", str(n)) for n in range(30)])
    assert [m["content"] for m in ShortTermMemory().get_messages(session)] == [
        str(n) for n in range(10, 30)
    ]
    assert len(ShortTermMemory(max_messages=3).get_messages(session)) == 3
    assert len(ShortTermMemory(max_messages=None).get_messages(session)) == 30
    assert ShortTermMemory().get_messages(Session(None)) == []
    assert session.messages == [said("user", str(n)) for n in range(30)]


def test_messages_may_be_objects() -> None:
    call = SimpleNamespace(role="assistant", tool_calls=[SimpleNamespace(id="a")])
    answer = SimpleNamespace(role="tool", tool_call_id="a")
    user = SimpleNamespace(role="user", content="?", tool_calls=None)
    messages = [SimpleNamespace(role="system"), user, call, answer]
    assert trim(messages, 3) == messages
    assert trim(messages, 2) == messages[:2]
    assert trim(messages, 2)[1] is user


def test_a_negative_window_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more, or None"):
        ShortTermMemory(max_messages=-1)
    with pytest.raises(ValueError, match="-5"):
        trim([U1], -5)


IDS = st.sampled_from("abc")
MESSAGES = st.lists(
    st.sampled_from([SYSTEM, U1, A1, U2, A2])
    | st.lists(IDS, min_size=1, max_size=3).map(lambda ids: calls(*ids))
    | IDS.map(result),
    max_size=30,
).map(lambda messages: [{**m, "n": n} for n, m in enumerate(messages)])


def unanswered(messages: list[dict[str, Any]]) -> set[str]:
    """What a provider would complain about: calls without result and results without call."""
    open_calls: set[str] = set()
    wrong: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            wrong |= {message["tool_call_id"]} - open_calls
            open_calls.discard(message["tool_call_id"])
        else:
            wrong |= open_calls
            open_calls = {call["id"] for call in message.get("tool_calls", [])}
    return wrong | open_calls


@given(MESSAGES, st.none() | st.integers(min_value=0, max_value=31))
def test_any_session_is_cut_to_what_a_model_accepts(
    messages: list[dict[str, Any]], limit: int | None
) -> None:
    before = deepcopy(messages)
    kept = trim(messages, limit)
    assert messages == before
    numbers = [m["n"] for m in kept]
    assert numbers == sorted(set(numbers))
    assert all(messages[m["n"]] is m for m in kept)
    assert unanswered(kept) == set()
    leading = next((n for n, m in enumerate(messages) if m["role"] != "system"), len(messages))
    assert numbers[:leading] == list(range(leading))
    if limit is not None:
        assert len(kept) - leading <= limit
    asked = [m["n"] for m in messages if m["role"] == "user"]
    if asked and limit != 0:
        assert asked[-1] in numbers
    assert trim(kept, limit) == kept


@given(MESSAGES, st.integers(min_value=0, max_value=30))
def test_a_wider_window_keeps_no_less(messages: list[dict[str, Any]], limit: int) -> None:
    narrow = {m["n"] for m in trim(messages, limit)}
    assert narrow <= {m["n"] for m in trim(messages, limit + 1)}
