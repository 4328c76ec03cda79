"""The search index: its tables, what fills them, and what takes things out of them.

`nianlun_search_terms` holds each document's terms, `nianlun_search` (FTS5) where each term
stands. Code that writes a text adds its terms in the same transaction (`search.put`). Taking
them out again is the database's work, so that nothing that takes a text back can forget it.
"""

from __future__ import annotations

import sqlite3

from ..memory.search import SearchKind

_CODES: dict[SearchKind, int] = {
    "message": 0,
    "activity": 1,
    "day": 2,
    "month": 3,
    "year": 4,
    "fact": 5,
}
_KINDS: dict[int, SearchKind] = {code: kind for kind, code in _CODES.items()}
_REF_BITS = 36
_KIND_BITS = 3
LAST_REF = (1 << _REF_BITS) - 1

MAY_BE_FOUND = (
    "{row}text <> '' AND {row}withdrawn_at IS NULL"
    " AND coalesce({row}skipped, 'declined') IN ('declined', 'refused')"
)
"""Which messages are part of what was said: no commands, nothing empty or taken back."""


REFS: dict[SearchKind, str] = {
    "message": "seq",
    "activity": "number",
    "day": "id",
    "month": "id",
    "year": "id",
    "fact": "id",
}
"""The columns that texts are known by."""
_FACT_TEXT = "CASE WHEN name IS NULL THEN text ELSE name || ' ' || category || ' ' || text END"
TEXTS: dict[SearchKind, str] = {
    "message": "SELECT seq, text, user_id FROM nianlun_message WHERE chat_id = ?"
    f" AND {MAY_BE_FOUND.format(row='')}",
    "activity": "SELECT number, text, owner FROM nianlun_activity WHERE chat_id = ? AND text <> ''",
    **{
        kind: "SELECT id, text, NULL FROM nianlun_memory"
        f" WHERE chat_id = ? AND kind = '{kind}' AND text <> ''"
        for kind in ("day", "month", "year")
    },
    "fact": f"SELECT id, {_FACT_TEXT}, owner FROM nianlun_fact WHERE chat_id = ? AND text <> ''",
}
"""Queries for what is to be found in a chat: ref, text, speaker."""


def document(chat_id: int, kind: SearchKind, ref: int) -> int:
    """The id of a text in the index: a chat's texts, and among them those of a kind, in a row.

    `ref` is a message's seq, an activity's number, else the row's id.
    """
    return ((chat_id << _KIND_BITS | _CODES[kind]) << _REF_BITS) | ref


def kind_and_ref(document_id: int) -> tuple[SearchKind, int]:
    """What `document` made the id from, without the chat."""
    code = document_id >> _REF_BITS & ((1 << _KIND_BITS) - 1)
    return _KINDS[code], document_id & LAST_REF


def span_of(chat_id: int, first: SearchKind, last: SearchKind) -> tuple[int, int]:
    """The lowest and the highest id that texts of these kinds, and of those between, may have."""
    return document(chat_id, first, 0), document(chat_id, last, LAST_REF)


def sql_document(kind: SearchKind, ref: str, row: str = "") -> str:
    """`document` of a row, in SQL; `row` is what its columns are told by, such as `old.`."""
    chat_and_kind = f"({row}chat_id << {_KIND_BITS}) | {_CODES[kind]}"
    return f"((({chat_and_kind}) << {_REF_BITS}) | {row}{ref})"


def _removal(
    table: str, columns: tuple[str, ...], kinds: tuple[SearchKind, ...], ref: str, unless: str
) -> tuple[str, ...]:
    """Triggers that drop what stands for a row once it is changed in these columns, or deleted."""
    changed = " OR ".join(f"old.{column} IS NOT new.{column}" for column in columns)
    if len(kinds) == 1:
        ids, names = sql_document(kinds[0], ref, "old."), f"'{kinds[0]}'"
    else:
        cases = " ".join(f"WHEN '{kind}' THEN {sql_document(kind, ref, 'old.')}" for kind in kinds)
        ids, names = f"CASE old.kind {cases} END", "old.kind"
    drop = (
        f"DELETE FROM nianlun_search_terms WHERE id = {ids};"
        f" DELETE FROM nianlun_vector WHERE chat_id = old.chat_id AND kind = {names}"
        f" AND ref = old.{ref};"
    )
    watched = ", ".join((*columns, "skipped", "withdrawn_at") if unless else columns)
    gone = f"{changed} OR NOT ({unless})" if unless else changed
    return (
        f"CREATE TRIGGER IF NOT EXISTS {table}_unsaid AFTER UPDATE OF {watched} ON {table}"
        f" WHEN {gone} BEGIN {drop} END",
        f"CREATE TRIGGER IF NOT EXISTS {table}_gone AFTER DELETE ON {table} BEGIN {drop} END",
    )


