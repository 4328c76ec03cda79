"""Which diary moment of a chat one of a file is: moments have no window to be known by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from ..memory.vault import digest
from ..types import Activity
from .models import Activity as ActivityRow
from .models import NoteVersion
from .records import Noted, Record


class Moments:
    """Those of one chat of a file; its methods run inside the caller's transaction."""

    def __init__(self, chat_id: int) -> None:
        self._chat_id = chat_id
        self._to_come: Counter[tuple[str, str, datetime, str]] = Counter()
        """How many of the file, unchanged since it was exported, are not found yet."""

    def expect(self, records: Iterable[Record]) -> None:
        """Look ahead at what `find` is asked for next."""
        self._to_come = Counter(
            _told(one, digest(one.activity.text))
            for one in records
            if isinstance(one, Noted) and one.exported is None and not one.activity.ranges
        )

    async def find(
        self, noted: Noted, texts: Collection[str], claimed: Collection[int]
    ) -> ActivityRow | None:
        """The moment here that this one of the file is, but none of the `claimed` rows: by its
        time and one of these texts or, where it was edited, the text that was exported."""
        theirs = noted.activity
        here = ActivityRow.filter(chat_id=self._chat_id, date=theirs.date, origin=theirs.origin)
        same = await here.filter(time=theirs.time).exclude(id__in=claimed).order_by("number")
        found = next((row for row in same if row.text in texts), None)
        if noted.exported is None:
            self._to_come[_told(noted, digest(theirs.text))] -= 1
            found = found or await self._emptied(same, theirs)
        elif found is None:
            was = [row for row in same if digest(row.text) == noted.exported]
            # Those of its twins that nobody changed are among them, and it may be missing itself.
            if len(was) > self._to_come[_told(noted, noted.exported)]:
                return was[0]
            # What became of it since: another edit, or nothing at all.
            found = next((row for row in same if row.number == theirs.number), None)
        return found

    async def _emptied(self, same: Sequence[ActivityRow], theirs: Activity) -> ActivityRow | None:
        """The one that lost its text here since: it still tells when each was written."""
        for row in same:
            if row.text:
                continue
            earlier = NoteVersion.filter(
                chat_id=self._chat_id, kind="activity", ref=str(row.number)
            )
            written = [(one.writer, one.written_at) for one in (row, *await earlier)]
            if (theirs.writer, theirs.written_at) in written:
                return row
        return None


def _told(noted: Noted, exported: str) -> tuple[str, str, datetime, str]:
    """What a moment told when it was exported, as far as `find` goes by it."""
    return noted.activity.date, noted.activity.origin, noted.activity.time, exported
