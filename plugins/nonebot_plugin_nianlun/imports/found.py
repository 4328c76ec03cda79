"""What a reader finds in a chat export, whatever the format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO, Protocol, TypeAlias
from zoneinfo import ZoneInfo

from ..types import ChatKind, Delivery, Segment, Source, Via

HEAD_BYTES = 1 << 16
"""How much of a file's beginning tells its format."""


@dataclass(frozen=True, slots=True)
class FoundChat:
    """A chat as the file names it; what follows belongs to it until the next one."""

    kind: ChatKind
    name: str | None = None
    peer_id: str | None = None
    """Group number or the peer's QQ number; None where the file gives none."""
    self_id: str | None = None
    """QQ number of the account whose export it is; None where the file gives none."""


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """One line of the chat."""

    line: int
    """Where it stands in the file, from 1: what a report about it names."""
    time: datetime
    """Aware."""
    user_id: str | None
    """QQ number, `me`, or another stable id of the format; None where only a name is given."""
    name: str
    segments: list[Segment]
    """Cleaned already, as `capture.segments.to_segments` cleans; empty for an empty message."""
    message_id: str | None = None
    order: int | None = None
    """The platform's own sequence number."""
    reply_to_id: str | None = None
    withdrawn: bool = False
    system: bool = False
    """Said by the platform (a join, a recall), not by a person."""
    text: str | None = None
    """The readable text as it was stored; None: made from the segments."""
    seq: int | None = None
    reply_to: int | None = None
    """Short ids in the exporting store, which only our own format knows."""
    via: Via | None = None
    delivery: Delivery = "ok"
    source: Source = "import"
    withdrawn_at: datetime | None = None
    """When it was taken back, where the format tells."""


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """Another line of our own format (settings, speaker, activity, day, fact, …), unchecked but for
    NUL and lone surrogates. The header comes as well, right after the FoundChat made from it."""

    line: int
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that was left out, or of which a part was, and why, for a person."""

    line: int
    reason: str
    edit: bool = False
    """It is of a text that somebody changed in a vault."""


Found: TypeAlias = FoundChat | FoundMessage | FoundRecord | Unreadable


class Reader(Protocol):
    """One export format. A new one is a file beside this, named in `formats.READERS`."""

    name: str
    """What `--format` takes."""
    title: str
    """What a person calls it, in Chinese."""

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins so (up to 64 KiB of it) is of this format."""
        ...

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        """Stream the file from its start; `zone` is for formats that write local time.

        `file` is at its start and can be sought in. Memory does not grow with the file. How far
        the reading is shows in the position of `file`, also where other files are read beside
        it. Raises ImportFileError when the rest of it cannot be read.
        """
        ...
