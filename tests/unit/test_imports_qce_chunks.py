"""The chunked export of qq-chat-exporter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.formats import choose
from plugins.nonebot_plugin_nianlun.imports.found import Found, FoundChat, FoundMessage, Unreadable
from plugins.nonebot_plugin_nianlun.imports.qce_chunks import QceChunks
from tests.support.export_files import qce_messages, write_chunked

SAMPLE = Path(__file__).parents[1] / "fixtures" / "exports" / "qce_v6_chunked_jsonl"
UTC_ZONE = ZoneInfo("UTC")


def read(folder: Path) -> list[Found]:
    with (folder / "manifest.json").open("rb") as file:
        return list(QceChunks().read(file, UTC_ZONE))


def change(folder: Path, **changes: Any) -> None:
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text("utf-8")) | changes), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_chunked(tmp_path / "export", list(qce_messages(5)))


def test_the_sample() -> None:
    found = read(SAMPLE)
    assert found[0] == FoundChat("group", "摸鱼研究所①群", "742100123", "3889001234")
    said = [one for one in found if isinstance(one, FoundMessage)]
    assert len(said) == len(found) - 1
    assert [(one.line, one.order) for one in said] == [
        *((1, 37360), (2, 37361), (3, 37362), (4, 37363)),
        *((1, 37364), (2, 37366)),
    ]


@pytest.mark.parametrize("place", ["chunks", "export"])
def test_the_names_of_the_fifth_version(folder: Path, place: str) -> None:
    chunks = [
        {"file": f"chunk_{n:04}.jsonl", "messages": count, "bytes": 1}
        for n, count in enumerate((2, 2, 1), 1)
    ]
    for n in (1, 2, 3):
        to = folder / "chunks" if place == "chunks" else folder
        (folder / "chunks" / f"c{n:06}.jsonl").rename(to / f"chunk_{n:04}.jsonl")
    manifest = folder / "manifest.json"
    data = json.loads(manifest.read_text("utf-8"))
    del data["chunked"]
    data["metadata"]["format"] = "chunked-jsonl"
    text = json.dumps(data | {"chunks": chunks})
    manifest.write_text(text, "utf-8")
    assert QceChunks().recognises(text.encode())
    assert len([one for one in read(folder) if isinstance(one, FoundMessage)]) == 5


def test_chunks_come_in_their_order(folder: Path) -> None:
    chunks = json.loads((folder / "manifest.json").read_text("utf-8"))["chunked"]["chunks"]
    before = read(folder)
    change(folder, chunked={"format": "jsonl", "chunks": chunks[::-1]})
    assert read(folder) == before


def test_a_manifest_whose_statistics_are_long(folder: Path) -> None:
    senders = [{"uid": f"u_{n}", "name": "很长的名字" * 9, "messageCount": 1} for n in range(2000)]
    before = read(folder)
    data = json.loads((folder / "manifest.json").read_text("utf-8"))
    data["statistics"]["senders"] = senders
    (folder / "manifest.json").write_text(json.dumps(data, indent=2), "utf-8")
    with (folder / "manifest.json").open("rb") as file:
        reader = choose("auto", file)
        assert list(reader.read(file, UTC_ZONE)) == before


def test_the_number_of_the_chat_in_its_messages(folder: Path) -> None:
    first = folder / "chunks" / "c000001.jsonl"
    line = json.loads(first.read_text("utf-8").split("\n")[0])
    first.write_text(json.dumps(line | {"receiver": {"uid": "742100123", "type": "group"}}) + "\n")
    data = json.loads((folder / "manifest.json").read_text("utf-8"))
    data["chunked"]["chunks"][0]["count"] = 1
    change(folder, chatInfo={"name": "摸鱼", "type": "group"}, chunked=data["chunked"])
    assert read(folder)[0] == FoundChat("group", "摸鱼", "742100123")


def test_a_line_that_is_broken_is_told_with_its_file(folder: Path) -> None:
    chunk = folder / "chunks" / "c000002.jsonl"
    first, second, _ = chunk.read_text("utf-8").split("\n")
    chunk.write_text(f"{first[:-9]}\n{second}\n", "utf-8")
    odd = [one for one in read(folder) if isinstance(one, Unreadable)]
    assert odd == [Unreadable(1, "chunks/c000002.jsonl 不是合格的 JSON")]
    chunk.write_text(f'{{"timestamp":5}}\n{second}\n', "utf-8")
    odd = [one for one in read(folder) if isinstance(one, Unreadable)]
    assert [one.reason.split()[0] for one in odd] == ["chunks/c000002.jsonl"]


def test_a_chunk_that_ends_too_early_is_refused(folder: Path) -> None:
    chunk = folder / "chunks" / "c000003.jsonl"
    chunk.write_bytes(chunk.read_bytes()[:-20])
    with pytest.raises(ImportFileError, match=r"c000003.jsonl 第 1 行.*断了"):
        read(folder)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("chunks/none.jsonl", "缺了"),
        ("/etc/hostname", "不在它的文件夹"),
        ("../outside.jsonl", "不在它的文件夹"),
        ("chunks\\..\\..\\outside.jsonl", "不在它的文件夹"),
        ("a\0b", "没有写文件名"),
        ("", "没有写文件名"),
        (5, "没有写文件名"),
        (".", "缺了"),
    ],
)
def test_only_files_beside_the_manifest_are_read(folder: Path, path: object, told: str) -> None:
    (folder.parent / "outside.jsonl").write_text("{}\n")
    change(folder, chunked={"format": "chunked-jsonl", "chunks": [{"relativePath": path}]})
    with pytest.raises(ImportFileError, match=told):
        read(folder)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"chunked": 5}, "没有 chunks"),
        ({"chunked": {"chunks": 5}}, "没有 chunks"),
        ({"chunked": {"chunks": [5]}}, "没有写文件名"),
        ({"chatInfo": {"type": "channel"}}, "哪种会话"),
    ],
)
def test_a_manifest_that_is_none_is_refused(
    folder: Path, changes: dict[str, Any], told: str
) -> None:
    change(folder, **changes)
    with pytest.raises(ImportFileError, match=told):
        read(folder)
