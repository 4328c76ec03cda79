"""JSON is found in what models really answer, and nothing else is taken for it."""

from __future__ import annotations

import contextlib
import json

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import BadAnswer
from plugins.nonebot_plugin_nianlun.memory.answers import parse_json

NOTE = {"action": "add_activity", "memory": '小林说"好" {真的} [1]'}
TEXT = json.dumps(NOTE, ensure_ascii=False)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "answer",
    [
        TEXT,
        f"\ufeff  {TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\n希望你喜欢～",
        f"好的～这是我的记录：\n```JSON\n{TEXT}\n```",
        f"好的：{TEXT} 就这些。",
        f"我会用 {{角色}} 的口吻 [笑] 写：{TEXT}",
        f"参考 [1] 和 [2]：{TEXT}",
        TEXT.replace("}", ",}").replace("{真的,}", "{真的}"),
        json.dumps(NOTE, indent=2),
        '例如 {"action":"add_activity","memory":"这里是一段很长很长很长很长的示例文字"}\n'
        f"```json\n{TEXT}\n```",
    ],
)
def test_the_object_is_found(answer: str) -> None:
    assert parse_json(answer) == NOTE


def test_line_breaks_inside_strings_are_tolerated() -> None:
    assert parse_json('{"memory": "一\n二"}') == {"memory": "一\n二"}


def test_the_longest_of_several_is_the_answer() -> None:
    assert parse_json(f'先想想：{{"a": 1}}。{TEXT}') == NOTE
    assert parse_json(f"{TEXT}\n关键消息是 [1, 3, 5]") == NOTE


def test_a_list_is_taken_too() -> None:
    assert parse_json(f"[{TEXT},]") == [NOTE]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  ",
        "好的～今天也很开心！",
        '"just a string"',
        "42",
        "null",
        "NaN",
        '{"memory": NaN}',
        "{'action': 'decline'}",
        TEXT[:-1],
        TEXT[: len(TEXT) // 2],
        '{"actions": [{"action": "update_memory", "task_id": 1}',
        '{"actions": [{"action": "update_memory", "task_id": 1}, {"action": "upd',
        f'```json\n{{"actions": [{TEXT}',
        "请求失败: 401",
    ],
)
def test_anything_else_is_a_bad_answer(answer: str) -> None:
    with pytest.raises(BadAnswer):
        parse_json(answer)


@pytest.mark.parametrize("mark", ["[", "{", '{"', '{"a":', "```json\n", '"', ",", "[,"])
def test_hostile_repetition_ends_soon(mark: str) -> None:
    with pytest.raises(BadAnswer):
        parse_json(mark * 100_000 + "x")


@given(st.dictionaries(st.text(), values) | st.lists(values), st.booleans())
def test_whatever_was_written_is_read_back(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_json(text) == value
    assert parse_json(f"```json\n{text}\n```") == value


@given(st.dictionaries(st.text(min_size=1), values, min_size=1))
def test_an_object_amid_prose_is_read_back(value: dict[str, object]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert parse_json(f"好的，记录如下：{text}，写完了。") == value


@given(st.dictionaries(st.text(min_size=1), values, min_size=1), st.data())
def test_half_an_answer_is_never_taken(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps({"actions": [value]}, ensure_ascii=False)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(BadAnswer):
        parse_json(text[:cut])


@given(st.text(alphabet='{}[]",:\\ \n`a1真\u2028\0\ud800', max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    with contextlib.suppress(BadAnswer):
        assert isinstance(parse_json(text), dict | list)
