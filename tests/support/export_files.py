"""Chat exports for tests, as qq-chat-exporter and QQ's own client write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
import json
from pathlib import Path
import random
import sqlite3
from typing import Any

WORDS = ("今天", "明天", "去上海", "吃火锅", "好的", "哈哈哈", "为什么", "下雨了", "收到", "？")
BEGINS = 1_700_000_000


def qce_messages(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Ordinary messages of a few people, some in one second, some equal, some replies."""
    dice = random.Random(seed)
    second = BEGINS
    for number in range(1, count + 1):
        second += dice.choice([0, 0, 1, 7, 40, 40, 300 if number % 20 else 9000])
        uin = str(20_000 + dice.randint(1, 9))
        words = "".join(dice.choices(WORDS, k=dice.randint(1, 5)))
        elements = [{"type": "text", "data": {"text": words}}]
        if number > 9 and dice.random() < 0.1:
            quoted = {"messageId": str(7_000_000 + number - dice.randint(1, 9)), "content": "…"}
            elements.insert(0, {"type": "reply", "data": quoted})
        yield {
            "id": str(7_000_000 + number),
            "seq": str(number),
            "timestamp": second * 1000,
            "sender": {
                "uid": f"u_{uin}",
                "uin": uin,
                "name": f"人{uin}{'甲乙'[number % 500 == 0]}",
            },
            "type": "text",
            "content": {"text": words, "elements": elements, "resources": [], "mentions": []},
            "recalled": dice.random() < 0.005,
            "system": False,
        }


def write_qce(
    path: Path, messages: Iterator[dict[str, Any]], *, group: int = 123, self_id: int = 10001
) -> Path:
    """A single JSON file of them."""
    chat = {"name": "摸鱼研究所", "type": "group", "selfUin": str(self_id), "peerUin": str(group)}
    with path.open("w", encoding="utf-8") as file:
        file.write('{"metadata":{"name":"QQChatExporter","version":"6.2.7"},\n')
        file.write(f'"chatInfo":{json.dumps(chat, ensure_ascii=False)},\n"messages":[\n')
        lines = (json.dumps(one, ensure_ascii=False) for one in messages)
        file.write(f"{next(lines)}")
        file.writelines(f",\n{line}" for line in lines)
        file.write("\n]}\n")
    return path


def varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, value: int | str | bytes) -> bytes:
    """One field in the wire format of protocol buffers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def element(kind: int, **fields: int | str | bytes) -> bytes:
    """One element of a message of QQNT; further fields by number, such as `f45101`."""
    inside = b"".join(field(int(name[1:]), value) for name, value in fields.items())
    return field(40800, field(45001, 1) + field(45002, kind) + inside)


_COLUMNS = (
    *("40001", "40003", "40011", "40013", "40020", "40021", "40027", "40030", "40033"),
    *("40050", "40090", "40093", "40800", "40850"),
)


def write_qqnt(
    path: Path,
    group: Sequence[Mapping[str, object]] = (),
    private: Sequence[Mapping[str, object]] = (),
    *,
    uids: Mapping[str, int] | None = None,
    profiles: Sequence[tuple[str, int, str, str]] = (),
    groups: Mapping[int, str] | None = None,
) -> Path:
    """A decrypted QQNT message database of these rows, which are given by column number."""
    columns = ", ".join(f'"{name}"' for name in _COLUMNS)
    with closing(sqlite3.connect(path)) as database, database:
        for table, rows in (("group_msg_table", group), ("c2c_msg_table", private)):
            database.execute(f"CREATE TABLE {table} ({columns})")
            marks = ", ".join("?" * len(_COLUMNS))
            values = [[row.get(name) for name in _COLUMNS] for row in rows]
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        database.execute('CREATE TABLE nt_uid_mapping_table ("48902" TEXT, "1002" INTEGER)')
        database.executemany("INSERT INTO nt_uid_mapping_table VALUES (?, ?)", (uids or {}).items())
        _write_people(database, profiles)
        _write_groups(database, groups or {}, ())
    return path


def write_qqnt_people(
    folder: Path,
    profiles: Sequence[tuple[str, int, str, str]] = (),
    groups: Mapping[int, str] | None = None,
    members: Sequence[tuple[int, str, int, str, str]] = (),
    suffix: str = "",
) -> None:
    """The databases of people and groups, which the client keeps beside that of messages.

    A member is group, uid, number, card and nickname.
    """
    with closing(sqlite3.connect(folder / f"profile_info{suffix}.db")) as database, database:
        _write_people(database, profiles)
    with closing(sqlite3.connect(folder / f"group_info{suffix}.db")) as database, database:
        _write_groups(database, groups or {}, members)


def _write_people(
    database: sqlite3.Connection, profiles: Sequence[tuple[str, int, str, str]]
) -> None:
    database.execute('CREATE TABLE profile_info_v6 ("1000", "1002", "20002", "20009")')
    database.executemany("INSERT INTO profile_info_v6 VALUES (?, ?, ?, ?)", profiles)


def _write_groups(
    database: sqlite3.Connection,
    groups: Mapping[int, str],
    members: Sequence[tuple[int, str, int, str, str]],
) -> None:
    database.execute('CREATE TABLE group_list ("60001", "60007")')
    database.executemany("INSERT INTO group_list VALUES (?, ?)", groups.items())
    columns = '"60001", "1000", "1002", "64003", "20002"'
    database.execute(f"CREATE TABLE group_member3 ({columns})")
    database.executemany("INSERT INTO group_member3 VALUES (?, ?, ?, ?, ?)", members)


def write_chunked(folder: Path, messages: Sequence[Mapping[str, Any]], each: int = 2) -> Path:
    """A chunked export of qq-chat-exporter's sixth version; returns its folder."""
    (folder / "chunks").mkdir(parents=True)
    chunks: list[dict[str, Any]] = []
    for index, first in enumerate(range(0, len(messages), each), 1):
        part = messages[first : first + each]
        name = f"c{index:06}.jsonl"
        lines = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in part)
        (folder / "chunks" / name).write_text(lines, "utf-8")
        size = len(lines.encode())
        entry = {"index": index, "fileName": name, "relativePath": f"chunks/{name}"}
        chunks.append(entry | {"count": len(part), "bytes": size})
    manifest = {
        "metadata": {"name": "QQChatExporter", "version": "6.2.7"},
        "chatInfo": {"name": "摸鱼", "type": "group", "selfUin": "10001", "peerUin": "123"},
        "statistics": {"totalMessages": len(messages)},
        "chunked": {"format": "jsonl", "chunksDir": "chunks", "chunks": chunks},
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=2)
    (folder / "manifest.json").write_text(text, "utf-8")
    return folder
