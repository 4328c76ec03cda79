"""What the day itself brings up before a reply: a promise that is due, or a day come round."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from ..memory.anniversaries import anniversary_line, yearly_line
from ..memory.promises import due_lines
from ..memory.render import display_names
from ..store.reply_view import DayView


def reminder(day: DayView, today: date, shown: Collection[str]) -> str:
    """At most three lines about promises, or one about a yearly day or an earlier year; empty
    without any of these. `shown` are the days that stand in the prompt anyway."""
    names = display_names(day.names)
    if day.promises:
        return due_lines(day.promises, names, today)
    return yearly_line(day.yearly, names, today) or anniversary_line(day.same_days, today, shown)
