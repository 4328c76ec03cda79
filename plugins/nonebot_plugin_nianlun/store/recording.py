"""Recording: one message, one row, numbered in event order, whatever arrives how often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, cast
from uuid import uuid4

from ..types import ME, ChatKey, Incoming, Segment, Withdrawal
from . import chats, exclusions, own_lines, search, speakers, sql, withdrawals
from .database import transactional
from .keys import body, chunks, short_id, wordless_key
from .models import Chat
from .models import Message as MessageRow

Readable = Callable[[Sequence[Segment], Callable[[str], str | None]], str]


async def record(
    batch: Sequence[Incoming | Withdrawal], readable: Readable, character: str, now: datetime
) -> None:
    """Store a batch in one transaction: each message once, in event order within its chat.

    `character` is how a mention of the bot itself reads. Raises StoreError when the database
    does not take the batch; then nothing of it is stored.
    """
    ids = await chats.ensure(list(dict.fromkeys(item.chat for item in batch)), now)
    try:
        await _record(batch, ids, readable, character)
    except BaseException:
        # What was noted while the transaction ran is not on record after all.
        speakers.forget_cached_names()
        raise


@transactional
async def _record(
    batch: Sequence[Incoming | Withdrawal],
    ids: dict[ChatKey, int],
    readable: Readable,
    character: str,
) -> None:
    # Always in one order, so that two processes cannot wait for each other.
    arrived: dict[int, list[Incoming]] = {chat_id: [] for chat_id in sorted(ids.values())}
    notices: list[tuple[int, Withdrawal]] = []
    for item in batch:
        if isinstance(item, Incoming):
            arrived[ids[item.chat]].append(item)
        else:
            notices.append((ids[item.chat], item))
    # Statements serve all chats together: with many busy chats, one each would be most of the cost.
    await sql.move_last_seqs({chat_id: len(part) for chat_id, part in arrived.items()})
    excluded = await exclusions.known_for(arrived)
    for chat_id, part in arrived.items():
        arrived[chat_id] = [exclusions.redact(excluded, chat_id, message) for message in part]
    fresh = await _fresh(arrived)
    withdrawn = await withdrawals.known_for(fresh)
    rows: list[list[Any]] = []
    for chat_id, last_seq, name in await sql.counters(list(fresh)):
        new = fresh[chat_id]
        await speakers.note_names(chat_id, new.values(), excluded)
        await _note_chat_name(chat_id, name, list(new.values()))
        first = last_seq - len(arrived[chat_id]) + 1
        rows += await _rows(chat_id, first, new, withdrawn, readable, character)
    await store_rows(rows)
    known = {id_: len(fresh[id_]) - len(part) for id_, part in arrived.items()}
    await sql.move_last_seqs({chat_id: step for chat_id, step in known.items() if step})
    for chat_id, notice in notices:
        await withdrawals.withdraw(chat_id, notice)


async def _fresh(arrived: dict[int, list[Incoming]]) -> dict[int, dict[str, Incoming]]:
    """What is not stored yet, by chat and key, in event order."""
    fresh = {
        chat_id: _keyed(await own_lines.without_known(chat_id, in_event_order(part)))
        for chat_id, part in arrived.items()
    }
    pairs = [(chat_id, key) for chat_id, keyed in fresh.items() for key in keyed]
    for chat_id, key in await sql.known_keys(pairs):
        del fresh[chat_id][key]
    return fresh


def in_event_order(messages: Sequence[Incoming]) -> list[Incoming]:
    """By time; within a second as they were heard, except that the platform's own order stands."""
    ordered = sorted(messages, key=lambda message: (message.time, message.heard_at or message.time))
    by_second: dict[datetime, list[int]] = {}
    for index, message in enumerate(ordered):
        if message.order is not None:
            by_second.setdefault(message.time, []).append(index)
    for indices in by_second.values():
        placed = sorted((ordered[index] for index in indices), key=lambda m: m.order or 0)
        for index, message in zip(indices, placed, strict=True):
            ordered[index] = message
    return ordered


