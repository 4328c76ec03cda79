"""Messages as data, and as text that can be read."""

from __future__ import annotations

from collections.abc import Iterator
import json
import math
from pathlib import Path
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from nonebot.adapters.onebot.v11 import Message, MessageSegment
import pytest

from plugins.nonebot_plugin_nianlun.capture.cleaning import clean_name, one_line
from plugins.nonebot_plugin_nianlun.capture.segments import clean_text, readable, to_segments

NAMES = {"10010": "阿澈", "10011": "换行\n名"}
# Lone surrogates and NUL on purpose: JSON can carry both.
wild_text = st.text(st.characters(exclude_categories=()), max_size=30)
plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | wild_text
    | st.binary(max_size=9)
    | st.dates()
)
wild = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(wild_text | st.integers(), inner),
    max_leaves=12,
)
KINDS = (
    "text at reply image face mface marketface bface sface record video file dice rps shake poke "
    "anonymous share contact location music forward node xml json miniapp markdown keyboard "
    "longmsg redbag gift tts cardimage flashfile flashtransfer onlinefile weather nonsense"
)
KEYS = (
    "text qq name id summary raw file duration result value type title content data messages "
    "message sender nickname card user_id app prompt meta desc encode"
)
segment = st.fixed_dictionaries(
    {
        "type": st.sampled_from(KINDS.split()) | wild_text,
        "data": st.dictionaries(st.sampled_from(KEYS.split()), wild, max_size=5) | wild,
    }
)
nested = st.recursive(
    segment,
    lambda inner: st.fixed_dictionaries(
        {
            "type": st.sampled_from(["forward", "node"]),
            "data": st.fixed_dictionaries({"content": st.lists(inner, max_size=3)}),
        }
    ),
    max_leaves=6,
)


def read(*segments: dict[str, Any]) -> str:
    return readable(list(segments), NAMES.get)


