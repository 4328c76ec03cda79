"""The message database of QQ's new client, after somebody has decrypted it: read, never written.

Its tables name columns by number. Which there are differs from version to version, so that only
those for time, speaker and content are needed. People and groups are told of in databases of their
own, which are looked into where they are decrypted too and lie beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
import sqlite3
from types import MappingProxyType
from typing import NamedTuple, Self

from ..errors import ImportFileError
from ..memory.render import one_line
from ..types import ChatKind

_TABLES: tuple[tuple[ChatKind, str], ...] = (
    ("group", "group_msg_table"),
    ("private", "c2c_msg_table"),
)
_NEEDED = frozenset({"40001", "40050", "40800"})
_COLUMNS = (
    *("40001", "40003", "40013", "40020", "40021", "40027", "40030", "40033"),
    *("40050", "40090", "40093", "40800", "40850"),
)
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)
"""What a broken database raises: the message of the first may not be text itself."""
_MOST_PEOPLE = 200_000
"""Names and numbers that are kept in memory; more than an account will ever meet."""
_MOST_MEMBERS = 10_000
"""The same of one group."""
_MESSAGES, _BESIDE = "nt_msg", ("profile_info", "group_info")
_HEADER = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class QqntRow:
    """One message as it stands in the table; 0 and "" for what is not told."""

    kind: ChatKind
    peer: str
    """Group number, or the other one's uid."""
    peer_number: int
    """The other one's QQ number; 0 for groups."""
    message_id: int
    seq: int
    sent: bool
    """By the account whose database it is."""
    uid: str
    number: int
    """QQ number of whoever said it."""
    second: int
    card: str
    nickname: str
    body: bytes
    quoted: int
    """The `seq` of the message that this one answers."""


class QqntMember(NamedTuple):
    """Somebody in a group; 0 and "" for what is not told."""

    number: int
    card: str
    nickname: str


@dataclass(frozen=True, slots=True)
class QqntPeople:
    """What the database tells of people and groups beside the messages."""

    self_number: int
    """QQ number of the account whose database it is; 0 when nobody can tell."""
    numbers: Mapping[str, int]
    """QQ numbers by uid."""
    names: Mapping[str, str]
    """The name that someone gave themselves, by uid and by QQ number."""
    remarks: Mapping[str, str]
    """The name that the account's owner gave them, likewise."""
    groups: Mapping[str, str]
    """Names of groups by number."""