def dedup_key(message: Incoming, occurrence: int = 0) -> str:
    """What two deliveries of one message have in common.

    With a platform id: second, id and speaker, for ids are used again by some platforms.
    Without: second, speaker, text, and how many equal lines came before it. A line that was
    sent and got no id is never delivered again. The second leads, so that new keys are
    neighbours in the index and a commit touches few of its pages.
    """
    second = int(message.time.timestamp())
    if message.message_id is not None:
        return short_id(f"{second}|{message.message_id}|{message.user_id}", 255)
    if message.source == "sent":
        return f"{second}||{ME}|{uuid4().hex}"
    content = sha256(body(message.segments).encode()).hexdigest()
    return f"{second}||{short_id(message.user_id, 64)}|{content}|{occurrence}"


async def _rows(
    chat_id: int,
    first: int,
    fresh: dict[str, Incoming],
    withdrawn: withdrawals.Known,
    readable: Readable,
    character: str,
) -> list[list[Any]]:
    """The rows of one chat's new messages, the first of them numbered `first`."""
    new = list(fresh.values())
    names = await speakers.names_for_mentions(chat_id, new, character)
    replies = await reply_targets(chat_id, new)
    rows: list[list[Any]] = []
    for seq, (key, message) in enumerate(fresh.items(), first):
        text = readable(message.segments, names)
        masked_at = withdrawals.masked_at(withdrawn, chat_id, message)
        reply_to = replies.get(short_id(message.reply_to_id or ""))
        rows.append(message_row(chat_id, seq, key, message, text, masked_at, reply_to))
        if message.message_id is not None:
            replies[short_id(message.message_id)] = seq
    return rows


def _keyed(messages: Iterable[Incoming]) -> dict[str, Incoming]:
    keyed: dict[str, Incoming] = {}
    occurrences: dict[str, int] = {}
    for message in messages:
        key = dedup_key(message)
        if message.message_id is None:
            number = occurrences.get(key, 0)
            occurrences[key] = number + 1
            keyed[dedup_key(message, number) if number else key] = message
        else:
            keyed.setdefault(key, message)
    return keyed


def message_row(
    chat_id: int,
    seq: int,
    key: str,
    message: Incoming,
    text: str,
    masked_at: datetime | None,
    reply_to: int | None,
) -> list[Any]:
    """Values in the order of `sql.insert_messages`; of what is masked or unrecorded, no words."""
    skipped = message.skipped or (None if _visible(text) else "empty")
    segments = body(message.segments)
    if skipped in exclusions.UNRECORDED:
        text, segments = "", "[]"
    if masked_at is not None:
        text, segments, skipped = "", "[]", "withdrawn"
        key = key if message.message_id is not None else wordless_key(message.time, seq)
    return [
        chat_id,
        seq,
        key,
        None if message.message_id is None else short_id(message.message_id),
        message.order,
        message.time.isoformat(" "),
        short_id(message.user_id),
        message.name,
        text,
        segments,
        None if message.reply_to_id is None else short_id(message.reply_to_id),
        reply_to,
        message.source,
        message.via,
        message.delivery,
        None if masked_at is None else masked_at.isoformat(" "),
        skipped,
    ]


async def store_rows(rows: Sequence[list[Any]]) -> None:
    """Insert message rows and make their texts findable; runs inside a transaction."""
    entries = [
        search.Entry(row[0], "message", row[1], row[8], row[6]) for row in rows if row[16] is None
    ]
    await sql.insert_messages(rows)
    await search.write(search.rows_of(entries))


def _visible(text: str) -> bool:
    return any(character.isprintable() and not character.isspace() for character in text)


async def _note_chat_name(chat_id: int, known: str | None, messages: Sequence[Incoming]) -> None:
    newest = next((m.chat_name for m in reversed(messages) if m.chat_name), None)
    if newest is not None and newest != known:
        await Chat.filter(id=chat_id).update(name=newest)


async def reply_targets(chat_id: int, messages: Iterable[Incoming]) -> dict[str, int]:
    """The stored messages that these answer, by the platform's id."""
    ids = list({short_id(m.reply_to_id) for m in messages if m.reply_to_id is not None})
    found: dict[str, int] = {}
    for part in chunks(ids):
        query = MessageRow.filter(chat_id=chat_id, message_id__in=part).order_by("time", "seq")
        # The newest wins where an id was used twice.
        found |= dict(cast("list[tuple[str, int]]", await query.values_list("message_id", "seq")))
    return found