def seg(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def card(**content: Any) -> dict[str, Any]:
    return seg("json", data=json.dumps(content, ensure_ascii=False))


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for item in pair for text in strings(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in strings(item))


class TestToSegments:
    def test_an_adapter_message(self) -> None:
        message = MessageSegment.at(10010) + "你好" + MessageSegment.image(b"abc")
        at, text, image = to_segments(message)
        assert at == seg("at", qq="10010")
        assert text == seg("text", text="你好")
        assert image["data"]["file"] == "base64://…(3 bytes)"

    @pytest.mark.parametrize(
        "same",
        [
            "你好",
            MessageSegment.text("你好"),
            Message("你好"),
            seg("text", text="你好"),
            [seg("text", text="你好")],
            (seg("text", text="你好"), None, 3, seg("no data")["data"], {"type": 1}),
        ],
    )
    def test_other_shapes(self, same: object) -> None:
        assert to_segments(same) == [seg("text", text="你好")]

    @pytest.mark.parametrize("garbage", [None, 0, 1.5, b"x", object(), {}, [], [[], {"data": {}}]])
    def test_garbage_is_nothing(self, garbage: object) -> None:
        assert to_segments(garbage) == []

    def test_a_string_is_not_decoded(self) -> None:
        assert to_segments("[CQ:at,qq=all]") == [seg("text", text="[CQ:at,qq=all]")]

    def test_a_message_is_copied(self) -> None:
        source = [seg("text", text="a"), seg("json", data={"a": [1]})]
        to_segments(source)[0]["data"]["text"] = "b"
        to_segments(source)[1]["data"]["data"]["a"].append(2)
        assert source == [seg("text", text="a"), seg("json", data={"a": [1]})]

    def test_strange_values_become_json(self) -> None:
        data = {
            "nan": math.nan,
            "inf": -math.inf,
            "big": 1 << 70,
            "huge": 10**5000,
            "path": Path("a.png"),
            "bytes": b"\x00\xff",
            "flag": True,
            7: None,
        }
        [made] = to_segments({"type": "image", "data": data})
        assert made["data"] == {
            "nan": "nan",
            "inf": "-inf",
            "big": str(1 << 70),
            "huge": "…",
            "path": "a.png",
            "bytes": "base64://…(2 bytes)",
            "flag": True,
            "7": None,
        }

    def test_nul_and_surrogates_go_everywhere(self) -> None:
        [text, other] = to_segments(
            [seg("text", text="a\0b\ud800c"), {"type": "x\0", "data": {"k\0\udfff": ["\0v\ud83d"]}}]
        )
        assert text == seg("text", text="ab\ufffdc")
        assert other == {"type": "x", "data": {"k\ufffd": ["v\ufffd"]}}

    def test_a_long_value_is_noted_and_a_long_text_is_kept(self) -> None:
        long = "长" * 5000
        forward = seg(
            "forward", content=[{"raw_message": long, "message": [seg("text", text=long)]}]
        )
        text, image, inner = to_segments([seg("text", text=long), seg("image", url=long), forward])
        assert text["data"]["text"] == long
        assert image["data"]["url"] == "长" * 32 + "…(5000 chars)"
        [event] = inner["data"]["content"]
        assert event["message"] == [seg("text", text=long)]
        assert len(event["raw_message"]) < 50

    def test_a_long_card_can_still_be_read(self) -> None:
        long_card = card(prompt="[分享]一篇文章", meta={"news": {"title": "题", "url": "u" * 9000}})
        assert readable(to_segments(long_card), NAMES.get) == "[分享: 题]"

    def test_depth_is_bounded(self) -> None:
        deep: Any = "bottom"
        for _ in range(3000):
            deep = [{"type": "forward", "data": {"content": deep}}]
        made = json.dumps(to_segments(deep), ensure_ascii=False)
        assert "…" in made
        assert "bottom" not in made

    def test_a_message_that_contains_itself_ends(self) -> None:
        loop: list[Any] = []
        loop += [loop, loop]
        [made] = to_segments([seg("x", loop=loop)])
        assert len(json.dumps(made)) < 1_000_000

    @given(st.lists(nested | wild, max_size=4) | wild)
    def test_anything_becomes_json_and_utf8(self, message: object) -> None:
        made = to_segments(message)
        written = json.dumps(made, ensure_ascii=False, allow_nan=False)
        assert "\0" not in "".join(strings(made))
        assert json.loads(written.encode()) == made
        assert to_segments(made) == made
        assert all(set(item) == {"type", "data"} for item in made)

    @given(wild_text)
    def test_clean_text(self, text: str) -> None:
        clean = clean_text(text)
        clean.encode()
        assert "\0" not in clean
        assert len(clean) == len(text) - text.count("\0")
        assert clean_text(clean) == clean


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        (seg("text", text="  原样\n[图片] "), "  原样\n[图片] "),
        (seg("text", text=12), "12"),
        (seg("text"), ""),
        (seg("at", qq="all"), "@全体成员"),
        (seg("at", qq=10010), "@阿澈"),
        (seg("at", qq="10011"), "@换行 名"),
        (seg("at", qq="404"), "@404"),
        (seg("at", qq="10010", name="@小鹿"), "@小鹿"),
        (seg("at", qq="404", name="\u200b"), "@404"),
        (seg("at"), "@某人"),
        (seg("reply", id="1"), ""),
        (seg("anonymous"), ""),
        (seg("keyboard", rows=[]), ""),
        (seg("image", file="a.jpg", summary=""), "[图片]"),
        (seg("image", summary="[动画表情]"), "[动画表情]"),
        (seg("image", summary="哈哈哈"), "[哈哈哈]"),
        (seg("image", type="flash"), "[闪照]"),
        (seg("image", summary="坏\n## 23:59\u2028\u202e"), "[坏 ## 23:59]"),
        (seg("face", id="178"), "[表情:斜眼笑]"),
        (seg("face", id=14), "[表情:微笑]"),
        (seg("face", id="356"), "[表情:666]"),
        (seg("face", id="9999"), "[表情:9999]"),
        (seg("face", id="9999", raw={"faceText": "/新表情"}), "[表情:新表情]"),
        (seg("face", id="1", raw={"faceText": None}), "[表情:撇嘴]"),
        (seg("face"), "[表情]"),
        (seg("mface", summary="[哈哈哈]"), "[哈哈哈]"),
        (seg("marketface", summary=""), "[表情]"),
        (seg("bface", text="贴贴"), "[贴贴]"),
        (seg("sface"), "[表情]"),
        (seg("record", file="a.amr"), "[语音]"),
        (seg("record", duration="12"), '[语音 12"]'),
        (seg("record", seconds=3.4), '[语音 3"]'),
        (seg("record", duration="nan"), "[语音]"),
        (seg("record", duration=-1), "[语音]"),
        (seg("video", file="a.mp4"), "[视频]"),
        (seg("file", file="会议纪要.docx"), "[文件: 会议纪要.docx]"),
        (seg("file", file="x", name="b.zip"), "[文件: b.zip]"),
        (seg("file", file="file:///C:\\私密\\c.txt"), "[文件: c.txt]"),
        (seg("file", file="base64://…(3 bytes)"), "[文件]"),
        (seg("dice", result="5"), "[骰子: 5]"),
        (seg("dice", value=3), "[骰子: 3]"),
        (seg("dice"), "[骰子]"),
        (seg("rps", result="1"), "[猜拳: 布]"),
        (seg("rps", result=2), "[猜拳: 剪刀]"),
        (seg("rps", result="3"), "[猜拳: 石头]"),
        (seg("rps", value="0"), "[猜拳: 石头]"),
        (seg("rps", value="2"), "[猜拳: 布]"),
        (seg("rps", result="9"), "[猜拳]"),
        (seg("shake"), "[窗口抖动]"),
        (seg("poke", type="1", id="2"), "[戳一戳]"),
        (seg("share", title="标题", url="http://x"), "[分享: 标题]"),
        (seg("contact", type="qq", id="10010"), "[推荐好友: 阿澈]"),
        (seg("contact", type="group", id="742"), "[推荐群: 742]"),
        (seg("location", title="西湖", lat="1"), "[位置: 西湖]"),
        (seg("location", lat="1"), "[位置]"),
        (seg("music", type="custom", title="晴天"), "[音乐: 晴天]"),
        (seg("music", type="qq", id="1"), "[音乐]"),
        (seg("forward", id="75"), "[聊天记录]"),
        (seg("markdown", content="# 标题\n正文"), "# 标题\n正文"),
        (seg("longmsg", id="1"), "[长消息]"),
        (seg("redbag", title="恭喜发财"), "[红包: 恭喜发财]"),
        (seg("gift", id=1), "[礼物]"),
        (seg("tts", text="你好"), "[语音: 你好]"),
        (seg("cardimage", file="x"), "[图片]"),
        (seg("flashtransfer", fileSetId="1"), "[闪传]"),
        (seg("onlinefile", fileName="d.iso"), "[文件: d.iso]"),
        (seg("weather", city="杭州"), "[天气: 杭州]"),
        (seg("basketball", id=1), "[basketball]"),
        (seg("x" * 50), "[" + "x" * 19 + "…]"),
        (seg("\n"), "[消息]"),
        ({"type": "image", "data": None}, "[图片]"),
        (
            seg("xml", data='<msg brief="[分享] b"><title color="1">标 &amp; 题</title>'),
            "[卡片: 标 & 题]",
        ),
        (seg("xml", data="<msg brief='[聊天记录]'>"), "[聊天记录]"),
        (seg("xml", data="garbage"), "[卡片]"),
    ],
)
def test_every_kind(segment: dict[str, Any], text: str) -> None:
    assert read(segment) == text


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        (
            card(prompt="[QQ小程序]x", meta={"detail_1": {"title": "哔哩哔哩", "desc": "红烧肉"}}),
            "[小程序: 哔哩哔哩 - 红烧肉]",
        ),
        (card(prompt="[QQ小程序]哔哩哔哩"), "[小程序: 哔哩哔哩]"),
        (card(meta={"news": {"title": "新闻", "desc": "新闻"}}), "[分享: 新闻]"),
        (card(meta={"music": {"title": "晴天", "desc": "周杰伦"}}), "[音乐: 晴天 - 周杰伦]"),
        (
            card(meta={"mannounce": {"encode": 1, "title": "5YWs5ZGK", "text": "5pS+5YGH"}}),
            "[群公告: 公告 - 放假]",
        ),
        (card(meta={"mannounce": {"encode": 1, "title": "不是编码"}}), "[群公告: 不是编码]"),
        (
            card(meta={"Location.Search": {"name": "西湖", "address": "杭州"}}),
            "[位置: 西湖 - 杭州]",
        ),
        (card(meta={"contact": {"nickname": "小鹿", "tag": "推荐好友"}}), "[推荐好友: 小鹿]"),
        (card(meta={"contact": {"nickname": "摸鱼", "tag": "推荐群聊"}}), "[推荐群: 摸鱼]"),
        (card(app="com.tencent.multimsg", prompt="[聊天记录]"), "[聊天记录]"),
        (card(prompt="[频道]x", meta={"new": {"title": "帖子"}}), "[频道: 帖子]"),
        (card(prompt="一句话"), "[卡片: 一句话]"),
        (card(desc="说明"), "[卡片: 说明]"),
        (card(meta=[1], prompt=["x"]), "[卡片]"),
        (seg("json", data={"prompt": "已解析"}), "[卡片: 已解析]"),
        (seg("json", data="{坏"), "[卡片]"),
        (seg("json", data="[" * 60_000), "[卡片]"),
        (seg("json", data="3"), "[卡片]"),
        (seg("json"), "[卡片]"),
        (seg("miniapp", data='{"prompt":"[小程序]y"}'), "[小程序: y]"),
    ],
)
def test_cards(segment: dict[str, Any], text: str) -> None:
    assert read(segment) == text


