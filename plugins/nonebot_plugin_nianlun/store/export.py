"""A chat's whole memory as JSON objects, in the order in which an import wants them.

Links to other chats are not part of it: the owner of one installation decided on them, and a file
must not open the memory of another chat wherever it is brought in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
import json
from typing import Any, cast

from tortoise.expressions import Q

from ..errors import ChatError
from ..memory.vault_pages import END
from ..types import Activity, ChatKey, MemoryKind
from . import chats, facts, memories
from .models import Activity as ActivityRow
from .models import Chat, Exclusion, FactVersion, Gap, NoteVersion, Speaker, SpeakerName, UsageCount
from .models import Memory as MemoryRow
from .models import Message as MessageRow

_PAGE = 1000
_KINDS: tuple[MemoryKind, ...] = ("day", "month", "year")
_COUNTS = (
    "model",
    "calls",
    "failures",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
)


async def lines(key: ChatKey, timezone: str, now: datetime) -> AsyncIterator[dict[str, Any]]:
    """One object a line: header, settings, speakers, messages, activities, skipped runs, gaps,
    days, months, years, facts, usage, exclusions, and the end, which tells how many lines there
    are before it. Raises ChatError when nothing was recorded in the chat. What comes in meanwhile
    is left to the next export.
    """
    count = 0
    async for line in _records(key, timezone, now):
        count += 1
        yield line
    yield {"type": END, "records": count}


async def _records(key: ChatKey, timezone: str, now: datetime) -> AsyncIterator[dict[str, Any]]:
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
        "ends_with": END,
    }
    yield _settings(chat)
    async for speaker in _speakers(chat.id):
        yield speaker
    async for message in _messages(chat.id, chat.last_seq):
        yield message
    masked = await _masked(chat.id)
    there: set[str] = set()
    """What the sources of a note can lead to."""
    async for activity in _activities(chat, masked):
        if not _is_bare(activity["origin"], activity["from_seq"]):
            there.add(str(activity["id"]))
        yield activity
    async for run in _skipped(chat.id, chat.last_seq, masked):
        yield run
    for gap in await Gap.filter(chat_id=chat.id).order_by("begins"):
        yield {"type": "gap", "from": _utc(gap.begins), "to": _utc(gap.ends)}
    for kind in _KINDS:
        async for memory in _memories(chat.id, kind, there):
            there.add(memory["date"])
            yield memory
    async for fact in _facts(chat.id):
        yield fact
    for usage in await UsageCount.filter(chat_id=chat.id).order_by("date", "purpose", "model"):
        counts = {key: getattr(usage, key) for key in _COUNTS}
        yield {"type": "usage", "date": usage.date, "purpose": usage.purpose, **counts}
    for exclusion in await Exclusion.filter(chat_id=chat.id).order_by("id"):
        yield _exclusion(exclusion)


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
    seldom = {key: getattr(chat, key) for key in ("speaker_limit", "members_read", "day_starts_at")}
    return settings | {key: value for key, value in seldom.items() if value is not None}


async def _speakers(chat_id: int) -> AsyncIterator[dict[str, Any]]:
    names: dict[str, dict[str, datetime]] = {}
    for row in await SpeakerName.filter(chat_id=chat_id).order_by("first_seen", "id"):
        names.setdefault(row.user_id, {})[row.name] = row.first_seen
    for speaker in await Speaker.filter(chat_id=chat_id).order_by("id"):
        since = names.get(speaker.user_id, {})
        # An import may once have put on record that somebody was called nothing.
        earlier = [name for name in since if name and name != speaker.name]
        line: dict[str, Any] = {
            "type": "speaker",
            "user_id": speaker.user_id,
            "name": speaker.name,
            "names": [speaker.name, *earlier],
            "names_since": [
                _utc(since.get(name, speaker.named_at)) for name in (speaker.name, *earlier)
            ],
            "named_at": _utc(speaker.named_at),
            "opted_out": speaker.opted_out_at is not None,
        }
        if speaker.opted_out_at is not None:
            line["opted_out_at"] = _utc(speaker.opted_out_at)
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
    if row.withdrawn_at is not None:
        message["withdrawn_at"] = _utc(row.withdrawn_at)
    seldom = {"reply_to_id": row.reply_to_id, "order": row.platform_order, "via": row.via}
    message |= {key: value for key, value in seldom.items() if value is not None}
    if row.delivery != "ok":
        message["delivery"] = row.delivery
    if row.source != "import":
        message["source"] = row.source
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


async def _activities(chat: Chat, masked: set[int]) -> AsyncIterator[dict[str, Any]]:
    rows = {row.number: row for row in await ActivityRow.filter(chat_id=chat.id)}
    earlier = await _earlier_notes(chat.id, "activity")
    for activity in await memories.all_activities(chat.id):
        ranges = _without(activity.ranges, masked)
        row = rows.get(activity.number)
        if row is not None and activity.number <= chat.last_activity:
            line = _activity(replace(activity, ranges=ranges))
            state = {"version": row.version, "merged": row.merged, "stale": row.stale}
            if _is_bare(row.origin, line["from_seq"]):
                state |= {"merged": True, "stale": False}
            versions = [_version(old) for old in earlier.get(str(activity.number), [])]
            yield line | state | _cost(row.usage) | {"versions": versions}


def _is_bare(origin: str, from_seq: int | None) -> bool:
    """Whether it is a window of which all is gone: it was deleted, or all of it taken back. There
    is its number, for whoever asks what became of it, and nothing to write it or its day from."""
    return origin == "window" and from_seq is None


async def _earlier_notes(chat_id: int, kind: str) -> dict[str, list[NoteVersion]]:
    found: dict[str, list[NoteVersion]] = {}
    for old in await NoteVersion.filter(chat_id=chat_id, kind=kind).order_by("version"):
        found.setdefault(old.ref, []).append(old)
    return found


def _version(old: NoteVersion) -> dict[str, Any]:
    return {
        "version": old.version,
        "text": old.text,
        "key_messages": json.loads(old.key_messages),
        "writer": old.writer,
        "written_at": _utc(old.written_at),
        "blanked": old.blanked,
        **({"merged": True} if old.merged else {}),
        **_cost(old.usage),
    }


def _cost(usage: str | None) -> dict[str, Any]:
    return {} if usage is None else {"usage": json.loads(usage)}


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


async def _memories(
    chat_id: int, kind: MemoryKind, there: set[str]
) -> AsyncIterator[dict[str, Any]]:
    """The memories of a layer; sources that nothing is left of are left out."""

    def sources(raw: str) -> list[Any]:
        return [int(ref) if kind == "day" else ref for ref in json.loads(raw) if ref in there]

    earlier = await _earlier_notes(chat_id, kind)
    for row in await MemoryRow.filter(chat_id=chat_id, kind=kind).order_by("period"):
        yield {
            "type": kind,
            "date": row.period,
            "text": row.text,
            "key_messages": json.loads(row.key_messages),
            "sources": sources(row.sources),
            "version": row.version,
            "writer": row.writer,
            "written_at": _utc(row.written_at),
            "closed": row.closed,
            "merged": row.merged,
            "stale": row.stale,
            **_cost(row.usage),
            "versions": [
                _version(old) | {"sources": sources(old.sources)}
                for old in earlier.get(row.period, [])
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
            "created_at": _utc(fact.created_at),
            "written_at": _utc(fact.written_at),
            "journal": [_earlier(old) for old in earlier],
        }
        if fact.writer is not None:
            line["writer"] = fact.writer
        if fact.done_at is not None:
            line["done_at"] = _utc(fact.done_at)
        if fact.event_date is not None:
            line["event_date"] = fact.event_date
        yield line


def _earlier(old: FactVersion) -> dict[str, Any]:
    line: dict[str, Any] = {"text": old.text, "written_at": _utc(old.written_at)}
    if old.source is not None:
        line["source"] = old.source
    if old.writer is not None:
        line["writer"] = old.writer
    if old.due is not None:
        line["due"] = old.due
    if old.done_at is not None:
        line["done_at"] = _utc(old.done_at)
    return line


def _exclusion(row: Exclusion) -> dict[str, Any]:
    line = {
        "type": "exclusion",
        "reason": row.reason,
        "user_id": row.user_id,
        "message_id": row.message_id,
        "from": None if row.begins is None else _utc(row.begins),
        "to": None if row.ends is None else _utc(row.ends),
        "noted_at": _utc(row.created_at),
    }
    return line if row.subject is None else line | {"subject": row.subject}
