"""The raw SQL: what the ORM cannot say, or says too slowly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Literal

from tortoise.connection import get_connection

from .keys import NAMELESS, chunks

SCHEMA_OBJECTS = (
    # These are looked for every few seconds and are few among very many. The conditions
    # below repeat these to the letter: a bound parameter would not match a partial index.
    "CREATE INDEX IF NOT EXISTS nianlun_message_pending ON nianlun_message (chat_id, time, seq)"
    " WHERE activity_id IS NULL AND skipped IS NULL",
    "CREATE INDEX IF NOT EXISTS nianlun_activity_loose ON nianlun_activity (chat_id, date)"
    " WHERE merged = 0",
    "CREATE INDEX IF NOT EXISTS nianlun_activity_stale ON nianlun_activity (chat_id, date)"
    " WHERE stale = 1",
    # Before every reply: of thousands of days the few that no month holds yet.
    "CREATE INDEX IF NOT EXISTS nianlun_memory_loose ON nianlun_memory (chat_id) WHERE merged = 0",
    # What a picture showed goes with the message that showed it, whoever takes that back.
    "CREATE TRIGGER IF NOT EXISTS nianlun_message_unshown AFTER UPDATE OF segments"
    " ON nianlun_message WHEN new.segments = '[]'"
    " BEGIN DELETE FROM nianlun_caption WHERE chat_id = old.chat_id AND seq = old.seq; END",
    "CREATE TRIGGER IF NOT EXISTS nianlun_message_shown_no_more AFTER DELETE ON nianlun_message"
    " BEGIN DELETE FROM nianlun_caption WHERE chat_id = old.chat_id AND seq = old.seq; END",
)

_INSERT_MESSAGE = (
    'INSERT INTO "nianlun_message" ("chat_id","seq","dedup_key","message_id","platform_order",'
    '"time","user_id","name","text","segments","reply_to_id","reply_to","source","via",'
    '"delivery","withdrawn_at","skipped") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)'
)
_MOVE_LAST_SEQ = 'UPDATE "nianlun_chat" SET "last_seq" = "last_seq" + ? WHERE "id" = ?'
# A mapper would take longer over these than the database does, and a reply waits for them.
_NOTE_SPEAKER = (
    "INSERT INTO nianlun_speaker (chat_id, user_id, name, named_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (chat_id, user_id) DO UPDATE SET name = excluded.name,"
    " named_at = excluded.named_at WHERE named_at < excluded.named_at"
)
_NOTE_NAME = (
    "INSERT OR IGNORE INTO nianlun_speaker_name (chat_id, user_id, name, name_key, first_seen)"
    " VALUES (?, ?, ?, ?, ?)"
)
_COUNTERS = "SELECT id, last_seq, name FROM nianlun_chat WHERE id IN ({marks})"
_EXCLUSIONS = (
    "SELECT chat_id, reason, user_id, begins, ends FROM nianlun_exclusion"
    " WHERE chat_id IN ({marks}) AND reason IN ('opted_out', 'forgotten', 'paused', 'window')"
)
# Joins: for a row value IN pairs SQLite would use the chat alone and read all that is in it. The
# sign keeps it from the index of reasons, of which a chat may have many alike.
_KNOWN_KEYS = """
WITH pair (chat_id, value) AS (VALUES {pairs})
SELECT m.chat_id, m.dedup_key FROM pair CROSS JOIN nianlun_message m
WHERE m.chat_id = pair.chat_id AND m.dedup_key = pair.value
"""
_WITHDRAWALS = """
WITH pair (chat_id, value) AS (VALUES {pairs})
SELECT e.chat_id, e.message_id, e.user_id, e.begins FROM pair CROSS JOIN nianlun_exclusion e
WHERE e.chat_id = pair.chat_id AND e.message_id = pair.value AND +e.reason = 'withdrawn'
"""
_WITHIN = """
WITH span (first, after) AS (VALUES {pairs})
SELECT m.seq, m.dedup_key, m.time, m.user_id, m.name, m.text, m.source, m.message_id,
    m.withdrawn_at IS NOT NULL OR COALESCE(m.skipped, '') IN ('opted_out', 'paused')
