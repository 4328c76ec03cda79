"""Where windows close: which pending messages become one activity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..types import Message, Window
from .calendar import Calendar

DAY_END_GRACE = timedelta(minutes=2)
"""How long a day that has ended waits for messages that are still on their way."""
AHEAD = timedelta(minutes=10)
"""So much later than now a message may claim to be, where clocks differ, and count as said."""


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The counts and the silence that close a window."""

    messages: int
    """As many pending messages close a window, and no window holds more."""
    min_messages: int
    """From this many on, silence closes a window too."""
    idle: timedelta


def plan_windows(
    pending: Sequence[Message],
    calendar: Calendar,
    policy: WindowPolicy,
    now: datetime,
    *,
    everything: bool = False,
    more: bool = False,
    noted_until: datetime | None = None,
) -> list[Window]:
    """Cut pending messages (in event order) into the windows that are due, oldest first.

    Silence is measured between messages, and from the last one to `now`; a logical day's
    messages never share a window with another's, nor imported ones with live ones.
    `everything` closes what is pending; `more` says that younger pending messages exist
    beside these, so that nothing can be said about the last run yet. `noted_until` is the time
    of the newest message that a window covers: what was fetched later and is older than that
    shares no window with what came after, or a window would reach over another.

    What is dated later than now waits for its time, or it would end the run of every talk
    before it; by `everything` it is taken as soon as its logical day has begun.
    """
    come = calendar.end_of(calendar.day_of(now)) if everything else now + AHEAD
    said = [message for message in pending if message.time < come]
    more = more and len(said) == len(pending)
    streams: dict[str, list[Message]] = {"import": [], "late": [], "live": []}
    for message in said:
        streams[_stream_of(message, noted_until)].append(message)
    closed: list[Window] = []
    for name, stream in streams.items():
        imported = name == "import"
        runs = _runs(stream, calendar, policy)
        if not runs:
            continue
        last = runs.pop()
        closed += (_window(run, calendar) for run in runs)
        if not more and (everything or _is_over(last, calendar, policy, now, imported=imported)):
            closed.append(_window(last, calendar))
    return sorted(closed, key=lambda window: window.messages[0].time)


def _stream_of(message: Message, noted_until: datetime | None) -> str:
    if message.source == "import":
        return "import"
    late = message.source == "history" and noted_until is not None and message.time < noted_until
    return "late" if late else "live"


def _runs(
    stream: Sequence[Message], calendar: Calendar, policy: WindowPolicy
) -> list[list[Message]]:
    runs: list[list[Message]] = []
    for message in stream:
        if runs and continues(
            len(runs[-1]), runs[-1][-1].time, message.time, calendar.day_of, policy
        ):
            runs[-1].append(message)
        else:
            runs.append([message])
    return runs


def continues(
    size: int,
    last: datetime,
    time: datetime,
    day_of: Callable[[datetime], object],
    policy: WindowPolicy,
) -> bool:
    """Whether a message of this time belongs to a run of so many, the last of them said then."""
    return not (
        size >= policy.messages
        or day_of(last) != day_of(time)
        or (size >= policy.min_messages and time - last >= policy.idle)
    )


def _is_over(
    run: list[Message],
    calendar: Calendar,
    policy: WindowPolicy,
    now: datetime,
    *,
    imported: bool,
) -> bool:
    last = run[-1].time
    return (
        imported
        or len(run) >= policy.messages
        or (len(run) >= policy.min_messages and now - last >= policy.idle)
        or now >= calendar.end_of(calendar.day_of(last)) + DAY_END_GRACE
    )


def _window(run: list[Message], calendar: Calendar) -> Window:
    return Window(calendar.day_of(run[0].time).isoformat(), tuple(run))
