"""What each logical day added to a chat: the numbers and moods that pictures are drawn from."""

from __future__ import annotations

from datetime import UTC, date, timedelta
import json
from pathlib import Path
import sqlite3

from tortoise.functions import Sum

from ..memory.calendar import Calendar
from ..memory.moods import DayGrowth, mood_of
from .models import UsageCount
from .reading import ReadThread
from .search_schema import MAY_BE_FOUND

_FIRST_DAY = """
SELECT MIN(day) FROM (
    SELECT substr(MIN(time), 1, 10) AS day FROM nianlun_message WHERE chat_id = ?1
    UNION ALL SELECT MIN(date) FROM nianlun_activity WHERE chat_id = ?1
)
"""
# Counted once each, hence the materialized table. A day without a memory is told of by its
# activities.
_DAYS = f"""
WITH day AS (
    SELECT json_extract(value, '$[0]') AS date, json_extract(value, '$[1]') AS first,
        json_extract(value, '$[2]') AS after
    FROM json_each(?2)
), counted AS MATERIALIZED (
    SELECT date,
        (SELECT COUNT(*) FROM nianlun_message
            WHERE chat_id = ?1 AND time >= day.first AND time < day.after
            AND {MAY_BE_FOUND.format(row="")}) AS messages,
        (SELECT COUNT(*) FROM nianlun_activity
            WHERE chat_id = ?1 AND date = day.date AND text <> '') AS activities
    FROM day
)
SELECT day.date, messages, activities,
    COALESCE(
        (SELECT text FROM nianlun_memory
            WHERE chat_id = ?1 AND kind = 'day' AND period = day.date AND text <> ''),
        (SELECT group_concat(text, char(10)) FROM nianlun_activity
            WHERE chat_id = ?1 AND date = day.date),
        ''
    )
FROM counted AS day WHERE messages > 0 OR activities > 0
"""


async def growth(
    path: Path, chat_id: int, calendar: Calendar, first: date, last: date
) -> dict[date, DayGrowth]:
    """The logical days from `first` to `last` on which anything was said or noted: no commands and
    no answers to them, nothing taken back or left out.

    Reads beside all writing, on a connection of its own. Raises StoreError.
    """
    reading = ReadThread(path, "nianlun-growth")
    try:
        return await reading.run(lambda found: _growth(found, chat_id, calendar, first, last))
    finally:
        await reading.close()


async def tokens_by_day(chat_id: int, year: int) -> dict[date, int]:
    """Prompt and completion tokens of the days of a year, replies included."""
    query = UsageCount.filter(chat_id=chat_id, date__gte=f"{year:04}", date__lt=f"{year:04}~")
    rows = (
        await query.annotate(asked=Sum("prompt_tokens"), answered=Sum("completion_tokens"))
        .group_by("date")
        .values("date", "asked", "answered")
    )
    return {date.fromisoformat(row["date"]): row["asked"] + row["answered"] for row in rows}


def _growth(
    connection: sqlite3.Connection, chat_id: int, calendar: Calendar, first: date, last: date
) -> dict[date, DayGrowth]:
    (oldest,) = connection.execute(_FIRST_DAY, (chat_id,)).fetchone()
    if oldest is None:
        return {}
    # A message of the small hours belongs to the day before, and its time is written in UTC.
    begin = max(first.toordinal(), date.fromisoformat(oldest).toordinal() - 2)
    days = [date.fromordinal(number) for number in range(begin, last.toordinal() + 1)]
    spans = json.dumps([_span(calendar, day) for day in days])
    return {
        date.fromisoformat(day): DayGrowth(messages, activities, mood_of(text))
        for day, messages, activities, text in connection.execute(_DAYS, (chat_id, spans))
    }


def _span(calendar: Calendar, day: date) -> tuple[str, str, str]:
    """A day, its first moment and the one after it, written as the columns are."""
    begin, end = (
        calendar.start_of(each).astimezone(UTC).isoformat(" ")
        for each in (day, day + timedelta(days=1))
    )
    return day.isoformat(), begin, end
