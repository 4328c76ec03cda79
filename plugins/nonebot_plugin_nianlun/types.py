"""The nouns of the product: plain immutable values that every layer passes around.

Times are aware and in UTC. Dates of memories (`period`) are text keys: `YYYY-MM-DD` for a
day and an activity, `YYYY-MM` for a month, `YYYY` for a year.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

ME = "me"
"""Speaker id of the bot itself in every chat; reserved, lower case only."""

ChatKind: TypeAlias = Literal["group", "private", "store"]
Segment: TypeAlias = dict[str, Any]
"""One OneBot segment as data: `{"type": str, "data": {...}}`."""
Source: TypeAlias = Literal["event", "sent", "echo", "history", "import"]
"""How a message came in: pushed, returned by our own send call, echoed, fetched, imported."""
Via: TypeAlias = Literal["nianlun", "other"]
"""For the bot's own lines: said by this plugin, or by another plugin or client."""
Delivery: TypeAlias = Literal["ok", "unknown"]
SkipReason: TypeAlias = Literal[
    "withdrawn", "opted_out", "paused", "command", "declined", "refused", "empty"
]
MemoryKind: TypeAlias = Literal["day", "month", "year"]
NoteKind: TypeAlias = Literal["activity", "day", "month", "year"]
Origin: TypeAlias = Literal["window", "turn", "tool", "import"]

UNIT_LIMITS: dict[NoteKind, int] = {"activity": 100, "day": 500, "month": 300, "year": 400}
"""Longest text of each kind, in units."""
KEY_MESSAGE_LIMITS: dict[NoteKind, int] = {"activity": 3, "day": 10, "month": 30, "year": 30}
"""Most key messages that each kind may cite."""


COMMAND_LINE = "cli"
"""The writer of a text that was edited in a vault and imported on the command line, where nobody
has a QQ number."""


def is_edited(writer: str) -> bool:
    """Whether the writer of a note is a person: then it is the QQ number of the one, or
    `COMMAND_LINE`."""
    return writer not in ("model", "offline")


