"""A chat's whole memory as JSON objects, in the order in which an import wants them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
import json
from typing import Any, cast

from tortoise.expressions import Q

from ..errors import ChatError
from ..types import Activity, ChatKey, Memory, MemoryKind
from . import chats, facts, memories
from .models import Chat, FactVersion, Gap, Speaker, SpeakerName
from .models import Message as MessageRow

_PAGE = 1000
_KINDS: tuple[MemoryKind, ...] = ("day", "month", "year")


async def lines(key: ChatKey, timezone: str, now: datetime) -> AsyncIterator[dict[str, Any]]:
    """One object a line: header, settings, speakers, messages, activities, skipped runs, gaps,
    days, months, years, facts. Raises ChatError when nothing was recorded in the chat."""
    chat = await chats.row(key)
    if chat is None:
        raise ChatError(f"没有记录过 {key.full} 这个会话")
    yield {
        "type": "header",
        "format": "nianlun",
        "version": 1,
        "chat": str(key),
        "self_id": key.self_id,
        **({} if chat.name is None else {"chat_name": chat.name}),
        "timezone": chat.timezone or timezone,
        "exported_at": _utc(now),
    }
    yield _settings(chat)
    async for speaker in _speakers(chat.id):
        yield speaker
    # What comes in meanwhile is left to the next export, or ranges would lead to no message.
    async for message in _messages(chat.id, chat.last_seq):
        yield message
    activities = await memories.all_activities(chat.id)
    masked = await _masked(chat.id)
    for activity in activities:
        if activity.number <= chat.last_activity:
            ranges = _without(activity.ranges, masked)
            # A window of which all was withdrawn has nothing left to tell.
            if ranges or activity.origin != "window":
                yield _activity(replace(activity, ranges=ranges))
    async for run in _skipped(chat.id, chat.last_seq, masked):
        yield run
    for gap in await Gap.filter(chat_id=chat.id).order_by("begins"):
        yield {"type": "gap", "from": _utc(gap.begins), "to": _utc(gap.ends)}
    for kind in _KINDS:
        for memory in await memories.all_memories(chat.id, kind):
            yield await _memory(chat.id, memory)
    async for fact in _facts(chat.id):
        yield fact


def _utc(time: datetime) -> str:
    text = time.astimezone(UTC).isoformat(timespec="auto")
    return text.removesuffix("+00:00") + "Z"


def _settings(chat: Chat) -> dict[str, Any]:
    settings = {
        "type": "settings",
        "paused": chat.paused,
        "muted": chat.muted,
        "persona": chat.persona,
        "daily_token_limit": chat.daily_token_limit,
    }
    if chat.speaker_limit is not None:
        settings["speaker_limit"] = chat.speaker_limit
    return settings


async def _speakers(chat_id: int) -> AsyncIterator[dict[str, Any]]:
    names: dict[str, list[str]] = {}
    for row in await SpeakerName.filter(chat_id=chat_id).order_by("first_seen", "id"):
        names.setdefault(row.user_id, []).append(row.name)
    for speaker in await Speaker.filter(chat_id=chat_id).order_by("id"):
        earlier = [n for n in names.get(speaker.user_id, []) if n != speaker.name]
        line: dict[str, Any] = {
            "type": "speaker",
            "user_id": speaker.user_id,
            "name": speaker.name,
            "names": [speaker.name, *earlier],
            "opted_out": speaker.opted_out_at is not None,
        }
        if speaker.registered_at is not None:
            line["registered_at"] = _utc(speaker.registered_at)
        yield line


async def _messages(chat_id: int, upto: int) -> AsyncIterator[dict[str, Any]]:
    last = 0
    while True:
        part = MessageRow.filter(chat_id=chat_id, seq__gt=last, seq__lte=upto)
        rows = await part.order_by("seq").limit(_PAGE)
        for row in rows:
            yield _message(row)
        if len(rows) < _PAGE:
            return
        last = rows[-1].seq


def _message(row: MessageRow) -> dict[str, Any]:
    message: dict[str, Any] = {
        "type": "message",
        "seq": row.seq,
        "message_id": row.message_id,
        "time": _utc(row.time),
        "user_id": row.user_id,
        "name": row.name,
        "text": row.text,
        "segments": json.loads(row.segments),
        "reply_to": row.reply_to,
        "withdrawn": row.withdrawn_at is not None,
    }
    if row.reply_to is None and row.reply_to_id is not None:
        message["reply_to_id"] = row.reply_to_id
    if row.via is not None:
        message["via"] = row.via
    if row.delivery != "ok":
        message["delivery"] = row.delivery
    return message


async def _masked(chat_id: int) -> set[int]:
    """What was withdrawn out of a window. In the file it is skipped: a window that covers a
    withdrawn message there was written before it was, and so tells its words."""
    rows = MessageRow.filter(chat_id=chat_id, activity_id__not_isnull=True)
    seqs = rows.filter(withdrawn_at__not_isnull=True).values_list("seq", flat=True)
    return set(cast("list[int]", await seqs))


def _without(ranges: Sequence[tuple[int, int]], masked: set[int]) -> tuple[tuple[int, int], ...]:
    """The runs of short ids with holes where these are."""
    found: list[tuple[int, int]] = []
    for first, last in ranges:
        for seq in range(first, last + 1):
            if seq in masked:
                continue
            if found and found[-1][1] == seq - 1:
                found[-1] = (found[-1][0], seq)
            else:
                found.append((seq, seq))
    return tuple(found)


def _activity(activity: Activity) -> dict[str, Any]:
    line: dict[str, Any] = {
        "type": "activity",
        "id": activity.number,
        "date": activity.date,
        "from_seq": activity.ranges[0][0] if activity.ranges else None,
        "to_seq": activity.ranges[-1][1] if activity.ranges else None,
        "text": activity.text,
        "key_messages": list(activity.key_messages),
        "origin": activity.origin,
        "owner": activity.owner,
        "time": _utc(activity.time),
        "writer": activity.writer,
        "written_at": _utc(activity.written_at),
    }
    if activity.source_conv is not None:
        line["source_conv"] = activity.source_conv
    if len(activity.ranges) > 1:
        line["ranges"] = [list(run) for run in activity.ranges]
    return line


async def _skipped(chat_id: int, upto: int, masked: set[int]) -> AsyncIterator[dict[str, Any]]:
    run: dict[str, Any] | None = None
    last = 0
    while True:
        left_out = Q(skipped__isnull=False) | Q(withdrawn_at__isnull=False)
        rows = (
            await MessageRow.filter(left_out, chat_id=chat_id, seq__gt=last, seq__lte=upto)
            .order_by("seq")
            .limit(_PAGE)
            .values_list("seq", "skipped")
        )
        for seq, skipped in rows:
            if skipped is None and seq not in masked:
                continue  # its activity was read before it was withdrawn
            reason = skipped or "withdrawn"
            if run is not None and run["to_seq"] == seq - 1 and run["reason"] == reason:
                run["to_seq"] = seq
                continue
            if run is not None:
                yield run
            run = {"type": "skipped", "from_seq": seq, "to_seq": seq, "reason": reason}
            last = seq
        if len(rows) < _PAGE:
            break
        last = rows[-1][0]
    if run is not None:
        yield run


async def _memory(chat_id: int, memory: Memory) -> dict[str, Any]:
    sources: list[Any] = list(memory.sources)
    if memory.kind == "day":
        sources = [int(source) for source in sources]
    return {
        "type": memory.kind,
        "date": memory.period,
        "text": memory.text,
        "key_messages": list(memory.key_messages),
        "sources": sources,
        "version": memory.version,
        "writer": memory.writer,
        "written_at": _utc(memory.written_at),
        "versions": [
            {
                "version": old.version,
                "text": old.text,
                "writer": old.writer,
                "written_at": _utc(old.written_at),
            }
            for old in await memories.versions(chat_id, memory.kind, memory.period)
        ],
    }


async def _facts(chat_id: int) -> AsyncIterator[dict[str, Any]]:
    for fact, earlier in await facts.everything(chat_id):
        line: dict[str, Any] = {
            "type": "fact",
            "owner": fact.owner or None,
            "category": fact.category,
            "name": fact.name,
            "text": fact.text,
            "source": fact.source,
            "due": fact.due,
            "written_at": _utc(fact.written_at),
            "journal": [_earlier(old) for old in earlier],
        }
        if fact.event_date is not None:
            line["event_date"] = fact.event_date
        yield line


def _earlier(old: FactVersion) -> dict[str, Any]:
    line: dict[str, Any] = {"text": old.text, "written_at": _utc(old.written_at)}
    if old.source is not None:
        line["source"] = old.source
    return line
