"""What is told of files that people send, by each of the ways in which it is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from nonebot.adapters.onebot.v11 import ActionFailed, Adapter, Bot, Event
import pytest

from plugins.nonebot_plugin_nianlun.capture.downloading import NotFetched
from plugins.nonebot_plugin_nianlun.capture.sent_files import (
    LARGEST,
    SentFiles,
    fetch,
    name_of,
    size_of,
)
from plugins.nonebot_plugin_nianlun.types import ChatKey

NOW = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)
SECOND = int(NOW.timestamp())
ME, WHO = "10001", "20002"
GROUP, PRIVATE = ChatKey(ME, "group", "123"), ChatKey(ME, "private", WHO)
SINCE = NOW - timedelta(minutes=10)


def event(**fields: Any) -> Event:
    told = {"time": SECOND, "self_id": int(ME), "user_id": int(WHO)} | fields
    found = Adapter.json_to_event(told)
    assert found is not None
    return found


def message(data: dict[str, Any], number: int = 7, **fields: Any) -> Event:
    segments = [{"type": "file", "data": data}]
    kind = "group" if "group_id" in fields else "private"
    return event(
        post_type="message", message_type=kind, sub_type="normal", message_id=number, font=0,
        message=segments, raw_message="", sender={"user_id": int(WHO), "nickname": "a"}, **fields,
    )  # fmt: skip


def notice(kind: str, file: dict[str, Any], **fields: Any) -> Event:
    return event(post_type="notice", notice_type=kind, file=file, **fields)


NAPCAT = {"file": "旧.txt", "file_id": "/5f1d", "file_size": "20480"}
NAPCAT_TWIN = {"id": "d41d8", "name": "旧.txt", "size": 20480, "busid": 102}
LAGRANGE = {"file_name": "旧.txt", "file_id": "/x", "file_hash": "h", "url": "http://1.1.1.1/f"}
GOCQ = {"name": "a.zip", "size": 1024, "url": "http://1.1.1.1/x"}


def names(files: SentFiles, chat: ChatKey) -> list[str]:
    return [name_of(one.data) for one in files.of(chat, WHO, SINCE)]


@pytest.mark.parametrize("first", [True, False])
def test_a_message_and_its_notice_are_one_file(first: bool) -> None:
    files = SentFiles()
    both = [message(NAPCAT, group_id=123), notice("group_upload", NAPCAT_TWIN, group_id=123)]
    for one in both if first else reversed(both):
        files.hear(one, ME, NOW)
    (found,) = files.of(GROUP, WHO, SINCE)
    assert (found.message_id, size_of(found.data)) == ("7", 20480)
    assert {"file_id": "/5f1d", "id": "d41d8", "busid": 102}.items() <= found.data.items()
    assert files.quoted(GROUP, "7") == found
    # The same name once more is another file.
    for one in (message(NAPCAT, number=8, group_id=123), both[1]):
        files.hear(one, ME, NOW)
    assert [one.message_id for one in files.of(GROUP, WHO, SINCE)] == ["8", "7"]


def test_a_file_of_which_only_a_notice_tells() -> None:
    files = SentFiles()
    files.hear(notice("offline_file", GOCQ), ME, NOW)
    assert names(files, PRIVATE) == ["a.zip"]
    assert names(files, GROUP) == []
    files.hear(notice("offline_file", GOCQ, user_id=int(ME)), ME, NOW)
    files.hear(notice("group_upload", {}, group_id=123), ME, NOW)
    files.hear(event(post_type="notice", notice_type="group_upload", group_id=123), ME, NOW)
    assert names(files, GROUP) == []


def test_whose_where_and_when() -> None:
    files = SentFiles()
    files.hear(message(LAGRANGE), ME, NOW)
    files.hear(message(NAPCAT, group_id=123, time=SECOND - 700), ME, NOW)
    assert names(files, PRIVATE) == ["旧.txt"]
    assert names(files, GROUP) == []
    assert files.of(PRIVATE, "777", SINCE) == []
    assert files.of(ChatKey("10009", "private", WHO), WHO, SINCE) == []


def test_what_is_taken_back_is_gone() -> None:
    files = SentFiles()
    files.hear(message(NAPCAT, group_id=123), ME, NOW)
    files.hear(message(NAPCAT | {"file": "二"}, number=8, group_id=123), ME, NOW)
    recall = {"notice_type": "group_recall", "operator_id": int(WHO), "message_id": 7}
    files.hear(event(post_type="notice", group_id=123, **recall), ME, NOW)
    assert names(files, GROUP) == ["二"]


def test_whoever_waits_for_a_file_is_told_once() -> None:
    files, told = SentFiles(), []
    files.expect(GROUP, WHO, NOW + timedelta(minutes=10), lambda: told.append(1))
    files.hear(message(NAPCAT), ME, NOW)
    assert told == []
    files.hear(message(NAPCAT, group_id=123), ME, NOW)
    files.hear(message(NAPCAT, number=9, group_id=123), ME, NOW)
    assert told == [1]
    files.expect(GROUP, WHO, NOW, lambda: told.append(2))
    files.hear(message(NAPCAT, number=10, group_id=123), ME, NOW)
    assert told == [1]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"file": "C:\\用户\\旧 记录.txt"}, "旧 记录.txt"),
        ({"file": "../../etc/passwd"}, "passwd"),
        ({"file": "base64://AAAA"}, ""),
        ({"name": 5, "file_name": "", "file": "a"}, "a"),
        ({}, ""),
    ],
)
def test_names(data: dict[str, Any], name: str) -> None:
    assert name_of(data) == name


def test_sizes() -> None:
    sizes = [size_of({"file_size": one}) for one in ("20", 20, None, "x", -3, 2.5, "9" * 99)]
    assert sizes == [20, 20, None, None, None, None, None]


class AskedBot:
    """A bot of which only the calls count."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def call_api(self, api: str, **values: Any) -> Any:
        self.calls.append((api, values))
        if api not in self.answers:
            raise ActionFailed(retcode=1404)
        return self.answers[api]


async def fetched(answers: dict[str, Any], told: dict[str, Any], group: str | None) -> AskedBot:
    bot = AskedBot(answers)
    assert await fetch(cast("Bot", bot), told, group_id=group, user_id=WHO) == b"abc"
    return bot


async def test_where_a_file_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from plugins.nonebot_plugin_nianlun.capture import sent_files

    monkeypatch.setattr(sent_files, "peer_address", lambda _: None)
    content = {"get_file": {"base64": "YWJj"}}
    bot = await fetched(content, NAPCAT | NAPCAT_TWIN, "123")
    assert bot.calls == [
        ("get_group_file_url", {"file_id": "/5f1d", "group_id": 123, "busid": 102}),
        ("get_file", {"file_id": "/5f1d"}),
    ]
    bot = await fetched(content, {key: LAGRANGE[key] for key in ("file_id", "file_hash")}, None)
    assert bot.calls[0] == (
        "get_private_file_url",
        {"file_id": "/x", "user_id": int(WHO), "file_hash": "h"},
    )
    with pytest.raises(NotFetched, match="200 MB，这里最多收 64 MB"):
        await fetched(content, {"file_id": "x", "file_size": str(200 << 20)}, None)
    assert LARGEST == 64 << 20
