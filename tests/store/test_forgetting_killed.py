"""A process that is killed while it forgets: done wholly or not at all, and finished later."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
import shutil
import signal
import sqlite3
import sys

import pytest

from plugins.nonebot_plugin_nianlun.store import database, forgetting
from plugins.nonebot_plugin_nianlun.store.traces import Traces
from tests.support.standalone import finish, put_package, start

NOW = datetime(2026, 11, 29, 4, 0, tzinfo=UTC)
WORDS = ["芝麻开门三百遍", "写进日记的芝麻", "芝麻的名字"]

SCRIPT = """
import asyncio, importlib, os, signal, sys
from datetime import datetime, UTC
from pathlib import Path
from nianlun.store import database, forgetting, traces

where, step, when = sys.argv[2], sys.argv[3], sys.argv[4]
module = importlib.import_module(f"nianlun.store.{where}")
owner = module.Traces if hasattr(module, "Traces") and hasattr(module.Traces, step) else module
inner = getattr(owner, step)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

if asyncio.iscoroutinefunction(inner):
    async def outer(*args, **kwargs):
        if when == "before":
            die()
        await inner(*args, **kwargs)
        die()
else:
    def outer(*args, **kwargs):
        if when == "before":
            die()
        inner(*args, **kwargs)
        die()
setattr(owner, step, outer)

async def main():
    path = Path(sys.argv[1])
    await database.open_store(path)
    await forgetting.forget(1, "20777", datetime(2026, 11, 29, 4, tzinfo=UTC))
    await traces.Traces(path).remove()

asyncio.run(main())
"""

STEPS = [
    ("facts", "forget", "after"),
    ("sql", "blank_speakers", "after"),
    ("withdrawals", "blank_notes", "after"),
    ("speakers", "forget", "after"),
    ("traces", "owe", "before"),
    ("traces", "owe", "after"),
    ("forgetting", "_forget", "after"),
    ("traces", "_drop_backups", "before"),
    ("traces", "_drop_backups", "after"),
    ("traces", "_rewrite", "before"),
    ("traces", "_rewrite", "after"),
]


def fill(path: Path) -> None:
    """A group in which somebody said something that was noted, and a backup of it."""
    said, note, name = WORDS
    at = "2026-11-28 04:00:00+00:00"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"""
            INSERT INTO nianlun_chat (id, self_id, kind, peer_id, last_seq, last_activity,
                created_at) VALUES (1, '10001', 'group', '123', 1, 1, '{at}');
            INSERT INTO nianlun_speaker (chat_id, user_id, name, named_at)
                VALUES (1, '20777', '{name}', '{at}');
            INSERT INTO nianlun_speaker_name (chat_id, user_id, name, name_key, first_seen)
                VALUES (1, '20777', '{name}', '{name}', '{at}');
            INSERT INTO nianlun_activity (id, chat_id, number, date, from_seq, to_seq, text,
                origin, time, writer, written_at)
                VALUES (1, 1, 1, '2026-11-28', 1, 1, '{note}', 'window', '{at}', 'model', '{at}');
            INSERT INTO nianlun_message (chat_id, seq, dedup_key, message_id, time, user_id, name,
                text, source, activity_id)
                VALUES (1, 1, '1|1|20777', '1', '{at}', '20777', '{name}', '{said}', 'event', 1);
        """)
        database.back_up(connection, path, "0002")


def files_with(folder: Path) -> dict[str, set[str]]:
    files = [path for path in folder.rglob("*.db*") if path.is_file()]
    return {word: {f.name for f in files if word.encode() in f.read_bytes()} for word in WORDS}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize(("where", "step", "when"), STEPS)
async def test_a_kill_at_any_step(
    prepared_database: Path, tmp_path: Path, where: str, step: str, when: str
) -> None:
    path = tmp_path / "data" / "nianlun.db"
    path.parent.mkdir()
    shutil.copy(prepared_database, path)
    fill(path)
    put_package(tmp_path)
    status, _, complaints = finish(start(tmp_path, SCRIPT, path, where, step, when))
    assert status == -signal.SIGKILL, complaints

    await database.prepare(path)
    await database.open_store(path)
    try:
        left = {word for word, files in files_with(path.parent).items() if files}
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT text, name FROM nianlun_message").fetchall()
            notes = connection.execute("SELECT text, stale FROM nianlun_activity").fetchall()
        if step == "_forget" or (where == "traces" and step != "owe"):
            assert (rows, notes) == ([("", "")], [("", 1)])
        else:
            assert (rows, notes) == ([(WORDS[0], WORDS[2])], [(WORDS[1], 0)])
            assert left == set(WORDS)
            assert (await forgetting.forget(1, "20777", NOW)).messages == 1
        assert await Traces(path).remove()
        assert files_with(path.parent) == {word: set() for word in WORDS}
        assert len(database.backups(path)) == 1
    finally:
        await database.close_store()