class QqntDatabase:
    """An open database. Use it in a `with`; raises ImportFileError for what it cannot read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = ExitStack()
        self._beside: dict[str, sqlite3.Connection] = {}
        """The other databases by the names of their files."""

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._connection = opened.enter_context(closing(_open(self._path)))
            self._check()
            for path in _beside(self._path):
                self._beside[path.name] = opened.enter_context(closing(_open(path)))
            self._opened = opened.pop_all()
        return self

    def _check(self) -> None:
        try:
            self._connection.execute("BEGIN")
            self._tables = {table: self._columns(table) for _, table in _TABLES}
            if not any(self._tables.values()):
                raise ImportFileError(
                    "这个数据库里没有 group_msg_table 和 c2c_msg_table，不是 QQ 的消息库"
                )
        except _DAMAGED as error:
            raise _unreadable(error) from error

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def count(self) -> int:
        """How many messages there are in all."""
        tables = [table for table, columns in self._tables.items() if columns]
        return sum(self._query(f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables)

    def people(self) -> QqntPeople:
        """Everybody of whom something is told."""
        numbers = self._pairs("nt_uid_mapping_table", "48902", "1002")
        profiles = self._pairs("profile_info_v6", "1000", "1002")
        return QqntPeople(
            self._self_number(),
            MappingProxyType({uid: _whole(n) for uid, n in (profiles | numbers).items()}),
            MappingProxyType(self._names("20002")),
            MappingProxyType(self._names("20009")),
            MappingProxyType(_texts(self._pairs("group_list", "60001", "60007"))),
        )

    def members(self, group: str) -> Mapping[str, QqntMember]:
        """Who is or was in a group, by uid."""
        names = ("1000", "1002", "64003", "20002")
        wanted = ", ".join(f'"{name}"' for name in names)
        found: dict[str, QqntMember] = {}
        for where, columns in self._having("group_member3"):
            if group.isdecimal() and columns >= {*names, "60001"}:
                rows = self._query(
                    f'SELECT {wanted} FROM group_member3 WHERE "60001" = {int(group)}'
                    f" LIMIT {_MOST_MEMBERS}",
                    where,
                )
                for uid, number, card, nickname in rows:
                    found[_text(uid)] = QqntMember(_whole(number), _text(card), _text(nickname))
        return found

    def _names(self, column: str) -> dict[str, str]:
        by_number = self._pairs("profile_info_v6", "1002", column)
        return _texts(by_number | self._pairs("profile_info_v6", "1000", column))

    def messages(self) -> Iterator[QqntRow]:
        """Chat after chat, each in order of time."""
        for kind, table in _TABLES:
            columns = self._tables[table]
            if not columns:
                continue
            has = [f'"{name}"' if name in columns else "NULL" for name in _COLUMNS]
            peer = _peer(kind, columns)
            query = (
                f"SELECT {peer}, {', '.join(has)} FROM {table}"
                f' ORDER BY 1, "40050", {has[1]}, "40001"'
            )
            try:
                with closing(self._connection.execute(query)) as cursor:
                    for row in cursor:
                        yield _row(kind, row)
            except _DAMAGED as error:
                raise _unreadable(error) from error

    def _columns(self, table: str) -> frozenset[str]:
        """Those of a table that can be read; empty where there is none."""
        columns = frozenset(row[1] for row in self._query(f"PRAGMA table_info({table})"))
        return columns if columns >= _NEEDED else frozenset()

    def _self_number(self) -> int:
        """Whoever sent what is marked as sent, most often."""
        counts: dict[int, int] = {}
        for table, columns in self._tables.items():
            if columns >= {"40013", "40033"}:
                query = (
                    f'SELECT "40033", COUNT(*) FROM {table}'
                    ' WHERE "40013" IN (1, 2) AND "40033" > 0 GROUP BY 1'
                )
                for number, count in self._query(query):
                    counts[_whole(number)] = counts.get(_whole(number), 0) + count
        return max(counts, key=lambda number: counts[number], default=0)

    def _pairs(self, table: str, key: str, value: str) -> dict[str, object]:
        pairs: dict[str, object] = {}
        for where, columns in self._having(table):
            if {key, value} <= columns:
                rows = self._query(
                    f'SELECT "{key}", "{value}" FROM {table}'
                    f' WHERE "{key}" IS NOT NULL AND "{value}" IS NOT NULL LIMIT {_MOST_PEOPLE}',
                    where,
                )
                pairs |= {_text(name): found for name, found in rows}
        return pairs

    def _having(self, table: str) -> Iterator[tuple[str, frozenset[str]]]:
        """The databases that have a table, by name, with its columns; "" is the one of messages."""
        for where in ("", *self._beside):
            rows = self._query(f"PRAGMA table_info({table})", where)
            if rows:
                yield where, frozenset(row[1] for row in rows)

    def _query(self, query: str, where: str = "") -> Sequence[tuple]:
        try:
            return self._beside.get(where, self._connection).execute(query).fetchall()
        except _DAMAGED as error:
            raise _unreadable(error, where) from error


def _open(path: Path) -> sqlite3.Connection:
    # Without a log beside it nobody writes it, and nothing need be put beside it to read it.
    still = not path.with_name(f"{path.name}-wal").exists()
    uri = f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if still else ''}"
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise _unreadable(error, path.name) from error
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _beside(path: Path) -> list[Path]:
    """The databases of people and groups, named alike; one that is not decrypted is as none."""
    found: list[Path] = []
    for stem in _BESIDE:
        names = (path.name.replace(_MESSAGES, stem), f"{stem}.db")
        files = [path.with_name(name) for name in names if name != path.name]
        found += [file for file in dict.fromkeys(files) if _is_database(file)][:1]
    return found


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def _unreadable(error: Exception, name: str = "") -> ImportFileError:
    which = f"旁边的 {one_line(name)}" if name else "这个数据库"
    if "not a database" in str(error):
        return ImportFileError(f"{which}读不了：它多半还没有解密，请先解密再导入")
    return ImportFileError(
        f"{which}读不了（{one_line(str(error))[:120]}）：多半没有复制完整，请重新复制一份"
    )


def _peer(kind: ChatKind, columns: frozenset[str]) -> str:
    """The chat of a message as text; what is missing in one column stands in another."""
    order = ("40021", "40027", "40030") if kind == "group" else ("40021", "40030")
    choices = [
        f"NULLIF(NULLIF(CAST(\"{name}\" AS TEXT), ''), '0')" for name in order if name in columns
    ]
    return f"COALESCE({', '.join(choices)}, '')" if choices else "''"


def _row(kind: ChatKind, row: Sequence[object]) -> QqntRow:
    values = dict(zip(_COLUMNS, row[1:], strict=True))
    body = values["40800"]
    return QqntRow(
        kind=kind,
        peer=_text(row[0]),
        peer_number=_whole(values["40030"]) if kind == "private" else 0,
        message_id=_whole(values["40001"]),
        seq=_whole(values["40003"]),
        sent=values["40013"] in (1, 2),
        uid=_text(values["40020"]),
        number=_whole(values["40033"]),
        second=_whole(values["40050"]),
        card=_text(values["40090"]),
        nickname=_text(values["40093"]),
        body=body if isinstance(body, bytes) else b"",
        quoted=_whole(values["40850"]),
    )


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) else 0


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value) if isinstance(value, str | int) else ""


def _texts(pairs: Mapping[str, object]) -> dict[str, str]:
    return {key: text for key, value in pairs.items() if (text := _text(value))}
