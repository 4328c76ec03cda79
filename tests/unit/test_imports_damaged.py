"""Damaged exports: whatever is cut off or changed is told, and nothing else is raised."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path
import random
import shutil
from typing import BinaryIO
from zoneinfo import ZoneInfo

import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.formats import READERS, choose
from plugins.nonebot_plugin_nianlun.imports.found import FoundMessage
from tests.support.export_files import element, qce_messages, write_chunked, write_qqnt

SAMPLES = Path(__file__).parents[1] / "fixtures" / "exports"
NAMES = [one.name for one in sorted(SAMPLES.iterdir()) if one.suffix in {".txt", ".json", ".mht"}]
LINES = [name for name in NAMES if name.startswith(("qq_pc", "qqnt")) and ".txt" in name]
LINES.append("chatlab_0.0.2.jsonl")
"""Formats without an end of their own: what is missing after a whole line cannot be seen."""
ZONE = ZoneInfo("Asia/Shanghai")
PLACES = 50


def messages(file: BinaryIO, name: str = "auto") -> list[FoundMessage]:
    reader = choose(name, file)
    return [one for one in reader.read(file, ZONE) if isinstance(one, FoundMessage)]


def read(data: bytes, name: str = "auto") -> list[FoundMessage] | str:
    """The messages, or what is told instead."""
    try:
        return messages(BytesIO(data), name)
    except ImportFileError as error:
        return str(error)


def words(message: FoundMessage) -> str:
    return readable(message.segments, lambda _: None)


@pytest.mark.parametrize("name", [*NAMES, "chatlab_0.0.2.jsonl"])
def test_a_file_that_is_cut_off(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    whole = messages(BytesIO(data))
    step = 1 if name.endswith(".txt") else len(data) // PLACES
    for place in range(0, len(data), step):
        found = read(data[:place])
        if isinstance(found, str):
            assert found
            assert "\n" not in found
        elif name in LINES:
            assert found[:-1] == whole[: max(0, len(found) - 1)]
            # Somebody's words may end where the file does; no heading is part of them.
            assert not found or words(whole[len(found) - 1]).startswith(words(found[-1]))
        else:
            assert found == whole


TEXTS = [name for name in NAMES if name.endswith(".txt")]


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-8"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_in_any_encoding(name: str, encoding: str) -> None:
    text = (SAMPLES / name).read_text("utf-8-sig")
    whole = messages(BytesIO((SAMPLES / name).read_bytes()))
    data = text.encode(encoding)
    for place in range(0, len(data), 3):
        found = read(data[:place])
        for one, other in () if isinstance(found, str) else zip(found, whole, strict=False):
            assert words(other).startswith(words(one))
    for trimmed in (text, text.rstrip("\n"), text.rstrip(), f"{text.rstrip()}\n"):
        assert read(trimmed.encode(encoding)) == whole


PC = (
    "消息记录（此消息记录为文本格式，不支持重新导入）\n\n"
    "2021-03-07 23:58:40 小鹿(10011)\n在\n\n2021-03-07 23:58:41 阿澈(10010)\n看：\n\n"
)
NT = "2026-03-07 23:58:41 阿澈\n[文本]\n看：\n\n"
ENDS = {
    PC: ["2021-03-08 0:00", "2021-03-08 0:00:03 小", "=====", "消息记录", f"{'=' * 64}\n消息"],
    NT: [
        "2026-03-",
        "2026-03-07 23:59:03 小",
        "2026-03-07 23:59:03 阿澈\n[文",
        "20",
        "好\n[图",
        "[",
        "[图片]",
        "[被引用的",
        "[被引用的消息][文",
        "2026-03-06 23:59:03 阿澈\n[文",
    ],
}
NO_ENDS = {
    PC: ["2021-03-06 0:00:03 小", "2021年", "120", "2021-03-08 9:00 开会", "消息", "= 好"],
    NT: ["2026-03-06 23:59:03 小", "2026-3", "19", "2026-03-08开会", "[图文]", "[文本]好", "1["],
}


def test_the_name_of_the_chat_in_its_last_heading_is_a_whole_one() -> None:
    rule = "=" * 64
    head = f"消息分组:我的好友\n{rule}\n消息对象:小 鹿\n{rule}\n\n"
    begins = f"{PC.partition('2021')[0]}{rule}\n{head}2021-03-07 23:58:40 阿澈\n在\n\n"
    for end in ("", "\n", "\n\n"):
        found = read(f"{begins}2021-03-08 0:00:03 小 鹿{end}".encode())
        assert [
            (one.name, one.segments == []) for one in found if isinstance(one, FoundMessage)
        ] == [
            ("阿澈", False),
            ("小 鹿", True),
        ]
    for name in ("小", "小 ", "小 鹿儿"):
        assert "没有写完" in str(read(f"{begins}2021-03-08 0:00:03 {name}".encode()))


@pytest.mark.parametrize(("begins", "end"), [(a, b) for a, ends in ENDS.items() for b in ends])
def test_a_text_that_ends_in_a_heading(begins: str, end: str) -> None:
    assert "没有写完" in str(read(f"{begins}{end}".encode()))
    assert len(read(f"{begins}{end}也是说的话\n\n".encode())) == len(read(begins.encode()))


@pytest.mark.parametrize(("begins", "end"), [(a, b) for a, ends in NO_ENDS.items() for b in ends])
def test_a_text_that_ends_in_words(begins: str, end: str) -> None:
    found = read(f"{begins}{end}".encode())[-1]
    assert isinstance(found, FoundMessage)
    assert words(found) == f"看：\n\n{end}"


@pytest.mark.parametrize("name", [*NAMES, "chatlab_0.0.2.jsonl"])
def test_a_file_with_changed_bytes(name: str) -> None:
    dice = random.Random(name)
    data = (SAMPLES / name).read_bytes()
    for _ in range(PLACES * 2):
        damaged = bytearray(data)
        for _ in range(dice.choice([1, 1, 5, 40])):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        with suppress(ImportFileError):
            messages(BytesIO(damaged))


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_database(damage: str, tmp_path: Path) -> None:
    dice = random.Random(damage)
    body = element(1, f45101="好")
    rows = [{"40001": n, "40050": 1_700_000_000 + n, "40800": body} for n in range(1, 400)]
    data = write_qqnt(
        tmp_path / "whole.db", [{**one, "40033": 20_001} for one in rows]
    ).read_bytes()
    path = tmp_path / "nt_msg.db"
    for place in range(PLACES):
        damaged = bytearray(data[: len(data) * place // PLACES] if damage == "cut" else data)
        for _ in range(0 if damage == "cut" else dice.choice([1, 20, 400])):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(damaged)
        with path.open("rb") as file:
            try:
                assert len(messages(file)) <= 399
            except ImportFileError:
                continue
            assert damage == "changed"


@pytest.mark.parametrize("part", ["manifest.json", "chunks/c000002.jsonl"])
def test_a_damaged_folder(part: str, tmp_path: Path) -> None:
    dice = random.Random(part)
    folder = write_chunked(tmp_path / "whole", list(qce_messages(5)))
    data = (folder / part).read_bytes()
    other = Path(shutil.copytree(folder, tmp_path / "damaged"))
    for place in range(PLACES):
        damaged = bytearray(data[: len(data) * place // PLACES])
        (other / part).write_bytes(damaged)
        with (other / "manifest.json").open("rb") as file, pytest.raises(ImportFileError):
            messages(file)
        damaged = bytearray(data)
        damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        (other / part).write_bytes(damaged)
        with (other / "manifest.json").open("rb") as file, suppress(ImportFileError):
            assert len(messages(file)) <= 5


DEEP = b"[" * 200_000
FILES = {
    "deep": b'{"metadata":{"name":"QQChatExporter"},"statistics":' + DEEP,
    "deep value": b'{"chatlab":{"version":' + DEEP + b'},"meta":{}}',
    "deep entry": b'[{"time":"2026-03-07 08:00:00","sender":' + DEEP,
    "long line": "消息记录（此消息记录为文本格式".encode() + b"x" * 3_000_000,
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40,
    "archive": b"PK\x03\x04" + bytes(500),
    "packed": b"\x1f\x8b\x08" + bytes(500),
    "page": b"<!DOCTYPE html><html></html>",
    "zeros": bytes(70_000),
    "big5": "繁體中文的記錄，不是這裡認得的格式".encode("big5") * 20,
    "words": "随便写的几句话\n没有格式\n".encode() * 20,
    "nothing": b"",
    "mark": b"\xff\xfe",
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_export(name: str) -> None:
    told = read(FILES[name])
    assert isinstance(told, str) or not told
    assert "\n" not in told


@pytest.mark.parametrize("reader", [one.name for one in READERS if one.name != "qqnt-db"])
def test_a_format_that_is_another(reader: str) -> None:
    others = [(SAMPLES / name).read_bytes() for name in NAMES]
    for data in (*FILES.values(), *others):
        read(data, reader)
