"""The raw SQL: what the ORM cannot say, or says too slowly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from tortoise.connection import get_connection

SCHEMA_OBJECTS = (
    # All three are looked for every few seconds and are few among very many. The conditions
    # below repeat these to the letter: a bound parameter would not match a partial index.
    "CREATE INDEX IF NOT EXISTS nianlun_message_pending ON nianlun_message (chat_id, time, seq)"
    " WHERE activity_id IS NULL AND skipped IS NULL",
    "CREATE INDEX IF NOT EXISTS nianlun_activity_loose ON nianlun_activity (chat_id, date)"
    " WHERE merged = 0",
    "CREATE INDEX IF NOT EXISTS nianlun_activity_stale ON nianlun_activity (chat_id, date)"
    " WHERE stale = 1",
)

_INSERT_MESSAGE = (
    'INSERT INTO "nianlun_message" ("chat_id","seq","dedup_key","message_id","platform_order",'
    '"time","user_id","name","text","segments","reply_to_id","reply_to","source","via",'
    '"delivery","withdrawn_at","skipped") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)'
)
_MOVE_LAST_SEQ = 'UPDATE "nianlun_chat" SET "last_seq" = "last_seq" + ? WHERE "id" = ?'
_KNOWN_KEYS = (
    'SELECT "chat_id", "dedup_key" FROM "nianlun_message"'
    ' WHERE ("chat_id", "dedup_key") IN (VALUES {pairs})'
)
_WITHDRAWALS = (
    'SELECT "chat_id", "message_id", "user_id", "begins" FROM "nianlun_exclusion"'
    ' WHERE "reason" = \'withdrawn\' AND ("chat_id", "message_id") IN (VALUES {pairs})'
)
_PAIRS = 250
_CHATS_WITH_WORK = """
SELECT chat_id FROM nianlun_message WHERE activity_id IS NULL AND skipped IS NULL
UNION SELECT chat_id FROM nianlun_activity WHERE merged = 0
UNION SELECT chat_id FROM nianlun_activity WHERE stale = 1
UNION SELECT chat_id FROM nianlun_memory
    WHERE closed = 0 OR stale = 1 OR (merged = 0 AND kind <> 'year')
"""
_LOOSE_ACTIVITIES = "SELECT id FROM nianlun_activity WHERE chat_id = ? AND merged = 0 AND stale = 0"
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
    for start in range(0, len(pairs), _PAIRS):
        part = pairs[start : start + _PAIRS]
        marks = ",".join(["(?,?)"] * len(part))
        rows += await _rows(query.format(pairs=marks), *chain.from_iterable(part))
    return rows


async def chats_with_work() -> list[int]:
    """Row ids of chats that may owe something; exact enough to leave quiet chats alone."""
    return [row["chat_id"] for row in await _rows(_CHATS_WITH_WORK)]


async def loose_activities(chat_id: int) -> list[int]:
    return [row["id"] for row in await _rows(_LOOSE_ACTIVITIES, chat_id)]


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
