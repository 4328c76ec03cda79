"""What the bot says, seen from the calls that send it."""

from __future__ import annotations

from datetime import UTC, datetime
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    ApiNotAvailable,
    Message,
    MessageSegment,
    NetworkError,
)
from nonebot.exception import WebSocketClosed
import pytest

from plugins.nonebot_plugin_nianlun.capture.outgoing import SEND_APIS, ambiguous, sent
from plugins.nonebot_plugin_nianlun.capture.segments import readable
from plugins.nonebot_plugin_nianlun.types import ME, Incoming

FIXTURES = Path(__file__).parents[1] / "fixtures" / "onebot"
SECOND = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOW = SECOND.replace(microsecond=700_000)
TEXT = MessageSegment.text


def call(api: str, result: object = None, /, **data: Any) -> Incoming | None:
    return sent(
        api,
        data,
        result,
        self_id="10001",
        name="小忆",
        now=NOW,
        via="nianlun",
        delivery="unknown",
        skipped="command",
    )


def said(api: str, **data: Any) -> str:
    line = call(api, **data)
    assert line is not None
    json.dumps(line.segments)
    return readable(line.segments, lambda _: None)


def test_a_line() -> None:
    line = call("send_group_msg", {"message_id": -5}, group_id=742, message=TEXT("你好"))
    assert line is not None
    assert str(line.chat) == "group:742"
    assert line.chat.self_id == "10001"
    assert (line.user_id, line.name, line.time) == (ME, "小忆", SECOND)
    assert (line.source, line.message_id) == ("sent", "-5")
    assert (line.via, line.delivery, line.skipped) == ("nianlun", "unknown", "command")


@pytest.mark.parametrize(
    "message",
    [
        TEXT("[好]"),
        Message([TEXT("[好]")]),
        "&#91;好&#93;",
        [{"type": "text", "data": {"text": "[好]"}}],
        {"type": "text", "data": {"text": "[好]"}},
        [TEXT("[好]")],
    ],
)
def test_every_shape_of_message(message: object) -> None:
    assert said("send_msg", message_type="group", group_id=1, message=message) == "[好]"


def test_a_string_is_decoded_as_the_implementation_does() -> None:
    assert said("send_private_msg", user_id=1, message="看[CQ:face,id=178]") == "看[表情:斜眼笑]"


@pytest.mark.parametrize("escape", [True, "true", 1])
def test_a_string_that_is_not_to_be_decoded(escape: object) -> None:
    line = said("send_msg", user_id=1, message="[CQ:face,id=178]&amp;", auto_escape=escape)
    assert line == "[CQ:face,id=178]&amp;"


def test_the_message_of_the_caller_is_left_alone() -> None:
    message = Message([TEXT("a"), MessageSegment.image(b"1234")])
    line = call("send_group_msg", group_id=1, message=message)
    assert line is not None
    line.segments[0]["data"]["text"] = "b"
    assert message[0].data["text"] == "a"
    assert line.segments[1]["data"]["file"] == "base64://…(6 bytes)"
    assert message[1].data["file"] == "base64://MTIzNA=="


@pytest.mark.parametrize(
    ("api", "data", "chat"),
    [
        ("send_msg", {"message_type": "group", "group_id": 1, "user_id": 2}, "group:1"),
        ("send_msg", {"message_type": "private", "group_id": 1, "user_id": 2}, "private:2"),
        ("send_msg", {"group_id": 1, "user_id": 2}, "group:1"),
        ("send_msg", {"group_id": 0, "user_id": "2"}, "private:2"),
        ("send_private_msg", {"group_id": 1, "user_id": 2}, "private:2"),
        ("send_group_msg", {"group_id": "1"}, "group:1"),
        ("send_group_msg", {"user_id": 2}, None),
        ("send_msg", {"message_type": "group", "user_id": 2}, None),
        ("send_msg", {}, None),
    ],
)
def test_which_chat(api: str, data: dict[str, Any], chat: str | None) -> None:
    line = call(api, message="a", **data)
    assert (line and str(line.chat)) == chat


@pytest.mark.parametrize(
    ("api", "chat"),
    [
        ("send_group_forward_msg", "group:1"),
        ("send_private_forward_msg", "private:2"),
        ("send_forward_msg", "group:1"),
    ],
)
def test_forwards(api: str, chat: str) -> None:
    nodes = [
        MessageSegment.node_custom(10001, "小忆", Message("一")),
        MessageSegment.node_custom(10001, "小忆", "二[CQ:face,id=14]"),
        {"type": "node", "data": {"name": "阿澈", "uin": 2, "content": "三"}},
        {"type": "node", "data": {"id": "5"}},
    ]
    line = call(api, {"message_id": 9, "res_id": "x"}, group_id=1, user_id=2, messages=nodes)
    assert line is not None
    assert (str(line.chat), line.message_id) == (chat, "9")
    assert [segment["type"] for segment in line.segments] == ["forward"]
    assert readable(line.segments, lambda _: None) == (
        "[聊天记录]\n  小忆: 一\n  小忆: 二[表情:微笑]\n  阿澈: 三\n  ?: [消息]"
    )


@pytest.mark.parametrize(
    "result", [None, {}, {"message_id": None}, {"message_id": 0}, [], "ok", {"message_id": "0"}]
)
def test_no_id_comes_back(result: object) -> None:
    line = call("send_group_msg", result, group_id=1, message="a")
    assert line is not None
    assert line.message_id is None


def test_a_reply() -> None:
    message = MessageSegment.reply(-7) + "好"
    line = call("send_group_msg", group_id=1, message=message)
    assert line is not None
    assert line.reply_to_id == "-7"


@pytest.mark.parametrize("api", sorted(SEND_APIS))
@pytest.mark.parametrize("message", [None, "", [], {}, ()])
def test_nothing_said(api: str, message: object) -> None:
    assert call(api, group_id=1, user_id=1, message=message) is None


@given(
    st.sampled_from(sorted(SEND_APIS)),
    st.dictionaries(
        st.sampled_from(["message", "messages", "group_id", "user_id", "message_type"]),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5) | st.builds(TEXT, st.text(max_size=5)),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["type", "data", "content", "id"]), inner)
            ),
            max_leaves=6,
        ),
    ),
)
def test_garbage_is_never_an_error(api: str, data: dict[str, Any]) -> None:
    line = call(api, **data)
    assert line is None or line.segments


def failed(name: str) -> ActionFailed:
    return ActionFailed(**json.loads((FIXTURES / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failed("napcat_api_send_failed_timeout.json"), True),
        (failed("gocq_api_send_risk_control.json"), True),
        (ActionFailed(retcode=1200, wording="Timeout: sendMsg"), True),
        (ActionFailed(retcode=1200, wording='EventChecker Failed: {"result": 120}'), False),
        (ActionFailed(retcode=1200, wording="EventChecker Failed: result = -3"), False),
        (NetworkError("WebSocket call api send_msg timeout"), True),
        (TimeoutError(), True),
        (failed("napcat_api_get_msg_not_found.json"), False),
        (failed("napcat_api_unknown_action.json"), False),
        (failed("lagrange_api_failed_no_message.json"), False),
        (ActionFailed(), False),
        (ApiNotAvailable(), False),
        (WebSocketClosed(1006), False),
        (ValueError("Timeout"), False),
    ],
)
def test_what_may_have_been_delivered(error: Exception, expected: bool) -> None:
    assert ambiguous(error) is expected
