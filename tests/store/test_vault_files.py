"""Vaults as other hands leave them: packed, recoded, damaged, or made to do harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports import vault, vault_files
from plugins.nonebot_plugin_nianlun.imports.report import (
    LINES_SHOWN,
    ImportReport,
    describe,
    shown,
)
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions
from plugins.nonebot_plugin_nianlun.imports.vault import import_any
from plugins.nonebot_plugin_nianlun.memory.vault import digest
from plugins.nonebot_plugin_nianlun.store.models import Chat, Fact

HEADER = (
    '{"type":"header","format":"nianlun","version":1,"chat":"group:123","self_id":"10001",'
    '"timezone":"Asia/Shanghai","exported_at":"2026-01-03T00:00:00Z"}\n'
)
SAID = (
    '{"type":"message","seq":1,"message_id":"7","time":"2026-01-02T00:00:00Z","user_id":"20001",'
    '"name":"小鹿","text":"在吗","segments":[{"type":"text","data":{"text":"在吗"}}],'
    '"reply_to":null,"withdrawn":false}\n'
)
TEA = (
    "# 小鹿（20001）\n\n## 茶\n\n爱喝茶\n\n"
    '<!-- nianlun: {"type":"fact","owner":"20001","category":"preferences","name":"茶",'
    '"source":1,"due":null,"written_at":"2026-01-02T00:00:00Z","journal":[],'
    f'"digest":"{digest("爱喝茶")}"}} -->\n'
)
FILES = {"nianlun.jsonl": HEADER, "messages/2026-01.jsonl": SAID, "wiki/preferences.md": TEA}
Change = Callable[[str, bytes], bytes]


def packed(
    path: Path,
    change: Change = lambda _, data: data,
    named: Callable[[str], str] = lambda name: name,
    others: dict[str, bytes] | None = None,
) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in FILES.items():
            archive.writestr(named(name), change(name, text.encode()))
        for name, data in (others or {}).items():
            archive.writestr(name, data)
    return path


def unpacked(folder: Path, change: Change = lambda _, data: data) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(change(name, text.encode()))
    return folder


async def bring(path: Path) -> ImportReport:
    return await import_any(nianlun, path, ImportOptions(), lambda _: None)


def to_utf16(name: str, data: bytes) -> bytes:
    return data.decode().encode("utf-16") if name.endswith(".md") else data


@pytest.mark.usefixtures("database_file")
async def test_what_other_hands_did_to_it_is_no_edit(tmp_path: Path) -> None:
    changes: list[Change] = [
        lambda _, data: data,
        lambda _, data: data.replace(b"\n", b"\r\n"),
        lambda _, data: b"\xef\xbb\xbf" + data,
        to_utf16,
    ]
    for change in changes:
        for path in (packed(tmp_path / "v.zip", change), unpacked(tmp_path / "v", change)):
            report = await bring(path)
            assert (report.left_out, report.chats[0].edited) == (0, 0)
    windows = packed(tmp_path / "w.zip", named=lambda name: f"我的\\{name}".replace("/", "\\"))
    other_names = packed(
        tmp_path / "m.zip",
        named=lambda name: f"v/{name.replace('preferences', 'a' + chr(92) + 'b')}",
        others={"__MACOSX/v/._nianlun.jsonl": b"\0\5", "../../evil.md": b"x", "/etc/x.md": b"x"},
    )
    for path in (windows, other_names):
        report = await bring(path)
        assert (report.left_out, report.chats[0].known, report.chats[0].edited) == (0, 1, 0)
    moved = tmp_path / "v" / "diary" / "2026"
    moved.mkdir(parents=True)
    (tmp_path / "v" / "wiki" / "._preferences.md").write_bytes(b"\0\5\x16\xff")
    (told,) = (await bring(tmp_path / "v")).unreadable
    assert told.reason == "diary/2026/：不在原来的位置，没有读入"
    moved.rmdir()
    # A copy that a cloud folder made of a page does not take its place.
    copy = TEA.replace("爱喝茶", "别处改的")
    (tmp_path / "v" / "wiki" / "preferences (conflict).md").write_text(copy, "utf-8")
    (told,) = (await bring(tmp_path / "v")).unreadable
    assert told.reason == "wiki/preferences (conflict).md：文件夹里有两处写这一条，只读了前面那处"
    assert [fact.text for fact in await Fact.all()] == ["爱喝茶"]
    assert await Chat.all().count() == 1


def locked(path: Path) -> Path:
    data = bytearray(path.read_bytes())
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
        data[at + 8] |= 1
    path.write_bytes(data)
    return path


def damaged(path: Path, at: int, wrong: bytes) -> Path:
    data = bytearray(path.read_bytes())
    data[at : at + len(wrong)] = wrong
    path.write_bytes(data)
    return path


def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-40])
    return path


async def test_what_cannot_be_read_whole_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(path: Path, why: str) -> None:
        with pytest.raises(ImportFileError, match=why):
            await bring(path)

    at = tmp_path / "v.zip"
    gbk = [
        packed(tmp_path / f"{wanted[:4]}.zip", lambda name, data, wanted=wanted: (
            data.decode().encode("gbk") if name == wanted else data
        ))
        for wanted in FILES if wanted != "nianlun.jsonl"
    ]  # fmt: skip
    for path in gbk:
        await refused(path, "不是 UTF-8")
    await refused(locked(packed(at)), "密码")
    first = packed(at).read_bytes().find(b"nianlun.jsonl") + len("nianlun.jsonl")
    await refused(damaged(packed(at), first, b"\xff" * 20), "压缩包坏了")
    await refused(damaged(packed(at), packed(at).read_bytes().find(b"PK\x01\x02") + 16, b"x"), "坏")
    await refused(cut(packed(at)), "压缩包不完整")
    nested = packed(tmp_path / "inner.zip")
    with ZipFile(at, "w") as archive:
        archive.write(nested, "v.zip")
    await refused(at, "先解压")
    await refused(packed(at, others={"x": b"\n" * (70 << 20)}), "太多")
    monkeypatch.setattr(vault, "_MOST_MESSAGE_FILES", 3)
    many = {f"messages/{number}.jsonl": b"" for number in range(4)}
    await refused(packed(at, others=many), "messages 里的文件太多")
    monkeypatch.setattr(vault_files, "_MOST_FILES", 5)
    await refused(packed(at, others=many), "压缩包里的东西太多")


@pytest.mark.usefixtures("database_file")
async def test_brackets_without_end_and_links_change_nothing_else(tmp_path: Path) -> None:
    for depth in (300, 900, 2000):
        deep = b"[" * depth + b"]" * depth
        link = ZipInfo("wiki/link.md")
        link.external_attr = 0o120777 << 16
        path = packed(
            tmp_path / "v.zip",
            lambda name, data, deep=deep: (
                data + b'{"type":"speaker","user_id":' + deep + b"}\n"
                if name == "nianlun.jsonl"
                else data
            ),
            others={
                "wiki/deep.md": b'x\n<!-- nianlun: {"type":"fact","owner":' + deep + b"} -->\n"
            },
        )
        with ZipFile(path, "a") as archive:
            archive.writestr(link, "/etc/passwd")
        report = await bring(path)
        assert report.left_out == 3
        assert report.chats[0].messages == 1
        assert [fact.text for fact in await Fact.all()] == ["爱喝茶"]
        whole = tmp_path / "deep.jsonl"
        whole.write_bytes(HEADER.encode() + SAID.encode() + b'{"type":' + deep + b"}\n")
        assert (await bring(whole)).left_out == 1
        whole.write_bytes(b'{"type":' + deep + b"}\n")
        with pytest.raises(ImportFileError, match="认不出"):
            await bring(whole)


@pytest.mark.usefixtures("database_file")
async def test_every_edit_that_is_refused_is_named(tmp_path: Path) -> None:
    facts = [
        TEA.replace("## 茶", f"## 茶{number}")
        .replace('"茶"', f'"茶{number}"')
        .replace("爱喝茶", "爱喝茶（#888888）")
        for number in range(30)
    ]
    strays = {f"wiki/{number}.md": "# 题\n\n话\n".encode() for number in range(30)}
    path = packed(tmp_path / "v.zip", others=strays | {"wiki/tea.md": "\n".join(facts).encode()})
    report = await bring(path)
    assert report.left_out == 60
    told = list(describe(report, nianlun.calendar))
    for number in range(30):
        assert sum(f"preferences:茶{number} 引用的" in line for line in told) == 1
    assert sum("不在任何一段里" in line for line in told) == LINES_SHOWN
    assert "  ……还有 10 处" in told
    assert sum(one.edit for one in shown(report.unreadable, 3)) == len(facts)
    assert len(shown(report.unreadable, 3)) == len(facts) + 3