FROM span CROSS JOIN nianlun_message m
WHERE m.chat_id = ? AND m.time >= span.first AND m.time < span.after
"""
_SENT = "AND m.user_id = 'me' AND m.source = 'sent'"
_LAST_HEARD = (
    "SELECT user_id, MAX(time) AS time FROM nianlun_message WHERE chat_id = ? GROUP BY user_id"
)
_LAST_BEFORE = """
SELECT id, (
    SELECT time FROM nianlun_message WHERE chat_id = c.id AND time <= ? ORDER BY time DESC LIMIT 1
) AS time
FROM nianlun_chat c WHERE self_id = ? AND kind <> 'store' AND EXISTS (
    SELECT 1 FROM nianlun_message WHERE chat_id = c.id AND time <= ? AND source <> 'import'
)
"""
_COVERED = """
SELECT activity_id, skipped, withdrawn_at IS NOT NULL AS withdrawn, COUNT(*) AS messages
FROM nianlun_message WHERE chat_id = ? AND seq BETWEEN ? AND ?
GROUP BY activity_id, skipped, withdrawn
"""
_PAIRS = 250
_CHATS_WITH_WORK = """
SELECT chat_id FROM nianlun_message WHERE activity_id IS NULL AND skipped IS NULL
UNION SELECT chat_id FROM nianlun_activity WHERE merged = 0
UNION SELECT chat_id FROM nianlun_activity WHERE stale = 1
UNION SELECT chat_id FROM nianlun_memory
    WHERE closed = 0 OR stale = 1 OR (merged = 0 AND kind <> 'year')
