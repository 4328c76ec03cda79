"""Activities, days, months and years as they stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
import json
from typing import cast

from ..memory.rollups import ActivityState, MemoryState
from ..types import Activity, Memory, MemoryKind, NoteKind, Origin, is_edited
from . import sql
from .keys import chunks
from .models import Activity as ActivityRow
from .models import Memory as MemoryRow
from .models import Message as MessageRow
from .models import NoteVersion


def _texts(raw: str) -> tuple[str, ...]:
    return tuple(json.loads(raw))


def _ids(raw: str) -> tuple[int, ...]:
    return tuple(json.loads(raw))


@lru_cache(2048)
def _sources(raw: str) -> frozenset[str]:
    """Every look at what is owed reads those of all memories, and hardly any has changed."""
    return frozenset(json.loads(raw))


async def _ranges(chat_id: int, activity_ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """The runs of `seq` that each activity covers."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for part in chunks(activity_ids):
        # Put in order here: asked for it, SQLite reads the whole chat by `seq` instead.
        query = MessageRow.filter(chat_id=chat_id, activity_id__in=part)
        pairs = cast("list[tuple[int, int]]", await query.values_list("activity_id", "seq"))
        for activity_id, seq in sorted(pairs):
            runs = ranges.setdefault(activity_id, [])
            if runs and runs[-1][1] == seq - 1:
                runs[-1] = (runs[-1][0], seq)
            else:
                runs.append((seq, seq))
    return ranges


async def _with_ranges(chat_id: int, rows: Sequence[ActivityRow]) -> list[Activity]:
    ranges = await _ranges(chat_id, [row.id for row in rows])
    return to_activities(rows, ranges)


def to_activities(
    rows: Sequence[ActivityRow], ranges: Mapping[int, Sequence[tuple[int, int]]]
) -> list[Activity]:
    return [
        Activity(
            number=row.number,
            date=row.date,
            text=row.text,
            key_messages=_ids(row.key_messages),
            origin=cast("Origin", row.origin),
            time=row.time,
            writer=row.writer,
            written_at=row.written_at,
            ranges=tuple(ranges.get(row.id, ())),
            owner=row.owner,
            version=row.version,
            merged=row.merged,
            source_conv=row.source_conv,
        )
        for row in rows
    ]


def _to_memory(row: MemoryRow) -> Memory:
    return Memory(
        kind=cast("MemoryKind", row.kind),
        period=row.period,
        text=row.text,
        key_messages=_ids(row.key_messages),
        sources=_texts(row.sources),
        version=row.version,
        writer=row.writer,
        written_at=row.written_at,
        closed=row.closed,
        merged=row.merged,
    )


async def activities(chat_id: int, date: str) -> list[Activity]:
    """A logical day's activities in time order; those being rewritten are left out."""
    rows = await ActivityRow.filter(chat_id=chat_id, date=date, stale=False).order_by(
        "time", "number"
    )
    return await _with_ranges(chat_id, rows)


async def all_activities(chat_id: int) -> list[Activity]:
    """Every activity by number; one that is being rewritten is empty meanwhile."""
    rows = await ActivityRow.filter(chat_id=chat_id).order_by("number")
    return await _with_ranges(chat_id, rows)


async def stale_activities(chat_id: int) -> list[Activity]:
    """Activities that were built on something that has been taken back."""
    rows = await ActivityRow.filter(id__in=await sql.stale_activities(chat_id)).order_by("number")
    return await _with_ranges(chat_id, rows)


async def rewritable(chat_id: int) -> set[int]:
    """The numbers of those of these that have a message left to be written from."""
    found: set[int] = set()
    for part in chunks(await sql.stale_activities(chat_id)):
        left = MessageRow.filter(chat_id=chat_id, activity_id__in=part, withdrawn_at=None)
        ids = await left.distinct().values_list("activity_id", flat=True)
        found |= {row.number for row in await ActivityRow.filter(id__in=ids).only("number")}
    return found


async def worded(chat_id: int, numbers: Iterable[int]) -> set[int]:
    """Those of these activities that have a text."""
    found: set[int] = set()
    for part in chunks(sorted(numbers)):
        rows = ActivityRow.filter(chat_id=chat_id, number__in=part).exclude(text="")
        found |= {row.number for row in await rows.only("number")}
    return found


