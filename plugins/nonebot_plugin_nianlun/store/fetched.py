"""Which lines of a fetched history are stored already, whatever ids they bear now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..types import ME, Incoming
from . import exclusions, speakers, sql, withdrawals
from .database import transactional
from .keys import chunks, short_id
from .matching import Line, Matching, Near, words
from .models import Message as MessageRow
from .recording import Readable, dedup_key

_CLOCKS_APART = timedelta(hours=12)
"""How far the time of our own line, by our clock, may lie from the platform's."""


@dataclass(slots=True)
class Sorted:
    """What is to be done about the lines of a history."""

    new: list[Line] = field(default_factory=list)
    """To be recorded, in the order given; a few of them may be known to the recording."""
    taken_back: list[int] = field(default_factory=list)
    """Short ids of stored messages that the other side says were taken back."""
    delivered: list[int] = field(default_factory=list)
    """Short ids of our own lines that arrived after all."""


async def sort_out(
    chat_id: int, lines: Sequence[Line], readable: Readable, character: str
) -> Sorted:
    """Compare the lines of a history, given at once, with what is stored of the chat.

    The same id, second and speaker are the same message, and so are the same second, speaker
    and words; both sides are multisets, so that of two equal lines one may be new.
    """
    messages = [line.message for line in lines]
    names = await speakers.names_for_mentions(chat_id, messages, character)
    texts: dict[int, str] = {}

    def text_of(index: int) -> str:
        if index not in texts:
            texts[index] = readable(messages[index].segments, names)
        return texts[index]

    keys = _keys(messages)
    claimed: dict[int, None] = {}
    matching = Matching(chat_id, lines, keys, text_of, claimed)
    await matching.run()
    known = dict(matching.found)
    known |= await _unrecorded(chat_id, messages, known, claimed)
    wordless = [
        index
        for index, line in enumerate(lines)
        if index not in known and line.withdrawn and not text_of(index)
    ]
    known |= await _wordless(chat_id, {index: messages[index] for index in wordless}, claimed)
    own = [i for i, m in enumerate(messages) if i not in known and m.user_id == ME]
    known |= await _own_by_id(chat_id, {i: messages[i] for i in own}, text_of, claimed)
    sorted_ = Sorted()
    for index, line in enumerate(lines):
        row = known.get(index)
        # What has no id is numbered within its second when it is recorded, so all of it goes.
        numbered = row is not None and line.message.message_id is None and row.key == keys[index]
        if row is None or numbered:
            sorted_.new.append(line)
        if row is not None and line.withdrawn and not row.withdrawn:
            sorted_.taken_back.append(row.seq)
        elif row is not None and row.user_id == ME:
            sorted_.delivered.append(row.seq)
    return sorted_


def _keys(messages: Sequence[Incoming]) -> list[str]:
    keys: list[str] = []
    seen: Counter[str] = Counter()
    for message in messages:
        key = dedup_key(message)
        keys.append(key if message.message_id else dedup_key(message, seen[key]))
        seen[key] += 1
    return keys


async def _own_by_id(
    chat_id: int,
    left: Mapping[int, Incoming],
    text_of: Callable[[int], str],
    claimed: Mapping[int, None],
) -> dict[int, Near]:
    """Our own lines bear the time of our clock, which may be far from the platform's."""
    ids = {
        short_id(message.message_id): index
        for index, message in left.items()
        if message.message_id is not None
    }
    found: dict[int, Near] = {}
    for part in chunks(list(ids)):
        for row in await MessageRow.filter(chat_id=chat_id, user_id=ME, message_id__in=part):
            index = ids[row.message_id or ""]
            apart = abs(row.time - left[index].time)
            if row.seq in claimed or index in found or apart > _CLOCKS_APART:
                continue
            if row.withdrawn_at is not None or words(row.text) == words(text_of(index)):
                found[index] = _near(row)
    return found


async def _unrecorded(
    chat_id: int,
    messages: Sequence[Incoming],
    known: Mapping[int, Near],
    claimed: dict[int, None],
) -> dict[int, Near]:
    """What may not be recorded has no words here: whoever said something then, said that."""
    if not messages:
        return {}
    first, last = messages[0].time, messages[-1].time + timedelta(seconds=1)
    rows = MessageRow.filter(chat_id=chat_id, time__gte=first, time__lt=last)
    rows = rows.filter(skipped__in=exclusions.UNRECORDED)
    by_speaker: dict[tuple[int, str], list[Near]] = {}
    for near in map(_near, await rows.order_by("seq")):
        if near.seq not in claimed:
            by_speaker.setdefault((near.second, near.user_id), []).append(near)
    found: dict[int, Near] = {}
    for index, message in enumerate(messages):
        same = by_speaker.get((int(message.time.timestamp()), short_id(message.user_id)))
        if index not in known and same:
            found[index] = same.pop(0)
            claimed[found[index].seq] = None
    return found


async def _wordless(
    chat_id: int, left: Mapping[int, Incoming], claimed: dict[int, None]
) -> dict[int, Near]:
    """Messages that were taken back and have other ids: all that somebody said in a second, if
    there are no more of them."""
    by_second: dict[tuple[datetime, str], list[int]] = {}
    for index, message in left.items():
        by_second.setdefault((message.time, short_id(message.user_id)), []).append(index)
    found: dict[int, Near] = {}
    for (second, user_id), indices in by_second.items():
        of_second = MessageRow.filter(
            chat_id=chat_id,
            user_id=user_id,
            time__gte=second,
            time__lt=second + timedelta(seconds=1),
        )
        rows = [row for row in await of_second.order_by("seq") if row.seq not in claimed]
        if len(rows) <= len(indices):
            claimed |= {row.seq: None for row in rows}
            found |= dict(zip(indices, map(_near, rows), strict=False))
    return found


def _near(row: MessageRow) -> Near:
    second = int(row.time.timestamp())
    masked = row.withdrawn_at is not None
    return Near(row.seq, row.dedup_key, second, row.user_id, row.name, row.text, masked)


@transactional
async def settle(chat_id: int, found: Sorted, at: datetime) -> None:
    """Mask what was taken back meanwhile, and note what arrived. Raises StoreError."""
    await sql.move_last_seqs({chat_id: 0})
    for seq in found.taken_back:
        await withdrawals.mask(chat_id, seq, at)
    doubtful = MessageRow.filter(chat_id=chat_id, delivery="unknown", seq__in=found.delivered)
    await doubtful.update(delivery="ok")