"""
# The sign keeps SQLite from the index of `activity_id`, in which everything that is pending
# has one value: after an import it would be read through for every window.
_CHANGE_PENDING = (
    'UPDATE "nianlun_message" SET "{column}" = ? WHERE "chat_id" = ? AND "seq" IN ({marks})'
    ' AND +"activity_id" IS NULL AND "skipped" IS NULL'
)
_BLANK = "text = '', name = '', segments = '[]', dedup_key = {key}"
# The key of a line without an id holds a hash of its words, which could be guessed from it.
_WORDLESS_KEY = (
    f"CASE WHEN message_id IS NULL OR user_id LIKE '{NAMELESS}%'"
    " THEN substr(dedup_key, 1, instr(dedup_key, '|')) || '|masked|' || seq ELSE dedup_key END"
)
_BLANK_PENDING = (
    f"UPDATE nianlun_message SET {_BLANK}, skipped = 'opted_out'"
    " WHERE chat_id = ? AND user_id = ? AND activity_id IS NULL AND skipped IS NULL"
).format(key=_WORDLESS_KEY)
# Pictures and buttons since the last note, which no note would tell of.
_BLANK_WORDLESS = (
    f"UPDATE nianlun_message SET {_BLANK}, skipped = 'opted_out'"
    " WHERE chat_id = ? AND user_id = ? AND activity_id IS NULL AND skipped = 'empty' AND seq >"
    " (SELECT COALESCE(MAX(to_seq), 0) FROM nianlun_activity WHERE chat_id = ?)"
).format(key=_WORDLESS_KEY)
_BLANK_SINCE = (
    f"UPDATE nianlun_message SET {_BLANK}, skipped = 'paused'"
    " WHERE chat_id = ? AND time > ? AND activity_id IS NULL AND withdrawn_at IS NULL"
    " AND COALESCE(skipped, '') <> 'opted_out'"
).format(key=_WORDLESS_KEY)
# Where nobody knows more of a speaker than the name, the id is the name.
_BLANK_SPEAKERS = (
    f"UPDATE nianlun_message SET {_BLANK}, withdrawn_at = COALESCE(withdrawn_at, ?),"
    " skipped = CASE WHEN activity_id IS NULL THEN 'withdrawn' ELSE skipped END,"
    f" user_id = CASE WHEN user_id LIKE '{NAMELESS}%' THEN ? ELSE user_id END"
    " WHERE chat_id = ? AND user_id IN ({marks})"
)
_SAID_ANYTHING = (
    "SELECT COUNT(*) AS messages FROM nianlun_message WHERE chat_id = ? AND user_id IN ({marks})"
    " AND withdrawn_at IS NULL AND COALESCE(skipped, '') NOT IN ('opted_out', 'paused')"
)
_WINDOWS_OF = (
    "SELECT DISTINCT activity_id FROM nianlun_message WHERE chat_id = ? AND user_id IN ({marks})"
    " AND activity_id IS NOT NULL AND withdrawn_at IS NULL"
)
_SOURCES_WITHIN = (
    "SELECT seq FROM nianlun_message WHERE chat_id = ? AND activity_id IN ({marks}) AND seq IN"
    " (SELECT source FROM nianlun_fact WHERE chat_id = ?"
    " UNION SELECT source FROM nianlun_fact_version WHERE chat_id = ?)"
)
_BUILT_ON = (
    "SELECT id, {period} AS period, text <> '' AS told FROM {table} WHERE chat_id = ? AND kind = ?"
    " AND EXISTS (SELECT 1 FROM json_each(sources) WHERE value IN ({marks}))"
)
_WORDLESS = (
    "SELECT seq FROM nianlun_message WHERE chat_id = ?"
    " AND (withdrawn_at IS NOT NULL OR skipped IN ('opted_out', 'paused'))"
)
_OWNERS = """
SELECT user_id FROM nianlun_message WHERE chat_id = ?
UNION SELECT user_id FROM nianlun_speaker WHERE chat_id = ?
UNION SELECT owner FROM nianlun_fact WHERE chat_id = ?
UNION SELECT owner FROM nianlun_activity WHERE chat_id = ? AND owner IS NOT NULL
"""
_SET_PROPERTY = (
    'INSERT INTO "nianlun_property" ("key", "value") VALUES (?, ?)'
    ' ON CONFLICT ("key") DO UPDATE SET "value" = excluded."value"'
)
_STALE_ACTIVITIES = "SELECT id FROM nianlun_activity WHERE chat_id = ? AND stale = 1"
_OPEN_DATES = """
SELECT date FROM nianlun_activity WHERE chat_id = ? AND merged = 0
UNION SELECT date FROM nianlun_activity WHERE chat_id = ? AND stale = 1
"""


async def insert_messages(rows: Sequence[list[Any]]) -> None:
    """Insert message rows; columns in the order of the statement above."""
    await _many(_INSERT_MESSAGE, rows)


async def move_last_seqs(steps: Mapping[int, int]) -> None:
    """Add to each chat's highest short id, in the order given."""
    await _many(_MOVE_LAST_SEQ, [[step, chat_id] for chat_id, step in steps.items()])


async def counters(chat_ids: Sequence[int]) -> list[tuple[int, int, str | None]]:
    """Row id, highest short id and name of each of these chats."""
    rows = await _of_chats(_COUNTERS, chat_ids)
    return [(row["id"], row["last_seq"], row["name"]) for row in rows]


async def note_name(chat_id: int, user_id: str, name: str, name_key: str, at: datetime) -> None:
    """Put on record that somebody is called so, and shown so unless by a later name."""
    moment = at.isoformat(" ")
    await _many(_NOTE_SPEAKER, [[chat_id, user_id, name, moment]])
    await _many(_NOTE_NAME, [[chat_id, user_id, name, name_key, moment]])


async def exclusions(
    chat_ids: Sequence[int],
) -> list[tuple[int, str, str | None, datetime | None, datetime | None]]:
    """Those of these chats that are about a member or a time: chat row id, reason, user id,
    beginning and end."""
    rows = await _of_chats(_EXCLUSIONS, chat_ids)
    return [
        (
            one["chat_id"],
            one["reason"],
            one["user_id"],
            _moment(one["begins"]),
            _moment(one["ends"]),
        )
        for one in rows
    ]


