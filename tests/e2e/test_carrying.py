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
    assert "没有看到你刚发的文件" in await command(client, "导入", **where)
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
    assert "还有 2 条消息没有写成记忆，会在后台写；刚说的话要攒够一段或过完这一天才写。" in done
    assert "第3句" in repr(await bot.export_rows(f"group:{group}", "message"))
    assert "确认码不对" in await command(client, f"导入 {code[1]}", **where)
    client.answers["get_file"] = {"base64": b64encode(b"no chat at all").decode()}
    await client.group_message(sent, group_id=group)
    await client.settle()
    assert "没有做成" in await command(client, "导入", **where)
    assert "只有群主" in await command(client, "导入", role="member", **where)


async def test_a_file_is_found_however_it_is_told(client: OneBotClient) -> None:
    group = GROUP + 2
    where = {"group_id": group, "user_id": 10010}
    await client.group_message("这里也是新群", group_id=group)
    assert "没有看到你刚发的文件" in await command(client, "导入", **where)
    _, exported = await uploaded(client, "导出")
    client.answers["get_group_file_url"] = {"url": ""}
    client.answers["get_file"] = {"base64": b64encode(exported).decode()}
    file = {"id": "/甲", "name": "甲.jsonl", "size": len(exported), "busid": 102}
    notice = {"post_type": "notice", "notice_type": "group_upload", "file": file}
    await client.emit(notice | where)
    asked = (await client.wait_for_send(group)).text
    assert asked.startswith("甲.jsonl 是年轮自己导出的 JSON Lines：group:8101，")
    big = {"file": "乙.zip", "file_id": "/乙", "file_size": str(200 << 20)}
    await client.group_message([{"type": "file", "data": big}], group_id=group, user_id=10010)
    await client.settle()
    assert "它有 200 MB，这里最多收 64 MB" in await command(client, "导入", **where)
    for name in ("甲", "丁.jsonl"):
        of_another = [{"type": "file", "data": {"file": name, "file_id": name}}]
        await client.group_message(of_another, group_id=group, user_id=10020)
    await client.settle()
    asked = await command(client, "导入 甲", **where)
    assert asked.startswith("甲.jsonl 是")
    asked = await command(client, "导入 丁", **where)
    assert asked.startswith("丁.jsonl（别人发的） 是")
    assert "没有叫这个名字" in await command(client, "导入 丙", **where)
    assert "引用的那条消息里没有文件" in (await answer_to_quoted(client, "导入", **where))
    client.answers.pop("get_group_file_url")


async def answer_to_quoted(client: OneBotClient, text: str, **values: Any) -> str:
    said = await client.group_message("不是文件", **values)
    quote = {"type": "reply", "data": {"id": str(said["message_id"])}}
    typed = {"type": "text", "data": {"text": f"/记忆 {text}"}}
    await client.group_message([quote, typed], role="owner", **values)
    return (await client.wait_for_send(values["group_id"])).text


async def test_an_edited_vault_changes_the_memory(client: OneBotClient, tmp_path: Path) -> None:
    before = await activity(client)
    name, content = await uploaded(client, "导出 markdown")
    (tmp_path / name).write_bytes(content)
    changed = tmp_path / "changed.zip"
    with ZipFile(tmp_path / name) as exported, ZipFile(changed, "w") as archive:
        for page in exported.namelist():
            text = exported.read(page).decode()
            text = text.replace(f"\n{before['text']}\n", "\n我在文件夹里改的。\n", 1)
            # As an old tool for Windows packs a folder.
            archive.writestr(f"我的\\{page}".replace("/", "\\"), text.replace("\n", "\r\n"))
    client.answers["get_file"] = {"base64": b64encode(changed.read_bytes()).decode()}
    sent = [{"type": "file", "data": {"file": "vault.zip", "file_id": "/v"}}]
    await client.group_message(sent, group_id=GROUP, user_id=10010)
    await client.settle()
    asked = await command(client, "导入", user_id=10010)
    assert "1 处导出以后改过的正文，能照改的会记在你名下" in asked
    code = re.search(r"导入 (\d{6})", asked)
    assert code is not None
    assert "照改 1 篇" in await command(client, f"导入 {code[1]}", user_id=10010)
    after = await activity(client)
    assert (after["text"], after["writer"]) == ("我在文件夹里改的。", "10010")
    assert after["versions"][-1]["text"] == before["text"]


async def activity(client: OneBotClient) -> dict[str, Any]:
    _, content = await uploaded(client, "导出")
    rows = map(json.loads, content.decode().splitlines())
    return next(row for row in rows if row["type"] == "activity")


async def test_a_vault_is_made_and_brought_up_to_date(
    bot: BotProcess, client: OneBotClient
) -> None:
    await bot.cli_ok("export", CHAT, "--format", "markdown", "-o", "vault")
    vault = bot.folder / "vault"
    (vault / "自己的.md").write_text("我的", "utf-8")
    (vault / "wiki").mkdir(exist_ok=True)
    stale = f'---\nchat: "{CHAT}"\n---\n旧的'
    (vault / "wiki" / "stale.md").write_text(stale, "utf-8")
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
    for place in (["-o", "vault", "--format", "markdown"], ["-o", str(bot.database)]):
        done = await bot.cli("export", "group:8199", *place)
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
    assert states == dict.fromkeys(
        ["database", "migrations", "index", "model", "timezone", "fonts", "disk", "peers"], "ok"
    )


async def test_a_program_is_told_of_a_database_that_cannot_be_opened(new_bot: BotMaker) -> None:
    bot = new_bot(fresh=True)
    file = bot.folder / "data" / "nonebot_plugin_nianlun" / "nianlun.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"this is no database, only text" * 100)
    done = await bot.cli("doctor", "--json")
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert found["database"]["state"] == "wrong"
    assert found["database"]["todo"]
    bot.env["LOCALSTORE_DATA_DIR"] = str(bot.folder / "bot.py")
    done = await bot.cli("doctor", "--json")
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, done.stderr) == (1, "")
    assert found["database"]["state"] == "wrong"
    assert await bot.run_to_end() == 1
    assert "Traceback" not in bot.output
    assert "打不开数据库" in bot.output
