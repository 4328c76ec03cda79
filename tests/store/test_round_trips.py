"""Whatever a chat holds, hostile names and texts included, goes out and comes back the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
import errno
from itertools import zip_longest
import json
import os
from pathlib import Path
import shutil
import time
from typing import Any
from zipfile import ZipFile

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.errors import ImportFileError, NianlunError
from plugins.nonebot_plugin_nianlun.exports import write_json_lines, write_vault, write_zip
from plugins.nonebot_plugin_nianlun.imports import vault
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.report import ImportReport
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions
from plugins.nonebot_plugin_nianlun.imports.vault import import_any, look_into_any
from plugins.nonebot_plugin_nianlun.store import chats, deleting, editing, gaps, leftovers
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.types import ChatKey
from tests.support.lived_chat import EVENTS, NOW, PEOPLE, Builder, Said
from tests.support.product_store import ProductStore

ACCOUNT, OTHER_ACCOUNT = "10001", "10009"

Json = dict[str, Any]


async def exported(chat: ChatKey) -> list[Json]:
    return [row async for row in lines(chat, "Asia/Shanghai", NOW)]


def written(rows: list[Json]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def check_same(again: list[Json], rows: list[Json]) -> None:
    """Byte for byte; fails with the first line that is another."""
    pairs = zip_longest((written([row]) for row in again), (written([row]) for row in rows))
    for came, went in pairs:
        assert came == went, f"{came}\n{went}"


async def bring(path: Path, chat: ChatKey | None = None) -> ImportReport:
    targets = () if chat is None else (target(chat.full),)
    return await import_any(nianlun, path, ImportOptions(targets=targets), lambda _: None)


async def check_nothing_new(path: Path, chat: ChatKey, rows: list[Json]) -> None:
    """What is here already is known as such, and nothing of it changes."""
    report = await bring(path, chat)
    (told,) = report.chats
    assert (told.new, told.known, told.notes, told.edited) == (0, told.messages, 0, 0)
    assert report.unreadable == []
    check_same((await exported(chat))[1:], rows[1:])


async def check_moves(path: Path, chat: ChatKey, rows: list[Json]) -> None:
    """The memory is the same in a chat of another name, and comes in there once."""
    report = await bring(path, chat)
    assert report.unreadable == []
    moved = await exported(chat)
    check_same(moved[1:], rows[1:])
    assert {**moved[0], "chat": "", "self_id": ""} == {**rows[0], "chat": "", "self_id": ""}
    await check_nothing_new(path, chat, rows)


@pytest.fixture(scope="session")
def in_fresh_databases(
    prepared_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Callable[[Path], Coroutine[Any, Any, None]]], None]:
    """Runs a coroutine function with a folder, in a database of its own."""

    def run(work: Callable[[Path], Coroutine[Any, Any, None]]) -> None:
        async def inside() -> None:
            folder = tmp_path_factory.mktemp("chat")
            await opened(prepared_database, folder / "first.db")
            try:
                await work(folder)
            finally:
                await closed()
                shutil.rmtree(folder)

        asyncio.run(inside())

    return run


_stores: list[ProductStore] = []


async def opened(prepared: Path, path: Path) -> None:
    shutil.copy(prepared, path)
    _stores.append(ProductStore(path))
    await _stores[-1].open()


async def closed() -> None:
    await _stores.pop().close()


KINDS = st.sampled_from(["group", "private"])
PAUSED = [
    Said(what, 0, "在吗", "小鹿", 60, 0)
    for what in ("answer", "say", "pause", "say", "answer", "resume", "answer", "tidy")
]
ONE_SECOND = [
    Said(what, 1, f"第{number}件", "小鹿", 0, 1)
    for number, what in enumerate(
        ("tidy", "say", "tidy", "delete", "tidy", "say", "fact", "erase", "fact", "fact", "moment")
    )
]
"""Of two windows one is removed, and a fact that was erased is told again."""
CORRECTED = [
    Said(what, who, text, "小鹿", 60, 0)
    for what, who, text in (
        ("say", 1, "明天去上海"),
        ("tidy", 0, ""),
        ("correct", 1, "说是去上海"),
        ("correct", 0, "晴天"),
    )
]
"""A day that is corrected after its activity was, and does not hold that yet."""
SLOW = settings(
    # Looking for a smaller chat takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SLOW
@example(kind="group", events=PAUSED)
@example(kind="group", events=ONE_SECOND)
@example(kind="group", events=CORRECTED)
@given(kind=KINDS, events=EVENTS)
def test_json_lines(
    kind: Any,
    events: list[Said],
    in_fresh_databases: Callable[..., None],
    prepared_database: Path,
) -> None:
    chat = ChatKey(ACCOUNT, kind, PEOPLE[0] if kind == "private" else "123")

    async def work(folder: Path) -> None:
        await Builder(chat, folder / "first.db").live(events)
        rows = await exported(chat)
        file = folder / "whole.jsonl"
        await write_json_lines(file, lines(chat, "Asia/Shanghai", NOW))
        assert file.read_text("utf-8") == written(rows)
        await check_nothing_new(file, chat, rows)
        await check_moves(file, ChatKey(OTHER_ACCOUNT, kind, "30007"), rows)
        await closed()
        await opened(prepared_database, folder / "second.db")
        await bring(file)
        check_same(await exported(chat), rows)
        await check_nothing_new(file, chat, rows)

    in_fresh_databases(work)


@SLOW
@example(kind="group", events=PAUSED)
@example(kind="group", events=ONE_SECOND)
@example(kind="group", events=CORRECTED)
@given(kind=KINDS, events=EVENTS)
def test_markdown(
    kind: Any,
    events: list[Said],
    in_fresh_databases: Callable[..., None],
    prepared_database: Path,
) -> None:
    chat = ChatKey(ACCOUNT, kind, PEOPLE[0] if kind == "private" else "123")

    async def work(folder: Path) -> None:
        await Builder(chat, folder / "first.db").live(events)
        rows = await exported(chat)
        vault, packed = folder / "vault", folder / "vault.zip"
        await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
        await write_zip(packed, lines(chat, "Asia/Shanghai", NOW))
        before = read_files(vault)
        await check_nothing_new(vault, chat, rows)
        await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
        assert read_files(vault) == before
        await check_moves(vault, ChatKey(OTHER_ACCOUNT, kind, "30007"), rows)
        await closed()
        await opened(prepared_database, folder / "second.db")
        await bring(packed)
        check_same(await exported(chat), rows)
        await write_vault(folder / "again", lines(chat, "Asia/Shanghai", NOW))
        assert read_files(folder / "again") == before

    in_fresh_databases(work)


def read_files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


async def test_a_folder_leads_nowhere_else(tmp_path: Path, database_file: Path) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    await Builder(chat, database_file).live(
        [Said("say", 1, f"第{number}句", "阿澈", 60, 1) for number in range(9)]
    )
    await nianlun.jobs.tidy([chat])
    await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    secret = tmp_path / "secret.md"
    secret.write_text('# x\n\n秘密\n\n<!-- nianlun: {"type":"year","date":"2020"} -->\n', "utf-8")
    (vault / "years" / "2020.md").symlink_to(secret)
    (vault / "wiki").symlink_to(tmp_path)
    report = await bring(vault, ChatKey(ACCOUNT, "group", "124"))
    assert report.left_out == 0
    assert "秘密" not in written(await exported(ChatKey(ACCOUNT, "group", "124")))
    with pytest.raises(NianlunError, match="别的东西"):
        await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    assert secret.exists()


async def test_what_somebody_wrote_into_a_folder_is_never_lost(
    tmp_path: Path, database_file: Path
) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    await Builder(chat, database_file).live([])

    async def write() -> None:
        await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))

    await write()
    names = ("diary/散步.md", "months/2020-01.md", "wiki/a.md", "years/x.md", "b.md", "wiki/c.txt")
    for name in names:
        (vault / name).parent.mkdir(exist_ok=True)
        (vault / name).write_text(f"---\nchat: 别的\n---\n{name}", "utf-8")
    page = '\ufeff---\r\nchat: "group:123"\r\n---\r\n旧的'
    (vault / "wiki" / "stale.md").write_text(page, "utf-8")
    (vault / "wiki" / "link.md").symlink_to(vault / "b.md")
    stage, used = (tmp_path / f".vault.nianlun-{name}" for name in ("old", "new"))
    for folder in (stage, used):
        folder.mkdir()
    long_ago = time.time() - 2 * leftovers.UNTOUCHED
    os.utime(stage, (long_ago, long_ago))
    await write()
    assert all((vault / name).read_text("utf-8").endswith(name) for name in names)
    assert (vault / "wiki" / "link.md").is_symlink()
    assert not (vault / "wiki" / "stale.md").exists()
    assert (stage.exists(), used.exists()) == (False, True)
    await nianlun.jobs.tidy([chat])
    (day,) = {row["date"] for row in await exported(chat) if row["type"] == "activity"}
    own = vault / "diary" / f"{day}.md"
    own.write_text("我自己的日记", "utf-8")
    before = read_files(vault)
    with pytest.raises(NianlunError, match="不是年轮写的"):
        await write()
    assert read_files(vault) == before
    own.rename(vault / "diary" / "mine.md")
    await write()
    assert own.exists()


async def test_a_folder_that_was_not_finished_is_told(
    tmp_path: Path, database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    await Builder(chat, database_file).live([])

    replace = Path.replace

    def full(source: Path, place: Path) -> None:
        if place.name == "history.jsonl":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, place)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(NianlunError, match="No space left"):
            await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    with pytest.raises(ImportFileError, match="没有导出完"):
        await bring(vault)
    await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    (vault / "nianlun.jsonl").rename(vault / "nianlun.jsonl.part")
    with pytest.raises(ImportFileError, match="没有导出完"):
        await bring(vault)
    await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    await bring(vault)
    other = ChatKey(ACCOUNT, "group", "9")
    await bring(vault, other)
    with pytest.raises(NianlunError, match="别的东西"):
        await write_vault(vault, lines(other, "Asia/Shanghai", NOW))


async def test_a_folder_that_lacks_something_is_refused(
    tmp_path: Path, database_file: Path
) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    events = [Said("say", 1, f"第{number}句", "阿澈", 60, 1) for number in range(9)]
    await Builder(chat, database_file).live(events)
    await nianlun.jobs.tidy([chat])
    chat_id = await chats.find(chat)
    assert chat_id is not None
    await editing.edit(chat_id, "activity", "1", "阿澈说了九句（#1）。", "1", NOW)
    await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    rows, whole = await exported(chat), read_files(vault)
    (name,) = (name for name in whole if name.startswith("messages/"))
    other = ChatKey(ACCOUNT, "group", "9")

    def put(**changed: bytes | None) -> None:
        for path, data in {**whole, **changed}.items():
            (vault / path).unlink(missing_ok=True)
            if data is not None:
                (vault / path).write_bytes(data)

    mark = whole["nianlun.jsonl"].splitlines(keepends=True)
    said = whole[name].splitlines(keepends=True)
    torn: list[tuple[str, bytes | None, str]] = [
        (name, None, name),
        (name, b"", name),
        (name, b"".join(said[:-1]), f"{name} 应有 {len(said)} 行"),
        (name, whole[name][: -len(said[-1])], name),
        ("history.jsonl", None, "没有 history.jsonl"),
        ("history.jsonl", b"\n", "history.jsonl 应有 1 行，只有 0 行"),
        ("nianlun.jsonl", None, "没有 nianlun.jsonl（年轮导出的文件夹有）"),
        ("nianlun.jsonl", b"".join(mark[:-1]), "nianlun.jsonl 缺了一部分"),
        ("nianlun.jsonl", whole["nianlun.jsonl"][:-9], "nianlun.jsonl 缺了一部分"),
        ("nianlun.jsonl", mark[0], "nianlun.jsonl 缺了一部分"),
        ("nianlun.jsonl", b"".join([mark[0], *mark[2:]]), "nianlun.jsonl 缺了一部分"),
    ]
    for path, data, why in torn:
        put(**{path: data})
        with pytest.raises(ImportFileError, match=why) as refused:
            await look_into_any(nianlun, vault, ImportOptions(targets=(target(other.full),)))
        assert "\n" not in str(refused.value)
    put(**{"nianlun.jsonl": mark[0] + b"{\n" + b"".join(mark[2:])})
    assert (await bring(vault, chat)).left_out == 1
    pages: dict[str, bytes | None] = {one: None for one in whole if one.endswith(".md")}
    assert pages
    put(**pages)
    report = await bring(vault, other)
    assert (report.left_out, report.chats[0].notes, report.new) == (len(pages), 0, len(said))
    assert {one.reason.partition("：")[0] for one in report.unreadable} == pages.keys()
    assert all(
        "整页都没有了，没有读入；这里原有的记忆不会" in one.reason for one in report.unreadable
    )
    put()
    (page,) = [page for page in pages if b"\n## " in whole[page]]
    begins = whole[page].index(b"\n## ")
    put(**{page: whole[page][:begins]})
    told = [one.reason for one in (await bring(vault, chat)).unreadable]
    kept = "没有读入；这里原有的记忆不会因此删掉，要删请用指令"
    assert told[0] == f"{page}：和导出时比，少了 1 段，{kept}"
    check_same(await exported(chat), rows)
    # Cut in half there is no text that can be read, but the page is there.
    put(**{page: whole[page][: whole[page].index(b"<!-- nianlun")]})
    told = [one.reason for one in (await bring(vault, chat)).unreadable]
    assert f"{page}：和导出时比，少了 2 段，{kept}" in told
    assert "这里的字不在任何一段里" in repr(told)
    elsewhere = {"diary/2020-01-01.md": whole[page][begins:], "diary/copy.md": whole[page]}
    for path, data in elsewhere.items():
        put(**{page: whole[page][:begins], path: data})
        assert not any("少了" in one.reason for one in (await bring(vault, chat)).unreadable)
        (vault / path).unlink()
    put()
    await check_moves(vault, ChatKey(ACCOUNT, "group", "10"), rows)


async def test_a_gap_within_a_known_one_is_known(tmp_path: Path, database_file: Path) -> None:
    chat, file = ChatKey(ACCOUNT, "group", "123"), tmp_path / "whole.jsonl"
    await Builder(chat, database_file).live([Said("gap", 0, "", "", 9000, 0)])
    await write_json_lines(file, lines(chat, "Asia/Shanghai", NOW))
    (gap,) = [row for row in await exported(chat) if row["type"] == "gap"]
    chat_id = await chats.find(chat)
    assert chat_id is not None
    begins, ends = (datetime.fromisoformat(gap[key]) for key in ("from", "to"))
    wider = begins - timedelta(seconds=1), ends + timedelta(seconds=19)
    await gaps.note({chat_id: wider})
    await check_nothing_new(file, chat, await exported(chat))
    assert await gaps.newest(chat_id) == wider
    await write_json_lines(tmp_path / "wider.jsonl", lines(chat, "Asia/Shanghai", NOW))
    other = ChatKey(ACCOUNT, "group", "9")
    for path in (file, tmp_path / "wider.jsonl"):
        await bring(path, other)
    check_same((await exported(other))[1:], (await exported(chat))[1:])


async def test_what_was_deleted_leaves_no_page(tmp_path: Path, database_file: Path) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    events = [Said("say", 1, f"第{number}句", "阿澈", 60, 1) for number in range(9)]
    await Builder(chat, database_file).live(events)
    await nianlun.jobs.tidy([chat])
    await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    assert any(vault.glob("diary/*.md"))
    chat_id = await chats.find(chat)
    assert chat_id is not None
    (number,) = {row["id"] for row in await exported(chat) if row["type"] == "activity"}
    assert (await deleting.delete(chat_id, [], [number], NOW)).activities == (number,)
    await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    assert not any(vault.glob("*/*.md"))
    await check_moves(vault, ChatKey(ACCOUNT, "group", "10"), await exported(chat))


async def test_what_was_edited_wrongly_is_told_by_file_and_line(
    tmp_path: Path, database_file: Path
) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    await Builder(chat, database_file).live([])
    await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
    (vault / "wiki").mkdir()
    (vault / "wiki" / "自己写的.md").write_text("# 题\n\n话\n", "utf-8")
    (messages,) = vault.glob("messages/*.jsonl")
    messages.write_text(messages.read_text("utf-8") + "{坏\n", "utf-8")
    report = await bring(vault, ChatKey(ACCOUNT, "group", "9"))
    told = {(one.line, one.reason.partition("：")[0]) for one in report.unreadable}
    assert told == {(1, "wiki/自己写的.md"), (2, f"messages/{messages.name}")}


async def test_pages_that_do_not_fit_into_the_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault, "LARGEST_PAGES", 50)
    with ZipFile(tmp_path / "vault.zip", "w") as archive:
        archive.writestr("nianlun.jsonl", "{}")
        archive.writestr("wiki/a.md", "长" * 30)
    with pytest.raises(ImportFileError, match="太多"):
        await import_any(nianlun, tmp_path / "vault.zip", ImportOptions(), lambda _: None)
