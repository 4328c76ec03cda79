"""The command line beside a running bot."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.checks import check_failure, wait_stored
from tests.support.bot_process import BotProcess
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import text

GROUP = 401
CHAT = f"group:{GROUP}"


@pytest.fixture(scope="module")
async def talk(shared_bot: BotProcess, shared_client: OneBotClient) -> BotProcess:
    """A group in which a few people have spoken."""
    await shared_client.group_message("周末去爬山吗", 10010, "阿澈", group_id=GROUP)
    await shared_client.group_message("去！\u2028带上雨衣", 20002, "", group_id=GROUP)
    picture = {"type": "image", "data": {"file": "a.jpg", "url": "https://example.com/a"}}
    message = [text("看这张"), picture]
    await shared_client.group_message(message, 20003, "小鹿", card="鹿老师", group_id=GROUP)
    await wait_stored(shared_bot, CHAT, 3)
    return shared_bot


async def test_export_is_json_lines_and_nothing_else(talk: BotProcess) -> None:
    rows = await talk.export(CHAT)
    header = rows[0]
    assert (header["type"], header["format"], header["version"]) == ("header", "nianlun", 1)
    assert (header["chat"], header["timezone"]) == (CHAT, "Asia/Shanghai")
    assert [row["type"] for row in rows].count("header") == 1
    speakers = {row["user_id"]: row["name"] for row in rows if row["type"] == "speaker"}
    assert speakers == {"10010": "阿澈", "20002": "20002", "20003": "鹿老师"}
    messages = [row for row in rows if row["type"] == "message"]
    assert [row["seq"] for row in messages] == [1, 2, 3]
    assert messages[2]["text"] == "看这张[图片]"
    assert [part["type"] for part in messages[2]["segments"]] == ["text", "image"]


async def test_export_to_a_file_is_the_same(talk: BotProcess) -> None:
    printed = await talk.export(CHAT)
    said = await talk.cli_ok("export", CHAT, "--format", "jsonl", "-o", "out.jsonl")
    assert said == "导出好了：out.jsonl\n"
    lines = talk.folder.joinpath("out.jsonl").read_text(encoding="utf-8").split("\n")
    written = [json.loads(line) for line in lines if line]
    for rows in (printed, written):
        rows[0].pop("exported_at")
    assert written == printed


async def test_a_number_that_two_accounts_share(
    shared_bot: BotProcess, client: OneBotClient
) -> None:
    async with OneBotClient(shared_bot.port, self_id=10001) as other:
        await client.group_message("一号", group_id=402)
        await other.group_message("二号", group_id=402)
        await wait_stored(shared_bot, "group:402", 2)
    done = await shared_bot.cli("export", "group:402")
    assert done.returncode == 1
    check_failure(done)
    assert done.stdout == ""
    assert f"{client.self_id}/group:402" in done.stderr
    assert "10001/group:402" in done.stderr
    rows = await shared_bot.export_rows("10001/group:402", "message")
    assert [row["text"] for row in rows] == ["二号"]


@pytest.mark.parametrize("command", ["export", "recall", "rollup"])
async def test_an_unknown_chat_fails(shared_bot: BotProcess, command: str) -> None:
    args = {
        "export": ["group:999"],
        "recall": ["group:999", "你好"],
        "rollup": ["--chat", "group:999"],
    }[command]
    done = await shared_bot.cli(command, *args)
    assert done.returncode == 1
    check_failure(done)
    assert done.stdout == ""
    assert "group:999" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["export"],
        ["export", CHAT, "--format", "xml"],
        ["export", CHAT, "--format", "markdown"],
        ["recall", "123456", "爬山"],
    ],
)
async def test_wrong_usage(shared_bot: BotProcess, args: list[str]) -> None:
    done = await shared_bot.cli(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


async def test_doctor(talk: BotProcess) -> None:
    report = await talk.cli_ok("doctor", "--json")
    assert CHAT in json.dumps(json.loads(report))
    assert CHAT in await talk.cli_ok("doctor")


async def test_rollup_then_recall(talk: BotProcess) -> None:
    for _ in range(2):
        await talk.cli_ok("rollup", "--chat", CHAT)
    [activity] = await talk.export_rows(CHAT, "activity")
    assert (activity["from_seq"], activity["to_seq"], activity["writer"]) == (1, 3, "offline")
    shown = await talk.cli_ok("recall", CHAT, "爬山是哪天")
    assert "爬山" in shown
    assert shown.startswith("—— 设定和记忆 ——\n")
    last = shown.splitlines()[-1]
    assert re.fullmatch(r"约 \d+ / \d+ token（人设 \d+，.*聊天 \d+.*此刻 \d+）", last), last


async def test_the_search_index_is_built_anew_beside_the_bot(talk: BotProcess) -> None:
    texts = 3 + len(await talk.export_rows(CHAT, "activity"))
    said = await talk.cli_ok("reindex", "--chat", CHAT)
    assert f"1 个会话，{texts} 条" in said
    assert "个会话" in await talk.cli_ok("reindex")
    failed = await talk.cli("reindex", "--chat", "group:987654")
    assert failed.returncode == 1
    check_failure(failed)
