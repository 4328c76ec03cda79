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


@pytest.mark.parametrize("name", [*NAMES, "chatlab_0.0.2.jsonl"])
def test_a_file_that_is_cut_off(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    whole = messages(BytesIO(data))
    for place in range(PLACES):
        found = read(data[: len(data) * place // PLACES])
        if isinstance(found, str):
            assert found
            assert "\n" not in found
        elif name in LINES:
            assert found[:-1] == whole[: max(0, len(found) - 1)]
        else:
            assert found == whole


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
