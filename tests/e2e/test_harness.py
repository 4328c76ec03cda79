"""The tools of the end-to-end tests, tried on a bot that has nothing to do with the product."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
import os
from pathlib import Path

import pytest
from websockets.exceptions import WebSocketException

from tests.support.bot_process import CLEAN_EXIT, BotFailed, BotProcess
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import ApiFailure, mention, reply, text

BOT = """
import sys
import nonebot
from nonebot.adapters.onebot.v11 import Adapter
if sys.argv[1:2] == ["export"]:
    print('{"type":"header","chat":"%s"}' % sys.argv[2])
    sys.exit(0)
if len(sys.argv) > 1:
    print("no such command", file=sys.stderr)
    sys.exit(2)
nonebot.init()
nonebot.get_driver().register_adapter(Adapter)
nonebot.load_from_toml("pyproject.toml")
nonebot.run()
"""
ECHO = """
from nonebot import on_message
from nonebot.adapters.onebot.v11 import ActionFailed, Bot, MessageEvent

@on_message().handle()
async def _(bot: Bot, event: MessageEvent) -> None:
    quoted = event.reply.sender.user_id if event.reply else None
    word = event.get_plaintext()
    if word == "forward":
        node = {"type": "node", "data": {"uin": 1, "name": "n", "content": "inside"}}
        try:
            await bot.call_api("send_group_forward_msg", group_id=event.group_id, messages=[node])
        except ActionFailed as failure:
            await bot.send(event, f"failed {failure.info['retcode']}")
    elif word == "who":
        info = await bot.get_group_member_info(group_id=event.group_id, user_id=event.user_id)
        await bot.send(event, info["role"])
    elif word == "odd":
        try:
            await bot.call_api("nope_api")
        except ActionFailed as failure:
            await bot.send(event, f"failed {failure.info['retcode']}")
    else:
        await bot.send(event, f"{word} to_me={event.to_me} quoted={quoted}")
"""


@pytest.fixture(scope="module")
async def bot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BotProcess]:
    root = tmp_path_factory.mktemp("root")
    (root / "bot.py").write_text(BOT, encoding="utf-8")
    (root / "pyproject.toml").write_text('[tool.nonebot]\nplugin_dirs = ["plugins"]\n')
    folder = tmp_path_factory.mktemp("bot")
    env = {"ONEBOT_ACCESS_TOKEN": "secret", "MARK": "set"}
    async with BotProcess(folder, env, root=root, plugins={"echo": ECHO}) as process:
        yield process


@pytest.fixture
async def client(bot: BotProcess) -> AsyncIterator[OneBotClient]:
    async with OneBotClient(bot.port, token="secret") as connected:
        yield connected


async def test_messages_go_both_ways(client: OneBotClient) -> None:
    said = await client.group_message("你好", card="名片")
    answer = await client.wait_for_send()
    assert answer.group_id == said["group_id"]
    assert answer.text == "你好 to_me=False quoted=None"
    await client.private_message("在吗", user_id=77)
    answer = await client.wait_for_send()
    assert (answer.user_id, answer.group_id) == (77, None)


async def test_a_mention_and_a_reply_reach_the_bot(client: OneBotClient) -> None:
    said = await client.group_message([mention(client.self_id), text(" 在吗")])
    own = await client.wait_for_send()
    assert own.text == "在吗 to_me=True quoted=None"
    await client.group_message([reply(own.message_id), text("好")])
    assert (await client.wait_for_send()).text == f"好 to_me=True quoted={client.self_id}"
    await client.group_message([reply(said["message_id"]), text("嗯")])
    assert (await client.wait_for_send()).text == f"嗯 to_me=False quoted={said['user_id']}"


async def test_get_msg_can_be_slow_or_fail(client: OneBotClient) -> None:
    said = await client.group_message("原话")
    await client.wait_for_send()
    client.delays["get_msg"] = 0.3
    await client.group_message([reply(said["message_id"]), text("慢")])
    await client.group_message("快")
    assert (await client.wait_for_send()).text.startswith("快")
    assert (await client.wait_for_send()).text.startswith("慢")
    client.failures["get_msg"] = ApiFailure(1200, "消息不存在")
    await client.group_message([reply(said["message_id"]), text("无")])
    assert (await client.wait_for_send()).text == "无 to_me=False quoted=None"


@pytest.mark.parametrize(
    ("word", "failure", "answer"),
    [
        ("who", None, "admin"),
        ("odd", None, "failed 1404"),
        ("forward", None, "inside"),
        ("forward", ApiFailure(1200, "发送失败"), "failed 1200"),
    ],
)
async def test_api_calls_are_answered(
    client: OneBotClient, word: str, failure: ApiFailure | None, answer: str
) -> None:
    if failure is not None:
        client.failures["send_group_forward_msg"] = failure
    await client.group_message(word, role="admin")
    assert (await client.wait_for_send()).text == answer
    assert client.calls[-1].action


@pytest.mark.parametrize("echo", ["before", "after"])
async def test_own_messages_are_reported(bot: BotProcess, echo: str) -> None:
    async with OneBotClient(bot.port, token="secret") as client:
        client.echo = "before" if echo == "before" else "after"
        await client.group_message("回声")
        await client.wait_for_send()
        assert await client.stays_silent(0.2)


async def test_a_wrong_token_is_refused(bot: BotProcess) -> None:
    with pytest.raises(WebSocketException):
        await OneBotClient(bot.port, token="wrong").connect(within=0)


async def test_the_environment_is_clean_and_the_folder_its_own(
    bot: BotProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "leaked")
    monkeypatch.setenv("NIANLUN__MODEL", "leaked")
    env = BotProcess(tmp_path, {"TZ": "UTC"}).env
    assert not {key for key in env if key.startswith(("OPENAI", "NIANLUN"))}
    assert (env["TZ"], env["HOME"]) == ("UTC", str(tmp_path))
    assert bot.folder.joinpath("plugins", "echo.py").is_file()


async def test_commands_run_beside_the_bot(bot: BotProcess) -> None:
    assert await bot.export("group:1") == [{"type": "header", "chat": "group:1"}]
    refused = await bot.cli("nonsense")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "no such command\n"
    with pytest.raises(BotFailed, match="gave 2"):
        await bot.cli_ok("nonsense")


async def test_the_process_ends_as_told(tmp_path: Path, bot: BotProcess) -> None:
    other = BotProcess(tmp_path, root=bot.folder)
    async with other:
        assert other.running
        assert other.ready_after is not None
        assert await other.terminate() in CLEAN_EXIT
        first = other.output
        await other.start()
        assert len(other.output) > len(first)
        started = other.pid
        pid = (await other.restart()).pid
        assert pid != started
        await asyncio.sleep(0)
    assert not other.running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_bot_that_does_not_start_shows_why(tmp_path: Path, bot: BotProcess) -> None:
    broken = BotProcess(tmp_path, {"PORT": "abc"}, root=bot.folder)
    with pytest.raises(BotFailed, match="port"):
        await broken.start()
    again = BotProcess(tmp_path / "other", {"PORT": "abc"}, root=bot.folder)
    assert await again.run_to_end() != 0
