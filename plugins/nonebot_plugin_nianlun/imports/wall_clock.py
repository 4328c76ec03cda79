"""Local times of a chat, in the order in which they were written down, as instants."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


class WallClock:
    """A time that was shown, from which the next ones are read.

    Time does not run back, but where the clocks are put back an hour comes twice: then the same
    local time means the second pass as soon as it cannot mean the first. A time that the clocks
    jump over is read as if they had not jumped yet.
    """

    __slots__ = ("_instant", "_local", "_zone")

    def __init__(
        self, zone: ZoneInfo, local: datetime | None = None, instant: datetime | None = None
    ) -> None:
        self._zone = zone
        self._local = local
        self._instant = instant

    def read(self, local: datetime) -> datetime | None:
        """The instant of a naive time, or None when that lies before the time now shown."""
        first = local.replace(tzinfo=self._zone).astimezone(UTC)
        if self._local is None or self._instant is None:
            return first
        if local >= self._local and first >= self._instant:
            return first
        second = local.replace(tzinfo=self._zone, fold=1).astimezone(UTC)
        if second > first and second >= self._instant:
            return second
        return first if local >= self._local else None

    def at(self, local: datetime, instant: datetime) -> WallClock:
        """The same clock showing another time."""
        return WallClock(self._zone, local, instant)
