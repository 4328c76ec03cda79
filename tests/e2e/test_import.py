"""Old chats brought in from files, beside a running bot or without one."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
import sys

import pytest

from plugins.nonebot_plugin_nianlun.cli import main
from tests.e2e.checks import check_cover, check_failure, of_type, stored, until, wait_stored
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess, Row
from tests.support.export_files import (
    element,
    qce_messages,
    write_chunked,
    write_qce,
    write_qqnt,
)
from tests.support.model_server import ModelServer
from tests.support.onebot_client import OneBotClient

EXPORTS = Path(__file__).resolve().parents[1] / "fixtures" / "exports"
LONG = 8_000
"""Messages; 2,000 and more are stored at a time."""


def chats_of(bot: BotProcess) -> dict[str, int]:
    """How many messages each chat has, by its full name."""
    query = (
        "SELECT c.self_id || '/' || c.kind || ':' || c.peer_id, COUNT(*)"
        " FROM nianlun_message m JOIN nianlun_chat c ON c.id = m.chat_id GROUP BY c.id"
    )
    return {str(name): int(count) for name, count in bot.query(query)}


def count(bot: BotProcess) -> int:
    return int(bot.query("SELECT COUNT(*) FROM nianlun_message")[0][0])


@pytest.fixture(scope="module")
def empty_bot(tmp_path_factory: pytest.TempPathFactory, prepared_database: Path) -> BotProcess:
    """A folder in which every import is to change nothing."""
    return BotProcess(tmp_path_factory.mktemp("empty") / "bot", database=prepared_database)


async def whole(bot: BotProcess, chat: str = "group:123") -> list[Row]:
    """The export without what differs each time."""
    rows = await bot.export(chat)
    del rows[0]["exported_at"]
    return rows


def rows_in(file: Path) -> list[bytes]:
    """The lines of an export; its header but for the time."""
    header, _, rest = file.read_bytes().partition(b"\n")
    told = {**json.loads(header), "exported_at": ""}
    return [json.dumps(told).encode(), *rest.split(b"\n")]


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("qq_pc_legacy_group.txt", {"10001/group:742100123": 9}),
        ("qce_v6_single.json", {"3889001234/group:742100123": 6}),
        (
            "qq_pc_legacy_all_records.txt",
            {"10001/private:name:鹿老师🦌": 2, "10001/group:name:摸鱼研究所①群": 1},
        ),
    ],
)
async def test_the_samples(new_bot: BotMaker, sample: str, expected: dict[str, int]) -> None:
    bot = new_bot()
    options = {
        "qq_pc_legacy_group.txt": ["--chat", "10001/group:742100123"],
        "qce_v6_single.json": [],
        "qq_pc_legacy_all_records.txt": ["--self-id", "10001"],
    }[sample]
    for _ in range(2):
        said = await bot.cli_ok("import", str(EXPORTS / sample), *options)
        assert chats_of(bot) == expected
        for chat, messages in expected.items():
            assert chat in said
            assert f"{messages} 条消息" in said
    await bot.cli_ok("rollup")
    for chat in expected:
        check_cover(await bot.export(chat))


async def test_what_a_person_is_told(new_bot: BotMaker) -> None:
    bot = new_bot()
    file = str(EXPORTS / "qq_pc_legacy_all_records.txt")
    said = await bot.cli_ok("import", file, "--self-id", "10001", "--me", "小忆")
    assert "2 条消息，2 人，2020-01-06" in said
    assert "1 条是机器人自己（10001）说的" in said
    assert "--chat private:号码" in said
    assert "rollup" in said
    named = ["--chat", "鹿老师🦌=private:456", "--chat", "摸鱼研究所①群=group:123"]
    await bot.cli_ok("import", file, "--self-id", "10001", "--me", "小忆", *named)
    assert [row.user_id for row in stored(bot, "private:456")] == ["456", "me"]
    (row,) = stored(bot, "group:123")
    assert (row.user_id, row.time[:16]) == ("10010", "2020-02-01 01:00")
    await bot.cli_ok("import", file, "--timezone", "UTC", "--chat", "摸鱼研究所①群=group:5")
    assert stored(bot, "group:5")[0].time[:16] == "2020-02-01 09:00"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--chat", "group:123"], ["鹿老师", "摸鱼研究所"]),
        (["--chat", "谁=group:123"], ["鹿老师", "摸鱼研究所"]),
        (["--me", "没有这个人"], ["鹿老师", "小忆"]),
        (["--format", "nianlun"], ["header"]),
        ([], ["--self-id"]),
        (["--chat", "鹿老师🦌=10002/private:1"], ["10001", "10002"]),
    ],
)
async def test_what_does_not_fit_the_file_fails_and_stores_nothing(
    empty_bot: BotProcess, options: list[str], told: list[str]
) -> None:
    bot = empty_bot
    account = ["--self-id", "10001"] if options else []
    file = str(EXPORTS / "qq_pc_legacy_all_records.txt")
    done = await bot.cli("import", file, *account, *options)
    assert (done.returncode, done.stdout) == (1, "")
    check_failure(done)
    for part in told:
        assert part in done.stderr
    assert bot.query("SELECT * FROM nianlun_chat") == []


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["a", "--chat", "nonsense"],
        ["a", "--self-id", "abc"],
        ["a", "--format", "xml"],
        ["a", "--timezone", "Nowhere/City"],
        ["a", "--chat", "group:号码"],
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["import", *options])
    assert left.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("broken", ["cut", "garbage", "missing", "folder", "pipe", "seconds"])
async def test_a_broken_file_changes_nothing(
    empty_bot: BotProcess, tmp_path: Path, broken: str
) -> None:
    bot = empty_bot
    file = tmp_path / "file.json"
    if broken == "cut":
        write_qce(file, qce_messages(3000))
        file.write_bytes(file.read_bytes()[:-200])
    elif broken == "garbage":
        file.write_bytes(bytes(range(256)) * 300)
    elif broken == "seconds":
        messages = list(qce_messages(3))
        write_qce(file, ({**one, "timestamp": one["timestamp"] // 1000} for one in messages))
    elif broken == "folder":
        file.mkdir()
    elif broken == "pipe":
        if sys.platform == "win32":
            pytest.skip("no named pipes in the file system")
        os.mkfifo(file)
    done = await bot.cli("import", str(file), "--self-id", "10001", "--chat", "group:123")
    assert (done.returncode, done.stdout) == (1, "")
    check_failure(done)
    assert bot.query("SELECT * FROM nianlun_chat") == []


async def test_what_a_qce_export_calls_me_is_read_back(new_bot: BotMaker, tmp_path: Path) -> None:
    bot, other = new_bot(), new_bot()
    messages = list(qce_messages(40))
    for number, uin in enumerate(("ME", "Me", "me", "x" * 500, " ", "name:甲")):
        messages[number]["sender"]["uin"] = uin
    await bot.cli_ok("import", str(write_qce(tmp_path / "a.json", iter(messages))))
    await bot.cli_ok("rollup")
    file = tmp_path / "whole.jsonl"
    await bot.cli_ok("export", "group:123", "-o", str(file))
    said = await other.cli_ok("import", str(file))
    assert "没有照原样" not in said
    again = tmp_path / "again.jsonl"
    await other.cli_ok("export", "group:123", "-o", str(again))
    assert rows_in(again) == rows_in(file)


async def test_it_can_be_said_later_who_the_bot_is(new_bot: BotMaker, tmp_path: Path) -> None:
    bot = new_bot()
    file = str(write_qce(tmp_path / "a.json", qce_messages(60)))
    said = await bot.cli_ok("import", file)
    assert "--me" in said
    said = await bot.cli_ok("import", file, "--me", "20003")
    assert "新存 0 条，早已有 60 条" in said
    assert "20003" not in {row.user_id for row in stored(bot, "group:123")}
    assert "me" in {row.user_id for row in stored(bot, "group:123")}
    assert "新存 0 条，早已有 60 条" in await bot.cli_ok("import", file)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell and its pipes")
@pytest.mark.parametrize("unbuffered", ["", "1"])
async def test_nobody_reads_what_it_says(
    new_bot: BotMaker, tmp_path: Path, unbuffered: str
) -> None:
    bot = new_bot({"PYTHONUNBUFFERED": unbuffered})
    file = write_qce(tmp_path / "a.json", qce_messages(30))
    command = f"({sys.executable} bot.py import {file}; echo status $? >&2) | true"
    shell = await asyncio.create_subprocess_shell(
        command, cwd=bot.folder, env=bot.env, stderr=asyncio.subprocess.PIPE
    )
    _, told = await shell.communicate()
    assert told.decode() == "status 1\n"
    assert count(bot) == 30


async def test_our_own_export_into_an_empty_folder(new_bot: BotMaker, tmp_path: Path) -> None:
    bot, other = new_bot(), new_bot()
    await bot.cli_ok("import", str(write_qce(tmp_path / "a.json", qce_messages(1500))))
    await bot.cli_ok("rollup")
    file = tmp_path / "whole.jsonl"
    await bot.cli_ok("export", "group:123", "-o", str(file))
    said = await other.cli_ok("import", str(file))
    assert "没有欠着的整理" in said
    again = tmp_path / "again.jsonl"
    await other.cli_ok("export", "group:123", "-o", str(again))
    assert rows_in(again) == rows_in(file)
    assert "没有欠着的整理" in await other.cli_ok("rollup")
    await other.cli_ok("export", "group:123", "-o", str(again))
    assert rows_in(again) == rows_in(file)


async def import_and_kill(bot: BotProcess, file: Path, after: int, query: str) -> None:
    """Kill an import without warning as soon as `query` counts so many rows."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "bot.py",
        "import",
        str(file),
        cwd=bot.folder,
        env=bot.env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: bot.query(query)[0][0] >= after, within=60, every=0.005)
        assert process.returncode is None, "it was over before it could be killed"
    finally:
        process.kill()
        await process.wait()


