"""A vault that somebody edited: what is still as it was exported becomes what they wrote."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
import re
from typing import Any

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.commands.carrying import summary
from plugins.nonebot_plugin_nianlun.exports import write_vault
from plugins.nonebot_plugin_nianlun.imports import follow_up
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.report import ImportReport, describe
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions
from plugins.nonebot_plugin_nianlun.imports.vault import import_any, look_into_any
from plugins.nonebot_plugin_nianlun.memory.duplicates import same_key
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    deleting,
    diary,
    editing,
    exclusions,
    facts,
    forgetting,
    invariants,
    notes,
    provenance,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import Activity, Chat, Fact, Memory, Message
from plugins.nonebot_plugin_nianlun.store.restored_edits import MOVED_ON
from plugins.nonebot_plugin_nianlun.types import COMMAND_LINE, ChatKey, Incoming
from plugins.nonebot_plugin_nianlun.types import Fact as NewFact
from tests.store.test_restoring import GROUP, NOW, OTHER, exported, of, talk, withdraw, write

pytestmark = pytest.mark.usefixtures("database_file")

EDITOR = "30003"
MOVED = ChatKey("10001", "group", "125")
Json = dict[str, Any]


async def bring(vault: Path, chat: ChatKey = GROUP, editor: str = EDITOR) -> ImportReport:
    options = ImportOptions(targets=(target(chat.full),), editor=editor)
    return await import_any(nianlun, vault, options, lambda _: None)


def rewrite(vault: Path, old: str, new: str) -> str:
    """Change a text in the one page that has it; returns the name of that."""
    (page,) = [path for path in vault.glob("*/*.md") if f"\n{old}\n" in path.read_text("utf-8")]
    page.write_text(page.read_text("utf-8").replace(f"\n{old}\n", f"\n{new}\n", 1), "utf-8")
    return page.relative_to(vault).as_posix()


def one_edit(vault: Path, old: str, new: str) -> str:
    """The same, and returns the new text."""
    rewrite(vault, old, new)
    return new


def newest(rows: list[Json], kind: str) -> Json:
    return [row for row in of(rows, kind) if row["text"] and row.get("origin") != "tool"][-1]


async def a_vault(folder: Path) -> tuple[Path, list[Json]]:
    """A chat with a little of everything, exported."""
    await talk(days=16)
    await nianlun.jobs.tidy([GROUP])
    chat = await Chat.get(peer_id=GROUP.peer_id)
    for content, at in (("美式", NOW - timedelta(days=2)), ("拿铁", NOW)):
        await facts.store(chat.id, [NewFact("preferences", "coffee", content, 3)], at)
    await Fact.create(
        chat_id=chat.id, category="note", text="没有名字", note_key=same_key("没有名字"),
        created_at=NOW, written_at=NOW,
    )  # fmt: skip
    moment = diary.Moment("想起一件事", nianlun.calendar.day_of(NOW).isoformat(), NOW, "tool")
    await diary.append(chat.id, [moment], NOW)
    rows = await exported()
    await write_vault(folder / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    return folder / "vault", rows


async def sound(path: Path) -> None:
    for row in await chats.everyone():
        found = await invariants.check(path, row.id, nianlun.calendar, nianlun.clock.now())
        assert found.findings == ()


async def test_edits_become_new_versions_of_whoever_imports(
    database_file: Path, tmp_path: Path
) -> None:
    vault, rows = await a_vault(tmp_path)
    day, month, activity = (newest(rows, kind) for kind in ("day", "month", "activity"))
    moment = next(row for row in of(rows, "activity") if row["origin"] == "tool")
    coffee = next(row for row in of(rows, "fact") if row["name"] == "coffee")
    note = next(row for row in of(rows, "fact") if row["name"] is None)
    texts = {
        "day": "我和小鹿说好了一起去上海。",
        "month": "这个月小鹿总说想去上海。",
        "activity": "小鹿说她其实想去杭州。",
    }
    for row in (day, month, activity):
        rewrite(vault, row["text"], texts[row["type"]])
    rewrite(vault, "想起一件事", "想起另一件事")
    rewrite(vault, coffee["text"], "不喝咖啡了")
    rewrite(vault, note["text"], "有名字了\n## 小标题\n还有一行")
    options = ImportOptions(targets=(target(GROUP.full),))
    _, survey, _ = await look_into_any(nianlun, vault, options)
    assert survey.chats[0].edited == 6
    report = await bring(vault)
    assert report.unreadable == []
    assert (report.chats[0].edited, report.chats[0].notes, report.chats[0].new) == (6, 0, 0)
    now = await exported()
    for row in (day, month, activity):
        key = "id" if row["type"] == "activity" else "date"
        (found,) = [one for one in of(now, row["type"]) if one[key] == row[key]]
        assert (found["text"], found["writer"]) == (texts[row["type"]], EDITOR)
        assert found["version"] == row["version"] + 1
        assert found["versions"][-1]["text"] == row["text"]
        assert not found["merged"]
    (found,) = [one for one in of(now, "activity") if one["id"] == moment["id"]]
    assert (found["text"], found["writer"]) == ("想起另一件事", EDITOR)
    (found,) = [one for one in of(now, "fact") if one["name"] == "coffee"]
    assert found["text"] == "不喝咖啡了"
    assert [old["text"] for old in found["journal"]] == ["美式", "拿铁"]
    assert (found["source"], found["writer"]) == (coffee["source"], EDITOR)
    assert all("writer" not in old for old in found["journal"])
    (found,) = [one for one in of(now, "fact") if one["name"] is None]
    assert found["text"] == "有名字了\n## 小标题\n还有一行"
    changed = [row for row in now if row not in rows]
    assert len(changed) == 6
    await sound(database_file)
    # Once more, and on another system, it is all known.
    for page in vault.glob("*/*.md"):
        page.write_bytes(b"\xef\xbb\xbf" + page.read_bytes().replace(b"\n", b"\r\n"))
    report = await bring(vault)
    assert (report.chats[0].edited, report.unreadable) == (0, [])
    assert await exported() == now
    # What later sources bring is added to it, not written over it.
    await nianlun.jobs.tidy([GROUP])
    (found,) = await Memory.filter(kind="month", period=month["date"])
    assert texts["month"] in found.text
    assert found.writer == EDITOR


async def test_whose_edit_a_fact_is_stays_known_and_goes_with_them(tmp_path: Path) -> None:
    vault, _ = await a_vault(tmp_path)
    rewrite(vault, "拿铁", "不喝咖啡了")
    for chat in (GROUP, OTHER):
        await bring(vault, chat)
        (told,) = await provenance.facts_why(await id_of(chat), "preferences", "coffee")
        assert (told.text, told.writer) == ("不喝咖啡了", EDITOR)
    await write_vault(tmp_path / "again", lines(GROUP, "Asia/Shanghai", NOW))
    await bring(tmp_path / "again", MOVED)
    assert of(await exported(MOVED), "fact") == of(await exported(), "fact")
    # Told anew, it is nobody's edit any more; and theirs goes when they are forgotten.
    item = [FactItem("preferences", "coffee", "又喝了")]
    (owner,) = {one["owner"] for one in of(await exported(), "fact") if one["name"] == "coffee"}
    await facts.remember(await id_of(GROUP), owner, item, None, nianlun.clock.now())
    for chat, text in ((GROUP, "又喝了"), (MOVED, "拿铁")):
        await forgetting.forget(await id_of(chat), EDITOR, nianlun.clock.now())
        (told,) = await provenance.facts_why(await id_of(chat), "preferences", "coffee")
        assert (told.text, told.writer) == (text, None)
        assert "不喝咖啡了" not in str(of(await exported(chat), "fact"))
    # A file may have been made by other hands, and these two edit nothing.
    rows = await exported()
    (fact,) = [row for row in of(rows, "fact") if row["name"] == "coffee"]
    fact.update(owner="20009", writer="model")
    fact["journal"][0]["writer"] = "offline"
    await bring(write(tmp_path / "odd.jsonl", rows))
    (again,) = [row for row in of(await exported(), "fact") if row["owner"] == "20009"]
    assert [old.get("writer") for old in (*again["journal"], again)] == [None] * 4
    assert again["text"] == "又喝了"


async def test_what_a_forgotten_editor_wrote_stays_away(
    database_file: Path, tmp_path: Path
) -> None:
    vault, rows = await a_vault(tmp_path)
    day, month, activity = (newest(rows, kind) for kind in ("day", "month", "activity"))
    for number, text in enumerate((day["text"], month["text"], activity["text"], "想起一件事")):
        rewrite(vault, text, f"暗号{number}。")
    rewrite(vault, "拿铁", "暗号4")
    assert (await bring(vault)).chats[0].edited == 5
    here, now = await id_of(GROUP), nianlun.clock.now()
    # From here on that of the month is an earlier text, and in the later file that of the fact.
    await editing.edit(here, "month", month["date"], "别人写的。", "30004", now)
    file = write(tmp_path / "chat.jsonl", await exported())
    (whose,) = {row["owner"] for row in of(rows, "fact") if row["name"] == "coffee"}
    await facts.remember(here, whose, [FactItem("preferences", "coffee", "又喝了")], None, now)
    later = write(tmp_path / "later.jsonl", await exported())
    await chats.ensure([OTHER, MOVED], now)
    await exclusions.opt_out(await id_of(MOVED), EDITOR, now - timedelta(days=1), now)
    await bring(file, MOVED, "30005")
    # Who opted out may correct what others said, and it stays.
    found = repr(await exported(MOVED))
    assert [number for number in range(5) if f"暗号{number}" in found] == [0, 1, 2, 3, 4]
    for chat in (GROUP, OTHER):
        await forgetting.forget(await id_of(chat), EDITOR, now)
        for one, coffee in ((file, "拿铁"), (later, "又喝了")):
            await bring(one, chat, "30005")
            assert "暗号" not in repr(await exported(chat))
            (fact,) = [row for row in of(await exported(chat), "fact") if row["name"] == "coffee"]
            told = [old["text"] for old in (*fact["journal"], fact)]
            assert (told[0], coffee in told) == ("美式", True)
        await nianlun.jobs.tidy([chat], offline=True)
        again = now + timedelta(minutes=1)
        await editing.edit(await id_of(chat), "day", day["date"], "暗号又来了。", EDITOR, again)
    await bring(write(file, await exported(OTHER)), GROUP, "30005")
    for chat in (GROUP, OTHER):
        assert newest(await exported(chat), "day")["text"] == "暗号又来了。"
    await sound(database_file)


async def id_of(chat: ChatKey) -> int:
    found = await chats.find(chat)
    assert found is not None
    return found


async def test_what_is_owed_after_an_edit_is_told_and_estimated(
    database_file: Path, tmp_path: Path
) -> None:
    _, rows = await a_vault(tmp_path)
    days = [row["date"] for row in of(rows, "day")]
    for number, edited in enumerate(([("day", days[0])], [("activity", days[1])], [])):
        vault, rows = tmp_path / str(number), await exported()
        await write_vault(vault, lines(GROUP, "Asia/Shanghai", NOW))
        for kind, date in edited:
            old = next(row["text"] for row in of(rows, kind) if row["date"] == date)
            rewrite(vault, old, f"我写的{number}{kind}。")
        if not edited:
            activity = next(row for row in of(rows, "activity") if row["date"] == days[3])
            said = next(row for row in of(rows, "message") if row["seq"] == activity["from_seq"])
            await withdraw(said["message_id"])
        report = await bring(vault)
        told = list(describe(report, nianlun.calendar))[-1]
        waiting = follow_up.imported(report)
        estimate = await follow_up.estimated(nianlun, waiting)
        done = (await nianlun.jobs.tidy(waiting, offline=True))[GROUP]
        written = done.activities + done.memories
        assert f"还有 {written} 篇记忆要更新：运行 bot.py rollup" in told
        assert written >= 1 <= estimate.calls <= written
        assert estimate.prompt > 0
        report = await bring(vault)
        assert list(describe(report, nianlun.calendar))[-1] == "没有欠着的整理。"
        assert follow_up.imported(report) == []
    await sound(database_file)


async def test_what_has_gone_on_since_stays_and_is_told(
    database_file: Path, tmp_path: Path
) -> None:
    vault, rows = await a_vault(tmp_path)
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    day = newest(rows, "day")
    # Of another day: one that loses an activity is being written anew.
    activity = [row for row in of(rows, "activity") if row["date"] < day["date"]][-1]
    coffee = next(row for row in of(rows, "fact") if row["name"] == "coffee")
    pages = [
        rewrite(vault, day["text"], "我写的一天。"),
        rewrite(vault, activity["text"], "我写的一段。"),
        rewrite(vault, coffee["text"], "我写的口味"),
    ]
    later = NOW + timedelta(minutes=5)
    await editing.edit(chat_id, "day", day["date"], "后来改成了这样。", "20001", later)
    await deleting.delete(chat_id, [], [activity["id"]], later)
    await facts.remember(
        chat_id, coffee["owner"], [FactItem("preferences", "coffee", "后来的口味")], None, later
    )
    now = await exported()
    report = await bring(vault)
    assert await exported() == now
    assert (report.chats[0].edited, report.left_out) == (0, 3)
    told = {one.reason.partition("：")[0]: one.reason for one in report.unreadable}
    assert set(told) == set(pages)
    assert f"{day['date']} 导出以后又写过" in repr(report.unreadable)
    assert "已经删掉了" in repr(report.unreadable)
    assert "preferences:coffee 导出以后又写过" in repr(report.unreadable)
    await facts.remove(chat_id, coffee["owner"], "preferences", "coffee", later)
    assert "已经忘掉了" in repr((await bring(vault)).unreadable)
    await sound(database_file)


async def test_a_vault_may_be_edited_and_imported_again(tmp_path: Path) -> None:
    vault, rows = await a_vault(tmp_path)
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    day = newest(rows, "day")
    rewrite(vault, day["text"], "第一次改。")
    await bring(vault)
    rewrite(vault, "第一次改。", "第二次改。")
    assert (await bring(vault)).chats[0].edited == 1
    assert newest(await exported(), "day")["text"] == "第二次改。"
    await editing.edit(chat_id, "day", day["date"], "在群里改的。", EDITOR, nianlun.clock.now())
    # It was taken before, so it is no new edit.
    assert (await bring(vault)).left_out == 0
    assert newest(await exported(), "day")["text"] == "在群里改的。"
    rewrite(vault, "第二次改。", "第三次改。")
    report = await bring(vault, editor="20009")
    assert (report.chats[0].edited, report.left_out) == (0, 1)


async def test_into_another_chat_it_is_the_editors_too(database_file: Path, tmp_path: Path) -> None:
    vault, rows = await a_vault(tmp_path)
    day, coffee = newest(rows, "day"), of(rows, "fact")[-1]
    rewrite(vault, day["text"], "我写的一天。")
    rewrite(vault, coffee["text"], "我写的口味")
    report = await bring(vault, OTHER, COMMAND_LINE)
    assert (report.chats[0].edited, report.unreadable) == (2, [])
    moved = await exported(OTHER)
    found = newest(moved, "day")
    assert (found["text"], found["writer"]) == ("我写的一天。", COMMAND_LINE)
    assert found["version"] == day["version"] + 1
    assert "我写的口味" in {row["text"] for row in of(moved, "fact")}
    assert (await bring(vault, OTHER, COMMAND_LINE)).chats[0].edited == 0
    assert await exported(OTHER) == moved
    await sound(database_file)


async def test_what_no_note_may_be_is_told(tmp_path: Path) -> None:
    vault, rows = await a_vault(tmp_path)
    text = newest(rows, "day")["text"]
    for new, why in (
        ("字" * 501, "上限是 500"),
        ("前面的话。\n\n## 小标题\n\n后面的话。", "标题"),
        ("见（#99999）。", "引用的 #99999 不在"),
        ("", "正文空了"),
    ):
        rewrite(vault, text, new)
        text = new
        report = await bring(vault)
        assert [why in one.reason for one in report.unreadable] == [True]
    assert await exported() == rows


async def test_nothing_is_written_about_those_who_are_not_recorded(tmp_path: Path) -> None:
    vault, rows = await a_vault(tmp_path)
    coffee = next(row for row in of(rows, "fact") if row["name"] == "coffee")
    rewrite(vault, coffee["text"], "我写的口味")
    chat_id = (await Chat.get(peer_id=GROUP.peer_id)).id
    await exclusions.opt_out(chat_id, coffee["owner"], NOW, NOW)
    report = await bring(vault)
    assert "不希望被记录" in report.unreadable[0].reason
    assert await Fact.filter(text="我写的口味").count() == 0


async def test_an_edit_brings_nothing_back_that_was_taken_back(
    database_file: Path, tmp_path: Path
) -> None:
    vault, rows = await a_vault(tmp_path)
    day = newest(rows, "day")
    activity = [row for row in of(rows, "activity") if row["date"] == day["date"]][-1]
    coffee = next(row for row in of(rows, "fact") if row["name"] == "coffee")
    gone = [row for row in of(rows, "message") if row["seq"] in (3, activity["to_seq"])]
    for row, text in ((activity, "那句话我记在这里"), (day, "那句话"), (coffee, "那句话")):
        rewrite(vault, row["text"], f"{text}：{gone[-1]['text']}")
    for message in gone:
        await withdraw(message["message_id"])
    for _ in range(2):
        report = await bring(vault)
        assert report.chats[0].edited == 0
        assert report.left_out == 3
        assert gone[-1]["text"] not in repr(await exported())
        await nianlun.jobs.tidy([GROUP])
    await sound(database_file)


async def test_two_moments_of_one_time_are_told_apart(tmp_path: Path) -> None:
    await a_vault(tmp_path)
    first = await Activity.get(origin="tool")
    values = {key: getattr(first, key) for key in ("chat_id", "date", "time", "writer")}
    await Activity.create(
        **values, number=first.number + 1, text="另一件", origin="tool", key_messages="[]",
        written_at=first.written_at,
    )  # fmt: skip
    await Chat.filter(id=first.chat_id).update(last_activity=first.number + 1)
    await write_vault(tmp_path / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    rewrite(tmp_path / "vault", "另一件", "另一件，改过")
    for chat in (GROUP, OTHER, OTHER):
        await bring(tmp_path / "vault", chat)
        moments = [row for row in of(await exported(chat), "activity") if row["origin"] == "tool"]
        assert [row["text"][:6] for row in moments] == ["想起一件事", "另一件，改过"]


async def test_of_two_moments_alike_the_unchanged_one_keeps_its_place(
    database_file: Path, tmp_path: Path
) -> None:
    await talk(days=1)
    await nianlun.jobs.tidy([GROUP])
    chat_id = (await Chat.get(peer_id=GROUP.peer_id)).id
    moment = diary.Moment("想起一件事", nianlun.calendar.day_of(NOW).isoformat(), NOW, "tool")
    for _ in range(2):
        await diary.append(chat_id, [moment], NOW)
    await write_vault(tmp_path / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    (page,) = [
        path
        for path in (tmp_path / "vault").glob("*/*.md")
        if "想起一件事" in path.read_text("utf-8")
    ]
    text, bad = page.read_text("utf-8"), "\n想起一件事（#888888）\n"
    page.write_text(text.replace("\n想起一件事\n", bad, 1), "utf-8")
    number = of(await exported(), "activity")[-1]["id"]
    told = []
    for _ in range(2):
        report = await bring(tmp_path / "vault", OTHER)
        told.append([one.reason for one in report.unreadable])
        moments = [row for row in of(await exported(OTHER), "activity") if row["origin"] == "tool"]
        assert [(row["id"], row["text"]) for row in moments] == [(number, "想起一件事")]
    assert told[0] == told[1]
    assert f"&{number - 1} 引用的 #888888" in told[0][0]
    await sound(database_file)
    page.write_text(text.replace("\n想起一件事\n", "\n想起一件好事\n", 1), "utf-8")
    for chat in (OTHER, GROUP):
        assert (await bring(tmp_path / "vault", chat)).chats[0].edited == 1
        moments = [row for row in of(await exported(chat), "activity") if row["origin"] == "tool"]
        assert sorted(row["text"] for row in moments) == ["想起一件事", "想起一件好事"]
    await sound(database_file)


async def test_an_edit_that_is_not_taken_is_so_in_every_chat(
    database_file: Path, tmp_path: Path
) -> None:
    await a_vault(tmp_path)
    chat_id = (await Chat.get(peer_id=GROUP.peer_id)).id
    await facts.store(chat_id, [NewFact("preferences", "tea", "红茶", 3)], NOW)
    vault, rows = tmp_path / "again", await exported()
    await write_vault(vault, lines(GROUP, "Asia/Shanghai", NOW))
    day, month, activity = (newest(rows, kind) for kind in ("day", "month", "activity"))
    coffee = next(row for row in of(rows, "fact") if row["name"] == "coffee")
    note = next(row for row in of(rows, "fact") if row["name"] is None)
    tea = next(row for row in of(rows, "fact") if row["name"] == "tea")
    away = next(row["seq"] for row in of(rows, "message") if row["seq"] < activity["from_seq"])
    edits = {
        (day["text"], f"{day['text']}（#999999）"): "引用的 #999999 不在文件里",
        (month["text"], "字" * 501): "上限是 300",
        (activity["text"], f"他说好（#{away}）"): f"不能引用 #{away}",
        ("想起一件事", "想起一件事（#888888）"): "引用的 #888888 不在文件里",
        (coffee["text"], f"{coffee['text']}（#777777）"): "引用的 #777777 不在文件里",
        (note["text"], "\u3000"): "正文空了",
        (tea["text"], "字" * 301): "preferences:tea 正文应为 1 到 300 字",
    }
    for old, new in edits:
        rewrite(vault, old, new)
    brought = 0
    for chat in (GROUP, OTHER, OTHER):
        report = await bring(vault, chat)
        assert report.chats[0].edited == 0
        brought += report.chats[0].notes
        told = [one.reason for one in report.unreadable]
        assert len(told) == report.left_out == len(edits)
        for why in edits.values():
            assert sum(why in one for one in told) == 1
    assert await exported() == rows
    assert all("文件里" in one for one in told)
    there = await exported(OTHER)
    kinds = ("activity", "day", "month", "year", "fact")
    assert brought == sum(bool(row.get("text")) for kind in kinds for row in of(there, kind))
    for kind, missing in (("day", day), ("month", month), ("activity", activity)):
        (found,) = [
            row
            for row in of(there, kind)
            if row.get("id", row["date"]) == missing.get("id", missing["date"])
        ]
        assert (found["text"], found["stale"]) == ("", True)
        assert found["versions"] == missing["versions"]
    assert not [row for row in of(there, "activity") if row["origin"] == "tool"]
    assert of(there, "fact") == []
    same = {row["date"]: row["text"] for row in of(there, "day") if row["date"] != day["date"]}
    assert same == {row["date"]: row["text"] for row in of(rows, "day") if row["date"] in same}
    await sound(database_file)
    # Once it is put right, it is taken.
    for old, new in edits:
        rewrite(vault, new, f"改好了：{'' if old == month['text'] else old}")
    report = await bring(vault, OTHER)
    assert (report.chats[0].edited, report.unreadable) == (len(edits), [])
    there = await exported(OTHER)
    assert newest(there, "day")["text"] == f"改好了：{day['text']}"
    assert {row["text"] for row in of(there, "fact")} >= {f"改好了：{coffee['text']}"}
    await sound(database_file)


async def test_what_could_not_be_taken_is_written_from_its_sources(
    database_file: Path, tmp_path: Path
) -> None:
    _, rows = await a_vault(tmp_path)
    chat_id, day = (await Chat.get(peer_id=GROUP.peer_id)).id, newest(rows, "day")
    at = of(rows, "activity")[of(rows, "activity")[-1]["id"] - 2]["time"]
    moment = diary.Moment("那天的事", day["date"], datetime.fromisoformat(at), "tool")
    await diary.append(chat_id, [moment], NOW)
    await nianlun.jobs.tidy([GROUP])
    vault, rows = tmp_path / "again", await exported()
    await write_vault(vault, lines(GROUP, "Asia/Shanghai", NOW))
    day, month = (newest(rows, kind) for kind in ("day", "month"))
    rewrite(vault, month["text"], f"{month['text']}（#999999）")
    rewrite(vault, "那天的事", "那天的事（#888888）")
    await bring(vault, OTHER)
    there = newest(await exported(OTHER), "day")
    assert there["text"] == day["text"]
    assert len(there["sources"]) == len(day["sources"]) - 1
    await sound(database_file)
    await nianlun.jobs.tidy([OTHER], offline=True)
    found = newest(await exported(OTHER), "month")
    assert found["text"]
    assert "999999" not in found["text"]
    assert found["version"] == month["version"] + 1
    report = await bring(vault, OTHER)
    assert report.left_out == 2
    assert newest(await exported(OTHER), "month") == found
    await sound(database_file)


async def test_what_was_not_taken_can_be_put_right_before_and_after_it_is_written(
    database_file: Path, tmp_path: Path
) -> None:
    _, rows = await a_vault(tmp_path)
    chat_id = (await Chat.get(peer_id=GROUP.peer_id)).id
    kinds = ("day", "month", "activity")
    refs = {kind: str(newest(rows, kind).get("id") or newest(rows, kind)["date"]) for kind in kinds}
    for kind in ("day", "activity"):
        await editing.edit(chat_id, kind, refs[kind], f"改过的{kind}。", EDITOR, NOW)
    await nianlun.jobs.tidy([GROUP], offline=True)
    vault, rows = tmp_path / "again", await exported()
    await write_vault(vault, lines(GROUP, "Asia/Shanghai", NOW))
    now = {kind: newest(rows, kind)["text"] for kind in kinds}
    for bad, why in (
        ("我瞎编的（#999999）。", "引用的 #999999 不在文件里"),
        ("字" * 501, "上限是"),
        ("前面。\n\n## 小标题\n\n后面。", "标题"),
    ):
        other = OTHER if "#99" in bad else ChatKey(OTHER.self_id, "group", f"8{len(bad)}")
        for kind in kinds:
            now[kind] = one_edit(vault, now[kind], f"{kind}{bad}")
        told = []
        for _ in range(2):
            report = await bring(vault, other)
            assert report.chats[0].edited == 0
            told.append([one.reason for one in report.unreadable])
            assert [why in one for one in told[-1]] == [True] * len(kinds)
        assert told[0] == told[1]
        await nianlun.jobs.tidy([other], offline=True)
        there = await exported(other)
        assert {newest(there, kind)["writer"] for kind in kinds} == {"offline"}
        report = await bring(vault, other)
        assert [why in one.reason for one in report.unreadable] == [True] * len(kinds)
        await sound(database_file)
    # In one chat a person has written the day since.
    other_id = await chats.find(other)
    assert other_id is not None
    await editing.edit(other_id, "day", refs["day"], "别人写的一天。", "20009", NOW)
    for turn in ("改好了", "又改了"):
        for kind in kinds:
            now[kind] = one_edit(vault, now[kind], f"{turn}{kind}。")
        report = await bring(vault, OTHER)
        assert (report.chats[0].edited, report.unreadable) == (len(kinds), [])
        found = {kind: newest(await exported(OTHER), kind) for kind in kinds}
        assert {kind: (row["text"], row["writer"]) for kind, row in found.items()} == {
            kind: (now[kind], EDITOR) for kind in kinds
        }
        report = await bring(vault, OTHER)
        assert (report.chats[0].edited, report.unreadable) == (0, [])
    report = await bring(vault, other)
    assert report.chats[0].edited == len(kinds) - 1
    assert [MOVED_ON in one.reason for one in report.unreadable] == [True]
    assert newest(await exported(other), "day")["text"] == "别人写的一天。"
    await sound(database_file)


async def test_a_year_put_right_after_more_was_rolled_up_than_was_exported_is_taken(
    database_file: Path, tmp_path: Path
) -> None:
    """Of an export made while a month was owed: what is in the year since is added once more."""
    # Two months of a year that is over.
    said = [
        Incoming(
            GROUP,
            datetime(NOW.year - 1, month, 10, 2, number, tzinfo=UTC),
            "20001",
            "小鹿",
            [{"type": "text", "data": {"text": f"去上海{month}-{number}"}}],
            "event",
            message_id=f"{month}{number}",
        )
        for month in (5, 6)
        for number in range(8)
    ]
    await recording.record(said, readable, "小忆", NOW)
    await nianlun.jobs.tidy([GROUP])
    chat_id = await id_of(GROUP)
    year = newest(await exported(), "year")
    *fewer, owed = year["sources"]
    await Memory.filter(chat_id=chat_id, kind="year").update(sources=json.dumps(fewer))
    await Memory.filter(chat_id=chat_id, period=owed).update(merged=False)
    vault = tmp_path / "vault"
    await write_vault(vault, lines(GROUP, "Asia/Shanghai", NOW))
    bad = one_edit(vault, year["text"], "我写的一年（#999999）。")
    for _ in range(2):
        report = await bring(vault, OTHER)
        assert (report.chats[0].edited, report.left_out) == (0, 1)
        await nianlun.jobs.tidy([OTHER], offline=True)
        assert newest(await exported(OTHER), "year")["sources"] == year["sources"]
    for text in ("我写的一年。", "又改过的一年。"):
        bad = one_edit(vault, bad, text)
        report = await bring(vault, OTHER)
        assert (report.chats[0].edited, report.unreadable) == (1, [])
        there = newest(await exported(OTHER), "year")
        assert (there["text"], there["sources"]) == (text, fewer)
        assert (await bring(vault, OTHER)).chats[0].edited == 0
        await sound(database_file)
    await nianlun.jobs.tidy([OTHER], offline=True)
    there = newest(await exported(OTHER), "year")
    assert there["text"].startswith("又改过的一年。")
    assert (there["sources"], there["writer"]) == (year["sources"], EDITOR)
    assert (await bring(vault, OTHER)).left_out == 0
    one_edit(vault, bad, "再改的一年。")
    assert [MOVED_ON in one.reason for one in (await bring(vault, OTHER)).unreadable] == [True]
    await sound(database_file)


async def test_an_edit_that_was_taken_is_not_told_once_later_sources_were_added(
    database_file: Path, tmp_path: Path
) -> None:
    vault, rows = await a_vault(tmp_path)
    day, month = newest(rows, "day"), newest(rows, "month")
    (activity,) = [row for row in of(rows, "activity") if [row["id"]] == day["sources"]]
    for row, text in ((day, "我写的一天。"), (month, "我写的一月。"), (activity, "我写的一段。")):
        one_edit(vault, row["text"], text)
    for chat in (GROUP, OTHER):
        assert (await bring(vault, chat)).chats[0].edited == 3
        await nianlun.jobs.tidy([chat], offline=True)
        now = await exported(chat)
        assert newest(now, "day")["text"] == "我写的一天。我写的一段。"
        report = await bring(vault, chat)
        assert (report.chats[0].edited, report.unreadable) == (0, [])
        assert await exported(chat) == now
    await sound(database_file)


async def test_the_text_that_was_exported_is_brought_where_the_file_has_it(
    database_file: Path, tmp_path: Path
) -> None:
    _, rows = await a_vault(tmp_path)
    chat_id, day = (await Chat.get(peer_id=GROUP.peer_id)).id, newest(rows, "day")
    now = nianlun.clock.now()
    await editing.edit(chat_id, "day", day["date"], "改过。", EDITOR, now)
    await editing.restore(chat_id, "day", day["date"], day["version"], EDITOR, now)
    vault = tmp_path / "again"
    await write_vault(vault, lines(GROUP, "Asia/Shanghai", NOW))
    rewrite(vault, day["text"], "见（#99999）。")
    for _ in range(2):
        report = await bring(vault, OTHER)
        assert report.chats[0].edited == 0
        assert "引用的 #99999 不在文件里" in report.unreadable[0].reason
        assert newest(await exported(OTHER), "day")["text"] == day["text"]
    await sound(database_file)


async def test_texts_that_are_to_be_written_again_are_edited_as_long_as_they_stand(
    database_file: Path, tmp_path: Path
) -> None:
    vault, rows = await a_vault(tmp_path)
    chat_id, day = (await Chat.get(peer_id=GROUP.peer_id)).id, newest(rows, "day")
    assert await notes.ask_again(chat_id) > 0
    rewrite(vault, day["text"], "我写的一天。")
    for edited in (1, 0):
        report = await bring(vault)
        assert (report.chats[0].edited, report.unreadable) == (edited, [])
    assert newest(await exported(), "day")["text"] == "我写的一天。"
    await sound(database_file)


async def test_a_chat_is_told_of_every_edit_that_was_not_taken(tmp_path: Path) -> None:
    vault, rows = await a_vault(tmp_path)
    for row in of(rows, "day"):
        one_edit(vault, row["text"], f"{row['text']}（#999999）")
    report = await bring(vault)
    days = [row["date"] for row in of(rows, "day")]
    told = summary(report)
    assert [day for day in days if f"：{day} 引用的 #999999 不在文件里，没有照改" in told] == days
    assert "还有" not in told
    refused = list(report.unreadable)
    for number in range(500):
        report.add_unreadable(replace(refused[0], line=1000 + number))
    told = summary(report)
    assert len(told) < 5000
    last = re.search(r"\n……还有 (\d+) 处$", told)
    assert last is not None
    assert told.count("\n第 ") + int(last[1]) == report.left_out == len(days) + 500


async def test_what_was_emptied_is_told_each_time(database_file: Path, tmp_path: Path) -> None:
    vault, rows = await a_vault(tmp_path)
    for kind in ("day", "activity"):
        rewrite(vault, newest(rows, kind)["text"], "\u3000")
    for chat in (GROUP, OTHER, OTHER):
        told = [one.reason for one in (await bring(vault, chat)).unreadable]
        assert ["正文空了" in one for one in told] == [True, True]
    await sound(database_file)


async def test_what_was_deleted_is_not_told_by_an_edit_of_the_day_that_told_it(
    database_file: Path, tmp_path: Path
) -> None:
    vault, rows = await a_vault(tmp_path)
    chat_id, month = (await Chat.get(peer_id=GROUP.peer_id)).id, newest(rows, "month")
    (day,) = [row for row in of(rows, "day") if row["date"] == month["sources"][-1]]
    for row in (day, month):
        one_edit(vault, row["text"], f"我照着{row['type']}写的。")
    await deleting.delete(chat_id, [], [int(day["sources"][0])], NOW)
    for _ in range(2):
        report = await bring(vault)
        assert (report.chats[0].edited, report.left_out) == (0, 2)
        assert "我照着" not in repr(await exported())
        await nianlun.jobs.tidy([GROUP], offline=True)
    await sound(database_file)


@pytest.mark.parametrize("tidied", [False, True])
async def test_a_moment_that_was_made_to_cite_what_is_taken_back_can_be_put_right(
    database_file: Path, tmp_path: Path, tidied: bool
) -> None:
    await talk(days=1)
    gone = of(await exported(), "message")[4]
    await withdraw(gone["message_id"])
    chat_id = (await Chat.get(peer_id=GROUP.peer_id)).id
    moment = diary.Moment("想起一件事", nianlun.calendar.day_of(NOW).isoformat(), NOW, "tool")
    await diary.append(chat_id, [moment], NOW)
    await nianlun.jobs.tidy([GROUP])
    await write_vault(tmp_path / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    cites = f"想起一件事（#{gone['seq']}）"
    rewrite(tmp_path / "vault", "想起一件事", cites)
    for chat in (GROUP, OTHER, OTHER):
        report = await bring(tmp_path / "vault", chat)
        assert report.chats[0].edited == 0
        assert [f"不能引用 #{gone['seq']}" in one.reason for one in report.unreadable] == [True]
        if tidied:
            await nianlun.jobs.tidy([chat], offline=True)
    assert not [row for row in of(await exported(OTHER), "activity") if row["origin"] == "tool"]
    rewrite(tmp_path / "vault", cites, "想起一件好事")
    report = await bring(tmp_path / "vault", OTHER)
    assert (report.chats[0].edited, report.unreadable) == (1, [])
    told = [row["text"] for row in of(await exported(OTHER), "activity")]
    assert told[-1] == "想起一件好事"
    await sound(database_file)


async def test_a_citation_that_is_not_taken_leaves_other_edits_alone(
    database_file: Path, tmp_path: Path
) -> None:
    await talk(days=3)
    gone = of(await exported(), "message")[4]
    await withdraw(gone["message_id"])
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    day = newest(rows, "day")
    (activity,) = [row for row in of(rows, "activity") if [row["id"]] == day["sources"]]
    await write_vault(tmp_path / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    rewrite(tmp_path / "vault", activity["text"], f"他说好（#{gone['seq']}）")
    rewrite(tmp_path / "vault", day["text"], "我写的一天。")
    for chat in (GROUP, OTHER, OTHER):
        report = await bring(tmp_path / "vault", chat)
        assert [f"不能引用 #{gone['seq']}" in one.reason for one in report.unreadable] == [True]
        assert newest(await exported(chat), "day")["text"] == "我写的一天。"
    await sound(database_file)


async def promise_vault(
    folder: Path, content: str = "12月3日前还书", day: str = "2024-12-03"
) -> Path:
    """Of a chat in which somebody promises something, said on 2024-11-30."""
    await talk(days=1)
    chat = await Chat.get(peer_id=GROUP.peer_id)
    item = FactItem("promise", "书", content, day)
    at = datetime(2024, 11, 30, 4, tzinfo=UTC)
    await facts.remember(chat.id, "20001", [item], None, at)
    await write_vault(folder / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    return folder / "vault"


def redate(vault: Path, old: str, new: str) -> None:
    page = vault / "wiki" / "promise.md"
    text = page.read_text("utf-8")
    assert f'"due":{old}' in text
    page.write_text(text.replace(f'"due":{old}', f'"due":{new}', 1), "utf-8")


@pytest.mark.parametrize(
    ("text", "day", "due", "told"),
    [
        ("12月4日前还书", None, "2024-12-04", None),
        ("12月3日以前还书", None, "2024-12-03", None),
        ("还书给他", None, "2024-12-03", None),
        ("> ## 12月4日前还书", None, "2024-12-04", None),
        ("~~12月3日~~ 12月**4**日前还书", None, "2024-12-04", None),
        ("12/4 还书", None, "2024-12-03", "12/4 没有读成日子，到期日还是 2024-12-03"),
        ("已经把书还了", None, None, None),
        (None, '"2024-12-05"', "2024-12-05", None),
        (None, "null", None, None),
        ("12月4日前还书", '"2024-12-05"', "2024-12-05", "没有用正文里说的 2024-12-04"),
        ("已经把书还了", '"2024-12-05"', None, "到期日没有用"),
    ],
)
async def test_a_promise_has_the_day_that_its_new_words_or_its_mark_name(
    tmp_path: Path, text: str | None, day: str | None, due: str | None, told: str | None
) -> None:
    vault = await promise_vault(tmp_path)
    before = await exported()
    if text is not None:
        rewrite(vault, "12月3日前还书", text)
    if day is not None:
        redate(vault, '"2024-12-03"', day)
    for chat in (GROUP, OTHER):
        for edited in (1, 0):
            report = await bring(vault, chat)
            assert report.chats[0].edited == edited
            assert [str(told) in one.reason for one in report.unreadable] == [True] * bool(told)
        row = await Fact.get(chat_id=await chats.find(chat))
        assert row.text == (text or "12月3日前还书")
        assert row.due == due
        assert (row.done_at is not None) == ("已经" in row.text)
    # Somebody has put it off meanwhile: then that stands.
    chat_id = (await Chat.get(peer_id=GROUP.peer_id)).id
    later = [FactItem("promise", "书", "12月9日前还书", "2024-12-09")]
    await facts.remember(chat_id, "20001", later, None, nianlun.clock.now())
    await bring(vault)
    assert (await Fact.get(chat_id=chat_id)).due == "2024-12-09"
    assert len(before) == len(await exported())


async def test_the_day_of_a_promise_is_counted_from_when_it_was_given(tmp_path: Path) -> None:
    await talk(days=1)
    chat = await Chat.get(peer_id=GROUP.peer_id)
    at = datetime(2021, 11, 30, 4, tzinfo=UTC)
    await Message.filter(chat_id=chat.id, seq=1).update(time=at, user_id="20001")
    item = FactItem("promise", "书", "12月3日前还书", "2021-12-03")
    await facts.remember(chat.id, "20001", [item], 1, NOW)
    await write_vault(tmp_path / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    rewrite(tmp_path / "vault", "12月3日前还书", "12月4日前还书")
    await bring(tmp_path / "vault")
    assert (await Fact.get(chat_id=chat.id)).due == "2021-12-04"


async def test_a_due_day_that_is_none_is_told_with_its_promise(tmp_path: Path) -> None:
    vault = await promise_vault(tmp_path)
    before = await exported()
    redate(vault, '"2024-12-03"', '"2027-13-45"')
    why = "promise:书 的到期日 2027-13-45 不是日期"
    for chat, fate in ((GROUP, "没有照改"), (OTHER, "所以没有带来"), (OTHER, "所以没有带来")):
        report = await bring(vault, chat)
        assert report.chats[0].edited == 0
        (told,) = [one.reason for one in report.unreadable]
        assert why in told
        assert told.endswith(fate)
    assert await exported() == before
    redate(vault, '"2027-13-45"', '"2027-12-05"')
    for chat in (GROUP, OTHER):
        report = await bring(vault, chat)
        assert (report.chats[0].edited, report.unreadable) == (1, [])
        assert (await Fact.get(chat_id=await chats.find(chat))).due == "2027-12-05"


@pytest.mark.parametrize("day_alone", [False, True])
async def test_a_forgotten_editors_fact_does_not_come_back_with_the_vault_it_is_in(
    database_file: Path, tmp_path: Path, day_alone: bool
) -> None:
    vault = await promise_vault(tmp_path)
    before = of(await exported(), "fact")
    if day_alone:
        redate(vault, '"2024-12-03"', '"2024-12-05"')
    else:
        rewrite(vault, "12月3日前还书", "暗号")
    for chat in (GROUP, OTHER):
        assert (await bring(vault, chat)).chats[0].edited == 1
        (fact,) = of(await exported(chat), "fact")
        assert fact["writer"] == EDITOR
    # Something newer may be told over it, which is taken away later on.
    edited, here, now = await exported(), await id_of(GROUP), nianlun.clock.now()
    later = [FactItem("promise", "书", "12月9日前还书", "2024-12-09")]
    await facts.remember(here, "20001", later, 2, now)
    for chat in (GROUP, OTHER):
        await forgetting.forget(await id_of(chat), EDITOR, now + timedelta(minutes=1))
    await facts.take_back(here, [2])
    after = await exported()
    (fact,) = of(after, "fact")
    assert [fact[key] for key in ("text", "due")] == [before[0][key] for key in ("text", "due")]
    assert "writer" not in fact
    there = of(await exported(OTHER), "fact")
    # What has only its day from them goes on without one.
    assert [(one["text"], one["due"]) for one in there] == [("12月3日前还书", None)] * day_alone
    for chat in (GROUP, OTHER):
        report = await bring(vault, chat, COMMAND_LINE)
        assert (report.chats[0].edited, report.left_out) == (0, 1)
    await bring(write(tmp_path / "edited.jsonl", edited))
    assert await exported() == after
    assert of(await exported(OTHER), "fact") == there
    # Nor does it where that person is forgotten before anything comes in.
    await chats.ensure([MOVED], now)
    await forgetting.forget(await id_of(MOVED), EDITOR, now + timedelta(minutes=1))
    assert (await bring(vault, MOVED, COMMAND_LINE)).chats[0].edited == 0
    await bring(tmp_path / "edited.jsonl", MOVED)
    came = of(await exported(MOVED), "fact")
    assert [(one["text"], one["due"]) for one in came] == [("12月3日前还书", "2024-12-03")]
    assert (await bring(vault, MOVED, COMMAND_LINE)).chats[0].edited == 0
    assert of(await exported(MOVED), "fact") == came
    # A vault that is exported now can be edited.
    await write_vault(tmp_path / "again", lines(GROUP, "Asia/Shanghai", now + timedelta(hours=1)))
    assert (await bring(tmp_path / "again")).chats[0].edited == 0
    assert await exported() == after
    rewrite(tmp_path / "again", "12月3日前还书", "改好了")
    assert (await bring(tmp_path / "again")).chats[0].edited == 1
    await sound(database_file)


async def test_notes_that_differ_in_their_day_alone_are_all_there(tmp_path: Path) -> None:
    await talk(days=1)
    chat_id = (await Chat.get(peer_id=GROUP.peer_id)).id
    for day in ("2024-12-03", "2024-12-04"):
        await Fact.create(
            chat_id=chat_id, category="note", text="没有名字", note_key=same_key("没有名字"),
            event_date=day, created_at=NOW, written_at=NOW,
        )  # fmt: skip
    await write_vault(tmp_path / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    report = await bring(tmp_path / "vault", OTHER)
    assert report.unreadable == []
    assert of(await exported(OTHER), "fact") == of(await exported(), "fact")


async def test_a_moment_emptied_with_its_editor_is_the_one_of_an_older_file(
    database_file: Path, tmp_path: Path
) -> None:
    await talk(days=1)
    day = "2024-08-20"
    at = datetime(2024, 8, 20, 3, tzinfo=UTC)
    await diary.append(await id_of(GROUP), [diary.Moment("想起一件事", day, at, "tool")], at)
    await nianlun.jobs.tidy([GROUP], offline=True)
    older = write(tmp_path / "older.jsonl", await exported())
    await write_vault(tmp_path / "vault", lines(GROUP, "Asia/Shanghai", NOW))
    rewrite(tmp_path / "vault", "想起一件事", "暗号")
    assert (await bring(tmp_path / "vault")).chats[0].edited == 1
    await nianlun.jobs.tidy([GROUP], offline=True)
    await forgetting.forget(await id_of(GROUP), EDITOR, nianlun.clock.now())
    await nianlun.jobs.tidy([GROUP], offline=True)
    emptied = await exported()
    for file in (older, tmp_path / "vault", older):
        await bring(file, editor=COMMAND_LINE)
        assert await exported() == emptied
        await sound(database_file)