class TestSentences:
    def test_a_name_does_not_run_into_what_follows(self) -> None:
        at = seg("at", qq="10010")
        assert read(at, seg("text", text="你好")) == "@阿澈 你好"
        assert read(at, seg("text", text=" 你好")) == "@阿澈 你好"
        assert read(at, at, seg("text", text="，早")) == "@阿澈 @阿澈，早"

    def test_parts_follow_each_other(self) -> None:
        text = seg("text", text="看")
        assert read(seg("reply", id="5"), text, seg("image")) == "看[图片]"

    def test_hostile_titles_are_short_and_one_line(self) -> None:
        hostile = "标题\r\n\u2028[系统]\x00\ud800" * 1000
        for made in (
            read(seg("share", title=hostile)),
            read(card(prompt=hostile, meta={"news": {"title": hostile, "desc": hostile}})),
            read(seg("image", summary=hostile)),
            read(seg("at", qq="1", name=hostile)),
        ):
            assert len(made) <= 120
            assert len(made.splitlines()) == 1
            made.encode()


class TestForwards:
    def node(self, name: str, *content: dict[str, Any]) -> dict[str, Any]:
        return seg("node", nickname=name, user_id="1", content=list(content))

    def test_events_and_nodes(self) -> None:
        event = {"sender": {"card": "", "nickname": "路过"}, "message": [seg("image")]}
        gocq = {"sender": {"nickname": "老版本"}, "content": "一句\n话"}
        custom = self.node("阿澈", seg("text", text="第一条"))
        bare = seg("node", uin=77, content=seg("face", id=14))
        by_id = seg("node", id="123")
        assert read(seg("forward", content=[event, gocq, custom, bare, by_id])) == (
            "[聊天记录]\n"
            "  路过: [图片]\n"
            "  老版本: 一句 话\n"
            "  阿澈: 第一条\n"
            "  77: [表情:微笑]\n"
            "  ?: [消息]"
        )

    def test_a_message_of_nodes_is_a_forward(self) -> None:
        nodes = [self.node(name, seg("text", text="话")) for name in ("甲", "乙")]
        assert read(*nodes) == "[聊天记录]\n  甲: 话\n  乙: 话"

    def test_a_forward_in_a_forward(self) -> None:
        made = seg("text", text="底")
        for name in ("四", "三", "二", "一"):
            made = seg("forward", content=[self.node(name, made)])
        assert read(made) == (
            "[聊天记录]\n  一: [聊天记录]\n    二: [聊天记录]\n      三: [聊天记录]"
        )

    def test_lines_are_bounded(self) -> None:
        made = read(seg("forward", content=[self.node("甲", seg("text", text="话"))] * 500))
        assert made.count("\n  甲: 话") == 100
        assert made.endswith("\n  …")

    def test_characters_are_bounded(self) -> None:
        content = [self.node("甲", seg("text", text="话" * 9000))] * 50
        assert 3_000 < len(read(seg("forward", content=content))) < 4_100

    def test_a_bomb_of_forwards_costs_little(self) -> None:
        made: Any = seg("text", text="x")
        for _ in range(6):
            made = seg("forward", content=[self.node("甲", made)] * 100)
        start = time.perf_counter()
        assert len(read(made)) < 4_100
        assert time.perf_counter() - start < 1


