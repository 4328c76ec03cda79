"""Every sample comes in with its counts, once, and what is broken changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
import shutil

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.progress import Progress
from plugins.nonebot_plugin_nianlun.imports.report import ChatReport, ImportReport, describe
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file
from plugins.nonebot_plugin_nianlun.store.models import Chat
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import ChatKey
from tests.support.export_files import element, qce_messages, write_chunked, write_qce, write_qqnt

SAMPLES = Path(__file__).parents[1] / "fixtures" / "exports"
SECOND = 1_700_000_000

pytestmark = pytest.mark.usefixtures("database_file")


async def bring(path: Path, name: str = "auto") -> ImportReport:
    return await import_file(nianlun, path, ImportOptions(self_id="10001", format=name))


@pytest.mark.parametrize(
    ("sample", "counts", "people", "left_out"),
    [
        ("qq_pc_legacy_group.txt", [9], [5], 0),
        ("qq_pc_legacy_12h.txt", [4], [3], 0),
        ("qq_pc_legacy_all_records.txt", [2, 1], [2, 1], 0),
        ("qq_pc_legacy.mht", [3], [3], 0),
        ("qce_v6_single.json", [6], [3], 0),
        ("qce_v6_chunked_jsonl", [6], [3], 0),
        ("qce_v6_chunked_jsonl/manifest.json", [6], [3], 0),
        ("qce_v5_single.json", [4], [2], 0),
        ("qce_v6_text.txt", [2], [2], 0),
        ("qce_v4_single.json", [2], [2], 0),
        ("chatlab_0.0.2.json", [4], [2], 0),
        ("chatlab_0.0.2.jsonl", [2], [2], 1),
        ("qqnt_export_group.txt", [2], [2], 0),
        ("qqnt_export_group.json", [2], [2], 0),
        ("qqnt_export_c2c.txt", [2], [2], 0),
        ("qqnt_export_c2c.json", [2], [2], 0),
    ],
)
async def test_the_samples(
    sample: str, counts: list[int], people: list[int], left_out: int
) -> None:
    report = await bring(SAMPLES / sample)
    assert [chat.messages for chat in report.chats] == counts
    assert [chat.new for chat in report.chats] == counts
    assert [chat.people for chat in report.chats] == people
    assert report.left_out == left_out
    assert await Row.all().count() == sum(counts)
    again = await bring(SAMPLES / sample)
    assert again.new == 0
    assert [chat.known for chat in again.chats] == counts


async def test_the_same_chat_in_two_formats_is_there_once() -> None:
    await bring(SAMPLES / "qce_v6_single.json")
    report = await bring(SAMPLES / "qce_v6_chunked_jsonl")
    assert (report.new, await Row.all().count()) == (0, 6)
    report = await bring(SAMPLES / "qce_v6_text.txt")
    assert report.new == 0
    assert await Chat.all().count() == 1


async def test_what_a_later_export_has_as_taken_back_is_masked(tmp_path: Path) -> None:
    whole = json.loads((SAMPLES / "qce_v5_single.json").read_bytes())
    whole["messages"][3] |= {"recalled": False, "system": False}
    whole["messages"][3]["content"] = {"text": "不该说的话", "elements": []}
    (tmp_path / "before.json").write_text(json.dumps(whole), "utf-8")
    await bring(tmp_path / "before.json")
    assert await Row.filter(text="不该说的话").count() == 1
    report = await bring(SAMPLES / "qce_v5_single.json")
    assert (report.new, await Row.all().count()) == (0, 4)
    assert await Row.filter(text="不该说的话").count() == 0
    assert await Row.filter(withdrawn_at__isnull=False).count() == 1


async def test_answers_find_what_they_answer() -> None:
    for sample in ("qce_v4_single.json", "chatlab_0.0.2.json", "chatlab_0.0.2.jsonl"):
        await bring(SAMPLES / sample)
    rows = await Row.filter(reply_to__isnull=False).order_by("id")
    assert len(rows) == 2, "the two of ChatLab are one chat"
    for row in rows:
        assert row.reply_to == row.seq - 1


async def test_a_database_with_its_chats(tmp_path: Path) -> None:
    group = [
        {
            "40001": 7_500_000_000_000_000_000 + n,
            "40003": n,
            "40013": 1 if n == 2 else 0,
            "40020": f"u_{n}",
            "40021": "742100123",
            "40033": 0 if n == 1 else 20_000 + n,
            "40050": SECOND + n,
            "40800": element(1, f45101=f"第{n}句"),
        }
        for n in (1, 2, 3)
    ]
    private = [{**group[0], "40021": "u_9", "40030": 20_009, "40033": 20_009, "40050": SECOND}]
    path = write_qqnt(tmp_path / "nt.db", group, private, uids={"u_1": 20_001})
    report = await bring(path)
    assert [(chat.chat.full, chat.messages) for chat in report.chats] == [
        ("10001/group:742100123", 3),
        ("10001/private:20009", 1),
    ]
    assert (await bring(path)).new == 0


def broken(name: str, folder: Path) -> Path:
    path = folder / "file"
    whole = {one: (SAMPLES / one).read_bytes() for one in ALL}
    match name.split():
        case ["empty"]:
            path.write_bytes(b"")
        case ["blank"]:
            path.write_bytes(b"\xef\xbb\xbf\r\n \n")
        case ["folder"]:
            path.mkdir()
        case ["noise"]:
            path.write_bytes(bytes(range(256)) * 300)
        case ["array"]:
            path.write_bytes(b'[{"a": 1}]')
        case ["cut", sample]:
            path.write_bytes(whole[sample][: len(whole[sample]) * 2 // 3])
        case ["heading", sample]:
            path.write_bytes(whole[sample][: whole[sample].rindex(b"\n20") + 9])
        case ["gbk", sample]:
            path.write_bytes(whole[sample].decode("utf-8").encode("gb18030"))
        case ["mixed", sample]:
            text = whole[sample].decode("utf-8-sig")
            half = text.index("\n", len(text) // 2)
            path.write_bytes(text[:half].encode() + text[half:].encode("gb18030"))
        case ["database"]:
            write_qqnt(path, [{"40050": SECOND + n, "40800": b"x" * 900} for n in range(60)])
            path.write_bytes(path.read_bytes()[:20_000])
        case ["other-database"]:
            write_qqnt(path)
            path.write_bytes(path.read_bytes().replace(b"_msg_table", b"_msg_tabel"))
        case ["encrypted"]:
            path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 64)
        case ["encrypted-header"]:
            path.write_bytes(b"SQLite header 3\0QQ_NT DB" + bytes(range(256)) * 64)
    return path


ALL = [path.name for path in sorted(SAMPLES.iterdir()) if path.suffix in {".txt", ".json", ".mht"}]
TRUNCATED = [name for name in ALL if name.endswith((".json", ".mht")) or "qce_" in name]


@pytest.mark.parametrize(
    "name",
    [
        *("empty", "blank", "folder", "noise", "array"),
        *("database", "other-database", "encrypted", "encrypted-header"),
        *(f"cut {sample}" for sample in TRUNCATED),
        *(
            f"heading {sample}"
            for sample in ALL
            if sample.startswith(("qq_", "qqnt")) and ".txt" in sample
        ),
        *(f"gbk {sample}" for sample in ALL if sample.endswith(".json")),
        *(f"mixed {sample}" for sample in ALL if sample != "qqnt_export_c2c.txt"),
    ],
)
async def test_a_broken_file_changes_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(ImportFileError) as told:
        await bring(broken(name, tmp_path))
    assert str(told.value)
    assert "\n" not in str(told.value)
    assert await Chat.all().count() == 0


@pytest.mark.parametrize("sample", [name for name in ALL if name.endswith(".txt")])
@pytest.mark.parametrize("encoding", ["gb18030", "utf-8", "utf-8-sig", "utf-16"])
async def test_texts_in_every_encoding(sample: str, encoding: str, tmp_path: Path) -> None:
    expected = await bring(SAMPLES / sample)
    text = (SAMPLES / sample).read_bytes().decode("utf-8-sig")
    (tmp_path / sample).write_bytes(text.encode(encoding))
    report = await bring(tmp_path / sample)
    assert report.new == 0
    assert [chat.known for chat in report.chats] == [chat.new for chat in expected.chats]
    assert report.left_out == 0


@pytest.mark.parametrize(
    ("name", "told"),
    [("missing", "缺了"), ("short", "manifest 说有"), ("outside", "不在它的文件夹")],
)
async def test_a_chunk_that_is_not_right(name: str, told: str, tmp_path: Path) -> None:
    folder = write_chunked(tmp_path / "export", list(qce_messages(5)))
    chunk = folder / "chunks" / "c000002.jsonl"
    if name == "missing":
        chunk.unlink()
    elif name == "short":
        chunk.write_bytes(chunk.read_bytes().partition(b"\n")[0] + b"\n")
    else:
        shutil.copy(chunk, tmp_path / "c.jsonl")
        manifest = folder / "manifest.json"
        text = manifest.read_text("utf-8").replace("chunks/c000002.jsonl", "../c.jsonl")
        manifest.write_text(text, "utf-8")
    with pytest.raises(ImportFileError, match=told):
        await bring(folder)
    assert await Chat.all().count() == 0


@pytest.mark.parametrize("kind", ["single", "chunked", "database"])
async def test_progress_comes_to_its_end(kind: str, tmp_path: Path) -> None:
    if kind == "single":
        path = write_qce(tmp_path / "a.json", qce_messages(5000))
    elif kind == "chunked":
        path = write_chunked(tmp_path / "a", list(qce_messages(5000)), 1500)
    else:
        row = {"40021": "123", "40033": 20_001, "40800": element(1, f45101="好")}
        path = write_qqnt(tmp_path / "a.db", [{**row, "40050": SECOND + n} for n in range(5000)])
    told: list[Progress] = []
    report = await import_file(nianlun, path, ImportOptions(self_id="10001"), told.append)
    assert report.new == 5000
    for phase in ("check", "store"):
        done = [one.done / one.total for one in told if one.phase == phase]
        assert done == sorted(done)
        assert done[-1] == 1
        assert 0.3 < done[0] < 0.6


def test_what_is_owed_is_told_in_one_line() -> None:
    chat = ChatReport(ChatKey("10001", "group", "1"), "群", 14, None, None, pending=14, owed=2)
    *_, told = describe(ImportReport("格式", [chat]), nianlun.calendar)
    assert told.startswith("还有 14 条消息没有写成记忆，2 篇记忆要更新：")
