"""Whoever was forgotten or opted out does not come back through an old file."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.exports import write_json_lines
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    facts,
    forgetting,
    leaving_out,
    pauses,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.importing import Importer
from plugins.nonebot_plugin_nianlun.store.matching import Line
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.store.models import Speaker, SpeakerName
from plugins.nonebot_plugin_nianlun.store.records import FactText, KnownFact
from plugins.nonebot_plugin_nianlun.store.restoring import Restorer
from plugins.nonebot_plugin_nianlun.types import ME, ChatKey, Incoming

NOON = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
GROUP = ChatKey("10001", "group", "123")
SHE = "20001"

pytestmark = pytest.mark.usefixtures("database_file")


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


def said(
    words: str, second: int, message_id: str | None, name: str, by: str = SHE, *, live: bool = False
) -> Incoming:
    segments = [{"type": "text", "data": {"text": words}}]
    source = "event" if live else "import"
    return Incoming(GROUP, at(second), by, name, segments, source, message_id=message_id)


async def everything() -> str:
    return repr([vars(row) for model in (Row, SpeakerName, Speaker) for row in await model.all()])


@pytest.mark.parametrize("numbered", [True, False])
async def test_old_files_bring_nothing_back(numbered: bool) -> None:
    chat_id = (await chats.ensure([GROUP], NOON))[GROUP]
    now = said("现在说", 100, "x", "新名", live=True)
    await recording.record([now], readable, "小忆", NOON)
    await forgetting.forget(chat_id, SHE, at(120))
    await exclusions.opt_out(chat_id, SHE, at(200), NOON)

    def old(words: str, second: int, name: str, by: str = SHE) -> Line:
        return Line(said(words, second, str(second) if numbered else None, name, by))

    secret = [old(f"秘密{n}", n, "秘密名") for n in (1, 2, 110, 210)]
    others = [old("忘记之后、退出之前", 150, "中间名"), old("别人说的", 3, "小鹿", "20009")]
    counts = []
    for _ in range(2):
        importer = Importer(chat_id, readable, "小忆")
        stored = await importer.store([*secret, *others])
        await importer.finish()
        counts.append(stored.new)
        kept = await everything()
        assert "秘密" not in kept
        assert "忘记之后、退出之前" in kept
        assert "别人说的" in kept
    assert counts == [6, 0]


@pytest.mark.parametrize("noted", [True, False])
async def test_a_stretch_of_a_private_chat_has_lines_of_whom_only_the_name_is_known(
    noted: bool,
) -> None:
    private = ChatKey("10001", "private", SHE)
    chat_id = (await chats.ensure([private], NOON))[private]

    def old(words: str, second: int, by: str = "name:旧名", name: str = "旧名") -> Line:
        message = replace(said(words, second, None, name, by), chat=private)
        return Line(message, nameless=by != ME)

    file = [old("之前", 1), old("秘密一", 5), old("秘密二", 5), old("回答", 6, ME, "小忆")]

    async def import_() -> int:
        importer = Importer(chat_id, readable, "小忆")
        stored = await importer.store(file)
        await importer.finish()
        return stored.new

    assert await import_() == 4
    if noted:
        await nianlun.jobs.tidy([private])
    assert await leaving_out.leave_out(chat_id, "20009", at(4), at(7), at(600)) == 0
    assert await leaving_out.leave_out(chat_id, SHE, at(4), at(7), at(600)) == 2
    kept = [(row.user_id, row.text) for row in await Row.all().order_by("seq")]
    assert kept == [("name:旧名", "之前"), (SHE, ""), (SHE, ""), (ME, "回答")]
    assert "秘密" not in await everything()
    before = [row async for row in lines(private, "Asia/Shanghai", at(600))]
    assert await import_() == 0
    assert [row async for row in lines(private, "Asia/Shanghai", at(600))] == before


async def test_of_a_fact_only_what_it_said_since_comes_back() -> None:
    chat_id = (await chats.ensure([GROUP], NOON))[GROUP]
    await forgetting.forget(chat_id, SHE, at(100))
    restorer = Restorer(Importer(chat_id, readable, "小忆"), nianlun.calendar, at(600))
    said_since = FactText("拿铁", at(300), writer="20009")
    journal = FactText("秘密", at(50)), FactText("美式", at(200))
    fact = KnownFact(SHE, "偏好", "咖啡", said_since, journal)
    assert await restorer.store([fact]) == []
    ((row, earlier),) = await facts.everything(chat_id)
    assert (row.text, [old.text for old in earlier]) == ("拿铁", ["美式"])


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize(
    ("what", "shown"),
    [("opt_out", True), ("leave_out", True), ("leave_out", False), ("pause", True)],
)
async def test_a_newer_file_tells_what_is_not_recorded_any_more(
    noted: bool, what: str, shown: bool, tmp_path: Path
) -> None:
    there = ChatKey("10001", "group", "124")
    file = tmp_path / "chat.jsonl"

    async def carry() -> str:
        await write_json_lines(file, lines(GROUP, "Asia/Shanghai", at(600)))
        options = ImportOptions(targets=(target(there.full),))
        assert (await import_file(nianlun, file, options)).left_out == 0
        return repr([row async for row in lines(there, "Asia/Shanghai", at(600))])

    talk = [said(f"别人说的{n}", n, str(n), "小鹿", "20009", live=True) for n in range(9)]
    secret = said("秘密", 5, "x", "她", live=True)
    if not shown:
        # Buttons are no part of the text, and have words all the same.
        secret = replace(secret, segments=[{"type": "keyboard", "data": {"words": "秘密"}}])
    await recording.record([*talk, secret], readable, "小忆", NOON)
    assert "秘密" in await carry()
    if noted:
        await nianlun.jobs.tidy([there])
    chat_id = (await chats.ensure([GROUP], NOON))[GROUP]
    if what == "pause":
        await pauses.pause(chat_id, NOON - timedelta(seconds=1), at(600))
    elif what == "opt_out":
        await exclusions.opt_out(chat_id, SHE, at(600), at(600))
    else:
        await leaving_out.leave_out(chat_id, SHE, at(4), at(7), at(600))
    told = await carry()
    # It was not paused there, and somebody may have paused here for that reason.
    assert ("秘密" in told) == (what == "pause")
    assert "别人说的8" in told
    for one in await Row.filter(skipped__in=exclusions.UNRECORDED):
        assert (one.text, one.segments) == ("", "[]")
    assert await carry() == told