# The terms are made in Python; the tokenizer only splits them at the blanks. Nothing but whether
# a term is there is asked of a text, so its places are not kept. FTS5 wants the very terms of a
# text to take it out again, which the table of terms has.
SEARCH_OBJECTS = (
    "CREATE TABLE IF NOT EXISTS nianlun_search_terms (id INTEGER PRIMARY KEY, terms TEXT NOT NULL)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS nianlun_search USING fts5("
    "terms, content='', columnsize=0, detail=none, tokenize=\"ascii tokenchars '.@'\")",
    "CREATE TRIGGER IF NOT EXISTS nianlun_search_removed AFTER DELETE ON nianlun_search_terms BEGIN"
    " INSERT INTO nianlun_search (nianlun_search, rowid, terms)"
    " VALUES ('delete', old.id, old.terms); END",
    *_removal(
        "nianlun_message",
        ("text", "user_id"),
        ("message",),
        "seq",
        unless=MAY_BE_FOUND.format(row="new."),
    ),
    *_removal("nianlun_activity", ("text", "owner"), ("activity",), "number", unless=""),
    *_removal("nianlun_memory", ("text",), ("day", "month", "year"), "id", unless=""),
    *_removal("nianlun_fact", ("text", "name", "category", "owner"), ("fact",), "id", unless=""),
)
_TABLES = ("nianlun_search", "nianlun_search_terms")
_THERE = f"SELECT name FROM sqlite_master WHERE name IN {_TABLES}"
_MOST_PARTS = 4
"""A search looks into each part of the index. Every commit adds one, and FTS5 would let sixteen of
a size stand before it merges them; the merges of a quarter as many cost a commit 8 µs more."""
_PARTS = "SELECT v FROM nianlun_search_config WHERE k = 'crisismerge'"
_SET_PARTS = "INSERT INTO nianlun_search (nianlun_search, rank) VALUES ('crisismerge', ?)"
STATE = "search_index"
"""The property that says how far the index has got."""
_VOCABULARY = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.nianlun_vocabulary"
    " USING fts5vocab('main', 'nianlun_search', 'row')"
)
_HELD = "SELECT coalesce(sum(doc), 0) FROM temp.nianlun_vocabulary"
_OUGHT = (
    "SELECT coalesce(sum(length(terms) - length(replace(terms, ' ', '')) + 1), 0)"
    " FROM nianlun_search_terms"
)


def keep_few_parts(connection: sqlite3.Connection) -> None:
    """Have the index merge its parts while they are few; writes nothing where that is set."""
    if connection.execute(_PARTS).fetchone() != (_MOST_PARTS,):
        connection.execute(_SET_PARTS, (_MOST_PARTS,))


def drop_half(connection: sqlite3.Connection) -> None:
    """Where somebody took away one of the two tables, take away the other: alone it is wrong."""
    there = [name for (name,) in connection.execute(_THERE)]
    if len(there) == 1:
        _drop(connection)


def is_sound(connection: sqlite3.Connection) -> bool:
    """Whether the index as a whole holds the terms that the table of terms says it holds."""
    try:
        connection.execute(_VOCABULARY)
        # In one view, and without keeping anybody from writing: it reads the whole index.
        (held, ought) = connection.execute(f"SELECT ({_HELD}), ({_OUGHT})").fetchone()
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise
        return False
    return held == ought


def start_over(connection: sqlite3.Connection) -> None:
    """An empty index in place of this one; the background fills it chat by chat."""
    _drop(connection)
    for statement in SEARCH_OBJECTS:
        connection.execute(statement)
    keep_few_parts(connection)


def _drop(connection: sqlite3.Connection) -> None:
    for table in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("DELETE FROM nianlun_property WHERE key = ?", (STATE,))
