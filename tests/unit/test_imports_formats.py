"""Telling what a file is by how it begins."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
import json
from pathlib import Path
import time

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.formats import READERS, choose, detect

SAMPLES = Path(__file__).parents[1] / "fixtures" / "exports"
HEADER = b'{"type":"header","format":"nianlun","version":1,"chat":"group:1","self_id":"2"}\n'


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ("qq_pc_legacy_group.txt", "qq-text"),
        ("qq_pc_legacy_12h.txt", "qq-text"),
        ("qq_pc_legacy_all_records.txt", "qq-text"),
        ("qq_pc_legacy.mht", "qq-mht"),
        ("qce_v4_single.json", "qce-json"),
        ("qce_v6_single.json", "qce-json"),
        ("qce_v6_chunked_jsonl/manifest.json", "qce-chunks"),
        ("qce_v6_text.txt", "qce-text"),
        ("chatlab_0.0.2.json", "chatlab"),
        ("chatlab_0.0.2.jsonl", "chatlab"),
        ("qqnt_export_c2c.txt", "qqnt-text"),
        ("qqnt_export_group.txt", "qqnt-text"),
        ("qqnt_export_c2c.json", "qqnt-json"),
        ("qqnt_export_group.json", "qqnt-json"),
    ],
)
def test_samples_are_recognised(sample: str, name: str) -> None:
    head = (SAMPLES / sample).read_bytes()
    assert [reader.name for reader in READERS if reader.recognises(head)] == [name]
    assert detect(head).name == name
    text = head.decode("utf-8-sig")
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "gb18030"):
        assert detect(text.encode(encoding)).name == name


@pytest.mark.parametrize("head", [HEADER, b"\xef\xbb\xbf\n" + HEADER])
def test_our_own_export_is_recognised(head: bytes) -> None:
    assert detect(head).name == "nianlun"


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"", "空的"),
        (b"\xef\xbb\xbf \n", "空的"),
        (b"hello", "认不出"),
        (b"[1, 2]", "认不出"),
        (b'{"messages": []}', "认不出"),
        (b"PK\x03\x04....", "压缩包"),
        (b"\x1f\x8b\x08....", "压缩包"),
        (b"SQLite header 3\0QQ_NT DB", "没有解密"),
        (b"<!DOCTYPE html>", "网页"),
        (b'{"id":"1","seq":"2","timestamp":3,"time":"","sender":{}}\n', "分块"),
        (b'{"_type":"message"}\n', "认不出"),
        (b"2026-03-07 23:58:41 \xe7\x94\xb2\nhello\n", "认不出"),
    ],
)
def test_other_files_are_refused_with_a_reason(head: bytes, told: str) -> None:
    with pytest.raises(ImportFileError, match=told):
        detect(head)


@pytest.mark.parametrize(
    "head",
    [
        b"# " * 30_000,
        b"2026-03-07 23:58:41 " + b" " * 60_000,
        b'{"metadata":{' + b'"messages":[{' * 5000,
        b'{"id":"1","seq":' + b'"sende' * 9000,
        b"=" * 60_000,
        b" " * 60_000 + b"x",
        b"[{" * 30_000,
    ],
)
def test_no_beginning_takes_long(head: bytes) -> None:
    began = time.perf_counter()
    with pytest.raises(ImportFileError, match="认不出"):
        detect(head)
    assert time.perf_counter() - began < 2


def test_an_unknown_file_is_told_what_can_be_read() -> None:
    with pytest.raises(ImportFileError) as told:
        detect(b"hello")
    for reader in READERS:
        assert reader.title in str(told.value)
        assert reader.name in str(told.value)


def test_what_people_say_does_not_change_what_a_file_is() -> None:
    """A message may hold the signs of every other format."""
    said = '{"chatlab": "QQChatExporter V4 \\"format\\":\\"chunked-jsonl\\" \\"messageSeq\\":1'
    parts = json.loads((SAMPLES / "qce_v6_single.json").read_bytes())
    parts["messages"][0]["content"]["text"] = said
    parts["messages"][0]["sender"]["name"] = "QQChatExporter V4"
    parts["chatInfo"]["name"] = said
    assert detect(json.dumps(parts).encode()).name == "qce-json"
    group = (SAMPLES / "qq_pc_legacy_group.txt").read_text("utf-8").replace("收到", said)
    assert detect(group.encode()).name == "qq-text"


def test_a_reader_is_chosen_by_name_without_a_look() -> None:
    file = BytesIO(HEADER)
    assert choose("qq-text", file).name == "qq-text"
    assert choose("auto", file).name == "nianlun"
    assert file.tell() == 0
    with pytest.raises(ImportFileError, match=r"没有叫 word 的格式.*nianlun"):
        choose("word", file)


@given(st.binary(max_size=200), st.sampled_from([b"", HEADER[:40], b'{"metadata":{', b"\xff\xfe"]))
def test_no_bytes_raise_anything_else(data: bytes, head: bytes) -> None:
    with suppress(ImportFileError):
        assert detect(head + data) in READERS