async def memory(chat_id: int, kind: MemoryKind, period: str) -> Memory | None:
    """The current text of a day, month or year; None while it is being rewritten."""
    row = await MemoryRow.get_or_none(chat_id=chat_id, kind=kind, period=period, stale=False)
    return None if row is None else _to_memory(row)


async def rewriting(chat_id: int, kind: MemoryKind, periods: Iterable[str]) -> set[str]:
    """Those of these periods that wait to be written anew: the memory, or an activity of a day."""
    found: set[str] = set()
    for part in chunks(sorted(periods)):
        stale = MemoryRow.filter(chat_id=chat_id, kind=kind, period__in=part, stale=True)
        found |= {row.period for row in await stale.only("period")}
        if kind == "day":
            noted = ActivityRow.filter(chat_id=chat_id, date__in=part, stale=True)
            found |= {row.date for row in await noted.only("date")}
    return found


async def target(chat_id: int, kind: MemoryKind, period: str) -> Memory | None:
    """The memory that a roll-up replaces or continues, also when it may not be shown."""
    row = await MemoryRow.get_or_none(chat_id=chat_id, kind=kind, period=period)
    return None if row is None else _to_memory(row)


async def memories(chat_id: int, kind: MemoryKind, periods: Iterable[str]) -> list[Memory]:
    """The named memories that exist and may be shown, in order of time."""
    found: list[Memory] = []
    wanted = sorted(periods)
    for part in chunks(wanted):
        rows = await MemoryRow.filter(
            chat_id=chat_id, kind=kind, period__in=part, stale=False
        ).order_by("period")
        found += map(_to_memory, rows)
    return found


async def all_memories(chat_id: int, kind: MemoryKind) -> list[Memory]:
    """Every memory of a layer; one that is being rewritten is empty meanwhile."""
    rows = await MemoryRow.filter(chat_id=chat_id, kind=kind).order_by("period")
    return [_to_memory(row) for row in rows]


async def activity(chat_id: int, number: int) -> Activity | None:
    """One activity; it is empty while it is being rewritten, and when it was removed."""
    rows = await ActivityRow.filter(chat_id=chat_id, number=number)
    return next(iter(await _with_ranges(chat_id, rows)), None)


async def versions(chat_id: int, kind: NoteKind, ref: str) -> list[NoteVersion]:
    """Earlier texts of a period, or of an activity's number, oldest first; those that held
    something taken back are blank."""
    return await NoteVersion.filter(chat_id=chat_id, kind=kind, ref=ref).order_by("version")


async def held(chat_id: int, kind: NoteKind, ref: str) -> list[str]:
    """What a note said when the memory above last took it in; all that it said before where that
    is not on record."""
    earlier = [old for old in await versions(chat_id, kind, ref) if old.text]
    taken_in = [old for old in earlier if old.merged]
    return [old.text for old in taken_in[-1:] or earlier]


async def noted_until(chat_id: int) -> datetime | None:
    """When the newest message was said that a window covers; None when no window is noted."""
    windows = ActivityRow.filter(chat_id=chat_id, origin="window")
    newest = await windows.order_by("-date", "-time").first()
    return None if newest is None else newest.time


async def memory_states(chat_id: int) -> list[MemoryState]:
    fields = ("kind", "period", "closed", "merged", "stale", "writer", "sources")
    rows = await MemoryRow.filter(chat_id=chat_id).order_by("period").values(*fields)
    return [
        MemoryState(
            kind=row["kind"],
            period=row["period"],
            closed=row["closed"],
            merged=row["merged"],
            stale=row["stale"],
            edited=is_edited(row["writer"]),
            sources=_sources(row["sources"]),
        )
        for row in rows
    ]


async def activity_states(chat_id: int, dates: Iterable[str]) -> list[ActivityState]:
    """States of all activities of these days, and of the days that have a loose or stale one."""
    wanted = sorted({*dates, *await sql.open_dates(chat_id)})
    found: list[ActivityState] = []
    for part in chunks(wanted):
        rows = ActivityRow.filter(chat_id=chat_id, date__in=part)
        fields = ("number", "date", "merged", "stale")
        found += [
            ActivityState(**row) for row in await rows.order_by("date", "number").values(*fields)
        ]
    return found
