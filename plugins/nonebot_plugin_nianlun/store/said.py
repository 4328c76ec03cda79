"""What people said, as it may be shown: no commands, nothing taken back, forgotten or left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tortoise.queryset import QuerySet

from ..types import Message
from .messages import PART_OF_THE_TALK, to_message
from .models import Message as MessageRow
from .reading import ReadThread
from .search_schema import MAY_BE_FOUND

# All read through all messages of a chat, so they are not done where writing would wait for them.
# An index by speaker would not spare that: whether a message may be shown, and when it was said,
# stands in its row.
_SHOWN = f"FROM nianlun_message WHERE chat_id = ? AND {MAY_BE_FOUND.format(row='')}"
_HEARD = f"SELECT user_id, count(*), max(time) {_SHOWN} GROUP BY user_id"
_LINES_OF = f"SELECT seq {_SHOWN} AND user_id = ? ORDER BY time DESC, seq DESC LIMIT ? OFFSET ?"
_WRITTEN = f"SELECT seq {_SHOWN} AND ({{likes}})"
_LIKE = "text LIKE ? ESCAPE '\\'"
_LONGEST_PATTERN = 500
_ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\%_"})


@dataclass(frozen=True, slots=True)
class Heard:
    """How much of somebody is on record."""

    user_id: str
    messages: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Original:
    """A message by its short id."""

    message: Message
    """Without a text where there is none to be shown."""
    message_id: str | None
    """The platform's."""


def _shown(chat_id: int) -> QuerySet[MessageRow]:
    return MessageRow.filter(PART_OF_THE_TALK, chat_id=chat_id, withdrawn_at=None).exclude(text="")


async def heard(path: Path, chat_id: int) -> list[Heard]:
    """Everybody of whom something may be shown, who said most first. Raises StoreError."""
    rows = await _read(path, _HEARD, (chat_id,))
    people = [Heard(who, count, datetime.fromisoformat(last)) for who, count, last in rows]
    return sorted(people, key=lambda one: (-one.messages, one.user_id))


async def lines_of(path: Path, chat_id: int, user_id: str, skip: int, limit: int) -> list[Message]:
    """The newest lines of one speaker behind the first `skip`, latest first. Raises StoreError."""
    seqs = [seq for (seq,) in await _read(path, _LINES_OF, (chat_id, user_id, limit, skip))]
    rows = await _shown(chat_id).filter(seq__in=seqs).order_by("-time", "-seq")
    return [to_message(row) for row in rows]


async def written(
    path: Path,
    chat_id: int,
    typed: Sequence[str],
    limit: int,
    speaker: str | None = None,
    within: tuple[datetime, datetime] | None = None,
) -> list[int]:
    """The newest lines that hold one of `typed`, its first 500 characters as they stand, but for
    the case of Latin letters; only what `speaker` said, and from the first moment until before the
    second. Raises StoreError."""
    query = _WRITTEN.format(likes=" OR ".join([_LIKE] * len(typed)))
    values: list[object] = [chat_id]
    values += [f"%{one[:_LONGEST_PATTERN].translate(_ESCAPED)}%" for one in typed]
    if speaker is not None:
        query += " AND user_id = ?"
        values.append(speaker)
    if within is not None:
        query += " AND time >= ? AND time < ?"
        values += [moment.astimezone(UTC).isoformat(" ") for moment in within]
    query += " ORDER BY time DESC, seq DESC LIMIT ?"
    return [seq for (seq,) in await _read(path, query, (*values, limit))]


async def originals(chat_id: int, seqs: Iterable[int]) -> dict[int, Original]:
    """These messages as far as they may be shown, and, without a text, those taken back."""
    wanted = list(set(seqs))
    rows = [*await _shown(chat_id).filter(seq__in=wanted)]
    rows += await MessageRow.filter(chat_id=chat_id, seq__in=wanted, withdrawn_at__isnull=False)
    return {row.seq: Original(to_message(row), row.message_id) for row in rows}


async def _read(path: Path, query: str, values: tuple[Any, ...]) -> list[Any]:
    """The rows, read beside all writing on a connection of its own."""
    reading = ReadThread(path, "nianlun-said")
    try:
        return await reading.run(lambda found: found.execute(query, values).fetchall())
    finally:
        await reading.close()
