"""The vectors of a chat in memory, and what is nearest to one among them.

Every comparison is made (brute force): at the number of lines of a chat that is a few
hundredths of a second, and nothing has to be built or kept in balance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
import sqlite3
from typing import TypeVar

import numpy as np

from ..memory.embedding import Near
from ..memory.search import SearchKind
from .reading import ReadThread
from .search_schema import LAST_REF, document, kind_and_ref
from .vectors import Passage, known, missing

T = TypeVar("T")

_MOST_BYTES = 192 * 2**20
"""Of all vectors in memory: 131,000 of 384 numbers."""
_MOST_LINES = 100_000
_STORED, _HELD = np.float16, np.float32
_PART = 5000
_ROWS = "SELECT id, kind, ref, vector FROM nianlun_vector WHERE chat_id = ? AND model = ?"
_NOTES = f"{_ROWS} AND kind <> 'message' ORDER BY ref DESC LIMIT ?"
_LINES = f"{_ROWS} AND kind = 'message' ORDER BY ref DESC LIMIT ?"
# By the row id alone: what is new is little, and stands at the end.
_NEW = (
    "SELECT id, kind, ref, vector FROM nianlun_vector NOT INDEXED"
    " WHERE chat_id = ? AND model = ? AND id > ? ORDER BY id LIMIT ?"
)
_TOTAL = "SELECT count(*) FROM nianlun_vector WHERE chat_id = ? AND model = ?"
_LAST = "SELECT coalesce(max(id), 0) FROM nianlun_vector"
_IDS = "SELECT id FROM nianlun_vector WHERE chat_id = ? AND model = ?"


def _unit(vector: Sequence[float]) -> np.ndarray:
    whole = np.asarray(vector, np.float64)
    whole /= np.abs(whole).max()  # squares of very large or small numbers are beyond what is held
    return (whole / np.linalg.norm(whole)).astype(_HELD)


def _most(size: int) -> int:
    """So many vectors of so many numbers fit into memory."""
    return max(8, _MOST_BYTES // (size * _HELD(0).itemsize))


class VectorIndex:
    """Reads in a thread and on a connection of its own. Methods raise StoreError."""

    def __init__(self, path: Path) -> None:
        self._reading = ReadThread(path, "nianlun-vectors")
        self._held: dict[int, _Held] = {}
        """By chat, what was asked for last at the end."""

    async def nearest(
        self, chat_id: int, model: str, vector: Sequence[float], wanted: int
    ) -> list[Near]:
        """What is nearer than the mean of the chat; empty without vectors of this model.

        Exactly what the table holds now takes part. Whoever gives up waiting does not end the
        reading, so that the next one finds it done.
        """
        return await self._run(
            lambda connection: self._nearest(connection, chat_id, model, vector, wanted)
        )

    @staticmethod
    def pack(vector: Sequence[float]) -> bytes:
        """A vector as it is stored: of length 1, in half precision."""
        return _unit(vector).astype(_STORED).tobytes()

    @staticmethod
    def most_lines(size: int) -> int:
        """So many of a chat's newest messages are compared, by vectors of so many numbers."""
        return min(_MOST_LINES, _most(size) * 3 // 4)

    async def refresh(self) -> None:
        """Let go of what the table does not hold any more."""
        await self._run(self._refresh)

    async def missing(
        self,
        chat_id: int,
        kind: SearchKind,
        model: str,
        *,
        above: int = -1,
        below: int = LAST_REF,
        limit: int,
    ) -> list[Passage]:
        """See `vectors.missing`."""
        return await self._run(
            lambda connection: missing(
                connection, chat_id, kind, model, above=above, below=below, limit=limit
            )
        )

    async def known(self, chat_id: int, model: str, hashes: Sequence[str]) -> dict[str, bytes]:
        """See `vectors.known`."""
        return await self._run(lambda connection: known(connection, chat_id, model, hashes))

    async def close(self) -> None:
        await self._reading.close()
        self._held.clear()

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._reading.run(work, to_its_end=True)

    def _nearest(
        self,
        connection: sqlite3.Connection,
        chat_id: int,
        model: str,
        vector: Sequence[float],
        wanted: int,
    ) -> list[Near]:
        held = self._held.pop(chat_id, None)
        if held is None or (held.model, held.size) != (model, len(vector)):
            held = _Held(chat_id, model, len(vector))
        held.read(connection)
        self._held[chat_id] = held
        self._make_room()
        found = held.nearest(_unit(vector), wanted)
        return [Near(*kind_and_ref(id_), score) for id_, score in found]

    def _refresh(self, connection: sqlite3.Connection) -> None:
        for held in self._held.values():
            held.read(connection)

    def _make_room(self) -> None:
        sizes = {chat_id: held.bytes for chat_id, held in self._held.items()}
        for chat_id in list(sizes)[:-1]:
            if sum(sizes.values()) <= _MOST_BYTES:
                break
            del sizes[chat_id], self._held[chat_id]


class _Held:
    """The vectors of one chat and model, as many of them as there is room for."""

    def __init__(self, chat_id: int, model: str, size: int) -> None:
        self.model = model
        self.size = size
        self._chat_id = chat_id
        self._most = _most(size)
        self._empty()

    def _empty(self) -> None:
        self._last_id = self._total = self._used = 0
        self._ids = np.empty(0, np.int64)
        self._documents = np.empty(0, np.int64)
        self._matrix = np.empty((0, self.size), _HELD)

    @property
    def bytes(self) -> int:
        return self._matrix.nbytes

    def read(self, connection: sqlite3.Connection) -> None:
        """Come to what the table holds: rows are added and removed, and never changed."""
        whose = (self._chat_id, self.model)
        (last_id,) = connection.execute(_LAST).fetchone()
        (total,) = connection.execute(_TOTAL, whose).fetchone()
        if not self._last_id:
            self._load(connection, total)
        elif last_id > self._last_id:
            added = connection.execute(_NEW, (*whose, self._last_id, self._most + 1)).fetchall()
            if self._used + len(added) > self._most:
                self._load(connection, total)
            else:
                self._total += len(added)
                self._append(added)
                self._drop_removed(connection, total)
        else:
            self._drop_removed(connection, total)
        self._last_id, self._total = last_id, total

    def nearest(self, unit: np.ndarray, wanted: int) -> list[tuple[int, float]]:
        """Documents that are nearer than the mean, best first, and how far, in deviations: with
        each model, nearness as such means something else."""
        near = self._matrix[: self._used] @ unit
        spread = near.std() if len(near) else 0.0
        if not spread:
            return []
        near = (near - near.mean()) / spread
        best = np.argsort(-near) if len(near) <= wanted else np.argpartition(-near, wanted)[:wanted]
        best = best[near[best] > 0]
        best = best[np.argsort(-near[best], kind="stable")]
        return list(zip(self._documents[best].tolist(), near[best].tolist(), strict=True))

    def _load(self, connection: sqlite3.Connection, total: int) -> None:
        """Read anew; of messages the newest, with some room for those to come."""
        self._empty()
        whose = (self._chat_id, self.model)
        self._grow(min(total, self._most))
        lines = VectorIndex.most_lines(self.size)
        for query, most in ((_NOTES, self._most // 8), (_LINES, lines)):
            rows = connection.execute(query, (*whose, most))
            while part := rows.fetchmany(_PART):
                self._append(part)

    def _append(self, rows: Sequence[tuple[int, SearchKind, int, bytes]]) -> None:
        whole = [row for row in rows if len(row[3]) == self.size * _STORED(0).itemsize]
        after = self._used + len(whole)
        if after > len(self._ids):
            self._grow(after)
        new = slice(self._used, after)
        self._ids[new] = [row[0] for row in whole]
        self._documents[new] = [document(self._chat_id, kind, ref) for _, kind, ref, _ in whole]
        joined = np.frombuffer(b"".join(row[3] for row in whole), _STORED)
        self._matrix[new] = joined.reshape(-1, self.size)
        self._used = after

    def _grow(self, wanted: int) -> None:
        more = min(wanted + wanted // 8, self._most) - self._used
        self._ids = np.concatenate([self._ids[: self._used], np.zeros(more, np.int64)])
        self._documents = np.concatenate([self._documents[: self._used], np.zeros(more, np.int64)])
        room = np.zeros((more, self.size), _HELD)
        self._matrix = np.concatenate([self._matrix[: self._used], room])

    def _drop_removed(self, connection: sqlite3.Connection, total: int) -> None:
        if total == self._total:
            return
        rows: Iterable[tuple[int]] = connection.execute(_IDS, (self._chat_id, self.model))
        there = np.fromiter((id_ for (id_,) in rows), np.int64)
        kept = np.isin(self._ids[: self._used], there)
        used = int(kept.sum())
        holes, moved = np.flatnonzero(~kept[:used]), np.flatnonzero(kept[used:]) + used
        for held in (self._ids, self._documents, self._matrix):
            held[holes] = held[moved]
            held[used : self._used] = 0  # what is removed must not lie on in memory
        self._used = used
