"""What the tools of a reply are, and how the calls that models write are read."""

from __future__ import annotations

from collections.abc import Callable
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import BadAnswer
from plugins.nonebot_plugin_nianlun.llm.providers import WITHOUT_TOOLS, changed
from plugins.nonebot_plugin_nianlun.llm.tool_turns import read_turn
from plugins.nonebot_plugin_nianlun.memory.reply_tools import (
    MOST_IDS,
    call_arguments,
    diary_content,
    message_ids,
    reply_tools,
    words,
)
from plugins.nonebot_plugin_nianlun.types import Usage

SEARCH = '{"name": "search_memory", "arguments": {"query": "钥匙"}}'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def outcome(read: Callable[[], Any]) -> tuple[Any, str | None]:
    """What is read, or what is told to be wrong with it."""
    try:
        return read(), None
    except ValueError as error:
        return None, str(error)


def test_the_tools_are_the_same_bytes_each_time() -> None:
    first, again = (json.dumps(reply_tools(writing=True)) for _ in range(2))
    assert first == again
    names = [tool["function"]["name"] for tool in reply_tools(writing=True)]
    assert names == [
        *("search_memory", "read_messages", "recall_day"),
        *("append_diary", "remember"),
    ]
    assert reply_tools(writing=True)[:3] == reply_tools(writing=False)


def test_no_tool_takes_a_chat_an_owner_or_a_time_of_writing() -> None:
    taken = {
        tool["function"]["name"]: set(tool["function"]["parameters"]["properties"])
        for tool in reply_tools(writing=True)
    }
    assert taken == {
        "search_memory": {"query", "speaker", "when"},
        "read_messages": {"ids"},
        "recall_day": {"date"},
        "append_diary": {"content"},
        "remember": {"category", "name", "content"},
    }


@given(st.lists(st.integers(min_value=1, max_value=10**6), min_size=1, max_size=MOST_IDS))
def test_ids_are_read_in_every_way_they_are_written(ids: list[int]) -> None:
    wanted = list(dict.fromkeys(ids))
    assert message_ids(ids) == wanted
    assert message_ids([f"#{number}" for number in ids]) == wanted
    assert message_ids("，".join(f"#{number}" for number in ids)) == wanted


@pytest.mark.parametrize("ids", ["12", 12, "#12", [12, "12", " #12 "]])
def test_one_id_is_a_list_of_one(ids: object) -> None:
    assert message_ids(ids) == [12]


@given(VALUES)
def test_any_ids_are_read_or_told_to_be_wrong(given_ids: object) -> None:
    found, wrong = outcome(lambda: message_ids(given_ids))
    if wrong is not None:
        assert wrong in {"ids 应为消息编号的列表，如 [12, 15]", f"一次最多读 {MOST_IDS} 条"}
    else:
        assert all(0 < number < 1 << 63 for number in found)
        assert 0 < len(found) <= MOST_IDS


@pytest.mark.parametrize(
    "written",
    [
        '{"ids": [1]}',
        ' {"ids": [1],} ',
        '```json\n{"ids": [1]}\n```',
        '"{\\"ids\\": [1]}"',
        '好的：{"ids": [1]}',
    ],
)
def test_arguments_are_found_where_models_put_them(written: str) -> None:
    assert call_arguments(written) == {"ids": [1]}


def test_arguments_that_were_left_out_are_none() -> None:
    assert call_arguments("") == call_arguments(" \n") == call_arguments('""') == {}


@pytest.mark.parametrize("written", ['{"ids": [1', "[1]", "12", '"x', "null", "爬山"])
def test_what_is_no_object_is_not_taken(written: str) -> None:
    with pytest.raises(BadAnswer):
        call_arguments(written)


@given(st.text(max_size=40) | VALUES)
def test_any_text_is_one_line_or_told_to_be_wrong(given_text: object) -> None:
    found, wrong = outcome(lambda: words({"query": given_text}, "query"))
    if wrong is not None:
        assert wrong in {"query 应为文字", "query 太长，最多 400 个字"}
    else:
        assert len(found.splitlines()) <= 1


def test_a_text_is_fit_to_be_stored_and_looked_for() -> None:
    assert words({"query": " 爬山\u2028\ud800\x00 2026 "}, "query") == "爬山 \ufffd 2026"
    assert words({"query": 2026}, "query") == "2026"


def test_a_moment_takes_its_text_alone() -> None:
    assert diary_content({"content": " 她升职了（关键消息：[1]） "}) == "她升职了"
    with pytest.raises(ValueError, match="只有 content"):
        diary_content({"content": "她升职了", "time": "昨天"})


def test_a_request_without_tools_chooses_none_either() -> None:
    body = {"model": "m", "messages": [], "tools": reply_tools(writing=True), "tool_choice": "none"}
    assert changed(body, {WITHOUT_TOOLS}) == {"model": "m", "messages": []}


# —— calls that a server left standing in the text ——


def turn_of(text: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    turn = read_turn({"message": {"content": text}}, text, Usage(), {"search_memory"})
    return turn.text, [(call.name, json.loads(call.arguments)) for call in turn.calls]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (SEARCH, ""),
        (f"\n```json\n{SEARCH}\n```", ""),
        (f"```\n[{SEARCH}]\n```", ""),
        (f"我找找。\n```json\n{SEARCH}\n```\n稍等", "我找找。\n\n稍等"),
        (f"我找找。\n<tool_call>\n{SEARCH}\n</tool_call>", "我找找。"),
        (SEARCH.replace("arguments", "parameters"), ""),
    ],
)
def test_a_call_in_words_is_a_call(text: str, left: str) -> None:
    assert turn_of(text) == (left, [("search_memory", {"query": "钥匙"})])


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "小鹿", "arguments": {}}',
        f"他写了 {SEARCH} 这样一行",
        f'[{SEARCH}, {{"name": "别的"}}]',
        '{"name": "search_memory"',
        "```python\nprint(1)\n```",
        "[1, 2]",
        "[]",
        "{}",
    ],
)
def test_what_only_looks_like_a_call_is_words(text: str) -> None:
    assert turn_of(text) == (text, [])


@given(st.text(alphabet='{}[]"`:,\n nameserch_moyqut<>/\\', max_size=60))
def test_any_text_is_read(text: str) -> None:
    turn = read_turn({}, text, Usage(), {"search_memory"})
    assert turn.text == text or turn.calls
