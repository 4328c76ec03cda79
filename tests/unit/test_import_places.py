"""Which chat of which account the chats of a file belong to, and who in them is the bot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
import re

import pytest

from plugins.nonebot_plugin_nianlun.errors import ChatError
from plugins.nonebot_plugin_nianlun.imports.found import FoundChat, FoundMessage
from plugins.nonebot_plugin_nianlun.imports.places import (
    Known,
    Me,
    Speakers,
    Target,
    choose,
    is_nameless,
    me,
    target,
)
from plugins.nonebot_plugin_nianlun.imports.survey import Survey
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey

NOBODY = Me(frozenset(), frozenset())
GROUP = ChatKey("10001", "group", "123")
TWIN = ChatKey("10002", "group", "123")


def survey(*chats: FoundChat, people: Sequence[tuple[str | None, str]] = ()) -> Survey:
    found = Survey()
    for chat in chats:
        found.take(chat)
    for user_id, name in people:
        found.take(FoundMessage(1, datetime(2026, 1, 1, tzinfo=UTC), user_id, name, []))
    return found


def place(
    chat: FoundChat,
    *known: ChatKey,
    to: str | None = None,
    self_id: str | None = None,
    name: str | None = None,
) -> str:
    targets = [] if to is None else [target(to)]
    (key,) = choose(survey(chat), targets, self_id, [Known(key, name) for key in known])
    return key.full


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("group:123", Target("group", "123")),
        (" 10001/private:456 ", Target("private", "456", "10001")),
        ("store:小说", Target("store", "小说")),
        ("名字=group:123", Target("group", "123", None, "名字")),
        ("a=b=10001/group:123", Target("group", "123", "10001", "a=b")),
        ("group:name:a=b", Target("group", "name:a=b")),
    ],
)
def test_a_target(text: str, expected: Target) -> None:
    assert target(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        " ",
        "123",
        "group:",
        "=group:123",
        "room:1",
        "名字=123",
        "group:号码",
        "group:12 3",
        "private:１",
        f"group:{'9' * 129}",
        f"{'9' * 65}/group:1",
        f"store:{'长' * 129}",
    ],
)
def test_no_target(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        target(text)


def test_what_is_asked_for_decides() -> None:
    chat = FoundChat("group", "群", "999", "20002")
    assert place(chat, GROUP, to="10009/group:1", self_id="10009") == "10009/group:1"
    with pytest.raises(ChatError, match=r"10009.*7"):
        place(chat, GROUP, to="10009/group:1", self_id="7")
    assert place(chat, GROUP, to="group:123") == "10001/group:123"
    assert place(chat, GROUP, to="group:5", self_id="7") == "7/group:5"


def test_the_number_in_the_file_and_the_account_that_knows_it() -> None:
    chat = FoundChat("group", "群", "123", "20002")
    assert place(chat, GROUP) == "10001/group:123"
    assert place(chat, GROUP, self_id="7") == "7/group:123"
    assert place(chat) == "20002/group:123"
    assert place(FoundChat("group", "群", "456"), GROUP) == "10001/group:456"


def test_two_accounts_that_know_it_are_told_apart_by_the_file_or_not_at_all() -> None:
    assert place(FoundChat("group", "群", "123", "10002"), GROUP, TWIN) == "10002/group:123"
    with pytest.raises(ChatError, match="10001/group:123、10002/group:123"):
        place(FoundChat("group", "群", "123", "20002"), GROUP, TWIN)
    with pytest.raises(ChatError, match="--self-id"):
        place(FoundChat("group", "群", "456"), GROUP, TWIN)
    with pytest.raises(ChatError, match="--self-id"):
        place(FoundChat("group", "群", "456"))


def test_a_chat_without_a_number_is_found_by_its_name_or_kept_under_it() -> None:
    chat = FoundChat("group", " 摸鱼/研究所")
    assert place(chat, GROUP, name="摸鱼/研究所 ") == "10001/group:123"
    unknown = place(chat, GROUP, name="别的")
    assert unknown == "10001/group:name:摸鱼／研究所"
    assert place(chat, GROUP, TWIN, name="摸鱼/研究所", self_id="10002") == "10002/group:123"
    assert place(FoundChat("private", "摸鱼/研究所"), GROUP, name="摸鱼/研究所").endswith(
        "private:name:摸鱼／研究所"
    )
    assert is_nameless(ChatKey("10001", "group", "name:x"))
    assert not is_nameless(GROUP)


def test_two_people_of_one_name_are_never_taken_for_one() -> None:
    file = survey(FoundChat("private", "小王"), FoundChat("private", "小王"))
    known = [Known(ChatKey("10001", "private", "456"), "小王")]
    first, second = choose(file, [], None, known)
    assert len({first, second, known[0].key}) == 3
    named = choose(file, [target("小王 2=private:456")], None, known)
    assert named == [first, known[0].key]


def test_of_several_chats_of_one_name_none_is_guessed() -> None:
    known = [
        Known(ChatKey("10001", "private", "name:小王"), "小王"),
        Known(ChatKey("10001", "private", "name:小王 2"), "小王"),
    ]
    file = survey(FoundChat("private", "小王"))
    with pytest.raises(ChatError, match="--chat 小王=10001/private:name:小王 2"):
        choose(file, [], None, known)
    assert choose(file, [target("private:name:小王 2")], None, known) == [known[1].key]
    numbered = Known(ChatKey("10001", "private", "456"), "小王")
    assert choose(file, [], None, [*known, numbered]) == [numbered.key]


def test_chats_without_name_and_number_do_not_become_one() -> None:
    for kind in ("group", "private"):
        with pytest.raises(ChatError, match=f"--chat {kind}:"):
            place(FoundChat(kind, None, None, "10001"))
    assert place(FoundChat("group", None, "5", "10001")) == "10001/group:5"


def test_one_chat_cannot_go_to_two_places() -> None:
    file = survey(FoundChat("private", "鹿"), FoundChat("group", "研"))
    for pair in (["鹿=private:1", "鹿=private:2"], ["鹿=private:1", " 鹿 =private:2"]):
        with pytest.raises(ChatError, match="只能选一个"):
            choose(file, [target(text) for text in pair], "10001", [])


def test_labels_are_unlike_each_other() -> None:
    names = ["甲", "甲 2", "甲", "甲", "甲 2", "乙"]
    file = survey(*(FoundChat("private", name) for name in names))
    assert len({chat.label for chat in file.chats}) == len(names)
    assert [chat.shares_name for chat in file.chats] == [True] * 5 + [False]


def test_several_chats_need_names() -> None:
    file = survey(FoundChat("private", "鹿老师"), FoundChat("group", "研究所"))
    placed = choose(file, [target("研究所=group:123")], "10001", [])
    assert [key.full for key in placed] == ["10001/private:name:鹿老师", "10001/group:123"]
    for wrong in (["group:123"], ["group:1", "group:2"], ["没有=group:123"]):
        with pytest.raises(ChatError, match="鹿老师、研究所"):
            choose(file, [target(text) for text in wrong], "10001", [])
    with pytest.raises(ChatError, match="只能给一次"):
        choose(survey(file.chats[0].found), [target("group:1"), target("group:2")], "1", [])


def test_me_is_a_name_or_a_number() -> None:
    people = [("20001", "小忆"), ("20002", "阿澈"), ("20003", "阿澈"), (None, "鹿")]
    file = survey(FoundChat("group", "群"), people=people)
    assert me(file, ["20001"]) == Me(frozenset({"20001"}), frozenset())
    assert me(file, [" 小忆 ", "鹿"]) == Me(frozenset({"20001"}), frozenset({"鹿"}))
    with pytest.raises(ChatError, match="20002、20003"):
        me(file, ["阿澈"])
    with pytest.raises(ChatError, match="小忆、阿澈、鹿"):
        me(file, ["没有"])


def test_who_says_a_line() -> None:
    private = ChatKey("10001", "private", "456")
    found = FoundChat("private", "鹿老师")
    speakers = Speakers(private, found, Me(frozenset({"30003"}), frozenset({"小忆"})))
    assert [
        speakers.user_id(*who)
        for who in [
            ("10001", "x"), ("30003", "x"), (ME, "x"), ("20001", "小忆"),
            (None, " 小忆"), (None, "鹿老师 "), (None, "阿澈"), (None, "10001"),
        ]
    ] == [ME, ME, ME, "20001", ME, "456", "name:阿澈", "name:10001"]  # fmt: skip
    nameless = Speakers(ChatKey("10001", "private", "name:鹿老师"), found, NOBODY)
    assert nameless.user_id(None, "鹿老师") == "name:鹿老师"
    group = Speakers(GROUP, FoundChat("group", "鹿老师"), NOBODY)
    assert group.user_id(None, "鹿老师") == "name:鹿老师"
    assert len(group.user_id("9" * 500, "x")) <= 128
    assert speakers.told_as("30003", "x") == "30003"
    assert speakers.told_as(None, " 小忆") == "name:小忆"