@dataclass(frozen=True, slots=True)
class ChatKey:
    """One group or one private peer as seen by one bot account."""

    self_id: str
    kind: ChatKind
    peer_id: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.peer_id}"

    @property
    def full(self) -> str:
        """With the bot account in front: `10001/group:123`."""
        return f"{self.self_id}/{self}"


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message on its way into the store."""

    chat: ChatKey
    time: datetime
    user_id: str
    """QQ number as text, or `me`."""
    name: str
    segments: list[Segment]
    source: Source
    message_id: str | None = None
    """The platform's id as text; None when it gave none."""
    order: int | None = None
    """The platform's own sequence number where it has one: orders messages of one second."""
    heard_at: datetime | None = None
    """When we heard it, or began to send it; `time` knows whole seconds only."""
    chat_name: str | None = None
    reply_to_id: str | None = None
    via: Via | None = None
    delivery: Delivery = "ok"
    skipped: SkipReason | None = None


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A notice that a message was taken back."""

    chat: ChatKey
    message_id: str
    user_id: str | None
    """Whose message it was (`me` for the bot's own), where the notice says so."""
    time: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """A recorded message."""

    seq: int
    time: datetime
    user_id: str
    name: str
    text: str
    reply_to: int | None = None
    withdrawn: bool = False
    via: Via | None = None
    source: Source = "event"
    skipped: SkipReason | None = None

    @property
    def is_mine(self) -> bool:
        return self.user_id == ME


@dataclass(frozen=True, slots=True)
class Fact:
    """What is true now: `category:name` -> text, owned by a speaker, `me` or the chat."""

    category: str
    name: str
    content: str
    source: int
    """The message that it was taken from; its speaker is the owner."""
    due: str | None = None
    """Of a promise: the day by which it is to be kept."""
    done: bool = False
    """Of a promise: it was kept."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model call cost, in tokens."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
        )

    def share(self, parts: int) -> Usage:
        """What one of so many notes cost that were written together, in whole tokens."""
        return Usage(self.prompt // parts, self.cached // parts, self.completion // parts)


@dataclass(frozen=True, slots=True)
class Note:
    """A finished text of any layer, checked against the writing rules."""

    text: str
    key_messages: tuple[int, ...]
    writer: Literal["model", "offline"]
    facts: tuple[Fact, ...] = ()
    usage: Usage | None = field(default=None, compare=False)
    """What the calls that wrote it cost, refused answers included; None without a model."""


@dataclass(frozen=True, slots=True)
class Activity:
    """A stored activity note."""

    number: int
    """1, 2, 3 … within its chat; shown to people as `&3`."""
    date: str
    text: str
    key_messages: tuple[int, ...]
    origin: Origin
    time: datetime
    """When its last message was sent (for a diary moment: when it was written)."""
    writer: str
    written_at: datetime
    ranges: tuple[tuple[int, int], ...] = ()
    """The runs of `seq` that its window covers, ascending and disjoint; empty without a window."""
    owner: str | None = None
    version: int = 1
    merged: bool = False
    """Its day memory holds this very version."""
    source_conv: str | None = None
    """Of a moment that another program wrote: the conversation that it names as its source."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored day, month or year."""

    kind: MemoryKind
    period: str
    text: str
    key_messages: tuple[int, ...]
    sources: tuple[str, ...]
    """Activity numbers of a day, dates of a month's days or of a year's months, as text."""
    version: int
    writer: str
    """`model`, `offline`, or the QQ number of the person who edited it."""
    written_at: datetime
    closed: bool = False
    """Rebuilt from all its sources after the period ended."""
    merged: bool = False
    """This very version is part of the memory one layer up."""

    @property
    def edited(self) -> bool:
        return is_edited(self.writer)


@dataclass(frozen=True, slots=True)
class Window:
    """A run of messages that one activity covers."""

    date: str
    messages: tuple[Message, ...]
    """In time order; never across a logical day."""


@dataclass(frozen=True, slots=True)
class RollupTask:
    """One target of a roll-up batch, in the words of the skill protocol."""

    kind: MemoryKind
    period: str
    sources: tuple[Activity, ...] | tuple[Memory, ...]
    """All sources when `rebuild`, else only those that are not in the target yet."""
    target: Memory | None
    """The stored text that an incremental update continues; for a rebuild, what it replaces."""
    rebuild: bool
    closes: bool
    """The period is over and this write completes it."""
    told: tuple[Activity | Memory, ...] = ()
    """Sources that changed and say nothing that the target, which a person wrote, does not hold."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a writer may know beside the sources: who it is and what it already remembers."""

    chat: ChatKey
    place: str
    """Where the talk happens, for people: `QQ群「摸鱼研究所」` or `与 小鹿 的私聊`."""
    character: str
    persona: str
    memory: str = ""
    """Current memory as text, newest layers last; empty when there is none."""
    recalled: str = ""
    known_categories: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    """Display name of each speaker, by user id."""


@dataclass(frozen=True, slots=True)
class ChatStatus:
    """How a chat's memory is doing, counted in rows unless said otherwise."""

    messages: int
    pending: int
    """Messages that no activity covers yet and that are not skipped."""
    skipped: int
    activities: int
    days: int
    months: int
    years: int
    last_note_at: datetime | None
    last_rollup_at: datetime | None
    last_error: str | None
    """One line for a person; None when the last run went well."""
    last_error_at: datetime | None
    next_rollup_at: datetime | None
    gaps: int
    """Spans of time whose messages are known to be missing."""
    tokens_today: int
    """Spent on notes since the logical day began."""
    writer: str
    """Who writes the notes now: `model` or `offline`."""
    paused: bool
    """Recording is switched off for this chat."""
    token_limit: int | None = None
    """Tokens that notes may cost in one logical day; None without a limit."""
    limit_reached: bool = False
    """The offline writer takes over from the model until the logical day ends."""
    last_gap: tuple[datetime, datetime] | None = None
    """From when to when, of the gap that ended last."""
    turns_today: int = 0
    """Model calls for facts and diary after turns, in this logical day."""
    turns_failed: int = 0
    """Those of them that came to nothing."""
    last_turn_at: datetime | None = None
    """When this process last took in a turn without trouble."""
    muted: bool = False
    """Replying is switched off for this chat."""
    owed: int = 0
    """Activities, days, months and years to be written or written anew, beside the activities of
    pending messages."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed of a member who asked to be forgotten, in rows."""

    messages: int
    notes: int
    """Activities, days, months and years that were emptied and are written anew."""
    facts: int
    names: int
    opted_out: bool
    """What the member says from now on is not recorded either."""


@dataclass(frozen=True, slots=True)
class TidyReport:
    """What one run of all owed work of a chat did."""

    activities: int = 0
    """Activity notes written."""
    memories: int = 0
    """Days, months and years written."""
    declined: int = 0
    """Windows in which the writer found nothing worth noting."""
    errors: tuple[str, ...] = ()
    """One line for a person each; what failed stays owed."""
