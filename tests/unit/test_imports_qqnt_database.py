"""Decrypted message databases of QQ's new client."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
import json
from pathlib import Path
import sqlite3
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.errors import ImportFileError
from plugins.nonebot_plugin_nianlun.imports.found import Found, FoundChat, FoundMessage, Unreadable
from plugins.nonebot_plugin_nianlun.imports.protobuf import BrokenMessage, fields
from plugins.nonebot_plugin_nianlun.imports.qqnt_body import elements_of, segments_of
from plugins.nonebot_plugin_nianlun.imports.qqnt_database import QqntDb
from tests.support.export_files import element, field, varint, write_qqnt, write_qqnt_people

UTC_ZONE = ZoneInfo("UTC")
SECOND = 1_772_899_121
UIDS = {"u_self": 3_889_001_234, "u_ah": 10_010}
PROFILES = [("u_ah", 10_010, "阿澈", "老澈"), ("u_lu", 1_620_003_002, "小鹿🦌", "")]
TEXT = element(1, f45101="在吗")


def row(number: int, **columns: object) -> dict[str, object]:
    """A message of a group; further columns as `c40090`."""
    own = {name[1:]: value for name, value in columns.items()}
    base = {
        "40001": 7_520_000_000_000_000_000 + number,
        "40003": number,
        "40013": 0,
        "40020": "u_ah",
        "40021": "742100123",
        "40033": 10_010,
        "40050": SECOND + number,
        "40800": TEXT,
    }
    return base | own


def read(path: Path) -> list[Found]:
    with path.open("rb") as file:
        assert QqntDb().recognises(file.read(100))
        file.seek(0)
        return list(QqntDb().read(file, UTC_ZONE))


def messages(found: list[Found]) -> list[FoundMessage]:
    return [one for one in found if isinstance(one, FoundMessage)]


def text_of(message: FoundMessage) -> str:
    return readable(message.segments, lambda _: None)


def one(path: Path, **columns: object) -> FoundMessage | Unreadable:
    found = read(write_qqnt(path / "nt.db", [row(1, **columns)], uids=UIDS, profiles=PROFILES))
    assert len(found) == 2
    assert isinstance(found[1], FoundMessage | Unreadable)
    return found[1]


def test_groups_and_private_chats(tmp_path: Path) -> None:
    group = [
        row(3, c40020="u_lu", c40033=0, c40090="鹿老师"),
        row(1),
        row(2, c40013=1, c40020="u_self", c40033=3_889_001_234, c40093="小忆"),
        row(9, c40021="", c40027=555, c40050=SECOND - 100),
    ]
    private = [
        {**row(1), "40021": "u_ah", "40030": 10_010, "40050": SECOND},
        {**row(2), "40021": "u_ah", "40030": 10_010, "40013": 2, "40020": "u_self", "40033": 0},
    ]
    path = write_qqnt(
        tmp_path / "nt.db",
        group,
        private,
        uids=UIDS,
        profiles=PROFILES,
        groups={742_100_123: "摸鱼研究所①群"},
    )
    before = path.read_bytes()
    found = read(path)
    assert [type(each).__name__ for each in found] == [
        *("FoundChat", "FoundMessage"),
        *("FoundChat", "FoundMessage", "FoundMessage", "FoundMessage"),
        *("FoundChat", "FoundMessage", "FoundMessage"),
    ]
    assert [each for each in found if isinstance(each, FoundChat)] == [
        FoundChat("group", None, "555", "3889001234"),
        FoundChat("group", "摸鱼研究所①群", "742100123", "3889001234"),
        FoundChat("private", "老澈", "10010", "3889001234"),
    ]
    assert [(each.user_id, each.name) for each in messages(found)] == [
        ("10010", "阿澈"),
        ("10010", "阿澈"),
        ("3889001234", "小忆"),
        ("1620003002", "鹿老师"),
        ("10010", "阿澈"),
        ("3889001234", "3889001234"),
    ]
    assert [each.order for each in messages(found)][1:4] == [1, 2, 3]
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["nt.db"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (TEXT, "在吗"),
        (TEXT + element(2, f45402="a.jpg"), "在吗[图片]"),
        (element(2, f45402="a.jpg", f45815="[动画表情]"), "[动画表情]"),
        (element(3, f45402="计划.xlsx"), "[文件: 计划.xlsx]"),
        (element(4, f45906=12), '[语音 12"]'),
        (element(5), "[视频]"),
        (element(6, f47601=178, f47602="/斜眼笑"), "[表情:斜眼笑]"),
        (element(6, f47601=178), "[表情:斜眼笑]"),
        (element(7, f47423=field(45101, "别人说的")) + element(1, f45101="好"), "好"),
        (element(9, f48403=field(48443, "恭喜发财")), "[红包: 恭喜发财]"),
        (element(10, f47901='{"prompt":"[QQ小程序]哔哩"}'), "[小程序: 哔哩]"),
        (element(16), "[聊天记录]"),
        (element(21, f48157="通话时长 01:00"), "[通话: 通话时长 01:00]"),
        (element(2, f45402="a.jpg", f45829=1), "[闪照]"),
        (element(6, f47601=181, f47611=2), "[表情:比心]"),
        (element(11, f80900="[贴贴]"), "[贴贴]"),
        (element(14, f48701="# 好"), "# 好"),
        (element(1, f45101="好") + element(17) + element(44), "好"),
        (element(27, f52138="[榴莲]x3"), "[榴莲]x3"),
        (element(27), "[表情]"),
        (element(28, f52152="发起了位置共享"), "[位置: 发起了位置共享]"),
        (
            element(
                16,
                f48602='<msg serviceID="35"><item><title>群聊的聊天记录</title>'
                "<title size='26'>甲: 一 &lt;</title><title>乙</title></item></msg>",
            ),
            "[聊天记录]\n  甲: 一 <",
        ),
        (element(77), "[消息]"),
        (b"", ""),
        (None, ""),
    ],
)
def test_elements(body: bytes | None, text: str, tmp_path: Path) -> None:
    found = one(tmp_path, c40800=body)
    assert isinstance(found, FoundMessage)
    assert text_of(found) == text
    assert not found.system


@pytest.mark.parametrize(
    ("info", "text"),
    [
        ({"f48214": '<gtip><qq nm="甲"/><nor txt="撤回了一条消息"/></gtip>'}, "甲 撤回了一条消息"),
        ({"f48271": '{"items":[{"txt":"乙"},{"txt":"加入了群聊"},5]}'}, "乙 加入了群聊"),
        ({"f48271": "{"}, "[提示]"),
        ({}, "[提示]"),
    ],
)
def test_grey_lines_are_the_systems(info: dict[str, str], text: str, tmp_path: Path) -> None:
    found = one(tmp_path, c40800=element(8, **info), c40020="", c40033=0)
    assert isinstance(found, FoundMessage)
    assert (found.system, text_of(found)) == (True, text)


@pytest.mark.parametrize("suffix", ["", "_plain"])
def test_people_and_groups_are_told_of_beside_it(suffix: str, tmp_path: Path) -> None:
    group = [
        row(1, c40020="u_lu", c40033=0),
        row(2, c40020="u_x", c40033=0),
        row(3),
        row(4, c40021="555", c40020="u_x", c40033=0),
    ]
    private = [{**row(1), "40021": "u_ah", "40030": 10_010, "40033": 0}]
    members = [
        (742_100_123, "u_x", 20_002, "", "小叶"),
        (742_100_123, "u_ah", 10_010, "阿澈片", "阿"),
    ]
    path = write_qqnt(tmp_path / f"nt_msg{suffix}.db", group, private)
    assert [one.user_id for one in messages(read(path))] == ["u_x", "u_lu", "u_x", *["10010"] * 2]
    write_qqnt_people(tmp_path, PROFILES, {742_100_123: "摸鱼"}, members, suffix)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    found = read(path)
    assert [one for one in found if isinstance(one, FoundChat)] == [
        FoundChat("group", None, "555"),
        FoundChat("group", "摸鱼", "742100123"),
        FoundChat("private", "老澈", "10010"),
    ]
    assert [(one.user_id, one.name) for one in messages(found)] == [
        ("u_x", "u_x"),
        ("1620003002", "小鹿🦌"),
        ("20002", "小叶"),
        ("10010", "阿澈片"),
        ("10010", "阿澈"),
    ]
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_what_lies_beside_it_and_is_not_decrypted_is_as_none(tmp_path: Path) -> None:
    path = write_qqnt(tmp_path / "nt_msg.db", [row(1)])
    (tmp_path / "group_info.db").write_bytes(b"SQLite header 3\0QQ_NT DB" + bytes(3000))
    (tmp_path / "profile_info.db").mkdir()
    assert len(messages(read(path))) == 1
    (tmp_path / "group_info.db").write_bytes(b"SQLite format 3\0" + b"x" * 3000)
    with pytest.raises(ImportFileError, match=r"旁边的 group_info\.db"):
        read(path)


@pytest.mark.parametrize(
    ("columns", "who"),
    [
        ({"c40090": "阿澈(10010)"}, ("10010", "阿澈")),
        ({"c40090": "阿澈<a@example.com>"}, ("10010", "阿澈")),
        ({"c40090": "阿澈(13800138000)"}, ("10010", "阿澈(13800138000)")),
        ({"c40090": "阿澈(20002)", "c40033": 0, "c40020": ""}, ("20002", "阿澈")),
        ({"c40090": "阿澈(20002)", "c40033": 0, "c40020": "u_q"}, ("u_q", "阿澈(20002)")),
    ],
)
def test_names_that_were_taken_over_from_the_old_client(
    columns: dict[str, object], who: tuple[str, str], tmp_path: Path
) -> None:
    found = one(tmp_path, **columns)
    assert isinstance(found, FoundMessage)
    assert (found.user_id, found.name) == who


def test_what_is_left_of_a_message_that_was_taken_back(tmp_path: Path) -> None:
    tip = element(8, f45003=1, f47703="u_ah", f47705="阿澈", f47713="你猜撤回了什么。")
    found = one(tmp_path, c40800=tip)
    assert isinstance(found, FoundMessage)
    assert (found.withdrawn, found.system, found.user_id) == (True, False, "10010")
    assert text_of(found) == "阿澈 撤回了一条消息 你猜撤回了什么。"
    assert found.message_id == messages(read(write_qqnt(tmp_path / "b.db", [row(1)])))[0].message_id


def test_answers_point_back(tmp_path: Path) -> None:
    quotation = element(7, f47402=1) + TEXT
    rows = [row(1), row(2, c40850=1), row(3, c40850=99), row(4, c40800=quotation)]
    said = messages(read(write_qqnt(tmp_path / "nt.db", rows)))
    first = said[0].message_id
    assert [each.reply_to_id for each in said] == [None, first, None, first]


@pytest.mark.parametrize(
    "columns",
    [
        {"c40050": 0},
        {"c40050": "x"},
        {"c40050": None},
        {"c40800": b"\xff\xff"},
        {"c40800": field(40800, b"\x0a\xff")},
        {"c40020": "", "c40033": 0},
        {"c40020": "Me", "c40033": None, "c40090": "我"},
    ],
)
def test_a_message_with_a_wrong_column_is_left_out(
    columns: dict[str, object], tmp_path: Path
) -> None:
    assert isinstance(one(tmp_path, **columns), Unreadable)


def test_a_table_with_fewer_columns(tmp_path: Path) -> None:
    path = tmp_path / "nt.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            'CREATE TABLE group_msg_table ("40001", "40050", "40021", "40093", "40020", "40800")'
        )
        database.execute(
            "INSERT INTO group_msg_table VALUES (1, ?, '123', '甲', 'u_1', ?)", (SECOND, TEXT)
        )
    found = read(path)
    assert found[0] == FoundChat("group", None, "123")
    assert [(each.user_id, each.name) for each in messages(found)] == [("u_1", "甲")]


@pytest.mark.parametrize("table", ["other", "group_msg_table"])
def test_other_databases_are_refused(table: str, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f'CREATE TABLE {table} ("1")')
    with pytest.raises(ImportFileError, match="不是 QQ 的消息库"):
        read(path)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cut", "没有复制完整"),
        ("damaged", "没有复制完整"),
        ("short", "没有复制完整"),
        ("schema", "没有复制完整"),
    ],
)
def test_what_is_not_whole_is_refused(name: str, told: str, tmp_path: Path) -> None:
    path = write_qqnt(tmp_path / "nt.db", [row(n) for n in range(400)])
    data = path.read_bytes()
    if name == "cut":
        data = data[: len(data) // 2]
    elif name == "short":
        data = data[:50]
    elif name == "schema":
        data = data.replace(b"CREATE TABLE group_list", b"CREATE \xe7ABLE group_list")
    else:
        data = data[:8192] + b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    with path.open("rb") as file, pytest.raises(ImportFileError, match=told):
        list(QqntDb().read(file, UTC_ZONE))


def test_a_database_with_its_log(tmp_path: Path) -> None:
    path = write_qqnt(tmp_path / "nt.db", [row(1)])
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute('UPDATE group_msg_table SET "40800" = ?', (element(1, f45101="新的"),))
        database.commit()
        assert [text_of(each) for each in messages(read(path))] == ["新的"]


def test_the_wire_format() -> None:
    data = varint(1 << 3) + varint(1 << 60) + varint(2 << 3 | 1) + b"\1" * 8
    data += varint(3 << 3 | 5) + b"\2\0\0\0" + field(4, "字")
    assert list(fields(data)) == [(1, 1 << 60), (2, 0x0101010101010101), (3, 2), (4, "字".encode())]
    for broken in (data[:-1], b"\xff" * 20, varint(1 << 3 | 3), varint(1 << 3 | 2) + varint(9)):
        with pytest.raises(BrokenMessage):
            list(fields(broken))


@given(st.binary(max_size=80))
def test_no_bytes_of_a_body_raise_anything_else(data: bytes) -> None:
    with suppress(BrokenMessage):
        assert all(number >= 0 for number, _ in fields(data))


numbered = st.sampled_from(
    [
        *(45101, 45402, 45815, 45829, 45906, 45410, 47402, 47601, 47602, 47611, 47703, 47713),
        *(47901, 48157, 48214, 48271, 48403, 48602, 48701, 52138, 52152, 80900),
    ]
)
xml = st.sampled_from(
    ["<title>甲</title><title>乙: &#0;</title>", '{"items":[{"txt":5}]}', "<gtip"]
)
told = st.integers(0, (1 << 64) - 1) | st.binary(max_size=12) | xml.map(str.encode)


@given(st.lists(st.tuples(st.integers(0, 50), st.dictionaries(numbered, told)), max_size=3))
def test_no_field_of_any_element_raises(parts: list[tuple[int, dict[int, int | bytes]]]) -> None:
    body = b"".join(
        field(40800, field(45002, kind) + b"".join(field(*one) for one in fields.items()))
        for kind, fields in parts
    )
    segments = segments_of(elements_of(body), 7)
    json.dumps(segments, allow_nan=False).encode()
    assert segments[0] == {"type": "reply", "data": {"id": "7"}}
    assert isinstance(readable(segments, lambda _: None), str)


values = (
    st.none()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.binary(max_size=30).map(lambda data: field(40800, data))
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(list(row(1))), values))
def test_no_value_of_any_column_raises(
    tmp_path_factory: pytest.TempPathFactory, columns: Mapping[str, object]
) -> None:
    path = tmp_path_factory.mktemp("db") / "nt.db"
    with suppress(ImportFileError):
        for found in read(write_qqnt(path, [{**row(1), **columns}], [{**row(2), **columns}])):
            if isinstance(found, FoundMessage):
                json.dumps(found.segments, allow_nan=False).encode()