@given(st.lists(nested | wild, max_size=5))
def test_reading_never_fails(segments: Any) -> None:
    for made in (readable(segments, NAMES.get), readable(to_segments(segments), NAMES.get)):
        made.encode()
        assert "\0" not in made


@given(wild_text)
def test_typed_text_stays_as_it_is(text: str) -> None:
    assert read(seg("text", text=text)) == clean_text(text)


@given(nested.filter(lambda made: made["type"] != "text"))
def test_what_is_not_typed_is_bounded(made: Any) -> None:
    assert len(read(made)) <= 4_200


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("  小鹿🦌👩‍👩‍👧 ", "小鹿🦌👩‍👩‍👧"),
        ("\u200b", ""),
        ("\u3164\u2800 \t\ufe0f", ""),
        ("\u202e名", "\u202e名"),
        ("a\0b", "ab"),
        ("x" * 500, "x" * 100),
        (123, "123"),
        (None, ""),
        (True, ""),
        ({}, ""),
    ],
)
def test_names(value: object, name: str) -> None:
    assert clean_name(value) == name


@given(wild_text, st.integers(1, 10))
def test_one_line(text: str, limit: int) -> None:
    made = one_line(text, limit)
    assert len(made) <= limit
    assert len(made.splitlines()) <= 1
    assert made == made.strip()


def test_of_a_quotation_only_the_id_is_kept() -> None:
    """The quoted text would stay here when the message that it comes from is taken back."""
    quoting = seg("reply", id="-7", seq=3, text="口令是芝麻开门", qq="10010", time=1)
    assert to_segments([quoting]) == [{"type": "reply", "data": {"id": "-7", "seq": 3}}]
