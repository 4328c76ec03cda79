"""Which pictures may be looked at, and how what was seen stands in a message."""

from __future__ import annotations

import json
from pathlib import Path
from struct import pack
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.pictures import (
    CAPTION_CHARS,
    LARGEST,
    pictures,
    still_type,
    with_captions,
)
from plugins.nonebot_plugin_nianlun.capture.segments import readable, to_segments
from plugins.nonebot_plugin_nianlun.types import Segment
from tests.support.picture_server import png

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "onebot"
MD5 = "8d5f0a3bc1e24f7a9b6c0d1e2f3a4b5c"
URL = "https://multimedia.nt.qq.com.cn/download?appid=1407"
wild_text = st.text(st.characters(exclude_categories=()), max_size=120)


def image(**data: Any) -> Segment:
    return {"type": "image", "data": {"url": URL, "file": "a.jpg", **data}}


def of_fixture(name: str) -> list[Segment]:
    message = json.loads((FIXTURES / name).read_text("utf-8"))["message"]
    return to_segments(message)


def test_a_picture_as_it_comes() -> None:
    (found,) = pictures(of_fixture("napcat_group_image.json"))
    assert found.place == 0
    assert found.url.startswith(URL)
    assert found.md5 == MD5


def test_pictures_of_other_implementations() -> None:
    (gocq,) = pictures(of_fixture("gocq_group_array_image_reply.json"))
    assert (gocq.place, gocq.md5) == (3, MD5)
    (lagrange,) = pictures(of_fixture("lagrange_group_mface_image.json"))
    assert (lagrange.place, lagrange.md5) == (1, None)


@pytest.mark.parametrize(
    "name", ["napcat_group_image_sticker", "napcat_group_mface_as_image", "llbot_group_mface_face"]
)
def test_stickers_show_their_summary(name: str) -> None:
    segments = of_fixture(f"{name}.json")
    assert pictures(segments) == []
    assert readable(segments, {}.get).startswith(("[动画表情]", "[哈哈哈]"))


@pytest.mark.parametrize(
    "data",
    [
        {"sub_type": 1},
        {"subType": "7"},
        {"emoji_id": "c0ffee"},
        {"type": "flash"},
        {"url": None},
        {"url": "file:///etc/passwd"},
        {"url": "/app/a.jpg"},
        {"url": "base64://…(3 bytes)"},
        {"url": "http://x/" + "a" * 5000},
        {"file_size": str(LARGEST + 1)},
        {"caption": "一只猫"},
        {"caption": ""},
    ],
)
def test_what_is_not_looked_at(data: dict[str, Any]) -> None:
    assert pictures([image(**data)]) == []


def test_pictures_inside_forwards_are_not_looked_at() -> None:
    node = {"type": "node", "data": {"content": [image()]}}
    assert pictures([{"type": "forward", "data": {"content": [node]}}]) == []
    assert pictures([node]) == []


@pytest.mark.parametrize(
    ("name", "md5"),
    [
        (f"{MD5}.jpg", MD5),
        (f"{MD5.upper()}.PNG", MD5),
        ("{8D5F0A3B-C1E2-4F7A-9B6C-0D1E2F3A4B5C}.jpg", MD5),
        (f"{MD5}0.jpg", None),
        (f"x{MD5}.jpg", None),
        (MD5[:-1] + ".jpg", None),
        (None, None),
        ("a" * 9999, None),
    ],
)
def test_names_that_tell_the_hash(name: object, md5: str | None) -> None:
    (found,) = pictures([image(file=name)])
    assert found.md5 == md5


def test_what_was_seen_stands_where_the_picture_was() -> None:
    before = [image(summary="[图片]"), {"type": "text", "data": {"text": "好看吗"}}, image()]
    after = with_captions(before, {0: "一只橘猫趴在键盘上"})
    assert readable(after, {}.get) == "[图片：一只橘猫趴在键盘上]好看吗[图片]"
    assert readable(before, {}.get) == "[图片]好看吗[图片]"
    assert [found.place for found in pictures(after)] == [2]


@given(wild_text)
def test_a_caption_is_one_line_that_ends_no_mark(caption: str) -> None:
    made = readable(to_segments(with_captions([image()], {0: caption})), {}.get)
    made.encode()
    assert len(made.splitlines()) == 1
    assert len(made) <= CAPTION_CHARS + 5
    assert made.startswith("[图片")
    assert (made.count("["), made.count("]"), made[-1]) == (1, 1, "]")


def webp(kind: bytes, flags: int = 0, size: bytes = bytes(6)) -> bytes:
    return b"RIFF\x24\0\0\0WEBP" + kind + b"\x0a\0\0\0" + bytes([flags, 0, 0, 0]) + size


def jpeg(width: int, height: int, *before: bytes) -> bytes:
    parts = b"".join(b"\xff\xe0" + pack(">H", len(one) + 2) + one for one in before)
    return b"\xff\xd8" + parts + b"\xff\xff\xc2\0\x11\x08" + pack(">HH", height, width) + bytes(9)


def big_png(width: int, height: int) -> bytes:
    return png()[:16] + pack(">II", width, height) + png()[24:]


PIXEL = b"\x9d\x01\x2a\x01\0\x01\0"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (png(), "image/png"),
        (png(moving=True), None),
        (jpeg(40, 30), "image/jpeg"),
        (jpeg(40, 30, b"JFIF", b"\xff\xc0" * 9), "image/jpeg"),
        (webp(b"VP8X"), "image/webp"),
        (webp(b"VP8X", 2), None),
        (webp(b"VP8L", 0x2F, b"\0" * 9), "image/webp"),
        (webp(b"VP8 ")[:23] + PIXEL, "image/webp"),
        (big_png(50_000, 50_000), None),
        (big_png(8_000, 8_000), "image/png"),
        (big_png(0, 9), None),
        (jpeg(65_500, 65_500), None),
        (jpeg(0, 30), None),
        (webp(b"VP8X", 0, b"\xff" * 6), None),
        (webp(b"VP8L", 0, b"\0" * 9), None),
        (png()[:20], None),
        (b"\xff\xd8\xff\xe0JFIF", None),
        (b"\xff\xd8\xff\xe0\0\0" * 9, None),
        (b"\xff\xd8" + b"\xff" * 100_000 + jpeg(9, 9)[2:], None),
        (b"RIFF\x24\0\0\0WEBP", None),
        (b"GIF89a\1\0\1\0", None),
        (b"<html>expired</html>", None),
        (b'{"retcode":-5503007}', None),
        (b"", None),
    ],
)
def test_the_type_of_a_still_picture(content: bytes, media_type: str | None) -> None:
    assert still_type(content) == media_type


@given(
    st.binary(max_size=60)
    | st.builds(bytes.__add__, st.sampled_from([png()[:16], jpeg(1, 1)[:9], webp(b"VP8 ")[:16]]),
                st.binary(max_size=40))
)  # fmt: skip
def test_any_bytes_have_a_type_or_none(content: bytes) -> None:
    assert still_type(content) in {None, "image/png", "image/jpeg", "image/webp"}