async def test_killed_anywhere_and_begun_again_it_ends_the_same(
    new_bot: BotMaker, tmp_path: Path
) -> None:
    file = write_qce(tmp_path / "long.json", qce_messages(LONG))
    bot, other = new_bot(), new_bot()
    await bot.cli_ok("import", str(file))
    expected = await whole(bot)
    assert len(of_type(expected, "message")) == LONG
    for after in (1, LONG // 4 + 1, LONG // 2 + 1):
        await import_and_kill(other, file, after, "SELECT COUNT(*) FROM nianlun_message")
        assert count(other) < LONG
    said = await other.cli_ok("import", str(file))
    assert f"{LONG} 条消息" in said
    assert await whole(other) == expected


async def test_a_restore_that_was_killed_ends_the_same(new_bot: BotMaker, tmp_path: Path) -> None:
    bot, other = new_bot(), new_bot()
    await bot.cli_ok("import", str(write_qce(tmp_path / "a.json", qce_messages(LONG // 2))))
    await bot.cli_ok("rollup")
    file = tmp_path / "whole.jsonl"
    await bot.cli_ok("export", "group:123", "-o", str(file))
    for after, table in ((1, "message"), (LONG // 4 + 1, "message"), (1, "activity")):
        await import_and_kill(other, file, after, f"SELECT COUNT(*) FROM nianlun_{table}")
    await other.cli_ok("import", str(file))
    again = tmp_path / "again.jsonl"
    await other.cli_ok("export", "group:123", "-o", str(again))
    assert rows_in(again) == rows_in(file)


async def test_beside_a_bot_that_records_in_the_same_chat(
    shared_bot: BotProcess, client: OneBotClient, tmp_path: Path
) -> None:
    group = 951
    await client.group_message("先说一句", group_id=group)
    await wait_stored(shared_bot, f"group:{group}", 1)
    file = write_qce(tmp_path / "a.json", qce_messages(LONG // 2), group=group)
    importing = asyncio.create_task(shared_bot.cli_ok("import", str(file)))
    said = 1
    while not importing.done():
        await client.group_message(f"现在说的 {said}", group_id=group)
        said += 1
        await asyncio.sleep(0.02)
    assert f"{client.self_id}/group:{group}" in await importing
    rows = await wait_stored(shared_bot, f"group:{group}", LONG // 2 + said)
    assert [row.seq for row in rows] == list(range(1, LONG // 2 + said + 1))
    live = [row.text for row in rows if row.text.startswith("现在说的")]
    assert live == [f"现在说的 {number}" for number in range(1, said)]


async def test_what_the_bot_heard_is_not_imported_again(
    shared_bot: BotProcess, client: OneBotClient, tmp_path: Path
) -> None:
    group = 952
    file = write_qce(tmp_path / "a.json", qce_messages(30), group=group)
    messages = json.loads(file.read_text("utf-8"))["messages"]
    heard = [one for one in messages[10:20] if not one["recalled"]]
    for one in heard:
        await client.group_message(
            one["content"]["text"],
            int(one["sender"]["uin"]),
            group_id=group,
            at=one["timestamp"] // 1000,
        )
    await wait_stored(shared_bot, f"group:{group}", len(heard))
    said = await shared_bot.cli_ok("import", str(file))
    assert f"早已有 {len(heard)} 条" in said
    assert len(stored(shared_bot, f"group:{group}")) == 30


async def test_progress_is_no_part_of_the_output(new_bot: BotMaker, tmp_path: Path) -> None:
    bot = new_bot()
    file = write_qce(tmp_path / "a.json", qce_messages(4000))
    done = await bot.cli("import", str(file))
    assert done.returncode == 0
    assert "\r" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


async def test_notes_are_written_at_once_when_that_is_asked(
    new_bot: BotMaker, model: ModelServer, tmp_path: Path
) -> None:
    file = str(write_qce(tmp_path / "a.json", qce_messages(60)))
    bot = new_bot()
    said = await bot.cli_ok("import", file, "--rollup", "offline")
    assert "10001/group:123：写了" in said
    assert "估计要调用" not in said
    check_cover(await bot.export("group:123"))
    assert bot.query("SELECT COUNT(*) FROM nianlun_message WHERE activity_id IS NULL") == [
        *bot.query("SELECT COUNT(*) FROM nianlun_message WHERE skipped IS NOT NULL")
    ]

    bot = new_bot(model=model)
    done = await bot.cli("import", file, "--rollup", "model")
    assert done.returncode == 1
    assert "新存 60 条" in done.stdout
    assert "估计要调用" in done.stdout
    check_failure(done)
    assert "--yes" in done.stderr
    assert model.requests == []
    said = await bot.cli_ok("import", file, "--rollup", "model", "--yes")
    assert said.index("估计要调用") < said.index("写了")
    assert model.requests


async def test_a_folder_and_a_database(new_bot: BotMaker, tmp_path: Path) -> None:
    bot = new_bot()
    folder = write_chunked(tmp_path / "export", list(qce_messages(30)), 9)
    said = await bot.cli_ok("import", str(folder))
    assert "分块导出" in said
    assert "新存 30 条" in said
    row = {"40021": "123", "40033": 20_001, "40800": element(1, f45101="在吗")}
    path = write_qqnt(tmp_path / "nt.db", [{**row, "40050": 1_700_000_000 + n} for n in range(9)])
    said = await bot.cli_ok("import", str(path))
    assert "10001/group:123" in said
    assert "新存 9 条" in said
    (tmp_path / "empty").mkdir()
    done = await bot.cli("import", str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "manifest.json" in done.stderr
