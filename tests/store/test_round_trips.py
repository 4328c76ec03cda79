"""Whatever a chat holds, hostile names and texts included, goes out and comes back the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
import errno
from itertools import count, zip_longest
import json
import os
from pathlib import Path
import shutil
import time
from typing import Any
from zipfile import ZipFile

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.cleaning import clean_name, clean_text
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.capture.segments import to_segments
from plugins.nonebot_plugin_nianlun.errors import ImportFileError, NianlunError, NotRecorded
from plugins.nonebot_plugin_nianlun.exports import write_vault, write_zip
from plugins.nonebot_plugin_nianlun.imports import vault
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.report import ImportReport
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions
from plugins.nonebot_plugin_nianlun.imports.vault import import_any
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.memory.keymarks import strip_key_marks
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    diary,
    exclusions,
    facts,
    forgetting,
    gaps,
    leftovers,
    notes,
    recording,
    usage,
)
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import Chat, Fact, Memory, Message
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Incoming, Usage, Withdrawal
from tests.support.product_store import ProductStore

BEGINS = datetime(2025, 12, 29, 9, 0, tzinfo=UTC)
NOW = datetime(2026, 2, 3, 9, 0, tzinfo=UTC)
ACCOUNT, OTHER_ACCOUNT = "10001", "10009"
PEOPLE = ["20001", "20002", "20003"]

Json = dict[str, Any]

STRUCTURE = [
    "## 23:59",
    "---",
    "[[wiki/喜好|喜好:咖啡]]",
    "[[preferences:tea]]",
    "<!-- nianlun: {} -->",
    "-->",
    "```",
    "\\",
    "\\## 1",
    "&#10;",
    "\u2028",
    "\r\n",
    "\n\n",
    '"}',
    "\u202e",
    "\ufeff",
    "關鍵消息：[1]",
    "（关键消息：[1,2]）",
    '小明" speaker="me',
    "{0}",
    "%%",
    "| a |",
    "    ",
    "> ",
    "1. ",
    "\x0b\x1c\x85",
]
PIECES = st.one_of(
    st.sampled_from(STRUCTURE),
    st.text(max_size=12),
    st.sampled_from(["明天去上海", "吃火锅", "！"]),
)
TEXTS = st.lists(PIECES, min_size=1, max_size=4).map("".join).map(clean_text)
NAMES = st.one_of(st.sampled_from(["小鹿", '小明" speaker="me', "## 9:00"]), TEXTS)


@dataclass(frozen=True)
class Said:
    """One thing that happens in the chat."""

    what: str
    who: int
    text: str
    name: str
    step: int
    """Seconds since what happened before."""
    pick: int
    """Chooses among what there is."""


STEPS = st.one_of(
    st.integers(0, 3), st.integers(0, 3), st.integers(60, 4000), st.sampled_from([86_400, 200_000])
)
EVENTS = st.lists(
    st.builds(
        Said,
        st.sampled_from(
            ["say"] * 10
            + ["answer", "nameless", "withdraw", "tidy", "tidy", "fact", "fact", "drop", "note"]
            + ["moment", "opt_out", "opt_in", "forget", "gap", "usage", "again", "edit", "command"]
        ),
        st.integers(0, len(PEOPLE) - 1),
        TEXTS,
        NAMES,
        STEPS,
        st.integers(0, 1000),
    ),
    min_size=20,
    max_size=45,
)


class Builder:
    """Lives through the events as the product would."""

    def __init__(self, chat: ChatKey) -> None:
        self.chat = chat
        self.at = BEGINS
        self.ids: list[tuple[str, str]] = []
        self.number = count(1)

    async def live(self, events: list[Said]) -> None:
        first = Said("say", 0, "在吗", "小鹿", 0, 0)
        for event in [first, *events]:
            self.at = min(self.at + timedelta(seconds=event.step), NOW)
            await getattr(self, f"_{event.what}")(event)

    async def _chat_id(self) -> int:
        chat_id = await chats.find(self.chat)
        assert chat_id is not None
        return chat_id

    async def _record(self, event: Said, user_id: str, **values: Any) -> None:
        segments = to_segments([{"type": "text", "data": {"text": event.text}}])
        name = clean_name(event.name) or user_id
        message = Incoming(self.chat, self.at, user_id, name, segments, **values)
        await recording.record([message], readable, "小忆", self.at)

    def _new_id(self, user_id: str) -> str:
        self.ids.append((str(-next(self.number)), user_id))
        return self.ids[-1][0]

    async def _say(self, event: Said) -> None:
        user_id = PEOPLE[event.who]
        reply = self.ids[event.pick % len(self.ids)][0] if self.ids and event.pick % 3 else None
        await self._record(
            event,
            user_id,
            source="event",
            message_id=self._new_id(user_id),
            order=event.pick if event.pick % 2 else None,
            reply_to_id=reply if event.pick % 7 else "404",
            chat_name=clean_name(event.name) or None,
        )

    async def _answer(self, event: Said) -> None:
        has_id = event.pick % 2 == 0
        await self._record(
            event,
            ME,
            source="sent",
            message_id=self._new_id(ME) if has_id else None,
            via="nianlun" if event.pick % 3 else "other",
            delivery="ok" if has_id else "unknown",
        )

    async def _nameless(self, event: Said) -> None:
        await self._record(event, PEOPLE[event.who], source="history")

    async def _command(self, event: Said) -> None:
        user_id = PEOPLE[event.who]
        await self._record(
            event, user_id, source="event", message_id=self._new_id(user_id), skipped="command"
        )

    async def _withdraw(self, event: Said) -> None:
        message_id, user_id = self.ids[event.pick % len(self.ids)]
        whose = user_id if event.pick % 2 else None
        notice = Withdrawal(self.chat, message_id, whose, self.at)
        await recording.record([notice], readable, "小忆", self.at)

    async def _tidy(self, event: Said) -> None:
        await nianlun.jobs.tidy([self.chat])

    async def _again(self, event: Said) -> None:
        await notes.ask_again(await self._chat_id())

    async def _fact(self, event: Said) -> None:
        chat_id = await self._chat_id()
        item = FactItem(
            "preferences", f"n{event.pick % 2}", event.text, "2026-03-01", bool(event.who)
        )
        chat = await Chat.get(id=chat_id)
        source = event.pick % chat.last_seq + 1 if event.pick % 4 else None
        owner = [*PEOPLE, ME, ""][event.pick % 5]
        try:
            await facts.remember(chat_id, owner, [item], source, self.at)
        except NotRecorded:
            return

    async def _drop(self, event: Said) -> None:
        chat_id = await self._chat_id()
        await facts.remove(chat_id, PEOPLE[event.who], "preferences", "n0", self.at)

    async def _note(self, event: Said) -> None:
        chat_id = await self._chat_id()
        text = f"{event.text}{next(self.number)}"
        await Fact.create(
            chat_id=chat_id, category=event.name[:80], text=text, created_at=self.at,
            written_at=self.at, event_date="2026-01-05" if event.pick % 2 else None,
        )  # fmt: skip

    async def _moment(self, event: Said) -> None:
        chat = await Chat.get(id=await self._chat_id())
        seq = event.pick % chat.last_seq + 1
        said = Message.filter(chat_id=chat.id, seq__gte=seq, withdrawn_at=None).order_by("seq")
        # A turn is about what was said in it.
        said = said.filter(time__gte=self.at - timedelta(days=1))
        stands = tuple([row.seq for row in await said.exclude(skipped="opted_out")])
        moment = diary.Moment(
            f"想起{strip_key_marks(event.text)}",
            nianlun.calendar.day_of(self.at).isoformat(), self.at, "tool",
            owner=PEOPLE[event.who] if event.pick % 2 else None,
            source_conv=event.name if event.pick % 3 else None,
            seen=stands[:1] if event.pick % 5 else (),
        )  # fmt: skip
        try:
            await diary.append(chat.id, [moment, moment] if event.pick % 4 else [moment], self.at)
        except NotRecorded:
            return

    async def _opt_out(self, event: Said) -> None:
        await exclusions.opt_out(await self._chat_id(), PEOPLE[event.who], self.at, self.at)

    async def _opt_in(self, event: Said) -> None:
        await exclusions.opt_in(await self._chat_id(), PEOPLE[event.who], self.at)

    async def _forget(self, event: Said) -> None:
        await forgetting.forget(await self._chat_id(), PEOPLE[event.who], self.at)

    async def _gap(self, event: Said) -> None:
        await gaps.note({await self._chat_id(): (self.at - timedelta(hours=1), self.at)})

    async def _usage(self, event: Said) -> None:
        chat_id, cost = await self._chat_id(), Usage(event.pick, 1, 2)
        await usage.count(chat_id, "2026-01-05", "notes", event.name[:128], cost, ok=True)

    async def _edit(self, event: Said) -> None:
        chat_id = await self._chat_id()
        await (
            Memory.filter(chat_id=chat_id, kind="day", stale=False)
            .exclude(text="")
            .update(writer="10000", usage='{"prompt": 1, "cached": 0, "completion": 2}')
        )
        await Chat.filter(id=chat_id).update(
            muted=event.pick % 2 == 0,
            paused=False,
            persona=event.name,
            daily_token_limit=event.pick,
            members_read=event.who == 0 or None,
        )


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
SLOW = settings(
    phases=[Phase.reuse, Phase.generate],  # looking for a smaller chat takes minutes
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SLOW
@given(kind=KINDS, events=EVENTS)
def test_json_lines(
    kind: Any,
    events: list[Said],
    in_fresh_databases: Callable[..., None],
    prepared_database: Path,
) -> None:
    chat = ChatKey(ACCOUNT, kind, PEOPLE[0] if kind == "private" else "123")
    other = ChatKey(OTHER_ACCOUNT, kind, "30007")

    async def work(folder: Path) -> None:
        await Builder(chat).live(events)
        rows = await exported(chat)
        file = folder / "whole.jsonl"
        file.write_text(written(rows), "utf-8")
        report = await bring(file, other)
        assert report.unreadable == []
        moved = await exported(other)
        check_same(moved[1:], rows[1:])
        assert {**moved[0], "chat": "", "self_id": ""} == {**rows[0], "chat": "", "self_id": ""}
        await closed()
        await opened(prepared_database, folder / "second.db")
        await bring(file)
        check_same(await exported(chat), rows)
        # Once more adds nothing.
        await bring(file)
        check_same(await exported(chat), rows)

    in_fresh_databases(work)


@SLOW
@given(kind=KINDS, events=EVENTS)
def test_markdown(
    kind: Any,
    events: list[Said],
    in_fresh_databases: Callable[..., None],
    prepared_database: Path,
) -> None:
    chat = ChatKey(ACCOUNT, kind, PEOPLE[0] if kind == "private" else "123")
    other = ChatKey(OTHER_ACCOUNT, kind, "30007")

    async def work(folder: Path) -> None:
        await Builder(chat).live(events)
        rows = await exported(chat)
        vault, packed = folder / "vault", folder / "vault.zip"
        await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
        await write_zip(packed, lines(chat, "Asia/Shanghai", NOW))
        report = await bring(vault, other)
        assert report.unreadable == []
        check_same((await exported(other))[1:], rows[1:])
        before = read_files(vault)
        await write_vault(vault, lines(chat, "Asia/Shanghai", NOW))
        assert read_files(vault) == before
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


@pytest.mark.usefixtures("database_file")
async def test_a_folder_leads_nowhere_else(tmp_path: Path) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    await Builder(chat).live(
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


@pytest.mark.usefixtures("database_file")
async def test_what_somebody_wrote_into_a_folder_is_never_lost(tmp_path: Path) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    await Builder(chat).live([])

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


@pytest.mark.usefixtures("database_file")
async def test_a_folder_that_was_not_finished_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    await Builder(chat).live([])

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


@pytest.mark.usefixtures("database_file")
async def test_what_was_edited_wrongly_is_told_by_file_and_line(tmp_path: Path) -> None:
    chat, vault = ChatKey(ACCOUNT, "group", "123"), tmp_path / "vault"
    await Builder(chat).live([])
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
