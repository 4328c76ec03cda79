"""Restoring: our own export brings the same memory back, and adds to one that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
import random
from typing import Any

import pytest
from tortoise.connection import get_connection

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.report import ImportReport
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file
from plugins.nonebot_plugin_nianlun.store import (
    chats,
    exclusions,
    facts,
    forgetting,
    invariants,
    recording,
)
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import (
    Activity,
    Chat,
    Exclusion,
    Fact,
    Gap,
    Memory,
    NoteVersion,
    Speaker,
)
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming, Withdrawal
from plugins.nonebot_plugin_nianlun.types import Fact as NewFact

NOW = datetime.now(UTC).replace(microsecond=0)
GROUP = ChatKey("10001", "group", "123")
OTHER = ChatKey("10009", "group", "999")
PEOPLE = [("20001", "小鹿"), ("20002", "阿澈"), ("20003", "鹿老师")]

pytestmark = pytest.mark.usefixtures("database_file")

Json = dict[str, Any]


async def talk(days: int = 45, chat: ChatKey = GROUP, seed: int = 1) -> None:
    """People talk for so many days up to now, a few dozen lines each."""
    dice = random.Random(seed)
    batch: list[Incoming] = []
    for day in range(days, -1, -1):
        at = NOW - timedelta(days=day, hours=3)
        for number in range(dice.randint(9, 30)):
            at += timedelta(seconds=dice.randint(1, 240))
            user_id, name = dice.choice(PEOPLE)
            words = "".join(dice.choices(["明天", "去上海", "吃火锅", "好的", "为什么", "！"], k=4))
            said = f"{words}{day}-{number}"
            segments = [{"type": "text", "data": {"text": said}}]
            batch.append(
                Incoming(
                    chat,
                    min(at, NOW),
                    user_id,
                    name,
                    segments,
                    "event",
                    message_id=f"{chat.peer_id}{day}{number}",
                    skipped="command" if number == 5 else None,
                )
            )
    for start in range(0, len(batch), 500):
        await recording.record(batch[start : start + 500], readable, "小忆", NOW)


async def withdraw(message_id: str, chat: ChatKey = GROUP) -> None:
    notice = Withdrawal(chat, message_id, None, NOW)
    await recording.record([notice], readable, "小忆", NOW)


async def exported(chat: ChatKey = GROUP) -> list[Json]:
    return [row async for row in lines(chat, "Asia/Shanghai", NOW)]


def write(path: Path, rows: Sequence[Json]) -> Path:
    """A whole file of these lines, whatever was put into an export or taken out of it."""
    others = [row for row in rows if row.get("type") != "end"]
    rows = [*others, {"type": "end", "records": len(others)}]
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")
    return path


async def bring(path: Path, chat: ChatKey | None = None) -> ImportReport:
    targets = () if chat is None else (target(chat.full),)
    return await import_file(nianlun, path, ImportOptions(targets=targets))


def of(rows: list[Json], kind: str) -> list[Json]:
    return [row for row in rows if row["type"] == kind]


async def a_rich_memory() -> list[Json]:
    """A chat with everything that an export can hold."""
    await talk()
    await nianlun.jobs.tidy([GROUP])
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    await talk(days=1, seed=9)  # late lines reopen days, so that there are earlier versions
    await nianlun.jobs.tidy([GROUP])
    for content, at in (("美式", NOW - timedelta(days=2)), ("拿铁", NOW)):
        await facts.store(chat_id, [NewFact("preferences", "coffee", content, 3)], at)
    await Fact.create(
        chat_id=chat_id, category="note", text="没有名字", created_at=NOW, written_at=NOW
    )
    await Activity.create(
        chat_id=chat_id,
        number=(await Chat.get(id=chat_id)).last_activity + 1,
        date=NOW.date().isoformat(),
        text="想起一件事（关键消息：[7]）",
        key_messages="[7]",
        origin="tool",
        time=NOW,
        writer="model",
        written_at=NOW,
    )
    await Chat.filter(id=chat_id).update(
        muted=True,
        persona="温柔",
        daily_token_limit=5000,
        last_activity=(await Chat.get(id=chat_id)).last_activity + 1,
    )
    await Gap.create(chat_id=chat_id, begins=NOW - timedelta(days=3), ends=NOW - timedelta(days=2))
    await Speaker.filter(chat_id=chat_id, user_id="20003").update(opted_out_at=NOW)
    return await exported()


async def test_an_export_comes_back_as_it_was(tmp_path: Path) -> None:
    rows = await a_rich_memory()
    kinds = {row["type"] for row in rows}
    assert kinds >= {"activity", "day", "month", "skipped", "gap", "fact", "speaker", "settings"}
    assert any(row["versions"] for row in of(rows, "day"))
    file = write(tmp_path / "whole.jsonl", rows)
    report = await bring(file, OTHER)
    assert (report.left_out, report.chats[0].new) == (0, len(of(rows, "message")))
    again = await exported(OTHER)
    assert again[1:] == rows[1:]
    assert (again[0]["chat"], again[0]["self_id"]) == ("group:999", "10009")
    report = await bring(file, OTHER)
    assert (report.new, report.chats[0].notes) == (0, 0)
    assert await exported(OTHER) == again


async def test_nothing_is_owed_after_it(tmp_path: Path) -> None:
    await talk()
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    await bring(write(tmp_path / "whole.jsonl", rows), OTHER)
    for chat in (GROUP, OTHER):
        tidied = (await nianlun.jobs.tidy([chat])).get(chat)
        assert tidied is None or (tidied.activities, tidied.memories) == (0, 0)
    assert (await exported(OTHER))[1:] == rows[1:]
    states = [
        sorted(
            await Memory.filter(chat_id=await chats.find(chat)).values_list(
                "kind", "period", "closed", "merged", "stale"
            )
        )
        for chat in (GROUP, OTHER)
    ]
    assert states[0] == states[1]
    merged = [
        await Activity.filter(chat_id=await chats.find(chat))
        .order_by("number")
        .values_list("merged")
        for chat in (GROUP, OTHER)
    ]
    assert merged[0] == merged[1]


async def test_what_was_owed_is_owed_after_it(tmp_path: Path) -> None:
    await talk()
    await nianlun.jobs.tidy([GROUP])
    noted = await Row.filter(activity_id__not_isnull=True).order_by("seq").first()
    assert noted is not None
    assert noted.message_id is not None
    await withdraw(noted.message_id)
    rows = await exported()
    await bring(write(tmp_path / "whole.jsonl", rows), OTHER)
    assert (await exported(OTHER))[1:] == rows[1:]
    for chat in (GROUP, OTHER):
        await nianlun.jobs.tidy([chat])
    ours, theirs = await exported(), await exported(OTHER)
    assert all(row["text"] for kind in ("day", "month") for row in of(theirs, kind))
    plain = [[row.get("text") for row in rows] for rows in (ours, theirs)]
    assert plain[0] == plain[1]


async def test_it_can_be_added_to_what_is_there(tmp_path: Path) -> None:
    await talk(days=5)
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    await talk(days=9, chat=OTHER, seed=2)
    await nianlun.jobs.tidy([OTHER])
    before = await exported(OTHER)
    file = write(tmp_path / "whole.jsonl", rows)
    report = await bring(file, OTHER)
    after = await exported(OTHER)
    assert report.left_out == 0
    shift = len(of(before, "message"))
    assert of(after, "message")[:shift] == of(before, "message")
    moved = of(after, "activity")[len(of(before, "activity")) :]
    assert [(row["from_seq"], row["to_seq"], row["key_messages"]) for row in moved] == [
        (
            row["from_seq"] + shift,
            row["to_seq"] + shift,
            [number + shift for number in row["key_messages"]],
        )
        for row in of(rows, "activity")
    ]
    assert f"关键消息：[{moved[0]['key_messages'][0]}" in moved[0]["text"]
    theirs = {row["date"]: row["text"] for row in of(rows, "day")}
    for old, new in zip(of(before, "day"), of(after, "day"), strict=True):
        assert new["text"] == old["text"]
        if old["date"] in theirs:
            assert len(new["versions"]) == len(old["versions"]) + 1
    await bring(file, OTHER)
    assert await exported(OTHER) == after
    assert (await nianlun.jobs.tidy([OTHER]))[OTHER].memories > 0


async def test_a_backup_of_a_memory_that_went_on_adds_nothing(tmp_path: Path) -> None:
    await talk(days=5)
    await nianlun.jobs.tidy([GROUP])
    file = write(tmp_path / "whole.jsonl", await exported())
    await talk(days=1, seed=9)
    await nianlun.jobs.tidy([GROUP])
    before = await exported()
    report = await bring(file)
    assert report.chats[0].chat == GROUP
    assert (report.new, report.chats[0].notes, report.left_out) == (0, 0, 0)
    assert await exported() == before


async def test_a_backup_does_not_bring_back_what_was_withdrawn_since(tmp_path: Path) -> None:
    await talk(days=5)
    await nianlun.jobs.tidy([GROUP])
    file = write(tmp_path / "whole.jsonl", await exported())
    noted = await Row.filter(activity_id__not_isnull=True).order_by("seq").first()
    assert noted is not None
    assert noted.message_id is not None
    secret = noted.text
    assert secret in repr(await exported())
    await withdraw(noted.message_id)
    await nianlun.jobs.tidy([GROUP])
    await bring(file)
    assert secret not in repr(await exported())
    assert not await NoteVersion.filter(text__contains=secret).exists()


async def test_what_a_withdrawn_message_was_told_in_is_written_anew(tmp_path: Path) -> None:
    await talk(days=5)
    await nianlun.jobs.tidy([GROUP])
    file = write(tmp_path / "whole.jsonl", await exported())
    noted = await Row.filter(activity_id__not_isnull=True).order_by("seq").first()
    assert noted is not None
    # In the other chat nothing but the withdrawal is known so far.
    await withdraw(noted.message_id or "", OTHER)
    await bring(file, OTHER)
    assert noted.text not in repr(await exported(OTHER))
    await nianlun.jobs.tidy([OTHER])
    after = await exported(OTHER)
    assert noted.text not in repr(after)
    assert all(row["text"] for row in of(after, "day"))


async def test_of_two_texts_of_a_fact_the_newer_is_true(tmp_path: Path) -> None:
    await talk(days=1)
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    await facts.store(chat_id, [NewFact("喜好", "咖啡", "美式", 3)], NOW - timedelta(days=3))
    older = write(tmp_path / "older.jsonl", await exported())
    await facts.store(chat_id, [NewFact("喜好", "咖啡", "拿铁", 3)], NOW - timedelta(days=1))
    newer = write(tmp_path / "newer.jsonl", await exported())
    for files in ((older, newer), (newer, older)):
        await Fact.all().delete()
        await facts.store(chat_id, [NewFact("喜好", "咖啡", "手冲", 3)], NOW - timedelta(days=2))
        for file in (*files, *files):
            await bring(file)
        (fact,) = of(await exported(), "fact")
        assert fact["text"] == "拿铁"
        assert [old["text"] for old in fact["journal"]] == ["美式", "手冲"]


async def test_references_that_do_not_hold_are_told_by_line(tmp_path: Path) -> None:
    await talk(days=2)
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    activities, days = of(rows, "activity"), of(rows, "day")
    last = of(rows, "message")[-1]["seq"]
    number = activities[-1]["id"]
    bad = [
        activities[0] | {"id": number + 1, "from_seq": last + 1, "to_seq": last + 2},
        activities[0] | {"id": number + 2},
        activities[0] | {"id": number + 3, "from_seq": 9, "to_seq": 3},
        activities[0] | {"id": number},
        activities[0] | {"id": number + 4, "origin": "dream"},
        days[0] | {"date": "2020-01-01", "sources": [number + 90]},
        days[0] | {"date": "2020-13-01"},
        {"type": "month", **{k: v for k, v in days[0].items() if k not in ("type", "date")}}
        | {"date": "2020-01", "sources": ["2020-01-01"]},
        {"type": "skipped", "from_seq": last, "to_seq": last + 1, "reason": "command"},
        {"type": "fact", "owner": None, "category": "c", "name": None, "text": "t",
         "source": last + 9, "due": None, "written_at": "2026-01-01T00:00:00Z", "journal": []},
        {"type": "dream"},
    ]  # fmt: skip
    file = write(tmp_path / "bad.jsonl", [*rows, *bad])
    report = await bring(file, OTHER)
    assert [one.line for one in report.unreadable] == list(range(len(rows), len(rows) + len(bad)))
    assert (await exported(OTHER))[1:] == rows[1:]


async def test_a_wrong_number_costs_no_more_than_what_refers_to_it(tmp_path: Path) -> None:
    await talk(days=3)
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    said, notes = of(rows, "message"), of(rows, "activity")
    notes[0]["id"] = 2**63 - 1
    said[-1]["seq"] = 1
    report = await bring(write(tmp_path / "edited.jsonl", rows), OTHER)
    assert report.chats[0].new == len(said)
    after = await exported(OTHER)
    assert [one["text"] for one in of(after, "message")] == [one["text"] for one in said]
    assert len(of(after, "activity")) == len(notes) - 1, "all but the one of the last message"
    await nianlun.jobs.tidy([OTHER])
    assert not any(one["text"] == "" for one in of(await exported(OTHER), "day"))


async def test_a_day_is_made_of_its_own_activities_only(tmp_path: Path) -> None:
    await talk(days=3)
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    first, last = of(rows, "day")[0], of(rows, "activity")[-1]
    assert first["date"] != last["date"]
    first["sources"].append(last["id"])
    report = await bring(write(tmp_path / "edited.jsonl", rows), OTHER)
    assert rows.index(first) + 1 in [one.line for one in report.unreadable]
    # Nothing that a withdrawn message was told in is out of reach.
    message = next(one for one in of(rows, "message") if one["seq"] == last["from_seq"])
    await withdraw(message["message_id"], OTHER)
    said = repr([one for one in await exported(OTHER) if one["type"] in ("day", "month")])
    assert last["text"] not in said


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("day", {"version": 2**63 - 1}),
        ("day", {"writer": ""}),
        ("day", {"writer": "10086\n## 23:59"}),
        ("activity", {"owner": "Me"}),
        ("speaker", {"user_id": " "}),
        ("speaker", {"user_id": "ME"}),
        ("fact", {"owner": "ME"}),
    ],
)
async def test_values_that_would_do_harm_are_left_out(
    tmp_path: Path, kind: str, changes: Json
) -> None:
    await talk(days=2)
    await nianlun.jobs.tidy([GROUP])
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    await facts.store(chat_id, [NewFact("preferences", "coffee", "美式", 3)], NOW)
    rows = await exported()
    odd = of(rows, kind)[0]
    odd |= changes
    report = await bring(write(tmp_path / "edited.jsonl", rows), OTHER)
    assert rows.index(odd) + 1 in [one.line for one in report.unreadable]
    assert not any(odd.items() <= one.items() for one in of(await exported(OTHER), kind))


async def test_names_in_a_file_are_as_short_as_any(tmp_path: Path) -> None:
    await talk(days=1)
    rows = await exported()
    of(rows, "speaker")[0] |= {"name": "鹿" * 500, "names": ["鹿" * 500, "\u200b", "旧"]}
    await bring(write(tmp_path / "edited.jsonl", rows), OTHER)
    (speaker,) = [
        one
        for one in of(await exported(OTHER), "speaker")
        if one["user_id"] == of(rows, "speaker")[0]["user_id"]
    ]
    assert max(map(len, speaker["names"])) == 100
    assert "\u200b" not in speaker["names"]


async def test_settings_of_a_chat_that_is_there_stay(tmp_path: Path) -> None:
    await talk(days=1)
    file = write(tmp_path / "whole.jsonl", await exported())
    await Chat.all().update(paused=True, persona="新的")
    await Speaker.filter(user_id="20001").update(opted_out_at=NOW)
    await bring(file)
    chat = await Chat.get(peer_id="123")
    assert (chat.paused, chat.persona) == (True, "新的")
    assert (await Speaker.get(user_id="20001")).opted_out_at == NOW


async def test_an_earlier_text_of_a_fact_still_knows_its_message(tmp_path: Path) -> None:
    await talk(days=1)
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    first, second = await Row.filter(user_id="20001").order_by("seq").limit(2)
    for source, content in ((first.seq, "hunter2"), (second.seq, "换了")):
        await facts.store(chat_id, [NewFact("口令", "门", content, source)], NOW)
    await bring(write(tmp_path / "whole.jsonl", await exported()), OTHER)
    (fact,) = of(await exported(OTHER), "fact")
    assert [old["text"] for old in fact["journal"]] == ["hunter2"]
    await withdraw(first.message_id or "", OTHER)
    assert "hunter2" not in repr(await exported(OTHER))


async def test_numbers_and_times_that_cannot_be_do_no_harm(tmp_path: Path) -> None:
    header = {"type": "header", "format": "nianlun", "version": 1, "chat": "group:999"}
    said = {"user_id": "20001", "name": "小鹿", "text": "在", "segments": [], "withdrawn": False}
    said |= {"type": "message", "message_id": None, "reply_to": None}
    note = {"text": "聊了聊", "key_messages": [], "writer": "model"}
    activity = {"type": "activity", "date": "2026-01-01", "origin": "window", "owner": None, **note}
    rows = [
        header | {"self_id": "10009", "timezone": "Nowhere", "exported_at": "soon"},
        said | {"seq": 1, "time": "2026-01-01T04:00:00Z"},
        said | {"seq": 2, "time": "0001-01-01T00:00:00Z"},
        said | {"seq": 2**62, "time": "2026-01-01T05:00:00Z"},
        activity
        | {"id": 2**62, "from_seq": 1, "to_seq": 1}
        | {"time": "2026-01-01T04:00:00Z", "written_at": "2026-01-01T06:00:00Z"},
        activity
        | {"id": 2**62 + 1, "from_seq": 2**62, "to_seq": 2**62}
        | {"time": "9999-12-31T23:59:59Z", "written_at": "2026-01-01T06:00:00Z"},
        {"type": "skipped", "from_seq": 1, "to_seq": 2**62, "reason": "command"},
        {"type": "year", "date": "9999", "sources": [], "version": 1, "versions": [], **note}
        | {"written_at": "2026-01-01T06:00:00Z"},
    ]
    report = await bring(write(tmp_path / "odd.jsonl", rows))
    assert [one.line for one in report.unreadable] == [3, 6, 7, 8]
    assert (await Chat.get(peer_id="999")).last_seq == 2
    assert (await nianlun.jobs.tidy([OTHER]))[OTHER].errors == ()
    after = await exported(OTHER)
    assert [row["id"] for row in of(after, "activity")] == [1, 2]
    assert [row["date"] for row in of(after, "day")] == ["2026-01-01"]


async def test_nobody_has_said_anything_in_the_future_yet(tmp_path: Path) -> None:
    header = {"type": "header", "format": "nianlun", "version": 1, "chat": "group:999"}
    said = {"type": "message", "message_id": None, "user_id": "20001", "name": "小鹿", "text": "在"}
    said |= {"segments": [], "reply_to": None, "withdrawn": False}
    now = datetime.now(UTC)
    times = [now, now + timedelta(hours=1), now + timedelta(days=2)]
    rows = [header | {"self_id": "10009"}]
    rows += [said | {"seq": n, "time": at.isoformat()} for n, at in enumerate(times, 1)]
    report = await bring(write(tmp_path / "odd.jsonl", rows))
    assert report.new == 2
    assert [one.line for one in report.unreadable] == [4]


MOMENT: Json = {
    "type": "activity",
    "from_seq": None,
    "to_seq": None,
    "origin": "tool",
    "writer": "model",
    "key_messages": [],
}


async def whole_database() -> str:
    """Everything in every table, as text."""
    connection = get_connection("default")
    tables = await connection.execute_query_dict(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    )
    rows = [
        await connection.execute_query_dict(f'SELECT * FROM "{table["name"]}"') for table in tables
    ]
    return repr([[list(row.values()) for row in table] for table in rows])


@pytest.mark.parametrize("owner", ["20001", "20002"])
async def test_moments_of_somebody_who_was_forgotten_do_not_come_back(
    tmp_path: Path, owner: str
) -> None:
    await talk(days=2)
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    day = of(rows, "day")[0]
    stamp = (NOW - timedelta(days=1)).isoformat()
    number = max(row["id"] for row in of(rows, "activity"))
    told = {"date": day["date"], "time": stamp, "written_at": stamp}
    moments = [
        {**MOMENT, **told, "id": number + 1, "owner": owner, "text": "小鹿说过QIUQIANCAO"},
        {**MOMENT, **told, "id": number + 2, "owner": None, "text": "我自己的YUEGUANGSHI"},
    ]
    day["sources"] += [number + 1, number + 2]
    day["text"] += "还有QIUQIANCAO和YUEGUANGSHI"
    day["versions"] = []
    position = rows.index(of(rows, "activity")[-1]) + 1
    file = write(tmp_path / "old.jsonl", [*rows[:position], *moments, *rows[position:]])
    for chat in (GROUP, OTHER):
        await talk(days=0, chat=chat, seed=3)
        chat_id = await chats.find(chat)
        assert chat_id is not None
        await forgetting.forget(chat_id, "20001", NOW)
    kept = owner != "20001"
    for chat in (GROUP, OTHER, OTHER):
        report = await bring(file, chat)
        assert report.left_out == 0
        assert ("QIUQIANCAO" in await whole_database()) is kept
        assert "YUEGUANGSHI" in await whole_database()
        await nianlun.jobs.tidy([chat])
        assert ("QIUQIANCAO" in await whole_database()) is kept
    numbers = [row["id"] for row in of(await exported(OTHER), "activity")]
    assert len(numbers) == len(set(numbers))


def without_words(row: Json) -> None:
    row |= {"text": "", "segments": []}


def with_words(row: Json) -> None:
    pass


@pytest.mark.parametrize("left", [without_words, with_words])
@pytest.mark.parametrize("by", ["window", "key messages", "text", "moment"])
async def test_what_a_file_itself_calls_withdrawn_is_not_told_by_its_notes(
    tmp_path: Path, left: Callable[[Json], None], by: str
) -> None:
    await talk(days=3)
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    note, other, *_, last = of(rows, "activity")
    said = next(row for row in of(rows, "message") if row["seq"] == note["from_seq"])
    said["withdrawn"] = True
    left(said)
    told = note if by in ("window", "moment") else other
    day = next(row for row in of(rows, "day") if row["date"] == told["date"])
    if by == "moment":
        stamp = said["time"]
        number = last["id"] + 1
        told = {**MOMENT, "id": number, "date": day["date"], "owner": None}
        told |= {"time": stamp, "written_at": stamp}
        day["sources"].append(number)
        rows.insert(rows.index(last) + 1, told)
    told["key_messages"] = [said["seq"]] if by in ("key messages", "moment") else []
    mark = f"（关键消息：[{said['seq']}]）" if by == "text" else ""
    told["text"] = f"他说了MIYUHUA{mark}"
    day["text"] = "这天的MIYUHUA"
    earlier = {"text": "早些的MIYUHUA", "writer": "model", "written_at": day["written_at"]}
    day["versions"], day["version"] = [{"version": 1, **earlier}], 2
    for layer in ("month", "year"):
        for row in of(rows, layer):
            row["text"] = "后来还记得MIYUHUA"
    if left is with_words:
        said["text"] = "MIYUHUA"
        said["segments"] = [{"type": "text", "data": {"text": "MIYUHUA"}}]
    file = write(tmp_path / "odd.jsonl", rows)
    for _ in range(2):
        report = await bring(file, OTHER)
        assert report.left_out == 0
        assert "MIYUHUA" not in await whole_database()
        await nianlun.jobs.tidy([OTHER])
        assert "MIYUHUA" not in await whole_database()
    assert all(row["text"] for row in of(await exported(OTHER), "day"))


async def test_a_note_that_was_written_anew_comes_back_as_it_is(
    tmp_path: Path, database_file: Path
) -> None:
    await talk(days=3)
    await nianlun.jobs.tidy([GROUP])
    windows: dict[int | None, list[Row]] = {}
    for row in await Row.filter(activity_id__not_isnull=True).order_by("seq"):
        windows.setdefault(row.activity_id, []).append(row)
    some, whole = list(windows.values())[:2]
    for row in (some[0], some[3], *whole):
        await withdraw(row.message_id or "")
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    assert {row["reason"] for row in of(rows, "skipped")} >= {"withdrawn"}
    await bring(write(tmp_path / "whole.jsonl", rows), OTHER)
    assert (await exported(OTHER))[1:] == rows[1:]
    tidied = (await nianlun.jobs.tidy([OTHER])).get(OTHER)
    assert tidied is None or (tidied.activities, tidied.memories) == (0, 0)
    chat_id = await chats.find(OTHER)
    assert chat_id is not None
    found = await invariants.check(database_file, chat_id, nianlun.calendar, NOW)
    assert found.findings == ()


@pytest.mark.parametrize(
    "here", [(), ((0, None),), ((0, 0), (0, None)), ((0, 0), (0, 0))], ids=repr
)
async def test_who_went_came_and_went_again_within_a_second_is_away(
    tmp_path: Path, here: tuple[tuple[int, int | None], ...]
) -> None:
    await talk(days=0)
    rows = await exported()
    stamp = of(rows, "message")[-1]["time"]
    spans = [{"from": stamp, "to": ends} for ends in (stamp, None)]
    about = {"type": "exclusion", "reason": "opted_out", "user_id": "20001", "message_id": None}
    rows += [{**about, **span, "noted_at": stamp} for span in spans]
    file = write(tmp_path / "away.jsonl", rows)
    if here:
        await talk(days=0, chat=OTHER)
    at = datetime.fromisoformat(stamp)
    for _, ends in here:
        chat_id = await chats.find(OTHER)
        assert chat_id is not None
        await exclusions.opt_out(chat_id, "20001", at, NOW)
        if ends is not None:
            await exclusions.opt_in(chat_id, "20001", at)
    for _ in range(2):
        await bring(file, OTHER)
        chat_id = (await Chat.get(peer_id=OTHER.peer_id)).id
        # Who came back here after the file was written is back.
        assert await exclusions.opted_out(chat_id, "20001") is (here != ((0, 0), (0, 0)))
        assert await Exclusion.filter(ends=None).count() <= 1


async def test_a_day_of_a_file_is_made_of_what_was_said_that_day(
    database_file: Path, tmp_path: Path
) -> None:
    await talk(days=1)
    await nianlun.jobs.tidy([GROUP])
    rows = await exported()
    (day, *_) = of(rows, "day")
    for row in [day, *(one for one in of(rows, "activity") if one["id"] in day["sources"])]:
        row["date"] = "1990-01-01"
    report = await bring(write(tmp_path / "copied.jsonl", rows))
    assert any("不是那天的" in one.reason for one in report.unreadable)
    assert not await Memory.filter(period="1990-01-01").exists()
    found = await invariants.check(database_file, 1, nianlun.calendar, NOW)
    assert found.findings == ()
