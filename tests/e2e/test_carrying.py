"""A memory is carried away and brought back, from the chat itself and from the command line."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
import json
from pathlib import Path
import re
from typing import Any
from zipfile import ZipFile

import pytest

from tests.e2e.checks import check_failure, stored, until, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import ApiFailure

GROUP = 8101
CHAT = f"group:{GROUP}"


@pytest.fixture(scope="module")
async def bot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BotProcess]:
    async with BotProcess(tmp_path_factory.mktemp("carrying")) as process:
        yield process


@pytest.fixture(scope="module")
async def client(bot: BotProcess) -> AsyncIterator[OneBotClient]:
    async with OneBotClient(bot.port) as client:
        for number in range(9):
            await client.group_message(f"第{number}句\n## 23:59", group_id=GROUP)
        await wait_stored(bot, CHAT, 9)
        await bot.cli_ok("rollup", "--chat", CHAT)
        yield client


async def command(client: OneBotClient, text: str, **values: Any) -> str:
    values = {"role": "owner", "group_id": GROUP} | values
    await client.group_message(f"/记忆 {text}", **values)
    return (await client.wait_for_send(values["group_id"])).text


async def uploaded(client: OneBotClient, text: str, user_id: int = 10010) -> tuple[str, bytes]:
    """The file that a command brings its asker, by name and content."""
    before = len(client.calls)
    client.answers["upload_private_file"] = {}
    await client.group_message(f"/记忆 {text}", user_id, role="admin", group_id=GROUP)
    said = await client.wait_for_send(user_id)
    assert "全部记忆" in said.text
    calls = [call for call in client.calls[before:] if call.action.startswith("upload_")]
    for _ in range(200):
        if calls:
            break
        await client.settle()
        calls = [call for call in client.calls[before:] if call.action.startswith("upload_")]
    (call,) = calls
    assert (call.action, str(call.params["user_id"])) == ("upload_private_file", str(user_id))
    return call.params["name"], b64decode(call.params["file"].removeprefix("base64://"))


async def test_an_admin_gets_the_memory_in_private(
    bot: BotProcess, client: OneBotClient, tmp_path: Path
) -> None:
    name, content = await uploaded(client, "导出")
    assert re.fullmatch(r"group-8101-[\d-]+-[0-9a-f]{4}\.jsonl", name)
    rows = [json.loads(line) for line in content.decode().splitlines()]
    assert (rows[0]["chat"], rows[1]["type"]) == (CHAT, "settings")
    assert "activity" in {row["type"] for row in rows}
    name, content = await uploaded(client, "导出 markdown")
    packed = tmp_path / name
    packed.write_bytes(content)
    with ZipFile(packed) as archive:
        (day,) = [name for name in archive.namelist() if name.startswith("diary/")]
        assert "nianlun.jsonl" in archive.namelist()
        assert "## " in archive.read(day).decode()
    folder = bot.folder / "data" / "nonebot_plugin_nianlun" / "exports"
    await until(lambda: not list(folder.iterdir()))
    assert "格式" in await command(client, "导出 xml")
    assert "只有群主" in await command(client, "导出", role="member")


async def test_a_file_is_looked_at_and_brought_in(bot: BotProcess, client: OneBotClient) -> None:
    group = GROUP + 1
    where = {"group_id": group, "user_id": 10010}
    await client.group_message("这里是新群", group_id=group)
    assert "先把文件发到这里" in await command(client, "导入", **where)
    exported = (await bot.cli_ok("export", CHAT)).encode()
    client.answers["get_file"] = {"base64": b64encode(exported).decode()}
    client.failures["get_group_file_url"] = ApiFailure(1404, "没有这个接口")
    sent = [{"type": "file", "data": {"file": "记忆.jsonl", "file_id": "/abc", "file_size": "9"}}]
    await client.group_message(sent, group_id=group)
    await client.settle()
    asked = await command(client, "导入", **where)
    assert re.search(r"：group:8101，\d+ 条消息，\d 个名字", asked)
    code = re.search(r"导入 (\d{6})", asked)
    assert code is not None
    assert "确认码不对" in await command(client, "导入 000000", group_id=group, user_id=777)
    assert "第3句" not in repr(await bot.export(f"group:{group}"))
    done = await command(client, f"导入 {code[1]}", **where)
    assert re.search(r"新存 \d+ 条消息，早已有 0 条，带来记忆 [1-9]", done)
    assert "第3句" in repr(await bot.export_rows(f"group:{group}", "message"))
    assert "确认码不对" in await command(client, f"导入 {code[1]}", **where)
    client.answers["get_file"] = {"base64": b64encode(b"no chat at all").decode()}
    await client.group_message(sent, group_id=group)
    await client.settle()
    assert "没有做成" in await command(client, "导入", **where)
    assert "只有群主" in await command(client, "导入", role="member", **where)


async def test_a_vault_is_made_and_brought_up_to_date(
    bot: BotProcess, client: OneBotClient
) -> None:
    await bot.cli_ok("export", CHAT, "--format", "markdown", "-o", "vault")
    vault = bot.folder / "vault"
    (vault / "自己的.md").write_text("我的", "utf-8")
    (vault / "wiki").mkdir(exist_ok=True)
    (vault / "wiki" / "stale.md").write_text("旧的", "utf-8")
    (day,) = vault.glob("diary/*.md")
    assert "\\## 23:59" not in day.read_text("utf-8").split("\n## ")[0]
    await bot.cli_ok("export", CHAT, "--format", "markdown", "-o", "vault")
    assert (vault / "自己的.md").read_text("utf-8") == "我的"
    assert not (vault / "wiki" / "stale.md").exists()
    said = await bot.cli_ok("import", "vault", "--chat", f"{client.self_id}/group:8199")
    assert "年轮的 Markdown 文件夹" in said
    ours, theirs = [
        [row for row in rows if row["type"] in ("message", "day", "activity")]
        for rows in (await bot.export(CHAT), await bot.export("group:8199"))
    ]
    texts = [[row["text"] for row in rows if row["type"] != "message"] for rows in (ours, theirs)]
    assert texts[0] == texts[1]
    done = await bot.cli("export", "group:8199", "--format", "markdown", "-o", "vault")
    assert done.returncode == 1
    check_failure(done)


async def test_the_database_is_restored_under_a_running_bot(new_bot: Any) -> None:
    async with new_bot() as bot, OneBotClient(bot.port) as client:
        said = [await client.group_message(f"旧的{number}", group_id=1) for number in range(5)]
        await wait_stored(bot, "group:1", 5)
        assert "copy.db" in await bot.cli_ok("backup", "-o", "copy.db")
        await client.recall(said[-1])
        await client.group_message("备份之后说的", group_id=1)
        await client.group_message("新的群", group_id=2)
        await wait_stored(bot, "group:2", 1)
        done = await bot.cli_ok("restore", "copy.db")
        assert "5 条消息" in done
        assert "1 处没有跟着回来" in done
        await client.group_message("恢复之后说的", group_id=1)
        await client.group_message("又说一句", group_id=2)
        await wait_stored(bot, "group:2", 1)
        await wait_stored(bot, "group:1", 6)
        texts = [row["text"] for row in await bot.export_rows("group:1", "message")]
        assert texts == [*(f"旧的{number}" for number in range(4)), "", "恢复之后说的"]
        assert [row.text for row in stored(bot, "group:2")] == ["又说一句"]


async def test_doctor_says_what_to_do(bot: BotProcess, client: OneBotClient) -> None:
    report = json.loads(await bot.cli_ok("doctor", "--json"))
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert states.pop("peers") in ("ok", "look")  # written down every half minute
    assert states == dict.fromkeys(
        ["database", "migrations", "index", "model", "timezone", "fonts", "disk"], "ok"
    )


async def test_a_program_is_told_of_a_database_that_cannot_be_opened(new_bot: BotMaker) -> None:
    bot = new_bot()
    file = bot.folder / "data" / "nonebot_plugin_nianlun" / "nianlun.db"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"this is no database, only text" * 100)
    done = await bot.cli("doctor", "--json")
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert found["database"]["state"] == "wrong"
    assert found["database"]["todo"]
