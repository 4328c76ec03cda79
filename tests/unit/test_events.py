"""OneBot events as implementations really send them."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from nonebot.adapters.onebot.v11 import (
    Adapter,
    Event,
    GroupMessageEvent,
    GroupRecallNoticeEvent,
    PrivateMessageEvent,
)
import pytest

from plugins.nonebot_plugin_nianlun.capture.events import (
    chat_of,
    incoming,
    reply_target,
    sender_role,
    withdrawal,
)
from plugins.nonebot_plugin_nianlun.capture.segments import readable
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Incoming

FIXTURES = Path(__file__).parents[1] / "fixtures" / "onebot"
EXPECTED: dict[str, dict[str, Any]] = json.loads(
    (FIXTURES / "expected.json").read_text(encoding="utf-8")
)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BOT = "3889001234"
SPOKEN = datetime(2026, 11, 29, 17, 25, 12, tzinfo=UTC)


def load(name: str) -> dict[str, Any]:
    return json.loads((FIXTURES / name).read_text(encoding="utf-8"))


def payload(name: str = "napcat_group_reply_at.json", **changes: Any) -> dict[str, Any]:
    made = load(name) | changes
    return {key: value for key, value in made.items() if value is not ...}


def adapted(data: dict[str, Any]) -> Event:
    event = Adapter.json_to_event(deepcopy(data))
    assert event is not None
    return event


def bare(data: dict[str, Any]) -> Event:
    event = Event.model_validate(deepcopy(data))
    assert type(event) is Event
    return event


def heard(event: object) -> Incoming:
    made = incoming(event, self_id=BOT, now=NOW)
    assert made is not None
    return made


def stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def described(event: object, self_id: str) -> dict[str, Any]:
    """What the file of expectations says of an event, worked out from the event."""
    said = incoming(event, self_id=self_id, now=NOW)
    taken_back = withdrawal(event, self_id=self_id, now=NOW)
    assert said is None or taken_back is None
    if taken_back is not None:
        return {
            "kind": "withdrawal",
            "chat": str(taken_back.chat),
            "message_id": taken_back.message_id,
            "time": stamp(taken_back.time),
            "user_id": taken_back.user_id,
        }
    if said is None:
        return {"kind": "ignored"}
    return {
        "kind": "message",
        "chat": str(said.chat),
        "message_id": said.message_id,
        "time": stamp(said.time),
        "user_id": said.user_id,
        "name": said.name,
        "text": readable(said.segments, lambda _: None),
        "reply_to_id": said.reply_to_id,
        "order": said.order,
    }


class TestFixtures:
    def test_every_event_has_an_expectation(self) -> None:
        events = {
            path.name
            for path in FIXTURES.glob("*.json")
            if path.name != "expected.json" and "post_type" in load(path.name)
        }
        assert events == set(EXPECTED)

    @pytest.mark.parametrize("shape", [adapted, bare, dict], ids=["adapter", "bare", "mapping"])
    @pytest.mark.parametrize("name", EXPECTED)
    def test_event(self, name: str, shape: Any) -> None:
        data = load(name)
        expected = {k: v for k, v in EXPECTED[name].items() if k != "text_with_names"}
        assert described(shape(data), str(data["self_id"])) == expected

    @pytest.mark.parametrize("name", [n for n in EXPECTED if "text_with_names" in EXPECTED[n]])
    def test_names_that_are_known(self, name: str) -> None:
        said = heard(adapted(load(name)))
        expected = EXPECTED[name]["text_with_names"]
        assert readable(said.segments, {"10010": "阿澈"}.get) == expected


class TestIncoming:
    def test_group(self) -> None:
        event = adapted(payload())
        assert isinstance(event, GroupMessageEvent)
        said = heard(event)
        assert said.chat == ChatKey(BOT, "group", "742100123")
        assert said.time == SPOKEN
        assert said.time.tzinfo is UTC
        assert said.chat_name == "摸鱼研究所①群"
        assert (said.source, said.via, said.delivery, said.skipped) == ("event", None, "ok", None)
        assert [segment["type"] for segment in said.segments] == ["reply", "at", "text"]

    def test_what_the_adapter_cut_away_is_still_there(self) -> None:
        event = adapted(payload())
        assert isinstance(event, GroupMessageEvent)
        event.message.clear()
        assert len(heard(event).segments) == 3

    def test_the_event_is_left_alone(self) -> None:
        event = adapted(payload())
        before = event.model_dump()
        heard(event).segments[2]["data"]["text"] = "改了"
        assert event.model_dump() == before

    @pytest.mark.parametrize(
        "changes",
        [
            {"anonymous": {}},
            {"sender": {"user_id": 1620003002, "card": "鹿老师", "level": 10}},
            {"message_id": "abc-1"},
            {"font": ...},
        ],
        ids=["anonymous", "level", "string id", "no font"],
    )
    def test_what_the_adapter_cannot_model_is_heard_all_the_same(
        self, changes: dict[str, Any]
    ) -> None:
        event = adapted(payload(**changes))
        assert not isinstance(event, GroupMessageEvent)
        said = heard(event)
        assert (said.user_id, said.name) == ("1620003002", "鹿老师")
        assert said.message_id == changes.get("message_id", "651722678")
        assert said.reply_to_id == "1143900958"
        assert readable(said.segments, lambda _: None) == "@10010 收到～"

    def test_a_bare_event_with_cq_codes(self) -> None:
        said = heard(bare(payload(message="[CQ:face,id=14]&#91;好&#93;")))
        assert readable(said.segments, lambda _: None) == "[表情:微笑][好]"

    @pytest.mark.parametrize("post_type", ["message", "message_sent"])
    def test_own_line_in_a_group(self, post_type: str) -> None:
        said = heard(adapted(payload(post_type=post_type, user_id=int(BOT))))
        assert (said.user_id, said.source, said.via) == (ME, "echo", "other")
        assert str(said.chat) == "group:742100123"

    def test_own_private_line_belongs_to_the_peer(self) -> None:
        own = payload("napcat_message_sent_private.json")
        assert str(heard(adapted(own)).chat) == "private:10010"
        assert incoming(bare(own | {"target_id": 0}), self_id=BOT, now=NOW) is None
        del own["target_id"]
        assert incoming(adapted(own), self_id=BOT, now=NOW) is None

    def test_temporary_session_is_private(self) -> None:
        event = adapted(payload("gocq_private_temp_group.json", group_id=742100123))
        assert isinstance(event, PrivateMessageEvent)
        assert str(heard(event).chat) == "private:1620003004"

    def test_nothing_said_is_skipped(self) -> None:
        said = heard(adapted(payload(message=[], raw_message="")))
        assert (said.segments, said.skipped) == ([], "empty")

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (1795973112, SPOKEN),
            ("1795973112", SPOKEN),
            (1795973112345, SPOKEN),
            (1795973112.0, SPOKEN),
            (0, NOW),
            (-5, NOW),
            (None, NOW),
            (True, NOW),
            ("soon", NOW),
            (float("nan"), NOW),
            (10**30, NOW),
            (5_000_000_000, NOW),
            (int(NOW.timestamp()) + 2 * 86_400, NOW),
            (86_400, NOW),
            ([], NOW),
        ],
    )
    def test_time(self, value: object, expected: datetime) -> None:
        assert heard(payload(time=value)).time == expected

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (-1846531311, "-1846531311"),
            (7336105950764948274, "7336105950764948274"),
            ("7336105950764948274", "7336105950764948274"),
            (" x\0y ", "xy"),
            (0, None),
            ("0", None),
            ("", None),
            (None, None),
            (True, None),
            ({}, None),
        ],
    )
    def test_message_id(self, value: object, expected: str | None) -> None:
        assert heard(payload(message_id=value)).message_id == expected

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"real_seq": "42650"}, 42650),
            ({"real_seq": 7, "message_seq": 9}, 7),
            ({"real_seq": "x", "message_seq": 9}, 9),
            ({"real_seq": None, "message_seq": 651722678}, None),
            ({"real_seq": None, "message_seq": "651722678"}, None),
            ({"real_seq": ..., "message_seq": ...}, None),
            ({"real_seq": "0"}, None),
            ({"real_seq": 1 << 63}, None),
            ({"real_seq": "1_0", "message_seq": ...}, None),
            ({"real_seq": "٣", "message_seq": ...}, None),
            ({"real_seq": -(1 << 63)}, -(1 << 63)),
        ],
    )
    def test_order(self, fields: dict[str, Any], expected: int | None) -> None:
        assert heard(payload(**fields)).order == expected

    @pytest.mark.parametrize(
        ("sender", "expected"),
        [
            ({"card": "名片", "nickname": "昵称"}, "名片"),
            ({"card": "", "nickname": "昵称"}, "昵称"),
            ({"card": "\u200b\u3164 ", "nickname": " 昵\0称\ud800 "}, "昵称\ufffd"),
            ({"card": None, "nickname": "\u2060"}, "1620003002"),
            ({}, "1620003002"),
            (None, "1620003002"),
            ("garbage", "1620003002"),
        ],
    )
    def test_name(self, sender: object, expected: str) -> None:
        assert heard(payload(sender=sender)).name == expected

    def test_anonymous_name(self) -> None:
        said = heard(payload("gocq_group_anonymous.json", anonymous={"name": "\u200b"}))
        assert said.name == "匿名消息"

    def test_reply_to_nothing(self) -> None:
        message = [{"type": "reply", "data": {"id": "0"}}, {"type": "text", "data": {"text": "a"}}]
        assert heard(payload(message=message)).reply_to_id is None
        assert heard(payload(message=[{"type": "reply", "data": {"id": -5}}])).reply_to_id == "-5"

    @pytest.mark.parametrize(
        "changes",
        [
            {"message_type": "guild"},
            {"message_type": "group", "group_id": 0},
            {"user_id": None},
            {"user_id": "me"},
            {"post_type": "notice"},
            {"post_type": None},
        ],
    )
    def test_unusable(self, changes: dict[str, Any]) -> None:
        assert incoming(payload(**changes), self_id=BOT, now=NOW) is None

    @given(
        st.dictionaries(
            st.sampled_from([*sorted(payload()), "anonymous", "target_id", "original_message"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(
                        st.sampled_from(["id", "name", "type", "data", "card"]), inner
                    )
                ),
                max_leaves=5,
            ),
            max_size=6,
        )
    )
    def test_garbage_is_never_an_error(self, changes: dict[str, Any]) -> None:
        said = incoming(payload() | changes, self_id=BOT, now=NOW)
        assert said is None or said.time.tzinfo is not None

    @pytest.mark.parametrize("event", [None, 1, "x", object(), {}, SimpleNamespace()])
    def test_what_is_no_event(self, event: object) -> None:
        assert incoming(event, self_id=BOT, now=NOW) is None
        assert withdrawal(event, self_id=BOT, now=NOW) is None
        assert reply_target(event) is None
        assert chat_of(event, BOT) is None
        assert sender_role(event) == ""


class TestWithdrawal:
    def recall(self, **changes: Any) -> dict[str, Any]:
        return payload("napcat_notice_group_recall_by_admin.json", **changes)

    def test_without_an_operator(self) -> None:
        event = adapted(self.recall(operator_id=...))
        assert not isinstance(event, GroupRecallNoticeEvent)
        made = withdrawal(event, self_id=BOT, now=NOW)
        assert made is not None
        assert (str(made.chat), made.message_id) == ("group:742100123", "127894343")
        assert (made.user_id, made.time) == ("1620003004", SPOKEN)

    @pytest.mark.parametrize(("user", "author"), [(int(BOT), ME), (0, None), (None, None)])
    def test_whose(self, user: object, author: str | None) -> None:
        made = withdrawal(self.recall(user_id=user), self_id=BOT, now=NOW)
        assert made is not None
        assert made.user_id == author

    @pytest.mark.parametrize("changes", [{"message_id": 0}, {"group_id": None, "user_id": 0}])
    def test_unusable(self, changes: dict[str, Any]) -> None:
        assert withdrawal(self.recall(**changes), self_id=BOT, now=NOW) is None

    def test_private(self) -> None:
        data = payload("napcat_notice_friend_recall.json", time=0)
        made = withdrawal(adapted(data), self_id=BOT, now=NOW)
        assert made is not None
        assert (str(made.chat), made.user_id, made.time) == ("private:10010", None, NOW)

    def test_own_private(self) -> None:
        data = payload("napcat_notice_friend_recall.json", user_id=int(BOT))
        assert withdrawal(adapted(data), self_id=BOT, now=NOW) is None
        made = withdrawal(adapted(data | {"target_id": 10010}), self_id=BOT, now=NOW)
        assert made is not None
        assert (str(made.chat), made.user_id) == ("private:10010", ME)


@pytest.mark.parametrize("shape", [adapted, bare])
def test_what_triggers_ask(shape: Any) -> None:
    event = shape(payload())
    assert reply_target(event) == "1143900958"
    assert sender_role(event) == "member"
    assert chat_of(event, BOT) == ChatKey(BOT, "group", "742100123")
    assert sender_role(shape(payload("napcat_private_friend.json"))) == ""
    assert sender_role({"sender": {"role": ["owner"]}}) == ""
    assert chat_of(shape(payload("napcat_notice_poke_friend.json")), BOT) == ChatKey(
        BOT, "private", "10010"
    )
