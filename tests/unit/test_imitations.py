"""What a model imitates from its prompt is taken off; what people say is left alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.imitations import clean_reply


@pytest.mark.parametrize(
    "text",
    [
        "#13 10:33 小忆: 好呀",
        "#13 10:33 小忆： 好呀",
        "#13 10:33 小忆（回复 #12）: 好呀",
        "#13 10:33 Old Wang: 好呀",
        "10:33 我: 好呀",
        "我：好呀",
        "assistant: 好呀",
        "#13 我：好呀",
        "好呀（关键消息：[12,13]）",
        "  好呀\n",
        "—— 2026-11-29 周日 ——\n#13 10:33 小忆: 好呀",
    ],
)
def test_imitations_are_taken_off(text: str) -> None:
    assert clean_reply(text) == "好呀"


@pytest.mark.parametrize(
    "text",
    [
        "10:30 见",
        "那就 10:30 见吧：老地方",
        "他说：「我：不去」",
        "我觉得：都行",
        "我们：一二三",
        "比分 3:2，厉害",
        "#话题# 今天吃什么",
        "#1 先洗菜",
        "记得看 #12 那条",
        "C# 和 F# 都行",
        "第一行\n\n第二行",
        "  缩进\n    也在".strip(),
        "关键是：消息太多",
        "—— 这句是破折号",
    ],
)
def test_ordinary_text_is_untouched(text: str) -> None:
    assert clean_reply(text) == text


def test_every_line_is_looked_at() -> None:
    assert clean_reply("#3 10:00 小忆: 一\n#4 10:01 小忆: 二") == "一\n二"


def test_nothing_but_marks_is_nothing_to_say() -> None:
    assert clean_reply("（关键消息：[1]）") == ""
    assert clean_reply("我：") == ""
    assert clean_reply(" \n ") == ""


@given(st.text())
def test_nothing_is_added_and_no_id_stands_at_the_front(text: str) -> None:
    cleaned = clean_reply(text)
    assert len(cleaned) <= len(text)
    assert cleaned == cleaned.strip()


@given(st.text(alphabet="#&0123456789: ：我（）回复一好a\n", max_size=60))
def test_hostile_mixtures_end_quickly(text: str) -> None:
    assert len(clean_reply(text)) <= len(text)


def test_huge_lines_end_quickly() -> None:
    assert clean_reply("#" + "1" * 50_000) == "#" + "1" * 50_000
    assert clean_reply("#1 10:00 " + "啊" * 50_000) == "#1 10:00 " + "啊" * 50_000


def test_its_own_name_before_a_line_is_taken_off() -> None:
    assert clean_reply("小忆: 好呀\n小忆：走吧", "小忆") == "好呀\n走吧"
    assert clean_reply("小忆说：好呀", "小忆") == "小忆说：好呀"