def _moment(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)


async def _of_chats(query: str, chat_ids: Sequence[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for part in chunks(chat_ids):
        rows += await _rows(query.format(marks=",".join("?" * len(part))), *part)
    return rows


async def known_keys(pairs: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Those of the pairs (chat row id, key) that a stored message has."""
    found = await _of_pairs(_KNOWN_KEYS, pairs)
    return [(row["chat_id"], row["dedup_key"]) for row in found]


async def withdrawals(
    pairs: Sequence[tuple[int, str]],
) -> list[tuple[int, str, str | None, str]]:
    """Notices about these pairs (chat row id, platform id): with whose it was, and the time."""
    found = await _of_pairs(_WITHDRAWALS, pairs)
    return [(row["chat_id"], row["message_id"], row["user_id"], row["begins"]) for row in found]


async def _of_pairs(query: str, pairs: Sequence[tuple[int, str]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    pairs = list(dict.fromkeys(pairs))
    for start in range(0, len(pairs), _PAIRS):
        part = pairs[start : start + _PAIRS]
        marks = ",".join(["(?,?)"] * len(part))
        rows += await _rows(query.format(pairs=marks), *chain.from_iterable(part))
    return rows


async def messages_within(
    chat_id: int, spans: Sequence[tuple[str, str]], *, sent: bool
) -> list[tuple[int, str, str, str, str, str, str, str | None, bool]]:
    """Messages of these spans of time: seq, key, time, user id, name, text, source, the platform's
    id, whether masked.

    A span is its first moment and the one after it, as the time column is written; with `sent`
    only what our own calls sent. In order of seq.
    """
    found: list[tuple[int, str, str, str, str, str, str, str | None, bool]] = []
    for start in range(0, len(spans), _PAIRS):
        part = spans[start : start + _PAIRS]
        query = _WITHIN.format(pairs=",".join(["(?,?)"] * len(part))) + (_SENT if sent else "")
        rows = await _rows(query, *chain.from_iterable(part), chat_id)
        found += [(*values, bool(masked)) for *values, masked in map(dict.values, rows)]
    return sorted(found)


async def covered(
    chat_id: int, first: int, last: int
) -> list[tuple[int | None, str | None, bool, int]]:
    """How many messages from `first` to `last` there are by activity row, skip reason, mask."""
    rows = await _rows(_COVERED, chat_id, first, last)
    return [
        (row["activity_id"], row["skipped"], bool(row["withdrawn"]), row["messages"])
        for row in rows
    ]


async def last_heard(chat_id: int) -> dict[str, str]:
    """When each speaker of a chat said something last. Reads the whole chat."""
    return {row["user_id"]: row["time"] for row in await _rows(_LAST_HEARD, chat_id)}


async def last_before(self_id: str, moment: str) -> list[tuple[int, str]]:
    """Row id and time of the last message of each chat that the account heard until then.

    The moment is written as the time column is.
    """
    rows = await _rows(_LAST_BEFORE, moment, self_id, moment)
    return [(row["id"], row["time"]) for row in rows]


async def change_pending(
    chat_id: int, seqs: Sequence[int], column: Literal["activity_id", "skipped"], value: object
) -> int:
    """Say of pending messages what covers them; returns of how many that was to be said."""
    changed = 0
    for part in chunks(seqs):
        query = _CHANGE_PENDING.format(column=column, marks=",".join("?" * len(part)))
        values = [value, chat_id, *part]
        changed += (await get_connection("default").execute_query(query, values))[0]
    return changed


async def blank_pending(chat_id: int, user_id: str) -> int:
    """Take the words of a speaker's pending messages, and what they sent beside words since the
    last note, and skip all of it; returns how many."""
    query = get_connection("default").execute_query
    pending, _ = await query(_BLANK_PENDING, [chat_id, user_id])
    return pending + (await query(_BLANK_WORDLESS, [chat_id, user_id, chat_id]))[0]


async def blank_since(chat_id: int, moment: datetime) -> int:
    """Take the words of what was said after this moment and is in no note; returns how many."""
    query = get_connection("default").execute_query
    return (await query(_BLANK_SINCE, [chat_id, moment.isoformat(" ")]))[0]


async def windows_of(chat_id: int, user_ids: Sequence[str]) -> list[int]:
    """Row ids of the activities that cover a message of these speakers."""
    query = _WINDOWS_OF.format(marks=",".join("?" * len(user_ids)))
    return [row["activity_id"] for row in await _rows(query, chat_id, *user_ids)]


async def blank_speakers(chat_id: int, user_ids: Sequence[str], at: datetime, instead: str) -> int:
    """Mask every message of these speakers, names too; returns how many still had words.

    A user id that is a name becomes `instead`.
    """
    marks = ",".join("?" * len(user_ids))
    said = await _rows(_SAID_ANYTHING.format(marks=marks), chat_id, *user_ids)
    query = _BLANK_SPEAKERS.format(key=_WORDLESS_KEY, marks=marks)
    values = [at.isoformat(" "), instead, chat_id, *user_ids]
    await get_connection("default").execute_query(query, values)
    return said[0]["messages"]


async def sources_within(chat_id: int, activity_ids: Sequence[int]) -> list[int]:
    """The messages of these windows from which a fact, as it is or as it was, was taken."""
    query = _SOURCES_WITHIN.format(marks=",".join("?" * len(activity_ids)))
    return [row["seq"] for row in await _rows(query, chat_id, *activity_ids, chat_id, chat_id)]


async def built_on(
    chat_id: int, kind: str, sources: Sequence[str], *, earlier: bool
) -> list[tuple[int, str, bool]]:
    """Memories of a kind that hold such a source: row id, period, whether there is a text.

    With `earlier` their earlier texts. Reads all of that kind: a day that was written by another
    calendar stands under another date than what it was built on.
    """
    table, period = ("nianlun_note_version", "ref") if earlier else ("nianlun_memory", "period")
    marks = ",".join("?" * len(sources))
    query = _BUILT_ON.format(table=table, period=period, marks=marks)
    rows = await _rows(query, chat_id, kind, *sources)
    return [(row["id"], row["period"], bool(row["told"])) for row in rows]


async def wordless(chat_id: int) -> list[int]:
    """The messages that lost their words or were stored without. Reads the whole chat."""
    return [row["seq"] for row in await _rows(_WORDLESS, chat_id)]


async def everybody(chat_id: int) -> list[str]:
    """User ids of all to whom anything of a chat belongs. Reads the whole chat."""
    return [row["user_id"] for row in await _rows(_OWNERS, *[chat_id] * 4)]


async def highest_id(table: str) -> int:
    """The highest row id that a table has or had."""
    rows = await _rows("SELECT seq FROM sqlite_sequence WHERE name = ?", table)
    return rows[0]["seq"] if rows else 0


async def set_property(key: str, value: str) -> None:
    await get_connection("default").execute_query(_SET_PROPERTY, [key, value])


async def chats_with_work() -> list[int]:
    """Row ids of chats that may owe something; exact enough to leave quiet chats alone."""
    return [row["chat_id"] for row in await _rows(_CHATS_WITH_WORK)]


async def stale_activities(chat_id: int) -> list[int]:
    return [row["id"] for row in await _rows(_STALE_ACTIVITIES, chat_id)]


async def open_dates(chat_id: int) -> list[str]:
    """Days with an activity that no day memory holds, or that must be written again."""
    return [row["date"] for row in await _rows(_OPEN_DATES, chat_id, chat_id)]


async def _many(query: str, rows: Sequence[list[Any]]) -> None:
    if rows:
        await get_connection("default").execute_many(query, list(rows))


async def _rows(query: str, *values: Any) -> list[dict[str, Any]]:
    return await get_connection("default").execute_query_dict(query, list(values))
