"""What several end-to-end tests look at."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
import json
from subprocess import CompletedProcess
import time
from typing import Any, NamedTuple, TypeVar

from tests.support.bot_process import BotProcess, Row

T = TypeVar("T")

_STORED = (
    "SELECT m.seq, m.message_id, m.user_id, m.name, m.text, m.time, m.via, m.skipped"
    " FROM nianlun_message m JOIN nianlun_chat c ON c.id = m.chat_id"
    " WHERE c.kind = ? AND c.peer_id = ? ORDER BY m.seq"
)


class Stored(NamedTuple):
    """A message as it lies in the database."""

    seq: int
    message_id: str | None
    user_id: str
    name: str
    text: str
    time: str
    via: str | None
    skipped: str | None


def stored(bot: BotProcess, chat: str) -> list[Stored]:
    """All messages of `group:1` or `private:1`, whichever account saw them."""
    kind, _, peer = chat.partition(":")
    return [Stored(*row) for row in bot.query(_STORED, kind, peer)]


async def until(look: Callable[[], T], within: float = 10, every: float = 0.02) -> T:
    """Look again and again until there is something true to see."""
    end = time.monotonic() + within
    while not (seen := look()):
        if time.monotonic() > end:
            raise AssertionError(f"still {seen!r} after {within} s")
        await asyncio.sleep(every)
    return seen


async def wait_stored(bot: BotProcess, chat: str, count: int, within: float = 10) -> list[Stored]:
    """Wait until a chat has at least `count` messages in the database; returns all of them."""

    def enough() -> list[Stored]:
        rows = stored(bot, chat)
        return rows if len(rows) >= count else []

    try:
        return await until(enough, within)
    except AssertionError:
        rows = stored(bot, chat)
        raise AssertionError(f"{len(rows)} of {count} messages of {chat} are stored") from None


def of_type(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["type"] == kind]


def runs(row: Row) -> list[tuple[int, int]]:
    """The runs of `seq` of an activity or a skipped row."""
    if row["from_seq"] is None:
        return []
    return [(run[0], run[1]) for run in row.get("ranges") or [(row["from_seq"], row["to_seq"])]]


def seqs_of(row: Row) -> list[int]:
    return [seq for first, last in runs(row) for seq in range(first, last + 1)]


def check_cover(rows: list[Row]) -> None:
    """Every message is in exactly one window or skipped range, and none is pending."""
    messages = [row["seq"] for row in of_type(rows, "message")]
    assert messages == list(range(1, len(messages) + 1))
    covers = of_type(rows, "activity") + of_type(rows, "skipped")
    covered = Counter(seq for row in covers for seq in seqs_of(row))
    assert covered == Counter(messages)


def check_citations(rows: list[Row]) -> None:
    """An activity cites messages of its own window, a day those of its sources."""
    windows = {row["id"]: set(seqs_of(row)) for row in of_type(rows, "activity")}
    for activity in of_type(rows, "activity"):
        assert set(activity["key_messages"]) <= windows[activity["id"]]
    for day in of_type(rows, "day"):
        shown = set[int]().union(*(windows[source] for source in day["sources"]))
        assert set(day["key_messages"]) <= shown


def check_failure(done: CompletedProcess[str]) -> None:
    """A command that failed says why in one line."""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr


def asked(request: dict[str, Any]) -> str:
    """All that a chat completion request says, as one text."""
    return "\n".join(
        message["content"]
        if isinstance(message["content"], str)
        else json.dumps(message["content"], ensure_ascii=False)
        for message in request["messages"]
    )


def calls_for_notes(request: dict[str, Any]) -> bool:
    """Whether a request asks for an activity or a memory, rather than for a reply."""
    said = asked(request)
    return "add_activity" in said or "update_memory" in said
