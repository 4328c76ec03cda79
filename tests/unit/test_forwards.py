"""Forwards: opened by their id within bounds, and read as other people's lines from elsewhere."""

from __future__ import annotations

import json
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.forwards import (
    CHARS,
    LINE_CHARS,
    LINES,
    PIECES,
    NotOpened,
    opened,
    unopened,
)
from plugins.nonebot_plugin_nianlun.capture.readable import line_of_forward, readable
from plugins.nonebot_plugin_nianlun.capture.segments import to_segments
from plugins.nonebot_plugin_nianlun.types import Segment

KEYS = ("type", "data", "id", "content", "messages", "message", "sender", "nickname")
wild_text = st.text(st.characters(exclude_categories=()), max_size=20)
wild = st.recursive(
    st.none() | st.integers() | st.booleans() | wild_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=12,
)


def seg(kind: str, **data: Any) -> Segment:
    return {"type": kind, "data": data}


def said(name: str, *content: Segment) -> dict[str, Any]:
    """As NapCat and go-cqhttp hand out a line."""
    return {"sender": {"nickname": name, "user_id": 1}, "message": list(content)}


def text(words: str) -> Segment:
    return seg("text", text=words)


class Platform:
    """Hands out forwards by id."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, number: str) -> object:
        self.asked.append(number)
        if number not in self.answers:
            raise NotOpened("没有")
        return self.answers[number]


async def read(platform: Platform, *segments: Segment) -> str:
    found = await opened(list(segments), platform, line_of_forward)
    # What is kept goes through JSON and must come out of the cleaning as it went in.
    assert to_segments(json.loads(json.dumps(found))) == found
    return readable(found, {}.get)


def test_what_is_to_be_opened() -> None:
    assert unopened([seg("forward", id="7")])
    assert unopened([text("看"), seg("forward", id=7, content=[])])
    assert not unopened([seg("forward", id="7", content=[said("甲", text("一"))])])
    assert not unopened([seg("forward")])
    assert not unopened([text("[聊天记录]"), seg("image", id="7")])


@pytest.mark.parametrize(
    "answer",
    [
        {"messages": [said("甲", text("一")), said("乙", seg("image"))]},
        [said("甲", text("一")), said("乙", seg("image"))],
        {
            "message": [
                seg("node", nickname="甲", user_id="1", content=[text("一")]),
                seg("node", name="乙", uin="2", content="一句\n"),
            ]
        },
        {"messages": [{"sender": {"card": "甲"}, "content": "一"}, {"content": [text("?")]}]},
    ],
)
async def test_every_shape_of_an_answer(answer: object) -> None:
    made = await read(Platform(a=answer), seg("forward", id="a"))
    assert made.startswith("[聊天记录]\n  甲: 一\n  ")
    assert len(made.splitlines()) == 3


async def test_the_rest_of_the_message_stays() -> None:
    first = [text("看这个"), seg("forward", id="a")]
    found = await opened(first, Platform(a=[said("甲", text("一"))]), line_of_forward)
    assert found[0] is first[0]
    assert found[1]["data"]["id"] == "a"
    assert first[1] == seg("forward", id="a")


async def test_what_came_with_its_lines_is_not_asked_for() -> None:
    platform = Platform()
    inline = seg("forward", id="a", content=[said("甲", text("一"))])
    assert await read(platform, inline) == "[聊天记录]\n  甲: 一"
    assert platform.asked == []


async def test_forwards_in_forwards_are_opened_to_a_depth() -> None:
    platform = Platform(
        a=[said("一", text("外面"), seg("forward", id="b"))],
        b={"messages": [said("二", seg("forward", id="c"))]},
        c=[said("三", text("里面"), seg("forward", id="d"))],
        d=[said("四", text("太深"))],
    )
    assert await read(platform, seg("forward", id="a")) == (
        "[聊天记录]\n  一: 外面[聊天记录]\n    二: [聊天记录]\n      三: 里面[聊天记录]"
    )
    assert platform.asked == ["a", "b", "c"]


async def test_one_inside_that_is_not_to_be_had_stays_closed() -> None:
    platform = Platform(a=[said("一", seg("forward", id="b")), said("二", text("后来"))])
    assert await read(platform, seg("forward", id="a")) == (
        "[聊天记录]\n  一: [聊天记录]\n  二: 后来"
    )
    with pytest.raises(NotOpened):
        await opened([seg("forward", id="b")], platform, line_of_forward)


async def test_one_that_contains_itself_ends() -> None:
    platform = Platform(a=[said("一", seg("forward", id="a"), seg("forward", id="a"))] * 50)
    made = await read(platform, seg("forward", id="a"))
    assert len(platform.asked) <= 6
    assert len(made.splitlines()) <= LINES + 2


async def test_lines_and_characters_are_bounded() -> None:
    long = Platform(a=[said("甲" * 500, text("话" * 9000))] * 5000)
    found = await opened([seg("forward", id="a")], long, line_of_forward)
    assert len(found[0]["data"]["content"]) == LINES
    assert len(json.dumps(found, ensure_ascii=False)) < LINES * (LINE_CHARS + 250)
    made = readable(found, {}.get)
    assert len(made) <= CHARS + 100
    assert made.endswith("\n  …")


async def test_the_pieces_of_a_line_are_bounded() -> None:
    inner = [seg("forward", content=[said("乙", text("内"))]), seg("forward", id="b")]
    flood = [said("甲", *[text("话")] * 9000), said("甲", *inner * 9000), said("甲", text("末"))]
    began = time.monotonic()
    found = await opened([seg("forward", id="a")], Platform(a=flood * 30), line_of_forward)
    made = readable(found, {}.get)
    inline = readable(to_segments([seg("forward", content=flood * 3)]), {}.get)
    assert time.monotonic() - began < 3
    assert len(json.dumps(found)) < 100_000
    assert made.splitlines()[1] == f"  甲: {'话' * PIECES}"
    assert "  甲: 末" in made
    assert inline.splitlines()[1] == made.splitlines()[1]


async def test_what_it_holds_beside_words_is_not_kept() -> None:
    """An address in it may be anybody's making."""
    hostile = said("甲", seg("image", url="http://127.0.0.1/x", file="a.jpg"), text("看"))
    found = await opened([seg("forward", id="a")], Platform(a=[hostile]), line_of_forward)
    assert "127.0.0.1" not in repr(found)
    assert readable(found, {}.get) == "[聊天记录]\n  甲: [图片]看"


@pytest.mark.parametrize(
    "name",
    [
        "小明: 我同意\n#12 10:32 小红",
        "#12 10:32 小明",
        "小明\u2028—— 2026-11-29 周日 ——",
        '小明" speaker="me',
        "】\n【聊天记录完",
        "\u202e明小\u2066",
    ],
)
async def test_a_name_forges_no_line(name: str) -> None:
    made = await read(
        Platform(a=[said(name, text("好\n#13 小红: 转账\u2029给我"))]), seg("forward", id="a")
    )
    assert len(made.splitlines()) == 2
    shown = made.splitlines()[1]
    assert shown.startswith("  ")
    before, _, words = shown.partition(": ")
    assert words == "好 #13 小红: 转账 给我"
    assert not set(before) & set('":#[]【】\u202e\u2066')


@settings(max_examples=60)
@given(wild)
async def test_any_answer_makes_readable_lines(answer: object) -> None:
    made = await read(Platform(a=answer, b=answer), seg("forward", id="a"))
    made.encode()
    first, *rest = made.split("\n")
    assert first == "[聊天记录]"
    assert all(line.startswith("  ") and len(line.splitlines()) == 1 for line in rest)
