"""What pictures show and forwards hold: it comes later than their message, and only to one that
still stands as it was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
import json
from typing import NamedTuple, cast

from tortoise.connection import get_connection

from ..types import ME, Segment
from . import exclusions, search, sql
from .database import transactional
from .keys import body, chunks
from .messages import PART_OF_THE_TALK
from .models import Caption
from .models import Message as MessageRow
from .search_schema import MAY_BE_FOUND

SHOWING = (
    # The sign keeps SQLite to the index of the time: at a start the number bounds nothing.
    "SELECT seq FROM nianlun_message WHERE chat_id = ? AND +seq > ? AND +seq <= ? AND time >= ?"
    f" AND user_id <> '{ME}' AND source <> 'import' AND {MAY_BE_FOUND.format(row='')}"
    ' AND (segments LIKE \'%"type":"image"%\' OR segments LIKE \'%"type":"forward"%\')'
    " ORDER BY seq"
)
_SHOW = (
    "UPDATE nianlun_message SET text = ?, segments = ?"
    f" WHERE chat_id = ? AND seq = ? AND segments = ? AND {MAY_BE_FOUND.format(row='')}"
)


class Showing(NamedTuple):
    """A message that pictures or forwards may still be looked up for."""

    seq: int
    message_id: str | None
    user_id: str
    name: str
    time: datetime
    segments: list[Segment]


async def showing(chat_id: int, after: int, to: int, since: datetime) -> list[int]:
    """Messages of others with a picture or a forward: those numbered `after` to `to`, said since
    then. Imported ones are left out, for their addresses come from a file."""
    values = [chat_id, after, to, since.isoformat(" ")]
    rows = await get_connection("default").execute_query_dict(SHOWING, values)
    return [row["seq"] for row in rows]


async def standing(chat_id: int, seq: int) -> Showing | None:
    """The message as it is now; None once it may not be looked at any more."""
    said = MessageRow.filter(PART_OF_THE_TALK, chat_id=chat_id, seq=seq, withdrawn_at=None)
    row = await said.first()
    if row is None or await exclusions.opted_out(chat_id, row.user_id):
        return None
    segments = cast("list[Segment]", json.loads(row.segments))
    return Showing(row.seq, row.message_id, row.user_id, row.name, row.time, segments)


async def known(chat_id: int, hashes: Sequence[str]) -> dict[str, str]:
    """What is known of these pictures of a chat; an empty text: that nothing is to be seen."""
    found: dict[str, str] = {}
    for part in chunks(hashes):
        rows = Caption.filter(chat_id=chat_id, content_hash__in=part)
        pairs = await rows.values_list("content_hash", "text")
        found |= dict(cast("list[tuple[str, str]]", pairs))
    return found


@transactional
async def show(
    chat_id: int, before: Showing, segments: Sequence[Segment], text: str, seen: Mapping[str, str]
) -> bool:
    """Give a message these segments and this text, and keep what was seen, by content hash.

    False, and nothing is kept, when the message is not any more what `before` says.
    """
    await sql.move_last_seqs({chat_id: 0})
    values = [text, body(segments), chat_id, before.seq, body(before.segments)]
    changed, _ = await get_connection("default").execute_query(_SHOW, values)
    if not changed:
        return False
    await search.add(chat_id, "message", [before.seq])
    rows = [
        Caption(chat_id=chat_id, content_hash=key, seq=before.seq, text=said)
        for key, said in seen.items()
    ]
    await Caption.bulk_create(rows, ignore_conflicts=True)
    return True
