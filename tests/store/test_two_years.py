"""Two years of a chat: what its memory still knows, and how often it was written."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from datetime import date
import json
from pathlib import Path
import sqlite3
import sys
from typing import Any

from plugins.nonebot_plugin_nianlun.store import invariants, messages
from tests.support.long_chat import CALENDAR, LongChat, Recollection, begin, statements

DAYS = 731  # 2024 and 2025
MESSAGES = 25_000
FACTS = 200

_WRITTEN = """
    SELECT kind, period, version, text, sources, writer, written_at FROM nianlun_memory
    UNION ALL
    SELECT kind, ref, version, text, sources, writer, written_at FROM nianlun_note_version
    ORDER BY kind, period, version
"""


def written(file: Path) -> list[tuple[str, str, int, str, str, str, str]]:
    """Every version of every memory: kind, period, version, text, sources, writer, time."""
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(_WRITTEN).fetchall()


def check_versions(rows: list[tuple[str, str, int, str, str, str, str]]) -> None:
    """None is missing, and each says what it was written from, by whom and when."""
    kept: dict[tuple[str, str], list[int]] = {}
    for kind, period, version, text, sources, writer, written_at in rows:
        kept.setdefault((kind, period), []).append(version)
        assert text
        assert json.loads(sources)
        assert writer == "model"
        assert written_at >= period
    assert all(versions == list(range(1, len(versions) + 1)) for versions in kept.values())


async def check_reachable(chat: LongChat, found: Recollection) -> float:
    """The share of the facts that a text or its sources, down to the messages, still say."""
    told = "\n".join(found.reached_texts)
    said = {m.seq: m.text for m in await messages.recent(chat.chat_id, MESSAGES)}
    reached = [
        fact
        for fact, seq in chat.planted.items()
        if fact in told or (seq in found.reached_seqs and said[seq] == fact)
    ]
    return len(reached) / len(chat.facts)


async def test_two_years(database_file: Path) -> None:
    chat = await begin(statements(FACTS), date(2024, 1, 1))
    await chat.live(DAYS, MESSAGES)
    assert (chat.said, len(chat.planted), chat.failures) == (MESSAGES, FACTS, [])
    checked = await invariants.check(database_file, chat.chat_id, CALENDAR, chat.clock.now())
    assert checked.findings == ()

    rows = written(database_file)
    check_versions(rows)
    times = Counter((kind, period) for kind, period, *_ in rows)
    most = {kind: max(n for (k, _), n in times.items() if k == kind) for kind, _ in times}
    assert most["day"] <= 3
    assert most["month"] <= 5
    assert most["year"] <= 13
    rewrites = Counter(row[6][:7] for row in rows if row[2] > 1)
    assert max(rewrites.values()) <= 5

    found = await Recollection.of(chat.chat_id)
    assert found.reached_seqs == set(range(1, MESSAGES + 1))
    reachable = await check_reachable(chat, found)
    shares = {layer: found.share_in(layer, chat.facts) for layer in found.texts}
    figures: dict[str, Any] = {
        "memories": Counter(kind for kind, _ in times),
        "most versions": most,
        "most rewrites in a month": max(rewrites.values()),
        "reachable": reachable,
        "in the texts of": shares,
    }
    sys.stdout.write(f"{figures}\n")
    assert reachable >= 0.95, figures
    # A period that is over is written anew from the layer below, so that it loses a tenth once,
    # however often it was written before.
    assert shares["day"] >= 0.85 * shares["activity"], figures
    assert shares["month"] >= 0.85 * shares["day"], figures
